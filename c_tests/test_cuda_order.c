// Memory is never handed out too early on a GPU: threads and streams fill memory by kernels that dawdle,
// other streams read it behind a wait, and it is freed at once; each value is checked by a kernel. Where
// there are two devices, half of the threads work on each. CUDA only.
//
// CVC_ORDER_SECONDS: how long; 2 where it is not set.
#include "cuda_fixtures.h"

#include <pthread.h>
#include <time.h>

enum { threads = 8, own_streams = 3, most_words = 16384, wait_nanoseconds = 60000 };

// `fill` waits for the nanoseconds, then writes `value + i` to word i; `verify` reads the words, waits, reads
// them again, and counts those that were another value.
static const char order_text[] =
    ".version 6.4\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".visible .entry fill(.param .u64 data, .param .u32 words, .param .u32 value,\n"
    "    .param .u64 nanoseconds) {\n"
    "  .reg .b64 %data, %most, %start, %now, %at;\n"
    "  .reg .b32 %i, %words, %value, %step, %own;\n"
    "  .reg .pred %go;\n"
    "  ld.param.u64 %data, [data];\n"
    "  ld.param.u32 %words, [words];\n"
    "  ld.param.u32 %value, [value];\n"
    "  ld.param.u64 %most, [nanoseconds];\n"
    "  mov.u64 %start, %globaltimer;\n"
    "dawdle:\n"
    "  mov.u64 %now, %globaltimer;\n"
    "  sub.u64 %now, %now, %start;\n"
    "  setp.lt.u64 %go, %now, %most;\n"
    "  @%go bra dawdle;\n"
    "  mov.u32 %i, %tid.x;\n"
    "  mov.u32 %step, %ntid.x;\n"
    "again:\n"
    "  setp.ge.u32 %go, %i, %words;\n"
    "  @%go bra end;\n"
    "  mul.wide.u32 %at, %i, 4;\n"
    "  add.u64 %at, %at, %data;\n"
    "  add.u32 %own, %value, %i;\n"
    "  st.global.u32 [%at], %own;\n"
    "  add.u32 %i, %i, %step;\n"
    "  bra again;\n"
    "end:\n"
    "  ret;\n"
    "}\n"
    ".visible .entry verify(.param .u64 data, .param .u32 words, .param .u32 value,\n"
    "    .param .u64 nanoseconds, .param .u64 wrong) {\n"
    "  .reg .b64 %data, %most, %start, %now, %at, %wrong;\n"
    "  .reg .b32 %i, %words, %value, %step, %own, %found, %turn, %count;\n"
    "  .reg .pred %go;\n"
    "  ld.param.u64 %data, [data];\n"
    "  ld.param.u32 %words, [words];\n"
    "  ld.param.u32 %value, [value];\n"
    "  ld.param.u64 %most, [nanoseconds];\n"
    "  ld.param.u64 %wrong, [wrong];\n"
    "  mov.u32 %step, %ntid.x;\n"
    "  mov.u32 %turn, 0;\n"
    "turn:\n"
    "  mov.u32 %i, %tid.x;\n"
    "again:\n"
    "  setp.ge.u32 %go, %i, %words;\n"
    "  @%go bra next;\n"
    "  mul.wide.u32 %at, %i, 4;\n"
    "  add.u64 %at, %at, %data;\n"
    "  ld.volatile.global.u32 %found, [%at];\n"
    "  add.u32 %own, %value, %i;\n"
    "  add.u32 %i, %i, %step;\n"
    "  setp.eq.u32 %go, %found, %own;\n"
    "  @%go bra again;\n"
    "  atom.global.add.u32 %count, [%wrong], 1;\n"
    "  bra again;\n"
    "next:\n"
    "  add.u32 %turn, %turn, 1;\n"
    "  setp.eq.u32 %go, %turn, 2;\n"
    "  @%go bra end;\n"
    "  mov.u64 %start, %globaltimer;\n"
    "dawdle:\n"
    "  mov.u64 %now, %globaltimer;\n"
    "  sub.u64 %now, %now, %start;\n"
    "  setp.lt.u64 %go, %now, %most;\n"
    "  @%go bra dawdle;\n"
    "  bra turn;\n"
    "end:\n"
    "  ret;\n"
    "}\n";

struct place {
  int32_t device;
  void *context, *fill, *verify;
  uint64_t wrong;      // a word of the GPU's, which counts
  cvc_stream_t shared; // every thread of the device uses it
};

static struct {
  struct driver *cuda;
  int64_t end; // when the threads stop
  struct place places[2];
} here;

static uint32_t wrong_values(const struct place *place) {
  uint32_t count = 0;
  DRIVER(here.cuda->context_set_current(place->context));
  DRIVER(here.cuda->copy_to_host(&count, place->wrong, sizeof count));
  return count;
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

struct worker {
  const struct place *place;
  uint64_t random;
  cvc_stream_t streams[own_streams + 1]; // created, registered, foreign; then the one that all share
  uint64_t rounds, with_readers;
};

static uint64_t draw(struct worker *worker, uint64_t bound) {
  worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
  return (worker->random >> 33) % bound;
}

static void launch(void *function, cvc_stream_t stream, void **arguments) {
  DRIVER(here.cuda->launch(function, 1, 1, 1, 128, 1, 1, 0, stream, arguments, NULL));
}

static void launch_fill(const struct place *place, cvc_stream_t stream, void *data, uint32_t words,
                        uint32_t value, uint64_t nanoseconds) {
  uint64_t address = (uint64_t)(uintptr_t)data;
  void *arguments[] = {&address, &words, &value, &nanoseconds};
  launch(place->fill, stream, arguments);
}

static void launch_verify(const struct place *place, cvc_stream_t stream, void *data, uint32_t words,
                          uint32_t value, uint64_t nanoseconds) {
  uint64_t address = (uint64_t)(uintptr_t)data, wrong = place->wrong;
  void *arguments[] = {&address, &words, &value, &nanoseconds, &wrong};
  launch(place->verify, stream, arguments);
}

// Raw memory is filled on one stream and read on others, which are named before their launches; then it is
// freed.
static void raw_round(struct worker *worker, cvc_stream_t stream, uint32_t words, uint32_t value) {
  cvc_cache_t cache = check_default_cache();
  void *data = NULL;
  REQUIRE_OK(cvc_mem_alloc(cache, worker->place->device, 4 * (size_t)words, 0, stream, &data));
  launch_fill(worker->place, stream, data, words, value, draw(worker, wait_nanoseconds));
  if (draw(worker, 4) == 0) { // reused behind an event, though the stream goes on
    cvc_event_t event = NULL;
    launch_verify(worker->place, stream, data, words, value, 0);
    REQUIRE_OK(cvc_event_create(worker->place->device, 0, &event));
    REQUIRE_OK(cvc_event_record(event, stream));
    REQUIRE_OK(cvc_mem_free_after_event(cache, data, event));
    REQUIRE_OK(cvc_event_destroy(event));
    return;
  }
  for (uint64_t readers = draw(worker, 3); readers > 0; --readers) {
    cvc_stream_t reader = worker->streams[draw(worker, own_streams + 1)];
    REQUIRE_OK(cvc_mem_record_stream(cache, data, reader));
    if (reader != stream)
      REQUIRE_OK(cvc_stream_wait_stream(reader, stream));
    launch_verify(worker->place, reader, data, words, value, draw(worker, wait_nanoseconds));
    ++worker->with_readers;
  }
  REQUIRE_OK(cvc_mem_free(cache, data, stream));
}

// The same with a tensor, whose launches are announced.
static void tensor_round(struct worker *worker, cvc_stream_t stream, uint32_t words, uint32_t value) {
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_S32, "W", 1, (const int64_t[]){words});
  desc.device = worker->place->device;
  cvc_tensor_t tensor = NULL;
  REQUIRE_OK(cvc_tensor_create(check_default_cache(), &desc, stream, &tensor));
  void *data = tensor_data(tensor).data;
  REQUIRE_OK(cvc_tensor_begin_access(tensor, stream, CVC_ACCESS_WRITE));
  launch_fill(worker->place, stream, data, words, value, draw(worker, wait_nanoseconds));
  REQUIRE_OK(cvc_tensor_end_access(tensor, stream, CVC_ACCESS_WRITE));
  for (uint64_t readers = draw(worker, 3); readers > 0; --readers) {
    cvc_stream_t reader = worker->streams[draw(worker, own_streams + 1)];
    REQUIRE_OK(cvc_tensor_begin_access(tensor, reader, CVC_ACCESS_READ));
    launch_verify(worker->place, reader, data, words, value, draw(worker, wait_nanoseconds));
    REQUIRE_OK(cvc_tensor_end_access(tensor, reader, CVC_ACCESS_READ));
    ++worker->with_readers;
  }
  REQUIRE_OK(cvc_tensor_release(tensor));
}

static void *work(void *argument) {
  struct worker *worker = argument;
  const struct place *place = worker->place;
  DRIVER(here.cuda->context_set_current(place->context));
  REQUIRE_OK(cvc_stream_create(place->device, 0, &worker->streams[0]));
  worker->streams[1] = foreign_stream(here.cuda, CUDA_NON_BLOCKING);
  REQUIRE_OK(cvc_stream_register(place->device, worker->streams[1], 0));
  worker->streams[2] = foreign_stream(here.cuda, CUDA_NON_BLOCKING);
  worker->streams[own_streams] = place->shared;
  static const uint32_t sizes[] = {128, 1000, 4096, most_words};
  while (now() < here.end) {
    cvc_stream_t stream = worker->streams[draw(worker, own_streams + 1)];
    uint32_t words = sizes[draw(worker, 4)], value = (uint32_t)draw(worker, 1u << 31);
    if (draw(worker, 2) == 0)
      raw_round(worker, stream, words, value);
    else
      tensor_round(worker, stream, words, value);
    // The host may run ahead, but not without bound.
    if (++worker->rounds % 64 == 0)
      REQUIRE_OK(cvc_stream_synchronize(worker->streams[draw(worker, own_streams)], -1));
  }
  for (int i = 0; i < own_streams; ++i)
    REQUIRE_OK(cvc_stream_synchronize(worker->streams[i], -1));
  REQUIRE_OK(cvc_stream_unregister(worker->streams[1]));
  DRIVER(here.cuda->stream_destroy(worker->streams[1]));
  DRIVER(here.cuda->stream_destroy(worker->streams[2]));
  REQUIRE_OK(cvc_stream_destroy(worker->streams[0]));
  return NULL;
}

static void set_up(struct place *place, int32_t device) {
  void *module = NULL;
  place->device = device;
  REQUIRE_OK(cvc_device_set_current(device));
  REQUIRE_OK(cvc_stream_create(device, 0, &place->shared));
  place->context = current_context(here.cuda);
  DRIVER(here.cuda->module_load(&module, order_text));
  DRIVER(here.cuda->module_function(&place->fill, module, "fill"));
  DRIVER(here.cuda->module_function(&place->verify, module, "verify"));
  DRIVER(here.cuda->memory_alloc(&place->wrong, sizeof(uint32_t)));
  DRIVER(here.cuda->memset_async(place->wrong, 0, sizeof(uint32_t), CVC_STREAM_LEGACY));
}

// What came of it; the library has nothing left on the device but what it keeps.
static void look_at(struct place *place) {
  CHECK_OK(cvc_device_synchronize(place->device, -1));
  CHECK_EQ(wrong_values(place), 0);
  // The check itself works.
  void *data = NULL;
  CHECK_OK(cvc_mem_alloc(check_default_cache(), place->device, 512, 0, place->shared, &data));
  launch_fill(place, place->shared, data, 128, 7, 0);
  launch_verify(place, place->shared, data, 128, 8, 0);
  CHECK_OK(cvc_mem_free(check_default_cache(), data, place->shared));
  CHECK_OK(cvc_stream_synchronize(place->shared, -1));
  CHECK_EQ(wrong_values(place), 256);
  cvc_cache_stats_t stats;
  memset(&stats, 0, sizeof stats);
  stats.struct_size = sizeof stats;
  CHECK_OK(cvc_cache_stats(check_default_cache(), place->device, &stats));
  printf("device %d: 0 wrong values; %llu exact hits, %llu fits, %llu pending, %llu misses\n", place->device,
         (unsigned long long)stats.hits_exact, (unsigned long long)stats.hits_fit,
         (unsigned long long)stats.hits_pending, (unsigned long long)stats.misses);
  // Memory was used again, also while work on it was queued.
  CHECK(stats.hits_exact > 0 && stats.hits_pending > 0);
  CHECK(stats.driver_bytes < (uint64_t)threads * 1000 * 4 * most_words);
  DRIVER(here.cuda->memory_free(place->wrong));
  CHECK_OK(cvc_stream_destroy(place->shared));
}

static void values_stay_until_they_are_read(void) {
  static struct worker workers[threads];
  pthread_t running[threads];
  const char *seconds = getenv("CVC_ORDER_SECONDS");
  const int places = two_devices() ? 2 : 1;
  uint64_t rounds = 0, readers = 0;
  here.cuda = cuda_driver();
  for (int i = 0; i < places; ++i)
    set_up(&here.places[i], i);
  here.end = now() + (seconds ? atoll(seconds) : 2) * 1000000000;
  for (int i = 0; i < threads; ++i) {
    workers[i].place = &here.places[i % places];
    workers[i].random = 1000u + (uint64_t)i;
    CHECK(pthread_create(&running[i], NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < threads; ++i) {
    pthread_join(running[i], NULL);
    rounds += workers[i].rounds;
    readers += workers[i].with_readers;
  }
  printf("%llu rounds of %d threads on %d devices, %llu readers\n", (unsigned long long)rounds, threads,
         places, (unsigned long long)readers);
  for (int i = 0; i < places; ++i)
    look_at(&here.places[i]);
}

int main(void) {
  CHECK_BEGIN();
  if (on_host())
    return 77;
  RUN(values_stay_until_they_are_read);
  return CHECK_END();
}

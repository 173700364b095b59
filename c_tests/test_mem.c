// Raw memory: sizes, matching, what each way of freeing waits for, and frees from unlikely places.
#include "fixtures.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void *alloc(size_t bytes, cvc_stream_t stream) {
  void *ptr = NULL;
  REQUIRE_OK(cvc_mem_alloc(check_default_cache(), CVC_DEVICE_CURRENT, bytes, 0, stream, &ptr));
  CHECK(ptr != NULL);
  return ptr;
}

static void release(void *ptr, cvc_stream_t stream) {
  CHECK_OK(cvc_mem_free(check_default_cache(), ptr, stream));
}

static int is_aligned(const void *ptr, size_t alignment) { return (uintptr_t)ptr % alignment == 0; }

static void sizes_and_alignments(void) {
  cvc_cache_t cache = check_default_cache();
  void *ptr = &ptr;
  // No bytes: null, with nothing to free.
  CHECK_OK(cvc_mem_alloc(cache, 0, 0, 0, CVC_STREAM_NONE, &ptr));
  CHECK(ptr == NULL);
  CHECK_OK(cvc_mem_free(cache, NULL, CVC_STREAM_NONE));
  CHECK_OK(cvc_mem_record_stream(cache, NULL, NULL));
  CHECK_EQ(check_stats(cache, 0).live_handles, 0);
  // Whole granules are charged, and sizes that round to the same are the same.
  ptr = alloc(1, CVC_STREAM_NONE);
  CHECK_EQ(check_stats(cache, 0).bytes, 512);
  CHECK(is_aligned(ptr, 512));
  release(ptr, CVC_STREAM_NONE);
  uint64_t before = check_stats(cache, 0).hits_exact;
  void *again = alloc(512, CVC_STREAM_NONE);
  CHECK(again == ptr);
  CHECK_EQ(check_stats(cache, 0).hits_exact, before + 1);
  void *other = alloc(513, CVC_STREAM_NONE);
  CHECK_EQ(check_stats(cache, 0).bytes, 512 + 1024);
  release(again, CVC_STREAM_NONE);
  release(other, CVC_STREAM_NONE);
  for (size_t alignment = 1; alignment <= 1u << 20; alignment *= 2) {
    CHECK_OK(cvc_mem_alloc(cache, 0, 3000, alignment, CVC_STREAM_NONE, &ptr));
    CHECK(is_aligned(ptr, alignment));
    CHECK_OK(cvc_mem_free(cache, ptr, CVC_STREAM_NONE));
  }
}

static void the_smallest_that_fits(void) {
  cvc_cache_t cache = check_default_cache();
  void *large = alloc(64 * 1024, CVC_STREAM_NONE), *middle = alloc(32 * 1024, CVC_STREAM_NONE);
  release(large, CVC_STREAM_NONE);
  release(middle, CVC_STREAM_NONE);
  uint64_t before = check_stats(cache, 0).hits_fit;
  void *ptr = alloc(20000, CVC_STREAM_NONE);
  CHECK(ptr == middle);
  CHECK_EQ(check_stats(cache, 0).hits_fit, before + 1);
  release(ptr, CVC_STREAM_NONE);
  // Tensors and raw memory do not take each other's.
  cvc_tensor_t tensor = nhwc(1, 64, 64, 8, CVC_DTYPE_U8, CVC_STREAM_NONE);
  CHECK(tensor_data(tensor).data != middle);
  CHECK_OK(cvc_tensor_release(tensor));
}

static void it_is_memory_of_the_device(void) {
  cvc_stream_t stream = new_stream();
  unsigned char in[64], out[64];
  fill_noise(in, sizeof in, 7);
  cvc_tensor_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  data.device = CVC_DEVICE_CURRENT;
  data.rank = 1;
  data.shape[0] = 64;
  data.strides[0] = 1;
  data.dtype = CVC_DTYPE_U8;
  data.layout[0] = 'W';
  data.data = alloc(64, stream);
  cvc_tensor_t tensor = NULL;
  REQUIRE_OK(cvc_tensor_wrap(check_default_cache(), &data, NULL, NULL, CVC_STREAM_NONE, &tensor));
  put(stream, tensor, in);
  take(stream, tensor, out);
  CHECK(memcmp(in, out, sizeof in) == 0);
  CHECK_OK(cvc_tensor_release(tensor));
  release(data.data, stream);
  CHECK_OK(cvc_stream_destroy(stream));
}

static void a_free_waits_for_its_stream(void) {
  cvc_stream_t first = new_stream(), second = new_stream();
  void *ptr = alloc(4096, first);
  uint64_t latch = hold(first);
  release(ptr, first);
  void *other = alloc(4096, second), *unnamed = alloc(4096, CVC_STREAM_NONE), *same = alloc(4096, first);
  CHECK(other != ptr && unnamed != ptr);
  CHECK(same == ptr);
  release(same, first);
  CHECK_OK(cvc_stream_wait_stream(second, first));
  same = alloc(4096, second);
  CHECK(same == ptr);
  release(same, second);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(second, -1));
  release(other, second);
  release(unnamed, CVC_STREAM_NONE);
  CHECK_OK(cvc_stream_destroy(first));
  CHECK_OK(cvc_stream_destroy(second));
}

// The overlap of copies and kernels: what is launched between the record and the free counts.
static void a_recorded_stream_counts_up_to_the_free(void) {
  cvc_cache_t cache = check_default_cache();
  cvc_stream_t main_stream = new_stream(), copies = new_stream();
  void *ptr = alloc(4096, main_stream);
  CHECK_OK(cvc_mem_record_stream(cache, ptr, copies));
  uint64_t latch = hold(copies);
  release(ptr, main_stream);
  void *other = alloc(4096, main_stream);
  CHECK(other != ptr);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(copies, -1));
  void *same = alloc(4096, main_stream);
  CHECK(same == ptr);
  release(same, main_stream);
  release(other, main_stream);
  CHECK_OK(cvc_stream_destroy(main_stream));
  CHECK_OK(cvc_stream_destroy(copies));
}

static void an_event_says_exactly_when(void) {
  cvc_cache_t cache = check_default_cache();
  cvc_stream_t stream = new_stream();
  cvc_event_t event = NULL;
  CHECK_OK(cvc_event_create(CVC_DEVICE_CURRENT, 0, &event));
  void *ptr = alloc(4096, stream);
  CHECK_OK(cvc_mem_record_stream(cache, ptr, stream));
  uint64_t latch = hold(stream);
  CHECK_OK(cvc_event_record(event, stream));
  uint64_t later = hold(stream);
  CHECK_OK(cvc_mem_free_after_event(cache, ptr, event));
  void *other = alloc(4096, CVC_STREAM_NONE);
  CHECK(other != ptr);
  let_go(latch);
  CHECK_OK(cvc_event_synchronize(event, -1));
  CHECK_OK(cvc_event_record(event, stream));
  CHECK_OK(cvc_event_destroy(event));
  void *same = alloc(4096, CVC_STREAM_NONE);
  CHECK(same == ptr);
  CHECK_STATUS(cvc_stream_query(stream), CVC_STATUS_NOT_READY);
  let_go(later);
  release(same, CVC_STREAM_NONE);
  release(other, CVC_STREAM_NONE);
  CHECK_OK(cvc_stream_destroy(stream));
}

// Streams that come and go leave their memory to the next ones.
static void short_lived_streams_share_few_bytes(void) {
  cvc_cache_t cache = check_default_cache();
  enum { bytes = 64 * 1024, rounds = 10000, between_waits = 50 };
  for (int i = 0; i < rounds; ++i) {
    cvc_stream_t stream = new_stream();
    void *ptr = alloc(bytes, stream);
    CHECK_OK(cvc_mem_record_stream(cache, ptr, stream));
    release(ptr, stream);
    CHECK_OK(cvc_stream_destroy(stream));
    // How soon the work of an empty stream is seen complete is the device's affair.
    if (i % between_waits == 0)
      CHECK_OK(cvc_device_synchronize(CVC_DEVICE_CURRENT, -1));
  }
  CHECK(check_stats(cache, 0).driver_bytes <= (uint64_t)bytes * (between_waits + 1));
}

static void *free_elsewhere(void *ptr) {
  if (two_devices())
    CHECK_OK(cvc_device_set_current(1));
  release(ptr, CVC_STREAM_NONE);
  return NULL;
}

static void another_thread_with_another_device_frees(void) {
  void *ptr = alloc(4096, CVC_STREAM_NONE);
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, free_elsewhere, ptr), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  void *same = alloc(4096, CVC_STREAM_NONE);
  CHECK(same == ptr);
  release(same, CVC_STREAM_NONE);
}

static void *alloc_and_end(void *place) {
  *(void **)place = alloc(4096, CVC_STREAM_NONE);
  return NULL;
}

static void memory_outlives_its_thread_and_its_cache(void) {
  void *ptr = NULL;
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, alloc_and_end, &ptr), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_EQ(check_stats(check_default_cache(), 0).live_handles, 1);
  release(ptr, CVC_STREAM_NONE);

  cvc_cache_t cache = NULL;
  CHECK_OK(cvc_cache_create(NULL, &cache));
  CHECK_OK(cvc_mem_alloc(cache, 0, 4096, 0, CVC_STREAM_NONE, &ptr));
  CHECK_OK(cvc_cache_release(cache));
  CHECK_OK(cvc_mem_free(cache, ptr, CVC_STREAM_NONE));
  CHECK_EQ(check_stats(check_default_cache(), 0).driver_bytes, 0);
  CHECK_ERROR(cvc_mem_free(cache, ptr, CVC_STREAM_NONE), CVC_STATUS_STALE_HANDLE, "cache");
}

enum { threads = 4, rounds = 2000, slots = 8 };

struct exchange {
  void *slots[slots];
  cvc_stream_t streams[2];
};

// Takes memory, names two streams for it, and frees what another thread left.
static void *take_and_pass_on(void *context) {
  struct exchange *exchange = context;
  cvc_cache_t cache = check_default_cache();
  cvc_event_t event = NULL;
  CHECK_OK(cvc_event_create(CVC_DEVICE_CURRENT, 0, &event));
  for (int i = 0; i < rounds; ++i) {
    cvc_stream_t stream = exchange->streams[i % 2];
    void *ptr = alloc(512 + (size_t)(i % 5) * 512, stream);
    CHECK_OK(cvc_mem_record_stream(cache, ptr, exchange->streams[0]));
    CHECK_OK(cvc_mem_record_stream(cache, ptr, exchange->streams[1]));
    ptr = __atomic_exchange_n(&exchange->slots[i % slots], ptr, __ATOMIC_ACQ_REL);
    if (i % 3 == 0) {
      CHECK_OK(cvc_event_record(event, stream));
      CHECK_OK(cvc_mem_free_after_event(cache, ptr, event));
    } else {
      release(ptr, stream);
    }
  }
  CHECK_OK(cvc_event_destroy(event));
  return NULL;
}

static void many_threads_free_each_others(void) {
  struct exchange exchange = {{NULL}, {new_stream(), new_stream()}};
  pthread_t workers[threads];
  for (int i = 0; i < threads; ++i)
    CHECK_EQ(pthread_create(&workers[i], NULL, take_and_pass_on, &exchange), 0);
  for (int i = 0; i < threads; ++i)
    CHECK_EQ(pthread_join(workers[i], NULL), 0);
  for (int i = 0; i < slots; ++i)
    release(exchange.slots[i], exchange.streams[0]);
  CHECK_OK(cvc_stream_destroy(exchange.streams[0]));
  CHECK_OK(cvc_stream_destroy(exchange.streams[1]));
}

static void free_in_callback(void *ptr) { release(ptr, CVC_STREAM_NONE); }

// The owner of a wrap's memory gives it back to the cache where it came from.
static void a_release_callback_frees(void) {
  cvc_tensor_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  data.device = CVC_DEVICE_CURRENT;
  data.rank = 1;
  data.shape[0] = 4096;
  data.strides[0] = 1;
  data.dtype = CVC_DTYPE_U8;
  data.data = alloc(4096, CVC_STREAM_NONE);
  cvc_tensor_t tensor = NULL;
  REQUIRE_OK(
      cvc_tensor_wrap(check_default_cache(), &data, free_in_callback, data.data, CVC_STREAM_NONE, &tensor));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_EQ(check_stats(check_default_cache(), 0).live_handles, 0);
}

static void over_the_limit_nothing_is_kept(void) {
  cvc_cache_options_t options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  cvc_cache_t cache = NULL;
  void *ptr = NULL;
  CHECK_OK(cvc_cache_create(&options, &cache));
  CHECK_OK(cvc_mem_alloc(cache, 0, 4096, 0, CVC_STREAM_NONE, &ptr));
  CHECK_EQ(check_stats(cache, 0).unindexed_bytes, 4096);
  CHECK_OK(cvc_mem_free(cache, ptr, CVC_STREAM_NONE));
  CHECK_EQ(check_stats(cache, 0).driver_bytes, 0);
  CHECK_OK(cvc_cache_release(cache));
}

static void a_forked_child(void) {
  cvc_cache_t cache = check_default_cache();
  void *ptr = alloc(4096, CVC_STREAM_NONE);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    void *other = NULL;
    int good = cvc_mem_alloc(cache, 0, 512, 0, CVC_STREAM_NONE, &other) == CVC_STATUS_FORKED &&
               other == NULL && cvc_mem_record_stream(cache, ptr, NULL) == CVC_STATUS_FORKED &&
               cvc_mem_free(cache, ptr, NULL) == CVC_STATUS_OK &&
               cvc_mem_free_after_event(cache, ptr, NULL) == CVC_STATUS_OK;
    _exit(good ? 0 : 1);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  release(ptr, CVC_STREAM_NONE);
}

static void wrong_arguments(void) {
  cvc_cache_t cache = check_default_cache();
  void *ptr = &cache;
  cvc_event_t event = NULL;
  CHECK_OK(cvc_event_create(CVC_DEVICE_CURRENT, 0, &event));
  CHECK_ERROR(cvc_mem_alloc(NULL, 0, 512, 0, CVC_STREAM_NONE, &ptr), CVC_STATUS_INVALID_HANDLE, "cache",
              "null");
  CHECK(ptr == NULL);
  CHECK_ERROR(cvc_mem_alloc(cache, 0, 512, 0, CVC_STREAM_NONE, NULL), CVC_STATUS_NULL_POINTER, "ptr");
  CHECK_ERROR(cvc_mem_alloc(cache, 70, 512, 0, CVC_STREAM_NONE, &ptr), CVC_STATUS_INVALID_DEVICE, "device",
              "70");
  CHECK_ERROR(cvc_mem_alloc(cache, 0, 512, 3, CVC_STREAM_NONE, &ptr), CVC_STATUS_INVALID_ALIGNMENT,
              "alignment", "3", "power of two");
  CHECK_ERROR(cvc_mem_alloc(cache, 0, 0, SIZE_MAX / 2 + 1, CVC_STREAM_NONE, &ptr),
              CVC_STATUS_INVALID_ALIGNMENT, "alignment", "9223372036854775808");
  const size_t huge[] = {SIZE_MAX, SIZE_MAX - 511, SIZE_MAX / 2, SIZE_MAX / 2 + 1};
  for (size_t i = 0; i < sizeof huge / sizeof huge[0]; ++i)
    CHECK_ERROR(cvc_mem_alloc(cache, 0, huge[i], 0, CVC_STREAM_NONE, &ptr), CVC_STATUS_OVERFLOW, "bytes");
  CHECK_STATUS(cvc_mem_alloc(cache, 0, SIZE_MAX / 4, 0, CVC_STREAM_NONE, &ptr), CVC_STATUS_OUT_OF_MEMORY);
  // The largest alignment, where there is room for it.
  if (cvc_mem_alloc(cache, 0, 512, (size_t)1 << 32, CVC_STREAM_NONE, &ptr) == CVC_STATUS_OK)
    CHECK(is_aligned(ptr, (size_t)1 << 32));
  CHECK_OK(cvc_mem_free(cache, ptr, CVC_STREAM_NONE));
  CHECK_ERROR(cvc_mem_alloc(cache, 0, 512, (size_t)1 << 33, CVC_STREAM_NONE, &ptr),
              CVC_STATUS_INVALID_ALIGNMENT, "alignment", "8589934592");

  ptr = alloc(4096, CVC_STREAM_NONE);
  cvc_tensor_t tensor = nhwc(1, 8, 8, 1, CVC_DTYPE_U8, CVC_STREAM_NONE);
  void *const wrong[] = {(char *)ptr + 1, (char *)ptr + 4096, tensor_data(tensor).data, &cache, (void *)1};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    CHECK_ERROR(cvc_mem_free(cache, wrong[i], CVC_STREAM_NONE), CVC_STATUS_INVALID_ARGUMENT, "ptr",
                "cvc_mem_alloc");
    CHECK_STATUS(cvc_mem_record_stream(cache, wrong[i], NULL), CVC_STATUS_INVALID_ARGUMENT);
    CHECK_STATUS(cvc_mem_free_after_event(cache, wrong[i], event), CVC_STATUS_INVALID_ARGUMENT);
  }
  CHECK_ERROR(cvc_mem_free(cache, (char *)ptr + 1, NULL), CVC_STATUS_INVALID_ARGUMENT, "1 bytes inside");
  CHECK_ERROR(cvc_mem_free(NULL, ptr, NULL), CVC_STATUS_INVALID_HANDLE, "cache", "null");
  CHECK_ERROR(cvc_mem_free(NULL, NULL, NULL), CVC_STATUS_INVALID_HANDLE, "cache", "null");
  CHECK_ERROR(cvc_mem_record_stream(cache, ptr, CVC_STREAM_NONE), CVC_STATUS_INVALID_STREAM, "stream");
  CHECK_ERROR(cvc_mem_free_after_event(cache, ptr, NULL), CVC_STATUS_INVALID_EVENT, "event", "null");
  CHECK_ERROR(cvc_mem_free_after_event(cache, ptr, event), CVC_STATUS_INVALID_EVENT, "event", "no record");
  CHECK_ERROR(cvc_mem_free_after_event(cache, ptr, (cvc_event_t)ptr), CVC_STATUS_INVALID_EVENT, "event",
              "cvc_event_create");
  if (two_devices()) {
    cvc_stream_t far = NULL;
    cvc_event_t far_event = NULL;
    CHECK_OK(cvc_stream_create(1, 0, &far));
    CHECK_OK(cvc_event_create(1, 0, &far_event));
    CHECK_OK(cvc_event_record(far_event, far));
    void *nothing = &far;
    CHECK_ERROR(cvc_mem_alloc(cache, 0, 512, 0, far, &nothing), CVC_STATUS_DEVICE_MISMATCH, "stream");
    CHECK(nothing == NULL);
    CHECK_ERROR(cvc_mem_free(cache, ptr, far), CVC_STATUS_DEVICE_MISMATCH, "stream", "device 1", "device 0");
    CHECK_ERROR(cvc_mem_record_stream(cache, ptr, far), CVC_STATUS_DEVICE_MISMATCH, "stream", "device 1");
    CHECK_ERROR(cvc_mem_free_after_event(cache, ptr, far_event), CVC_STATUS_DEVICE_MISMATCH, "event",
                "device 1");
    CHECK_OK(cvc_event_destroy(far_event));
    CHECK_OK(cvc_stream_destroy(far));
  }
  // All of that left it as it was.
  release(ptr, CVC_STREAM_NONE);
  CHECK_ERROR(cvc_mem_free(cache, ptr, CVC_STREAM_NONE), CVC_STATUS_INVALID_ARGUMENT, "ptr", "no memory");
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_event_destroy(event));
}

int main(void) {
  CHECK_BEGIN();
  RUN(a_forked_child); // before there are threads, whose stacks valgrind would miss in the child
  RUN(sizes_and_alignments);
  RUN(the_smallest_that_fits);
  RUN(it_is_memory_of_the_device);
  RUN(a_free_waits_for_its_stream);
  RUN(a_recorded_stream_counts_up_to_the_free);
  RUN(an_event_says_exactly_when);
  RUN(short_lived_streams_share_few_bytes);
  RUN(another_thread_with_another_device_frees);
  RUN(memory_outlives_its_thread_and_its_cache);
  RUN(many_threads_free_each_others);
  RUN(a_release_callback_frees);
  RUN(over_the_limit_nothing_is_kept);
  RUN(wrong_arguments);
  return CHECK_END();
}

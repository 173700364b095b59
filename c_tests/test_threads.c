// Many threads on one cache: objects handed over, released elsewhere, and accounts that add up at the end.
#include "fixtures.h"

#include <pthread.h>

enum { threads = 4, rounds = 200, slots = 16 };

// Tensors on their way from the thread that made them to one that releases them.
struct exchange {
  pthread_mutex_t lock;
  cvc_tensor_t slots[slots];
  uint32_t turn;
};

static cvc_tensor_t swap(struct exchange *exchange, uint32_t place, cvc_tensor_t tensor) {
  pthread_mutex_lock(&exchange->lock);
  cvc_tensor_t old = exchange->slots[place % slots];
  exchange->slots[place % slots] = tensor;
  pthread_mutex_unlock(&exchange->lock);
  return old;
}

static void *make_fill_and_pass_on(void *context) {
  struct exchange *exchange = context;
  const uint32_t self = __atomic_fetch_add(&exchange->turn, 1, __ATOMIC_RELAXED);
  cvc_stream_t stream = new_stream();
  for (uint32_t i = 0; i < rounds; ++i) {
    const int64_t size = 4 + (int64_t)((i * 7 + self) % 13);
    cvc_tensor_t tensor = nhwc(1, size, size, 3, CVC_DTYPE_U8, stream), flipped = NULL;
    CHECK_OK(cvc_fill_zero(stream, tensor));
    CHECK_OK(cvc_op_flip_new(stream, tensor, 1, &flipped));
    CHECK_OK(cvc_tensor_release(tensor));
    cvc_tensor_t old = swap(exchange, i * threads + self, flipped);
    if (old) {
      CHECK_OK(cvc_fill_zero(stream, old)); // made on another stream: ordered by the library
      CHECK_OK(cvc_tensor_release(old));
    }
  }
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK_OK(cvc_stream_destroy(stream));
  return NULL;
}

static void objects_pass_between_threads(void) {
  struct exchange exchange;
  memset(&exchange, 0, sizeof exchange);
  pthread_mutex_init(&exchange.lock, NULL);
  pthread_t workers[threads];
  for (int i = 0; i < threads; ++i)
    CHECK_EQ(pthread_create(&workers[i], NULL, make_fill_and_pass_on, &exchange), 0);
  for (int i = 0; i < threads; ++i)
    CHECK_EQ(pthread_join(workers[i], NULL), 0);
  for (int i = 0; i < slots; ++i)
    if (exchange.slots[i])
      CHECK_OK(cvc_tensor_release(exchange.slots[i]));
  pthread_mutex_destroy(&exchange.lock);
}

// One pattern a thread, one memory that all write and read in turn: nobody sees a mixture.
static void *write_and_read_back(void *context) {
  cvc_tensor_t tensor = context;
  cvc_stream_t stream = new_stream();
  enum { length = 64 * 64 };
  unsigned char *in = pinned_memory(length), *out = pinned_memory(length);
  memset(in, (int)((uintptr_t)stream >> 4 & 0xff), length);
  for (int i = 0; i < rounds; ++i) {
    CHECK_OK(cvc_upload(stream, in, NULL, tensor));
    CHECK_OK(cvc_download(stream, tensor, out, NULL));
    CHECK_OK(cvc_stream_synchronize(stream, -1));
    int same = 1;
    for (int k = 1; k < length; ++k)
      same &= out[k] == out[0];
    CHECK(same);
  }
  CHECK_OK(cvc_stream_destroy(stream));
  pinned_memory_free(in);
  pinned_memory_free(out);
  return NULL;
}

static void one_tensor_on_many_streams(void) {
  cvc_tensor_t tensor = nhwc(1, 64, 64, 1, CVC_DTYPE_U8, CVC_STREAM_NONE);
  pthread_t workers[threads];
  for (int i = 0; i < threads; ++i)
    CHECK_EQ(pthread_create(&workers[i], NULL, write_and_read_back, tensor), 0);
  for (int i = 0; i < threads; ++i)
    CHECK_EQ(pthread_join(workers[i], NULL), 0);
  CHECK_OK(cvc_tensor_release(tensor));
}

static void *make_and_leave(void *context) {
  cvc_tensor_t *tensors = context;
  for (int i = 0; i < slots; ++i)
    tensors[i] = nhwc(1, 16, 32, 1, CVC_DTYPE_U8, CVC_STREAM_NONE);
  return NULL;
}

// Objects outlive the thread that made them; they are no longer counted in the index.
static void objects_outlive_their_thread(void) {
  cvc_cache_t cache = check_default_cache();
  cvc_tensor_t tensors[slots];
  pthread_t worker;
  uint64_t count = 99;
  CHECK_EQ(pthread_create(&worker, NULL, make_and_leave, tensors), 0);
  CHECK_EQ(pthread_join(worker, NULL), 0);
  CHECK_OK(cvc_cache_count(cache, 0, CVC_SCOPE_GLOBAL, &count));
  CHECK_EQ(count, 0);
  CHECK_EQ(check_stats(cache, 0).unindexed_count, slots);
  for (int i = 0; i < slots; ++i)
    CHECK_OK(cvc_tensor_release(tensors[i]));
  CHECK_EQ(check_stats(cache, 0).bytes, 0);
}

static void *leave_pending_work(void *context) {
  cvc_stream_t stream = context;
  cvc_tensor_t tensor = nhwc(1, 16, 32, 4, CVC_DTYPE_F32, stream);
  CHECK_OK(cvc_fill_zero(stream, tensor));
  CHECK_OK(cvc_tensor_release(tensor));
  return NULL;
}

// What an ended thread left pending is taken by another one, on a stream where its work comes first.
static void pending_memory_of_an_ended_thread(void) {
  cvc_cache_t cache = check_default_cache();
  cvc_stream_t stream = new_stream();
  uint64_t latch = hold(stream);
  pthread_t worker;
  CHECK_EQ(pthread_create(&worker, NULL, leave_pending_work, stream), 0);
  CHECK_EQ(pthread_join(worker, NULL), 0);
  CHECK_EQ(check_stats(cache, 0).pending_bytes, 8192);
  const uint64_t misses = check_stats(cache, 0).misses;
  cvc_tensor_t tensor = nhwc(1, 16, 32, 4, CVC_DTYPE_F32, stream);
  CHECK_EQ(check_stats(cache, 0).misses, misses);
  CHECK_EQ(check_stats(cache, 0).pending_bytes, 0);
  let_go(latch);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void *fail_and_read_the_message(void *context) {
  const int32_t device = (int32_t)(intptr_t)context;
  char number[16];
  snprintf(number, sizeof number, "%d", device);
  for (int i = 0; i < rounds; ++i)
    CHECK_ERROR(cvc_device_set_current(device), CVC_STATUS_INVALID_DEVICE, number);
  return NULL;
}

static void error_messages_are_the_threads_own(void) {
  pthread_t workers[threads];
  for (int i = 0; i < threads; ++i)
    CHECK_EQ(
        pthread_create(&workers[i], NULL, fail_and_read_the_message, (void *)(intptr_t)(1000 + 1111 * i)), 0);
  for (int i = 0; i < threads; ++i)
    CHECK_EQ(pthread_join(workers[i], NULL), 0);
}

// References from all threads at once: the last release ends the object, exactly once.
static void *retain_and_release(void *context) {
  cvc_tensor_t tensor = context;
  for (int i = 0; i < rounds; ++i) {
    CHECK_OK(cvc_tensor_retain(tensor));
    CHECK_OK(cvc_tensor_release(tensor));
  }
  return NULL;
}

static void references_from_many_threads(void) {
  cvc_tensor_t tensor = nhwc(1, 4, 4, 1, CVC_DTYPE_U8, CVC_STREAM_NONE);
  pthread_t workers[threads];
  for (int i = 0; i < threads; ++i)
    CHECK_EQ(pthread_create(&workers[i], NULL, retain_and_release, tensor), 0);
  for (int i = 0; i < threads; ++i)
    CHECK_EQ(pthread_join(workers[i], NULL), 0);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_STATUS(cvc_tensor_release(tensor), CVC_STATUS_STALE_HANDLE);
}

// Of three tensors one is dropped done, one with work queued, and one is left to whoever joins the thread.
static void *live_shortly(void *context) {
  cvc_tensor_t *left = context;
  const cvc_stream_t stream = CVC_STREAM_LEGACY;
  cvc_tensor_t done = nhwc(1, 16, 32, 1, CVC_DTYPE_U8, CVC_STREAM_NONE);
  cvc_tensor_t queued = nhwc(1, 8, 64, 1, CVC_DTYPE_U8, stream);
  *left = nhwc(1, 4, 128, 1, CVC_DTYPE_U8, CVC_STREAM_NONE);
  CHECK_OK(cvc_fill_zero(stream, queued));
  CHECK_OK(cvc_tensor_release(done));
  CHECK_OK(cvc_tensor_release(queued));
  return NULL;
}

// Ten thousand threads come and go, a few at a time, and nothing of them stays. `CVC_THREADS`: how many.
static void short_threads_leave_nothing(void) {
  const char *wanted = getenv("CVC_THREADS");
  const int all = wanted ? atoi(wanted) : 10000;
  cvc_cache_t cache = check_default_cache();
  uint64_t most = 0;
  for (int begun = 0; begun < all; begun += threads) {
    pthread_t workers[threads];
    cvc_tensor_t left[threads] = {NULL};
    for (int i = 0; i < threads; ++i)
      CHECK_EQ(pthread_create(&workers[i], NULL, live_shortly, &left[i]), 0);
    for (int i = 0; i < threads; ++i)
      CHECK_EQ(pthread_join(workers[i], NULL), 0);
    // What was indexed has gone with its thread, at once; what is left is live, and nobody's.
    const cvc_cache_stats_t stats = check_stats(cache, 0);
    CHECK_EQ(stats.unindexed_count, threads);
    CHECK_EQ(stats.live_bytes, threads * 512);
    most = stats.driver_bytes > most ? stats.driver_bytes : most;
    for (int i = 0; i < threads; ++i)
      CHECK_OK(cvc_tensor_release(left[i]));
  }
  CHECK_OK(cvc_device_synchronize(0, -1));
  uint64_t count = 99;
  CHECK_OK(cvc_cache_count(cache, 0, CVC_SCOPE_GLOBAL, &count));
  CHECK_EQ(count, 0);
  CHECK_EQ(check_stats(cache, 0).bytes, 0);
  printf("%d threads, at most %llu bytes of the device\n", all, (unsigned long long)most);
}

int main(void) {
  CHECK_BEGIN();
  RUN(objects_pass_between_threads);
  RUN(one_tensor_on_many_streams);
  RUN(objects_outlive_their_thread);
  RUN(pending_memory_of_an_ended_thread);
  RUN(error_messages_are_the_threads_own);
  RUN(references_from_many_threads);
  RUN(short_threads_leave_nothing);
  return CHECK_END();
}

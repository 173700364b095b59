// The cache: what is charged, what is matched, what the limit keeps, clear, trim and thread scopes.
#include "fixtures.h"

#include <pthread.h>

#define MIB (1024 * 1024)

static cvc_cache_t new_cache(int64_t limit) {
  cvc_cache_options_t options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.limit = limit;
  cvc_cache_t cache = NULL;
  REQUIRE_OK(cvc_cache_create(&options, &cache));
  return cache;
}

static void end_cache(cvc_cache_t cache) {
  CHECK_OK(cvc_device_synchronize(0, -1));
  CHECK_OK(cvc_cache_synchronize(cache, 0, -1));
  check_nothing_live(cache);
  CHECK_OK(cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL));
  CHECK_EQ(check_stats(cache, 0).bytes, 0);
  CHECK_OK(cvc_cache_release(cache));
}

static cvc_tensor_t make(cvc_cache_t cache, int64_t h, int64_t w, int64_t c, cvc_dtype_t dtype,
                         cvc_stream_t stream) {
  int64_t shape[3] = {h, w, c};
  cvc_tensor_desc_t desc = tensor_desc(dtype, "HWC", 3, shape);
  cvc_tensor_t tensor = NULL;
  REQUIRE_OK(cvc_tensor_create(cache, &desc, stream, &tensor));
  return tensor;
}

static void *address(cvc_tensor_t tensor) { return tensor_data(tensor).data; }

static uint64_t bytes_of(cvc_cache_t cache) {
  uint64_t bytes = 0;
  REQUIRE_OK(cvc_cache_bytes(cache, 0, &bytes));
  return bytes;
}

static uint64_t count_of(cvc_cache_t cache, cvc_scope_t scope) {
  uint64_t count = 0;
  REQUIRE_OK(cvc_cache_count(cache, 0, scope, &count));
  return count;
}

static void the_default_cache_is_immortal(void) {
  cvc_cache_t cache = check_default_cache(), again = NULL;
  CHECK_OK(cvc_cache_retain(cache));
  for (int i = 0; i < 3; ++i)
    CHECK_OK(cvc_cache_release(cache));
  CHECK_OK(cvc_cache_default(&again));
  CHECK(again == cache);
  CHECK_EQ(count_of(cache, CVC_SCOPE_GLOBAL), 0);
}

static void the_default_limit_is_half_of_the_device(void) {
  cvc_device_info_t info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  CHECK_OK(cvc_device_get_info(0, &info));
  cvc_cache_t cache = NULL;
  uint64_t limit = 0;
  CHECK_OK(cvc_cache_create(NULL, &cache));
  CHECK_OK(cvc_cache_get_limit(cache, 0, &limit));
  CHECK_EQ(limit, info.total_memory / 2);
  CHECK_OK(cvc_cache_release(cache));
  cache = new_cache(12345);
  CHECK_OK(cvc_cache_get_limit(cache, 0, &limit));
  CHECK_EQ(limit, 12345);
  CHECK_OK(cvc_cache_set_limit(cache, 0, 777));
  CHECK_OK(cvc_cache_get_limit(cache, 0, &limit));
  CHECK_EQ(limit, 777);
  if (two_devices()) {
    CHECK_OK(cvc_cache_get_limit(cache, 1, &limit));
    CHECK_EQ(limit, 12345);
  }
  end_cache(cache);
}

static void references_keep_a_cache(void) {
  cvc_cache_t cache = new_cache(-1);
  CHECK_OK(cvc_cache_retain(cache));
  CHECK_OK(cvc_cache_release(cache));
  CHECK_EQ(bytes_of(cache), 0);
  // A tensor outlives the last handle of its cache.
  cvc_tensor_t tensor = make(cache, 4, 4, 4, CVC_DTYPE_U8, CVC_STREAM_NONE);
  CHECK_OK(cvc_cache_release(cache));
  uint64_t bytes = 0;
  CHECK_STATUS(cvc_cache_bytes(cache, 0, &bytes), CVC_STATUS_STALE_HANDLE);
  CHECK(address(tensor) != NULL);
  CHECK_OK(cvc_tensor_release(tensor));
}

static void charged_from_creation_and_reused_when_it_fits(void) {
  cvc_cache_t cache = new_cache(-1);
  cvc_tensor_t tensor = make(cache, 16, 32, 4, CVC_DTYPE_F32, CVC_STREAM_NONE);
  void *memory = address(tensor);
  CHECK_EQ(bytes_of(cache), 8192);
  CHECK_EQ(count_of(cache, CVC_SCOPE_GLOBAL), 1);
  cvc_cache_stats_t stats = check_stats(cache, 0);
  CHECK_EQ(stats.live_count, 1);
  CHECK_EQ(stats.live_bytes, 8192);
  CHECK_EQ(stats.live_handles, 1);
  CHECK_EQ(stats.misses, 1);
  CHECK_OK(cvc_tensor_release(tensor));
  stats = check_stats(cache, 0);
  CHECK_EQ(stats.idle_count, 1);
  CHECK_EQ(stats.idle_bytes, 8192);
  CHECK_EQ(stats.live_count, 0);
  CHECK_EQ(stats.bytes, 8192);

  tensor = make(cache, 4, 64, 4, CVC_DTYPE_F32, CVC_STREAM_NONE); // 4096 bytes: fits
  CHECK(address(tensor) == memory);
  CHECK_EQ(bytes_of(cache), 8192);
  CHECK_EQ(tensor_data(tensor).shape[1], 64);
  CHECK_OK(cvc_tensor_release(tensor));
  tensor = make(cache, 4, 64, 4, CVC_DTYPE_F32, CVC_STREAM_NONE); // the same again: exact
  CHECK(address(tensor) == memory);
  CHECK_OK(cvc_tensor_release(tensor));
  stats = check_stats(cache, 0);
  CHECK_EQ(stats.misses, 1);
  CHECK_EQ(stats.hits_fit, 1);
  CHECK_EQ(stats.hits_exact, 1);
  CHECK_EQ(stats.hits_pending, 0);
  end_cache(cache);
}

static void the_smallest_that_fits(void) {
  cvc_cache_t cache = new_cache(-1);
  cvc_tensor_t four = make(cache, 4, MIB, 1, CVC_DTYPE_U8, CVC_STREAM_NONE);
  cvc_tensor_t two = make(cache, 2, MIB, 1, CVC_DTYPE_U8, CVC_STREAM_NONE);
  void *memory = address(two);
  CHECK_OK(cvc_tensor_release(four));
  CHECK_OK(cvc_tensor_release(two));
  cvc_tensor_t one = make(cache, 1, MIB, 1, CVC_DTYPE_U8, CVC_STREAM_NONE);
  CHECK(address(one) == memory);
  CHECK_EQ(bytes_of(cache), 6 * MIB);
  CHECK_OK(cvc_tensor_release(one));
  end_cache(cache);
}

static void another_dtype_or_layout_is_no_match(void) {
  cvc_cache_t cache = new_cache(-1);
  cvc_tensor_t tensor = make(cache, 16, 16, 4, CVC_DTYPE_F32, CVC_STREAM_NONE);
  CHECK_OK(cvc_tensor_release(tensor));
  int64_t shape[3] = {4, 4, 4};
  cvc_tensor_desc_t descs[2];
  descs[0] = tensor_desc(CVC_DTYPE_S32, "HWC", 3, shape);
  descs[1] = tensor_desc(CVC_DTYPE_F32, "CHW", 3, shape);
  for (int i = 0; i < 2; ++i) {
    CHECK_OK(cvc_tensor_create(cache, &descs[i], CVC_STREAM_NONE, &tensor));
    CHECK_OK(cvc_tensor_release(tensor));
  }
  CHECK_EQ(check_stats(cache, 0).misses, 3);
  CHECK_EQ(check_stats(cache, 0).count, 3);
  end_cache(cache);
}

static void devices_are_apart(void) {
  if (!two_devices())
    return;
  cvc_cache_t cache = new_cache(-1);
  cvc_tensor_t tensor = make(cache, 16, 16, 4, CVC_DTYPE_F32, CVC_STREAM_NONE);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_device_set_current(1));
  tensor = make(cache, 4, 4, 4, CVC_DTYPE_F32, CVC_STREAM_NONE);
  CHECK_OK(cvc_device_set_current(0));
  CHECK_EQ(tensor_data(tensor).device, 1);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_EQ(check_stats(cache, 0).count, 1);
  CHECK_EQ(check_stats(cache, 1).count, 1);
  CHECK_EQ(check_stats(cache, 1).misses, 1);
  CHECK_OK(cvc_cache_clear(cache, 1, CVC_SCOPE_GLOBAL));
  CHECK_EQ(check_stats(cache, 0).count, 1);
  CHECK_EQ(check_stats(cache, 1).count, 0);
  end_cache(cache);
}

static void limit_zero_keeps_nothing(void) {
  cvc_cache_t cache = new_cache(0);
  cvc_tensor_t tensor = make(cache, 16, 16, 4, CVC_DTYPE_F32, CVC_STREAM_NONE);
  uint64_t bytes = 0;
  CHECK_OK(cvc_tensor_nbytes(tensor, &bytes));
  CHECK(bytes > 0);
  cvc_cache_stats_t stats = check_stats(cache, 0);
  CHECK_EQ(stats.bytes, 0);
  CHECK_EQ(stats.unindexed_count, 1);
  CHECK_EQ(stats.unindexed_bytes, bytes);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_EQ(bytes_of(cache), 0);
  end_cache(cache);
}

static void the_limit_bounds_what_is_retained(void) {
  cvc_cache_t cache = new_cache(20 * MIB);
  cvc_tensor_t tensors[8];
  for (int i = 0; i < 8; ++i)
    tensors[i] = make(cache, 4, MIB, 1, CVC_DTYPE_U8, CVC_STREAM_NONE);
  CHECK_EQ(bytes_of(cache), 20 * MIB);
  for (int i = 0; i < 8; ++i)
    CHECK_OK(cvc_tensor_release(tensors[i]));
  CHECK_EQ(bytes_of(cache), 20 * MIB);

  cvc_tensor_t large = make(cache, 32, MIB, 1, CVC_DTYPE_U8, CVC_STREAM_NONE); // over the limit by itself
  CHECK_EQ(check_stats(cache, 0).unindexed_bytes, 32 * MIB);
  CHECK_OK(cvc_tensor_release(large));
  CHECK(bytes_of(cache) <= 20 * MIB);

  CHECK_OK(cvc_cache_set_limit(cache, 0, 1024));
  CHECK_EQ(bytes_of(cache), 0);
  CHECK(check_stats(cache, 0).evictions > 0);
  end_cache(cache);
}

static void pending_memory_on_an_ordered_stream(void) {
  cvc_cache_t cache = new_cache(-1);
  cvc_stream_t busy = new_stream(), other = new_stream();
  cvc_tensor_t tensor = make(cache, 16, 32, 4, CVC_DTYPE_F32, busy);
  void *memory = address(tensor);
  uint64_t latch = hold(busy);
  CHECK_OK(cvc_fill_zero(busy, tensor));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_EQ(check_stats(cache, 0).pending_count, 1);
  CHECK_EQ(check_stats(cache, 0).pending_bytes, 8192);

  // Neither a caller without a stream nor an unordered stream gets it.
  cvc_tensor_t none = make(cache, 16, 32, 4, CVC_DTYPE_F32, CVC_STREAM_NONE);
  cvc_tensor_t elsewhere = make(cache, 16, 32, 4, CVC_DTYPE_F32, other);
  CHECK(address(none) != memory && address(elsewhere) != memory);
  CHECK_EQ(check_stats(cache, 0).misses, 3);
  // Its own stream does, also in another shape that fits.
  tensor = make(cache, 4, 64, 4, CVC_DTYPE_F32, busy);
  CHECK(address(tensor) == memory);
  CHECK_EQ(check_stats(cache, 0).hits_pending, 1);
  CHECK_OK(cvc_fill_zero(busy, tensor));
  CHECK_OK(cvc_tensor_release(tensor));
  // And a stream that has waited.
  CHECK_OK(cvc_stream_wait_stream(other, busy));
  tensor = make(cache, 16, 32, 4, CVC_DTYPE_F32, other);
  CHECK(address(tensor) == memory);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_tensor_release(none));
  CHECK_OK(cvc_tensor_release(elsewhere));

  CHECK_STATUS(cvc_cache_synchronize(cache, 0, 0), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_cache_synchronize(cache, 0, -1));
  CHECK_EQ(check_stats(cache, 0).pending_count, 0);
  CHECK_EQ(check_stats(cache, 0).idle_count, 3);
  CHECK_OK(cvc_stream_destroy(busy));
  CHECK_OK(cvc_stream_destroy(other));
  end_cache(cache);
}

static void *open_latch(void *latch) {
  let_go(*(uint64_t *)latch);
  return NULL;
}

// Memory whose work is pending may pass the limit. Live again it may not: what does not fit is no longer
// indexed.
static void pending_memory_that_is_live_again_respects_the_limit(void) {
  cvc_cache_t cache = new_cache(-1);
  cvc_stream_t stream = NULL;
  REQUIRE_OK(cvc_stream_create(0, 0, &stream));
  CHECK_OK(cvc_cache_set_limit(cache, 0, 1 << 20));
  uint64_t latch = hold(stream);
  cvc_tensor_t tensors[8];
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 8; ++i) {
      tensors[i] = make(cache, 1024, 1024, 1, CVC_DTYPE_U8, stream);
      if (round == 0)
        CHECK_OK(cvc_fill_zero(stream, tensors[i]));
    }
    CHECK_EQ(bytes_of(cache), 1 << 20);
    CHECK_EQ(check_stats(cache, 0).unindexed_bytes, 7 << 20);
    for (int i = 0; i < 8; ++i)
      CHECK_OK(cvc_tensor_release(tensors[i]));
    CHECK_EQ(bytes_of(cache), 8 << 20);
  }
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK(bytes_of(cache) <= 1 << 20);
  CHECK_OK(cvc_stream_destroy(stream));
  end_cache(cache);
}

struct left_over {
  cvc_cache_t cache;
  cvc_stream_t stream;
};

static void *leave_pending(void *argument) {
  const struct left_over *left = argument;
  cvc_tensor_t tensors[8];
  for (int i = 0; i < 8; ++i) {
    tensors[i] = make(left->cache, 1024, 1024, 1, CVC_DTYPE_U8, left->stream);
    CHECK_OK(cvc_fill_zero(left->stream, tensors[i]));
  }
  for (int i = 0; i < 8; ++i)
    CHECK_OK(cvc_tensor_release(tensors[i]));
  return NULL;
}

// The same of what a thread has left behind when it ended.
static void memory_of_an_ended_thread_respects_the_limit(void) {
  cvc_cache_t cache = new_cache(-1);
  cvc_stream_t stream = NULL;
  REQUIRE_OK(cvc_stream_create(0, 0, &stream));
  CHECK_OK(cvc_cache_set_limit(cache, 0, 1 << 20));
  uint64_t latch = hold(stream);
  struct left_over left = {cache, stream};
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, leave_pending, &left), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_EQ(bytes_of(cache), 8 << 20);
  cvc_tensor_t tensors[8];
  for (int i = 0; i < 8; ++i)
    tensors[i] = make(cache, 1024, 1024, 1, CVC_DTYPE_U8, stream);
  CHECK_EQ(check_stats(cache, 0).hits_pending, 8);
  CHECK_EQ(bytes_of(cache), 1 << 20);
  CHECK_EQ(check_stats(cache, 0).unindexed_bytes, 7 << 20);
  for (int i = 0; i < 8; ++i)
    CHECK_OK(cvc_tensor_release(tensors[i]));
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK_OK(cvc_cache_synchronize(cache, 0, -1));
  CHECK_EQ(bytes_of(cache), check_stats(cache, 0).idle_bytes);
  CHECK(bytes_of(cache) <= 1 << 20);
  CHECK_OK(cvc_cache_set_limit(cache, 0, 0));
  CHECK_EQ(bytes_of(cache), 0);
  CHECK_EQ(check_stats(cache, 0).idle_bytes, 0);
  CHECK_OK(cvc_stream_destroy(stream));
  end_cache(cache);
}

// A lowered limit is reached however much pending memory lies before what is idle.
static void a_lowered_limit_passes_by_pending_memory(void) {
  cvc_cache_t cache = new_cache(-1);
  cvc_stream_t held = NULL, stream = NULL;
  REQUIRE_OK(cvc_stream_create(0, 0, &held));
  REQUIRE_OK(cvc_stream_create(0, 0, &stream));
  uint64_t latch = hold(held);
  enum { count = 300 };
  static cvc_tensor_t tensors[count + 1];
  for (int i = 0; i <= count; ++i) {
    cvc_stream_t own = i < count ? held : stream;
    tensors[i] = make(cache, 8, 8, 1 + i, CVC_DTYPE_U8, own);
    CHECK_OK(cvc_fill_zero(own, tensors[i]));
  }
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  for (int i = 0; i <= count; ++i)
    CHECK_OK(cvc_tensor_release(tensors[i]));
  CHECK_EQ(check_stats(cache, 0).idle_count, 1);
  CHECK_OK(cvc_cache_set_limit(cache, 0, 0));
  CHECK_EQ(check_stats(cache, 0).idle_count, 0);
  CHECK_EQ(check_stats(cache, 0).pending_count, count);
  let_go(latch);
  CHECK_OK(cvc_stream_destroy(held));
  CHECK_OK(cvc_stream_destroy(stream));
  end_cache(cache);
}

static void clear_returns_after_pending_work(void) {
  cvc_cache_t cache = new_cache(-1);
  cvc_stream_t stream = new_stream();
  cvc_tensor_t tensor = make(cache, 16, 32, 4, CVC_DTYPE_F32, stream);
  uint64_t latch = hold(stream);
  CHECK_OK(cvc_fill_zero(stream, tensor));
  CHECK_OK(cvc_tensor_release(tensor));
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, open_latch, &latch), 0);
  CHECK_OK(cvc_cache_clear(cache, CVC_DEVICE_CURRENT, CVC_SCOPE_GLOBAL));
  CHECK_OK(cvc_stream_query(stream));
  CHECK_EQ(check_stats(cache, 0).pending_count, 0);
  CHECK_EQ(bytes_of(cache), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_OK(cvc_stream_destroy(stream));
  end_cache(cache);
}

static void clear_leaves_live_objects_alone(void) {
  cvc_cache_t cache = new_cache(-1);
  unsigned char in[48], out[48];
  fill_noise(in, sizeof in, 5);
  cvc_stream_t stream = new_stream();
  cvc_tensor_t tensor = make(cache, 4, 4, 3, CVC_DTYPE_U8, stream);
  put(stream, tensor, in);
  CHECK_OK(cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL));
  CHECK_EQ(count_of(cache, CVC_SCOPE_GLOBAL), 0);
  CHECK_EQ(check_stats(cache, 0).unindexed_count, 1);
  take(stream, tensor, out);
  CHECK(memcmp(in, out, sizeof in) == 0);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_EQ(bytes_of(cache), 0); // it had left the index
  CHECK_OK(cvc_stream_destroy(stream));
  end_cache(cache);
}

static void peak_and_driver_bytes(void) {
  cvc_cache_t cache = new_cache(-1);
  cvc_tensor_t tensor = make(cache, 8, MIB, 1, CVC_DTYPE_U8, CVC_STREAM_NONE);
  cvc_cache_stats_t stats = check_stats(cache, 0);
  CHECK_EQ(stats.peak_bytes, 8 * MIB);
  CHECK(stats.driver_bytes >= 8 * MIB);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL));
  CHECK_EQ(check_stats(cache, 0).peak_bytes, 8 * MIB);
  CHECK_OK(cvc_cache_reset_peak(cache, 0));
  CHECK_EQ(check_stats(cache, 0).peak_bytes, 0);
  CHECK_OK(cvc_cache_clear(check_default_cache(), 0, CVC_SCOPE_GLOBAL));
  CHECK_OK(cvc_cache_trim(cache, 0, 0));
  stats = check_stats(cache, 0);
  CHECK_EQ(stats.driver_bytes, 0);
  CHECK_EQ(stats.free_bytes, 0);
  end_cache(cache);
}

static void trim_keeps_what_it_is_told(void) {
  cvc_cache_t cache = new_cache(-1);
  cvc_tensor_t tensor = make(cache, 64, MIB, 1, CVC_DTYPE_U8, CVC_STREAM_NONE);
  CHECK_OK(cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL)); // not indexed any more: its bytes go to the pool
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_EQ(bytes_of(cache), 0);
  uint64_t before = check_stats(cache, 0).driver_bytes;
  CHECK_EQ(check_stats(cache, 0).free_bytes, before); // all that the pool has kept, if anything, is free
  CHECK_OK(cvc_cache_trim(cache, 0, before));
  CHECK_EQ(check_stats(cache, 0).driver_bytes, before);
  CHECK_OK(cvc_cache_trim(cache, 0, 0));
  CHECK_EQ(check_stats(cache, 0).driver_bytes, 0);
  end_cache(cache);
}

struct worker {
  cvc_cache_t cache;
  uint64_t local, global;
};

static void *make_one_and_count(void *context) {
  struct worker *worker = context;
  cvc_tensor_t tensor = make(worker->cache, 16, 32, 4, CVC_DTYPE_F32, CVC_STREAM_NONE);
  worker->global = count_of(worker->cache, CVC_SCOPE_GLOBAL);
  worker->local = count_of(worker->cache, CVC_SCOPE_LOCAL);
  CHECK_OK(cvc_tensor_release(tensor));
  return NULL;
}

static void scopes_of_two_threads(void) {
  struct worker worker = {new_cache(-1), 0, 0};
  cvc_tensor_t tensor = make(worker.cache, 16, 32, 4, CVC_DTYPE_F32, CVC_STREAM_NONE);
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, make_one_and_count, &worker), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_EQ(worker.global, 2);
  CHECK_EQ(worker.local, 1);
  // What the ended thread left idle is gone, without anybody waiting.
  CHECK_EQ(count_of(worker.cache, CVC_SCOPE_GLOBAL), 1);
  CHECK_EQ(count_of(worker.cache, CVC_SCOPE_LOCAL), 1);
  CHECK_EQ(bytes_of(worker.cache), 8192);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_cache_clear(worker.cache, 0, CVC_SCOPE_LOCAL));
  CHECK_EQ(bytes_of(worker.cache), 0);
  end_cache(worker.cache);
}

static void detach_is_a_threads_end(void) {
  cvc_cache_t cache = new_cache(-1);
  cvc_tensor_t idle = make(cache, 16, 32, 4, CVC_DTYPE_F32, CVC_STREAM_NONE);
  cvc_tensor_t live = make(cache, 16, 32, 4, CVC_DTYPE_F32, CVC_STREAM_NONE);
  CHECK_OK(cvc_tensor_release(idle));
  CHECK_OK(cvc_cache_thread_detach(cache));
  CHECK_EQ(count_of(cache, CVC_SCOPE_GLOBAL), 0);
  CHECK_EQ(check_stats(cache, 0).unindexed_count, 1);
  CHECK_OK(cvc_tensor_release(live));
  live = make(cache, 16, 32, 4, CVC_DTYPE_F32, CVC_STREAM_NONE); // the thread may go on
  CHECK_EQ(count_of(cache, CVC_SCOPE_LOCAL), 1);
  CHECK_OK(cvc_tensor_release(live));
  end_cache(cache);
}

struct logged {
  int count;
  cvc_log_level_t level;
  char text[512];
};

static void keep_log(cvc_log_level_t level, const char *message, void *context) {
  struct logged *logged = context;
  logged->count++;
  logged->level = level;
  snprintf(logged->text, sizeof logged->text, "%s", message);
}

static void a_limit_over_the_device_warns(void) {
  cvc_cache_t cache = new_cache(-1);
  struct logged logged;
  memset(&logged, 0, sizeof logged);
  CHECK_OK(cvc_set_log_callback(keep_log, &logged));
  CHECK_OK(cvc_cache_set_limit(cache, 0, (int64_t)1 << 50));
  CHECK_OK(cvc_set_log_callback(NULL, NULL));
  CHECK_EQ(logged.count, 1);
  CHECK_EQ(logged.level, CVC_LOG_WARNING);
  CHECK(strstr(logged.text, "1125899906842624") != NULL);
  CHECK(strstr(logged.text, "device 0") != NULL);
  uint64_t limit = 0;
  CHECK_OK(cvc_cache_get_limit(cache, 0, &limit));
  CHECK_EQ(limit, (int64_t)1 << 50);
  end_cache(cache);
}

int main(void) {
  CHECK_BEGIN();
  RUN(the_default_cache_is_immortal);
  RUN(the_default_limit_is_half_of_the_device);
  RUN(references_keep_a_cache);
  RUN(charged_from_creation_and_reused_when_it_fits);
  RUN(the_smallest_that_fits);
  RUN(another_dtype_or_layout_is_no_match);
  RUN(devices_are_apart);
  RUN(limit_zero_keeps_nothing);
  RUN(the_limit_bounds_what_is_retained);
  RUN(pending_memory_on_an_ordered_stream);
  RUN(pending_memory_that_is_live_again_respects_the_limit);
  RUN(memory_of_an_ended_thread_respects_the_limit);
  RUN(a_lowered_limit_passes_by_pending_memory);
  RUN(clear_returns_after_pending_work);
  RUN(clear_leaves_live_objects_alone);
  RUN(peak_and_driver_bytes);
  RUN(trim_keeps_what_it_is_told);
  RUN(scopes_of_two_threads);
  RUN(detach_is_a_threads_end);
  RUN(a_limit_over_the_device_warns);
  return CHECK_END();
}

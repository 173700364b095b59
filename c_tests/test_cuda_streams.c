// Captures and streams of other users of the driver. CUDA only.
#include "cuda_fixtures.h"

#include <pthread.h>

#define BYTES 192 // of a tensor of 8 by 8 by 3

static struct driver *cuda;

static cvc_tensor_t small(cvc_stream_t stream) { return nhwc(1, 8, 8, 3, CVC_DTYPE_U8, stream); }

// The tensor holds this byte everywhere.
static int holds(cvc_stream_t stream, cvc_tensor_t tensor, unsigned char byte) {
  unsigned char out[BYTES];
  take(stream, tensor, out);
  for (size_t i = 0; i < BYTES; ++i)
    if (out[i] != byte)
      return 0;
  return 1;
}

// ---- Captures

// A capture into which the test itself puts one node, which fills the tensor.
struct capture {
  cvc_stream_t stream;
  cvc_tensor_t tensor;
};

static struct capture begin_capture(cvc_stream_t stream, enum capture_mode mode, cvc_stream_t other) {
  struct capture capture = {stream, small(other)};
  CHECK_OK(cvc_fill_zero(other, capture.tensor));
  CHECK_OK(cvc_stream_synchronize(other, -1));
  DRIVER(cuda->capture_begin(stream, mode));
  return capture;
}

static int is_unbroken(cvc_stream_t stream) {
  int state = 0;
  return cuda->capture_state(stream, &state) == 0 && state == 1;
}

// Ends the capture, and runs it.
static void end_capture(struct capture capture, cvc_stream_t other) {
  void *graph = NULL, *ready = NULL;
  const cvc_tensor_data_t filled = tensor_data(capture.tensor);
  const uint64_t address = (uint64_t)(uintptr_t)filled.data;
  CHECK(is_unbroken(capture.stream));
  CHECK_EQ(cuda->memset_async(address, 5, (size_t)filled.strides[0], capture.stream), 0);
  CHECK_EQ(cuda->capture_end(capture.stream, &graph), 0);
  if (CHECK(graph != NULL)) {
    DRIVER(cuda->graph_instantiate(&ready, graph, 0));
    CHECK_OK(cvc_tensor_begin_access(capture.tensor, capture.stream, CVC_ACCESS_WRITE));
    DRIVER(cuda->graph_launch(ready, capture.stream));
    CHECK_OK(cvc_tensor_end_access(capture.tensor, capture.stream, CVC_ACCESS_WRITE));
    CHECK(holds(other, capture.tensor, 5));
    DRIVER(cuda->graph_exec_destroy(ready));
    DRIVER(cuda->graph_destroy(graph));
  }
  CHECK_OK(cvc_tensor_release(capture.tensor));
}

// While another stream captures: whatever the library does leaves that alone.
static void work_beside(cvc_stream_t captured, cvc_stream_t stream, int64_t turn) {
  const int64_t sizes[] = {16, 256, 2048}; // the largest is a mapping of its own
  uint64_t number = 0;
  for (int64_t i = 0; i < 3; ++i) {
    cvc_tensor_t first = nhwc(1, sizes[i], sizes[i] + turn, 3, CVC_DTYPE_U8, stream), second = NULL;
    CHECK(is_unbroken(captured));
    CHECK_OK(cvc_fill_zero(stream, first));
    CHECK_OK(cvc_op_flip_new(stream, first, 0, &second));
    CHECK_OK(cvc_tensor_release(first));
    first = nhwc(1, sizes[i], sizes[i] + turn, 3, CVC_DTYPE_U8, stream); // a hit
    CHECK_OK(cvc_tensor_release(first));
    CHECK_OK(cvc_tensor_release(second));
    CHECK(is_unbroken(captured));
  }
  cvc_stream_t made = new_stream();
  cvc_event_t event = NULL;
  cvc_tensor_t tensor = small(stream), resized = NULL;
  CHECK_OK(cvc_event_create(0, 0, &event));
  CHECK_OK(cvc_fill_zero(stream, tensor));
  CHECK_OK(cvc_op_pillow_resize_new(stream, tensor, 4 + turn, 5, CVC_FILTER_LANCZOS, 0, &resized));
  CHECK_OK(cvc_op_flip(made, tensor, tensor, 0)); // waits for the other stream
  void *raw = NULL;
  CHECK_OK(cvc_mem_alloc(check_default_cache(), 0, 4096, 0, stream, &raw));
  CHECK_OK(cvc_mem_record_stream(check_default_cache(), raw, made));
  CHECK_OK(cvc_event_record(event, made));
  CHECK_OK(cvc_mem_free_after_event(check_default_cache(), raw, event));
  CHECK_OK(cvc_mem_alloc(check_default_cache(), 0, 4096, 0, made, &raw));
  CHECK_OK(cvc_mem_free(check_default_cache(), raw, stream));
  CHECK_OK(cvc_event_synchronize(event, -1));
  CHECK_OK(cvc_event_query(event));
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK_OK(cvc_stream_query(made));
  CHECK(is_unbroken(captured));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_tensor_release(resized));
  CHECK_OK(cvc_event_destroy(event));
  CHECK_OK(cvc_stream_destroy(made));
  CHECK_OK(cvc_cache_bytes(check_default_cache(), 0, &number));
  CHECK_OK(cvc_cache_trim(check_default_cache(), 0, 0));
  CHECK(is_unbroken(captured));
}

static void captures_of_others_survive(void) {
  const enum capture_mode modes[] = {CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED};
  cvc_stream_t stream = new_stream(), foreign = foreign_stream(cuda, CUDA_NON_BLOCKING);
  cvc_stream_t captured = foreign_stream(cuda, CUDA_NON_BLOCKING);
  for (int mode = 0; mode < 3; ++mode) {
    struct capture capture = begin_capture(captured, modes[mode], stream);
    work_beside(captured, stream, mode);
    work_beside(captured, foreign, 3 + mode);
    end_capture(capture, stream);
  }
  DRIVER(cuda->stream_destroy(captured));
  DRIVER(cuda->stream_destroy(foreign));
  CHECK_OK(cvc_stream_destroy(stream));
}

// On the stream that captures itself, work is refused and the capture goes on.
static void work_on_a_capturing_stream_is_refused(void) {
  cvc_stream_t stream = new_stream(), created = new_stream(),
               foreign = foreign_stream(cuda, CUDA_NON_BLOCKING);
  cvc_stream_t registered = foreign_stream(cuda, CUDA_NON_BLOCKING);
  REQUIRE_OK(cvc_stream_register(0, registered, CVC_STREAM_ANNOUNCES_CAPTURES));
  const cvc_stream_t streams[] = {created, registered, foreign};
  unsigned char *pinned = pinned_memory(BYTES);
  cvc_event_t outside = NULL;
  REQUIRE_OK(cvc_event_create(0, 0, &outside));
  for (int i = 0; i < 3; ++i) {
    cvc_stream_t busy = streams[i];
    cvc_tensor_t src = small(stream), dst = small(stream), result = NULL;
    CHECK_OK(cvc_fill_zero(stream, src));
    // Known there before the capture, and seen complete: a capturing stream can no longer be asked or waited
    // for.
    CHECK_OK(cvc_fill_zero(busy, dst));
    CHECK_OK(cvc_stream_synchronize(busy, -1));
    CHECK_OK(cvc_event_record(outside, stream));
    void *raw = NULL, *other = NULL;
    CHECK_OK(cvc_mem_alloc(check_default_cache(), 0, 4096, 0, stream, &raw));
    CHECK_OK(cvc_mem_alloc(check_default_cache(), 0, 4096, 0, stream, &other));
    CHECK_OK(cvc_mem_record_stream(check_default_cache(), raw, busy));
    struct capture capture = begin_capture(busy, (enum capture_mode)i, stream);
#define REFUSED(call)                                                                                        \
  do {                                                                                                       \
    CHECK_ERROR(call, CVC_STATUS_CAPTURING, "captur");                                                       \
    CHECK(is_unbroken(busy));                                                                                \
  } while (0)
    REFUSED(cvc_op_flip(busy, src, dst, 0));
    REFUSED(cvc_op_flip(busy, dst, dst, 0));
    REFUSED(cvc_op_flip_new(busy, src, 0, &result));
    REFUSED(cvc_op_convert_to(busy, src, dst, 1, 0, CVC_ROUND_NEAREST));
    REFUSED(cvc_op_pillow_resize_new(busy, src, 7, 3, CVC_FILTER_CUBIC, 0, &result));
    REFUSED(cvc_copy(busy, src, dst));
    REFUSED(cvc_upload(busy, pinned, NULL, dst));
    REFUSED(cvc_download(busy, src, pinned, NULL));
    REFUSED(cvc_fill_zero(busy, dst));
    REFUSED(cvc_tensor_begin_access(dst, busy, CVC_ACCESS_READ));
    REFUSED(cvc_tensor_end_access(dst, busy, CVC_ACCESS_READ));
    REFUSED(cvc_stream_query(busy));
    REFUSED(cvc_stream_synchronize(busy, -1));
    REFUSED(cvc_stream_synchronize(busy, 0));
    // A wait for what lies outside the capture.
    REFUSED(cvc_stream_wait_stream(busy, stream));
    REFUSED(cvc_stream_wait_event(busy, outside));
    REFUSED(cvc_mem_free(check_default_cache(), raw, stream));
    REFUSED(cvc_mem_free_after_event(check_default_cache(), raw, outside));
    REFUSED(cvc_mem_free(check_default_cache(), other, busy));
    REFUSED(cvc_mem_record_stream(check_default_cache(), other, busy));
#undef REFUSED
    CHECK(result == NULL);
    // Work elsewhere on the same tensors goes on.
    CHECK_OK(cvc_op_flip(stream, src, dst, 0));
    CHECK(is_unbroken(busy));
    CHECK(holds(stream, dst, 0));
    CHECK_OK(cvc_tensor_release(src));
    CHECK_OK(cvc_tensor_release(dst));
    CHECK(is_unbroken(busy));
    CHECK_OK(cvc_mem_free(check_default_cache(), other, stream));
    CHECK(is_unbroken(busy));
    end_capture(capture, stream);
    CHECK_OK(cvc_mem_free_after_event(check_default_cache(), raw, outside));
    CHECK_OK(cvc_stream_query(busy));
  }
  CHECK_OK(cvc_event_destroy(outside));
  CHECK_OK(cvc_stream_unregister(registered));
  DRIVER(cuda->stream_destroy(registered));
  DRIVER(cuda->stream_destroy(foreign));
  CHECK_OK(cvc_stream_destroy(created));
  CHECK_OK(cvc_stream_destroy(stream));
  pinned_memory_free(pinned);
}

// The caller's own fork and join inside a capture, by events and by waits of the library, become the graph's.
static void waits_inside_a_capture_are_the_graphs(void) {
  cvc_stream_t stream = new_stream(), forked = new_stream(), other = new_stream();
  struct capture capture = begin_capture(stream, CAPTURE_RELAXED, other);
  CHECK_OK(cvc_stream_wait_stream(forked, stream));
  CHECK(is_unbroken(forked));
  CHECK_OK(cvc_stream_wait_stream(stream, forked));
  cvc_event_t event = NULL;
  CHECK_OK(cvc_event_create(0, 0, &event));
  CHECK_OK(cvc_event_record(event, stream));
  CHECK_OK(cvc_stream_wait_event(forked, event));
  CHECK_OK(cvc_stream_wait_stream(stream, forked));
  end_capture(capture, other);
  CHECK_OK(cvc_stream_synchronize(forked, -1));
  CHECK_OK(cvc_event_destroy(event));
  CHECK_OK(cvc_stream_destroy(stream));
  CHECK_OK(cvc_stream_destroy(forked));
  CHECK_OK(cvc_stream_destroy(other));
}

// The stream that joined has waited for nothing of what was queued before the capture.
static void waits_inside_a_capture_order_nothing_outside(void) {
  cvc_stream_t stream = new_stream(), joined = new_stream(), other = new_stream();
  unsigned char *ones = pinned_memory(BYTES);
  memset(ones, 1, BYTES);
  cvc_tensor_t written = small(stream), copy = small(joined);
  CHECK_OK(cvc_fill_zero(joined, copy));
  CHECK_OK(cvc_stream_synchronize(joined, -1));
  struct capture capture = begin_capture(stream, CAPTURE_RELAXED, other);
  end_capture(capture, other);
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  uint64_t latch = hold(stream);
  CHECK_OK(cvc_upload(stream, ones, NULL, written));
  void *graph = NULL;
  DRIVER(cuda->capture_begin(stream, CAPTURE_RELAXED));
  CHECK_OK(cvc_stream_wait_stream(joined, stream));
  CHECK_OK(cvc_stream_wait_stream(stream, joined));
  CHECK(is_unbroken(stream));
  CHECK_EQ(cuda->capture_end(stream, &graph), 0);
  DRIVER(cuda->graph_destroy(graph));
  CHECK_OK(cvc_copy(joined, written, copy));
  CHECK_STATUS(cvc_stream_synchronize(joined, 20000000), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK(holds(joined, copy, 1));
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK_OK(cvc_tensor_release(written));
  CHECK_OK(cvc_tensor_release(copy));
  CHECK_OK(cvc_stream_destroy(stream));
  CHECK_OK(cvc_stream_destroy(joined));
  CHECK_OK(cvc_stream_destroy(other));
  pinned_memory_free(ones);
}

// The driver ends both captures that a wait connects, and one whose event the host looks at.
static void waits_between_captures_are_refused(void) {
  cvc_stream_t first = new_stream(), second = new_stream(), other = new_stream();
  cvc_event_t event = NULL, fresh = NULL, live = NULL;
  CHECK_OK(cvc_event_create(0, CVC_EVENT_TIMING, &event));
  CHECK_OK(cvc_event_create(0, 0, &fresh));
  CHECK_OK(cvc_event_create(0, CVC_EVENT_TIMING, &live));
  CHECK_OK(cvc_event_record(live, other));
  struct capture one = begin_capture(first, CAPTURE_RELAXED, other);
  struct capture two = begin_capture(second, CAPTURE_RELAXED, other);
  CHECK_OK(cvc_event_record(event, first));
  float milliseconds = 0;
#define REFUSED(call)                                                                                        \
  do {                                                                                                       \
    CHECK_ERROR(call, CVC_STATUS_CAPTURING, "captur");                                                       \
    CHECK(is_unbroken(first) && is_unbroken(second));                                                        \
  } while (0)
  REFUSED(cvc_stream_wait_event(second, event));
  REFUSED(cvc_stream_wait_stream(second, first));
  REFUSED(cvc_stream_wait_stream(first, second));
  REFUSED(cvc_stream_wait_event(first, fresh));
  REFUSED(cvc_stream_wait_event(CVC_STREAM_LEGACY, event));
  REFUSED(cvc_stream_wait_stream(CVC_STREAM_LEGACY, first));
  REFUSED(cvc_event_query(event));
  REFUSED(cvc_event_synchronize(event, -1));
  REFUSED(cvc_event_synchronize(event, 0));
  REFUSED(cvc_event_elapsed_ms(live, event, &milliseconds));
  REFUSED(cvc_event_elapsed_ms(event, live, &milliseconds));
#undef REFUSED
  CHECK_OK(cvc_stream_wait_event(first, event));
  end_capture(one, other);
  end_capture(two, other);
  CHECK_STATUS(cvc_event_query(event), CVC_STATUS_CAPTURING);
  CHECK_OK(cvc_event_record(event, other));
  CHECK_OK(cvc_event_synchronize(event, -1));
  CHECK_OK(cvc_event_destroy(event));
  CHECK_OK(cvc_event_destroy(fresh));
  CHECK_OK(cvc_event_destroy(live));
  CHECK_OK(cvc_stream_destroy(first));
  CHECK_OK(cvc_stream_destroy(second));
  CHECK_OK(cvc_stream_destroy(other));
}

static void the_legacy_stream_is_left_alone_beside_a_blocking_capture(void) {
  cvc_stream_t blocking = foreign_stream(cuda, 0), stream = new_stream();
  cvc_tensor_t tensor = small(CVC_STREAM_NONE), result = NULL;
  CHECK_OK(cvc_fill_zero(CVC_STREAM_LEGACY, tensor));
  CHECK_OK(cvc_stream_synchronize(CVC_STREAM_LEGACY, -1));
  struct capture capture = begin_capture(blocking, CAPTURE_RELAXED, stream);
  CHECK_STATUS(cvc_fill_zero(CVC_STREAM_LEGACY, tensor), CVC_STATUS_CAPTURING);
  CHECK_STATUS(cvc_op_flip_new(NULL, tensor, 0, &result), CVC_STATUS_CAPTURING);
  CHECK_STATUS(cvc_stream_wait_stream(CVC_STREAM_LEGACY, stream), CVC_STATUS_CAPTURING);
  CHECK(is_unbroken(blocking));
  CHECK_OK(cvc_fill_zero(stream, tensor));
  end_capture(capture, stream);
  CHECK_OK(cvc_fill_zero(CVC_STREAM_LEGACY, tensor));
  CHECK_OK(cvc_stream_synchronize(CVC_STREAM_LEGACY, -1));
  CHECK_OK(cvc_tensor_release(tensor));
  DRIVER(cuda->stream_destroy(blocking));
  CHECK_OK(cvc_stream_destroy(stream));
}

// However little is left, a capturing stream is given nothing that it would have to wait for.
static void under_pressure_a_capturing_stream_gets_no_pending_memory(void) {
  cvc_stream_t stream = new_stream(), other = new_stream(), third = new_stream();
  cvc_cache_t cache = NULL;
  REQUIRE_OK(cvc_cache_create(NULL, &cache));
  REQUIRE_OK(cvc_cache_set_limit(cache, 0, 512));
  const int64_t shape[3] = {8, 8, 3};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "HWC", 3, shape);
  cvc_tensor_t pending = NULL, fresh = NULL, waited = NULL;
  REQUIRE_OK(cvc_tensor_create(cache, &desc, other, &pending));
  const void *data = tensor_data(pending).data;
  uint64_t latch = hold(other);
  CHECK_OK(cvc_fill_zero(other, pending));
  CHECK_OK(cvc_tensor_release(pending));
  struct capture capture = begin_capture(stream, CAPTURE_RELAXED, third);
  REQUIRE_OK(cvc_tensor_create(cache, &desc, stream, &fresh));
  CHECK(tensor_data(fresh).data != data);
  CHECK(is_unbroken(stream));
  end_capture(capture, third);
  REQUIRE_OK(cvc_tensor_create(cache, &desc, stream, &waited));
  CHECK(tensor_data(waited).data == data); // after a wait on the GPU
  CHECK_OK(cvc_fill_zero(stream, waited));
  CHECK_STATUS(cvc_stream_synchronize(stream, 20000000), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK_OK(cvc_tensor_release(fresh));
  CHECK_OK(cvc_tensor_release(waited));
  CHECK_OK(cvc_cache_release(cache));
  CHECK_OK(cvc_stream_destroy(stream));
  CHECK_OK(cvc_stream_destroy(other));
  CHECK_OK(cvc_stream_destroy(third));
}

// ---- Streams whose owner ends them

// The stream ends while its work is held; its handle's value names new streams, and the memory is used again
// on them.
static void use_and_end(cvc_stream_t stream, int is_registered, unsigned char *ones, unsigned char *twos) {
  enum { LATER = 8 };
  cvc_stream_t later[LATER];
  if (is_registered)
    REQUIRE_OK(cvc_stream_register(0, stream, 0));
  uint64_t latch = hold(stream);
  cvc_tensor_t first = small(stream), second = small(stream), again = NULL;
  CHECK_OK(cvc_upload(stream, ones, NULL, first));
  CHECK_OK(cvc_op_flip(stream, first, second, 1));
  if (is_registered)
    CHECK_OK(cvc_stream_unregister(stream));
  DRIVER(cuda->stream_destroy(stream));
  for (int i = 0; i < LATER; ++i)
    later[i] = foreign_stream(cuda, CUDA_NON_BLOCKING);
  CHECK_OK(cvc_tensor_release(first));
  CHECK_STATUS(cvc_tensor_synchronize(second, 0), CVC_STATUS_NOT_READY);
  // Nothing of the held work may be overtaken, whatever its stream's handle names now.
  for (int i = 0; i < LATER; ++i) {
    again = small(later[i]);
    CHECK_OK(cvc_upload(later[i], twos, NULL, again));
    CHECK_OK(cvc_op_flip(later[i], again, again, 0));
    CHECK_OK(cvc_tensor_release(again));
  }
  cvc_tensor_t third = small(later[0]);
  CHECK_OK(cvc_copy(later[0], second, third));
  let_go(latch);
  CHECK(holds(later[0], third, 1));
  CHECK(holds(later[LATER - 1], second, 1));
  again = small(later[1]);
  CHECK_OK(cvc_upload(later[1], twos, NULL, again));
  CHECK(holds(later[1], again, 2));
  CHECK_OK(cvc_tensor_release(again));
  CHECK_OK(cvc_tensor_release(second));
  CHECK_OK(cvc_tensor_release(third));
  for (int i = 0; i < LATER; ++i)
    DRIVER(cuda->stream_destroy(later[i]));
}

static void streams_that_their_owner_destroyed(void) {
  unsigned char *ones = pinned_memory(BYTES), *twos = pinned_memory(BYTES);
  memset(ones, 1, BYTES);
  memset(twos, 2, BYTES);
  for (int i = 0; i < 20; ++i)
    use_and_end(foreign_stream(cuda, CUDA_NON_BLOCKING), 0, ones, twos);
  for (int i = 0; i < 20; ++i)
    use_and_end(foreign_stream(cuda, CUDA_NON_BLOCKING), 1, ones, twos);
  pinned_memory_free(ones);
  pinned_memory_free(twos);
}

static void registration_ends(void) {
  cvc_stream_t stream = foreign_stream(cuda, CUDA_NON_BLOCKING);
  CHECK_STATUS(cvc_stream_unregister(stream), CVC_STATUS_INVALID_STREAM);
  CHECK_OK(cvc_stream_register(0, stream, 0));
  CHECK_ERROR(cvc_stream_register(0, stream, 0), CVC_STATUS_INVALID_STREAM, "registered already");
  CHECK_STATUS(cvc_stream_destroy(stream), CVC_STATUS_INVALID_STREAM); // it is its owner's
  CHECK_OK(cvc_stream_unregister(stream));
  CHECK_STATUS(cvc_stream_unregister(stream), CVC_STATUS_INVALID_STREAM);
  cvc_tensor_t tensor = small(stream); // and goes on as one that was never registered
  CHECK_OK(cvc_fill_zero(stream, tensor));
  CHECK(holds(stream, tensor, 0));
  CHECK_OK(cvc_tensor_release(tensor));
  DRIVER(cuda->stream_destroy(stream));
}

// ---- Default streams

// Whether work on `second` waits for what `first` holds, as is expected.
static int waits(cvc_stream_t first, cvc_stream_t second, int expected) {
  cvc_tensor_t tensor = small(CVC_STREAM_NONE);
  CHECK_OK(cvc_fill_zero(second, tensor)); // so that nothing is done for the first time below
  CHECK_OK(cvc_stream_synchronize(second, -1));
  uint64_t latch = hold(first);
  CHECK_OK(cvc_fill_zero(second, tensor));
  // What waits does so for any time; what does not may be slow.
  cvc_status_t status = cvc_stream_synchronize(second, expected ? 20000000 : 10000000000);
  int waited = status == CVC_STATUS_NOT_READY;
  if (!waited)
    CHECK_STATUS(status, CVC_STATUS_OK);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(first, -1));
  CHECK_OK(cvc_stream_synchronize(second, -1));
  CHECK_OK(cvc_tensor_release(tensor));
  return waited;
}

static void *query_own_stream(void *unused) {
  (void)cuda_driver();
  CHECK_OK(cvc_stream_query(CVC_STREAM_PER_THREAD));
  return unused;
}

static void default_streams_order_as_cuda_says(void) {
  cvc_stream_t blocking = foreign_stream(cuda, 0), plain = foreign_stream(cuda, CUDA_NON_BLOCKING);
  CHECK(waits(blocking, CVC_STREAM_LEGACY, 1));
  CHECK(waits(CVC_STREAM_LEGACY, blocking, 1));
  CHECK(waits(CVC_STREAM_PER_THREAD, CVC_STREAM_LEGACY, 1));
  CHECK(waits(CVC_STREAM_LEGACY, CVC_STREAM_PER_THREAD, 1));
  CHECK(waits(blocking, NULL, 1));
  CHECK(!waits(plain, CVC_STREAM_LEGACY, 0));
  CHECK(!waits(CVC_STREAM_LEGACY, plain, 0));
  CHECK(!waits(plain, CVC_STREAM_PER_THREAD, 0));

  // Each thread has a stream of its own, and the library orders what is done on it.
  unsigned char *ones = pinned_memory(BYTES);
  memset(ones, 1, BYTES);
  cvc_tensor_t tensor = small(CVC_STREAM_PER_THREAD);
  uint64_t latch = hold(CVC_STREAM_PER_THREAD);
  CHECK_OK(cvc_upload(CVC_STREAM_PER_THREAD, ones, NULL, tensor));
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, query_own_stream, NULL), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_OK(cvc_op_flip(plain, tensor, tensor, 0));
  CHECK_STATUS(cvc_stream_query(plain), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK(holds(plain, tensor, 1));
  CHECK_OK(cvc_tensor_release(tensor));
  pinned_memory_free(ones);
  DRIVER(cuda->stream_destroy(blocking));
  DRIVER(cuda->stream_destroy(plain));
}

int main(void) {
  CHECK_BEGIN();
  // Streams that share one of the device's queues would wait for each other's held work.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  if (on_host())
    return 77;
  cuda = cuda_driver();
  RUN(captures_of_others_survive);
  RUN(work_on_a_capturing_stream_is_refused);
  RUN(waits_inside_a_capture_are_the_graphs);
  RUN(waits_inside_a_capture_order_nothing_outside);
  RUN(waits_between_captures_are_refused);
  RUN(the_legacy_stream_is_left_alone_beside_a_blocking_capture);
  RUN(under_pressure_a_capturing_stream_gets_no_pending_memory);
  RUN(streams_that_their_owner_destroyed);
  RUN(registration_ends);
  RUN(default_streams_order_as_cuda_says);
  return CHECK_END();
}

// Events: recording, querying, waiting on the host and on another stream, elapsed time.
#include "fixtures.h"

static void record_query_synchronize(void) {
  cvc_stream_t stream = new_stream();
  cvc_event_t event = NULL;
  CHECK_OK(cvc_event_create(CVC_DEVICE_CURRENT, 0, &event));
  CHECK_OK(cvc_event_query(event)); // never recorded: nothing to wait for
  uint64_t latch = hold(stream);
  CHECK_OK(cvc_event_record(event, stream));
  CHECK_STATUS(cvc_event_query(event), CVC_STATUS_NOT_READY);
  CHECK_STATUS(cvc_event_synchronize(event, 0), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_event_synchronize(event, -1));
  CHECK_OK(cvc_event_query(event));
  CHECK_OK(cvc_event_destroy(event));
  CHECK_OK(cvc_stream_destroy(stream));
}

// An event stands for what was queued before it, not for what came later.
static void covers_what_came_before(void) {
  cvc_stream_t stream = new_stream();
  cvc_event_t event = NULL;
  CHECK_OK(cvc_event_create(CVC_DEVICE_CURRENT, 0, &event));
  CHECK_OK(cvc_event_record(event, stream));
  uint64_t latch = hold(stream);
  CHECK_OK(cvc_event_synchronize(event, -1));
  CHECK_STATUS(cvc_stream_query(stream), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK_OK(cvc_event_destroy(event));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void a_stream_waits_for_an_event(void) {
  cvc_stream_t first = new_stream(), second = new_stream();
  cvc_event_t event = NULL;
  CHECK_OK(cvc_event_create(CVC_DEVICE_CURRENT, 0, &event));
  uint64_t latch = hold(first);
  CHECK_OK(cvc_event_record(event, first));
  CHECK_OK(cvc_stream_wait_event(second, event));
  CHECK_OK(cvc_event_destroy(event)); // the wait stays
  CHECK_STATUS(cvc_stream_synchronize(second, 0), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(second, -1));
  CHECK_OK(cvc_stream_query(first));
  CHECK_OK(cvc_stream_destroy(first));
  CHECK_OK(cvc_stream_destroy(second));
}

// What has been waited for by an event needs no second wait: the memory is taken at once.
static void an_event_wait_makes_pending_memory_usable(void) {
  cvc_cache_t cache = check_default_cache();
  cvc_stream_t first = new_stream(), second = new_stream();
  cvc_event_t event = NULL;
  CHECK_OK(cvc_event_create(CVC_DEVICE_CURRENT, 0, &event));
  uint64_t latch = hold(first);
  cvc_tensor_t tensor = nhwc(1, 16, 16, 3, CVC_DTYPE_U8, first);
  void *memory = tensor_data(tensor).data;
  CHECK_OK(cvc_fill_zero(first, tensor));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_event_record(event, first));
  CHECK_OK(cvc_stream_wait_event(second, event));
  uint64_t before = check_stats(cache, 0).hits_pending;
  tensor = nhwc(1, 16, 16, 3, CVC_DTYPE_U8, second);
  CHECK(tensor_data(tensor).data == memory);
  CHECK_EQ(check_stats(cache, 0).hits_pending, before + 1);
  CHECK_OK(cvc_tensor_release(tensor));
  let_go(latch);
  CHECK_OK(cvc_event_destroy(event));
  CHECK_OK(cvc_stream_synchronize(second, -1));
  CHECK_OK(cvc_stream_destroy(first));
  CHECK_OK(cvc_stream_destroy(second));
}

static void elapsed_time(void) {
  cvc_stream_t stream = new_stream();
  cvc_event_t start = NULL, end = NULL, plain = NULL;
  float milliseconds = -1;
  CHECK_OK(cvc_event_create(CVC_DEVICE_CURRENT, CVC_EVENT_TIMING, &start));
  CHECK_OK(cvc_event_create(CVC_DEVICE_CURRENT, CVC_EVENT_TIMING, &end));
  CHECK_OK(cvc_event_create(CVC_DEVICE_CURRENT, 0, &plain));
  CHECK_OK(cvc_event_record(start, stream));
  uint64_t latch = hold(stream);
  CHECK_OK(cvc_event_record(end, stream));
  CHECK_OK(cvc_event_record(plain, stream));
  CHECK_STATUS(cvc_event_elapsed_ms(start, end, &milliseconds), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_event_synchronize(end, -1));
  CHECK_OK(cvc_event_elapsed_ms(start, end, &milliseconds));
  CHECK(milliseconds >= 0);
  CHECK_OK(cvc_event_synchronize(plain, -1));
  CHECK_ERROR(cvc_event_elapsed_ms(start, plain, &milliseconds), CVC_STATUS_INVALID_EVENT, "end");
  CHECK_ERROR(cvc_event_elapsed_ms(start, end, NULL), CVC_STATUS_NULL_POINTER, "milliseconds");
  CHECK_ERROR(cvc_event_elapsed_ms(NULL, end, &milliseconds), CVC_STATUS_INVALID_EVENT, "null");
  CHECK_OK(cvc_event_destroy(start));
  CHECK_OK(cvc_event_destroy(end));
  CHECK_OK(cvc_event_destroy(plain));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void wrong_arguments(void) {
  cvc_event_t event = NULL;
  CHECK_ERROR(cvc_event_create(50, 0, &event), CVC_STATUS_INVALID_DEVICE, "device", "50");
  CHECK_ERROR(cvc_event_create(0, 0x10u, &event), CVC_STATUS_INVALID_ENUM, "flags", "0x10");
  CHECK_ERROR(cvc_event_create(0, 0, NULL), CVC_STATUS_NULL_POINTER, "event");
  CHECK(event == NULL);
  CHECK_ERROR(cvc_event_record(NULL, NULL), CVC_STATUS_INVALID_EVENT, "event");
  CHECK_ERROR(cvc_event_query(NULL), CVC_STATUS_INVALID_EVENT, "event");
  CHECK_ERROR(cvc_event_synchronize(NULL, -1), CVC_STATUS_INVALID_EVENT, "event");
  CHECK_ERROR(cvc_event_destroy(NULL), CVC_STATUS_INVALID_EVENT, "event");
  CHECK_OK(cvc_event_create(0, 0, &event));
  CHECK_STATUS(cvc_event_record(event, CVC_STREAM_NONE), CVC_STATUS_INVALID_STREAM);
  if (two_devices()) {
    cvc_stream_t far = NULL;
    CHECK_OK(cvc_stream_create(1, 0, &far));
    CHECK_STATUS(cvc_event_record(event, far), CVC_STATUS_DEVICE_MISMATCH);
    CHECK_OK(cvc_stream_destroy(far));
  }
  CHECK_OK(cvc_event_destroy(event));
}

int main(void) {
  CHECK_BEGIN();
  RUN(record_query_synchronize);
  RUN(covers_what_came_before);
  RUN(a_stream_waits_for_an_event);
  RUN(an_event_wait_makes_pending_memory_usable);
  RUN(elapsed_time);
  RUN(wrong_arguments);
  return CHECK_END();
}

// Streams: order, waits, identity, registration and their end with work still queued.
#include "fixtures.h"

#include <pthread.h>

static void query_and_synchronize(void) {
  cvc_stream_t stream = new_stream();
  CHECK_OK(cvc_stream_query(stream));
  uint64_t latch = hold(stream);
  CHECK_STATUS(cvc_stream_query(stream), CVC_STATUS_NOT_READY);
  CHECK_STATUS(cvc_stream_synchronize(stream, 0), CVC_STATUS_NOT_READY);
  CHECK_STATUS(cvc_stream_synchronize(stream, 1000), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK_OK(cvc_stream_query(stream));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void identity(void) {
  cvc_stream_t first = new_stream(), second = new_stream();
  uint64_t first_id = 0, second_id = 0, third_id = 0;
  int32_t device = -1;
  CHECK_OK(cvc_stream_get_id(first, &first_id));
  CHECK_OK(cvc_stream_get_id(second, &second_id));
  CHECK(first_id != second_id);
  CHECK_OK(cvc_stream_get_device(second, &device));
  CHECK_EQ(device, 0);
  if (two_devices()) {
    cvc_stream_t far = NULL;
    CHECK_OK(cvc_stream_create(1, CVC_STREAM_BLOCKING, &far));
    CHECK_OK(cvc_stream_get_device(far, &device));
    CHECK_EQ(device, 1);
    CHECK_OK(cvc_stream_destroy(far));
  }
  CHECK_OK(cvc_stream_destroy(first));
  CHECK_OK(cvc_stream_destroy(second));
  // Whoever gets an old handle's value again is another stream.
  for (int i = 0; i < 8; ++i) {
    cvc_stream_t stream = new_stream();
    CHECK_OK(cvc_stream_get_id(stream, &third_id));
    CHECK(third_id != first_id && third_id != second_id);
    CHECK_OK(cvc_stream_destroy(stream));
  }
}

// Work that is queued behind a wait does not run before what it waits for.
static void wait_stream_orders(void) {
  cvc_stream_t writer = new_stream(), reader = new_stream();
  unsigned char *ones = pinned_memory(64), *got = pinned_memory(64);
  memset(ones, 1, 64);
  cvc_tensor_t tensor = nhwc(1, 8, 8, 1, CVC_DTYPE_U8, writer);
  CHECK_OK(cvc_fill_zero(writer, tensor));
  CHECK_OK(cvc_stream_synchronize(writer, -1));

  uint64_t latch = hold(writer);
  CHECK_OK(cvc_upload(writer, ones, NULL, tensor));
  CHECK_OK(cvc_stream_wait_stream(reader, writer));
  CHECK_OK(cvc_stream_wait_stream(writer, writer));
  CHECK_OK(cvc_download(reader, tensor, got, NULL));
  CHECK_STATUS(cvc_stream_query(reader), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(reader, -1));
  CHECK(memcmp(got, ones, 64) == 0);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_destroy(writer));
  CHECK_OK(cvc_stream_destroy(reader));
  pinned_memory_free(ones);
  pinned_memory_free(got);
}

// The library orders accesses of one tensor by itself: write, read elsewhere, write again.
static void hazards_are_ordered_without_a_wait_call(void) {
  cvc_stream_t first = new_stream(), second = new_stream();
  unsigned char *ones = pinned_memory(64), *twos = pinned_memory(64), *got = pinned_memory(64);
  memset(ones, 1, 64);
  memset(twos, 2, 64);
  cvc_tensor_t tensor = nhwc(1, 8, 8, 1, CVC_DTYPE_U8, first);
  uint64_t latch_first = hold(first);
  CHECK_OK(cvc_upload(first, ones, NULL, tensor));
  uint64_t latch_second = hold(second);
  CHECK_OK(cvc_download(second, tensor, got, NULL));
  CHECK_OK(cvc_upload(first, twos, NULL, tensor));
  let_go(latch_first);
  CHECK_STATUS(cvc_stream_synchronize(first, 0), CVC_STATUS_NOT_READY);
  let_go(latch_second);
  CHECK_OK(cvc_stream_synchronize(second, -1));
  CHECK(memcmp(got, ones, 64) == 0);
  take(first, tensor, got);
  CHECK(memcmp(got, twos, 64) == 0);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_destroy(first));
  CHECK_OK(cvc_stream_destroy(second));
  pinned_memory_free(ones);
  pinned_memory_free(twos);
  pinned_memory_free(got);
}

// Two readers on two streams do not wait for each other.
static void readers_run_together(void) {
  cvc_stream_t first = new_stream(), second = new_stream();
  unsigned char *a = pinned_memory(16), *b = pinned_memory(16);
  cvc_tensor_t tensor = nhwc(1, 4, 4, 1, CVC_DTYPE_U8, first);
  CHECK_OK(cvc_fill_zero(first, tensor));
  CHECK_OK(cvc_stream_synchronize(first, -1));
  uint64_t latch = hold(first);
  CHECK_OK(cvc_download(first, tensor, a, NULL));
  CHECK_OK(cvc_download(second, tensor, b, NULL));
  CHECK_OK(cvc_stream_synchronize(second, -1));
  CHECK_STATUS(cvc_stream_query(first), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(first, -1));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_destroy(first));
  CHECK_OK(cvc_stream_destroy(second));
  pinned_memory_free(a);
  pinned_memory_free(b);
}

static void queued_work_outlives_its_stream(void) {
  cvc_stream_t stream = new_stream();
  unsigned char *ones = pinned_memory(64), got[64];
  memset(ones, 1, 64);
  cvc_tensor_t tensor = nhwc(1, 8, 8, 1, CVC_DTYPE_U8, stream);
  uint64_t latch = hold(stream);
  CHECK_OK(cvc_upload(stream, ones, NULL, tensor));
  CHECK_OK(cvc_stream_destroy(stream));
  CHECK_STATUS(cvc_tensor_synchronize(tensor, 0), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_tensor_synchronize(tensor, -1));
  stream = new_stream();
  take(stream, tensor, got);
  CHECK(memcmp(got, ones, sizeof got) == 0);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_destroy(stream));
  pinned_memory_free(ones);
}

static void default_streams(void) {
  const cvc_stream_t streams[] = {NULL, CVC_STREAM_LEGACY, CVC_STREAM_PER_THREAD};
  for (size_t i = 0; i < sizeof streams / sizeof streams[0]; ++i) {
    unsigned char in[48], out[48];
    fill_noise(in, sizeof in, (uint32_t)i);
    cvc_tensor_t tensor = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, streams[i]);
    put(streams[i], tensor, in);
    take(streams[i], tensor, out);
    CHECK(memcmp(in, out, sizeof in) == 0);
    CHECK_OK(cvc_tensor_release(tensor));
  }
  // The legacy stream is ordered with blocking streams, and not with others.
  cvc_stream_t blocking = NULL, plain = new_stream();
  CHECK_OK(cvc_stream_create(CVC_DEVICE_CURRENT, CVC_STREAM_BLOCKING, &blocking));
  uint64_t latch = hold(plain);
  CHECK_OK(cvc_stream_synchronize(CVC_STREAM_LEGACY, -1));
  let_go(latch);
  latch = hold(blocking);
  cvc_tensor_t tensor = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  CHECK_OK(cvc_fill_zero(CVC_STREAM_LEGACY, tensor));
  CHECK_STATUS(cvc_stream_query(CVC_STREAM_LEGACY), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(CVC_STREAM_LEGACY, -1));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_destroy(blocking));
  CHECK_OK(cvc_stream_destroy(plain));
}

static void *open_latch(void *latch) {
  let_go(*(uint64_t *)latch);
  return NULL;
}

static void another_thread_may_end_the_wait(void) {
  cvc_stream_t stream = new_stream();
  uint64_t latch = hold(stream);
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, open_latch, &latch), 0);
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_OK(cvc_stream_destroy(stream));
}

static void wrong_arguments(void) {
  cvc_stream_t stream = new_stream(), other = NULL, far = NULL;
  CHECK_ERROR(cvc_stream_create(0, 0x80u, &other), CVC_STATUS_INVALID_ENUM, "flags", "0x80");
  CHECK(other == NULL);
  CHECK_ERROR(cvc_stream_create(70, 0, &other), CVC_STATUS_INVALID_DEVICE, "device", "70");
  CHECK_ERROR(cvc_stream_create(0, 0, NULL), CVC_STATUS_NULL_POINTER, "stream");
  CHECK_STATUS(cvc_stream_destroy(NULL), CVC_STATUS_INVALID_STREAM);
  CHECK_ERROR(cvc_stream_destroy(CVC_STREAM_LEGACY), CVC_STATUS_INVALID_STREAM, "stream", "0x1");
  CHECK_ERROR(cvc_stream_register(0, stream, 0), CVC_STATUS_INVALID_STREAM, "stream");
  CHECK_ERROR(cvc_stream_register(0, CVC_STREAM_PER_THREAD, CVC_STREAM_ANNOUNCES_CAPTURES),
              CVC_STATUS_INVALID_STREAM, "stream", "0x2");
  CHECK_ERROR(cvc_stream_register(0, stream, 0x40u), CVC_STATUS_INVALID_ENUM, "flags", "0x40");
  CHECK_ERROR(cvc_stream_unregister(stream), CVC_STATUS_INVALID_STREAM, "stream");
  CHECK_STATUS(cvc_stream_query(CVC_STREAM_NONE), CVC_STATUS_INVALID_STREAM);
  CHECK_STATUS(cvc_stream_synchronize(CVC_STREAM_NONE, -1), CVC_STATUS_INVALID_STREAM);
  CHECK_STATUS(cvc_stream_wait_stream(stream, CVC_STREAM_NONE), CVC_STATUS_INVALID_STREAM);
  CHECK_ERROR(cvc_stream_wait_event(stream, NULL), CVC_STATUS_INVALID_EVENT, "event");
  CHECK_ERROR(cvc_stream_get_id(stream, NULL), CVC_STATUS_NULL_POINTER, "id");
  CHECK_ERROR(cvc_stream_get_device(stream, NULL), CVC_STATUS_NULL_POINTER, "device");
  uint64_t latch = 0;
  CHECK_ERROR(cvc_host_latch_create(stream, NULL), CVC_STATUS_NULL_POINTER, "latch");
  CHECK_STATUS(cvc_host_latch_create(CVC_STREAM_NONE, &latch), CVC_STATUS_INVALID_STREAM);
  CHECK_ERROR(cvc_host_latch_open(0), CVC_STATUS_INVALID_HANDLE, "latch", "0");
  CHECK_ERROR(cvc_stream_synchronize(stream, -2), CVC_STATUS_INVALID_ARGUMENT, "timeout_ns", "-2");
  CHECK_ERROR(cvc_device_synchronize(0, INT64_MIN), CVC_STATUS_INVALID_ARGUMENT, "timeout_ns");
  if (two_devices()) {
    // The default streams are the current device's.
    cvc_tensor_t there = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
    unsigned char bytes[48];
    CHECK_OK(cvc_device_set_current(1));
    for (int i = 0; i < 3; ++i)
      CHECK_ERROR(cvc_download(i == 0   ? NULL
                               : i == 1 ? CVC_STREAM_LEGACY
                                        : CVC_STREAM_PER_THREAD,
                               there, bytes, NULL),
                  CVC_STATUS_DEVICE_MISMATCH, "stream", "device 1", "device 0");
    CHECK_OK(cvc_device_set_current(0));
    CHECK_OK(cvc_download(NULL, there, bytes, NULL));
    CHECK_OK(cvc_stream_synchronize(NULL, -1));
    CHECK_OK(cvc_tensor_release(there));
    CHECK_OK(cvc_stream_create(1, 0, &far));
    uint64_t held = hold(far); // streams of two devices may wait for each other
    CHECK_OK(cvc_stream_wait_stream(stream, far));
    CHECK_STATUS(cvc_stream_query(stream), CVC_STATUS_NOT_READY);
    let_go(held);
    CHECK_OK(cvc_stream_synchronize(stream, -1));
    cvc_tensor_t tensor = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
    CHECK_ERROR(cvc_fill_zero(far, tensor), CVC_STATUS_DEVICE_MISMATCH, "stream", "device 1", "device 0");
    CHECK_OK(cvc_tensor_release(tensor));
    CHECK_OK(cvc_stream_destroy(far));
  }
  CHECK_OK(cvc_stream_destroy(stream));
  CHECK_STATUS(cvc_stream_destroy(stream), CVC_STATUS_INVALID_STREAM);
}

int main(void) {
  CHECK_BEGIN();
  RUN(query_and_synchronize);
  RUN(identity);
  RUN(wait_stream_orders);
  RUN(hazards_are_ordered_without_a_wait_call);
  RUN(readers_run_together);
  RUN(queued_work_outlives_its_stream);
  RUN(default_streams);
  RUN(another_thread_may_end_the_wait);
  RUN(wrong_arguments);
  return CHECK_END();
}

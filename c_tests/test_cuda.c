// The CUDA backend beside other users of the driver: their memory, contexts, captures and streams. CUDA only.
#include "cuda_fixtures.h"

static struct driver *cuda;

// ---- Memory of others

static void refused_pointer(void *pointer) {
  char text[32];
  cvc_tensor_t tensor = NULL;
  snprintf(text, sizeof text, "%p", pointer);
  CHECK_ERROR(wrap_bytes(pointer, 0, &tensor), CVC_STATUS_INVALID_ARGUMENT, "data.data", text, "device 0");
  CHECK(tensor == NULL);
}

static void usable_pointer(void *pointer) {
  unsigned char out[64];
  cvc_stream_t stream = new_stream();
  cvc_tensor_t tensor = NULL;
  REQUIRE_OK(wrap_bytes(pointer, 0, &tensor));
  CHECK_OK(cvc_fill_zero(stream, tensor));
  CHECK_OK(cvc_op_convert_to(stream, tensor, tensor, 1, 7, CVC_ROUND_NEAREST));
  take(stream, tensor, out);
  size_t right = 0;
  for (size_t i = 0; i < sizeof out; ++i)
    right += out[i] == 7;
  CHECK_EQ(right, sizeof out);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void host_pointers_are_refused(void) {
  static unsigned char global[64];
  unsigned char *heap = (unsigned char *)malloc(64);
  refused_pointer(heap);
  refused_pointer(global);
  refused_pointer((void *)(uintptr_t)0x12340000u); // nobody's
  free(heap);

  cvc_image_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  data.format = CVC_FORMAT_RGB8;
  data.width = data.height = 4;
  data.plane_count = 1;
  data.planes[0].data = global;
  data.planes[0].row_stride = 12;
  data.planes[0].width = data.planes[0].height = 4;
  cvc_image_t image = NULL;
  CHECK_ERROR(cvc_image_wrap(check_default_cache(), &data, NULL, NULL, CVC_STREAM_NONE, &image),
              CVC_STATUS_INVALID_ARGUMENT, "data.planes[0].data");
  CHECK(image == NULL);
}

static void memory_that_the_device_can_use_is_taken(void) {
  unsigned char *pinned = pinned_memory(64), *managed = foreign_memory(64);
  usable_pointer(pinned);
  usable_pointer(managed);
  pinned_memory_free(pinned);
  foreign_memory_free(managed);
  uint64_t device = 0;
  DRIVER(cuda->memory_alloc(&device, 64));
  usable_pointer((void *)(uintptr_t)device);
  DRIVER(cuda->memory_free(device));

  unsigned char *registered = (unsigned char *)aligned_alloc(4096, 4096);
  DRIVER(cuda->host_register(registered, 4096, 3u /* portable, mapped */));
  usable_pointer(registered);
  DRIVER(cuda->host_unregister(registered));
  refused_pointer(registered);
  free(registered);
}

// ---- Two devices

static void what_is_of_another_device_than_the_stream(void) {
  if (!two_devices()) {
    printf("one device alone: no work is tried on another's\n");
    return;
  }
  const int64_t shape[4] = {1, 8, 8, 3};
  cvc_cache_t cache = check_default_cache();
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "NHWC", 4, shape);
  cvc_tensor_t far = NULL, result = NULL;
  desc.device = 1;
  CHECK_OK(cvc_tensor_create(cache, &desc, CVC_STREAM_NONE, &far));
  CHECK_ERROR(wrap_bytes(tensor_data(far).data, 0, &result), CVC_STATUS_DEVICE_MISMATCH, "data.data",
              "device 1", "device 0");
  unsigned char *pinned = pinned_memory(192);
  cvc_stream_t created = new_stream(), foreign = foreign_stream(cuda, CUDA_NON_BLOCKING);
  const cvc_stream_t streams[] = {created, foreign};
  for (size_t i = 0; i < 2; ++i) {
    const cvc_status_t statuses[] = {
        cvc_tensor_create(cache, &desc, streams[i], &result),
        cvc_op_flip(streams[i], far, far, 0),
        cvc_op_flip_new(streams[i], far, 0, &result),
        cvc_op_convert_to(streams[i], far, far, 1, 0, CVC_ROUND_NEAREST),
        cvc_copy(streams[i], far, far),
        cvc_upload(streams[i], pinned, NULL, far),
        cvc_download(streams[i], far, pinned, NULL),
        cvc_fill_zero(streams[i], far),
        cvc_tensor_begin_access(far, streams[i], CVC_ACCESS_READ),
        cvc_tensor_end_access(far, streams[i], CVC_ACCESS_READ),
    };
    for (size_t call = 0; call < sizeof statuses / sizeof statuses[0]; ++call)
      if (!CHECK_EQ(statuses[call], CVC_STATUS_DEVICE_MISMATCH))
        fprintf(stderr, "  call %zu on stream %zu\n", call, i);
    CHECK(strstr(check_message(), "stream") && strstr(check_message(), "device 1"));
    CHECK(result == NULL);
  }
  CHECK_ERROR(cvc_stream_register(1, foreign, 0), CVC_STATUS_DEVICE_MISMATCH, "stream", "device 0",
              "device 1");
  DRIVER(cuda->stream_destroy(foreign));
  CHECK_OK(cvc_stream_destroy(created));
  CHECK_OK(cvc_tensor_release(far));
  pinned_memory_free(pinned);
}

// ---- Contexts of others

static void streams_of_other_contexts_are_refused(void) {
  void *other = NULL;
  DRIVER(cuda->context_create(&other, 0, 0));
  cvc_stream_t stream = foreign_stream(cuda, CUDA_NON_BLOCKING);
  DRIVER(cuda->context_set_current(cuda->context));
  cvc_tensor_t tensor = nhwc(1, 8, 8, 3, CVC_DTYPE_U8, CVC_STREAM_NONE), result = NULL;
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "HWC", 3, (const int64_t[]){8, 8, 3});
  cvc_event_t event = NULL;
  unsigned char bytes[192] = {0};
  REQUIRE_OK(cvc_event_create(0, 0, &event));
#define REFUSED(call) CHECK_ERROR(call, CVC_STATUS_INVALID_STREAM, "stream", "primary context")
  for (int turn = 0; turn < 2; ++turn) { // with the primary context current, then with the stream's own
    REFUSED(cvc_stream_register(0, stream, 0));
    REFUSED(cvc_op_flip(stream, tensor, tensor, 0));
    REFUSED(cvc_op_flip_new(stream, tensor, 0, &result));
    REFUSED(cvc_op_pillow_resize_new(stream, tensor, 4, 4, CVC_FILTER_BOX, 0, &result));
    REFUSED(cvc_tensor_create(check_default_cache(), &desc, stream, &result));
    REFUSED(cvc_upload(stream, bytes, NULL, tensor));
    REFUSED(cvc_tensor_begin_access(tensor, stream, CVC_ACCESS_READ));
    REFUSED(cvc_stream_query(stream));
    REFUSED(cvc_stream_synchronize(stream, -1));
    REFUSED(cvc_stream_wait_stream(stream, CVC_STREAM_LEGACY));
    REFUSED(cvc_event_record(event, stream));
    CHECK(result == NULL);
    CHECK(current_context(cuda) == (turn ? other : cuda->context));
    DRIVER(cuda->context_set_current(other));
  }
  // What the handles 0, 1 and 2 mean here is no stream of the library's context either.
  REFUSED(cvc_stream_query(CVC_STREAM_LEGACY));
  REFUSED(cvc_stream_query(CVC_STREAM_PER_THREAD));
#undef REFUSED
  DRIVER(cuda->stream_destroy(stream));
  DRIVER(cuda->context_set_current(cuda->context));
  CHECK_OK(cvc_event_destroy(event));
  CHECK_OK(cvc_tensor_release(tensor));
  DRIVER(cuda->context_destroy(other));
  DRIVER(cuda->context_set_current(cuda->context));
}

// Every kind of call leaves the thread's current context as it was.
static void calls_with(void *expected, cvc_stream_t foreign, unsigned char *pinned) {
#define KEEPS(call)                                                                                          \
  do {                                                                                                       \
    CHECK_OK(call);                                                                                          \
    CHECK(current_context(cuda) == expected);                                                                \
  } while (0)
  cvc_cache_t cache = check_default_cache();
  cvc_tensor_t first = NULL, second = NULL, made = NULL;
  cvc_image_t image = NULL;
  cvc_image_batch_t batch = NULL;
  cvc_stream_t stream = NULL;
  cvc_event_t start = NULL, end = NULL;
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "NHWC", 4, (const int64_t[]){1, 8, 8, 3});
  cvc_normalize_params_t normalize;
  cvc_image_desc_t image_desc;
  cvc_image_batch_data_t batch_data;
  cvc_device_info_t info;
  uint64_t number = 0;
  int32_t device = -1;
  float milliseconds = 0;
  memset(&normalize, 0, sizeof normalize);
  normalize.struct_size = sizeof normalize;
  normalize.base_count = normalize.scale_count = 1;
  normalize.scale_values[0] = normalize.global_scale = 1;
  memset(&image_desc, 0, sizeof image_desc);
  image_desc.struct_size = sizeof image_desc;
  image_desc.format = CVC_FORMAT_RGB8;
  image_desc.width = image_desc.height = 8;
  memset(&batch_data, 0, sizeof batch_data);
  batch_data.struct_size = sizeof batch_data;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;

  KEEPS(cvc_stream_create(0, 0, &stream));
  KEEPS(cvc_stream_register(0, foreign, 0));
  KEEPS(cvc_event_create(0, CVC_EVENT_TIMING, &start));
  KEEPS(cvc_event_create(0, CVC_EVENT_TIMING, &end));
  KEEPS(cvc_event_record(start, stream));
  KEEPS(cvc_tensor_create(cache, &desc, stream, &first));
  KEEPS(cvc_tensor_create(cache, &desc, foreign, &second));
  KEEPS(cvc_upload(stream, pinned, NULL, first));
  KEEPS(cvc_op_flip(stream, first, second, 0));
  KEEPS(cvc_op_flip(foreign, second, first, 0));
  KEEPS(cvc_op_flip_new(stream, first, 0, &made));
  KEEPS(cvc_tensor_release(made));
  KEEPS(cvc_op_convert_to_new(stream, first, CVC_DTYPE_F32, 1, 0, CVC_ROUND_NEAREST, &made));
  KEEPS(cvc_tensor_release(made));
  KEEPS(cvc_op_normalize(stream, first, second, &normalize));
  KEEPS(cvc_op_reformat_new(stream, first, "NCHW", &made));
  KEEPS(cvc_tensor_release(made));
  KEEPS(cvc_op_pillow_resize_new(stream, first, 5, 5, CVC_FILTER_LANCZOS, 0, &made));
  KEEPS(cvc_tensor_release(made));
  KEEPS(cvc_copy(foreign, first, second));
  KEEPS(cvc_fill_zero(stream, second));
  KEEPS(cvc_download(stream, first, pinned, NULL));
  KEEPS(cvc_tensor_begin_access(first, stream, CVC_ACCESS_WRITE));
  KEEPS(cvc_tensor_end_access(first, stream, CVC_ACCESS_WRITE));
  KEEPS(cvc_image_create(cache, &image_desc, stream, &image));
  KEEPS(cvc_image_batch_create(cache, 0, 2, stream, &batch));
  KEEPS(cvc_image_batch_push(batch, &image, 1));
  KEEPS(cvc_image_batch_get_data(batch, stream, &batch_data));
  KEEPS(wrap_bytes(pinned, 0, &made));
  KEEPS(cvc_tensor_release(made));
  KEEPS(cvc_event_record(end, stream));
  KEEPS(cvc_stream_wait_event(foreign, end));
  KEEPS(cvc_stream_wait_stream(foreign, stream));
  KEEPS(cvc_stream_get_id(stream, &number));
  KEEPS(cvc_stream_get_device(stream, &device));
  KEEPS(cvc_tensor_synchronize(first, -1));
  KEEPS(cvc_event_synchronize(end, -1));
  KEEPS(cvc_event_query(end));
  KEEPS(cvc_event_elapsed_ms(start, end, &milliseconds));
  KEEPS(cvc_stream_synchronize(stream, -1));
  KEEPS(cvc_stream_synchronize(foreign, 1000000000));
  KEEPS(cvc_stream_query(stream));
  KEEPS(cvc_device_get_info(0, &info));
  KEEPS(cvc_device_get_current(&device));
  CHECK_EQ(device, 0);
  KEEPS(cvc_cache_count(cache, 0, CVC_SCOPE_LOCAL, &number));
  KEEPS(cvc_cache_bytes(cache, -1, &number));
  KEEPS(cvc_cache_trim(cache, 0, 0));
  KEEPS(cvc_image_batch_release(batch));
  KEEPS(cvc_image_release(image));
  KEEPS(cvc_tensor_release(first));
  KEEPS(cvc_tensor_release(second));
  KEEPS(cvc_cache_synchronize(cache, 0, -1));
  KEEPS(cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL));
  KEEPS(cvc_device_synchronize(0, -1));
  KEEPS(cvc_device_synchronize(0, 1000000000));
  KEEPS(cvc_event_destroy(start));
  KEEPS(cvc_event_destroy(end));
  KEEPS(cvc_stream_unregister(foreign));
  KEEPS(cvc_stream_destroy(stream));
#undef KEEPS
  CHECK_STATUS(cvc_fill_zero(NULL, NULL), CVC_STATUS_INVALID_HANDLE);
  CHECK(current_context(cuda) == expected);
}

static void the_current_context_stays(void) {
  unsigned char *pinned = pinned_memory(192);
  cvc_stream_t foreign = foreign_stream(cuda, CUDA_NON_BLOCKING);
  void *other = NULL;
  DRIVER(cuda->context_create(&other, 0, 0));
  void *const contexts[] = {cuda->context, NULL, other};
  for (size_t i = 0; i < sizeof contexts / sizeof contexts[0]; ++i) {
    // Null takes the top off the thread's stack of contexts, and others of the tests before may lie below.
    while (current_context(cuda))
      DRIVER(cuda->context_set_current(NULL));
    DRIVER(cuda->context_set_current(contexts[i]));
    calls_with(contexts[i], foreign, pinned);
  }
  DRIVER(cuda->context_destroy(other));
  DRIVER(cuda->context_set_current(cuda->context));
  DRIVER(cuda->stream_destroy(foreign));
  pinned_memory_free(pinned);
}

// A device that is set is a context that stays current.
static void set_current_device_makes_its_context_current(void) {
  DRIVER(cuda->context_set_current(NULL));
  CHECK_OK(cvc_device_set_current(0));
  CHECK(current_context(cuda) == cuda->context);
}

int main(void) {
  CHECK_BEGIN();
  if (on_host())
    return 77;
  cuda = cuda_driver();
  RUN(host_pointers_are_refused);
  RUN(memory_that_the_device_can_use_is_taken);
  RUN(what_is_of_another_device_than_the_stream);
  RUN(streams_of_other_contexts_are_refused);
  RUN(the_current_context_stays);
  RUN(set_current_device_makes_its_context_current);
  return CHECK_END();
}

// Bad input: each gives its own status and a message that names the argument and its value, and changes
// nothing.
//
// `test_errors no-driver` is another program, for CVC_BACKEND=cuda: without a driver each call says so.
#include "fixtures.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOGUS(type) ((type)(uintptr_t)0xdeadbeef00u)

// The accounts before a call that must not change them, and after it.
static cvc_cache_stats_t before;

static void remember(void) { before = check_stats(check_default_cache(), 0); }

static void unchanged(void) {
  cvc_cache_stats_t now = check_stats(check_default_cache(), 0);
  CHECK_EQ(now.count, before.count);
  CHECK_EQ(now.bytes, before.bytes);
  CHECK_EQ(now.live_handles, before.live_handles);
  CHECK_EQ(now.live_bytes, before.live_bytes);
  CHECK_EQ(now.wrapped_count, before.wrapped_count);
  CHECK_EQ(now.view_count, before.view_count);
}

static void texts_of_statuses(void) {
  CHECK(strcmp(cvc_status_string(CVC_STATUS_OK), "CVC_STATUS_OK") == 0);
  CHECK(strcmp(cvc_status_string(CVC_STATUS_OUT_OF_MEMORY), "CVC_STATUS_OUT_OF_MEMORY") == 0);
  for (cvc_status_t status = CVC_STATUS_OK; status <= CVC_STATUS_INTERNAL; ++status) {
    CHECK(strncmp(cvc_status_string(status), "CVC_STATUS_", 11) == 0);
    for (cvc_status_t other = CVC_STATUS_OK; other < status; ++other)
      CHECK(strcmp(cvc_status_string(status), cvc_status_string(other)) != 0);
  }
  CHECK(cvc_status_string(-1) != NULL && cvc_status_string(100000) != NULL);
}

static void the_last_message_of_any_length(void) {
  size_t needed = 0, again = 0;
  char text[512], part[8];
  CHECK_STATUS(cvc_device_set_current(12345), CVC_STATUS_INVALID_DEVICE);
  CHECK_OK(cvc_last_error_message(NULL, 0, &needed));
  CHECK(needed > 8 && needed < sizeof text);
  CHECK_OK(cvc_last_error_message(text, sizeof text, &again));
  CHECK_EQ(again, needed);
  CHECK_EQ(strlen(text) + 1, needed);
  memset(part, 'x', sizeof part);
  CHECK_OK(cvc_last_error_message(part, sizeof part, &again));
  CHECK_EQ(again, needed);
  CHECK(part[7] == '\0' && memcmp(part, text, 7) == 0);
  CHECK_OK(cvc_last_error_message(text, sizeof text, NULL));
  CHECK_STATUS(cvc_last_error_message(NULL, 8, NULL), CVC_STATUS_NULL_POINTER);
}

static void null_handles(void) {
  uint64_t number = 7;
  int64_t shape[1] = {4};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "", 1, shape);
  cvc_tensor_t tensor = BOGUS(cvc_tensor_t);
  CHECK_ERROR(cvc_cache_retain(NULL), CVC_STATUS_INVALID_HANDLE, "cache", "null");
  CHECK_ERROR(cvc_cache_count(NULL, 0, CVC_SCOPE_GLOBAL, &number), CVC_STATUS_INVALID_HANDLE, "cache");
  CHECK_EQ(number, 0); // results are zero on failure
  CHECK_ERROR(cvc_tensor_create(NULL, &desc, NULL, &tensor), CVC_STATUS_INVALID_HANDLE, "cache");
  CHECK(tensor == NULL);
  CHECK_ERROR(cvc_tensor_release(NULL), CVC_STATUS_INVALID_HANDLE, "tensor");
  CHECK_ERROR(cvc_image_release(NULL), CVC_STATUS_INVALID_HANDLE, "image");
  CHECK_ERROR(cvc_image_batch_release(NULL), CVC_STATUS_INVALID_HANDLE, "batch");
  CHECK_ERROR(cvc_tensor_batch_release(NULL), CVC_STATUS_INVALID_HANDLE, "batch");
  CHECK_ERROR(cvc_tensor_get_id(BOGUS(cvc_tensor_t), &number), CVC_STATUS_INVALID_HANDLE, "tensor",
              "0xdeadbeef00");
  CHECK_ERROR(cvc_image_get_id(BOGUS(cvc_image_t), &number), CVC_STATUS_INVALID_HANDLE, "image",
              "0xdeadbeef00");
}

static void null_results(void) {
  cvc_cache_t cache = check_default_cache();
  int64_t shape[1] = {4};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "", 1, shape);
  cvc_tensor_t tensor = NULL;
  remember();
  CHECK_ERROR(cvc_cache_default(NULL), CVC_STATUS_NULL_POINTER, "cache");
  CHECK_ERROR(cvc_cache_create(NULL, NULL), CVC_STATUS_NULL_POINTER, "cache");
  CHECK_ERROR(cvc_cache_count(cache, 0, CVC_SCOPE_GLOBAL, NULL), CVC_STATUS_NULL_POINTER, "count");
  CHECK_ERROR(cvc_cache_bytes(cache, 0, NULL), CVC_STATUS_NULL_POINTER, "bytes");
  CHECK_ERROR(cvc_cache_get_limit(cache, 0, NULL), CVC_STATUS_NULL_POINTER, "bytes");
  CHECK_ERROR(cvc_cache_stats(cache, 0, NULL), CVC_STATUS_NULL_POINTER, "stats");
  CHECK_ERROR(cvc_tensor_create(cache, NULL, NULL, &tensor), CVC_STATUS_NULL_POINTER, "desc");
  CHECK_ERROR(cvc_tensor_create(cache, &desc, NULL, NULL), CVC_STATUS_NULL_POINTER, "tensor");
  CHECK_ERROR(cvc_tensor_desc_nbytes(&desc, NULL), CVC_STATUS_NULL_POINTER, "nbytes");
  cvc_image_t image = NULL;
  CHECK_ERROR(cvc_image_create(cache, NULL, NULL, &image), CVC_STATUS_NULL_POINTER, "desc");
  unchanged();
  tensor = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  remember();
  CHECK_ERROR(cvc_tensor_get_data(tensor, NULL), CVC_STATUS_NULL_POINTER, "data");
  CHECK_ERROR(cvc_tensor_get_id(tensor, NULL), CVC_STATUS_NULL_POINTER, "id");
  CHECK_ERROR(cvc_tensor_nbytes(tensor, NULL), CVC_STATUS_NULL_POINTER, "nbytes");
  CHECK_ERROR(cvc_tensor_last_stream(tensor, NULL), CVC_STATUS_NULL_POINTER, "stream");
  CHECK_ERROR(cvc_tensor_reshape(tensor, &desc, NULL), CVC_STATUS_NULL_POINTER, "view");
  unchanged();
  CHECK_OK(cvc_tensor_release(tensor));
}

static void released_handles_and_double_release(void) {
  cvc_tensor_t tensor = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  cvc_image_t image = image_of(4, 4, CVC_FORMAT_U8, CVC_STREAM_NONE);
  cvc_cache_t cache = NULL;
  uint64_t number = 0;
  CHECK_OK(cvc_cache_create(NULL, &cache));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_image_release(image));
  CHECK_OK(cvc_cache_release(cache));
  remember();
  CHECK_ERROR(cvc_tensor_release(tensor), CVC_STATUS_STALE_HANDLE, "tensor");
  CHECK_ERROR(cvc_tensor_retain(tensor), CVC_STATUS_STALE_HANDLE, "tensor");
  CHECK_ERROR(cvc_tensor_get_id(tensor, &number), CVC_STATUS_STALE_HANDLE, "tensor");
  CHECK_ERROR(cvc_fill_zero(NULL, tensor), CVC_STATUS_STALE_HANDLE, "tensor");
  CHECK_ERROR(cvc_op_flip(NULL, tensor, tensor, 0), CVC_STATUS_STALE_HANDLE, "src");
  CHECK_ERROR(cvc_image_release(image), CVC_STATUS_STALE_HANDLE, "image");
  CHECK_ERROR(cvc_cache_release(cache), CVC_STATUS_STALE_HANDLE, "cache");
  CHECK_ERROR(cvc_cache_bytes(cache, 0, &number), CVC_STATUS_STALE_HANDLE, "cache");
  unchanged();
  // A later object that reuses the slot is not reached by the old handle.
  cvc_tensor_t more[64];
  for (int i = 0; i < 64; ++i)
    more[i] = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  CHECK_STATUS(cvc_tensor_release(tensor), CVC_STATUS_STALE_HANDLE);
  for (int i = 0; i < 64; ++i)
    CHECK_OK(cvc_tensor_release(more[i]));
}

static void handles_of_another_kind(void) {
  cvc_tensor_t tensor = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  uint64_t number = 0;
  remember();
  CHECK_ERROR(cvc_image_release((cvc_image_t)(void *)tensor), CVC_STATUS_WRONG_KIND, "image", "tensor");
  CHECK_ERROR(cvc_image_get_id((cvc_image_t)(void *)tensor, &number), CVC_STATUS_WRONG_KIND, "image");
  CHECK_ERROR(cvc_image_batch_clear((cvc_image_batch_t)(void *)tensor), CVC_STATUS_WRONG_KIND, "batch",
              "tensor");
  CHECK_ERROR(cvc_cache_bytes((cvc_cache_t)(void *)tensor, 0, &number), CVC_STATUS_WRONG_KIND, "cache",
              "tensor");
  CHECK_ERROR(cvc_fill_zero(NULL, (cvc_tensor_t)(void *)check_default_cache()), CVC_STATUS_WRONG_KIND,
              "tensor", "cache");
  unchanged();
  CHECK_OK(cvc_tensor_release(tensor));
}

static cvc_status_t create(cvc_tensor_desc_t desc) {
  cvc_tensor_t tensor = BOGUS(cvc_tensor_t);
  cvc_status_t status = cvc_tensor_create(check_default_cache(), &desc, NULL, &tensor);
  CHECK(tensor == NULL);
  return status;
}

static void tensor_descriptions(void) {
  const int64_t shape[4] = {1, 4, 4, 3};
  const cvc_tensor_desc_t good = tensor_desc(CVC_DTYPE_U8, "NHWC", 4, shape);
  cvc_tensor_desc_t bad = good;
  remember();
  bad.rank = 0;
  CHECK_ERROR(create(bad), CVC_STATUS_INVALID_RANK, "desc.rank", "0");
  bad.rank = 16;
  CHECK_ERROR(create(bad), CVC_STATUS_INVALID_RANK, "desc.rank", "16");
  bad.rank = -3;
  CHECK_ERROR(create(bad), CVC_STATUS_INVALID_RANK, "desc.rank", "-3");
  bad = good;
  bad.shape[2] = -4;
  CHECK_ERROR(create(bad), CVC_STATUS_INVALID_SHAPE, "desc.shape[2]", "-4");
  bad = good;
  bad.shape[0] = bad.shape[1] = bad.shape[2] = INT64_MAX;
  CHECK_ERROR(create(bad), CVC_STATUS_OVERFLOW, "desc.shape", "9223372036854775807");
  bad = good;
  bad.shape[0] = (int64_t)1 << 62;
  CHECK_ERROR(create(bad), CVC_STATUS_OVERFLOW, "desc.shape", "4611686018427387904");
  bad = good;
  bad.dtype = 99;
  CHECK_ERROR(create(bad), CVC_STATUS_INVALID_ENUM, "desc.dtype", "0x63");
  bad.dtype = CVC_DTYPE_NONE;
  CHECK_ERROR(create(bad), CVC_STATUS_INVALID_ENUM, "desc.dtype", "0");
  bad = good;
  bad.flags = 1;
  CHECK_ERROR(create(bad), CVC_STATUS_INVALID_ENUM, "desc.flags", "0x1");
  bad = good;
  strcpy(bad.layout, "HWC");
  CHECK_ERROR(create(bad), CVC_STATUS_INVALID_LAYOUT, "desc.layout", "HWC");
  bad = good;
  memset(bad.layout, 'A', sizeof bad.layout);
  CHECK_ERROR(create(bad), CVC_STATUS_INVALID_LAYOUT, "desc.layout", "AAAA");
  bad = good;
  bad.row_align = 3;
  CHECK_ERROR(create(bad), CVC_STATUS_INVALID_ALIGNMENT, "desc.row_align", "3");
  bad = good;
  bad.base_align = -512;
  CHECK_ERROR(create(bad), CVC_STATUS_INVALID_ALIGNMENT, "desc.base_align", "-512");
  bad = good;
  bad.device = 64;
  CHECK_ERROR(create(bad), CVC_STATUS_INVALID_DEVICE,
              "desc.device is 64, expected -1 (the current one) or 0 to");
  bad = good;
  bad.struct_size = 0;
  CHECK_ERROR(create(bad), CVC_STATUS_INVALID_STRUCT_SIZE, "desc.struct_size", "0");
  bad.struct_size = (size_t)1 << 63;
  CHECK_ERROR(create(bad), CVC_STATUS_INVALID_STRUCT_SIZE, "desc.struct_size", "9223372036854775808");
  unchanged();
}

static int releases;
static void count_release(void *context) {
  (void)context;
  releases++;
}

static cvc_status_t wrap(cvc_tensor_data_t data) {
  cvc_tensor_t tensor = BOGUS(cvc_tensor_t);
  cvc_status_t status =
      cvc_tensor_wrap(check_default_cache(), &data, count_release, NULL, CVC_STREAM_NONE, &tensor);
  CHECK(tensor == NULL);
  return status;
}

static void wraps(void) {
  static unsigned char memory[1024];
  cvc_tensor_data_t good, bad;
  memset(&good, 0, sizeof good);
  good.struct_size = sizeof good;
  good.rank = 3;
  good.shape[0] = 4, good.shape[1] = 5, good.shape[2] = 3;
  good.strides[0] = 32, good.strides[1] = 3, good.strides[2] = 1;
  good.dtype = CVC_DTYPE_U8;
  strcpy(good.layout, "HWC");
  good.data = memory;
  remember();
  bad = good;
  bad.data = NULL;
  CHECK_ERROR(wrap(bad), CVC_STATUS_NULL_POINTER, "data.data");
  bad = good;
  bad.strides[0] = 14; // rows of 15 bytes
  CHECK_ERROR(wrap(bad), CVC_STATUS_INVALID_STRIDES, "data.strides[0]", "14");
  bad = good;
  bad.strides[0] = -32;
  CHECK_ERROR(wrap(bad), CVC_STATUS_INVALID_STRIDES, "data.strides[0]", "-32");
  bad = good;
  bad.strides[2] = 2;
  CHECK_ERROR(wrap(bad), CVC_STATUS_INVALID_STRIDES, "data.strides[2]", "2");
  bad = good;
  bad.shape[1] = 0;
  CHECK_ERROR(wrap(bad), CVC_STATUS_INVALID_SHAPE, "data.shape[1]", "0");
  bad = good;
  bad.shape[0] = INT64_MAX;
  CHECK_STATUS(wrap(bad), CVC_STATUS_OVERFLOW);
  bad = good;
  bad.dtype = CVC_DTYPE_F32;
  bad.data = memory + 1;
  bad.strides[0] = 64, bad.strides[1] = 12, bad.strides[2] = 4;
  CHECK_ERROR(wrap(bad), CVC_STATUS_INVALID_ALIGNMENT, "data.data");
  bad = good;
  bad.rank = 0;
  CHECK_ERROR(wrap(bad), CVC_STATUS_INVALID_RANK, "data.rank", "0");
  bad = good;
  bad.device = -2;
  CHECK_ERROR(wrap(bad), CVC_STATUS_INVALID_DEVICE,
              "data.device is -2, expected -1 (the current one) or 0 to");
  bad = good;
  bad.struct_size = 4;
  CHECK_ERROR(wrap(bad), CVC_STATUS_INVALID_STRUCT_SIZE, "data.struct_size", "4");
  CHECK_EQ(releases, 0); // memory that was not taken is not given back
  unchanged();
}

static void cache_arguments(void) {
  cvc_cache_t cache = check_default_cache(), other = NULL;
  uint64_t number = 0, limit = 0;
  cvc_cache_options_t options;
  cvc_cache_stats_t stats;
  CHECK_OK(cvc_cache_get_limit(cache, 0, &limit));
  CHECK_ERROR(cvc_cache_set_limit(cache, 0, -1), CVC_STATUS_INVALID_LIMIT, "bytes", "-1");
  CHECK_OK(cvc_cache_get_limit(cache, 0, &number));
  CHECK_EQ(number, limit);
  CHECK_ERROR(cvc_cache_clear(cache, 0, 2), CVC_STATUS_INVALID_ENUM, "scope", "2");
  CHECK_ERROR(cvc_cache_count(cache, 0, -1, &number), CVC_STATUS_INVALID_ENUM, "scope", "-1");
  CHECK_ERROR(cvc_cache_clear(cache, 64, CVC_SCOPE_GLOBAL), CVC_STATUS_INVALID_DEVICE, "device", "64");
  CHECK_ERROR(cvc_cache_trim(cache, -2, 0), CVC_STATUS_INVALID_DEVICE, "device", "-2");
  CHECK_ERROR(cvc_cache_reset_peak(cache, 64), CVC_STATUS_INVALID_DEVICE, "device", "64");
  memset(&stats, 0, sizeof stats);
  CHECK_ERROR(cvc_cache_stats(cache, 0, &stats), CVC_STATUS_INVALID_STRUCT_SIZE, "stats.struct_size", "0");
  memset(&options, 0, sizeof options);
  CHECK_ERROR(cvc_cache_create(&options, &other), CVC_STATUS_INVALID_STRUCT_SIZE, "options.struct_size", "0");
  options.struct_size = sizeof options;
  options.limit = -2;
  CHECK_ERROR(cvc_cache_create(&options, &other), CVC_STATUS_INVALID_LIMIT, "options.limit", "-2");
  options.limit = 0;
  options.flags = 4;
  CHECK_ERROR(cvc_cache_create(&options, &other), CVC_STATUS_INVALID_ENUM, "options.flags", "0x4");
  CHECK(other == NULL);
}

// A caller that was built against a later header has longer structs: what is not known here must be zero.
static void structs_of_other_versions(void) {
  struct {
    cvc_tensor_desc_t desc;
    uint64_t later;
  } longer;
  const int64_t shape[4] = {1, 4, 4, 3};
  memset(&longer, 0, sizeof longer);
  longer.desc = tensor_desc(CVC_DTYPE_U8, "NHWC", 4, shape);
  longer.desc.struct_size = sizeof longer;
  cvc_tensor_t tensor = NULL;
  CHECK_OK(cvc_tensor_create(check_default_cache(), &longer.desc, NULL, &tensor));
  CHECK_OK(cvc_tensor_release(tensor));
  longer.later = 1;
  CHECK_ERROR(cvc_tensor_create(check_default_cache(), &longer.desc, NULL, &tensor),
              CVC_STATUS_INVALID_STRUCT_SIZE, "desc.struct_size");
  CHECK(tensor == NULL);
}

static void tensors_of_two_devices(void) {
  if (!two_devices())
    return;
  const int64_t shape[4] = {1, 4, 4, 3};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "NHWC", 4, shape);
  cvc_tensor_t near = NULL, far = NULL;
  desc.device = 0;
  CHECK_OK(cvc_tensor_create(check_default_cache(), &desc, CVC_STREAM_NONE, &near));
  desc.device = 1;
  CHECK_OK(cvc_tensor_create(check_default_cache(), &desc, CVC_STREAM_NONE, &far));
  cvc_stream_t stream = new_stream();
  CHECK_ERROR(cvc_op_flip(stream, near, far, 0), CVC_STATUS_DEVICE_MISMATCH, "dst", "device 1", "device 0");
  CHECK_ERROR(cvc_op_reformat(stream, near, far), CVC_STATUS_DEVICE_MISMATCH, "dst");
  CHECK_ERROR(cvc_op_convert_to(stream, near, far, 1, 0, CVC_ROUND_NEAREST), CVC_STATUS_DEVICE_MISMATCH,
              "dst");
  CHECK_ERROR(cvc_op_pillow_resize(stream, near, far, CVC_FILTER_BOX, 0), CVC_STATUS_DEVICE_MISMATCH, "dst");
  CHECK_ERROR(cvc_copy(stream, near, far), CVC_STATUS_DEVICE_MISMATCH, "dst");
  CHECK_ERROR(cvc_op_flip(stream, far, far, 0), CVC_STATUS_DEVICE_MISMATCH, "stream", "device 0", "device 1");
  CHECK_ERROR(cvc_tensor_begin_access(far, stream, CVC_ACCESS_READ), CVC_STATUS_DEVICE_MISMATCH, "stream");
  CHECK_OK(cvc_stream_destroy(stream));
  CHECK_OK(cvc_tensor_release(near));
  CHECK_OK(cvc_tensor_release(far));
}

static void more_memory_than_there_is(void) {
  cvc_device_info_t info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  CHECK_OK(cvc_device_get_info(0, &info));
  const int64_t shape[1] = {(int64_t)info.total_memory + (1 << 20)};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "", 1, shape);
  remember();
  char bytes[32];
  snprintf(bytes, sizeof bytes, "%lld", (long long)shape[0]);
  CHECK_ERROR(create(desc), CVC_STATUS_OUT_OF_MEMORY, bytes);
  unchanged();
  cvc_tensor_t tensor = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, CVC_STREAM_NONE); // and the library goes on
  CHECK_OK(cvc_tensor_release(tensor));
}

// A forked child gets an error, and may still release what it inherited.
static void a_forked_child(void) {
  cvc_tensor_t tensor = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    const int64_t shape[1] = {4};
    cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "", 1, shape);
    cvc_cache_t cache = NULL;
    cvc_tensor_t other = NULL;
    cvc_stream_t stream = NULL;
    int failed = 0;
    if (cvc_cache_default(&cache) == CVC_STATUS_OK)
      failed |= cvc_tensor_create(cache, &desc, NULL, &other) != CVC_STATUS_FORKED;
    failed |= (cvc_stream_create(0, 0, &stream) != CVC_STATUS_FORKED) << 1;
    failed |= (cvc_fill_zero(NULL, tensor) != CVC_STATUS_FORKED) << 2;
    failed |= (cvc_tensor_release(tensor) != CVC_STATUS_OK) << 3;
    _exit(failed);
  }
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 0);
  CHECK_OK(cvc_tensor_release(tensor)); // the parent's own
}

static int no_driver(void) {
  cvc_cache_t cache = NULL;
  cvc_backend_t backend = 0;
  cvc_stream_t stream = NULL;
  if (dlopen("libcuda.so.1",
             RTLD_NOW | RTLD_LOCAL)) { // there is one: it is used, or it fails, but never the host
    cvc_status_t status = cvc_backend(&backend);
    CHECK(status == CVC_STATUS_OK ? backend == CVC_BACKEND_CUDA : status >= CVC_STATUS_NO_DRIVER);
    return CHECK_END();
  }
  CHECK_ERROR(cvc_backend(&backend), CVC_STATUS_NO_DRIVER, "libcuda");
  CHECK_STATUS(cvc_stream_create(0, 0, &stream), CVC_STATUS_NO_DRIVER);
  cvc_status_t status = cvc_cache_default(&cache);
  CHECK(status == CVC_STATUS_NO_DRIVER || status == CVC_STATUS_OK);
  return CHECK_END();
}

int main(int argc, char **argv) {
  CHECK_BEGIN();
  if (argc > 1 && strcmp(argv[1], "no-driver") == 0)
    return no_driver();
  RUN(texts_of_statuses);
  RUN(the_last_message_of_any_length);
  RUN(null_handles);
  RUN(null_results);
  RUN(released_handles_and_double_release);
  RUN(handles_of_another_kind);
  RUN(tensor_descriptions);
  RUN(wraps);
  RUN(cache_arguments);
  RUN(structs_of_other_versions);
  RUN(tensors_of_two_devices);
  RUN(more_memory_than_there_is);
  RUN(a_forked_child);
  return CHECK_END();
}

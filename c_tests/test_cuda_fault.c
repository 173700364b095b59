// A kernel of somebody else faults in the primary context: every call says so from then on, releases succeed,
// and nothing hangs. CUDA only.
//
// A fault can be had once in a process, so each is in a child of its own: `test_cuda_fault KERNEL FIRST`
// faults by that kernel and then makes the call of that name first.
#include "children.h"
#include "cuda_fixtures.h"

#include <pthread.h>

// What the calls below use: made before the fault, given back after it.
static struct {
  cvc_cache_t cache, other_cache;
  cvc_stream_t stream, second, registered;
  cvc_event_t event;
  cvc_tensor_t src, dst, wrapped;
  cvc_image_t image;
  cvc_image_batch_t batch;
  cvc_tensor_desc_t known;
  unsigned char *pinned, *foreign;
} here;

static cvc_status_t create(int64_t width) {
  cvc_tensor_desc_t desc = here.known;
  desc.shape[2] = width;
  cvc_tensor_t tensor = NULL;
  cvc_status_t status = cvc_tensor_create(here.cache, &desc, here.stream, &tensor);
  CHECK((tensor != NULL) == (status == CVC_STATUS_OK));
  return status;
}

static cvc_status_t create_hit(void) { return create(here.known.shape[2]); }
static cvc_status_t create_miss(void) { return create(4001); }

static cvc_status_t create_image(void) {
  cvc_image_desc_t desc;
  cvc_image_t image = NULL;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.format = CVC_FORMAT_RGB8;
  desc.width = desc.height = 32;
  return cvc_image_create(here.cache, &desc, here.stream, &image);
}

static cvc_status_t create_batch(void) {
  cvc_image_batch_t batch = NULL;
  return cvc_image_batch_create(here.cache, 0, 4, here.stream, &batch);
}

static cvc_status_t wrap(void) {
  cvc_tensor_t tensor = NULL;
  return wrap_bytes(here.foreign, 0, &tensor);
}

static cvc_status_t flip(void) { return cvc_op_flip(here.stream, here.src, here.dst, 0); }
static cvc_status_t flip_on_legacy(void) { return cvc_op_flip(CVC_STREAM_LEGACY, here.src, here.dst, 0); }
static cvc_status_t flip_new(void) {
  cvc_tensor_t tensor = NULL;
  return cvc_op_flip_new(here.stream, here.src, 1, &tensor);
}
static cvc_status_t convert_to(void) {
  return cvc_op_convert_to(here.stream, here.src, here.dst, 2, 0, CVC_ROUND_NEAREST);
}
static cvc_status_t resize_new(void) {
  cvc_tensor_t tensor = NULL;
  return cvc_op_pillow_resize_new(here.stream, here.src, 5, 5, CVC_FILTER_LINEAR, 0, &tensor);
}
static cvc_status_t copy(void) { return cvc_copy(here.stream, here.src, here.dst); }
static cvc_status_t upload(void) { return cvc_upload(here.stream, here.pinned, NULL, here.dst); }
static cvc_status_t download(void) { return cvc_download(here.stream, here.src, here.pinned, NULL); }
static cvc_status_t fill_zero(void) { return cvc_fill_zero(here.registered, here.dst); }
static cvc_status_t batch_data(void) {
  cvc_image_batch_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  return cvc_image_batch_get_data(here.batch, here.stream, &data);
}

static cvc_status_t stream_query(void) { return cvc_stream_query(here.stream); }
static cvc_status_t stream_synchronize(void) { return cvc_stream_synchronize(here.stream, -1); }
static cvc_status_t stream_synchronize_in_time(void) { return cvc_stream_synchronize(here.second, 1000000); }
static cvc_status_t stream_wait_stream(void) { return cvc_stream_wait_stream(here.second, here.stream); }
static cvc_status_t stream_wait_event(void) { return cvc_stream_wait_event(here.second, here.event); }
static cvc_status_t stream_create(void) {
  cvc_stream_t stream = NULL;
  return cvc_stream_create(0, 0, &stream);
}
static cvc_status_t event_create(void) {
  cvc_event_t event = NULL;
  return cvc_event_create(0, 0, &event);
}
static cvc_status_t event_record(void) { return cvc_event_record(here.event, here.stream); }
static cvc_status_t event_query(void) { return cvc_event_query(here.event); }
static cvc_status_t event_synchronize(void) { return cvc_event_synchronize(here.event, -1); }

static cvc_status_t begin_access(void) {
  return cvc_tensor_begin_access(here.dst, here.second, CVC_ACCESS_WRITE);
}
static cvc_status_t tensor_synchronize(void) { return cvc_tensor_synchronize(here.dst, -1); }
static cvc_status_t clear(void) { return cvc_cache_clear(here.cache, 0, CVC_SCOPE_GLOBAL); }
static cvc_status_t trim(void) { return cvc_cache_trim(here.cache, 0, 0); }
static cvc_status_t cache_synchronize(void) { return cvc_cache_synchronize(here.cache, 0, -1); }
static cvc_status_t stats(void) {
  cvc_cache_stats_t result;
  memset(&result, 0, sizeof result);
  result.struct_size = sizeof result;
  return cvc_cache_stats(here.cache, 0, &result);
}
static cvc_status_t device_synchronize(void) { return cvc_device_synchronize(0, -1); }
static cvc_status_t device_set_current(void) { return cvc_device_set_current(0); }

static const struct {
  const char *name;
  cvc_status_t (*make)(void);
  // It asks the driver about work, and so is the first to hear of the fault where no other call was made
  // since.
  int notices;
} calls[] = {
    {"stream_synchronize", stream_synchronize, 1},
    {"stream_query", stream_query, 1},
    {"flip", flip, 1},
    {"flip_on_legacy", flip_on_legacy, 1},
    {"upload", upload, 1},
    {"fill_zero", fill_zero, 1},
    {"event_record", event_record, 1},
    {"tensor_synchronize", tensor_synchronize, 1},
    {"device_synchronize", device_synchronize, 1},
    {"create_hit", create_hit, 0},
    {"create_miss", create_miss, 0},
    {"create_image", create_image, 0},
    {"create_batch", create_batch, 0},
    {"wrap", wrap, 0},
    {"flip_new", flip_new, 0},
    {"convert_to", convert_to, 0},
    {"resize_new", resize_new, 0},
    {"copy", copy, 0},
    {"download", download, 0},
    {"batch_data", batch_data, 0},
    {"stream_synchronize_in_time", stream_synchronize_in_time, 0},
    {"stream_wait_stream", stream_wait_stream, 0},
    {"stream_wait_event", stream_wait_event, 0},
    {"stream_create", stream_create, 0},
    {"event_create", event_create, 0},
    {"event_query", event_query, 0},
    {"event_synchronize", event_synchronize, 0},
    {"begin_access", begin_access, 0},
    {"clear", clear, 0},
    {"trim", trim, 0},
    {"cache_synchronize", cache_synchronize, 0},
    {"stats", stats, 0},
    {"device_set_current", device_set_current, 0},
};
#define CALLS (sizeof calls / sizeof calls[0])

static void set_up(struct driver *cuda) {
  here.cache = check_default_cache();
  REQUIRE_OK(cvc_cache_create(NULL, &here.other_cache));
  here.stream = new_stream();
  here.second = new_stream();
  here.registered = foreign_stream(cuda, CUDA_NON_BLOCKING);
  REQUIRE_OK(cvc_stream_register(0, here.registered, 0));
  REQUIRE_OK(cvc_event_create(0, 0, &here.event));
  here.pinned = pinned_memory(192);
  here.foreign = foreign_memory(64);
  here.src = nhwc(1, 8, 8, 3, CVC_DTYPE_U8, here.stream);
  here.dst = nhwc(1, 8, 8, 3, CVC_DTYPE_U8, here.stream);
  REQUIRE_OK(wrap_bytes(here.foreign, 0, &here.wrapped));
  here.image = image_of(16, 16, CVC_FORMAT_RGB8, here.stream);
  REQUIRE_OK(cvc_image_batch_create(here.cache, 0, 4, here.stream, &here.batch));
  REQUIRE_OK(cvc_image_batch_push(here.batch, &here.image, 1));
  // Idle, so that a creation of this shape is a hit that needs no driver; twice, so that all shortcuts know
  // it.
  const int64_t shape[4] = {1, 16, 24, 3};
  here.known = tensor_desc(CVC_DTYPE_U8, "NHWC", 4, shape);
  here.known.device = 0;
  for (int i = 0; i < 2; ++i) {
    cvc_tensor_t tensor = NULL;
    REQUIRE_OK(cvc_tensor_create(here.cache, &here.known, here.stream, &tensor));
    REQUIRE_OK(cvc_tensor_release(tensor));
  }
  REQUIRE_OK(cvc_fill_zero(here.stream, here.src));
  REQUIRE_OK(cvc_fill_zero(here.stream, here.dst));
  REQUIRE_OK(cvc_event_record(here.event, here.stream));
}

static int says_lost(size_t index) {
  cvc_status_t status = calls[index].make();
  int good = status == CVC_STATUS_CONTEXT_LOST && strstr(check_message(), "context of device 0 is lost") &&
             strstr(check_message(), "first cause");
  if (!CHECK(good))
    fprintf(stderr, "  %s gave %s (%s)\n", calls[index].name, cvc_status_string(status), check_message());
  return good;
}

static void *all_say_lost(void *unused) {
  for (size_t i = 0; i < CALLS; ++i)
    says_lost(i);
  return unused;
}

// A fault of one device's context ends all others of the process too (driver 580.159.04, on two H200: even a
// context that was made before gives the fault's code to every call), so the library cannot do more than say
// so.
static void the_other_device_works_or_says_lost(void) {
  const int64_t shape[4] = {1, 8, 8, 3};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "NHWC", 4, shape);
  cvc_stream_t stream = NULL;
  cvc_tensor_t tensor = NULL;
  unsigned char in[192], out[192];
  desc.device = 1;
  fill_noise(in, sizeof in, 1);
  if (cvc_stream_create(1, 0, &stream) != CVC_STATUS_OK) {
    CHECK_STATUS(cvc_stream_create(1, 0, &stream), CVC_STATUS_CONTEXT_LOST);
    CHECK_STATUS(cvc_tensor_create(here.cache, &desc, CVC_STREAM_NONE, &tensor), CVC_STATUS_CONTEXT_LOST);
    CHECK(stream == NULL && tensor == NULL);
    return;
  }
  REQUIRE_OK(cvc_tensor_create(here.cache, &desc, stream, &tensor));
  put(stream, tensor, in);
  CHECK_OK(cvc_op_flip(stream, tensor, tensor, 0));
  CHECK_OK(cvc_op_flip(stream, tensor, tensor, 0));
  take(stream, tensor, out);
  CHECK(memcmp(in, out, sizeof in) == 0);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_cache_clear(here.cache, 1, CVC_SCOPE_GLOBAL));
  CHECK_OK(cvc_stream_destroy(stream));
}

static int child(const char *kernel, const char *first) {
  struct driver *cuda = cuda_driver();
  set_up(cuda);
  cvc_stream_t stream = foreign_stream(cuda, CUDA_NON_BLOCKING);
  void *function = load_kernel(cuda, kernel);
  launch_one_thread(cuda, function, stream, NULL);
  int code = cuda->context_synchronize();
  driver_require(code != 0, "a fault");
  printf("%s gives %d\n", kernel, code);

  for (size_t i = 0; i < CALLS; ++i)
    if (strcmp(calls[i].name, first) == 0)
      says_lost(i);
  all_say_lost(NULL);
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, all_say_lost, NULL), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);

  CHECK_OK(cvc_tensor_release(here.src));
  CHECK_STATUS(cvc_tensor_release(here.src), CVC_STATUS_STALE_HANDLE);
  CHECK_OK(cvc_tensor_release(here.dst));
  CHECK_OK(cvc_tensor_release(here.wrapped));
  CHECK_OK(cvc_image_release(here.image));
  CHECK_OK(cvc_image_batch_release(here.batch));
  CHECK_OK(cvc_cache_release(here.other_cache));
  CHECK_OK(cvc_event_destroy(here.event));
  CHECK_OK(cvc_stream_unregister(here.registered));
  CHECK_OK(cvc_stream_destroy(here.stream));
  CHECK_OK(cvc_stream_destroy(here.second));
  CHECK_OK(cvc_cache_thread_detach(here.cache));
  CHECK_STATUS(stream_create(), CVC_STATUS_CONTEXT_LOST);
  CHECK_STATUS(stats(), CVC_STATUS_CONTEXT_LOST);
  if (two_devices())
    the_other_device_works_or_says_lost();
  return CHECK_END();
}

int main(int argc, char **argv) {
  CHECK_BEGIN();
  if (on_host())
    return 77;
  if (argc == 3)
    return child(argv[1], argv[2]);
  const char *kernels[] = {"store_nowhere", "stop"};
  for (size_t i = 0; i < CALLS && calls[i].notices; ++i) {
    const char *kernel = kernels[i % 2];
    int status = child_status(start_child(own_path(argv[0]), kernel, calls[i].name, 120));
    CHECK_EQ(status, 0);
    printf("%s, then %s: %s\n", kernel, calls[i].name, status == 0 ? "ok" : "FAILED");
  }
  return CHECK_END();
}

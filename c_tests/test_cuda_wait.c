// Nothing but what says so waits for running work: look-ups, hit or miss, and each operator's first launch
// return while another stream is busy. CUDA only.
//
// The longest call is printed, and not judged: what counts is that the other stream's work is still running
// after all.
#include "cuda_fixtures.h"

#include <time.h>

#define CALLS 128

static struct {
  const char *name;
  double milliseconds;
} timed[CALLS];
static size_t timed_count;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void note_time(const char *name, double milliseconds) {
  if (timed_count < CALLS) {
    timed[timed_count].name = name;
    timed[timed_count++].milliseconds = milliseconds;
  }
}

#define TIMED(call)                                                                                          \
  do {                                                                                                       \
    double before = now();                                                                                   \
    cvc_status_t status = (call);                                                                            \
    note_time(#call, now() - before);                                                                        \
    check_status(status, CVC_STATUS_OK, #call, __FILE__, __LINE__);                                          \
  } while (0)

static int longest_first(const void *a, const void *b) {
  double x = timed[*(const size_t *)a].milliseconds, y = timed[*(const size_t *)b].milliseconds;
  return (x < y) - (x > y);
}

static void print_longest(const char *what) {
  size_t order[CALLS];
  for (size_t i = 0; i < timed_count; ++i)
    order[i] = i;
  qsort(order, timed_count, sizeof order[0], longest_first);
  printf("%s: %zu calls, the longest\n", what, timed_count);
  for (size_t i = 0; i < timed_count && i < 6; ++i)
    printf("  %8.3f ms  %s\n", timed[order[i]].milliseconds, timed[order[i]].name);
  timed_count = 0;
}

// Runs what is given while a stream of another user is busy; only the test ends that, or twenty seconds.
static void beside_running_work(const char *what, void (*calls)(cvc_stream_t, cvc_stream_t)) {
  struct driver *cuda = cuda_driver();
  cvc_stream_t busy = foreign_stream(cuda, CUDA_NON_BLOCKING);
  cvc_stream_t stream = new_stream(), second = new_stream();
  *spin(cuda, busy, 0) = 1; // loads the kernel
  DRIVER(cuda->stream_synchronize(busy));
  uint32_t *word = spin(cuda, busy, 20ull * 1000 * 1000 * 1000);
  double start = now();
  calls(stream, second);
  double all = now() - start;
  CHECK_EQ(cuda->stream_query(busy), CUDA_NOT_READY);
  __atomic_store_n(word, 1u, __ATOMIC_RELEASE);
  DRIVER(cuda->stream_synchronize(busy));
  print_longest(what);
  printf("  %8.3f ms  all of them and the test\n", all);
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK_OK(cvc_stream_synchronize(second, -1));
  DRIVER(cuda->stream_destroy(busy));
  CHECK_OK(cvc_stream_destroy(stream));
  CHECK_OK(cvc_stream_destroy(second));
}

static void look_ups(cvc_stream_t stream, cvc_stream_t second) {
  const int64_t sides[] = {8, 64, 600, 1100, 5000, 10000};
  cvc_cache_t cache = check_default_cache();
  cvc_tensor_t tensor = NULL;
  for (size_t i = 0; i < sizeof sides / sizeof sides[0]; ++i) {
    cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "HWC", 3, (const int64_t[]){sides[i], sides[i], 3});
    TIMED(cvc_tensor_create(cache, &desc, stream, &tensor)); // a miss
    TIMED(cvc_fill_zero(stream, tensor));
    TIMED(cvc_tensor_release(tensor));
    TIMED(cvc_tensor_create(cache, &desc, stream, &tensor)); // a hit
    TIMED(cvc_tensor_release(tensor));
    TIMED(cvc_tensor_create(cache, &desc, second, &tensor)); // what is pending elsewhere is of no use
    TIMED(cvc_tensor_release(tensor));
    TIMED(cvc_tensor_create(cache, &desc, CVC_STREAM_NONE, &tensor));
    TIMED(cvc_tensor_release(tensor));
  }
  cvc_image_desc_t image;
  memset(&image, 0, sizeof image);
  image.struct_size = sizeof image;
  image.format = CVC_FORMAT_NV12;
  image.width = image.height = 512;
  cvc_image_t made = NULL;
  cvc_image_batch_t batch = NULL;
  TIMED(cvc_image_create(cache, &image, stream, &made));
  TIMED(cvc_image_batch_create(cache, 0, 8, stream, &batch));
  TIMED(cvc_image_batch_release(batch));
  TIMED(cvc_image_release(made));
  TIMED(cvc_cache_trim(cache, 0, 0));
}

static void first_launches(cvc_stream_t stream, cvc_stream_t second) {
  cvc_tensor_t src = nhwc(2, 480, 640, 3, CVC_DTYPE_U8, stream), dst = NULL;
  cvc_normalize_params_t params;
  memset(&params, 0, sizeof params);
  params.struct_size = sizeof params;
  params.base_count = params.scale_count = 1;
  params.scale_values[0] = params.global_scale = 1;
  params.dst_dtype = CVC_DTYPE_F32;
  TIMED(cvc_fill_zero(stream, src));
  for (int32_t code = -1; code <= 1; ++code) {
    TIMED(cvc_op_flip_new(stream, src, code, &dst));
    TIMED(cvc_tensor_release(dst));
  }
  TIMED(cvc_op_convert_to_new(stream, src, CVC_DTYPE_F32, 2, 1, CVC_ROUND_NEAREST, &dst));
  TIMED(cvc_tensor_release(dst));
  TIMED(cvc_op_normalize_new(stream, src, &params, &dst));
  TIMED(cvc_tensor_release(dst));
  TIMED(cvc_op_reformat_new(stream, src, "NCHW", &dst));
  TIMED(cvc_tensor_release(dst));
  const cvc_filter_t filters[] = {CVC_FILTER_NEAREST, CVC_FILTER_LINEAR, CVC_FILTER_CUBIC,
                                  CVC_FILTER_LANCZOS};
  for (size_t i = 0; i < 4; ++i) {
    TIMED(cvc_op_pillow_resize_new(stream, src, 224, 224, filters[i], 0, &dst));
    TIMED(cvc_tensor_release(dst));
    TIMED(cvc_op_pillow_resize_new(stream, src, 960, 1280, filters[i], 0, &dst));
    TIMED(cvc_op_flip(second, dst, dst, 0)); // waits for the first stream, on the GPU
    TIMED(cvc_tensor_release(dst));
  }
  TIMED(cvc_tensor_release(src));
}

static void images(cvc_stream_t stream, cvc_stream_t second) {
  (void)second;
  cvc_image_t image = image_of(320, 200, CVC_FORMAT_RGB8, stream);
  cvc_tensor_t tensor = NULL;
  cvc_image_batch_t src = NULL, dst = NULL;
  const int32_t sizes[2] = {160, 100};
  cvc_normalize_params_t params;
  memset(&params, 0, sizeof params);
  params.struct_size = sizeof params;
  params.base_count = params.scale_count = 1;
  params.scale_values[0] = params.global_scale = 1;
  cvc_tensor_desc_t codes = tensor_desc(CVC_DTYPE_S32, "", 1, (const int64_t[]){1});
  TIMED(cvc_tensor_create(check_default_cache(), &codes, stream, &tensor));
  TIMED(cvc_fill_zero(stream, tensor));
  TIMED(cvc_image_batch_create(check_default_cache(), 0, 1, stream, &src));
  TIMED(cvc_image_batch_push(src, &image, 1));
  TIMED(cvc_op_flip_var_shape_new(stream, src, tensor, &dst));
  TIMED(cvc_image_batch_release(dst));
  TIMED(cvc_op_pillow_resize_var_shape_new(stream, src, sizes, 1, CVC_FILTER_LINEAR, 0, &dst));
  TIMED(cvc_image_batch_release(dst));
  TIMED(cvc_op_normalize_var_shape_new(stream, src, &params, CVC_FORMAT_RGBF32, &dst));
  TIMED(cvc_image_batch_release(dst));
  TIMED(cvc_image_batch_release(src));
  TIMED(cvc_image_release(image));
  TIMED(cvc_tensor_release(tensor));
}

static void look_ups_do_not_wait(void) { beside_running_work("look-ups", look_ups); }
static void first_launches_do_not_wait(void) { beside_running_work("first launches", first_launches); }
static void batches_do_not_wait(void) { beside_running_work("batches of images", images); }

int main(void) {
  CHECK_BEGIN();
  // Streams that share one of the device's queues would wait for each other's work.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  if (on_host())
    return 77;
  RUN(look_ups_do_not_wait);
  RUN(first_launches_do_not_wait);
  RUN(batches_do_not_wait);
  return CHECK_END();
}

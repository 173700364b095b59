// Times what calls cost the calling thread on the GPU, from C: one line a call, nanoseconds, the median of 41
// groups of 64 calls. The queue is drained between groups, outside of the time. As in programs that use CUDA
// themselves, the device's primary context is current; the last lines show what it costs where none is.
#include <cvc.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { groups = 41, calls = 64 };

static void check(cvc_status_t status, const char *what) {
  if (status == CVC_STATUS_OK)
    return;
  char message[512] = "";
  cvc_last_error_message(message, sizeof message, NULL);
  fprintf(stderr, "%s: %s: %s\n", what, cvc_status_string(status), message);
  exit(1);
}

#define CHECK(call) check((call), #call)

static cvc_cache_t cache;
static cvc_stream_t stream;

static cvc_tensor_t create(int32_t dtype, const char *layout, int64_t n, int64_t a, int64_t b, int64_t c) {
  cvc_tensor_desc_t desc;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.device = CVC_DEVICE_CURRENT;
  desc.rank = 4;
  desc.shape[0] = n;
  desc.shape[1] = a;
  desc.shape[2] = b;
  desc.shape[3] = c;
  desc.dtype = dtype;
  strcpy(desc.layout, layout);
  cvc_tensor_t tensor;
  CHECK(cvc_tensor_create(cache, &desc, stream, &tensor));
  return tensor;
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int ascending(const void *one, const void *other) {
  const double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

static void report(const char *name, void (*work)(void)) {
  double times[groups];
  for (int group = -3; group < groups; ++group) {
    const int64_t begin = now();
    for (int i = 0; i < calls; ++i)
      work();
    const int64_t end = now();
    CHECK(cvc_stream_synchronize(stream, -1));
    if (group >= 0)
      times[group] = (double)(end - begin) / calls;
  }
  qsort(times, groups, sizeof times[0], ascending);
  printf("%-58s %9.0f ns\n", name, times[groups / 2]);
  fflush(stdout);
}

static cvc_tensor_t small, frame, resized, flipped, floats, normal, planar;
static cvc_normalize_params_t normalize;

static void create_and_release(void) {
  CHECK(cvc_tensor_release(create(CVC_DTYPE_U8, "NHWC", 1, 1080, 1920, 3)));
}

static void flip_new(void) {
  cvc_tensor_t result;
  CHECK(cvc_op_flip_new(stream, small, 1, &result));
  CHECK(cvc_tensor_release(result));
}

static void flip(void) { CHECK(cvc_op_flip(stream, resized, flipped, 1)); }

static void five_calls(void) {
  CHECK(cvc_op_pillow_resize(stream, frame, resized, CVC_FILTER_LINEAR, 0));
  CHECK(cvc_op_flip(stream, resized, flipped, 1));
  CHECK(cvc_op_convert_to(stream, flipped, floats, 1.0 / 255, 0, CVC_ROUND_NEAREST));
  CHECK(cvc_op_normalize(stream, floats, normal, &normalize));
  CHECK(cvc_op_reformat(stream, normal, planar));
}

static void fused(void) {
  cvc_preprocess_params_t params;
  memset(&params, 0, sizeof params);
  params.struct_size = sizeof params;
  params.flags = CVC_PREPROCESS_FLIP;
  params.flip_code = 1;
  params.filter = CVC_FILTER_LINEAR;
  params.convert_dtype = CVC_DTYPE_F32;
  params.alpha = 1.0 / 255;
  params.normalize = &normalize;
  CHECK(cvc_op_preprocess(stream, frame, planar, &params));
}

static void five_calls_new(void) {
  cvc_tensor_t a, b, c, d, e;
  CHECK(cvc_op_pillow_resize_new(stream, frame, 224, 224, CVC_FILTER_LINEAR, 0, &a));
  CHECK(cvc_op_flip_new(stream, a, 1, &b));
  CHECK(cvc_op_convert_to_new(stream, b, CVC_DTYPE_F32, 1.0 / 255, 0, CVC_ROUND_NEAREST, &c));
  CHECK(cvc_op_normalize_new(stream, c, &normalize, &d));
  CHECK(cvc_op_reformat_new(stream, d, "NCHW", &e));
  const cvc_tensor_t made[] = {a, b, c, d, e};
  for (int i = 0; i < 5; ++i)
    CHECK(cvc_tensor_release(made[i]));
}

// Makes device 0's primary context current, or none.
static void make_current(int wanted) {
  static void *library, *context;
  if (!library) {
    library = dlopen("libcuda.so.1", RTLD_NOW);
    int (*retain)(void **, int);
    *(void **)&retain = library ? dlsym(library, "cuDevicePrimaryCtxRetain") : NULL;
    if (!retain || retain(&context, 0)) {
      fprintf(stderr, "there is no CUDA driver: these are times of the host backend\n");
      return;
    }
  }
  int (*set)(void *);
  *(void **)&set = dlsym(library, "cuCtxSetCurrent");
  if (context && (!set || set(wanted ? context : NULL))) {
    fprintf(stderr, "cuCtxSetCurrent failed\n");
    exit(1);
  }
}

int main(void) {
  CHECK(cvc_cache_default(&cache));
  CHECK(cvc_stream_create(CVC_DEVICE_CURRENT, 0, &stream));
  small = create(CVC_DTYPE_U8, "NHWC", 1, 16, 16, 3);
  frame = create(CVC_DTYPE_U8, "NHWC", 1, 1080, 1920, 3);
  resized = create(CVC_DTYPE_U8, "NHWC", 1, 224, 224, 3);
  flipped = create(CVC_DTYPE_U8, "NHWC", 1, 224, 224, 3);
  floats = create(CVC_DTYPE_F32, "NHWC", 1, 224, 224, 3);
  normal = create(CVC_DTYPE_F32, "NHWC", 1, 224, 224, 3);
  planar = create(CVC_DTYPE_F32, "NCHW", 1, 3, 224, 224);
  CHECK(cvc_fill_zero(stream, small));
  CHECK(cvc_fill_zero(stream, frame));
  memset(&normalize, 0, sizeof normalize);
  normalize.struct_size = sizeof normalize;
  normalize.base_count = normalize.scale_count = 1;
  normalize.base_values[0] = 0.45f;
  normalize.scale_values[0] = 4.4f;
  normalize.global_scale = 1;
  make_current(1);
  report("tensor 1080x1920x3 created and released, a hit", create_and_release);
  report("flip_new of 16x16x3, its output from the cache", flip_new);
  report("flip of 224x224x3", flip);
  report("chain of five calls, 1080p -> 224, outputs given", five_calls);
  report("chain of five calls, outputs from the cache", five_calls_new);
  report("the chain as one preprocess, output given", fused);
  make_current(0);
  report("flip_new of 16x16x3, no context current", flip_new);
  report("chain of five calls, no context current", five_calls);
  return 0;
}

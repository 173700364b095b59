// Parameter blocks and per-element arithmetic of the normalize kernels, for the host and the GPU build.
#ifndef CVC_NORMALIZE_CUH
#define CVC_NORMALIZE_CUH

#include <stdint.h>

#include "runs.cuh"
#include "saturate.cuh"
#include "view.cuh"

// What both kernels subtract and multiply by. Base and scale each come from an F32 tensor in device memory,
// whose strides are 0 where it is broadcast, or from the values here, where the view's `data` is 0.
struct cvc_normalize_values {
  cvc_view base;
  cvc_view scale;
  double scale_values_double[4]; // as scale_values, computed in double, for double arithmetic
  float base_values[4];          // channel c takes entry c % 4: one value is repeated four times
  float scale_values[4];         // already 1 / sqrt(scale^2 + epsilon) where the caller gave deviations
  float global_scale;
  float global_shift;
  float epsilon;
  uint32_t
      scale_is_deviation; // 1: `scale`'s tensor holds deviations; the values above are never inverted again
  uint32_t src_kind;      // cvc_kind: U8, S8, U16, S16, S32, F16, F32 or F64
  uint32_t dst_kind;
};

// Kernel `cvc_normalize`: one batch of equally sized images. A work item is a row: item i is row i % height,
// with all its channels, of image i / height. The views share no byte, or are the same view of elements of
// one size.
struct cvc_normalize_params {
  cvc_view src;
  cvc_view dst;
  int64_t images;
  int64_t channels;
  int64_t height;
  int64_t width;
  cvc_normalize_values values;
  cvc_run_plan plan; // of the GPU build, see `cvc_normalize_plan`
};

// One image (or some of its planes, where they are not equally spaced) of the var-shape form. stride_n of the
// views is not used.
struct cvc_normalize_image {
  cvc_view src;
  cvc_view dst;
  int64_t first_item; // how many rows the entries before this one have
  int32_t width;
  int32_t height;
  int32_t channels;
  int32_t first_channel; // the channel, for base and scale, of this entry's first one
  int32_t image_index;   // the index n of base and scale
  int32_t reserved;
};

constexpr int cvc_normalize_max_images = 34;

// Kernel `cvc_normalize_var_shape`: images of any sizes. A work item is a row of one image.
struct cvc_normalize_var_shape_params {
  cvc_normalize_values values;
  int32_t count;
  int32_t reserved;
  cvc_normalize_image images[cvc_normalize_max_images];
};

static_assert(sizeof(cvc_normalize_values) == 168, "the Rust mirror has this size");
static_assert(sizeof(cvc_normalize_params) == 400, "the Rust mirror has this size");
static_assert(sizeof(cvc_normalize_image) == 112, "the Rust mirror has this size");
static_assert(sizeof(cvc_normalize_var_shape_params) == 3984,
              "the Rust mirror has this size; the most is 4096");

CVC_HD inline bool cvc_normalize_in_double(uint32_t src_kind, uint32_t dst_kind) {
  return src_kind == cvc_kind_f64 || dst_kind == cvc_kind_f64;
}

CVC_HD_INLINE float cvc_square_root(float value) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(value);
#else
  return __builtin_sqrtf(value);
#endif
}

CVC_HD_INLINE double cvc_square_root(double value) {
#if defined(__CUDA_ARCH__)
  return __dsqrt_rn(value);
#else
  return __builtin_sqrt(value);
#endif
}

// 1 / sqrt(deviation^2 + epsilon), each step rounded.
template <class Arithmetic>
CVC_HD_INLINE Arithmetic cvc_inverse_deviation(Arithmetic deviation, Arithmetic epsilon) {
  const Arithmetic square = deviation * deviation;
  const Arithmetic variance = square + epsilon;
  return static_cast<Arithmetic>(1) / cvc_square_root(variance);
}

// (value - base) * scale * global_scale + global_shift, each step rounded.
template <class Arithmetic>
CVC_HD_INLINE Arithmetic cvc_normalize_value(Arithmetic value, Arithmetic base, Arithmetic scale,
                                             Arithmetic global_scale, Arithmetic global_shift) {
  const Arithmetic centred = value - base;
  const Arithmetic scaled = centred * scale;
  const Arithmetic product = scaled * global_scale;
  return product + global_shift;
}

CVC_HD inline bool cvc_normalize_varies(const cvc_normalize_values &values, long long cvc_view::*stride) {
  return (values.base.data != 0 && values.base.*stride != 0) ||
         (values.scale.data != 0 && values.scale.*stride != 0);
}

// Whether base and scale are the same for all pixels of a channel, and so laid out once by the GPU build.
CVC_HD inline bool cvc_normalize_is_uniform(const cvc_normalize_values &values, int64_t images,
                                            int64_t channels) {
  return channels <= 4 && !cvc_normalize_varies(values, &cvc_view::stride_h) &&
         !cvc_normalize_varies(values, &cvc_view::stride_w) &&
         (images == 1 || !cvc_normalize_varies(values, &cvc_view::stride_n));
}

// A run is a row where base and scale are not uniform.
CVC_HD inline cvc_run_plan cvc_normalize_plan(const cvc_normalize_values &values, const cvc_view &src,
                                              const cvc_view &dst, int64_t images, int64_t channels,
                                              int64_t height, int64_t width) {
  const int64_t src_bytes = cvc_kind_bytes(values.src_kind);
  const int64_t dst_bytes = cvc_kind_bytes(values.dst_kind);
  const bool uniform = cvc_normalize_is_uniform(values, images, channels);
  const cvc_runs runs = cvc_runs_of(src, dst, images, channels, height, width, src_bytes, dst_bytes,
                                    cvc_folding{uniform, false, uniform});
  cvc_run_plan plan = cvc_run_plan_of(runs, src, dst, src_bytes, dst_bytes,
                                      cvc_normalize_in_double(values.src_kind, values.dst_kind));
  plan.plain = plan.plain != 0 && uniform && runs.interleaved;
  return plan;
}

CVC_HD inline cvc_run_plan cvc_normalize_plan(const cvc_normalize_params &params) {
  return cvc_normalize_plan(params.values, params.src, params.dst, params.images, params.channels,
                            params.height, params.width);
}

// Of the kernels cvc_normalize, cvc_normalize_plain_1, 2, 4, cvc_normalize_u8_f32, cvc_normalize_f32_f32.
inline cvc_run_launch cvc_normalize_launch(const cvc_normalize_params &params) {
  return cvc_run_launch_of(params.plan, params.values.src_kind, params.values.dst_kind,
                           cvc_normalize_in_double(params.values.src_kind, params.values.dst_kind));
}

CVC_HD inline cvc_run_plan cvc_normalize_plan(const cvc_normalize_values &values,
                                              const cvc_normalize_image &image) {
  return cvc_normalize_plan(values, image.src, image.dst, 1, image.channels, image.height, image.width);
}

// Blocks of the GPU's launch.
CVC_HD inline int64_t cvc_normalize_blocks(const cvc_normalize_var_shape_params &params) {
  int64_t blocks = 0;
  for (int32_t i = 0; i < params.count; ++i) {
    blocks += cvc_normalize_plan(params.values, params.images[i]).blocks;
  }
  return blocks;
}

#endif

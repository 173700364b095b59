// Parameter block and per-element arithmetic of the convert_to kernel, for the host and the GPU build.
#ifndef CVC_CONVERT_TO_CUH
#define CVC_CONVERT_TO_CUH

#include <stdint.h>

#include "runs.cuh"
#include "saturate.cuh"
#include "view.cuh"

// Kernel `cvc_convert_to`: dst = saturate(alpha * src + beta), element by element. A work item is a row: item
// i is row i % height, with all its channels, of image i / height. The views share no byte, or are the same
// view of elements of one size.
struct cvc_convert_to_params {
  cvc_view src;
  cvc_view dst;
  int64_t images;
  int64_t channels;
  int64_t height;
  int64_t width;
  double alpha;
  double beta;
  float alpha_float; // alpha and beta rounded to float
  float beta_float;
  uint32_t src_kind; // cvc_kind
  uint32_t dst_kind;
  uint32_t rounding; // cvc_rounding
  uint32_t reserved;
  cvc_run_plan plan; // of the GPU build, see `cvc_convert_to_plan`
};

static_assert(sizeof(cvc_convert_to_params) == 272, "the Rust mirror has this size");

// Float holds every value of the 8-bit and 16-bit types; double every one of the 32-bit integers too. 64-bit
// integers beyond 2^53 are rounded to the nearest double first.
CVC_HD inline bool cvc_kind_needs_double(uint32_t kind) {
  return kind == cvc_kind_f64 || (kind >= cvc_kind_u32 && kind <= cvc_kind_s64);
}

CVC_HD inline bool cvc_convert_in_double(uint32_t src_kind, uint32_t dst_kind) {
  return cvc_kind_needs_double(src_kind) || cvc_kind_needs_double(dst_kind);
}

// The product is rounded, then the sum; also where alpha is 1 and beta 0, which changes nothing but -0 into
// +0.
template <class Arithmetic>
CVC_HD_INLINE Arithmetic cvc_convert_value(Arithmetic value, Arithmetic alpha, Arithmetic beta) {
  const Arithmetic product = value * alpha;
  return product + beta;
}

CVC_HD inline cvc_run_plan cvc_convert_to_plan(const cvc_convert_to_params &params) {
  const int64_t src_bytes = cvc_kind_bytes(params.src_kind);
  const int64_t dst_bytes = cvc_kind_bytes(params.dst_kind);
  const cvc_runs runs = cvc_runs_of(params.src, params.dst, params.images, params.channels, params.height,
                                    params.width, src_bytes, dst_bytes, cvc_folding{true, true, true});
  return cvc_run_plan_of(runs, params.src, params.dst, src_bytes, dst_bytes,
                         cvc_convert_in_double(params.src_kind, params.dst_kind));
}

// Of the kernels cvc_convert_to, cvc_convert_to_plain_1, 2, 4, cvc_convert_to_u8_f32, cvc_convert_to_f32_f32.
inline cvc_run_launch cvc_convert_to_launch(const cvc_convert_to_params &params) {
  return cvc_run_launch_of(params.plan, params.src_kind, params.dst_kind,
                           cvc_convert_in_double(params.src_kind, params.dst_kind));
}

#endif

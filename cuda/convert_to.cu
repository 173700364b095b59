// GPU build of the convert_to kernel: units of four elements are widened, computed and saturated in
// registers.
#include "convert_to.cuh"
#include "units.cuh"

namespace cvc_convert_to_device {

using namespace cvc_device;

template <class Arithmetic, int Units>
CVC_DEVICE void convert_units(const cvc_convert_to_params &params, Arithmetic alpha, Arithmetic beta,
                              const byte *from, byte *to, int count) {
  Arithmetic values[Units][4];
  load_kind(params.src_kind, from, count, params.plan.src_step, values);
#pragma unroll
  for (int j = 0; j < Units; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      values[j][i] = cvc_convert_value(values[j][i], alpha, beta);
    }
  }
  if (params.rounding == cvc_rounding_truncate) {
    store_kind<cvc_rounding_truncate>(params.dst_kind, values, to, count, params.plan.dst_step);
  } else {
    store_kind<cvc_rounding_nearest>(params.dst_kind, values, to, count, params.plan.dst_step);
  }
}

template <class Arithmetic, int Units>
CVC_DEVICE void convert(const cvc_convert_to_params &params, Arithmetic alpha, Arithmetic beta) {
  const cvc_run_plan &plan = params.plan;
  for (int64_t tile = blockIdx.x; tile < plan.tiles; tile += gridDim.x) {
    const int64_t first = tile * (block_threads * Units);
    if (Units > 1 && plan.plain != 0 &&
        (first + block_threads * Units) * cvc_run_unit <= plan.units.per_row) {
      const int64_t element = (first + threadIdx.x) * cvc_run_unit;
      convert_units<Arithmetic, Units>(
          params, alpha, beta,
          in_global(reinterpret_cast<const byte *>(params.src.data)) + element * plan.src_step,
          in_global(reinterpret_cast<byte *>(params.dst.data)) + element * plan.dst_step, 4);
      continue;
    }
#pragma unroll 1
    for (int j = 0; j < Units; ++j) {
      unit_place place;
      place.find(plan, params.src, params.dst, first + block_threads * j + threadIdx.x);
      if (place.part.units > 0) {
        convert_units<Arithmetic, 1>(params, alpha, beta, place.from, place.to,
                                     static_cast<int>(place.part.units));
      }
    }
  }
}

} // namespace cvc_convert_to_device

extern "C" __global__ void __launch_bounds__(256, 4)
    cvc_convert_to(const __grid_constant__ cvc_convert_to_params params) {
  using namespace cvc_convert_to_device;
  if (cvc_convert_in_double(params.src_kind, params.dst_kind)) {
    convert<double, 1>(params, params.alpha, params.beta);
  } else {
    convert<float, cvc_run_float_units>(params, params.alpha_float, params.beta_float);
  }
}

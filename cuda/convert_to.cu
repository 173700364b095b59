// GPU build of the convert_to kernels: units of four elements are widened, computed and saturated in
// registers.
#include "convert_to.cuh"
#include "units.cuh"

namespace cvc_convert_to_device {

using namespace cvc_device;

template <bool Plain, int Bytes, class Arithmetic, int Units>
CVC_DEVICE void convert_units(const element_forms &forms, uint32_t rounding, Arithmetic alpha,
                              Arithmetic beta, const byte *from, byte *to, int count) {
  Arithmetic values[Units][4];
  load_kind<Plain>(forms.src_kind, from, count, forms.src_step, values);
#pragma unroll
  for (int j = 0; j < Units; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      values[j][i] = cvc_convert_value(values[j][i], alpha, beta);
    }
  }
  if (rounding == cvc_rounding_truncate && forms.dst_kind != cvc_kind_f32) {
    store_kind<Plain, Bytes, cvc_rounding_truncate>(forms.dst_kind, values, to, count, forms.dst_step);
  } else {
    store_kind<Plain, Bytes, cvc_rounding_nearest>(forms.dst_kind, values, to, count, forms.dst_step);
  }
}

template <class Arithmetic, int Units>
CVC_DEVICE void convert(const cvc_convert_to_params &params, Arithmetic alpha, Arithmetic beta) {
  const cvc_run_plan &plan = params.plan;
  const element_forms forms{params.src_kind, params.dst_kind, plan.src_step, plan.dst_step};
  for (int64_t tile = blockIdx.x; tile < plan.tiles; tile += gridDim.x) {
    const int64_t first = tile * (block_threads * Units);
#pragma unroll 1
    for (int j = 0; j < Units; ++j) {
      unit_place place;
      place.find(plan, params.src, params.dst, first + block_threads * j + threadIdx.x);
      if (place.part.units > 0) {
        convert_units<false, 0, Arithmetic, 1>(forms, params.rounding, alpha, beta, place.from, place.to,
                                               static_cast<int>(place.part.units));
      }
    }
  }
}

// A block's units of a plain run.
template <int Units>
CVC_DEVICE void convert_plain(const cvc_convert_to_params &params, const element_forms &forms) {
  const cvc_run_plan &plan = params.plan;
  const plain_units<Units> own(plan, blockIdx.x);
  fetch_ahead<Units>(plan, params.src, forms);
  const byte *from = own.from(params.src, forms.src_step);
  byte *to = own.to(params.dst, forms.dst_step);
  if (own.whole) {
    convert_units<true, 4 / Units, float, Units>(forms, params.rounding, params.alpha_float,
                                                 params.beta_float, from, to, 4);
    return;
  }
#pragma unroll 1
  for (int j = 0; j < Units; ++j) {
    convert_units<false, 4 / Units, float, 1>(forms, params.rounding, params.alpha_float, params.beta_float,
                                              from + j * (units_apart * forms.src_step),
                                              to + j * (units_apart * forms.dst_step), own.count(plan, j));
  }
}

template <int Units> CVC_DEVICE void convert_plain(const cvc_convert_to_params &params) {
  convert_plain<Units>(
      params, element_forms{params.src_kind, params.dst_kind, params.plan.src_step, params.plan.dst_step});
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

// `cvc_run_launch_of` tells which of these a plan takes.
extern "C" __global__ void __launch_bounds__(256, cvc_device::resident_blocks(8))
    cvc_convert_to_plain_1(const __grid_constant__ cvc_convert_to_params params) {
  cvc_convert_to_device::convert_plain<1>(params);
}

extern "C" __global__ void __launch_bounds__(256, cvc_device::resident_blocks(6))
    cvc_convert_to_plain_2(const __grid_constant__ cvc_convert_to_params params) {
  cvc_convert_to_device::convert_plain<2>(params);
}

extern "C" __global__ void __launch_bounds__(256, cvc_device::resident_blocks(5))
    cvc_convert_to_plain_4(const __grid_constant__ cvc_convert_to_params params) {
  cvc_convert_to_device::convert_plain<4>(params);
}

extern "C" __global__ void __launch_bounds__(256, cvc_device::resident_blocks(8))
    cvc_convert_to_u8_f32(const __grid_constant__ cvc_convert_to_params params) {
  using namespace cvc_convert_to_device;
  convert_plain<1>(params, element_forms{cvc_kind_u8, cvc_kind_f32, 1, 4});
}

extern "C" __global__ void __launch_bounds__(256, cvc_device::resident_blocks(8))
    cvc_convert_to_f32_f32(const __grid_constant__ cvc_convert_to_params params) {
  using namespace cvc_convert_to_device;
  convert_plain<1>(params, element_forms{cvc_kind_f32, cvc_kind_f32, 4, 4});
}

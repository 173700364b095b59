// GPU build of the normalize kernels: units of four elements with base and scale of each, from shared memory
// where they are the same for all pixels.
#include "normalize.cuh"
#include "units.cuh"

namespace cvc_normalize_device {

using namespace cvc_device;

// Where base and scale are uniform, there are at most so many channels.
constexpr int most_channels = 4;

// Row p: base and scale of the four elements of a unit whose first one is of channel p of interleaved pixels,
// or whose plane is p.
template <class Arithmetic> struct alignas(16) factor_rows {
  Arithmetic base[most_channels][4];
  Arithmetic scale[most_channels][4];
};

CVC_DEVICE float scale_entry(const cvc_normalize_values &values, int entry, float) {
  return values.scale_values[entry];
}
CVC_DEVICE double scale_entry(const cvc_normalize_values &values, int entry, double) {
  return values.scale_values_double[entry];
}

// Base and scale of image `index` of them, at a channel and a pixel.
template <class Arithmetic>
CVC_DEVICE void find_factors(const cvc_normalize_values &values, int64_t index, int64_t channel, int64_t y,
                             int64_t x, Arithmetic &base, Arithmetic &scale) {
  const int entry = static_cast<int>(channel & 3);
  base = values.base.data == 0
             ? static_cast<Arithmetic>(values.base_values[entry])
             : static_cast<Arithmetic>(read_element<float>(in_global(
                   reinterpret_cast<const byte *>(cvc_view_address(values.base, index, channel, y, x)))));
  if (values.scale.data == 0) {
    scale = scale_entry(values, entry, Arithmetic());
    return;
  }
  scale = static_cast<Arithmetic>(read_element<float>(
      in_global(reinterpret_cast<const byte *>(cvc_view_address(values.scale, index, channel, y, x)))));
  if (values.scale_is_deviation != 0) {
    scale = cvc_inverse_deviation(scale, static_cast<Arithmetic>(values.epsilon));
  }
}

// Images of one size. `index` is that of the first one in base and scale, `first_channel` the first plane's
// channel.
struct image_set {
  const cvc_view &src;
  const cvc_view &dst;
  int64_t images;
  int64_t channels;
  int64_t index;
  int64_t first_channel;
};

// Computes and stores what was loaded.
template <bool Plain, int Bytes, class Arithmetic, int Units>
CVC_DEVICE void finish_units(const cvc_normalize_values &values, const element_forms &forms,
                             Arithmetic (&computed)[Units][4], const Arithmetic (&base)[Units][4],
                             const Arithmetic (&scale)[Units][4], byte *to, int count) {
#pragma unroll
  for (int j = 0; j < Units; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      computed[j][i] = cvc_normalize_value(computed[j][i], base[j][i], scale[j][i],
                                           static_cast<Arithmetic>(values.global_scale),
                                           static_cast<Arithmetic>(values.global_shift));
    }
  }
  store_kind<Plain, Bytes, cvc_rounding_nearest>(forms.dst_kind, computed, to, count, forms.dst_step);
}

CVC_DEVICE element_forms forms_of(const cvc_normalize_values &values, const cvc_run_plan &plan) {
  return element_forms{values.src_kind, values.dst_kind, plan.src_step, plan.dst_step};
}

template <class Arithmetic> CVC_DEVICE void copy_four(const Arithmetic (&from)[4], Arithmetic (&to)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    to[i] = from[i];
  }
}

// A unit anywhere: from the shared rows, or, where these do not do, element by element.
template <class Arithmetic>
CVC_DEVICE void normalize_any_unit(const cvc_normalize_values &values, const image_set &set,
                                   const cvc_run_plan &plan, const factor_rows<Arithmetic> &rows,
                                   bool uniform, int64_t unit) {
  unit_place place;
  place.find(plan, set.src, set.dst, unit);
  const cvc_row_part &part = place.part;
  const int count = static_cast<int>(part.units);
  if (count <= 0) {
    return;
  }
  Arithmetic base[1][4], scale[1][4];
  if (uniform) {
    const int row = static_cast<int>(plan.interleaved != 0 ? part.first % set.channels : part.plane);
    copy_four(rows.base[row], base[0]);
    copy_four(rows.scale[row], scale[0]);
  } else {
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      const int64_t at = part.first + (i < count ? i : 0);
      const int64_t x = plan.interleaved != 0 ? at / set.channels : at;
      const int64_t channel = plan.interleaved != 0 ? at - x * set.channels : part.plane;
      Arithmetic base_here, scale_here;
      find_factors(values, set.index + part.image, set.first_channel + channel, part.row, x, base_here,
                   scale_here);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        base[0][k] = i == k ? base_here : base[0][k];
        scale[0][k] = i == k ? scale_here : scale[0][k];
      }
    }
  }
  Arithmetic computed[1][4];
  load_kind<false>(values.src_kind, place.from, count, plan.src_step, computed);
  finish_units<false, 0>(values, forms_of(values, plan), computed, base, scale, place.to, count);
}

// Where base and scale are uniform. Three rows do for interleaved pixels: of 1, 2 or 4 channels, units begin
// with the first.
template <class Arithmetic>
CVC_DEVICE void fill_rows(const cvc_normalize_values &values, int64_t index, uint32_t first_channel,
                          uint32_t channels, bool interleaved, factor_rows<Arithmetic> &rows) {
  const uint32_t row = threadIdx.x / 4, element = threadIdx.x % 4;
  if (row < (interleaved ? 3 : channels)) {
    const uint32_t around = row + element < 3 ? row + element : row + element - 3;
    const uint32_t channel = !interleaved ? row : channels == 3 ? around : element & (channels - 1);
    find_factors(values, index, first_channel + channel, 0, 0, rows.base[row][element],
                 rows.scale[row][element]);
  }
}

// Those of a thread's units of a plain run: four elements further on is one channel further on.
template <int Units>
CVC_DEVICE void plain_factors(const factor_rows<float> &rows, uint32_t first_of_three,
                              float (&base)[Units][4], float (&scale)[Units][4]) {
#pragma unroll
  for (int j = 0; j < Units; ++j) {
    const uint32_t row = (first_of_three + warp_lanes * j) % 3;
    copy_four(rows.base[row], base[j]);
    copy_four(rows.scale[row], scale[j]);
  }
}

// Does this block's tiles among those of the set. `tile` counts on over the sets of a launch. `Plain`: some
// sets may be plain runs.
template <bool Plain, class Arithmetic, int Units>
CVC_DEVICE void normalize_set(const cvc_normalize_values &values, const image_set &set,
                              const cvc_run_plan &plan, int64_t &tile) {
  __shared__ factor_rows<Arithmetic> rows;
  if (tile >= plan.tiles) {
    tile -= plan.tiles;
    return;
  }
  const bool uniform = cvc_normalize_is_uniform(values, set.images, set.channels);
  if (uniform) {
    __syncthreads();
    fill_rows(values, set.index, static_cast<uint32_t>(set.first_channel),
              static_cast<uint32_t>(set.channels), plan.interleaved != 0, rows);
    __syncthreads();
  }
  for (; tile < plan.tiles; tile += gridDim.x) {
    if constexpr (Plain) {
      const plain_units<Units> own(plan, static_cast<uint32_t>(tile));
      if (plan.plain != 0 && own.whole) {
        float computed[Units][4], base[Units][4], scale[Units][4];
        load_kind<true>(values.src_kind, own.from(set.src, plan.src_step), 4, plan.src_step, computed);
        plain_factors(rows, own.first_of_three, base, scale);
        finish_units<true, 0>(values, forms_of(values, plan), computed, base, scale,
                              own.to(set.dst, plan.dst_step), 4);
        continue;
      }
    }
    const int64_t first = tile * (block_threads * Units);
#pragma unroll 1
    for (int j = 0; j < Units; ++j) {
      normalize_any_unit(values, set, plan, rows, uniform, first + block_threads * j + threadIdx.x);
    }
  }
  tile -= plan.tiles;
}

// A block's units of a plain run.
template <int Units>
CVC_DEVICE void normalize_plain(const cvc_normalize_params &params, const element_forms &forms) {
  __shared__ factor_rows<float> rows;
  const cvc_normalize_values &values = params.values;
  const plain_units<Units> own(params.plan, blockIdx.x);
  fetch_ahead<Units>(params.plan, params.src, forms);
  const byte *from = own.from(params.src, forms.src_step);
  byte *to = own.to(params.dst, forms.dst_step);
  // The loads are under way while the factors are found.
  float computed[Units][4];
  if (own.whole) {
    load_kind<true>(forms.src_kind, from, 4, forms.src_step, computed);
  }
  fill_rows(values, 0, 0, static_cast<uint32_t>(params.channels), true, rows);
  __syncthreads();
  if (own.whole) {
    float base[Units][4], scale[Units][4];
    plain_factors(rows, own.first_of_three, base, scale);
    finish_units<true, 4 / Units>(values, forms, computed, base, scale, to, 4);
    return;
  }
#pragma unroll 1
  for (int j = 0; j < Units; ++j) {
    float one[1][4], base[1][4], scale[1][4];
    load_kind<false>(forms.src_kind, from + j * (units_apart * forms.src_step), own.count(params.plan, j),
                     forms.src_step, one);
    plain_factors(rows, own.first_of_three + warp_lanes * j, base, scale);
    finish_units<false, 4 / Units>(values, forms, one, base, scale, to + j * (units_apart * forms.dst_step),
                                   own.count(params.plan, j));
  }
}

template <int Units> CVC_DEVICE void normalize_plain(const cvc_normalize_params &params) {
  normalize_plain<Units>(params, forms_of(params.values, params.plan));
}

} // namespace cvc_normalize_device

extern "C" __global__ void __launch_bounds__(256, 4)
    cvc_normalize(const __grid_constant__ cvc_normalize_params params) {
  using namespace cvc_normalize_device;
  const image_set set{params.src, params.dst, params.images, params.channels, 0, 0};
  int64_t tile = blockIdx.x;
  if (cvc_normalize_in_double(params.values.src_kind, params.values.dst_kind)) {
    normalize_set<false, double, 1>(params.values, set, params.plan, tile);
  } else {
    normalize_set<false, float, cvc_run_float_units>(params.values, set, params.plan, tile);
  }
}

// `cvc_run_launch_of` tells which of these a plan takes.
extern "C" __global__ void __launch_bounds__(256, cvc_device::resident_blocks(8))
    cvc_normalize_plain_1(const __grid_constant__ cvc_normalize_params params) {
  cvc_normalize_device::normalize_plain<1>(params);
}

extern "C" __global__ void __launch_bounds__(256, cvc_device::resident_blocks(5))
    cvc_normalize_plain_2(const __grid_constant__ cvc_normalize_params params) {
  cvc_normalize_device::normalize_plain<2>(params);
}

extern "C" __global__ void __launch_bounds__(256, 4)
    cvc_normalize_plain_4(const __grid_constant__ cvc_normalize_params params) {
  cvc_normalize_device::normalize_plain<4>(params);
}

extern "C" __global__ void __launch_bounds__(256, cvc_device::resident_blocks(8))
    cvc_normalize_u8_f32(const __grid_constant__ cvc_normalize_params params) {
  using namespace cvc_normalize_device;
  normalize_plain<1>(params, element_forms{cvc_kind_u8, cvc_kind_f32, 1, 4});
}

extern "C" __global__ void __launch_bounds__(256, cvc_device::resident_blocks(8))
    cvc_normalize_f32_f32(const __grid_constant__ cvc_normalize_params params) {
  using namespace cvc_normalize_device;
  normalize_plain<1>(params, element_forms{cvc_kind_f32, cvc_kind_f32, 4, 4});
}

extern "C" __global__ void __launch_bounds__(256, 4)
    cvc_normalize_var_shape(const __grid_constant__ cvc_normalize_var_shape_params params) {
  using namespace cvc_normalize_device;
  __shared__ cvc_run_plan plans[cvc_normalize_max_images];
  if (static_cast<int>(threadIdx.x) < params.count) {
    plans[threadIdx.x] = cvc_normalize_plan(params.values, params.images[threadIdx.x]);
  }
  __syncthreads();
  const bool in_double = cvc_normalize_in_double(params.values.src_kind, params.values.dst_kind);
  int64_t tile = blockIdx.x;
  for (int32_t i = 0; i < params.count; ++i) {
    const cvc_normalize_image &image = params.images[i];
    const image_set set{image.src, image.dst, 1, image.channels, image.image_index, image.first_channel};
    if (in_double) {
      normalize_set<false, double, 1>(params.values, set, plans[i], tile);
    } else {
      normalize_set<true, float, cvc_run_float_units>(params.values, set, plans[i], tile);
    }
  }
}

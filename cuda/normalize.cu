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

template <class Arithmetic, int Units>
CVC_DEVICE void normalize_units(const cvc_normalize_values &values, const byte *from, byte *to, int count,
                                const cvc_run_plan &plan, const Arithmetic (&base)[Units][4],
                                const Arithmetic (&scale)[Units][4]) {
  Arithmetic computed[Units][4];
  load_kind(values.src_kind, from, count, plan.src_step, computed);
#pragma unroll
  for (int j = 0; j < Units; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      computed[j][i] = cvc_normalize_value(computed[j][i], base[j][i], scale[j][i],
                                           static_cast<Arithmetic>(values.global_scale),
                                           static_cast<Arithmetic>(values.global_shift));
    }
  }
  store_kind<cvc_rounding_nearest>(values.dst_kind, computed, to, count, plan.dst_step);
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
  normalize_units<Arithmetic, 1>(values, place.from, place.to, count, plan, base, scale);
}

// Does this block's tiles among those of the set. `tile` counts on over the sets of a launch.
template <class Arithmetic, int Units>
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
    const int row = static_cast<int>(threadIdx.x) / 4, element = static_cast<int>(threadIdx.x) % 4;
    if (row < set.channels) {
      const int64_t channel =
          set.first_channel + (plan.interleaved != 0 ? (row + element) % set.channels : row);
      find_factors(values, set.index, channel, 0, 0, rows.base[row][element], rows.scale[row][element]);
    }
    __syncthreads();
  }
  for (; tile < plan.tiles; tile += gridDim.x) {
    const int64_t first = tile * (block_threads * Units);
    if (Units > 1 && plan.plain != 0 &&
        (first + block_threads * Units) * cvc_run_unit <= plan.units.per_row) {
      const int64_t element = (first + threadIdx.x) * cvc_run_unit;
      const uint32_t phase = static_cast<uint32_t>(static_cast<uint64_t>(first) % 3);
      Arithmetic base[Units][4], scale[Units][4];
#pragma unroll
      for (int j = 0; j < Units; ++j) {
        // Four elements further on is one channel further on, of three; of 1, 2 or 4 it is the same.
        const int row =
            set.channels == 3 ? static_cast<int>((phase + threadIdx.x + block_threads * j) % 3) : 0;
        copy_four(rows.base[row], base[j]);
        copy_four(rows.scale[row], scale[j]);
      }
      normalize_units<Arithmetic, Units>(
          values, in_global(reinterpret_cast<const byte *>(set.src.data)) + element * plan.src_step,
          in_global(reinterpret_cast<byte *>(set.dst.data)) + element * plan.dst_step, 4, plan, base, scale);
      continue;
    }
#pragma unroll 1
    for (int j = 0; j < Units; ++j) {
      normalize_any_unit(values, set, plan, rows, uniform, first + block_threads * j + threadIdx.x);
    }
  }
  tile -= plan.tiles;
}

} // namespace cvc_normalize_device

extern "C" __global__ void __launch_bounds__(256, 4)
    cvc_normalize(const __grid_constant__ cvc_normalize_params params) {
  using namespace cvc_normalize_device;
  const image_set set{params.src, params.dst, params.images, params.channels, 0, 0};
  int64_t tile = blockIdx.x;
  if (cvc_normalize_in_double(params.values.src_kind, params.values.dst_kind)) {
    normalize_set<double, 1>(params.values, set, params.plan, tile);
  } else {
    normalize_set<float, cvc_run_float_units>(params.values, set, params.plan, tile);
  }
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
      normalize_set<double, 1>(params.values, set, plans[i], tile);
    } else {
      normalize_set<float, cvc_run_float_units>(params.values, set, plans[i], tile);
    }
  }
}

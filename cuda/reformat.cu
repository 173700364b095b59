// GPU build of the reformat kernel: warps split interleaved pixels into planes or merge planes, threads copy
// vectors or move elements.
#include "moves.cuh"
#include "reformat.cuh"

namespace cvc_reformat_device {

using namespace cvc_device;

// Not inlined: it would cost the other forms registers.
__device__ __noinline__ void reformat_element(const cvc_reformat_params &params, int64_t index) {
  const cvc_row_part part = find_part(params.plan.parts, index);
  if (part.units <= 0) {
    return;
  }
  // Adjacent threads write adjacent elements, if any do.
  const int64_t inner = params.plan.planar != 0 ? params.width : params.channels;
  const int64_t outer = part.first / inner;
  const int64_t rest = part.first - outer * inner;
  const int64_t c = params.plan.planar != 0 ? outer : rest;
  const int64_t x = params.plan.planar != 0 ? rest : outer;
  copy_element(
      in_global(reinterpret_cast<byte *>(cvc_view_address(params.dst, part.image, c, part.row, x))),
      in_global(reinterpret_cast<const byte *>(cvc_view_address(params.src, part.image, c, part.row, x))),
      params.element_bytes);
}

// The pixels of a group that ends behind its row.
template <int Bytes, int Channels>
CVC_DEVICE void move_rest(const byte *from, int64_t from_pixel, int64_t from_channel, byte *to,
                          int64_t to_pixel, int64_t to_channel, int pixels) {
#pragma unroll 1
  for (int pixel = 0; pixel < pixels; ++pixel) {
#pragma unroll 1
    for (int channel = 0; channel < Channels; ++channel) {
      copy_element<Bytes>(to + pixel * to_pixel + channel * to_channel,
                          from + pixel * from_pixel + channel * from_channel);
    }
  }
}

// The groups of a warp: lane i holds group i, or those of its vectors that lie at 32 k + i among all of them.
template <int Bytes, int Channels> struct groups_of_rows {
  static constexpr int pixels = 16 / Bytes;
  const cvc_plane_units &units;
  uint32_t first;

  struct place {
    row_unit at;
    int pixels; // of the group; 0 behind the last row

    CVC_DEVICE bool whole() const { return pixels == groups_of_rows::pixels; }
  };

  CVC_DEVICE place find(uint32_t index) const {
    place found{find_row_unit(units, first + index), 0};
    const int64_t left = units.row_size - static_cast<int64_t>(found.at.column) * pixels;
    if (first + index < static_cast<uint32_t>(units.count)) {
      found.pixels = static_cast<int>(left < pixels ? left : pixels);
    }
    return found;
  }
};

template <int Bytes, int Channels>
CVC_DEVICE void split_groups(const groups_of_rows<Bytes, Channels> &groups, const byte *from,
                             int64_t from_step, byte *to, int64_t to_step, int64_t plane_step, int lane,
                             warp_groups<Channels> &shared) {
  constexpr int group_bytes = 16 * Channels;
  uint4 held[Channels];
#pragma unroll
  for (int k = 0; k < Channels; ++k) {
    const uint32_t index = lane + warp_lanes * k;
    const auto place = groups.find(index / Channels);
    if (place.whole()) {
      held[k] = load_16(from + place.at.row * from_step + int64_t{group_bytes} * place.at.column +
                        16 * (index % Channels));
    }
  }
#pragma unroll
  for (int k = 0; k < Channels; ++k) {
    shared.vector[lane + warp_lanes * k] = held[k];
  }
  __syncwarp();
  const auto place = groups.find(lane);
  to += place.at.row * to_step + 16ll * place.at.column;
  if (place.whole()) {
    const pixel_group<Channels> planes = permute_group<group_split<Bytes, Channels>>(shared.group(lane));
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      store_16(to + c * plane_step, vector_of(planes, c));
    }
  } else {
    move_rest<Bytes, Channels>(from + place.at.row * from_step + int64_t{group_bytes} * place.at.column,
                               Channels * Bytes, Bytes, to, Bytes, plane_step, place.pixels);
  }
}

template <int Bytes, int Channels>
CVC_DEVICE void merge_groups(const groups_of_rows<Bytes, Channels> &groups, const byte *from,
                             int64_t from_step, int64_t plane_step, byte *to, int64_t to_step, int lane,
                             warp_groups<Channels> &shared) {
  constexpr int group_bytes = 16 * Channels;
  const auto place = groups.find(lane);
  from += place.at.row * from_step + 16ll * place.at.column;
  if (place.whole()) {
    pixel_group<Channels> planes;
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      set_vector(planes, c, load_16(from + c * plane_step));
    }
    shared.set_group(lane, permute_group<group_merge<Bytes, Channels>>(planes));
  } else {
    move_rest<Bytes, Channels>(from, Bytes, plane_step,
                               to + place.at.row * to_step + int64_t{group_bytes} * place.at.column,
                               Channels * Bytes, Bytes, place.pixels);
  }
  __syncwarp();
#pragma unroll
  for (int k = 0; k < Channels; ++k) {
    const uint32_t index = lane + warp_lanes * k;
    const auto stored = groups.find(index / Channels);
    if (stored.whole()) {
      store_16(to + stored.at.row * to_step + int64_t{group_bytes} * stored.at.column +
                   16 * (index % Channels),
               shared.vector[index]);
    }
  }
}

template <bool Split, int Bytes, int Channels>
CVC_DEVICE void move_groups(const cvc_reformat_params &params) {
  __shared__ warp_groups<Channels> shared[block_warps];
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const plane_block block = find_plane_block(params.plan.units, blockIdx.x);
  const groups_of_rows<Bytes, Channels> groups{params.plan.units, block.first + warp_lanes * warp};
  const byte *from = plane_of(params.src, block);
  byte *to = writable_plane_of(params.dst, block);
  if (Split) {
    split_groups(groups, from, params.src.stride_h, to, params.dst.stride_h, params.dst.stride_c, lane,
                 shared[warp]);
  } else {
    merge_groups(groups, from, params.src.stride_h, params.src.stride_c, to, params.dst.stride_h, lane,
                 shared[warp]);
  }
}

} // namespace cvc_reformat_device

extern "C" __global__ void __launch_bounds__(256)
    cvc_reformat(const __grid_constant__ cvc_reformat_params params) {
  using namespace cvc_reformat_device;
  for (int64_t block = blockIdx.x; block < params.plan.blocks; block += gridDim.x) {
#pragma unroll 1
    for (int j = 0; j < cvc_reformat_block_elements; j += block_threads) {
      reformat_element(params, block * cvc_reformat_block_elements + j + threadIdx.x);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
    cvc_reformat_rows(const __grid_constant__ cvc_reformat_params params) {
  using namespace cvc_reformat_device;
  const cvc_plane_units &units = params.plan.units;
  const plane_block block = find_plane_block(units, blockIdx.x);
  const uint32_t unit = block.first + threadIdx.x;
  if (unit < static_cast<uint32_t>(units.count)) {
    const row_unit at = find_row_unit(units, unit);
    const int64_t first = 16ll * at.column;
    copy_vector(writable_plane_of(params.dst, block) + at.row * params.dst.stride_h + first,
                plane_of(params.src, block) + at.row * params.src.stride_h + first, units.row_size - first);
  }
}

// `cvc_reformat_kernel_of` tells which of these a plan takes.
#define CVC_REFORMAT_KERNEL(bytes, channels)                                                                 \
  extern "C" __global__ void __launch_bounds__(256)                                                          \
      cvc_reformat_split_##bytes##_##channels(const __grid_constant__ cvc_reformat_params params) {          \
    cvc_reformat_device::move_groups<true, bytes, channels>(params);                                         \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(256)                                                          \
      cvc_reformat_merge_##bytes##_##channels(const __grid_constant__ cvc_reformat_params params) {          \
    cvc_reformat_device::move_groups<false, bytes, channels>(params);                                        \
  }

CVC_REFORMAT_KERNEL(1, 2)
CVC_REFORMAT_KERNEL(1, 3)
CVC_REFORMAT_KERNEL(1, 4)
CVC_REFORMAT_KERNEL(2, 2)
CVC_REFORMAT_KERNEL(2, 3)
CVC_REFORMAT_KERNEL(2, 4)
CVC_REFORMAT_KERNEL(4, 2)
CVC_REFORMAT_KERNEL(4, 3)
CVC_REFORMAT_KERNEL(4, 4)
CVC_REFORMAT_KERNEL(8, 2)
CVC_REFORMAT_KERNEL(8, 3)
CVC_REFORMAT_KERNEL(8, 4)

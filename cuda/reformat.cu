// GPU build of the reformat kernel: warps split interleaved pixels into planes, merge planes or copy vectors,
// or threads move elements.
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

// The pixels behind the last whole group. Not inlined: it would cost the groups registers.
template <int Bytes, int Channels>
__device__ __noinline__ void move_rest(const byte *from, int64_t from_pixel, int64_t from_channel, byte *to,
                                       int64_t to_pixel, int64_t to_channel, int pixels, int lane) {
  for (int i = lane; i < pixels * Channels; i += warp_lanes) {
    const int pixel = i / Channels, channel = i % Channels;
    copy_element<Bytes>(to + pixel * to_pixel + channel * to_channel,
                        from + pixel * from_pixel + channel * from_channel);
  }
}

template <int Bytes, int Channels>
CVC_DEVICE void split_groups(const byte *from, byte *to, int64_t plane_step, int pixels, int lane,
                             warp_groups<Channels> &shared) {
  constexpr int group_pixels = 16 / Bytes;
  const int groups = pixels / group_pixels;
  shared.load(from, groups, lane);
  __syncwarp();
  if (lane < groups) {
    const pixel_group<Channels> planes = permute_group<group_split<Bytes, Channels>>(shared.group(lane));
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      store_16(to + c * plane_step + 16 * lane, vector_of(planes, c));
    }
  }
  const int done = groups * group_pixels;
  if (done != pixels) {
    move_rest<Bytes, Channels>(from + done * (Channels * Bytes), Channels * Bytes, Bytes, to + done * Bytes,
                               Bytes, plane_step, pixels - done, lane);
  }
  __syncwarp();
}

template <int Bytes, int Channels>
CVC_DEVICE void merge_groups(const byte *from, int64_t plane_step, byte *to, int pixels, int lane,
                             warp_groups<Channels> &shared) {
  constexpr int group_pixels = 16 / Bytes;
  const int groups = pixels / group_pixels;
  if (lane < groups) {
    pixel_group<Channels> planes;
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
      set_vector(planes, c, load_16(from + c * plane_step + 16 * lane));
    }
    shared.set_group(lane, permute_group<group_merge<Bytes, Channels>>(planes));
  }
  __syncwarp();
  shared.store(to, groups, lane);
  const int done = groups * group_pixels;
  if (done != pixels) {
    move_rest<Bytes, Channels>(from + done * Bytes, Bytes, plane_step, to + done * (Channels * Bytes),
                               Channels * Bytes, Bytes, pixels - done, lane);
  }
  __syncwarp();
}

template <bool Split, int Bytes, int Channels> CVC_DEVICE void move_parts(const cvc_reformat_params &params) {
  __shared__ warp_groups<Channels> groups[block_warps];
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  for (int64_t block = blockIdx.x; block < params.plan.blocks; block += gridDim.x) {
    const cvc_row_part part = find_part(params.plan.parts, block * block_warps + warp);
    const int pixels = static_cast<int>(part.units);
    if (pixels <= 0) {
      break;
    }
    const byte *from = in_global(reinterpret_cast<const byte *>(
        cvc_view_address(params.src, part.image, part.plane, part.row, part.first)));
    byte *to = in_global(
        reinterpret_cast<byte *>(cvc_view_address(params.dst, part.image, part.plane, part.row, part.first)));
    if (Split) {
      split_groups<Bytes, Channels>(from, to, params.dst.stride_c, pixels, lane, groups[warp]);
    } else {
      merge_groups<Bytes, Channels>(from, params.src.stride_c, to, pixels, lane, groups[warp]);
    }
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
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  for (int64_t block = blockIdx.x; block < params.plan.blocks; block += gridDim.x) {
    const cvc_row_part part = find_part(params.plan.parts, block * block_warps + warp);
    if (part.units > 0) {
      const unsigned long long from = cvc_view_address(params.src, part.image, part.plane, part.row, 0);
      const unsigned long long to = cvc_view_address(params.dst, part.image, part.plane, part.row, 0);
      copy_bytes(in_global(reinterpret_cast<byte *>(to)) + part.first,
                 in_global(reinterpret_cast<const byte *>(from)) + part.first, static_cast<int>(part.units),
                 lane);
    }
  }
}

// `cvc_reformat_kernel_of` tells which of these a plan takes.
#define CVC_REFORMAT_KERNEL(bytes, channels)                                                                 \
  extern "C" __global__ void __launch_bounds__(256, 4)                                                       \
      cvc_reformat_split_##bytes##_##channels(const __grid_constant__ cvc_reformat_params params) {          \
    cvc_reformat_device::move_parts<true, bytes, channels>(params);                                          \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(256, 4)                                                       \
      cvc_reformat_merge_##bytes##_##channels(const __grid_constant__ cvc_reformat_params params) {          \
    cvc_reformat_device::move_parts<false, bytes, channels>(params);                                         \
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

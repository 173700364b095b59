// GPU build of the flip kernels: warps move vectors of 16 bytes and reverse the pixels in them, or threads
// move elements.
#include "flip.cuh"
#include "moves.cuh"

namespace cvc_flip_device {

using namespace cvc_device;

// Not inlined: it would cost the other forms registers.
template <class Set>
__device__ __noinline__ void flip_element(const Set &set, cvc_flip_axes axes, const cvc_flip_plan &plan,
                                          int64_t index) {
  const cvc_row_part part = find_part(plan.parts, index);
  if (part.units <= 0) {
    return;
  }
  int64_t x = part.first, c = part.plane;
  const int64_t y = part.row;
  if (plan.pixel_bytes > 1) {
    x = static_cast<uint64_t>(part.first) / plan.pixel_bytes;
    c = part.first - x * plan.pixel_bytes;
  }
  const int64_t from_y = axes.rows ? set.height - 1 - y : y;
  const int64_t from_x = axes.columns ? set.width - 1 - x : x;
  byte *to = in_global(reinterpret_cast<byte *>(cvc_view_address(set.dst, part.image, c, y, x)));
  if (!set.in_place) {
    copy_element(
        to,
        in_global(reinterpret_cast<const byte *>(cvc_view_address(set.src, part.image, c, from_y, from_x))),
        set.element_bytes);
  } else if (x < cvc_flip_swaps(axes, set.height, set.width, y)) {
    swap_elements(
        to, in_global(reinterpret_cast<byte *>(cvc_view_address(set.dst, part.image, c, from_y, from_x))),
        set.element_bytes);
  }
}

template <int PixelBytes>
CVC_DEVICE void reverse_vectors(byte *to, const byte *from_end, int vectors, int lane) {
  constexpr int most = 4;
  pixel_group<1> held[most];
#pragma unroll
  for (int k = 0; k < most; ++k) {
    if (lane + warp_lanes * k < vectors) {
      set_vector(held[k], 0, load_16(from_end - 16 * (lane + warp_lanes * k + 1)));
    }
  }
#pragma unroll
  for (int k = 0; k < most; ++k) {
    if (lane + warp_lanes * k < vectors) {
      const pixel_group<1> reversed = permute_group<group_reverse<PixelBytes, 1>>(held[k]);
      store_16(to + 16 * (lane + warp_lanes * k), vector_of(reversed, 0));
    }
  }
}

template <int Bytes>
CVC_DEVICE void reverse_groups(byte *to, const byte *from, int groups, int lane, warp_groups<3> &shared) {
  shared.load(from, groups, lane);
  __syncwarp();
  pixel_group<3> group;
  if (lane < groups) {
    group = permute_group<group_reverse<Bytes, 3>>(shared.group(lane));
  }
  __syncwarp();
  if (lane < groups) {
    shared.set_group(groups - 1 - lane, group);
  }
  __syncwarp();
  shared.store(to, groups, lane);
  __syncwarp();
}

// One warp's part of a row. `Bytes` are those of a pixel in vectors, or of a third of one in triples; known
// when it is compiled, as the form is, so that a kernel has registers for its own form alone.
template <cvc_flip_form Form, int Bytes, class Set>
CVC_DEVICE void flip_part(const Set &set, cvc_flip_axes axes, const cvc_flip_plan &plan, int64_t index,
                          int lane, warp_groups<3> *shared) {
  const cvc_row_part part = find_part(plan.parts, index);
  const int units = static_cast<int>(part.units);
  if (units <= 0) {
    return;
  }
  const int64_t left = plan.parts.per_row - part.first;
  const int64_t from_y = axes.rows ? set.height - 1 - part.row : part.row;
  const byte *from =
      in_global(reinterpret_cast<const byte *>(cvc_view_address(set.src, part.image, part.plane, from_y, 0)));
  byte *to =
      in_global(reinterpret_cast<byte *>(cvc_view_address(set.dst, part.image, part.plane, part.row, 0)));
  if (Form == cvc_flip_form_copy) {
    const int64_t first = 16 * part.first;
    const int64_t bytes = set.width * plan.pixel_bytes - first;
    copy_bytes(to + first, from + first, static_cast<int>(bytes < 16 * units ? bytes : 16 * units), lane);
  } else if (Form == cvc_flip_form_reverse) {
    reverse_vectors<Bytes>(to + 16 * part.first, from + 16 * left, units, lane);
  } else {
    reverse_groups<Bytes>(to + 48 * part.first, from + 48 * (left - units), units, lane, *shared);
  }
}

template <cvc_flip_form Form, int Bytes> CVC_DEVICE void flip_parts(const cvc_flip_params &params) {
  warp_groups<3> *own = nullptr;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  if (Form == cvc_flip_form_reverse3) {
    __shared__ warp_groups<3> groups[block_warps];
    own = &groups[warp];
  }
  for (int64_t block = blockIdx.x; block < params.plan.blocks; block += gridDim.x) {
    flip_part<Form, Bytes>(params, cvc_flip_axes_of(params.flip_code), params.plan,
                           block * block_warps + warp, lane, own);
  }
}

// The part of an image whose form and pixels are only known here.
template <int Bytes>
CVC_DEVICE bool flip_part_of(const cvc_flip_set &set, const cvc_flip_plan &plan, int64_t index, int lane,
                             warp_groups<3> &shared) {
  if (plan.form == cvc_flip_form_reverse && plan.pixel_bytes == Bytes) {
    flip_part<cvc_flip_form_reverse, Bytes>(set, set.axes, plan, index, lane, &shared);
    return true;
  }
  if (Bytes <= 8 && plan.form == cvc_flip_form_reverse3 && plan.pixel_bytes == 3 * Bytes) {
    flip_part<cvc_flip_form_reverse3, Bytes <= 8 ? Bytes : 8>(set, set.axes, plan, index, lane, &shared);
    return true;
  }
  return false;
}

__device__ __noinline__ void flip_any_part(const cvc_flip_set &set, const cvc_flip_plan &plan, int64_t index,
                                           int lane, warp_groups<3> &shared) {
  if (plan.form == cvc_flip_form_copy) {
    flip_part<cvc_flip_form_copy, 16>(set, set.axes, plan, index, lane, &shared);
  } else if (!flip_part_of<1>(set, plan, index, lane, shared) &&
             !flip_part_of<2>(set, plan, index, lane, shared) &&
             !flip_part_of<4>(set, plan, index, lane, shared) &&
             !flip_part_of<8>(set, plan, index, lane, shared)) {
    flip_part_of<16>(set, plan, index, lane, shared);
  }
}

// Block number `block`'s elements.
template <class Set>
CVC_DEVICE void flip_elements(const Set &set, cvc_flip_axes axes, const cvc_flip_plan &plan, int64_t block) {
#pragma unroll 1
  for (int j = 0; j < cvc_flip_block_elements; j += block_threads) {
    flip_element(set, axes, plan, block * cvc_flip_block_elements + j + threadIdx.x);
  }
}

} // namespace cvc_flip_device

extern "C" __global__ void __launch_bounds__(256) cvc_flip(const __grid_constant__ cvc_flip_params params) {
  for (int64_t block = blockIdx.x; block < params.plan.blocks; block += gridDim.x) {
    cvc_flip_device::flip_elements(params, cvc_flip_axes_of(params.flip_code), params.plan, block);
  }
}

// `cvc_flip_kernel_of` tells which of these a plan takes.
#define CVC_FLIP_KERNEL(name, form, bytes)                                                                   \
  extern "C" __global__ void __launch_bounds__(256, 4)                                                       \
      name(const __grid_constant__ cvc_flip_params params) {                                                 \
    cvc_flip_device::flip_parts<form, bytes>(params);                                                        \
  }

CVC_FLIP_KERNEL(cvc_flip_vertical, cvc_flip_form_copy, 16)
CVC_FLIP_KERNEL(cvc_flip_vectors_1, cvc_flip_form_reverse, 1)
CVC_FLIP_KERNEL(cvc_flip_vectors_2, cvc_flip_form_reverse, 2)
CVC_FLIP_KERNEL(cvc_flip_vectors_4, cvc_flip_form_reverse, 4)
CVC_FLIP_KERNEL(cvc_flip_vectors_8, cvc_flip_form_reverse, 8)
CVC_FLIP_KERNEL(cvc_flip_vectors_16, cvc_flip_form_reverse, 16)
CVC_FLIP_KERNEL(cvc_flip_triples_1, cvc_flip_form_reverse3, 1)
CVC_FLIP_KERNEL(cvc_flip_triples_2, cvc_flip_form_reverse3, 2)
CVC_FLIP_KERNEL(cvc_flip_triples_4, cvc_flip_form_reverse3, 4)
CVC_FLIP_KERNEL(cvc_flip_triples_8, cvc_flip_form_reverse3, 8)

extern "C" __global__ void __launch_bounds__(256, 3)
    cvc_flip_var_shape(const __grid_constant__ cvc_flip_var_shape_params params) {
  using namespace cvc_flip_device;
  __shared__ warp_groups<3> groups[block_warps];
  __shared__ cvc_flip_set sets[cvc_flip_max_images];
  __shared__ cvc_flip_plan plans[cvc_flip_max_images];
  const int own = static_cast<int>(threadIdx.x);
  if (own < params.count) {
    const cvc_flip_image &image = params.images[own];
    const int32_t code = read_element<int32_t>(reinterpret_cast<const byte *>(params.codes) +
                                               image.code_index * params.code_stride);
    sets[own] = cvc_flip_set_of(image, code);
    plans[own] = cvc_flip_plan_of(sets[own]);
  }
  __syncthreads();
  const int warp = own / warp_lanes, lane = own % warp_lanes;
  // Blocks are counted on from image to image.
  int64_t block = blockIdx.x;
  for (int32_t i = 0; i < params.count; ++i) {
    for (; block < plans[i].blocks; block += gridDim.x) {
      if (plans[i].form == cvc_flip_form_elements) {
        flip_elements(sets[i], sets[i].axes, plans[i], block);
      } else {
        flip_any_part(sets[i], plans[i], block * block_warps + warp, lane, groups[warp]);
      }
    }
    block -= plans[i].blocks;
  }
}

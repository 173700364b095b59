// GPU build of the flip kernels: threads move vectors of 16 bytes and reverse the pixels in them, warps those
// of groups of three vectors, or threads move elements.
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

// Vector `unit` of the plane at `to`; `from` is the plane that it comes from, and its rows' step. `Bytes` are
// those of a pixel, where columns are reversed.
template <cvc_flip_form Form, int Bytes>
CVC_DEVICE void flip_vector(const cvc_plane_units &units, const byte *from, int64_t from_step, byte *to,
                            int64_t to_step, uint32_t unit) {
  if (unit >= static_cast<uint32_t>(units.count)) {
    return;
  }
  const row_unit at = find_row_unit(units, unit);
  from += at.row * from_step;
  to += at.row * to_step + 16ll * at.column;
  if (Form == cvc_flip_form_copy) {
    copy_vector(to, from + 16ll * at.column, units.row_size - 16ll * at.column);
  } else {
    pixel_group<1> group;
    set_vector(group, 0, load_16(from + 16ll * (units.per_row.value - 1 - at.column)));
    store_16(to, vector_of(permute_group<group_reverse<Bytes, 1>>(group), 0));
  }
}

// The warp's groups of three vectors, from number `first` on. `Bytes` are those of a third of a pixel.
template <int Bytes>
CVC_DEVICE void flip_triples(const cvc_plane_units &units, const byte *from, int64_t from_step, byte *to,
                             int64_t to_step, uint32_t first, int lane, warp_groups<3> &shared) {
  uint4 held[3];
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    const uint32_t index = lane + warp_lanes * k, unit = first + index / 3;
    if (unit < static_cast<uint32_t>(units.count)) {
      const row_unit at = find_row_unit(units, unit);
      held[k] = load_16(from + at.row * from_step + 48ll * (units.per_row.value - 1 - at.column) +
                        16 * (index % 3));
    }
  }
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    shared.vector[lane + warp_lanes * k] = held[k];
  }
  __syncwarp();
  shared.set_group(lane, permute_group<group_reverse<Bytes, 3>>(shared.group(lane)));
  __syncwarp();
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    const uint32_t index = lane + warp_lanes * k, unit = first + index / 3;
    if (unit < static_cast<uint32_t>(units.count)) {
      const row_unit at = find_row_unit(units, unit);
      store_16(to + at.row * to_step + 48ll * at.column + 16 * (index % 3), shared.vector[index]);
    }
  }
}

// Block number `block`. Form and bytes are known when it is compiled, so that a kernel has registers for its
// own form alone.
template <cvc_flip_form Form, int Bytes, class Set>
CVC_DEVICE void flip_block(const Set &set, cvc_flip_axes axes, const cvc_flip_plan &plan, uint32_t block,
                           warp_groups<3> *shared) {
  const cvc_plane_units &units = plan.units;
  const plane_block place = find_plane_block(units, block);
  const byte *from = plane_of(set.src, place);
  int64_t from_step = set.src.stride_h;
  if (axes.rows) {
    from += (set.height - 1) * from_step;
    from_step = -from_step;
  }
  byte *to = writable_plane_of(set.dst, place);
  if (Form == cvc_flip_form_reverse3) {
    const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
    flip_triples<Bytes>(units, from, from_step, to, set.dst.stride_h, place.first + warp_lanes * warp,
                        static_cast<int>(threadIdx.x) % warp_lanes, shared[warp]);
  } else {
    flip_vector<Form, Bytes>(units, from, from_step, to, set.dst.stride_h, place.first + threadIdx.x);
  }
}

template <cvc_flip_form Form, int Bytes> CVC_DEVICE void flip_planes(const cvc_flip_params &params) {
  warp_groups<3> *shared = nullptr;
  if (Form == cvc_flip_form_reverse3) {
    __shared__ warp_groups<3> groups[block_warps];
    shared = groups;
  }
  flip_block<Form, Bytes>(params, cvc_flip_axes_of(params.flip_code), params.plan, blockIdx.x, shared);
}

// The block of an image whose form and pixels are only known here.
template <int Bytes>
CVC_DEVICE bool flip_block_of(const cvc_flip_set &set, const cvc_flip_plan &plan, uint32_t block,
                              warp_groups<3> *shared) {
  if (plan.form == cvc_flip_form_reverse && plan.pixel_bytes == Bytes) {
    flip_block<cvc_flip_form_reverse, Bytes>(set, set.axes, plan, block, shared);
    return true;
  }
  if (Bytes <= 8 && plan.form == cvc_flip_form_reverse3 && plan.pixel_bytes == 3 * Bytes) {
    flip_block<cvc_flip_form_reverse3, Bytes <= 8 ? Bytes : 8>(set, set.axes, plan, block, shared);
    __syncwarp();
    return true;
  }
  return false;
}

__device__ __noinline__ void flip_any_block(const cvc_flip_set &set, const cvc_flip_plan &plan,
                                            uint32_t block, warp_groups<3> *shared) {
  if (plan.form == cvc_flip_form_copy) {
    flip_block<cvc_flip_form_copy, 16>(set, set.axes, plan, block, shared);
  } else if (!flip_block_of<1>(set, plan, block, shared) && !flip_block_of<2>(set, plan, block, shared) &&
             !flip_block_of<4>(set, plan, block, shared) && !flip_block_of<8>(set, plan, block, shared)) {
    flip_block_of<16>(set, plan, block, shared);
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
  extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ cvc_flip_params params) {   \
    cvc_flip_device::flip_planes<form, bytes>(params);                                                       \
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
  // Blocks are counted on from image to image.
  int64_t block = blockIdx.x;
  for (int32_t i = 0; i < params.count; ++i) {
    for (; block < plans[i].blocks; block += gridDim.x) {
      if (plans[i].form == cvc_flip_form_elements) {
        flip_elements(sets[i], sets[i].axes, plans[i], block);
      } else {
        flip_any_block(sets[i], plans[i], static_cast<uint32_t>(block), groups);
      }
    }
    block -= plans[i].blocks;
  }
}

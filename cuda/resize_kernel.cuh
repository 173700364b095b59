// The GPU's pillow_resize: tiles of U8 images, whose samples go to a sink, and any other image sample by
// sample.
#ifndef CVC_RESIZE_KERNEL_CUH
#define CVC_RESIZE_KERNEL_CUH

#include "resize.cuh"
#include "resize_tile.cuh"
#include "units.cuh"

namespace cvc_resize_device {

struct sample_place {
  int64_t n;
  int32_t c;
  int32_t y;
  int32_t x;
};

// The order is that of memory for interleaved and for planar images, so that threads side by side write side
// by side.
CVC_DEVICE sample_place place_of_sample(const cvc_resize_image &image, int64_t channels, int64_t sample) {
  const bool planar = image.dst.stride_c > image.dst.stride_h;
  const int64_t row = image.dst_width * (planar ? 1 : channels);
  const int64_t whole = sample / row;
  const int64_t in_row = sample - whole * row;
  const int64_t plane = whole / image.dst_height;
  sample_place place;
  place.y = static_cast<int32_t>(whole - plane * image.dst_height);
  place.n = planar ? plane / channels : plane;
  place.c = static_cast<int32_t>(planar ? plane - place.n * channels : in_row % channels);
  place.x = static_cast<int32_t>(planar ? in_row : in_row / channels);
  return place;
}

CVC_DEVICE cvc_resize_plane plane_of(const cvc_resize_image &image, const sample_place &place,
                                     int32_t channel) {
  return cvc_resize_plane{reinterpret_cast<const byte *>(cvc_view_address(image.src, place.n, channel, 0, 0)),
                          image.src.stride_h, image.src.stride_w};
}

template <class T> CVC_DEVICE void resize_sample(const cvc_resize_image &image, const sample_place &place) {
  const T value =
      cvc_resize_sample<T>(plane_of(image, place, place.c), cvc_resize_horizontal(image),
                           cvc_resize_vertical(image), image.vertical_first != 0, place.x, place.y);
  write_element<T>(reinterpret_cast<byte *>(cvc_view_address(image.dst, place.n, place.c, place.y, place.x)),
                   value);
}

CVC_DEVICE void resize_sample_u8(const cvc_resize_image &image, const sample_place &place, int32_t channels,
                                 bool premultiply) {
  const int32_t last = channels - 1;
  const bool colour = premultiply && place.c != last;
  const cvc_resize_plane alpha = plane_of(image, place, last);
  uint8_t value = cvc_resize_sample_u8(plane_of(image, place, place.c), colour ? &alpha : nullptr,
                                       cvc_resize_horizontal(image), cvc_resize_vertical(image),
                                       image.vertical_first != 0, place.x, place.y);
  if (colour) {
    const uint8_t own_alpha =
        cvc_resize_sample_u8(alpha, nullptr, cvc_resize_horizontal(image), cvc_resize_vertical(image),
                             image.vertical_first != 0, place.x, place.y);
    value = cvc_resize_divide_alpha(value, own_alpha);
  }
  *reinterpret_cast<byte *>(cvc_view_address(image.dst, place.n, place.c, place.y, place.x)) = value;
}

template <class T> CVC_DEVICE void move_nearest(const cvc_resize_image &image, const sample_place &place) {
  const int32_t x = cvc_resize_bounds(cvc_resize_horizontal(image), place.x).first;
  const int32_t y = cvc_resize_bounds(cvc_resize_vertical(image), place.y).first;
  write_element<T>(
      reinterpret_cast<byte *>(cvc_view_address(image.dst, place.n, place.c, place.y, place.x)),
      read_element<T>(reinterpret_cast<const byte *>(cvc_view_address(image.src, place.n, place.c, y, x))));
}

CVC_DEVICE void move_nearest(const cvc_resize_image &image, const sample_place &place, int64_t bytes) {
  switch (bytes) {
  case 1:
    return move_nearest<uint8_t>(image, place);
  case 2:
    return move_nearest<uint16_t>(image, place);
  case 4:
    return move_nearest<uint32_t>(image, place);
  default:
    return move_nearest<uint64_t>(image, place);
  }
}

CVC_DEVICE void resize_sample_of_kind(const cvc_resize_params &params, const cvc_resize_image &image,
                                      const sample_place &place) {
  switch (params.kind) {
  case cvc_kind_s8:
    return resize_sample<int8_t>(image, place);
  case cvc_kind_u16:
    return resize_sample<uint16_t>(image, place);
  case cvc_kind_s16:
    return resize_sample<int16_t>(image, place);
  case cvc_kind_s32:
    return resize_sample<int32_t>(image, place);
  case cvc_kind_f16:
    return resize_sample<cvc_half>(image, place);
  case cvc_kind_f32:
    return resize_sample<float>(image, place);
  default:
    return resize_sample<double>(image, place);
  }
}

// Block number `block` of an image's samples. Not inlined: it would cost the tiles registers.
template <bool Fixed>
__device__ __noinline__ void resize_samples(const cvc_resize_params &params, int32_t g, int64_t block) {
  const cvc_resize_image &image = params.images[g];
  const int64_t sample = block * block_threads + threadIdx.x;
  const int64_t all =
      static_cast<int64_t>(image.dst_width) * image.dst_height * params.channels * params.batch;
  if (sample >= all) {
    return;
  }
  const sample_place place = place_of_sample(image, params.channels, sample);
  if (Fixed) {
    resize_sample_u8(image, place, static_cast<int32_t>(params.channels),
                     (params.flags & cvc_resize_premultiply) != 0 &&
                         (image.horizontal_table != 0 || image.vertical_table != 0));
  } else if ((params.flags & cvc_resize_nearest) != 0) {
    move_nearest(image, place, cvc_kind_bytes(params.kind));
  } else {
    resize_sample_of_kind(params, image, place);
  }
}

// `Sink` is what resize_sink.cuh describes, `target` what it is made from.
template <bool Wide, class Sink>
CVC_DEVICE void resize_fixed(const cvc_resize_params &params, const typename Sink::source &target) {
  // Blocks are counted on from geometry to geometry; no memory holds so much that the grid is cut short.
  int64_t block = blockIdx.x;
  for (int32_t g = 0; g < params.image_count; ++g) {
    const cvc_resize_image &image = params.images[g];
    if (cvc_resize_is_tiled(image.tiling)) {
      const cvc_resize_grid grid = cvc_resize_grid_of(image, params.channels, image.tiling);
      const int64_t blocks = cvc_resize_tile_blocks(grid, image.tiling, params.batch);
      if (block < blocks) {
        return resize_tiles<Wide, Sink>(image, params.channels, params.batch, static_cast<uint32_t>(block),
                                        target);
      }
      block -= blocks;
    } else if constexpr (Sink::any_image) {
      const int64_t blocks = cvc_resize_sample_blocks(image, params);
      if (block < blocks) {
        return resize_samples<true>(params, g, block);
      }
      block -= blocks;
    }
  }
}

} // namespace cvc_resize_device

#endif

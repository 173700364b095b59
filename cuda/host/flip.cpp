// Host build of the flip kernels: rows are moved, or swapped with their mirror image, as bytes.
#include "../flip.cuh"
#include "pixel_moves.h"

namespace {

constexpr int64_t block_bytes = 4096;
// Channels that lie side by side move as one pixel, unless that pixel is very large.
constexpr int64_t most_pixel_bytes = 512;

// What all rows of an image share. `src` and `dst` are element (0, 0, 0) of the image.
struct image_flip {
  const byte *src;
  byte *dst;
  int64_t src_row, dst_row;     // bytes from row to row
  int64_t src_step, dst_step;   // bytes from pixel to pixel
  int64_t src_plane, dst_plane; // bytes from plane to plane
  int64_t planes;               // channels that move one by one
  int64_t pixel_bytes;
  int64_t width, height;
  cvc_flip_axes axes;
  bool in_place;
  move_function move;
};

image_flip describe(const cvc_view &src, const cvc_view &dst, int64_t channels, int64_t height, int64_t width,
                    int64_t element_bytes, cvc_flip_axes axes, bool in_place) {
  image_flip flip;
  const bool together =
      channels == 1 || (channels > 1 && src.stride_c == element_bytes && dst.stride_c == element_bytes &&
                        channels * element_bytes <= most_pixel_bytes);
  flip.src = reinterpret_cast<const byte *>(src.data);
  flip.dst = reinterpret_cast<byte *>(dst.data);
  flip.src_row = src.stride_h;
  flip.dst_row = dst.stride_h;
  flip.src_step = src.stride_w;
  flip.dst_step = dst.stride_w;
  flip.src_plane = src.stride_c;
  flip.dst_plane = dst.stride_c;
  flip.planes = together ? 1 : channels;
  flip.pixel_bytes = together ? channels * element_bytes : element_bytes;
  flip.width = width;
  flip.height = height;
  flip.axes = axes;
  flip.in_place = in_place;
  flip.move = choose_move(flip.pixel_bytes);
  return flip;
}

void swap_pixels(const image_flip &flip, byte *first, int64_t first_step, byte *second, int64_t second_step,
                 int64_t count) {
  byte first_block[block_bytes];
  byte second_block[block_bytes];
  const int64_t bytes = flip.pixel_bytes;
  const int64_t most = block_bytes / bytes;
  for (int64_t done = 0; done < count; done += most) {
    const int64_t now = count - done < most ? count - done : most;
    byte *first_now = first + done * first_step;
    byte *second_now = second + done * second_step;
    flip.move(first_now, first_step, first_block, bytes, now, bytes);
    flip.move(second_now, second_step, second_block, bytes, now, bytes);
    flip.move(first_block, bytes, second_now, second_step, now, bytes);
    flip.move(second_block, bytes, first_now, first_step, now, bytes);
  }
}

void flip_row(const image_flip &flip, int64_t y) {
  const int64_t mirror = flip.axes.rows ? flip.height - 1 - y : y;
  const int64_t mirror_start = flip.axes.columns ? (flip.width - 1) * flip.src_step : 0;
  const int64_t mirror_step = flip.axes.columns ? -flip.src_step : flip.src_step;
  if (flip.in_place) {
    const int64_t swaps = cvc_flip_swaps(flip.axes, flip.height, flip.width, y);
    for (int64_t plane = 0; plane < flip.planes; ++plane) {
      byte *start = flip.dst + plane * flip.dst_plane;
      swap_pixels(flip, start + y * flip.dst_row, flip.dst_step, start + mirror * flip.dst_row + mirror_start,
                  mirror_step, swaps);
    }
    return;
  }
  for (int64_t plane = 0; plane < flip.planes; ++plane) {
    flip.move(flip.src + plane * flip.src_plane + mirror * flip.src_row + mirror_start, mirror_step,
              flip.dst + plane * flip.dst_plane + y * flip.dst_row, flip.dst_step, flip.width,
              flip.pixel_bytes);
  }
}

} // namespace

extern "C" void cvc_host_flip(const void *block, int64_t begin, int64_t end) {
  const cvc_flip_params &params = *static_cast<const cvc_flip_params *>(block);
  image_flip flip = describe(params.src, params.dst, params.channels, params.height, params.width,
                             params.element_bytes, cvc_flip_axes_of(params.flip_code), params.in_place != 0);
  const int64_t rows = cvc_flip_rows(params);
  for (int64_t item = begin; item < end;) {
    const int64_t image = item / rows;
    flip.src = reinterpret_cast<const byte *>(params.src.data) + image * params.src.stride_n;
    flip.dst = reinterpret_cast<byte *>(params.dst.data) + image * params.dst.stride_n;
    const int64_t stop = end < (image + 1) * rows ? end : (image + 1) * rows;
    for (; item < stop; ++item) {
      flip_row(flip, item - image * rows);
    }
  }
}

extern "C" void cvc_host_flip_var_shape(const void *block, int64_t begin, int64_t end) {
  const cvc_flip_var_shape_params &params = *static_cast<const cvc_flip_var_shape_params *>(block);
  for (int32_t i = 0; i < params.count; ++i) {
    const cvc_flip_image &image = params.images[i];
    const int64_t first = begin > image.first_item ? begin : image.first_item;
    const int64_t image_end = image.first_item + image.height;
    const int64_t stop = end < image_end ? end : image_end;
    if (first >= stop) {
      continue;
    }
    int32_t code;
    memcpy(&code, reinterpret_cast<const byte *>(params.codes) + image.code_index * params.code_stride,
           sizeof code);
    const image_flip flip = describe(image.src, image.dst, image.channels, image.height, image.width,
                                     image.element_bytes, cvc_flip_axes_of_image(code), image.in_place != 0);
    for (int64_t item = first; item < stop; ++item) {
      flip_row(flip, item - image.first_item);
    }
  }
}

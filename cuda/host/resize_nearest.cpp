// NEAREST of the host's resize: pixels are moved as they are, from the positions in the tables.
#include "resize_band.h"

namespace cvc_resize_host {
namespace {

// Pixels of `Bytes` without gaps in them, at any distance.
template <int Bytes> void move_pixels(const picture &image, const unsigned char *from, unsigned char *to) {
  for (int x = 0; x < image.dst_width; ++x) {
    const int64_t source = cvc_resize_bounds(image.horizontal, x).first;
    __builtin_memcpy(to + x * image.dst.stride_w, from + source * image.src.stride_w, Bytes);
  }
}

using move_function = void (*)(const picture &image, const unsigned char *from, unsigned char *to);

// Null: no such pixel.
move_function move_of(size_t bytes) {
  switch (bytes) {
  case 1:
    return move_pixels<1>;
  case 2:
    return move_pixels<2>;
  case 3:
    return move_pixels<3>;
  case 4:
    return move_pixels<4>;
  case 6:
    return move_pixels<6>;
  case 8:
    return move_pixels<8>;
  case 12:
    return move_pixels<12>;
  case 16:
    return move_pixels<16>;
  case 24:
    return move_pixels<24>;
  case 32:
    return move_pixels<32>;
  default:
    return nullptr;
  }
}

} // namespace

void nearest_band(const picture &image, int begin, int end) {
  const size_t bytes = element_bytes(image.kind);
  const bool whole_pixels = image.channels == 1 || (image.src.stride_c == static_cast<int64_t>(bytes) &&
                                                    image.dst.stride_c == static_cast<int64_t>(bytes));
  const int moves = whole_pixels ? 1 : image.channels;
  const move_function move = move_of(whole_pixels ? bytes * static_cast<size_t>(image.channels) : bytes);
  if (move == nullptr) {
    return;
  }
  for (int y = begin; y < end; ++y) {
    const int source = cvc_resize_bounds(image.vertical, y).first;
    for (int c = 0; c < moves; ++c) {
      move(image, row_of(image.src, source, 0).base + c * image.src.stride_c,
           row_of(image.dst, y, 0).base + c * image.dst.stride_c);
    }
  }
}

} // namespace cvc_resize_host

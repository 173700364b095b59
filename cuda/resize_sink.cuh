// Where the GPU's pillow_resize of U8 puts the samples of its tiles.
//
// A sink is a small object that each thread makes once: `Sink(source, image, first_sample)`, where `source`
// is what the kernel has (a parameter of type `Sink::source`) and `first_sample` where the block's strip
// begins in a row. For each band all threads call `enter(n, plane)`: n is the image of the batch, and plane
// its channel where images are planar, 0 where they are interleaved. The tile calls `store(row, sample,
// words)` for each of the band's rows and 4, 8 or 16 adjacent samples of it: byte i of the words is sample
// `sample + i` of the row, its channels side by side where images are interleaved. `sample` is a multiple of
// how many come together; all rows exist, but samples from the end of the row on do not. Where
// `Sink::most_rows` is not 0, so many rows come at most between two calls by all threads: `begin(row)`, for
// rows from there on, and `end(row, again)`: the rows ended before that row, and others of the band follow or
// not.
#ifndef CVC_RESIZE_SINK_CUH
#define CVC_RESIZE_SINK_CUH

#include "device.cuh"
#include "resize_tiling.cuh"

namespace cvc_resize_device {

using namespace cvc_device;

CVC_DEVICE void store_bytes(byte *to, int count, uint4 words) {
  const uint32_t all[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    if (i < count) {
      to[i] = static_cast<byte>(all[i / 4] >> 8 * (i % 4));
    }
  }
}

// The rows of the result itself.
class result_rows {
public:
  using source = cvc_resize_params;
  static constexpr bool any_image = true;
  static constexpr int most_rows = 0;

  CVC_DEVICE result_rows(const source &params, const cvc_resize_image &image, int)
      : params_(params), image_(image) {}

  // What it finds is not kept between bands: registers are short.
  CVC_DEVICE void enter(int n, int plane) {
    const cvc_resize_grid grid = cvc_resize_grid_of(image_, params_.channels, image_.tiling);
    row_samples_ = grid.row_samples;
    aligned_ = cvc_view_is_aligned(image_.dst, params_.batch, grid.planes, image_.dst_height, 16);
    rows_ = in_global(reinterpret_cast<byte *>(cvc_view_address(image_.dst, n, plane, 0, 0)));
  }
  template <int Words> CVC_DEVICE void store(int row, int sample, const uint32_t (&words)[Words]) const {
    byte *to = rows_ + row * image_.dst.stride_h + sample;
    const uint4 all = make_uint4(words[0], words[1 % Words], words[2 % Words], words[3 % Words]);
    const int left = row_samples_ - sample;
    if (!aligned_ || left < 4 * Words) {
      if (left > 0) {
        store_bytes(to, left < 4 * Words ? left : 4 * Words, all);
      }
    } else if (Words == 4) {
      *reinterpret_cast<uint4 *>(to) = all;
    } else if (Words == 1) {
      *reinterpret_cast<uint32_t *>(to) = all.x;
    } else {
      *reinterpret_cast<uint2 *>(to) = make_uint2(all.x, all.y);
    }
  }

private:
  const cvc_resize_params &params_;
  const cvc_resize_image &image_;
  byte *rows_;
  int row_samples_;
  bool aligned_; // all rows of the result begin at a multiple of 16
};

} // namespace cvc_resize_device

#endif

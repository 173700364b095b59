// Where the GPU's pillow_resize of U8 puts the samples of its tiles.
//
// A sink is a small object that each thread makes for each band: `Sink(source, image, first_sample, n,
// plane)`, where `source` is what the kernel has (a parameter of type `Sink::source`), `first_sample` where
// the strip begins in a row, n the image of the batch, and plane its channel where images are planar, 0 where
// they are interleaved. All threads call `begin(row)`, with rows from there on at most `Sink::most_rows`.
// Then the tile calls `store(row, sample, words)` for each row and 4, 8 or 16 adjacent samples of it: byte i
// of the words is sample `sample + i` of the row, its channels side by side where images are interleaved.
// `sample` is a multiple of how many come together; all rows exist, but samples from the end of the row on do
// not. Then all threads call `end(row, again)`: the rows ended before that row, and others follow or not.
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
  static constexpr int most_rows = 1 << 20;

  CVC_DEVICE result_rows(const source &params, const cvc_resize_image &image, int, int n, int plane)
      : rows_(in_global(reinterpret_cast<byte *>(cvc_view_address(image.dst, n, plane, 0, 0)))),
        stride_(image.dst.stride_h) {
    const cvc_resize_grid grid = cvc_resize_grid_of(image, params.channels, image.tiling);
    row_samples_ = grid.row_samples;
    aligned_ = cvc_view_is_aligned(image.dst, params.batch, grid.planes, image.dst_height, 16);
  }

  CVC_DEVICE void begin(int) {}
  CVC_DEVICE void end(int, bool) {}

  template <int Words> CVC_DEVICE void store(int row, int sample, const uint32_t (&words)[Words]) const {
    byte *to = rows_ + row * stride_ + sample;
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
  byte *rows_;
  int64_t stride_;
  int row_samples_;
  bool aligned_; // all rows of the result begin at a multiple of 16
};

} // namespace cvc_resize_device

#endif

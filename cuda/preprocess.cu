// GPU build of the fused preprocess kernel: the tiles of pillow_resize, whose samples go through a table of
// what each value becomes to where they belong in the result.
#include "preprocess.cuh"
#include "resize_kernel.cuh"

namespace cvc_preprocess_device {

using namespace cvc_device;

// A sink of tiles, as resize_sink.cuh describes. Samples are gathered in shared memory, as a strip's rows;
// then each of the block's threads has one sample of several rows, in the order of the result's memory.
class finished_rows {
public:
  struct source {
    const cvc_preprocess_params &params;
    byte *shared; // the table of values, then rows of a strip
  };
  static constexpr bool any_image = false;
  static constexpr int most_rows = cvc_preprocess_staged_rows;

  CVC_DEVICE finished_rows(const source &from, const cvc_resize_image &image, int first_sample)
      : from_(from), image_(image), first_sample_(first_sample) {
    const int channels = side_by_side(), left = image.dst_width * channels - first_sample;
    const int samples = left < strip() ? left : strip(), place = static_cast<int>(threadIdx.x) % strip();
    first_row_ = place < samples ? static_cast<int>(threadIdx.x) / strip() : most_rows;
    place_ = channels > 1 && image.dst.stride_c != bytes() ? sample_by_channel(place, samples) : place;
    // Elements are written whole where all of them are aligned.
    aligned_ = ((image.dst.data | image.dst.stride_n | image.dst.stride_c | image.dst.stride_h |
                 image.dst.stride_w) &
                (bytes() - 1)) == 0;
  }

  CVC_DEVICE void enter(int n, int plane) {
    const int channels = side_by_side(), sample = first_sample_ + place_, pixel = sample / channels;
    const int channel = sample - pixel * channels + plane;
    to_ = in_global(reinterpret_cast<byte *>(cvc_view_address(
        image_.dst, n, cvc_preprocess_channel(from_.params.finish, channel), first_row_, pixel)));
    values_ = in_shared(reinterpret_cast<const uint32_t *>(from_.shared)) + cvc_preprocess_values * channel;
  }

  CVC_DEVICE void begin(int row) { row_ = row; }

  template <int Words> CVC_DEVICE void store(int row, int sample, const uint32_t (&words)[Words]) const {
    byte *const to = stage() + (row - row_) * strip() + (sample - first_sample_);
    if (Words == 4) {
      *reinterpret_cast<uint4 *>(to) =
          make_uint4(words[0], words[1 % Words], words[2 % Words], words[3 % Words]);
    } else if (Words == 2) {
      *reinterpret_cast<uint2 *>(to) = make_uint2(words[0], words[1 % Words]);
    } else {
      *reinterpret_cast<uint32_t *>(to) = words[0];
    }
  }

  CVC_DEVICE void end(int row, bool again) const {
    __syncthreads();
    finish(row - row_);
    if (again) {
      __syncthreads();
    }
  }

private:
  CVC_DEVICE int bytes() const { return static_cast<int>(cvc_kind_bytes(from_.params.finish.dst_kind)); }
  CVC_DEVICE int strip() const { return cvc_resize_strip(image_.tiling.horizontal_steps); }
  CVC_DEVICE int side_by_side() const {
    return image_.tiling.planar != 0 ? 1 : static_cast<int>(from_.params.resize.channels);
  }
  CVC_DEVICE byte *stage() const {
    return in_shared(from_.shared + cvc_preprocess_table_bytes(from_.params.resize.channels));
  }

  // Of `samples` of a row, which begin anywhere in a pixel: number `place` in the order of first all of one
  // channel, then all of the next.
  CVC_DEVICE int sample_by_channel(int place, int samples) const {
    const int channels = side_by_side();
    int first = (channels - first_sample_ % channels) % channels; // of channel 0
    for (int channel = 0;; ++channel) {
      const int count = (samples - first + channels - 1) / channels;
      if (place < count || channel + 1 == channels) {
        return first + place * channels;
      }
      place -= count;
      first = first + 1 == channels ? 0 : first + 1;
    }
  }

  CVC_DEVICE void finish(int rows) const {
    switch (aligned_ ? bytes() : 0) {
    case 1:
      return put<uint8_t>(rows);
    case 2:
      return put<uint16_t>(rows);
    case 4:
      return put<uint32_t>(rows);
    default:
      return put_bytes(rows);
    }
  }

  template <class T> CVC_DEVICE void put(int rows) const {
    const int step = block_threads / strip();
    const int64_t to_step = step * image_.dst.stride_h;
    const byte *from = stage() + first_row_ * strip() + place_;
    byte *to = to_ + row_ * image_.dst.stride_h;
#pragma unroll 4
    for (int row = first_row_; row < rows; row += step) {
      *reinterpret_cast<T *>(to) = static_cast<T>(values_[*from]);
      from += step * strip();
      to += to_step;
    }
  }

  CVC_DEVICE void put_bytes(int rows) const {
#pragma unroll 1
    for (int row = first_row_; row < rows; row += block_threads / strip()) {
      const uint32_t value = values_[stage()[row * strip() + place_]];
      byte *const to = to_ + (row_ + row - first_row_) * image_.dst.stride_h;
      for (int i = 0; i < bytes(); ++i) {
        to[i] = static_cast<byte>(value >> 8 * i);
      }
    }
  }

  const source &from_;
  const cvc_resize_image &image_;
  int first_sample_; // of the strip
  int row_ = 0;      // where the gathered rows begin
  // What the thread finishes: of every few of these rows, from this one on, the sample at a place of the
  // strip.
  int first_row_;
  int place_;
  bool aligned_;
  byte *to_; // of row `first_row_` of the image
  const uint32_t *values_;
};

template <bool Wide> CVC_DEVICE void preprocess(const cvc_preprocess_params &params) {
  byte *const shared = dynamic_shared() + params.finish.values_offset;
  uint32_t *const values = reinterpret_cast<uint32_t *>(shared);
  for (uint32_t channel = 0; channel < params.resize.channels; ++channel) {
    values[cvc_preprocess_values * channel + threadIdx.x] =
        cvc_preprocess_value(params.finish, channel, static_cast<uint8_t>(threadIdx.x));
  }
  __syncthreads();
  const finished_rows::source source{params, shared};
  cvc_resize_device::resize_fixed<Wide, finished_rows>(params.resize, source);
}

} // namespace cvc_preprocess_device

extern "C" __global__ void __launch_bounds__(256, cvc_resize_blocks)
    cvc_preprocess(const __grid_constant__ cvc_preprocess_params params) {
  cvc_preprocess_device::preprocess<false>(params);
}

extern "C" __global__ void __launch_bounds__(256, cvc_resize_blocks)
    cvc_preprocess_wide(const __grid_constant__ cvc_preprocess_params params) {
  cvc_preprocess_device::preprocess<true>(params);
}

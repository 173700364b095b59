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

    CVC_DEVICE int bytes() const { return static_cast<int>(cvc_kind_bytes(params.finish.dst_kind)); }
  };
  static constexpr bool any_image = false;
  static constexpr int most_rows = cvc_preprocess_staged_rows;

  CVC_DEVICE finished_rows(const source &from, const cvc_resize_image &image, int first_sample, int n,
                           int plane)
      : from_(from), image_(image), first_sample_(first_sample), image_number_(n), plane_(plane) {}

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
  CVC_DEVICE int strip() const { return cvc_resize_strip(image_.tiling.horizontal_steps); }
  CVC_DEVICE byte *stage() const {
    return in_shared(from_.shared + cvc_preprocess_table_bytes(from_.params.resize.channels));
  }

  CVC_DEVICE void finish(int rows) const {
    const int channels = image_.tiling.planar != 0 ? 1 : static_cast<int>(from_.params.resize.channels);
    const int left = image_.dst_width * channels - first_sample_;
    const int samples = left < strip() ? left : strip();
    int place = static_cast<int>(threadIdx.x) % strip();
    if (place >= samples) {
      return;
    }
    const bool by_channel = channels > 1 && image_.dst.stride_c != from_.bytes();
    const int place_sample = by_channel ? sample_by_channel(place, samples, channels) : place;
    const int sample = first_sample_ + place_sample;
    const int pixel = sample / channels, channel = sample - pixel * channels + plane_;
    const int first_row = static_cast<int>(threadIdx.x) / strip();
    const byte *const bytes = stage() + first_row * strip() + place_sample;
    const uint32_t *const values =
        in_shared(reinterpret_cast<const uint32_t *>(from_.shared)) + cvc_preprocess_values * channel;
    byte *const to = in_global(reinterpret_cast<byte *>(
        cvc_view_address(image_.dst, image_number_, cvc_preprocess_channel(from_.params.finish, channel),
                         row_ + first_row, pixel)));
    switch (from_.bytes()) {
    case 1:
      return put<uint8_t>(bytes, values, to, rows - first_row);
    case 2:
      return put<uint16_t>(bytes, values, to, rows - first_row);
    default:
      return put<uint32_t>(bytes, values, to, rows - first_row);
    }
  }

  // Of `samples`, which begin anywhere in a pixel: number `place` in the order of first all of one channel,
  // then all of the next.
  CVC_DEVICE int sample_by_channel(int place, int samples, int channels) const {
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

  template <class T>
  CVC_DEVICE void put(const byte *bytes, const uint32_t *values, byte *to, int rows) const {
    const int step = block_threads / strip();
    const int64_t to_step = step * image_.dst.stride_h;
#pragma unroll 4
    for (int row = 0; row < rows; row += step) {
      write_element<T>(to, static_cast<T>(values[*bytes]));
      bytes += step * strip();
      to += to_step;
    }
  }

  const source &from_;
  const cvc_resize_image &image_;
  int first_sample_, image_number_, plane_;
  int row_ = 0;
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

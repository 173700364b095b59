// GPU build of the fused preprocess kernel: the tiles of pillow_resize, whose samples go through a table of
// what each value becomes to where they belong in the result.
#include "preprocess.cuh"
#include "resize_kernel.cuh"

namespace cvc_preprocess_device {

using namespace cvc_device;

// A sink of tiles, as resize_sink.cuh describes.
class finished_rows {
public:
  struct source {
    const cvc_preprocess_params &params;
    const uint32_t *values;
  };
  static constexpr bool any_image = false;

  CVC_DEVICE finished_rows(const source &from, const cvc_resize_image &image, int n, int plane)
      : source_(from), channels_(image.tiling.planar != 0 ? 1 : from.params.resize.channels),
        plane_(static_cast<uint32_t>(plane)), stride_h_(image.dst.stride_h), stride_w_(image.dst.stride_w),
        stride_c_(image.dst.stride_c),
        to_(in_global(reinterpret_cast<byte *>(cvc_view_address(image.dst, n, 0, 0, 0)))) {
    row_samples_ = static_cast<uint32_t>(image.dst_width) * channels_;
  }

  template <int Words> CVC_DEVICE void store(int row, int sample, const uint32_t (&words)[Words]) const {
    switch (cvc_kind_bytes(source_.params.finish.dst_kind)) {
    case 1:
      return store_elements<uint8_t>(row, sample, words);
    case 2:
      return store_elements<uint16_t>(row, sample, words);
    default:
      return store_elements<uint32_t>(row, sample, words);
    }
  }

private:
  template <class T, int Words>
  CVC_DEVICE void store_elements(int row, int sample, const uint32_t (&words)[Words]) const {
    const uint32_t first = static_cast<uint32_t>(sample);
    // The quotient of numbers below 2^18 by 1 to 4, from the product with its inverse rounded up.
    uint32_t pixel = static_cast<uint32_t>(static_cast<uint64_t>(first) * ((1u << 30) / channels_ + 1) >> 30);
    uint32_t channel = first - pixel * channels_;
    byte *const to = to_ + row * stride_h_;
#pragma unroll
    for (int i = 0; i < 4 * Words; ++i) {
      if (first + i < row_samples_) {
        const uint32_t own = channel + plane_;
        const uint32_t value =
            source_.values[cvc_preprocess_values * own + (words[i / 4] >> 8 * (i % 4) & 255)];
        const int64_t place =
            pixel * stride_w_ + cvc_preprocess_channel(source_.params.finish, own) * stride_c_;
        write_element<T>(to + place, static_cast<T>(value));
      }
      if (++channel == channels_) {
        channel = 0;
        ++pixel;
      }
    }
  }

  const source &source_;
  uint32_t channels_; // side by side
  uint32_t plane_;
  uint32_t row_samples_;
  int64_t stride_h_;
  int64_t stride_w_;
  int64_t stride_c_;
  byte *to_;
};

template <bool Wide> CVC_DEVICE void preprocess(const cvc_preprocess_params &params) {
  uint32_t *const values = reinterpret_cast<uint32_t *>(dynamic_shared() + params.finish.values_offset);
  for (uint32_t channel = 0; channel < params.resize.channels; ++channel) {
    values[cvc_preprocess_values * channel + threadIdx.x] =
        cvc_preprocess_value(params.finish, channel, static_cast<uint8_t>(threadIdx.x));
  }
  __syncthreads();
  const finished_rows::source source{params, values};
  cvc_resize_device::resize_fixed<Wide, finished_rows>(params.resize, source);
}

} // namespace cvc_preprocess_device

extern "C" __global__ void __launch_bounds__(256, cvc_resize_narrow_blocks)
    cvc_preprocess(const __grid_constant__ cvc_preprocess_params params) {
  cvc_preprocess_device::preprocess<false>(params);
}

extern "C" __global__ void __launch_bounds__(256, cvc_resize_wide_blocks)
    cvc_preprocess_wide(const __grid_constant__ cvc_preprocess_params params) {
  cvc_preprocess_device::preprocess<true>(params);
}

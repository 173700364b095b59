// GPU build of the fused preprocess kernel: the tiles of pillow_resize, whose samples go through a table of
// what each value becomes to where they belong in the result.
#include "preprocess.cuh"
#include "resize_kernel.cuh"

namespace cvc_preprocess_device {

using namespace cvc_device;

// Where the samples of a plane of an image go.
struct finished_place {
  byte *to; // pixel 0 of row 0, channel 0
  int64_t stride_h;
  int64_t stride_w;
  int64_t stride_c;
  const uint32_t *values;
  uint32_t channels; // side by side
  uint32_t plane;
  uint32_t row_samples;
  uint32_t swaps;
  uint32_t element_bytes;
};

template <class T>
CVC_DEVICE void put_samples(const finished_place &place, int row, uint32_t sample, uint32_t count,
                            const uint32_t (&words)[4]) {
  // The quotient by 1 to 4 of a number that is not too large, from the product with its inverse rounded up.
  static_assert(cvc_preprocess_most_samples <= 1 << 18, "the quotient is exact");
  uint32_t pixel =
      static_cast<uint32_t>(static_cast<uint64_t>(sample) * ((1u << 30) / place.channels + 1) >> 30);
  uint32_t channel = sample - pixel * place.channels;
  byte *const to = place.to + row * place.stride_h;
#pragma unroll
  for (uint32_t i = 0; i < 16; ++i) {
    if (i < count) {
      const uint32_t own = channel + place.plane;
      const uint32_t value = place.values[cvc_preprocess_values * own + (words[i / 4] >> 8 * (i % 4) & 255)];
      const uint32_t target = place.swaps != 0 ? cvc_preprocess_swapped(own) : own;
      write_element<T>(to + (pixel * place.stride_w + target * place.stride_c), static_cast<T>(value));
    }
    if (++channel == place.channels) {
      channel = 0;
      ++pixel;
    }
  }
}

// Not inlined: it would be compiled anew for every form of the tiles.
__device__ __noinline__ void put_any_samples(const finished_place &place, int row, uint32_t sample,
                                             uint32_t count, uint4 words) {
  const uint32_t all[4] = {words.x, words.y, words.z, words.w};
  switch (place.element_bytes) {
  case 1:
    return put_samples<uint8_t>(place, row, sample, count, all);
  case 2:
    return put_samples<uint16_t>(place, row, sample, count, all);
  default:
    return put_samples<uint32_t>(place, row, sample, count, all);
  }
}

// A sink of tiles, as resize_sink.cuh describes.
class finished_rows {
public:
  struct source {
    const cvc_preprocess_params &params;
    const uint32_t *values;
  };
  static constexpr bool any_image = false;

  CVC_DEVICE finished_rows(const source &from, const cvc_resize_image &image, int n, int plane) {
    const cvc_preprocess_finish &finish = from.params.finish;
    place_.to = in_global(reinterpret_cast<byte *>(cvc_view_address(image.dst, n, 0, 0, 0)));
    place_.stride_h = image.dst.stride_h;
    place_.stride_w = image.dst.stride_w;
    place_.stride_c = image.dst.stride_c;
    place_.values = from.values;
    place_.channels = image.tiling.planar != 0 ? 1 : from.params.resize.channels;
    place_.plane = static_cast<uint32_t>(plane);
    place_.row_samples = static_cast<uint32_t>(image.dst_width) * place_.channels;
    place_.swaps = finish.swaps;
    place_.element_bytes = static_cast<uint32_t>(cvc_kind_bytes(finish.dst_kind));
  }

  template <int Words> CVC_DEVICE void store(int row, int sample, const uint32_t (&words)[Words]) const {
    const uint32_t first = static_cast<uint32_t>(sample);
    if (first < place_.row_samples) {
      const uint32_t left = place_.row_samples - first;
      put_any_samples(place_, row, first, left < 4 * Words ? left : 4 * Words,
                      make_uint4(words[0], words[1], words[2 % Words], words[3 % Words]));
    }
  }

private:
  finished_place place_;
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

extern "C" __global__ void __launch_bounds__(256, cvc_resize_blocks)
    cvc_preprocess(const __grid_constant__ cvc_preprocess_params params) {
  cvc_preprocess_device::preprocess<false>(params);
}

extern "C" __global__ void __launch_bounds__(256, cvc_resize_blocks)
    cvc_preprocess_wide(const __grid_constant__ cvc_preprocess_params params) {
  cvc_preprocess_device::preprocess<true>(params);
}

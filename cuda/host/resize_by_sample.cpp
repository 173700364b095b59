// The host's resize without scratch memory: each sample of the first pass is computed again for each tap of
// the second.
#include "resize_band.h"

namespace cvc_resize_host {
namespace {

cvc_resize_plane plane_of(const picture &image, int channel) {
  return cvc_resize_plane{image.src.base + channel * image.src.stride_c, image.src.stride_h,
                          image.src.stride_w};
}

template <class T> void by_sample(const picture &image, int begin, int end) {
  for (int c = 0; c < image.channels; ++c) {
    const cvc_resize_plane plane = plane_of(image, c);
    for (int y = begin; y < end; ++y) {
      for (int x = 0; x < image.dst_width; ++x) {
        const T value =
            cvc_resize_sample<T>(plane, image.horizontal, image.vertical, image.vertical_first, x, y);
        __builtin_memcpy(row_of(image.dst, y, x).base + c * image.dst.stride_c, &value, sizeof value);
      }
    }
  }
}

void by_sample_u8(const picture &image, int begin, int end) {
  const int last = image.channels - 1;
  const cvc_resize_plane alpha = plane_of(image, last);
  for (int y = begin; y < end; ++y) {
    for (int x = 0; x < image.dst_width; ++x) {
      uint8_t pixel[cvc_resize_max_channels];
      for (int c = 0; c <= last; ++c) {
        pixel[c] = cvc_resize_sample_u8(plane_of(image, c), image.premultiply && c != last ? &alpha : nullptr,
                                        image.horizontal, image.vertical, image.vertical_first, x, y);
      }
      for (int c = 0; c <= last; ++c) {
        const uint8_t value =
            image.premultiply && c != last ? cvc_resize_divide_alpha(pixel[c], pixel[last]) : pixel[c];
        row_of(image.dst, y, x).base[c * image.dst.stride_c] = value;
      }
    }
  }
}

} // namespace

void resize_band_by_sample(const picture &image, int begin, int end) {
  switch (image.kind) {
  case cvc_kind_u8:
    return by_sample_u8(image, begin, end);
  case cvc_kind_s8:
    return by_sample<int8_t>(image, begin, end);
  case cvc_kind_u16:
    return by_sample<uint16_t>(image, begin, end);
  case cvc_kind_s16:
    return by_sample<int16_t>(image, begin, end);
  case cvc_kind_s32:
    return by_sample<int32_t>(image, begin, end);
  case cvc_kind_f16:
    return by_sample<cvc_half>(image, begin, end);
  case cvc_kind_f32:
    return by_sample<float>(image, begin, end);
  case cvc_kind_f64:
    return by_sample<double>(image, begin, end);
  default:
    return;
  }
}

} // namespace cvc_resize_host

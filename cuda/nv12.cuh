// Parameter block and per-pixel arithmetic of the NV12 kernel, for the host and the GPU build.
#ifndef CVC_NV12_CUH
#define CVC_NV12_CUH

#include <stdint.h>

#include "view.cuh"

// What R'G'B' of 8 bits is of Y'CbCr of 8 bits, in 20 fraction bits. With Kr and Kb of ITU-R BT.601-7 (0.299,
// 0.114) or BT.709-6 (0.2126, 0.0722) and Kg = 1 - Kr - Kb:
//   R' = y + 2 (1 - Kr) r,  B' = y + 2 (1 - Kb) b,  G' = y - (2 Kb (1 - Kb) b + 2 Kr (1 - Kr) r) / Kg
// where y = 255 / 219 (Y' - 16), b and r = 255 / 224 (Cb or Cr - 128) in limited range (both
// Recommendations), and y = Y', b and r = Cb or Cr - 128 in full range (ITU-T T.871 and H.273).
struct cvc_nv12_coefficients {
  int32_t luma_offset;
  int32_t luma;
  int32_t red_of_cr;
  int32_t green_of_cb; // negative
  int32_t green_of_cr; // negative
  int32_t blue_of_cb;
};

constexpr int cvc_nv12_fraction_bits = 20;

struct cvc_rgb8 {
  uint8_t red;
  uint8_t green;
  uint8_t blue;
};

// No sum of two products passes 31 bits: at most 1.17 * 255 + 2.2 * 128, times 2^20.
CVC_HD inline uint8_t cvc_nv12_clip(int32_t sum) {
  const int32_t rounded = (sum + (1 << (cvc_nv12_fraction_bits - 1))) >> cvc_nv12_fraction_bits;
  return static_cast<uint8_t>(rounded < 0 ? 0 : rounded > 255 ? 255 : rounded);
}

CVC_HD inline cvc_rgb8 cvc_nv12_pixel(const cvc_nv12_coefficients &coefficients, int32_t luma, int32_t cb,
                                      int32_t cr) {
  const int32_t grey = coefficients.luma * (luma - coefficients.luma_offset);
  const int32_t b = cb - 128;
  const int32_t r = cr - 128;
  return cvc_rgb8{cvc_nv12_clip(grey + coefficients.red_of_cr * r),
                  cvc_nv12_clip(grey + coefficients.green_of_cb * b + coefficients.green_of_cr * r),
                  cvc_nv12_clip(grey + coefficients.blue_of_cb * b)};
}

// Kernel `cvc_nv12`: a rectangle of frames becomes RGB of 8 bits, each chroma sample repeated for its four
// pixels. A work item is a row: item i is row i % height of image i / height.
struct cvc_nv12_params {
  cvc_view luma; // at the rectangle's first pixel; stride_c is not used
  cvc_view
      chroma;   // at that pixel's chroma; channel 0 is Cb, channel 1 Cr (also with a negative stride: NV21)
  cvc_view dst; // channels are R, G and B
  int64_t images;
  int64_t height;
  int64_t width;
  uint32_t odd_x; // 1: the first pixel is the second one of its pair
  uint32_t odd_y;
  cvc_nv12_coefficients coefficients;
};

static_assert(sizeof(cvc_nv12_params) == 176, "the Rust mirror has this size");

CVC_HD inline cvc_rgb8 cvc_nv12_pixel_at(const cvc_nv12_params &params, int64_t n, int64_t y, int64_t x) {
  const unsigned long long luma = cvc_view_address(params.luma, n, 0, y, x);
  const unsigned long long chroma =
      cvc_view_address(params.chroma, n, 0, (y + params.odd_y) / 2, (x + params.odd_x) / 2);
  return cvc_nv12_pixel(
      params.coefficients, *reinterpret_cast<const uint8_t *>(luma),
      *reinterpret_cast<const uint8_t *>(chroma),
      *reinterpret_cast<const uint8_t *>(chroma + static_cast<unsigned long long>(params.chroma.stride_c)));
}

CVC_HD inline void cvc_nv12_store(const cvc_nv12_params &params, int64_t n, int64_t y, int64_t x,
                                  cvc_rgb8 pixel) {
  const unsigned long long red = cvc_view_address(params.dst, n, 0, y, x);
  const unsigned long long step = static_cast<unsigned long long>(params.dst.stride_c);
  *reinterpret_cast<uint8_t *>(red) = pixel.red;
  *reinterpret_cast<uint8_t *>(red + step) = pixel.green;
  *reinterpret_cast<uint8_t *>(red + 2 * step) = pixel.blue;
}

// The GPU build cuts rows into segments of a pixel a thread.
constexpr int64_t cvc_nv12_segment = 256;

CVC_HD inline int64_t cvc_nv12_segments(const cvc_nv12_params &params) {
  return (params.width + cvc_nv12_segment - 1) / cvc_nv12_segment;
}

CVC_HD inline int64_t cvc_nv12_blocks(const cvc_nv12_params &params) {
  return params.images * params.height * cvc_nv12_segments(params);
}

#endif

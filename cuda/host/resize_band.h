// A band of output rows of one picture: what the host's resize works on at a time.
#ifndef CVC_HOST_RESIZE_BAND_H
#define CVC_HOST_RESIZE_BAND_H

#include "resize_passes.h"
#include "resize_rows.h"

namespace cvc_resize_host {

struct picture_side {
  unsigned char *base;
  int64_t stride_c;
  int64_t stride_h;
  int64_t stride_w;
};

// One picture with interleaved channels, or one plane of it as a picture of one channel.
struct picture {
  picture_side src;
  picture_side dst;
  int src_width;
  int dst_width;
  int channels;
  uint32_t kind;
  bool premultiply;
  bool vertical_first;
  // Null: the size does not change.
  const cvc_resize_table *horizontal;
  const cvc_resize_table *vertical;
};

inline strided_row row_of(const picture_side &side, int64_t y, int64_t x) {
  return strided_row{side.base + y * side.stride_h + x * side.stride_w, side.stride_w, side.stride_c};
}

// Whether rows are interleaved without gaps.
inline bool is_packed(const picture_side &side, size_t bytes, int channels) {
  return (channels == 1 || side.stride_c == static_cast<int64_t>(bytes)) &&
         side.stride_w == static_cast<int64_t>(bytes) * channels;
}

// Computes the output rows begin..end.
void resize_band(const picture &picture, isa level, int begin, int end);

// NEAREST: both tables are there.
void nearest_band(const picture &picture, int begin, int end);

// The same as resize_band, sample by sample without any memory: for where there is none.
void resize_band_by_sample(const picture &picture, int begin, int end);

} // namespace cvc_resize_host

// Tests only: from now on scratch blocks above this many bytes count as not to be had.
extern "C" void cvc_host_resize_limit_scratch(size_t bytes);

#endif

// Parameter block of the reformat kernel, which is the general strided copy, for the host and the GPU build.
#ifndef CVC_REFORMAT_CUH
#define CVC_REFORMAT_CUH

#include <stdint.h>

#include "view.cuh"

// Kernel `cvc_reformat`: element (n, c, y, x) of `src` goes to element (n, c, y, x) of `dst`, byte for byte.
// The two views tell the layouts: interleaved, planar, padded, reversed, broadcast (src alone). A work item
// is a row: item i is row i % height, with all its channels, of image i / height. The views share no byte, or
// are the same.
struct cvc_reformat_params {
  cvc_view src;
  cvc_view dst;
  int64_t images;
  int64_t channels;
  int64_t height;
  int64_t width;
  uint32_t element_bytes; // 1, 2, 4, 8 or 16
  uint32_t reserved;
};

static_assert(sizeof(cvc_reformat_params) == 120, "the Rust mirror has this size");

#endif

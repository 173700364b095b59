// Parameter blocks of the flip kernels, and what a flip code means, for the host and the GPU build.
#ifndef CVC_FLIP_CUH
#define CVC_FLIP_CUH

#include <stdint.h>

#include "view.cuh"

// Kernel `cvc_flip`: one batch of equally sized images. A work item is a row of one image (with all its
// channels); item i is row i % rows of image i / rows, where rows is `cvc_flip_rows`. `src` and `dst` are the
// same view or share no byte.
struct cvc_flip_params {
  cvc_view src;
  cvc_view dst;
  int64_t images;
  int64_t channels;
  int64_t height;
  int64_t width;
  uint32_t element_bytes; // 1, 2, 4, 8 or 16
  int32_t flip_code;      // 0: rows reversed; above 0: columns reversed; below 0: both
  uint32_t in_place;      // 1: src and dst are the same view
  uint32_t reserved;
};

// One image (or one of its planes, where planes differ in size or are not equally spaced) of the var-shape
// form. stride_n of the views is not used.
struct cvc_flip_image {
  cvc_view src;
  cvc_view dst;
  int64_t first_item; // how many rows the entries before this one have
  int32_t width;
  int32_t height;
  int32_t channels;
  uint32_t element_bytes;
  int32_t code_index; // which of the codes is this image's
  uint32_t in_place;
};

constexpr int cvc_flip_max_images = 36;

// Kernel `cvc_flip_var_shape`: images of any sizes and element sizes. A work item is a row of one image.
// `codes` is the address of the first S32 code, in device memory, which the kernel reads: 1 columns reversed,
// 0 rows reversed, -1 both, anything else a copy.
struct cvc_flip_var_shape_params {
  unsigned long long codes;
  int64_t code_stride; // bytes
  int32_t count;
  int32_t reserved;
  cvc_flip_image images[cvc_flip_max_images];
};

static_assert(sizeof(cvc_flip_params) == 128, "the Rust mirror has this size");
static_assert(sizeof(cvc_flip_image) == 112, "the Rust mirror has this size");
static_assert(sizeof(cvc_flip_var_shape_params) == 4056, "the Rust mirror has this size; the most is 4096");

struct cvc_flip_axes {
  bool columns; // column x comes from column width - 1 - x
  bool rows;    // row y comes from row height - 1 - y
};

CVC_HD inline cvc_flip_axes cvc_flip_axes_of(int32_t flip_code) {
  return cvc_flip_axes{flip_code != 0, flip_code <= 0};
}

CVC_HD inline cvc_flip_axes cvc_flip_axes_of_image(int32_t code) {
  return cvc_flip_axes{code == 1 || code == -1, code == 0 || code == -1};
}

// Work items an image: rows that are swapped in place with their mirror image need one item a pair.
CVC_HD inline int64_t cvc_flip_rows(const cvc_flip_params &params) {
  const bool pairs = params.in_place != 0 && cvc_flip_axes_of(params.flip_code).rows;
  return pairs ? params.height - params.height / 2 : params.height;
}

// In place, the pixels x = 0 .. result - 1 of row y are each swapped with the pixel that they are flipped to;
// the rows and pixels left out are the other halves of those pairs, or stay where they are.
CVC_HD inline int64_t cvc_flip_swaps(cvc_flip_axes axes, int64_t height, int64_t width, int64_t y) {
  if (!axes.rows) {
    return axes.columns ? width / 2 : 0;
  }
  if (y < height / 2) {
    return width;
  }
  return axes.columns && height % 2 != 0 && y == height / 2 ? width / 2 : 0;
}

#endif

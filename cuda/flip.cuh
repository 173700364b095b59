// Parameter blocks of the flip kernels, and what a flip code means, for the host and the GPU build.
#ifndef CVC_FLIP_CUH
#define CVC_FLIP_CUH

#include <stdint.h>

#include "runs.cuh"
#include "view.cuh"

enum cvc_flip_form : uint32_t {
  cvc_flip_form_elements, // one by one, at any strides; in place
  cvc_flip_form_copy,     // vectors of 16 bytes, whose pixels keep their order
  cvc_flip_form_reverse,  // vectors of whole pixels
  cvc_flip_form_reverse3, // groups of three vectors, of pixels of 3, 6, 12 or 24 bytes
};

// Elements that a block takes.
constexpr int64_t cvc_flip_block_elements = 1024;

// How the GPU build cuts a flip of equally sized images: parts are elements; units are vectors, or groups of
// three of them.
struct cvc_flip_plan {
  union {
    cvc_row_parts parts;
    cvc_plane_units units;
  };
  int64_t blocks;
  uint32_t pixel_bytes; // of what keeps its order; of elements: how many lie side by side in a pixel
  cvc_flip_form form;
};

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
  cvc_flip_plan plan; // of the GPU build, see `cvc_flip_plan_of`
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

static_assert(sizeof(cvc_flip_params) == 224, "the Rust mirror has this size");
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

// ---- How the GPU build cuts its work ----

// Equally sized images that flip in one way.
struct cvc_flip_set {
  cvc_view src;
  cvc_view dst;
  int64_t images;
  int64_t channels;
  int64_t height;
  int64_t width;
  int64_t element_bytes;
  cvc_flip_axes axes;
  bool in_place;
};

CVC_HD inline cvc_flip_plan cvc_flip_plan_of(const cvc_flip_set &set) {
  cvc_flip_plan plan{};
  const bool together = set.src.stride_c == set.element_bytes && set.dst.stride_c == set.element_bytes;
  const int64_t planes = together ? 1 : set.channels;
  const int64_t bytes = together ? set.channels * set.element_bytes : set.element_bytes;
  const int64_t row_bytes = set.width * bytes;
  const int64_t third = bytes % 3 == 0 ? bytes / 3 : 0;
  const bool aligned = !set.in_place && set.src.stride_w == bytes && set.dst.stride_w == bytes &&
                       cvc_view_is_aligned(set.src, set.images, planes, set.height, 16) &&
                       cvc_view_is_aligned(set.dst, set.images, planes, set.height, 16);
  plan.form = cvc_flip_form_elements;
  plan.pixel_bytes = static_cast<uint32_t>(bytes);
  if (aligned && !set.axes.columns) {
    plan.form = cvc_flip_form_copy;
  } else if (aligned && row_bytes % 16 == 0 && (bytes & (bytes - 1)) == 0 && bytes <= 16) {
    plan.form = cvc_flip_form_reverse;
  } else if (aligned && row_bytes % 48 == 0 && (third & (third - 1)) == 0 && third >= 1 && third <= 8) {
    plan.form = cvc_flip_form_reverse3;
  }
  if (plan.form != cvc_flip_form_elements) {
    const int64_t unit_bytes = plan.form == cvc_flip_form_reverse3 ? 48 : 16;
    plan.units = cvc_plane_units_of(set.images, planes, set.height, row_bytes, unit_bytes, plan.blocks);
    if (plan.units.fits()) {
      return plan;
    }
    plan.form = cvc_flip_form_elements;
  }
  const int64_t rows = set.in_place && set.axes.rows ? set.height - set.height / 2 : set.height;
  plan.pixel_bytes = together ? static_cast<uint32_t>(set.channels) : 1;
  plan.parts = cvc_row_parts_of(set.images, planes, rows, set.width * plan.pixel_bytes, 1);
  plan.blocks = cvc_divide_up(plan.parts.count, cvc_flip_block_elements);
  return plan;
}

// Which of a plan's kernels, in this order: cvc_flip, cvc_flip_vertical, cvc_flip_vectors_1, 2, 4, 8, 16,
// cvc_flip_triples_1, 2, 4, 8.
inline uint32_t cvc_flip_kernel_of(const cvc_flip_plan &plan) {
  if (plan.form == cvc_flip_form_elements || plan.form == cvc_flip_form_copy) {
    return plan.form;
  }
  const bool threes = plan.form == cvc_flip_form_reverse3;
  uint32_t kernel = threes ? 7 : 2;
  for (uint32_t bytes = threes ? plan.pixel_bytes / 3 : plan.pixel_bytes; bytes > 1; bytes /= 2) {
    ++kernel;
  }
  return kernel;
}

CVC_HD inline cvc_flip_set cvc_flip_set_of(const cvc_flip_params &params) {
  return cvc_flip_set{
      params.src,          params.dst,   params.images,        params.channels,
      params.height,       params.width, params.element_bytes, cvc_flip_axes_of(params.flip_code),
      params.in_place != 0};
}

CVC_HD inline cvc_flip_set cvc_flip_set_of(const cvc_flip_image &image, int32_t code) {
  return cvc_flip_set{image.src,
                      image.dst,
                      1,
                      image.channels,
                      image.height,
                      image.width,
                      image.element_bytes,
                      cvc_flip_axes_of_image(code),
                      image.in_place != 0};
}

// Blocks of the GPU's launch. The codes are not known where it is made; that columns are flipped is the case
// of most blocks.
CVC_HD inline int64_t cvc_flip_blocks(const cvc_flip_var_shape_params &params) {
  int64_t blocks = 0;
  for (int32_t i = 0; i < params.count; ++i) {
    blocks += cvc_flip_plan_of(cvc_flip_set_of(params.images[i], 1)).blocks;
  }
  return blocks;
}

#endif

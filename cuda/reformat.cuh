// Parameter block of the reformat kernel, which is the general strided copy, for the host and the GPU build.
#ifndef CVC_REFORMAT_CUH
#define CVC_REFORMAT_CUH

#include <stdint.h>

#include "runs.cuh"
#include "view.cuh"

enum cvc_reformat_form : uint32_t {
  cvc_reformat_form_elements, // one by one, at any strides
  cvc_reformat_form_copy,     // runs of bytes, in vectors of 16
  cvc_reformat_form_split,    // interleaved pixels to planes, in groups of 16 bytes a channel
  cvc_reformat_form_merge,    // and back
};

// Elements that a block takes.
constexpr int64_t cvc_reformat_block_elements = 1024;

// How the GPU build cuts its work: parts are elements; units are vectors of a copy, or groups of pixels.
struct cvc_reformat_plan {
  union {
    cvc_row_parts parts;
    cvc_plane_units units;
  };
  int64_t blocks;
  cvc_reformat_form form;
  uint32_t planar; // of elements: those of a plane's row are counted before the next plane's
};

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
  cvc_reformat_plan plan; // of the GPU build, see `cvc_reformat_plan_of`
};

static_assert(sizeof(cvc_reformat_params) == 216, "the Rust mirror has this size");

CVC_HD inline bool cvc_reformat_is_interleaved(const cvc_view &view, const cvc_reformat_params &params) {
  return view.stride_c == params.element_bytes && view.stride_w == params.channels * params.element_bytes;
}

CVC_HD inline cvc_reformat_plan cvc_reformat_plan_of(const cvc_reformat_params &params) {
  const cvc_view &src = params.src;
  const cvc_view &dst = params.dst;
  const int64_t bytes = params.element_bytes;
  // All images as one run would have too many vectors where they are very large.
  const bool small = params.images * params.channels * params.height * params.width * bytes < int64_t{1}
                                                                                                  << 34;
  const cvc_runs runs = cvc_runs_of(src, dst, params.images, params.channels, params.height, params.width,
                                    bytes, bytes, cvc_folding{true, true, small});
  const bool rows_aligned = cvc_view_is_aligned(src, params.images, 1, params.height, 16) &&
                            cvc_view_is_aligned(dst, params.images, 1, params.height, 16);
  const bool copy = runs.src_step == bytes && runs.dst_step == bytes &&
                    (runs.interleaved || ((src.stride_c | dst.stride_c) & 15) == 0);
  const bool split = cvc_reformat_is_interleaved(src, params) && dst.stride_w == bytes;
  const bool merge = cvc_reformat_is_interleaved(dst, params) && src.stride_w == bytes;
  const cvc_view &pixels = split ? src : dst;
  const cvc_view &planes = split ? dst : src;
  cvc_reformat_plan plan{};
  plan.planar = dst.stride_c > dst.stride_w;
  plan.form = cvc_reformat_form_elements;
  if (rows_aligned && copy) {
    plan.form = cvc_reformat_form_copy;
    plan.units =
        cvc_plane_units_of(runs.images, runs.planes, runs.rows, runs.elements * bytes, 16, plan.blocks);
  } else if (rows_aligned && (split || merge) && params.channels >= 2 && params.channels <= 4 && bytes <= 8 &&
             (planes.stride_c & 15) == 0) {
    // Rows that lie behind each other on both sides are one.
    const bool one = params.height == 1 || (pixels.stride_h == params.width * params.channels * bytes &&
                                            planes.stride_h == params.width * bytes);
    plan.form = split ? cvc_reformat_form_split : cvc_reformat_form_merge;
    plan.units =
        cvc_plane_units_of(params.images, 1, one ? 1 : params.height,
                           one ? params.width * params.height : params.width, 16 / bytes, plan.blocks);
  }
  if (plan.form == cvc_reformat_form_elements || !plan.units.fits()) {
    plan.form = cvc_reformat_form_elements;
    plan.parts = cvc_row_parts_of(params.images, 1, params.height, params.width * params.channels, 1);
    plan.blocks = cvc_divide_up(plan.parts.count, cvc_reformat_block_elements);
  }
  return plan;
}

// Which of a plan's kernels, in this order: cvc_reformat, cvc_reformat_rows, then for elements of 1, 2, 4 and
// 8 bytes and, of each, 2, 3 and 4 channels: cvc_reformat_split_B_C, cvc_reformat_merge_B_C.
inline uint32_t cvc_reformat_kernel_of(const cvc_reformat_params &params) {
  const cvc_reformat_form form = params.plan.form;
  if (form == cvc_reformat_form_elements || form == cvc_reformat_form_copy) {
    return form;
  }
  uint32_t size = 0;
  for (uint32_t bytes = params.element_bytes; bytes > 1; bytes /= 2) {
    ++size;
  }
  return 2 + 2 * (3 * size + static_cast<uint32_t>(params.channels - 2)) +
         (form == cvc_reformat_form_merge ? 1 : 0);
}

#endif

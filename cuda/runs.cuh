// Pixels of two views as runs of elements at a constant step, with dimensions that lie behind each other
// folded into one: how the element-by-element kernels cut their work.
#ifndef CVC_RUNS_CUH
#define CVC_RUNS_CUH

#include <stdint.h>

#include "saturate.cuh"
#include "view.cuh"

CVC_HD inline int64_t cvc_kind_bytes(uint32_t kind) {
  switch (kind) {
  case cvc_kind_u8:
  case cvc_kind_s8:
    return 1;
  case cvc_kind_u16:
  case cvc_kind_s16:
  case cvc_kind_f16:
    return 2;
  case cvc_kind_u32:
  case cvc_kind_s32:
  case cvc_kind_f32:
    return 4;
  default:
    return 8;
  }
}

CVC_HD inline int64_t cvc_divide_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

// What a kernel divides by, made ready on the host: dividends below 2^31 take a product and a shift.
struct cvc_divisor {
  int64_t value;
  uint32_t magic; // 0: dividends may be larger, and are divided
  uint32_t shift;
};

CVC_HD inline cvc_divisor cvc_divisor_of(int64_t value, int64_t most) {
  cvc_divisor divisor{value, 0, 31};
  if (value < 1 || most >= (int64_t{1} << 31) || value >= (int64_t{1} << 31)) {
    return divisor;
  }
  // The least power of two that is not below the value; the product is then exact for 31 bits.
  while ((int64_t{1} << (divisor.shift - 31)) < value) {
    ++divisor.shift;
  }
  divisor.magic = static_cast<uint32_t>(((uint64_t{1} << divisor.shift) + static_cast<uint64_t>(value) - 1) /
                                        static_cast<uint64_t>(value));
  return divisor;
}

CVC_HD inline int64_t cvc_divide(int64_t dividend, const cvc_divisor &divisor) {
  if (divisor.magic != 0) {
    return static_cast<int64_t>((static_cast<uint64_t>(dividend) * divisor.magic) >> divisor.shift);
  }
  return dividend / divisor.value;
}

// How rows of some planes of some images are cut into parts of equal length, the last of a row shorter, and
// where part number i lies.
struct cvc_row_parts {
  int64_t images;
  int64_t per_row;  // units of a row
  int64_t per_part; // units of a part
  int64_t count;    // of all parts
  cvc_divisor parts;
  cvc_divisor rows;
  cvc_divisor planes;
};

CVC_HD inline cvc_row_parts cvc_row_parts_of(int64_t images, int64_t planes, int64_t rows, int64_t per_row,
                                             int64_t per_part) {
  const int64_t parts = cvc_divide_up(per_row, per_part);
  const int64_t count = images * planes * rows * parts;
  // The last block's threads go a little further than the last part.
  const int64_t most = count + (1 << 16);
  return cvc_row_parts{images,
                       per_row,
                       per_part,
                       count,
                       cvc_divisor_of(parts, most),
                       cvc_divisor_of(rows, most),
                       cvc_divisor_of(planes, most)};
}

struct cvc_row_part {
  int64_t image;
  int64_t plane;
  int64_t row;
  int64_t first; // unit of the row
  int64_t units; // 0 or less behind the last part
};

CVC_HD inline cvc_row_part cvc_row_part_of(const cvc_row_parts &parts, int64_t index) {
  cvc_row_part part;
  const int64_t run = cvc_divide(index, parts.parts);
  part.first = (index - run * parts.parts.value) * parts.per_part;
  const int64_t whole = cvc_divide(run, parts.rows);
  part.row = run - whole * parts.rows.value;
  part.image = cvc_divide(whole, parts.planes);
  part.plane = whole - part.image * parts.planes.value;
  const int64_t left = parts.per_row - part.first;
  part.units = index >= parts.count ? 0 : left < parts.per_part ? left : parts.per_part;
  return part;
}

// How rows of planes of the same size are cut into units, a thread's work each, and each plane's units, row
// behind row, into blocks of threads. A block finds its plane and a thread its row by products of 32 bits:
// what takes longer keeps too few loads under way.
struct cvc_plane_units {
  int64_t row_size; // in what units are sizes of; the last unit of a row may be smaller
  int64_t count;    // units of a plane
  cvc_divisor per_row;
  cvc_divisor blocks; // of a plane
  cvc_divisor planes; // of an image

  CVC_HD bool fits() const { return per_row.magic != 0 && blocks.magic != 0 && planes.magic != 0; }
};

constexpr int64_t cvc_unit_threads = 256;

// `blocks` becomes how many there are of all planes.
CVC_HD inline cvc_plane_units cvc_plane_units_of(int64_t images, int64_t planes, int64_t rows,
                                                 int64_t row_size, int64_t unit_size, int64_t &blocks) {
  const int64_t per_row = cvc_divide_up(row_size, unit_size);
  const int64_t count = rows * per_row;
  const int64_t plane_blocks = cvc_divide_up(count, cvc_unit_threads);
  blocks = images * planes * plane_blocks;
  return cvc_plane_units{row_size, count, cvc_divisor_of(per_row, count + cvc_unit_threads),
                         cvc_divisor_of(plane_blocks, blocks), cvc_divisor_of(planes, blocks)};
}

// What may become part of a run besides the pixels of a row.
struct cvc_folding {
  bool rows;
  bool planes;
  bool images;
};

// Run (n, plane, y) begins at channel `plane` of pixel 0 of row y of image n; its elements lie src_step and
// dst_step apart. `interleaved`: the elements of a run go through all channels, pixel by pixel; else its
// plane is one channel.
struct cvc_runs {
  int64_t images;
  int64_t planes;
  int64_t rows;
  int64_t elements;
  int64_t src_step;
  int64_t dst_step;
  bool interleaved;

  CVC_HD int64_t count() const { return images * planes * rows; }
};

CVC_HD inline bool cvc_fold(cvc_runs &runs, int64_t &extent, long long src_stride, long long dst_stride) {
  const bool adjacent =
      src_stride == runs.elements * runs.src_step && dst_stride == runs.elements * runs.dst_step;
  if (extent == 1 || adjacent) {
    runs.elements *= extent;
    extent = 1;
    return true;
  }
  return false;
}

CVC_HD inline cvc_runs cvc_runs_of(const cvc_view &src, const cvc_view &dst, int64_t images, int64_t channels,
                                   int64_t height, int64_t width, int64_t src_bytes, int64_t dst_bytes,
                                   cvc_folding folding) {
  cvc_runs runs{images, channels, height, width, src.stride_w, dst.stride_w, false};
  const bool packed = src.stride_c == src_bytes && dst.stride_c == dst_bytes &&
                      src.stride_w == channels * src_bytes && dst.stride_w == channels * dst_bytes;
  if (channels == 1 || packed) {
    runs.interleaved = true;
    runs.planes = 1;
    runs.elements = width * channels;
    runs.src_step = channels == 1 ? src.stride_w : src_bytes;
    runs.dst_step = channels == 1 ? dst.stride_w : dst_bytes;
  }
  // A dimension is folded only when those inside it were.
  if (folding.rows && cvc_fold(runs, runs.rows, src.stride_h, dst.stride_h) &&
      (folding.planes || runs.planes == 1) && cvc_fold(runs, runs.planes, src.stride_c, dst.stride_c)) {
    if (folding.images) {
      cvc_fold(runs, runs.images, src.stride_n, dst.stride_n);
    }
  }
  return runs;
}

// A thread takes this many elements at once: the unit of work.
constexpr int64_t cvc_run_unit = 4;
// Units that a thread does of a tile, where it computes in float; one where in double.
constexpr int cvc_run_float_units = 4;
constexpr int64_t cvc_run_threads = 256;

// How the GPU build of the kernels that compute cuts the runs: parts are units, tiles what a block's threads
// do at once.
struct cvc_run_plan {
  cvc_row_parts units; // per_row: the elements of a run
  int64_t src_step;
  int64_t dst_step;
  int64_t tiles;
  int64_t blocks;
  uint32_t interleaved;
  // 1: a single run whose elements lie side by side, so aligned that a unit is one access.
  uint32_t plain;
};

CVC_HD inline int64_t cvc_unit_alignment(int64_t bytes) { return 4 * bytes < 16 ? 4 * bytes : 16; }

CVC_HD inline cvc_run_plan cvc_run_plan_of(const cvc_runs &runs, const cvc_view &src, const cvc_view &dst,
                                           int64_t src_bytes, int64_t dst_bytes, bool in_double) {
  cvc_run_plan plan;
  plan.units = cvc_row_parts_of(runs.images, runs.planes, runs.rows, runs.elements, cvc_run_unit);
  plan.src_step = runs.src_step;
  plan.dst_step = runs.dst_step;
  plan.tiles = cvc_divide_up(plan.units.count, cvc_run_threads * (in_double ? 1 : cvc_run_float_units));
  // A block of a large launch takes two, which halves what it costs to begin one.
  plan.blocks = plan.tiles < 4096 ? plan.tiles : cvc_divide_up(plan.tiles, 2);
  plan.interleaved = runs.interleaved;
  const unsigned long long misaligned =
      (src.data % static_cast<unsigned long long>(cvc_unit_alignment(src_bytes))) |
      (dst.data % static_cast<unsigned long long>(cvc_unit_alignment(dst_bytes)));
  plan.plain =
      runs.count() == 1 && runs.src_step == src_bytes && runs.dst_step == dst_bytes && misaligned == 0;
  return plan;
}

// Which of an operator's kernels a plan takes: 0 for any runs; for plain ones that are computed in float 1, 2
// and 3, with 1, 2 and 4 units a thread, whose results have 16 bytes, or, of kinds known when it is compiled,
// 4 for U8 to F32 and 5 for F32 to F32. Memory is fastest where a block's share is small, so that all blocks
// under way read and write close together.
struct cvc_run_launch {
  int64_t blocks;
  uint32_t kernel;
};

CVC_HD inline cvc_run_launch cvc_run_launch_of(const cvc_run_plan &plan, uint32_t src_kind, uint32_t dst_kind,
                                               bool in_double) {
  if (plan.plain == 0 || in_double) {
    return cvc_run_launch{plan.blocks, 0};
  }
  const int64_t bytes = cvc_kind_bytes(dst_kind);
  const int64_t units = bytes == 1 ? 4 : bytes == 2 ? 2 : 1;
  cvc_run_launch made{cvc_divide_up(plan.units.count, cvc_run_threads * units),
                      static_cast<uint32_t>(bytes == 1 ? 3 : units)};
  if (dst_kind == cvc_kind_f32 && (src_kind == cvc_kind_u8 || src_kind == cvc_kind_f32)) {
    made.kernel = src_kind == cvc_kind_u8 ? 4 : 5;
  }
  return made;
}

static_assert(sizeof(cvc_row_parts) == 80 && sizeof(cvc_run_plan) == 120,
              "the Rust mirrors have these sizes");

#endif

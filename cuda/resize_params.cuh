// The parameter block and the coefficient tables of pillow_resize, as both builds of its kernel read them.
#ifndef CVC_RESIZE_PARAMS_CUH
#define CVC_RESIZE_PARAMS_CUH

#include <stdint.h>

#include "saturate.cuh"
#include "view.cuh"

// What a table holds after its bounds; see src/op/resize_table.rs, which computes it.
enum cvc_resize_form : int32_t {
  cvc_resize_form_index = 0,
  cvc_resize_form_fixed = 1,
  cvc_resize_form_real = 2,
  cvc_resize_form_index_by_product = 3,
};

// The first bytes of one axis' table. Offsets are bytes from here and multiples of 16.
struct cvc_resize_table {
  int32_t in_size;
  int32_t out_size;
  int32_t filter;
  int32_t form;
  int32_t max_count;
  int32_t row_length;
  uint64_t bounds_offset;
  uint64_t coefficient_offset;
  uint64_t split_offset;
  uint64_t total_bytes;
  // Fixed form: see `cvc_resize_group`; 0 where a group of outputs needs more than the GPU's tiles take.
  uint64_t group_offset;
};

// The input positions that one output is the weighted sum of.
struct cvc_resize_taps {
  int32_t first;
  int32_t count;
};

CVC_HD_INLINE const void *cvc_resize_at(const cvc_resize_table *table, uint64_t offset) {
  return reinterpret_cast<const unsigned char *>(table) + offset;
}

CVC_HD_INLINE cvc_resize_taps cvc_resize_bounds(const cvc_resize_table *table, int32_t output) {
  // They begin right behind the header, which need not be read first.
  return static_cast<const cvc_resize_taps *>(cvc_resize_at(table, sizeof(cvc_resize_table)))[output];
}

// Fixed form: coefficients with 22 fraction bits.
CVC_HD_INLINE const int32_t *cvc_resize_fixed(const cvc_resize_table *table, int32_t output) {
  return static_cast<const int32_t *>(cvc_resize_at(table, table->coefficient_offset)) +
         static_cast<int64_t>(output) * table->row_length;
}

// Fixed form: `row_length` low halves, then as many high halves; coefficient = high * 65536 + low.
CVC_HD_INLINE const int16_t *cvc_resize_split(const cvc_resize_table *table, int32_t output) {
  return static_cast<const int16_t *>(cvc_resize_at(table, table->split_offset)) +
         2 * static_cast<int64_t>(output) * table->row_length;
}

// Fixed form: the coefficients of 8 outputs (8 * group and on) by `16 * steps` inputs, as the lanes of a
// GPU's warp hold them, inputs from the first one of the first output on, rounded down to a multiple of 4.
// Word (3 * step + place) * 32 + lane: byte i is byte `place` of the coefficient of output 8 * group + lane /
// 4 for input 16 * step + 4 * (lane % 4) + i; 0 where there is no such output or tap.
CVC_HD_INLINE const uint32_t *cvc_resize_group(const cvc_resize_table *table, int64_t group, int steps) {
  return static_cast<const uint32_t *>(cvc_resize_at(table, table->group_offset)) + group * steps * (3 * 32);
}

CVC_HD_INLINE const double *cvc_resize_real(const cvc_resize_table *table, int32_t output) {
  return static_cast<const double *>(cvc_resize_at(table, table->coefficient_offset)) +
         static_cast<int64_t>(output) * table->row_length;
}

// How the GPU build cuts images of one geometry; see resize_tiling.cuh. Not tiled: all 0.
struct cvc_resize_tiling {
  uint8_t horizontal_steps;
  uint8_t vertical_steps;
  uint8_t band_groups;
  uint8_t chunk_groups;
  uint8_t source_vectors;
  uint8_t planar;
  uint8_t turns;
  uint8_t reserved;
};

// One geometry: `batch` images (see the block) that lie `stride_n` apart on either side. A table's address is
// 0 where that size does not change: the pass is skipped. NEAREST has both tables always.
struct cvc_resize_image {
  cvc_view src;
  cvc_view dst;
  int32_t src_width;
  int32_t src_height;
  int32_t dst_width;
  int32_t dst_height;
  uint64_t horizontal_table;
  uint64_t vertical_table;
  // Host: work items of each of the images; item i of m does rows i * dst_height / m up to those of item i
  // + 1.
  int32_t items;
  // Not 0: the vertical pass comes first. It matters only where both passes are done.
  uint32_t vertical_first;
  cvc_resize_tiling tiling;
};

CVC_HD_INLINE const cvc_resize_table *cvc_resize_horizontal(const cvc_resize_image &image) {
  return reinterpret_cast<const cvc_resize_table *>(image.horizontal_table);
}

CVC_HD_INLINE const cvc_resize_table *cvc_resize_vertical(const cvc_resize_image &image) {
  return reinterpret_cast<const cvc_resize_table *>(image.vertical_table);
}

// Bits of `cvc_resize_params::flags`.
constexpr uint32_t cvc_resize_nearest = 1u;
// U8 with 2 or 4 channels, the last of which is alpha: colours are weighted by it, as Image.resize does.
constexpr uint32_t cvc_resize_premultiply = 2u;

constexpr int cvc_resize_max_images = 28;
constexpr int cvc_resize_max_channels = 4;

struct cvc_resize_params {
  // A cvc_kind: U8, S8, U16, S16, S32, F16, F32 or F64; with NEAREST U32 too.
  uint32_t kind;
  uint32_t channels;
  uint32_t flags;
  int32_t image_count;
  // Images of each geometry.
  int32_t batch;
  uint32_t reserved[3];
  cvc_resize_image images[cvc_resize_max_images];
};

static_assert(sizeof(cvc_resize_table) == 64, "the Rust mirror has this size");
static_assert(sizeof(cvc_resize_taps) == 8, "two int32 in the table");
static_assert(sizeof(cvc_resize_image) == 128, "the Rust mirror has this size");
static_assert(sizeof(cvc_resize_params) == 3616, "the Rust mirror has this size");

#endif

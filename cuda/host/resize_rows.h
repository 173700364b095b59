// Rows of pixels in memory of any strides, and their copies without gaps that the passes of the host's resize
// work on.
#ifndef CVC_HOST_RESIZE_ROWS_H
#define CVC_HOST_RESIZE_ROWS_H

#include <stddef.h>
#include <stdint.h>

namespace cvc_resize_host {

// Samples of one row: that of column x and channel c lies at `base + x * stride_w + c * stride_c`.
struct strided_row {
  unsigned char *base;
  int64_t stride_w;
  int64_t stride_c;
};

// Samples of a row from `row` to the interleaved `packed` (loading), or back (storing).
using load_function = void (*)(const strided_row &row, int channels, int64_t columns, void *packed);
using store_function = void (*)(const void *packed, int channels, int64_t columns, const strided_row &row);

// Between elements of this kind and the passes' rows: U8 as it is, other kinds as cvc_resize_element's
// working type; F16 is stored from doubles, which rounds it.
load_function load_of(uint32_t kind);
store_function store_of(uint32_t kind);
// U8, 2 or 4 channels: colours are multiplied by alpha as they are loaded, divided as they are stored.
load_function load_premultiplied();
store_function store_premultiplied();
// Elements of 1, 2, 4 or 8 bytes as they are.
load_function load_bytes(size_t element_bytes);
store_function store_bytes(size_t element_bytes);

// 1 to 8, or 0 for a kind that is not resized.
size_t element_bytes(uint32_t kind);

} // namespace cvc_resize_host

#endif

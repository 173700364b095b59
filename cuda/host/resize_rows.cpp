// Loads and stores rows of pixels for the host's resize: any strides on one side, interleaved without gaps on
// the other.
#include "resize_rows.h"

#include "../resize.cuh"

namespace cvc_resize_host {
namespace {

template <class T> struct as_it_is {
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};

template <class T> struct through_working {
  using working = typename cvc_resize_element<T>::working;
  static working load(T value) { return cvc_resize_element<T>::load(value); }
  // Integers were rounded and clipped by the pass.
  static T store(working value) { return static_cast<T>(value); }
};

struct half_of_double {
  static cvc_half store(double value) { return cvc_double_to_half(value); }
};

template <class T> T read(const unsigned char *from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <class T> void write(unsigned char *to, T value) { __builtin_memcpy(to, &value, sizeof value); }

template <class T> bool interleaved(const strided_row &row, int channels) {
  const int64_t bytes = static_cast<int64_t>(sizeof(T));
  return (channels == 1 || row.stride_c == bytes) && row.stride_w == bytes * channels;
}

template <class T, class Packed, class Convert>
void load(const strided_row &row, int channels, int64_t columns, void *packed) {
  unsigned char *__restrict to = static_cast<unsigned char *>(packed);
  constexpr int64_t bytes = sizeof(T), packed_bytes = sizeof(Packed);
  if (interleaved<T>(row, channels)) {
    const unsigned char *__restrict from = row.base;
    const int64_t samples = columns * channels;
    for (int64_t i = 0; i < samples; ++i) {
      write<Packed>(to + i * packed_bytes, Convert::load(read<T>(from + i * bytes)));
    }
    return;
  }
  for (int c = 0; c < channels; ++c) {
    const unsigned char *from = row.base + c * row.stride_c;
    for (int64_t x = 0; x < columns; ++x) {
      write<Packed>(to + (x * channels + c) * packed_bytes, Convert::load(read<T>(from + x * row.stride_w)));
    }
  }
}

template <class T, class Packed, class Convert>
void store(const void *packed, int channels, int64_t columns, const strided_row &row) {
  const unsigned char *__restrict from = static_cast<const unsigned char *>(packed);
  constexpr int64_t bytes = sizeof(T), packed_bytes = sizeof(Packed);
  if (interleaved<T>(row, channels)) {
    unsigned char *__restrict to = row.base;
    const int64_t samples = columns * channels;
    for (int64_t i = 0; i < samples; ++i) {
      write<T>(to + i * bytes, Convert::store(read<Packed>(from + i * packed_bytes)));
    }
    return;
  }
  for (int c = 0; c < channels; ++c) {
    unsigned char *to = row.base + c * row.stride_c;
    for (int64_t x = 0; x < columns; ++x) {
      write<T>(to + x * row.stride_w, Convert::store(read<Packed>(from + (x * channels + c) * packed_bytes)));
    }
  }
}

void multiply_alpha(const strided_row &row, int channels, int64_t columns, void *packed) {
  load<uint8_t, uint8_t, as_it_is<uint8_t>>(row, channels, columns, packed);
  uint8_t *pixel = static_cast<uint8_t *>(packed);
  const int alpha = channels - 1;
  for (int64_t x = 0; x < columns; ++x, pixel += channels) {
    for (int c = 0; c < alpha; ++c) {
      pixel[c] = cvc_resize_multiply_alpha(pixel[c], pixel[alpha]);
    }
  }
}

void divide_alpha(const void *packed, int channels, int64_t columns, const strided_row &row) {
  const uint8_t *pixel = static_cast<const uint8_t *>(packed);
  const int alpha = channels - 1;
  for (int64_t x = 0; x < columns; ++x, pixel += channels) {
    unsigned char *to = row.base + x * row.stride_w;
    for (int c = 0; c < alpha; ++c) {
      to[c * row.stride_c] = cvc_resize_divide_alpha(pixel[c], pixel[alpha]);
    }
    to[alpha * row.stride_c] = pixel[alpha];
  }
}

template <class T> load_function load_converted() {
  return load<T, typename cvc_resize_element<T>::working, through_working<T>>;
}
template <class T> store_function store_converted() {
  return store<T, typename cvc_resize_element<T>::working, through_working<T>>;
}

} // namespace

load_function load_of(uint32_t kind) {
  switch (kind) {
  case cvc_kind_u8:
    return load_bytes(1);
  case cvc_kind_s8:
    return load_converted<int8_t>();
  case cvc_kind_u16:
    return load_converted<uint16_t>();
  case cvc_kind_s16:
    return load_converted<int16_t>();
  case cvc_kind_s32:
    return load_converted<int32_t>();
  case cvc_kind_f16:
    return load_converted<cvc_half>();
  case cvc_kind_f32:
    return load_bytes(4);
  default:
    return load_bytes(8);
  }
}

store_function store_of(uint32_t kind) {
  switch (kind) {
  case cvc_kind_u8:
    return store_bytes(1);
  case cvc_kind_s8:
    return store_converted<int8_t>();
  case cvc_kind_u16:
    return store_converted<uint16_t>();
  case cvc_kind_s16:
    return store_converted<int16_t>();
  case cvc_kind_s32:
    return store_converted<int32_t>();
  case cvc_kind_f16:
    return store<cvc_half, double, half_of_double>;
  case cvc_kind_f32:
    return store_bytes(4);
  default:
    return store_bytes(8);
  }
}

load_function load_premultiplied() { return multiply_alpha; }
store_function store_premultiplied() { return divide_alpha; }

load_function load_bytes(size_t bytes) {
  switch (bytes) {
  case 1:
    return load<uint8_t, uint8_t, as_it_is<uint8_t>>;
  case 2:
    return load<uint16_t, uint16_t, as_it_is<uint16_t>>;
  case 4:
    return load<uint32_t, uint32_t, as_it_is<uint32_t>>;
  default:
    return load<uint64_t, uint64_t, as_it_is<uint64_t>>;
  }
}

store_function store_bytes(size_t bytes) {
  switch (bytes) {
  case 1:
    return store<uint8_t, uint8_t, as_it_is<uint8_t>>;
  case 2:
    return store<uint16_t, uint16_t, as_it_is<uint16_t>>;
  case 4:
    return store<uint32_t, uint32_t, as_it_is<uint32_t>>;
  default:
    return store<uint64_t, uint64_t, as_it_is<uint64_t>>;
  }
}

size_t element_bytes(uint32_t kind) {
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
  case cvc_kind_f64:
    return 8;
  default:
    return 0;
  }
}

} // namespace cvc_resize_host

// Moves of bytes by GPU threads: single elements at any alignment, rows in vectors of 16 bytes.
#ifndef CVC_MOVES_CUH
#define CVC_MOVES_CUH

#include "pixel_groups.cuh"
#include "units.cuh"

namespace cvc_device {

template <int Bytes> struct element_words;
template <> struct element_words<1> {
  using type = uint8_t;
};
template <> struct element_words<2> {
  using type = uint16_t;
};
template <> struct element_words<4> {
  using type = uint32_t;
};
template <> struct element_words<8> {
  using type = uint2;
};
template <> struct element_words<16> {
  using type = uint4;
};

template <int Bytes> CVC_DEVICE void copy_element(byte *to, const byte *from) {
  using word = typename element_words<Bytes>::type;
  write_element<word>(to, read_element<word>(from));
}

template <int Bytes> CVC_DEVICE void swap_elements(byte *one, byte *other) {
  using word = typename element_words<Bytes>::type;
  const word first = read_element<word>(one);
  const word second = read_element<word>(other);
  write_element<word>(one, second);
  write_element<word>(other, first);
}

CVC_DEVICE void copy_element(byte *to, const byte *from, int64_t bytes) {
  switch (bytes) {
  case 1:
    return copy_element<1>(to, from);
  case 2:
    return copy_element<2>(to, from);
  case 4:
    return copy_element<4>(to, from);
  case 8:
    return copy_element<8>(to, from);
  default:
    return copy_element<16>(to, from);
  }
}

CVC_DEVICE void swap_elements(byte *one, byte *other, int64_t bytes) {
  switch (bytes) {
  case 1:
    return swap_elements<1>(one, other);
  case 2:
    return swap_elements<2>(one, other);
  case 4:
    return swap_elements<4>(one, other);
  case 8:
    return swap_elements<8>(one, other);
  default:
    return swap_elements<16>(one, other);
  }
}

// Copies up to 16 bytes; both sides are aligned to 16.
CVC_DEVICE void copy_vector(byte *to, const byte *from, int64_t bytes) {
  if (bytes >= 16) {
    store_16(to, load_16(from));
    return;
  }
#pragma unroll 1
  for (int i = 0; i < static_cast<int>(bytes); ++i) {
    to[i] = from[i];
  }
}

} // namespace cvc_device

#endif

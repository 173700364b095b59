// Moves of pixels between rows of any step for the host kernels that compute nothing, with a vector form
// where the CPU has AVX2.
#ifndef CVC_HOST_PIXEL_MOVES_H
#define CVC_HOST_PIXEL_MOVES_H

#include <stdint.h>
#include <string.h>

#include "vector_support.h"

namespace {

using byte = unsigned char;

// `count` pixels of `bytes` bytes each, pixel i from src + i * src_step to dst + i * dst_step. The pixels
// moved from and those moved to do not overlap.
using move_function = void (*)(const byte *src, int64_t src_step, byte *dst, int64_t dst_step, int64_t count,
                               int64_t bytes);

template <int Bytes>
CVC_ALWAYS_INLINE void move_each(const byte *src, int64_t src_step, byte *dst, int64_t dst_step,
                                 int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    __builtin_memcpy(dst + i * dst_step, src + i * src_step, Bytes);
  }
}

// A move that runs backwards in `dst` is turned round, so that a reversal always has src_step < 0.
CVC_ALWAYS_INLINE void turn_round(const byte *&src, int64_t &src_step, byte *&dst, int64_t &dst_step,
                                  int64_t count) {
  if (dst_step < 0 && count > 0) {
    src += (count - 1) * src_step;
    dst += (count - 1) * dst_step;
    src_step = -src_step;
    dst_step = -dst_step;
  }
}

template <int Bytes>
void move_baseline(const byte *src, int64_t src_step, byte *dst, int64_t dst_step, int64_t count, int64_t) {
  turn_round(src, src_step, dst, dst_step, count);
  if (src_step == Bytes && dst_step == Bytes) {
    memcpy(dst, src, static_cast<size_t>(count) * Bytes);
  } else if (src_step == -Bytes && dst_step == Bytes) {
    move_each<Bytes>(src, -Bytes, dst, Bytes, count);
  } else {
    move_each<Bytes>(src, src_step, dst, dst_step, count);
  }
}

void move_any(const byte *src, int64_t src_step, byte *dst, int64_t dst_step, int64_t count, int64_t bytes) {
  turn_round(src, src_step, dst, dst_step, count);
  if (src_step == bytes && dst_step == bytes) {
    memcpy(dst, src, static_cast<size_t>(count * bytes));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    memcpy(dst + i * dst_step, src + i * src_step, static_cast<size_t>(bytes));
  }
}

#if CVC_HOST_VECTOR

// Reverses the pixels that fit in 16 bytes at a time. `src` is the last pixel, `dst` the first.
template <int Bytes> CVC_TARGET_VECTOR void reverse_vector(const byte *src, byte *dst, int64_t count) {
  constexpr int pixels = 16 / Bytes;
  alignas(16) byte order[16];
  for (int i = 0; i < 16; ++i) {
    const int pixel = i / Bytes;
    // The last `pixels * Bytes` of the 16 bytes loaded are the pixels; a byte beyond them is overwritten by
    // the next step.
    order[i] = pixel < pixels ? static_cast<byte>(16 - (pixel + 1) * Bytes + i % Bytes) : 0x80;
  }
  const __m128i shuffle = _mm_load_si128(reinterpret_cast<const __m128i *>(order));
  const byte *end = src + Bytes;
  int64_t left = count;
  // Both the load and the store stay inside the row while 16 bytes of it are left.
  while (left * Bytes >= 16) {
    const __m128i loaded = _mm_loadu_si128(reinterpret_cast<const __m128i *>(end - 16));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(dst), _mm_shuffle_epi8(loaded, shuffle));
    end -= pixels * Bytes;
    dst += pixels * Bytes;
    left -= pixels;
  }
  move_each<Bytes>(end - Bytes, -Bytes, dst, Bytes, left);
}

template <int Bytes>
void move_vector(const byte *src, int64_t src_step, byte *dst, int64_t dst_step, int64_t count,
                 int64_t bytes) {
  turn_round(src, src_step, dst, dst_step, count);
  if (src_step == -Bytes && dst_step == Bytes) {
    reverse_vector<Bytes>(src, dst, count);
  } else {
    move_baseline<Bytes>(src, src_step, dst, dst_step, count, bytes);
  }
}

#endif

template <int Bytes> move_function choose_move_of() {
#if CVC_HOST_VECTOR
  if (Bytes <= 8 && host_has_vector()) {
    return move_vector<Bytes>;
  }
#endif
  return move_baseline<Bytes>;
}

// The function that moves pixels of `bytes` bytes.
move_function choose_move(int64_t bytes) {
  switch (bytes) {
  case 1:
    return choose_move_of<1>();
  case 2:
    return choose_move_of<2>();
  case 3:
    return choose_move_of<3>();
  case 4:
    return choose_move_of<4>();
  case 6:
    return choose_move_of<6>();
  case 8:
    return choose_move_of<8>();
  case 12:
    return choose_move_of<12>();
  case 16:
    return choose_move_of<16>();
  case 24:
    return choose_move_of<24>();
  case 32:
    return choose_move_of<32>();
  default:
    return move_any;
  }
}

} // namespace

#endif

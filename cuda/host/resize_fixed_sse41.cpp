// The 8-bit passes of the host's resize in SSE4.1; see resize_fixed_avx2.cpp for how a coefficient is split.
#include "resize_passes.h"

#if CVC_RESIZE_X86
#include <smmintrin.h>

#define CVC_SSE41 __attribute__((target("sse4.1")))
#define CVC_SSE41_INLINE static inline __attribute__((target("sse4.1"), always_inline))

namespace cvc_resize_host {
namespace {

CVC_SSE41_INLINE __m128i join_halves(__m128i low, __m128i high) {
  return _mm_add_epi32(low, _mm_slli_epi32(high, 16));
}

CVC_SSE41_INLINE __m128i read_8_bytes(const void *from) {
  return _mm_loadl_epi64(static_cast<const __m128i *>(from));
}

CVC_SSE41_INLINE __m128i read_4_bytes(const void *from) {
  int value;
  __builtin_memcpy(&value, from, sizeof value);
  return _mm_cvtsi32_si128(value);
}

CVC_SSE41_INLINE void multiply_add(__m128i samples, __m128i low, __m128i high, __m128i &low_sum,
                                   __m128i &high_sum) {
  low_sum = _mm_add_epi32(low_sum, _mm_madd_epi16(samples, low));
  high_sum = _mm_add_epi32(high_sum, _mm_madd_epi16(samples, high));
}

// Four sums become four bytes.
CVC_SSE41_INLINE int four_bytes(__m128i sums) {
  const __m128i words = _mm_packs_epi32(_mm_srai_epi32(sums, cvc_resize_fixed_bits), _mm_setzero_si128());
  return _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
}

// 3 or 4 channels, 2 taps at a time, each pair of a channel's samples side by side.
template <int Channels>
CVC_SSE41 void horizontal_wide(const horizontal_pass &pass, const uint8_t *const sources[row_group],
                               uint8_t *const targets[row_group]) {
  constexpr char c = Channels;
  constexpr char a = Channels == 4 ? 3 : -1;
  constexpr char b = Channels == 4 ? 7 : -1;
  const __m128i spread = _mm_setr_epi8(0, -1, c, -1, 1, -1, c + 1, -1, 2, -1, c + 2, -1, a, -1, b, -1);
  const __m128i half = _mm_set1_epi32(cvc_resize_fixed_half);
  const int row_length = pass.table->row_length;
  for (int x = pass.begin; x < pass.end; ++x) {
    const cvc_resize_taps taps = cvc_resize_bounds(pass.table, x);
    const int16_t *low_row = cvc_resize_split(pass.table, x);
    const int64_t from = static_cast<int64_t>(taps.first - pass.source_begin) * Channels;
    __m128i low_sums[row_group] = {half, half, half, half};
    __m128i high_sums[row_group] = {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128(),
                                    _mm_setzero_si128()};
    for (int k = 0; k < taps.count; k += 2) {
      const __m128i low = _mm_shuffle_epi32(read_4_bytes(low_row + k), 0);
      const __m128i high = _mm_shuffle_epi32(read_4_bytes(low_row + row_length + k), 0);
      const int64_t at = from + static_cast<int64_t>(k) * Channels;
      for (int r = 0; r < row_group; ++r) {
        const __m128i samples = _mm_shuffle_epi8(read_8_bytes(sources[r] + at), spread);
        multiply_add(samples, low, high, low_sums[r], high_sums[r]);
      }
    }
    const int64_t to = static_cast<int64_t>(x - pass.begin) * Channels;
    for (int r = 0; r < row_group; ++r) {
      const int bytes = four_bytes(join_halves(low_sums[r], high_sums[r]));
      __builtin_memcpy(targets[r] + to, &bytes, sizeof bytes);
    }
  }
}

// 1 channel, 8 taps at a time, or 2 channels, 4 taps at a time.
template <int Channels>
CVC_SSE41 void horizontal_narrow(const horizontal_pass &pass, const uint8_t *const sources[row_group],
                                 uint8_t *const targets[row_group]) {
  const __m128i pairs = _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
  const __m128i half = _mm_set1_epi32(cvc_resize_fixed_half);
  const int row_length = pass.table->row_length;
  constexpr int step = 8 / Channels;
  for (int x = pass.begin; x < pass.end; ++x) {
    const cvc_resize_taps taps = cvc_resize_bounds(pass.table, x);
    const int16_t *low_row = cvc_resize_split(pass.table, x);
    const int64_t from = static_cast<int64_t>(taps.first - pass.source_begin) * Channels;
    __m128i low_sums[row_group] = {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128(),
                                   _mm_setzero_si128()};
    __m128i high_sums[row_group] = {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128(),
                                    _mm_setzero_si128()};
    for (int k = 0; k < taps.count; k += step) {
      __m128i low, high;
      if (Channels == 1) {
        low = _mm_loadu_si128(reinterpret_cast<const __m128i *>(low_row + k));
        high = _mm_loadu_si128(reinterpret_cast<const __m128i *>(low_row + row_length + k));
      } else {
        low = _mm_shuffle_epi32(read_8_bytes(low_row + k), 0x50);
        high = _mm_shuffle_epi32(read_8_bytes(low_row + row_length + k), 0x50);
      }
      const int64_t at = from + static_cast<int64_t>(k) * Channels;
      for (int r = 0; r < row_group; ++r) {
        __m128i samples = _mm_cvtepu8_epi16(read_8_bytes(sources[r] + at));
        if (Channels == 2) {
          samples = _mm_shuffle_epi8(samples, pairs);
        }
        multiply_add(samples, low, high, low_sums[r], high_sums[r]);
      }
    }
    for (int r = 0; r < row_group; ++r) {
      low_sums[r] = join_halves(low_sums[r], high_sums[r]);
    }
    const int64_t to = static_cast<int64_t>(x - pass.begin) * Channels;
    if (Channels == 1) {
      const __m128i sums =
          _mm_hadd_epi32(_mm_hadd_epi32(low_sums[0], low_sums[1]), _mm_hadd_epi32(low_sums[2], low_sums[3]));
      const int bytes = four_bytes(_mm_add_epi32(sums, half));
      for (int r = 0; r < row_group; ++r) {
        targets[r][to] = static_cast<uint8_t>(bytes >> (8 * r));
      }
    } else {
      for (int r = 0; r < row_group; ++r) {
        const __m128i sums = _mm_add_epi32(low_sums[r], _mm_shuffle_epi32(low_sums[r], 0x4e));
        const int bytes = four_bytes(_mm_add_epi32(sums, half));
        __builtin_memcpy(targets[r] + to, &bytes, Channels);
      }
    }
  }
}

// The sums of 16 samples, two rows at a time.
CVC_SSE41_INLINE __m128i vertical_16(const void *const *rows, int count, const int16_t *low_row,
                                     int row_length, int64_t at) {
  const __m128i zero = _mm_setzero_si128();
  const __m128i half = _mm_set1_epi32(cvc_resize_fixed_half);
  __m128i low0 = half, low1 = half, low2 = half, low3 = half;
  __m128i high0 = zero, high1 = zero, high2 = zero, high3 = zero;
  for (int k = 0; k < count; k += 2) {
    const uint8_t *first = static_cast<const uint8_t *>(rows[k]) + at;
    // An odd last tap is paired with itself; its second coefficient is zero.
    const uint8_t *second = static_cast<const uint8_t *>(rows[k + 1 < count ? k + 1 : k]) + at;
    const __m128i low = _mm_shuffle_epi32(read_4_bytes(low_row + k), 0);
    const __m128i high = _mm_shuffle_epi32(read_4_bytes(low_row + row_length + k), 0);
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i *>(first));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i *>(second));
    const __m128i lower = _mm_unpacklo_epi8(a, b);
    const __m128i upper = _mm_unpackhi_epi8(a, b);
    multiply_add(_mm_unpacklo_epi8(lower, zero), low, high, low0, high0);
    multiply_add(_mm_unpackhi_epi8(lower, zero), low, high, low1, high1);
    multiply_add(_mm_unpacklo_epi8(upper, zero), low, high, low2, high2);
    multiply_add(_mm_unpackhi_epi8(upper, zero), low, high, low3, high3);
  }
  low0 = _mm_srai_epi32(join_halves(low0, high0), cvc_resize_fixed_bits);
  low1 = _mm_srai_epi32(join_halves(low1, high1), cvc_resize_fixed_bits);
  low2 = _mm_srai_epi32(join_halves(low2, high2), cvc_resize_fixed_bits);
  low3 = _mm_srai_epi32(join_halves(low3, high3), cvc_resize_fixed_bits);
  return _mm_packus_epi16(_mm_packs_epi32(low0, low1), _mm_packs_epi32(low2, low3));
}

} // namespace

fixed_kernel fixed_horizontal_sse41(int channels) {
  switch (channels) {
  case 1:
    return horizontal_narrow<1>;
  case 2:
    return horizontal_narrow<2>;
  case 3:
    return horizontal_wide<3>;
  default:
    return horizontal_wide<4>;
  }
}

CVC_SSE41 void fixed_vertical_sse41(const cvc_resize_table *table, int output, const void *const *rows,
                                    void *target, int64_t samples) {
  constexpr int64_t block = 16;
  const int count = cvc_resize_bounds(table, output).count;
  uint8_t *out = static_cast<uint8_t *>(target);
  if (samples < block) {
    const int32_t *coefficients = cvc_resize_fixed(table, output);
    for (int64_t i = 0; i < samples; ++i) {
      out[i] = cvc_resize_sum_fixed(coefficients, count,
                                    [&](int k) { return static_cast<const uint8_t *>(rows[k])[i]; });
    }
    return;
  }
  const int16_t *low_row = cvc_resize_split(table, output);
  for (int64_t at = 0; at < samples; at += block) {
    // The last block may overlap the one before.
    const int64_t start = at + block <= samples ? at : samples - block;
    const __m128i bytes = vertical_16(rows, count, low_row, table->row_length, start);
    _mm_storeu_si128(reinterpret_cast<__m128i *>(out + start), bytes);
  }
}

} // namespace cvc_resize_host
#endif

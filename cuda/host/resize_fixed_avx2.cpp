// The 8-bit passes of the host's resize in AVX2.
//
// A coefficient is high * 65536 + low with 16-bit halves, so that two multiply-add instructions a pair of
// taps, one for each half, give what a 32-bit product would; the halves' sums are joined once at the end,
// modulo 2^32.
#include "resize_passes.h"

#if CVC_RESIZE_X86
#include <immintrin.h>

#define CVC_AVX2 __attribute__((target("avx2")))
#define CVC_AVX2_INLINE static inline __attribute__((target("avx2"), always_inline))

namespace cvc_resize_host {
namespace {

CVC_AVX2_INLINE __m256i join_halves(__m256i low, __m256i high) {
  return _mm256_add_epi32(low, _mm256_slli_epi32(high, 16));
}

CVC_AVX2_INLINE __m256i broadcast_16_bytes(const void *from) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i *>(from)));
}

// Two neighbouring halves of coefficients, everywhere.
CVC_AVX2_INLINE __m256i broadcast_pair(const int16_t *from) {
  int pair;
  __builtin_memcpy(&pair, from, sizeof pair);
  return _mm256_set1_epi32(pair);
}

CVC_AVX2_INLINE __m256i rows_of_16_bytes(const uint8_t *first, const uint8_t *second) {
  return _mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i *>(first))),
      _mm_loadu_si128(reinterpret_cast<const __m128i *>(second)), 1);
}

CVC_AVX2_INLINE long long read_8_bytes(const void *from) {
  long long value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

CVC_AVX2_INLINE void write_4_bytes(uint8_t *to, int value) { __builtin_memcpy(to, &value, sizeof value); }

// Writes 4 bytes of each row; `words` has rows 0 and 2 in one half and 1 and 3 in the other.
CVC_AVX2_INLINE void write_4_rows(__m256i words, uint8_t *to0, uint8_t *to1, uint8_t *to2, uint8_t *to3) {
  const __m256i bytes = _mm256_packus_epi16(words, words);
  const __m128i rows02 = _mm256_castsi256_si128(bytes);
  const __m128i rows13 = _mm256_extracti128_si256(bytes, 1);
  write_4_bytes(to0, _mm_cvtsi128_si32(rows02));
  write_4_bytes(to1, _mm_cvtsi128_si32(rows13));
  write_4_bytes(to2, _mm_extract_epi32(rows02, 1));
  write_4_bytes(to3, _mm_extract_epi32(rows13, 1));
}

// Multiplies one vector of samples by both halves and adds to the two sums.
CVC_AVX2_INLINE void multiply_add(__m256i samples, __m256i low, __m256i high, __m256i &low_sum,
                                  __m256i &high_sum) {
  low_sum = _mm256_add_epi32(low_sum, _mm256_madd_epi16(samples, low));
  high_sum = _mm256_add_epi32(high_sum, _mm256_madd_epi16(samples, high));
}

// 3 or 4 channels, 4 taps of two rows at a time, one row in each half of the register; each pair of a
// channel's samples side by side as 16-bit numbers.
template <int Channels>
CVC_AVX2 void horizontal_wide(const horizontal_pass &pass, const uint8_t *const sources[row_group],
                              uint8_t *const targets[row_group]) {
  constexpr char c = Channels;
  constexpr char a0 = Channels == 4 ? 3 : -1, a1 = Channels == 4 ? 7 : -1;
  constexpr char a2 = Channels == 4 ? 11 : -1, a3 = Channels == 4 ? 15 : -1;
  const __m256i taps01 = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, -1, c, -1, 1, -1, c + 1, -1, 2, -1, c + 2, -1, a0, -1, a1, -1));
  const __m256i taps23 = _mm256_broadcastsi128_si256(_mm_setr_epi8(
      2 * c, -1, 3 * c, -1, 2 * c + 1, -1, 3 * c + 1, -1, 2 * c + 2, -1, 3 * c + 2, -1, a2, -1, a3, -1));
  const uint8_t *const row0 = sources[0], *const row1 = sources[1];
  const uint8_t *const row2 = sources[2], *const row3 = sources[3];
  uint8_t *to0 = targets[0], *to1 = targets[1], *to2 = targets[2], *to3 = targets[3];
  const cvc_resize_table *const table = pass.table;
  const int row_length = table->row_length;
  const int end = pass.end;
  const int source_begin = pass.source_begin;
  for (int x = pass.begin; x < end; ++x) {
    const cvc_resize_taps taps = cvc_resize_bounds(table, x);
    const int16_t *coefficients = cvc_resize_split(table, x);
    const int16_t *const coefficients_end = coefficients + taps.count;
    int64_t at = static_cast<int64_t>(taps.first - source_begin) * Channels;
    __m256i low01 = _mm256_set1_epi32(cvc_resize_fixed_half), low23 = low01;
    __m256i high01 = _mm256_setzero_si256(), high23 = high01;
    do {
      const __m256i low_a = broadcast_pair(coefficients);
      const __m256i low_b = broadcast_pair(coefficients + 2);
      const __m256i high_a = broadcast_pair(coefficients + row_length);
      const __m256i high_b = broadcast_pair(coefficients + row_length + 2);
      const __m256i rows01 = rows_of_16_bytes(row0 + at, row1 + at);
      const __m256i rows23 = rows_of_16_bytes(row2 + at, row3 + at);
      multiply_add(_mm256_shuffle_epi8(rows01, taps01), low_a, high_a, low01, high01);
      multiply_add(_mm256_shuffle_epi8(rows23, taps01), low_a, high_a, low23, high23);
      multiply_add(_mm256_shuffle_epi8(rows01, taps23), low_b, high_b, low01, high01);
      multiply_add(_mm256_shuffle_epi8(rows23, taps23), low_b, high_b, low23, high23);
      at += 4 * Channels;
      coefficients += 4;
    } while (coefficients < coefficients_end);
    const __m256i words =
        _mm256_packs_epi32(_mm256_srai_epi32(join_halves(low01, high01), cvc_resize_fixed_bits),
                           _mm256_srai_epi32(join_halves(low23, high23), cvc_resize_fixed_bits));
    write_4_rows(words, to0, to1, to2, to3);
    to0 += Channels;
    to1 += Channels;
    to2 += Channels;
    to3 += Channels;
  }
}

// 8 bytes of two rows, one row in each half of the register, as 16-bit numbers.
CVC_AVX2_INLINE __m256i two_rows(const uint8_t *first, const uint8_t *second) {
  return _mm256_cvtepu8_epi16(
      _mm_insert_epi64(_mm_cvtsi64_si128(read_8_bytes(first)), read_8_bytes(second), 1));
}

// One channel and one output: {row 0, row 2, row 0, row 2} and {row 1, row 3, row 1, row 3}.
CVC_AVX2_INLINE __m256i one_channel_sums(const horizontal_pass &pass, const uint8_t *const sources[row_group],
                                         int x) {
  const cvc_resize_taps taps = cvc_resize_bounds(pass.table, x);
  const int16_t *low_row = cvc_resize_split(pass.table, x);
  const int row_length = pass.table->row_length;
  const int64_t at = taps.first - pass.source_begin;
  __m256i low01 = _mm256_setzero_si256(), high01 = low01, low23 = low01, high23 = low01;
  for (int k = 0; k < taps.count; k += 8) {
    const __m256i low = broadcast_16_bytes(low_row + k);
    const __m256i high = broadcast_16_bytes(low_row + row_length + k);
    multiply_add(two_rows(sources[0] + at + k, sources[1] + at + k), low, high, low01, high01);
    multiply_add(two_rows(sources[2] + at + k, sources[3] + at + k), low, high, low23, high23);
  }
  const __m256i halves = _mm256_hadd_epi32(join_halves(low01, high01), join_halves(low23, high23));
  return _mm256_hadd_epi32(halves, halves);
}

CVC_AVX2 void horizontal_one(const horizontal_pass &pass, const uint8_t *const sources[row_group],
                             uint8_t *const targets[row_group]) {
  const __m256i half = _mm256_set1_epi32(cvc_resize_fixed_half);
  const int last = pass.end - 1;
  // Four outputs are written together; past the last one they are copies of it, in the rows' slack.
  for (int x = pass.begin; x < pass.end; x += 4) {
    const __m256i sums0 = one_channel_sums(pass, sources, x);
    const __m256i sums1 = one_channel_sums(pass, sources, x + 1 < last ? x + 1 : last);
    const __m256i sums2 = one_channel_sums(pass, sources, x + 2 < last ? x + 2 : last);
    const __m256i sums3 = one_channel_sums(pass, sources, x + 3 < last ? x + 3 : last);
    // Row 0 of outputs 0 and 1, then row 2 of them; in the other half rows 1 and 3.
    const __m256i outputs01 = _mm256_unpacklo_epi32(sums0, sums1);
    const __m256i outputs23 = _mm256_unpacklo_epi32(sums2, sums3);
    const __m256i rows01 = _mm256_unpacklo_epi64(outputs01, outputs23);
    const __m256i rows23 = _mm256_unpackhi_epi64(outputs01, outputs23);
    const __m256i words =
        _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(rows01, half), cvc_resize_fixed_bits),
                           _mm256_srai_epi32(_mm256_add_epi32(rows23, half), cvc_resize_fixed_bits));
    const int64_t to = x - pass.begin;
    write_4_rows(words, targets[0] + to, targets[1] + to, targets[2] + to, targets[3] + to);
  }
}

// 2 channels, 4 taps at a time, two rows in a register.
CVC_AVX2 void horizontal_two(const horizontal_pass &pass, const uint8_t *const sources[row_group],
                             uint8_t *const targets[row_group]) {
  const __m256i pairs = _mm256_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15, //
                                         0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
  const __m256i half = _mm256_set1_epi32(cvc_resize_fixed_half);
  const int row_length = pass.table->row_length;
  for (int x = pass.begin; x < pass.end; ++x) {
    const cvc_resize_taps taps = cvc_resize_bounds(pass.table, x);
    const int16_t *low_row = cvc_resize_split(pass.table, x);
    const int64_t from = static_cast<int64_t>(taps.first - pass.source_begin) * 2;
    __m256i low01 = _mm256_setzero_si256(), high01 = low01, low23 = low01, high23 = low01;
    for (int k = 0; k < taps.count; k += 4) {
      const __m256i low = _mm256_shuffle_epi32(_mm256_set1_epi64x(read_8_bytes(low_row + k)), 0x50);
      const __m256i high =
          _mm256_shuffle_epi32(_mm256_set1_epi64x(read_8_bytes(low_row + row_length + k)), 0x50);
      const int64_t at = from + 2 * k;
      const __m256i rows01 = _mm256_shuffle_epi8(two_rows(sources[0] + at, sources[1] + at), pairs);
      const __m256i rows23 = _mm256_shuffle_epi8(two_rows(sources[2] + at, sources[3] + at), pairs);
      multiply_add(rows01, low, high, low01, high01);
      multiply_add(rows23, low, high, low23, high23);
    }
    const __m256i sum01 = join_halves(low01, high01);
    const __m256i sum23 = join_halves(low23, high23);
    // {row 0: two channels, row 2: two channels} and rows 1 and 3.
    const __m256i sums =
        _mm256_add_epi32(_mm256_unpacklo_epi64(sum01, sum23), _mm256_unpackhi_epi64(sum01, sum23));
    const __m256i shifted = _mm256_srai_epi32(_mm256_add_epi32(sums, half), cvc_resize_fixed_bits);
    const __m256i words = _mm256_packs_epi32(shifted, shifted);
    const __m256i bytes = _mm256_packus_epi16(words, words);
    const unsigned rows02 = static_cast<unsigned>(_mm_cvtsi128_si32(_mm256_castsi256_si128(bytes)));
    const unsigned rows13 = static_cast<unsigned>(_mm_cvtsi128_si32(_mm256_extracti128_si256(bytes, 1)));
    const int64_t to = static_cast<int64_t>(x - pass.begin) * 2;
    const uint16_t values[row_group] = {static_cast<uint16_t>(rows02), static_cast<uint16_t>(rows13),
                                        static_cast<uint16_t>(rows02 >> 16),
                                        static_cast<uint16_t>(rows13 >> 16)};
    for (int r = 0; r < row_group; ++r) {
      __builtin_memcpy(targets[r] + to, &values[r], sizeof values[r]);
    }
  }
}

// 32 samples of two rows at a time: the rows' samples side by side, then widened to 16 bits.
CVC_AVX2_INLINE __m256i vertical_32(const void *const *rows, int count, const int16_t *low_row,
                                    int row_length, int64_t at) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i half = _mm256_set1_epi32(cvc_resize_fixed_half);
  __m256i low0 = half, low1 = half, low2 = half, low3 = half;
  __m256i high0 = zero, high1 = zero, high2 = zero, high3 = zero;
  for (int k = 0; k < count; k += 2) {
    const uint8_t *first = static_cast<const uint8_t *>(rows[k]) + at;
    // An odd last tap is paired with itself; its second coefficient is zero.
    const uint8_t *second = static_cast<const uint8_t *>(rows[k + 1 < count ? k + 1 : k]) + at;
    const __m256i low = broadcast_pair(low_row + k);
    const __m256i high = broadcast_pair(low_row + row_length + k);
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(first));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(second));
    const __m256i lower = _mm256_unpacklo_epi8(a, b);
    const __m256i upper = _mm256_unpackhi_epi8(a, b);
    multiply_add(_mm256_unpacklo_epi8(lower, zero), low, high, low0, high0);
    multiply_add(_mm256_unpackhi_epi8(lower, zero), low, high, low1, high1);
    multiply_add(_mm256_unpacklo_epi8(upper, zero), low, high, low2, high2);
    multiply_add(_mm256_unpackhi_epi8(upper, zero), low, high, low3, high3);
  }
  low0 = _mm256_srai_epi32(join_halves(low0, high0), cvc_resize_fixed_bits);
  low1 = _mm256_srai_epi32(join_halves(low1, high1), cvc_resize_fixed_bits);
  low2 = _mm256_srai_epi32(join_halves(low2, high2), cvc_resize_fixed_bits);
  low3 = _mm256_srai_epi32(join_halves(low3, high3), cvc_resize_fixed_bits);
  return _mm256_packus_epi16(_mm256_packs_epi32(low0, low1), _mm256_packs_epi32(low2, low3));
}

} // namespace

fixed_kernel fixed_horizontal_avx2(int channels) {
  switch (channels) {
  case 1:
    return horizontal_one;
  case 2:
    return horizontal_two;
  case 3:
    return horizontal_wide<3>;
  default:
    return horizontal_wide<4>;
  }
}

CVC_AVX2 void fixed_vertical_avx2(const cvc_resize_table *table, int output, const void *const *rows,
                                  void *target, int64_t samples) {
  constexpr int64_t block = 32;
  if (samples < block) {
    fixed_vertical_sse41(table, output, rows, target, samples);
    return;
  }
  const int count = cvc_resize_bounds(table, output).count;
  const int16_t *low_row = cvc_resize_split(table, output);
  uint8_t *out = static_cast<uint8_t *>(target);
  for (int64_t at = 0; at < samples; at += block) {
    // The last block may overlap the one before.
    const int64_t start = at + block <= samples ? at : samples - block;
    const __m256i bytes = vertical_32(rows, count, low_row, table->row_length, start);
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + start), bytes);
  }
}

} // namespace cvc_resize_host
#endif

// The two passes of the GPU's pillow_resize of U8 over what lies in shared memory, as matrix products.
//
// A coefficient is the sum of its three bytes at their places, the highest signed, and each place has its own
// product of bytes. All of it is exact, and the places are put together before rounding, so that the result
// has the bits of the plain sum.
#ifndef CVC_RESIZE_PRODUCTS_CUH
#define CVC_RESIZE_PRODUCTS_CUH

#include "device.cuh"
#include "resize.cuh"
#include "resize_tiling.cuh"

namespace cvc_resize_device {

using namespace cvc_device;

constexpr int places = 3;
constexpr int group_rows = cvc_resize_source_group;

// The three places of four coefficients: byte i of word p is byte p of coefficient i.
struct coefficient_word {
  uint32_t place[places];
};

CVC_DEVICE coefficient_word split_places(const int32_t (&coefficients)[4]) {
  const uint32_t a = static_cast<uint32_t>(coefficients[0]), b = static_cast<uint32_t>(coefficients[1]);
  const uint32_t c = static_cast<uint32_t>(coefficients[2]), d = static_cast<uint32_t>(coefficients[3]);
  // Bytes 0 and 1 of the first two, and of the last two: a0 b0 a1 b1.
  const uint32_t low_ab = permute_bytes(a, b, 0x5140), low_cd = permute_bytes(c, d, 0x5140);
  const uint32_t high_ab = permute_bytes(a, b, 0x0062), high_cd = permute_bytes(c, d, 0x0062);
  return coefficient_word{{permute_bytes(low_ab, low_cd, 0x5410), permute_bytes(low_ab, low_cd, 0x7632),
                           permute_bytes(high_ab, high_cd, 0x5410)}};
}

// 256, a block's threads, which the compiler must not know: it would shift, and shifts wait for the same
// units as the rest of what is done to sums, while products have their own.
CVC_DEVICE uint32_t place_value() { return blockDim.x; }

// The sum of a place each, rounded and not yet clipped; the first place's sums began at half.
CVC_DEVICE int32_t join_places(int32_t low, int32_t middle, int32_t high) {
  const uint32_t value = place_value();
  const uint32_t upper = static_cast<uint32_t>(high) * value + static_cast<uint32_t>(middle);
  return static_cast<int32_t>(upper * value + static_cast<uint32_t>(low)) >> cvc_resize_fixed_bits;
}

// Sums of 16 x 8, in places.
struct place_sums {
  matrix_sums place[places];

  CVC_DEVICE place_sums() {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      place[0].at[i] = cvc_resize_fixed_half;
      place[1].at[i] = 0;
      place[2].at[i] = 0;
    }
  }

  // Two steps of rows times coefficients.
  CVC_DEVICE void add_32(const left_words &left, const uint32_t (&right)[places],
                         const uint32_t (&second_right)[places]) {
    constexpr right_operand is_unsigned = right_operand::is_unsigned, is_signed = right_operand::is_signed;
    multiply_32<is_unsigned>(place[0], left.low, left.high, left.second_low, left.second_high, right[0],
                             second_right[0]);
    multiply_32<is_unsigned>(place[1], left.low, left.high, left.second_low, left.second_high, right[1],
                             second_right[1]);
    multiply_32<is_signed>(place[2], left.low, left.high, left.second_low, left.second_high, right[2],
                           second_right[2]);
  }

  // Rows of bytes times coefficients; `left` is what the lane names to `load_left_32`.
  template <int Steps> CVC_DEVICE void add(const byte *left, const uint32_t (&right)[Steps][places]) {
    static_assert(Steps % 2 == 0, "two steps are loaded at once");
#pragma unroll
    for (int step = 0; step < Steps; step += 2) {
      add_32(load_left_32(left + 16 * step), right[step], right[step + 1]);
    }
  }

  // Likewise. A lane's words of the rows lie at `low` and, 8 rows on, at `high`, and 16 bytes further for
  // each step.
  template <int Steps>
  CVC_DEVICE void add(const byte *low, const byte *high, const uint32_t (&right)[Steps][places]) {
    constexpr right_operand is_unsigned = right_operand::is_unsigned, is_signed = right_operand::is_signed;
#pragma unroll
    for (int step = 0; step + 1 < Steps; step += 2) {
      const left_words left = {*reinterpret_cast<const uint32_t *>(low + 16 * step),
                               *reinterpret_cast<const uint32_t *>(high + 16 * step),
                               *reinterpret_cast<const uint32_t *>(low + 16 * step + 16),
                               *reinterpret_cast<const uint32_t *>(high + 16 * step + 16)};
      add_32(left, right[step], right[step + 1]);
    }
    if (Steps % 2 != 0) {
      constexpr int step = Steps - 1;
      const uint32_t a = *reinterpret_cast<const uint32_t *>(low + 16 * step);
      const uint32_t b = *reinterpret_cast<const uint32_t *>(high + 16 * step);
      multiply_16<is_unsigned>(place[0], a, b, right[step][0]);
      multiply_16<is_unsigned>(place[1], a, b, right[step][1]);
      multiply_16<is_signed>(place[2], a, b, right[step][2]);
    }
  }

  CVC_DEVICE int32_t joined(int i) const {
    return join_places(place[0].at[i], place[1].at[i], place[2].at[i]);
  }
};

// The right operand of the horizontal pass: the bytes of a source row by 8 samples of the result.
template <int Steps> struct sample_coefficients {
  // Many steps are loaded two at once, from vectors of 16 bytes.
  static constexpr bool is_wide = cvc_resize_parts(Steps) == 1;

  int first_byte; // in the rows of shared memory; a multiple of 4, or of 16
  uint32_t word[Steps][places];

  // `sample` is the first of the 8, of the row of the result; rows in shared memory begin at `source_byte`.
  CVC_DEVICE void find(const cvc_resize_image &image, int channels, int sample, int source_byte, int lane) {
    const cvc_resize_table *table = in_global(cvc_resize_horizontal(image));
    const int last = image.dst_width - 1;
    const int first_pixel = sample / channels;
    const int begin = cvc_resize_bounds(table, first_pixel < last ? first_pixel : last).first * channels;
    first_byte = (begin - source_byte) & (is_wide ? ~15 : ~3);
    const int own = sample + lane / 4;
    const int pixel = own / channels;
    const bool exists = pixel <= last;
    const int output = exists ? pixel : last;
    const cvc_resize_taps taps = cvc_resize_bounds(table, output);
    const int32_t *row = cvc_resize_fixed(table, output);
    const int count = exists ? taps.count : 0;
    // How far this lane's first byte lies behind the first tap's; a coefficient is at multiples of
    // `channels`.
    const int offset =
        source_byte + first_byte + 4 * (lane % 4) - taps.first * channels - (own - pixel * channels);
    // Distances are below 2^12: the product with this, shifted, is the quotient.
    const uint32_t inverse = 65536u / static_cast<uint32_t>(channels) + 1u;
#pragma unroll
    for (int step = 0; step < Steps; ++step) {
      int32_t coefficients[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int distance = offset + 16 * step + i;
        const int tap = static_cast<int>(static_cast<uint32_t>(distance) * inverse >> 16);
        // A negative distance is no product of a tap below 2^16.
        const bool is_tap = tap < count && tap * channels == distance;
        coefficients[i] = is_tap ? __ldg(row + static_cast<uint32_t>(tap)) : 0;
      }
      const coefficient_word split = split_places(coefficients);
#pragma unroll
      for (int p = 0; p < places; ++p) {
        word[step][p] = split.place[p];
      }
    }
  }
};

// Where row r of a chunk lies, so that the sums of a lane are those of four adjacent rows: rows that are
// equal modulo 4 follow each other.
CVC_DEVICE int place_of_row(int row, int chunk_rows) { return (row & 3) * (chunk_rows >> 2) + (row >> 2); }

// Where a lane begins to read the rows of a stage, `apart` as below.
template <int Steps>
CVC_DEVICE const byte *lane_rows(const byte *stages, int row_stride, int apart, int lane) {
  if constexpr (sample_coefficients<Steps>::is_wide) {
    return stages + lane % 8 * row_stride + lane / 8 % 2 * apart + lane / 16 * 16;
  } else {
    return stages + lane / 4 * row_stride + lane % 4 * 4;
  }
}

// 32 source rows of 8 samples: the sums, clipped to bytes, go to the samples' columns. `rows` and `column`
// are the lane's own; the rows that are 1 more modulo 4 lie `apart` behind.
template <int Steps, int PlaneBytes>
CVC_DEVICE void resample_rows(const sample_coefficients<Steps> &coefficients, const byte *rows, int apart,
                              byte *column) {
  int32_t values[2][4];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const byte *low = rows + 2 * half * apart + coefficients.first_byte;
    place_sums sums;
    if constexpr (sample_coefficients<Steps>::is_wide) {
      sums.add<Steps>(low, coefficients.word);
    } else {
      sums.add<Steps>(low, low + apart, coefficients.word);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      values[i % 2][2 * half + i / 2] = sums.joined(i);
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    *reinterpret_cast<uint32_t *>(column + i * PlaneBytes) =
        pack_saturated(values[i][0], values[i][1], values[i][2], values[i][3]);
  }
}

// 8 output rows of a strip, by one warp: a lane has 4 * Quads adjacent samples of two rows. `columns` and
// `coefficients` are the lane's own.
template <int Steps, int Quads, int PlaneBytes>
CVC_DEVICE void resample_columns(const byte *columns, const uint32_t *coefficients, uint32_t (&first)[Quads],
                                 uint32_t (&second)[Quads]) {
  uint32_t right[Steps][places];
#pragma unroll
  for (int i = 0; i < Steps * places; ++i) {
    right[i / places][i % places] = __ldg(coefficients + i * warp_lanes);
  }
#pragma unroll
  for (int quad = 0; quad < Quads; ++quad) {
    int32_t values[2][4];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const byte *even = columns + (4 * quad + 2 * pair) * PlaneBytes;
      place_sums sums;
      sums.add<Steps>(even, even + PlaneBytes, right);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        values[i % 2][2 * pair + i / 2] = sums.joined(i);
      }
    }
    first[quad] = pack_saturated(values[0][0], values[0][1], values[0][2], values[0][3]);
    second[quad] = pack_saturated(values[1][0], values[1][1], values[1][2], values[1][3]);
  }
}

} // namespace cvc_resize_device

#endif

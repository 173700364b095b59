// One tile of the GPU's pillow_resize of U8: source rows come into shared memory while those before them are
// resampled along the row; then columns are, from shared memory, and the result goes out.
//
// Sums of bytes times 24-bit coefficients are matrix products: a coefficient is the sum of its three bytes at
// their places, the highest signed, and each place has its own product. All of it is exact, and the places
// are put together before rounding, so that the result has the bits of the plain sum.
#ifndef CVC_RESIZE_TILE_CUH
#define CVC_RESIZE_TILE_CUH

#include "device.cuh"
#include "resize.cuh"
#include "resize_tiling.cuh"

namespace cvc_resize_device {

using namespace cvc_device;

constexpr int places = 3;

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

// The sum of a place each, rounded and not yet clipped; the first place's sums began at half.
CVC_DEVICE int32_t join_places(int32_t low, int32_t middle, int32_t high) {
  const uint32_t sum =
      static_cast<uint32_t>(low) + (static_cast<uint32_t>(middle) << 8) + (static_cast<uint32_t>(high) << 16);
  return static_cast<int32_t>(sum) >> cvc_resize_fixed_bits;
}

CVC_DEVICE void begin_sums(matrix_sums (&sums)[places]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    sums[0].at[i] = cvc_resize_fixed_half;
    sums[1].at[i] = 0;
    sums[2].at[i] = 0;
  }
}

// Where the tile is.
struct tile_place {
  const byte *src; // row 0, column 0 of its plane
  byte *dst;
  int channels;
  int64_t first_sample; // of the row of the result
  int64_t row_samples;
  int first_row;  // of the result
  int source_row; // the first one that the band needs
  int source_rows;
  int64_t source_byte; // of a row: where rows in shared memory begin
  int source_bytes;    // how many are needed from there on
  int64_t row_bytes;   // of the whole source row
  int alignment;       // of the source's rows: 16, 4 or 1
  bool aligned_result; // the rows of the result are aligned to 16
};

struct tile_memory {
  byte *sources;          // two chunks
  byte *columns;          // what lies between the passes
  uint32_t *coefficients; // of the vertical pass
};

// Rows of a group lie in the order of the columns of two products: row r of 16 at this place, so that a
// lane's sums are those of four adjacent rows.
CVC_DEVICE int place_of_row(int row) { return (row & ~15) | (row & 2) << 2 | (row & 12) >> 1 | (row & 1); }

// Starts the copies of a chunk's rows; `first` is the first one's number in the band.
CVC_DEVICE void load_chunk(const cvc_resize_image &image, const tile_place &tile, byte *chunk, int first,
                           int rows) {
  const int row_stride = 16 * image.tiling.source_vectors;
  const int vector = tile.alignment == 16 ? 16 : 4;
  const int vectors = (tile.source_bytes + vector - 1) / vector;
  // A warp takes several short rows at once.
  int across = warp_lanes;
  while (across > 4 && across / 2 >= vectors) {
    across /= 2;
  }
  const int thread = static_cast<int>(threadIdx.x);
  const int column = thread & (across - 1);
  const int step = block_threads / across;
  for (int row = thread / across; row < rows && first + row < tile.source_rows; row += step) {
    const byte *from = tile.src + (tile.source_row + first + row) * image.src.stride_h + tile.source_byte;
    byte *to = chunk + place_of_row(row) * row_stride;
    for (int i = column; i < vectors; i += across) {
      const int64_t left = tile.row_bytes - tile.source_byte - i * vector;
      const int valid = left >= vector ? vector : static_cast<int>(left);
      if (tile.alignment == 16) {
        copy_async_16(to + 16 * i, from + 16 * i, valid);
      } else if (tile.alignment == 4) {
        copy_async_4(to + 4 * i, from + 4 * i, valid);
      } else {
        uint32_t word = 0;
        for (int k = 0; k < valid; ++k) {
          word |= static_cast<uint32_t>(from[4 * i + k]) << 8 * k;
        }
        *reinterpret_cast<uint32_t *>(to + 4 * i) = word;
      }
    }
  }
}

// The left operand of the horizontal pass: 16 samples of the result by the bytes of a source row.
template <int Steps> struct sample_coefficients {
  int first_byte; // in the rows of shared memory; a multiple of 4
  uint32_t word[Steps][2][places];

  // `sample` is the first of the 16, of the row of the result.
  CVC_DEVICE void find(const cvc_resize_table *table, const tile_place &tile, int64_t sample, int lane) {
    const int channels = tile.channels;
    const int64_t last_pixel = table->out_size - 1;
    const int64_t first_pixel = sample / channels;
    const int64_t begin =
        static_cast<int64_t>(
            cvc_resize_bounds(table,
                              static_cast<int32_t>(first_pixel < last_pixel ? first_pixel : last_pixel))
                .first) *
        channels;
    first_byte = static_cast<int>(begin - tile.source_byte) & ~3;
    // The source byte, and its pixel and channel, that this lane's first coefficient is for.
    // Distances are below 2^12: the product with this, shifted, is the quotient.
    const uint32_t inverse = 65536u / static_cast<uint32_t>(channels) + 1u;
    const int64_t byte_here = tile.source_byte + first_byte + 4 * (lane & 3);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t own = sample + lane / 4 + 8 * half;
      const int64_t pixel = own / channels;
      const int channel = static_cast<int>(own - pixel * channels);
      const bool exists = own < tile.row_samples;
      const int32_t output = static_cast<int32_t>(exists ? pixel : last_pixel);
      const cvc_resize_taps taps = cvc_resize_bounds(table, output);
      const int32_t *row = cvc_resize_fixed(table, output);
      // Relative to the channel's byte of the first tap; a coefficient is at multiples of `channels`.
      const int64_t start = static_cast<int64_t>(taps.first) * channels + channel;
      const int count = exists ? taps.count : 0;
      const int offset = static_cast<int>(byte_here - start);
#pragma unroll
      for (int step = 0; step < Steps; ++step) {
        int32_t coefficients[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int distance = offset + 16 * step + i;
          const int tap = static_cast<int>(static_cast<uint32_t>(distance) * inverse >> 16);
          const bool is_tap = distance >= 0 && tap < count && tap * channels == distance;
          coefficients[i] = is_tap ? row[tap] : 0;
        }
        const coefficient_word split = split_places(coefficients);
#pragma unroll
        for (int p = 0; p < places; ++p) {
          word[step][half][p] = split.place[p];
        }
      }
    }
  }
};

// A group of 16 rows by 16 samples. `rows` is the group's first row in shared memory, `column` where this
// warp's sample 0 has the group's first row.
template <int Steps>
CVC_DEVICE void resample_rows(const sample_coefficients<Steps> &left, const byte *rows, int row_stride,
                              byte *column, int plane_bytes, int lane) {
  const int across = lane / 4, down = lane % 4;
  matrix_sums sums[2][places];
  begin_sums(sums[0]);
  begin_sums(sums[1]);
  const byte *own = rows + across * row_stride + left.first_byte + 4 * down;
#pragma unroll
  for (int step = 0; step + 1 < Steps; step += 2) {
#pragma unroll
    for (int product = 0; product < 2; ++product) {
      const byte *at = own + 8 * product * row_stride + 16 * step;
      const uint32_t right = *reinterpret_cast<const uint32_t *>(at);
      const uint32_t second = *reinterpret_cast<const uint32_t *>(at + 16);
#pragma unroll
      for (int p = 0; p < places; ++p) {
        constexpr signs none = signs::none, left_signed = signs::left_signed;
        if (p + 1 < places) {
          multiply_32<none>(sums[product][p], left.word[step][0][p], left.word[step][1][p],
                            left.word[step + 1][0][p], left.word[step + 1][1][p], right, second);
        } else {
          multiply_32<left_signed>(sums[product][p], left.word[step][0][p], left.word[step][1][p],
                                   left.word[step + 1][0][p], left.word[step + 1][1][p], right, second);
        }
      }
    }
  }
  if (Steps % 2 != 0) {
    constexpr int step = Steps - 1;
#pragma unroll
    for (int product = 0; product < 2; ++product) {
      const uint32_t right = *reinterpret_cast<const uint32_t *>(own + 8 * product * row_stride + 16 * step);
      multiply_16<signs::none>(sums[product][0], left.word[step][0][0], left.word[step][1][0], right);
      multiply_16<signs::none>(sums[product][1], left.word[step][0][1], left.word[step][1][1], right);
      multiply_16<signs::left_signed>(sums[product][2], left.word[step][0][2], left.word[step][1][2], right);
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int32_t values[4];
#pragma unroll
    for (int product = 0; product < 2; ++product) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int at = 2 * half + i;
        values[2 * product + i] =
            join_places(sums[product][0].at[at], sums[product][1].at[at], sums[product][2].at[at]);
      }
    }
    *reinterpret_cast<uint32_t *>(column + (across + 8 * half) * plane_bytes + 4 * down) =
        pack_saturated(values[0], values[1], values[2], values[3]);
  }
}

// The rows that a group of 8 output rows begins at, in the band, a multiple of 4.
CVC_DEVICE int group_row(const cvc_resize_table *table, const tile_place &tile, int group) {
  const int last = table->out_size - 1;
  const int row = tile.first_row + cvc_resize_band_group * group;
  return (cvc_resize_bounds(table, row < last ? row : last).first - tile.source_row) & ~3;
}

// The right operands of the vertical pass: the rows between the passes by 8 output rows, of all groups.
CVC_DEVICE void find_row_coefficients(const cvc_resize_table *table, const cvc_resize_tiling &tiling,
                                      const tile_place &tile, uint32_t *words) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int all = tiling.band_groups * tiling.vertical_steps;
  for (int i = static_cast<int>(threadIdx.x) / warp_lanes; i < all; i += block_warps) {
    const int group = i / tiling.vertical_steps, step = i % tiling.vertical_steps;
    const int row = tile.first_row + cvc_resize_band_group * group + lane / 4;
    int32_t coefficients[4] = {0, 0, 0, 0};
    if (row < table->out_size) {
      const cvc_resize_taps taps = cvc_resize_bounds(table, row);
      const int32_t *own = cvc_resize_fixed(table, row);
      const int tap =
          tile.source_row + group_row(table, tile, group) + 16 * step + 4 * (lane % 4) - taps.first;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (tap + k >= 0 && tap + k < taps.count) {
          coefficients[k] = own[tap + k];
        }
      }
    }
    const coefficient_word split = split_places(coefficients);
#pragma unroll
    for (int p = 0; p < places; ++p) {
      words[(i * places + p) * warp_lanes + lane] = split.place[p];
    }
  }
}

// 16 bytes of a row of the result.
CVC_DEVICE void store_samples(const tile_place &tile, byte *row, int64_t sample, const uint32_t (&words)[4]) {
  if (tile.aligned_result && sample + 16 <= tile.row_samples) {
    *reinterpret_cast<uint4 *>(row + sample) = make_uint4(words[0], words[1], words[2], words[3]);
    return;
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    if (sample + i < tile.row_samples) {
      row[sample + i] = static_cast<byte>(words[i / 4] >> 8 * (i % 4));
    }
  }
}

// 8 output rows of a unit of samples, by one warp. A lane has 16 adjacent samples of two rows.
template <int Steps>
CVC_DEVICE void resample_columns(const cvc_resize_image &image, const tile_place &tile,
                                 const tile_memory &memory, int group, int unit, int lane) {
  const cvc_resize_tiling &tiling = image.tiling;
  const int column_bytes = cvc_resize_column_bytes(tiling), plane_bytes = cvc_resize_plane_bytes(tiling);
  const int across = lane / 4, down = lane % 4;
  uint32_t right[Steps][places];
  const uint32_t *words = memory.coefficients + group * (Steps * places * warp_lanes) + lane;
#pragma unroll
  for (int i = 0; i < Steps * places; ++i) {
    right[i / places][i % places] = words[i * warp_lanes];
  }
  const byte *own = memory.columns + unit * cvc_resize_unit_bytes(tiling) + across * column_bytes +
                    group_row(in_global(cvc_resize_vertical(image)), tile, group) + 4 * down;
  uint32_t first[4], second[4];
#pragma unroll
  for (int quad = 0; quad < 4; ++quad) {
    int32_t values[2][4];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const byte *even = own + (4 * quad + 2 * pair) * plane_bytes;
      const byte *odd = even + plane_bytes;
      matrix_sums sums[places];
      begin_sums(sums);
#pragma unroll
      for (int step = 0; step + 1 < Steps; step += 2) {
        const uint32_t a = *reinterpret_cast<const uint32_t *>(even + 16 * step);
        const uint32_t b = *reinterpret_cast<const uint32_t *>(odd + 16 * step);
        const uint32_t c = *reinterpret_cast<const uint32_t *>(even + 16 * step + 16);
        const uint32_t d = *reinterpret_cast<const uint32_t *>(odd + 16 * step + 16);
        multiply_32<signs::none>(sums[0], a, b, c, d, right[step][0], right[step + 1][0]);
        multiply_32<signs::none>(sums[1], a, b, c, d, right[step][1], right[step + 1][1]);
        multiply_32<signs::right_signed>(sums[2], a, b, c, d, right[step][2], right[step + 1][2]);
      }
      if (Steps % 2 != 0) {
        constexpr int step = Steps - 1;
        const uint32_t a = *reinterpret_cast<const uint32_t *>(even + 16 * step);
        const uint32_t b = *reinterpret_cast<const uint32_t *>(odd + 16 * step);
        multiply_16<signs::none>(sums[0], a, b, right[step][0]);
        multiply_16<signs::none>(sums[1], a, b, right[step][1]);
        multiply_16<signs::right_signed>(sums[2], a, b, right[step][2]);
      }
#pragma unroll
      for (int odd_sample = 0; odd_sample < 2; ++odd_sample) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
          const int at = 2 * odd_sample + row;
          values[row][2 * pair + odd_sample] = join_places(sums[0].at[at], sums[1].at[at], sums[2].at[at]);
        }
      }
    }
    first[quad] = pack_saturated(values[0][0], values[0][1], values[0][2], values[0][3]);
    second[quad] = pack_saturated(values[1][0], values[1][1], values[1][2], values[1][3]);
  }
  const int row = tile.first_row + cvc_resize_band_group * group + 2 * down;
  const int64_t sample = tile.first_sample + cvc_resize_unit * unit + 16 * across;
  byte *to = tile.dst + row * image.dst.stride_h;
  if (row < image.dst_height) {
    store_samples(tile, to, sample, first);
  }
  if (row + 1 < image.dst_height) {
    store_samples(tile, to + image.dst.stride_h, sample, second);
  }
}

template <int Steps>
CVC_DEVICE void resample_all_columns(const cvc_resize_image &image, const tile_place &tile,
                                     const tile_memory &memory, int units) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int all = image.tiling.band_groups * units;
  for (int i = static_cast<int>(threadIdx.x) / warp_lanes; i < all; i += block_warps) {
    const int group = i / units, unit = i - group * units;
    if (tile.first_row + cvc_resize_band_group * group < image.dst_height) {
      resample_columns<Steps>(image, tile, memory, group, unit, lane);
    }
  }
}

// The horizontal pass over all chunks of the band.
template <int Steps>
CVC_DEVICE void resample_all_rows(const cvc_resize_image &image, const tile_place &tile,
                                  const tile_memory &memory) {
  constexpr int units = cvc_resize_units(Steps);
  const cvc_resize_tiling &tiling = image.tiling;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int chunk_rows = tiling.chunk_groups * cvc_resize_source_group;
  const int chunk_bytes = cvc_resize_chunk_bytes(tiling);
  const int row_stride = 16 * tiling.source_vectors;
  const int plane_bytes = cvc_resize_plane_bytes(tiling);
  load_chunk(image, tile, memory.sources, 0, chunk_rows);
  copy_async_commit();
  sample_coefficients<Steps> left[units];
#pragma unroll
  for (int unit = 0; unit < units; ++unit) {
    left[unit].find(in_global(cvc_resize_horizontal(image)), tile,
                    tile.first_sample + cvc_resize_unit * unit + 16 * warp, lane);
  }
  find_row_coefficients(in_global(cvc_resize_vertical(image)), tiling, tile, memory.coefficients);
  byte *column = memory.columns + warp * cvc_resize_column_bytes(tiling);
  int turn = 0;
  for (int first = 0; first < tile.source_rows; first += chunk_rows) {
    load_chunk(image, tile, memory.sources + (turn ^ 1) * chunk_bytes, first + chunk_rows, chunk_rows);
    copy_async_commit();
    copy_async_wait<1>();
    __syncthreads();
    const byte *chunk = memory.sources + turn * chunk_bytes;
    for (int row = 0; row < chunk_rows && first + row < tile.source_rows; row += cvc_resize_source_group) {
#pragma unroll
      for (int unit = 0; unit < units; ++unit) {
        resample_rows<Steps>(left[unit], chunk + row * row_stride, row_stride,
                             column + unit * cvc_resize_unit_bytes(tiling) + first + row, plane_bytes, lane);
      }
    }
    __syncthreads();
    turn ^= 1;
  }
  copy_async_wait<0>();
}

// Computes tile number `index` of the images of one geometry. Steps above 3 need `Wide`, and more registers.
template <bool Wide>
CVC_DEVICE void resize_tile(const cvc_resize_image &image, uint32_t channels, int64_t batch, int64_t index) {
  const cvc_resize_tiling &tiling = image.tiling;
  const cvc_resize_grid grid = cvc_resize_grid_of(image, channels, tiling);
  const int units = cvc_resize_units(tiling.horizontal_steps);
  const uint32_t number = static_cast<uint32_t>(index), strips = static_cast<uint32_t>(grid.strips);
  // Neighbours along a row come after each other, as they read the same rows.
  const uint32_t band = number / strips;
  const uint32_t plane = band / static_cast<uint32_t>(grid.bands);
  const uint32_t n = plane / static_cast<uint32_t>(grid.planes);
  const int64_t c = plane - n * static_cast<uint32_t>(grid.planes);
  const cvc_resize_table *horizontal = in_global(cvc_resize_horizontal(image));
  const cvc_resize_table *vertical = in_global(cvc_resize_vertical(image));
  tile_place tile;
  tile.src = in_global(reinterpret_cast<const byte *>(cvc_view_address(image.src, n, c, 0, 0)));
  tile.dst = in_global(reinterpret_cast<byte *>(cvc_view_address(image.dst, n, c, 0, 0)));
  tile.channels = grid.channels;
  tile.row_samples = grid.row_samples;
  tile.first_sample = static_cast<int64_t>(number - band * strips) * (cvc_resize_unit * units);
  tile.first_row = static_cast<int>(band - plane * static_cast<uint32_t>(grid.bands)) *
                   (cvc_resize_band_group * tiling.band_groups);
  const bool has_planes = grid.planes > 1;
  const int64_t planes = has_planes ? grid.planes : 1;
  tile.alignment = cvc_view_is_aligned(image.src, batch, planes, image.src_height, 16)  ? 16
                   : cvc_view_is_aligned(image.src, batch, planes, image.src_height, 4) ? 4
                                                                                        : 1;
  tile.aligned_result = cvc_view_is_aligned(image.dst, batch, planes, image.dst_height, 16);
  const int64_t last_sample = tile.first_sample + cvc_resize_unit * units - 1;
  const int64_t last_pixel =
      (last_sample < tile.row_samples ? last_sample : tile.row_samples - 1) / grid.channels;
  const cvc_resize_taps left =
      cvc_resize_bounds(horizontal, static_cast<int32_t>(tile.first_sample / grid.channels));
  const cvc_resize_taps right = cvc_resize_bounds(horizontal, static_cast<int32_t>(last_pixel));
  tile.row_bytes = static_cast<int64_t>(image.src_width) * grid.channels;
  tile.source_byte =
      static_cast<int64_t>(left.first) * grid.channels & ~static_cast<int64_t>(tile.alignment - 1);
  tile.source_bytes =
      static_cast<int>(static_cast<int64_t>(right.first + right.count) * grid.channels - tile.source_byte);
  const int end_row = tile.first_row + cvc_resize_band_group * tiling.band_groups;
  const cvc_resize_taps top = cvc_resize_bounds(vertical, tile.first_row);
  const cvc_resize_taps bottom =
      cvc_resize_bounds(vertical, (end_row < image.dst_height ? end_row : image.dst_height) - 1);
  tile.source_row = top.first;
  tile.source_rows = bottom.first + bottom.count - top.first;
  tile_memory memory;
  memory.sources = dynamic_shared();
  memory.columns = memory.sources + 2 * cvc_resize_chunk_bytes(tiling);
  memory.coefficients = reinterpret_cast<uint32_t *>(memory.columns + units * cvc_resize_unit_bytes(tiling));

  switch (tiling.horizontal_steps) {
  case 2:
    resample_all_rows<2>(image, tile, memory);
    break;
  case 3:
    resample_all_rows<3>(image, tile, memory);
    break;
  case 4:
    if (Wide) {
      resample_all_rows<4>(image, tile, memory);
    }
    break;
  case 6:
    if (Wide) {
      resample_all_rows<6>(image, tile, memory);
    }
    break;
  case 8:
    if (Wide) {
      resample_all_rows<8>(image, tile, memory);
    }
    break;
  default:
    if (Wide) {
      resample_all_rows<12>(image, tile, memory);
    }
    break;
  }
  // The last chunk's barrier made all rows between the passes visible.
  switch (tiling.vertical_steps) {
  case 1:
    resample_all_columns<1>(image, tile, memory, units);
    break;
  case 2:
    resample_all_columns<2>(image, tile, memory, units);
    break;
  case 3:
    resample_all_columns<3>(image, tile, memory, units);
    break;
  case 4:
    resample_all_columns<4>(image, tile, memory, units);
    break;
  default:
    resample_all_columns<6>(image, tile, memory, units);
    break;
  }
  __syncthreads();
}

} // namespace cvc_resize_device

#endif

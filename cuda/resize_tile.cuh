// Tiles of the GPU's pillow_resize of U8: source rows come into shared memory while those before them are
// resampled along the row; then columns are, from shared memory, and the result goes to a sink.
#ifndef CVC_RESIZE_TILE_CUH
#define CVC_RESIZE_TILE_CUH

#include "resize_products.cuh"
#include "resize_sink.cuh"

namespace cvc_resize_device {

// What all bands of a strip have in common.
struct strip_place {
  int first_sample; // of the row of the result
  int source_byte;  // of a source row: where rows in shared memory begin
  int available;    // bytes of the row from there on
  int vector;       // bytes that are copied at once: 16, 4, or 1 where rows are not aligned
  int vectors;      // of each row, of 16 or 4 bytes
  int bands;        // of the block
};

CVC_DEVICE strip_place find_strip(const cvc_resize_image &image, const cvc_resize_grid &grid, int batch,
                                  int strip) {
  const cvc_resize_table *table = in_global(cvc_resize_horizontal(image));
  const int samples = cvc_resize_strip(image.tiling.horizontal_steps);
  strip_place place;
  place.first_sample = strip * samples;
  const int end = place.first_sample + samples;
  const int last_pixel = ((end < grid.row_samples ? end : grid.row_samples) - 1) / grid.channels;
  const cvc_resize_taps left = cvc_resize_bounds(table, place.first_sample / grid.channels);
  const cvc_resize_taps right = cvc_resize_bounds(table, last_pixel);
  const auto is_aligned = [&](int bytes) {
    return cvc_view_is_aligned(image.src, batch, grid.planes, image.src_height, bytes);
  };
  const int begin = left.first * grid.channels, end_byte = (right.first + right.count) * grid.channels;
  const int row_bytes = image.src_width * grid.channels;
  // Whole vectors have to lie within the row.
  const bool whole = is_aligned(16) && ((end_byte + 15) & ~15) <= row_bytes;
  place.vector = whole ? 16 : is_aligned(4) ? 4 : 1;
  place.source_byte = begin & -place.vector;
  place.available = row_bytes - place.source_byte;
  const int bytes = end_byte - place.source_byte;
  place.vectors = whole ? (bytes + 15) / 16 : (bytes + 3) / 4;
  return place;
}

struct band_place {
  const byte *source; // of the first row in shared memory, where the strip's bytes begin
  int source_row;     // its number, a multiple of 4
  int source_rows;
  int first_row; // of the result
  int image;
  int plane;
};

// What shared memory holds: first this, then columns, then stages. What is needed seldom is here and not in
// registers, which are short.
struct tile_head {
  strip_place strip;
  band_place bands[cvc_resize_most_turns];
};
static_assert(sizeof(tile_head) <= cvc_resize_head_bytes && cvc_resize_head_bytes % 16 == 0,
              "the host counts with it");

// Band number `index` of all images.
CVC_DEVICE band_place find_band(const cvc_resize_image &image, const cvc_resize_grid &grid, int source_byte,
                                uint32_t index) {
  const cvc_resize_table *table = in_global(cvc_resize_vertical(image));
  const uint32_t plane = index / static_cast<uint32_t>(grid.bands);
  const int rows = cvc_resize_band_group * image.tiling.band_groups;
  band_place place;
  place.image = static_cast<int>(plane / static_cast<uint32_t>(grid.planes));
  place.plane = static_cast<int>(plane) - place.image * grid.planes;
  place.first_row = static_cast<int>(index - plane * static_cast<uint32_t>(grid.bands)) * rows;
  const int end = place.first_row + rows;
  const cvc_resize_taps top = cvc_resize_bounds(table, place.first_row);
  const cvc_resize_taps bottom =
      cvc_resize_bounds(table, (end < image.dst_height ? end : image.dst_height) - 1);
  place.source_row = top.first & ~3;
  place.source_rows = bottom.first + bottom.count - place.source_row;
  place.source = reinterpret_cast<const byte *>(
                     cvc_view_address(image.src, place.image, place.plane, place.source_row, 0)) +
                 source_byte;
  return place;
}

// Copies the chunks of a block's bands, one after the other, into the two stages of shared memory in turn.
// `Lean`: few registers are left, and what can be found again is, from shared memory.
template <bool Lean> class row_reader {
public:
  CVC_DEVICE row_reader(const cvc_resize_image &image, const tile_head &head, byte *stages)
      : image_(image), head_(head), stages_(stages) {
    const int chunk_rows = cvc_resize_chunk_rows(image.tiling);
    first_ = column() < head.strip.vectors ? static_cast<int>(threadIdx.x) >> row_bits() : chunk_rows;
    target_ = shared_address(stages) +
              static_cast<uint32_t>(place_of_row(first_, chunk_rows) * row_stride() + 16 * column());
    step_ = find_step();
    offset_ = find_offset();
    enter();
  }

  CVC_DEVICE void start_chunk() {
    if (left_ > 0) {
      const int chunk_rows = cvc_resize_chunk_rows(image_.tiling);
      const int rows = left_ < chunk_rows ? left_ : chunk_rows;
      if (head_.strip.vector == 16) {
        copy_vectors(target_ + static_cast<uint32_t>(stage_), rows);
      } else {
        copy_words(stages_ + stage_, rows);
      }
      stage_ = cvc_resize_chunk_bytes(image_.tiling) - stage_;
      from_ += chunk_rows * image_.src.stride_h;
      left_ -= chunk_rows;
      if (left_ <= 0 && ++band_ < head_.strip.bands) {
        enter();
      }
    }
    copy_async_commit();
  }

  // Waits for the chunk that was started last, and for all threads to be here.
  CVC_DEVICE void wait() const {
    copy_async_wait<0>();
    __syncthreads();
  }

private:
  CVC_DEVICE int row_stride() const { return 16 * image_.tiling.source_vectors; }

  // A thread has one vector of every row that is a step behind its first. Several rows fit into a warp, or a
  // row takes two warps; rows of whole vectors are not longer.
  CVC_DEVICE int row_bits() const {
    const int vectors = head_.strip.vectors;
    return vectors <= 4 ? 2 : vectors <= 8 ? 3 : vectors <= 16 ? 4 : vectors <= 32 ? 5 : 6;
  }
  CVC_DEVICE int column() const { return static_cast<int>(threadIdx.x) & ((1 << row_bits()) - 1); }
  CVC_DEVICE int find_step() const { return block_threads >> row_bits(); }
  // Of the thread's first vector in a chunk.
  CVC_DEVICE int64_t find_offset() const {
    return head_.strip.vector == 16 ? first_ * image_.src.stride_h + 16 * column() : 0;
  }

  CVC_DEVICE void enter() {
    from_ = in_global(head_.bands[band_].source) + (Lean ? find_offset() : 0);
    left_ = head_.bands[band_].source_rows;
  }

  CVC_DEVICE void copy_vectors(uint32_t to, int rows) const {
    const int step = Lean ? find_step() : step_;
    const byte *from = from_ + (Lean ? 0 : offset_);
    const int64_t stride = step * image_.src.stride_h;
    const uint32_t apart = static_cast<uint32_t>(step / 4 * row_stride());
#pragma unroll 4
    for (int row = first_; row < rows; row += step) {
      copy_async_16(to, from);
      from += stride;
      to += apart;
    }
  }

  // Rows that are not aligned to 16 bytes.
  CVC_DEVICE void copy_words(byte *chunk, int rows) const {
    const strip_place &strip = head_.strip;
#pragma unroll 1
    for (int row = static_cast<int>(threadIdx.x) / warp_lanes; row < rows; row += block_warps) {
      const byte *from = in_global(from_) + row * image_.src.stride_h;
      byte *to = chunk + place_of_row(row, cvc_resize_chunk_rows(image_.tiling)) * row_stride();
#pragma unroll 1
      for (int i = static_cast<int>(threadIdx.x) % warp_lanes; i < strip.vectors; i += warp_lanes) {
        const int valid = strip.available - 4 * i;
        if (strip.vector == 4 && valid >= 4) {
          copy_async_4(to + 4 * i, from + 4 * i);
          continue;
        }
        // What lies behind a row's last byte is never read: nobody may have written it.
        uint32_t word = 0;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          word |= k < valid ? static_cast<uint32_t>(from[4 * i + k]) << 8 * k : 0;
        }
        *reinterpret_cast<uint32_t *>(to + 4 * i) = word;
      }
    }
  }

  const cvc_resize_image &image_;
  const tile_head &head_;
  byte *stages_;
  const byte *from_; // the next chunk's first row, where the strip's bytes begin; lean: where the thread's do
  int left_;         // rows of the band
  int band_ = 0;
  int stage_ = 0; // where the next chunk goes
  // The thread's own, for whole vectors.
  int first_;
  uint32_t target_;
  int step_; // not used where it is lean, as the next
  int64_t offset_;
};

// The vertical pass over a band. The warps share groups of 8 rows, of narrow strips' groups half a one each,
// so that all warps have some of a short band's.
template <int Steps, int Parts, class Sink>
CVC_DEVICE void resample_band(const cvc_resize_image &image, const tile_head &head, const band_place &band,
                              const byte *columns, Sink &sink) {
  constexpr int shares = Parts == 1 ? 2 : 1, quads = 2 * Parts / shares;
  const cvc_resize_table *table = in_global(cvc_resize_vertical(image));
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int across = lane / 4, down = lane % 4, quad = quads * (warp % shares);
  const byte *own = columns + across * cvc_resize_column_bytes(Parts) +
                    4 * quad * cvc_resize_plane_bytes(Parts) + 4 * down - band.source_row;
  const uint32_t *coefficients = in_global(cvc_resize_group(table, 0, Steps)) + lane;
  const int sample = head.strip.first_sample + 8 * Parts * across + 4 * quad;
  const int band_end = band.first_row + cvc_resize_band_group * image.tiling.band_groups;
  const int end = band_end < image.dst_height ? band_end : image.dst_height;
  const auto resample = [&](int begin, int pass_end) {
#pragma unroll 1
    for (int row = begin + cvc_resize_band_group * (warp / shares); row < pass_end;
         row += cvc_resize_band_group * block_warps / shares) {
      uint32_t first[quads], second[quads];
      resample_columns<Steps, quads, cvc_resize_plane_bytes(Parts)>(
          own + (cvc_resize_bounds(table, row).first & ~3),
          coefficients + static_cast<int64_t>(row / cvc_resize_band_group) * (Steps * places * warp_lanes),
          first, second);
      if (row + 2 * down < image.dst_height) {
        sink.store(row + 2 * down, sample, first);
      }
      if (row + 2 * down + 1 < image.dst_height) {
        sink.store(row + 2 * down + 1, sample, second);
      }
    }
  };
  if constexpr (Sink::most_rows == 0) {
    resample(band.first_row, end);
  } else {
#pragma unroll 1
    for (int begin = band.first_row; begin < end; begin += Sink::most_rows) {
      const int next = begin + Sink::most_rows, pass_end = next < end ? next : end;
      sink.begin(begin);
      resample(begin, pass_end);
      sink.end(pass_end, next < end);
    }
  }
}

// Writes down what a block does: turn number `turn` of strip number `strip`.
CVC_DEVICE void fill_head(const cvc_resize_image &image, const cvc_resize_grid &grid, int batch, int strip,
                          uint32_t turn, tile_head &head) {
  const int thread = static_cast<int>(threadIdx.x);
  const uint32_t turns = image.tiling.turns, begin = turn * turns;
  const uint32_t all = static_cast<uint32_t>(grid.bands_of(batch));
  const uint32_t bands = begin + turns < all ? turns : all - begin;
  if (thread < static_cast<int>(bands)) {
    strip_place place = find_strip(image, grid, batch, strip);
    place.bands = static_cast<int>(bands);
    head.bands[thread] = find_band(image, grid, place.source_byte, begin + static_cast<uint32_t>(thread));
    if (thread == 0) {
      head.strip = place;
    }
  }
  __syncthreads();
}

// All that block number `block` of one geometry does: a few bands of one strip.
template <int Steps, class Sink>
CVC_DEVICE void resize_strip(const cvc_resize_image &image, uint32_t channels, int batch, uint32_t block,
                             const typename Sink::source &target) {
  constexpr int parts = cvc_resize_parts(Steps), plane_bytes = cvc_resize_plane_bytes(parts);
  const cvc_resize_tiling &tiling = image.tiling;
  const cvc_resize_grid grid = cvc_resize_grid_of(image, channels, tiling);
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int across = lane / 4, down = lane % 4;
  tile_head &head = *reinterpret_cast<tile_head *>(dynamic_shared());
  byte *columns = dynamic_shared() + cvc_resize_head_bytes;
  byte *stages = columns + cvc_resize_columns_bytes(parts);
  // Neighbours along a row come after each other, as they read the same rows.
  const uint32_t turn = block / static_cast<uint32_t>(grid.strips);
  fill_head(image, grid, batch, static_cast<int>(block - turn * static_cast<uint32_t>(grid.strips)), turn,
            head);
  const int chunk_rows = cvc_resize_chunk_rows(tiling);
  row_reader<parts == 1> reader(image, head, stages);
  reader.start_chunk();
  sample_coefficients<Steps> coefficients[parts];
  const int first_sample = head.strip.first_sample + cvc_resize_matrix * parts * warp;
  const bool has_samples = first_sample < grid.row_samples;
  Sink sink(target, image, head.strip.first_sample);
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    coefficients[part].find(image, grid.channels, first_sample + cvc_resize_matrix * part,
                            head.strip.source_byte, lane);
  }
  const int row_stride = 16 * tiling.source_vectors, apart = chunk_rows / 4 * row_stride;
  const byte *rows = lane_rows<Steps>(stages, row_stride, apart, lane);
  // Part p has samples 8p and on of each column of the strip; a lane has sums of two of them, for four rows.
  byte *column = columns + 2 * down * plane_bytes + warp * cvc_resize_column_bytes(parts) + 4 * across;
  int offset = 0; // of the stage
#pragma unroll 1
  for (int index = 0; index < head.strip.bands; ++index) {
    const band_place &band = head.bands[index];
#pragma unroll 1
    for (int first = 0; first < band.source_rows; first += chunk_rows) {
      reader.wait();
      // The chunk before this one has been read by all, and its stage is free.
      reader.start_chunk();
      if (has_samples) {
#pragma unroll 1
        for (int row = 0; row < chunk_rows && first + row < band.source_rows; row += group_rows) {
#pragma unroll
          for (int part = 0; part < parts; ++part) {
            resample_rows<Steps, plane_bytes>(coefficients[part], rows + offset + row / 4 * row_stride, apart,
                                              column + 8 * part * plane_bytes + first + row);
          }
        }
      }
      offset = cvc_resize_chunk_bytes(tiling) - offset;
    }
    __syncthreads();
    sink.enter(band.image, band.plane);
    switch (tiling.vertical_steps) {
    case 1:
      resample_band<1, parts>(image, head, band, columns, sink);
      break;
    case 2:
      resample_band<2, parts>(image, head, band, columns, sink);
      break;
    case 4:
      resample_band<4, parts>(image, head, band, columns, sink);
      break;
    default:
      if constexpr (parts == 1) {
        resample_band<6, parts>(image, head, band, columns, sink);
      }
      break;
    }
  }
}

// Steps above 4 need `Wide`: most launches do without its code.
template <bool Wide, class Sink>
CVC_DEVICE void resize_tiles(const cvc_resize_image &image, uint32_t channels, int batch, uint32_t block,
                             const typename Sink::source &target) {
  switch (image.tiling.horizontal_steps) {
  case 2:
    return resize_strip<2, Sink>(image, channels, batch, block, target);
  case 3:
    return resize_strip<3, Sink>(image, channels, batch, block, target);
  case 4:
    return resize_strip<4, Sink>(image, channels, batch, block, target);
  default:
    break;
  }
  if constexpr (Wide) {
    switch (image.tiling.horizontal_steps) {
    case 6:
      return resize_strip<6, Sink>(image, channels, batch, block, target);
    case 10:
      return resize_strip<10, Sink>(image, channels, batch, block, target);
    default:
      return resize_strip<12, Sink>(image, channels, batch, block, target);
    }
  }
}

} // namespace cvc_resize_device

#endif

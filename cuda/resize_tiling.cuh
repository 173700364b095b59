// How the GPU build of pillow_resize cuts U8 images into tiles whose two passes stay in shared memory.
//
// A tile is a band of output rows of a strip of output samples (a row's bytes, its channels side by side). A
// block computes a few bands of one strip. Both passes are products of matrices of bytes, see
// resize_products.cuh: a step is 16 bytes of what is summed over, a group is 32 source rows of the horizontal
// pass or 8 output rows of the vertical one.
#ifndef CVC_RESIZE_TILING_CUH
#define CVC_RESIZE_TILING_CUH

#include "resize_params.cuh"
#include "runs.cuh"

constexpr int cvc_resize_matrix = 8; // samples or output rows of one product
constexpr int cvc_resize_source_group = 32;
constexpr int cvc_resize_band_group = 8;
constexpr int cvc_resize_step = 16;

// Products side by side that each of a block's 8 warps does in the horizontal pass: two where a warp has the
// registers for the coefficients of both.
CVC_HD constexpr int cvc_resize_parts(int horizontal_steps) { return horizontal_steps <= 4 ? 2 : 1; }
CVC_HD constexpr int cvc_resize_strip(int horizontal_steps) {
  return 8 * cvc_resize_matrix * cvc_resize_parts(horizontal_steps);
}

// Steps that the kernels are compiled for, for so many bytes of a row; 0: none that is enough. Up to 4 steps
// begin at a word, wide ones at a vector of 16 bytes, so that what is summed over begins up to 15 bytes
// early.
CVC_HD inline int cvc_resize_wide_steps(int64_t bytes) {
  const int64_t steps = cvc_divide_up(bytes + 15, cvc_resize_step);
  return steps <= 6 ? 6 : steps <= 10 ? 10 : steps <= 12 ? 12 : 0;
}
CVC_HD inline int cvc_resize_horizontal_steps(int64_t bytes) {
  const int64_t steps = cvc_divide_up(bytes + 3, cvc_resize_step);
  return steps <= 2 ? 2 : steps <= 4 ? static_cast<int>(steps) : cvc_resize_wide_steps(bytes);
}
CVC_HD inline int cvc_resize_vertical_steps(int64_t rows) {
  const int64_t steps = cvc_divide_up(rows, cvc_resize_step);
  return steps <= 2 ? static_cast<int>(steps) : steps <= 4 ? 4 : steps <= 6 ? 6 : 0;
}

// Sizes above it are rounded before the scale is computed, and positions with them.
constexpr int64_t cvc_resize_most_exact = 1 << 24;

// How many inputs `outputs` adjacent outputs reach over: the first ones of neighbours lie `in / out` apart,
// rounded either way.
CVC_HD inline int64_t cvc_resize_reach(int64_t outputs, int64_t in, int64_t out, int64_t most_taps) {
  return cvc_divide_up((outputs - 1) * in, out) + 1 + most_taps;
}

// Steps of the groups of 8 outputs that a table holds. Words of four inputs are read, so that what is summed
// over begins up to three inputs early.
CVC_HD inline int cvc_resize_group_steps(int64_t in, int64_t out, int64_t most_taps) {
  if (in > cvc_resize_most_exact) {
    return 0;
  }
  return cvc_resize_vertical_steps(cvc_resize_reach(cvc_resize_band_group, in, out, most_taps) + 3);
}

// A stride of shared memory in vectors of 16 bytes: odd, so that the lanes of a warp use different banks.
CVC_HD inline int64_t cvc_resize_odd_vectors(int64_t bytes) { return cvc_divide_up(bytes, 16) | 1; }

// Between the passes, sample s of a strip has its rows side by side, at (s % lane) * plane + (s / lane) *
// column, where `lane` is 8 samples for each part. Lanes that take samples side by side, or planes, use
// different banks.
CVC_HD constexpr int cvc_resize_most_rows(int parts) { return 320 - 64 * parts; }
CVC_HD constexpr int cvc_resize_column_bytes(int parts) { return cvc_resize_most_rows(parts) + 16; }
CVC_HD constexpr int cvc_resize_plane_bytes(int parts) { return 8 * cvc_resize_column_bytes(parts) + 16; }
CVC_HD constexpr int cvc_resize_columns_bytes(int parts) { return 8 * parts * cvc_resize_plane_bytes(parts); }
// Source rows that are copied at once, while those before them are resampled.
CVC_HD inline int cvc_resize_chunk_rows(const cvc_resize_tiling &tiling) {
  return cvc_resize_source_group * tiling.chunk_groups;
}
CVC_HD inline int cvc_resize_chunk_bytes(const cvc_resize_tiling &tiling) {
  return cvc_resize_chunk_rows(tiling) * 16 * tiling.source_vectors;
}
// A block takes at most as many bands.
constexpr int cvc_resize_most_turns = 16;
// In front of the rest of shared memory: where a block's strip and bands lie.
constexpr int cvc_resize_head_bytes = 32 * cvc_resize_most_turns + 64;
// Operands are read a little further than what they hold.
constexpr int cvc_resize_padding = 256;
CVC_HD inline int cvc_resize_shared_bytes(const cvc_resize_tiling &tiling) {
  return cvc_resize_head_bytes + cvc_resize_columns_bytes(cvc_resize_parts(tiling.horizontal_steps)) +
         2 * cvc_resize_chunk_bytes(tiling) + cvc_resize_padding;
}

CVC_HD inline bool cvc_resize_is_tiled(const cvc_resize_tiling &tiling) {
  return tiling.horizontal_steps != 0;
}

struct cvc_resize_grid {
  int32_t strips;
  int32_t bands;
  int32_t planes; // of each image
  int32_t row_samples;
  int32_t channels; // side by side

  CVC_HD int64_t bands_of(int64_t batch) const { return static_cast<int64_t>(bands) * planes * batch; }
};

CVC_HD inline cvc_resize_grid cvc_resize_grid_of(const cvc_resize_image &image, uint32_t channels,
                                                 const cvc_resize_tiling &tiling) {
  cvc_resize_grid grid;
  grid.channels = tiling.planar != 0 ? 1 : static_cast<int32_t>(channels);
  grid.planes = tiling.planar != 0 ? static_cast<int32_t>(channels) : 1;
  grid.row_samples = image.dst_width * grid.channels;
  const int32_t strip = cvc_resize_strip(tiling.horizontal_steps);
  const int32_t band = cvc_resize_band_group * tiling.band_groups;
  grid.strips = (grid.row_samples + strip - 1) / strip;
  grid.bands = (image.dst_height + band - 1) / band;
  return grid;
}

CVC_HD inline int64_t cvc_resize_tile_blocks(const cvc_resize_grid &grid, const cvc_resize_tiling &tiling,
                                             int64_t batch) {
  return grid.strips * cvc_divide_up(grid.bands_of(batch), tiling.turns);
}

// Blocks that a multiprocessor has registers for: more would spill theirs, and were slower.
constexpr int cvc_resize_blocks = 2;
// Multiprocessors of a large GPU.
constexpr int64_t cvc_resize_multiprocessors = 132;
constexpr int64_t cvc_resize_resident = cvc_resize_multiprocessors * cvc_resize_blocks;

// About how many instructions of a warp a launch takes in time, twice.
inline int64_t cvc_resize_cost(const cvc_resize_grid &grid, const cvc_resize_tiling &tiling, int64_t batch,
                               int64_t rows) {
  const int64_t parts = cvc_resize_parts(tiling.horizontal_steps), groups = tiling.band_groups;
  const int64_t begin = 400 + 35 * parts * tiling.horizontal_steps;
  const int64_t chunk = 40 + parts * (38 + 7 * tiling.horizontal_steps);
  // A group of rows of wide tiles is two warps' work.
  const int64_t units = parts == 1 ? 2 * groups : groups;
  const int64_t unit =
      parts == 1 ? 50 + 7 * tiling.vertical_steps : 40 + parts * (60 + 14 * tiling.vertical_steps);
  // A part of the warps has nothing to do at the end of a band, while other blocks' have.
  const int64_t band =
      150 + cvc_divide_up(rows, cvc_resize_source_group) * chunk + unit * (units + (units + 7) / 8 * 8) / 16;
  const int64_t block = begin + tiling.turns * band;
  const int64_t blocks = cvc_resize_tile_blocks(grid, tiling, batch);
  // Where blocks do not fit side by side, half a one is lost at the end.
  const int64_t resident = cvc_resize_resident;
  return blocks <= resident ? 2 * block : block + 2 * block * blocks / resident;
}

// On the host, before a launch. `most_across` and `most_down` are the tables' largest counts of taps, 0 where
// there is no table.
inline cvc_resize_tiling cvc_resize_tiling_of(const cvc_resize_image &image, uint32_t kind, uint32_t channels,
                                              uint32_t flags, int64_t batch, int64_t most_across,
                                              int64_t most_down, int most_shared) {
  const cvc_resize_tiling none{};
  cvc_resize_tiling tiling{};
  const long long all = channels;
  const bool interleaved = (channels == 1 || (image.src.stride_c == 1 && image.dst.stride_c == 1)) &&
                           image.src.stride_w == all && image.dst.stride_w == all;
  const bool planar = image.src.stride_w == 1 && image.dst.stride_w == 1;
  if (kind != cvc_kind_u8 || flags != 0 || most_across == 0 || most_down == 0 || image.vertical_first != 0 ||
      !(interleaved || planar)) {
    return none;
  }
  tiling.planar = !interleaved;
  const int64_t step = interleaved ? channels : 1;
  // The kernel counts bytes of a row in 32 bits.
  if (image.src_width > cvc_resize_most_exact || image.src_width * step > INT32_MAX / 2 ||
      image.dst_width * step > INT32_MAX / 2) {
    return none;
  }
  const auto across = [&](int64_t samples) {
    const int64_t pixels = (samples + step - 2) / step + 1;
    return step * cvc_resize_reach(pixels, image.src_width, image.dst_width, most_across);
  };
  const auto down = [&](int64_t rows) {
    return cvc_resize_reach(rows, image.src_height, image.dst_height, most_down);
  };
  int horizontal_steps = cvc_resize_horizontal_steps(across(cvc_resize_matrix));
  const int vertical_steps = cvc_resize_group_steps(image.src_height, image.dst_height, most_down);
  if (horizontal_steps == 0 || vertical_steps == 0) {
    return none;
  }
  tiling.vertical_steps = static_cast<uint8_t>(vertical_steps);
  const auto fits = [&](int steps, int chunk_groups) {
    const int64_t vectors = cvc_resize_odd_vectors(across(cvc_resize_strip(steps)) + 15);
    tiling.horizontal_steps = static_cast<uint8_t>(steps);
    tiling.chunk_groups = static_cast<uint8_t>(chunk_groups);
    tiling.source_vectors = static_cast<uint8_t>(vectors);
    return vectors <= 64 && cvc_resize_shared_bytes(tiling) <= most_shared;
  };
  // Narrower strips where rows are long, and where the vertical pass needs the registers.
  const bool is_wide = horizontal_steps > 4 || vertical_steps > 4;
  const auto fits_any = [&](int steps) {
    // More at once was slower: the rows' last chunk is seldom full.
    int chunk_groups = cvc_resize_parts(steps) == 1 ? 2 : 3;
    while (chunk_groups > 0 && !fits(steps, chunk_groups)) {
      --chunk_groups;
    }
    return chunk_groups > 0;
  };
  if ((is_wide || !fits_any(horizontal_steps)) &&
      !fits_any(cvc_resize_wide_steps(across(cvc_resize_matrix)))) {
    return none;
  }
  horizontal_steps = tiling.horizontal_steps;
  const int64_t all_groups = cvc_divide_up(image.dst_height, cvc_resize_band_group);
  cvc_resize_tiling best = none;
  int64_t least = INT64_MAX;
  for (int64_t groups = 1; groups <= 48 && groups <= all_groups; ++groups) {
    // Bands begin at source rows that are multiples of 4.
    const int64_t rows = down(groups * cvc_resize_band_group) + 3;
    if (rows > cvc_resize_most_rows(cvc_resize_parts(horizontal_steps))) {
      break;
    }
    tiling.band_groups = static_cast<uint8_t>(groups);
    const cvc_resize_grid grid = cvc_resize_grid_of(image, channels, tiling);
    // The kernel counts bands in 32 bits.
    if (grid.bands_of(batch) > INT32_MAX - cvc_resize_most_turns) {
      continue;
    }
    const auto consider = [&](int64_t turns) {
      tiling.turns = static_cast<uint8_t>(turns);
      const int64_t cost = cvc_resize_cost(grid, tiling, batch, rows);
      if (cost < least) {
        least = cost;
        best = tiling;
      }
    };
    for (int64_t turns = 1; turns <= cvc_resize_most_turns; turns *= 2) {
      consider(turns);
    }
    // So that all blocks fit side by side.
    if (grid.strips <= cvc_resize_resident) {
      const int64_t turns = cvc_divide_up(grid.bands_of(batch), cvc_resize_resident / grid.strips);
      if (turns <= cvc_resize_most_turns) {
        consider(turns);
      }
    }
  }
  return best;
}

// Samples of an image that is not tiled, which a block's threads compute one each.
CVC_HD inline int64_t cvc_resize_sample_blocks(const cvc_resize_image &image,
                                               const cvc_resize_params &params) {
  const int64_t samples =
      static_cast<int64_t>(image.dst_width) * image.dst_height * params.channels * params.batch;
  return cvc_divide_up(samples, 256);
}

enum cvc_resize_kernel : int32_t {
  cvc_resize_by_sample,  // cvc_resize
  cvc_resize_in_tiles,   // cvc_resize_fixed
  cvc_resize_wide_tiles, // cvc_resize_fixed_wide
};

// The GPU's launch for a block whose tilings are filled.
struct cvc_resize_launch {
  int64_t blocks;
  cvc_resize_kernel kernel;
  int32_t shared_bytes;
};

inline cvc_resize_launch cvc_resize_launch_of(const cvc_resize_params &params) {
  cvc_resize_launch launch{0, cvc_resize_by_sample, 0};
  if (params.kind == cvc_kind_u8 && (params.flags & cvc_resize_nearest) == 0) {
    launch.kernel = cvc_resize_in_tiles;
  }
  for (int32_t i = 0; i < params.image_count; ++i) {
    const cvc_resize_image &image = params.images[i];
    if (!cvc_resize_is_tiled(image.tiling)) {
      launch.blocks += cvc_resize_sample_blocks(image, params);
      continue;
    }
    const cvc_resize_grid grid = cvc_resize_grid_of(image, params.channels, image.tiling);
    launch.blocks += cvc_resize_tile_blocks(grid, image.tiling, params.batch);
    if (image.tiling.horizontal_steps > 4) {
      launch.kernel = cvc_resize_wide_tiles;
    }
    const int32_t shared = cvc_resize_shared_bytes(image.tiling);
    launch.shared_bytes = launch.shared_bytes < shared ? shared : launch.shared_bytes;
  }
  return launch;
}

#endif

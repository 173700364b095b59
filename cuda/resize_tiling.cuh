// How the GPU build of pillow_resize cuts U8 images into tiles whose two passes stay in shared memory.
//
// A tile is a band of output rows of a strip of output samples (a row's bytes, its channels side by side).
// Both passes are products of matrices of bytes, see resize_tile.cuh: a step is 16 bytes of what is summed
// over, a group is 16 source rows of the horizontal pass or 8 output rows of the vertical one.
#ifndef CVC_RESIZE_TILING_CUH
#define CVC_RESIZE_TILING_CUH

#include "resize_params.cuh"
#include "runs.cuh"

// A unit of samples: each of a block's 8 warps has 16 of them in the horizontal pass, one warp all in the
// vertical one.
constexpr int cvc_resize_unit = 128;
constexpr int cvc_resize_matrix = 16;
constexpr int cvc_resize_source_group = 16;
constexpr int cvc_resize_band_group = 8;
constexpr int cvc_resize_step = 16;

// Strips have two units where a warp has the registers for the coefficients of both.
CVC_HD constexpr int cvc_resize_units(int horizontal_steps) { return horizontal_steps <= 4 ? 2 : 1; }

// Steps that the kernels are compiled for; 0: none that is enough.
CVC_HD inline int cvc_resize_horizontal_steps(int64_t bytes) {
  const int64_t steps = cvc_divide_up(bytes, cvc_resize_step);
  return steps <= 2    ? 2
         : steps <= 4  ? static_cast<int>(steps)
         : steps <= 6  ? 6
         : steps <= 8  ? 8
         : steps <= 12 ? 12
                       : 0;
}
CVC_HD inline int cvc_resize_vertical_steps(int64_t rows) {
  const int64_t steps = cvc_divide_up(rows, cvc_resize_step);
  return steps <= 4 ? static_cast<int>(steps) : steps <= 6 ? 6 : 0;
}

// A stride of shared memory in vectors of 16 bytes: odd, so that the lanes of a warp use different banks.
CVC_HD inline int64_t cvc_resize_odd_vectors(int64_t bytes) { return cvc_divide_up(bytes, 16) | 1; }

// Between the passes, sample s of a unit has its rows side by side, at (s % 16) * plane + (s / 16) * column.
CVC_HD inline int cvc_resize_column_bytes(const cvc_resize_tiling &tiling) {
  return 16 * tiling.column_vectors;
}
CVC_HD inline int cvc_resize_plane_bytes(const cvc_resize_tiling &tiling) {
  return 8 * cvc_resize_column_bytes(tiling) + 16;
}
CVC_HD inline int cvc_resize_unit_bytes(const cvc_resize_tiling &tiling) {
  return 16 * cvc_resize_plane_bytes(tiling);
}
CVC_HD inline int cvc_resize_chunk_bytes(const cvc_resize_tiling &tiling) {
  return tiling.chunk_groups * cvc_resize_source_group * 16 * tiling.source_vectors;
}
// Three planes of bytes of the coefficients of a group of output rows, each a word of each lane.
CVC_HD inline int cvc_resize_group_bytes(const cvc_resize_tiling &tiling) {
  return tiling.vertical_steps * 3 * 32 * 4;
}
CVC_HD inline int cvc_resize_shared_bytes(const cvc_resize_tiling &tiling) {
  return 2 * cvc_resize_chunk_bytes(tiling) +
         cvc_resize_units(tiling.horizontal_steps) * cvc_resize_unit_bytes(tiling) +
         tiling.band_groups * cvc_resize_group_bytes(tiling);
}

// Every architecture has as much shared memory for a block.
constexpr int cvc_resize_most_shared = 64 << 10;
constexpr int cvc_resize_most_columns = 240; // rows between the passes
// Enough blocks to fill a large GPU twice.
constexpr int64_t cvc_resize_enough_blocks = 600;

// How many inputs `outputs` adjacent outputs reach over: the first ones of neighbours lie `in / out` apart,
// rounded either way.
CVC_HD inline int64_t cvc_resize_reach(int64_t outputs, int64_t in, int64_t out, int64_t most_taps) {
  return cvc_divide_up((outputs - 1) * in, out) + 1 + most_taps;
}

CVC_HD inline bool cvc_resize_is_tiled(const cvc_resize_tiling &tiling) {
  return tiling.horizontal_steps != 0;
}

struct cvc_resize_grid {
  int64_t strips;
  int64_t bands;
  int64_t planes; // of each image
  int64_t row_samples;
  int channels; // side by side

  CVC_HD int64_t blocks(int64_t batch) const { return strips * bands * planes * batch; }
};

CVC_HD inline cvc_resize_grid cvc_resize_grid_of(const cvc_resize_image &image, uint32_t channels,
                                                 const cvc_resize_tiling &tiling) {
  cvc_resize_grid grid;
  grid.channels = tiling.planar != 0 ? 1 : static_cast<int>(channels);
  grid.planes = tiling.planar != 0 ? channels : 1;
  grid.row_samples = static_cast<int64_t>(image.dst_width) * grid.channels;
  grid.strips = cvc_divide_up(grid.row_samples, cvc_resize_unit * cvc_resize_units(tiling.horizontal_steps));
  grid.bands = cvc_divide_up(image.dst_height, cvc_resize_band_group * tiling.band_groups);
  return grid;
}

// On the host, before a launch. `most_across` and `most_down` are the tables' largest counts of taps, 0 where
// there is no table.
inline cvc_resize_tiling cvc_resize_tiling_of(const cvc_resize_image &image, uint32_t kind, uint32_t channels,
                                              uint32_t flags, int64_t batch, int64_t most_across,
                                              int64_t most_down) {
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
  const auto across = [&](int64_t samples) {
    const int64_t pixels = (samples + step - 2) / step + 1;
    return step * cvc_resize_reach(pixels, image.src_width, image.dst_width, most_across);
  };
  const auto down = [&](int64_t rows) {
    return cvc_resize_reach(rows, image.src_height, image.dst_height, most_down);
  };
  // Words of four bytes are read, so that what is summed over begins up to three bytes early.
  const int horizontal_steps = cvc_resize_horizontal_steps(across(cvc_resize_matrix) + 3);
  const int vertical_steps = cvc_resize_vertical_steps(down(cvc_resize_band_group) + 3);
  if (horizontal_steps == 0 || vertical_steps == 0) {
    return none;
  }
  tiling.horizontal_steps = static_cast<uint8_t>(horizontal_steps);
  tiling.vertical_steps = static_cast<uint8_t>(vertical_steps);
  const int64_t source_vectors =
      cvc_resize_odd_vectors(across(cvc_resize_unit * cvc_resize_units(horizontal_steps)) + 15);
  if (source_vectors > 255) {
    return none;
  }
  tiling.source_vectors = static_cast<uint8_t>(source_vectors);
  const int64_t all_groups = cvc_divide_up(image.dst_height, cvc_resize_band_group);
  int64_t groups = all_groups < 32 ? all_groups : 32;
  for (; groups >= 1; --groups) {
    const int64_t rows = down(groups * cvc_resize_band_group);
    const int64_t column_vectors = cvc_resize_odd_vectors(rows + 3);
    if (16 * column_vectors > cvc_resize_most_columns) {
      continue;
    }
    tiling.band_groups = static_cast<uint8_t>(groups);
    tiling.column_vectors = static_cast<uint8_t>(column_vectors);
    const int64_t source_groups = cvc_divide_up(rows, cvc_resize_source_group);
    for (int64_t chunk = source_groups < 3 ? source_groups : 3; chunk >= 1; --chunk) {
      tiling.chunk_groups = static_cast<uint8_t>(chunk);
      if (cvc_resize_shared_bytes(tiling) > cvc_resize_most_shared) {
        continue;
      }
      // A smaller band costs some rows that are computed twice, and makes a few large images fill the GPU.
      while (tiling.band_groups > 2 &&
             cvc_resize_grid_of(image, channels, tiling).blocks(batch) < cvc_resize_enough_blocks) {
        tiling.band_groups = static_cast<uint8_t>((tiling.band_groups + 1) / 2);
        tiling.column_vectors = static_cast<uint8_t>(
            cvc_resize_odd_vectors(down(tiling.band_groups * cvc_resize_band_group) + 3));
      }
      return tiling;
    }
  }
  return none;
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
    launch.blocks += cvc_resize_grid_of(image, params.channels, image.tiling).blocks(params.batch);
    if (image.tiling.horizontal_steps > 3) {
      launch.kernel = cvc_resize_wide_tiles;
    }
    const int32_t shared = cvc_resize_shared_bytes(image.tiling);
    launch.shared_bytes = launch.shared_bytes < shared ? shared : launch.shared_bytes;
  }
  return launch;
}

#endif

// The 8-bit passes of the host's resize: the plain form, and what the vector forms have in common.
#include "resize_passes.h"

namespace cvc_resize_host {
namespace {

template <int Channels>
void horizontal_plain(const horizontal_pass &pass, const uint8_t *const sources[row_group],
                      uint8_t *const targets[row_group]) {
  for (int x = pass.begin; x < pass.end; ++x) {
    const cvc_resize_taps taps = cvc_resize_bounds(pass.table, x);
    const int32_t *coefficients = cvc_resize_fixed(pass.table, x);
    const size_t from = static_cast<size_t>(taps.first - pass.source_begin) * Channels;
    const size_t to = static_cast<size_t>(x - pass.begin) * Channels;
    for (int r = 0; r < row_group; ++r) {
      int32_t sums[Channels];
      for (int c = 0; c < Channels; ++c) {
        sums[c] = cvc_resize_fixed_half;
      }
      const uint8_t *sample = sources[r] + from;
      for (int k = 0; k < taps.count; ++k, sample += Channels) {
        for (int c = 0; c < Channels; ++c) {
          sums[c] += sample[c] * coefficients[k];
        }
      }
      for (int c = 0; c < Channels; ++c) {
        targets[r][to + c] = cvc_resize_clip8(sums[c]);
      }
    }
  }
}

void vertical_plain(const cvc_resize_table *table, int output, const void *const *rows, void *target,
                    int64_t samples) {
  const int count = cvc_resize_bounds(table, output).count;
  const int32_t *coefficients = cvc_resize_fixed(table, output);
  uint8_t *out = static_cast<uint8_t *>(target);
  constexpr int64_t block = 64;
  for (int64_t start = 0; start < samples; start += block) {
    const int64_t length = samples - start < block ? samples - start : block;
    int32_t sums[block];
    for (int64_t i = 0; i < length; ++i) {
      sums[i] = cvc_resize_fixed_half;
    }
    for (int k = 0; k < count; ++k) {
      const uint8_t *row = static_cast<const uint8_t *>(rows[k]) + start;
      for (int64_t i = 0; i < length; ++i) {
        sums[i] += row[i] * coefficients[k];
      }
    }
    for (int64_t i = 0; i < length; ++i) {
      out[start + i] = cvc_resize_clip8(sums[i]);
    }
  }
}

fixed_kernel horizontal_plain_of(int channels) {
  switch (channels) {
  case 1:
    return horizontal_plain<1>;
  case 2:
    return horizontal_plain<2>;
  case 3:
    return horizontal_plain<3>;
  default:
    return horizontal_plain<4>;
  }
}

fixed_kernel horizontal_kernel(isa level, int channels) {
#if CVC_RESIZE_X86
  if (level >= isa_avx2) {
    return fixed_horizontal_avx2(channels);
  }
  if (level >= isa_sse41) {
    return fixed_horizontal_sse41(channels);
  }
#endif
  (void)level;
  return horizontal_plain_of(channels);
}

// Where the vector forms' reads for one output end, counted from its first sample: they take 8 taps of one
// channel or 4 taps of more at a time, and 16 bytes for 3 channels.
int64_t bytes_read(int channels, int count) {
  const int64_t groups_of_4 = (count + 3) / 4;
  switch (channels) {
  case 1:
    return static_cast<int64_t>((count + 7) / 8) * 8;
  case 2:
    return groups_of_4 * 8;
  case 3:
    return groups_of_4 * 12 + 4;
  default:
    return groups_of_4 * 16;
  }
}

// The first output of begin..end from which on reads may pass the end of the source rows. It asks what the
// largest count of taps would read, since an output's own count may be larger than the next one's.
int first_unsafe(const horizontal_pass &pass) {
  const int64_t last_safe = static_cast<int64_t>(pass.source_end) * pass.channels -
                            bytes_read(pass.channels, pass.table->max_count);
  int x = pass.end;
  while (x > pass.begin &&
         static_cast<int64_t>(cvc_resize_bounds(pass.table, x - 1).first) * pass.channels > last_safe) {
    --x;
  }
  return x;
}

size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

size_t tail_row_bytes(int channels, int columns) {
  return round_up(static_cast<size_t>(columns) * static_cast<size_t>(channels) + row_slack, 32);
}

// The outputs whose reads would pass the end of a row are computed from a copy of its end with room behind.
template <isa Level, int Channels>
void horizontal(const horizontal_pass &pass, const void *const sources[row_group],
                void *const targets[row_group]) {
  const fixed_kernel kernel = horizontal_kernel(Level, Channels);
  const uint8_t *from[row_group];
  uint8_t *to[row_group];
  for (int r = 0; r < row_group; ++r) {
    from[r] = static_cast<const uint8_t *>(sources[r]);
    to[r] = static_cast<uint8_t *>(targets[r]);
  }
  if (Level == isa_scalar) {
    kernel(pass, from, to);
    return;
  }
  horizontal_pass part = pass;
  part.end = first_unsafe(pass);
  kernel(part, from, to);
  if (part.end == pass.end) {
    return;
  }
  part.begin = part.end;
  part.end = pass.end;
  part.source_begin = cvc_resize_bounds(pass.table, part.begin).first;
  const size_t skipped = static_cast<size_t>(part.source_begin - pass.source_begin) * Channels;
  const size_t kept = static_cast<size_t>(pass.source_end - part.source_begin) * Channels;
  const size_t stride = tail_row_bytes(Channels, pass.source_end - part.source_begin);
  for (int r = 0; r < row_group; ++r) {
    uint8_t *copy = static_cast<uint8_t *>(pass.scratch) + static_cast<size_t>(r) * stride;
    __builtin_memcpy(copy, from[r] + skipped, kept);
    __builtin_memset(copy + kept, 0, stride - kept);
    from[r] = copy;
    to[r] += static_cast<size_t>(part.begin - pass.begin) * Channels;
  }
  kernel(part, from, to);
}

template <isa Level> horizontal_function horizontal_of(int channels) {
  switch (channels) {
  case 1:
    return horizontal<Level, 1>;
  case 2:
    return horizontal<Level, 2>;
  case 3:
    return horizontal<Level, 3>;
  default:
    return horizontal<Level, 4>;
  }
}

} // namespace

passes fixed_passes(isa level, int channels) {
  horizontal_function along_rows = horizontal_of<isa_scalar>(channels);
  vertical_function along_columns = vertical_plain;
#if CVC_RESIZE_X86
  if (level >= isa_avx2) {
    along_rows = horizontal_of<isa_avx2>(channels);
    along_columns = fixed_vertical_avx2;
  } else if (level >= isa_sse41) {
    along_rows = horizontal_of<isa_sse41>(channels);
    along_columns = fixed_vertical_sse41;
  }
#else
  (void)level;
#endif
  return passes{1, 1, 1, along_rows, along_rows, along_columns, along_columns};
}

size_t fixed_scratch_bytes(const cvc_resize_table *table, int channels, int source_begin, int source_end) {
  // Unsafe outputs begin less than the largest count of taps, rounded up to a group, before the end.
  const int64_t reach = static_cast<int64_t>(table->max_count) + 16;
  const int64_t columns = static_cast<int64_t>(source_end) - source_begin;
  return row_group * tail_row_bytes(channels, static_cast<int>(columns < reach ? columns : reach));
}

} // namespace cvc_resize_host

// Runs the two passes of the host's resize over a band of output rows, keeping only the rows between the
// passes that the next output row needs.
#include "resize_band.h"

#include <stdlib.h>

namespace cvc_resize_host {
namespace {

// Tiles of columns keep the scratch below this where they can, so that it stays in a core's cache.
constexpr size_t scratch_target = size_t{1} << 20;
constexpr int narrowest_tile = 64;

size_t scratch_limit = SIZE_MAX;

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

struct columns {
  int begin;
  int end;
  int count() const { return end - begin; }
};

// Rows of equal size in scratch, of which the last `capacity` are kept.
struct row_ring {
  unsigned char *memory;
  size_t row_bytes;
  int capacity;

  size_t bytes() const { return row_bytes * static_cast<size_t>(capacity); }
  void *row(int y) const { return memory + row_bytes * static_cast<size_t>(y % capacity); }
};

row_ring ring_of(int64_t samples, size_t sample_bytes, int capacity) {
  return row_ring{nullptr, aligned(static_cast<size_t>(samples) * sample_bytes + row_slack), capacity};
}

// The passes and the scratch of one tile: some output columns of a picture.
struct tile {
  const picture &image;
  passes pass;
  // Null: source rows are read where they lie, or the last vertical pass writes where the result lies.
  load_function load;
  store_function store;
  columns out;
  columns in;
  row_ring sources;
  row_ring between;
  row_ring results;
  int loaded_end;
  const void **tap_rows;
  size_t tap_rows_bytes;
  void *scratch;
  size_t scratch_bytes;

  size_t total_bytes() const {
    return sources.bytes() + between.bytes() + results.bytes() + tap_rows_bytes + scratch_bytes;
  }

  void place(unsigned char *memory) {
    sources.memory = memory;
    between.memory = sources.memory + sources.bytes();
    results.memory = between.memory + between.bytes();
    tap_rows = reinterpret_cast<const void **>(results.memory + results.bytes());
    scratch = results.memory + results.bytes() + tap_rows_bytes;
  }

  // Makes rows first..end available. They are asked for from the top to the bottom.
  void require_sources(int first, int end) {
    if (load == nullptr) {
      return;
    }
    for (int y = loaded_end < first ? first : loaded_end; y < end; ++y) {
      load(row_of(image.src, y, in.begin), image.channels, in.count(), sources.row(y));
      loaded_end = y + 1;
    }
  }

  const void *source(int y) const {
    return load == nullptr ? row_of(image.src, y, in.begin).base : sources.row(y);
  }

  void keep(int y, const void *result) const {
    store(result, image.channels, out.count(), row_of(image.dst, y, out.begin));
  }

  horizontal_pass along_rows() const {
    return horizontal_pass{image.horizontal, image.channels, in.begin, in.end, out.begin, out.end, scratch};
  }

  // Rows above `count` are the last one again.
  template <class Source, class Target>
  void horizontal_group(horizontal_function function, int count, Source source_row, Target target_row) const {
    const void *from[row_group];
    void *to[row_group];
    for (int r = 0; r < row_group; ++r) {
      const int row = r < count ? r : count - 1;
      from[r] = source_row(row);
      to[r] = target_row(row);
    }
    function(along_rows(), from, to);
  }

  void horizontal_only(int begin, int end) {
    for (int y = begin; y < end; y += row_group) {
      const int count = end - y < row_group ? end - y : row_group;
      require_sources(y, y + count);
      horizontal_group(
          pass.horizontal_result, count, [&](int r) { return source(y + r); },
          [&](int r) { return results.row(r); });
      for (int r = 0; r < count; ++r) {
        keep(y + r, results.row(r));
      }
    }
  }

  // The row under each tap of output row y.
  template <class Row> const void *const *tap_rows_of(const cvc_resize_taps &taps, Row row) {
    for (int k = 0; k < taps.count; ++k) {
      tap_rows[k] = row(taps.first + k);
    }
    return tap_rows;
  }

  template <class Row> void vertical_result(int y, const cvc_resize_taps &taps, Row row) {
    void *target = store == nullptr ? row_of(image.dst, y, out.begin).base : results.row(0);
    pass.vertical_result(image.vertical, y, tap_rows_of(taps, row), target,
                         static_cast<int64_t>(out.count()) * image.channels);
    if (store != nullptr) {
      keep(y, target);
    }
  }

  void vertical_only(int begin, int end) {
    for (int y = begin; y < end; ++y) {
      const cvc_resize_taps taps = cvc_resize_bounds(image.vertical, y);
      require_sources(taps.first, taps.first + taps.count);
      vertical_result(y, taps, [&](int row) { return source(row); });
    }
  }

  void horizontal_then_vertical(int begin, int end) {
    const cvc_resize_taps last = cvc_resize_bounds(image.vertical, end - 1);
    const int rows_end = last.first + last.count;
    int next = 0;
    for (int y = begin; y < end; ++y) {
      const cvc_resize_taps taps = cvc_resize_bounds(image.vertical, y);
      next = next < taps.first ? taps.first : next;
      while (next < taps.first + taps.count) {
        const int count = rows_end - next < row_group ? rows_end - next : row_group;
        require_sources(next, next + count);
        horizontal_group(
            pass.horizontal_between, count, [&](int r) { return source(next + r); },
            [&](int r) { return between.row(next + r); });
        next += count;
      }
      vertical_result(y, taps, [&](int row) { return between.row(row); });
    }
  }

  void vertical_then_horizontal(int begin, int end) {
    for (int y = begin; y < end; y += row_group) {
      const int count = end - y < row_group ? end - y : row_group;
      for (int r = 0; r < count; ++r) {
        const cvc_resize_taps taps = cvc_resize_bounds(image.vertical, y + r);
        require_sources(taps.first, taps.first + taps.count);
        pass.vertical_between(image.vertical, y + r, tap_rows_of(taps, [&](int row) { return source(row); }),
                              between.row(r), static_cast<int64_t>(in.count()) * image.channels);
      }
      horizontal_group(
          pass.horizontal_result, count, [&](int r) { return between.row(r); },
          [&](int r) { return results.row(r); });
      for (int r = 0; r < count; ++r) {
        keep(y + r, results.row(r));
      }
    }
  }

  void run(int begin, int end) {
    loaded_end = 0;
    if (image.vertical == nullptr) {
      horizontal_only(begin, end);
    } else if (image.horizontal == nullptr) {
      vertical_only(begin, end);
    } else if (image.vertical_first) {
      vertical_then_horizontal(begin, end);
    } else {
      horizontal_then_vertical(begin, end);
    }
  }
};

// Everything about the tile but where its scratch lies.
tile tile_of(const picture &image, const passes &pass, columns out) {
  const int channels = image.channels;
  const bool as_it_is = !image.premultiply && pass.source_bytes == element_bytes(image.kind) &&
                        pass.result_bytes == element_bytes(image.kind) && image.kind != cvc_kind_s32;
  const bool horizontal_last =
      image.horizontal != nullptr && (image.vertical == nullptr || image.vertical_first);
  const bool both = image.horizontal != nullptr && image.vertical != nullptr;
  const bool direct_source = as_it_is && is_packed(image.src, pass.source_bytes, channels);
  const bool direct_result =
      as_it_is && !horizontal_last && is_packed(image.dst, pass.result_bytes, channels);

  columns in = out;
  if (image.horizontal != nullptr) {
    const cvc_resize_taps last = cvc_resize_bounds(image.horizontal, out.end - 1);
    in = columns{cvc_resize_bounds(image.horizontal, out.begin).first, last.first + last.count};
  }
  const int64_t in_samples = static_cast<int64_t>(in.count()) * channels;
  const int64_t out_samples = static_cast<int64_t>(out.count()) * channels;
  const int tap_rows = image.vertical == nullptr ? 0 : image.vertical->max_count;

  tile made{image,
            pass,
            direct_source       ? nullptr
            : image.premultiply ? load_premultiplied()
                                : load_of(image.kind),
            direct_result       ? nullptr
            : image.premultiply ? store_premultiplied()
                                : store_of(image.kind),
            out,
            in,
            ring_of(in_samples, pass.source_bytes, 0),
            ring_of(0, pass.between_bytes, 0),
            ring_of(out_samples, pass.result_bytes,
                    horizontal_last ? row_group
                    : direct_result ? 0
                                    : 1),
            0,
            nullptr,
            aligned(static_cast<size_t>(tap_rows) * sizeof(void *)),
            nullptr,
            0};
  const bool vertical_reads_sources = image.vertical != nullptr && (!both || image.vertical_first);
  if (!direct_source) {
    made.sources.capacity = vertical_reads_sources ? tap_rows : row_group;
  }
  if (both) {
    // Horizontal first: a group may run ahead of the rows that are still needed.
    made.between = image.vertical_first ? ring_of(in_samples, pass.between_bytes, row_group)
                                        : ring_of(out_samples, pass.between_bytes, tap_rows + row_group);
  }
  if (image.horizontal != nullptr) {
    const size_t bytes =
        image.kind == cvc_kind_u8
            ? fixed_scratch_bytes(image.horizontal, channels, in.begin, in.end)
            : real_scratch_bytes(both && image.vertical_first ? pass.between_bytes : pass.source_bytes,
                                 channels, in.begin, in.end);
    made.scratch_bytes = aligned(bytes);
  }
  return made;
}

// Null where there is no memory. The block is aligned to 64 bytes; `block` is what to free.
unsigned char *scratch_of(size_t bytes, void **block) {
  *block = nullptr;
  if (bytes > __atomic_load_n(&scratch_limit, __ATOMIC_RELAXED)) {
    return nullptr;
  }
  *block = malloc(bytes + 64);
  const uintptr_t address = reinterpret_cast<uintptr_t>(*block);
  return *block == nullptr ? nullptr : reinterpret_cast<unsigned char *>((address + 63) / 64 * 64);
}

void copy_band(const picture &image, int begin, int end) {
  const size_t bytes = element_bytes(image.kind);
  const size_t row_bytes = bytes * static_cast<size_t>(image.channels) * static_cast<size_t>(image.dst_width);
  const bool packed =
      is_packed(image.src, bytes, image.channels) && is_packed(image.dst, bytes, image.channels);
  for (int y = begin; y < end; ++y) {
    if (packed) {
      __builtin_memcpy(row_of(image.dst, y, 0).base, row_of(image.src, y, 0).base, row_bytes);
      continue;
    }
    constexpr int64_t chunk = 64;
    unsigned char pixels[chunk * cvc_resize_max_channels * 8];
    for (int64_t x = 0; x < image.dst_width; x += chunk) {
      const int64_t count = image.dst_width - x < chunk ? image.dst_width - x : chunk;
      load_bytes(bytes)(row_of(image.src, y, x), image.channels, count, pixels);
      store_bytes(bytes)(pixels, image.channels, count, row_of(image.dst, y, x));
    }
  }
}

} // namespace

void resize_band(const picture &image, isa level, int begin, int end) {
  if (image.horizontal == nullptr && image.vertical == nullptr) {
    copy_band(image, begin, end);
    return;
  }
  const passes pass =
      image.kind == cvc_kind_u8 ? fixed_passes(level, image.channels) : real_passes(level, image.kind);
  int width = image.dst_width;
  while (width > narrowest_tile && tile_of(image, pass, columns{0, width}).total_bytes() > scratch_target) {
    width = (width + 1) / 2;
  }
  void *block = nullptr;
  size_t block_bytes = 0;
  unsigned char *memory = nullptr;
  for (int x = 0; x < image.dst_width;) {
    const int x_end = image.dst_width - x < width ? image.dst_width : x + width;
    tile work = tile_of(image, pass, columns{x, x_end});
    if (work.total_bytes() > block_bytes || memory == nullptr) {
      free(block);
      block_bytes = work.total_bytes();
      memory = scratch_of(block_bytes, &block);
    }
    if (memory == nullptr) {
      if (width == 1) {
        // Rows that are done already are done again, to the same values.
        resize_band_by_sample(image, begin, end);
        return;
      }
      width = (width + 1) / 2;
      continue;
    }
    work.place(memory);
    work.run(begin, end);
    x = x_end;
  }
  free(block);
}

} // namespace cvc_resize_host

extern "C" void cvc_host_resize_limit_scratch(size_t bytes) {
  __atomic_store_n(&cvc_resize_host::scratch_limit, bytes, __ATOMIC_RELAXED);
}

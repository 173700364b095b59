// Host build of the fused preprocess kernel: some rows are resized at a time, into memory that stays in the
// cache, and each sample is looked up in a table of what its value becomes.
#include "../preprocess.cuh"

#include <stddef.h>

extern "C" void cvc_host_resize(const void *params, int64_t begin, int64_t end);

namespace {

// Rows of samples that are resized together have as many bytes at most.
constexpr int64_t most_bytes = cvc_preprocess_most_samples;

struct value_table {
  uint32_t bits[cvc_resize_max_channels][cvc_preprocess_values];

  value_table(const cvc_preprocess_finish &finish, uint32_t channels) {
    for (uint32_t channel = 0; channel < channels; ++channel) {
      for (int value = 0; value < cvc_preprocess_values; ++value) {
        bits[channel][value] = cvc_preprocess_value(finish, channel, static_cast<uint8_t>(value));
      }
    }
  }
};

template <class T>
void finish_run(const uint32_t *values, const unsigned char *samples, int64_t step, unsigned char *to,
                int64_t to_step, int64_t count) {
  for (int64_t x = 0; x < count; ++x) {
    const T value = static_cast<T>(values[samples[x * step]]);
    __builtin_memcpy(to + x * to_step, &value, sizeof value);
  }
}

// Resizes rows of one image and puts them where they belong.
class finished_image {
public:
  finished_image(const cvc_preprocess_params &params, const value_table &table, const cvc_resize_image &image,
                 int64_t n)
      : finish_(params.finish), table_(table), image_(image), n_(n), channels_(params.resize.channels) {
    one_.kind = params.resize.kind;
    one_.channels = params.resize.channels;
    one_.flags = params.resize.flags;
    one_.image_count = 1;
    one_.batch = 1;
    one_.images[0] = image;
    one_.images[0].src.data = cvc_view_address(image.src, n, 0, 0, 0);
    one_.images[0].items = image.dst_height;
  }

  void rows(int64_t begin, int64_t end) {
    alignas(64) unsigned char samples[most_bytes];
    const int64_t width = image_.dst_width, row_bytes = width * channels_;
    const int64_t at_once = most_bytes / row_bytes;
    const bool planar = image_.tiling.planar != 0;
    const int64_t step = planar ? 1 : channels_;
    const int64_t plane = planar ? width * at_once : 1;
    cvc_view &band = one_.images[0].dst;
    band = cvc_view{0, 0, plane, width * step, step};
    for (int64_t first = begin; first < end; first += at_once) {
      const int64_t last = end - first < at_once ? end : first + at_once;
      band.data = reinterpret_cast<unsigned long long>(samples) -
                  static_cast<unsigned long long>(first * band.stride_h);
      cvc_host_resize(&one_, first, last);
      for (int64_t y = first; y < last; ++y) {
        for (uint32_t channel = 0; channel < channels_; ++channel) {
          finish_row(samples + (y - first) * band.stride_h + channel * plane, step, channel, y);
        }
      }
    }
  }

private:
  void finish_row(const unsigned char *samples, int64_t step, uint32_t channel, int64_t y) const {
    unsigned char *const to = reinterpret_cast<unsigned char *>(
        cvc_view_address(image_.dst, n_, cvc_preprocess_channel(finish_, channel), y, 0));
    const uint32_t *const values = table_.bits[channel];
    switch (cvc_kind_bytes(finish_.dst_kind)) {
    case 1:
      return finish_run<uint8_t>(values, samples, step, to, image_.dst.stride_w, image_.dst_width);
    case 2:
      return finish_run<uint16_t>(values, samples, step, to, image_.dst.stride_w, image_.dst_width);
    default:
      return finish_run<uint32_t>(values, samples, step, to, image_.dst.stride_w, image_.dst_width);
    }
  }

  const cvc_preprocess_finish &finish_;
  const value_table &table_;
  const cvc_resize_image &image_;
  int64_t n_;
  uint32_t channels_;
  cvc_resize_params one_{};
};

} // namespace

extern "C" void cvc_host_preprocess(const void *block, int64_t begin, int64_t end) {
  const cvc_preprocess_params &params = *static_cast<const cvc_preprocess_params *>(block);
  const value_table table(params.finish, params.resize.channels);
  int64_t first_item = 0;
  for (int g = 0; g < params.resize.image_count && first_item < end; ++g) {
    const cvc_resize_image &image = params.resize.images[g];
    const int64_t items = static_cast<int64_t>(image.items) * params.resize.batch;
    const int64_t to = end - first_item < items ? end - first_item : items;
    int64_t item = begin > first_item ? begin - first_item : 0;
    while (item < to) {
      const int64_t n = item / image.items, first = n * image.items;
      const int64_t item_end = to - first < image.items ? to : first + image.items;
      finished_image(params, table, image, n)
          .rows((item - first) * image.dst_height / image.items,
                (item_end - first) * image.dst_height / image.items);
      item = item_end;
    }
    first_item += items;
  }
}

// Host build of the normalize kernels: runs of elements are widened, computed and saturated block by block.
#include "../normalize.cuh"
#include "element_runs.h"

namespace {

// One base and one scale for the block, or one each an element.
template <class Arithmetic>
using compute_one_function = void (*)(Arithmetic *block, int64_t count, Arithmetic base, Arithmetic scale,
                                      Arithmetic global_scale, Arithmetic global_shift);
template <class Arithmetic>
using compute_each_function = void (*)(Arithmetic *block, int64_t count, const Arithmetic *base,
                                       const Arithmetic *scale, Arithmetic global_scale,
                                       Arithmetic global_shift);
template <class Arithmetic>
using invert_function = void (*)(Arithmetic *deviations, int64_t count, Arithmetic epsilon);

template <class Arithmetic>
CVC_ALWAYS_INLINE void compute_one(Arithmetic *block, int64_t count, Arithmetic base, Arithmetic scale,
                                   Arithmetic global_scale, Arithmetic global_shift) {
  for (int64_t i = 0; i < count; ++i) {
    block[i] = cvc_normalize_value(block[i], base, scale, global_scale, global_shift);
  }
}

template <class Arithmetic>
CVC_ALWAYS_INLINE void compute_each(Arithmetic *__restrict block, int64_t count,
                                    const Arithmetic *__restrict base, const Arithmetic *__restrict scale,
                                    Arithmetic global_scale, Arithmetic global_shift) {
  for (int64_t i = 0; i < count; ++i) {
    block[i] = cvc_normalize_value(block[i], base[i], scale[i], global_scale, global_shift);
  }
}

template <class Arithmetic>
CVC_ALWAYS_INLINE void invert(Arithmetic *deviations, int64_t count, Arithmetic epsilon) {
  for (int64_t i = 0; i < count; ++i) {
    deviations[i] = cvc_inverse_deviation(deviations[i], epsilon);
  }
}

template <class Arithmetic> struct baseline_forms {
  static void one(Arithmetic *block, int64_t count, Arithmetic base, Arithmetic scale,
                  Arithmetic global_scale, Arithmetic global_shift) {
    compute_one(block, count, base, scale, global_scale, global_shift);
  }
  static void each(Arithmetic *block, int64_t count, const Arithmetic *base, const Arithmetic *scale,
                   Arithmetic global_scale, Arithmetic global_shift) {
    compute_each(block, count, base, scale, global_scale, global_shift);
  }
  static void inverse(Arithmetic *deviations, int64_t count, Arithmetic epsilon) {
    invert(deviations, count, epsilon);
  }
};

#if CVC_HOST_VECTOR
template <class Arithmetic> struct vector_forms {
  static CVC_TARGET_VECTOR void one(Arithmetic *block, int64_t count, Arithmetic base, Arithmetic scale,
                                    Arithmetic global_scale, Arithmetic global_shift) {
    compute_one(block, count, base, scale, global_scale, global_shift);
  }
  static CVC_TARGET_VECTOR void each(Arithmetic *block, int64_t count, const Arithmetic *base,
                                     const Arithmetic *scale, Arithmetic global_scale,
                                     Arithmetic global_shift) {
    compute_each(block, count, base, scale, global_scale, global_shift);
  }
  static CVC_TARGET_VECTOR void inverse(Arithmetic *deviations, int64_t count, Arithmetic epsilon) {
    invert(deviations, count, epsilon);
  }
};
#endif

template <class Arithmetic> struct functions {
  load_function<Arithmetic> load;
  load_function<Arithmetic> load_parameters;
  store_function<Arithmetic> store;
  compute_one_function<Arithmetic> one;
  compute_each_function<Arithmetic> each;
  invert_function<Arithmetic> inverse;
};

template <class Arithmetic> functions<Arithmetic> choose_functions(const cvc_normalize_values &values) {
  functions<Arithmetic> chosen;
  chosen.load = choose_load<Arithmetic>(values.src_kind);
  chosen.load_parameters = choose_load<Arithmetic>(cvc_kind_f32);
  chosen.store = choose_store<Arithmetic, cvc_rounding_nearest>(values.dst_kind);
  chosen.one = baseline_forms<Arithmetic>::one;
  chosen.each = baseline_forms<Arithmetic>::each;
  chosen.inverse = baseline_forms<Arithmetic>::inverse;
#if CVC_HOST_VECTOR
  if (host_has_vector()) {
    chosen.one = vector_forms<Arithmetic>::one;
    chosen.each = vector_forms<Arithmetic>::each;
    chosen.inverse = vector_forms<Arithmetic>::inverse;
  }
#endif
  return chosen;
}

const float *scale_entries(const cvc_normalize_values &values, float) { return values.scale_values; }
const double *scale_entries(const cvc_normalize_values &values, double) { return values.scale_values_double; }

// An image whose rows are computed one after another, with the base and scale of the block at hand.
template <class Arithmetic> class image_rows {
public:
  image_rows(const cvc_normalize_values &values, const functions<Arithmetic> &chosen)
      : values_(values), functions_(chosen) {}

  // `index` and `first_channel` are where the image starts in base and scale.
  void choose_image(const cvc_view &src, const cvc_view &dst, int64_t channels, int64_t width, int64_t index,
                    int64_t first_channel) {
    src_ = src;
    dst_ = dst;
    channels_ = channels;
    width_ = width;
    index_ = index;
    first_channel_ = first_channel;
    src_bytes_ = cvc_kind_bytes(values_.src_kind);
    dst_bytes_ = cvc_kind_bytes(values_.dst_kind);
    dense_ = channels <= block_elements && row_is_dense(src, channels, src_bytes_) &&
             row_is_dense(dst, channels, dst_bytes_);
    filled_ = false;
  }

  // `n` is the image of the views, `y` the row.
  void compute_row(int64_t n, int64_t y) {
    if (dense_ && channels_ > 1) {
      compute_dense_row(n, y);
      return;
    }
    for (int64_t channel = 0; channel < channels_; ++channel) {
      compute_channel(n, y, channel);
    }
  }

private:
  static bool varies(const cvc_view &view, long long stride) { return view.data != 0 && stride != 0; }

  // One value a pixel and channel from x on, the channels of a pixel side by side in `block`; `channel` is
  // the first.
  void gather(const cvc_view &view, const Arithmetic *entries, int64_t channel, int64_t channels, int64_t y,
              int64_t x, int64_t pixels, Arithmetic *block) const {
    if (view.data == 0) {
      for (int64_t i = 0; i < pixels * channels; ++i) {
        block[i] = entries[(first_channel_ + channel + i % channels) & 3];
      }
      return;
    }
    const byte *from =
        reinterpret_cast<const byte *>(cvc_view_address(view, index_, first_channel_ + channel, y, x));
    if (channels == 1) {
      functions_.load_parameters(from, view.stride_w, block, pixels);
    } else if (row_is_dense(view, channels, sizeof(float))) {
      functions_.load_parameters(from, sizeof(float), block, pixels * channels);
    } else {
      for (int64_t pixel = 0; pixel < pixels; ++pixel) {
        functions_.load_parameters(from + pixel * view.stride_w, view.stride_c, block + pixel * channels,
                                   channels);
      }
    }
  }

  void gather_both(int64_t channel, int64_t channels, int64_t y, int64_t x, int64_t pixels) {
    const Arithmetic base_entries[4] = {values_.base_values[0], values_.base_values[1],
                                        values_.base_values[2], values_.base_values[3]};
    gather(values_.base, base_entries, channel, channels, y, x, pixels, base_);
    gather(values_.scale, scale_entries(values_, Arithmetic()), channel, channels, y, x, pixels, scale_);
    if (values_.scale.data != 0 && values_.scale_is_deviation != 0) {
      functions_.inverse(scale_, pixels * channels, static_cast<Arithmetic>(values_.epsilon));
    }
  }

  bool varies_with_x() const {
    return varies(values_.base, values_.base.stride_w) || varies(values_.scale, values_.scale.stride_w);
  }

  bool varies_with_y() const {
    return varies(values_.base, values_.base.stride_h) || varies(values_.scale, values_.scale.stride_h);
  }

  void compute_dense_row(int64_t n, int64_t y) {
    const int64_t most_pixels = block_elements / channels_;
    const byte *from = reinterpret_cast<const byte *>(cvc_view_address(src_, n, 0, y, 0));
    byte *to = reinterpret_cast<byte *>(cvc_view_address(dst_, n, 0, y, 0));
    // The same values for every pixel are laid out once an image, or once a row.
    filled_ = filled_ && !varies_with_y();
    for (int64_t x = 0; x < width_; x += most_pixels) {
      const int64_t pixels = width_ - x < most_pixels ? width_ - x : most_pixels;
      if (!filled_) {
        filled_ = !varies_with_x();
        gather_both(0, channels_, y, x, filled_ ? most_pixels : pixels);
      }
      const int64_t count = pixels * channels_;
      functions_.load(from + x * channels_ * src_bytes_, src_bytes_, block_, count);
      functions_.each(block_, count, base_, scale_, static_cast<Arithmetic>(values_.global_scale),
                      static_cast<Arithmetic>(values_.global_shift));
      functions_.store(block_, to + x * channels_ * dst_bytes_, dst_bytes_, count);
    }
  }

  void compute_channel(int64_t n, int64_t y, int64_t channel) {
    const byte *from = reinterpret_cast<const byte *>(cvc_view_address(src_, n, channel, y, 0));
    byte *to = reinterpret_cast<byte *>(cvc_view_address(dst_, n, channel, y, 0));
    const bool same = !varies_with_x();
    const Arithmetic global_scale = static_cast<Arithmetic>(values_.global_scale);
    const Arithmetic global_shift = static_cast<Arithmetic>(values_.global_shift);
    if (same) {
      gather_both(channel, 1, y, 0, 1);
    }
    for (int64_t x = 0; x < width_; x += block_elements) {
      const int64_t count = width_ - x < block_elements ? width_ - x : block_elements;
      functions_.load(from + x * src_.stride_w, src_.stride_w, block_, count);
      if (same) {
        functions_.one(block_, count, base_[0], scale_[0], global_scale, global_shift);
      } else {
        gather_both(channel, 1, y, x, count);
        functions_.each(block_, count, base_, scale_, global_scale, global_shift);
      }
      functions_.store(block_, to + x * dst_.stride_w, dst_.stride_w, count);
    }
  }

  const cvc_normalize_values &values_;
  const functions<Arithmetic> functions_;
  cvc_view src_{};
  cvc_view dst_{};
  int64_t channels_ = 0;
  int64_t width_ = 0;
  int64_t index_ = 0;
  int64_t first_channel_ = 0;
  int64_t src_bytes_ = 0;
  int64_t dst_bytes_ = 0;
  bool dense_ = false;
  bool filled_ = false; // base_ and scale_ hold what every block of a dense row needs
  Arithmetic block_[block_elements];
  Arithmetic base_[block_elements];
  Arithmetic scale_[block_elements];
};

template <class Arithmetic>
void normalize_rows(const cvc_normalize_params &params, int64_t begin, int64_t end) {
  const functions<Arithmetic> chosen = choose_functions<Arithmetic>(params.values);
  if (chosen.load == nullptr || chosen.store == nullptr) {
    return;
  }
  image_rows<Arithmetic> rows(params.values, chosen);
  int64_t image = -1;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t n = item / params.height;
    if (n != image) {
      image = n;
      rows.choose_image(params.src, params.dst, params.channels, params.width, n, 0);
    }
    rows.compute_row(n, item - n * params.height);
  }
}

template <class Arithmetic>
void normalize_images(const cvc_normalize_var_shape_params &params, int64_t begin, int64_t end) {
  const functions<Arithmetic> chosen = choose_functions<Arithmetic>(params.values);
  if (chosen.load == nullptr || chosen.store == nullptr) {
    return;
  }
  image_rows<Arithmetic> rows(params.values, chosen);
  for (int32_t i = 0; i < params.count; ++i) {
    const cvc_normalize_image &image = params.images[i];
    const int64_t first = begin > image.first_item ? begin : image.first_item;
    const int64_t image_end = image.first_item + image.height;
    const int64_t stop = end < image_end ? end : image_end;
    if (first >= stop) {
      continue;
    }
    rows.choose_image(image.src, image.dst, image.channels, image.width, image.image_index,
                      image.first_channel);
    for (int64_t item = first; item < stop; ++item) {
      rows.compute_row(0, item - image.first_item);
    }
  }
}

} // namespace

extern "C" void cvc_host_normalize(const void *block, int64_t begin, int64_t end) {
  const cvc_normalize_params &params = *static_cast<const cvc_normalize_params *>(block);
  if (cvc_normalize_in_double(params.values.src_kind, params.values.dst_kind)) {
    normalize_rows<double>(params, begin, end);
  } else {
    normalize_rows<float>(params, begin, end);
  }
}

extern "C" void cvc_host_normalize_var_shape(const void *block, int64_t begin, int64_t end) {
  const cvc_normalize_var_shape_params &params = *static_cast<const cvc_normalize_var_shape_params *>(block);
  if (cvc_normalize_in_double(params.values.src_kind, params.values.dst_kind)) {
    normalize_images<double>(params, begin, end);
  } else {
    normalize_images<float>(params, begin, end);
  }
}

// Pillow's resize for one sample: rounding after each pass, sums over taps, premultiplied alpha, for both
// builds.
#ifndef CVC_RESIZE_CUH
#define CVC_RESIZE_CUH

#include "resize_params.cuh"

// ---- U8: fixed point ----

// Sums start here, which rounds half up when the fraction bits are shifted out.
constexpr int32_t cvc_resize_fixed_half = 1 << 21;
constexpr int cvc_resize_fixed_bits = 22;

CVC_HD_INLINE uint8_t cvc_resize_clip8(int32_t sum) {
  const int32_t value = sum >> cvc_resize_fixed_bits;
  return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

// `load(k)` is the sample under tap k. Normalised coefficients keep the sum far from int32's ends.
template <class Load>
CVC_HD_INLINE uint8_t cvc_resize_sum_fixed(const int32_t *coefficients, int count, Load load) {
  int32_t sum = cvc_resize_fixed_half;
  for (int k = 0; k < count; ++k) {
    sum += static_cast<int32_t>(load(k)) * coefficients[k];
  }
  return cvc_resize_clip8(sum);
}

// ---- Other element types: double ----

// In tap order, each product and each sum rounded once.
template <class Load>
CVC_HD_INLINE double cvc_resize_sum_real(const double *coefficients, int count, Load load) {
  double sum = 0.0;
  for (int k = 0; k < count; ++k) {
    sum = sum + static_cast<double>(load(k)) * coefficients[k];
  }
  return sum;
}

// Rounded half away from zero as floor(|sum| + 0.5), clipped to lowest..highest. The bounds are integers, so
// clipping may come first.
CVC_HD_INLINE int32_t cvc_resize_round(double sum, double lowest, double highest) {
  const double clipped = sum < lowest ? lowest : sum > highest ? highest : sum;
  return static_cast<int32_t>(clipped < 0.0 ? clipped - 0.5 : clipped + 0.5);
}

// x86 and NVIDIA GPUs make different NaNs; a result has one.
CVC_HD_INLINE float cvc_resize_one_nan(float value) {
  return value == value ? value : cvc_float_of_bits(cvc_float_nan);
}
CVC_HD_INLINE double cvc_resize_one_nan(double value) {
  return value == value ? value : cvc_double_of_bits(cvc_double_nan);
}

// How an element type goes through the passes. `working` holds every value of the type exactly and is what
// lies between the passes; `between` is the rounding after the first of two passes, `result` that after the
// last.
template <class T> struct cvc_resize_element;

template <class T, class Working> struct cvc_resize_integer {
  using working = Working;
  static constexpr double lowest =
      static_cast<T>(-1) < static_cast<T>(0) ? -static_cast<double>(uint64_t{1} << (8 * sizeof(T) - 1)) : 0.0;
  static constexpr double highest =
      lowest + (static_cast<double>(uint64_t{1} << (8 * sizeof(T) - 1)) * 2.0 - 1.0);

  static CVC_HD_INLINE working load(T value) { return static_cast<working>(value); }
  static CVC_HD_INLINE working between(double sum) {
    return static_cast<working>(cvc_resize_round(sum, lowest, highest));
  }
  static CVC_HD_INLINE T result(double sum) { return static_cast<T>(cvc_resize_round(sum, lowest, highest)); }
};

template <> struct cvc_resize_element<int8_t> : cvc_resize_integer<int8_t, float> {};
template <> struct cvc_resize_element<uint16_t> : cvc_resize_integer<uint16_t, float> {};
template <> struct cvc_resize_element<int16_t> : cvc_resize_integer<int16_t, float> {};
template <> struct cvc_resize_element<int32_t> : cvc_resize_integer<int32_t, double> {};

// Between the passes F16 is kept as float, so that its result is rounded to half precision only once.
template <> struct cvc_resize_element<cvc_half> {
  using working = float;
  static CVC_HD_INLINE float load(cvc_half value) { return cvc_half_to_float(value); }
  static CVC_HD_INLINE float between(double sum) { return static_cast<float>(sum); }
  static CVC_HD_INLINE cvc_half result(double sum) { return cvc_double_to_half(sum); }
};

template <> struct cvc_resize_element<float> {
  using working = float;
  static CVC_HD_INLINE float load(float value) { return value; }
  static CVC_HD_INLINE float between(double sum) { return static_cast<float>(sum); }
  static CVC_HD_INLINE float result(double sum) { return cvc_resize_one_nan(static_cast<float>(sum)); }
};

template <> struct cvc_resize_element<double> {
  using working = double;
  static CVC_HD_INLINE double load(double value) { return value; }
  static CVC_HD_INLINE double between(double sum) { return sum; }
  static CVC_HD_INLINE double result(double sum) { return cvc_resize_one_nan(sum); }
};

// ---- Premultiplied alpha, U8 ----

// colour * alpha / 255, rounded.
CVC_HD_INLINE uint8_t cvc_resize_multiply_alpha(uint8_t colour, uint8_t alpha) {
  const uint32_t product = static_cast<uint32_t>(colour) * alpha + 128u;
  return static_cast<uint8_t>(((product >> 8) + product) >> 8);
}

CVC_HD_INLINE uint8_t cvc_resize_divide_alpha(uint8_t colour, uint8_t alpha) {
  if (alpha == 0 || alpha == 255) {
    return colour;
  }
  const uint32_t quotient = 255u * colour / alpha;
  return static_cast<uint8_t>(quotient > 255u ? 255u : quotient);
}

// ---- A whole sample, without memory between the passes ----

// Where the source samples of one channel lie: row y, column x at `base + y * stride_h + x * stride_w`.
struct cvc_resize_plane {
  const unsigned char *base;
  long long stride_h;
  long long stride_w;
};

CVC_HD_INLINE cvc_resize_taps cvc_resize_taps_at(const cvc_resize_table *table, int32_t output) {
  return table == nullptr ? cvc_resize_taps{output, 1} : cvc_resize_bounds(table, output);
}

template <class T> CVC_HD_INLINE T cvc_resize_read(const cvc_resize_plane &plane, int32_t x, int32_t y) {
  T value;
  __builtin_memcpy(&value, plane.base + y * plane.stride_h + x * plane.stride_w, sizeof value);
  return value;
}

// Output sample (x, y) of a plane of type T (not U8), computing the first pass again for each tap of the
// second. Both tables null: the sample itself.
template <class T>
CVC_HD_INLINE T cvc_resize_sample(const cvc_resize_plane &plane, const cvc_resize_table *horizontal,
                                  const cvc_resize_table *vertical, bool vertical_first, int32_t x,
                                  int32_t y) {
  using element = cvc_resize_element<T>;
  const cvc_resize_taps columns = cvc_resize_taps_at(horizontal, x);
  const cvc_resize_taps rows = cvc_resize_taps_at(vertical, y);
  const auto along_row = [&](int32_t row) {
    return cvc_resize_sum_real(cvc_resize_real(horizontal, x), columns.count, [&](int k) {
      return element::load(cvc_resize_read<T>(plane, columns.first + k, row));
    });
  };
  const auto along_column = [&](int32_t column) {
    return cvc_resize_sum_real(cvc_resize_real(vertical, y), rows.count, [&](int k) {
      return element::load(cvc_resize_read<T>(plane, column, rows.first + k));
    });
  };
  if (horizontal == nullptr && vertical == nullptr) {
    return cvc_resize_read<T>(plane, x, y);
  }
  if (vertical == nullptr) {
    return element::result(along_row(y));
  }
  if (horizontal == nullptr) {
    return element::result(along_column(x));
  }
  if (vertical_first) {
    return element::result(cvc_resize_sum_real(cvc_resize_real(horizontal, x), columns.count, [&](int k) {
      return element::between(along_column(columns.first + k));
    }));
  }
  return element::result(cvc_resize_sum_real(cvc_resize_real(vertical, y), rows.count, [&](int k) {
    return element::between(along_row(rows.first + k));
  }));
}

// The same for U8. `alpha` is null, or the plane of alpha that the samples are multiplied by as they are
// read.
CVC_HD_INLINE uint8_t cvc_resize_sample_u8(const cvc_resize_plane &plane, const cvc_resize_plane *alpha,
                                           const cvc_resize_table *horizontal,
                                           const cvc_resize_table *vertical, bool vertical_first, int32_t x,
                                           int32_t y) {
  const cvc_resize_taps columns = cvc_resize_taps_at(horizontal, x);
  const cvc_resize_taps rows = cvc_resize_taps_at(vertical, y);
  const auto read = [&](int32_t column, int32_t row) {
    const uint8_t value = cvc_resize_read<uint8_t>(plane, column, row);
    return alpha == nullptr ? value
                            : cvc_resize_multiply_alpha(value, cvc_resize_read<uint8_t>(*alpha, column, row));
  };
  const auto along_row = [&](int32_t row) {
    return horizontal == nullptr ? read(x, row)
                                 : cvc_resize_sum_fixed(cvc_resize_fixed(horizontal, x), columns.count,
                                                        [&](int k) { return read(columns.first + k, row); });
  };
  const auto along_column = [&](int32_t column) {
    return vertical == nullptr ? read(column, y)
                               : cvc_resize_sum_fixed(cvc_resize_fixed(vertical, y), rows.count,
                                                      [&](int k) { return read(column, rows.first + k); });
  };
  if (horizontal == nullptr || (vertical != nullptr && !vertical_first)) {
    return vertical == nullptr ? along_row(y)
                               : cvc_resize_sum_fixed(cvc_resize_fixed(vertical, y), rows.count,
                                                      [&](int k) { return along_row(rows.first + k); });
  }
  return cvc_resize_sum_fixed(cvc_resize_fixed(horizontal, x), columns.count,
                              [&](int k) { return along_column(columns.first + k); });
}

#endif

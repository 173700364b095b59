// The passes of the host's resize that sum in double, included once for each instruction set with its
// function attribute as CVC_REAL_TARGET. Vectors are the compiler's own, so both forms do the same
// operations.
#include "resize_passes.h"

// Nothing here that takes or returns a vector is called from another file.
#pragma GCC diagnostic ignored "-Wpsabi"

#define CVC_REAL_INLINE static inline CVC_REAL_TARGET __attribute__((always_inline))

namespace cvc_resize_host {
namespace {

typedef double doubles __attribute__((vector_size(32)));
typedef float floats __attribute__((vector_size(16)));
typedef int32_t ints __attribute__((vector_size(16)));
constexpr int lanes = 4;
static_assert(lanes == row_group, "the horizontal pass keeps one row in each lane");

template <class T> struct vector_of;
template <> struct vector_of<float> {
  using type = floats;
};
template <> struct vector_of<double> {
  using type = doubles;
};

// Rows of an image may be aligned to less than their elements.
template <class Vector> CVC_REAL_INLINE Vector read(const void *from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <class T> inline T read_sample(const T *from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

CVC_REAL_INLINE doubles widen(const floats &value) { return __builtin_convertvector(value, doubles); }
CVC_REAL_INLINE doubles widen(const doubles &value) { return value; }

CVC_REAL_INLINE doubles same(double value) { return doubles{value, value, value, value}; }

// How four sums become the samples of a row; the plain form of each rule is in resize.cuh.
struct keep_float {
  using type = float;
  CVC_REAL_INLINE floats round(const doubles &sum, double, double) {
    return __builtin_convertvector(sum, floats);
  }
};

struct result_float {
  using type = float;
  CVC_REAL_INLINE floats round(const doubles &sum, double, double) {
    // Narrowed, this is the float with the same meaning.
    return __builtin_convertvector(sum == sum ? sum : same(cvc_double_of_bits(cvc_double_nan)), floats);
  }
};

struct keep_double {
  using type = double;
  CVC_REAL_INLINE doubles round(const doubles &sum, double, double) { return sum; }
};

struct result_double {
  using type = double;
  CVC_REAL_INLINE doubles round(const doubles &sum, double, double) {
    return sum == sum ? sum : same(cvc_double_of_bits(cvc_double_nan));
  }
};

template <class T> struct whole_number {
  using type = T;
  CVC_REAL_INLINE typename vector_of<T>::type round(const doubles &sum, double lowest, double highest) {
    const doubles raised = sum < same(lowest) ? same(lowest) : sum;
    const doubles clipped = raised > same(highest) ? same(highest) : raised;
    const doubles half = clipped < same(0.0) ? same(-0.5) : same(0.5);
    return __builtin_convertvector(__builtin_convertvector(clipped + half, ints),
                                   typename vector_of<T>::type);
  }
};

// Bounds of what is not rounded to an integer: none are looked at.
struct no_limits {
  static constexpr double lowest = 0.0;
  static constexpr double highest = 0.0;
};

// Four rows side by side: sample i of row r lies at `to[i * 4 + r]`.
template <class In>
CVC_REAL_TARGET void interleave_rows(const In *const rows[row_group], int64_t samples, In *to) {
  using vector = typename vector_of<In>::type;
  int64_t i = 0;
  for (; i + lanes <= samples; i += lanes) {
    const vector a = read<vector>(rows[0] + i);
    const vector b = read<vector>(rows[1] + i);
    const vector c = read<vector>(rows[2] + i);
    const vector d = read<vector>(rows[3] + i);
    const vector ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const vector ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const vector cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const vector cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const vector out[lanes] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                               __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                               __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                               __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
    __builtin_memcpy(to + i * lanes, out, sizeof out);
  }
  for (; i < samples; ++i) {
    for (int r = 0; r < row_group; ++r) {
      to[i * lanes + r] = read_sample(rows[r] + i);
    }
  }
}

// One output pixel of four rows at a time, each row in its own lane.
template <class In, class Rule, class Limits, int Channels>
CVC_REAL_TARGET void horizontal_channels(const horizontal_pass &pass, const In *side_by_side,
                                         typename Rule::type *const targets[row_group]) {
  using in_vector = typename vector_of<In>::type;
  using out_type = typename Rule::type;
  using out_vector = typename vector_of<out_type>::type;
  for (int x = pass.begin; x < pass.end; ++x) {
    const cvc_resize_taps taps = cvc_resize_bounds(pass.table, x);
    const double *coefficients = cvc_resize_real(pass.table, x);
    const In *from = side_by_side + static_cast<int64_t>(taps.first - pass.source_begin) * Channels * lanes;
    doubles sums[Channels];
    for (int c = 0; c < Channels; ++c) {
      sums[c] = same(0.0);
    }
    for (int k = 0; k < taps.count; ++k, from += Channels * lanes) {
      const doubles coefficient = same(coefficients[k]);
      for (int c = 0; c < Channels; ++c) {
        sums[c] = sums[c] + widen(read<in_vector>(from + c * lanes)) * coefficient;
      }
    }
    const int64_t to = static_cast<int64_t>(x - pass.begin) * Channels;
    for (int c = 0; c < Channels; ++c) {
      const out_vector rounded = Rule::round(sums[c], Limits::lowest, Limits::highest);
      for (int r = 0; r < row_group; ++r) {
        targets[r][to + c] = rounded[r];
      }
    }
  }
}

template <class In, class Rule, class Limits>
CVC_REAL_TARGET void horizontal(const horizontal_pass &pass, const void *const sources[row_group],
                                void *const targets[row_group]) {
  using out_type = typename Rule::type;
  const In *from[row_group];
  out_type *to[row_group];
  for (int r = 0; r < row_group; ++r) {
    from[r] = static_cast<const In *>(sources[r]);
    to[r] = static_cast<out_type *>(targets[r]);
  }
  In *side_by_side = static_cast<In *>(pass.scratch);
  interleave_rows(from, static_cast<int64_t>(pass.source_end - pass.source_begin) * pass.channels,
                  side_by_side);
  switch (pass.channels) {
  case 1:
    return horizontal_channels<In, Rule, Limits, 1>(pass, side_by_side, to);
  case 2:
    return horizontal_channels<In, Rule, Limits, 2>(pass, side_by_side, to);
  case 3:
    return horizontal_channels<In, Rule, Limits, 3>(pass, side_by_side, to);
  default:
    return horizontal_channels<In, Rule, Limits, 4>(pass, side_by_side, to);
  }
}

template <class In, class Rule, class Limits>
CVC_REAL_TARGET void vertical(const cvc_resize_table *table, int output, const void *const *rows,
                              void *target, int64_t samples) {
  using in_vector = typename vector_of<In>::type;
  using out_type = typename Rule::type;
  using out_vector = typename vector_of<out_type>::type;
  constexpr int vectors = 4;
  constexpr int64_t block = vectors * lanes;
  const int count = cvc_resize_bounds(table, output).count;
  const double *coefficients = cvc_resize_real(table, output);
  out_type *out = static_cast<out_type *>(target);
  int64_t at = 0;
  for (; at + block <= samples; at += block) {
    doubles sums[vectors];
    for (int v = 0; v < vectors; ++v) {
      sums[v] = same(0.0);
    }
    for (int k = 0; k < count; ++k) {
      const In *row = static_cast<const In *>(rows[k]) + at;
      const doubles coefficient = same(coefficients[k]);
      for (int v = 0; v < vectors; ++v) {
        sums[v] = sums[v] + widen(read<in_vector>(row + v * lanes)) * coefficient;
      }
    }
    for (int v = 0; v < vectors; ++v) {
      const out_vector rounded = Rule::round(sums[v], Limits::lowest, Limits::highest);
      __builtin_memcpy(out + at + v * lanes, &rounded, sizeof rounded);
    }
  }
  for (; at < samples; ++at) {
    const double sum = cvc_resize_sum_real(
        coefficients, count, [&](int k) { return read_sample(static_cast<const In *>(rows[k]) + at); });
    const out_vector rounded = Rule::round(same(sum), Limits::lowest, Limits::highest);
    __builtin_memcpy(out + at, &rounded, sizeof(out_type));
  }
}

template <class In, class Between, class Result, class Limits> passes passes_of() {
  return passes{sizeof(In),
                sizeof(typename Between::type),
                sizeof(typename Result::type),
                horizontal<In, Between, Limits>,
                horizontal<In, Result, Limits>,
                vertical<In, Between, Limits>,
                vertical<In, Result, Limits>};
}

// `In` is also what lies between the passes.
passes passes_of_kind(uint32_t kind) {
  switch (kind) {
  case cvc_kind_s8:
    return passes_of<float, whole_number<float>, whole_number<float>, cvc_resize_element<int8_t>>();
  case cvc_kind_u16:
    return passes_of<float, whole_number<float>, whole_number<float>, cvc_resize_element<uint16_t>>();
  case cvc_kind_s16:
    return passes_of<float, whole_number<float>, whole_number<float>, cvc_resize_element<int16_t>>();
  case cvc_kind_s32:
    return passes_of<double, whole_number<double>, whole_number<double>, cvc_resize_element<int32_t>>();
  case cvc_kind_f16:
    return passes_of<float, keep_float, keep_double, no_limits>();
  case cvc_kind_f64:
    return passes_of<double, keep_double, result_double, no_limits>();
  default:
    return passes_of<float, keep_float, result_float, no_limits>();
  }
}

} // namespace
} // namespace cvc_resize_host

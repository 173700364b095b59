// Element types of the arithmetic operators, and the saturating casts from a float or double result to each
// of them.
#ifndef CVC_SATURATE_CUH
#define CVC_SATURATE_CUH

#include <stdint.h>

#include "half.cuh"

// The kind part of a dtype code, as in the C ABI. Vector lanes have become channels before a kernel sees
// them.
enum cvc_kind : uint32_t {
  cvc_kind_u8 = 1,
  cvc_kind_s8 = 2,
  cvc_kind_u16 = 3,
  cvc_kind_s16 = 4,
  cvc_kind_u32 = 5,
  cvc_kind_s32 = 6,
  cvc_kind_u64 = 7,
  cvc_kind_s64 = 8,
  cvc_kind_f16 = 9,
  cvc_kind_f32 = 10,
  cvc_kind_f64 = 11,
};

// How a float becomes an integer. A result that is a floating type is rounded to nearest, half to even, in
// both.
enum cvc_rounding : uint32_t {
  cvc_rounding_nearest = 0,
  cvc_rounding_truncate = 1,
};

// `Arithmetic` is float or double; the widening is exact but for 64-bit integers, and for S32 and U32 in
// float, which are rounded to nearest even.
template <class Arithmetic, class In> struct cvc_widen {
  static CVC_HD_INLINE Arithmetic from(In value) { return static_cast<Arithmetic>(value); }
};
template <class Arithmetic> struct cvc_widen<Arithmetic, cvc_half> {
  static CVC_HD_INLINE Arithmetic from(cvc_half value) {
    return static_cast<Arithmetic>(cvc_half_to_float(value));
  }
};

// The nearest integer, half to even, of a value that is already within int's or unsigned's range: adding 1.5
// * 2^23 (or 2^52) leaves the integer in the low bits, rounded by the addition. Needs the default rounding
// mode, and no function call, so the host's loops become vector code.
CVC_HD_INLINE int32_t cvc_round_even(float value) {
  return static_cast<int32_t>(cvc_float_bits(value + 12582912.0f) - 0x4b400000u);
}
CVC_HD_INLINE uint32_t cvc_round_even(double value) {
  return static_cast<uint32_t>(cvc_double_bits(value + 6755399441055744.0));
}

// `lowest` where value is NaN.
template <class Arithmetic>
CVC_HD_INLINE Arithmetic cvc_clamp(Arithmetic value, Arithmetic lowest, Arithmetic highest) {
  const Arithmetic raised = value > lowest ? value : lowest;
  return raised < highest ? raised : highest;
}

// The nearest whole double, half to even, or the one towards zero; from 2^52 on every double is whole.
CVC_HD_INLINE double cvc_whole(double value, bool truncate) {
  const double magnitude = value < 0.0 ? -value : value;
  if (!(magnitude < 4503599627370496.0)) {
    return value;
  }
  if (truncate) {
    return static_cast<double>(static_cast<int64_t>(value));
  }
  const double rounded = (magnitude + 4503599627370496.0) - 4503599627370496.0;
  return value < 0.0 ? -rounded : rounded;
}

// `cvc_saturate<Out, Rounding>::from(x)`: x rounded as `Rounding` says, then clamped to what Out holds; NaN
// becomes 0 in an integer and the one quiet NaN in a floating type. This is the form for integers of at most
// 32 bits. It clamps before it rounds, which gives the same, the bounds being integers.
template <class Out, cvc_rounding Rounding> struct cvc_saturate {
  static constexpr bool is_signed = static_cast<Out>(-1) < static_cast<Out>(0);
  static constexpr int64_t highest = (int64_t{1} << (8 * sizeof(Out) - (is_signed ? 1 : 0))) - 1;
  static constexpr int64_t lowest = is_signed ? -highest - 1 : 0;

  static CVC_HD_INLINE Out from(float x) {
    if (sizeof(Out) > 2) {
      return from(static_cast<double>(x));
    }
    const float clamped = cvc_clamp(x, static_cast<float>(lowest), static_cast<float>(highest));
    const float number = !is_signed || x == x ? clamped : 0.0f;
    return static_cast<Out>(Rounding == cvc_rounding_truncate ? static_cast<int32_t>(number)
                                                              : cvc_round_even(number));
  }
  static CVC_HD_INLINE Out from(double x) {
    const double clamped = cvc_clamp(x, static_cast<double>(lowest), static_cast<double>(highest));
    const double number = !is_signed || x == x ? clamped : 0.0;
    return static_cast<Out>(Rounding == cvc_rounding_truncate
                                ? static_cast<uint32_t>(static_cast<int64_t>(number))
                                : cvc_round_even(number));
  }
};
template <cvc_rounding Rounding> struct cvc_saturate<uint64_t, Rounding> {
  static CVC_HD_INLINE uint64_t from(double x) {
    if (!(x > 0.0)) {
      return 0;
    }
    // 2^64 is the first double that does not fit.
    if (x >= 18446744073709551616.0) {
      return UINT64_MAX;
    }
    return static_cast<uint64_t>(cvc_whole(x, Rounding == cvc_rounding_truncate));
  }
};
template <cvc_rounding Rounding> struct cvc_saturate<int64_t, Rounding> {
  static CVC_HD_INLINE int64_t from(double x) {
    if (x != x) {
      return 0;
    }
    if (x >= 9223372036854775808.0) {
      return INT64_MAX;
    }
    if (x < -9223372036854775808.0) {
      return INT64_MIN;
    }
    return static_cast<int64_t>(cvc_whole(x, Rounding == cvc_rounding_truncate));
  }
};
template <cvc_rounding Rounding> struct cvc_saturate<cvc_half, Rounding> {
  static CVC_HD_INLINE cvc_half from(float x) { return cvc_float_to_half(x); }
  static CVC_HD_INLINE cvc_half from(double x) { return cvc_double_to_half(x); }
};
template <cvc_rounding Rounding> struct cvc_saturate<float, Rounding> {
  static CVC_HD_INLINE float from(float x) { return x == x ? x : cvc_float_of_bits(cvc_float_nan); }
  static CVC_HD_INLINE float from(double x) { return from(static_cast<float>(x)); }
};
template <cvc_rounding Rounding> struct cvc_saturate<double, Rounding> {
  static CVC_HD_INLINE double from(double x) { return x == x ? x : cvc_double_of_bits(cvc_double_nan); }
};

#endif

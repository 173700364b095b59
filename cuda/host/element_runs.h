// Loads of a run of elements of any type into a block of float or double, and saturating stores back, for the
// host kernels that compute.
#ifndef CVC_HOST_ELEMENT_RUNS_H
#define CVC_HOST_ELEMENT_RUNS_H

#include <stdint.h>

#include "../runs.cuh"
#include "../saturate.cuh"
#include "vector_support.h"

namespace {

using byte = unsigned char;

// A run is computed in blocks of at most this many elements, which stay in the nearest cache.
constexpr int64_t block_elements = 512;

// `count` elements, element i at src + i * step.
template <class Arithmetic>
using load_function = void (*)(const byte *src, int64_t step, Arithmetic *block, int64_t count);
template <class Arithmetic>
using store_function = void (*)(const Arithmetic *block, byte *dst, int64_t step, int64_t count);

template <class Arithmetic, class In>
CVC_ALWAYS_INLINE void load_stepped(const byte *src, int64_t step, Arithmetic *__restrict block,
                                    int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    In value;
    __builtin_memcpy(&value, src + i * step, sizeof value);
    block[i] = cvc_widen<Arithmetic, In>::from(value);
  }
}

// Two calls, so that the loop over adjacent elements is compiled with its step known and becomes vector code.
template <class Arithmetic, class In>
CVC_ALWAYS_INLINE void load_run(const byte *src, int64_t step, Arithmetic *__restrict block, int64_t count) {
  if (step == sizeof(In)) {
    load_stepped<Arithmetic, In>(src, sizeof(In), block, count);
  } else {
    load_stepped<Arithmetic, In>(src, step, block, count);
  }
}

template <class Arithmetic, class Out, cvc_rounding Rounding>
CVC_ALWAYS_INLINE void store_stepped(const Arithmetic *__restrict block, byte *__restrict dst, int64_t step,
                                     int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const Out value = cvc_saturate<Out, Rounding>::from(block[i]);
    __builtin_memcpy(dst + i * step, &value, sizeof value);
  }
}

template <class Arithmetic, class Out, cvc_rounding Rounding>
CVC_ALWAYS_INLINE void store_run(const Arithmetic *__restrict block, byte *__restrict dst, int64_t step,
                                 int64_t count) {
  if (step == sizeof(Out)) {
    store_stepped<Arithmetic, Out, Rounding>(block, dst, sizeof(Out), count);
  } else {
    store_stepped<Arithmetic, Out, Rounding>(block, dst, step, count);
  }
}

template <class Arithmetic, class In>
void load_baseline(const byte *src, int64_t step, Arithmetic *__restrict block, int64_t count) {
  load_run<Arithmetic, In>(src, step, block, count);
}

template <class Arithmetic, class Out, cvc_rounding Rounding>
void store_baseline(const Arithmetic *__restrict block, byte *__restrict dst, int64_t step, int64_t count) {
  store_run<Arithmetic, Out, Rounding>(block, dst, step, count);
}

#if CVC_HOST_VECTOR

template <class Arithmetic, class In> struct vector_load {
  static CVC_TARGET_VECTOR void run(const byte *src, int64_t step, Arithmetic *__restrict block,
                                    int64_t count) {
    load_run<Arithmetic, In>(src, step, block, count);
  }
};

template <class Arithmetic, class Out, cvc_rounding Rounding> struct vector_store {
  static CVC_TARGET_VECTOR void run(const Arithmetic *__restrict block, byte *__restrict dst, int64_t step,
                                    int64_t count) {
    store_run<Arithmetic, Out, Rounding>(block, dst, step, count);
  }
};

// Clamped and rounded. The maximum takes its second operand where the first is NaN, so that NaN becomes
// `lowest`, and then 0.
template <class Out, cvc_rounding Rounding> CVC_TARGET_VECTOR inline __m128i saturate_four(__m256d values) {
  using range = cvc_saturate<Out, Rounding>;
  __m256d clamped = _mm256_max_pd(values, _mm256_set1_pd(static_cast<double>(range::lowest)));
  clamped = _mm256_min_pd(clamped, _mm256_set1_pd(static_cast<double>(range::highest)));
  if (range::is_signed) {
    clamped = _mm256_and_pd(clamped, _mm256_cmp_pd(values, values, _CMP_ORD_Q));
  }
  return Rounding == cvc_rounding_truncate ? _mm256_cvttpd_epi32(clamped) : _mm256_cvtpd_epi32(clamped);
}

template <class Out, cvc_rounding Rounding>
CVC_TARGET_VECTOR inline __m256i saturate_eight(const double *block) {
  return _mm256_set_m128i(saturate_four<Out, Rounding>(_mm256_loadu_pd(block + 4)),
                          saturate_four<Out, Rounding>(_mm256_loadu_pd(block)));
}

template <class Out, cvc_rounding Rounding>
CVC_TARGET_VECTOR inline __m256i saturate_eight(const float *block) {
  using range = cvc_saturate<Out, Rounding>;
  if (sizeof(Out) > 2) {
    return _mm256_set_m128i(saturate_four<Out, Rounding>(_mm256_cvtps_pd(_mm_loadu_ps(block + 4))),
                            saturate_four<Out, Rounding>(_mm256_cvtps_pd(_mm_loadu_ps(block))));
  }
  const __m256 values = _mm256_loadu_ps(block);
  __m256 clamped = _mm256_max_ps(values, _mm256_set1_ps(static_cast<float>(range::lowest)));
  clamped = _mm256_min_ps(clamped, _mm256_set1_ps(static_cast<float>(range::highest)));
  if (range::is_signed) {
    clamped = _mm256_and_ps(clamped, _mm256_cmp_ps(values, values, _CMP_ORD_Q));
  }
  return Rounding == cvc_rounding_truncate ? _mm256_cvttps_epi32(clamped) : _mm256_cvtps_epi32(clamped);
}

// Eight integers, already in Out's range, to adjacent elements.
template <class Out> CVC_TARGET_VECTOR inline void store_eight(__m256i integers, byte *dst) {
  const bool is_signed = static_cast<Out>(-1) < static_cast<Out>(0);
  if (sizeof(Out) == 4) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(dst), integers);
    return;
  }
  const __m128i low = _mm256_castsi256_si128(integers);
  const __m128i high = _mm256_extracti128_si256(integers, 1);
  if (sizeof(Out) == 2) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(dst),
                     is_signed ? _mm_packs_epi32(low, high) : _mm_packus_epi32(low, high));
    return;
  }
  const __m128i words = _mm_packs_epi32(low, high);
  _mm_storel_epi64(reinterpret_cast<__m128i *>(dst),
                   is_signed ? _mm_packs_epi16(words, words) : _mm_packus_epi16(words, words));
}

// Written out, since the compiler makes a dozen masks of the clamp.
template <class Arithmetic, class Out, cvc_rounding Rounding> struct vector_store_integers {
  static CVC_TARGET_VECTOR void run(const Arithmetic *__restrict block, byte *__restrict dst, int64_t step,
                                    int64_t count) {
    int64_t i = 0;
    if (step == sizeof(Out)) {
      for (; i + 8 <= count; i += 8) {
        store_eight<Out>(saturate_eight<Out, Rounding>(block + i), dst + i * step);
      }
    }
    store_stepped<Arithmetic, Out, Rounding>(block + i, dst + i * step, step, count - i);
  }
};

template <class Arithmetic, cvc_rounding Rounding>
struct vector_store<Arithmetic, uint8_t, Rounding> : vector_store_integers<Arithmetic, uint8_t, Rounding> {};
template <class Arithmetic, cvc_rounding Rounding>
struct vector_store<Arithmetic, int8_t, Rounding> : vector_store_integers<Arithmetic, int8_t, Rounding> {};
template <class Arithmetic, cvc_rounding Rounding>
struct vector_store<Arithmetic, uint16_t, Rounding> : vector_store_integers<Arithmetic, uint16_t, Rounding> {
};
template <class Arithmetic, cvc_rounding Rounding>
struct vector_store<Arithmetic, int16_t, Rounding> : vector_store_integers<Arithmetic, int16_t, Rounding> {};
template <class Arithmetic, cvc_rounding Rounding>
struct vector_store<Arithmetic, int32_t, Rounding> : vector_store_integers<Arithmetic, int32_t, Rounding> {};

CVC_TARGET_VECTOR inline __m256 with_one_nan(__m256 values) {
  const __m256 is_nan = _mm256_cmp_ps(values, values, _CMP_UNORD_Q);
  return _mm256_blendv_ps(values, _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(cvc_float_nan))),
                          is_nan);
}

// The CPU's own half conversions round alike; only their NaNs have to be made one.
template <> struct vector_load<float, cvc_half> {
  static CVC_TARGET_VECTOR void run(const byte *src, int64_t step, float *__restrict block, int64_t count) {
    int64_t i = 0;
    if (step == sizeof(cvc_half)) {
      for (; i + 8 <= count; i += 8) {
        const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i *>(src + i * step));
        _mm256_storeu_ps(block + i, with_one_nan(_mm256_cvtph_ps(halves)));
      }
    }
    load_stepped<float, cvc_half>(src + i * step, step, block + i, count - i);
  }
};

template <cvc_rounding Rounding> struct vector_store<float, cvc_half, Rounding> {
  static CVC_TARGET_VECTOR void run(const float *__restrict block, byte *__restrict dst, int64_t step,
                                    int64_t count) {
    int64_t i = 0;
    if (step == sizeof(cvc_half)) {
      for (; i + 8 <= count; i += 8) {
        const __m128i halves = _mm256_cvtps_ph(with_one_nan(_mm256_loadu_ps(block + i)),
                                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(dst + i * step), halves);
      }
    }
    store_stepped<float, cvc_half, Rounding>(block + i, dst + i * step, step, count - i);
  }
};

#endif

template <class Arithmetic, class In> load_function<Arithmetic> choose_load_of() {
#if CVC_HOST_VECTOR
  if (host_has_vector()) {
    return vector_load<Arithmetic, In>::run;
  }
#endif
  return load_baseline<Arithmetic, In>;
}

template <class Arithmetic, class Out, cvc_rounding Rounding> store_function<Arithmetic> choose_store_of() {
#if CVC_HOST_VECTOR
  if (host_has_vector()) {
    return vector_store<Arithmetic, Out, Rounding>::run;
  }
#endif
  return store_baseline<Arithmetic, Out, Rounding>;
}

// The function for elements of `kind`; null for a kind that this arithmetic is never used for.
template <class Arithmetic> load_function<Arithmetic> choose_load(uint32_t kind) {
  switch (kind) {
  case cvc_kind_u8:
    return choose_load_of<Arithmetic, uint8_t>();
  case cvc_kind_s8:
    return choose_load_of<Arithmetic, int8_t>();
  case cvc_kind_u16:
    return choose_load_of<Arithmetic, uint16_t>();
  case cvc_kind_s16:
    return choose_load_of<Arithmetic, int16_t>();
  case cvc_kind_s32:
    return choose_load_of<Arithmetic, int32_t>();
  case cvc_kind_f16:
    return choose_load_of<Arithmetic, cvc_half>();
  case cvc_kind_f32:
    return choose_load_of<Arithmetic, float>();
  default:
    break;
  }
  if constexpr (sizeof(Arithmetic) == sizeof(double)) {
    switch (kind) {
    case cvc_kind_u32:
      return choose_load_of<Arithmetic, uint32_t>();
    case cvc_kind_u64:
      return choose_load_of<Arithmetic, uint64_t>();
    case cvc_kind_s64:
      return choose_load_of<Arithmetic, int64_t>();
    case cvc_kind_f64:
      return choose_load_of<Arithmetic, double>();
    default:
      break;
    }
  }
  return nullptr;
}

template <class Arithmetic, cvc_rounding Rounding> store_function<Arithmetic> choose_store(uint32_t kind) {
  switch (kind) {
  case cvc_kind_u8:
    return choose_store_of<Arithmetic, uint8_t, Rounding>();
  case cvc_kind_s8:
    return choose_store_of<Arithmetic, int8_t, Rounding>();
  case cvc_kind_u16:
    return choose_store_of<Arithmetic, uint16_t, Rounding>();
  case cvc_kind_s16:
    return choose_store_of<Arithmetic, int16_t, Rounding>();
  case cvc_kind_s32:
    return choose_store_of<Arithmetic, int32_t, Rounding>();
  case cvc_kind_f16:
    return choose_store_of<Arithmetic, cvc_half, Rounding>();
  case cvc_kind_f32:
    return choose_store_of<Arithmetic, float, Rounding>();
  default:
    break;
  }
  if constexpr (sizeof(Arithmetic) == sizeof(double)) {
    switch (kind) {
    case cvc_kind_u32:
      return choose_store_of<Arithmetic, uint32_t, Rounding>();
    case cvc_kind_u64:
      return choose_store_of<Arithmetic, uint64_t, Rounding>();
    case cvc_kind_s64:
      return choose_store_of<Arithmetic, int64_t, Rounding>();
    case cvc_kind_f64:
      return choose_store_of<Arithmetic, double, Rounding>();
    default:
      break;
    }
  }
  return nullptr;
}

// Whether a row of this view is one run of adjacent elements, the channels of a pixel side by side.
inline bool row_is_dense(const cvc_view &view, int64_t channels, int64_t element_bytes) {
  return view.stride_w == channels * element_bytes && (channels == 1 || view.stride_c == element_bytes);
}

} // namespace

#endif

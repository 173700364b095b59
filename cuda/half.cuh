// Conversions between half precision (its 16 bits) and float or double, with the same bits on the host and on
// the GPU.
#ifndef CVC_HALF_CUH
#define CVC_HALF_CUH

#include <stdint.h>

#include "view.cuh"

// The loops of the host build only become vector code when these are inlined.
#if defined(__CUDACC__)
#define CVC_HD_INLINE __host__ __device__ __forceinline__
#else
#define CVC_HD_INLINE inline __attribute__((always_inline))
#endif

struct cvc_half {
  uint16_t bits;
};

CVC_HD_INLINE uint32_t cvc_float_bits(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

CVC_HD_INLINE float cvc_float_of_bits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

CVC_HD_INLINE uint64_t cvc_double_bits(double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

CVC_HD_INLINE double cvc_double_of_bits(uint64_t bits) {
  double value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// Every NaN that a conversion or a saturating cast puts out has these bits: x86 and NVIDIA GPUs make
// different ones.
constexpr uint16_t cvc_half_nan = 0x7e00;
constexpr uint32_t cvc_float_nan = 0x7fc00000u;
constexpr uint64_t cvc_double_nan = 0x7ff8000000000000ull;

// Exact.
CVC_HD_INLINE float cvc_half_to_float(cvc_half half) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half.bits));
  return value == value ? value : cvc_float_of_bits(cvc_float_nan);
#else
  const uint32_t magnitude = half.bits & 0x7fffu;
  const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000u) << 16;
  // Rebias the exponent by 127 - 15.
  const uint32_t normal = (magnitude << 13) + 0x38000000u;
  // A subnormal is 2^-14 * (1 + fraction) - 2^-14; the subtraction is exact.
  const float subnormal = cvc_float_of_bits((magnitude << 13) + 0x38800000u) - cvc_float_of_bits(0x38800000u);
  uint32_t bits = magnitude < 0x0400u ? cvc_float_bits(subnormal) : normal;
  bits = magnitude >= 0x7c00u ? 0x7f800000u : bits;
  bits |= sign;
  return cvc_float_of_bits(magnitude > 0x7c00u ? cvc_float_nan : bits);
#endif
}

// Rounds half to even; what is too large becomes infinite.
CVC_HD_INLINE cvc_half cvc_float_to_half(float value) {
#if defined(__CUDA_ARCH__)
  uint16_t rounded;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
  return cvc_half{value == value ? rounded : cvc_half_nan};
#else
  const uint32_t all = cvc_float_bits(value);
  const uint32_t magnitude = all & 0x7fffffffu;
  const uint32_t sign = (all & 0x80000000u) >> 16;
  // Rebias the exponent by 15 - 127 and round at bit 13: a carry runs into the exponent as it should.
  const uint32_t normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
  // Below 2^-14, adding 0.5 leaves the multiple of 2^-24 in the low bits, rounded by the addition.
  const uint32_t subnormal = cvc_float_bits(cvc_float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t bits = magnitude < 0x38800000u ? subnormal : normal;
  bits = magnitude >= 0x47800000u ? 0x7c00u : bits;
  bits |= sign;
  return cvc_half{static_cast<uint16_t>(magnitude > 0x7f800000u ? cvc_half_nan : bits)};
#endif
}

// Rounds once, half to even, never by way of float.
CVC_HD_INLINE cvc_half cvc_double_to_half(double value) {
  const uint64_t all = cvc_double_bits(value);
  const uint64_t magnitude = all & 0x7fffffffffffffffull;
  const uint64_t sign = (all & 0x8000000000000000ull) >> 48;
  const uint64_t normal = (magnitude + 0xc10001ffffffffffull + ((magnitude >> 42) & 1u)) >> 42;
  // Below 2^-14, adding 2^28 leaves the multiple of 2^-24 in the low bits.
  const uint64_t subnormal =
      cvc_double_bits(cvc_double_of_bits(magnitude) + 268435456.0) - 0x41b0000000000000ull;
  uint64_t bits = magnitude < 0x3f10000000000000ull ? subnormal : normal;
  bits = magnitude >= 0x40f0000000000000ull ? 0x7c00u : bits;
  bits |= sign;
  return cvc_half{static_cast<uint16_t>(magnitude > 0x7ff0000000000000ull ? cvc_half_nan : bits)};
}

#endif

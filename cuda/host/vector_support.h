// Which vector instructions the host kernels may use, found out once at run time; every path gives the same
// bits.
#ifndef CVC_HOST_VECTOR_SUPPORT_H
#define CVC_HOST_VECTOR_SUPPORT_H

#define CVC_ALWAYS_INLINE static inline __attribute__((always_inline))

// Defining CVC_HOST_BASELINE leaves the vector forms out, so that a test can compare the two.
#if defined(__x86_64__) && !defined(CVC_HOST_BASELINE)
#define CVC_HOST_VECTOR 1
#include <cpuid.h>
#include <immintrin.h>
// Without FMA, which would round differently.
#define CVC_TARGET_VECTOR __attribute__((target("avx2,f16c")))
#else
#define CVC_HOST_VECTOR 0
#endif

#if CVC_HOST_VECTOR

// Asks the CPU itself: the compiler's own query needs a part of its run-time library that a Rust link leaves
// out.
static inline bool cpu_has_avx2_and_f16c() {
  unsigned int eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) {
    return false;
  }
  constexpr unsigned int needed = bit_OSXSAVE | bit_AVX | bit_F16C;
  if ((ecx & needed) != needed) {
    return false;
  }
  unsigned int enabled, enabled_high;
  __asm__("xgetbv" : "=a"(enabled), "=d"(enabled_high) : "c"(0));
  // The system saves the SSE and AVX registers.
  if ((enabled & 6u) != 6u) {
    return false;
  }
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & bit_AVX2) != 0;
}

// 0: not asked yet; 1: no; 2: yes. Two threads that ask at once find the same.
static int host_vector_state = 0;

static inline bool host_has_vector() {
  int state = __atomic_load_n(&host_vector_state, __ATOMIC_RELAXED);
  if (state == 0) {
    state = cpu_has_avx2_and_f16c() ? 2 : 1;
    __atomic_store_n(&host_vector_state, state, __ATOMIC_RELAXED);
  }
  return state == 2;
}

#endif

#endif

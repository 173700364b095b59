// Which vector instructions the host's resize uses: what the processor and the operating system allow, asked
// once.
#include "resize_passes.h"

#if CVC_RESIZE_X86
#include <cpuid.h>
#endif

namespace cvc_resize_host {
namespace {

// -1: not asked yet. Two threads that ask at the same time find the same.
int machine_isa = -1;
int isa_limit = isa_avx2;

// By cpuid itself: __builtin_cpu_supports needs the compiler's runtime library, which a static link may lack.
int ask_machine() {
#if CVC_RESIZE_X86
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_SSE4_1) == 0) {
    return isa_scalar;
  }
  const bool saves_state = (c & bit_OSXSAVE) != 0 && (c & bit_AVX) != 0;
  if (!saves_state || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & bit_AVX2) == 0) {
    return isa_sse41;
  }
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  // Bits 1 and 2: the system keeps the xmm and ymm registers.
  return (low & 6u) == 6u ? isa_avx2 : isa_sse41;
#else
  return isa_scalar;
#endif
}

} // namespace

isa usable_isa() {
  int machine = __atomic_load_n(&machine_isa, __ATOMIC_RELAXED);
  if (machine < 0) {
    machine = ask_machine();
    __atomic_store_n(&machine_isa, machine, __ATOMIC_RELAXED);
  }
  const int limit = __atomic_load_n(&isa_limit, __ATOMIC_RELAXED);
  return static_cast<isa>(machine < limit ? machine : limit);
}

} // namespace cvc_resize_host

extern "C" void cvc_host_resize_limit_isa(int level) {
  __atomic_store_n(&cvc_resize_host::isa_limit, level < 0 ? 0 : level, __ATOMIC_RELAXED);
}

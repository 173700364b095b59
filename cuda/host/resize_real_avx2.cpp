// The passes of the host's resize that sum in double, in AVX2 (without FMA, which would round once less).
#if defined(__x86_64__)
#define CVC_REAL_TARGET __attribute__((target("avx2")))
#include "resize_real_passes.h"

namespace cvc_resize_host {

passes real_passes_avx2(uint32_t kind) { return passes_of_kind(kind); }

} // namespace cvc_resize_host
#endif

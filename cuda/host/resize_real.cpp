// The passes of the host's resize that sum in double, for the baseline processor, and the choice between the
// two forms.
#define CVC_REAL_TARGET
#include "resize_real_passes.h"

namespace cvc_resize_host {

passes real_passes_baseline(uint32_t kind) { return passes_of_kind(kind); }

passes real_passes(isa level, uint32_t kind) {
#if CVC_RESIZE_X86
  if (level >= isa_avx2) {
    return real_passes_avx2(kind);
  }
#endif
  (void)level;
  return real_passes_baseline(kind);
}

size_t real_scratch_bytes(size_t source_bytes, int channels, int source_begin, int source_end) {
  return static_cast<size_t>(source_end - source_begin) * static_cast<size_t>(channels) * row_group *
         source_bytes;
}

} // namespace cvc_resize_host

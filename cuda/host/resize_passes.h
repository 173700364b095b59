// The two passes of pillow_resize over rows of samples on the host, and the choice of their vector form.
#ifndef CVC_HOST_RESIZE_PASSES_H
#define CVC_HOST_RESIZE_PASSES_H

#include <stddef.h>
#include <stdint.h>

#include "../resize.cuh"

#if defined(__x86_64__)
#define CVC_RESIZE_X86 1
#else
#define CVC_RESIZE_X86 0
#endif

namespace cvc_resize_host {

// Vector instructions, each including those before it. All give the same bits.
enum isa : int { isa_scalar = 0, isa_sse41 = 1, isa_avx2 = 2 };

// The best of this machine, or less where a test has set a limit.
isa usable_isa();

// A horizontal pass does this many rows at once, so that a coefficient is read once for all of them.
constexpr int row_group = 4;
// A pass may write this many bytes past the end of a target row, which has the room.
constexpr size_t row_slack = 32;

// Samples are interleaved: `channels` of them a pixel, in rows without gaps.
struct horizontal_pass {
  const cvc_resize_table *table;
  int channels;
  // The input columns that the source rows hold.
  int source_begin;
  int source_end;
  // The output columns to compute.
  int begin;
  int end;
  // `horizontal_scratch_bytes` of memory, aligned to 32 bytes.
  void *scratch;
};

// sources[r] points to the pixel of column `source_begin`, targets[r] to that of output column `begin`. Rows
// may be the same one several times.
using horizontal_function = void (*)(const horizontal_pass &pass, const void *const sources[row_group],
                                     void *const targets[row_group]);

// rows[k] is the row under tap k; computes `samples` samples of output row `output`.
using vertical_function = void (*)(const cvc_resize_table *table, int output, const void *const *rows,
                                   void *target, int64_t samples);

// The passes for one element type. Rows hold `source_bytes` a sample before, `between_bytes` between and
// `result_bytes` after the passes; `*_between` is for the first of two.
struct passes {
  size_t source_bytes;
  size_t between_bytes;
  size_t result_bytes;
  horizontal_function horizontal_between;
  horizontal_function horizontal_result;
  vertical_function vertical_between;
  vertical_function vertical_result;
};

// `channels` is 1 to 4.
passes fixed_passes(isa level, int channels);
// `kind` is one of the parameter block's but U8. Rows hold cvc_resize_element's working type, and the results
// of F16 are doubles, not rounded yet.
passes real_passes(isa level, uint32_t kind);

// What the horizontal pass needs as scratch for these columns.
size_t fixed_scratch_bytes(const cvc_resize_table *table, int channels, int source_begin, int source_end);
size_t real_scratch_bytes(size_t source_bytes, int channels, int source_begin, int source_end);

// ---- Vector forms of the fixed-point passes ----

using fixed_kernel = void (*)(const horizontal_pass &pass, const uint8_t *const sources[row_group],
                              uint8_t *const targets[row_group]);
#if CVC_RESIZE_X86
fixed_kernel fixed_horizontal_sse41(int channels);
fixed_kernel fixed_horizontal_avx2(int channels);
void fixed_vertical_sse41(const cvc_resize_table *table, int output, const void *const *rows, void *target,
                          int64_t samples);
void fixed_vertical_avx2(const cvc_resize_table *table, int output, const void *const *rows, void *target,
                         int64_t samples);
passes real_passes_avx2(uint32_t kind);
#endif
passes real_passes_baseline(uint32_t kind);

} // namespace cvc_resize_host

// Tests only: no more than this `isa` from now on, for every thread.
extern "C" void cvc_host_resize_limit_isa(int level);

#endif

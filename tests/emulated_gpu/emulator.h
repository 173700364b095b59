// A GPU made of fibers, on which the kernels' own sources run where there is none: `device.cuh` and what the
// CUDA compiler knows are replaced by this, everything else is the same text.
//
// The threads of a block take turns at barriers alone, in an order of warps that changes: what a kernel reads
// before the barrier that it needs shows up as a wrong result. Compile with `-include emulator.h`.
#ifndef CVC_EMULATOR_H
#define CVC_EMULATOR_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#define CVC_EMULATED 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__

struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return uint2{x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return uint4{x, y, z, w}; }

struct emulated_index {
  unsigned x;
};
extern emulated_index threadIdx, blockIdx, blockDim, gridDim;

// Runs a kernel: `body` once for every thread of every block.
void emulated_launch(const std::function<void()> &body, int64_t blocks, int threads, size_t shared);
void emulated_block_barrier();
void emulated_warp_barrier();
// A block's dynamic shared memory.
extern unsigned char *emulated_shared;

#define __syncthreads emulated_block_barrier
#define __syncwarp emulated_warp_barrier
template <class T> inline T __ldg(const T *from) { return *from; }

// ---- What stands in for device.cuh ----

#define CVC_DEVICE_CUH
#define CVC_DEVICE inline

namespace cvc_device {

using byte = unsigned char;

constexpr int warp_lanes = 32;
constexpr int block_threads = 256;
constexpr int block_warps = block_threads / warp_lanes;

inline byte *dynamic_shared() { return emulated_shared; }
template <class T> inline T *in_global(T *pointer) { return pointer; }
template <class T> inline T *in_shared(T *pointer) { return pointer; }
inline void prefetch_line(const void *) {}

inline uint32_t permute_bytes(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t both = low | static_cast<uint64_t>(high) << 32;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= static_cast<uint32_t>(both >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
  }
  return result;
}

inline uint32_t pack_saturated(int32_t first, int32_t second, int32_t third, int32_t fourth) {
  const auto clip = [](int32_t value) {
    return static_cast<uint32_t>(value < 0 ? 0 : value > 255 ? 255 : value);
  };
  return clip(first) | clip(second) << 8 | clip(third) << 16 | clip(fourth) << 24;
}

inline void check_alignment(const void *address, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0) {
    std::fprintf(stderr, "a copy of %zu bytes from or to a place that is not aligned\n", bytes);
    std::abort();
  }
}

// ---- Copies; they are done at once ----

inline uint32_t shared_address(const void *shared) {
  return static_cast<uint32_t>(static_cast<const byte *>(shared) - emulated_shared);
}

inline void copy_async_16(uint32_t shared, const void *from) {
  check_alignment(emulated_shared + shared, 16);
  check_alignment(from, 16);
  std::memcpy(emulated_shared + shared, from, 16);
}

inline void copy_async_4(void *shared, const void *from) {
  check_alignment(shared, 4);
  check_alignment(from, 4);
  std::memcpy(shared, from, 4);
}

inline void copy_async_commit() {}
template <int Pending> inline void copy_async_wait() {}

// ---- Products, see device.cuh for what a lane has ----

struct matrix_sums {
  int32_t at[4];
};

enum class right_operand { is_unsigned, is_signed };

// `left` has two words for each 16 columns, `right` one.
void emulated_multiply(matrix_sums &sums, const uint32_t *left, const uint32_t *right, int steps,
                       bool is_signed);

struct left_words {
  uint32_t low, high, second_low, second_high;
};

left_words load_left_32(const byte *shared);

template <right_operand Right>
inline void multiply_16(matrix_sums &sums, uint32_t left_low, uint32_t left_high, uint32_t right) {
  const uint32_t left[2] = {left_low, left_high};
  emulated_multiply(sums, left, &right, 1, Right == right_operand::is_signed);
}

template <right_operand Right>
inline void multiply_32(matrix_sums &sums, uint32_t left_low, uint32_t left_high, uint32_t second_left_low,
                        uint32_t second_left_high, uint32_t right, uint32_t second_right) {
  const uint32_t left[4] = {left_low, left_high, second_left_low, second_left_high};
  const uint32_t both[2] = {right, second_right};
  emulated_multiply(sums, left, both, 2, Right == right_operand::is_signed);
}

} // namespace cvc_device

#endif

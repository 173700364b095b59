// What the GPU kernels use of the hardware beyond plain C++: wide and asynchronous copies, byte permutes,
// integer matrix products, saturating packs.
#ifndef CVC_DEVICE_CUH
#define CVC_DEVICE_CUH

#include <stdint.h>

#define CVC_DEVICE __device__ __forceinline__

namespace cvc_device {

using byte = unsigned char;

constexpr int warp_lanes = 32;
constexpr int block_threads = 256;
constexpr int block_warps = block_threads / warp_lanes;

// For launch bounds: so many blocks of a multiprocessor, or what it has room for.
constexpr int resident_blocks(int wanted) {
#if !defined(__CUDA_ARCH__)
  const int most = 8;
#elif __CUDA_ARCH__ < 800
  const int most = 4;
#elif __CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200
  const int most = 6;
#else
  const int most = 8;
#endif
  return wanted < most ? wanted : most;
}

CVC_DEVICE byte *dynamic_shared() {
  extern __shared__ __align__(128) unsigned char cvc_dynamic_shared_bytes[];
  return cvc_dynamic_shared_bytes;
}

// Addresses in parameter blocks are numbers, from which the compiler cannot tell that they are in global
// memory.
template <class T> CVC_DEVICE T *in_global(T *pointer) {
  __builtin_assume(__isGlobal(pointer));
  return pointer;
}

// Likewise for addresses in shared memory.
template <class T> CVC_DEVICE T *in_shared(T *pointer) {
  __builtin_assume(__isShared(pointer));
  return pointer;
}

// Starts to bring the 128 bytes around an address into the L2 cache.
CVC_DEVICE void prefetch_line(const void *from) { asm volatile("prefetch.global.L2 [%0];" : : "l"(from)); }

// Byte i of the result is byte `selector >> 4i & 15` of the eight bytes of low and high.
CVC_DEVICE uint32_t permute_bytes(uint32_t low, uint32_t high, uint32_t selector) {
  return __byte_perm(low, high, selector);
}

// Four sums, each clipped to 0..255, the first in the lowest byte.
CVC_DEVICE uint32_t pack_saturated(int32_t first, int32_t second, int32_t third, int32_t fourth) {
  uint32_t packed;
  asm("{ .reg .b32 high;\n"
      "  cvt.pack.sat.u8.s32.b32 high, %4, %3, 0;\n"
      "  cvt.pack.sat.u8.s32.b32 %0, %2, %1, high; }"
      : "=r"(packed)
      : "r"(first), "r"(second), "r"(third), "r"(fourth));
  return packed;
}

// ---- Copies into shared memory, which need not be waited for at once ----

CVC_DEVICE uint32_t shared_address(const void *shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
// 16 whole bytes, to an address that `shared_address` gave.
CVC_DEVICE void copy_async_16(uint32_t shared, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(shared), "l"(from) : "memory");
}

// Four whole bytes.
CVC_DEVICE void copy_async_4(void *shared, const void *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
               :
               : "r"(shared_address(shared)), "l"(from)
               : "memory");
}

CVC_DEVICE void copy_async_commit() { asm volatile("cp.async.commit_group;" : : : "memory"); }

// Waits until at most `Pending` of this thread's committed groups are under way.
template <int Pending> CVC_DEVICE void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" : : "n"(Pending) : "memory");
}
#else
CVC_DEVICE void copy_async_16(uint32_t shared, const void *from) {
  const uint4 held = *static_cast<const uint4 *>(from);
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
               :
               : "r"(shared), "r"(held.x), "r"(held.y), "r"(held.z), "r"(held.w)
               : "memory");
}
CVC_DEVICE void copy_async_4(void *shared, const void *from) {
  *static_cast<uint32_t *>(shared) = *static_cast<const uint32_t *>(from);
}
CVC_DEVICE void copy_async_commit() {}
template <int Pending> CVC_DEVICE void copy_async_wait() {}
#endif

// ---- Products of 16 x K and K x 8 bytes, exact in 32 bits ----
//
// Lane (g, t) = (lane / 4, lane % 4). A word of the left operand holds row g (the second word: row g + 8) at
// columns 4t..4t+3; one of the right operand, column g at rows 4t..4t+3. Sums: 0 is (row g, column 2t), 1 is
// (g, 2t + 1), 2 and 3 are those of row g + 8.

struct matrix_sums {
  int32_t at[4];
};

// The left operand is unsigned.
enum class right_operand { is_unsigned, is_signed };

template <right_operand Right>
CVC_DEVICE void multiply_8x16(int32_t &first, int32_t &second, uint32_t left, uint32_t right) {
#define CVC_MULTIPLY(type)                                                                                   \
  asm("mma.sync.aligned.m8n8k16.row.col.s32.u8." type ".s32 {%0, %1}, {%2}, {%3}, {%0, %1};"                 \
      : "+r"(first), "+r"(second)                                                                            \
      : "r"(left), "r"(right))
  if (Right == right_operand::is_signed) {
    CVC_MULTIPLY("s8");
  } else {
    CVC_MULTIPLY("u8");
  }
#undef CVC_MULTIPLY
}

// The left operand for K = 32 from shared memory: a lane names 16 bytes, lanes 0 to 7 columns 0 to 15 of rows
// 0 to 7, lanes 8 to 15 those of rows 8 to 15, lanes 16 to 31 columns 16 to 31 likewise.
struct left_words {
  uint32_t low, high, second_low, second_high;
};

CVC_DEVICE left_words load_left_32(const byte *shared) {
  left_words words;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.low), "=r"(words.high), "=r"(words.second_low), "=r"(words.second_high)
               : "r"(shared_address(shared))
               : "memory");
  return words;
}

// sums += left * right, K = 16.
template <right_operand Right>
CVC_DEVICE void multiply_16(matrix_sums &sums, uint32_t left_low, uint32_t left_high, uint32_t right) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define CVC_MULTIPLY(type)                                                                                   \
  asm("mma.sync.aligned.m16n8k16.row.col.s32.u8." type ".s32 "                                               \
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                                                  \
      : "+r"(sums.at[0]), "+r"(sums.at[1]), "+r"(sums.at[2]), "+r"(sums.at[3])                               \
      : "r"(left_low), "r"(left_high), "r"(right))
  if (Right == right_operand::is_signed) {
    CVC_MULTIPLY("s8");
  } else {
    CVC_MULTIPLY("u8");
  }
#undef CVC_MULTIPLY
#else
  multiply_8x16<Right>(sums.at[0], sums.at[1], left_low, right);
  multiply_8x16<Right>(sums.at[2], sums.at[3], left_high, right);
#endif
}

// sums += left * right, K = 32: twice K = 16, the second half of the columns behind the first.
template <right_operand Right>
CVC_DEVICE void multiply_32(matrix_sums &sums, uint32_t left_low, uint32_t left_high,
                            uint32_t second_left_low, uint32_t second_left_high, uint32_t right,
                            uint32_t second_right) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define CVC_MULTIPLY(type)                                                                                   \
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8." type ".s32 "                                               \
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                      \
      : "+r"(sums.at[0]), "+r"(sums.at[1]), "+r"(sums.at[2]), "+r"(sums.at[3])                               \
      : "r"(left_low), "r"(left_high), "r"(second_left_low), "r"(second_left_high), "r"(right),              \
        "r"(second_right))
  if (Right == right_operand::is_signed) {
    CVC_MULTIPLY("s8");
  } else {
    CVC_MULTIPLY("u8");
  }
#undef CVC_MULTIPLY
#else
  multiply_16<Right>(sums, left_low, left_high, right);
  multiply_16<Right>(sums, second_left_low, second_left_high, second_right);
#endif
}

} // namespace cvc_device

#endif

// The emulated GPU's threads: fibers that are switched by hand, since system calls for each switch would take
// minutes. x86-64 with the System V calling convention.
#include "emulator.h"

#include <vector>

emulated_index threadIdx, blockIdx, blockDim, gridDim;
unsigned char *emulated_shared;

// Saves the registers that a call keeps and the stack pointer at the first argument, and takes those at the
// second.
asm(R"(
.globl emulated_switch
emulated_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
extern "C" void emulated_switch(void **save, void *take);

namespace {

constexpr size_t stack_bytes = 128 << 10;
constexpr int warp = 32;

enum class state { ready, at_block_barrier, at_warp_barrier, done };

struct fiber {
  void *stack_pointer = nullptr;
  char *stack = nullptr;
  state now = state::done;
};

std::vector<fiber> fibers;
void *scheduler;
int running;
const std::function<void()> *kernel;

[[noreturn]] void fail(const char *what) {
  std::fprintf(stderr, "emulated GPU: %s in block %u\n", what, blockIdx.x);
  std::abort();
}

void leave(state next) {
  fibers[static_cast<size_t>(running)].now = next;
  emulated_switch(&fibers[static_cast<size_t>(running)].stack_pointer, scheduler);
}

void enter() {
  (*kernel)();
  leave(state::done);
  fail("a thread ran on behind its end");
}

void prepare(fiber &one) {
  if (one.stack == nullptr) {
    one.stack = static_cast<char *>(std::aligned_alloc(64, stack_bytes));
    if (one.stack == nullptr) {
      fail("no memory for a stack");
    }
  }
  void **top = reinterpret_cast<void **>(one.stack + stack_bytes - 64);
  *--top = nullptr; // where `enter` would return to
  *--top = reinterpret_cast<void *>(enter);
  for (int i = 0; i < 6; ++i) {
    *--top = nullptr;
  }
  one.stack_pointer = top;
  one.now = state::ready;
}

int count(int begin, int end, state wanted) {
  int found = 0;
  for (int i = begin; i < end; ++i) {
    found += fibers[static_cast<size_t>(i)].now == wanted;
  }
  return found;
}

bool change(int begin, int end, state from, state to) {
  bool any = false;
  for (int i = begin; i < end; ++i) {
    fiber &one = fibers[static_cast<size_t>(i)];
    if (one.now == from) {
      one.now = to;
      any = true;
    }
  }
  return any;
}

// Runs a warp until all of its threads wait for others.
bool run_warp(int begin) {
  const int end = begin + warp;
  bool any = false;
  for (bool progress = true; progress;) {
    progress = false;
    for (int i = begin; i < end; ++i) {
      if (fibers[static_cast<size_t>(i)].now == state::ready) {
        running = i;
        threadIdx.x = static_cast<unsigned>(i);
        emulated_switch(&scheduler, fibers[static_cast<size_t>(i)].stack_pointer);
        progress = any = true;
      }
    }
    const int waiting = count(begin, end, state::at_warp_barrier);
    if (waiting != 0) {
      if (waiting + count(begin, end, state::done) != warp) {
        fail("a barrier of a warp that not all of its threads reach");
      }
      progress = change(begin, end, state::at_warp_barrier, state::ready);
    }
  }
  return any;
}

void run_block(int threads) {
  for (int i = 0; i < threads; ++i) {
    prepare(fibers[static_cast<size_t>(i)]);
  }
  const int warps = threads / warp;
  while (count(0, threads, state::done) != threads) {
    bool any = false;
    const int first = std::rand() % warps;
    for (int i = 0; i < warps; ++i) {
      any = run_warp((i + first) % warps * warp) || any;
    }
    if (count(0, threads, state::at_block_barrier) == threads) {
      any = change(0, threads, state::at_block_barrier, state::ready);
    }
    if (!any) {
      fail("threads that wait for each other for ever");
    }
  }
}

struct exchanged {
  uint32_t left[4];
  uint32_t right[2];
};
exchanged lanes[1024];
const unsigned char *named[1024];

} // namespace

void emulated_block_barrier() { leave(state::at_block_barrier); }
void emulated_warp_barrier() { leave(state::at_warp_barrier); }

void emulated_launch(const std::function<void()> &body, int64_t blocks, int threads, size_t shared) {
  static std::vector<unsigned char> memory;
  memory.assign(shared + 256, 0xcd);
  emulated_shared =
      reinterpret_cast<unsigned char *>((reinterpret_cast<uintptr_t>(memory.data()) + 127) / 128 * 128);
  if (fibers.size() < static_cast<size_t>(threads)) {
    fibers.resize(static_cast<size_t>(threads));
  }
  kernel = &body;
  gridDim.x = static_cast<unsigned>(blocks);
  blockDim.x = static_cast<unsigned>(threads);
  for (int64_t block = 0; block < blocks; ++block) {
    blockIdx.x = static_cast<unsigned>(block);
    run_block(threads);
  }
  for (const unsigned char *at = emulated_shared + shared; at < memory.data() + memory.size(); ++at) {
    if (*at != 0xcd) {
      fail("a write behind the shared memory");
    }
  }
}

namespace cvc_device {

left_words load_left_32(const byte *shared) {
  check_alignment(shared, 16);
  const int first = static_cast<int>(threadIdx.x) / warp * warp, lane = static_cast<int>(threadIdx.x) % warp;
  named[first + lane] = shared;
  emulated_warp_barrier();
  left_words words;
  uint32_t *const to[4] = {&words.low, &words.high, &words.second_low, &words.second_high};
  for (int i = 0; i < 4; ++i) {
    std::memcpy(to[i], named[first + 8 * i + lane / 4] + 4 * (lane % 4), 4);
  }
  emulated_warp_barrier();
  return words;
}

void emulated_multiply(matrix_sums &sums, const uint32_t *left, const uint32_t *right, int steps,
                       bool is_signed) {
  const int first = static_cast<int>(threadIdx.x) / warp * warp, lane = static_cast<int>(threadIdx.x) % warp;
  exchanged &own = lanes[first + lane];
  std::memcpy(own.left, left, 8 * static_cast<size_t>(steps));
  std::memcpy(own.right, right, 4 * static_cast<size_t>(steps));
  emulated_warp_barrier();
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + (i >= 2 ? 8 : 0), column = 2 * (lane % 4) + i % 2;
    uint32_t sum = static_cast<uint32_t>(sums.at[i]);
    for (int k = 0; k < 16 * steps; ++k) {
      const int step = k / 16, word = k % 16 / 4, shift = 8 * (k % 4);
      const uint8_t a =
          static_cast<uint8_t>(lanes[first + row % 8 * 4 + word].left[2 * step + row / 8] >> shift);
      const uint8_t b = static_cast<uint8_t>(lanes[first + column * 4 + word].right[step] >> shift);
      sum += static_cast<uint32_t>(a * (is_signed ? static_cast<int8_t>(b) : static_cast<int>(b)));
    }
    sums.at[i] = static_cast<int32_t>(sum);
  }
  emulated_warp_barrier();
}

} // namespace cvc_device

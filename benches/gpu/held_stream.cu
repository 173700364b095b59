// Which calls that queue work on a held stream wait for it. Prints the first call that waited; the stream is
// let go by another thread after half a second.
//
//   nvcc held_stream.cu -o held_stream -lcuda && ./held_stream
//
// On an H200 (driver 580.159.04) copies of 64 KiB of pageable memory waited from the 63rd on, when 4 MiB of
// them were queued; launches and copies of 256 bytes did not, 400 of each. The same under initcheck, from the
// 61st on.
#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    const CUresult status = (call);                                                                          \
    if (status != CUDA_SUCCESS) {                                                                            \
      std::printf(#call " gave %d\n", static_cast<int>(status));                                             \
      std::exit(1);                                                                                          \
    }                                                                                                        \
  } while (0)

static const char text[] = ".version 6.4\n"
                           ".target sm_75\n"
                           ".address_size 64\n"
                           ".visible .entry write(.param .u64 to) {\n"
                           "  .reg .b64 %to;\n"
                           "  .reg .b32 %one;\n"
                           "  ld.param.u64 %to, [to];\n"
                           "  mov.u32 %one, 1;\n"
                           "  st.global.u32 [%to], %one;\n"
                           "  ret;\n"
                           "}\n";

static CUstream stream;
static CUdeviceptr word_there;
static volatile unsigned *word;

template <class Queue> static void look(const char *what, Queue queue) {
  using clock = std::chrono::steady_clock;
  constexpr int most = 400;
  int waited = 0;
  *word = 0;
  CHECK(cuStreamWaitValue32(stream, word_there, 1, CU_STREAM_WAIT_VALUE_EQ));
  std::thread opener([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    *word = 1;
  });
  for (int i = 1; i <= most && *word == 0; ++i) {
    const clock::time_point before = clock::now();
    CHECK(queue());
    const std::chrono::duration<double, std::milli> kept = clock::now() - before;
    if (waited == 0 && kept.count() > 100) {
      waited = i;
    }
  }
  opener.join();
  CHECK(cuStreamSynchronize(stream));
  if (waited != 0) {
    std::printf("%s: number %d waited\n", what, waited);
  } else {
    std::printf("%s: none of %d waited\n", what, most);
  }
}

int main() {
  static char bytes[1 << 16];
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction kernel;
  CUdeviceptr memory;
  void *page = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemHostAlloc(&page, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  CHECK(cuMemHostGetDevicePointer(&word_there, page, 0));
  word = static_cast<unsigned *>(page);
  CHECK(cuMemAlloc(&memory, sizeof bytes));
  CHECK(cuModuleLoadData(&module, text));
  CHECK(cuModuleGetFunction(&kernel, module, "write"));
  void *arguments[] = {&memory};
  const auto launch = [&] { return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr); };
  CHECK(launch());
  CHECK(cuStreamSynchronize(stream));
  look("launches", launch);
  look("copies of 64 KiB from the host",
       [&] { return cuMemcpyHtoDAsync(memory, bytes, sizeof bytes, stream); });
  look("copies of 256 bytes from the host", [&] { return cuMemcpyHtoDAsync(memory, bytes, 256, stream); });
  return 0;
}

// Why initcheck does not run tests that hold a stream: under it an asynchronous copy from the host to a
// stream that waits for a word of pinned memory does not come back before the wait is over, as it does
// without the tool, so that the thread that would write the word never gets there. Prints how long the copy
// kept its caller; the word is written after half a second by another thread.
//
//   nvcc initcheck_waits.cu -o initcheck_waits -lcuda && ./initcheck_waits
//   compute-sanitizer --tool initcheck ./initcheck_waits
#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <thread>

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    const CUresult status = (call);                                                                          \
    if (status != CUDA_SUCCESS) {                                                                            \
      std::printf(#call " gave %d\n", static_cast<int>(status));                                             \
      return 1;                                                                                              \
    }                                                                                                        \
  } while (0)

int main() {
  using clock = std::chrono::steady_clock;
  CUdevice device;
  CUcontext context;
  CUstream stream;
  CUdeviceptr word_there, memory;
  void *word = nullptr;
  char bytes[256] = {};
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemHostAlloc(&word, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  CHECK(cuMemHostGetDevicePointer(&word_there, word, 0));
  CHECK(cuMemAlloc(&memory, sizeof bytes));
  volatile unsigned *const flag = static_cast<unsigned *>(word);
  *flag = 0;
  CHECK(cuStreamWaitValue32(stream, word_there, 1, CU_STREAM_WAIT_VALUE_EQ));
  std::thread opener([flag] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    *flag = 1;
  });
  const clock::time_point before = clock::now();
  CHECK(cuMemcpyHtoDAsync(memory, bytes, sizeof bytes, stream));
  const std::chrono::duration<double, std::milli> kept = clock::now() - before;
  opener.join();
  CHECK(cuStreamSynchronize(stream));
  std::printf("the copy kept its caller for %.3f ms\n", kept.count());
  return 0;
}

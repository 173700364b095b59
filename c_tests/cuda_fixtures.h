// What tests of the CUDA backend alone need: kernels that fault or spin, streams of the test itself,
// contexts.
//
// The kernels are PTX, which the driver compiles when it is loaded.
#ifndef CVC_CUDA_FIXTURES_H
#define CVC_CUDA_FIXTURES_H

#include "fixtures.h"

#define CUDA_NOT_READY 600
#define CUDA_NON_BLOCKING 1u
enum capture_mode { CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED };

// A call of the driver that has to succeed for the test to mean anything.
#define DRIVER(call) driver_require((call) == 0, #call)

static const char kernels_text[] = ".version 6.4\n"
                                   ".target sm_75\n"
                                   ".address_size 64\n"
                                   // An address that is nobody's.
                                   ".visible .entry store_nowhere() {\n"
                                   "  .reg .b64 %address;\n"
                                   "  .reg .b32 %value;\n"
                                   "  mov.u64 %address, 8;\n"
                                   "  mov.u32 %value, 1;\n"
                                   "  st.global.u32 [%address], %value;\n"
                                   "  ret;\n"
                                   "}\n"
                                   ".visible .entry stop() {\n"
                                   "  trap;\n"
                                   "  ret;\n"
                                   "}\n"
                                   // Runs until the word is set, and no longer than the nanoseconds.
                                   ".visible .entry spin(.param .u64 word, .param .u64 nanoseconds) {\n"
                                   "  .reg .b64 %word, %most, %start, %now;\n"
                                   "  .reg .b32 %value;\n"
                                   "  .reg .pred %done;\n"
                                   "  ld.param.u64 %word, [word];\n"
                                   "  ld.param.u64 %most, [nanoseconds];\n"
                                   "  mov.u64 %start, %globaltimer;\n"
                                   "again:\n"
                                   "  ld.volatile.global.u32 %value, [%word];\n"
                                   "  setp.ne.u32 %done, %value, 0;\n"
                                   "  @%done bra end;\n"
                                   "  mov.u64 %now, %globaltimer;\n"
                                   "  sub.u64 %now, %now, %start;\n"
                                   "  setp.lt.u64 %done, %now, %most;\n"
                                   "  @%done bra again;\n"
                                   "end:\n"
                                   "  ret;\n"
                                   "}\n";

// One of the kernels above, in the current context.
static inline void *load_kernel(struct driver *cuda, const char *name) {
  void *module = NULL, *function = NULL;
  DRIVER(cuda->module_load(&module, kernels_text));
  DRIVER(cuda->module_function(&function, module, name));
  return function;
}

static inline void launch_one_thread(struct driver *cuda, void *function, cvc_stream_t stream,
                                     void **arguments) {
  DRIVER(cuda->launch(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

// Work on `stream` that ends when the word that this gives is set, or by itself after the nanoseconds. The
// first call loads the kernel, which may wait for running work.
static inline uint32_t *spin(struct driver *cuda, cvc_stream_t stream, uint64_t nanoseconds) {
  static void *function;
  if (!function)
    function = load_kernel(cuda, "spin");
  driver_require(cuda->words_used < DRIVER_WORDS, "a word");
  uint32_t *word = &cuda->words[cuda->words_used++];
  uint64_t address = (uint64_t)(uintptr_t)word;
  void *arguments[] = {&address, &nanoseconds};
  launch_one_thread(cuda, function, stream, arguments);
  return word;
}

// A stream that the library did not make, in the current context.
static inline cvc_stream_t foreign_stream(struct driver *cuda, unsigned flags) {
  cvc_stream_t stream = NULL;
  DRIVER(cuda->stream_create(&stream, flags));
  return stream;
}

static inline void *current_context(struct driver *cuda) {
  void *context = NULL;
  DRIVER(cuda->context_get_current(&context));
  return context;
}

// A tensor wrapped around the memory: 64 bytes, on the device.
static inline cvc_status_t wrap_bytes(void *memory, int32_t device, cvc_tensor_t *tensor) {
  cvc_tensor_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  data.device = device;
  data.rank = 1;
  data.shape[0] = 64;
  data.strides[0] = 1;
  data.dtype = CVC_DTYPE_U8;
  strcpy(data.layout, "W");
  data.data = memory;
  return cvc_tensor_wrap(check_default_cache(), &data, NULL, NULL, CVC_STREAM_NONE, tensor);
}

#endif

// What most tests need: descriptions, streams, latches and foreign memory, on the host backend and on CUDA
// alike.
//
// On CUDA a latch is a wait of the stream for a word of pinned memory, and foreign memory is managed, so that
// the host may look at it. The driver is loaded at run time: a program built without CUDA runs on both.
#ifndef CVC_FIXTURES_H
#define CVC_FIXTURES_H

#include "check.h"

#include <dlfcn.h>

static inline int on_host(void) {
  cvc_backend_t backend = 0;
  REQUIRE_OK(cvc_backend(&backend));
  return backend == CVC_BACKEND_HOST;
}

// Parts of tests that need a second device are left out where there is one alone.
static inline int two_devices(void) {
  int32_t count = 0;
  REQUIRE_OK(cvc_device_count(&count));
  return count >= 2;
}

struct driver {
  int (*init)(unsigned);
  int (*device_get)(int *, int);
  int (*primary_context_retain)(void **, int);
  int (*context_set_current)(void *);
  int (*host_alloc)(void **, size_t, unsigned);
  int (*host_free)(void *);
  int (*managed_alloc)(uint64_t *, size_t, unsigned);
  int (*memory_free)(uint64_t);
  int (*copy_to_host)(void *, uint64_t, size_t);
  int (*stream_wait_value)(cvc_stream_t, uint64_t, uint32_t, unsigned);
  int (*memory_alloc)(uint64_t *, size_t);
  int (*host_register)(void *, size_t, unsigned);
  int (*host_unregister)(void *);
  int (*memset_async)(uint64_t, unsigned char, size_t, cvc_stream_t);
  int (*context_create)(void **, unsigned, int);
  int (*context_destroy)(void *);
  int (*context_get_current)(void **);
  int (*context_synchronize)(void);
  int (*stream_create)(cvc_stream_t *, unsigned);
  int (*stream_destroy)(cvc_stream_t);
  int (*stream_query)(cvc_stream_t);
  int (*stream_synchronize)(cvc_stream_t);
  int (*capture_begin)(cvc_stream_t, int);
  int (*capture_end)(cvc_stream_t, void **);
  int (*capture_state)(cvc_stream_t, int *);
  int (*graph_instantiate)(void **, void *, unsigned long long);
  int (*graph_launch)(void *, cvc_stream_t);
  int (*graph_exec_destroy)(void *);
  int (*graph_destroy)(void *);
  int (*module_load)(void **, const void *);
  int (*module_function)(void **, void *, const char *);
  int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cvc_stream_t,
                void **, void **);
  void *context;
  uint32_t *words;
  unsigned words_used;
};

#define DRIVER_WORDS 1024u

static inline void driver_require(int good, const char *what) {
  if (!good) {
    fprintf(stderr, "the CUDA driver: %s failed\n", what);
    exit(1);
  }
}

// The driver, with the primary context of device 0 current in this thread.
static inline struct driver *cuda_driver(void) {
  static struct driver loaded;
  if (!loaded.context) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    driver_require(library != NULL, "dlopen");
    const struct {
      const char *name;
      void *place;
    } functions[] = {
        {"cuInit", &loaded.init},
        {"cuDeviceGet", &loaded.device_get},
        {"cuDevicePrimaryCtxRetain", &loaded.primary_context_retain},
        {"cuCtxSetCurrent", &loaded.context_set_current},
        {"cuMemHostAlloc", &loaded.host_alloc},
        {"cuMemFreeHost", &loaded.host_free},
        {"cuMemAllocManaged", &loaded.managed_alloc},
        {"cuMemFree_v2", &loaded.memory_free},
        {"cuMemcpyDtoH_v2", &loaded.copy_to_host},
        {"cuStreamWaitValue32_v2", &loaded.stream_wait_value},
        {"cuMemAlloc_v2", &loaded.memory_alloc},
        {"cuMemHostRegister_v2", &loaded.host_register},
        {"cuMemHostUnregister", &loaded.host_unregister},
        {"cuMemsetD8Async", &loaded.memset_async},
        {"cuCtxCreate_v2", &loaded.context_create},
        {"cuCtxDestroy_v2", &loaded.context_destroy},
        {"cuCtxGetCurrent", &loaded.context_get_current},
        {"cuCtxSynchronize", &loaded.context_synchronize},
        {"cuStreamCreate", &loaded.stream_create},
        {"cuStreamDestroy_v2", &loaded.stream_destroy},
        {"cuStreamQuery", &loaded.stream_query},
        {"cuStreamSynchronize", &loaded.stream_synchronize},
        {"cuStreamBeginCapture_v2", &loaded.capture_begin},
        {"cuStreamEndCapture", &loaded.capture_end},
        {"cuStreamIsCapturing", &loaded.capture_state},
        {"cuGraphInstantiateWithFlags", &loaded.graph_instantiate},
        {"cuGraphLaunch", &loaded.graph_launch},
        {"cuGraphExecDestroy", &loaded.graph_exec_destroy},
        {"cuGraphDestroy", &loaded.graph_destroy},
        {"cuModuleLoadData", &loaded.module_load},
        {"cuModuleGetFunction", &loaded.module_function},
        {"cuLaunchKernel", &loaded.launch},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
      void *address = dlsym(library, functions[i].name);
      driver_require(address != NULL, functions[i].name);
      memcpy(functions[i].place, &address, sizeof address);
    }
    int device = 0;
    driver_require(loaded.init(0) == 0, "cuInit");
    driver_require(loaded.device_get(&device, 0) == 0, "cuDeviceGet");
    driver_require(loaded.primary_context_retain(&loaded.context, device) == 0, "cuDevicePrimaryCtxRetain");
    driver_require(loaded.context_set_current(loaded.context) == 0, "cuCtxSetCurrent");
    void *words = NULL;
    driver_require(loaded.host_alloc(&words, DRIVER_WORDS * sizeof(uint32_t), 3u /* portable, mapped */) == 0,
                   "cuMemHostAlloc");
    memset(words, 0, DRIVER_WORDS * sizeof(uint32_t));
    loaded.words = (uint32_t *)words;
  }
  driver_require(loaded.context_set_current(loaded.context) == 0, "cuCtxSetCurrent");
  return &loaded;
}

// Holds what is queued on `stream` from now on until let_go(): work is pending for as long as a test wants.
static inline uint64_t hold(cvc_stream_t stream) {
  uint64_t latch = 0;
  if (on_host()) {
    REQUIRE_OK(cvc_host_latch_create(stream, &latch));
    return latch;
  }
  struct driver *cuda = cuda_driver();
  driver_require(cuda->words_used < DRIVER_WORDS, "a latch");
  uint32_t *word = &cuda->words[cuda->words_used++];
  latch = (uint64_t)(uintptr_t)word;
  driver_require(cuda->stream_wait_value(stream, latch, 1, 0u /* at least */) == 0, "cuStreamWaitValue32");
  return latch;
}

static inline void let_go(uint64_t latch) {
  if (on_host())
    REQUIRE_OK(cvc_host_latch_open(latch));
  else
    __atomic_store_n((uint32_t *)(uintptr_t)latch, 1u, __ATOMIC_RELEASE);
}

// Host memory for copies that are queued behind a latch: from pageable memory a driver may wait in the call.
static inline unsigned char *pinned_memory(size_t bytes) {
  if (on_host())
    return (unsigned char *)calloc(1, bytes);
  void *memory = NULL;
  driver_require(cuda_driver()->host_alloc(&memory, bytes, 1u /* portable */) == 0, "cuMemHostAlloc");
  memset(memory, 0, bytes);
  return (unsigned char *)memory;
}

static inline void pinned_memory_free(unsigned char *memory) {
  if (on_host())
    free(memory);
  else
    driver_require(cuda_driver()->host_free(memory) == 0, "cuMemFreeHost");
}

// Memory that is not the library's, that the device can use and the host can read.
static inline unsigned char *foreign_memory(size_t bytes) {
  if (on_host())
    return (unsigned char *)calloc(1, bytes);
  uint64_t address = 0;
  driver_require(cuda_driver()->managed_alloc(&address, bytes, 1u /* global */) == 0, "cuMemAllocManaged");
  memset((void *)(uintptr_t)address, 0, bytes);
  return (unsigned char *)(uintptr_t)address;
}

static inline void foreign_memory_free(unsigned char *memory) {
  if (on_host())
    free(memory);
  else
    driver_require(cuda_driver()->memory_free((uint64_t)(uintptr_t)memory) == 0, "cuMemFree");
}

static inline void read_device(void *to, const void *from, size_t bytes) {
  if (on_host())
    memcpy(to, from, bytes);
  else
    driver_require(cuda_driver()->copy_to_host(to, (uint64_t)(uintptr_t)from, bytes) == 0, "cuMemcpyDtoH");
}

// Descriptions that most tests need.
static inline cvc_tensor_desc_t tensor_desc(cvc_dtype_t dtype, const char *layout, int32_t rank,
                                            const int64_t *shape) {
  cvc_tensor_desc_t desc;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.device = CVC_DEVICE_CURRENT;
  desc.rank = rank;
  for (int32_t i = 0; i < rank; ++i)
    desc.shape[i] = shape[i];
  desc.dtype = dtype;
  strncpy(desc.layout, layout, sizeof desc.layout - 1);
  return desc;
}

// A tensor NHWC of the default cache.
static inline cvc_tensor_t nhwc(int64_t n, int64_t h, int64_t w, int64_t c, cvc_dtype_t dtype,
                                cvc_stream_t stream) {
  int64_t shape[4] = {n, h, w, c};
  cvc_tensor_desc_t desc = tensor_desc(dtype, "NHWC", 4, shape);
  cvc_tensor_t tensor = NULL;
  REQUIRE_OK(cvc_tensor_create(check_default_cache(), &desc, stream, &tensor));
  return tensor;
}

static inline cvc_tensor_data_t tensor_data(cvc_tensor_t tensor) {
  cvc_tensor_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  REQUIRE_OK(cvc_tensor_get_data(tensor, &data));
  return data;
}

static inline cvc_image_t image_of(int32_t width, int32_t height, cvc_format_t format, cvc_stream_t stream) {
  cvc_image_desc_t desc;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.device = CVC_DEVICE_CURRENT;
  desc.format = format;
  desc.width = width;
  desc.height = height;
  cvc_image_t image = NULL;
  REQUIRE_OK(cvc_image_create(check_default_cache(), &desc, stream, &image));
  return image;
}

static inline cvc_image_data_t image_data(cvc_image_t image) {
  cvc_image_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  REQUIRE_OK(cvc_image_get_data(image, &data));
  return data;
}

static inline cvc_stream_t new_stream(void) {
  cvc_stream_t stream = NULL;
  REQUIRE_OK(cvc_stream_create(CVC_DEVICE_CURRENT, 0, &stream));
  return stream;
}

// Copies packed host memory in and waits.
static inline void put(cvc_stream_t stream, cvc_tensor_t tensor, const void *values) {
  REQUIRE_OK(cvc_upload(stream, values, NULL, tensor));
  REQUIRE_OK(cvc_stream_synchronize(stream, -1));
}

// Copies to packed host memory and waits.
static inline void take(cvc_stream_t stream, cvc_tensor_t tensor, void *values) {
  REQUIRE_OK(cvc_download(stream, tensor, values, NULL));
  REQUIRE_OK(cvc_stream_synchronize(stream, -1));
}

// Bytes that look like noise and are the same in every run.
static inline void fill_noise(void *memory, size_t length, uint32_t seed) {
  unsigned char *bytes = (unsigned char *)memory;
  uint32_t state = seed * 2654435761u + 1u;
  for (size_t i = 0; i < length; ++i) {
    state = state * 1664525u + 1013904223u;
    bytes[i] = (unsigned char)(state >> 24);
  }
}

#endif

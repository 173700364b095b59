// Streams, events and kernels of the fake driver.
#include "fake_libcuda.h"

#include <stdlib.h>
#include <string.h>

struct library {
  int live;
};
struct kernel {
  const char *name;
  size_t params;
  int loaded[DEVICES];
  int shared[DEVICES];
};
struct function {
  struct kernel *kernel;
  int device;
};
static struct stream *free_streams;
static uint64_t next_stream_id = 100;
static double clock_ms;
static struct kernel kernels[] = {{.name = "fake_store_u32", .params = 16},
                                  {.name = "fake_wide", .params = 32}};
static struct function functions[2][DEVICES];
static unsigned last_launch[7];

// ---- Streams ----

static struct stream legacy[DEVICES], per_thread[DEVICES];

struct stream *stream_of(struct stream *handle) {
  if ((uintptr_t)handle <= 2) {
    struct stream *stream = (uintptr_t)handle == 2 ? &per_thread[current->device] : &legacy[current->device];
    stream->context = current;
    return stream;
  }
  if (!handle->live)
    misuse("use of a destroyed stream");
  return handle->context == current ? handle : NULL;
}
struct stream *new_stream(struct context *context, int blocking) {
  pthread_mutex_lock(&mutex);
  // As the real driver does: a freed handle is given out again at once.
  struct stream *stream = free_streams;
  if (stream)
    free_streams = stream->next_free;
  else
    stream = calloc(1, sizeof *stream);
  *stream = (struct stream){.live = 1, .context = context, .id = next_stream_id++, .blocking = blocking};
  ++*setting("streams");
  pthread_mutex_unlock(&mutex);
  return stream;
}
unsigned cuStreamCreate(struct stream **handle, unsigned flags) {
  NEED_CONTEXT();
  *handle = new_stream(current, flags == 0);
  return SUCCESS;
}
unsigned cuStreamDestroy_v2(struct stream *handle) {
  STREAM(handle);
  pthread_mutex_lock(&mutex);
  add_gates(&current->work, &stream->gates);
  stream->live = 0;
  stream->next_free = free_streams;
  free_streams = stream;
  --*setting("streams");
  pthread_mutex_unlock(&mutex);
  return SUCCESS;
}
// A capture breaks when somebody asks about its own stream, in every mode.
static unsigned refuse_capture(struct stream *stream) {
  if (!stream->capturing)
    return SUCCESS;
  *setting("broken") = 1;
  return CAPTURE_UNSUPPORTED;
}
unsigned cuStreamGetId(struct stream *handle, uint64_t *id) {
  ENTER();
  if ((uintptr_t)handle <= 2)
    misuse("the backend numbers default streams itself");
  if (refuse_capture(handle))
    return CAPTURE_UNSUPPORTED;
  *id = handle->id;
  return SUCCESS;
}
unsigned cuStreamGetCtx(struct stream *handle, struct context **context) {
  NEED_CONTEXT();
  *context = handle->context;
  return SUCCESS;
}
unsigned cuStreamQuery(struct stream *handle) {
  STREAM(handle);
  UNSAFE_IN_CAPTURE();
  if (refuse_capture(stream))
    return CAPTURE_UNSUPPORTED;
  return done(&stream->gates) ? SUCCESS : NOT_READY;
}
unsigned cuStreamSynchronize(struct stream *handle) {
  STREAM(handle);
  UNSAFE_IN_CAPTURE();
  if (refuse_capture(stream))
    return CAPTURE_UNSUPPORTED;
  wait_for(&stream->gates);
  return current->fault;
}
unsigned cuStreamIsCapturing(struct stream *handle, unsigned *state) {
  STREAM(handle);
  *state = (unsigned)stream->capturing;
  if (stream == &legacy[current->device] && *setting("captures") > 1)
    return CAPTURE_IMPLICIT;
  return SUCCESS;
}

unsigned cuStreamGetCaptureInfo_v2(struct stream *handle, unsigned *state, uint64_t *number, void *graph,
                                   void *dependencies, size_t *dependency_count) {
  if (graph || dependencies || dependency_count)
    misuse("the backend asks for the capture's number alone");
  unsigned code = cuStreamIsCapturing(handle, state);
  if (!code && *state)
    *number = stream_of(handle)->capture;
  return code;
}

// ---- Events ----

static struct event *event_of(struct event *event) {
  if (!event->live)
    misuse("use of a destroyed event");
  return event;
}
unsigned cuEventCreate(struct event **event, unsigned flags) {
  NEED_CONTEXT();
  *event = calloc(1, sizeof **event);
  **event = (struct event){.live = 1, .context = current, .timing = flags == 0};
  ++*setting("events");
  return SUCCESS;
}
unsigned cuEventDestroy_v2(struct event *event) {
  NEED_CONTEXT();
  event_of(event)->live = 0;
  --*setting("events");
  return SUCCESS;
}
unsigned cuEventRecord(struct event *event, struct stream *handle) {
  STREAM(handle);
  if (event_of(event)->context != current)
    return INVALID_HANDLE;
  event->gates.count = 0;
  add_gates(&event->gates, &stream->gates);
  event->records++;
  event->at = clock_ms += 0.5;
  return SUCCESS;
}
unsigned cuEventQuery(struct event *event) {
  NEED_CONTEXT();
  UNSAFE_IN_CAPTURE();
  return done(&event_of(event)->gates) ? SUCCESS : NOT_READY;
}
unsigned cuEventSynchronize(struct event *event) {
  NEED_CONTEXT();
  UNSAFE_IN_CAPTURE();
  wait_for(&event_of(event)->gates);
  return current->fault;
}
unsigned cuEventElapsedTime(float *milliseconds, struct event *start, struct event *end) {
  NEED_CONTEXT();
  if (!event_of(start)->timing || !event_of(end)->timing || !start->records || !end->records)
    return INVALID_HANDLE;
  if (!done(&start->gates) || !done(&end->gates))
    return NOT_READY;
  *milliseconds = (float)(end->at - start->at);
  return SUCCESS;
}
unsigned cuStreamWaitEvent(struct stream *handle, struct event *event, unsigned flags) {
  (void)flags;
  STREAM(handle);
  if (!done(&event_of(event)->gates))
    add_gates(&stream->gates, &event->gates);
  return SUCCESS;
}

// ---- Kernels ----

#define KERNELS (sizeof kernels / sizeof *kernels)

#ifndef FAKE_CUDA_11
unsigned cuLibraryLoadData(struct library **library, const char *image, void *options, void *values,
                           unsigned count, void *library_options, void *library_values,
                           unsigned library_count) {
  (void)options, (void)values, (void)library_options, (void)library_values;
  NEED_CONTEXT();
  UNSAFE_IN_CAPTURE();
  if (count || library_count || (uintptr_t)image % 16)
    return INVALID_VALUE;
  if (memcmp(image, "FAKE", 4))
    return INVALID_IMAGE;
  *library = calloc(1, sizeof **library);
  (*library)->live = 1;
  ++*setting("libraries");
  return SUCCESS;
}
#endif
unsigned cuLibraryUnload(struct library *library) {
  ENTER();
  if (!library->live)
    misuse("a library was unloaded twice");
  library->live = 0;
  --*setting("libraries");
  return SUCCESS;
}
unsigned cuLibraryGetKernel(struct kernel **kernel, struct library *library, const char *name) {
  (void)library;
  ENTER();
  for (size_t i = 0; i < KERNELS; i++)
    if (!strcmp(kernels[i].name, name)) {
      *kernel = &kernels[i];
      return SUCCESS;
    }
  return NOT_FOUND;
}
unsigned cuKernelGetFunction(struct function **function, struct kernel *kernel) {
  NEED_CONTEXT();
  *function = &functions[kernel - kernels][current->device];
  **function = (struct function){.kernel = kernel, .device = current->device};
  return SUCCESS;
}
unsigned cuFuncGetAttribute(int *value, unsigned attribute, struct function *function) {
  (void)attribute;
  NEED_CONTEXT();
  function->kernel->loaded[function->device] = 1;
  *value = 0;
  return SUCCESS;
}
unsigned cuFuncSetAttribute(struct function *function, unsigned attribute, int value) {
  NEED_CONTEXT();
  if (attribute != 8 || value > 227 << 10)
    return INVALID_VALUE;
  function->kernel->shared[function->device] = value;
  return SUCCESS;
}
unsigned cuLaunchKernel(struct function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        struct stream *handle, void **params, void **extra) {
  STREAM(handle);
  if (function->device != current->device || extra || !grid_x || !grid_y || !grid_z || !block_x || !block_y ||
      !block_z)
    return INVALID_VALUE;
  if (shared > DEFAULT_SHARED && shared > (unsigned)function->kernel->shared[current->device])
    return INVALID_VALUE;
  if (!function->kernel->loaded[current->device])
    ++*setting("lazy_loads");
  unsigned launch[7] = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared};
  memcpy(last_launch, launch, sizeof launch);
  // Both kernels store their second word at their first.
  struct {
    uint64_t address, value;
  } block;
  memcpy(&block, params[0], sizeof block);
  if (on_device(block.address, 4))
    *(uint32_t *)block.address = (uint32_t)block.value;
  return SUCCESS;
}

// ---- What later versions brought ----

#ifndef FAKE_CUDA_12_0
unsigned cuCtxRecordEvent(struct context *context, struct event *event) {
  NEED_CONTEXT();
  if (*setting("captures")) {
    *setting("broken") = 1;
    return CAPTURE_UNSUPPORTED;
  }
  event->gates.count = 0;
  add_gates(&event->gates, &context->work);
  return SUCCESS;
}
unsigned cuEventElapsedTime_v2(float *milliseconds, struct event *start, struct event *end) {
  ENTER();
  return cuEventElapsedTime(milliseconds, start, end);
}
unsigned cuStreamWaitValue32_v2(struct stream *handle, uint64_t word, uint32_t value, unsigned flags) {
  STREAM(handle);
  if (flags || word % 4)
    return INVALID_VALUE;
  // A full queue takes no more before something leaves it. One that never does is given up.
  for (int i = 0; *setting("full_queues") && !done(&stream->gates); i++) {
    if (i == 40000)
      return OUT_OF_MEMORY;
    usleep(50);
  }
  struct gates one = {.count = 1, .gate = {{(const volatile uint32_t *)word, value}}};
  pthread_mutex_lock(&mutex);
  add_gates(&stream->gates, &one);
  done(&current->work);
  add_gates(&current->work, &one);
  pthread_mutex_unlock(&mutex);
  return SUCCESS;
}
unsigned cuLibraryGetKernelCount(unsigned *count, struct library *library) {
  (void)library;
  ENTER();
  *count = KERNELS;
  return SUCCESS;
}
unsigned cuLibraryEnumerateKernels(struct kernel **handles, unsigned count, struct library *library) {
  (void)library;
  ENTER();
  for (unsigned i = 0; i < count; i++)
    handles[i] = &kernels[i];
  return SUCCESS;
}
unsigned cuKernelGetName(const char **name, struct kernel *kernel) {
  ENTER();
  *name = kernel->name;
  return SUCCESS;
}
unsigned cuFuncLoad(struct function *function) {
  NEED_CONTEXT();
  UNSAFE_IN_CAPTURE();
  function->kernel->loaded[function->device] = 1;
  return SUCCESS;
}
unsigned cuFuncGetParamInfo(struct function *function, size_t index, size_t *offset, size_t *size) {
  ENTER();
  if (index)
    return INVALID_VALUE;
  *offset = 0;
  *size = function->kernel->params;
  return SUCCESS;
}
#endif

// ---- For tests ----

void fake_capture(struct stream *stream, int on) {
  static uint64_t captures;
  stream->capture = ++captures;
  stream->capturing = on;
  *setting("captures") = on ? 1 + stream->blocking : 0;
}
// Grid, block and shared memory of the last launch: seven numbers.
void fake_last_launch(unsigned *numbers) { memcpy(numbers, last_launch, sizeof last_launch); }

// A CUDA driver made of ordinary memory, for tests of the CUDA backend on machines without a GPU.
//
// It has the entry points that the backend's table names. Memory is real, so that copies and fills can be
// checked; work runs at once, but counts as done only when every latch before it on its stream is open.
// Misuse that crashes the real driver aborts here. Tests steer it through the fake_* functions. Each loaded
// copy has state of its own.
//
// FAKE_CUDA_11 leaves out a required function, FAKE_CUDA_12_0 all optional ones.
//
// This part: devices, contexts, settings and injected failures.
#include "fake_libcuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rule {
  char function[64];
  long skip;
  long count;
  unsigned code;
};
struct counter {
  char function[64];
  long calls;
};
struct setting {
  const char *name;
  long value;
};

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
__thread struct context *current;
__thread unsigned capture_mode;
static struct context primary[DEVICES];
static struct context foreign[DEVICES];
static struct rule rules[32];
static struct counter counters[128];

// What tests may set, and what they may read back.
static struct setting settings[] = {
    {"devices", 2},        {"version", 13000}, {"memory", 1l << 30}, {"max_pitch", 2147483647},
    {"virtual_memory", 1}, {"streams", 0},     {"events", 0},        {"libraries", 0},
    {"physical", 0},       {"reserved", 0},    {"captures", 0},      {"broken", 0},
    {"lazy_loads", 0},     {"rows", 0},        {"waits", 0},         {"full_queues", 0},
};

long *setting(const char *name) {
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
    if (!strcmp(settings[i].name, name))
      return &settings[i].value;
  fprintf(stderr, "fake driver: no setting named %s\n", name);
  abort();
}

void misuse(const char *what) {
  fprintf(stderr, "fake driver: %s\n", what);
  abort();
}

unsigned enter(const char *function) {
  unsigned code = SUCCESS;
  pthread_mutex_lock(&mutex);
  size_t i = 0;
  while (counters[i].function[0] && strcmp(counters[i].function, function))
    i++;
  snprintf(counters[i].function, sizeof counters[i].function, "%s", function);
  counters[i].calls++;
  for (i = 0; i < sizeof rules / sizeof *rules; i++) {
    struct rule *rule = &rules[i];
    if (!rule->count || strcmp(rule->function, function))
      continue;
    if (rule->skip > 0) {
      rule->skip--;
      continue;
    }
    if (rule->count > 0)
      rule->count--;
    code = rule->code;
    break;
  }
  pthread_mutex_unlock(&mutex);
  return code;
}

int done(struct gates *gates) {
  for (int i = 0; i < gates->count; i++)
    if ((int32_t)(*gates->gate[i].word - gates->gate[i].value) < 0)
      return 0;
  gates->count = 0;
  return 1;
}

void add_gates(struct gates *to, const struct gates *from) {
  for (int i = 0; i < from->count; i++) {
    if (to->count == GATES)
      misuse("too many latches on one stream");
    to->gate[to->count++] = from->gate[i];
  }
}

void wait_for(struct gates *gates) {
  ++*setting("waits");
  while (!done(gates))
    usleep(50);
}

// ---- Start ----

unsigned cuInit(unsigned flags) {
  (void)flags;
  ENTER();
  // For tests in a process of their own, which ask before they can steer.
  const char *code = getenv("FAKE_CUDA_INIT");
  return code ? (unsigned)atoi(code) : SUCCESS;
}
unsigned cuDriverGetVersion(int *version) {
  ENTER();
  *version = (int)*setting("version");
  return SUCCESS;
}
static const char *error_name(unsigned code) {
  switch (code) {
  case 1:
    return "CUDA_ERROR_INVALID_VALUE";
  case 2:
    return "CUDA_ERROR_OUT_OF_MEMORY";
  case 100:
    return "CUDA_ERROR_NO_DEVICE";
  case 209:
    return "CUDA_ERROR_NO_BINARY_FOR_GPU";
  case 400:
    return "CUDA_ERROR_INVALID_HANDLE";
  case 700:
    return "CUDA_ERROR_ILLEGAL_ADDRESS";
  case 719:
    return "CUDA_ERROR_LAUNCH_FAILED";
  default:
    return NULL;
  }
}
unsigned cuGetErrorName(unsigned code, const char **text) {
  *text = error_name(code);
  return *text ? SUCCESS : INVALID_VALUE;
}
unsigned cuGetErrorString(unsigned code, const char **text) {
  *text = error_name(code) ? "as the fake driver was told" : NULL;
  return *text ? SUCCESS : INVALID_VALUE;
}

// ---- Devices and contexts ----

unsigned cuDeviceGetCount(int *count) {
  ENTER();
  *count = (int)*setting("devices");
  return SUCCESS;
}
unsigned cuDeviceGet(int *device, int ordinal) {
  ENTER();
  if (ordinal < 0 || ordinal >= *setting("devices"))
    return INVALID_DEVICE;
  *device = ordinal;
  return SUCCESS;
}
unsigned cuDeviceGetName(char *name, int length, int device) {
  ENTER();
  snprintf(name, (size_t)length, "Fake GPU %d", device);
  return SUCCESS;
}
unsigned cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  ENTER();
  *bytes = (size_t)*setting("memory");
  return SUCCESS;
}
unsigned cuDeviceGetAttribute(int *value, unsigned attribute, int device) {
  (void)device;
  ENTER();
  switch (attribute) {
  case 11:
    *value = (int)*setting("max_pitch");
    return SUCCESS;
  case 75:
    *value = 9;
    return SUCCESS;
  case 76:
    *value = 0;
    return SUCCESS;
  case 81: // shared memory of a multiprocessor, and the most of a block
    *value = 233472;
    return SUCCESS;
  case 97:
    *value = 232448;
    return SUCCESS;
  case 102:
    *value = (int)*setting("virtual_memory");
    return SUCCESS;
  default:
    return INVALID_VALUE;
  }
}
unsigned cuDevicePrimaryCtxRetain(struct context **context, int device) {
  ENTER();
  UNSAFE_IN_CAPTURE();
  primary[device].device = device;
  primary[device].active = 1;
  *context = &primary[device];
  return SUCCESS;
}
unsigned cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  ENTER();
  *flags = 0;
  *active = primary[device].active;
  return SUCCESS;
}
unsigned cuCtxGetCurrent(struct context **context) {
  ENTER();
  *context = current;
  return SUCCESS;
}
unsigned cuCtxSetCurrent(struct context *context) {
  ENTER();
  current = context;
  return SUCCESS;
}
unsigned cuCtxGetDevice(int *device) {
  ENTER();
  if (!current)
    return INVALID_CONTEXT;
  *device = current->device;
  return SUCCESS;
}
unsigned cuThreadExchangeStreamCaptureMode(unsigned *mode) {
  ENTER();
  unsigned before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return SUCCESS;
}
unsigned cuCtxSynchronize(void) {
  NEED_CONTEXT();
  if (*setting("captures")) {
    *setting("broken") = 1;
    return CAPTURE_UNSUPPORTED;
  }
  wait_for(&current->work);
  return SUCCESS;
}

// ---- For tests ----

// After `skip` calls of `function`, the next `count` of them give `code`; a negative count means all.
void fake_fail(const char *function, long skip, long count, unsigned code) {
  pthread_mutex_lock(&mutex);
  size_t i = 0;
  while (rules[i].count)
    if (++i == sizeof rules / sizeof *rules)
      misuse("too many rules");
  rules[i] = (struct rule){.skip = skip, .count = count, .code = code};
  snprintf(rules[i].function, sizeof rules[i].function, "%s", function);
  pthread_mutex_unlock(&mutex);
}
void fake_fail_nothing(void) { memset(rules, 0, sizeof rules); }
// Calls of one function, or of all where the name is empty.
long fake_calls(const char *function) {
  long calls = 0;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < sizeof counters / sizeof *counters && counters[i].function[0]; i++)
    if (!function[0] || !strcmp(counters[i].function, function))
      calls += counters[i].calls;
  pthread_mutex_unlock(&mutex);
  return calls;
}
void fake_set(const char *name, long value) { *setting(name) = value; }
long fake_get(const char *name) { return *setting(name); }
// A context that is not the device's primary one, and a stream in it.
void *fake_foreign_context(int device) {
  foreign[device].device = device;
  return &foreign[device];
}
void *fake_foreign_stream(int device) { return new_stream(fake_foreign_context(device), 0); }
// As the CUDA runtime does when another library uses a device first.
void *fake_runtime_context(int device) {
  primary[device].device = device;
  primary[device].active = 1;
  return &primary[device];
}
void *fake_runtime_stream(int device) { return new_stream(fake_runtime_context(device), 0); }
unsigned fake_capture_mode(void) { return capture_mode; }
void *fake_current(void) { return current; }
void fake_set_current(void *context) { current = context; }

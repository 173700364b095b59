// What the parts of the fake driver share: its objects, its settings, and the checks that every entry point
// begins with.
#ifndef FAKE_LIBCUDA_H
#define FAKE_LIBCUDA_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICES 8
#define GATES 8
#define RELAXED 2u
#define GRANULARITY ((size_t)2 << 20)
#define DEFAULT_SHARED (48u << 10)

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  INVALID_DEVICE = 101,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  ILLEGAL_ADDRESS = 700,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_IMPLICIT = 906,
};

// Words that must count up to a value before the work behind them is done.
struct gate {
  const volatile uint32_t *word;
  uint32_t value;
};
struct gates {
  int count;
  struct gate gate[GATES];
};

struct context {
  int device;
  int active;
  unsigned fault; // once set, every call in this context gives it
  struct gates work;
};
struct stream {
  int live;
  struct context *context;
  uint64_t id;
  int blocking;
  int capturing;
  uint64_t capture;
  struct gates gates;
  struct stream *next_free;
};
struct event {
  int live;
  struct context *context;
  int timing;
  int records;
  double at;
  struct gates gates;
};
// Hidden, so that each loaded copy uses its own.
#pragma GCC visibility push(hidden)
extern pthread_mutex_t mutex;
extern __thread struct context *current;
extern __thread unsigned capture_mode;

// A named number that tests may set or read.
long *setting(const char *name);
// Ends the process: the real driver would crash.
void misuse(const char *what);
// Counts a call, and gives the code that a test asked for.
unsigned enter(const char *function);
int done(struct gates *gates);
void add_gates(struct gates *to, const struct gates *from);
void wait_for(struct gates *gates);
struct stream *new_stream(struct context *context, int blocking);
// Null where the handle belongs to another context than the current one.
struct stream *stream_of(struct stream *handle);
// Whether the bytes are open device memory. If not, the context faults, as on a GPU: the calls that follow
// see it.
int on_device(uint64_t start, size_t size);
#pragma GCC visibility pop

#define ENTER()                                                                                              \
  do {                                                                                                       \
    unsigned entered = enter(__func__);                                                                      \
    if (entered)                                                                                             \
      return entered;                                                                                        \
  } while (0)
#define NEED_CONTEXT()                                                                                       \
  do {                                                                                                       \
    ENTER();                                                                                                 \
    if (!current)                                                                                            \
      return INVALID_CONTEXT;                                                                                \
    if (current->fault)                                                                                      \
      return current->fault;                                                                                 \
  } while (0)
// A call that breaks captures elsewhere unless its thread is relaxed.
#define UNSAFE_IN_CAPTURE()                                                                                  \
  do {                                                                                                       \
    if (*setting("captures") && capture_mode != RELAXED) {                                                   \
      *setting("broken") = 1;                                                                                \
      return CAPTURE_UNSUPPORTED;                                                                            \
    }                                                                                                        \
  } while (0)

#define STREAM(handle)                                                                                       \
  NEED_CONTEXT();                                                                                            \
  struct stream *stream = stream_of(handle);                                                                 \
  if (!stream)                                                                                               \
  return INVALID_HANDLE

#endif

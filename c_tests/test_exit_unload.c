// A program that opens the library that CVC_LIBRARY names, closes it with live objects and queued work, and
// ends.
//
// Nothing of the library is unmapped by that, so that its threads and thread-exit code stay where they are:
// opened again it is the same one. `test_exit_unload WAY STATUS` is one child.
#include "children.h"

#include <cvc.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static struct {
  void *library;
  cvc_status_t (*backend)(cvc_backend_t *);
  cvc_status_t (*cache_default)(cvc_cache_t *);
  cvc_status_t (*cache_count)(cvc_cache_t, int32_t, cvc_scope_t, uint64_t *);
  cvc_status_t (*stream_create)(int32_t, uint32_t, cvc_stream_t *);
  cvc_status_t (*tensor_create)(cvc_cache_t, const cvc_tensor_desc_t *, cvc_stream_t, cvc_tensor_t *);
  cvc_status_t (*tensor_release)(cvc_tensor_t);
  cvc_status_t (*fill_zero)(cvc_stream_t, cvc_tensor_t);
  cvc_status_t (*flip_new)(cvc_stream_t, cvc_tensor_t, int32_t, cvc_tensor_t *);
  cvc_status_t (*latch_create)(cvc_stream_t, uint64_t *);
} cvc;

static void require(int good, const char *what) {
  if (!good) {
    const char *error = dlerror();
    fprintf(stderr, "%s failed (%s)\n", what, error ? error : "no more is known");
    _exit(1);
  }
}

static void open_library(void) {
  const char *path = getenv("CVC_LIBRARY");
  cvc.library = dlopen(path ? path : "libcvc.so", RTLD_NOW | RTLD_LOCAL);
  require(cvc.library != NULL, "dlopen");
  const struct {
    const char *name;
    void *place;
  } functions[] = {
      {"cvc_backend", &cvc.backend},
      {"cvc_cache_default", &cvc.cache_default},
      {"cvc_cache_count", &cvc.cache_count},
      {"cvc_stream_create", &cvc.stream_create},
      {"cvc_tensor_create", &cvc.tensor_create},
      {"cvc_tensor_release", &cvc.tensor_release},
      {"cvc_fill_zero", &cvc.fill_zero},
      {"cvc_op_flip_new", &cvc.flip_new},
      {"cvc_host_latch_create", &cvc.latch_create},
  };
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
    void *address = dlsym(cvc.library, functions[i].name);
    require(address != NULL, functions[i].name);
    memcpy(functions[i].place, &address, sizeof address);
  }
}

// One live tensor and one idle or pending one, with much work queued; on the host it never runs.
static void use(int64_t side) {
  cvc_backend_t backend = 0;
  cvc_cache_t cache = NULL;
  cvc_stream_t stream = NULL;
  cvc_tensor_t src = NULL, dst = NULL;
  cvc_tensor_desc_t desc;
  uint64_t latch = 0;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.rank = 3;
  desc.shape[0] = desc.shape[1] = side;
  desc.shape[2] = 3;
  desc.dtype = CVC_DTYPE_U8;
  strcpy(desc.layout, "HWC");
  require(cvc.backend(&backend) == CVC_STATUS_OK, "cvc_backend");
  require(cvc.cache_default(&cache) == CVC_STATUS_OK, "cvc_cache_default");
  require(cvc.stream_create(0, 0, &stream) == CVC_STATUS_OK, "cvc_stream_create");
  require(cvc.tensor_create(cache, &desc, stream, &src) == CVC_STATUS_OK, "cvc_tensor_create");
  if (backend == CVC_BACKEND_HOST)
    require(cvc.latch_create(stream, &latch) == CVC_STATUS_OK, "cvc_host_latch_create");
  require(cvc.fill_zero(stream, src) == CVC_STATUS_OK, "cvc_fill_zero");
  for (int i = 0; i < 50; ++i) {
    require(cvc.flip_new(stream, src, 0, &dst) == CVC_STATUS_OK, "cvc_op_flip_new");
    require(cvc.tensor_release(dst) == CVC_STATUS_OK, "cvc_tensor_release");
  }
}

static void *use_in_thread(void *unused) {
  use(65);
  return unused;
}

static int child(const char *way, int status) {
  pthread_t thread;
  open_library();
  use(64);
  // A thread that ends before the library is closed, and one after.
  require(pthread_create(&thread, NULL, use_in_thread, NULL) == 0, "pthread_create");
  require(pthread_join(thread, NULL) == 0, "pthread_join");
  require(dlclose(cvc.library) == 0, "dlclose");
  if (strcmp(way, "exit") == 0)
    exit(status);
  if (strcmp(way, "opened_again") == 0) {
    cvc_cache_t cache = NULL;
    uint64_t count = 0;
    open_library();
    require(cvc.cache_default(&cache) == CVC_STATUS_OK, "cvc_cache_default");
    require(cvc.cache_count(cache, 0, CVC_SCOPE_LOCAL, &count) == CVC_STATUS_OK, "cvc_cache_count");
    require(count >= 2, "what was there before");
    use(66);
    require(dlclose(cvc.library) == 0, "dlclose");
  }
  return status;
}

static const char *const ways[] = {"return", "exit", "opened_again"};

int main(int argc, char **argv) {
  int failed = 0;
  if (argc == 3)
    return child(argv[1], atoi(argv[2]));
  for (size_t way = 0; way < sizeof ways / sizeof ways[0]; ++way) {
    const int bad = bad_ends(own_path(argv[0]), ways[way]);
    printf("%-44s %s\n", ways[way], bad ? "FAILED" : "ok");
    failed += bad;
  }
  return failed ? 1 : 0;
}

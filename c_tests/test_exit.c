// The process ends with live objects and queued work, in every way there is: no crash, no hang, the exit
// status as given.
//
// Each way is tried in children: `test_exit WAY STATUS` is one. The way of a closed library is in
// test_exit_unload.c.
#include "children.h"
#include "cuda_fixtures.h"

#include <pthread.h>

static cvc_stream_t stream, blocking;
static cvc_tensor_t src, dst, wrapped, view;
static cvc_cache_t other_cache;
static cvc_event_t event;

static void released(void *unused) { (void)unused; }

// Work that does not end before the process does, or not much later.
static void keep_busy(cvc_stream_t on) {
  if (on_host())
    hold(on);
  else
    spin(cuda_driver(), on, 300u * 1000 * 1000);
}

// Lives on while the process ends, with objects of its own.
static void *other_thread(void *ready) {
  cvc_stream_t own = new_stream();
  cvc_tensor_t tensor = nhwc(1, 32, 32, 3, CVC_DTYPE_U8, own), flipped = NULL;
  REQUIRE_OK(cvc_op_flip_new(own, tensor, 0, &flipped));
  REQUIRE_OK(cvc_tensor_release(tensor));
  pthread_barrier_wait((pthread_barrier_t *)ready);
  for (;;)
    pause();
  return NULL;
}

// Objects of every kind, idle, pending and live.
static void set_up(void) {
  const int64_t shape[2] = {16, 48};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "", 2, shape);
  cvc_tensor_data_t data;
  cvc_image_batch_t batch = NULL;
  cvc_tensor_t tensor = NULL;
  cvc_cache_options_t options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.limit = -1;
  stream = new_stream();
  REQUIRE_OK(cvc_stream_create(0, CVC_STREAM_BLOCKING, &blocking));
  REQUIRE_OK(cvc_event_create(0, CVC_EVENT_TIMING, &event));
  REQUIRE_OK(cvc_cache_create(&options, &other_cache));
  src = nhwc(1, 16, 16, 3, CVC_DTYPE_U8, stream);
  dst = nhwc(1, 16, 16, 3, CVC_DTYPE_U8, stream);
  desc.row_align = 1;
  REQUIRE_OK(cvc_tensor_create(other_cache, &desc, stream, &tensor));
  REQUIRE_OK(cvc_tensor_reshape(tensor, &desc, &view));
  data = tensor_data(tensor);
  data.data = foreign_memory(768);
  REQUIRE_OK(cvc_tensor_wrap(other_cache, &data, released, NULL, CVC_STREAM_NONE, &wrapped));
  cvc_image_t image = image_of(16, 16, CVC_FORMAT_RGB8, blocking);
  REQUIRE_OK(cvc_image_batch_create(check_default_cache(), 0, 4, blocking, &batch));
  REQUIRE_OK(cvc_image_batch_push(batch, &image, 1));
  REQUIRE_OK(cvc_fill_zero(blocking, src));

  // The other thread may still be leaving it when this one is long gone.
  static pthread_barrier_t ready;
  pthread_t thread;
  pthread_barrier_init(&ready, NULL, 2);
  if (pthread_create(&thread, NULL, other_thread, &ready) != 0)
    exit(1);
  pthread_detach(thread);
  pthread_barrier_wait(&ready);

  keep_busy(stream);
  unsigned char *pinned = pinned_memory(768);
  REQUIRE_OK(cvc_upload(stream, pinned, NULL, src));
  REQUIRE_OK(cvc_op_flip(stream, src, dst, 0));
  REQUIRE_OK(cvc_op_flip(blocking, dst, src, 0)); // waits for the stream
  REQUIRE_OK(cvc_event_record(event, blocking));
  REQUIRE_OK(cvc_fill_zero(stream, wrapped));
  REQUIRE_OK(cvc_tensor_release(wrapped)); // its owner is never told
  REQUIRE_OK(cvc_op_flip_new(stream, src, 1, &tensor));
  REQUIRE_OK(cvc_tensor_release(tensor)); // pending
  tensor = nhwc(2, 16, 16, 3, CVC_DTYPE_U8, stream);
  REQUIRE_OK(cvc_tensor_release(tensor)); // idle
}

static int status_to_give;

static void *exit_from_thread(void *unused) {
  (void)unused;
  exit(status_to_give);
}

// An exit handler may still use the library: each call does its work or says why not, and the releases
// succeed. By then the driver may be gone already.
static void use_in_handler(void) {
  cvc_tensor_t tensor = NULL;
  cvc_event_t late = NULL;
  const int64_t shape[1] = {64};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "W", 1, shape);
  cvc_status_t status = cvc_tensor_create(check_default_cache(), &desc, stream, &tensor);
  int good = (status == CVC_STATUS_OK) == (tensor != NULL);
  status = cvc_event_create(0, 0, &late);
  good &= (status == CVC_STATUS_OK) == (late != NULL);
  status = cvc_op_flip(stream, src, dst, 0);
  good &= status == CVC_STATUS_OK || status == CVC_STATUS_CONTEXT_LOST;
  good &= cvc_tensor_release(src) == CVC_STATUS_OK;
  good &= cvc_tensor_release(view) == CVC_STATUS_OK;
  good &= cvc_event_destroy(event) == CVC_STATUS_OK;
  good &= cvc_stream_destroy(stream) == CVC_STATUS_OK;
  good &= cvc_cache_release(other_cache) == CVC_STATUS_OK;
  good &= cvc_cache_thread_detach(check_default_cache()) == CVC_STATUS_OK;
  if (!good) {
    fprintf(stderr, "in the exit handler: %s\n", check_message());
    _exit(99);
  }
}

static void exit_in_handler(void) { _exit(status_to_give); }

static int child(const char *way, int status) {
  status_to_give = status;
  if (strcmp(way, "handler_from_before") == 0)
    atexit(use_in_handler); // runs after whatever the driver registers later
  set_up();
  if (strcmp(way, "exit") == 0)
    exit(status);
  if (strcmp(way, "_exit") == 0)
    _exit(status);
  if (strcmp(way, "quick_exit") == 0)
    quick_exit(status);
  if (strcmp(way, "handler") == 0)
    atexit(use_in_handler);
  if (strcmp(way, "handler_exits") == 0)
    atexit(exit_in_handler);
  if (strcmp(way, "thread") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, exit_from_thread, NULL);
    pthread_join(thread, NULL);
  }
  return status;
}

static const char *const ways[] = {
    "return", "exit", "_exit", "quick_exit", "thread", "handler", "handler_from_before", "handler_exits",
};

int main(int argc, char **argv) {
  CHECK_BEGIN();
  if (argc == 3)
    return child(argv[1], atoi(argv[2]));
  for (size_t way = 0; way < sizeof ways / sizeof ways[0]; ++way) {
    int before = check_failures;
    CHECK_EQ(bad_ends(own_path(argv[0]), ways[way]), 0);
    printf("%-44s %s\n", ways[way], check_failures == before ? "ok" : "FAILED");
  }
  return CHECK_END();
}

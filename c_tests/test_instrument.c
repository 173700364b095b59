// Instruments around the backend: counted calls, planned faults, steps and races. Each is asked for before
// the first call.
#include "fixtures.h"

static uint64_t calls(const char *name) {
  uint64_t count = 0;
  CHECK_OK(cvc_backend_call_count(name, &count));
  return count;
}

static void calls_are_counted(void) {
  cvc_stream_t stream = new_stream();
  cvc_tensor_t tensor = nhwc(1, 8, 8, 1, CVC_DTYPE_U8, stream);
  CHECK_OK(cvc_backend_call_reset());
  CHECK_OK(cvc_fill_zero(stream, tensor));
  CHECK_EQ(calls("fill_zero_2d"), 1);
  CHECK_EQ(calls("launch"), 0);
  CHECK_OK(cvc_tensor_release(tensor));
  const int64_t shape[4] = {1, 8, 8, 1};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "NHWC", 4, shape);
  desc.device = 0; // the current one would be asked for
  CHECK_OK(cvc_backend_call_reset());
  CHECK_OK(cvc_tensor_create(check_default_cache(), &desc, stream, &tensor));
  uint64_t sum = 0;
  uint32_t names = 0;
  for (; cvc_backend_call_name(names); ++names)
    sum += calls(cvc_backend_call_name(names));
  CHECK(names > 20);
  CHECK_EQ(sum, 0); // a hit asks nothing
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void faults_are_planned(void) {
  uint64_t hits = 7;
  cvc_stream_t stream = NULL;
  CHECK_OK(cvc_host_fault("stream_create", 1, 1, CVC_STATUS_DEVICE_ERROR));
  CHECK_OK(cvc_host_fault_hits(&hits));
  CHECK_EQ(hits, 0);
  stream = new_stream();
  CHECK_OK(cvc_stream_destroy(stream));
  CHECK_ERROR(cvc_stream_create(0, 0, &stream), CVC_STATUS_DEVICE_ERROR, "stream_create", "fault plan");
  CHECK(stream == NULL);
  CHECK_OK(cvc_host_fault_hits(&hits));
  CHECK_EQ(hits, 1);
  stream = new_stream();
  CHECK_OK(cvc_host_fault("stream_query", 0, 100, CVC_STATUS_NOT_READY));
  CHECK_STATUS(cvc_stream_query(stream), CVC_STATUS_NOT_READY);
  CHECK_OK(cvc_host_fault_clear());
  CHECK_OK(cvc_stream_query(stream));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void work_runs_in_steps(void) {
  cvc_stream_t first = new_stream(), second = new_stream();
  unsigned char ones[16], got[16] = {0};
  memset(ones, 1, sizeof ones);
  cvc_tensor_t tensor = nhwc(1, 4, 4, 1, CVC_DTYPE_U8, first);
  CHECK_OK(cvc_upload(first, ones, NULL, tensor));
  CHECK_OK(cvc_download(second, tensor, got, NULL)); // waits for the other stream
  uint64_t count = 0, steps = 0, id = 0;
  CHECK_OK(cvc_host_step_count(&count));
  CHECK_EQ(count, 1);
  cvc_host_step_t step = {.struct_size = sizeof step};
  CHECK_OK(cvc_host_step_get(0, &step));
  CHECK_OK(cvc_stream_get_id(first, &id));
  CHECK_EQ(step.stream_id, id);
  CHECK_EQ(step.kind, CVC_HOST_STEP_WORK);
  CHECK_OK(cvc_host_step(0));
  CHECK_EQ(got[0], 0);
  CHECK_OK(cvc_host_step_stream(second, &steps));
  CHECK(steps >= 1);
  CHECK(memcmp(ones, got, sizeof got) == 0);
  CHECK_OK(cvc_host_step_all(&steps));
  CHECK_ERROR(cvc_host_step(0), CVC_STATUS_INVALID_INDEX, "index", "0");
  CHECK_STATUS(cvc_host_step_get(3, &step), CVC_STATUS_INVALID_INDEX);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_destroy(first));
  CHECK_OK(cvc_stream_destroy(second));
}

static void races_are_reported(void) {
  cvc_stream_t first = new_stream(), second = new_stream();
  static unsigned char memory[64];
  uint64_t races = 7;
  char report[2048];
  size_t needed = 0;
  CHECK_OK(cvc_host_race_forget());
  CHECK_OK(cvc_host_race_access(0, first, memory, 32, CVC_ACCESS_WRITE));
  CHECK_OK(cvc_host_race_access(0, second, memory + 32, 32, CVC_ACCESS_WRITE));
  CHECK_OK(cvc_host_race_count(&races));
  CHECK_EQ(races, 0);
  CHECK_OK(cvc_host_race_access(0, second, memory + 16, 32, CVC_ACCESS_READ));
  CHECK_OK(cvc_host_race_count(&races));
  CHECK_EQ(races, 1);
  CHECK_OK(cvc_host_race_report(report, sizeof report, &needed));
  CHECK_EQ(needed, strlen(report) + 1);
  CHECK(strstr(report, "reads 16 bytes") != NULL);
  CHECK(strstr(report, "An event recorded on stream") != NULL);
  CHECK_OK(cvc_host_race_report(NULL, 0, &needed));
  CHECK_STATUS(cvc_host_race_report(NULL, 5, NULL), CVC_STATUS_NULL_POINTER);
  CHECK_OK(cvc_host_race_forget());
  // What the streams order by an event is no race.
  CHECK_OK(cvc_stream_wait_stream(second, first));
  CHECK_OK(cvc_host_race_access(0, second, memory, 32, CVC_ACCESS_READ));
  CHECK_OK(cvc_host_race_count(&races));
  CHECK_EQ(races, 0);
  CHECK_OK(cvc_stream_synchronize(second, -1));
  CHECK_OK(cvc_stream_synchronize(first, -1));
  CHECK_OK(cvc_stream_destroy(first));
  CHECK_OK(cvc_stream_destroy(second));
}

static void streams_capture(void) {
  cvc_stream_t stream = new_stream();
  cvc_tensor_t tensor = nhwc(1, 4, 4, 1, CVC_DTYPE_U8, stream);
  CHECK_OK(cvc_host_capture_begin(stream));
  CHECK_ERROR(cvc_fill_zero(stream, tensor), CVC_STATUS_CAPTURING, "stream", "capturing a graph");
  CHECK_STATUS(cvc_host_capture_begin(stream), CVC_STATUS_CAPTURING);
  CHECK_OK(cvc_host_capture_end(stream));
  CHECK_STATUS(cvc_host_capture_end(stream), CVC_STATUS_INVALID_STREAM);
  CHECK_STATUS(cvc_host_capture_begin((cvc_stream_t)1), CVC_STATUS_INVALID_STREAM);
  CHECK_OK(cvc_fill_zero(stream, tensor));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void wrong_arguments(void) {
  uint64_t count = 0;
  CHECK_ERROR(cvc_backend_instrument(0x100u), CVC_STATUS_INVALID_ENUM, "instruments", "0x100");
  CHECK_ERROR(cvc_backend_call_count("launches", &count), CVC_STATUS_INVALID_ARGUMENT, "name", "launches");
  CHECK_STATUS(cvc_backend_call_count(NULL, &count), CVC_STATUS_NULL_POINTER);
  CHECK_STATUS(cvc_backend_call_count("launch", NULL), CVC_STATUS_NULL_POINTER);
  CHECK(cvc_backend_call_name(1000) == NULL);
  CHECK_ERROR(cvc_host_fault("launch", 0, 1, CVC_STATUS_OK), CVC_STATUS_INVALID_ENUM, "status", "0");
  CHECK_STATUS(cvc_host_fault(NULL, 0, 1, CVC_STATUS_DEVICE_ERROR), CVC_STATUS_NULL_POINTER);
  CHECK_STATUS(cvc_host_fault_hits(NULL), CVC_STATUS_NULL_POINTER);
  CHECK_STATUS(cvc_host_step_count(NULL), CVC_STATUS_NULL_POINTER);
  CHECK_STATUS(cvc_host_step_get(0, NULL), CVC_STATUS_NULL_POINTER);
  CHECK_STATUS(cvc_host_race_count(NULL), CVC_STATUS_NULL_POINTER);
  CHECK_STATUS(cvc_host_race_access(0, NULL, &count, 8, 9), CVC_STATUS_INVALID_ENUM);
}

int main(void) {
  // Steps and the race checker are the host backend's; asking which backend it is would choose it.
  const char *backend = getenv("CVC_BACKEND");
  int host = !backend || strcmp(backend, "cuda") != 0;
  uint32_t wanted = CVC_INSTRUMENT_COUNT_CALLS | CVC_INSTRUMENT_FAULTS;
  if (host)
    wanted |= CVC_INSTRUMENT_RACE_CHECK | CVC_INSTRUMENT_STEPPED | CVC_INSTRUMENT_CAPTURES;
  REQUIRE_OK(cvc_backend_instrument(wanted));
  CHECK_BEGIN();
  RUN(calls_are_counted);
  RUN(faults_are_planned);
  if (host) {
    RUN(work_runs_in_steps);
    RUN(races_are_reported);
    RUN(streams_capture);
  }
  RUN(wrong_arguments);
  return CHECK_END();
}

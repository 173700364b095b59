// Prefetch: while one stream computes on a batch, another copies the next one up. Each batch's memory is
// freed as soon as its work is queued, and is not used again before both streams are done with it.
//
//   cc prefetch_overlap.c $(pkg-config --cflags --libs cvc) && ./a.out
#include <cvc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { batches = 40, height = 64, width = 256, bytes = height * width };

static void check(cvc_status_t status, const char *call) {
  if (status == CVC_STATUS_OK)
    return;
  char message[256] = "";
  cvc_last_error_message(message, sizeof message, NULL);
  fprintf(stderr, "%s: %s: %s\n", call, cvc_status_string(status), message);
  exit(1);
}

#define CHECK(call) check((call), #call)

static cvc_cache_t cache;

static unsigned char value(int batch, int place) { return (unsigned char)(31 * batch + 7 * place); }

// A tensor around memory that the cache does not watch: who uses it where is said by cvc_mem_record_stream
// and the free.
static cvc_tensor_t around(void *memory) {
  cvc_tensor_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  data.rank = 2;
  data.shape[0] = data.strides[0] = width;
  data.shape[0] = height;
  data.shape[1] = width;
  data.strides[1] = 1;
  data.dtype = CVC_DTYPE_U8;
  strcpy(data.layout, "HW");
  data.data = memory;
  cvc_tensor_t tensor;
  CHECK(cvc_tensor_wrap(cache, &data, NULL, NULL, CVC_STREAM_NONE, &tensor));
  return tensor;
}

static void *prefetch(cvc_stream_t copy, const unsigned char *host) {
  void *memory;
  CHECK(cvc_mem_alloc(cache, 0, bytes, 0, copy, &memory));
  cvc_tensor_t batch = around(memory);
  CHECK(cvc_upload(copy, host, NULL, batch));
  CHECK(cvc_tensor_release(batch));
  return memory;
}

int main(void) {
  static unsigned char host[batches][bytes], results[batches][bytes];
  for (int batch = 0; batch < batches; ++batch)
    for (int place = 0; place < bytes; ++place)
      host[batch][place] = value(batch, place);
  cvc_stream_t copy, compute;
  CHECK(cvc_cache_default(&cache));
  CHECK(cvc_stream_create(0, 0, &copy));
  CHECK(cvc_stream_create(0, 0, &compute));

  void *next = prefetch(copy, host[0]);
  for (int batch = 0; batch < batches; ++batch) {
    void *current = next;
    // The compute stream comes after the copy of this batch, and reads it: said before the launch that this
    // covers.
    CHECK(cvc_stream_wait_stream(compute, copy));
    CHECK(cvc_mem_record_stream(cache, current, compute));
    if (batch + 1 < batches)
      next = prefetch(copy, host[batch + 1]);
    cvc_tensor_t input = around(current), output;
    CHECK(cvc_op_flip_new(compute, input, 0, &output));
    CHECK(cvc_download(compute, output, results[batch], NULL));
    CHECK(cvc_tensor_release(output));
    CHECK(cvc_tensor_release(input));
    // Free at once: what is queued on both streams by now comes before any new use.
    CHECK(cvc_mem_free(cache, current, copy));
  }
  CHECK(cvc_stream_synchronize(compute, -1));

  int wrong = 0;
  for (int batch = 0; batch < batches; ++batch)
    for (int place = 0; place < bytes; ++place)
      wrong += results[batch][place] != value(batch, (height - 1 - place / width) * width + place % width);
  uint64_t kept;
  CHECK(cvc_cache_bytes(cache, 0, &kept));
  printf("%d batches, %d wrong values, %llu bytes kept\n", batches, wrong, (unsigned long long)kept);
  CHECK(cvc_stream_destroy(copy));
  CHECK(cvc_stream_destroy(compute));
  return wrong != 0;
}

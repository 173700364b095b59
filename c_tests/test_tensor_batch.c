// Tensor batches: one rank, dtype and layout; contents, capacity, records in device memory.
#include "fixtures.h"

static cvc_tensor_batch_t new_batch(int32_t capacity) {
  cvc_tensor_batch_t batch = NULL;
  REQUIRE_OK(
      cvc_tensor_batch_create(check_default_cache(), CVC_DEVICE_CURRENT, capacity, CVC_STREAM_NONE, &batch));
  return batch;
}

static cvc_tensor_batch_data_t batch_data(cvc_tensor_batch_t batch, cvc_stream_t stream) {
  cvc_tensor_batch_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  REQUIRE_OK(cvc_tensor_batch_get_data(batch, stream, &data));
  return data;
}

static void charge_and_empty_batch(void) {
  cvc_tensor_batch_t batch = new_batch(10);
  uint64_t bytes = 0, id = 0;
  CHECK_OK(cvc_tensor_batch_nbytes(batch, &bytes));
  CHECK_EQ(bytes, 2560);
  CHECK_OK(cvc_tensor_batch_get_id(batch, &id));
  CHECK(id != 0);
  cvc_tensor_batch_data_t data = batch_data(batch, CVC_STREAM_NONE);
  CHECK_EQ(data.count, 0);
  CHECK_EQ(data.capacity, 10);
  CHECK_EQ(data.rank, -1);
  CHECK_EQ(data.dtype, CVC_DTYPE_NONE);
  CHECK(data.layout[0] == '\0' && data.records == NULL);
  CHECK_OK(cvc_tensor_batch_retain(batch));
  CHECK_OK(cvc_tensor_batch_release(batch));
  CHECK_OK(cvc_tensor_batch_release(batch));
}

static void the_first_tensor_fixes_the_kind(void) {
  cvc_tensor_batch_t batch = new_batch(4);
  cvc_tensor_t first = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  cvc_tensor_t same = nhwc(2, 9, 5, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  cvc_tensor_t other = nhwc(1, 4, 4, 3, CVC_DTYPE_F32, CVC_STREAM_NONE);
  cvc_tensor_t images[3] = {first, same, first};
  CHECK_OK(cvc_tensor_batch_push(batch, images, 3)); // the same one may come twice
  cvc_tensor_batch_data_t data = batch_data(batch, CVC_STREAM_NONE);
  CHECK_EQ(data.count, 3);
  CHECK_EQ(data.rank, 4);
  CHECK_EQ(data.dtype, CVC_DTYPE_U8);
  CHECK(strcmp(data.layout, "NHWC") == 0);
  CHECK_ERROR(cvc_tensor_batch_push(batch, &other, 1), CVC_STATUS_DTYPE_MISMATCH, "tensors[0]", "F32", "U8");
  CHECK_EQ(batch_data(batch, CVC_STREAM_NONE).count, 3);
  int64_t shape[4] = {1, 3, 4, 4};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "NCHW", 4, shape);
  cvc_tensor_t layout = NULL;
  CHECK_OK(cvc_tensor_create(check_default_cache(), &desc, CVC_STREAM_NONE, &layout));
  CHECK_STATUS(cvc_tensor_batch_push(batch, &layout, 1), CVC_STATUS_INVALID_LAYOUT);
  CHECK_OK(cvc_tensor_batch_clear(batch));
  CHECK_OK(cvc_tensor_batch_push(batch, &other, 1)); // lifted by clear
  CHECK_OK(cvc_tensor_release(first));
  CHECK_OK(cvc_tensor_release(same));
  CHECK_OK(cvc_tensor_release(other));
  CHECK_OK(cvc_tensor_release(layout));
  CHECK_OK(cvc_tensor_batch_release(batch));
}

static void get_set_pop(void) {
  cvc_tensor_batch_t batch = new_batch(2);
  cvc_tensor_t a = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  cvc_tensor_t b = nhwc(1, 6, 2, 3, CVC_DTYPE_U8, CVC_STREAM_NONE), got = NULL;
  cvc_tensor_t both[2] = {a, a}, three[3] = {a, b, a};
  CHECK_OK(cvc_tensor_batch_push(batch, both, 2));
  CHECK_ERROR(cvc_tensor_batch_push(batch, &b, 1), CVC_STATUS_CAPACITY_EXCEEDED, "count", "2");
  CHECK_OK(cvc_tensor_batch_set(batch, 1, b));
  CHECK_OK(cvc_tensor_batch_get(batch, 1, &got));
  CHECK(tensor_data(got).data == tensor_data(b).data);
  CHECK_OK(cvc_tensor_release(got));
  CHECK_ERROR(cvc_tensor_batch_set(batch, 2, b), CVC_STATUS_INVALID_INDEX, "index", "2");
  CHECK_ERROR(cvc_tensor_batch_get(batch, -1, &got), CVC_STATUS_INVALID_INDEX, "index", "-1");
  CHECK_ERROR(cvc_tensor_batch_set(batch, 0, NULL), CVC_STATUS_INVALID_HANDLE, "tensor");
  CHECK_OK(cvc_tensor_batch_pop(batch, 1));
  CHECK_ERROR(cvc_tensor_batch_pop(batch, 2), CVC_STATUS_CAPACITY_UNDERFLOW, "count", "2", "1");
  CHECK_OK(cvc_tensor_batch_pop(batch, 1));
  CHECK_ERROR(cvc_tensor_batch_push(batch, three, 3), CVC_STATUS_CAPACITY_EXCEEDED, "count", "3");
  CHECK_EQ(batch_data(batch, CVC_STREAM_NONE).count, 0);
  CHECK_OK(cvc_tensor_release(a));
  CHECK_OK(cvc_tensor_release(b));
  CHECK_OK(cvc_tensor_batch_release(batch));
}

static void records_in_device_memory(void) {
  cvc_stream_t stream = new_stream();
  cvc_tensor_batch_t batch = new_batch(3);
  cvc_tensor_t tensors[2] = {nhwc(1, 4, 5, 3, CVC_DTYPE_F32, stream),
                             nhwc(2, 6, 7, 1, CVC_DTYPE_F32, stream)};
  CHECK_OK(cvc_tensor_batch_push(batch, tensors, 2));
  cvc_tensor_batch_data_t data = batch_data(batch, stream);
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK(data.records != NULL);
  cvc_tensor_record_t records[2];
  read_device(records, data.records, sizeof records);
  for (int i = 0; i < 2; ++i) {
    cvc_tensor_data_t expected = tensor_data(tensors[i]);
    CHECK(records[i].data == expected.data);
    CHECK_EQ(records[i].rank, 4);
    CHECK_EQ(records[i].dtype, CVC_DTYPE_F32);
    CHECK(memcmp(records[i].shape, expected.shape, 4 * sizeof(int64_t)) == 0);
    CHECK(memcmp(records[i].strides, expected.strides, 4 * sizeof(int64_t)) == 0);
    CHECK_OK(cvc_tensor_release(tensors[i]));
  }
  CHECK_OK(cvc_tensor_batch_release(batch));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void wrong_arguments(void) {
  cvc_cache_t cache = check_default_cache();
  cvc_tensor_batch_t batch = NULL;
  CHECK_ERROR(cvc_tensor_batch_create(cache, 0, -2, NULL, &batch), CVC_STATUS_INVALID_ARGUMENT, "capacity",
              "-2");
  CHECK_ERROR(cvc_tensor_batch_create(cache, -2, 1, NULL, &batch), CVC_STATUS_INVALID_DEVICE, "device", "-2");
  CHECK_ERROR(cvc_tensor_batch_push(NULL, NULL, 1), CVC_STATUS_INVALID_HANDLE, "batch");
  CHECK(batch == NULL);
}

int main(void) {
  CHECK_BEGIN();
  RUN(charge_and_empty_batch);
  RUN(the_first_tensor_fixes_the_kind);
  RUN(get_set_pop);
  RUN(records_in_device_memory);
  RUN(wrong_arguments);
  return CHECK_END();
}

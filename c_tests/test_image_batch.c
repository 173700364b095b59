// Image batches: contents, capacity, records in device memory and what they keep alive.
#include "fixtures.h"

static cvc_image_batch_t new_batch(int32_t capacity) {
  cvc_image_batch_t batch = NULL;
  REQUIRE_OK(
      cvc_image_batch_create(check_default_cache(), CVC_DEVICE_CURRENT, capacity, CVC_STREAM_NONE, &batch));
  return batch;
}

static cvc_image_batch_data_t batch_data(cvc_image_batch_t batch, cvc_stream_t stream) {
  cvc_image_batch_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  REQUIRE_OK(cvc_image_batch_get_data(batch, stream, &data));
  return data;
}

static void charge_and_empty_batch(void) {
  cvc_image_batch_t batch = new_batch(5);
  uint64_t bytes = 0, id = 0;
  CHECK_OK(cvc_image_batch_nbytes(batch, &bytes));
  CHECK_EQ(bytes, 800);
  CHECK_OK(cvc_image_batch_get_id(batch, &id));
  CHECK(id != 0);
  CHECK_EQ(check_stats(check_default_cache(), 0).count, 1);
  cvc_image_batch_data_t data = batch_data(batch, CVC_STREAM_NONE);
  CHECK_EQ(data.count, 0);
  CHECK_EQ(data.capacity, 5);
  CHECK_EQ(data.unique_format, CVC_FORMAT_NONE);
  CHECK(data.max_width == 0 && data.max_height == 0 && data.records == NULL);
  CHECK_OK(cvc_image_batch_retain(batch));
  CHECK_OK(cvc_image_batch_release(batch));
  CHECK_OK(cvc_image_batch_release(batch));
}

static void push_get_pop_clear(void) {
  cvc_image_batch_t batch = new_batch(4);
  cvc_image_t images[3], got = NULL;
  images[0] = image_of(10, 40, CVC_FORMAT_RGB8, CVC_STREAM_NONE);
  images[1] = image_of(30, 20, CVC_FORMAT_RGB8, CVC_STREAM_NONE);
  images[2] = image_of(5, 5, CVC_FORMAT_U8, CVC_STREAM_NONE);
  CHECK_OK(cvc_image_batch_push(batch, images, 2));
  cvc_image_batch_data_t data = batch_data(batch, CVC_STREAM_NONE);
  CHECK_EQ(data.count, 2);
  CHECK_EQ(data.unique_format, CVC_FORMAT_RGB8);
  CHECK(data.max_width == 30 && data.max_height == 40);
  CHECK_OK(cvc_image_batch_push(batch, images + 2, 1));
  CHECK_EQ(batch_data(batch, CVC_STREAM_NONE).unique_format, CVC_FORMAT_NONE);
  for (int32_t i = 0; i < 3; ++i) {
    CHECK_OK(cvc_image_batch_get(batch, i, &got));
    CHECK(image_data(got).planes[0].data == image_data(images[i]).planes[0].data);
    CHECK_OK(cvc_image_release(got));
  }
  // All or none: four do not fit into two places.
  cvc_image_t many[2] = {images[0], images[1]};
  CHECK_ERROR(cvc_image_batch_push(batch, many, 2), CVC_STATUS_CAPACITY_EXCEEDED, "count", "2", "4");
  CHECK_EQ(batch_data(batch, CVC_STREAM_NONE).count, 3);
  CHECK_ERROR(cvc_image_batch_pop(batch, 4), CVC_STATUS_CAPACITY_UNDERFLOW, "count", "4", "3");
  CHECK_ERROR(cvc_image_batch_get(batch, 3, &got), CVC_STATUS_INVALID_INDEX, "index", "3");
  CHECK_ERROR(cvc_image_batch_get(batch, -1, &got), CVC_STATUS_INVALID_INDEX, "index", "-1");
  CHECK(got == NULL);
  CHECK_OK(cvc_image_batch_pop(batch, 2));
  data = batch_data(batch, CVC_STREAM_NONE);
  CHECK(data.count == 1 && data.max_width == 10 && data.max_height == 40);
  CHECK_EQ(data.unique_format, CVC_FORMAT_RGB8);
  CHECK_OK(cvc_image_batch_clear(batch));
  CHECK_EQ(batch_data(batch, CVC_STREAM_NONE).count, 0);
  for (int i = 0; i < 3; ++i)
    CHECK_OK(cvc_image_release(images[i]));
  CHECK_OK(cvc_image_batch_release(batch));
}

static void a_failed_push_changes_nothing(void) {
  cvc_image_batch_t batch = new_batch(4);
  cvc_image_t images[2] = {image_of(4, 4, CVC_FORMAT_U8, CVC_STREAM_NONE), NULL};
  CHECK_ERROR(cvc_image_batch_push(batch, images, 2), CVC_STATUS_INVALID_HANDLE, "images[1]");
  CHECK_EQ(batch_data(batch, CVC_STREAM_NONE).count, 0);
  CHECK_ERROR(cvc_image_batch_push(batch, NULL, 1), CVC_STATUS_NULL_POINTER, "images");
  CHECK_ERROR(cvc_image_batch_push(batch, images, -1), CVC_STATUS_INVALID_ARGUMENT, "count", "-1");
  CHECK_ERROR(cvc_image_batch_pop(batch, -1), CVC_STATUS_INVALID_ARGUMENT, "count", "-1");
  CHECK_OK(cvc_image_batch_push(batch, NULL, 0));
  CHECK_OK(cvc_image_release(images[0]));
  CHECK_OK(cvc_image_batch_release(batch));
}

static void images_in_a_batch_are_not_reused(void) {
  cvc_image_batch_t batch = new_batch(1);
  cvc_image_t image = image_of(16, 16, CVC_FORMAT_U8, CVC_STREAM_NONE);
  void *memory = image_data(image).planes[0].data;
  CHECK_OK(cvc_image_batch_push(batch, &image, 1));
  CHECK_OK(cvc_image_release(image));
  image = image_of(16, 16, CVC_FORMAT_U8, CVC_STREAM_NONE);
  CHECK(image_data(image).planes[0].data != memory);
  CHECK_OK(cvc_image_release(image));
  CHECK_OK(cvc_image_batch_release(batch));
}

// The records that a kernel reads are what the header says.
static void records_in_device_memory(void) {
  cvc_stream_t stream = new_stream();
  cvc_image_batch_t batch = new_batch(3);
  cvc_image_t images[2] = {image_of(10, 4, CVC_FORMAT_RGB8, stream), image_of(8, 6, CVC_FORMAT_NV12, stream)};
  CHECK_OK(cvc_image_batch_push(batch, images, 2));
  cvc_image_batch_data_t data = batch_data(batch, stream);
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK(data.records != NULL && data.formats != NULL);
  cvc_image_record_t records[2];
  read_device(records, data.records, sizeof records);
  for (int i = 0; i < 2; ++i) {
    cvc_image_data_t expected = image_data(images[i]);
    CHECK_EQ(records[i].plane_count, expected.plane_count);
    CHECK_EQ(records[i].format, expected.format);
    for (int p = 0; p < expected.plane_count; ++p)
      CHECK(memcmp(&records[i].planes[p], &expected.planes[p], sizeof expected.planes[p]) == 0);
    CHECK_OK(cvc_image_release(images[i]));
  }
  CHECK_OK(cvc_image_batch_release(batch));
  CHECK_OK(cvc_stream_destroy(stream));
}

// Everything of the batch is there: its images, its records and the streams that may use it.
static void a_batch_on_another_device(void) {
  if (!two_devices())
    return;
  cvc_stream_t stream = NULL, elsewhere = new_stream();
  REQUIRE_OK(cvc_stream_create(1, 0, &stream));
  cvc_image_batch_t batch = NULL;
  REQUIRE_OK(cvc_image_batch_create(check_default_cache(), 1, 2, stream, &batch));
  cvc_image_desc_t desc;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.width = 4;
  desc.height = 3;
  desc.format = CVC_FORMAT_U8;
  cvc_image_t here = image_of(4, 3, CVC_FORMAT_U8, CVC_STREAM_NONE), there = NULL;
  desc.device = 1;
  REQUIRE_OK(cvc_image_create(check_default_cache(), &desc, stream, &there));
  CHECK_ERROR(cvc_image_batch_push(batch, &here, 1), CVC_STATUS_DEVICE_MISMATCH, "device");
  CHECK_OK(cvc_image_batch_push(batch, &there, 1));
  cvc_image_batch_data_t data = batch_data(batch, stream);
  CHECK_EQ(data.device, 1);
  CHECK(data.records != NULL);
  CHECK_ERROR(cvc_image_batch_get_data(batch, elsewhere, &data), CVC_STATUS_DEVICE_MISMATCH, "device 1");
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK_OK(cvc_image_release(here));
  CHECK_OK(cvc_image_release(there));
  CHECK_OK(cvc_image_batch_release(batch));
  CHECK_OK(cvc_stream_destroy(stream));
  CHECK_OK(cvc_stream_destroy(elsewhere));
}

static void wrong_arguments(void) {
  cvc_cache_t cache = check_default_cache();
  cvc_image_batch_t batch = NULL;
  CHECK_ERROR(cvc_image_batch_create(cache, 0, -1, NULL, &batch), CVC_STATUS_INVALID_ARGUMENT, "capacity",
              "-1");
  CHECK_ERROR(cvc_image_batch_create(cache, 33, 1, NULL, &batch), CVC_STATUS_INVALID_DEVICE, "device", "33");
  CHECK_ERROR(cvc_image_batch_create(cache, 0, 1, NULL, NULL), CVC_STATUS_NULL_POINTER, "batch");
  CHECK(batch == NULL);
  if (!two_devices())
    return;
  cvc_image_desc_t desc;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.device = 1;
  desc.format = CVC_FORMAT_U8;
  desc.width = desc.height = 4;
  cvc_image_t far = NULL;
  CHECK_OK(cvc_image_create(cache, &desc, CVC_STREAM_NONE, &far));
  batch = new_batch(2);
  CHECK_ERROR(cvc_image_batch_push(batch, &far, 1), CVC_STATUS_DEVICE_MISMATCH, "images[0]", "device 1",
              "device 0");
  CHECK_OK(cvc_image_release(far));
  CHECK_OK(cvc_image_batch_release(batch));
  CHECK_STATUS(cvc_image_batch_clear(batch), CVC_STATUS_STALE_HANDLE);
}

int main(void) {
  CHECK_BEGIN();
  RUN(charge_and_empty_batch);
  RUN(push_get_pop_clear);
  RUN(a_failed_push_changes_nothing);
  RUN(images_in_a_batch_are_not_reused);
  RUN(records_in_device_memory);
  RUN(a_batch_on_another_device);
  RUN(wrong_arguments);
  return CHECK_END();
}

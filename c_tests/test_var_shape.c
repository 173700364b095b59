// The operators over image batches: each image gets what the tensor form gives it alone.
#include "fixtures.h"

#include <math.h>

enum { images = 3 };
static const int32_t widths[images] = {9, 16, 5}, heights[images] = {7, 4, 12};

static cvc_image_batch_t new_batch(int32_t capacity, cvc_stream_t stream) {
  cvc_image_batch_t batch = NULL;
  REQUIRE_OK(cvc_image_batch_create(check_default_cache(), CVC_DEVICE_CURRENT, capacity, stream, &batch));
  return batch;
}

// A batch of RGB8 images full of noise.
static cvc_image_batch_t noise_batch(cvc_stream_t stream) {
  cvc_image_batch_t batch = new_batch(4, stream);
  for (int i = 0; i < images; ++i) {
    unsigned char pixels[16 * 16 * 3];
    fill_noise(pixels, sizeof pixels, (uint32_t)i + 40);
    cvc_image_t image = image_of(widths[i], heights[i], CVC_FORMAT_RGB8, stream);
    cvc_tensor_t tensor = NULL;
    CHECK_OK(cvc_tensor_from_image(image, &tensor));
    put(stream, tensor, pixels);
    CHECK_OK(cvc_tensor_release(tensor));
    CHECK_OK(cvc_image_batch_push(batch, &image, 1));
    CHECK_OK(cvc_image_release(image));
  }
  return batch;
}

static int32_t length_of(cvc_image_batch_t batch) {
  cvc_image_batch_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  CHECK_OK(cvc_image_batch_get_data(batch, CVC_STREAM_NONE, &data));
  return data.count;
}

static cvc_tensor_t view_of(cvc_image_batch_t batch, int32_t index) {
  cvc_image_t image = NULL;
  cvc_tensor_t tensor = NULL;
  REQUIRE_OK(cvc_image_batch_get(batch, index, &image));
  REQUIRE_OK(cvc_tensor_from_image(image, &tensor));
  CHECK_OK(cvc_image_release(image));
  return tensor;
}

static void expect_equal(cvc_stream_t stream, cvc_tensor_t a, cvc_tensor_t b, size_t bytes) {
  unsigned char left[64 * 64 * 12], right[sizeof left];
  take(stream, a, left);
  take(stream, b, right);
  CHECK(memcmp(tensor_data(a).shape, tensor_data(b).shape, 4 * sizeof(int64_t)) == 0);
  CHECK(memcmp(left, right, bytes) == 0);
}

static void flip(void) {
  cvc_stream_t stream = new_stream();
  cvc_image_batch_t src = noise_batch(stream), dst = NULL;
  const int32_t codes[images] = {1, 0, -1};
  const int64_t shape[1] = {images};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_S32, "N", 1, shape);
  cvc_tensor_t code_tensor = NULL;
  CHECK_OK(cvc_tensor_create(check_default_cache(), &desc, stream, &code_tensor));
  put(stream, code_tensor, codes);
  CHECK_OK(cvc_op_flip_var_shape_new(stream, src, code_tensor, &dst));
  CHECK_EQ(length_of(dst), images);
  cvc_image_batch_t again = new_batch(images, stream);
  for (int i = 0; i < images; ++i) {
    cvc_image_t image = image_of(widths[i], heights[i], CVC_FORMAT_RGB8, stream);
    CHECK_OK(cvc_image_batch_push(again, &image, 1));
    CHECK_OK(cvc_image_release(image));
  }
  CHECK_OK(cvc_op_flip_var_shape(stream, src, again, code_tensor));
  for (int i = 0; i < images; ++i) {
    cvc_tensor_t from = view_of(src, i), got = view_of(dst, i), also = view_of(again, i), expected = NULL;
    CHECK_OK(cvc_op_flip_new(stream, from, codes[i], &expected));
    const size_t bytes = (size_t)(widths[i] * heights[i] * 3);
    expect_equal(stream, got, expected, bytes);
    expect_equal(stream, also, expected, bytes);
    CHECK_OK(cvc_tensor_release(from));
    CHECK_OK(cvc_tensor_release(got));
    CHECK_OK(cvc_tensor_release(also));
    CHECK_OK(cvc_tensor_release(expected));
  }
  CHECK_OK(cvc_tensor_release(code_tensor));
  CHECK_OK(cvc_image_batch_release(src));
  CHECK_OK(cvc_image_batch_release(dst));
  CHECK_OK(cvc_image_batch_release(again));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void pillow_resize(void) {
  cvc_stream_t stream = new_stream();
  cvc_image_batch_t src = noise_batch(stream), dst = NULL, again = new_batch(images, stream);
  const int32_t sizes[2 * images] = {4, 5, 20, 20, 11, 3}; // width, height of each
  CHECK_OK(cvc_op_pillow_resize_var_shape_new(stream, src, sizes, images, CVC_FILTER_CUBIC, 0, &dst));
  for (int i = 0; i < images; ++i) {
    cvc_image_t image = image_of(sizes[2 * i], sizes[2 * i + 1], CVC_FORMAT_RGB8, stream);
    CHECK_OK(cvc_image_batch_push(again, &image, 1));
    CHECK_OK(cvc_image_release(image));
  }
  CHECK_OK(cvc_op_pillow_resize_var_shape(stream, src, again, CVC_FILTER_CUBIC, 0));
  for (int i = 0; i < images; ++i) {
    cvc_tensor_t from = view_of(src, i), got = view_of(dst, i), also = view_of(again, i), expected = NULL;
    CHECK_OK(cvc_op_pillow_resize_new(stream, from, sizes[2 * i + 1], sizes[2 * i], CVC_FILTER_CUBIC, 0,
                                      &expected));
    const size_t bytes = (size_t)(sizes[2 * i] * sizes[2 * i + 1] * 3);
    expect_equal(stream, got, expected, bytes);
    expect_equal(stream, also, expected, bytes);
    CHECK_OK(cvc_tensor_release(from));
    CHECK_OK(cvc_tensor_release(got));
    CHECK_OK(cvc_tensor_release(also));
    CHECK_OK(cvc_tensor_release(expected));
  }
  CHECK_OK(cvc_image_batch_release(src));
  CHECK_OK(cvc_image_batch_release(dst));
  CHECK_OK(cvc_image_batch_release(again));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void normalize(void) {
  cvc_stream_t stream = new_stream();
  cvc_image_batch_t src = noise_batch(stream), dst = NULL, again = new_batch(images, stream);
  cvc_normalize_params_t params;
  memset(&params, 0, sizeof params);
  params.struct_size = sizeof params;
  for (int k = 0; k < 3; ++k) {
    params.base_values[k] = 100.0f + (float)k;
    params.scale_values[k] = 0.01f * (float)(k + 1);
  }
  params.base_count = params.scale_count = 3;
  params.global_scale = 1;
  CHECK_OK(cvc_op_normalize_var_shape_new(stream, src, &params, CVC_FORMAT_RGBF32, &dst));
  for (int i = 0; i < images; ++i) {
    cvc_image_t image = image_of(widths[i], heights[i], CVC_FORMAT_RGBF32, stream);
    CHECK_OK(cvc_image_batch_push(again, &image, 1));
    CHECK_OK(cvc_image_release(image));
  }
  CHECK_OK(cvc_op_normalize_var_shape(stream, src, again, &params));
  params.dst_dtype = CVC_DTYPE_F32;
  for (int i = 0; i < images; ++i) {
    cvc_tensor_t from = view_of(src, i), got = view_of(dst, i), also = view_of(again, i), expected = NULL;
    CHECK_OK(cvc_op_normalize_new(stream, from, &params, &expected));
    const size_t bytes = (size_t)(widths[i] * heights[i] * 3) * sizeof(float);
    expect_equal(stream, got, expected, bytes);
    expect_equal(stream, also, expected, bytes);
    CHECK_OK(cvc_tensor_release(from));
    CHECK_OK(cvc_tensor_release(got));
    CHECK_OK(cvc_tensor_release(also));
    CHECK_OK(cvc_tensor_release(expected));
  }
  CHECK_OK(cvc_image_batch_release(src));
  CHECK_OK(cvc_image_batch_release(dst));
  CHECK_OK(cvc_image_batch_release(again));
  CHECK_OK(cvc_stream_destroy(stream));
}

// Dropped outputs of one list of sizes come back as the same batch, without any new memory.
static void dropped_batches_are_reused_behind_a_busy_stream(void) {
  cvc_cache_t cache = check_default_cache();
  cvc_stream_t stream = new_stream();
  cvc_image_batch_t src = noise_batch(stream), dst = NULL;
  const int32_t sizes[2 * images] = {4, 5, 20, 20, 11, 3};
  uint64_t latch = hold(stream);
  CHECK_OK(cvc_op_pillow_resize_var_shape_new(stream, src, sizes, images, CVC_FILTER_BOX, 0, &dst));
  CHECK_OK(cvc_image_batch_release(dst));
  const uint64_t bytes = check_stats(cache, 0).bytes, count = check_stats(cache, 0).count;
  for (int i = 0; i < 20; ++i) {
    CHECK_OK(cvc_op_pillow_resize_var_shape_new(stream, src, sizes, images, CVC_FILTER_BOX, 0, &dst));
    CHECK_OK(cvc_image_batch_release(dst));
  }
  CHECK_EQ(check_stats(cache, 0).bytes, bytes);
  CHECK_EQ(check_stats(cache, 0).count, count);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK_OK(cvc_image_batch_release(src));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void arguments_that_do_not_agree(void) {
  cvc_stream_t stream = new_stream();
  cvc_image_batch_t src = noise_batch(stream), other = new_batch(1, stream), result = NULL;
  const int64_t shape[1] = {2};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_S32, "N", 1, shape);
  cvc_tensor_t few = NULL, floats = NULL;
  CHECK_OK(cvc_tensor_create(check_default_cache(), &desc, stream, &few));
  desc.dtype = CVC_DTYPE_F32;
  desc.shape[0] = images;
  CHECK_OK(cvc_tensor_create(check_default_cache(), &desc, stream, &floats));
  CHECK_ERROR(cvc_op_flip_var_shape_new(stream, src, few, &result), CVC_STATUS_SHAPE_MISMATCH, "flip_codes",
              "2", "3");
  CHECK_ERROR(cvc_op_flip_var_shape_new(stream, src, floats, &result), CVC_STATUS_DTYPE_MISMATCH,
              "flip_codes", "F32");
  CHECK_STATUS(cvc_op_flip_var_shape(stream, src, other, few), CVC_STATUS_SHAPE_MISMATCH);
  CHECK_STATUS(cvc_op_pillow_resize_var_shape(stream, src, other, CVC_FILTER_BOX, 0),
               CVC_STATUS_SHAPE_MISMATCH);
  const int32_t sizes[2 * images] = {4, 5, 20, 0, 11, 3};
  CHECK_ERROR(cvc_op_pillow_resize_var_shape_new(stream, src, sizes, images, CVC_FILTER_BOX, 0, &result),
              CVC_STATUS_INVALID_SHAPE, "sizes", "0");
  CHECK_STATUS(cvc_op_pillow_resize_var_shape_new(stream, src, sizes, 2, CVC_FILTER_BOX, 0, &result),
               CVC_STATUS_SHAPE_MISMATCH);
  CHECK_ERROR(cvc_op_pillow_resize_var_shape_new(stream, src, NULL, images, CVC_FILTER_BOX, 0, &result),
              CVC_STATUS_NULL_POINTER, "sizes");
  cvc_normalize_params_t params;
  memset(&params, 0, sizeof params);
  params.struct_size = sizeof params;
  params.base_count = params.scale_count = 1;
  params.global_scale = NAN;
  CHECK_ERROR(cvc_op_normalize_var_shape_new(stream, src, &params, 0, &result), CVC_STATUS_INVALID_VALUE,
              "params.global_scale", "NaN");
  params.global_scale = 1;
  CHECK_STATUS(cvc_op_normalize_var_shape(stream, src, other, &params), CVC_STATUS_SHAPE_MISMATCH);
  CHECK_ERROR(cvc_op_normalize_var_shape_new(stream, src, &params, 500, &result), CVC_STATUS_INVALID_ENUM,
              "dst_format", "500");
  CHECK(result == NULL);
  CHECK_OK(cvc_tensor_release(few));
  CHECK_OK(cvc_tensor_release(floats));
  CHECK_OK(cvc_image_batch_release(src));
  CHECK_OK(cvc_image_batch_release(other));
  CHECK_OK(cvc_stream_destroy(stream));
}

int main(void) {
  CHECK_BEGIN();
  RUN(flip);
  RUN(pillow_resize);
  RUN(normalize);
  // Under initcheck a call of the driver's does not come back here while the stream is held.
  if (!getenv("CVC_NOT_HELD"))
    RUN(dropped_batches_are_reused_behind_a_busy_stream);
  RUN(arguments_that_do_not_agree);
  return CHECK_END();
}

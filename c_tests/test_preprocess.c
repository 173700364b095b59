// Preprocess against the operators called one after the other, and what it refuses.
#include "fixtures.h"

#include <math.h>

enum { n = 2, h = 20, w = 26, c = 3, out_h = 9, out_w = 12 };

static cvc_preprocess_params_t params_of(cvc_filter_t filter) {
  cvc_preprocess_params_t params;
  memset(&params, 0, sizeof params);
  params.struct_size = sizeof params;
  params.filter = filter;
  return params;
}

static cvc_normalize_params_t normalize_of(float base, float scale, cvc_dtype_t dtype) {
  cvc_normalize_params_t params;
  memset(&params, 0, sizeof params);
  params.struct_size = sizeof params;
  for (int k = 0; k < 3; ++k) {
    params.base_values[k] = base + (float)k;
    params.scale_values[k] = scale * (float)(k + 1);
  }
  params.base_count = params.scale_count = 3;
  params.global_scale = 1;
  params.dst_dtype = dtype;
  return params;
}

static void expect_equal(cvc_stream_t stream, cvc_tensor_t a, cvc_tensor_t b, size_t bytes) {
  unsigned char left[n * h * w * 16], right[sizeof left];
  take(stream, a, left);
  take(stream, b, right);
  CHECK(memcmp(tensor_data(a).shape, tensor_data(b).shape, 4 * sizeof(int64_t)) == 0);
  CHECK(memcmp(left, right, bytes) == 0);
}

// Into a tensor of the caller's, and into one from the cache.
static void chain_of_a_tensor(void) {
  cvc_stream_t stream = new_stream();
  unsigned char pixels[n * h * w * c], cropped[n * 15 * 20 * c];
  fill_noise(pixels, sizeof pixels, 71);
  const cvc_crop_t crop = {5, 3, 20, 15};
  for (int i = 0; i < n * 15; ++i)
    memcpy(cropped + i * 20 * c, pixels + ((i / 15 * h + i % 15 + crop.y) * w + crop.x) * c, 20 * c);
  cvc_tensor_t src = nhwc(n, h, w, c, CVC_DTYPE_U8, stream), part = nhwc(n, 15, 20, c, CVC_DTYPE_U8, stream);
  put(stream, src, pixels);
  put(stream, part, cropped);

  cvc_normalize_params_t normalize = normalize_of(0.25f, 2, CVC_DTYPE_F32);
  cvc_preprocess_params_t params = params_of(CVC_FILTER_LANCZOS);
  params.flags = CVC_PREPROCESS_FLIP;
  params.flip_code = -1;
  params.crops = &crop;
  params.crop_count = 1;
  params.convert_dtype = CVC_DTYPE_F32;
  params.alpha = 1 / 255.0;
  params.beta = -0.5;
  params.normalize = &normalize;
  cvc_tensor_t made = NULL;
  CHECK_OK(cvc_op_preprocess_new(stream, src, &params, out_h, out_w, "NCHW", &made));
  const int64_t shape[4] = {n, c, out_h, out_w};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_F32, "NCHW", 4, shape);
  cvc_tensor_t dst = NULL;
  CHECK_OK(cvc_tensor_create(check_default_cache(), &desc, stream, &dst));
  CHECK_OK(cvc_op_preprocess(stream, src, dst, &params));

  cvc_tensor_t resized = NULL, flipped = NULL, converted = NULL, normal = NULL, expected = NULL;
  CHECK_OK(cvc_op_pillow_resize_new(stream, part, out_h, out_w, CVC_FILTER_LANCZOS, 0, &resized));
  CHECK_OK(cvc_op_flip_new(stream, resized, -1, &flipped));
  CHECK_OK(
      cvc_op_convert_to_new(stream, flipped, CVC_DTYPE_F32, 1 / 255.0, -0.5, CVC_ROUND_NEAREST, &converted));
  CHECK_OK(cvc_op_normalize_new(stream, converted, &normalize, &normal));
  CHECK_OK(cvc_op_reformat_new(stream, normal, "NCHW", &expected));
  const size_t bytes = (size_t)(n * out_h * out_w * c) * sizeof(float);
  expect_equal(stream, made, expected, bytes);
  expect_equal(stream, dst, expected, bytes);

  cvc_tensor_t all[] = {src, part, made, dst, resized, flipped, converted, normal, expected};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
    CHECK_OK(cvc_tensor_release(all[i]));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void channels_are_exchanged(void) {
  cvc_stream_t stream = new_stream();
  for (int channels = 3; channels <= 4; ++channels) {
    unsigned char pixels[h * w * 4], out[sizeof pixels];
    fill_noise(pixels, sizeof pixels, 5);
    cvc_tensor_t src = nhwc(1, h, w, channels, CVC_DTYPE_U8, stream), dst = NULL;
    put(stream, src, pixels);
    cvc_preprocess_params_t params = params_of(CVC_FILTER_NEAREST);
    params.flags = CVC_PREPROCESS_SWAP_CHANNELS;
    CHECK_OK(cvc_op_preprocess_new(stream, src, &params, h, w, "HWC", &dst));
    take(stream, dst, out);
    int equal = 1;
    for (int i = 0; i < h * w * channels; ++i) {
      const int channel = i % channels;
      equal &= out[i] == pixels[channel == 3 ? i : i - channel + 2 - channel];
    }
    CHECK(equal);
    CHECK_OK(cvc_tensor_release(src));
    CHECK_OK(cvc_tensor_release(dst));
  }
  CHECK_OK(cvc_stream_destroy(stream));
}

// BT.601, limited range: greys, and one colour that everybody knows.
static void nv12(void) {
  cvc_stream_t stream = new_stream();
  const unsigned char frame[6 * 4] = {16,  235, 126, 16,  16, 16,  16, 16,   // luma
                                      81,  81,  81,  81,  81, 81,  81, 81,   //
                                      128, 128, 128, 128, 90, 240, 90, 240}; // chroma
  cvc_tensor_t src = nhwc(1, 6, 4, 1, CVC_DTYPE_U8, stream), dst = NULL;
  put(stream, src, frame);
  cvc_preprocess_params_t params = params_of(CVC_FILTER_NEAREST);
  params.flags = CVC_PREPROCESS_NV12;
  params.color_matrix = CVC_COLOR_MATRIX_BT601;
  CHECK_OK(cvc_op_preprocess_new(stream, src, &params, 4, 4, "HWC", &dst));
  unsigned char out[4 * 4 * 3];
  take(stream, dst, out);
  CHECK(out[0] == 0 && out[1] == 0 && out[2] == 0);
  CHECK(out[3] == 255 && out[4] == 255 && out[5] == 255);
  CHECK(out[6] == 128 && out[7] == 128 && out[8] == 128);
  for (int i = 24; i < 48; i += 3)
    CHECK(out[i] >= 254 && out[i + 1] <= 1 && out[i + 2] <= 1); // red
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(dst));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void images_of_two_sizes(void) {
  cvc_stream_t stream = new_stream();
  cvc_image_batch_t batch = NULL;
  CHECK_OK(cvc_image_batch_create(check_default_cache(), CVC_DEVICE_CURRENT, 2, stream, &batch));
  const int32_t widths[2] = {17, 12}, heights[2] = {11, 9};
  cvc_tensor_t sources[2] = {NULL, NULL};
  for (int i = 0; i < 2; ++i) {
    unsigned char pixels[17 * 11 * 3];
    fill_noise(pixels, sizeof pixels, (uint32_t)i + 80);
    cvc_image_t image = image_of(widths[i], heights[i], CVC_FORMAT_RGB8, stream);
    CHECK_OK(cvc_tensor_from_image(image, &sources[i]));
    put(stream, sources[i], pixels);
    CHECK_OK(cvc_image_batch_push(batch, &image, 1));
    CHECK_OK(cvc_image_release(image));
  }
  cvc_normalize_params_t normalize = normalize_of(100, 0.5f, CVC_DTYPE_F16);
  cvc_preprocess_params_t params = params_of(CVC_FILTER_CUBIC);
  params.normalize = &normalize;
  cvc_tensor_t made = NULL, dst = nhwc(2, out_h, out_w, c, CVC_DTYPE_F16, stream);
  CHECK_OK(cvc_op_preprocess_var_shape_new(stream, batch, &params, out_h, out_w, "NHWC", &made));
  CHECK_OK(cvc_op_preprocess_var_shape(stream, batch, dst, &params));
  const size_t bytes = (size_t)(out_h * out_w * c) * 2;
  unsigned char all[2 * out_h * out_w * c * 2], again[sizeof all], one[sizeof all];
  take(stream, made, all);
  take(stream, dst, again);
  CHECK(memcmp(all, again, sizeof all) == 0);
  for (int i = 0; i < 2; ++i) {
    cvc_tensor_t resized = NULL, expected = NULL;
    CHECK_OK(cvc_op_pillow_resize_new(stream, sources[i], out_h, out_w, CVC_FILTER_CUBIC, 0, &resized));
    CHECK_OK(cvc_op_normalize_new(stream, resized, &normalize, &expected));
    take(stream, expected, one);
    CHECK(memcmp(all + (size_t)i * bytes, one, bytes) == 0);
    CHECK_OK(cvc_tensor_release(resized));
    CHECK_OK(cvc_tensor_release(expected));
    CHECK_OK(cvc_tensor_release(sources[i]));
  }
  CHECK_OK(cvc_tensor_release(made));
  CHECK_OK(cvc_tensor_release(dst));
  CHECK_OK(cvc_image_batch_release(batch));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void arguments_that_do_not_agree(void) {
  cvc_stream_t stream = new_stream();
  cvc_tensor_t src = nhwc(n, h, w, c, CVC_DTYPE_U8, stream), result = NULL;
  cvc_tensor_t floats = nhwc(n, out_h, out_w, c, CVC_DTYPE_F32, stream);
  cvc_tensor_t two = nhwc(n, h, w, 2, CVC_DTYPE_U8, stream);
  const cvc_preprocess_params_t good = params_of(CVC_FILTER_LINEAR);
  cvc_preprocess_params_t bad = good;
  const cvc_crop_t outside = {20, 0, 7, 4}, many[3] = {{0, 0, 1, 1}, {0, 0, 1, 1}, {0, 0, 1, 1}};
#define REFUSED(...)                                                                                         \
  CHECK_ERROR(cvc_op_preprocess_new(stream, src, &bad, out_h, out_w, "NHWC", &result), __VA_ARGS__)
  bad.crops = &outside;
  bad.crop_count = 1;
  REFUSED(CVC_STATUS_INVALID_SHAPE, "params.crops[0]", "7x4", "26x20");
  bad.crops = many;
  bad.crop_count = 3;
  REFUSED(CVC_STATUS_SHAPE_MISMATCH, "params.crop_count", "3", "0, 1 or 2");
  bad.crops = NULL;
  REFUSED(CVC_STATUS_NULL_POINTER, "params.crops");
  bad.crop_count = -3;
  REFUSED(CVC_STATUS_INVALID_ARGUMENT, "params.crop_count", "-3");
  bad = good;
  bad.flags = 0x20;
  REFUSED(CVC_STATUS_INVALID_ENUM, "params.flags", "0x20");
  bad = good;
  bad.resize_flags = 0x8;
  REFUSED(CVC_STATUS_INVALID_ENUM, "params.resize_flags", "0x8");
  bad = good;
  bad.filter = CVC_FILTER_AREA;
  REFUSED(CVC_STATUS_NOT_SUPPORTED, "filter");
  bad = good;
  bad.color_matrix = 7;
  REFUSED(CVC_STATUS_INVALID_ENUM, "params.color_matrix", "7");
  bad = good;
  bad.convert_dtype = CVC_DTYPE_F32;
  bad.alpha = NAN;
  REFUSED(CVC_STATUS_INVALID_VALUE, "params.alpha", "NaN");
  bad.alpha = 1;
  bad.round = 5;
  REFUSED(CVC_STATUS_INVALID_ENUM, "params.round", "5");
  bad = good;
  bad.struct_size = 12;
  REFUSED(CVC_STATUS_INVALID_STRUCT_SIZE, "params.struct_size", "12");
  bad = good;
  bad.flags = CVC_PREPROCESS_NV12;
  REFUSED(CVC_STATUS_DTYPE_MISMATCH, "src", "3 channels");
  cvc_normalize_params_t normalize = normalize_of(1, 1, CVC_DTYPE_F32);
  normalize.scale_values[2] = INFINITY;
  bad = good;
  bad.normalize = &normalize;
  REFUSED(CVC_STATUS_INVALID_VALUE, "params.normalize.scale_values[2]", "inf");
#undef REFUSED
  bad = good;
  bad.flags = CVC_PREPROCESS_SWAP_CHANNELS;
  CHECK_ERROR(cvc_op_preprocess_new(stream, two, &bad, out_h, out_w, "NHWC", &result),
              CVC_STATUS_NOT_SUPPORTED, "CVC_PREPROCESS_SWAP_CHANNELS", "2 channels");
  CHECK_ERROR(cvc_op_preprocess_new(stream, src, NULL, out_h, out_w, "NHWC", &result),
              CVC_STATUS_NULL_POINTER, "params");
  CHECK_ERROR(cvc_op_preprocess_new(stream, src, &good, out_h, 0, "NHWC", &result), CVC_STATUS_INVALID_SHAPE,
              "width", "0");
  CHECK_ERROR(cvc_op_preprocess_new(stream, src, &good, out_h, out_w, "HW", &result),
              CVC_STATUS_INVALID_LAYOUT, "layout", "HW");
  CHECK_ERROR(cvc_op_preprocess_new(stream, src, &good, out_h, out_w, "CHW", &result),
              CVC_STATUS_SHAPE_MISMATCH, "layout", "2 images");
  CHECK_ERROR(cvc_op_preprocess_new(stream, src, &good, out_h, out_w, NULL, &result), CVC_STATUS_NULL_POINTER,
              "layout");
  CHECK_STATUS(cvc_op_preprocess_new(stream, src, &good, out_h, out_w, "NHWC", NULL),
               CVC_STATUS_NULL_POINTER);
  CHECK(result == NULL);
  CHECK_ERROR(cvc_op_preprocess(stream, src, floats, &good), CVC_STATUS_DTYPE_MISMATCH, "dst", "F32", "U8");
  CHECK_ERROR(cvc_op_preprocess(stream, src, two, &good), CVC_STATUS_SHAPE_MISMATCH, "dst", "2 for C", "3");
  CHECK_ERROR(cvc_op_preprocess(stream, src, src, &good), CVC_STATUS_INVALID_ARGUMENT, "dst", "overlaps src");

  cvc_image_batch_t batch = NULL;
  CHECK_OK(cvc_image_batch_create(check_default_cache(), CVC_DEVICE_CURRENT, 2, stream, &batch));
  CHECK_ERROR(cvc_op_preprocess_var_shape(stream, batch, floats, &good), CVC_STATUS_SHAPE_MISMATCH, "dst",
              "2 for N", "0");
  const cvc_format_t formats[2] = {CVC_FORMAT_RGB8, CVC_FORMAT_UYVY};
  for (int i = 0; i < 2; ++i) {
    cvc_image_t image = image_of(8, 8, formats[i], stream);
    CHECK_OK(cvc_image_batch_push(batch, &image, 1));
    CHECK_OK(cvc_image_release(image));
  }
  CHECK_ERROR(cvc_op_preprocess_var_shape_new(stream, batch, &good, 4, 4, "NHWC", &result),
              CVC_STATUS_NOT_SUPPORTED, "src[1]", "UYVY");
  bad = good;
  bad.flags = CVC_PREPROCESS_NV12;
  CHECK_ERROR(cvc_op_preprocess_var_shape_new(stream, batch, &bad, 4, 4, "NHWC", &result),
              CVC_STATUS_INVALID_ENUM, "params.flags", "0x4");
  CHECK(result == NULL);
  CHECK_OK(cvc_image_batch_release(batch));
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(floats));
  CHECK_OK(cvc_tensor_release(two));
  CHECK_OK(cvc_stream_destroy(stream));
}

int main(void) {
  CHECK_BEGIN();
  RUN(chain_of_a_tensor);
  RUN(channels_are_exchanged);
  RUN(nv12);
  RUN(images_of_two_sizes);
  RUN(arguments_that_do_not_agree);
  return CHECK_END();
}

// Normalize against a plain loop: values and tensors, deviations, saturation, and what is refused.
#include "fixtures.h"

#include <math.h>

enum { n = 2, h = 5, w = 6, c = 3, count = n * h * w * c };

static cvc_normalize_params_t params_of(const float *base, const float *scale, int32_t values) {
  cvc_normalize_params_t params;
  memset(&params, 0, sizeof params);
  params.struct_size = sizeof params;
  memcpy(params.base_values, base, sizeof(float) * (size_t)values);
  memcpy(params.scale_values, scale, sizeof(float) * (size_t)values);
  params.base_count = values;
  params.scale_count = values;
  params.global_scale = 1;
  return params;
}

// (value - base) * scale * global_scale + global_shift, each step rounded to float.
static float normalized(float value, float base, float scale, float global_scale, float global_shift) {
  volatile float step = value - base;
  step = step * scale;
  step = step * global_scale;
  return step + global_shift;
}

static float inverse_deviation(float deviation, float epsilon) {
  volatile float square = deviation * deviation;
  square = square + epsilon;
  return 1.0f / sqrtf(square);
}

static const float means[3] = {123.675f, 116.28f, 103.53f}, deviations[3] = {58.395f, 57.12f, 57.375f};

static void bytes_to_floats_with_channel_values(void) {
  cvc_stream_t stream = new_stream();
  unsigned char in[count];
  float out[count];
  fill_noise(in, sizeof in, 6);
  cvc_tensor_t src = nhwc(n, h, w, c, CVC_DTYPE_U8, stream), dst = NULL;
  CHECK_OK(cvc_upload(stream, in, NULL, src));
  cvc_normalize_params_t params = params_of(means, deviations, 3);
  params.flags = CVC_NORMALIZE_SCALE_IS_STDDEV;
  params.epsilon = 0.25f;
  params.global_scale = 2;
  params.global_shift = -0.125f;
  params.dst_dtype = CVC_DTYPE_F32;
  CHECK_OK(cvc_op_normalize_new(stream, src, &params, &dst));
  CHECK_EQ(tensor_data(dst).dtype, CVC_DTYPE_F32);
  take(stream, dst, out);
  int equal = 1;
  for (int i = 0; i < count; ++i)
    equal &=
        out[i] == normalized(in[i], means[i % c], inverse_deviation(deviations[i % c], 0.25f), 2, -0.125f);
  CHECK(equal);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(dst));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void one_value_and_saturation(void) {
  cvc_stream_t stream = new_stream();
  unsigned char in[count], out[count];
  fill_noise(in, sizeof in, 7);
  cvc_tensor_t src = nhwc(n, h, w, c, CVC_DTYPE_U8, stream), dst = nhwc(n, h, w, c, CVC_DTYPE_U8, stream);
  CHECK_OK(cvc_upload(stream, in, NULL, src));
  const float base = 100, scale = 3;
  cvc_normalize_params_t params = params_of(&base, &scale, 1);
  CHECK_OK(cvc_op_normalize(stream, src, dst, &params));
  take(stream, dst, out);
  int equal = 1;
  for (int i = 0; i < count; ++i) {
    const int value = (in[i] - 100) * 3;
    equal &= out[i] == (value < 0 ? 0 : value > 255 ? 255 : value);
  }
  CHECK(equal);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(dst));
  CHECK_OK(cvc_stream_destroy(stream));
}

// A base for each row and channel, a scale for each image.
static void broadcast_tensors(void) {
  cvc_stream_t stream = new_stream();
  float in[count], out[count], bases[h * c], scales[n] = {0.5f, -4};
  for (int i = 0; i < count; ++i)
    in[i] = (float)(i % 97) * 0.37f;
  for (int i = 0; i < h * c; ++i)
    bases[i] = (float)i * 1.25f;
  cvc_tensor_t src = nhwc(n, h, w, c, CVC_DTYPE_F32, stream), dst = NULL;
  cvc_tensor_t base = nhwc(1, h, 1, c, CVC_DTYPE_F32, stream),
               scale = nhwc(n, 1, 1, 1, CVC_DTYPE_F32, stream);
  CHECK_OK(cvc_upload(stream, in, NULL, src));
  CHECK_OK(cvc_upload(stream, bases, NULL, base));
  CHECK_OK(cvc_upload(stream, scales, NULL, scale));
  cvc_normalize_params_t params;
  memset(&params, 0, sizeof params);
  params.struct_size = sizeof params;
  params.base = base;
  params.scale = scale;
  params.global_scale = 1;
  params.global_shift = 10;
  CHECK_OK(cvc_op_normalize_new(stream, src, &params, &dst));
  take(stream, dst, out);
  int equal = 1;
  for (int i = 0; i < count; ++i) {
    const int channel = i % c, row = i / (w * c) % h, image = i / (h * w * c);
    equal &= out[i] == normalized(in[i], bases[row * c + channel], scales[image], 1, 10);
  }
  CHECK(equal);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(dst));
  CHECK_OK(cvc_tensor_release(base));
  CHECK_OK(cvc_tensor_release(scale));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void arguments_that_do_not_agree(void) {
  cvc_stream_t stream = new_stream();
  cvc_tensor_t src = nhwc(n, h, w, c, CVC_DTYPE_F32, stream), result = NULL;
  cvc_tensor_t shape = nhwc(1, 2, 1, 1, CVC_DTYPE_F32, stream),
               dtype = nhwc(1, 1, 1, c, CVC_DTYPE_U8, stream);
  cvc_normalize_params_t good = params_of(means, deviations, 3), bad = good;
  bad.base = shape;
  CHECK_ERROR(cvc_op_normalize_new(stream, src, &bad, &result), CVC_STATUS_SHAPE_MISMATCH, "params.base", "2",
              "5");
  bad = good;
  bad.scale = dtype;
  CHECK_ERROR(cvc_op_normalize_new(stream, src, &bad, &result), CVC_STATUS_DTYPE_MISMATCH, "params.scale",
              "U8");
  bad = good;
  bad.scale_values[1] = NAN;
  CHECK_ERROR(cvc_op_normalize_new(stream, src, &bad, &result), CVC_STATUS_INVALID_VALUE,
              "params.scale_values[1]", "NaN");
  bad = good;
  bad.global_scale = INFINITY;
  CHECK_ERROR(cvc_op_normalize_new(stream, src, &bad, &result), CVC_STATUS_INVALID_VALUE,
              "params.global_scale", "inf");
  bad = good;
  bad.base_count = 2;
  CHECK_ERROR(cvc_op_normalize_new(stream, src, &bad, &result), CVC_STATUS_INVALID_ARGUMENT,
              "params.base_count", "2");
  bad = good;
  bad.flags = 0x8u;
  CHECK_ERROR(cvc_op_normalize_new(stream, src, &bad, &result), CVC_STATUS_INVALID_ENUM, "params.flags",
              "0x8");
  bad = good;
  bad.dst_dtype = 77;
  CHECK_ERROR(cvc_op_normalize_new(stream, src, &bad, &result), CVC_STATUS_INVALID_ENUM, "params.dst_dtype");
  bad = good;
  bad.struct_size = 8;
  CHECK_ERROR(cvc_op_normalize_new(stream, src, &bad, &result), CVC_STATUS_INVALID_STRUCT_SIZE,
              "params.struct_size", "8");
  CHECK_ERROR(cvc_op_normalize_new(stream, src, NULL, &result), CVC_STATUS_NULL_POINTER, "params");
  CHECK(result == NULL);
  CHECK_ERROR(cvc_op_normalize(stream, src, shape, &good), CVC_STATUS_SHAPE_MISMATCH, "dst");
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(shape));
  CHECK_OK(cvc_tensor_release(dtype));
  CHECK_OK(cvc_stream_destroy(stream));
}

int main(void) {
  CHECK_BEGIN();
  RUN(bytes_to_floats_with_channel_values);
  RUN(one_value_and_saturation);
  RUN(broadcast_tensors);
  RUN(arguments_that_do_not_agree);
  return CHECK_END();
}

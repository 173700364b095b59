// Conversion of dtypes: alpha and beta, saturation, rounding, and what is refused.
#include "fixtures.h"

#include <math.h>

static void bytes_to_floats(void) {
  cvc_stream_t stream = new_stream();
  enum { count = 4 * 8 * 8 };
  unsigned char in[count];
  float out[count];
  for (int i = 0; i < count; ++i)
    in[i] = (unsigned char)i;
  cvc_tensor_t src = nhwc(1, 8, 8, 4, CVC_DTYPE_U8, stream), dst = NULL;
  CHECK_OK(cvc_upload(stream, in, NULL, src));
  CHECK_OK(cvc_op_convert_to_new(stream, src, CVC_DTYPE_F32, 1.0 / 255, -0.5, CVC_ROUND_NEAREST, &dst));
  CHECK_EQ(tensor_data(dst).dtype, CVC_DTYPE_F32);
  take(stream, dst, out);
  int equal = 1;
  for (int i = 0; i < count; ++i) {
    const volatile float product = (float)in[i] * (float)(1.0 / 255); // each step rounded
    equal &= out[i] == product + -0.5f;
  }
  CHECK(equal);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(dst));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void floats_to_bytes(void) {
  cvc_stream_t stream = new_stream();
  enum { count = 12 };
  const float in[count] = {-1, 0, 0.5f, 1.5f, 2.5f, 2.6f, 254.5f, 255.4f, 300, NAN, INFINITY, -INFINITY};
  const unsigned char nearest[count] = {0, 0, 0, 2, 2, 3, 254, 255, 255, 0, 255, 0};
  const unsigned char truncated[count] = {0, 0, 0, 1, 2, 2, 254, 255, 255, 0, 255, 0};
  unsigned char out[count];
  cvc_tensor_t src = nhwc(1, 1, count, 1, CVC_DTYPE_F32, stream),
               dst = nhwc(1, 1, count, 1, CVC_DTYPE_U8, stream);
  CHECK_OK(cvc_upload(stream, in, NULL, src));
  CHECK_OK(cvc_op_convert_to(stream, src, dst, 1, 0, CVC_ROUND_NEAREST));
  take(stream, dst, out);
  CHECK(memcmp(out, nearest, sizeof out) == 0);
  CHECK_OK(cvc_op_convert_to(stream, src, dst, 1, 0, CVC_ROUND_TRUNCATE));
  take(stream, dst, out);
  CHECK(memcmp(out, truncated, sizeof out) == 0);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(dst));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void large_integers_and_doubles(void) {
  cvc_stream_t stream = new_stream();
  const int32_t in[4] = {INT32_MIN, -16777217, 16777217, INT32_MAX};
  double wide[4];
  int16_t narrow[4];
  cvc_tensor_t src = nhwc(1, 1, 4, 1, CVC_DTYPE_S32, stream), f64 = NULL, s16 = NULL;
  CHECK_OK(cvc_upload(stream, in, NULL, src));
  CHECK_OK(cvc_op_convert_to_new(stream, src, CVC_DTYPE_F64, 0.5, 1, CVC_ROUND_NEAREST, &f64));
  take(stream, f64, wide);
  for (int i = 0; i < 4; ++i)
    CHECK(wide[i] == in[i] * 0.5 + 1);
  CHECK_OK(cvc_op_convert_to_new(stream, src, CVC_DTYPE_S16, 1, 0, CVC_ROUND_NEAREST, &s16));
  take(stream, s16, narrow);
  CHECK(narrow[0] == INT16_MIN && narrow[1] == INT16_MIN && narrow[2] == INT16_MAX && narrow[3] == INT16_MAX);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(f64));
  CHECK_OK(cvc_tensor_release(s16));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void arguments_that_do_not_agree(void) {
  cvc_stream_t stream = new_stream();
  cvc_tensor_t src = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, stream), shape = nhwc(1, 4, 5, 3, CVC_DTYPE_F32, stream);
  cvc_tensor_t dst = nhwc(1, 4, 4, 3, CVC_DTYPE_F32, stream), result = NULL;
  float before[48], after[48];
  fill_noise(before, sizeof before, 3);
  put(stream, dst, before);
  CHECK_ERROR(cvc_op_convert_to(stream, src, shape, 1, 0, CVC_ROUND_NEAREST), CVC_STATUS_SHAPE_MISMATCH,
              "dst");
  CHECK_ERROR(cvc_op_convert_to(stream, src, dst, (double)NAN, 0, CVC_ROUND_NEAREST),
              CVC_STATUS_INVALID_VALUE, "alpha", "NaN");
  CHECK_ERROR(cvc_op_convert_to(stream, src, dst, 1, (double)INFINITY, CVC_ROUND_NEAREST),
              CVC_STATUS_INVALID_VALUE, "beta", "inf");
  CHECK_ERROR(cvc_op_convert_to(stream, src, dst, 1, 0, 5), CVC_STATUS_INVALID_ENUM, "round", "5");
  CHECK_ERROR(cvc_op_convert_to_new(stream, src, 0xffu, 1, 0, CVC_ROUND_NEAREST, &result),
              CVC_STATUS_INVALID_ENUM, "dtype", "0xff");
  CHECK_ERROR(cvc_op_convert_to_new(stream, src, CVC_DTYPE_C64, 1, 0, CVC_ROUND_NEAREST, &result),
              CVC_STATUS_NOT_SUPPORTED, "dtype", "C64");
  CHECK(result == NULL);
  take(stream, dst, after);
  CHECK(memcmp(before, after, sizeof before) == 0);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(shape));
  CHECK_OK(cvc_tensor_release(dst));
  CHECK_OK(cvc_stream_destroy(stream));
}

int main(void) {
  CHECK_BEGIN();
  RUN(bytes_to_floats);
  RUN(floats_to_bytes);
  RUN(large_integers_and_doubles);
  RUN(arguments_that_do_not_agree);
  return CHECK_END();
}

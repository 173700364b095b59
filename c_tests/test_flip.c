// Flip against a plain loop: codes, dtypes, channels, layouts, in place, and what is refused.
#include "fixtures.h"

// Flips packed images: `planes` of them, of h rows of w pixels of `pixel` bytes.
static void flip_reference(const unsigned char *src, unsigned char *dst, int planes, int h, int w, int pixel,
                           int code) {
  for (int p = 0; p < planes; ++p) {
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        const int from_y = code <= 0 ? h - 1 - y : y, from_x = code != 0 ? w - 1 - x : x;
        memcpy(dst + ((p * h + y) * w + x) * pixel, src + ((p * h + from_y) * w + from_x) * pixel,
               (size_t)pixel);
      }
    }
  }
}

static void codes_dtypes_and_channels(void) {
  cvc_stream_t stream = new_stream();
  enum { n = 2, h = 7, w = 9 };
  const struct {
    cvc_dtype_t dtype;
    int bytes;
  } dtypes[] = {{CVC_DTYPE_U8, 1}, {CVC_DTYPE_U16, 2}, {CVC_DTYPE_S32, 4}, {CVC_DTYPE_F32, 4}};
  for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; ++d) {
    for (int c = 1; c <= 4; ++c) {
      for (int code = -1; code <= 1; ++code) {
        const int pixel = c * dtypes[d].bytes;
        unsigned char in[n * h * w * 16], out[sizeof in], expected[sizeof in];
        fill_noise(in, sizeof in, (uint32_t)(d * 100 + (size_t)c));
        flip_reference(in, expected, n, h, w, pixel, code);
        cvc_tensor_t src = nhwc(n, h, w, c, dtypes[d].dtype, stream);
        cvc_tensor_t dst = nhwc(n, h, w, c, dtypes[d].dtype, stream), result = NULL;
        CHECK_OK(cvc_upload(stream, in, NULL, src));
        CHECK_OK(cvc_op_flip(stream, src, dst, code));
        take(stream, dst, out);
        CHECK(memcmp(out, expected, (size_t)(n * h * w * pixel)) == 0);

        CHECK_OK(cvc_op_flip_new(stream, src, code, &result));
        take(stream, result, out);
        CHECK(memcmp(out, expected, (size_t)(n * h * w * pixel)) == 0);

        CHECK_OK(cvc_op_flip(stream, src, src, code)); // in place
        take(stream, src, out);
        CHECK(memcmp(out, expected, (size_t)(n * h * w * pixel)) == 0);
        CHECK_OK(cvc_tensor_release(src));
        CHECK_OK(cvc_tensor_release(dst));
        CHECK_OK(cvc_tensor_release(result));
      }
    }
  }
  CHECK_OK(cvc_stream_destroy(stream));
}

static void planar_layout(void) {
  cvc_stream_t stream = new_stream();
  enum { c = 3, h = 5, w = 6 };
  int64_t shape[3] = {c, h, w};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "CHW", 3, shape);
  unsigned char in[c * h * w], out[sizeof in], expected[sizeof in];
  fill_noise(in, sizeof in, 8);
  flip_reference(in, expected, c, h, w, 1, -1);
  cvc_tensor_t src = NULL, dst = NULL;
  CHECK_OK(cvc_tensor_create(check_default_cache(), &desc, stream, &src));
  put(stream, src, in);
  CHECK_OK(cvc_op_flip_new(stream, src, -5, &dst));
  CHECK(strcmp(tensor_data(dst).layout, "CHW") == 0);
  take(stream, dst, out);
  CHECK(memcmp(out, expected, sizeof out) == 0);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(dst));
  CHECK_OK(cvc_stream_destroy(stream));
}

// A chain whose outputs are dropped at once runs in the memory of two tensors.
static void dropped_outputs_are_reused_behind_a_busy_stream(void) {
  cvc_cache_t cache = check_default_cache();
  cvc_stream_t stream = new_stream();
  cvc_tensor_t src = nhwc(1, 32, 32, 3, CVC_DTYPE_U8, stream), dst = NULL;
  CHECK_OK(cvc_fill_zero(stream, src));
  uint64_t latch = hold(stream);
  CHECK_OK(cvc_op_flip_new(stream, src, 1, &dst));
  CHECK_OK(cvc_tensor_release(dst));
  uint64_t bytes = check_stats(cache, 0).bytes, hits = check_stats(cache, 0).hits_pending;
  for (int i = 0; i < 100; ++i) {
    CHECK_OK(cvc_op_flip_new(stream, src, 1, &dst));
    CHECK_OK(cvc_tensor_release(dst));
  }
  CHECK_EQ(check_stats(cache, 0).bytes, bytes);
  CHECK_EQ(check_stats(cache, 0).hits_pending, hits + 100);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void arguments_that_do_not_agree(void) {
  cvc_stream_t stream = new_stream();
  cvc_tensor_t src = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, stream), shape = nhwc(1, 4, 4, 1, CVC_DTYPE_U8, stream);
  cvc_tensor_t dtype = nhwc(1, 4, 4, 3, CVC_DTYPE_U16, stream), result = NULL;
  CHECK_ERROR(cvc_op_flip(stream, src, shape, 0), CVC_STATUS_SHAPE_MISMATCH, "dst");
  CHECK_ERROR(cvc_op_flip(stream, src, dtype, 0), CVC_STATUS_DTYPE_MISMATCH, "dst", "U16", "U8");
  CHECK_ERROR(cvc_op_flip(stream, NULL, src, 0), CVC_STATUS_INVALID_HANDLE, "src");
  CHECK_ERROR(cvc_op_flip_new(stream, src, 0, NULL), CVC_STATUS_NULL_POINTER, "dst");
  CHECK_STATUS(cvc_op_flip_new(CVC_STREAM_NONE, src, 0, &result), CVC_STATUS_INVALID_STREAM);
  CHECK(result == NULL);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(shape));
  CHECK_OK(cvc_tensor_release(dtype));
  CHECK_OK(cvc_stream_destroy(stream));
}

int main(void) {
  CHECK_BEGIN();
  RUN(codes_dtypes_and_channels);
  RUN(planar_layout);
  RUN(dropped_outputs_are_reused_behind_a_busy_stream);
  RUN(arguments_that_do_not_agree);
  return CHECK_END();
}

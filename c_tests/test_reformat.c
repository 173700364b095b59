// Reformat: channels last to channels first and back, with or without N, and copies to other strides.
#include "fixtures.h"

static cvc_tensor_t create(const char *layout, int32_t rank, const int64_t *shape, cvc_dtype_t dtype,
                           int64_t row_align) {
  cvc_tensor_desc_t desc = tensor_desc(dtype, layout, rank, shape);
  desc.row_align = row_align;
  cvc_tensor_t tensor = NULL;
  REQUIRE_OK(cvc_tensor_create(check_default_cache(), &desc, CVC_STREAM_NONE, &tensor));
  return tensor;
}

static void there_and_back(void) {
  cvc_stream_t stream = new_stream();
  const struct {
    cvc_dtype_t dtype;
    size_t bytes;
  } dtypes[] = {{CVC_DTYPE_U8, 1}, {CVC_DTYPE_S16, 2}, {CVC_DTYPE_F32, 4}, {CVC_DTYPE_F64, 8}};
  enum { n = 2, h = 5, w = 7 };
  for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; ++d) {
    for (int c = 1; c <= 4; ++c) {
      const size_t bytes = dtypes[d].bytes, length = (size_t)(n * h * w * c) * bytes;
      unsigned char in[n * h * w * 4 * 8], out[sizeof in], expected[sizeof in];
      fill_noise(in, sizeof in, (uint32_t)(d * 10) + (uint32_t)c);
      for (int i = 0; i < n; ++i)
        for (int y = 0; y < h; ++y)
          for (int x = 0; x < w; ++x)
            for (int k = 0; k < c; ++k)
              memcpy(expected + (size_t)(((i * c + k) * h + y) * w + x) * bytes,
                     in + (size_t)(((i * h + y) * w + x) * c + k) * bytes, bytes);
      cvc_tensor_t src = nhwc(n, h, w, c, dtypes[d].dtype, stream), planar = NULL, back = NULL;
      CHECK_OK(cvc_upload(stream, in, NULL, src));
      CHECK_OK(cvc_op_reformat_new(stream, src, "NCHW", &planar));
      CHECK(strcmp(tensor_data(planar).layout, "NCHW") == 0 && tensor_data(planar).shape[1] == c);
      take(stream, planar, out);
      CHECK(memcmp(out, expected, length) == 0);
      CHECK_OK(cvc_op_reformat_new(stream, planar, "NHWC", &back));
      take(stream, back, out);
      CHECK(memcmp(out, in, length) == 0);
      CHECK_OK(cvc_tensor_release(src));
      CHECK_OK(cvc_tensor_release(planar));
      CHECK_OK(cvc_tensor_release(back));
    }
  }
  CHECK_OK(cvc_stream_destroy(stream));
}

static void without_a_batch_and_to_packed_rows(void) {
  cvc_stream_t stream = new_stream();
  const int64_t hwc[3] = {4, 6, 3}, chw[3] = {3, 4, 6};
  unsigned char in[72], out[72];
  fill_noise(in, sizeof in, 9);
  cvc_tensor_t src = create("HWC", 3, hwc, CVC_DTYPE_U8, 0), dst = create("CHW", 3, chw, CVC_DTYPE_U8, 1);
  put(stream, src, in);
  CHECK_OK(cvc_op_reformat(stream, src, dst));
  take(stream, dst, out);
  int equal = 1;
  for (int i = 0; i < 72; ++i)
    equal &= out[i] == in[i % 24 * 3 + i / 24];
  CHECK(equal);
  cvc_tensor_t packed = create("HWC", 3, hwc, CVC_DTYPE_U8, 1); // same layout: a copy to other strides
  CHECK_OK(cvc_op_reformat(stream, src, packed));
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  read_device(out, tensor_data(packed).data, sizeof out);
  CHECK(memcmp(out, in, sizeof in) == 0);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(dst));
  CHECK_OK(cvc_tensor_release(packed));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void arguments_that_do_not_agree(void) {
  cvc_stream_t stream = new_stream();
  const int64_t nchw[4] = {1, 3, 4, 5}, chw[3] = {3, 4, 6};
  cvc_tensor_t src = nhwc(1, 4, 6, 3, CVC_DTYPE_U8, stream), result = NULL;
  cvc_tensor_t shape = create("NCHW", 4, nchw, CVC_DTYPE_U8, 0),
               rank = create("CHW", 3, chw, CVC_DTYPE_U8, 0);
  CHECK_ERROR(cvc_op_reformat(stream, src, shape), CVC_STATUS_SHAPE_MISMATCH, "dst");
  CHECK(cvc_op_reformat(stream, src, rank) != CVC_STATUS_OK);
  CHECK_ERROR(cvc_op_reformat_new(stream, src, "NWHC", &result), CVC_STATUS_INVALID_LAYOUT, "layout", "NWHC");
  CHECK_ERROR(cvc_op_reformat_new(stream, src, "ABCDEFGHIJKLMNOP", &result), CVC_STATUS_INVALID_LAYOUT,
              "layout", "ABCDEFGHIJKLMNOP");
  CHECK_ERROR(cvc_op_reformat_new(stream, src, NULL, &result), CVC_STATUS_NULL_POINTER, "layout");
  CHECK(result == NULL);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(shape));
  CHECK_OK(cvc_tensor_release(rank));
  CHECK_OK(cvc_stream_destroy(stream));
}

int main(void) {
  CHECK_BEGIN();
  RUN(there_and_back);
  RUN(without_a_batch_and_to_packed_rows);
  RUN(arguments_that_do_not_agree);
  return CHECK_END();
}

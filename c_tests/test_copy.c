// Copies: rows of any stride between host and device, between tensors, and zeroes.
#include "fixtures.h"

static void strided_host_memory(void) {
  cvc_stream_t stream = new_stream();
  enum { h = 5, w = 7, c = 3, in_pitch = 40, out_pitch = 33 };
  unsigned char in[h * in_pitch], out[h * out_pitch];
  fill_noise(in, sizeof in, 1);
  memset(out, 0xee, sizeof out);
  const int64_t in_strides[4] = {h * in_pitch, in_pitch, c, 1},
                out_strides[4] = {h * out_pitch, out_pitch, c, 1};
  cvc_tensor_t tensor = nhwc(1, h, w, c, CVC_DTYPE_U8, stream);
  CHECK_OK(cvc_upload(stream, in, in_strides, tensor));
  CHECK_OK(cvc_download(stream, tensor, out, out_strides));
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  int equal = 1, untouched = 1;
  for (int y = 0; y < h; ++y) {
    equal &= memcmp(in + y * in_pitch, out + y * out_pitch, w * c) == 0;
    for (int x = w * c; x < out_pitch; ++x)
      untouched &= out[y * out_pitch + x] == 0xee;
  }
  CHECK(equal);
  CHECK(untouched); // what lies between the rows is not the tensor's
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_destroy(stream));
}

// A source may repeat rows, or run backwards.
static void host_strides_of_zero_and_below(void) {
  cvc_stream_t stream = new_stream();
  enum { h = 4, w = 5, c = 3 };
  unsigned char in[h * w * c], out[h * w * c];
  fill_noise(in, sizeof in, 2);
  cvc_tensor_t tensor = nhwc(1, h, w, c, CVC_DTYPE_U8, stream);
  const int64_t repeated[4] = {0, 0, c, 1}, reversed[4] = {h * w * c, -w * c, c, 1};
  CHECK_OK(cvc_upload(stream, in, repeated, tensor));
  take(stream, tensor, out);
  for (int y = 0; y < h; ++y)
    CHECK(memcmp(out + y * w * c, in, w * c) == 0);
  CHECK_OK(cvc_upload(stream, in + (h - 1) * w * c, reversed, tensor));
  take(stream, tensor, out);
  for (int y = 0; y < h; ++y)
    CHECK(memcmp(out + y * w * c, in + (h - 1 - y) * w * c, w * c) == 0);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void packed_host_memory_of_every_dtype(void) {
  cvc_stream_t stream = new_stream();
  for (cvc_dtype_t kind = CVC_DTYPE_U8; kind <= CVC_DTYPE_C128; ++kind) {
    unsigned char in[2 * 3 * 5 * 2 * 16], out[sizeof in];
    static const size_t bytes[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 8, 16};
    const size_t length = 2 * 3 * 5 * 2 * bytes[kind];
    fill_noise(in, sizeof in, kind);
    cvc_tensor_t tensor = nhwc(2, 3, 5, 2, kind, stream);
    put(stream, tensor, in);
    take(stream, tensor, out);
    CHECK(memcmp(in, out, length) == 0);
    CHECK_OK(cvc_tensor_release(tensor));
  }
  CHECK_OK(cvc_stream_destroy(stream));
}

static void between_tensors_of_other_strides(void) {
  cvc_stream_t stream = new_stream();
  int64_t shape[4] = {2, 6, 5, 3};
  unsigned char in[2 * 6 * 5 * 3], out[sizeof in];
  fill_noise(in, sizeof in, 3);
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "NHWC", 4, shape);
  cvc_tensor_t padded = NULL, packed = NULL;
  CHECK_OK(cvc_tensor_create(check_default_cache(), &desc, stream, &padded));
  desc.row_align = 1;
  CHECK_OK(cvc_tensor_create(check_default_cache(), &desc, stream, &packed));
  CHECK(tensor_data(padded).strides[1] == 32 && tensor_data(packed).strides[1] == 15);
  put(stream, padded, in);
  CHECK_OK(cvc_copy(stream, padded, packed));
  take(stream, packed, out);
  CHECK(memcmp(in, out, sizeof in) == 0);
  CHECK_OK(cvc_fill_zero(stream, padded));
  CHECK_OK(cvc_copy(stream, packed, padded));
  take(stream, padded, out);
  CHECK(memcmp(in, out, sizeof in) == 0);
  CHECK_OK(cvc_fill_zero(stream, padded));
  take(stream, padded, out);
  memset(in, 0, sizeof in);
  CHECK(memcmp(in, out, sizeof in) == 0);
  CHECK_OK(cvc_tensor_release(padded));
  CHECK_OK(cvc_tensor_release(packed));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void arguments_that_do_not_agree(void) {
  cvc_stream_t stream = new_stream();
  unsigned char bytes[48];
  cvc_tensor_t tensor = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, stream);
  cvc_tensor_t shape = nhwc(1, 4, 5, 3, CVC_DTYPE_U8, stream);
  cvc_tensor_t dtype = nhwc(1, 4, 4, 3, CVC_DTYPE_F32, stream);
  fill_noise(bytes, sizeof bytes, 4);
  put(stream, tensor, bytes);
  CHECK_ERROR(cvc_copy(stream, shape, tensor), CVC_STATUS_SHAPE_MISMATCH, "dst", "4", "5");
  CHECK_ERROR(cvc_copy(stream, dtype, tensor), CVC_STATUS_DTYPE_MISMATCH, "dst", "U8", "F32");
  CHECK_ERROR(cvc_copy(stream, NULL, tensor), CVC_STATUS_INVALID_HANDLE, "src");
  CHECK_ERROR(cvc_copy(stream, tensor, NULL), CVC_STATUS_INVALID_HANDLE, "dst");
  CHECK_STATUS(cvc_copy(CVC_STREAM_NONE, tensor, tensor), CVC_STATUS_INVALID_STREAM);
  CHECK_ERROR(cvc_upload(stream, NULL, NULL, tensor), CVC_STATUS_NULL_POINTER, "src");
  CHECK_ERROR(cvc_download(stream, tensor, NULL, NULL), CVC_STATUS_NULL_POINTER, "dst");
  // Strides that lead out of what addresses can tell, together or one of them alone.
  const int64_t far[][4] = {{0, 0, 0, INT64_MAX},
                            {0, INT64_MIN, 3, 1},
                            {0, INT64_MAX / 4, INT64_MAX / 4, 1},
                            {INT64_MAX, 12, 3, 1}};
  for (int i = 0; i < 4; ++i) {
    CHECK_ERROR(cvc_upload(stream, bytes, far[i], tensor), CVC_STATUS_OVERFLOW, "src_strides");
    CHECK_ERROR(cvc_download(stream, tensor, bytes, far[i]), CVC_STATUS_OVERFLOW, "dst_strides");
  }
  CHECK_ERROR(cvc_fill_zero(stream, NULL), CVC_STATUS_INVALID_HANDLE, "tensor");
  unsigned char after[48];
  take(stream, tensor, after);
  CHECK(memcmp(after, bytes, sizeof bytes) == 0);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_tensor_release(shape));
  CHECK_OK(cvc_tensor_release(dtype));
  CHECK_OK(cvc_stream_destroy(stream));
}

int main(void) {
  CHECK_BEGIN();
  RUN(strided_host_memory);
  RUN(host_strides_of_zero_and_below);
  RUN(packed_host_memory_of_every_dtype);
  RUN(between_tensors_of_other_strides);
  RUN(arguments_that_do_not_agree);
  return CHECK_END();
}

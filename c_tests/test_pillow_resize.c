// Pillow's resizing, bit by bit, against a plain form of its fixed-point arithmetic; and what is refused.
#include "fixtures.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

static double sinc(double x) { return x == 0 ? 1 : sin(pi * x) / (pi * x); }

static double filter_value(cvc_filter_t filter, double x) {
  const double a = fabs(x);
  switch (filter) {
  case CVC_FILTER_BOX:
    return x > -0.5 && x <= 0.5 ? 1 : 0;
  case CVC_FILTER_LINEAR:
    return a < 1 ? 1 - a : 0;
  case CVC_FILTER_HAMMING:
    return a == 0 ? 1 : a >= 1 ? 0 : sinc(a) * ((double)0.54f + (double)0.46f * cos(pi * a));
  case CVC_FILTER_CUBIC:
    return a < 1 ? (1.5 * a - 2.5) * a * a + 1 : a < 2 ? (((a - 5) * a + 8) * a - 4) * -0.5 : 0;
  default:
    return a < 3 ? sinc(a) * sinc(a / 3) : 0;
  }
}

static double filter_support(cvc_filter_t filter) {
  return filter == CVC_FILTER_BOX       ? 0.5
         : filter == CVC_FILTER_CUBIC   ? 2
         : filter == CVC_FILTER_LANCZOS ? 3
                                        : 1;
}

// One pass: `lines` lines of `in` samples `step` bytes apart become lines of `out` samples.
static void resize_line(const unsigned char *src, unsigned char *dst, int in, int out, int step,
                        cvc_filter_t filter) {
  const double scale = (double)in / out, stretch = scale < 1 ? 1 : scale;
  const double support = filter_support(filter) * stretch;
  for (int i = 0; i < out; ++i) {
    const double centre = (i + 0.5) * scale;
    int first = (int)(centre - support + 0.5), last = (int)(centre + support + 0.5);
    first = first < 0 ? 0 : first;
    last = last > in ? in : last;
    double weights[256], total = 0;
    for (int k = first; k < last; ++k)
      total += weights[k - first] = filter_value(filter, (k - centre + 0.5) * (1.0 / stretch));
    int sum = 1 << 21;
    for (int k = first; k < last; ++k) {
      const double weight = total != 0 ? weights[k - first] / total : weights[k - first];
      sum += src[k * step] * (int)(weight * (1 << 22) + (weight < 0 ? -0.5 : 0.5));
    }
    const int value = sum >> 22;
    dst[i * step] = (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
  }
}

// Horizontal, then vertical; a pass that changes no size is not done.
static void resize_reference(const unsigned char *src, int h, int w, int c, unsigned char *dst, int out_h,
                             int out_w, cvc_filter_t filter) {
  unsigned char *wide = malloc((size_t)(h * out_w * c));
  for (int y = 0; y < h; ++y) {
    for (int k = 0; k < c; ++k) {
      if (w == out_w)
        for (int x = 0; x < w; ++x)
          wide[(y * out_w + x) * c + k] = src[(y * w + x) * c + k];
      else
        resize_line(src + y * w * c + k, wide + y * out_w * c + k, w, out_w, c, filter);
    }
  }
  for (int x = 0; x < out_w * c; ++x) {
    if (h == out_h)
      for (int y = 0; y < h; ++y)
        dst[y * out_w * c + x] = wide[y * out_w * c + x];
    else
      resize_line(wide + x, dst + x, h, out_h, out_w * c, filter);
  }
  free(wide);
}

static void filters_and_sizes(void) {
  const cvc_filter_t filters[] = {CVC_FILTER_LINEAR, CVC_FILTER_CUBIC, CVC_FILTER_LANCZOS, CVC_FILTER_HAMMING,
                                  CVC_FILTER_BOX};
  const int sizes[][4] = {{23, 31, 9, 12},  {9, 7, 20, 33}, {16, 16, 16, 5}, {16, 16, 40, 16},
                          {11, 13, 11, 13}, {40, 3, 1, 1},  {1, 1, 6, 7}};
  cvc_stream_t stream = new_stream();
  for (size_t f = 0; f < sizeof filters / sizeof filters[0]; ++f) {
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; ++s) {
      for (int c = 1; c <= 4; ++c) {
        const int h = sizes[s][0], w = sizes[s][1], out_h = sizes[s][2], out_w = sizes[s][3];
        unsigned char in[40 * 40 * 4], out[40 * 40 * 4], expected[40 * 40 * 4];
        fill_noise(in, sizeof in, (uint32_t)(f * 100 + s * 10) + (uint32_t)c);
        resize_reference(in, h, w, c, expected, out_h, out_w, filters[f]);
        cvc_tensor_t src = nhwc(1, h, w, c, CVC_DTYPE_U8, stream), dst = NULL;
        CHECK_OK(cvc_upload(stream, in, NULL, src));
        CHECK_OK(cvc_op_pillow_resize_new(stream, src, out_h, out_w, filters[f],
                                          CVC_RESIZE_PILLOW_12_PASS_ORDER, &dst));
        CHECK(tensor_data(dst).shape[1] == out_h && tensor_data(dst).shape[2] == out_w);
        memset(out, 0, sizeof out);
        take(stream, dst, out);
        if (!CHECK(memcmp(out, expected, (size_t)(out_h * out_w * c)) == 0))
          fprintf(stderr, "  filter %d, %dx%d to %dx%d, %d channels\n", filters[f], w, h, out_w, out_h, c);
        CHECK_OK(cvc_tensor_release(src));
        CHECK_OK(cvc_tensor_release(dst));
      }
    }
  }
  CHECK_OK(cvc_stream_destroy(stream));
}

static void nearest_takes_the_pixel_under_the_centre(void) {
  cvc_stream_t stream = new_stream();
  enum { h = 5, w = 8, out_h = 10, out_w = 3 };
  unsigned char in[h * w], out[out_h * out_w];
  fill_noise(in, sizeof in, 2);
  cvc_tensor_t src = nhwc(1, h, w, 1, CVC_DTYPE_U8, stream),
               dst = nhwc(1, out_h, out_w, 1, CVC_DTYPE_U8, stream);
  CHECK_OK(cvc_upload(stream, in, NULL, src));
  CHECK_OK(cvc_op_pillow_resize(stream, src, dst, CVC_FILTER_NEAREST, 0));
  take(stream, dst, out);
  int equal = 1;
  for (int y = 0; y < out_h; ++y)
    for (int x = 0; x < out_w; ++x)
      equal &= out[y * out_w + x] == in[(int)((y + 0.5) * h / out_h) * w + (int)((x + 0.5) * w / out_w)];
  CHECK(equal);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(dst));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void floats_and_batches(void) {
  cvc_stream_t stream = new_stream();
  float in[2 * 2 * 2], out[2];
  for (int i = 0; i < 8; ++i)
    in[i] = (float)(i * i) - 7.5f;
  cvc_tensor_t src = nhwc(2, 2, 2, 1, CVC_DTYPE_F32, stream), dst = nhwc(2, 1, 1, 1, CVC_DTYPE_F32, stream);
  CHECK_OK(cvc_upload(stream, in, NULL, src));
  CHECK_OK(cvc_op_pillow_resize(stream, src, dst, CVC_FILTER_BOX, 0));
  take(stream, dst, out);
  CHECK(out[0] == (in[0] + in[1] + in[2] + in[3]) / 4);
  CHECK(out[1] == (in[4] + in[5] + in[6] + in[7]) / 4);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(dst));
  CHECK_OK(cvc_stream_destroy(stream));
}

// Under alpha 0 a colour has no weight, unless channels are independent.
static void alpha_is_premultiplied_when_asked(void) {
  cvc_stream_t stream = new_stream();
  const unsigned char in[2 * 4] = {200, 100, 50, 255, 10, 20, 30, 0};
  unsigned char plain[4], weighted[4];
  cvc_tensor_t src = nhwc(1, 1, 2, 4, CVC_DTYPE_U8, stream), dst = nhwc(1, 1, 1, 4, CVC_DTYPE_U8, stream);
  CHECK_OK(cvc_upload(stream, in, NULL, src));
  CHECK_OK(cvc_op_pillow_resize(stream, src, dst, CVC_FILTER_BOX, 0));
  take(stream, dst, plain);
  CHECK(plain[0] == 105 && plain[1] == 60 && plain[2] == 40 && plain[3] == 128);
  CHECK_OK(cvc_op_pillow_resize(stream, src, dst, CVC_FILTER_BOX, CVC_RESIZE_PREMULTIPLY_ALPHA));
  take(stream, dst, weighted);
  CHECK(abs(weighted[0] - 200) <= 1 && abs(weighted[1] - 100) <= 1 && abs(weighted[2] - 50) <= 1);
  CHECK_EQ(weighted[3], 128);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(dst));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void arguments_that_do_not_agree(void) {
  cvc_stream_t stream = new_stream();
  cvc_tensor_t src = nhwc(1, 8, 8, 3, CVC_DTYPE_U8, stream),
               channels = nhwc(1, 4, 4, 1, CVC_DTYPE_U8, stream);
  cvc_tensor_t count = nhwc(2, 4, 4, 3, CVC_DTYPE_U8, stream),
               dtype = nhwc(1, 4, 4, 3, CVC_DTYPE_F32, stream);
  cvc_tensor_t dst = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, stream), result = NULL;
  CHECK_ERROR(cvc_op_pillow_resize(stream, src, channels, CVC_FILTER_LINEAR, 0), CVC_STATUS_SHAPE_MISMATCH,
              "dst");
  CHECK_ERROR(cvc_op_pillow_resize(stream, src, count, CVC_FILTER_LINEAR, 0), CVC_STATUS_SHAPE_MISMATCH,
              "dst");
  CHECK_ERROR(cvc_op_pillow_resize(stream, src, dtype, CVC_FILTER_LINEAR, 0), CVC_STATUS_DTYPE_MISMATCH,
              "dst");
  CHECK_ERROR(cvc_op_pillow_resize(stream, src, dst, 17, 0), CVC_STATUS_INVALID_ENUM, "filter", "17");
  CHECK_ERROR(cvc_op_pillow_resize(stream, src, dst, CVC_FILTER_AREA, 0), CVC_STATUS_NOT_SUPPORTED, "filter",
              "AREA");
  CHECK_ERROR(cvc_op_pillow_resize(stream, src, dst, CVC_FILTER_BOX, 0x100u), CVC_STATUS_INVALID_ENUM,
              "flags", "0x100");
  CHECK_ERROR(cvc_op_pillow_resize_new(stream, src, 0, 4, CVC_FILTER_BOX, 0, &result),
              CVC_STATUS_INVALID_SHAPE, "height", "0");
  CHECK_ERROR(cvc_op_pillow_resize_new(stream, src, 4, -4, CVC_FILTER_BOX, 0, &result),
              CVC_STATUS_INVALID_SHAPE, "width", "-4");
  CHECK(result == NULL);
  CHECK_OK(cvc_tensor_release(src));
  CHECK_OK(cvc_tensor_release(channels));
  CHECK_OK(cvc_tensor_release(count));
  CHECK_OK(cvc_tensor_release(dtype));
  CHECK_OK(cvc_tensor_release(dst));
  CHECK_OK(cvc_stream_destroy(stream));
}

int main(void) {
  CHECK_BEGIN();
  RUN(filters_and_sizes);
  RUN(nearest_takes_the_pixel_under_the_centre);
  RUN(floats_and_batches);
  RUN(alpha_is_premultiplied_when_asked);
  RUN(arguments_that_do_not_agree);
  return CHECK_END();
}

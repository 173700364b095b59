// Images: planes and charge of formats, wraps, views as tensors, reuse and accesses of others.
#include "fixtures.h"

static uint64_t charge(cvc_image_t image) {
  uint64_t bytes = 0;
  CHECK_OK(cvc_image_nbytes(image, &bytes));
  return bytes;
}

static void planes_and_charge(void) {
  const struct {
    cvc_format_t format;
    int32_t width, height, plane_count;
    cvc_image_plane_t planes[4]; // without address
    uint64_t bytes;
  } cases[] = {
      {CVC_FORMAT_F32, 1, 1, 1, {{NULL, 32, 1, 1}}, 512},
      {CVC_FORMAT_RGB8, 37, 7, 1, {{NULL, 128, 37, 7}}, 1024},
      {CVC_FORMAT_NV12, 8, 6, 2, {{NULL, 32, 8, 6}, {NULL, 32, 4, 3}}, 1024},
      {CVC_FORMAT_NV12, 7, 5, 2, {{NULL, 32, 7, 5}, {NULL, 32, 4, 3}}, 1024},
      {CVC_FORMAT_RGB8P, 10, 4, 3, {{NULL, 32, 10, 4}, {NULL, 32, 10, 4}, {NULL, 32, 10, 4}}, 1536},
      {CVC_FORMAT_RGBAF32, 3, 2, 1, {{NULL, 64, 3, 2}}, 512},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    cvc_image_t image = image_of(cases[i].width, cases[i].height, cases[i].format, CVC_STREAM_NONE);
    cvc_image_data_t data = image_data(image);
    CHECK_EQ(data.device, 0);
    CHECK_EQ(data.format, cases[i].format);
    CHECK_EQ(data.width, cases[i].width);
    CHECK_EQ(data.height, cases[i].height);
    CHECK_EQ(data.plane_count, cases[i].plane_count);
    uintptr_t expected = (uintptr_t)data.planes[0].data;
    for (int32_t p = 0; p < cases[i].plane_count; ++p) {
      CHECK_EQ(data.planes[p].row_stride, cases[i].planes[p].row_stride);
      CHECK_EQ(data.planes[p].width, cases[i].planes[p].width);
      CHECK_EQ(data.planes[p].height, cases[i].planes[p].height);
      CHECK_EQ((uintptr_t)data.planes[p].data, expected);
      expected += (uintptr_t)(data.planes[p].row_stride * data.planes[p].height);
    }
    CHECK_EQ(charge(image), cases[i].bytes);
    CHECK_OK(cvc_image_release(image));
  }
}

static void information_on_formats(void) {
  cvc_format_info_t info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  CHECK_OK(cvc_format_get_info(CVC_FORMAT_NV12, &info));
  CHECK_EQ(info.plane_count, 2);
  CHECK_EQ(info.channel_count, 3);
  CHECK_EQ(info.plane_dtype[0], CVC_DTYPE_U8);
  CHECK_EQ(info.plane_dtype[1], CVC_DTYPE_2U8);
  CHECK_EQ(info.plane_width_shift[1], 1);
  CHECK_EQ(info.plane_height_shift[1], 1);
  for (cvc_format_t format = CVC_FORMAT_U8; format <= CVC_FORMAT_YCCK8; ++format) {
    CHECK_OK(cvc_format_get_info(format, &info));
    CHECK(info.plane_count >= 1 && info.plane_count <= 4 && info.channel_count >= 1);
  }
  CHECK_ERROR(cvc_format_get_info(CVC_FORMAT_YCCK8 + 1, &info), CVC_STATUS_INVALID_ENUM, "format", "64");
  CHECK_ERROR(cvc_format_get_info(CVC_FORMAT_NONE, &info), CVC_STATUS_INVALID_ENUM, "format", "0");
  CHECK_ERROR(cvc_format_get_info(CVC_FORMAT_U8, NULL), CVC_STATUS_NULL_POINTER, "info");
}

static void reuse_of_a_smaller_image(void) {
  cvc_cache_t cache = check_default_cache();
  cvc_image_t image = image_of(64, 48, CVC_FORMAT_RGB8, CVC_STREAM_NONE);
  void *memory = image_data(image).planes[0].data;
  uint64_t bytes = charge(image), id = 0, again = 0;
  CHECK_OK(cvc_image_get_id(image, &id));
  CHECK_OK(cvc_image_retain(image));
  CHECK_OK(cvc_image_release(image));
  CHECK_OK(cvc_image_release(image));
  // Wider and lower, yet it fits; the whole allocation stays charged.
  image = image_of(100, 20, CVC_FORMAT_RGB8, CVC_STREAM_NONE);
  CHECK(image_data(image).planes[0].data == memory);
  CHECK_EQ(image_data(image).width, 100);
  CHECK_EQ(check_stats(cache, 0).bytes, bytes);
  CHECK_OK(cvc_image_get_id(image, &again));
  CHECK_EQ(again, id);
  CHECK_OK(cvc_image_release(image));
  // Another format with the same bytes is another class.
  image = image_of(64, 48, CVC_FORMAT_BGR8, CVC_STREAM_NONE);
  CHECK(image_data(image).planes[0].data != memory);
  CHECK_OK(cvc_image_release(image));
}

static void count_release(void *context) { ++*(int *)context; }

static void wraps_of_foreign_planes(void) {
  unsigned char *luma = foreign_memory(8 * 6), *chroma = foreign_memory(8 * 3);
  int released = 0;
  cvc_image_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  data.format = CVC_FORMAT_NV12;
  data.width = 8;
  data.height = 6;
  data.plane_count = 2;
  data.planes[0] = (cvc_image_plane_t){luma, 8, 8, 6};
  data.planes[1] = (cvc_image_plane_t){chroma, 8, 4, 3};
  cvc_cache_t cache = check_default_cache();
  cvc_image_t image = NULL;
  CHECK_OK(cvc_image_wrap(cache, &data, count_release, &released, CVC_STREAM_NONE, &image));
  CHECK_EQ(charge(image), 0);
  CHECK_EQ(check_stats(cache, 0).wrapped_count, 1);
  CHECK(image_data(image).planes[1].data == chroma);

  // A view of one plane is as good as the memory itself.
  cvc_stream_t stream = new_stream();
  cvc_tensor_t plane = NULL;
  memset(chroma, 7, 8 * 3);
  CHECK_OK(cvc_tensor_from_image_plane(image, 1, &plane));
  CHECK(tensor_data(plane).shape[0] == 3 && tensor_data(plane).shape[1] == 4 &&
        tensor_data(plane).shape[2] == 2);
  CHECK_OK(cvc_image_release(image));
  CHECK_EQ(released, 0);
  CHECK_OK(cvc_fill_zero(stream, plane));
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK(chroma[0] == 0 && chroma[23] == 0);
  CHECK_OK(cvc_tensor_release(plane));
  CHECK_EQ(released, 1);
  CHECK_OK(cvc_stream_destroy(stream));

  data.planes[1].data = NULL;
  CHECK_ERROR(cvc_image_wrap(cache, &data, count_release, &released, CVC_STREAM_NONE, &image),
              CVC_STATUS_NULL_POINTER, "data.planes[1]");
  data.planes[1] = (cvc_image_plane_t){chroma, 7, 4, 3};
  CHECK_ERROR(cvc_image_wrap(cache, &data, count_release, &released, CVC_STREAM_NONE, &image),
              CVC_STATUS_INVALID_STRIDES, "data.planes[1].row_stride", "7");
  data.planes[1] = (cvc_image_plane_t){chroma, 8, 5, 3};
  CHECK_ERROR(cvc_image_wrap(cache, &data, count_release, &released, CVC_STREAM_NONE, &image),
              CVC_STATUS_INVALID_SHAPE, "data.planes[1].width", "5");
  data.plane_count = 1;
  CHECK_ERROR(cvc_image_wrap(cache, &data, count_release, &released, CVC_STREAM_NONE, &image),
              CVC_STATUS_INVALID_ARGUMENT, "data.plane_count", "1");
  data.device = 99;
  CHECK_ERROR(cvc_image_wrap(cache, &data, count_release, &released, CVC_STREAM_NONE, &image),
              CVC_STATUS_INVALID_DEVICE, "data.device is 99, expected -1 (the current one) or 0 to");
  CHECK(image == NULL);
  CHECK_EQ(released, 1);
  foreign_memory_free(luma);
  foreign_memory_free(chroma);
}

static void an_image_as_a_tensor(void) {
  cvc_tensor_t tensor = NULL;
  cvc_image_t image = image_of(10, 4, CVC_FORMAT_RGB8, CVC_STREAM_NONE);
  void *memory = image_data(image).planes[0].data;
  CHECK_OK(cvc_tensor_from_image(image, &tensor));
  cvc_tensor_data_t data = tensor_data(tensor);
  CHECK(data.data == memory && data.rank == 4 && strcmp(data.layout, "NHWC") == 0);
  CHECK(data.shape[0] == 1 && data.shape[1] == 4 && data.shape[2] == 10 && data.shape[3] == 3);
  CHECK_EQ(data.strides[1], 32);
  CHECK_OK(cvc_image_release(image));
  image = image_of(10, 4, CVC_FORMAT_RGB8, CVC_STREAM_NONE); // the view still sees the first
  CHECK(image_data(image).planes[0].data != memory);
  CHECK_OK(cvc_image_release(image));
  CHECK_OK(cvc_tensor_release(tensor));

  image = image_of(10, 4, CVC_FORMAT_BGRF32P, CVC_STREAM_NONE);
  CHECK_OK(cvc_tensor_from_image(image, &tensor));
  data = tensor_data(tensor);
  CHECK(strcmp(data.layout, "NCHW") == 0 && data.shape[1] == 3 && data.dtype == CVC_DTYPE_F32);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_ERROR(cvc_tensor_from_image_plane(image, 3, &tensor), CVC_STATUS_INVALID_INDEX, "plane", "3");
  CHECK_OK(cvc_image_release(image));

  image = image_of(10, 4, CVC_FORMAT_NV12, CVC_STREAM_NONE);
  CHECK_ERROR(cvc_tensor_from_image(image, &tensor), CVC_STATUS_NOT_SUPPORTED, "image", "NV12");
  CHECK(tensor == NULL);
  CHECK_OK(cvc_image_release(image));
}

static void accesses_of_others_are_ordered(void) {
  cvc_stream_t first = new_stream(), second = new_stream();
  cvc_image_t image = image_of(8, 8, CVC_FORMAT_U8, first);
  cvc_tensor_t tensor = NULL;
  unsigned char *got = pinned_memory(64);
  CHECK_OK(cvc_tensor_from_image(image, &tensor));
  CHECK_OK(cvc_fill_zero(first, tensor));
  CHECK_OK(cvc_image_synchronize(image, -1));
  CHECK_OK(cvc_image_begin_access(image, first, CVC_ACCESS_READ_WRITE));
  uint64_t latch = hold(first);
  CHECK_OK(cvc_image_end_access(image, first, CVC_ACCESS_READ_WRITE));
  CHECK_STATUS(cvc_image_synchronize(image, 0), CVC_STATUS_NOT_READY);
  CHECK_OK(cvc_download(second, tensor, got, NULL));
  CHECK_STATUS(cvc_stream_query(second), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_image_synchronize(image, -1));
  CHECK_OK(cvc_stream_synchronize(second, -1));
  CHECK_ERROR(cvc_image_begin_access(image, first, 9), CVC_STATUS_INVALID_ENUM, "access", "9");
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_image_release(image));
  CHECK_OK(cvc_stream_destroy(first));
  CHECK_OK(cvc_stream_destroy(second));
  pinned_memory_free(got);
}

static void wrong_descriptions(void) {
  cvc_cache_t cache = check_default_cache();
  cvc_image_desc_t desc;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.format = CVC_FORMAT_RGB8;
  desc.width = 8;
  desc.height = 0;
  cvc_image_t image = NULL;
  CHECK_ERROR(cvc_image_create(cache, &desc, NULL, &image), CVC_STATUS_INVALID_SHAPE, "desc.height", "0");
  desc.height = -4;
  CHECK_ERROR(cvc_image_create(cache, &desc, NULL, &image), CVC_STATUS_INVALID_SHAPE, "desc.height", "-4");
  desc.height = 8;
  desc.format = 1000;
  CHECK_ERROR(cvc_image_create(cache, &desc, NULL, &image), CVC_STATUS_INVALID_ENUM, "desc.format", "1000");
  desc.format = CVC_FORMAT_RGB8;
  desc.row_align = 3;
  CHECK_ERROR(cvc_image_create(cache, &desc, NULL, &image), CVC_STATUS_INVALID_ALIGNMENT, "desc.row_align",
              "3");
  desc.row_align = 0;
  desc.width = INT32_MAX;
  CHECK_STATUS(cvc_image_create(cache, &desc, NULL, &image), CVC_STATUS_OVERFLOW);
  desc.width = 8;
  desc.device = 99;
  CHECK_ERROR(cvc_image_create(cache, &desc, NULL, &image), CVC_STATUS_INVALID_DEVICE,
              "desc.device is 99, expected -1 (the current one) or 0 to");
  CHECK(image == NULL);
}

int main(void) {
  CHECK_BEGIN();
  RUN(planes_and_charge);
  RUN(information_on_formats);
  RUN(reuse_of_a_smaller_image);
  RUN(wraps_of_foreign_planes);
  RUN(an_image_as_a_tensor);
  RUN(accesses_of_others_are_ordered);
  RUN(wrong_descriptions);
  return CHECK_END();
}

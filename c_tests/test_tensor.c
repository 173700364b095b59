// Tensors: strides and charge, views, wraps, references, identity and accesses of others.
#include "fixtures.h"

static cvc_tensor_t create(cvc_dtype_t dtype, const char *layout, int32_t rank, const int64_t *shape,
                           int64_t row_align) {
  cvc_tensor_desc_t desc = tensor_desc(dtype, layout, rank, shape);
  desc.row_align = row_align;
  cvc_tensor_t tensor = NULL;
  REQUIRE_OK(cvc_tensor_create(check_default_cache(), &desc, CVC_STREAM_NONE, &tensor));
  return tensor;
}

static uint64_t charge(cvc_tensor_t tensor) {
  uint64_t bytes = 0;
  CHECK_OK(cvc_tensor_nbytes(tensor, &bytes));
  return bytes;
}

static void strides_and_charge(void) {
  const struct {
    cvc_dtype_t dtype;
    const char *layout;
    int32_t rank;
    int64_t shape[4], row_align, strides[4];
    uint64_t bytes;
  } cases[] = {
      {CVC_DTYPE_U8, "HWC", 3, {10, 10, 3}, 0, {32, 3, 1}, 512},
      {CVC_DTYPE_F32, "HWC", 3, {16, 32, 4}, 0, {512, 16, 4}, 8192},
      {CVC_DTYPE_F32, "HWC", 3, {4, 64, 4}, 0, {1024, 16, 4}, 4096},
      {CVC_DTYPE_U8, "NHWC", 4, {2, 7, 37, 3}, 1, {777, 111, 3, 1}, 2048},
      {CVC_DTYPE_U8, "", 3, {480, 640, 3}, 0, {20480, 32, 1}, 9830400},
      {CVC_DTYPE_U8, "", 3, {480, 640, 3}, 1, {1920, 3, 1}, 921600},
      {CVC_DTYPE_F32, "NCHW", 4, {1, 3, 5, 7}, 0, {480, 160, 32, 4}, 512},
      {CVC_DTYPE_U8 | 0x200u, "HW", 2, {10, 10}, 0, {32, 3}, 512},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    cvc_tensor_t tensor =
        create(cases[i].dtype, cases[i].layout, cases[i].rank, cases[i].shape, cases[i].row_align);
    cvc_tensor_data_t data = tensor_data(tensor);
    CHECK_EQ(data.rank, cases[i].rank);
    CHECK_EQ(data.dtype, cases[i].dtype);
    CHECK(strcmp(data.layout, cases[i].layout) == 0);
    CHECK_EQ(data.device, 0);
    CHECK(data.data != NULL && (uintptr_t)data.data % 512 == 0);
    for (int32_t d = 0; d < cases[i].rank; ++d) {
      CHECK_EQ(data.shape[d], cases[i].shape[d]);
      CHECK_EQ(data.strides[d], cases[i].strides[d]);
    }
    CHECK_EQ(charge(tensor), cases[i].bytes);
    cvc_tensor_desc_t desc = tensor_desc(cases[i].dtype, cases[i].layout, cases[i].rank, cases[i].shape);
    desc.row_align = cases[i].row_align;
    uint64_t bytes = 0;
    CHECK_OK(cvc_tensor_desc_nbytes(&desc, &bytes));
    CHECK_EQ(bytes, cases[i].bytes);
    CHECK_OK(cvc_tensor_release(tensor));
    CHECK_OK(cvc_cache_clear(check_default_cache(), 0, CVC_SCOPE_GLOBAL)); // a fit would keep a larger charge
  }
}

static void description_of_images(void) {
  cvc_tensor_desc_t desc;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  CHECK_OK(cvc_tensor_desc_from_image(0, 2, 37, 7, CVC_FORMAT_RGB8, 1, &desc));
  CHECK_EQ(desc.rank, 4);
  CHECK(strcmp(desc.layout, "NHWC") == 0);
  CHECK_EQ(desc.dtype, CVC_DTYPE_U8);
  CHECK(desc.shape[0] == 2 && desc.shape[1] == 7 && desc.shape[2] == 37 && desc.shape[3] == 3);
  CHECK_OK(cvc_tensor_desc_from_image(0, 1, 8, 6, CVC_FORMAT_RGBF32P, 0, &desc));
  CHECK(strcmp(desc.layout, "NCHW") == 0);
  CHECK_EQ(desc.dtype, CVC_DTYPE_F32);
  CHECK(desc.shape[1] == 3 && desc.shape[2] == 6 && desc.shape[3] == 8);
  CHECK_ERROR(cvc_tensor_desc_from_image(0, 1, 8, 6, CVC_FORMAT_NV12, 0, &desc), CVC_STATUS_NOT_SUPPORTED,
              "format", "NV12");
  CHECK_ERROR(cvc_tensor_desc_from_image(0, 1, -8, 6, CVC_FORMAT_RGB8, 0, &desc), CVC_STATUS_INVALID_SHAPE,
              "width", "-8");
}

static void an_empty_tensor(void) {
  int64_t shape[4] = {0, 4, 4, 3};
  cvc_tensor_t tensor = create(CVC_DTYPE_U8, "NHWC", 4, shape, 0);
  CHECK_EQ(charge(tensor), 0);
  CHECK_OK(cvc_fill_zero(NULL, tensor));
  CHECK_OK(cvc_tensor_release(tensor));
}

static void references_and_identity(void) {
  cvc_tensor_t tensor = nhwc(1, 5, 6, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  void *memory = tensor_data(tensor).data;
  uint64_t id = 0, other_id = 0, again = 0;
  CHECK_OK(cvc_tensor_get_id(tensor, &id));
  CHECK_OK(cvc_tensor_retain(tensor));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK(tensor_data(tensor).data == memory);
  cvc_tensor_t other = nhwc(1, 5, 6, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  CHECK_OK(cvc_tensor_get_id(other, &other_id));
  CHECK(other_id != id && tensor_data(other).data != memory);
  CHECK_OK(cvc_tensor_release(tensor));
  tensor = nhwc(1, 5, 6, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  CHECK_OK(cvc_tensor_get_id(tensor, &again));
  CHECK(tensor_data(tensor).data == memory);
  CHECK_EQ(again, id);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_tensor_release(other));
}

static void a_view_keeps_the_memory(void) {
  int64_t shape[4] = {1, 6, 8, 4};
  cvc_tensor_t tensor = create(CVC_DTYPE_U8, "NHWC", 4, shape, 0);
  void *memory = tensor_data(tensor).data;
  int64_t new_shape[3] = {6, 8, 4};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_NONE, "HWC", 3, new_shape);
  cvc_tensor_t view = NULL;
  CHECK_OK(cvc_tensor_reshape(tensor, &desc, &view));
  CHECK_EQ(check_stats(check_default_cache(), 0).view_count, 1);
  cvc_tensor_data_t data = tensor_data(view);
  CHECK(data.data == memory && data.rank == 3 && strcmp(data.layout, "HWC") == 0);
  CHECK_EQ(data.strides[0], 32);
  CHECK_EQ(charge(view), 0);
  CHECK_OK(cvc_tensor_release(tensor));
  // The memory is not handed out while the view can see it.
  cvc_tensor_t other = create(CVC_DTYPE_U8, "NHWC", 4, shape, 0);
  CHECK(tensor_data(other).data != memory);
  CHECK_OK(cvc_tensor_release(view));
  cvc_tensor_t third = create(CVC_DTYPE_U8, "NHWC", 4, shape, 0);
  CHECK(tensor_data(third).data == memory);
  CHECK_OK(cvc_tensor_release(other));
  CHECK_OK(cvc_tensor_release(third));
}

static void work_on_a_view_counts_for_the_memory(void) {
  cvc_stream_t stream = new_stream();
  int64_t shape[4] = {1, 6, 8, 4}, flat[1] = {192};
  cvc_tensor_t tensor = create(CVC_DTYPE_U8, "NHWC", 4, shape, 0), view = NULL;
  void *memory = tensor_data(tensor).data;
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "", 1, flat);
  CHECK_OK(cvc_tensor_reshape(tensor, &desc, &view));
  uint64_t latch = hold(stream);
  CHECK_OK(cvc_fill_zero(stream, view));
  CHECK_OK(cvc_tensor_release(view));
  CHECK_STATUS(cvc_tensor_synchronize(tensor, 0), CVC_STATUS_NOT_READY);
  CHECK_OK(cvc_tensor_release(tensor));
  cvc_tensor_t other = create(CVC_DTYPE_U8, "NHWC", 4, shape, 0);
  CHECK(tensor_data(other).data != memory);
  let_go(latch);
  CHECK_OK(cvc_tensor_release(other));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void reshape_that_is_impossible(void) {
  cvc_tensor_t tensor = nhwc(1, 10, 10, 3, CVC_DTYPE_U8, CVC_STREAM_NONE), view = tensor; // rows of 30 in 32
  int64_t more[1] = {301}, across[1] = {300}, negative[2] = {-1, 300}, fine[2] = {10, 30};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_NONE, "", 1, more);
  CHECK_ERROR(cvc_tensor_reshape(tensor, &desc, &view), CVC_STATUS_INVALID_SHAPE, "desc.shape", "301", "300");
  CHECK(view == NULL);
  desc = tensor_desc(CVC_DTYPE_NONE, "", 1, across);
  CHECK_ERROR(cvc_tensor_reshape(tensor, &desc, &view), CVC_STATUS_INVALID_STRIDES, "desc.shape", "padding");
  desc = tensor_desc(CVC_DTYPE_NONE, "", 2, negative);
  CHECK_ERROR(cvc_tensor_reshape(tensor, &desc, &view), CVC_STATUS_INVALID_SHAPE, "desc.shape[0]", "-1");
  desc = tensor_desc(CVC_DTYPE_F32, "", 2, fine);
  CHECK_ERROR(cvc_tensor_reshape(tensor, &desc, &view), CVC_STATUS_DTYPE_MISMATCH, "desc.dtype");
  desc = tensor_desc(CVC_DTYPE_NONE, "HWC", 2, fine);
  CHECK_ERROR(cvc_tensor_reshape(tensor, &desc, &view), CVC_STATUS_INVALID_LAYOUT, "desc.layout", "HWC");
  CHECK_EQ(check_stats(check_default_cache(), 0).view_count, 0);
  CHECK_OK(cvc_tensor_release(tensor));
}

static void count_release(void *context) { ++*(int *)context; }

static cvc_tensor_data_t foreign(void *memory) {
  cvc_tensor_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  data.device = 0;
  data.rank = 3;
  data.shape[0] = 4;
  data.shape[1] = 5;
  data.shape[2] = 3;
  data.strides[0] = 64;
  data.strides[1] = 3;
  data.strides[2] = 1;
  data.dtype = CVC_DTYPE_U8;
  strcpy(data.layout, "HWC");
  data.data = memory;
  return data;
}

// A list of wraps, each of which lets go of the next one when it is told.
static struct {
  cvc_tensor_t wraps[40000];
  int told, inside, deepest;
} chain;

static void tell_the_next(void *context) {
  const int next = (int)(intptr_t)context + 1;
  ++chain.told;
  if (++chain.inside > chain.deepest)
    chain.deepest = chain.inside;
  if (next < (int)(sizeof chain.wraps / sizeof chain.wraps[0]))
    CHECK_OK(cvc_tensor_release(chain.wraps[next]));
  --chain.inside;
}

static void callbacks_do_not_nest(void) {
  const int all = (int)(sizeof chain.wraps / sizeof chain.wraps[0]);
  unsigned char *memory = foreign_memory(64);
  cvc_tensor_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  data.rank = 1;
  data.shape[0] = 64;
  data.strides[0] = 1;
  data.dtype = CVC_DTYPE_U8;
  strcpy(data.layout, "W");
  data.data = memory;
  for (int i = 0; i < all; ++i)
    CHECK_OK(cvc_tensor_wrap(check_default_cache(), &data, tell_the_next, (void *)(intptr_t)i,
                             CVC_STREAM_NONE, &chain.wraps[i]));
  CHECK_OK(cvc_tensor_release(chain.wraps[0]));
  CHECK_EQ(chain.told, all);
  CHECK_EQ(chain.deepest, 1);
  foreign_memory_free(memory);
}

static void wraps_of_foreign_memory(void) {
  unsigned char *memory = foreign_memory(256);
  memset(memory, 9, 256);
  int released = 0;
  cvc_cache_t cache = check_default_cache();
  cvc_stream_t stream = new_stream();
  cvc_tensor_data_t data = foreign(memory);
  cvc_tensor_t tensor = NULL;
  uint64_t before = check_stats(cache, 0).bytes;
  CHECK_OK(cvc_tensor_wrap(cache, &data, count_release, &released, CVC_STREAM_NONE, &tensor));
  CHECK_EQ(check_stats(cache, 0).bytes, before);
  CHECK_EQ(check_stats(cache, 0).wrapped_count, 1);
  CHECK_EQ(charge(tensor), 0);
  CHECK(tensor_data(tensor).data == memory && tensor_data(tensor).strides[0] == 64);
  CHECK_OK(cvc_tensor_retain(tensor));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_EQ(released, 0);
  CHECK_OK(cvc_fill_zero(stream, tensor));
  CHECK_OK(cvc_stream_synchronize(stream, -1));
  CHECK(memory[0] == 0 && memory[14] == 0 && memory[15] == 9 && memory[64] == 0 && memory[63] == 9);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_EQ(released, 1);

  CHECK_OK(cvc_tensor_wrap(cache, &data, NULL, NULL, CVC_STREAM_NONE, &tensor)); // no callback
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_destroy(stream));
  foreign_memory_free(memory);
}

// A pipeline that wraps buffer after buffer may keep the shells: the same identity comes back.
static void shells_of_wraps_are_reused_when_asked(void) {
  unsigned char *memory = foreign_memory(4096);
  cvc_cache_t cache = check_default_cache();
  cvc_tensor_data_t data = foreign(memory);
  data.flags = CVC_WRAP_KEEP_SHELLS;
  uint64_t first = 0;
  for (int i = 0; i < 50; ++i) {
    cvc_tensor_t tensor = NULL;
    uint64_t id = 0;
    data.data = memory + i;
    data.shape[0] = 1 + i;
    CHECK_OK(cvc_tensor_wrap(cache, &data, NULL, NULL, CVC_STREAM_NONE, &tensor));
    CHECK_OK(cvc_tensor_get_id(tensor, &id));
    CHECK(tensor_data(tensor).data == memory + i && tensor_data(tensor).shape[0] == 1 + i);
    first = i == 0 ? id : first;
    CHECK_EQ(id, first);
    CHECK_OK(cvc_tensor_release(tensor));
  }
  data.flags = 0x10;
  cvc_tensor_t tensor = NULL;
  CHECK_ERROR(cvc_tensor_wrap(cache, &data, NULL, NULL, CVC_STREAM_NONE, &tensor), CVC_STATUS_INVALID_ENUM,
              "data.flags", "0x10");
  foreign_memory_free(memory);
}

// Memory with work still queued is not given back yet; whoever waits for that work gives it back.
static void a_wrap_with_pending_work(void) {
  unsigned char *memory = foreign_memory(256);
  int released = 0;
  cvc_cache_t cache = check_default_cache();
  cvc_stream_t stream = new_stream();
  cvc_tensor_data_t data = foreign(memory);
  cvc_tensor_t tensor = NULL;
  CHECK_OK(cvc_tensor_wrap(cache, &data, count_release, &released, CVC_STREAM_NONE, &tensor));
  uint64_t latch = hold(stream);
  CHECK_OK(cvc_fill_zero(stream, tensor));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_EQ(released, 0);
  let_go(latch);
  CHECK_OK(cvc_cache_synchronize(cache, 0, -1));
  CHECK_EQ(released, 1);
  CHECK_OK(cvc_stream_destroy(stream));
  foreign_memory_free(memory);
}

// What the producer's stream still has to write is written before the library reads.
static void a_producers_queued_work_comes_first(void) {
  unsigned char *memory = foreign_memory(256), *ones = pinned_memory(60), *got = pinned_memory(60);
  memset(ones, 1, 60);
  cvc_cache_t cache = check_default_cache();
  cvc_stream_t producer = new_stream(), reader = new_stream();
  cvc_tensor_data_t data = foreign(memory);
  cvc_tensor_t written = NULL, tensor = NULL;
  CHECK_OK(cvc_tensor_wrap(cache, &data, NULL, NULL, CVC_STREAM_NONE, &written));
  uint64_t latch = hold(producer);
  CHECK_OK(cvc_upload(producer, ones, NULL, written)); // stands for somebody else's kernel
  CHECK_OK(cvc_tensor_wrap(cache, &data, NULL, NULL, producer, &tensor));
  CHECK_OK(cvc_download(reader, tensor, got, NULL));
  CHECK_STATUS(cvc_stream_query(reader), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(reader, -1));
  CHECK(memcmp(got, ones, 60) == 0);
  CHECK_OK(cvc_tensor_release(written));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_destroy(producer));
  CHECK_OK(cvc_stream_destroy(reader));
  foreign_memory_free(memory);
  pinned_memory_free(ones);
  pinned_memory_free(got);
}

static void accesses_of_others_are_ordered(void) {
  cvc_stream_t first = new_stream(), second = new_stream();
  cvc_stream_t last = NULL;
  unsigned char *got = pinned_memory(48);
  cvc_tensor_t tensor = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, first);
  CHECK_OK(cvc_tensor_last_stream(tensor, &last));
  CHECK(last == CVC_STREAM_NONE);
  CHECK_OK(cvc_fill_zero(first, tensor));
  CHECK_OK(cvc_tensor_last_stream(tensor, &last));
  CHECK(last == first);
  CHECK_OK(cvc_stream_synchronize(first, -1));

  // A foreign writer on `first`, here a latch, between begin and end.
  CHECK_OK(cvc_tensor_begin_access(tensor, first, CVC_ACCESS_WRITE));
  uint64_t latch = hold(first);
  CHECK_OK(cvc_tensor_end_access(tensor, first, CVC_ACCESS_WRITE));
  CHECK_OK(cvc_download(second, tensor, got, NULL));
  CHECK_STATUS(cvc_stream_query(second), CVC_STATUS_NOT_READY);
  CHECK_STATUS(cvc_tensor_synchronize(tensor, 0), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_tensor_synchronize(tensor, -1));
  CHECK_OK(cvc_stream_synchronize(second, -1));

  CHECK_ERROR(cvc_tensor_begin_access(tensor, first, 0), CVC_STATUS_INVALID_ENUM, "access", "0");
  CHECK_ERROR(cvc_tensor_begin_access(tensor, first, 8), CVC_STATUS_INVALID_ENUM, "access", "8");
  CHECK_ERROR(cvc_tensor_end_access(tensor, first, 8), CVC_STATUS_INVALID_ENUM, "access", "8");
  CHECK_STATUS(cvc_tensor_begin_access(tensor, CVC_STREAM_NONE, CVC_ACCESS_READ), CVC_STATUS_INVALID_STREAM);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_destroy(first));
  CHECK_OK(cvc_stream_destroy(second));
  pinned_memory_free(got);
}

// Also for a request that came before, when another device was current.
static void a_default_stream_is_of_the_current_device(void) {
  if (!two_devices())
    return;
  const cvc_stream_t streams[] = {NULL, CVC_STREAM_LEGACY, CVC_STREAM_PER_THREAD};
  int64_t shape[3] = {4, 4, 4};
  for (int i = 0; i < 3; ++i) {
    cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "HWC", 3, shape);
    desc.device = 0;
    cvc_tensor_t tensor = NULL;
    for (int turn = 0; turn < 3; ++turn) {
      CHECK_OK(cvc_tensor_create(check_default_cache(), &desc, streams[i], &tensor));
      CHECK_OK(cvc_tensor_release(tensor));
    }
    CHECK_OK(cvc_device_set_current(1));
    CHECK_ERROR(cvc_tensor_create(check_default_cache(), &desc, streams[i], &tensor),
                CVC_STATUS_DEVICE_MISMATCH, "current device 1");
    CHECK(tensor == NULL);
    CHECK_OK(cvc_device_set_current(0));
  }
}

int main(void) {
  CHECK_BEGIN();
  RUN(strides_and_charge);
  RUN(description_of_images);
  RUN(an_empty_tensor);
  RUN(references_and_identity);
  RUN(a_view_keeps_the_memory);
  RUN(work_on_a_view_counts_for_the_memory);
  RUN(reshape_that_is_impossible);
  RUN(wraps_of_foreign_memory);
  RUN(callbacks_do_not_nest);
  RUN(shells_of_wraps_are_reused_when_asked);
  RUN(a_wrap_with_pending_work);
  RUN(a_producers_queued_work_comes_first);
  RUN(accesses_of_others_are_ordered);
  RUN(a_default_stream_is_of_the_current_device);
  return CHECK_END();
}

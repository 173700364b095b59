// DLPack: export and import in both struct versions, ownership, stream order, and the capsule destructor for
// Python.
#include "fixtures.h"

// dlpack.h, versions 0 and 1, as far as needed.
typedef struct {
  int32_t type, id;
} dl_device;
typedef struct {
  uint8_t code, bits;
  uint16_t lanes;
} dl_dtype;
typedef struct {
  void *data;
  dl_device device;
  int32_t rank;
  dl_dtype dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} dl_tensor;
typedef struct dl_managed {
  dl_tensor tensor;
  void *context;
  void (*deleter)(struct dl_managed *);
} dl_managed;
typedef struct dl_versioned {
  struct {
    uint32_t major, minor;
  } version;
  void *context;
  void (*deleter)(struct dl_versioned *);
  uint64_t flags;
  dl_tensor tensor;
} dl_versioned;

enum { dl_cpu = 1, dl_cuda = 2, dl_uint = 1, dl_float = 2 };

static int own_device(void) { return on_host() ? dl_cpu : dl_cuda; }

static void export_describes_the_tensor(void) {
  cvc_tensor_t tensor = nhwc(2, 4, 10, 3, CVC_DTYPE_F32, CVC_STREAM_NONE);
  cvc_tensor_data_t data = tensor_data(tensor);
  void *managed = NULL;
  CHECK_OK(cvc_tensor_to_dlpack(tensor, CVC_STREAM_NONE, 1, &managed));
  dl_versioned *versioned = managed;
  CHECK_EQ(versioned->version.major, 1);
  CHECK_EQ(versioned->flags & 1, 0);
  const dl_tensor *view = &versioned->tensor;
  CHECK(view->data == data.data);
  CHECK_EQ(view->byte_offset, 0);
  CHECK_EQ(view->device.type, own_device());
  CHECK_EQ(view->device.id, 0);
  CHECK_EQ(view->rank, 4);
  CHECK(view->dtype.code == dl_float && view->dtype.bits == 32 && view->dtype.lanes == 1);
  for (int i = 0; i < 4; ++i) {
    CHECK_EQ(view->shape[i], data.shape[i]);
    CHECK_EQ(view->strides[i] * 4, data.strides[i]);
  }
  versioned->deleter(versioned);
  CHECK_OK(cvc_tensor_to_dlpack(tensor, CVC_STREAM_NONE, 0, &managed));
  dl_managed *legacy = managed;
  CHECK(legacy->tensor.data == data.data && legacy->tensor.rank == 4);
  legacy->deleter(legacy);
  CHECK_OK(cvc_tensor_release(tensor));
}

static void an_export_keeps_the_memory(void) {
  cvc_tensor_t tensor = nhwc(1, 8, 8, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  void *memory = tensor_data(tensor).data, *managed = NULL;
  CHECK_OK(cvc_tensor_to_dlpack(tensor, CVC_STREAM_NONE, 1, &managed));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_EQ(check_stats(check_default_cache(), 0).live_count, 1);
  cvc_tensor_t other = nhwc(1, 8, 8, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  CHECK(tensor_data(other).data != memory);
  ((dl_versioned *)managed)->deleter(managed);
  tensor = nhwc(1, 8, 8, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  CHECK(tensor_data(tensor).data == memory);
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_tensor_release(other));
}

// The consumer's stream is made to wait for the tensor's work, and its own work counts when the deleter runs.
static void order_with_the_consumers_stream(void) {
  cvc_stream_t producer = new_stream(), consumer = new_stream();
  cvc_tensor_t tensor = nhwc(1, 8, 8, 3, CVC_DTYPE_U8, producer);
  void *memory = tensor_data(tensor).data, *managed = NULL;
  uint64_t latch = hold(producer);
  CHECK_OK(cvc_fill_zero(producer, tensor));
  CHECK_OK(cvc_tensor_to_dlpack(tensor, consumer, 1, &managed));
  CHECK_STATUS(cvc_stream_query(consumer), CVC_STATUS_NOT_READY);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(consumer, -1));

  CHECK_OK(cvc_tensor_release(tensor));
  latch = hold(consumer); // stands for the consumer's kernel
  ((dl_versioned *)managed)->deleter(managed);
  tensor = nhwc(1, 8, 8, 3, CVC_DTYPE_U8, producer);
  CHECK(tensor_data(tensor).data != memory);
  let_go(latch);
  CHECK_OK(cvc_stream_synchronize(consumer, -1));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_stream_destroy(producer));
  CHECK_OK(cvc_stream_destroy(consumer));
}

struct owner {
  dl_managed managed;
  dl_versioned versioned;
  int64_t shape[3], strides[3];
  int deleted;
};

static void legacy_deleter(dl_managed *self) { ((struct owner *)self->context)->deleted++; }
static void versioned_deleter(dl_versioned *self) { ((struct owner *)self->context)->deleted++; }

static void prepare(struct owner *owner, unsigned char *memory) {
  memset(owner, 0, sizeof *owner);
  owner->shape[0] = 4, owner->shape[1] = 5, owner->shape[2] = 3;
  owner->strides[0] = 32, owner->strides[1] = 3, owner->strides[2] = 1;
  dl_tensor tensor = {memory, {own_device(), 0}, 3, {dl_uint, 8, 1}, owner->shape, owner->strides, 0};
  owner->managed.tensor = owner->versioned.tensor = tensor;
  owner->managed.context = owner->versioned.context = owner;
  owner->managed.deleter = legacy_deleter;
  owner->versioned.deleter = versioned_deleter;
  owner->versioned.version.major = 1;
}

static void import_takes_ownership(void) {
  cvc_cache_t cache = check_default_cache();
  cvc_stream_t stream = new_stream();
  unsigned char *memory = foreign_memory(128);
  struct owner owner;
  for (int versioned = 0; versioned <= 1; ++versioned) {
    prepare(&owner, memory);
    memset(memory, 9, 128);
    cvc_tensor_t tensor = NULL;
    void *managed = versioned ? (void *)&owner.versioned : (void *)&owner.managed;
    CHECK_OK(cvc_tensor_from_dlpack(cache, managed, versioned, "HWC", CVC_STREAM_NONE, &tensor));
    cvc_tensor_data_t data = tensor_data(tensor);
    CHECK(data.data == memory && data.rank == 3 && data.dtype == CVC_DTYPE_U8 &&
          strcmp(data.layout, "HWC") == 0);
    CHECK_EQ(data.strides[0], 32);
    CHECK_EQ(check_stats(cache, 0).wrapped_count, 1);
    CHECK_OK(cvc_fill_zero(stream, tensor));
    CHECK_OK(cvc_stream_synchronize(stream, -1));
    CHECK(memory[0] == 0 && memory[15] == 9);
    CHECK_EQ(owner.deleted, 0);
    CHECK_OK(cvc_tensor_release(tensor));
    CHECK_EQ(owner.deleted, 1);
  }
  foreign_memory_free(memory);
  CHECK_OK(cvc_stream_destroy(stream));
}

static void a_refused_import_stays_the_callers(void) {
  cvc_cache_t cache = check_default_cache();
  unsigned char *memory = foreign_memory(128);
  struct owner owner;
  cvc_tensor_t tensor = NULL;
  prepare(&owner, memory);
  owner.managed.tensor.rank = 16;
  CHECK_ERROR(cvc_tensor_from_dlpack(cache, &owner.managed, 0, "", CVC_STREAM_NONE, &tensor),
              CVC_STATUS_INVALID_RANK, "16");
  prepare(&owner, memory);
  CHECK_ERROR(cvc_tensor_from_dlpack(cache, &owner.managed, 0, "HW", CVC_STREAM_NONE, &tensor),
              CVC_STATUS_INVALID_LAYOUT, "layout", "HW");
  owner.managed.tensor.dtype.bits = 7;
  CHECK_STATUS(cvc_tensor_from_dlpack(cache, &owner.managed, 0, "HWC", CVC_STREAM_NONE, &tensor),
               CVC_STATUS_NOT_SUPPORTED);
  prepare(&owner, memory);
  owner.managed.tensor.data = NULL;
  CHECK_STATUS(cvc_tensor_from_dlpack(cache, &owner.managed, 0, "HWC", CVC_STREAM_NONE, &tensor),
               CVC_STATUS_NULL_POINTER);
  prepare(&owner, memory);
  owner.managed.tensor.device.type = 10; // ROCm
  CHECK_ERROR(cvc_tensor_from_dlpack(cache, &owner.managed, 0, "HWC", CVC_STREAM_NONE, &tensor),
              CVC_STATUS_DEVICE_MISMATCH, "managed", "10");
  prepare(&owner, memory);
  owner.versioned.version.major = 2;
  CHECK_STATUS(cvc_tensor_from_dlpack(cache, &owner.versioned, 1, "HWC", CVC_STREAM_NONE, &tensor),
               CVC_STATUS_NOT_SUPPORTED);
  owner.managed.tensor.byte_offset = UINT64_MAX;
  CHECK_ERROR(cvc_tensor_from_dlpack(cache, &owner.managed, 0, "HWC", CVC_STREAM_NONE, &tensor),
              CVC_STATUS_OVERFLOW, "byte_offset");
  owner.managed.tensor.byte_offset = 0;
  CHECK_ERROR(cvc_tensor_from_dlpack(cache, NULL, 1, "HWC", CVC_STREAM_NONE, &tensor),
              CVC_STATUS_NULL_POINTER, "managed");
  CHECK_EQ(owner.deleted, 0);
  CHECK(tensor == NULL);
  foreign_memory_free(memory);
}

// Whoever says that memory is a device's may be wrong.
static void a_host_pointer_called_device_memory(void) {
  static unsigned char memory[128];
  struct owner owner;
  cvc_tensor_t tensor = NULL;
  if (on_host())
    return;
  prepare(&owner, memory);
  CHECK_ERROR(
      cvc_tensor_from_dlpack(check_default_cache(), &owner.managed, 0, "HWC", CVC_STREAM_NONE, &tensor),
      CVC_STATUS_INVALID_ARGUMENT, "managed.data", "device 0");
  CHECK(tensor == NULL);
  CHECK_EQ(owner.deleted, 0);
}

static void round_trip(void) {
  cvc_stream_t stream = new_stream();
  unsigned char in[96], out[96];
  fill_noise(in, sizeof in, 12);
  cvc_tensor_t tensor = nhwc(1, 4, 8, 3, CVC_DTYPE_U8, stream), again = NULL;
  put(stream, tensor, in);
  void *managed = NULL;
  CHECK_OK(cvc_tensor_to_dlpack(tensor, stream, 1, &managed));
  CHECK_OK(cvc_tensor_release(tensor));
  CHECK_OK(cvc_tensor_from_dlpack(check_default_cache(), managed, 1, "NHWC", stream, &again));
  take(stream, again, out);
  CHECK(memcmp(in, out, sizeof in) == 0);
  CHECK_OK(cvc_tensor_release(again));
  CHECK_OK(cvc_stream_destroy(stream));
}

// What Python's PyCapsule_GetPointer and PyCapsule_IsValid do, on a capsule of our own.
struct capsule {
  const char *name;
  void *pointer;
};

static void *capsule_get_pointer(void *object, const char *name) {
  struct capsule *capsule = object;
  return strcmp(capsule->name, name) == 0 ? capsule->pointer : NULL;
}

static int capsule_is_valid(void *object, const char *name) {
  struct capsule *capsule = object;
  return strcmp(capsule->name, name) == 0 && capsule->pointer != NULL;
}

static void an_unused_capsule_frees_its_tensor(void) {
  void *get_pointer = NULL, *is_valid = NULL;
  void *(*get)(void *, const char *) = capsule_get_pointer;
  int (*valid)(void *, const char *) = capsule_is_valid;
  memcpy(&get_pointer, &get, sizeof get);
  memcpy(&is_valid, &valid, sizeof valid);
  CHECK_OK(cvc_python_bind(get_pointer, is_valid));
  CHECK_ERROR(cvc_python_bind(NULL, is_valid), CVC_STATUS_NULL_POINTER, "capsule_get_pointer");
  CHECK_ERROR(cvc_python_bind(get_pointer, NULL), CVC_STATUS_NULL_POINTER, "capsule_is_valid");
  for (int versioned = 0; versioned <= 1; ++versioned) {
    cvc_tensor_t tensor = nhwc(1, 8, 8, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
    struct capsule capsule = {versioned ? "dltensor_versioned" : "dltensor", NULL};
    CHECK_OK(cvc_tensor_to_dlpack(tensor, CVC_STREAM_NONE, versioned, &capsule.pointer));
    CHECK_OK(cvc_tensor_release(tensor));
    struct capsule used = {versioned ? "used_dltensor_versioned" : "used_dltensor", capsule.pointer};
    cvc_python_capsule_destructor(&used); // the consumer owns it: nothing happens
    CHECK_EQ(check_stats(check_default_cache(), 0).live_count, 1);
    cvc_python_capsule_destructor(&capsule);
    CHECK_EQ(check_stats(check_default_cache(), 0).live_count, 0);
  }
}

static void wrong_arguments(void) {
  cvc_tensor_t tensor = nhwc(1, 8, 8, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  void *managed = &tensor;
  CHECK_ERROR(cvc_tensor_to_dlpack(tensor, CVC_STREAM_NONE, 1, NULL), CVC_STATUS_NULL_POINTER, "managed");
  CHECK_ERROR(cvc_tensor_to_dlpack(NULL, CVC_STREAM_NONE, 1, &managed), CVC_STATUS_INVALID_HANDLE, "tensor");
  CHECK(managed == NULL);
  CHECK_OK(cvc_tensor_release(tensor));
}

int main(void) {
  CHECK_BEGIN();
  RUN(export_describes_the_tensor);
  RUN(an_export_keeps_the_memory);
  RUN(order_with_the_consumers_stream);
  RUN(import_takes_ownership);
  RUN(a_refused_import_stays_the_callers);
  RUN(a_host_pointer_called_device_memory);
  RUN(round_trip);
  RUN(an_unused_capsule_frees_its_tensor);
  RUN(wrong_arguments);
  return CHECK_END();
}

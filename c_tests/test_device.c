// Version, backend, devices and the calling thread's current device.
#include "fixtures.h"

#include <pthread.h>

static void version_and_abi(void) {
  char text[64];
  snprintf(text, sizeof text, "%d.%d.%d", CVC_VERSION_MAJOR, CVC_VERSION_MINOR, CVC_VERSION_PATCH);
  CHECK(strcmp(cvc_version(), text) == 0);
  CHECK_EQ(cvc_abi_version(), CVC_ABI_VERSION);
}

static void backend_and_count(void) {
  cvc_backend_t backend = 0;
  int32_t count = 0;
  CHECK_OK(cvc_backend(&backend));
  CHECK(backend == CVC_BACKEND_HOST || backend == CVC_BACKEND_CUDA);
  CHECK_OK(cvc_device_count(&count));
  CHECK(count >= 1);
  const char *devices = getenv("CVC_HOST_DEVICES");
  if (backend == CVC_BACKEND_HOST)
    CHECK_EQ(count, devices ? atoi(devices) : 1);
}

static void device_information(void) {
  int32_t count = 0;
  CHECK_OK(cvc_device_count(&count));
  for (int32_t device = 0; device < count; ++device) {
    cvc_device_info_t info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    CHECK_OK(cvc_device_get_info(device, &info));
    CHECK_EQ(info.backend, on_host() ? CVC_BACKEND_HOST : CVC_BACKEND_CUDA);
    CHECK(info.total_memory > 0);
    CHECK(info.free_memory > 0 && info.free_memory <= info.total_memory);
    CHECK(info.name[0] != '\0' && memchr(info.name, '\0', sizeof info.name) != NULL);
  }
}

static void *current_device_of_a_new_thread(void *result) {
  CHECK_OK(cvc_device_get_current((int32_t *)result));
  return NULL;
}

static void current_device_is_the_threads_own(void) {
  int32_t device = -1;
  CHECK_OK(cvc_device_get_current(&device));
  CHECK_EQ(device, 0);
  if (!two_devices())
    return;
  CHECK_OK(cvc_device_set_current(1));
  CHECK_OK(cvc_device_get_current(&device));
  CHECK_EQ(device, 1);

  cvc_tensor_t tensor = nhwc(1, 4, 4, 3, CVC_DTYPE_U8, CVC_STREAM_NONE);
  CHECK_EQ(tensor_data(tensor).device, 1);
  CHECK_OK(cvc_tensor_release(tensor));

  pthread_t thread;
  int32_t other = -1;
  CHECK_EQ(pthread_create(&thread, NULL, current_device_of_a_new_thread, &other), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_EQ(other, 0);
  CHECK_OK(cvc_device_set_current(0));
}

static void synchronize_waits_for_its_own_device(void) {
  cvc_stream_t stream = new_stream();
  uint64_t latch = hold(stream);
  CHECK_STATUS(cvc_device_synchronize(0, 0), CVC_STATUS_NOT_READY);
  if (two_devices())
    CHECK_OK(cvc_device_synchronize(1, -1));
  let_go(latch);
  CHECK_OK(cvc_device_synchronize(0, -1));
  CHECK_OK(cvc_stream_query(stream));
  CHECK_OK(cvc_stream_destroy(stream));
}

static void wrong_arguments(void) {
  int32_t device = -7;
  CHECK_ERROR(cvc_device_set_current(64), CVC_STATUS_INVALID_DEVICE, "device", "64");
  CHECK_OK(cvc_device_get_current(&device));
  CHECK_EQ(device, 0);
  CHECK_ERROR(cvc_device_synchronize(-5, -1), CVC_STATUS_INVALID_DEVICE, "device", "-5");
  CHECK_ERROR(cvc_backend(NULL), CVC_STATUS_NULL_POINTER, "backend");
  CHECK_ERROR(cvc_device_count(NULL), CVC_STATUS_NULL_POINTER, "count");
  CHECK_ERROR(cvc_device_get_current(NULL), CVC_STATUS_NULL_POINTER, "device");
  CHECK_ERROR(cvc_device_get_info(0, NULL), CVC_STATUS_NULL_POINTER, "info");
  cvc_device_info_t info;
  memset(&info, 0, sizeof info);
  CHECK_ERROR(cvc_device_get_info(0, &info), CVC_STATUS_INVALID_STRUCT_SIZE, "info", "struct_size", "0");
  info.struct_size = sizeof info;
  CHECK_ERROR(cvc_device_get_info(99, &info), CVC_STATUS_INVALID_DEVICE, "device", "99");
}

int main(void) {
  CHECK_BEGIN();
  RUN(version_and_abi);
  RUN(backend_and_count);
  RUN(device_information);
  RUN(current_device_is_the_threads_own);
  RUN(synchronize_waits_for_its_own_device);
  RUN(wrong_arguments);
  return CHECK_END();
}

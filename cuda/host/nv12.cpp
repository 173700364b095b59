// Host build of the NV12 kernel.
#include "../nv12.cuh"

extern "C" void cvc_host_nv12(const void *block, int64_t begin, int64_t end) {
  const cvc_nv12_params &params = *static_cast<const cvc_nv12_params *>(block);
  for (int64_t item = begin; item < end; ++item) {
    const int64_t n = item / params.height;
    const int64_t y = item % params.height;
    for (int64_t x = 0; x < params.width; ++x) {
      cvc_nv12_store(params, n, y, x, cvc_nv12_pixel_at(params, n, y, x));
    }
  }
}

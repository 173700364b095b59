// GPU build of the pillow_resize kernels.
#include "resize_kernel.cuh"

extern "C" __global__ void __launch_bounds__(256)
    cvc_resize(const __grid_constant__ cvc_resize_params params) {
  using namespace cvc_resize_device;
  int64_t block = blockIdx.x;
  for (int32_t g = 0; g < params.image_count; ++g) {
    const int64_t blocks = cvc_resize_sample_blocks(params.images[g], params);
    for (; block < blocks; block += gridDim.x) {
      resize_samples<false>(params, g, block);
    }
    block -= blocks;
  }
}

extern "C" __global__ void __launch_bounds__(256, cvc_resize_blocks)
    cvc_resize_fixed(const __grid_constant__ cvc_resize_params params) {
  cvc_resize_device::resize_fixed<false, cvc_resize_device::result_rows>(params, params);
}

extern "C" __global__ void __launch_bounds__(256, cvc_resize_blocks)
    cvc_resize_fixed_wide(const __grid_constant__ cvc_resize_params params) {
  cvc_resize_device::resize_fixed<true, cvc_resize_device::result_rows>(params, params);
}

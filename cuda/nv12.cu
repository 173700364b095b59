// GPU build of the NV12 kernel: a thread a pixel, a block a segment of a row.
#include "nv12.cuh"

extern "C" __global__ void __launch_bounds__(256) cvc_nv12(const __grid_constant__ cvc_nv12_params params) {
  const int64_t segments = cvc_nv12_segments(params);
  const int64_t blocks = cvc_nv12_blocks(params);
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t row = block / segments;
    const int64_t n = row / params.height;
    const int64_t y = row - n * params.height;
    const int64_t x = (block - row * segments) * cvc_nv12_segment + threadIdx.x;
    if (x < params.width) {
      cvc_nv12_store(params, n, y, x, cvc_nv12_pixel_at(params, n, y, x));
    }
  }
}

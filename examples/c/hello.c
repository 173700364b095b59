// Ten lines: two rounds of the same work, the second of which allocates nothing.
#include <cvc.h>
#include <stdio.h>

int main(void) {
  cvc_cache_t cache;
  cvc_stream_t stream;
  cvc_cache_stats_t stats = {.struct_size = sizeof stats};
  cvc_tensor_desc_t desc = {
      sizeof desc, CVC_DEVICE_CURRENT, 4, {1, 720, 1280, 3}, CVC_DTYPE_U8, "NHWC", 0, 0, 0};
  if (cvc_cache_default(&cache) || cvc_stream_create(CVC_DEVICE_CURRENT, 0, &stream))
    return 1;
  for (int i = 0; i < 2; ++i) {
    cvc_tensor_t frame, small;
    if (cvc_tensor_create(cache, &desc, stream, &frame) || cvc_fill_zero(stream, frame))
      return 1;
    if (cvc_op_pillow_resize_new(stream, frame, 224, 224, CVC_FILTER_LINEAR, 0, &small))
      return 1;
    cvc_tensor_release(frame); // at once: the work is queued, and the stream's next work comes after it
    cvc_tensor_release(small);
  }
  cvc_stream_synchronize(stream, -1);
  cvc_cache_stats(cache, CVC_DEVICE_CURRENT, &stats);
  printf("%llu reused, %llu allocated\n", (unsigned long long)(stats.hits_exact + stats.hits_fit),
         (unsigned long long)stats.misses);
  return cvc_stream_destroy(stream);
}

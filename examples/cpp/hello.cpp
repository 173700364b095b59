// Ten lines: two rounds of the same work, the second of which allocates nothing.
#include <cstdio>
#include <cvc.hpp>

int main() {
  cvc::Stream stream;
  for (int i = 0; i < 2; ++i) {
    cvc::Tensor frame({{1, 720, 1280, 3}, cvc::Dtype::u8, "NHWC"}, stream);
    cvc::fill_zero(stream, frame);
    cvc::Tensor small = cvc::pillow_resize(stream, frame, {224, 224});
  } // dropped at once: the work is queued, and the stream's next work comes after it
  stream.synchronize();
  const auto stats = cvc::Cache::process().stats();
  std::printf("%d reused, %d allocated\n", int(stats.hits_exact + stats.hits_fit), int(stats.misses));
}

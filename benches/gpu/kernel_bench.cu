// Times the GPU kernels at the sizes that they are made for, beside a copy of as many bytes on the same GPU
// in the same run: one table with the time, the bandwidth over the fewest bytes that the work has to move,
// and the ratios.
//
// `kernel_bench [resize]`: all rows, or only those whose name contains the argument.
//
// Each row is the median of 30 runs over sets of buffers that together do not fit into the L2 cache.
//
// kernel_bench [text]: only the rows whose name has it
#include <algorithm>

#include "kernel_support.h"

namespace {

constexpr int frames = 32, height = 1080, width = 1920, channels = 3;
constexpr int64_t frame_elements = static_cast<int64_t>(height) * width * channels;
constexpr int64_t elements = frames * frame_elements;
constexpr int runs = 30;

// All runs are queued before the first is waited for, so that no time of the CPU is in them.
template <class Work> double median_microseconds(Work work) {
  std::vector<cudaEvent_t> events(2 * runs);
  for (cudaEvent_t &event : events) {
    CUDA_CHECK(cudaEventCreate(&event));
  }
  for (int i = 0; i < 6; ++i) {
    work(i);
  }
  for (int i = 0; i < runs; ++i) {
    CUDA_CHECK(cudaEventRecord(events[2 * static_cast<size_t>(i)]));
    work(i);
    CUDA_CHECK(cudaEventRecord(events[2 * static_cast<size_t>(i) + 1]));
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    float milliseconds = 0.0f;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, events[2 * static_cast<size_t>(i)],
                                    events[2 * static_cast<size_t>(i) + 1]));
    times.push_back(1000.0 * static_cast<double>(milliseconds));
  }
  for (cudaEvent_t event : events) {
    CUDA_CHECK(cudaEventDestroy(event));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Two sets of source and result, each larger than the cache by itself.
struct buffers {
  unsigned char *from[2];
  unsigned char *to[2];
  size_t bytes;
};

__global__ void fill(uint32_t *words, size_t count, bool real) {
  for (size_t i = blockIdx.x * 256ull + threadIdx.x; i < count; i += gridDim.x * 256ull) {
    uint32_t bits = static_cast<uint32_t>(i) * 2654435761u ^ static_cast<uint32_t>(i >> 7);
    bits ^= bits >> 15;
    bits *= 2246822519u;
    bits ^= bits >> 13;
    words[i] = real ? __float_as_uint(static_cast<float>(bits % 25500) / 100.0f) : bits;
  }
}

void fill_sources(const buffers &memory, bool real) {
  for (unsigned char *from : memory.from) {
    fill<<<4096, 256>>>(reinterpret_cast<uint32_t *>(from), memory.bytes / 4, real);
  }
  CUDA_CHECK(cudaDeviceSynchronize());
}

double copy_microseconds(const buffers &memory, int64_t bytes) {
  return median_microseconds([&](int i) {
    CUDA_CHECK(cudaMemcpyAsync(memory.to[i % 2], memory.from[i % 2], static_cast<size_t>(bytes),
                               cudaMemcpyDeviceToDevice));
  });
}

int missed = 0;
const char *wanted = "";

bool is_wanted(const char *name) { return std::strstr(name, wanted) != nullptr; }

void print_row(const buffers &memory, const char *name, double microseconds, int64_t fewest_bytes,
               double most_microseconds) {
  // A copy moves each of its bytes twice.
  const double copy = copy_microseconds(memory, fewest_bytes / 2);
  const double ratio = copy / microseconds;
  const bool by_ratio = most_microseconds == 0.0;
  const bool reached = by_ratio ? ratio >= 0.97 : microseconds <= most_microseconds;
  missed += !reached;
  char target[32];
  std::snprintf(target, sizeof target, by_ratio ? "ratio 0.97" : "%.0f us", most_microseconds);
  std::printf("%-34s %9.1f us %7.3f TB/s %9.1f us copy %7.3f  %-11s %s\n", name, microseconds,
              static_cast<double>(fewest_bytes) / microseconds / 1e6, copy, ratio, target,
              reached ? "" : "MISSED");
  std::fflush(stdout);
}

cvc_view interleaved(const void *data, int64_t bytes) {
  return cvc_view{reinterpret_cast<unsigned long long>(data), frame_elements * bytes, bytes,
                  width * channels * bytes, channels * bytes};
}
cvc_view planar(const void *data, int64_t bytes) {
  return cvc_view{reinterpret_cast<unsigned long long>(data), frame_elements * bytes,
                  static_cast<int64_t>(height) * width * bytes, width * bytes, bytes};
}

template <class Params> Params of_frames() {
  Params params{};
  params.images = frames;
  params.channels = channels;
  params.height = height;
  params.width = width;
  return params;
}

void bench_flip(const buffers &memory, const char *name, uint32_t bytes, int32_t code) {
  if (!is_wanted(name)) {
    return;
  }
  auto params = of_frames<cvc_flip_params>();
  params.element_bytes = bytes;
  params.flip_code = code;
  const double time = median_microseconds([&](int i) {
    params.src = interleaved(memory.from[i % 2], bytes);
    params.dst = interleaved(memory.to[i % 2], bytes);
    launch_flip(params);
  });
  print_row(memory, name, time, 2 * elements * bytes, 0.0);
}

void bench_convert(const buffers &memory, const char *name, uint32_t from, uint32_t to, double alpha) {
  if (!is_wanted(name)) {
    return;
  }
  auto params = of_frames<cvc_convert_to_params>();
  params.src_kind = from;
  params.dst_kind = to;
  params.alpha = alpha;
  params.alpha_float = static_cast<float>(alpha);
  const int64_t src_bytes = cvc_kind_bytes(from), dst_bytes = cvc_kind_bytes(to);
  const double time = median_microseconds([&](int i) {
    params.src = interleaved(memory.from[i % 2], src_bytes);
    params.dst = interleaved(memory.to[i % 2], dst_bytes);
    launch_convert_to(params);
  });
  print_row(memory, name, time, elements * (src_bytes + dst_bytes), 0.0);
}

void bench_normalize(const buffers &memory, const char *name, uint32_t from) {
  if (!is_wanted(name)) {
    return;
  }
  auto params = of_frames<cvc_normalize_params>();
  params.values.src_kind = from;
  params.values.dst_kind = cvc_kind_f32;
  params.values.global_scale = 1.0f;
  for (int i = 0; i < 4; ++i) {
    params.values.base_values[i] = 110.0f + 5.0f * static_cast<float>(i);
    params.values.scale_values[i] = 0.016f + 0.001f * static_cast<float>(i);
  }
  const int64_t src_bytes = cvc_kind_bytes(from);
  const double time = median_microseconds([&](int i) {
    params.src = interleaved(memory.from[i % 2], src_bytes);
    params.dst = interleaved(memory.to[i % 2], 4);
    launch_normalize(params);
  });
  print_row(memory, name, time, elements * (src_bytes + 4), 0.0);
}

void bench_reformat(const buffers &memory, const char *name, uint32_t bytes, bool to_planes) {
  if (!is_wanted(name)) {
    return;
  }
  auto params = of_frames<cvc_reformat_params>();
  params.element_bytes = bytes;
  const double time = median_microseconds([&](int i) {
    params.src = to_planes ? interleaved(memory.from[i % 2], bytes) : planar(memory.from[i % 2], bytes);
    params.dst = to_planes ? planar(memory.to[i % 2], bytes) : interleaved(memory.to[i % 2], bytes);
    launch_reformat(params);
  });
  print_row(memory, name, time, 2 * elements * bytes, 0.0);
}

// The tables of a resize and the geometry of its images, on the device.
class resize_work {
public:
  resize_work(int out_width, int out_height, filter kind, int batch)
      : across_(width, out_width, kind, true), down_(height, out_height, kind, true),
        out_frame(static_cast<int64_t>(out_width) * out_height * channels) {
    const resize_table *const hosts[2] = {&across_, &down_};
    for (int i = 0; i < 2; ++i) {
      tables_[i] = static_cast<unsigned char *>(device_allocate(hosts[i]->bytes().size()));
      to_device(tables_[i], hosts[i]->bytes().data(), hosts[i]->bytes().size());
    }
    params.kind = cvc_kind_u8;
    params.channels = channels;
    params.image_count = 1;
    params.batch = batch;
    cvc_resize_image &image = params.images[0];
    image.src_width = width;
    image.src_height = height;
    image.dst_width = out_width;
    image.dst_height = out_height;
    image.items = out_height;
    image.horizontal_table = reinterpret_cast<uint64_t>(tables_[0]);
    image.vertical_table = reinterpret_cast<uint64_t>(tables_[1]);
    image.vertical_first = vertical_comes_first(width, height, out_width, out_height);
  }
  ~resize_work() {
    for (unsigned char *table : tables_) {
      device_free(table);
    }
  }
  resize_work(const resize_work &) = delete;
  resize_work &operator=(const resize_work &) = delete;

  void place(const buffers &memory, int i) {
    cvc_resize_image &image = params.images[0];
    image.src = interleaved(memory.from[i % 2], 1);
    image.dst = cvc_view{reinterpret_cast<unsigned long long>(memory.to[i % 2]), out_frame, 1,
                         static_cast<int64_t>(image.dst_width) * channels, channels};
  }
  std::vector<int> most_taps() const { return {across_.header().max_count, down_.header().max_count}; }
  void print_plan(const char *kernel, int64_t blocks, int64_t shared_bytes,
                  const cvc_resize_tiling &tiling) const {
    std::printf("    %s, %lld blocks of %lld bytes, steps %d and %d, bands of %d rows, %d turns\n", kernel,
                static_cast<long long>(blocks), static_cast<long long>(shared_bytes), tiling.horizontal_steps,
                tiling.vertical_steps, 8 * tiling.band_groups, tiling.turns);
  }

private:
  resize_table across_, down_;
  unsigned char *tables_[2];

public:
  const int64_t out_frame; // samples
  cvc_resize_params params{};
};

void bench_resize(const buffers &memory, const char *name, int out_width, int out_height, filter kind,
                  int batch, double most_microseconds) {
  if (!is_wanted(name)) {
    return;
  }
  resize_work work(out_width, out_height, kind, batch);
  work.place(memory, 0);
  plan_resize(work.params, work.most_taps());
  const cvc_resize_launch plan = cvc_resize_launch_of(work.params);
  const double time = median_microseconds([&](int i) {
    work.place(memory, i);
    launch_resize(work.params);
  });
  print_row(memory, name, time, batch * (frame_elements + work.out_frame), most_microseconds);
  static const char *const kernels[] = {"by sample", "tiles", "wide tiles"};
  work.print_plan(kernels[plan.kernel], plan.blocks, plan.shared_bytes, work.params.images[0].tiling);
}

// The chain resize, flip, convert, normalize, reformat to planes, in one pass.
void bench_preprocess(const buffers &memory, const char *name, int batch, double most_microseconds) {
  if (!is_wanted(name)) {
    return;
  }
  resize_work work(224, 224, filter::linear, batch);
  work.place(memory, 0);
  const std::vector<int> most = work.most_taps();
  cvc_plan_resize(&work.params, 0, most[0], most[1], 1, block_shared_bytes());
  cvc_preprocess_params params{};
  cvc_preprocess_finish &finish = params.finish;
  finish.convert_kind = finish.dst_kind = cvc_kind_f32;
  finish.alpha = 1.0 / 255.0;
  finish.normalizes = 1;
  finish.normalize.global_scale = 1.0f;
  for (int i = 0; i < 4; ++i) {
    finish.normalize.base_values[i] = 0.45f;
    finish.normalize.scale_values[i] = 4.4f;
  }
  cvc_device_launch plan;
  const double time = median_microseconds([&](int i) {
    work.place(memory, i);
    params.resize = work.params;
    // Planes, rows from right to left.
    params.resize.images[0].dst = cvc_view{reinterpret_cast<unsigned long long>(memory.to[i % 2]) + 223 * 4,
                                           4 * work.out_frame, 224 * 224 * 4, 224 * 4, -4};
    launch_preprocess(params);
  });
  cvc_launch_preprocess(&params, &plan);
  print_row(memory, name, time, batch * (frame_elements + 4 * work.out_frame), most_microseconds);
  work.print_plan(plan.kernel == 0 ? "tiles" : "wide tiles", plan.blocks, plan.shared_bytes,
                  params.resize.images[0].tiling);
}

} // namespace

int main(int argc, char **argv) {
  wanted = argc > 1 ? argv[1] : "";
  cudaDeviceProp device;
  CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
  std::printf("%s, %d multiprocessors, %d MiB of L2; %d x %d x %d x %d, medians of %d\n", device.name,
              device.multiProcessorCount, device.l2CacheSize >> 20, frames, height, width, channels, runs);
  buffers memory;
  memory.bytes = static_cast<size_t>(elements) * 4;
  for (int i = 0; i < 2; ++i) {
    memory.from[i] = static_cast<unsigned char *>(device_allocate(memory.bytes));
    memory.to[i] = static_cast<unsigned char *>(device_allocate(memory.bytes));
  }
  fill_sources(memory, false);
  std::printf("copy of %lld MB: %.3f TB/s\n", static_cast<long long>(memory.bytes >> 20),
              2.0 * static_cast<double>(memory.bytes) /
                  copy_microseconds(memory, static_cast<int64_t>(memory.bytes)) / 1e6);
  std::printf("%-34s %12s %12s %17s %7s  %s\n", "", "time", "bandwidth", "same bytes", "ratio", "target");
  bench_flip(memory, "flip u8 x", 1, 1);
  bench_flip(memory, "flip u8 y", 1, 0);
  bench_flip(memory, "flip u8 both", 1, -1);
  bench_flip(memory, "flip f32 x", 4, 1);
  bench_flip(memory, "flip f32 y", 4, 0);
  bench_flip(memory, "flip f32 both", 4, -1);
  bench_reformat(memory, "reformat u8 NHWC -> NCHW", 1, true);
  bench_reformat(memory, "reformat u8 NCHW -> NHWC", 1, false);
  bench_reformat(memory, "reformat f32 NHWC -> NCHW", 4, true);
  bench_reformat(memory, "reformat f32 NCHW -> NHWC", 4, false);
  bench_convert(memory, "convert_to u8 -> f32", cvc_kind_u8, cvc_kind_f32, 1.0 / 255.0);
  bench_normalize(memory, "normalize u8 -> f32", cvc_kind_u8);
  bench_resize(memory, "resize u8 -> 224x224 linear", 224, 224, filter::linear, frames, 60.0);
  bench_resize(memory, "resize u8 -> 1280x720 linear", 1280, 720, filter::linear, frames, 95.0);
  bench_resize(memory, "resize u8 -> 1280x720 lanczos", 1280, 720, filter::lanczos, frames, 140.0);
  bench_resize(memory, "resize u8 -> 3840x2160 cubic", 3840, 2160, filter::cubic, frames, 300.0);
  bench_resize(memory, "resize u8 -> 224x224 linear, one", 224, 224, filter::linear, 1, 12.0);
  bench_preprocess(memory, "chain of five -> 224 f32 NCHW", frames, 65.0);
  bench_preprocess(memory, "chain of five, one frame", 1, 12.0);
  fill_sources(memory, true);
  bench_convert(memory, "convert_to f32 -> u8", cvc_kind_f32, cvc_kind_u8, 1.0);
  bench_normalize(memory, "normalize f32 -> f32", cvc_kind_f32);
  std::printf("%d rows missed their target\n", missed);
  return 0;
}

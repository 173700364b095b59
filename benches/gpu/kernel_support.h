// What the stand-alone check and benchmark of the GPU kernels share: device memory, launches, and the tables
// of pillow_resize.
//
// Both include the kernels' sources and are linked with the host build of the same kernels; they need the
// CUDA runtime, but nothing of the library.
#ifndef CVC_KERNEL_SUPPORT_H
#define CVC_KERNEL_SUPPORT_H

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "convert_to.cu"
#include "flip.cu"
#include "normalize.cu"
#include "nv12.cu"
#include "preprocess.cu"
#include "reformat.cu"
#include "resize.cu"

extern "C" {
void cvc_host_flip(const void *, int64_t, int64_t);
void cvc_host_flip_var_shape(const void *, int64_t, int64_t);
void cvc_host_convert_to(const void *, int64_t, int64_t);
void cvc_host_normalize(const void *, int64_t, int64_t);
void cvc_host_normalize_var_shape(const void *, int64_t, int64_t);
void cvc_host_reformat(const void *, int64_t, int64_t);
void cvc_host_resize(const void *, int64_t, int64_t);
void cvc_host_preprocess(const void *, int64_t, int64_t);
void cvc_host_nv12(const void *, int64_t, int64_t);

// What the library asks before a launch, of cuda/host/device_launches.cpp.
struct cvc_device_launch {
  int64_t blocks;
  uint32_t kernel;
  uint32_t shared_bytes;
};
void cvc_plan_resize(cvc_resize_params *, int32_t, int32_t, int32_t, int32_t, int32_t);
void cvc_plan_preprocess(cvc_preprocess_params *);
void cvc_launch_preprocess(const cvc_preprocess_params *, cvc_device_launch *);
}

#if defined(CVC_EMULATED)
inline int block_shared_bytes() { return rand() % 2 == 0 ? 64 << 10 : 113 << 10; }
inline void *device_allocate(size_t bytes) { return aligned_alloc(512, (bytes + 1023) / 512 * 512); }
inline void device_free(void *memory) { free(memory); }
inline void to_device(void *device, const void *host, size_t bytes) { memcpy(device, host, bytes); }
inline void from_device(void *host, const void *device, size_t bytes) { memcpy(host, device, bytes); }
template <class Params>
void launch(void (*kernel)(Params), const Params &params, int64_t blocks, size_t shared = 0) {
  emulated_launch([&] { kernel(params); }, blocks, 256, shared);
}
#else
#define CUDA_CHECK(call)                                                                                     \
  do {                                                                                                       \
    const cudaError_t code = (call);                                                                         \
    if (code != cudaSuccess) {                                                                               \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(code));          \
      std::exit(2);                                                                                          \
    }                                                                                                        \
  } while (0)

// As the library counts: two blocks of a multiprocessor, of whose memory the driver keeps 1 KiB each, or 64
// KiB.
inline int block_shared_bytes() {
  int of_block = 0, of_multiprocessor = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&of_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  CUDA_CHECK(cudaDeviceGetAttribute(&of_multiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, 0));
  const int of_two = of_multiprocessor / 2 - 1024;
  const int both = of_block < of_two ? of_block : of_two;
  return both < 64 << 10 ? 64 << 10 : both;
}
inline void *device_allocate(size_t bytes) {
  void *memory = nullptr;
  CUDA_CHECK(cudaMalloc(&memory, bytes));
  return memory;
}
inline void device_free(void *memory) { CUDA_CHECK(cudaFree(memory)); }
inline void to_device(void *device, const void *host, size_t bytes) {
  CUDA_CHECK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
}
inline void from_device(void *host, const void *device, size_t bytes) {
  CUDA_CHECK(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
}
template <class Params>
void launch(void (*kernel)(Params), const Params &params, int64_t blocks, size_t shared = 0) {
  static std::map<void (*)(Params), size_t> allowed;
  if (shared > (48 << 10) && shared > allowed[kernel]) {
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
    allowed[kernel] = shared;
  }
  kernel<<<static_cast<unsigned>(blocks), 256, shared>>>(params);
  CUDA_CHECK(cudaGetLastError());
}
#endif

// ---- Launches as the library makes them ----

inline void launch_flip(cvc_flip_params params) {
  params.plan = cvc_flip_plan_of(cvc_flip_set_of(params));
  void (*const kernels[])(cvc_flip_params) = {
      cvc_flip,           cvc_flip_vertical,  cvc_flip_vectors_1,  cvc_flip_vectors_2,
      cvc_flip_vectors_4, cvc_flip_vectors_8, cvc_flip_vectors_16, cvc_flip_triples_1,
      cvc_flip_triples_2, cvc_flip_triples_4, cvc_flip_triples_8};
  launch(kernels[cvc_flip_kernel_of(params.plan)], params, params.plan.blocks);
}

inline void launch_flip_var_shape(const cvc_flip_var_shape_params &params) {
  launch(cvc_flip_var_shape, params, cvc_flip_blocks(params));
}

inline void launch_convert_to(cvc_convert_to_params params) {
  params.plan = cvc_convert_to_plan(params);
  void (*const kernels[])(cvc_convert_to_params) = {cvc_convert_to,         cvc_convert_to_plain_1,
                                                    cvc_convert_to_plain_2, cvc_convert_to_plain_4,
                                                    cvc_convert_to_u8_f32,  cvc_convert_to_f32_f32};
  const cvc_run_launch made = cvc_convert_to_launch(params);
  launch(kernels[made.kernel], params, made.blocks);
}

inline void launch_normalize(cvc_normalize_params params) {
  params.plan = cvc_normalize_plan(params);
  void (*const kernels[])(cvc_normalize_params) = {cvc_normalize,         cvc_normalize_plain_1,
                                                   cvc_normalize_plain_2, cvc_normalize_plain_4,
                                                   cvc_normalize_u8_f32,  cvc_normalize_f32_f32};
  const cvc_run_launch made = cvc_normalize_launch(params);
  launch(kernels[made.kernel], params, made.blocks);
}

inline void launch_normalize_var_shape(const cvc_normalize_var_shape_params &params) {
  launch(cvc_normalize_var_shape, params, cvc_normalize_blocks(params));
}

inline void launch_reformat(cvc_reformat_params params) {
  params.plan = cvc_reformat_plan_of(params);
  void (*const kernels[])(cvc_reformat_params) = {
      cvc_reformat,           cvc_reformat_rows,      cvc_reformat_split_1_2, cvc_reformat_merge_1_2,
      cvc_reformat_split_1_3, cvc_reformat_merge_1_3, cvc_reformat_split_1_4, cvc_reformat_merge_1_4,
      cvc_reformat_split_2_2, cvc_reformat_merge_2_2, cvc_reformat_split_2_3, cvc_reformat_merge_2_3,
      cvc_reformat_split_2_4, cvc_reformat_merge_2_4, cvc_reformat_split_4_2, cvc_reformat_merge_4_2,
      cvc_reformat_split_4_3, cvc_reformat_merge_4_3, cvc_reformat_split_4_4, cvc_reformat_merge_4_4,
      cvc_reformat_split_8_2, cvc_reformat_merge_8_2, cvc_reformat_split_8_3, cvc_reformat_merge_8_3,
      cvc_reformat_split_8_4, cvc_reformat_merge_8_4};
  launch(kernels[cvc_reformat_kernel_of(params)], params, params.plan.blocks);
}

// ---- Tables of pillow_resize ----

enum class filter { nearest = 0, linear = 1, cubic = 2, lanczos = 4, hamming = 5, box = 6 };

// The same form as the library's tables. The weights differ from those in their last bits at most: both
// builds of the kernels read the same table here.
class resize_table {
public:
  resize_table(int in, int out, filter kind, bool fixed) {
    const double scale = static_cast<double>(in) / out;
    const double filter_scale = scale < 1.0 ? 1.0 : scale;
    const double support = support_of(kind) * filter_scale;
    std::vector<cvc_resize_taps> bounds(static_cast<size_t>(out));
    int most = 1;
    for (int i = 0; i < out; ++i) {
      const double centre = (i + 0.5) * scale;
      int first = static_cast<int>(centre - support + 0.5), end = static_cast<int>(centre + support + 0.5);
      if (kind == filter::nearest) {
        first = static_cast<int>(centre);
        end = first + 1;
      }
      first = first < 0 ? 0 : first > in - 1 ? in - 1 : first;
      end = end > in ? in : end;
      bounds[static_cast<size_t>(i)] = {first, end - first < 1 ? 1 : end - first};
      most = bounds[static_cast<size_t>(i)].count > most ? bounds[static_cast<size_t>(i)].count : most;
    }
    header_ = cvc_resize_table{};
    header_.in_size = in;
    header_.out_size = out;
    header_.filter = static_cast<int>(kind);
    header_.form = kind == filter::nearest ? cvc_resize_form_index
                   : fixed                 ? cvc_resize_form_fixed
                                           : cvc_resize_form_real;
    header_.max_count = most;
    header_.row_length = kind == filter::nearest ? 0 : fixed ? (most + 7) / 8 * 8 : (most + 1) / 2 * 2;
    header_.bounds_offset = sizeof header_;
    const uint64_t rows = static_cast<uint64_t>(out), row = static_cast<uint64_t>(header_.row_length);
    header_.coefficient_offset = (header_.bounds_offset + rows * 8 + 15) / 16 * 16;
    header_.split_offset = header_.coefficient_offset + rows * row * (fixed ? 4 : 8);
    header_.total_bytes = header_.split_offset + (fixed ? rows * row * 4 : 0);
    const int steps = fixed && kind != filter::nearest ? cvc_resize_group_steps(in, out, most) : 0;
    if (steps != 0) {
      header_.group_offset = header_.total_bytes;
      header_.total_bytes += (rows + 7) / 8 * static_cast<uint64_t>(steps) * (3 * 32 * 4);
    }
    // Vector loads of the host's kernels may read a little further.
    bytes_.assign(header_.total_bytes + 64, 0);
    memcpy(bytes_.data(), &header_, sizeof header_);
    memcpy(bytes_.data() + header_.bounds_offset, bounds.data(), bounds.size() * sizeof bounds[0]);
    if (kind == filter::nearest) {
      return;
    }
    std::vector<double> weights;
    for (int i = 0; i < out; ++i) {
      const cvc_resize_taps taps = bounds[static_cast<size_t>(i)];
      weights.assign(static_cast<size_t>(taps.count), 0.0);
      double sum = 0.0;
      for (int k = 0; k < taps.count; ++k) {
        const double at = (k + taps.first - (i + 0.5) * scale + 0.5) / filter_scale;
        sum += weights[static_cast<size_t>(k)] = weight_of(kind, at);
      }
      for (int k = 0; k < taps.count; ++k) {
        const double weight =
            sum != 0.0 ? weights[static_cast<size_t>(k)] / sum : weights[static_cast<size_t>(k)];
        write(static_cast<uint64_t>(i), static_cast<uint64_t>(k), weight, fixed);
      }
    }
    if (steps != 0) {
      write_groups(bounds, steps);
    }
  }

  const cvc_resize_table &header() const { return header_; }
  const std::vector<unsigned char> &bytes() const { return bytes_; }

private:
  static double support_of(filter kind) {
    switch (kind) {
    case filter::box:
      return 0.5;
    case filter::cubic:
      return 2.0;
    case filter::lanczos:
      return 3.0;
    case filter::nearest:
      return 0.0;
    default:
      return 1.0;
    }
  }

  static double sinc(double x) { return x == 0.0 ? 1.0 : std::sin(x * M_PI) / (x * M_PI); }

  static double weight_of(filter kind, double x) {
    const double size = std::fabs(x);
    switch (kind) {
    case filter::box:
      return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
    case filter::hamming:
      return size >= 1.0 ? 0.0 : sinc(size) * (0.54 + 0.46 * std::cos(size * M_PI));
    case filter::cubic:
      return size < 1.0   ? (1.5 * size - 2.5) * size * size + 1.0
             : size < 2.0 ? (((size - 5.0) * size + 8.0) * size - 4.0) * -0.5
                          : 0.0;
    case filter::lanczos:
      return size < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
    default:
      return size < 1.0 ? 1.0 - size : 0.0;
    }
  }

  void write(uint64_t output, uint64_t tap, double weight, bool fixed) {
    const uint64_t row = static_cast<uint64_t>(header_.row_length);
    if (!fixed) {
      memcpy(bytes_.data() + header_.coefficient_offset + (output * row + tap) * 8, &weight, 8);
      return;
    }
    const double scaled = weight * 4194304.0;
    const int32_t whole = static_cast<int32_t>(scaled < 0.0 ? scaled - 0.5 : scaled + 0.5);
    const int16_t low = static_cast<int16_t>(whole);
    const int16_t high = static_cast<int16_t>((whole - low) >> 16);
    memcpy(bytes_.data() + header_.coefficient_offset + (output * row + tap) * 4, &whole, 4);
    memcpy(bytes_.data() + header_.split_offset + output * row * 4 + tap * 2, &low, 2);
    memcpy(bytes_.data() + header_.split_offset + output * row * 4 + row * 2 + tap * 2, &high, 2);
  }

  // See `cvc_resize_group`.
  void write_groups(const std::vector<cvc_resize_taps> &bounds, int steps) {
    for (int i = 0; i < header_.out_size; ++i) {
      const cvc_resize_taps taps = bounds[static_cast<size_t>(i)];
      const int begin = bounds[static_cast<size_t>(i / 8 * 8)].first & ~3;
      unsigned char *group = bytes_.data() + header_.group_offset +
                             static_cast<uint64_t>(i / 8) * static_cast<uint64_t>(steps) * (3 * 32 * 4);
      for (int k = 0; k < taps.count; ++k) {
        const int at = taps.first + k - begin, lane = i % 8 * 4 + at % 16 / 4;
        int32_t whole = 0;
        memcpy(&whole,
               bytes_.data() + header_.coefficient_offset +
                   (static_cast<int64_t>(i) * header_.row_length + k) * 4,
               4);
        for (int place = 0; place < 3; ++place) {
          group[((at / 16 * 3 + place) * 32 + lane) * 4 + at % 4] =
              static_cast<unsigned char>(static_cast<uint32_t>(whole) >> 8 * place);
        }
      }
    }
  }

  cvc_resize_table header_;
  std::vector<unsigned char> bytes_;
};

// Pillow 13's order of the passes.
inline bool vertical_comes_first(int64_t in_width, int64_t in_height, int64_t out_width, int64_t out_height) {
  return in_height - out_height > 0 && in_height - out_height > 2 * (in_width - out_width);
}

// Fills the tilings, as the library does; `most` holds the largest counts of taps across and down, image by
// image.
inline void plan_resize(cvc_resize_params &params, const std::vector<int> &most) {
  for (int i = 0; i < params.image_count; ++i) {
    const size_t at = 2 * static_cast<size_t>(i);
    cvc_plan_resize(&params, i, most[at], most[at + 1], 0, block_shared_bytes());
  }
}

inline void launch_resize(const cvc_resize_params &params) {
  const cvc_resize_launch plan = cvc_resize_launch_of(params);
  void (*const kernels[])(cvc_resize_params) = {cvc_resize, cvc_resize_fixed, cvc_resize_fixed_wide};
  launch(kernels[plan.kernel], params, plan.blocks, static_cast<size_t>(plan.shared_bytes));
}

inline void launch_preprocess(cvc_preprocess_params &params) {
  cvc_plan_preprocess(&params);
  cvc_device_launch plan;
  cvc_launch_preprocess(&params, &plan);
  launch(plan.kernel == 0 ? cvc_preprocess : cvc_preprocess_wide, params, plan.blocks, plan.shared_bytes);
}

#endif

// Host build of the convert_to kernel: runs of elements are widened, computed and saturated block by block.
#include "../convert_to.cuh"
#include "element_runs.h"

namespace {

template <class Arithmetic> using compute_function = void (*)(Arithmetic *, int64_t, Arithmetic, Arithmetic);

template <class Arithmetic>
CVC_ALWAYS_INLINE void compute(Arithmetic *block, int64_t count, Arithmetic alpha, Arithmetic beta) {
  for (int64_t i = 0; i < count; ++i) {
    block[i] = cvc_convert_value(block[i], alpha, beta);
  }
}

template <class Arithmetic>
void compute_baseline(Arithmetic *block, int64_t count, Arithmetic alpha, Arithmetic beta) {
  compute(block, count, alpha, beta);
}

#if CVC_HOST_VECTOR
template <class Arithmetic>
CVC_TARGET_VECTOR void compute_vector(Arithmetic *block, int64_t count, Arithmetic alpha, Arithmetic beta) {
  compute(block, count, alpha, beta);
}
#endif

template <class Arithmetic> compute_function<Arithmetic> choose_compute() {
#if CVC_HOST_VECTOR
  if (host_has_vector()) {
    return compute_vector<Arithmetic>;
  }
#endif
  return compute_baseline<Arithmetic>;
}

template <class Arithmetic>
void convert_rows(const cvc_convert_to_params &params, Arithmetic alpha, Arithmetic beta, int64_t begin,
                  int64_t end) {
  const load_function<Arithmetic> load = choose_load<Arithmetic>(params.src_kind);
  const store_function<Arithmetic> store =
      params.rounding == cvc_rounding_truncate
          ? choose_store<Arithmetic, cvc_rounding_truncate>(params.dst_kind)
          : choose_store<Arithmetic, cvc_rounding_nearest>(params.dst_kind);
  const compute_function<Arithmetic> compute_block = choose_compute<Arithmetic>();
  if (load == nullptr || store == nullptr) {
    return;
  }
  const cvc_view &src = params.src;
  const cvc_view &dst = params.dst;
  const int64_t src_bytes = cvc_kind_bytes(params.src_kind);
  const int64_t dst_bytes = cvc_kind_bytes(params.dst_kind);
  const bool dense =
      row_is_dense(src, params.channels, src_bytes) && row_is_dense(dst, params.channels, dst_bytes);
  const int64_t runs = dense ? 1 : params.channels;
  const int64_t run_elements = dense ? params.width * params.channels : params.width;
  const int64_t src_step = dense ? src_bytes : src.stride_w;
  const int64_t dst_step = dense ? dst_bytes : dst.stride_w;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t n = item / params.height;
    const int64_t y = item % params.height;
    for (int64_t run = 0; run < runs; ++run) {
      const byte *from = reinterpret_cast<const byte *>(cvc_view_address(src, n, run, y, 0));
      byte *to = reinterpret_cast<byte *>(cvc_view_address(dst, n, run, y, 0));
      for (int64_t done = 0; done < run_elements; done += block_elements) {
        const int64_t left = run_elements - done;
        const int64_t count = left < block_elements ? left : block_elements;
        Arithmetic block[block_elements];
        load(from + done * src_step, src_step, block, count);
        compute_block(block, count, alpha, beta);
        store(block, to + done * dst_step, dst_step, count);
      }
    }
  }
}

} // namespace

extern "C" void cvc_host_convert_to(const void *block, int64_t begin, int64_t end) {
  const cvc_convert_to_params &params = *static_cast<const cvc_convert_to_params *>(block);
  if (cvc_convert_in_double(params.src_kind, params.dst_kind)) {
    convert_rows<double>(params, params.alpha, params.beta, begin, end);
  } else {
    convert_rows<float>(params, params.alpha_float, params.beta_float, begin, end);
  }
}

// Copies and operators of the C++ layer: each queues its work on `stream` and returns at once.
//
// The forms that take `dst` write into it; the others return a new object from the cache of `src`. Shapes,
// dtypes and arithmetic are those of the C function of the same name in cvc.h.
#ifndef CVC_OPERATOR_HPP
#define CVC_OPERATOR_HPP

#include "object.hpp"

namespace cvc {

// ---- copies

inline void copy(cvc_stream_t stream, const Tensor &src, const Tensor &dst) {
  check(cvc_copy(stream, src.get(), dst.get()));
}
// From host memory, which stays valid until the stream has passed. Strides are bytes; null means packed.
inline void upload(cvc_stream_t stream, const void *src, const Tensor &dst,
                   const std::int64_t *src_strides = nullptr) {
  check(cvc_upload(stream, src, src_strides, dst.get()));
}
inline void download(cvc_stream_t stream, const Tensor &src, void *dst,
                     const std::int64_t *dst_strides = nullptr) {
  check(cvc_download(stream, src.get(), dst, dst_strides));
}
inline void fill_zero(cvc_stream_t stream, const Tensor &tensor) {
  check(cvc_fill_zero(stream, tensor.get()));
}

// ---- flip: code 0 turns rows around, a positive one columns, a negative one both

inline void flip(cvc_stream_t stream, const Tensor &src, const Tensor &dst, int code) {
  check(cvc_op_flip(stream, src.get(), dst.get(), code));
}
inline Tensor flip(cvc_stream_t stream, const Tensor &src, int code) {
  cvc_tensor_t dst = nullptr;
  check(cvc_op_flip_new(stream, src.get(), code, &dst));
  return Tensor::adopt(dst);
}
// `codes` is an S32 tensor of one code an image.
inline void flip(cvc_stream_t stream, const ImageBatch &src, const ImageBatch &dst, const Tensor &codes) {
  check(cvc_op_flip_var_shape(stream, src.get(), dst.get(), codes.get()));
}
inline ImageBatch flip(cvc_stream_t stream, const ImageBatch &src, const Tensor &codes) {
  cvc_image_batch_t dst = nullptr;
  check(cvc_op_flip_var_shape_new(stream, src.get(), codes.get(), &dst));
  return ImageBatch::adopt(dst);
}

// ---- pillow_resize: flags are bits of CVC_RESIZE_*

inline void pillow_resize(cvc_stream_t stream, const Tensor &src, const Tensor &dst,
                          Filter filter = Filter::linear, std::uint32_t flags = 0) {
  check(cvc_op_pillow_resize(stream, src.get(), dst.get(), static_cast<cvc_filter_t>(filter), flags));
}
inline Tensor pillow_resize(cvc_stream_t stream, const Tensor &src, Size size, Filter filter = Filter::linear,
                            std::uint32_t flags = 0) {
  cvc_tensor_t dst = nullptr;
  check(cvc_op_pillow_resize_new(stream, src.get(), size.height, size.width,
                                 static_cast<cvc_filter_t>(filter), flags, &dst));
  return Tensor::adopt(dst);
}
inline void pillow_resize(cvc_stream_t stream, const ImageBatch &src, const ImageBatch &dst,
                          Filter filter = Filter::linear, std::uint32_t flags = 0) {
  check(
      cvc_op_pillow_resize_var_shape(stream, src.get(), dst.get(), static_cast<cvc_filter_t>(filter), flags));
}
// `sizes`: one an image of `src`.
inline ImageBatch pillow_resize(cvc_stream_t stream, const ImageBatch &src, const std::vector<Size> &sizes,
                                Filter filter = Filter::linear, std::uint32_t flags = 0) {
  std::vector<std::int32_t> pairs;
  pairs.reserve(sizes.size() * 2);
  for (const Size &size : sizes)
    pairs.insert(pairs.end(), {size.width, size.height});
  cvc_image_batch_t dst = nullptr;
  check(cvc_op_pillow_resize_var_shape_new(stream, src.get(), pairs.data(),
                                           static_cast<std::int32_t>(sizes.size()),
                                           static_cast<cvc_filter_t>(filter), flags, &dst));
  return ImageBatch::adopt(dst);
}

// ---- convert_to: saturate(alpha * src + beta)

inline void convert_to(cvc_stream_t stream, const Tensor &src, const Tensor &dst, double alpha = 1,
                       double beta = 0, Round round = Round::nearest) {
  check(cvc_op_convert_to(stream, src.get(), dst.get(), alpha, beta, static_cast<cvc_round_t>(round)));
}
inline Tensor convert_to(cvc_stream_t stream, const Tensor &src, Dtype dtype, double alpha = 1,
                         double beta = 0, Round round = Round::nearest) {
  cvc_tensor_t dst = nullptr;
  check(cvc_op_convert_to_new(stream, src.get(), static_cast<cvc_dtype_t>(dtype), alpha, beta,
                              static_cast<cvc_round_t>(round), &dst));
  return Tensor::adopt(dst);
}

// ---- normalize: (src - base) * scale * global_scale + global_shift

// One value, or one a channel, up to four; more throw Error with Status::invalid_value.
class ChannelValues {
public:
  ChannelValues(float value) noexcept : values_{value}, count_(1) {}
  ChannelValues(std::initializer_list<float> values) : count_(static_cast<std::int32_t>(values.size())) {
    if (values.size() > std::size(values_))
      throw Error(Status::invalid_value,
                  "there are " + std::to_string(values.size()) + " channel values, expected at most 4");
    std::size_t i = 0;
    for (const float value : values)
      values_[i++] = value;
  }
  const float *data() const noexcept { return values_; }
  std::int32_t size() const noexcept { return count_; }

private:
  float values_[4] = {};
  std::int32_t count_;
};

struct NormalizeParams {
  ChannelValues base_values = 0.0f;
  ChannelValues scale_values = 1.0f;
  float global_scale = 1;
  float global_shift = 0;
  float epsilon = 0;
  bool scale_is_stddev = false;     // the scale becomes 1 / sqrt(scale * scale + epsilon)
  Tensor base;                      // F32, each dimension 1 or that of src; empty: base_values
  Tensor scale;                     // the same for scale_values
  Dtype dst_dtype = Dtype::none;    // of the forms that return a tensor; none: that of src
  Format dst_format = Format::none; // of the form that returns a batch; none: that of src

  cvc_normalize_params_t to_c() const noexcept {
    auto params = detail::sized<cvc_normalize_params_t>();
    params.base = base.get();
    params.scale = scale.get();
    std::memcpy(params.base_values, base_values.data(), sizeof params.base_values);
    params.base_count = base_values.size();
    std::memcpy(params.scale_values, scale_values.data(), sizeof params.scale_values);
    params.scale_count = scale_values.size();
    params.global_scale = global_scale;
    params.global_shift = global_shift;
    params.epsilon = epsilon;
    params.flags = scale_is_stddev ? CVC_NORMALIZE_SCALE_IS_STDDEV : 0u;
    params.dst_dtype = static_cast<cvc_dtype_t>(dst_dtype);
    return params;
  }
};

inline void normalize(cvc_stream_t stream, const Tensor &src, const Tensor &dst,
                      const NormalizeParams &params) {
  const cvc_normalize_params_t c_params = params.to_c();
  check(cvc_op_normalize(stream, src.get(), dst.get(), &c_params));
}
inline Tensor normalize(cvc_stream_t stream, const Tensor &src, const NormalizeParams &params) {
  const cvc_normalize_params_t c_params = params.to_c();
  cvc_tensor_t dst = nullptr;
  check(cvc_op_normalize_new(stream, src.get(), &c_params, &dst));
  return Tensor::adopt(dst);
}
inline void normalize(cvc_stream_t stream, const ImageBatch &src, const ImageBatch &dst,
                      const NormalizeParams &params) {
  const cvc_normalize_params_t c_params = params.to_c();
  check(cvc_op_normalize_var_shape(stream, src.get(), dst.get(), &c_params));
}
inline ImageBatch normalize(cvc_stream_t stream, const ImageBatch &src, const NormalizeParams &params) {
  const cvc_normalize_params_t c_params = params.to_c();
  cvc_image_batch_t dst = nullptr;
  check(cvc_op_normalize_var_shape_new(stream, src.get(), &c_params,
                                       static_cast<cvc_format_t>(params.dst_format), &dst));
  return ImageBatch::adopt(dst);
}

// ---- reformat: NHWC to NCHW and back, HWC to CHW and back, or a copy to other strides

inline void reformat(cvc_stream_t stream, const Tensor &src, const Tensor &dst) {
  check(cvc_op_reformat(stream, src.get(), dst.get()));
}
inline Tensor reformat(cvc_stream_t stream, const Tensor &src, Layout layout) {
  cvc_tensor_t dst = nullptr;
  check(cvc_op_reformat_new(stream, src.get(), layout.c_str(), &dst));
  return Tensor::adopt(dst);
}

} // namespace cvc

#endif

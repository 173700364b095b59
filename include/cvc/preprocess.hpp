// Preprocess of the C++ layer: what comes before a network, in one call into one tensor.
#ifndef CVC_PREPROCESS_HPP
#define CVC_PREPROCESS_HPP

#include "operator.hpp"

#include <optional>
#include <vector>

namespace cvc {

// A rectangle of an image in pixels: x, y, width, height.
using Crop = cvc_crop_t;

enum class ColorMatrix : cvc_color_matrix_t {
  bt601 = CVC_COLOR_MATRIX_BT601,
  bt709 = CVC_COLOR_MATRIX_BT709,
};

// What a source tensor has: pixels, or NV12 frames of either range. Images have formats that tell.
enum class Nv12 : std::uint32_t {
  none = 0,
  limited = CVC_PREPROCESS_NV12,
  full = CVC_PREPROCESS_NV12_FULL_RANGE,
};

// The steps in their order; each is left out as it stands here, but for the resize, which takes place where
// the crop has not the size of the result.
struct PreprocessParams {
  Nv12 nv12 = Nv12::none;
  ColorMatrix color_matrix = ColorMatrix::bt601; // of NV12
  std::vector<Crop> crops{};                     // none, one for all, or one an image
  Filter filter = Filter::linear;
  std::uint32_t resize_flags = 0;    // bits of CVC_RESIZE_*
  std::optional<int> flip_code{};    // as in flip
  bool swap_channels = false;        // RGB to BGR and back
  Dtype convert_dtype = Dtype::none; // none: no conversion
  double alpha = 1;                  // of the conversion
  double beta = 0;
  Round round = Round::nearest;
  std::optional<NormalizeParams> normalize{}; // its dst_dtype is that of the forms that return a tensor
};

namespace detail {

// The parameters as C takes them, which point into this object and into those that it was made of.
class PreprocessCall {
public:
  explicit PreprocessCall(const PreprocessParams &params) noexcept {
    params_.flags = static_cast<std::uint32_t>(params.nv12);
    if (params.flip_code) {
      params_.flags |= CVC_PREPROCESS_FLIP;
      params_.flip_code = *params.flip_code;
    }
    if (params.swap_channels)
      params_.flags |= CVC_PREPROCESS_SWAP_CHANNELS;
    params_.resize_flags = params.resize_flags;
    params_.filter = static_cast<cvc_filter_t>(params.filter);
    params_.crops = params.crops.data();
    params_.crop_count = static_cast<std::int32_t>(params.crops.size());
    params_.convert_dtype = static_cast<cvc_dtype_t>(params.convert_dtype);
    params_.alpha = params.alpha;
    params_.beta = params.beta;
    params_.round = static_cast<cvc_round_t>(params.round);
    params_.color_matrix = static_cast<cvc_color_matrix_t>(params.color_matrix);
    if (params.normalize) {
      normalize_ = params.normalize->to_c();
      params_.normalize = &normalize_;
    }
  }
  PreprocessCall(const PreprocessCall &) = delete;
  PreprocessCall &operator=(const PreprocessCall &) = delete;
  const cvc_preprocess_params_t *get() const noexcept { return &params_; }

private:
  cvc_normalize_params_t normalize_{};
  cvc_preprocess_params_t params_ = sized<cvc_preprocess_params_t>();
};

} // namespace detail

inline void preprocess(cvc_stream_t stream, const Tensor &src, const Tensor &dst,
                       const PreprocessParams &params) {
  check(cvc_op_preprocess(stream, src.get(), dst.get(), detail::PreprocessCall(params).get()));
}
inline Tensor preprocess(cvc_stream_t stream, const Tensor &src, Size size, Layout layout,
                         const PreprocessParams &params) {
  cvc_tensor_t dst = nullptr;
  check(cvc_op_preprocess_new(stream, src.get(), detail::PreprocessCall(params).get(), size.height,
                              size.width, layout.c_str(), &dst));
  return Tensor::adopt(dst);
}
// Images of any sizes become one tensor.
inline void preprocess(cvc_stream_t stream, const ImageBatch &src, const Tensor &dst,
                       const PreprocessParams &params) {
  check(cvc_op_preprocess_var_shape(stream, src.get(), dst.get(), detail::PreprocessCall(params).get()));
}
inline Tensor preprocess(cvc_stream_t stream, const ImageBatch &src, Size size, Layout layout,
                         const PreprocessParams &params) {
  cvc_tensor_t dst = nullptr;
  check(cvc_op_preprocess_var_shape_new(stream, src.get(), detail::PreprocessCall(params).get(), size.height,
                                        size.width, layout.c_str(), &dst));
  return Tensor::adopt(dst);
}

} // namespace cvc

#endif

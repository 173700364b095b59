// Enumerations, errors, shapes and descriptions of the C++ layer.
#ifndef CVC_TYPES_HPP
#define CVC_TYPES_HPP

#include "../cvc.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cvc {

enum class Status : cvc_status_t {
  ok = CVC_STATUS_OK,
  invalid_argument = CVC_STATUS_INVALID_ARGUMENT,
  null_pointer = CVC_STATUS_NULL_POINTER,
  invalid_handle = CVC_STATUS_INVALID_HANDLE,
  stale_handle = CVC_STATUS_STALE_HANDLE,
  wrong_kind = CVC_STATUS_WRONG_KIND,
  invalid_rank = CVC_STATUS_INVALID_RANK,
  invalid_shape = CVC_STATUS_INVALID_SHAPE,
  overflow = CVC_STATUS_OVERFLOW,
  invalid_strides = CVC_STATUS_INVALID_STRIDES,
  invalid_enum = CVC_STATUS_INVALID_ENUM,
  invalid_struct_size = CVC_STATUS_INVALID_STRUCT_SIZE,
  invalid_layout = CVC_STATUS_INVALID_LAYOUT,
  invalid_alignment = CVC_STATUS_INVALID_ALIGNMENT,
  invalid_value = CVC_STATUS_INVALID_VALUE,
  invalid_limit = CVC_STATUS_INVALID_LIMIT,
  device_mismatch = CVC_STATUS_DEVICE_MISMATCH,
  shape_mismatch = CVC_STATUS_SHAPE_MISMATCH,
  dtype_mismatch = CVC_STATUS_DTYPE_MISMATCH,
  capacity_exceeded = CVC_STATUS_CAPACITY_EXCEEDED,
  capacity_underflow = CVC_STATUS_CAPACITY_UNDERFLOW,
  invalid_index = CVC_STATUS_INVALID_INDEX,
  invalid_device = CVC_STATUS_INVALID_DEVICE,
  invalid_stream = CVC_STATUS_INVALID_STREAM,
  invalid_event = CVC_STATUS_INVALID_EVENT,
  not_supported = CVC_STATUS_NOT_SUPPORTED,
  not_ready = CVC_STATUS_NOT_READY,
  out_of_memory = CVC_STATUS_OUT_OF_MEMORY,
  limit_exceeded = CVC_STATUS_LIMIT_EXCEEDED,
  no_driver = CVC_STATUS_NO_DRIVER,
  driver_too_old = CVC_STATUS_DRIVER_TOO_OLD,
  no_device = CVC_STATUS_NO_DEVICE,
  no_kernel_image = CVC_STATUS_NO_KERNEL_IMAGE,
  device_error = CVC_STATUS_DEVICE_ERROR,
  context_lost = CVC_STATUS_CONTEXT_LOST,
  capturing = CVC_STATUS_CAPTURING,
  forked = CVC_STATUS_FORKED,
  internal = CVC_STATUS_INTERNAL,
};

// Element types of one lane; vector(Dtype::u8, 3) is the three-lane form.
enum class Dtype : cvc_dtype_t {
  none = CVC_DTYPE_NONE,
  u8 = CVC_DTYPE_U8,
  s8 = CVC_DTYPE_S8,
  u16 = CVC_DTYPE_U16,
  s16 = CVC_DTYPE_S16,
  u32 = CVC_DTYPE_U32,
  s32 = CVC_DTYPE_S32,
  u64 = CVC_DTYPE_U64,
  s64 = CVC_DTYPE_S64,
  f16 = CVC_DTYPE_F16,
  f32 = CVC_DTYPE_F32,
  f64 = CVC_DTYPE_F64,
  c64 = CVC_DTYPE_C64,
  c128 = CVC_DTYPE_C128,
};

// Image formats; a name that would begin with 2 ends with x2.
enum class Format : cvc_format_t {
  none = CVC_FORMAT_NONE,
  u8 = CVC_FORMAT_U8,
  s8 = CVC_FORMAT_S8,
  u16 = CVC_FORMAT_U16,
  s16 = CVC_FORMAT_S16,
  u32 = CVC_FORMAT_U32,
  s32 = CVC_FORMAT_S32,
  f16 = CVC_FORMAT_F16,
  f32 = CVC_FORMAT_F32,
  f64 = CVC_FORMAT_F64,
  s16x2 = CVC_FORMAT_2S16,
  f16x2 = CVC_FORMAT_2F16,
  f32x2 = CVC_FORMAT_2F32,
  c64 = CVC_FORMAT_C64,
  c64x2 = CVC_FORMAT_2C64,
  c128 = CVC_FORMAT_C128,
  c128x2 = CVC_FORMAT_2C128,
  y8 = CVC_FORMAT_Y8,
  y8_er = CVC_FORMAT_Y8_ER,
  y16 = CVC_FORMAT_Y16,
  y16_er = CVC_FORMAT_Y16_ER,
  nv12 = CVC_FORMAT_NV12,
  nv12_er = CVC_FORMAT_NV12_ER,
  nv21 = CVC_FORMAT_NV21,
  nv21_er = CVC_FORMAT_NV21_ER,
  nv24 = CVC_FORMAT_NV24,
  nv24_er = CVC_FORMAT_NV24_ER,
  uyvy = CVC_FORMAT_UYVY,
  uyvy_er = CVC_FORMAT_UYVY_ER,
  vyuy = CVC_FORMAT_VYUY,
  vyuy_er = CVC_FORMAT_VYUY_ER,
  yuyv = CVC_FORMAT_YUYV,
  yuyv_er = CVC_FORMAT_YUYV_ER,
  yuv8 = CVC_FORMAT_YUV8,
  yuv8_er = CVC_FORMAT_YUV8_ER,
  yuv8p = CVC_FORMAT_YUV8P,
  yuv8p_er = CVC_FORMAT_YUV8P_ER,
  rgb8 = CVC_FORMAT_RGB8,
  bgr8 = CVC_FORMAT_BGR8,
  rgba8 = CVC_FORMAT_RGBA8,
  bgra8 = CVC_FORMAT_BGRA8,
  rgb8p = CVC_FORMAT_RGB8P,
  bgr8p = CVC_FORMAT_BGR8P,
  rgba8p = CVC_FORMAT_RGBA8P,
  bgra8p = CVC_FORMAT_BGRA8P,
  rgbf16 = CVC_FORMAT_RGBF16,
  bgrf16 = CVC_FORMAT_BGRF16,
  rgbaf16 = CVC_FORMAT_RGBAF16,
  bgraf16 = CVC_FORMAT_BGRAF16,
  rgbf16p = CVC_FORMAT_RGBF16P,
  bgrf16p = CVC_FORMAT_BGRF16P,
  rgbaf16p = CVC_FORMAT_RGBAF16P,
  bgraf16p = CVC_FORMAT_BGRAF16P,
  rgbf32 = CVC_FORMAT_RGBF32,
  bgrf32 = CVC_FORMAT_BGRF32,
  rgbaf32 = CVC_FORMAT_RGBAF32,
  bgraf32 = CVC_FORMAT_BGRAF32,
  rgbf32p = CVC_FORMAT_RGBF32P,
  bgrf32p = CVC_FORMAT_BGRF32P,
  rgbaf32p = CVC_FORMAT_RGBAF32P,
  bgraf32p = CVC_FORMAT_BGRAF32P,
  hsv8 = CVC_FORMAT_HSV8,
  cmyk8 = CVC_FORMAT_CMYK8,
  ycck8 = CVC_FORMAT_YCCK8,
};

enum class Filter : cvc_filter_t {
  nearest = CVC_FILTER_NEAREST,
  linear = CVC_FILTER_LINEAR,
  cubic = CVC_FILTER_CUBIC,
  area = CVC_FILTER_AREA,
  lanczos = CVC_FILTER_LANCZOS,
  hamming = CVC_FILTER_HAMMING,
  box = CVC_FILTER_BOX,
};
enum class Round : cvc_round_t {
  nearest = CVC_ROUND_NEAREST,
  truncate = CVC_ROUND_TRUNCATE,
};
enum class Scope : cvc_scope_t {
  global = CVC_SCOPE_GLOBAL,
  local = CVC_SCOPE_LOCAL,
};
enum class Backend : cvc_backend_t {
  host = CVC_BACKEND_HOST,
  cuda = CVC_BACKEND_CUDA,
};
enum class AccessMode : cvc_access_t {
  read = CVC_ACCESS_READ,
  write = CVC_ACCESS_WRITE,
  read_write = CVC_ACCESS_READ_WRITE,
};

// The device ordinal that means the calling thread's current device.
inline constexpr int current_device = CVC_DEVICE_CURRENT;

// No stream: the caller names no consumer or producer.
inline cvc_stream_t no_stream() noexcept { return reinterpret_cast<cvc_stream_t>(~std::uintptr_t{0}); }
// CUDA's two default streams; a null stream is the legacy one as well.
inline cvc_stream_t legacy_stream() noexcept { return reinterpret_cast<cvc_stream_t>(std::uintptr_t{1}); }
inline cvc_stream_t per_thread_stream() noexcept { return reinterpret_cast<cvc_stream_t>(std::uintptr_t{2}); }

constexpr Dtype vector(Dtype kind, unsigned lanes) noexcept {
  return static_cast<Dtype>((static_cast<cvc_dtype_t>(kind) & 0xffu) | (lanes - 1u) << 8);
}

// Bytes of one element with all its lanes; 0 for a value that is no dtype.
constexpr std::size_t size_of(Dtype dtype) noexcept {
  constexpr std::size_t bytes[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 8, 16};
  const auto code = static_cast<cvc_dtype_t>(dtype);
  return (code & 0xffu) < std::size(bytes) ? bytes[code & 0xffu] * ((code >> 8) + 1) : 0;
}

// What every failing call throws. what() is the status' name and the library's message.
class Error : public std::runtime_error {
public:
  Error(Status status, const std::string &text)
      : std::runtime_error(cvc_status_string(static_cast<cvc_status_t>(status)) + (": " + text)),
        status_(status) {}
  Status status() const noexcept { return status_; }

private:
  Status status_;
};
// The device has no memory left, or the hard limit does not allow more.
class OutOfMemory : public Error {
  using Error::Error;
};
// A wait's timeout passed.
class NotReady : public Error {
  using Error::Error;
};

// Throws the Error of this thread's last failed call unless `status` is CVC_STATUS_OK.
// For calls of cvc.h itself.
inline void check(cvc_status_t status) {
  if (status == CVC_STATUS_OK)
    return;
  std::string text;
  std::size_t needed = 0;
  if (cvc_last_error_message(nullptr, 0, &needed) == CVC_STATUS_OK && needed > 1) {
    text.resize(needed);
    cvc_last_error_message(text.data(), text.size(), &needed);
    text.resize(std::strlen(text.c_str()));
  }
  if (status == CVC_STATUS_OUT_OF_MEMORY || status == CVC_STATUS_LIMIT_EXCEEDED)
    throw OutOfMemory(static_cast<Status>(status), text);
  if (status == CVC_STATUS_NOT_READY)
    throw NotReady(Status::not_ready, text);
  throw Error(static_cast<Status>(status), text);
}

namespace detail {

inline bool ready(cvc_status_t status) {
  if (status == CVC_STATUS_NOT_READY)
    return false;
  check(status);
  return true;
}

// -1 would mean "no timeout", so that a negative duration is none at all.
inline std::int64_t count(std::chrono::nanoseconds timeout) noexcept {
  return timeout.count() < 0 ? 0 : timeout.count();
}

// A struct of cvc.h with its struct_size filled in.
template <class Struct> Struct sized() noexcept {
  Struct value{};
  value.struct_size = sizeof(Struct);
  return value;
}

} // namespace detail

// Up to 15 dimensions, without the heap. More throw Error with Status::invalid_rank.
class Shape {
public:
  Shape() noexcept = default;
  Shape(std::initializer_list<std::int64_t> dimensions) : Shape(dimensions.begin(), dimensions.size()) {}
  template <std::size_t N>
  Shape(const std::array<std::int64_t, N> &dimensions) : Shape(dimensions.data(), N) {
    static_assert(N <= CVC_MAX_RANK, "a shape has at most 15 dimensions");
  }
  Shape(const std::int64_t *dimensions, std::size_t rank) : rank_(rank) {
    if (rank > CVC_MAX_RANK)
      throw Error(Status::invalid_rank,
                  "shape has " + std::to_string(rank) + " dimensions, expected at most 15");
    for (std::size_t i = 0; i < rank; ++i)
      dimensions_[i] = dimensions[i];
  }

  std::size_t size() const noexcept { return rank_; }
  const std::int64_t *data() const noexcept { return dimensions_.data(); }
  const std::int64_t *begin() const noexcept { return data(); }
  const std::int64_t *end() const noexcept { return data() + rank_; }
  std::int64_t &operator[](std::size_t i) noexcept { return dimensions_[i]; }
  std::int64_t operator[](std::size_t i) const noexcept { return dimensions_[i]; }
  friend bool operator==(const Shape &a, const Shape &b) noexcept {
    return a.rank_ == b.rank_ && a.dimensions_ == b.dimensions_;
  }
  friend bool operator!=(const Shape &a, const Shape &b) noexcept { return !(a == b); }

private:
  std::array<std::int64_t, CVC_MAX_RANK> dimensions_{}; // those past the rank stay 0
  std::size_t rank_ = 0;
};

// One label a dimension ("NHWC"), at most 15, or empty. A longer one throws Error with
// Status::invalid_layout.
class Layout {
public:
  Layout() noexcept = default;
  Layout(const char *labels) : Layout(std::string_view(labels)) {}
  Layout(std::string_view labels) {
    if (labels.size() >= sizeof text_)
      throw Error(Status::invalid_layout,
                  "layout is \"" + std::string(labels) + "\", expected at most 15 labels");
    labels.copy(text_, labels.size());
  }
  const char *c_str() const noexcept { return text_; }
  std::string_view view() const noexcept { return text_; }
  friend bool operator==(const Layout &a, const Layout &b) noexcept { return a.view() == b.view(); }
  friend bool operator!=(const Layout &a, const Layout &b) noexcept { return !(a == b); }

private:
  char text_[sizeof cvc_tensor_desc_t::layout] = {};
};

// Width and height in pixels.
struct Size {
  std::int32_t width = 0;
  std::int32_t height = 0;
};

// What a tensor is to be. Alignments are bytes and powers of two; 0 is the default,
// and a row_align of 1 packs the rows.
struct TensorDesc {
  Shape shape{};
  Dtype dtype = Dtype::u8;
  Layout layout{};
  int device = current_device;
  std::int64_t row_align = 0;
  std::int64_t base_align = 0;

  TensorDesc() = default;
  TensorDesc(const Shape &dimensions, Dtype type, Layout labels = {}, int ordinal = current_device,
             std::int64_t row_alignment = 0, std::int64_t base_alignment = 0)
      : shape(dimensions), dtype(type), layout(labels), device(ordinal), row_align(row_alignment),
        base_align(base_alignment) {}
  // Of a batch of `count` images.
  static TensorDesc of_images(int count, Size size, Format format, std::int64_t row_align = 0,
                              int device = current_device) {
    auto desc = detail::sized<cvc_tensor_desc_t>();
    check(cvc_tensor_desc_from_image(device, count, size.width, size.height,
                                     static_cast<cvc_format_t>(format), row_align, &desc));
    return {Shape(desc.shape, static_cast<std::size_t>(desc.rank)),
            static_cast<Dtype>(desc.dtype),
            desc.layout,
            desc.device,
            desc.row_align,
            desc.base_align};
  }

  cvc_tensor_desc_t to_c() const noexcept {
    auto desc = detail::sized<cvc_tensor_desc_t>();
    desc.device = device;
    desc.rank = static_cast<std::int32_t>(shape.size());
    std::memcpy(desc.shape, shape.data(), sizeof desc.shape);
    desc.dtype = static_cast<cvc_dtype_t>(dtype);
    std::memcpy(desc.layout, layout.c_str(), sizeof desc.layout);
    desc.row_align = row_align;
    desc.base_align = base_align;
    return desc;
  }
  // The bytes that a tensor of this description is charged with.
  std::uint64_t nbytes() const {
    const cvc_tensor_desc_t desc = to_c();
    std::uint64_t bytes = 0;
    check(cvc_tensor_desc_nbytes(&desc, &bytes));
    return bytes;
  }
};

// Foreign memory for Tensor::wrap: C-contiguous at `data`; set `strides` (bytes) afterwards where it is not.
inline cvc_tensor_data_t packed(void *data, const TensorDesc &desc) noexcept {
  auto result = detail::sized<cvc_tensor_data_t>();
  result.device = desc.device;
  result.rank = static_cast<std::int32_t>(desc.shape.size());
  result.dtype = static_cast<cvc_dtype_t>(desc.dtype);
  std::memcpy(result.layout, desc.layout.c_str(), sizeof result.layout);
  result.data = data;
  auto stride =
      static_cast<std::uint64_t>(size_of(desc.dtype)); // unsigned: an overflow is the library's to report
  for (std::size_t i = desc.shape.size(); i-- > 0;) {
    result.shape[i] = desc.shape[i];
    result.strides[i] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(desc.shape[i]);
  }
  return result;
}

} // namespace cvc

#endif

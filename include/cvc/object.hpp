// Cache, tensors, images, batches and foreign accesses of the C++ layer: references counted by the library.
#ifndef CVC_OBJECT_HPP
#define CVC_OBJECT_HPP

#include "stream.hpp"

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace cvc {

namespace detail {

// One counted reference to an object of the library.
template <class Derived, class Handle, cvc_status_t (*Retain)(Handle), cvc_status_t (*Release)(Handle)>
class Reference {
public:
  Reference() noexcept = default;
  Reference(const Reference &other) : handle_(other.handle_) {
    if (handle_)
      check(Retain(handle_));
  }
  Reference(Reference &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Reference &operator=(Reference other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Reference() {
    if (handle_)
      Release(handle_);
  }

  // Takes over a reference that the caller owns.
  static Derived adopt(Handle handle) noexcept {
    Derived object;
    object.handle_ = handle;
    return object;
  }
  // A reference of its own to an object that stays the caller's.
  static Derived share(Handle handle) {
    check(Retain(handle));
    return adopt(handle);
  }
  // Gives the reference to the caller, who releases it; *this is empty afterwards.
  Handle detach() noexcept { return std::exchange(handle_, nullptr); }
  Handle get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  friend bool operator==(const Reference &a, const Reference &b) noexcept { return a.handle_ == b.handle_; }
  friend bool operator!=(const Reference &a, const Reference &b) noexcept { return a.handle_ != b.handle_; }

protected:
  Handle handle_ = nullptr;
};

// The handles of a list of objects side by side, without the heap for up to 32 of them.
template <class Handle> class Handles {
public:
  template <class Object> Handles(const Object *objects, std::size_t size) : size_(size) {
    if (size > near_.size())
      far_.resize(size);
    for (std::size_t i = 0; i < size; ++i)
      (far_.empty() ? near_.data() : far_.data())[i] = objects[i].get();
  }
  const Handle *data() const noexcept { return far_.empty() ? near_.data() : far_.data(); }
  std::int32_t size() const noexcept { return static_cast<std::int32_t>(size_); }

private:
  std::array<Handle, 32> near_{};
  std::vector<Handle> far_;
  std::size_t size_;
};

struct Releaser {
  virtual ~Releaser() = default;
  virtual void run() noexcept = 0;
};
template <class Callback> struct ReleaserOf final : Releaser {
  explicit ReleaserOf(Callback function) : callback(std::move(function)) {}
  void run() noexcept override { callback(); }
  Callback callback;
};
extern "C" inline void cvc_hpp_run_release(void *context) {
  const std::unique_ptr<Releaser> releaser(static_cast<Releaser *>(context));
  releaser->run();
}

// Calls `wrap(function, context)`; the callback is the library's from then on, unless the call throws.
template <class Release, class Wrap> void with_release(Release &&release, Wrap &&wrap) {
  using Callback = std::decay_t<Release>;
  if constexpr (std::is_same_v<Callback, std::nullptr_t>) {
    wrap(cvc_release_fn{nullptr}, nullptr);
  } else {
    static_assert(std::is_nothrow_invocable_v<Callback &>,
                  "the release callback takes no argument and is noexcept");
    std::unique_ptr<Releaser> releaser =
        std::make_unique<ReleaserOf<Callback>>(std::forward<Release>(release));
    wrap(&cvc_hpp_run_release, releaser.get());
    releaser.release();
  }
}

} // namespace detail

// What keeps released objects for reuse. `device` is an ordinal or current_device.
class Cache : public detail::Reference<Cache, cvc_cache_t, &cvc_cache_retain, &cvc_cache_release> {
public:
  // The process's own cache, shared by all languages in it.
  static Cache process() {
    cvc_cache_t cache = nullptr;
    check(cvc_cache_default(&cache));
    return adopt(cache);
  }
  // Another index over the same memory pool. limit: bytes retained on every device, -1: half of the device.
  static Cache create(std::int64_t limit = -1) {
    auto options = detail::sized<cvc_cache_options_t>();
    options.limit = limit;
    cvc_cache_t cache = nullptr;
    check(cvc_cache_create(&options, &cache));
    return adopt(cache);
  }

  // Drops what is idle, after waiting for the pending work. Scope::local: of this thread's objects alone.
  void clear(int device = current_device, Scope scope = Scope::global) const {
    check(cvc_cache_clear(handle_, device, static_cast<cvc_scope_t>(scope)));
  }
  // Indexed objects, in use or not.
  std::uint64_t count(int device = current_device, Scope scope = Scope::global) const {
    std::uint64_t value = 0;
    check(cvc_cache_count(handle_, device, static_cast<cvc_scope_t>(scope), &value));
    return value;
  }
  std::uint64_t bytes(int device = current_device) const {
    std::uint64_t value = 0;
    check(cvc_cache_bytes(handle_, device, &value));
    return value;
  }
  std::uint64_t limit(int device = current_device) const {
    std::uint64_t value = 0;
    check(cvc_cache_get_limit(handle_, device, &value));
    return value;
  }
  void set_limit(std::int64_t bytes, int device = current_device) const {
    check(cvc_cache_set_limit(handle_, device, bytes));
  }
  cvc_cache_stats_t stats(int device = current_device) const {
    auto value = detail::sized<cvc_cache_stats_t>();
    check(cvc_cache_stats(handle_, device, &value));
    return value;
  }
  void reset_peak(int device = current_device) const { check(cvc_cache_reset_peak(handle_, device)); }
  // Gives free pool memory back to the driver, except keep_bytes of it.
  void trim(std::uint64_t keep_bytes = 0, int device = current_device) const {
    check(cvc_cache_trim(handle_, device, keep_bytes));
  }
  // Waits for the work of the pending entries and makes them idle.
  void synchronize(int device = current_device) const { check(cvc_cache_synchronize(handle_, device, -1)); }
  bool synchronize_for(std::chrono::nanoseconds timeout, int device = current_device) const {
    return detail::ready(cvc_cache_synchronize(handle_, device, detail::count(timeout)));
  }
  // Hands this thread's entries over now, as the thread's end would.
  void thread_detach() const { check(cvc_cache_thread_detach(handle_)); }
};

// ---- tensors and images

class Image;

// A strided array in device memory. Strides are bytes.
class Tensor : public detail::Reference<Tensor, cvc_tensor_t, &cvc_tensor_retain, &cvc_tensor_release> {
public:
  Tensor() noexcept = default;
  // From the cache; its contents are whatever the memory held. `stream` is where it will first be used:
  // memory whose old work is ordered before that may be given at once. Without a stream only memory that is
  // done with is given.
  explicit Tensor(const TensorDesc &desc, cvc_stream_t stream = no_stream(),
                  const Cache &cache = Cache::process()) {
    const cvc_tensor_desc_t c_desc = desc.to_c();
    check(cvc_tensor_create(cache.get(), &c_desc, stream, &handle_));
  }
  // Foreign memory, charged to nobody. `release` is called once, on some thread, when nobody observes the
  // tensor any more and its work is done; not if this throws. `producer`: the stream whose queued work writes
  // the memory.
  template <class Release = std::nullptr_t>
  static Tensor wrap(const cvc_tensor_data_t &data, Release &&release = nullptr,
                     cvc_stream_t producer = no_stream(), const Cache &cache = Cache::process()) {
    Tensor tensor;
    detail::with_release(std::forward<Release>(release), [&](cvc_release_fn function, void *context) {
      check(cvc_tensor_wrap(cache.get(), &data, function, context, producer, &tensor.handle_));
    });
    return tensor;
  }
  // A view of an image (NHWC or NCHW, N = 1), which it keeps alive.
  static inline Tensor of_image(const Image &image);
  // A view (HWC) of one plane of an image.
  static inline Tensor of_plane(const Image &image, int plane);
  // Takes over a DLManagedTensor (or DLManagedTensorVersioned) unless it throws.
  // `stream`: where its data is ready.
  static Tensor from_dlpack(void *managed, bool versioned, Layout layout = {},
                            cvc_stream_t stream = no_stream(), const Cache &cache = Cache::process()) {
    cvc_tensor_t tensor = nullptr;
    check(cvc_tensor_from_dlpack(cache.get(), managed, versioned, layout.c_str(), stream, &tensor));
    return adopt(tensor);
  }
  // A managed tensor whose deleter the consumer calls; `consumer` is made to wait for this tensor's work.
  void *to_dlpack(cvc_stream_t consumer = no_stream(), bool versioned = true) const {
    void *managed = nullptr;
    check(cvc_tensor_to_dlpack(handle_, consumer, versioned, &managed));
    return managed;
  }
  // A view of the same memory, which it keeps alive.
  Tensor reshape(const Shape &shape, Layout layout = {}) const {
    const cvc_tensor_desc_t desc = TensorDesc(shape, Dtype::none, layout).to_c();
    cvc_tensor_t view = nullptr;
    check(cvc_tensor_reshape(handle_, &desc, &view));
    return adopt(view);
  }

  // Address, device, shape, strides. Using the address for work of your own: see Access.
  cvc_tensor_data_t data() const {
    auto value = detail::sized<cvc_tensor_data_t>();
    check(cvc_tensor_get_data(handle_, &value));
    return value;
  }
  Shape shape() const {
    const cvc_tensor_data_t value = data();
    return Shape(value.shape, static_cast<std::size_t>(value.rank));
  }
  Dtype dtype() const { return static_cast<Dtype>(data().dtype); }
  Layout layout() const { return data().layout; }
  int device() const { return data().device; }
  // Names the memory: a reused one keeps it.
  std::uint64_t id() const {
    std::uint64_t value = 0;
    check(cvc_tensor_get_id(handle_, &value));
    return value;
  }
  // What the cache charges; 0 for wraps and views.
  std::uint64_t nbytes() const {
    std::uint64_t value = 0;
    check(cvc_tensor_nbytes(handle_, &value));
    return value;
  }
  // The stream of the last access, or no_stream().
  cvc_stream_t last_stream() const {
    cvc_stream_t stream = nullptr;
    check(cvc_tensor_last_stream(handle_, &stream));
    return stream;
  }
  // The host waits for the work on this tensor.
  void synchronize() const { check(cvc_tensor_synchronize(handle_, -1)); }
  bool synchronize_for(std::chrono::nanoseconds timeout) const {
    return detail::ready(cvc_tensor_synchronize(handle_, detail::count(timeout)));
  }
};

// One to six planes of pixels in device memory.
class Image : public detail::Reference<Image, cvc_image_t, &cvc_image_retain, &cvc_image_release> {
public:
  Image() noexcept = default;
  // From the cache; stream and contents as for Tensor.
  Image(Size size, Format format, cvc_stream_t stream = no_stream(), const Cache &cache = Cache::process(),
        int device = current_device, std::int64_t row_align = 0) {
    auto desc = detail::sized<cvc_image_desc_t>();
    desc.device = device;
    desc.format = static_cast<cvc_format_t>(format);
    desc.width = size.width;
    desc.height = size.height;
    desc.row_align = row_align;
    check(cvc_image_create(cache.get(), &desc, stream, &handle_));
  }
  // Foreign memory; see Tensor::wrap.
  template <class Release = std::nullptr_t>
  static Image wrap(const cvc_image_data_t &data, Release &&release = nullptr,
                    cvc_stream_t producer = no_stream(), const Cache &cache = Cache::process()) {
    Image image;
    detail::with_release(std::forward<Release>(release), [&](cvc_release_fn function, void *context) {
      check(cvc_image_wrap(cache.get(), &data, function, context, producer, &image.handle_));
    });
    return image;
  }

  cvc_image_data_t data() const {
    auto value = detail::sized<cvc_image_data_t>();
    check(cvc_image_get_data(handle_, &value));
    return value;
  }
  Size size() const {
    const cvc_image_data_t value = data();
    return {value.width, value.height};
  }
  Format format() const { return static_cast<Format>(data().format); }
  int device() const { return data().device; }
  std::uint64_t id() const {
    std::uint64_t value = 0;
    check(cvc_image_get_id(handle_, &value));
    return value;
  }
  std::uint64_t nbytes() const {
    std::uint64_t value = 0;
    check(cvc_image_nbytes(handle_, &value));
    return value;
  }
  void synchronize() const { check(cvc_image_synchronize(handle_, -1)); }
  bool synchronize_for(std::chrono::nanoseconds timeout) const {
    return detail::ready(cvc_image_synchronize(handle_, detail::count(timeout)));
  }
};

inline Tensor Tensor::of_image(const Image &image) {
  cvc_tensor_t tensor = nullptr;
  check(cvc_tensor_from_image(image.get(), &tensor));
  return adopt(tensor);
}
inline Tensor Tensor::of_plane(const Image &image, int plane) {
  cvc_tensor_t tensor = nullptr;
  check(cvc_tensor_from_image_plane(image.get(), plane, &tensor));
  return adopt(tensor);
}

// Announces work of your own on an object: construct it before the launch; its end, or end(), after the
// launch, lets later work of others wait for yours.
template <class Object> class Access {
  static_assert(std::is_same_v<Object, Tensor> || std::is_same_v<Object, Image>, "of a Tensor or an Image");

public:
  Access(Object object, cvc_stream_t stream, AccessMode mode)
      : object_(std::move(object)), stream_(stream), mode_(static_cast<cvc_access_t>(mode)) {
    if constexpr (std::is_same_v<Object, Tensor>)
      check(cvc_tensor_begin_access(object_.get(), stream_, mode_));
    else
      check(cvc_image_begin_access(object_.get(), stream_, mode_));
  }
  Access(Access &&other) noexcept = default;
  Access &operator=(Access &&) = delete;
  ~Access() { finish(); }
  void end() { check(finish()); }

private:
  cvc_status_t finish() noexcept {
    const Object object = std::move(object_);
    if (!object)
      return CVC_STATUS_OK;
    if constexpr (std::is_same_v<Object, Tensor>)
      return cvc_tensor_end_access(object.get(), stream_, mode_);
    else
      return cvc_image_end_access(object.get(), stream_, mode_);
  }
  Object object_;
  cvc_stream_t stream_;
  cvc_access_t mode_;
};

// ---- batches

// Images of varying size, up to a fixed capacity, as one argument of the var-shape operators.
class ImageBatch : public detail::Reference<ImageBatch, cvc_image_batch_t, &cvc_image_batch_retain,
                                            &cvc_image_batch_release> {
public:
  ImageBatch() noexcept = default;
  explicit ImageBatch(int capacity, cvc_stream_t stream = no_stream(), const Cache &cache = Cache::process(),
                      int device = current_device) {
    check(cvc_image_batch_create(cache.get(), device, capacity, stream, &handle_));
  }
  void push(const Image &image) const {
    const cvc_image_t handle = image.get();
    check(cvc_image_batch_push(handle_, &handle, 1));
  }
  // All of them or, if it throws, none.
  void push(const std::vector<Image> &images) const {
    const detail::Handles<cvc_image_t> handles(images.data(), images.size());
    check(cvc_image_batch_push(handle_, handles.data(), handles.size()));
  }
  void pop(int count = 1) const { check(cvc_image_batch_pop(handle_, count)); }
  void clear() const { check(cvc_image_batch_clear(handle_)); }
  Image operator[](int index) const {
    cvc_image_t image = nullptr;
    check(cvc_image_batch_get(handle_, index, &image));
    return Image::adopt(image);
  }
  int size() const { return data().count; }
  int capacity() const { return data().capacity; }
  // With a stream, the records are uploaded on it and `records` is their device address.
  cvc_image_batch_data_t data(cvc_stream_t stream = no_stream()) const {
    auto value = detail::sized<cvc_image_batch_data_t>();
    check(cvc_image_batch_get_data(handle_, stream, &value));
    return value;
  }
  std::uint64_t id() const {
    std::uint64_t value = 0;
    check(cvc_image_batch_get_id(handle_, &value));
    return value;
  }
  std::uint64_t nbytes() const {
    std::uint64_t value = 0;
    check(cvc_image_batch_nbytes(handle_, &value));
    return value;
  }
};

// Tensors of one rank, dtype and layout and of varying shape, up to a fixed capacity.
class TensorBatch : public detail::Reference<TensorBatch, cvc_tensor_batch_t, &cvc_tensor_batch_retain,
                                             &cvc_tensor_batch_release> {
public:
  TensorBatch() noexcept = default;
  explicit TensorBatch(int capacity, cvc_stream_t stream = no_stream(), const Cache &cache = Cache::process(),
                       int device = current_device) {
    check(cvc_tensor_batch_create(cache.get(), device, capacity, stream, &handle_));
  }
  void push(const Tensor &tensor) const {
    const cvc_tensor_t handle = tensor.get();
    check(cvc_tensor_batch_push(handle_, &handle, 1));
  }
  // All of them or, if it throws, none.
  void push(const std::vector<Tensor> &tensors) const {
    const detail::Handles<cvc_tensor_t> handles(tensors.data(), tensors.size());
    check(cvc_tensor_batch_push(handle_, handles.data(), handles.size()));
  }
  void pop(int count = 1) const { check(cvc_tensor_batch_pop(handle_, count)); }
  void clear() const { check(cvc_tensor_batch_clear(handle_)); }
  Tensor operator[](int index) const {
    cvc_tensor_t tensor = nullptr;
    check(cvc_tensor_batch_get(handle_, index, &tensor));
    return Tensor::adopt(tensor);
  }
  void set(int index, const Tensor &tensor) const {
    check(cvc_tensor_batch_set(handle_, index, tensor.get()));
  }
  int size() const { return data().count; }
  int capacity() const { return data().capacity; }
  // With a stream, the records are uploaded on it and `records` is their device address.
  cvc_tensor_batch_data_t data(cvc_stream_t stream = no_stream()) const {
    auto value = detail::sized<cvc_tensor_batch_data_t>();
    check(cvc_tensor_batch_get_data(handle_, stream, &value));
    return value;
  }
  std::uint64_t id() const {
    std::uint64_t value = 0;
    check(cvc_tensor_batch_get_id(handle_, &value));
    return value;
  }
  std::uint64_t nbytes() const {
    std::uint64_t value = 0;
    check(cvc_tensor_batch_nbytes(handle_, &value));
    return value;
  }
};

} // namespace cvc

#endif

// Raw memory of the C++ layer: bytes from the cache, given back in the order of streams.
#ifndef CVC_MEMORY_HPP
#define CVC_MEMORY_HPP

#include "object.hpp"

#include <utility>

namespace cvc {

// Memory of a device that the library does not look into. Owned by one object: move only. Its end frees it
// behind all that is queued by then on its stream and on those of record_stream(), and waits for nothing;
// where that fails the memory stays taken.
class Memory {
public:
  Memory() noexcept = default;
  // `stream` is where it will first be used, and where it is freed: it must live until then. Without a stream
  // only memory that is done with is given, and no work but that on streams of record_stream() uses it any
  // more when it ends. alignment: 0 or a power of two.
  explicit Memory(std::size_t bytes, cvc_stream_t stream = no_stream(), int device = current_device,
                  std::size_t alignment = 0, Cache cache = Cache::process())
      : cache_(std::move(cache)), stream_(stream), size_(bytes) {
    check(cvc_mem_alloc(cache_.get(), device, bytes, alignment, stream, &pointer_));
  }
  Memory(Memory &&other) noexcept { swap(other); }
  Memory &operator=(Memory &&other) noexcept {
    Memory old(std::move(*this));
    swap(other);
    return *this;
  }
  ~Memory() {
    if (pointer_)
      cvc_mem_free(cache_.get(), pointer_, stream_);
  }

  void *get() const noexcept { return pointer_; }
  std::size_t size() const noexcept { return size_; }
  cvc_stream_t stream() const noexcept { return stream_; }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }

  // The stream on which it is freed, from now on.
  void set_stream(cvc_stream_t stream) noexcept { stream_ = stream; }
  // Work on `stream` uses it too, up to its end: see cvc_mem_record_stream.
  void record_stream(cvc_stream_t stream) const {
    check(cvc_mem_record_stream(cache_.get(), pointer_, stream));
  }
  // Frees it now. It is empty afterwards, unless this throws.
  void free() {
    check(cvc_mem_free(cache_.get(), pointer_, stream_));
    pointer_ = nullptr;
    size_ = 0;
  }
  // Frees it now, for use as soon as what the event's latest record covers is done.
  void free_after(const Event &event) {
    check(cvc_mem_free_after_event(cache_.get(), pointer_, event.get()));
    pointer_ = nullptr;
    size_ = 0;
  }

private:
  void swap(Memory &other) noexcept {
    std::swap(cache_, other.cache_);
    std::swap(pointer_, other.pointer_);
    std::swap(stream_, other.stream_);
    std::swap(size_, other.size_);
  }
  Cache cache_;
  void *pointer_ = nullptr;
  cvc_stream_t stream_ = nullptr;
  std::size_t size_ = 0;
};

} // namespace cvc

#endif

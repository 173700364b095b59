// Devices, streams, events and the tests' latch of the C++ layer.
#ifndef CVC_STREAM_HPP
#define CVC_STREAM_HPP

#include "types.hpp"

#include <utility>

namespace cvc {

inline Backend backend() {
  cvc_backend_t kind = 0;
  check(cvc_backend(&kind));
  return static_cast<Backend>(kind);
}
inline int device_count() {
  std::int32_t count = 0;
  check(cvc_device_count(&count));
  return count;
}
inline cvc_device_info_t device_info(int device = current_device) {
  auto info = detail::sized<cvc_device_info_t>();
  check(cvc_device_get_info(device, &info));
  return info;
}
// The calling thread's current device.
inline int get_device() {
  std::int32_t device = 0;
  check(cvc_device_get_current(&device));
  return device;
}
inline void set_device(int device) { check(cvc_device_set_current(device)); }
// Waits for all work of the device.
inline void synchronize_device(int device = current_device) { check(cvc_device_synchronize(device, -1)); }
inline cvc_format_info_t format_info(Format format) {
  auto info = detail::sized<cvc_format_info_t>();
  check(cvc_format_get_info(static_cast<cvc_format_t>(format), &info));
  return info;
}

class Event;

// A stream that this object created or registered, or only names. Its end returns at once and queued work
// still runs. A moved-from one names the legacy default stream.
class Stream {
public:
  // A new non-blocking stream. flags: CVC_STREAM_BLOCKING.
  explicit Stream(int device = current_device, std::uint32_t flags = 0) : end_(&cvc_stream_destroy) {
    check(cvc_stream_create(device, flags, &stream_));
  }
  // Another library's stream, registered until this object ends. The stream must live until then.
  static Stream registered(cvc_stream_t stream, int device = current_device, std::uint32_t flags = 0) {
    check(cvc_stream_register(device, stream, flags));
    return Stream(stream, &cvc_stream_unregister);
  }
  // Only the name of a stream, to call the functions below on it.
  static Stream named(cvc_stream_t stream) noexcept { return Stream(stream, nullptr); }

  Stream(Stream &&other) noexcept
      : stream_(std::exchange(other.stream_, nullptr)), end_(std::exchange(other.end_, nullptr)) {}
  Stream &operator=(Stream &&other) noexcept {
    Stream old(std::move(*this));
    std::swap(stream_, other.stream_);
    std::swap(end_, other.end_);
    return *this;
  }
  ~Stream() {
    if (end_)
      end_(stream_);
  }

  cvc_stream_t get() const noexcept { return stream_; }
  operator cvc_stream_t() const noexcept { return stream_; }
  std::uint64_t id() const {
    std::uint64_t value = 0;
    check(cvc_stream_get_id(stream_, &value));
    return value;
  }
  int device() const {
    std::int32_t ordinal = 0;
    check(cvc_stream_get_device(stream_, &ordinal));
    return ordinal;
  }
  // True if all work queued so far is done.
  bool query() const { return detail::ready(cvc_stream_query(stream_)); }
  void synchronize() const { check(cvc_stream_synchronize(stream_, -1)); }
  // False if the timeout passed first.
  bool synchronize_for(std::chrono::nanoseconds timeout) const {
    return detail::ready(cvc_stream_synchronize(stream_, detail::count(timeout)));
  }
  // Later work here runs after what is queued on `other` now. The host does not wait.
  void wait(cvc_stream_t other) const { check(cvc_stream_wait_stream(stream_, other)); }
  inline void wait(const Event &event) const;

private:
  using End = cvc_status_t (*)(cvc_stream_t);
  Stream(cvc_stream_t stream, End end) noexcept : stream_(stream), end_(end) {}
  cvc_stream_t stream_ = nullptr;
  End end_ = nullptr;
};

class Event {
public:
  // flags: CVC_EVENT_TIMING, for elapsed_ms.
  explicit Event(int device = current_device, std::uint32_t flags = 0) {
    check(cvc_event_create(device, flags, &event_));
  }
  Event(Event &&other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event &operator=(Event &&other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_)
      cvc_event_destroy(event_);
  }

  cvc_event_t get() const noexcept { return event_; }
  void record(cvc_stream_t stream) const { check(cvc_event_record(event_, stream)); }
  bool query() const { return detail::ready(cvc_event_query(event_)); }
  void synchronize() const { check(cvc_event_synchronize(event_, -1)); }
  bool synchronize_for(std::chrono::nanoseconds timeout) const {
    return detail::ready(cvc_event_synchronize(event_, detail::count(timeout)));
  }
  friend float elapsed_ms(const Event &start, const Event &end) {
    float milliseconds = 0;
    check(cvc_event_elapsed_ms(start.event_, end.event_, &milliseconds));
    return milliseconds;
  }

private:
  cvc_event_t event_ = nullptr;
};

inline void Stream::wait(const Event &event) const { check(cvc_stream_wait_event(stream_, event.get())); }

// Host backend, for tests: holds the work behind it on a stream until open() or its end.
class Latch {
public:
  explicit Latch(cvc_stream_t stream) { check(cvc_host_latch_create(stream, &latch_)); }
  Latch(Latch &&other) noexcept : latch_(std::exchange(other.latch_, 0)) {}
  Latch &operator=(Latch &&other) noexcept {
    std::swap(latch_, other.latch_);
    return *this;
  }
  ~Latch() {
    if (latch_)
      cvc_host_latch_open(latch_);
  }
  void open() {
    if (const std::uint64_t latch = std::exchange(latch_, 0))
      check(cvc_host_latch_open(latch));
  }

private:
  std::uint64_t latch_ = 0;
};

} // namespace cvc

#endif

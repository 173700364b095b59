// What the checks of the GPU kernels share: random sizes, layouts and values, and memory that is the same on
// both sides at first.
#ifndef CVC_CHECK_SUPPORT_H
#define CVC_CHECK_SUPPORT_H

#include "kernel_support.h"

namespace {

std::mt19937_64 generator;

int64_t draw(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(generator() % static_cast<uint64_t>(high - low + 1));
}
bool chance(int in) { return draw(1, in) == 1; }
template <class T, size_t Count> T pick(const T (&of)[Count]) { return of[draw(0, Count - 1)]; }

int64_t draw_size() {
  static const int64_t primes[] = {71, 97, 101, 127, 131, 251, 257, 509, 521};
  switch (draw(0, 5)) {
  case 0:
    return pick(primes);
  case 1:
    return 16 * draw(1, 40);
  case 2:
    return 48 * draw(1, 12);
  default:
    return draw(1, 70);
  }
}

// Bytes on both sides, the same at first.
struct twin {
  std::vector<unsigned char> host;
  unsigned char *device = nullptr;

  twin() = default;
  twin(const twin &) = delete;
  twin &operator=(const twin &) = delete;
  ~twin() {
    if (device != nullptr) {
      device_free(device);
    }
  }

  void reserve(size_t bytes) { host.resize(bytes + 512); }
  // The host's vector is aligned to 16 at least, as are the offsets that are asked for as aligned ones.
  void fill_random() {
    for (size_t i = 0; i + 8 <= host.size(); i += 8) {
      const uint64_t bits = generator();
      memcpy(host.data() + i, &bits, 8);
    }
  }
  void poison() { memset(host.data(), 0xa5, host.size()); }
  void upload() {
    device = static_cast<unsigned char *>(device_allocate(host.size()));
    to_device(device, host.data(), host.size());
  }
  // How many bytes differ.
  size_t differences(size_t &first) const {
    std::vector<unsigned char> back(host.size());
    from_device(back.data(), device, back.size());
    size_t count = 0;
    for (size_t i = 0; i < back.size(); ++i) {
      if (back[i] != host[i] && count++ == 0) {
        first = i;
      }
    }
    return count;
  }
};

struct extents {
  int64_t n, c, h, w;
};

struct layout {
  cvc_view view; // data is an offset
  int64_t bytes; // that it needs
  std::string name;
};

// 0 interleaved, 1 planar, 2 pixels with gaps; any pitch and alignment, or those that the fast forms want.
layout draw_layout(const extents &size, int64_t bytes, int kind, bool may_reverse) {
  layout made;
  const int tidy = static_cast<int>(draw(0, 3)); // 0, 1: packed; 2: pitch of 16 n; 3: any pitch and offset
  const int64_t offset = tidy == 3 ? (chance(3) ? draw(0, 40) : bytes * draw(0, 9)) : 16 * draw(0, 3);
  const auto pitch = [&](int64_t row) {
    if (tidy < 2) {
      return row;
    }
    return tidy == 2 ? (row + 15) / 16 * 16 + 16 * draw(0, 2)
                     : row + (chance(4) ? draw(0, 9) : bytes * draw(0, 5));
  };
  cvc_view view{};
  int64_t end = 0;
  if (kind == 1) {
    view.stride_w = bytes;
    view.stride_h = pitch(size.w * bytes);
    view.stride_c = pitch(view.stride_h * size.h);
    view.stride_n = pitch(view.stride_c * size.c);
    end = view.stride_n * size.n;
  } else {
    view.stride_c = bytes;
    view.stride_w = size.c * bytes + (kind == 2 ? bytes * draw(1, 3) : 0);
    view.stride_h = pitch(size.w * view.stride_w);
    view.stride_n = pitch(view.stride_h * size.h);
    end = view.stride_n * size.n;
  }
  view.data = static_cast<unsigned long long>(offset);
  if (may_reverse && chance(12)) {
    view.data += static_cast<unsigned long long>((size.h - 1) * view.stride_h);
    view.stride_h = -view.stride_h;
  }
  made.view = view;
  made.bytes = offset + end;
  made.name = std::string(kind == 1   ? "planar"
                          : kind == 2 ? "gaps"
                                      : "interleaved") +
              (tidy < 2 ? " packed" : " pitched") + " +" + std::to_string(offset);
  return made;
}

cvc_view at(const layout &place, const void *base) {
  cvc_view view = place.view;
  view.data += reinterpret_cast<unsigned long long>(base);
  return view;
}

int64_t failures = 0;

void report(const char *kernel, const std::string &what, const twin &result) {
  size_t first = 0;
  const size_t count = result.differences(first);
  if (count != 0 && ++failures <= 40) {
    std::printf("MISMATCH %s %s: %zu bytes, the first at %zu\n", kernel, what.c_str(), count, first);
  }
}

extents draw_extents(int64_t most_channels) {
  extents size{draw(1, 3), draw(1, most_channels), draw_size(), draw_size()};
  if (chance(40)) {
    size = chance(2) ? extents{1, size.c, 1, 65535} : extents{1, size.c, 65535, 1};
  }
  while (size.n * size.h * size.w > 200000) {
    size.h = (size.h + 1) / 2;
  }
  return size;
}

std::string text(const extents &size) {
  return std::to_string(size.n) + "x" + std::to_string(size.c) + "x" + std::to_string(size.h) + "x" +
         std::to_string(size.w);
}

// ---- Values ----

double draw_real() {
  static const double special[] = {0.0,     -0.0, 0.5,   1.5,   2.5,          -0.5,   254.5,   255.5,
                                   65535.5, 1e30, -1e30, 1e-40, 2147483647.5, 9.3e18, -9.3e18, 1e300};
  switch (draw(0, 7)) {
  case 0:
    return pick(special);
  case 1:
    return static_cast<double>(draw(-70000, 70000));
  default:
    return static_cast<double>(draw(-4000000, 4000000)) / 7919.0;
  }
}

// Real kinds get values that are worth it in place of random bits, most of the time.
void fill_values(twin &memory, uint32_t kind) {
  memory.fill_random();
  if (chance(3)) {
    return;
  }
  if (kind == cvc_kind_f32) {
    for (size_t i = 0; i + 4 <= memory.host.size(); i += 4) {
      const float value = static_cast<float>(draw_real());
      memcpy(memory.host.data() + i, &value, 4);
    }
  } else if (kind == cvc_kind_f64) {
    for (size_t i = 0; i + 8 <= memory.host.size(); i += 8) {
      const double value = draw_real();
      memcpy(memory.host.data() + i, &value, 8);
    }
  }
}

// ---- Base and scale of normalize ----

const uint32_t normalized_kinds[] = {cvc_kind_u8,  cvc_kind_s8,  cvc_kind_u16, cvc_kind_s16, cvc_kind_s32,
                                     cvc_kind_f16, cvc_kind_f32, cvc_kind_f64, cvc_kind_u8,  cvc_kind_f32};

// Base or scale: values, or a tensor that is broadcast in some dimensions.
struct factor {
  twin memory;
  layout place;
  bool is_tensor = false;

  void draw_one(const extents &size, bool per_pixel) {
    is_tensor = chance(2);
    if (!is_tensor) {
      return;
    }
    const extents own{chance(2) ? 1 : size.n, chance(4) ? 1 : size.c, per_pixel && chance(2) ? size.h : 1,
                      per_pixel && chance(2) ? size.w : 1};
    place = draw_layout(own, 4, static_cast<int>(draw(0, 1)), false);
    place.view.stride_n = own.n == 1 ? 0 : place.view.stride_n;
    place.view.stride_c = own.c == 1 ? 0 : place.view.stride_c;
    place.view.stride_h = own.h == 1 ? 0 : place.view.stride_h;
    place.view.stride_w = own.w == 1 ? 0 : place.view.stride_w;
    memory.reserve(static_cast<size_t>(place.bytes));
    for (int64_t i = 0; i + 4 <= static_cast<int64_t>(memory.host.size()); ++i) {
      // Also the unaligned places hold plain numbers.
      const float value = static_cast<float>(draw(1, 5000)) / 37.0f;
      if ((i - static_cast<int64_t>(place.view.data)) % 4 == 0 && i >= 0) {
        memcpy(memory.host.data() + i, &value, 4);
      }
    }
    memory.upload();
  }

  cvc_view view(bool on_device) const {
    return is_tensor ? at(place, on_device ? memory.device : memory.host.data()) : cvc_view{};
  }
};

cvc_normalize_values draw_values() {
  cvc_normalize_values values{};
  for (int i = 0; i < 4; ++i) {
    values.base_values[i] = static_cast<float>(draw(-5000, 5000)) / 29.0f;
    values.scale_values[i] = static_cast<float>(draw(-5000, 5000)) / 1999.0f;
    values.scale_values_double[i] =
        static_cast<double>(values.scale_values[i]) * (chance(2) ? 1.0 : 1.0000000001);
  }
  values.global_scale = chance(2) ? 1.0f : static_cast<float>(draw(-300, 300)) / 77.0f;
  values.global_shift = chance(2) ? 0.0f : static_cast<float>(draw(-300, 300)) / 7.0f;
  values.epsilon = static_cast<float>(draw(0, 10)) / 100.0f;
  values.scale_is_deviation = chance(2);
  values.src_kind = pick(normalized_kinds);
  values.dst_kind = pick(normalized_kinds);
  return values;
}

} // namespace

#endif

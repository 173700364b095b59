// Pixels in the registers of a GPU thread, as many as fill 16 bytes of each channel, and their permutations:
// split into planes, merged from planes, reversed.
#ifndef CVC_PIXEL_GROUPS_CUH
#define CVC_PIXEL_GROUPS_CUH

#include "device.cuh"
#include "view.cuh"

namespace cvc_device {

// A group has `Channels` vectors of 16 bytes, in either form.
template <int Channels> struct pixel_group {
  uint32_t word[4 * Channels];
};

// Which byte of a group each byte of the permuted one is. Elements of `Bytes`, 16 / Bytes pixels.
template <int Bytes, int Channels> struct group_split {
  static constexpr CVC_HD int source(int to) {
    const int channel = to / 16, pixel = to % 16 / Bytes;
    return (pixel * Channels + channel) * Bytes + to % Bytes;
  }
};

template <int Bytes, int Channels> struct group_merge {
  static constexpr CVC_HD int source(int to) {
    const int pixel = to / (Bytes * Channels), channel = to / Bytes % Channels;
    return channel * 16 + pixel * Bytes + to % Bytes;
  }
};

template <int Bytes, int Channels> struct group_reverse {
  static constexpr CVC_HD int source(int to) {
    constexpr int pixel_bytes = Bytes * Channels;
    const int pixel = to / pixel_bytes;
    return (16 / Bytes - 1 - pixel) * pixel_bytes + to % pixel_bytes;
  }
};

template <class Permutation, int Channels>
CVC_DEVICE pixel_group<Channels> permute_group(const pixel_group<Channels> &from) {
  pixel_group<Channels> to;
#pragma unroll
  for (int w = 0; w < 4 * Channels; ++w) {
    // The loop is unrolled, so that all of this but the permutes is known when it is compiled.
    const int a = Permutation::source(4 * w), b = Permutation::source(4 * w + 1);
    const int c = Permutation::source(4 * w + 2), d = Permutation::source(4 * w + 3);
    if (a % 4 == 0 && b == a + 1 && c == a + 2 && d == a + 3) {
      to.word[w] = from.word[a / 4];
      continue;
    }
    const uint32_t first_two = permute_bytes(from.word[a / 4], from.word[b / 4], (a % 4) | (4 + b % 4) << 4);
    const uint32_t last_two = permute_bytes(from.word[c / 4], from.word[d / 4], (c % 4) | (4 + d % 4) << 4);
    to.word[w] = permute_bytes(first_two, last_two, 0x5410);
  }
  return to;
}

CVC_DEVICE uint4 load_16(const void *from) { return *static_cast<const uint4 *>(from); }
CVC_DEVICE void store_16(void *to, uint4 value) { *static_cast<uint4 *>(to) = value; }

template <int Channels> CVC_DEVICE void set_vector(pixel_group<Channels> &group, int index, uint4 value) {
  group.word[4 * index] = value.x;
  group.word[4 * index + 1] = value.y;
  group.word[4 * index + 2] = value.z;
  group.word[4 * index + 3] = value.w;
}

template <int Channels> CVC_DEVICE uint4 vector_of(const pixel_group<Channels> &group, int index) {
  return make_uint4(group.word[4 * index], group.word[4 * index + 1], group.word[4 * index + 2],
                    group.word[4 * index + 3]);
}

// A warp's groups side by side in shared memory.
template <int Channels> struct warp_groups {
  uint4 vector[warp_lanes * Channels];

  CVC_DEVICE pixel_group<Channels> group(int index) const {
    pixel_group<Channels> read;
#pragma unroll
    for (int k = 0; k < Channels; ++k) {
      set_vector(read, k, vector[index * Channels + k]);
    }
    return read;
  }

  CVC_DEVICE void set_group(int index, const pixel_group<Channels> &group) {
#pragma unroll
    for (int k = 0; k < Channels; ++k) {
      vector[index * Channels + k] = vector_of(group, k);
    }
  }
};

} // namespace cvc_device

#endif

// Host build of the reformat kernel: interleaved rows are split into planes, planes merged, anything else
// moved.
#include "../reformat.cuh"
#include "pixel_moves.h"

namespace {

// Channel by channel, this many pixels at a time, so that interleaved rows are read from the nearest cache.
constexpr int64_t block_pixels = 1024;
// Channels that lie side by side in both move as one pixel, unless that pixel is very large.
constexpr int64_t most_pixel_bytes = 512;

// `interleaved` is a dense row of `count` pixels; channel c of pixel i lies at planes + c * plane_step,
// element i.
using split_function = void (*)(const byte *interleaved, byte *planes, int64_t plane_step, int64_t count);
using merge_function = void (*)(const byte *planes, int64_t plane_step, byte *interleaved, int64_t count);

#if CVC_HOST_VECTOR

// A group is as many pixels as fill 16 bytes of each plane; it is `Channels` vectors on either side. Each
// vector of one side is the union of bytes picked from every vector of the other.
template <int Bytes, int Channels> struct group_orders {
  alignas(16) byte split[Channels][Channels][16]; // [plane][interleaved vector]
  alignas(16) byte merge[Channels][Channels][16]; // [interleaved vector][plane]

  constexpr group_orders() : split(), merge() {
    for (int channel = 0; channel < Channels; ++channel) {
      for (int vector = 0; vector < Channels; ++vector) {
        for (int i = 0; i < 16; ++i) {
          split[channel][vector][i] = 0x80;
          merge[vector][channel][i] = 0x80;
        }
      }
      for (int i = 0; i < 16; ++i) {
        const int interleaved = (i / Bytes * Channels + channel) * Bytes + i % Bytes;
        split[channel][interleaved / 16][i] = static_cast<byte>(interleaved % 16);
        merge[interleaved / 16][channel][interleaved % 16] = static_cast<byte>(i);
      }
    }
  }
};

template <int Bytes, int Channels> constexpr group_orders<Bytes, Channels> orders_of{};

CVC_TARGET_VECTOR inline __m256i load_order(const byte (&order)[16]) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i *>(order)));
}

// Two groups at a time, one in each half of the vectors.
template <int Bytes, int Channels>
CVC_TARGET_VECTOR void split_vector(const byte *interleaved, byte *planes, int64_t plane_step,
                                    int64_t count) {
  constexpr const group_orders<Bytes, Channels> &orders = orders_of<Bytes, Channels>;
  constexpr int pixels = 32 / Bytes;
  int64_t done = 0;
  for (; done + pixels <= count; done += pixels) {
    const byte *from = interleaved + done * Channels * Bytes;
    __m256i loaded[Channels];
    for (int vector = 0; vector < Channels; ++vector) {
      const __m128i *first = reinterpret_cast<const __m128i *>(from + 16 * vector);
      loaded[vector] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(first)),
                                               _mm_loadu_si128(first + Channels), 1);
    }
    for (int channel = 0; channel < Channels; ++channel) {
      __m256i plane = _mm256_shuffle_epi8(loaded[0], load_order(orders.split[channel][0]));
      for (int vector = 1; vector < Channels; ++vector) {
        plane = _mm256_or_si256(
            plane, _mm256_shuffle_epi8(loaded[vector], load_order(orders.split[channel][vector])));
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i *>(planes + channel * plane_step + done * Bytes), plane);
    }
  }
  for (int channel = 0; channel < Channels; ++channel) {
    move_each<Bytes>(interleaved + (done * Channels + channel) * Bytes, Channels * Bytes,
                     planes + channel * plane_step + done * Bytes, Bytes, count - done);
  }
}

template <int Bytes, int Channels>
CVC_TARGET_VECTOR void merge_vector(const byte *planes, int64_t plane_step, byte *interleaved,
                                    int64_t count) {
  constexpr const group_orders<Bytes, Channels> &orders = orders_of<Bytes, Channels>;
  constexpr int pixels = 32 / Bytes;
  int64_t done = 0;
  for (; done + pixels <= count; done += pixels) {
    byte *to = interleaved + done * Channels * Bytes;
    __m256i loaded[Channels];
    for (int channel = 0; channel < Channels; ++channel) {
      loaded[channel] =
          _mm256_loadu_si256(reinterpret_cast<const __m256i *>(planes + channel * plane_step + done * Bytes));
    }
    for (int vector = 0; vector < Channels; ++vector) {
      __m256i merged = _mm256_shuffle_epi8(loaded[0], load_order(orders.merge[vector][0]));
      for (int channel = 1; channel < Channels; ++channel) {
        merged = _mm256_or_si256(
            merged, _mm256_shuffle_epi8(loaded[channel], load_order(orders.merge[vector][channel])));
      }
      __m128i *first = reinterpret_cast<__m128i *>(to + 16 * vector);
      _mm_storeu_si128(first, _mm256_castsi256_si128(merged));
      _mm_storeu_si128(first + Channels, _mm256_extracti128_si256(merged, 1));
    }
  }
  for (int channel = 0; channel < Channels; ++channel) {
    move_each<Bytes>(planes + channel * plane_step + done * Bytes, Bytes,
                     interleaved + (done * Channels + channel) * Bytes, Channels * Bytes, count - done);
  }
}

#endif

struct group_functions {
  split_function split;
  merge_function merge;
};

template <int Bytes> group_functions choose_groups_of(int64_t channels) {
#if CVC_HOST_VECTOR
  if (host_has_vector()) {
    switch (channels) {
    case 2:
      return {split_vector<Bytes, 2>, merge_vector<Bytes, 2>};
    case 3:
      return {split_vector<Bytes, 3>, merge_vector<Bytes, 3>};
    case 4:
      return {split_vector<Bytes, 4>, merge_vector<Bytes, 4>};
    default:
      break;
    }
  }
#else
  (void)channels;
#endif
  return {nullptr, nullptr};
}

// Null where there is no vector form.
group_functions choose_groups(int64_t element_bytes, int64_t channels) {
  switch (element_bytes) {
  case 1:
    return choose_groups_of<1>(channels);
  case 2:
    return choose_groups_of<2>(channels);
  case 4:
    return choose_groups_of<4>(channels);
  case 8:
    return choose_groups_of<8>(channels);
  default:
    return {nullptr, nullptr};
  }
}

bool same_view(const cvc_view &a, const cvc_view &b) {
  return a.data == b.data && a.stride_n == b.stride_n && a.stride_c == b.stride_c &&
         a.stride_h == b.stride_h && a.stride_w == b.stride_w;
}

} // namespace

extern "C" void cvc_host_reformat(const void *block, int64_t begin, int64_t end) {
  const cvc_reformat_params &params = *static_cast<const cvc_reformat_params *>(block);
  const cvc_view &src = params.src;
  const cvc_view &dst = params.dst;
  if (same_view(src, dst)) {
    return;
  }
  const int64_t bytes = params.element_bytes;
  const int64_t channels = params.channels;
  const int64_t width = params.width;
  const bool together = channels == 1 || (channels > 1 && src.stride_c == bytes && dst.stride_c == bytes &&
                                          channels * bytes <= most_pixel_bytes);
  const bool src_interleaved = src.stride_c == bytes && src.stride_w == channels * bytes;
  const bool dst_interleaved = dst.stride_c == bytes && dst.stride_w == channels * bytes;
  const group_functions groups = choose_groups(bytes, channels);
  const split_function split = src_interleaved && dst.stride_w == bytes ? groups.split : nullptr;
  const merge_function merge = dst_interleaved && src.stride_w == bytes ? groups.merge : nullptr;
  const int64_t pixel_bytes = together ? channels * bytes : bytes;
  const move_function move = choose_move(pixel_bytes);
  for (int64_t item = begin; item < end; ++item) {
    const int64_t n = item / params.height;
    const int64_t y = item % params.height;
    const byte *from = reinterpret_cast<const byte *>(src.data) + n * src.stride_n + y * src.stride_h;
    byte *to = reinterpret_cast<byte *>(dst.data) + n * dst.stride_n + y * dst.stride_h;
    if (together) {
      move(from, src.stride_w, to, dst.stride_w, width, pixel_bytes);
    } else if (split != nullptr) {
      split(from, to, dst.stride_c, width);
    } else if (merge != nullptr) {
      merge(from, src.stride_c, to, width);
    } else {
      for (int64_t x = 0; x < width; x += block_pixels) {
        const int64_t now = width - x < block_pixels ? width - x : block_pixels;
        for (int64_t c = 0; c < channels; ++c) {
          move(from + c * src.stride_c + x * src.stride_w, src.stride_w,
               to + c * dst.stride_c + x * dst.stride_w, dst.stride_w, now, bytes);
        }
      }
    }
  }
}

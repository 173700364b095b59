// The parameter block and the arithmetic of the fused preprocess kernel, for the host and the GPU build: U8
// images are resized, and each sample of the result is converted, normalized and put where it belongs before
// it has lain in memory.
#ifndef CVC_PREPROCESS_CUH
#define CVC_PREPROCESS_CUH

#include "convert_to.cuh"
#include "normalize.cuh"
#include "resize_params.cuh"

// What is done to a sample behind the resize. It depends on the sample's value and channel alone, so that
// both builds compute it once for all values, in a table.
struct cvc_preprocess_finish {
  cvc_normalize_values normalize; // base and scale are the same for all pixels of a channel
  double alpha;
  double beta;
  uint32_t convert_kind;  // of at most 4 bytes; 0: samples are not converted
  uint32_t rounding;      // cvc_rounding
  uint32_t normalizes;    // 0: samples are not normalized
  uint32_t swaps;         // 1: channels 0 and 2 are exchanged
  uint32_t dst_kind;      // of at most 4 bytes
  uint32_t values_offset; // of the table in the GPU's shared memory, and of the rows behind it
};

// Kernel `cvc_preprocess`. Work items are those of `cvc_resize`; all images are tiled. The views `dst` are
// those of the result, of elements of `dst_kind`: a flip is a stride below zero, planes are as good as
// pixels.
struct cvc_preprocess_params {
  cvc_resize_params resize;
  cvc_preprocess_finish finish;
};

static_assert(sizeof(cvc_preprocess_finish) == 208, "the Rust mirror has this size");
static_assert(sizeof(cvc_preprocess_params) == 3824, "the Rust mirror has this size; the most is 4096");

// Samples of the longest row of a result that the kernel takes.
constexpr int64_t cvc_preprocess_most_samples = 1 << 18;

// Values of a sample.
constexpr int cvc_preprocess_values = 256;
CVC_HD constexpr int cvc_preprocess_table_bytes(uint32_t channels) {
  return static_cast<int>(channels) * cvc_preprocess_values * static_cast<int>(sizeof(uint32_t));
}

// Rows of a strip's samples that the GPU gathers before it finishes them.
constexpr int cvc_preprocess_staged_rows = 64;

CVC_HD inline uint32_t cvc_preprocess_swapped(uint32_t channel) {
  return channel != 1 && channel < 3 ? 2 - channel : channel;
}

// The channel of the result that a channel of the source becomes.
CVC_HD inline uint32_t cvc_preprocess_channel(const cvc_preprocess_finish &finish, uint32_t channel) {
  return finish.swaps != 0 ? cvc_preprocess_swapped(channel) : channel;
}

// An element of any kind of at most 4 bytes, from its bits.
template <class Arithmetic> CVC_HD inline Arithmetic cvc_widen_bits(uint32_t kind, uint32_t bits) {
  switch (kind) {
  case cvc_kind_u8:
    return cvc_widen<Arithmetic, uint8_t>::from(static_cast<uint8_t>(bits));
  case cvc_kind_s8:
    return cvc_widen<Arithmetic, int8_t>::from(static_cast<int8_t>(bits));
  case cvc_kind_u16:
    return cvc_widen<Arithmetic, uint16_t>::from(static_cast<uint16_t>(bits));
  case cvc_kind_s16:
    return cvc_widen<Arithmetic, int16_t>::from(static_cast<int16_t>(bits));
  case cvc_kind_u32:
    return cvc_widen<Arithmetic, uint32_t>::from(bits);
  case cvc_kind_s32:
    return cvc_widen<Arithmetic, int32_t>::from(static_cast<int32_t>(bits));
  case cvc_kind_f16:
    return cvc_widen<Arithmetic, cvc_half>::from(cvc_half{static_cast<uint16_t>(bits)});
  default:
    return cvc_widen<Arithmetic, float>::from(cvc_float_of_bits(bits));
  }
}

template <cvc_rounding Rounding, class Arithmetic>
CVC_HD inline uint32_t cvc_saturate_bits(uint32_t kind, Arithmetic value) {
  switch (kind) {
  case cvc_kind_u8:
    return cvc_saturate<uint8_t, Rounding>::from(value);
  case cvc_kind_s8:
    return static_cast<uint32_t>(cvc_saturate<int8_t, Rounding>::from(value));
  case cvc_kind_u16:
    return cvc_saturate<uint16_t, Rounding>::from(value);
  case cvc_kind_s16:
    return static_cast<uint32_t>(cvc_saturate<int16_t, Rounding>::from(value));
  case cvc_kind_u32:
    return cvc_saturate<uint32_t, Rounding>::from(value);
  case cvc_kind_s32:
    return static_cast<uint32_t>(cvc_saturate<int32_t, Rounding>::from(value));
  case cvc_kind_f16:
    return cvc_saturate<cvc_half, Rounding>::from(value).bits;
  default:
    return cvc_float_bits(cvc_saturate<float, Rounding>::from(value));
  }
}

template <class Arithmetic>
CVC_HD inline uint32_t cvc_convert_sample(const cvc_preprocess_finish &finish, uint8_t sample) {
  const Arithmetic value =
      cvc_convert_value(static_cast<Arithmetic>(sample), static_cast<Arithmetic>(finish.alpha),
                        static_cast<Arithmetic>(finish.beta));
  return finish.rounding == cvc_rounding_truncate
             ? cvc_saturate_bits<cvc_rounding_truncate>(finish.convert_kind, value)
             : cvc_saturate_bits<cvc_rounding_nearest>(finish.convert_kind, value);
}

// A factor of a channel. What its address is a multiple of stands in src/op/view.rs.
CVC_HD inline float cvc_preprocess_factor(const cvc_view &tensor, const float (&values)[4],
                                          uint32_t channel) {
  if (tensor.data == 0) {
    return values[channel & 3];
  }
  float factor;
  __builtin_memcpy(&factor,
                   reinterpret_cast<const unsigned char *>(cvc_view_address(tensor, 0, channel, 0, 0)),
                   sizeof factor);
  return factor;
}

// The bits of what a sample of a channel of the source becomes.
CVC_HD inline uint32_t cvc_preprocess_value(const cvc_preprocess_finish &finish, uint32_t channel,
                                            uint8_t sample) {
  uint32_t kind = cvc_kind_u8, bits = sample;
  if (finish.convert_kind != 0) {
    bits = cvc_convert_in_double(kind, finish.convert_kind) ? cvc_convert_sample<double>(finish, sample)
                                                            : cvc_convert_sample<float>(finish, sample);
    kind = finish.convert_kind;
  }
  if (finish.normalizes != 0) {
    const cvc_normalize_values &values = finish.normalize;
    const uint32_t own = cvc_preprocess_channel(finish, channel);
    const float base = cvc_preprocess_factor(values.base, values.base_values, own);
    float scale = cvc_preprocess_factor(values.scale, values.scale_values, own);
    if (values.scale.data != 0 && values.scale_is_deviation != 0) {
      scale = cvc_inverse_deviation(scale, values.epsilon);
    }
    bits = cvc_saturate_bits<cvc_rounding_nearest>(
        finish.dst_kind, cvc_normalize_value(cvc_widen_bits<float>(kind, bits), base, scale,
                                             values.global_scale, values.global_shift));
  }
  return bits;
}

#endif

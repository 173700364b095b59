// Units of four elements of any type on the GPU: where they lie in the runs of two views, loads that widen
// them, stores that saturate them.
#ifndef CVC_UNITS_CUH
#define CVC_UNITS_CUH

#include "device.cuh"
#include "runs.cuh"

namespace cvc_device {

template <class T> struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) four {
  T at[4];
};

template <class T> CVC_DEVICE T read_element(const byte *from) {
  if (reinterpret_cast<uintptr_t>(from) % sizeof(T) == 0) {
    return *reinterpret_cast<const T *>(from);
  }
  T value;
  for (size_t i = 0; i < sizeof(T); ++i) {
    reinterpret_cast<byte *>(&value)[i] = from[i];
  }
  return value;
}

template <class T> CVC_DEVICE void write_element(byte *to, T value) {
  if (reinterpret_cast<uintptr_t>(to) % sizeof(T) == 0) {
    *reinterpret_cast<T *>(to) = value;
    return;
  }
  for (size_t i = 0; i < sizeof(T); ++i) {
    to[i] = reinterpret_cast<const byte *>(&value)[i];
  }
}

// Unit j of a thread begins `j * apart` elements behind its first. `count` is 4 where there are several.
template <class Arithmetic, class In, int Units>
CVC_DEVICE void load_units(const byte *from, int count, int64_t step, Arithmetic (&values)[Units][4]) {
  constexpr int apart = 4 * block_threads;
  four<In> held[Units];
  if (Units > 1 ||
      (count == 4 && step == sizeof(In) && reinterpret_cast<uintptr_t>(from) % sizeof(held[0]) == 0)) {
#pragma unroll
    for (int j = 0; j < Units; ++j) {
      held[j] = *reinterpret_cast<const four<In> *>(from + j * (apart * sizeof(In)));
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      held[0].at[i] = i < count ? read_element<In>(from + i * step) : In();
    }
  }
#pragma unroll
  for (int j = 0; j < Units; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      values[j][i] = cvc_widen<Arithmetic, In>::from(held[j].at[i]);
    }
  }
}

template <class Arithmetic, class Out, cvc_rounding Rounding, int Units>
CVC_DEVICE void store_units(const Arithmetic (&values)[Units][4], byte *to, int count, int64_t step) {
  constexpr int apart = 4 * block_threads;
#pragma unroll
  for (int j = 0; j < Units; ++j) {
    four<Out> held;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      held.at[i] = cvc_saturate<Out, Rounding>::from(values[j][i]);
    }
    if (Units > 1 ||
        (count == 4 && step == sizeof(Out) && reinterpret_cast<uintptr_t>(to) % sizeof(held) == 0)) {
      *reinterpret_cast<four<Out> *>(to + j * (apart * sizeof(Out))) = held;
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i < count) {
          write_element<Out>(to + i * step, held.at[i]);
        }
      }
    }
  }
}

// The kinds that are computed in float. Every branch on a kind is the same for all threads.
template <int Units>
CVC_DEVICE void load_kind(uint32_t kind, const byte *from, int count, int64_t step,
                          float (&values)[Units][4]) {
  switch (kind) {
  case cvc_kind_u8:
    return load_units<float, uint8_t>(from, count, step, values);
  case cvc_kind_s8:
    return load_units<float, int8_t>(from, count, step, values);
  case cvc_kind_u16:
    return load_units<float, uint16_t>(from, count, step, values);
  case cvc_kind_s16:
    return load_units<float, int16_t>(from, count, step, values);
  case cvc_kind_s32:
    return load_units<float, int32_t>(from, count, step, values);
  case cvc_kind_f16:
    return load_units<float, cvc_half>(from, count, step, values);
  default:
    return load_units<float, float>(from, count, step, values);
  }
}

template <int Units>
CVC_DEVICE void load_kind(uint32_t kind, const byte *from, int count, int64_t step,
                          double (&values)[Units][4]) {
  switch (kind) {
  case cvc_kind_u8:
    return load_units<double, uint8_t>(from, count, step, values);
  case cvc_kind_s8:
    return load_units<double, int8_t>(from, count, step, values);
  case cvc_kind_u16:
    return load_units<double, uint16_t>(from, count, step, values);
  case cvc_kind_s16:
    return load_units<double, int16_t>(from, count, step, values);
  case cvc_kind_u32:
    return load_units<double, uint32_t>(from, count, step, values);
  case cvc_kind_s32:
    return load_units<double, int32_t>(from, count, step, values);
  case cvc_kind_u64:
    return load_units<double, uint64_t>(from, count, step, values);
  case cvc_kind_s64:
    return load_units<double, int64_t>(from, count, step, values);
  case cvc_kind_f16:
    return load_units<double, cvc_half>(from, count, step, values);
  case cvc_kind_f32:
    return load_units<double, float>(from, count, step, values);
  default:
    return load_units<double, double>(from, count, step, values);
  }
}

template <cvc_rounding Rounding, int Units>
CVC_DEVICE void store_kind(uint32_t kind, const float (&values)[Units][4], byte *to, int count,
                           int64_t step) {
  switch (kind) {
  case cvc_kind_u8:
    return store_units<float, uint8_t, Rounding>(values, to, count, step);
  case cvc_kind_s8:
    return store_units<float, int8_t, Rounding>(values, to, count, step);
  case cvc_kind_u16:
    return store_units<float, uint16_t, Rounding>(values, to, count, step);
  case cvc_kind_s16:
    return store_units<float, int16_t, Rounding>(values, to, count, step);
  case cvc_kind_s32:
    return store_units<float, int32_t, Rounding>(values, to, count, step);
  case cvc_kind_f16:
    return store_units<float, cvc_half, Rounding>(values, to, count, step);
  default:
    return store_units<float, float, Rounding>(values, to, count, step);
  }
}

template <cvc_rounding Rounding, int Units>
CVC_DEVICE void store_kind(uint32_t kind, const double (&values)[Units][4], byte *to, int count,
                           int64_t step) {
  switch (kind) {
  case cvc_kind_u8:
    return store_units<double, uint8_t, Rounding>(values, to, count, step);
  case cvc_kind_s8:
    return store_units<double, int8_t, Rounding>(values, to, count, step);
  case cvc_kind_u16:
    return store_units<double, uint16_t, Rounding>(values, to, count, step);
  case cvc_kind_s16:
    return store_units<double, int16_t, Rounding>(values, to, count, step);
  case cvc_kind_u32:
    return store_units<double, uint32_t, Rounding>(values, to, count, step);
  case cvc_kind_s32:
    return store_units<double, int32_t, Rounding>(values, to, count, step);
  case cvc_kind_u64:
    return store_units<double, uint64_t, Rounding>(values, to, count, step);
  case cvc_kind_s64:
    return store_units<double, int64_t, Rounding>(values, to, count, step);
  case cvc_kind_f16:
    return store_units<double, cvc_half, Rounding>(values, to, count, step);
  case cvc_kind_f32:
    return store_units<double, float, Rounding>(values, to, count, step);
  default:
    return store_units<double, double, Rounding>(values, to, count, step);
  }
}

// Not inlined: it would cost every kernel the registers of three 64-bit divisions.
__device__ __noinline__ inline void find_distant_part(const cvc_row_parts &parts, int64_t index,
                                                      cvc_row_part &part) {
  part = cvc_row_part_of(parts, index);
}

// As `cvc_row_part_of`, in 32 bits where these do.
CVC_DEVICE cvc_row_part find_part(const cvc_row_parts &parts, int64_t index) {
  cvc_row_part part;
  if (parts.parts.magic == 0) {
    find_distant_part(parts, index, part);
    return part;
  }
  const auto divide = [](uint32_t dividend, const cvc_divisor &divisor) {
    return static_cast<uint32_t>((static_cast<uint64_t>(dividend) * divisor.magic) >> divisor.shift);
  };
  const uint32_t number = static_cast<uint32_t>(index);
  const uint32_t run = divide(number, parts.parts);
  const uint32_t whole = divide(run, parts.rows);
  const uint32_t image = divide(whole, parts.planes);
  part.first = static_cast<int64_t>(number - run * static_cast<uint32_t>(parts.parts.value)) *
               static_cast<uint32_t>(parts.per_part);
  part.row = run - whole * static_cast<uint32_t>(parts.rows.value);
  part.image = image;
  part.plane = whole - image * static_cast<uint32_t>(parts.planes.value);
  const int64_t left = parts.per_row - part.first;
  part.units = number >= static_cast<uint32_t>(parts.count) ? 0
               : left < parts.per_part                      ? left
                                                            : parts.per_part;
  return part;
}

// One unit of the runs.
struct unit_place {
  const byte *from;
  byte *to;
  cvc_row_part part; // units: how many elements; first: the first one of the run

  CVC_DEVICE void find(const cvc_run_plan &plan, const cvc_view &src, const cvc_view &dst, int64_t unit) {
    part = find_part(plan.units, unit);
    from = in_global(
               reinterpret_cast<const byte *>(cvc_view_address(src, part.image, part.plane, part.row, 0))) +
           part.first * plan.src_step;
    to = in_global(reinterpret_cast<byte *>(cvc_view_address(dst, part.image, part.plane, part.row, 0))) +
         part.first * plan.dst_step;
  }
};

} // namespace cvc_device

#endif

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

// Kinds of elements and how far these lie apart; known when it is compiled in the kernels for one pair.
struct element_forms {
  uint32_t src_kind;
  uint32_t dst_kind;
  int64_t src_step;
  int64_t dst_step;
};

// Units of a thread lie so many elements apart, those of a warp side by side.
constexpr int units_apart = 4 * warp_lanes;

// `Plain`: elements side by side, every unit aligned and whole. Else there is one, of `count` elements.
template <bool Plain, class Arithmetic, class In, int Units>
CVC_DEVICE void load_units(const byte *from, int count, int64_t step, Arithmetic (&values)[Units][4]) {
  four<In> held[Units];
  if (Plain ||
      (count == 4 && step == sizeof(In) && reinterpret_cast<uintptr_t>(from) % sizeof(held[0]) == 0)) {
#pragma unroll
    for (int j = 0; j < Units; ++j) {
      held[j] = *reinterpret_cast<const four<In> *>(from + j * (units_apart * sizeof(In)));
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

// `Bytes`: the size of every kind that may come, which spares code for the others; 0: any.
template <bool Plain, int Bytes, class Arithmetic, class Out, cvc_rounding Rounding, int Units>
CVC_DEVICE void store_units(const Arithmetic (&values)[Units][4], byte *to, int count, int64_t step) {
  if (Bytes != 0 && Bytes != sizeof(Out)) {
    __builtin_unreachable();
  }
#pragma unroll
  for (int j = 0; j < Units; ++j) {
    four<Out> held;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      held.at[i] = cvc_saturate<Out, Rounding>::from(values[j][i]);
    }
    if (Plain || (count == 4 && step == sizeof(Out) && reinterpret_cast<uintptr_t>(to) % sizeof(held) == 0)) {
      *reinterpret_cast<four<Out> *>(to + j * (units_apart * sizeof(Out))) = held;
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
template <bool Plain, int Units>
CVC_DEVICE void load_kind(uint32_t kind, const byte *from, int count, int64_t step,
                          float (&values)[Units][4]) {
  switch (kind) {
  case cvc_kind_u8:
    return load_units<Plain, float, uint8_t>(from, count, step, values);
  case cvc_kind_s8:
    return load_units<Plain, float, int8_t>(from, count, step, values);
  case cvc_kind_u16:
    return load_units<Plain, float, uint16_t>(from, count, step, values);
  case cvc_kind_s16:
    return load_units<Plain, float, int16_t>(from, count, step, values);
  case cvc_kind_s32:
    return load_units<Plain, float, int32_t>(from, count, step, values);
  case cvc_kind_f16:
    return load_units<Plain, float, cvc_half>(from, count, step, values);
  default:
    return load_units<Plain, float, float>(from, count, step, values);
  }
}

template <bool Plain, int Units>
CVC_DEVICE void load_kind(uint32_t kind, const byte *from, int count, int64_t step,
                          double (&values)[Units][4]) {
  switch (kind) {
  case cvc_kind_u8:
    return load_units<Plain, double, uint8_t>(from, count, step, values);
  case cvc_kind_s8:
    return load_units<Plain, double, int8_t>(from, count, step, values);
  case cvc_kind_u16:
    return load_units<Plain, double, uint16_t>(from, count, step, values);
  case cvc_kind_s16:
    return load_units<Plain, double, int16_t>(from, count, step, values);
  case cvc_kind_u32:
    return load_units<Plain, double, uint32_t>(from, count, step, values);
  case cvc_kind_s32:
    return load_units<Plain, double, int32_t>(from, count, step, values);
  case cvc_kind_u64:
    return load_units<Plain, double, uint64_t>(from, count, step, values);
  case cvc_kind_s64:
    return load_units<Plain, double, int64_t>(from, count, step, values);
  case cvc_kind_f16:
    return load_units<Plain, double, cvc_half>(from, count, step, values);
  case cvc_kind_f32:
    return load_units<Plain, double, float>(from, count, step, values);
  default:
    return load_units<Plain, double, double>(from, count, step, values);
  }
}

template <bool Plain, int Bytes, cvc_rounding Rounding, int Units>
CVC_DEVICE void store_kind(uint32_t kind, const float (&values)[Units][4], byte *to, int count,
                           int64_t step) {
  switch (kind) {
  case cvc_kind_u8:
    return store_units<Plain, Bytes, float, uint8_t, Rounding>(values, to, count, step);
  case cvc_kind_s8:
    return store_units<Plain, Bytes, float, int8_t, Rounding>(values, to, count, step);
  case cvc_kind_u16:
    return store_units<Plain, Bytes, float, uint16_t, Rounding>(values, to, count, step);
  case cvc_kind_s16:
    return store_units<Plain, Bytes, float, int16_t, Rounding>(values, to, count, step);
  case cvc_kind_s32:
    return store_units<Plain, Bytes, float, int32_t, Rounding>(values, to, count, step);
  case cvc_kind_f16:
    return store_units<Plain, Bytes, float, cvc_half, Rounding>(values, to, count, step);
  default:
    return store_units<Plain, Bytes, float, float, Rounding>(values, to, count, step);
  }
}

template <bool Plain, int Bytes, cvc_rounding Rounding, int Units>
CVC_DEVICE void store_kind(uint32_t kind, const double (&values)[Units][4], byte *to, int count,
                           int64_t step) {
  switch (kind) {
  case cvc_kind_u8:
    return store_units<Plain, Bytes, double, uint8_t, Rounding>(values, to, count, step);
  case cvc_kind_s8:
    return store_units<Plain, Bytes, double, int8_t, Rounding>(values, to, count, step);
  case cvc_kind_u16:
    return store_units<Plain, Bytes, double, uint16_t, Rounding>(values, to, count, step);
  case cvc_kind_s16:
    return store_units<Plain, Bytes, double, int16_t, Rounding>(values, to, count, step);
  case cvc_kind_u32:
    return store_units<Plain, Bytes, double, uint32_t, Rounding>(values, to, count, step);
  case cvc_kind_s32:
    return store_units<Plain, Bytes, double, int32_t, Rounding>(values, to, count, step);
  case cvc_kind_u64:
    return store_units<Plain, Bytes, double, uint64_t, Rounding>(values, to, count, step);
  case cvc_kind_s64:
    return store_units<Plain, Bytes, double, int64_t, Rounding>(values, to, count, step);
  case cvc_kind_f16:
    return store_units<Plain, Bytes, double, cvc_half, Rounding>(values, to, count, step);
  case cvc_kind_f32:
    return store_units<Plain, Bytes, double, float, Rounding>(values, to, count, step);
  default:
    return store_units<Plain, Bytes, double, double, Rounding>(values, to, count, step);
  }
}

// Not inlined: it would cost every kernel the registers of three 64-bit divisions.
__device__ __noinline__ inline void find_distant_part(const cvc_row_parts &parts, int64_t index,
                                                      cvc_row_part &part) {
  part = cvc_row_part_of(parts, index);
}

CVC_DEVICE uint32_t divide(uint32_t dividend, const cvc_divisor &divisor) {
  return static_cast<uint32_t>((static_cast<uint64_t>(dividend) * divisor.magic) >> divisor.shift);
}

// As `cvc_row_part_of`, in 32 bits where these do.
CVC_DEVICE cvc_row_part find_part(const cvc_row_parts &parts, int64_t index) {
  cvc_row_part part;
  if (parts.parts.magic == 0) {
    find_distant_part(parts, index, part);
    return part;
  }
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

// A block's plane, and its first unit in there.
struct plane_block {
  uint32_t image;
  uint32_t plane;
  uint32_t first;
};

CVC_DEVICE plane_block find_plane_block(const cvc_plane_units &units, uint32_t block) {
  plane_block found;
  const uint32_t whole = divide(block, units.blocks);
  found.first = (block - whole * static_cast<uint32_t>(units.blocks.value)) * block_threads;
  found.image = divide(whole, units.planes);
  found.plane = whole - found.image * static_cast<uint32_t>(units.planes.value);
  return found;
}

// Where a unit of a plane is: number `column` of row `row`.
struct row_unit {
  uint32_t row;
  uint32_t column;
};

CVC_DEVICE row_unit find_row_unit(const cvc_plane_units &units, uint32_t unit) {
  const uint32_t row = divide(unit, units.per_row);
  return row_unit{row, unit - row * static_cast<uint32_t>(units.per_row.value)};
}

CVC_DEVICE const byte *plane_of(const cvc_view &src, const plane_block &block) {
  return in_global(reinterpret_cast<const byte *>(cvc_view_address(src, block.image, block.plane, 0, 0)));
}
CVC_DEVICE byte *writable_plane_of(const cvc_view &dst, const plane_block &block) {
  return in_global(reinterpret_cast<byte *>(cvc_view_address(dst, block.image, block.plane, 0, 0)));
}

// A thread's units of a plain run, where a block does `Units` of each thread.
template <int Units> struct plain_units {
  int64_t first;           // then each 32 further on
  uint32_t first_of_three; // the same modulo 3
  bool whole;              // all of the block's

  CVC_DEVICE plain_units(const cvc_run_plan &plan, uint32_t block) {
    constexpr int block_units = block_threads * Units;
    const uint32_t own = threadIdx.x / warp_lanes * (warp_lanes * Units) + threadIdx.x % warp_lanes;
    const int64_t begin = static_cast<int64_t>(block) * block_units;
    first = begin + own;
    first_of_three = (block * (block_units % 3) + own) % 3;
    whole = (begin + block_units) * cvc_run_unit <= plan.units.per_row;
  }

  CVC_DEVICE const byte *from(const cvc_view &src, int64_t step) const {
    return in_global(reinterpret_cast<const byte *>(src.data)) + first * cvc_run_unit * step;
  }
  CVC_DEVICE byte *to(const cvc_view &dst, int64_t step) const {
    return in_global(reinterpret_cast<byte *>(dst.data)) + first * cvc_run_unit * step;
  }

  // How many elements unit j has.
  CVC_DEVICE int count(const cvc_run_plan &plan, int j) const {
    const int64_t left = plan.units.per_row - (first + warp_lanes * j) * cvc_run_unit;
    return static_cast<int>(left < 0 ? 0 : left < cvc_run_unit ? left : cvc_run_unit);
  }
};

// Where few bytes become many, too few loads are under way to hide how long each takes: one block of eight
// brings what eight later ones load into the L2 cache.
template <int Units>
CVC_DEVICE void fetch_ahead(const cvc_run_plan &plan, const cvc_view &src, const element_forms &forms) {
  constexpr uint32_t together = 8, ahead = 528, line = 128;
  if (forms.src_step >= forms.dst_step || blockIdx.x % together != 0) {
    return;
  }
  const uint32_t block_bytes = block_threads * Units * 4 * static_cast<uint32_t>(forms.src_step);
  const int64_t first = static_cast<int64_t>(blockIdx.x + ahead) * block_bytes + line * threadIdx.x;
  if (threadIdx.x < together * block_bytes / line && first < plan.units.per_row * forms.src_step) {
    prefetch_line(in_global(reinterpret_cast<const byte *>(src.data)) + first);
  }
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

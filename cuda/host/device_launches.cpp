// What the library asks of the kernels' sources before it launches the GPU build: how to cut the work, which
// of a kernel's forms to take, and how many blocks.
#include "../convert_to.cuh"
#include "../flip.cuh"
#include "../normalize.cuh"
#include "../nv12.cuh"
#include "../preprocess.cuh"
#include "../reformat.cuh"
#include "../resize_tiling.cuh"

// Mirrored in src/op/device_launch.rs.
struct cvc_device_launch {
  int64_t blocks;
  uint32_t kernel; // its place in the list of the operator's kernels
  uint32_t shared_bytes;
};

namespace {

// What lies behind the tiles: the table of values and the rows that are gathered, of the widest strip.
int cvc_preprocess_shared_bytes(uint32_t channels) {
  return cvc_preprocess_table_bytes(channels) + cvc_preprocess_staged_rows * cvc_resize_strip(2);
}

} // namespace

extern "C" {

void cvc_plan_flip(cvc_flip_params *params) { params->plan = cvc_flip_plan_of(cvc_flip_set_of(*params)); }

void cvc_launch_flip(const cvc_flip_params *params, cvc_device_launch *launch) {
  *launch = {params->plan.blocks, cvc_flip_kernel_of(params->plan), 0};
}

void cvc_launch_flip_var_shape(const cvc_flip_var_shape_params *params, cvc_device_launch *launch) {
  *launch = {cvc_flip_blocks(*params), 0, 0};
}

void cvc_plan_convert_to(cvc_convert_to_params *params) { params->plan = cvc_convert_to_plan(*params); }

void cvc_launch_convert_to(const cvc_convert_to_params *params, cvc_device_launch *launch) {
  const cvc_run_launch made = cvc_convert_to_launch(*params);
  *launch = {made.blocks, made.kernel, 0};
}

void cvc_plan_normalize(cvc_normalize_params *params) { params->plan = cvc_normalize_plan(*params); }

void cvc_launch_normalize(const cvc_normalize_params *params, cvc_device_launch *launch) {
  const cvc_run_launch made = cvc_normalize_launch(*params);
  *launch = {made.blocks, made.kernel, 0};
}

void cvc_launch_normalize_var_shape(const cvc_normalize_var_shape_params *params, cvc_device_launch *launch) {
  *launch = {cvc_normalize_blocks(*params), 0, 0};
}

void cvc_launch_nv12(const cvc_nv12_params *params, cvc_device_launch *launch) {
  *launch = {cvc_nv12_blocks(*params), 0, 0};
}

void cvc_plan_reformat(cvc_reformat_params *params) { params->plan = cvc_reformat_plan_of(*params); }

void cvc_launch_reformat(const cvc_reformat_params *params, cvc_device_launch *launch) {
  *launch = {params->plan.blocks, cvc_reformat_kernel_of(*params), 0};
}

int32_t cvc_plan_resize_group(int32_t in_size, int32_t out_size, int32_t most_taps) {
  return cvc_resize_group_steps(in_size, out_size, most_taps);
}

// Tiles image number `index`; the counts are the largest ones of its tables, 0 where there is none. `packed`:
// for a kernel that puts the samples of tiles elsewhere, as if they lay as those of the source do.
// `most_shared`: bytes of shared memory that a block may have.
void cvc_plan_resize(cvc_resize_params *params, int32_t index, int32_t most_across, int32_t most_down,
                     int32_t packed, int32_t most_shared) {
  cvc_resize_image &image = params->images[index];
  cvc_resize_image planned = image;
  if (packed != 0) {
    if (static_cast<int64_t>(image.dst_width) * params->channels > cvc_preprocess_most_samples) {
      image.tiling = cvc_resize_tiling{};
      return;
    }
    planned.dst.stride_c = image.src.stride_c;
    planned.dst.stride_w = image.src.stride_w;
    most_shared -= cvc_preprocess_shared_bytes(cvc_resize_max_channels);
  }
  image.tiling = cvc_resize_tiling_of(planned, params->kind, params->channels, params->flags, params->batch,
                                      most_across, most_down, most_shared);
}

void cvc_launch_resize(const cvc_resize_params *params, cvc_device_launch *launch) {
  const cvc_resize_launch made = cvc_resize_launch_of(*params);
  *launch = {made.blocks, static_cast<uint32_t>(made.kernel), static_cast<uint32_t>(made.shared_bytes)};
}

void cvc_plan_preprocess(cvc_preprocess_params *params) {
  const cvc_resize_launch made = cvc_resize_launch_of(params->resize);
  params->finish.values_offset = static_cast<uint32_t>((made.shared_bytes + 15) / 16 * 16);
}

void cvc_launch_preprocess(const cvc_preprocess_params *params, cvc_device_launch *launch) {
  const cvc_resize_launch made = cvc_resize_launch_of(params->resize);
  const int behind = cvc_preprocess_shared_bytes(params->resize.channels);
  *launch = {made.blocks, made.kernel == cvc_resize_wide_tiles ? 1u : 0u,
             params->finish.values_offset + static_cast<uint32_t>(behind)};
}

} // extern "C"

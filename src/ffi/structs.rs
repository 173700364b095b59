//! The structs, handles and callbacks that cross the C interface.

use std::ffi::{c_char, c_void};

use super::constants::*;

#[repr(C)]
pub struct CUstream_st {
    _private: [u8; 0],
}
#[repr(C)]
pub struct CUevent_st {
    _private: [u8; 0],
}
pub type cvc_stream_t = *mut CUstream_st;
pub type cvc_event_t = *mut CUevent_st;

#[repr(C)]
pub struct cvc_cache {
    _private: [u8; 0],
}
#[repr(C)]
pub struct cvc_tensor {
    _private: [u8; 0],
}
#[repr(C)]
pub struct cvc_image {
    _private: [u8; 0],
}
#[repr(C)]
pub struct cvc_image_batch {
    _private: [u8; 0],
}
#[repr(C)]
pub struct cvc_tensor_batch {
    _private: [u8; 0],
}
/// A cache: an index of objects with retention limits of its own, over the process's one pool of memory.
pub type cvc_cache_t = *mut cvc_cache;
/// A tensor: device memory with a shape, strides, a dtype and a layout.
pub type cvc_tensor_t = *mut cvc_tensor;
/// An image: one to six planes of device memory of one format.
pub type cvc_image_t = *mut cvc_image;
/// A batch of images of any sizes and formats.
pub type cvc_image_batch_t = *mut cvc_image_batch;
/// A batch of tensors of one rank, dtype and layout.
pub type cvc_tensor_batch_t = *mut cvc_tensor_batch;

/// Tells the owner of wrapped memory, once, that nobody observes it any more and that its work is done. Runs inside a
/// library call of any thread, with no lock of the library held; it may call the library. Where a callback lets
/// go of another wrap, that one's callback runs after it has returned, on the same thread.
pub type cvc_release_fn = Option<unsafe extern "C" fn(context: *mut c_void)>;
/// Gets messages of the library; see `cvc_set_log_callback`.
pub type cvc_log_fn = Option<
    unsafe extern "C" fn(level: cvc_log_level_t, message: *const c_char, context: *mut c_void),
>;

/// How a cache is made.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_cache_options_t {
    pub struct_size: usize,
    /// Retention limit of every device, in bytes; -1: half of the device's memory.
    pub limit: i64,
    /// 0.
    pub flags: u32,
}

/// What a device is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_device_info_t {
    pub struct_size: usize,
    pub backend: cvc_backend_t,
    pub reserved: i32,
    /// Bytes.
    pub total_memory: u64,
    /// Bytes that are free just now.
    pub free_memory: u64,
    /// NUL-terminated.
    pub name: [c_char; 256],
}

/// Counts and bytes of one device in one cache. `count` and `bytes` are of indexed live, idle and pending entries; all is
/// exact while no other call is in flight.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_cache_stats_t {
    pub struct_size: usize,
    /// The retention limit.
    pub limit_bytes: u64,
    /// Indexed entries.
    pub count: u64,
    /// What they are charged.
    pub bytes: u64,
    /// The highest `bytes` since `cvc_cache_reset_peak`.
    pub peak_bytes: u64,
    /// Live objects that own memory, indexed or not.
    pub live_count: u64,
    pub live_bytes: u64,
    /// The part of them that is not indexed.
    pub unindexed_count: u64,
    pub unindexed_bytes: u64,
    /// Released, their work seen complete.
    pub idle_count: u64,
    pub idle_bytes: u64,
    /// Released, their work not seen complete.
    pub pending_count: u64,
    pub pending_bytes: u64,
    /// Live wraps of foreign memory.
    pub wrapped_count: u64,
    /// Live views: reshapes, and images seen as tensors.
    pub view_count: u64,
    /// Creations served by an entry of the same shape and strides.
    pub hits_exact: u64,
    /// Creations served by a larger entry.
    pub hits_fit: u64,
    /// The part of both whose entry's work was not seen complete.
    pub hits_pending: u64,
    /// Creations that took new memory.
    pub misses: u64,
    /// Entries that a limit or a lack of memory drove out.
    pub evictions: u64,
    /// Live objects of every kind: 0 when nothing leaks.
    pub live_handles: u64,
    /// Bytes that all caches of the process have from the driver for this device.
    pub driver_bytes: u64,
    /// The part of them that is in no object of any cache: held by the pool, on its way back, or a table of resize
    /// coefficients (16 MiB of them at most are kept for later calls).
    pub free_bytes: u64,
}

/// A tensor to make.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_tensor_desc_t {
    pub struct_size: usize,
    /// Ordinal, or -1: the thread's current device.
    pub device: i32,
    /// 1 to 15.
    pub rank: i32,
    /// Elements; 0 makes an empty tensor.
    pub shape: [i64; CVC_MAX_RANK],
    pub dtype: cvc_dtype_t,
    /// One label a dimension, such as "NHWC", NUL-terminated; empty: none.
    pub layout: [c_char; 16],
    /// 0.
    pub flags: u32,
    /// Bytes that rows start at a multiple of, a power of two; 0: 32, or more for larger elements; 1: packed. A row is
    /// width times channels in a layout that ends with "WC", else the last dimension.
    pub row_align: i64,
    /// Bytes that the memory starts at a multiple of, a power of two; 0: 512, or `row_align` where that is more.
    pub base_align: i64,
}

/// A tensor as it lies in memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_tensor_data_t {
    pub struct_size: usize,
    pub device: i32,
    pub rank: i32,
    pub shape: [i64; CVC_MAX_RANK],
    /// Bytes from one element of a dimension to the next.
    pub strides: [i64; CVC_MAX_RANK],
    pub dtype: cvc_dtype_t,
    pub layout: [c_char; 16],
    /// In `cvc_tensor_wrap`: 0 or `CVC_WRAP_KEEP_SHELLS`.
    pub flags: u32,
    /// Device memory; null for an empty tensor.
    pub data: *mut c_void,
}

/// An image to make.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_image_desc_t {
    pub struct_size: usize,
    pub device: i32,
    pub format: cvc_format_t,
    /// Pixels.
    pub width: i32,
    pub height: i32,
    /// Bytes, a power of two; 0: 32.
    pub row_align: i64,
    /// Bytes, a power of two; 0: 512.
    pub base_align: i64,
}

/// One plane of an image: 24 bytes, also in device memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_image_plane_t {
    pub data: *mut c_void,
    /// Bytes.
    pub row_stride: i64,
    /// Samples.
    pub width: i32,
    pub height: i32,
}

/// An image as it lies in memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_image_data_t {
    pub struct_size: usize,
    pub device: i32,
    pub format: cvc_format_t,
    pub width: i32,
    pub height: i32,
    pub plane_count: i32,
    /// In `cvc_image_wrap`: 0 or `CVC_WRAP_KEEP_SHELLS`.
    pub flags: u32,
    pub planes: [cvc_image_plane_t; CVC_MAX_PLANES],
}

/// What an image batch has in device memory for one image: 152 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_image_record_t {
    pub plane_count: i32,
    pub format: cvc_format_t,
    pub planes: [cvc_image_plane_t; CVC_MAX_PLANES],
}

/// What a tensor batch has in device memory for one tensor: 256 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_tensor_record_t {
    pub data: *mut c_void,
    pub rank: i32,
    pub dtype: cvc_dtype_t,
    pub shape: [i64; CVC_MAX_RANK],
    pub strides: [i64; CVC_MAX_RANK],
}

/// What an image batch holds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_image_batch_data_t {
    pub struct_size: usize,
    pub device: i32,
    pub count: i32,
    pub capacity: i32,
    /// The format that all images share; `CVC_FORMAT_NONE` when empty or mixed.
    pub unique_format: cvc_format_t,
    /// The largest width and the largest height; 0 when empty.
    pub max_width: i32,
    pub max_height: i32,
    /// Device memory: `count` records of type `cvc_image_record_t`; null unless a stream was passed.
    pub records: *mut c_void,
    /// Device memory: `count` formats, each in 8 bytes; null unless a stream was passed.
    pub formats: *mut c_void,
}

/// What a tensor batch holds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_tensor_batch_data_t {
    pub struct_size: usize,
    pub device: i32,
    pub count: i32,
    pub capacity: i32,
    /// -1 when empty.
    pub rank: i32,
    pub dtype: cvc_dtype_t,
    pub layout: [c_char; 16],
    /// Device memory: `count` records of type `cvc_tensor_record_t`; null unless a stream was passed.
    pub records: *mut c_void,
}

/// What a format is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_format_info_t {
    pub struct_size: usize,
    pub plane_count: i32,
    /// Channels of all planes together.
    pub channel_count: i32,
    /// A plane's sample: NV12's chroma plane has `CVC_DTYPE_2U8`.
    pub plane_dtype: [cvc_dtype_t; CVC_MAX_PLANES],
    /// A plane has ceil(width / 2^shift) samples in a row, and rows likewise.
    pub plane_width_shift: [i32; CVC_MAX_PLANES],
    pub plane_height_shift: [i32; CVC_MAX_PLANES],
}

/// Parameters of normalize.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_normalize_params_t {
    pub struct_size: usize,
    /// F32 tensors in src's layout, each dimension 1 or src's; null: the values below.
    pub base: cvc_tensor_t,
    pub scale: cvc_tensor_t,
    pub base_values: [f32; 4],
    /// 1, or the number of channels.
    pub base_count: i32,
    pub scale_values: [f32; 4],
    pub scale_count: i32,
    pub global_scale: f32,
    pub global_shift: f32,
    pub epsilon: f32,
    /// 0 or `CVC_NORMALIZE_SCALE_IS_STDDEV`.
    pub flags: u32,
    /// Of the `_new` forms: dst's dtype; `CVC_DTYPE_NONE`: src's.
    pub dst_dtype: cvc_dtype_t,
}

/// A rectangle of an image, in pixels: 16 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_crop_t {
    /// Of the first pixel, 0 or more.
    pub x: i32,
    pub y: i32,
    /// 1 or more; all of it lies within the image.
    pub width: i32,
    pub height: i32,
}

/// Parameters of preprocess. Zeros after `struct_size` ask for a resize with the nearest pixels and nothing else.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_preprocess_params_t {
    pub struct_size: usize,
    /// 0, or bits `CVC_PREPROCESS_...`.
    pub flags: u32,
    /// 0, or bits `CVC_RESIZE_...`.
    pub resize_flags: u32,
    /// Of the resize.
    pub filter: cvc_filter_t,
    /// With `CVC_PREPROCESS_FLIP`: 0 reverses the rows, more than 0 the columns, less than 0 both.
    pub flip_code: i32,
    /// Host memory, read during the call: what is left of each image before anything else. Null where `crop_count` is 0.
    pub crops: *const cvc_crop_t,
    /// 0: whole images; 1: the same of each; else one an image.
    pub crop_count: i32,
    /// What elements are converted to, of one lane; `CVC_DTYPE_NONE`: there is no such step, and the next three are not
    /// looked at.
    pub convert_dtype: cvc_dtype_t,
    /// Of the conversion: `alpha * value + beta`, rounded as `round` says.
    pub alpha: f64,
    pub beta: f64,
    pub round: cvc_round_t,
    /// Of frames that are NV12.
    pub color_matrix: cvc_color_matrix_t,
    /// Null: there is no such step. Dimensions of its base and scale are 1 or those of `dst`, as if in its layout; they
    /// belong to places and channels of the result.
    pub normalize: *const cvc_normalize_params_t,
}

/// One item of queued work that may run.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cvc_host_step_t {
    pub struct_size: usize,
    /// Its stream, as `cvc_stream_get_id` names it.
    pub stream_id: u64,
    pub device: i32,
    pub kind: cvc_host_step_kind_t,
}

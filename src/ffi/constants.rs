//! Every enumeration value of the C interface, as fixed-width integers.

/// What a call comes to: `CVC_STATUS_OK`, or why it did not happen. A failed call has changed nothing.
pub type cvc_status_t = i32;
/// Success.
pub const CVC_STATUS_OK: cvc_status_t = 0;
/// A value out of its range that has no status of its own.
pub const CVC_STATUS_INVALID_ARGUMENT: cvc_status_t = 1;
/// A required pointer is null.
pub const CVC_STATUS_NULL_POINTER: cvc_status_t = 2;
/// A null handle, or a value that never was a handle.
pub const CVC_STATUS_INVALID_HANDLE: cvc_status_t = 3;
/// The object was released already; a double release too.
pub const CVC_STATUS_STALE_HANDLE: cvc_status_t = 4;
/// A handle of another kind: a tensor passed as an image.
pub const CVC_STATUS_WRONG_KIND: cvc_status_t = 5;
/// The rank is not 1 to 15, or not the one expected.
pub const CVC_STATUS_INVALID_RANK: cvc_status_t = 6;
/// A negative or impossible dimension, or a shape that does not fit.
pub const CVC_STATUS_INVALID_SHAPE: cvc_status_t = 7;
/// A byte count overflows 63 bits.
pub const CVC_STATUS_OVERFLOW: cvc_status_t = 8;
/// Strides overlap, are no multiple of the element, or split padding.
pub const CVC_STATUS_INVALID_STRIDES: cvc_status_t = 9;
/// An unknown enumeration value or flag bit.
pub const CVC_STATUS_INVALID_ENUM: cvc_status_t = 10;
/// A struct_size that no version of the struct has.
pub const CVC_STATUS_INVALID_STRUCT_SIZE: cvc_status_t = 11;
/// A layout that is malformed, or of another length than the rank.
pub const CVC_STATUS_INVALID_LAYOUT: cvc_status_t = 12;
/// An alignment that is not a power of two, or an address that is not aligned.
pub const CVC_STATUS_INVALID_ALIGNMENT: cvc_status_t = 13;
/// A value such as NaN where a number is needed.
pub const CVC_STATUS_INVALID_VALUE: cvc_status_t = 14;
/// A negative limit.
pub const CVC_STATUS_INVALID_LIMIT: cvc_status_t = 15;
/// Objects, or an object and a stream, of different devices.
pub const CVC_STATUS_DEVICE_MISMATCH: cvc_status_t = 16;
/// Shapes or sizes of two arguments do not go together.
pub const CVC_STATUS_SHAPE_MISMATCH: cvc_status_t = 17;
/// Dtypes or formats of two arguments do not go together.
pub const CVC_STATUS_DTYPE_MISMATCH: cvc_status_t = 18;
/// A batch over its capacity.
pub const CVC_STATUS_CAPACITY_EXCEEDED: cvc_status_t = 19;
/// A pop of more than a batch holds.
pub const CVC_STATUS_CAPACITY_UNDERFLOW: cvc_status_t = 20;
/// An index outside of what there is.
pub const CVC_STATUS_INVALID_INDEX: cvc_status_t = 21;
/// No device has this ordinal.
pub const CVC_STATUS_INVALID_DEVICE: cvc_status_t = 22;
/// Not a stream that can be used here.
pub const CVC_STATUS_INVALID_STREAM: cvc_status_t = 23;
/// Not an event that can be used here.
pub const CVC_STATUS_INVALID_EVENT: cvc_status_t = 24;
/// This combination is not supported.
pub const CVC_STATUS_NOT_SUPPORTED: cvc_status_t = 25;
/// Work still runs: the answer of a query, or a timeout that passed.
pub const CVC_STATUS_NOT_READY: cvc_status_t = 26;
/// The device has no memory left, after all that could be given up was.
pub const CVC_STATUS_OUT_OF_MEMORY: cvc_status_t = 27;
/// The hard memory limit refuses it.
pub const CVC_STATUS_LIMIT_EXCEEDED: cvc_status_t = 28;
/// The CUDA driver is not installed.
pub const CVC_STATUS_NO_DRIVER: cvc_status_t = 29;
/// The CUDA driver is older than the library needs.
pub const CVC_STATUS_DRIVER_TOO_OLD: cvc_status_t = 30;
/// The driver sees no device.
pub const CVC_STATUS_NO_DEVICE: cvc_status_t = 31;
/// The library has no kernels for this device.
pub const CVC_STATUS_NO_KERNEL_IMAGE: cvc_status_t = 32;
/// The driver failed; the message has its code and name.
pub const CVC_STATUS_DEVICE_ERROR: cvc_status_t = 33;
/// An earlier fault lost the device context; every later call says so.
pub const CVC_STATUS_CONTEXT_LOST: cvc_status_t = 34;
/// The stream captures a graph, and this call may not take part.
pub const CVC_STATUS_CAPTURING: cvc_status_t = 35;
/// The process was forked after the library was used; the child cannot use it.
pub const CVC_STATUS_FORKED: cvc_status_t = 36;
/// A bug in libcvc was caught.
pub const CVC_STATUS_INTERNAL: cvc_status_t = 37;

/// Element type: the kind in the low 8 bits, the number of lanes less one above. A tensor's dimension counts elements, so
/// that `CVC_DTYPE_3U8` is a whole RGB pixel.
pub type cvc_dtype_t = u32;
/// No dtype, where a default is taken.
pub const CVC_DTYPE_NONE: cvc_dtype_t = 0;
pub const CVC_DTYPE_U8: cvc_dtype_t = 1;
pub const CVC_DTYPE_S8: cvc_dtype_t = 2;
pub const CVC_DTYPE_U16: cvc_dtype_t = 3;
pub const CVC_DTYPE_S16: cvc_dtype_t = 4;
pub const CVC_DTYPE_U32: cvc_dtype_t = 5;
pub const CVC_DTYPE_S32: cvc_dtype_t = 6;
pub const CVC_DTYPE_U64: cvc_dtype_t = 7;
pub const CVC_DTYPE_S64: cvc_dtype_t = 8;
pub const CVC_DTYPE_F16: cvc_dtype_t = 9;
pub const CVC_DTYPE_F32: cvc_dtype_t = 10;
pub const CVC_DTYPE_F64: cvc_dtype_t = 11;
pub const CVC_DTYPE_C64: cvc_dtype_t = 12;
pub const CVC_DTYPE_C128: cvc_dtype_t = 13;
pub const CVC_DTYPE_2U8: cvc_dtype_t = 0x101;
pub const CVC_DTYPE_2S8: cvc_dtype_t = 0x102;
pub const CVC_DTYPE_2U16: cvc_dtype_t = 0x103;
pub const CVC_DTYPE_2S16: cvc_dtype_t = 0x104;
pub const CVC_DTYPE_2U32: cvc_dtype_t = 0x105;
pub const CVC_DTYPE_2S32: cvc_dtype_t = 0x106;
pub const CVC_DTYPE_2U64: cvc_dtype_t = 0x107;
pub const CVC_DTYPE_2S64: cvc_dtype_t = 0x108;
pub const CVC_DTYPE_2F16: cvc_dtype_t = 0x109;
pub const CVC_DTYPE_2F32: cvc_dtype_t = 0x10a;
pub const CVC_DTYPE_2F64: cvc_dtype_t = 0x10b;
pub const CVC_DTYPE_2C64: cvc_dtype_t = 0x10c;
pub const CVC_DTYPE_2C128: cvc_dtype_t = 0x10d;
pub const CVC_DTYPE_3U8: cvc_dtype_t = 0x201;
pub const CVC_DTYPE_3S8: cvc_dtype_t = 0x202;
pub const CVC_DTYPE_3U16: cvc_dtype_t = 0x203;
pub const CVC_DTYPE_3S16: cvc_dtype_t = 0x204;
pub const CVC_DTYPE_3U32: cvc_dtype_t = 0x205;
pub const CVC_DTYPE_3S32: cvc_dtype_t = 0x206;
pub const CVC_DTYPE_3U64: cvc_dtype_t = 0x207;
pub const CVC_DTYPE_3S64: cvc_dtype_t = 0x208;
pub const CVC_DTYPE_3F16: cvc_dtype_t = 0x209;
pub const CVC_DTYPE_3F32: cvc_dtype_t = 0x20a;
pub const CVC_DTYPE_3F64: cvc_dtype_t = 0x20b;
pub const CVC_DTYPE_3C64: cvc_dtype_t = 0x20c;
pub const CVC_DTYPE_4U8: cvc_dtype_t = 0x301;
pub const CVC_DTYPE_4S8: cvc_dtype_t = 0x302;
pub const CVC_DTYPE_4U16: cvc_dtype_t = 0x303;
pub const CVC_DTYPE_4S16: cvc_dtype_t = 0x304;
pub const CVC_DTYPE_4U32: cvc_dtype_t = 0x305;
pub const CVC_DTYPE_4S32: cvc_dtype_t = 0x306;
pub const CVC_DTYPE_4U64: cvc_dtype_t = 0x307;
pub const CVC_DTYPE_4S64: cvc_dtype_t = 0x308;
pub const CVC_DTYPE_4F16: cvc_dtype_t = 0x309;
pub const CVC_DTYPE_4F32: cvc_dtype_t = 0x30a;
pub const CVC_DTYPE_4F64: cvc_dtype_t = 0x30b;
pub const CVC_DTYPE_4C64: cvc_dtype_t = 0x30c;

/// Format of an image: planes, channels, their order and dtype, and how chroma is subsampled. `_ER` is extended (full)
/// range, a last `P` one plane a channel. `cvc_format_get_info` tells the details.
pub type cvc_format_t = u32;
pub const CVC_FORMAT_NONE: cvc_format_t = 0;
pub const CVC_FORMAT_U8: cvc_format_t = 1;
pub const CVC_FORMAT_S8: cvc_format_t = 2;
pub const CVC_FORMAT_U16: cvc_format_t = 3;
pub const CVC_FORMAT_S16: cvc_format_t = 4;
pub const CVC_FORMAT_U32: cvc_format_t = 5;
pub const CVC_FORMAT_S32: cvc_format_t = 6;
pub const CVC_FORMAT_F16: cvc_format_t = 7;
pub const CVC_FORMAT_F32: cvc_format_t = 8;
pub const CVC_FORMAT_F64: cvc_format_t = 9;
pub const CVC_FORMAT_2S16: cvc_format_t = 10;
pub const CVC_FORMAT_2F16: cvc_format_t = 11;
pub const CVC_FORMAT_2F32: cvc_format_t = 12;
pub const CVC_FORMAT_C64: cvc_format_t = 13;
pub const CVC_FORMAT_2C64: cvc_format_t = 14;
pub const CVC_FORMAT_C128: cvc_format_t = 15;
pub const CVC_FORMAT_2C128: cvc_format_t = 16;
pub const CVC_FORMAT_Y8: cvc_format_t = 17;
pub const CVC_FORMAT_Y8_ER: cvc_format_t = 18;
pub const CVC_FORMAT_Y16: cvc_format_t = 19;
pub const CVC_FORMAT_Y16_ER: cvc_format_t = 20;
pub const CVC_FORMAT_NV12: cvc_format_t = 21;
pub const CVC_FORMAT_NV12_ER: cvc_format_t = 22;
pub const CVC_FORMAT_NV21: cvc_format_t = 23;
pub const CVC_FORMAT_NV21_ER: cvc_format_t = 24;
pub const CVC_FORMAT_NV24: cvc_format_t = 25;
pub const CVC_FORMAT_NV24_ER: cvc_format_t = 26;
pub const CVC_FORMAT_UYVY: cvc_format_t = 27;
pub const CVC_FORMAT_UYVY_ER: cvc_format_t = 28;
pub const CVC_FORMAT_VYUY: cvc_format_t = 29;
pub const CVC_FORMAT_VYUY_ER: cvc_format_t = 30;
pub const CVC_FORMAT_YUYV: cvc_format_t = 31;
pub const CVC_FORMAT_YUYV_ER: cvc_format_t = 32;
pub const CVC_FORMAT_YUV8: cvc_format_t = 33;
pub const CVC_FORMAT_YUV8_ER: cvc_format_t = 34;
pub const CVC_FORMAT_YUV8P: cvc_format_t = 35;
pub const CVC_FORMAT_YUV8P_ER: cvc_format_t = 36;
pub const CVC_FORMAT_RGB8: cvc_format_t = 37;
pub const CVC_FORMAT_BGR8: cvc_format_t = 38;
pub const CVC_FORMAT_RGBA8: cvc_format_t = 39;
pub const CVC_FORMAT_BGRA8: cvc_format_t = 40;
pub const CVC_FORMAT_RGB8P: cvc_format_t = 41;
pub const CVC_FORMAT_BGR8P: cvc_format_t = 42;
pub const CVC_FORMAT_RGBA8P: cvc_format_t = 43;
pub const CVC_FORMAT_BGRA8P: cvc_format_t = 44;
pub const CVC_FORMAT_RGBF16: cvc_format_t = 45;
pub const CVC_FORMAT_BGRF16: cvc_format_t = 46;
pub const CVC_FORMAT_RGBAF16: cvc_format_t = 47;
pub const CVC_FORMAT_BGRAF16: cvc_format_t = 48;
pub const CVC_FORMAT_RGBF16P: cvc_format_t = 49;
pub const CVC_FORMAT_BGRF16P: cvc_format_t = 50;
pub const CVC_FORMAT_RGBAF16P: cvc_format_t = 51;
pub const CVC_FORMAT_BGRAF16P: cvc_format_t = 52;
pub const CVC_FORMAT_RGBF32: cvc_format_t = 53;
pub const CVC_FORMAT_BGRF32: cvc_format_t = 54;
pub const CVC_FORMAT_RGBAF32: cvc_format_t = 55;
pub const CVC_FORMAT_BGRAF32: cvc_format_t = 56;
pub const CVC_FORMAT_RGBF32P: cvc_format_t = 57;
pub const CVC_FORMAT_BGRF32P: cvc_format_t = 58;
pub const CVC_FORMAT_RGBAF32P: cvc_format_t = 59;
pub const CVC_FORMAT_BGRAF32P: cvc_format_t = 60;
pub const CVC_FORMAT_HSV8: cvc_format_t = 61;
pub const CVC_FORMAT_CMYK8: cvc_format_t = 62;
pub const CVC_FORMAT_YCCK8: cvc_format_t = 63;

/// Resampling filter, with Pillow's meaning. `CVC_FILTER_AREA` is known but refused by pillow_resize.
pub type cvc_filter_t = i32;
pub const CVC_FILTER_NEAREST: cvc_filter_t = 0;
pub const CVC_FILTER_LINEAR: cvc_filter_t = 1;
pub const CVC_FILTER_CUBIC: cvc_filter_t = 2;
pub const CVC_FILTER_AREA: cvc_filter_t = 3;
pub const CVC_FILTER_LANCZOS: cvc_filter_t = 4;
pub const CVC_FILTER_HAMMING: cvc_filter_t = 5;
pub const CVC_FILTER_BOX: cvc_filter_t = 6;
/// Flag of pillow_resize: the horizontal pass always comes first, as in Pillow up to 12.3. Without it the order is
/// Pillow 13's: vertical first exactly when the height shrinks by more than twice what the width shrinks by.
pub const CVC_RESIZE_PILLOW_12_PASS_ORDER: u32 = 1;
/// Flag of pillow_resize on U8 with 2 or 4 channels: the last channel is alpha, and the others are premultiplied by it
/// for the resize, as Pillow's `Image.resize` does for LA and RGBA.
pub const CVC_RESIZE_PREMULTIPLY_ALPHA: u32 = 2;

/// How convert_to rounds to integers.
pub type cvc_round_t = i32;
/// To the nearest, halves to even.
pub const CVC_ROUND_NEAREST: cvc_round_t = 0;
/// Towards zero.
pub const CVC_ROUND_TRUNCATE: cvc_round_t = 1;

/// Whose entries a call means.
pub type cvc_scope_t = i32;
/// Every thread's.
pub const CVC_SCOPE_GLOBAL: cvc_scope_t = 0;
/// The calling thread's.
pub const CVC_SCOPE_LOCAL: cvc_scope_t = 1;

/// What work does with an object's memory.
pub type cvc_access_t = i32;
pub const CVC_ACCESS_READ: cvc_access_t = 1;
pub const CVC_ACCESS_WRITE: cvc_access_t = 2;
pub const CVC_ACCESS_READ_WRITE: cvc_access_t = 3;

/// What the library runs on.
pub type cvc_backend_t = i32;
/// The CPU: memory, streams and operators without a GPU, with the same results.
pub const CVC_BACKEND_HOST: cvc_backend_t = 1;
pub const CVC_BACKEND_CUDA: cvc_backend_t = 2;

/// How grave a log message is.
pub type cvc_log_level_t = i32;
pub const CVC_LOG_ERROR: cvc_log_level_t = 1;
pub const CVC_LOG_WARNING: cvc_log_level_t = 2;
pub const CVC_LOG_INFO: cvc_log_level_t = 3;

/// Flag of `cvc_stream_create`: the stream orders with the legacy default stream, as CUDA's blocking streams do.
pub const CVC_STREAM_BLOCKING: u32 = 1;
/// Flag of `cvc_stream_register`: whoever captures on the stream says so, which spares a query a call.
pub const CVC_STREAM_ANNOUNCES_CAPTURES: u32 = 2;
/// Flag of `cvc_event_create`: `cvc_event_elapsed_ms` works on it.
pub const CVC_EVENT_TIMING: u32 = 1;

/// An instrument of `cvc_backend_instrument`: counts the calls that the library makes to its backend.
pub const CVC_INSTRUMENT_COUNT_CALLS: u32 = 1;
/// An instrument of `cvc_backend_instrument`: calls of the backend fail where `cvc_host_fault` says so.
pub const CVC_INSTRUMENT_FAULTS: u32 = 2;
/// An instrument of `cvc_backend_instrument`, on the host backend: accesses to memory that nothing orders are reported.
pub const CVC_INSTRUMENT_RACE_CHECK: u32 = 4;
/// Asked for as an instrument of `cvc_backend_instrument`: work queued on the host backend runs only in steps, which
/// `cvc_host_step` and the waits of the host take.
pub const CVC_INSTRUMENT_STEPPED: u32 = 8;

/// An instrument of `cvc_backend_instrument`, on the host backend: `cvc_host_capture_begin` lets streams capture graphs.
pub const CVC_INSTRUMENT_CAPTURES: u32 = 16;

/// What `cvc_host_step` would run.
pub type cvc_host_step_kind_t = i32;
/// A copy, a fill or a launch.
pub const CVC_HOST_STEP_WORK: cvc_host_step_kind_t = 1;
/// The completion of an event, or of what a wait of the host waits for.
pub const CVC_HOST_STEP_RECORD: cvc_host_step_kind_t = 2;
/// Flag of normalize: the scale is a standard deviation, and 1 / sqrt(scale^2 + epsilon) is used.
pub const CVC_NORMALIZE_SCALE_IS_STDDEV: u32 = 1;
/// Which luma coefficients frames in YCbCr were made with.
pub type cvc_color_matrix_t = i32;
/// ITU-R BT.601: standard definition.
pub const CVC_COLOR_MATRIX_BT601: cvc_color_matrix_t = 0;
/// ITU-R BT.709: high definition.
pub const CVC_COLOR_MATRIX_BT709: cvc_color_matrix_t = 1;
/// Flag of preprocess: images are flipped as `flip_code` says.
pub const CVC_PREPROCESS_FLIP: u32 = 1;
/// Flag of preprocess: channels 0 and 2 are exchanged, RGB with BGR; an alpha stays where it is.
pub const CVC_PREPROCESS_SWAP_CHANNELS: u32 = 2;
/// Flag of preprocess on tensors: `src` has NV12 frames of limited range, luma 16 to 235, chroma 16 to 240.
pub const CVC_PREPROCESS_NV12: u32 = 4;
/// Flag of preprocess on tensors: `src` has NV12 frames of full range, 0 to 255.
pub const CVC_PREPROCESS_NV12_FULL_RANGE: u32 = 8;
/// Flag of `cvc_tensor_wrap` and `cvc_image_wrap`: idle shells of earlier wraps are kept for the wraps that follow.
pub const CVC_WRAP_KEEP_SHELLS: u32 = 1;

/// The most dimensions that a tensor has.
pub const CVC_MAX_RANK: usize = 15;
/// The most planes that an image has.
pub const CVC_MAX_PLANES: usize = 6;
/// The calling thread's current device, where a device ordinal is asked for.
pub const CVC_DEVICE_CURRENT: i32 = -1;
/// Version of the binary interface. Programs built for one work with every library of the same.
pub const CVC_ABI_VERSION: u32 = 1;

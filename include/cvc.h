/**
 * C interface of libcvc, a cache of GPU objects: tensors, images, batches and memory that are kept after their release
 * and handed out again, ordered on streams. Generated from src/ffi; do not edit.
 */

#ifndef CVC_H
#define CVC_H

#include <stddef.h>
#include <stdint.h>

/** Version of this header; cvc_version() gives the library's. */
#define CVC_VERSION_MAJOR 0
#define CVC_VERSION_MINOR 1
#define CVC_VERSION_PATCH 0

/**
 * A stream as its owner made it: a CUstream or cudaStream_t, or what cvc_stream_create gave. Null is the same as
 * CVC_STREAM_LEGACY.
 */
typedef struct CUstream_st *cvc_stream_t;
/** An event as its owner made it: a CUevent or cudaEvent_t, or what cvc_event_create gave. */
typedef struct CUevent_st *cvc_event_t;
/** The legacy default stream of the thread's current device. */
#define CVC_STREAM_LEGACY ((cvc_stream_t)1)
/** The calling thread's own default stream on its current device. */
#define CVC_STREAM_PER_THREAD ((cvc_stream_t)2)
/** The calling thread's current device, where a device ordinal is asked for. */
#define CVC_DEVICE_CURRENT (-1)
/** No stream: the caller names no consumer, so memory with work still pending is not considered. */
#define CVC_STREAM_NONE ((cvc_stream_t)-1)



/**
 * Flag of pillow_resize: the horizontal pass always comes first, as in Pillow up to 12.3. Without it the order is
 * Pillow 13's: vertical first exactly when the height shrinks by more than twice what the width shrinks by.
 */
#define CVC_RESIZE_PILLOW_12_PASS_ORDER 1

/**
 * Flag of pillow_resize on U8 with 2 or 4 channels: the last channel is alpha, and the others are premultiplied by it
 * for the resize, as Pillow's `Image.resize` does for LA and RGBA.
 */
#define CVC_RESIZE_PREMULTIPLY_ALPHA 2

/**
 * Flag of `cvc_stream_create`: the stream orders with the legacy default stream, as CUDA's blocking streams do.
 */
#define CVC_STREAM_BLOCKING 1

/**
 * Flag of `cvc_stream_register`: whoever captures on the stream says so, which spares a query a call.
 */
#define CVC_STREAM_ANNOUNCES_CAPTURES 2

/**
 * Flag of `cvc_event_create`: `cvc_event_elapsed_ms` works on it.
 */
#define CVC_EVENT_TIMING 1

/**
 * An instrument of `cvc_backend_instrument`: counts the calls that the library makes to its backend.
 */
#define CVC_INSTRUMENT_COUNT_CALLS 1

/**
 * An instrument of `cvc_backend_instrument`: calls of the backend fail where `cvc_host_fault` says so.
 */
#define CVC_INSTRUMENT_FAULTS 2

/**
 * An instrument of `cvc_backend_instrument`, on the host backend: accesses to memory that nothing orders are reported.
 */
#define CVC_INSTRUMENT_RACE_CHECK 4

/**
 * Asked for as an instrument of `cvc_backend_instrument`: work queued on the host backend runs only in steps, which
 * `cvc_host_step` and the waits of the host take.
 */
#define CVC_INSTRUMENT_STEPPED 8

/**
 * An instrument of `cvc_backend_instrument`, on the host backend: `cvc_host_capture_begin` lets streams capture graphs.
 */
#define CVC_INSTRUMENT_CAPTURES 16

/**
 * Flag of normalize: the scale is a standard deviation, and 1 / sqrt(scale^2 + epsilon) is used.
 */
#define CVC_NORMALIZE_SCALE_IS_STDDEV 1

/**
 * Flag of preprocess: images are flipped as `flip_code` says.
 */
#define CVC_PREPROCESS_FLIP 1

/**
 * Flag of preprocess: channels 0 and 2 are exchanged, RGB with BGR; an alpha stays where it is.
 */
#define CVC_PREPROCESS_SWAP_CHANNELS 2

/**
 * Flag of preprocess on tensors: `src` has NV12 frames of limited range, luma 16 to 235, chroma 16 to 240.
 */
#define CVC_PREPROCESS_NV12 4

/**
 * Flag of preprocess on tensors: `src` has NV12 frames of full range, 0 to 255.
 */
#define CVC_PREPROCESS_NV12_FULL_RANGE 8

/**
 * Flag of `cvc_tensor_wrap` and `cvc_image_wrap`: idle shells of earlier wraps are kept for the wraps that follow.
 */
#define CVC_WRAP_KEEP_SHELLS 1

/**
 * The most dimensions that a tensor has.
 */
#define CVC_MAX_RANK 15

/**
 * The most planes that an image has.
 */
#define CVC_MAX_PLANES 6

/**
 * Version of the binary interface. Programs built for one work with every library of the same.
 */
#define CVC_ABI_VERSION 1

/**
 * What a call comes to: `CVC_STATUS_OK`, or why it did not happen. A failed call has changed nothing.
 */
typedef int32_t cvc_status_t;

/**
 * A cache: an index of objects with retention limits of its own, over the process's one pool of memory.
 */
typedef struct cvc_cache *cvc_cache_t;

/**
 * How a cache is made.
 */
typedef struct cvc_cache_options_t {
  size_t struct_size;
  /**
   * Retention limit of every device, in bytes; -1: half of the device's memory.
   */
  int64_t limit;
  /**
   * 0.
   */
  uint32_t flags;
} cvc_cache_options_t;

/**
 * Whose entries a call means.
 */
typedef int32_t cvc_scope_t;

/**
 * Counts and bytes of one device in one cache. `count` and `bytes` are of indexed live, idle and pending entries; all is
 * exact while no other call is in flight.
 */
typedef struct cvc_cache_stats_t {
  size_t struct_size;
  /**
   * The retention limit.
   */
  uint64_t limit_bytes;
  /**
   * Indexed entries.
   */
  uint64_t count;
  /**
   * What they are charged.
   */
  uint64_t bytes;
  /**
   * The highest `bytes` since `cvc_cache_reset_peak`.
   */
  uint64_t peak_bytes;
  /**
   * Live objects that own memory, indexed or not.
   */
  uint64_t live_count;
  uint64_t live_bytes;
  /**
   * The part of them that is not indexed.
   */
  uint64_t unindexed_count;
  uint64_t unindexed_bytes;
  /**
   * Released, their work seen complete.
   */
  uint64_t idle_count;
  uint64_t idle_bytes;
  /**
   * Released, their work not seen complete.
   */
  uint64_t pending_count;
  uint64_t pending_bytes;
  /**
   * Live wraps of foreign memory.
   */
  uint64_t wrapped_count;
  /**
   * Live views: reshapes, and images seen as tensors.
   */
  uint64_t view_count;
  /**
   * Creations served by an entry of the same shape and strides.
   */
  uint64_t hits_exact;
  /**
   * Creations served by a larger entry.
   */
  uint64_t hits_fit;
  /**
   * The part of both whose entry's work was not seen complete.
   */
  uint64_t hits_pending;
  /**
   * Creations that took new memory.
   */
  uint64_t misses;
  /**
   * Entries that a limit or a lack of memory drove out.
   */
  uint64_t evictions;
  /**
   * Live objects of every kind: 0 when nothing leaks.
   */
  uint64_t live_handles;
  /**
   * Bytes that all caches of the process have from the driver for this device.
   */
  uint64_t driver_bytes;
  /**
   * The part of them that is in no object of any cache: held by the pool, on its way back, or a table of resize
   * coefficients (16 MiB of them at most are kept for later calls).
   */
  uint64_t free_bytes;
} cvc_cache_stats_t;

/**
 * A tensor: device memory with a shape, strides, a dtype and a layout.
 */
typedef struct cvc_tensor *cvc_tensor_t;

/**
 * What the library runs on.
 */
typedef int32_t cvc_backend_t;

/**
 * What a device is.
 */
typedef struct cvc_device_info_t {
  size_t struct_size;
  cvc_backend_t backend;
  int32_t reserved;
  /**
   * Bytes.
   */
  uint64_t total_memory;
  /**
   * Bytes that are free just now.
   */
  uint64_t free_memory;
  /**
   * NUL-terminated.
   */
  char name[256];
} cvc_device_info_t;

/**
 * How grave a log message is.
 */
typedef int32_t cvc_log_level_t;

/**
 * Gets messages of the library; see `cvc_set_log_callback`.
 */
typedef void (*cvc_log_fn)(cvc_log_level_t level, const char *message, void *context);

/**
 * What `cvc_host_step` would run.
 */
typedef int32_t cvc_host_step_kind_t;

/**
 * One item of queued work that may run.
 */
typedef struct cvc_host_step_t {
  size_t struct_size;
  /**
   * Its stream, as `cvc_stream_get_id` names it.
   */
  uint64_t stream_id;
  int32_t device;
  cvc_host_step_kind_t kind;
} cvc_host_step_t;

/**
 * Format of an image: planes, channels, their order and dtype, and how chroma is subsampled. `_ER` is extended (full)
 * range, a last `P` one plane a channel. `cvc_format_get_info` tells the details.
 */
typedef uint32_t cvc_format_t;

/**
 * Element type: the kind in the low 8 bits, the number of lanes less one above. A tensor's dimension counts elements, so
 * that `CVC_DTYPE_3U8` is a whole RGB pixel.
 */
typedef uint32_t cvc_dtype_t;

/**
 * What a format is.
 */
typedef struct cvc_format_info_t {
  size_t struct_size;
  int32_t plane_count;
  /**
   * Channels of all planes together.
   */
  int32_t channel_count;
  /**
   * A plane's sample: NV12's chroma plane has `CVC_DTYPE_2U8`.
   */
  cvc_dtype_t plane_dtype[CVC_MAX_PLANES];
  /**
   * A plane has ceil(width / 2^shift) samples in a row, and rows likewise.
   */
  int32_t plane_width_shift[CVC_MAX_PLANES];
  int32_t plane_height_shift[CVC_MAX_PLANES];
} cvc_format_info_t;

/**
 * An image to make.
 */
typedef struct cvc_image_desc_t {
  size_t struct_size;
  int32_t device;
  cvc_format_t format;
  /**
   * Pixels.
   */
  int32_t width;
  int32_t height;
  /**
   * Bytes, a power of two; 0: 32.
   */
  int64_t row_align;
  /**
   * Bytes, a power of two; 0: 512.
   */
  int64_t base_align;
} cvc_image_desc_t;

/**
 * An image: one to six planes of device memory of one format.
 */
typedef struct cvc_image *cvc_image_t;

/**
 * One plane of an image: 24 bytes, also in device memory.
 */
typedef struct cvc_image_plane_t {
  void *data;
  /**
   * Bytes.
   */
  int64_t row_stride;
  /**
   * Samples.
   */
  int32_t width;
  int32_t height;
} cvc_image_plane_t;

/**
 * An image as it lies in memory.
 */
typedef struct cvc_image_data_t {
  size_t struct_size;
  int32_t device;
  cvc_format_t format;
  int32_t width;
  int32_t height;
  int32_t plane_count;
  /**
   * In `cvc_image_wrap`: 0 or `CVC_WRAP_KEEP_SHELLS`.
   */
  uint32_t flags;
  struct cvc_image_plane_t planes[CVC_MAX_PLANES];
} cvc_image_data_t;

/**
 * Tells the owner of wrapped memory, once, that nobody observes it any more and that its work is done. Runs inside a
 * library call of any thread, with no lock of the library held; it may call the library. Where a callback lets
 * go of another wrap, that one's callback runs after it has returned, on the same thread.
 */
typedef void (*cvc_release_fn)(void *context);

/**
 * What work does with an object's memory.
 */
typedef int32_t cvc_access_t;

/**
 * A batch of images of any sizes and formats.
 */
typedef struct cvc_image_batch *cvc_image_batch_t;

/**
 * What an image batch holds.
 */
typedef struct cvc_image_batch_data_t {
  size_t struct_size;
  int32_t device;
  int32_t count;
  int32_t capacity;
  /**
   * The format that all images share; `CVC_FORMAT_NONE` when empty or mixed.
   */
  cvc_format_t unique_format;
  /**
   * The largest width and the largest height; 0 when empty.
   */
  int32_t max_width;
  int32_t max_height;
  /**
   * Device memory: `count` records of type `cvc_image_record_t`; null unless a stream was passed.
   */
  void *records;
  /**
   * Device memory: `count` formats, each in 8 bytes; null unless a stream was passed.
   */
  void *formats;
} cvc_image_batch_data_t;

/**
 * Resampling filter, with Pillow's meaning. `CVC_FILTER_AREA` is known but refused by pillow_resize.
 */
typedef int32_t cvc_filter_t;

/**
 * How convert_to rounds to integers.
 */
typedef int32_t cvc_round_t;

/**
 * Parameters of normalize.
 */
typedef struct cvc_normalize_params_t {
  size_t struct_size;
  /**
   * F32 tensors in src's layout, each dimension 1 or src's; null: the values below.
   */
  cvc_tensor_t base;
  cvc_tensor_t scale;
  float base_values[4];
  /**
   * 1, or the number of channels.
   */
  int32_t base_count;
  float scale_values[4];
  int32_t scale_count;
  float global_scale;
  float global_shift;
  float epsilon;
  /**
   * 0 or `CVC_NORMALIZE_SCALE_IS_STDDEV`.
   */
  uint32_t flags;
  /**
   * Of the `_new` forms: dst's dtype; `CVC_DTYPE_NONE`: src's.
   */
  cvc_dtype_t dst_dtype;
} cvc_normalize_params_t;

/**
 * A rectangle of an image, in pixels: 16 bytes.
 */
typedef struct cvc_crop_t {
  /**
   * Of the first pixel, 0 or more.
   */
  int32_t x;
  int32_t y;
  /**
   * 1 or more; all of it lies within the image.
   */
  int32_t width;
  int32_t height;
} cvc_crop_t;

/**
 * Which luma coefficients frames in YCbCr were made with.
 */
typedef int32_t cvc_color_matrix_t;

/**
 * Parameters of preprocess. Zeros after `struct_size` ask for a resize with the nearest pixels and nothing else.
 */
typedef struct cvc_preprocess_params_t {
  size_t struct_size;
  /**
   * 0, or bits `CVC_PREPROCESS_...`.
   */
  uint32_t flags;
  /**
   * 0, or bits `CVC_RESIZE_...`.
   */
  uint32_t resize_flags;
  /**
   * Of the resize.
   */
  cvc_filter_t filter;
  /**
   * With `CVC_PREPROCESS_FLIP`: 0 reverses the rows, more than 0 the columns, less than 0 both.
   */
  int32_t flip_code;
  /**
   * Host memory, read during the call: what is left of each image before anything else. Null where `crop_count` is 0.
   */
  const struct cvc_crop_t *crops;
  /**
   * 0: whole images; 1: the same of each; else one an image.
   */
  int32_t crop_count;
  /**
   * What elements are converted to, of one lane; `CVC_DTYPE_NONE`: there is no such step, and the next three are not
   * looked at.
   */
  cvc_dtype_t convert_dtype;
  /**
   * Of the conversion: `alpha * value + beta`, rounded as `round` says.
   */
  double alpha;
  double beta;
  cvc_round_t round;
  /**
   * Of frames that are NV12.
   */
  cvc_color_matrix_t color_matrix;
  /**
   * Null: there is no such step. Dimensions of its base and scale are 1 or those of `dst`, as if in its layout; they
   * belong to places and channels of the result.
   */
  const struct cvc_normalize_params_t *normalize;
} cvc_preprocess_params_t;

/**
 * A tensor to make.
 */
typedef struct cvc_tensor_desc_t {
  size_t struct_size;
  /**
   * Ordinal, or -1: the thread's current device.
   */
  int32_t device;
  /**
   * 1 to 15.
   */
  int32_t rank;
  /**
   * Elements; 0 makes an empty tensor.
   */
  int64_t shape[CVC_MAX_RANK];
  cvc_dtype_t dtype;
  /**
   * One label a dimension, such as "NHWC", NUL-terminated; empty: none.
   */
  char layout[16];
  /**
   * 0.
   */
  uint32_t flags;
  /**
   * Bytes that rows start at a multiple of, a power of two; 0: 32, or more for larger elements; 1: packed. A row is
   * width times channels in a layout that ends with "WC", else the last dimension.
   */
  int64_t row_align;
  /**
   * Bytes that the memory starts at a multiple of, a power of two; 0: 512, or `row_align` where that is more.
   */
  int64_t base_align;
} cvc_tensor_desc_t;

/**
 * A tensor as it lies in memory.
 */
typedef struct cvc_tensor_data_t {
  size_t struct_size;
  int32_t device;
  int32_t rank;
  int64_t shape[CVC_MAX_RANK];
  /**
   * Bytes from one element of a dimension to the next.
   */
  int64_t strides[CVC_MAX_RANK];
  cvc_dtype_t dtype;
  char layout[16];
  /**
   * In `cvc_tensor_wrap`: 0 or `CVC_WRAP_KEEP_SHELLS`.
   */
  uint32_t flags;
  /**
   * Device memory; null for an empty tensor.
   */
  void *data;
} cvc_tensor_data_t;

/**
 * A batch of tensors of one rank, dtype and layout.
 */
typedef struct cvc_tensor_batch *cvc_tensor_batch_t;

/**
 * What a tensor batch holds.
 */
typedef struct cvc_tensor_batch_data_t {
  size_t struct_size;
  int32_t device;
  int32_t count;
  int32_t capacity;
  /**
   * -1 when empty.
   */
  int32_t rank;
  cvc_dtype_t dtype;
  char layout[16];
  /**
   * Device memory: `count` records of type `cvc_tensor_record_t`; null unless a stream was passed.
   */
  void *records;
} cvc_tensor_batch_data_t;

/**
 * What an image batch has in device memory for one image: 152 bytes.
 */
typedef struct cvc_image_record_t {
  int32_t plane_count;
  cvc_format_t format;
  struct cvc_image_plane_t planes[CVC_MAX_PLANES];
} cvc_image_record_t;

/**
 * What a tensor batch has in device memory for one tensor: 256 bytes.
 */
typedef struct cvc_tensor_record_t {
  void *data;
  int32_t rank;
  cvc_dtype_t dtype;
  int64_t shape[CVC_MAX_RANK];
  int64_t strides[CVC_MAX_RANK];
} cvc_tensor_record_t;

/**
 * Success.
 */
#define CVC_STATUS_OK 0

/**
 * A value out of its range that has no status of its own.
 */
#define CVC_STATUS_INVALID_ARGUMENT 1

/**
 * A required pointer is null.
 */
#define CVC_STATUS_NULL_POINTER 2

/**
 * A null handle, or a value that never was a handle.
 */
#define CVC_STATUS_INVALID_HANDLE 3

/**
 * The object was released already; a double release too.
 */
#define CVC_STATUS_STALE_HANDLE 4

/**
 * A handle of another kind: a tensor passed as an image.
 */
#define CVC_STATUS_WRONG_KIND 5

/**
 * The rank is not 1 to 15, or not the one expected.
 */
#define CVC_STATUS_INVALID_RANK 6

/**
 * A negative or impossible dimension, or a shape that does not fit.
 */
#define CVC_STATUS_INVALID_SHAPE 7

/**
 * A byte count overflows 63 bits.
 */
#define CVC_STATUS_OVERFLOW 8

/**
 * Strides overlap, are no multiple of the element, or split padding.
 */
#define CVC_STATUS_INVALID_STRIDES 9

/**
 * An unknown enumeration value or flag bit.
 */
#define CVC_STATUS_INVALID_ENUM 10

/**
 * A struct_size that no version of the struct has.
 */
#define CVC_STATUS_INVALID_STRUCT_SIZE 11

/**
 * A layout that is malformed, or of another length than the rank.
 */
#define CVC_STATUS_INVALID_LAYOUT 12

/**
 * An alignment that is not a power of two, or an address that is not aligned.
 */
#define CVC_STATUS_INVALID_ALIGNMENT 13

/**
 * A value such as NaN where a number is needed.
 */
#define CVC_STATUS_INVALID_VALUE 14

/**
 * A negative limit.
 */
#define CVC_STATUS_INVALID_LIMIT 15

/**
 * Objects, or an object and a stream, of different devices.
 */
#define CVC_STATUS_DEVICE_MISMATCH 16

/**
 * Shapes or sizes of two arguments do not go together.
 */
#define CVC_STATUS_SHAPE_MISMATCH 17

/**
 * Dtypes or formats of two arguments do not go together.
 */
#define CVC_STATUS_DTYPE_MISMATCH 18

/**
 * A batch over its capacity.
 */
#define CVC_STATUS_CAPACITY_EXCEEDED 19

/**
 * A pop of more than a batch holds.
 */
#define CVC_STATUS_CAPACITY_UNDERFLOW 20

/**
 * An index outside of what there is.
 */
#define CVC_STATUS_INVALID_INDEX 21

/**
 * No device has this ordinal.
 */
#define CVC_STATUS_INVALID_DEVICE 22

/**
 * Not a stream that can be used here.
 */
#define CVC_STATUS_INVALID_STREAM 23

/**
 * Not an event that can be used here.
 */
#define CVC_STATUS_INVALID_EVENT 24

/**
 * This combination is not supported.
 */
#define CVC_STATUS_NOT_SUPPORTED 25

/**
 * Work still runs: the answer of a query, or a timeout that passed.
 */
#define CVC_STATUS_NOT_READY 26

/**
 * The device has no memory left, after all that could be given up was.
 */
#define CVC_STATUS_OUT_OF_MEMORY 27

/**
 * The hard memory limit refuses it.
 */
#define CVC_STATUS_LIMIT_EXCEEDED 28

/**
 * The CUDA driver is not installed.
 */
#define CVC_STATUS_NO_DRIVER 29

/**
 * The CUDA driver is older than the library needs.
 */
#define CVC_STATUS_DRIVER_TOO_OLD 30

/**
 * The driver sees no device.
 */
#define CVC_STATUS_NO_DEVICE 31

/**
 * The library has no kernels for this device.
 */
#define CVC_STATUS_NO_KERNEL_IMAGE 32

/**
 * The driver failed; the message has its code and name.
 */
#define CVC_STATUS_DEVICE_ERROR 33

/**
 * An earlier fault lost the device context; every later call says so.
 */
#define CVC_STATUS_CONTEXT_LOST 34

/**
 * The stream captures a graph, and this call may not take part.
 */
#define CVC_STATUS_CAPTURING 35

/**
 * The process was forked after the library was used; the child cannot use it.
 */
#define CVC_STATUS_FORKED 36

/**
 * A bug in libcvc was caught.
 */
#define CVC_STATUS_INTERNAL 37

/**
 * No dtype, where a default is taken.
 */
#define CVC_DTYPE_NONE 0

#define CVC_DTYPE_U8 1

#define CVC_DTYPE_S8 2

#define CVC_DTYPE_U16 3

#define CVC_DTYPE_S16 4

#define CVC_DTYPE_U32 5

#define CVC_DTYPE_S32 6

#define CVC_DTYPE_U64 7

#define CVC_DTYPE_S64 8

#define CVC_DTYPE_F16 9

#define CVC_DTYPE_F32 10

#define CVC_DTYPE_F64 11

#define CVC_DTYPE_C64 12

#define CVC_DTYPE_C128 13

#define CVC_DTYPE_2U8 257

#define CVC_DTYPE_2S8 258

#define CVC_DTYPE_2U16 259

#define CVC_DTYPE_2S16 260

#define CVC_DTYPE_2U32 261

#define CVC_DTYPE_2S32 262

#define CVC_DTYPE_2U64 263

#define CVC_DTYPE_2S64 264

#define CVC_DTYPE_2F16 265

#define CVC_DTYPE_2F32 266

#define CVC_DTYPE_2F64 267

#define CVC_DTYPE_2C64 268

#define CVC_DTYPE_2C128 269

#define CVC_DTYPE_3U8 513

#define CVC_DTYPE_3S8 514

#define CVC_DTYPE_3U16 515

#define CVC_DTYPE_3S16 516

#define CVC_DTYPE_3U32 517

#define CVC_DTYPE_3S32 518

#define CVC_DTYPE_3U64 519

#define CVC_DTYPE_3S64 520

#define CVC_DTYPE_3F16 521

#define CVC_DTYPE_3F32 522

#define CVC_DTYPE_3F64 523

#define CVC_DTYPE_3C64 524

#define CVC_DTYPE_4U8 769

#define CVC_DTYPE_4S8 770

#define CVC_DTYPE_4U16 771

#define CVC_DTYPE_4S16 772

#define CVC_DTYPE_4U32 773

#define CVC_DTYPE_4S32 774

#define CVC_DTYPE_4U64 775

#define CVC_DTYPE_4S64 776

#define CVC_DTYPE_4F16 777

#define CVC_DTYPE_4F32 778

#define CVC_DTYPE_4F64 779

#define CVC_DTYPE_4C64 780

#define CVC_FORMAT_NONE 0

#define CVC_FORMAT_U8 1

#define CVC_FORMAT_S8 2

#define CVC_FORMAT_U16 3

#define CVC_FORMAT_S16 4

#define CVC_FORMAT_U32 5

#define CVC_FORMAT_S32 6

#define CVC_FORMAT_F16 7

#define CVC_FORMAT_F32 8

#define CVC_FORMAT_F64 9

#define CVC_FORMAT_2S16 10

#define CVC_FORMAT_2F16 11

#define CVC_FORMAT_2F32 12

#define CVC_FORMAT_C64 13

#define CVC_FORMAT_2C64 14

#define CVC_FORMAT_C128 15

#define CVC_FORMAT_2C128 16

#define CVC_FORMAT_Y8 17

#define CVC_FORMAT_Y8_ER 18

#define CVC_FORMAT_Y16 19

#define CVC_FORMAT_Y16_ER 20

#define CVC_FORMAT_NV12 21

#define CVC_FORMAT_NV12_ER 22

#define CVC_FORMAT_NV21 23

#define CVC_FORMAT_NV21_ER 24

#define CVC_FORMAT_NV24 25

#define CVC_FORMAT_NV24_ER 26

#define CVC_FORMAT_UYVY 27

#define CVC_FORMAT_UYVY_ER 28

#define CVC_FORMAT_VYUY 29

#define CVC_FORMAT_VYUY_ER 30

#define CVC_FORMAT_YUYV 31

#define CVC_FORMAT_YUYV_ER 32

#define CVC_FORMAT_YUV8 33

#define CVC_FORMAT_YUV8_ER 34

#define CVC_FORMAT_YUV8P 35

#define CVC_FORMAT_YUV8P_ER 36

#define CVC_FORMAT_RGB8 37

#define CVC_FORMAT_BGR8 38

#define CVC_FORMAT_RGBA8 39

#define CVC_FORMAT_BGRA8 40

#define CVC_FORMAT_RGB8P 41

#define CVC_FORMAT_BGR8P 42

#define CVC_FORMAT_RGBA8P 43

#define CVC_FORMAT_BGRA8P 44

#define CVC_FORMAT_RGBF16 45

#define CVC_FORMAT_BGRF16 46

#define CVC_FORMAT_RGBAF16 47

#define CVC_FORMAT_BGRAF16 48

#define CVC_FORMAT_RGBF16P 49

#define CVC_FORMAT_BGRF16P 50

#define CVC_FORMAT_RGBAF16P 51

#define CVC_FORMAT_BGRAF16P 52

#define CVC_FORMAT_RGBF32 53

#define CVC_FORMAT_BGRF32 54

#define CVC_FORMAT_RGBAF32 55

#define CVC_FORMAT_BGRAF32 56

#define CVC_FORMAT_RGBF32P 57

#define CVC_FORMAT_BGRF32P 58

#define CVC_FORMAT_RGBAF32P 59

#define CVC_FORMAT_BGRAF32P 60

#define CVC_FORMAT_HSV8 61

#define CVC_FORMAT_CMYK8 62

#define CVC_FORMAT_YCCK8 63

#define CVC_FILTER_NEAREST 0

#define CVC_FILTER_LINEAR 1

#define CVC_FILTER_CUBIC 2

#define CVC_FILTER_AREA 3

#define CVC_FILTER_LANCZOS 4

#define CVC_FILTER_HAMMING 5

#define CVC_FILTER_BOX 6

/**
 * To the nearest, halves to even.
 */
#define CVC_ROUND_NEAREST 0

/**
 * Towards zero.
 */
#define CVC_ROUND_TRUNCATE 1

/**
 * Every thread's.
 */
#define CVC_SCOPE_GLOBAL 0

/**
 * The calling thread's.
 */
#define CVC_SCOPE_LOCAL 1

#define CVC_ACCESS_READ 1

#define CVC_ACCESS_WRITE 2

#define CVC_ACCESS_READ_WRITE 3

/**
 * The CPU: memory, streams and operators without a GPU, with the same results.
 */
#define CVC_BACKEND_HOST 1

#define CVC_BACKEND_CUDA 2

#define CVC_LOG_ERROR 1

#define CVC_LOG_WARNING 2

#define CVC_LOG_INFO 3

/**
 * A copy, a fill or a launch.
 */
#define CVC_HOST_STEP_WORK 1

/**
 * The completion of an event, or of what a wait of the host waits for.
 */
#define CVC_HOST_STEP_RECORD 2

/**
 * ITU-R BT.601: standard definition.
 */
#define CVC_COLOR_MATRIX_BT601 0

/**
 * ITU-R BT.709: high definition.
 */
#define CVC_COLOR_MATRIX_BT709 1

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The process's own cache, which every language shares. It lives as long as the process: retain and release do nothing.
 */
cvc_status_t cvc_cache_default(cvc_cache_t *cache);

/**
 * A cache of its own: another index with retention limits of its own, over the process's one pool of memory.
 *
 * @param options may be null
 * @param[out] cache to be released with `cvc_cache_release`; objects may outlive it
 */
cvc_status_t cvc_cache_create(const struct cvc_cache_options_t *options, cvc_cache_t *cache);

/**
 * Adds a reference.
 */
cvc_status_t cvc_cache_retain(cvc_cache_t cache);

/**
 * Drops a reference. With the last one the cache keeps nothing any more: what it held goes back once its work is done;
 * live objects stay valid. Waits for nothing.
 */
cvc_status_t cvc_cache_release(cvc_cache_t cache);

/**
 * Waits for pending work, then gives idle and pending memory back to the driver. Live objects stay valid, but are not
 * indexed any more. `CVC_STATUS_CAPTURING` where a stream with such work captures; nothing has changed then.
 *
 * @param device ordinal, or -1: the current one
 * @param scope `CVC_SCOPE_GLOBAL`: every thread's entries, and what was given up on the device with work queued, by any
 *   cache; `CVC_SCOPE_LOCAL`: the calling thread's
 */
cvc_status_t cvc_cache_clear(cvc_cache_t cache,
                             int32_t device,
                             cvc_scope_t scope);

/**
 * The number of indexed entries: live, idle and pending; wraps count, and so does, at 0 bytes, the idle shell that the last
 * wrap of a kind leaves for the next. Views and streams do not.
 */
cvc_status_t cvc_cache_count(cvc_cache_t cache,
                             int32_t device,
                             cvc_scope_t scope,
                             uint64_t *count);

/**
 * The bytes that indexed entries of all threads are charged.
 */
cvc_status_t cvc_cache_bytes(cvc_cache_t cache, int32_t device, uint64_t *bytes);

/**
 * The retention limit; half of the device's memory until it is set.
 */
cvc_status_t cvc_cache_get_limit(cvc_cache_t cache, int32_t device, uint64_t *bytes);

/**
 * Sets the retention limit and evicts down to it, from any thread at any time. It bounds what is retained, and never
 * refuses an allocation: what does not fit is not indexed. Pending entries stay charged until their work is done. 0
 * retains nothing. More than the device has is accepted, with a warning; a negative limit is
 * `CVC_STATUS_INVALID_LIMIT`.
 */
cvc_status_t cvc_cache_set_limit(cvc_cache_t cache,
                                 int32_t device,
                                 int64_t bytes);

/**
 * All counts and bytes of one device. Asks the driver what is complete, and does not wait.
 */
cvc_status_t cvc_cache_stats(cvc_cache_t cache, int32_t device, struct cvc_cache_stats_t *stats);

/**
 * Makes the present bytes the peak.
 */
cvc_status_t cvc_cache_reset_peak(cvc_cache_t cache, int32_t device);

/**
 * Gives memory that is in no object back to the driver, down to `keep_bytes`. Touches no idle entry; waits for no work,
 * where the device has virtual memory (on any other the driver itself waits when it frees).
 */
cvc_status_t cvc_cache_trim(cvc_cache_t cache,
                            int32_t device,
                            uint64_t keep_bytes);

/**
 * Waits for the work of pending entries and retires them: they become idle, or go back where they pass the limit. So does
 * what was given up on the device with work queued, by any cache. `CVC_STATUS_CAPTURING` where a stream with such work
 * captures.
 *
 * @param timeout_ns -1: no timeout; else `CVC_STATUS_NOT_READY` when it passes first
 */
cvc_status_t cvc_cache_synchronize(cvc_cache_t cache,
                                   int32_t device,
                                   int64_t timeout_ns);

/**
 * Ends the calling thread's part of the cache, as the thread's end does: its live objects become unindexed, what it held
 * goes to a shared index. Makes no GPU call. For scoped threads and thread pools; the thread may go on using the cache.
 */
cvc_status_t cvc_cache_thread_detach(cvc_cache_t cache);

/**
 * Copies a tensor's elements into one of the same shape and dtype, whatever the strides of both.
 */
cvc_status_t cvc_copy(cvc_stream_t stream, cvc_tensor_t src, cvc_tensor_t dst);

/**
 * Copies host memory into a tensor, in the stream's order. `src` stays valid and unchanged until the stream has passed. On
 * CUDA the driver may keep the caller until then, where `src` is not pinned.
 *
 * @param src_strides bytes, one a dimension of `dst`; null: packed
 */
cvc_status_t cvc_upload(cvc_stream_t stream,
                        const void *src,
                        const int64_t *src_strides,
                        cvc_tensor_t dst);

/**
 * Copies a tensor into host memory, in the stream's order. `dst` stays valid until the stream has passed, and holds the
 * elements from then on. On CUDA the driver keeps the caller until then, where `dst` is not pinned.
 *
 * @param dst_strides bytes, one a dimension of `src`; null: packed
 */
cvc_status_t cvc_download(cvc_stream_t stream,
                          cvc_tensor_t src,
                          void *dst,
                          const int64_t *dst_strides);

/**
 * Writes zero bytes over a tensor's elements, in the stream's order.
 */
cvc_status_t cvc_fill_zero(cvc_stream_t stream, cvc_tensor_t tensor);

/**
 * What the process runs on, chosen at the first call that needs it: `CVC_BACKEND=cuda|host`, or `auto` (the default),
 * which takes the host only where no CUDA driver is installed. An error, such as `CVC_STATUS_NO_DRIVER`, stays.
 */
cvc_status_t cvc_backend(cvc_backend_t *backend);

/**
 * The number of devices; their ordinals are 0 to one less.
 */
cvc_status_t cvc_device_count(int32_t *count);

/**
 * Name and memory of a device.
 */
cvc_status_t cvc_device_get_info(int32_t device, struct cvc_device_info_t *info);

/**
 * The calling thread's current device.
 */
cvc_status_t cvc_device_get_current(int32_t *device);

/**
 * Sets the calling thread's current device; on CUDA its primary context becomes current.
 */
cvc_status_t cvc_device_set_current(int32_t device);

/**
 * Waits for all work of the device, then retires the pending entries of every cache. On a GPU this breaks captures that
 * run on it.
 *
 * @param timeout_ns -1: no timeout; else `CVC_STATUS_NOT_READY` when it passes first
 */
cvc_status_t cvc_device_synchronize(int32_t device,
                                    int64_t timeout_ns);

/**
 * Exports a tensor as a DLPack struct. The memory is kept out of reuse until the struct's deleter has run, on any thread.
 *
 * @param consumer stream on which the importer will use the memory: it waits there for what was queued, and the deleter
 *   notes an access there, so it must live that long; `CVC_STREAM_NONE`: the importer orders its work itself
 * @param versioned 1: a DLManagedTensorVersioned of version 1.1; 0: a DLManagedTensor
 * @param[out] managed to be given to an importer, or deleted through its `deleter`
 */
cvc_status_t cvc_tensor_to_dlpack(cvc_tensor_t tensor,
                                  cvc_stream_t consumer,
                                  int32_t versioned,
                                  void **managed);

/**
 * Makes a tensor of a DLPack struct, without a copy, and takes the struct over: its deleter runs when nobody observes the
 * tensor any more. On failure the struct stays the caller's. A struct's flag of read-only memory is not looked at: whoever
 * imports such memory writes nothing to the tensor.
 *
 * @param versioned 1: `managed` is a DLManagedTensorVersioned; 0: a DLManagedTensor
 * @param layout such as "NHWC"; null: none
 * @param stream on which the producer's work is ordered; `CVC_STREAM_NONE`: there is none. `CVC_STATUS_CAPTURING` where it
 *   captures
 */
cvc_status_t cvc_tensor_from_dlpack(cvc_cache_t cache,
                                    void *managed,
                                    int32_t versioned,
                                    const char *layout,
                                    cvc_stream_t stream,
                                    cvc_tensor_t *tensor);

/**
 * The library's version, such as "0.1.0". Static; needs no driver.
 */
const char *cvc_version(void);

/**
 * `CVC_ABI_VERSION` of the library that is loaded.
 */
uint32_t cvc_abi_version(void);

/**
 * The name of a status, such as "CVC_STATUS_OUT_OF_MEMORY"; "CVC_STATUS_UNKNOWN" for any other number. Static.
 */
const char *cvc_status_string(cvc_status_t status);

/**
 * The text of the calling thread's last error: which argument, its value, and what was expected. Empty before the first
 * error; a call that succeeds leaves it.
 *
 * @param[out] buffer gets the text and a NUL, cut to `length`; may be null when `length` is 0
 * @param[out] needed gets the bytes of the whole text with its NUL; may be null
 */
cvc_status_t cvc_last_error_message(char *buffer,
                                    size_t length,
                                    size_t *needed);

/**
 * Sends messages, which go to standard error in any case, to `callback` as well; null ends that. The callback may run on
 * any thread that uses the library, at the end of a call, with none of its locks held, and may call the library; `message` is
 * valid during the call. When this returns, the callback before may still be running, or about to run once, on other threads: keep its context valid.
 */
cvc_status_t cvc_set_log_callback(cvc_log_fn callback,
                                  void *context);

/**
 * Queues a hold on the stream: what is queued after it runs only once `cvc_host_latch_open` was called.
 */
cvc_status_t cvc_host_latch_create(cvc_stream_t stream, uint64_t *latch);

/**
 * Lets the stream of the latch go on. Each latch is opened once.
 */
cvc_status_t cvc_host_latch_open(uint64_t latch);

/**
 * How many items of queued work may run now: the oldest of each stream, where it waits for nothing. For a host backend
 * whose work runs in steps, by `CVC_INSTRUMENT_STEPPED` or `CVC_HOST_EXECUTOR=stepped`; this and the functions below give
 * `CVC_STATUS_NOT_SUPPORTED` elsewhere.
 *
 * Queued work then runs on the thread that takes the step, one item at a time, in whichever order the caller picks; the
 * same picks give the same run. `synchronize` and the other waits of the host run what they need, each stream's oldest
 * first, and wait only for latches; a wait with a timeout of 0 and a query run nothing.
 */
cvc_status_t cvc_host_step_count(uint64_t *count);

/**
 * What the item at that place is, counted from 0; the longest ready comes first.
 */
cvc_status_t cvc_host_step_get(uint64_t index, struct cvc_host_step_t *step);

/**
 * Runs the item at that place.
 */
cvc_status_t cvc_host_step(uint64_t index);

/**
 * Runs what the stream's queued work needs, on other streams too, as far as latches let it.
 *
 * @param[out] steps gets how many items were run
 */
cvc_status_t cvc_host_step_stream(cvc_stream_t stream, uint64_t *steps);

/**
 * Runs all that may run, the longest ready first, until nothing may.
 *
 * @param[out] steps gets how many items were run
 */
cvc_status_t cvc_host_step_all(uint64_t *steps);

/**
 * Begins a capture on the stream, as `cuStreamBeginCapture` does in relaxed mode: until it ends, what is queued there goes
 * into a graph, which is never run, and streams that wait for an event recorded there join. So the rules for captures can
 * be tested without a GPU. Unlike in CUDA any of its streams may end it, joined or not. For the host backend with `CVC_INSTRUMENT_CAPTURES`, else `CVC_STATUS_NOT_SUPPORTED`.
 *
 * `CVC_STATUS_CAPTURING` for a stream that captures, `CVC_STATUS_INVALID_STREAM` for the legacy stream, which cannot.
 */
cvc_status_t cvc_host_capture_begin(cvc_stream_t stream);

/**
 * Ends the stream's capture, and with it that of the streams that joined. The graph is thrown away.
 *
 * `CVC_STATUS_INVALID_STREAM` for a stream that does not capture; `CVC_STATUS_CAPTURING` where a call has broken the capture,
 * as it would in CUDA: it has ended all the same, and the message says what that was. The library's calls break none, other
 * than those that say so.
 */
cvc_status_t cvc_host_capture_end(cvc_stream_t stream);

/**
 * Planes, channels and subsampling of a format.
 */
cvc_status_t cvc_format_get_info(cvc_format_t format, struct cvc_format_info_t *info);

/**
 * An image from the cache, as `cvc_tensor_create` makes tensors: an idle one of the same size, else the smallest idle one
 * of the same device and format that is large enough, else new memory.
 */
cvc_status_t cvc_image_create(cvc_cache_t cache,
                              const struct cvc_image_desc_t *desc,
                              cvc_stream_t stream,
                              cvc_image_t *image);

/**
 * An image around planes of somebody else, charged nothing. `release`, `context` and `stream` as in `cvc_tensor_wrap`.
 */
cvc_status_t cvc_image_wrap(cvc_cache_t cache,
                            const struct cvc_image_data_t *data,
                            cvc_release_fn release,
                            void *context,
                            cvc_stream_t stream,
                            cvc_image_t *image);

/**
 * Where the image's planes lie; the pointers stay valid while a reference does.
 */
cvc_status_t cvc_image_get_data(cvc_image_t image, struct cvc_image_data_t *data);

/**
 * A number for the resource, as `cvc_tensor_get_id`.
 */
cvc_status_t cvc_image_get_id(cvc_image_t image, uint64_t *id);

/**
 * The bytes that the image is charged; 0 for wraps.
 */
cvc_status_t cvc_image_nbytes(cvc_image_t image, uint64_t *nbytes);

/**
 * As `cvc_tensor_begin_access`.
 */
cvc_status_t cvc_image_begin_access(cvc_image_t image, cvc_stream_t stream, cvc_access_t access);

/**
 * As `cvc_tensor_end_access`.
 */
cvc_status_t cvc_image_end_access(cvc_image_t image, cvc_stream_t stream, cvc_access_t access);

/**
 * As `cvc_tensor_synchronize`.
 */
cvc_status_t cvc_image_synchronize(cvc_image_t image, int64_t timeout_ns);

/**
 * Adds a reference.
 */
cvc_status_t cvc_image_retain(cvc_image_t image);

/**
 * Drops a reference, as `cvc_tensor_release`.
 */
cvc_status_t cvc_image_release(cvc_image_t image);

/**
 * An empty batch for up to `capacity` images, from the cache as `cvc_tensor_create` makes tensors. It is charged the
 * device memory of its records.
 */
cvc_status_t cvc_image_batch_create(cvc_cache_t cache,
                                    int32_t device,
                                    int32_t capacity,
                                    cvc_stream_t stream,
                                    cvc_image_batch_t *batch);

/**
 * Adds images at the end, all or none, and keeps them.
 * `CVC_STATUS_CAPACITY_EXCEEDED` over the capacity.
 */
cvc_status_t cvc_image_batch_push(cvc_image_batch_t batch, const cvc_image_t *images, int32_t count);

/**
 * Removes the last `count` images; `CVC_STATUS_CAPACITY_UNDERFLOW` when there are fewer.
 */
cvc_status_t cvc_image_batch_pop(cvc_image_batch_t batch, int32_t count);

/**
 * Removes all images.
 */
cvc_status_t cvc_image_batch_clear(cvc_image_batch_t batch);

/**
 * One image of the batch.
 *
 * @param[out] image a reference of its own, to be released
 */
cvc_status_t cvc_image_batch_get(cvc_image_batch_t batch, int32_t index, cvc_image_t *image);

/**
 * What the batch holds, and its records in device memory.
 *
 * @param stream the records are written there, and `records` and `formats` are valid for work queued on it from then on;
 *   `CVC_STREAM_NONE`: nothing is written, and both are null
 */
cvc_status_t cvc_image_batch_get_data(cvc_image_batch_t batch,
                                      cvc_stream_t stream,
                                      struct cvc_image_batch_data_t *data);

/**
 * A number for the resource, as `cvc_tensor_get_id`.
 */
cvc_status_t cvc_image_batch_get_id(cvc_image_batch_t batch, uint64_t *id);

/**
 * The bytes that the batch itself is charged, its images aside.
 */
cvc_status_t cvc_image_batch_nbytes(cvc_image_batch_t batch, uint64_t *nbytes);

/**
 * Adds a reference.
 */
cvc_status_t cvc_image_batch_retain(cvc_image_batch_t batch);

/**
 * Drops a reference; with the last one the batch lets go of its images.
 */
cvc_status_t cvc_image_batch_release(cvc_image_batch_t batch);

/**
 * Asks for instruments around the backend of this process, before anything else is called: they are put in place when the
 * backend is chosen, and cost nothing where they are not. Each can be had from the environment too, by a variable that is
 * 1: `CVC_COUNT_CALLS`, `CVC_FAULTS`, `CVC_HOST_RACE_CHECK`, `CVC_HOST_CAPTURES`; steps by `CVC_HOST_EXECUTOR=stepped`.
 * `CVC_STATUS_NOT_SUPPORTED` where the backend is in use already without one of them.
 *
 * @param instruments `CVC_INSTRUMENT_*`, added up
 */
cvc_status_t cvc_backend_instrument(uint32_t instruments);

/**
 * The name of the backend's call of that number, counted from 0, such as "launch" or "event_record"; null past the last
 * one. Static.
 */
const char *cvc_backend_call_name(uint32_t index);

/**
 * How often the library has called its backend by that name since the last reset, over all threads. Needs
 * `CVC_INSTRUMENT_COUNT_CALLS`.
 */
cvc_status_t cvc_backend_call_count(const char *name, uint64_t *count);

/**
 * Counts from 0 again.
 */
cvc_status_t cvc_backend_call_reset(void);

/**
 * Plans a fault, on any backend: after the next `skip` calls of that name, `count` of them fail with `status` without
 * being made. Needs `CVC_INSTRUMENT_FAULTS`. Several faults may be planned.
 *
 * With `CVC_STATUS_NOT_READY`, a query of a stream or an event says that its work is not done, and a wait that its time
 * has passed: an event that never completes. A wait without a timeout fails then, since it would not end. The calls "kind" and
 * "device_count" cannot fail.
 *
 * @param call as `cvc_backend_call_name` gives it
 * @param status not ready, out of memory, not supported, device error, context lost (of which later calls know nothing, other
 * than on a GPU) or capturing
 */
cvc_status_t cvc_host_fault(const char *call,
                            uint64_t skip,
                            uint64_t count,
                            cvc_status_t status);

/**
 * How many calls have failed by the plan since `cvc_host_fault_clear`.
 */
cvc_status_t cvc_host_fault_hits(uint64_t *hits);

/**
 * Forgets all planned faults.
 */
cvc_status_t cvc_host_fault_clear(void);

/**
 * How many races were found since `cvc_host_race_forget`. Needs `CVC_INSTRUMENT_RACE_CHECK`.
 *
 * A race is an access of queued work to bytes that other work touched before, one of them writing, where nothing orders
 * the later one after the earlier: no stream, no event that was recorded and waited for, no rule of the legacy stream,
 * no wait or query of the host that saw the earlier one complete. Whether they ran in the wrong order does not matter. Copies,
 * fills and launches of the library are seen by themselves; launches of others where `cvc_tensor_end_access` or
 * `cvc_host_race_access` announces them; memory that is given back counts as written by the host.
 */
cvc_status_t cvc_host_race_count(uint64_t *count);

/**
 * The first hundred races, a line each: both accesses by number and kind, their streams, the bytes, and what would have
 * ordered them.
 *
 * @param[out] buffer gets the text and a NUL, cut to `length`; may be null when `length` is 0
 * @param[out] needed gets the bytes of the whole text with its NUL; may be null
 */
cvc_status_t cvc_host_race_report(char *buffer,
                                  size_t length,
                                  size_t *needed);

/**
 * Forgets the races that were found.
 */
cvc_status_t cvc_host_race_forget(void);

/**
 * Tells the race checker that work of the caller's own, queued on `stream` by now, touches these bytes; with
 * `CVC_STREAM_NONE`, that the host touches them now. It orders nothing.
 */
cvc_status_t cvc_host_race_access(int32_t device,
                                  cvc_stream_t stream,
                                  const void *pointer,
                                  uint64_t bytes,
                                  cvc_access_t access);

/**
 * Raw memory of the device from the cache: idle memory of just this size, in granules of 512 bytes, and alignment, else
 * the smallest idle raw memory of that alignment that is large enough, else new memory. It counts in the cache's limits and statistics as a
 * tensor does, by its whole granules. Its bytes are whatever was there. Never waits on the host, but for pending memory
 * before it would report out-of-memory. What an alignment above 512 takes beyond the bytes is charged to nobody: it counts
 * in `free_bytes`.
 *
 * The library does not see what uses the memory. Work on other streams than `stream` is ordered by the caller, and
 * named by `cvc_mem_record_stream` or an event before the memory is freed.
 *
 * @param bytes 0 gives null, which needs no `cvc_mem_free`; `CVC_STATUS_OVERFLOW` for sizes that pass 63 bits
 * @param alignment of the address: 0, for 512, or a power of two up to 2^32
 * @param stream whose queued work may use the memory: memory with work ordered before that is considered too;
 *   `CVC_STREAM_NONE`: only memory whose work is done
 * @param[out] ptr to be freed with `cvc_mem_free` or `cvc_mem_free_after_event` of the same cache, from any thread
 */
cvc_status_t cvc_mem_alloc(cvc_cache_t cache,
                           int32_t device,
                           size_t bytes,
                           size_t alignment,
                           cvc_stream_t stream,
                           void **ptr);

/**
 * Frees memory of `cvc_mem_alloc`: it may be used at once by work that comes after all that is queued by now on `stream`
 * and on every stream that `cvc_mem_record_stream` named. Waits for nothing. Works from any thread, after the cache's last
 * release too, and once a created stream of the memory's use is destroyed. When it fails the memory stays the caller's:
 * `CVC_STATUS_INVALID_ARGUMENT` for an address that is not allocated, such as one that was freed before,
 * `CVC_STATUS_CAPTURING` while one of the streams captures.
 *
 * @param cache the one that the memory came from
 * @param ptr null does nothing
 * @param stream of the memory's device; `CVC_STREAM_NONE`: no work uses the memory any more, but for what is on the
 *   streams that were named
 */
cvc_status_t cvc_mem_free(cvc_cache_t cache,
                          void *ptr,
                          cvc_stream_t stream);

/**
 * Says that work on `stream` uses the memory, up to when it is freed: called once, before or after the first such launch. The
 * stream is looked at again when the memory is freed, so its owner keeps it until then; one of `cvc_stream_create` may be
 * destroyed before. A thread's own default stream counts with the legacy stream if another thread frees the memory.
 * Orders nothing by itself. `CVC_STATUS_CAPTURING` while the stream captures.
 *
 * @param ptr null does nothing
 * @param stream of the memory's device
 */
cvc_status_t cvc_mem_record_stream(cvc_cache_t cache,
                                   void *ptr,
                                   cvc_stream_t stream);

/**
 * Frees memory of `cvc_mem_alloc`: it may be used as soon as what the event's latest record covers is done, or by work that is
 * ordered after that record, though the event's stream goes on with later work. The event may be recorded anew or destroyed
 * right after the call. Streams that `cvc_mem_record_stream` named count as in `cvc_mem_free`, except the event's own.
 * When it fails the memory stays the caller's: `CVC_STATUS_CAPTURING` while one of those captures.
 *
 * @param event of `cvc_event_create`, on the memory's device, recorded outside of a capture; `CVC_STATUS_INVALID_EVENT`
 *   for any other, of which the library does not know what it covers: wait for it on a stream, and free on that
 */
cvc_status_t cvc_mem_free_after_event(cvc_cache_t cache,
                                      void *ptr,
                                      cvc_event_t event);

/**
 * Mirrors images of any dtype. `dst` has the layout, shape and dtype of `src`, or is `src`: then it works in place.
 *
 * What all operators have in common: they queue work on `stream` and return. Everything is checked before, and a call
 * that fails has changed nothing. Inputs and outputs are ordered, on the GPU, against what any stream does with them:
 * reads run together, a write waits for all. All tensors are of one device, which is the stream's. A layout has labels
 * among N, C, H and W, and a W; what is missing counts as 1. Lanes of a vector dtype are channels; there are 1 to 4 of
 * them. A tensor with a dimension of 0 is valid, and nothing is done. An output may be the input itself where the
 * operator says so; else it shares no memory with any input. The `_new` forms take their output from the cache of `src`,
 * with the default alignment and `stream` as its consumer.
 *
 * Errors that all have: `CVC_STATUS_DEVICE_MISMATCH` (a tensor or the stream is of another device than `src`),
 * `CVC_STATUS_INVALID_LAYOUT` (none, one with other labels, or not that of `src`), `CVC_STATUS_INVALID_SHAPE` (more than 4
 * channels), `CVC_STATUS_SHAPE_MISMATCH`, `CVC_STATUS_DTYPE_MISMATCH`, `CVC_STATUS_NOT_SUPPORTED` (vectors in several
 * planes), `CVC_STATUS_INVALID_ARGUMENT` (`dst` overlaps an input), `CVC_STATUS_INVALID_STREAM`, `CVC_STATUS_CAPTURING`,
 * and those of handles and pointers. The `_new` forms may also end with `CVC_STATUS_OUT_OF_MEMORY` or
 * `CVC_STATUS_LIMIT_EXCEEDED`.
 *
 * @param flip_code 0 reverses the rows, more than 0 the columns, less than 0 both
 */
cvc_status_t cvc_op_flip(cvc_stream_t stream,
                         cvc_tensor_t src,
                         cvc_tensor_t dst,
                         int32_t flip_code);

/**
 * As `cvc_op_flip`, into a tensor from the cache.
 *
 * @param[out] dst to be released with `cvc_tensor_release`
 */
cvc_status_t cvc_op_flip_new(cvc_stream_t stream, cvc_tensor_t src, int32_t flip_code, cvc_tensor_t *dst);

/**
 * Resizes with Pillow's filters, channel by channel. U8 gets the bits of Pillow's `Image.resize` for modes L and RGB, U16
 * those of I;16, F32 those of F, S32 those of I where these do not overflow; S8, S16, F16 and F64 are computed likewise,
 * in double. NEAREST takes U32 too. `dst` has the layout, dtype, images and channels of `src`, the height and width to
 * resize to, and shares no memory with it; both layouts have an H.
 *
 * Errors beside those of `cvc_op_flip`: `CVC_STATUS_INVALID_ENUM` (`filter`, `flags`), `CVC_STATUS_NOT_SUPPORTED` (AREA; a
 * dtype that is not named above; premultiplied alpha of other than U8 with 2 or 4 channels), `CVC_STATUS_INVALID_SHAPE`
 * (a side of more than 2^30 pixels, or `src` without any), `CVC_STATUS_OUT_OF_MEMORY` (for the filter's coefficients,
 * which are kept for later calls).
 *
 * @param flags 0, or `CVC_RESIZE_PILLOW_12_PASS_ORDER` and `CVC_RESIZE_PREMULTIPLY_ALPHA`
 */
cvc_status_t cvc_op_pillow_resize(cvc_stream_t stream,
                                  cvc_tensor_t src,
                                  cvc_tensor_t dst,
                                  cvc_filter_t filter,
                                  uint32_t flags);

/**
 * As `cvc_op_pillow_resize`, into a tensor from the cache.
 *
 * @param height, width pixels, 1 to 2^30; else `CVC_STATUS_INVALID_SHAPE`
 * @param[out] dst to be released with `cvc_tensor_release`
 */
cvc_status_t cvc_op_pillow_resize_new(cvc_stream_t stream,
                                      cvc_tensor_t src,
                                      int64_t height,
                                      int64_t width,
                                      cvc_filter_t filter,
                                      uint32_t flags,
                                      cvc_tensor_t *dst);

/**
 * Converts elements: `dst = saturate(alpha * src + beta)`, the product rounded, then the sum, in float; in double where
 * either side is F64 or an integer of 32 or 64 bits. An integer result is rounded as `round` says and clamped; NaN gives
 * 0. `dst` has the layout and shape of `src`, and as many lanes; it may be `src` itself, or a view of it with elements of
 * the same size.
 *
 * Errors beside those of `cvc_op_flip`: `CVC_STATUS_INVALID_VALUE` (`alpha` or `beta` is NaN or infinite),
 * `CVC_STATUS_INVALID_ENUM` (`round`), `CVC_STATUS_NOT_SUPPORTED` (complex elements).
 */
cvc_status_t cvc_op_convert_to(cvc_stream_t stream,
                               cvc_tensor_t src,
                               cvc_tensor_t dst,
                               double alpha,
                               double beta,
                               cvc_round_t round);

/**
 * As `cvc_op_convert_to`, into a tensor from the cache.
 *
 * @param dtype of the result, with as many lanes as that of `src`
 * @param[out] dst to be released with `cvc_tensor_release`
 */
cvc_status_t cvc_op_convert_to_new(cvc_stream_t stream,
                                   cvc_tensor_t src,
                                   cvc_dtype_t dtype,
                                   double alpha,
                                   double beta,
                                   cvc_round_t round,
                                   cvc_tensor_t *dst);

/**
 * Normalizes elements: `dst = saturate((src - base) * scale * global_scale + global_shift)`, each step rounded, in float;
 * in double where either side is F64. With `CVC_NORMALIZE_SCALE_IS_STDDEV`, 1 / sqrt(scale * scale + epsilon) takes the
 * place of `scale`. An integer result is rounded to nearest, halves to even, and clamped; NaN gives 0. Dtypes are U8, S8,
 * U16, S16, S32, F16, F32 and F64. `dst` has the layout and shape of `src`, and as many lanes; it may be `src` itself, or
 * a view of it with elements of the same size.
 *
 * Errors beside those of `cvc_op_flip`: `CVC_STATUS_NOT_SUPPORTED` (another dtype), `CVC_STATUS_INVALID_VALUE` (a value is
 * NaN or infinite, or a negative epsilon), `CVC_STATUS_INVALID_ENUM` (`params.flags`), `CVC_STATUS_INVALID_ARGUMENT` (a
 * count of values that is neither 1 nor the channels; `dst` overlaps base or scale), `CVC_STATUS_SHAPE_MISMATCH` (a
 * dimension of base or scale that is neither 1 nor that of `src`), `CVC_STATUS_DTYPE_MISMATCH` (base or scale is not F32).
 *
 * @param params its `dst_dtype` is not looked at but for being valid
 */
cvc_status_t cvc_op_normalize(cvc_stream_t stream,
                              cvc_tensor_t src,
                              cvc_tensor_t dst,
                              const struct cvc_normalize_params_t *params);

/**
 * As `cvc_op_normalize`, into a tensor from the cache of dtype `params.dst_dtype`.
 *
 * @param[out] dst to be released with `cvc_tensor_release`
 */
cvc_status_t cvc_op_normalize_new(cvc_stream_t stream,
                                  cvc_tensor_t src,
                                  const struct cvc_normalize_params_t *params,
                                  cvc_tensor_t *dst);

/**
 * Copies elements of any dtype between NHWC and NCHW, HWC and CHW, NWC and NCW, WC and CW, any number of channels; or to
 * other strides in the same layout, which packs rows or unpacks them. `dst` has the dtype and extents of `src`; with
 * the same layout it may be `src` itself, and nothing is done.
 *
 * Errors as those of `cvc_op_flip`; `CVC_STATUS_INVALID_LAYOUT` for any other pair of layouts.
 */
cvc_status_t cvc_op_reformat(cvc_stream_t stream,
                             cvc_tensor_t src,
                             cvc_tensor_t dst);

/**
 * As `cvc_op_reformat`, into a tensor from the cache.
 *
 * @param layout of the result, NUL-terminated
 * @param[out] dst to be released with `cvc_tensor_release`
 */
cvc_status_t cvc_op_reformat_new(cvc_stream_t stream,
                                 cvc_tensor_t src,
                                 const char *layout,
                                 cvc_tensor_t *dst);

/**
 * Mirrors each image by a code of its own. Images of `dst` have the sizes and formats of those of `src`, or are them.
 *
 * What all operators on batches have in common, beside what `cvc_op_flip` says: formats are not subsampled and have one
 * plane, or one plane a channel. Both batches hold as many images, at the time of the call. Images of `dst` share no
 * memory with each other, nor with one of `src`, except that each may be its own source where the operator says so. The
 * `_new` forms make a batch of the capacity of `src`, with an image for each of its images, all from the cache of `src`;
 * the images go with the batch.
 *
 * Errors that all have: `CVC_STATUS_SHAPE_MISMATCH` (another number of images, or other sizes), `CVC_STATUS_DTYPE_MISMATCH`
 * (other formats), `CVC_STATUS_NOT_SUPPORTED` (a format), `CVC_STATUS_DEVICE_MISMATCH`, `CVC_STATUS_INVALID_ARGUMENT`
 * (memory overlaps), `CVC_STATUS_INVALID_STREAM`, `CVC_STATUS_CAPTURING`, and those of handles and pointers. Of the codes:
 * `CVC_STATUS_SHAPE_MISMATCH` (too few), `CVC_STATUS_DTYPE_MISMATCH`, `CVC_STATUS_INVALID_RANK`,
 * `CVC_STATUS_INVALID_LAYOUT`.
 *
 * @param flip_codes S32 of one dimension, one code an image or more: 0 reverses the rows, 1 the columns, -1 both, any
 *   other copies. Read by the queued work, in order with other work on it
 */
cvc_status_t cvc_op_flip_var_shape(cvc_stream_t stream,
                                   cvc_image_batch_t src,
                                   cvc_image_batch_t dst,
                                   cvc_tensor_t flip_codes);

/**
 * As `cvc_op_flip_var_shape`, into a batch from the cache.
 *
 * @param[out] dst to be released with `cvc_image_batch_release`
 */
cvc_status_t cvc_op_flip_var_shape_new(cvc_stream_t stream,
                                       cvc_image_batch_t src,
                                       cvc_tensor_t flip_codes,
                                       cvc_image_batch_t *dst);

/**
 * Resizes each image as `cvc_op_pillow_resize` does, to the size of its image in `dst`, which has its format.
 *
 * Errors: those of `cvc_op_flip_var_shape` and `cvc_op_pillow_resize`.
 */
cvc_status_t cvc_op_pillow_resize_var_shape(cvc_stream_t stream,
                                            cvc_image_batch_t src,
                                            cvc_image_batch_t dst,
                                            cvc_filter_t filter,
                                            uint32_t flags);

/**
 * As `cvc_op_pillow_resize_var_shape`, into a batch from the cache.
 *
 * @param sizes width and height of each image, 1 to 2^30 pixels; else `CVC_STATUS_INVALID_SHAPE`
 * @param count how many sizes: as many as `src` holds images, else `CVC_STATUS_SHAPE_MISMATCH`
 * @param[out] dst to be released with `cvc_image_batch_release`
 */
cvc_status_t cvc_op_pillow_resize_var_shape_new(cvc_stream_t stream,
                                                cvc_image_batch_t src,
                                                const int32_t *sizes,
                                                int32_t count,
                                                cvc_filter_t filter,
                                                uint32_t flags,
                                                cvc_image_batch_t *dst);

/**
 * Normalizes each image as `cvc_op_normalize` does. Base and scale have 1 row and 1 column; their N is 1 or the number of
 * images, their C is 1 or the channels of every image. Images of `dst` have the sizes, channels and planes of those of
 * `src`, in any format; where elements are of one size they may be them.
 *
 * Errors: those of `cvc_op_flip_var_shape` and `cvc_op_normalize`.
 */
cvc_status_t cvc_op_normalize_var_shape(cvc_stream_t stream,
                                        cvc_image_batch_t src,
                                        cvc_image_batch_t dst,
                                        const struct cvc_normalize_params_t *params);

/**
 * As `cvc_op_normalize_var_shape`, into a batch from the cache.
 *
 * @param dst_format of all images of the result; `CVC_FORMAT_NONE`: each has that of its source
 * @param[out] dst to be released with `cvc_image_batch_release`
 */
cvc_status_t cvc_op_normalize_var_shape_new(cvc_stream_t stream,
                                            cvc_image_batch_t src,
                                            const struct cvc_normalize_params_t *params,
                                            cvc_format_t dst_format,
                                            cvc_image_batch_t *dst);

/**
 * Makes network input of images: crop, pillow_resize, flip, exchange of channels 0 and 2, convert_to, normalize and
 * reformat, in this order, any of them, with the bits of the operators called one after the other. Images are resized
 * to the height and width of `dst`; what has them after the crop is not resized. `dst` is of layout NHWC, HWC, NCHW or
 * CHW, has the images and channels of `src`, the dtype that the last step gives (any that normalize takes where that is
 * there), and shares no memory with an input. `src` is of any layout with an H and a W.
 *
 * NV12: with `CVC_PREPROCESS_NV12` or `CVC_PREPROCESS_NV12_FULL_RANGE`, `src` is U8 of one channel, and an image of even
 * height and width has height rows of luma, and behind them height / 2 rows of pairs of Cb and Cr. What is left by the
 * crop becomes R, G and B of U8 before it is resized, by integers: each chroma sample is taken for all four pixels that
 * it belongs to, coefficients have 20 fraction bits, and sums are rounded to the nearest and clipped.
 *
 * Errors beside those of the operators: `CVC_STATUS_INVALID_SHAPE` (a crop that is empty or not within its image; NV12 of
 * other than 3/2 of an even height, and an even width; a side of more than 2^30 pixels that is resized),
 * `CVC_STATUS_SHAPE_MISMATCH` (`params.crop_count` is not 0, 1 or the images of `src`; `dst` has other images or
 * channels), `CVC_STATUS_INVALID_LAYOUT` (`dst`), `CVC_STATUS_DTYPE_MISMATCH` (`dst` is not of the last step's dtype; NV12
 * of other than U8 of one channel), `CVC_STATUS_NOT_SUPPORTED` (channels exchanged where there are less than 3),
 * `CVC_STATUS_INVALID_ENUM` (flags, filter, round, color matrix, dtype), `CVC_STATUS_INVALID_STRUCT_SIZE`,
 * `CVC_STATUS_NULL_POINTER`. Memory between two steps comes from the cache of `src`: `CVC_STATUS_OUT_OF_MEMORY`,
 * `CVC_STATUS_LIMIT_EXCEEDED`.
 *
 * @param params the `dst_dtype` of its `normalize` is not looked at but for being valid
 */
cvc_status_t cvc_op_preprocess(cvc_stream_t stream,
                               cvc_tensor_t src,
                               cvc_tensor_t dst,
                               const struct cvc_preprocess_params_t *params);

/**
 * As `cvc_op_preprocess`, into a tensor from the cache, of the dtype that the last step gives: `params.normalize`'s
 * `dst_dtype`, or what it normalizes where that is `CVC_DTYPE_NONE`.
 *
 * @param height, width pixels, 1 to 2^30; else `CVC_STATUS_INVALID_SHAPE`
 * @param layout of the result, NUL-terminated; without an N for one image alone, else `CVC_STATUS_SHAPE_MISMATCH`
 * @param[out] dst to be released with `cvc_tensor_release`
 */
cvc_status_t cvc_op_preprocess_new(cvc_stream_t stream,
                                   cvc_tensor_t src,
                                   const struct cvc_preprocess_params_t *params,
                                   int64_t height,
                                   int64_t width,
                                   const char *layout,
                                   cvc_tensor_t *dst);

/**
 * As `cvc_op_preprocess`, on a batch of images of any sizes and formats, into one tensor, whose N is the number of images.
 * Formats are those of the operators on batches, and NV12, NV12_ER, NV21 and NV21_ER, of any size; all images have the
 * same number of channels, NV12 three. The flags for NV12 tensors are refused (`CVC_STATUS_INVALID_ENUM`).
 *
 * Errors: those of `cvc_op_preprocess` and `cvc_op_flip_var_shape`.
 *
 * @param params base and scale of its `normalize` may be those of each image by their N
 */
cvc_status_t cvc_op_preprocess_var_shape(cvc_stream_t stream,
                                         cvc_image_batch_t src,
                                         cvc_tensor_t dst,
                                         const struct cvc_preprocess_params_t *params);

/**
 * As `cvc_op_preprocess_var_shape`, into a tensor from the cache. Where no step makes dtypes alike, those of all images
 * are (`CVC_STATUS_DTYPE_MISMATCH`). An empty batch gives a tensor of no images and three channels.
 *
 * @param height, width pixels, 1 to 2^30; else `CVC_STATUS_INVALID_SHAPE`
 * @param layout of the result, NUL-terminated; without an N for one image alone, else `CVC_STATUS_SHAPE_MISMATCH`
 * @param[out] dst to be released with `cvc_tensor_release`
 */
cvc_status_t cvc_op_preprocess_var_shape_new(cvc_stream_t stream,
                                             cvc_image_batch_t src,
                                             const struct cvc_preprocess_params_t *params,
                                             int64_t height,
                                             int64_t width,
                                             const char *layout,
                                             cvc_tensor_t *dst);

/**
 * Tells the library where PyCapsule_GetPointer and PyCapsule_IsValid are, so that it need not link Python.
 */
cvc_status_t cvc_python_bind(void *capsule_get_pointer, void *capsule_is_valid);

/**
 * The destructor of a PyCapsule named "dltensor" or "dltensor_versioned": deletes what nobody has taken. Python calls it,
 * holding its lock.
 */
void cvc_python_capsule_destructor(void *capsule);

/**
 * A stream of `device`, non-blocking unless `flags` has `CVC_STREAM_BLOCKING`.
 *
 * @param[out] stream to be destroyed with `cvc_stream_destroy`
 */
cvc_status_t cvc_stream_create(int32_t device, uint32_t flags, cvc_stream_t *stream);

/**
 * Destroys a stream of `cvc_stream_create`. Returns at once; what is queued still runs, and memory that it uses stays
 * reserved until it is done. No other call may use the handle meanwhile or afterwards.
 */
cvc_status_t cvc_stream_destroy(cvc_stream_t stream);

/**
 * Tells the library that a stream of somebody else lives until `cvc_stream_unregister`, so that it may order work on it
 * at any time. Without it such a stream is touched only in calls that pass it, each of which records an event there, and
 * calls that pass it while it captures give `CVC_STATUS_CAPTURING`: it cannot be asked then who it is.
 *
 * @param flags 0 or `CVC_STREAM_ANNOUNCES_CAPTURES`, which is accepted; captures are looked for in any case
 */
cvc_status_t cvc_stream_register(int32_t device,
                                 cvc_stream_t stream,
                                 uint32_t flags);

/**
 * Ends what `cvc_stream_register` began, before the stream's owner destroys it. A stream that `cvc_mem_record_stream` named,
 * or that an export was given, is kept alive until the free or the deleter all the same.
 */
cvc_status_t cvc_stream_unregister(cvc_stream_t stream);

/**
 * `CVC_STATUS_OK` when all that is queued on the stream is done, `CVC_STATUS_NOT_READY` while it is not.
 */
cvc_status_t cvc_stream_query(cvc_stream_t stream);

/**
 * Waits for all that is queued on the stream, and retires pending entries that it kept.
 *
 * @param timeout_ns -1: no timeout; else `CVC_STATUS_NOT_READY` when it passes first
 */
cvc_status_t cvc_stream_synchronize(cvc_stream_t stream, int64_t timeout_ns);

/**
 * Makes work queued on `waits` from now on come after all that is queued on `waited_for` by now. On the GPU; the host does
 * not wait. A stream does not wait for itself. One that waits for a stream that captures joins the capture.
 * `CVC_STATUS_CAPTURING` where `waits` captures and `waited_for` does not, or in another capture; where `waits` is the legacy
 * stream and `waited_for` captures; or where one of them captures and is neither of `cvc_stream_create` nor registered.
 */
cvc_status_t cvc_stream_wait_stream(cvc_stream_t waits,
                                    cvc_stream_t waited_for);

/**
 * Makes work queued on the stream from now on come after the event's latest record; where that lies in a capture, the
 * stream joins it. An event that is not of `cvc_event_create` is left to the driver to judge.
 *
 * `CVC_STATUS_CAPTURING` where the stream captures and the record lies outside of its capture or does not exist, where the
 * stream is the legacy one and the record lies in a capture, or where the stream captures and is neither of
 * `cvc_stream_create` nor registered.
 */
cvc_status_t cvc_stream_wait_event(cvc_stream_t stream,
                                   cvc_event_t event);

/**
 * A number that no other stream of the process has or will have, unlike the handle.
 */
cvc_status_t cvc_stream_get_id(cvc_stream_t stream, uint64_t *id);

/**
 * The stream's device.
 */
cvc_status_t cvc_stream_get_device(cvc_stream_t stream, int32_t *device);

/**
 * An event of `device`.
 *
 * @param flags 0 or `CVC_EVENT_TIMING`
 * @param[out] event to be destroyed with `cvc_event_destroy`
 */
cvc_status_t cvc_event_create(int32_t device, uint32_t flags, cvc_event_t *event);

/**
 * Destroys an event of `cvc_event_create`; waits that were queued on it still hold.
 */
cvc_status_t cvc_event_destroy(cvc_event_t event);

/**
 * Records the event behind all that is queued on the stream, in place of its earlier record. Once the process has had raw
 * memory, an event of the library's own is recorded beside it, for `cvc_mem_free_after_event`.
 */
cvc_status_t cvc_event_record(cvc_event_t event,
                              cvc_stream_t stream);

/**
 * `CVC_STATUS_OK` when the latest record is done, or there was none; `CVC_STATUS_NOT_READY` while it is not;
 * `CVC_STATUS_CAPTURING` when it lies in a capture.
 */
cvc_status_t cvc_event_query(cvc_event_t event);

/**
 * Waits for the latest record; `CVC_STATUS_CAPTURING` when that lies in a capture.
 *
 * @param timeout_ns -1: no timeout; else `CVC_STATUS_NOT_READY` when it passes first
 */
cvc_status_t cvc_event_synchronize(cvc_event_t event, int64_t timeout_ns);

/**
 * Milliseconds from one record to the other. Both events have `CVC_EVENT_TIMING`, and their records are done;
 * `CVC_STATUS_CAPTURING` when one lies in a capture.
 */
cvc_status_t cvc_event_elapsed_ms(cvc_event_t start, cvc_event_t end, float *milliseconds);

/**
 * A tensor from the cache: an idle one of the same shape and strides, else the smallest idle one of the same device,
 * dtype and layout that is large enough, else new memory. Its bytes are whatever was there. Never waits on the host, but
 * for pending memory before it would report out-of-memory.
 *
 * @param stream whose queued work may use the tensor: memory with work ordered before that is considered too;
 *   `CVC_STREAM_NONE`: only memory whose work is done. Where it captures, what it had queued before the capture counts as
 *   ordered: launch the graph behind that, or pass `CVC_STREAM_NONE`
 * @param[out] tensor to be released with `cvc_tensor_release`
 */
cvc_status_t cvc_tensor_create(cvc_cache_t cache,
                               const struct cvc_tensor_desc_t *desc,
                               cvc_stream_t stream,
                               cvc_tensor_t *tensor);

/**
 * The descriptor of a tensor for `count` images: NHWC for a format of one plane, NCHW for one of a plane a channel.
 * `CVC_STATUS_NOT_SUPPORTED` for any other.
 *
 * @param[out] desc with its `struct_size` set
 */
cvc_status_t cvc_tensor_desc_from_image(int32_t device,
                                        int32_t count,
                                        int32_t width,
                                        int32_t height,
                                        cvc_format_t format,
                                        int64_t row_align,
                                        struct cvc_tensor_desc_t *desc);

/**
 * The bytes that a tensor of this descriptor is charged when new memory is taken for it.
 */
cvc_status_t cvc_tensor_desc_nbytes(const struct cvc_tensor_desc_t *desc, uint64_t *nbytes);

/**
 * A tensor around memory of somebody else, charged nothing. Its last dimension is packed (the last two where the layout
 * ends with C), strides decrease and do not overlap; dimensions are 1 or more. `CVC_STATUS_INVALID_ARGUMENT` for memory that
 * the driver does not know, such as pageable host memory, `CVC_STATUS_DEVICE_MISMATCH` for that of another device.
 *
 * @param release called once with `context` when nobody observes the tensor any more and its work is done; may be null.
 *   Not called when this fails
 * @param stream whose queued work writes the memory: every use comes after it; `CVC_STREAM_NONE`: none does.
 *   `CVC_STATUS_CAPTURING` where it captures
 */
cvc_status_t cvc_tensor_wrap(cvc_cache_t cache,
                             const struct cvc_tensor_data_t *data,
                             cvc_release_fn release,
                             void *context,
                             cvc_stream_t stream,
                             cvc_tensor_t *tensor);

/**
 * A view of a whole image as a tensor of one sample: NHWC where one plane has several channels, else NCHW. Keeps the
 * image. `CVC_STATUS_NOT_SUPPORTED` for subsampled or semi-planar formats.
 */
cvc_status_t cvc_tensor_from_image(cvc_image_t image,
                                   cvc_tensor_t *tensor);

/**
 * A view of one plane of an image as a tensor HWC, for any format. Keeps the image.
 */
cvc_status_t cvc_tensor_from_image_plane(cvc_image_t image, int32_t plane, cvc_tensor_t *tensor);

/**
 * A view of the same memory with another shape of the same volume. Keeps the memory out of reuse while it lives.
 *
 * @param desc its rank, shape and layout count; dtype must be the tensor's or `CVC_DTYPE_NONE`
 * @param[out] view to be released with `cvc_tensor_release`
 */
cvc_status_t cvc_tensor_reshape(cvc_tensor_t tensor,
                                const struct cvc_tensor_desc_t *desc,
                                cvc_tensor_t *view);

/**
 * Where the tensor lies. The pointer stays valid while a reference does; work that uses it is announced with
 * `cvc_tensor_begin_access` and `cvc_tensor_end_access`.
 */
cvc_status_t cvc_tensor_get_data(cvc_tensor_t tensor, struct cvc_tensor_data_t *data);

/**
 * A number for the resource: memory that the cache hands out again keeps it, and so does a wrap's shell.
 */
cvc_status_t cvc_tensor_get_id(cvc_tensor_t tensor, uint64_t *id);

/**
 * The bytes that the tensor is charged: its memory's whole capacity; 0 for wraps and views.
 */
cvc_status_t cvc_tensor_nbytes(cvc_tensor_t tensor, uint64_t *nbytes);

/**
 * Before a launch of your own: makes the stream wait, on the GPU, for what must come before an access of this kind. Reads
 * run beside reads; a write waits for all.
 */
cvc_status_t cvc_tensor_begin_access(cvc_tensor_t tensor,
                                     cvc_stream_t stream,
                                     cvc_access_t access);

/**
 * After a launch of your own: notes the access. It covers everything queued on the stream by now.
 */
cvc_status_t cvc_tensor_end_access(cvc_tensor_t tensor, cvc_stream_t stream, cvc_access_t access);

/**
 * Waits on the host for all noted work on the tensor's memory. `CVC_STATUS_CAPTURING` where a stream of that work captures and
 * nothing tells when it is done.
 *
 * @param timeout_ns -1: no timeout; else `CVC_STATUS_NOT_READY` when it passes first
 */
cvc_status_t cvc_tensor_synchronize(cvc_tensor_t tensor,
                                    int64_t timeout_ns);

/**
 * The stream of the latest noted access; `CVC_STREAM_NONE` when none is open.
 */
cvc_status_t cvc_tensor_last_stream(cvc_tensor_t tensor, cvc_stream_t *stream);

/**
 * Adds a reference.
 */
cvc_status_t cvc_tensor_retain(cvc_tensor_t tensor);

/**
 * Drops a reference. With the last one the handle is stale at once; the memory is reused when no view, export or batch
 * holds it, by work that is ordered after its own.
 */
cvc_status_t cvc_tensor_release(cvc_tensor_t tensor);

/**
 * An empty batch for up to `capacity` tensors, from the cache as `cvc_tensor_create` makes tensors. It is charged the
 * device memory of its records.
 */
cvc_status_t cvc_tensor_batch_create(cvc_cache_t cache,
                                     int32_t device,
                                     int32_t capacity,
                                     cvc_stream_t stream,
                                     cvc_tensor_batch_t *batch);

/**
 * Adds tensors at the end, all or none, and keeps them. All have the rank, dtype and layout of the
 * first one; an empty batch takes any.
 * `CVC_STATUS_CAPACITY_EXCEEDED` over the capacity.
 */
cvc_status_t cvc_tensor_batch_push(cvc_tensor_batch_t batch, const cvc_tensor_t *tensors, int32_t count);

/**
 * Removes the last `count` tensors; `CVC_STATUS_CAPACITY_UNDERFLOW` when there are fewer.
 */
cvc_status_t cvc_tensor_batch_pop(cvc_tensor_batch_t batch, int32_t count);

/**
 * Removes all tensors.
 */
cvc_status_t cvc_tensor_batch_clear(cvc_tensor_batch_t batch);

/**
 * One tensor of the batch.
 *
 * @param[out] tensor a reference of its own, to be released
 */
cvc_status_t cvc_tensor_batch_get(cvc_tensor_batch_t batch, int32_t index, cvc_tensor_t *tensor);

/**
 * Puts a tensor in the place of another, as `cvc_tensor_batch_push` would take it.
 */
cvc_status_t cvc_tensor_batch_set(cvc_tensor_batch_t batch, int32_t index, cvc_tensor_t tensor);

/**
 * What the batch holds, and its records in device memory; `stream` as in `cvc_image_batch_get_data`.
 */
cvc_status_t cvc_tensor_batch_get_data(cvc_tensor_batch_t batch,
                                       cvc_stream_t stream,
                                       struct cvc_tensor_batch_data_t *data);

/**
 * A number for the resource, as `cvc_tensor_get_id`.
 */
cvc_status_t cvc_tensor_batch_get_id(cvc_tensor_batch_t batch, uint64_t *id);

/**
 * The bytes that the batch itself is charged, its tensors aside.
 */
cvc_status_t cvc_tensor_batch_nbytes(cvc_tensor_batch_t batch, uint64_t *nbytes);

/**
 * Adds a reference.
 */
cvc_status_t cvc_tensor_batch_retain(cvc_tensor_batch_t batch);

/**
 * Drops a reference; with the last one the batch lets go of its tensors.
 */
cvc_status_t cvc_tensor_batch_release(cvc_tensor_batch_t batch);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CVC_H */

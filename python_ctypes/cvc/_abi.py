"""The C ABI of libcvc as ctypes sees it: constants, structs, and one table of function signatures.

Nothing here loads the library. `tests/test_abi.py` checks every name, type, size and offset
against `include/cvc.h`, so a change of the header that is not made here fails the tests.
"""

from __future__ import annotations

from ctypes import (
    POINTER,
    Structure,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
    sizeof,
)
from typing import Any, TypeVar

ABI_VERSION = 1
MAX_RANK = 15
MAX_PLANES = 6
DEVICE_CURRENT = -1

STREAM_LEGACY = 1
STREAM_PER_THREAD = 2
STREAM_NONE = -1

_STATUS_NAMES = (
    "OK INVALID_ARGUMENT NULL_POINTER INVALID_HANDLE STALE_HANDLE WRONG_KIND INVALID_RANK "
    "INVALID_SHAPE OVERFLOW INVALID_STRIDES INVALID_ENUM INVALID_STRUCT_SIZE INVALID_LAYOUT "
    "INVALID_ALIGNMENT INVALID_VALUE INVALID_LIMIT DEVICE_MISMATCH SHAPE_MISMATCH DTYPE_MISMATCH "
    "CAPACITY_EXCEEDED CAPACITY_UNDERFLOW INVALID_INDEX INVALID_DEVICE INVALID_STREAM "
    "INVALID_EVENT NOT_SUPPORTED NOT_READY OUT_OF_MEMORY LIMIT_EXCEEDED NO_DRIVER DRIVER_TOO_OLD "
    "NO_DEVICE NO_KERNEL_IMAGE DEVICE_ERROR CONTEXT_LOST CAPTURING FORKED INTERNAL"
).split()
STATUS: dict[str, int] = {name: code for code, name in enumerate(_STATUS_NAMES)}

_DTYPE_KINDS = "U8 S8 U16 S16 U32 S32 U64 S64 F16 F32 F64 C64 C128".split()
DTYPE: dict[str, int] = {"NONE": 0}
for _code, _kind in enumerate(_DTYPE_KINDS, start=1):
    DTYPE[_kind] = _code
    for _lanes in range(2, 3 if _kind == "C128" else 5):
        DTYPE[f"{_lanes}{_kind}"] = _code | (_lanes - 1) << 8

_FORMAT_NAMES = (
    "NONE U8 S8 U16 S16 U32 S32 F16 F32 F64 2S16 2F16 2F32 C64 2C64 C128 2C128 Y8 Y8_ER Y16 "
    "Y16_ER NV12 NV12_ER NV21 NV21_ER NV24 NV24_ER UYVY UYVY_ER VYUY VYUY_ER YUYV YUYV_ER YUV8 "
    "YUV8_ER YUV8P YUV8P_ER RGB8 BGR8 RGBA8 BGRA8 RGB8P BGR8P RGBA8P BGRA8P RGBF16 BGRF16 RGBAF16 "
    "BGRAF16 RGBF16P BGRF16P RGBAF16P BGRAF16P RGBF32 BGRF32 RGBAF32 BGRAF32 RGBF32P BGRF32P "
    "RGBAF32P BGRAF32P HSV8 CMYK8 YCCK8"
).split()
FORMAT: dict[str, int] = {name: code for code, name in enumerate(_FORMAT_NAMES)}

FILTER = {"NEAREST": 0, "LINEAR": 1, "CUBIC": 2, "AREA": 3, "LANCZOS": 4, "HAMMING": 5, "BOX": 6}
RESIZE_PILLOW_12_PASS_ORDER = 1
RESIZE_PREMULTIPLY_ALPHA = 2
ROUND = {"NEAREST": 0, "TRUNCATE": 1}
SCOPE = {"GLOBAL": 0, "LOCAL": 1}
ACCESS = {"READ": 1, "WRITE": 2, "READ_WRITE": 3}
BACKEND = {"HOST": 1, "CUDA": 2}
LOG = {"ERROR": 1, "WARNING": 2, "INFO": 3}
INSTRUMENT = {"COUNT_CALLS": 1, "FAULTS": 2, "RACE_CHECK": 4, "STEPPED": 8, "CAPTURES": 16}
HOST_STEP = {"WORK": 1, "RECORD": 2}
NORMALIZE_SCALE_IS_STDDEV = 1
COLOR_MATRIX = {"BT601": 0, "BT709": 1}
PREPROCESS_FLIP = 1
PREPROCESS_SWAP_CHANNELS = 2
PREPROCESS_NV12 = 4
PREPROCESS_NV12_FULL_RANGE = 8
WRAP_KEEP_SHELLS = 1

# Every #define of the header but its include guard and its version numbers.
CONSTANTS: dict[str, int] = {
    "CVC_ABI_VERSION": ABI_VERSION,
    "CVC_MAX_RANK": MAX_RANK,
    "CVC_MAX_PLANES": MAX_PLANES,
    "CVC_DEVICE_CURRENT": DEVICE_CURRENT,
    "CVC_STREAM_LEGACY": STREAM_LEGACY,
    "CVC_STREAM_PER_THREAD": STREAM_PER_THREAD,
    "CVC_STREAM_NONE": STREAM_NONE,
    "CVC_RESIZE_PILLOW_12_PASS_ORDER": RESIZE_PILLOW_12_PASS_ORDER,
    "CVC_RESIZE_PREMULTIPLY_ALPHA": RESIZE_PREMULTIPLY_ALPHA,
    "CVC_STREAM_BLOCKING": 1,
    "CVC_STREAM_ANNOUNCES_CAPTURES": 2,
    "CVC_EVENT_TIMING": 1,
    **{f"CVC_INSTRUMENT_{name}": bit for name, bit in INSTRUMENT.items()},
    "CVC_NORMALIZE_SCALE_IS_STDDEV": NORMALIZE_SCALE_IS_STDDEV,
    "CVC_PREPROCESS_FLIP": PREPROCESS_FLIP,
    "CVC_PREPROCESS_SWAP_CHANNELS": PREPROCESS_SWAP_CHANNELS,
    "CVC_PREPROCESS_NV12": PREPROCESS_NV12,
    "CVC_PREPROCESS_NV12_FULL_RANGE": PREPROCESS_NV12_FULL_RANGE,
    "CVC_WRAP_KEEP_SHELLS": WRAP_KEEP_SHELLS,
}
for _prefix, _values in (
    ("STATUS", STATUS),
    ("DTYPE", DTYPE),
    ("FORMAT", FORMAT),
    ("FILTER", FILTER),
    ("ROUND", ROUND),
    ("COLOR_MATRIX", COLOR_MATRIX),
    ("SCOPE", SCOPE),
    ("ACCESS", ACCESS),
    ("BACKEND", BACKEND),
    ("LOG", LOG),
    ("HOST_STEP", HOST_STEP),
):
    CONSTANTS.update((f"CVC_{_prefix}_{name}", value) for name, value in _values.items())


class CacheOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("limit", c_int64), ("flags", c_uint32)]


class DeviceInfo(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("backend", c_int32),
        ("reserved", c_int32),
        ("total_memory", c_uint64),
        ("free_memory", c_uint64),
        ("name", c_char * 256),
    ]


class CacheStats(Structure):
    _fields_ = [("struct_size", c_size_t)] + [
        (name, c_uint64)
        for name in (
            "limit_bytes count bytes peak_bytes live_count live_bytes unindexed_count "
            "unindexed_bytes idle_count idle_bytes pending_count pending_bytes wrapped_count "
            "view_count hits_exact hits_fit hits_pending misses evictions live_handles "
            "driver_bytes free_bytes"
        ).split()
    ]


class TensorDesc(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("device", c_int32),
        ("rank", c_int32),
        ("shape", c_int64 * MAX_RANK),
        ("dtype", c_uint32),
        ("layout", c_char * 16),
        ("flags", c_uint32),
        ("row_align", c_int64),
        ("base_align", c_int64),
    ]


class TensorData(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("device", c_int32),
        ("rank", c_int32),
        ("shape", c_int64 * MAX_RANK),
        ("strides", c_int64 * MAX_RANK),
        ("dtype", c_uint32),
        ("layout", c_char * 16),
        ("flags", c_uint32),
        ("data", c_void_p),
    ]


class ImageDesc(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("device", c_int32),
        ("format", c_uint32),
        ("width", c_int32),
        ("height", c_int32),
        ("row_align", c_int64),
        ("base_align", c_int64),
    ]


class ImagePlane(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("row_stride", c_int64),
        ("width", c_int32),
        ("height", c_int32),
    ]


class ImageData(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("device", c_int32),
        ("format", c_uint32),
        ("width", c_int32),
        ("height", c_int32),
        ("plane_count", c_int32),
        ("flags", c_uint32),
        ("planes", ImagePlane * MAX_PLANES),
    ]


class ImageRecord(Structure):
    _fields_ = [
        ("plane_count", c_int32),
        ("format", c_uint32),
        ("planes", ImagePlane * MAX_PLANES),
    ]


class TensorRecord(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("rank", c_int32),
        ("dtype", c_uint32),
        ("shape", c_int64 * MAX_RANK),
        ("strides", c_int64 * MAX_RANK),
    ]


class ImageBatchData(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("device", c_int32),
        ("count", c_int32),
        ("capacity", c_int32),
        ("unique_format", c_uint32),
        ("max_width", c_int32),
        ("max_height", c_int32),
        ("records", c_void_p),
        ("formats", c_void_p),
    ]


class TensorBatchData(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("device", c_int32),
        ("count", c_int32),
        ("capacity", c_int32),
        ("rank", c_int32),
        ("dtype", c_uint32),
        ("layout", c_char * 16),
        ("records", c_void_p),
    ]


class FormatInfo(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("plane_count", c_int32),
        ("channel_count", c_int32),
        ("plane_dtype", c_uint32 * MAX_PLANES),
        ("plane_width_shift", c_int32 * MAX_PLANES),
        ("plane_height_shift", c_int32 * MAX_PLANES),
    ]


class NormalizeParams(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("base", c_void_p),
        ("scale", c_void_p),
        ("base_values", c_float * 4),
        ("base_count", c_int32),
        ("scale_values", c_float * 4),
        ("scale_count", c_int32),
        ("global_scale", c_float),
        ("global_shift", c_float),
        ("epsilon", c_float),
        ("flags", c_uint32),
        ("dst_dtype", c_uint32),
    ]


class Crop(Structure):
    _fields_ = [("x", c_int32), ("y", c_int32), ("width", c_int32), ("height", c_int32)]


class PreprocessParams(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("flags", c_uint32),
        ("resize_flags", c_uint32),
        ("filter", c_int32),
        ("flip_code", c_int32),
        ("crops", POINTER(Crop)),
        ("crop_count", c_int32),
        ("convert_dtype", c_uint32),
        ("alpha", c_double),
        ("beta", c_double),
        ("round", c_int32),
        ("color_matrix", c_int32),
        ("normalize", POINTER(NormalizeParams)),
    ]


class HostStep(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("stream_id", c_uint64),
        ("device", c_int32),
        ("kind", c_int32),
    ]


# Struct name in C -> class. The test walks the header's structs and this table in both directions.
STRUCTS: dict[str, type[Structure]] = {
    "cvc_cache_options": CacheOptions,
    "cvc_device_info": DeviceInfo,
    "cvc_cache_stats": CacheStats,
    "cvc_tensor_desc": TensorDesc,
    "cvc_tensor_data": TensorData,
    "cvc_image_desc": ImageDesc,
    "cvc_image_plane": ImagePlane,
    "cvc_image_data": ImageData,
    "cvc_image_record": ImageRecord,
    "cvc_tensor_record": TensorRecord,
    "cvc_image_batch_data": ImageBatchData,
    "cvc_tensor_batch_data": TensorBatchData,
    "cvc_format_info": FormatInfo,
    "cvc_normalize_params": NormalizeParams,
    "cvc_crop": Crop,
    "cvc_preprocess_params": PreprocessParams,
    "cvc_host_step": HostStep,
}

_Struct = TypeVar("_Struct", bound=Structure)


def sized(struct: type[_Struct]) -> _Struct:
    """A zeroed struct of this class whose struct_size is set."""
    return struct(sizeof(struct))


_status = c_int32
_device = c_int32
_stream = _event = _cache = _tensor = _image = _image_batch = _tensor_batch = c_void_p
_handle_out = POINTER(c_void_p)
_int32_out = POINTER(c_int32)
_uint64_out = POINTER(c_uint64)
_int64s = POINTER(c_int64)
_address = c_void_p  # of a function or of plain memory


def _pointer(struct: type[Structure]) -> Any:
    return POINTER(struct)


# (name, result, arguments). A function whose result is `_status` is checked by `cvc._lib.lib`.
FUNCTIONS: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    # version, errors, log, backend, devices
    ("cvc_version", c_char_p, ()),
    ("cvc_abi_version", c_uint32, ()),
    ("cvc_status_string", c_char_p, (c_int32,)),
    ("cvc_last_error_message", _status, (_address, c_size_t, POINTER(c_size_t))),
    ("cvc_set_log_callback", _status, (_address, _address)),
    ("cvc_backend", _status, (_int32_out,)),
    ("cvc_device_count", _status, (_int32_out,)),
    ("cvc_device_get_info", _status, (_device, _pointer(DeviceInfo))),
    ("cvc_device_get_current", _status, (_int32_out,)),
    ("cvc_device_set_current", _status, (_device,)),
    ("cvc_device_synchronize", _status, (_device, c_int64)),
    # cache
    ("cvc_cache_default", _status, (_handle_out,)),
    ("cvc_cache_create", _status, (_pointer(CacheOptions), _handle_out)),
    ("cvc_cache_retain", _status, (_cache,)),
    ("cvc_cache_release", _status, (_cache,)),
    ("cvc_cache_clear", _status, (_cache, _device, c_int32)),
    ("cvc_cache_count", _status, (_cache, _device, c_int32, _uint64_out)),
    ("cvc_cache_bytes", _status, (_cache, _device, _uint64_out)),
    ("cvc_cache_get_limit", _status, (_cache, _device, _uint64_out)),
    ("cvc_cache_set_limit", _status, (_cache, _device, c_int64)),
    ("cvc_cache_stats", _status, (_cache, _device, _pointer(CacheStats))),
    ("cvc_cache_reset_peak", _status, (_cache, _device)),
    ("cvc_cache_trim", _status, (_cache, _device, c_uint64)),
    ("cvc_cache_synchronize", _status, (_cache, _device, c_int64)),
    ("cvc_cache_thread_detach", _status, (_cache,)),
    # tensors
    ("cvc_tensor_create", _status, (_cache, _pointer(TensorDesc), _stream, _handle_out)),
    (
        "cvc_tensor_desc_from_image",
        _status,
        (_device, c_int32, c_int32, c_int32, c_uint32, c_int64, _pointer(TensorDesc)),
    ),
    ("cvc_tensor_desc_nbytes", _status, (_pointer(TensorDesc), _uint64_out)),
    (
        "cvc_tensor_wrap",
        _status,
        (_cache, _pointer(TensorData), _address, _address, _stream, _handle_out),
    ),
    ("cvc_tensor_from_image", _status, (_image, _handle_out)),
    ("cvc_tensor_from_image_plane", _status, (_image, c_int32, _handle_out)),
    ("cvc_tensor_reshape", _status, (_tensor, _pointer(TensorDesc), _handle_out)),
    ("cvc_tensor_get_data", _status, (_tensor, _pointer(TensorData))),
    ("cvc_tensor_get_id", _status, (_tensor, _uint64_out)),
    ("cvc_tensor_nbytes", _status, (_tensor, _uint64_out)),
    ("cvc_tensor_begin_access", _status, (_tensor, _stream, c_int32)),
    ("cvc_tensor_end_access", _status, (_tensor, _stream, c_int32)),
    ("cvc_tensor_synchronize", _status, (_tensor, c_int64)),
    ("cvc_tensor_last_stream", _status, (_tensor, _handle_out)),
    ("cvc_tensor_retain", _status, (_tensor,)),
    ("cvc_tensor_release", _status, (_tensor,)),
    ("cvc_tensor_to_dlpack", _status, (_tensor, _stream, c_int32, _handle_out)),
    (
        "cvc_tensor_from_dlpack",
        _status,
        (_cache, _address, c_int32, c_char_p, _stream, _handle_out),
    ),
    ("cvc_python_bind", _status, (_address, _address)),
    ("cvc_python_capsule_destructor", None, (_address,)),
    # images
    ("cvc_format_get_info", _status, (c_uint32, _pointer(FormatInfo))),
    ("cvc_image_create", _status, (_cache, _pointer(ImageDesc), _stream, _handle_out)),
    (
        "cvc_image_wrap",
        _status,
        (_cache, _pointer(ImageData), _address, _address, _stream, _handle_out),
    ),
    ("cvc_image_get_data", _status, (_image, _pointer(ImageData))),
    ("cvc_image_get_id", _status, (_image, _uint64_out)),
    ("cvc_image_nbytes", _status, (_image, _uint64_out)),
    ("cvc_image_begin_access", _status, (_image, _stream, c_int32)),
    ("cvc_image_end_access", _status, (_image, _stream, c_int32)),
    ("cvc_image_synchronize", _status, (_image, c_int64)),
    ("cvc_image_retain", _status, (_image,)),
    ("cvc_image_release", _status, (_image,)),
    # batches
    ("cvc_image_batch_create", _status, (_cache, _device, c_int32, _stream, _handle_out)),
    ("cvc_image_batch_push", _status, (_image_batch, _handle_out, c_int32)),
    ("cvc_image_batch_pop", _status, (_image_batch, c_int32)),
    ("cvc_image_batch_clear", _status, (_image_batch,)),
    ("cvc_image_batch_get", _status, (_image_batch, c_int32, _handle_out)),
    ("cvc_image_batch_get_data", _status, (_image_batch, _stream, _pointer(ImageBatchData))),
    ("cvc_image_batch_get_id", _status, (_image_batch, _uint64_out)),
    ("cvc_image_batch_nbytes", _status, (_image_batch, _uint64_out)),
    ("cvc_image_batch_retain", _status, (_image_batch,)),
    ("cvc_image_batch_release", _status, (_image_batch,)),
    ("cvc_tensor_batch_create", _status, (_cache, _device, c_int32, _stream, _handle_out)),
    ("cvc_tensor_batch_push", _status, (_tensor_batch, _handle_out, c_int32)),
    ("cvc_tensor_batch_pop", _status, (_tensor_batch, c_int32)),
    ("cvc_tensor_batch_clear", _status, (_tensor_batch,)),
    ("cvc_tensor_batch_get", _status, (_tensor_batch, c_int32, _handle_out)),
    ("cvc_tensor_batch_set", _status, (_tensor_batch, c_int32, _tensor)),
    ("cvc_tensor_batch_get_data", _status, (_tensor_batch, _stream, _pointer(TensorBatchData))),
    ("cvc_tensor_batch_get_id", _status, (_tensor_batch, _uint64_out)),
    ("cvc_tensor_batch_nbytes", _status, (_tensor_batch, _uint64_out)),
    ("cvc_tensor_batch_retain", _status, (_tensor_batch,)),
    ("cvc_tensor_batch_release", _status, (_tensor_batch,)),
    # raw memory
    ("cvc_mem_alloc", _status, (_cache, _device, c_size_t, c_size_t, _stream, _handle_out)),
    ("cvc_mem_free", _status, (_cache, _address, _stream)),
    ("cvc_mem_record_stream", _status, (_cache, _address, _stream)),
    ("cvc_mem_free_after_event", _status, (_cache, _address, _event)),
    # streams and events
    ("cvc_stream_create", _status, (_device, c_uint32, _handle_out)),
    ("cvc_stream_destroy", _status, (_stream,)),
    ("cvc_stream_register", _status, (_device, _stream, c_uint32)),
    ("cvc_stream_unregister", _status, (_stream,)),
    ("cvc_stream_query", _status, (_stream,)),
    ("cvc_stream_synchronize", _status, (_stream, c_int64)),
    ("cvc_stream_wait_stream", _status, (_stream, _stream)),
    ("cvc_stream_wait_event", _status, (_stream, _event)),
    ("cvc_stream_get_id", _status, (_stream, _uint64_out)),
    ("cvc_stream_get_device", _status, (_stream, _int32_out)),
    ("cvc_event_create", _status, (_device, c_uint32, _handle_out)),
    ("cvc_event_destroy", _status, (_event,)),
    ("cvc_event_record", _status, (_event, _stream)),
    ("cvc_event_query", _status, (_event,)),
    ("cvc_event_synchronize", _status, (_event, c_int64)),
    ("cvc_event_elapsed_ms", _status, (_event, _event, POINTER(c_float))),
    # copies
    ("cvc_copy", _status, (_stream, _tensor, _tensor)),
    ("cvc_upload", _status, (_stream, _address, _int64s, _tensor)),
    ("cvc_download", _status, (_stream, _tensor, _address, _int64s)),
    ("cvc_fill_zero", _status, (_stream, _tensor)),
    # operators
    ("cvc_op_flip", _status, (_stream, _tensor, _tensor, c_int32)),
    ("cvc_op_flip_new", _status, (_stream, _tensor, c_int32, _handle_out)),
    ("cvc_op_pillow_resize", _status, (_stream, _tensor, _tensor, c_int32, c_uint32)),
    (
        "cvc_op_pillow_resize_new",
        _status,
        (_stream, _tensor, c_int64, c_int64, c_int32, c_uint32, _handle_out),
    ),
    ("cvc_op_convert_to", _status, (_stream, _tensor, _tensor, c_double, c_double, c_int32)),
    (
        "cvc_op_convert_to_new",
        _status,
        (_stream, _tensor, c_uint32, c_double, c_double, c_int32, _handle_out),
    ),
    ("cvc_op_normalize", _status, (_stream, _tensor, _tensor, _pointer(NormalizeParams))),
    ("cvc_op_normalize_new", _status, (_stream, _tensor, _pointer(NormalizeParams), _handle_out)),
    ("cvc_op_reformat", _status, (_stream, _tensor, _tensor)),
    ("cvc_op_reformat_new", _status, (_stream, _tensor, c_char_p, _handle_out)),
    ("cvc_op_flip_var_shape", _status, (_stream, _image_batch, _image_batch, _tensor)),
    ("cvc_op_flip_var_shape_new", _status, (_stream, _image_batch, _tensor, _handle_out)),
    (
        "cvc_op_pillow_resize_var_shape",
        _status,
        (_stream, _image_batch, _image_batch, c_int32, c_uint32),
    ),
    (
        "cvc_op_pillow_resize_var_shape_new",
        _status,
        (_stream, _image_batch, _int32_out, c_int32, c_int32, c_uint32, _handle_out),
    ),
    (
        "cvc_op_normalize_var_shape",
        _status,
        (_stream, _image_batch, _image_batch, _pointer(NormalizeParams)),
    ),
    (
        "cvc_op_normalize_var_shape_new",
        _status,
        (_stream, _image_batch, _pointer(NormalizeParams), c_uint32, _handle_out),
    ),
    ("cvc_op_preprocess", _status, (_stream, _tensor, _tensor, _pointer(PreprocessParams))),
    (
        "cvc_op_preprocess_new",
        _status,
        (
            _stream,
            _tensor,
            _pointer(PreprocessParams),
            c_int64,
            c_int64,
            c_char_p,
            _handle_out,
        ),
    ),
    (
        "cvc_op_preprocess_var_shape",
        _status,
        (_stream, _image_batch, _tensor, _pointer(PreprocessParams)),
    ),
    (
        "cvc_op_preprocess_var_shape_new",
        _status,
        (
            _stream,
            _image_batch,
            _pointer(PreprocessParams),
            c_int64,
            c_int64,
            c_char_p,
            _handle_out,
        ),
    ),
    # host backend, for tests
    ("cvc_host_latch_create", _status, (_stream, _uint64_out)),
    ("cvc_host_latch_open", _status, (c_uint64,)),
    ("cvc_host_step_count", _status, (_uint64_out,)),
    ("cvc_host_step_get", _status, (c_uint64, _pointer(HostStep))),
    ("cvc_host_step", _status, (c_uint64,)),
    ("cvc_host_step_stream", _status, (_stream, _uint64_out)),
    ("cvc_host_step_all", _status, (_uint64_out,)),
    ("cvc_host_capture_begin", _status, (_stream,)),
    ("cvc_host_capture_end", _status, (_stream,)),
    # instruments around the backend, for tests
    ("cvc_backend_instrument", _status, (c_uint32,)),
    ("cvc_backend_call_name", c_char_p, (c_uint32,)),
    ("cvc_backend_call_count", _status, (c_char_p, _uint64_out)),
    ("cvc_backend_call_reset", _status, ()),
    ("cvc_host_fault", _status, (c_char_p, c_uint64, c_uint64, c_int32)),
    ("cvc_host_fault_hits", _status, (_uint64_out,)),
    ("cvc_host_fault_clear", _status, ()),
    ("cvc_host_race_count", _status, (_uint64_out,)),
    ("cvc_host_race_report", _status, (_address, c_size_t, POINTER(c_size_t))),
    ("cvc_host_race_forget", _status, ()),
    ("cvc_host_race_access", _status, (_device, _stream, _address, c_uint64, c_int32)),
)

"""Bad input, through the objects and through the raw table: an error each time, and no change."""

from __future__ import annotations

import ctypes
import pickle
from ctypes import byref, c_int64, c_uint64, c_void_p

import numpy as np
import pytest
from support import output_of

import cvc
from cvc import _abi
from cvc._abi import STATUS, sized
from cvc._context import default_cache
from cvc._lib import last_error_message, raw

HUGE = 2**62


def snapshot():
    stats = cvc.cache_stats()._asdict()
    for counter in ("hits_exact", "hits_fit", "hits_pending", "misses", "evictions"):
        del stats[counter]
    return stats


@pytest.fixture(autouse=True)
def nothing_changes(empty_cache):
    """A failed call changes nothing: what a test leaves behind is what it made and dropped."""
    before = cvc.cache_stats().live_handles
    yield
    assert cvc.cache_stats().live_handles == before == 0


def status_of(name):
    return STATUS[name]


def assert_status(status, *names):
    assert status in [STATUS[name] for name in names], last_error_message()
    assert last_error_message()


# --- the exceptions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error, base",
    [
        (cvc.InvalidArgumentError, ValueError),
        (cvc.MismatchError, ValueError),
        (cvc.SizeOverflowError, OverflowError),
        (cvc.InvalidHandleError, ValueError),
        (cvc.StaleHandleError, cvc.InvalidHandleError),
        (cvc.WrongKindError, TypeError),
        (cvc.CapacityError, ValueError),
        (cvc.InvalidIndexError, IndexError),
        (cvc.NotSupportedError, NotImplementedError),
        (cvc.NotReadyError, TimeoutError),
        (cvc.OutOfMemoryError, MemoryError),
        (cvc.LimitExceededError, cvc.OutOfMemoryError),
        (cvc.DeviceError, cvc.Error),
        (cvc.ContextLostError, cvc.DeviceError),
        (cvc.Error, RuntimeError),
    ],
)
def test_errors_are_what_people_catch(error, base):
    assert issubclass(error, base) and issubclass(error, cvc.Error)
    made = error("what went wrong", 1)
    assert str(made) == "what went wrong" and made.status == 1
    assert made.status_name == "CVC_STATUS_INVALID_ARGUMENT"
    again = pickle.loads(pickle.dumps(made))
    assert (type(again), str(again), again.status) == (error, str(made), 1)


def test_every_status_has_an_exception():
    from cvc.errors import error_of

    for name, status in STATUS.items():
        if name != "OK":
            assert error_of(status, name).status_name == f"CVC_STATUS_{name}"
    assert type(error_of(9999, "unknown")) is cvc.Error
    assert error_of(9999, "unknown").status_name == "CVC_STATUS_9999"


def test_message_of_any_length():
    with pytest.raises(ValueError) as caught:
        cvc.Tensor((2,) * 15, np.uint8, "ABC")
    assert "layout" in str(caught.value)
    needed = ctypes.c_size_t()
    small = ctypes.create_string_buffer(b"xxxxxxxx", 8)
    raw.cvc_last_error_message(small, 4, byref(needed))
    assert needed.value > 4 and small.raw[3:4] == b"\0" and small.raw[4:] == b"xxxx"


# --- tensors and images --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape, dtype, layout, error",
    [
        ((), np.uint8, None, ValueError),
        ((1,) * 16, np.uint8, None, ValueError),
        ((1,) * 40, np.uint8, None, ValueError),
        ((-1,), np.uint8, None, ValueError),
        ((4, -(2**63)), np.uint8, None, ValueError),
        ((HUGE, HUGE), np.uint8, None, OverflowError),
        ((2**63 - 1,), np.float64, None, OverflowError),
        ((2**31, 2**31, 2**31), np.uint8, None, OverflowError),
        ((2**63,), np.uint8, None, ValueError),
        ((2**200,), np.uint8, None, ValueError),
        ((2**50,), np.uint8, None, MemoryError),
        ((4, 4), np.uint8, "HWC", ValueError),
        ((4, 4), np.uint8, "H", ValueError),
        ((4, 4), np.uint8, "x" * 16, ValueError),
        ((4, 4), np.uint8, "é\0", ValueError),
        ((4, 4), np.uint8, 7, TypeError),
        ((4, 4), 99, None, ValueError),
        ((4, 4), "nothing", None, TypeError),
        ((4.0, 4), np.uint8, None, TypeError),
        (("4",), np.uint8, None, TypeError),
        (None, np.uint8, None, TypeError),
        ((4, 4), None, None, TypeError),
    ],
)
def test_tensor_that_cannot_be(shape, dtype, layout, error):
    before = snapshot()
    with pytest.raises(error):
        cvc.Tensor(shape, dtype, layout)
    assert snapshot() == before


@pytest.mark.parametrize("alignment", [-1, 3, 48, 2**62 + 1, 2**63, 2**80])
def test_row_alignments_that_are_none(alignment):
    with pytest.raises(ValueError, match=str(alignment)):
        cvc.Tensor((4, 4, 3), np.uint8, "HWC", rowalign=alignment)
    with pytest.raises(ValueError, match=str(alignment)):
        cvc.Image((4, 4), cvc.Format.U8, rowalign=alignment)
    with pytest.raises(TypeError):
        cvc.Tensor((4, 4, 3), np.uint8, "HWC", rowalign=1.5)


@pytest.mark.parametrize(
    "arguments",
    [
        (-1, (4, 4), cvc.Format.RGB8),
        (2**31, (4, 4), cvc.Format.RGB8),
        (2, (4,), cvc.Format.RGB8),
        (2, (-4, 4), cvc.Format.RGB8),
        (2, (4, 2**40), cvc.Format.RGB8),
        (2, (4, 4), cvc.Format.NV12),
        (2, (4, 4), 999),
        (2, (4, 4), cvc.Format.NONE),
        (2, (4, 4)),
        (2,),
        (2, 4, cvc.Format.RGB8),
    ],
)
def test_tensor_for_images_that_cannot_be(arguments):
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        cvc.Tensor(*arguments)


def test_device_that_is_full():
    tensors = []
    with pytest.raises(MemoryError) as caught:
        for _ in range(100_000):
            tensors.append(cvc.Tensor((256 << 20,), np.uint8))
    assert caught.value.status_name == "CVC_STATUS_OUT_OF_MEMORY"
    count = len(tensors)
    assert count > 0
    tensors.clear()
    again = [cvc.Tensor((256 << 20,), np.uint8) for _ in range(count)]
    assert len(again) == count
    del again
    cvc.clear_cache()


# --- operators -----------------------------------------------------------------------------------


def tensor(shape=(4, 5, 3), dtype=np.uint8, layout="HWC"):
    return cvc.Tensor(shape, dtype, layout)


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: cvc.flip(np.zeros((4, 5, 3)), 0), TypeError),
        (lambda: cvc.flip(cvc.Image((4, 5), cvc.Format.U8), 0), TypeError),
        (lambda: cvc.flip(tensor(), 1.5), TypeError),
        (lambda: cvc.flip(tensor(), 2**40), ValueError),
        (lambda: cvc.flip(tensor(layout=None), 0), ValueError),
        (lambda: cvc.flip_into(tensor((4, 6, 3)), tensor(), 0), ValueError),
        (lambda: cvc.flip_into(tensor(dtype=np.int8), tensor(), 0), ValueError),
        (lambda: cvc.flip_into(tensor(layout="CHW"), tensor(), 0), ValueError),
        (lambda: cvc.flip_into(None, tensor(), 0), TypeError),
        (lambda: cvc.flip(tensor((4, 5), layout="NC"), 0), RuntimeError),
        (lambda: cvc.pillowresize(tensor(), (4, 4, 4)), ValueError),
        (lambda: cvc.pillowresize(tensor(), (4, 4)), ValueError),
        (lambda: cvc.pillowresize(tensor(), (0, 4, 3)), ValueError),
        (lambda: cvc.pillowresize(tensor(), (-4, 4, 3)), ValueError),
        (lambda: cvc.pillowresize(tensor(), (2**62, 2**62, 3)), (ValueError, MemoryError)),
        (lambda: cvc.pillowresize(tensor(), (4, 4, 3), 999), ValueError),
        (lambda: cvc.pillowresize(tensor(), (4, 4, 3), interp=99), ValueError),
        (lambda: cvc.pillowresize(tensor(), (4, 4, 3), interp=cvc.Interp.AREA), RuntimeError),
        (lambda: cvc.pillowresize(tensor((4, 5), layout="AB"), (4, 4)), ValueError),
        (lambda: cvc.pillowresize_into(tensor((4, 4, 4)), tensor()), ValueError),
        (lambda: cvc.convertto(tensor(), "nothing"), TypeError),
        (lambda: cvc.convertto(tensor(), np.complex64), RuntimeError),
        (lambda: cvc.convertto(tensor(), np.uint8, float("nan")), ValueError),
        (lambda: cvc.convertto(tensor(), np.uint8, 1, float("inf")), ValueError),
        (lambda: cvc.convertto(tensor(), np.uint8, "x"), ValueError),
        (lambda: cvc.convertto(tensor(), np.uint8, round=9), ValueError),
        (lambda: cvc.convertto_into(tensor((4, 6, 3)), tensor()), ValueError),
        (lambda: cvc.normalize(tensor(), [float("nan")], [1]), ValueError),
        (lambda: cvc.normalize(tensor(), [1], [1], globalscale=float("inf")), ValueError),
        (lambda: cvc.normalize(tensor(), [1], [1], epsilon=float("nan")), ValueError),
        (lambda: cvc.normalize(tensor(), [1], [1], flags=64), ValueError),
        (lambda: cvc.normalize(tensor(), [1], [1], flags=-1), ValueError),
        (lambda: cvc.normalize(tensor(), [1], [1], flags=2**32), ValueError),
        (lambda: cvc.normalize(tensor(), [], [1]), ValueError),
        (lambda: cvc.normalize(tensor(), [1, 2], [1]), ValueError),
        (lambda: cvc.normalize(tensor(), [1] * 5, [1]), ValueError),
        (lambda: cvc.normalize(tensor(), ["x"], [1]), ValueError),
        (lambda: cvc.normalize(tensor(), tensor(), [1]), ValueError),
        (lambda: cvc.normalize(tensor(), [1], tensor((1, 1, 2), np.float32)), ValueError),
        (lambda: cvc.normalize(tensor(), [1], [1], format=cvc.Format.U8), TypeError),
        (lambda: cvc.preprocess(tensor(), (0, 4), "HWC"), ValueError),
        (lambda: cvc.preprocess(tensor(), 4, "HWC"), TypeError),
        (lambda: cvc.preprocess(tensor(), (4, 4), "HW"), ValueError),
        (lambda: cvc.preprocess(tensor(), (4, 4), "HWC", crop=(0, 0, 9, 1)), ValueError),
        (lambda: cvc.preprocess(tensor(), (4, 4), "HWC", crop=[(0, 0, 1, 1)] * 2), ValueError),
        (lambda: cvc.preprocess(tensor(), (4, 4), "HWC", crop=(0, 0, 1)), ValueError),
        (lambda: cvc.preprocess(tensor(), (4, 4), "HWC", crop=(0, 0, 1, 2**31)), ValueError),
        (lambda: cvc.preprocess(tensor(), (4, 4), "HWC", interp=99), ValueError),
        (lambda: cvc.preprocess(tensor(), (4, 4), "HWC", flip="x"), TypeError),
        (lambda: cvc.preprocess(tensor(), (4, 4), "HWC", nv12="wide"), ValueError),
        (lambda: cvc.preprocess(tensor(), (4, 4), "HWC", nv12="full"), ValueError),
        (lambda: cvc.preprocess(tensor(), (4, 4), "HWC", matrix=9), ValueError),
        (lambda: cvc.preprocess(tensor(), (4, 4), "HWC", convert="nothing"), TypeError),
        (
            lambda: cvc.preprocess(
                tensor(), (4, 4), "HWC", convert=cvc.Convert("float32", float("nan"))
            ),
            ValueError,
        ),
        (
            lambda: cvc.preprocess(tensor(), (4, 4), "HWC", normalize=cvc.Normalize([1, 2], [1])),
            ValueError,
        ),
        (
            lambda: cvc.preprocess(tensor((4, 4, 2)), (4, 4), "HWC", swap_channels=True),
            RuntimeError,
        ),
        (lambda: cvc.preprocess_into(tensor((4, 4, 3), np.float32), tensor()), ValueError),
        (lambda: cvc.preprocess_into(tensor(), batch()), ValueError),
        (lambda: cvc.preprocess(batch(), (4, 4), "NHWC", nv12="full"), ValueError),
        (lambda: cvc.reformat(tensor(), "NCHW"), (ValueError, RuntimeError)),
        (lambda: cvc.reformat(tensor(), "HW"), (ValueError, RuntimeError)),
        (lambda: cvc.reformat(tensor(), None), (ValueError, RuntimeError)),
        (lambda: cvc.reformat(tensor(layout=None), "CHW"), (ValueError, RuntimeError)),
        (lambda: cvc.reformat_into(tensor((3, 5, 4), layout="CHW"), tensor()), ValueError),
    ],
)
def test_operator_that_cannot_run(call, error):
    with pytest.raises(error):
        call()


def batch(count=2, format=cvc.Format.RGB8, size=(4, 5)):
    made = cvc.ImageBatchVarShape(count + 1)
    made.pushback([cvc.Image(size, format) for _ in range(count)])
    return made


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: cvc.flip(batch(), 0), TypeError),
        (lambda: cvc.flip(batch(), tensor((1,), np.int32, "N")), ValueError),
        (lambda: cvc.flip(batch(), tensor((2, 1), np.int32, "NC")), ValueError),
        (lambda: cvc.flip(batch(), tensor((2,), np.uint8, "N")), ValueError),
        (lambda: cvc.flip_into(batch(3), batch(), tensor((2,), np.int32, "N")), ValueError),
        (lambda: cvc.flip_into(tensor(), batch(), tensor((2,), np.int32, "N")), TypeError),
        (lambda: cvc.flip_into(batch(), tensor(), 0), TypeError),
        (lambda: cvc.pillowresize(batch(), [(4, 4)]), ValueError),
        (lambda: cvc.pillowresize(batch(), [(4, 4), (0, 4)]), ValueError),
        (lambda: cvc.pillowresize(batch(), [(4, 4), (4,)]), ValueError),
        (lambda: cvc.pillowresize(batch(), [(4, 4), (4, 2**31)]), ValueError),
        (lambda: cvc.pillowresize(batch(), [(4, 4)] * 2, cvc.Interp.AREA), RuntimeError),
        (lambda: cvc.pillowresize_into(batch(format=cvc.Format.BGR8), batch()), ValueError),
        (lambda: cvc.normalize(batch(), [1, 2], [1]), ValueError),
        (lambda: cvc.normalize(batch(), [1], [1], dtype="float32"), TypeError),
        (lambda: cvc.normalize(batch(), [1], [1], format=999), ValueError),
    ],
)
def test_operator_on_a_batch_that_cannot_run(call, error):
    with pytest.raises(error):
        call()


# --- the raw table -------------------------------------------------------------------------------


def desc(**changes):
    made = sized(_abi.TensorDesc)
    made.device, made.rank, made.dtype = -1, 2, _abi.DTYPE["U8"]
    made.shape[:2] = (4, 6)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def make(**changes):
    out = c_void_p()
    status = raw.cvc_tensor_create(default_cache(), desc(**changes), _abi.STREAM_NONE, byref(out))
    assert status == 0, last_error_message()
    return out.value


@pytest.mark.parametrize("struct_size", [0, 1, 7, 2**31, 2**63, 2**64 - 1])
def test_struct_sizes_that_are_none(struct_size):
    out = c_void_p(7)
    status = raw.cvc_tensor_create(
        default_cache(), desc(struct_size=struct_size), _abi.STREAM_NONE, byref(out)
    )
    assert_status(status, "INVALID_STRUCT_SIZE")
    assert out.value is None
    assert str(struct_size) in last_error_message()
    handle = make()
    data = _abi.TensorData(struct_size)
    assert_status(raw.cvc_tensor_get_data(handle, data), "INVALID_STRUCT_SIZE")
    stats = _abi.CacheStats(struct_size)
    assert_status(raw.cvc_cache_stats(default_cache(), -1, stats), "INVALID_STRUCT_SIZE")
    assert raw.cvc_tensor_release(handle) == 0


@pytest.mark.parametrize(
    "changes, status",
    [
        ({"rank": 0}, "INVALID_RANK"),
        ({"rank": -1}, "INVALID_RANK"),
        ({"rank": 16}, "INVALID_RANK"),
        ({"rank": 2**31 - 1}, "INVALID_RANK"),
        ({"dtype": 0}, "INVALID_ENUM"),
        ({"dtype": 14}, "INVALID_ENUM"),
        ({"dtype": 0x40D}, "INVALID_ENUM"),
        ({"dtype": 0xFFFFFFFF}, "INVALID_ENUM"),
        ({"layout": b"HWC"}, "INVALID_LAYOUT"),
        ({"layout": b"0123456789abcdef"}, "INVALID_LAYOUT"),
        ({"row_align": -8}, "INVALID_ALIGNMENT"),
        ({"row_align": 24}, "INVALID_ALIGNMENT"),
        ({"base_align": 3}, "INVALID_ALIGNMENT"),
        ({"base_align": -(2**63)}, "INVALID_ALIGNMENT"),
        ({"device": 99}, "INVALID_DEVICE"),
        ({"device": -2}, "INVALID_DEVICE"),
        ({"flags": 1}, "INVALID_ENUM"),
    ],
)
def test_descriptions_that_are_none(changes, status):
    before, out = snapshot(), c_void_p(7)
    got = raw.cvc_tensor_create(default_cache(), desc(**changes), _abi.STREAM_NONE, byref(out))
    assert_status(got, status)
    assert out.value is None
    assert snapshot() == before


def test_null_pointers():
    out, number = c_void_p(), c_uint64()
    cache = default_cache()
    for status in (
        raw.cvc_tensor_create(cache, None, _abi.STREAM_NONE, byref(out)),
        raw.cvc_tensor_create(cache, desc(), _abi.STREAM_NONE, None),
        raw.cvc_cache_default(None),
        raw.cvc_cache_bytes(cache, -1, None),
        raw.cvc_cache_stats(cache, -1, None),
        raw.cvc_image_create(cache, None, _abi.STREAM_NONE, byref(out)),
        raw.cvc_stream_create(-1, 0, None),
        raw.cvc_backend(None),
    ):
        assert_status(status, "NULL_POINTER")
    handle = make()
    assert_status(raw.cvc_upload(None, None, None, handle), "NULL_POINTER")
    assert_status(raw.cvc_download(None, handle, None, None), "NULL_POINTER")
    assert_status(raw.cvc_tensor_get_data(handle, None), "NULL_POINTER")
    assert_status(raw.cvc_tensor_get_id(handle, None), "NULL_POINTER")
    assert raw.cvc_tensor_release(handle) == 0
    assert_status(raw.cvc_tensor_get_id(None, byref(number)), "INVALID_HANDLE")
    assert_status(raw.cvc_cache_bytes(None, -1, byref(number)), "INVALID_HANDLE")


def test_stale_handles_and_double_release():
    out, number, data = c_void_p(), c_uint64(), sized(_abi.TensorData)
    handle, other = make(), make()
    assert raw.cvc_tensor_release(handle) == 0
    for status in (
        raw.cvc_tensor_release(handle),
        raw.cvc_tensor_retain(handle),
        raw.cvc_tensor_get_id(handle, byref(number)),
        raw.cvc_tensor_get_data(handle, data),
        raw.cvc_tensor_synchronize(handle, 0),
        raw.cvc_op_flip_new(None, handle, 0, byref(out)),
        raw.cvc_copy(None, other, handle),
        raw.cvc_tensor_reshape(handle, desc(), byref(out)),
        raw.cvc_tensor_to_dlpack(handle, None, 0, byref(out)),
    ):
        assert_status(status, "STALE_HANDLE")
        assert out.value is None
    again = make()
    assert again != handle, "a reused object has another handle"
    assert_status(raw.cvc_tensor_release(handle), "STALE_HANDLE")
    assert raw.cvc_tensor_release(other) == raw.cvc_tensor_release(again) == 0


@pytest.mark.parametrize("value", [1, 8, 0xDEADBEEF, 2**36, 2**63, 2**64 - 1])
def test_values_that_never_were_handles(value):
    number = c_uint64()
    for status in (
        raw.cvc_tensor_get_id(value, byref(number)),
        raw.cvc_image_get_id(value, byref(number)),
        raw.cvc_tensor_release(value),
        raw.cvc_image_batch_clear(value),
        raw.cvc_cache_bytes(value, -1, byref(number)),
    ):
        assert_status(status, "INVALID_HANDLE", "WRONG_KIND", "STALE_HANDLE")


def test_handles_of_another_kind():
    number, out = c_uint64(), c_void_p()
    image = cvc.Image((4, 4), cvc.Format.U8)
    images = cvc.ImageBatchVarShape(2)
    tensors = cvc.TensorBatch(2)
    handle = make()
    for status in (
        raw.cvc_tensor_get_id(image._handle, byref(number)),
        raw.cvc_image_get_id(handle, byref(number)),
        raw.cvc_image_release(handle),
        raw.cvc_tensor_release(images._handle),
        raw.cvc_image_batch_clear(tensors._handle),
        raw.cvc_tensor_from_image(handle, byref(out)),
        raw.cvc_image_batch_push(images._handle, byref(c_void_p(handle)), 1),
        raw.cvc_op_flip_new(None, image._handle, 0, byref(out)),
        raw.cvc_cache_bytes(handle, -1, byref(number)),
    ):
        assert_status(status, "WRONG_KIND")
    assert raw.cvc_tensor_release(handle) == 0


def wrap_data(array, **changes):
    data = sized(_abi.TensorData)
    data.device, data.rank, data.dtype = -1, array.ndim, _abi.DTYPE["U8"]
    data.shape[: array.ndim] = array.shape
    data.strides[: array.ndim] = array.strides
    data.data = array.ctypes.data
    for name, value in changes.items():
        setattr(data, name, value)
    return data


def with_strides(array, strides):
    data = wrap_data(array)
    data.strides[: len(strides)] = strides
    return data


def test_wraps_that_cannot_be():
    array = np.zeros((4, 6), np.uint8)
    out = c_void_p()
    for data, *statuses in (
        (wrap_data(array, data=None), "NULL_POINTER"),
        (with_strides(array, (5, 1)), "INVALID_STRIDES"),
        (with_strides(array, (0, 1)), "INVALID_STRIDES"),
        (with_strides(array, (-6, 1)), "INVALID_STRIDES"),
        (with_strides(array, (6, 2)), "INVALID_STRIDES"),
        (with_strides(array, (2**62, 1)), "INVALID_STRIDES", "OVERFLOW"),
        (wrap_data(array, dtype=_abi.DTYPE["F32"]), "INVALID_STRIDES"),
        (wrap_data(array, rank=0), "INVALID_RANK"),
        (wrap_data(array, rank=16), "INVALID_RANK"),
        (wrap_data(array, layout=b"HWC"), "INVALID_LAYOUT"),
        (wrap_data(array, struct_size=0), "INVALID_STRUCT_SIZE"),
        (wrap_data(array, device=7), "INVALID_DEVICE"),
    ):
        status = raw.cvc_tensor_wrap(
            default_cache(), data, None, None, _abi.STREAM_NONE, byref(out)
        )
        assert_status(status, *statuses)
        assert out.value is None
    data = wrap_data(array)
    data.shape[0] = -4
    assert_status(
        raw.cvc_tensor_wrap(default_cache(), data, None, None, _abi.STREAM_NONE, byref(out)),
        "INVALID_SHAPE",
    )


def test_enumerations_that_are_none():
    out, handle = c_void_p(), make(rank=3, layout=b"HWC", shape=(c_int64 * 15)(4, 5, 3))
    number = c_uint64()
    params = sized(_abi.NormalizeParams)
    params.base_count = params.scale_count = 1
    params.flags = 2
    info = sized(_abi.FormatInfo)
    for status in (
        raw.cvc_op_pillow_resize_new(None, handle, 2, 2, 99, 0, byref(out)),
        raw.cvc_op_pillow_resize_new(None, handle, 2, 2, -1, 0, byref(out)),
        raw.cvc_op_pillow_resize_new(None, handle, 2, 2, 1, 64, byref(out)),
        raw.cvc_op_convert_to_new(None, handle, 77, 1.0, 0.0, 0, byref(out)),
        raw.cvc_op_convert_to_new(None, handle, 1, 1.0, 0.0, 5, byref(out)),
        raw.cvc_op_normalize_new(None, handle, params, byref(out)),
        raw.cvc_cache_clear(default_cache(), -1, 2),
        raw.cvc_cache_count(default_cache(), -1, -1, byref(number)),
        raw.cvc_tensor_begin_access(handle, None, 0),
        raw.cvc_tensor_end_access(handle, None, 9),
        raw.cvc_format_get_info(999, info),
        raw.cvc_stream_create(-1, 64, byref(out)),
        raw.cvc_event_create(-1, 64, byref(out)),
    ):
        assert_status(status, "INVALID_ENUM")
        assert out.value is None
    assert raw.cvc_tensor_release(handle) == 0


def test_limits_and_devices_that_are_none(default_limit):
    number = c_uint64()
    assert_status(raw.cvc_cache_set_limit(default_cache(), -1, -5), "INVALID_LIMIT")
    assert "-5" in last_error_message()
    for device in (1000, -2, -(2**31)):
        assert_status(raw.cvc_cache_bytes(default_cache(), device, byref(number)), "INVALID_DEVICE")
        assert str(device) in last_error_message()
        assert_status(raw.cvc_device_set_current(device), "INVALID_DEVICE")
        with pytest.raises(ValueError):
            cvc.set_device(device)
        with pytest.raises(ValueError):
            cvc.cache_stats(device)
    assert cvc.get_cache_limit_inbytes() == default_limit


def test_streams_and_events_that_are_none():
    number = c_uint64()
    stream = cvc.Stream()
    if cvc.backend() == "host":
        for status in (
            raw.cvc_stream_synchronize(0x12345678, 0),
            raw.cvc_stream_destroy(0x12345678),
            raw.cvc_stream_get_id(0x12345678, byref(number)),
            raw.cvc_stream_unregister(0x12345678),
        ):
            assert_status(status, "INVALID_STREAM")
        assert_status(raw.cvc_event_query(0x12345678), "INVALID_EVENT")
    for handle in (0, 1, 2):
        assert_status(raw.cvc_stream_destroy(handle), "INVALID_STREAM")
    assert_status(raw.cvc_event_record(None, int(stream)), "INVALID_EVENT")
    assert_status(raw.cvc_stream_register(-1, int(stream), 0), "INVALID_STREAM")


def test_waits_that_run_out():
    from support import busy

    stream = cvc.Stream()
    with busy(stream):
        assert raw.cvc_stream_synchronize(int(stream), 0) == STATUS["NOT_READY"]
        assert raw.cvc_stream_synchronize(int(stream), 1_000_000) == STATUS["NOT_READY"]
        assert raw.cvc_stream_query(int(stream)) == STATUS["NOT_READY"]
        assert raw.cvc_device_synchronize(-1, 1_000_000) == STATUS["NOT_READY"]


def test_objects_of_different_devices():
    assert (
        output_of(
            """
            import ctypes
            import numpy as np
            import cvc
            from cvc._context import default_cache

            assert cvc.device_count() == 2
            first = cvc.upload(np.zeros((4, 4, 3), np.uint8), "HWC")
            stream_of_first = cvc.Stream()
            cvc.set_device(1)
            assert cvc.current_device() == 1
            second = cvc.upload(np.zeros((4, 4, 3), np.uint8), "HWC")
            assert (first.device, second.device) == (0, 1)
            assert first.__dlpack_device__() == (1, 0)

            def refused(call):
                try:
                    call()
                except cvc.MismatchError as error:
                    assert error.status_name == "CVC_STATUS_DEVICE_MISMATCH", error
                else:
                    raise AssertionError("accepted")

            refused(lambda: cvc.flip_into(second, first, 0, stream=stream_of_first))
            refused(lambda: cvc.flip(second, 0, stream=stream_of_first))
            batch = cvc.TensorBatch(2)
            refused(lambda: batch.pushback([second, first]))
            assert len(batch) == 0
            images = cvc.ImageBatchVarShape(2)
            image = cvc.Image((4, 4), cvc.Format.U8)
            cvc.set_device(0)
            refused(lambda: images.pushback(cvc.Image((4, 4), cvc.Format.U8)))
            images.pushback(image)

            # Each device has its own limit, bytes and entries.
            del first, second, batch, images, image
            cvc.clear_cache()
            cvc.set_cache_limit_inbytes(1000)
            assert cvc.get_cache_limit_inbytes(device=1) != 1000
            cvc.set_device(1)
            kept = cvc.Tensor((64, 64), np.uint8)
            where = kept.cuda()._data.data
            assert cvc.current_cache_size_inbytes() > 0
            assert cvc.current_cache_size_inbytes(device=0) == 0
            del kept
            cvc.set_device(0)
            cvc.set_cache_limit_inbytes(1 << 20)
            other = cvc.Tensor((64, 64), np.uint8)
            assert other.device == 0 and other.cuda()._data.data != where
            assert cvc.cache_size() == 2
            assert cvc.cache_size(device=1) == 1
            cvc.clear_cache(device=0)
            assert cvc.cache_size() == 1
            cvc.clear_cache()
            assert cvc.cache_size() == 0
            print("done")
            """,
            CVC_BACKEND="host",
            CVC_HOST_DEVICES="2",
        )
        == "done\n"
    )

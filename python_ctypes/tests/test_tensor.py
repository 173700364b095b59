"""Tensors: creation, types, layouts, views, exports and wraps of others' memory."""

from __future__ import annotations

import array
import ctypes
import gc
import pickle
import weakref

import numpy as np
import pytest
from support import address, busy, output_of

import cvc

on_host = pytest.mark.skipif(cvc.backend() != "host", reason="host memory is the device's")


@pytest.mark.parametrize(
    "count, size, format, layout, shape, dtype",
    [
        (5, (32, 16), cvc.Format.RGBA8, cvc.TensorLayout.NHWC, (5, 16, 32, 4), np.uint8),
        (2, (38, 7), cvc.Format.RGB8p, cvc.TensorLayout.NCHW, (2, 3, 7, 38), np.uint8),
        (1, (3, 2), cvc.Format.RGBf32, cvc.TensorLayout.NHWC, (1, 2, 3, 3), np.float32),
        (3, (9, 4), cvc.Format.U16, cvc.TensorLayout.NHWC, (3, 4, 9, 1), np.uint16),
    ],
)
def test_creation_for_images(count, size, format, layout, shape, dtype):
    for tensor in (
        cvc.Tensor(count, size, format),
        cvc.Tensor(nimages=count, imgsize=size, format=format),
        cvc.Tensor(np.int64(count), list(size), format, 0),
    ):
        assert tensor.shape == shape
        assert tensor.layout == layout
        assert tensor.dtype == dtype
        assert tensor.ndim == len(shape)
        assert tensor.device == cvc.current_device()


@pytest.mark.parametrize(
    "shape, dtype, layout",
    [
        ((5, 16, 32, 4), np.float32, cvc.TensorLayout.NHWC),
        ((7, 3, 33, 11), np.complex64, cvc.TensorLayout.NCHW),
        ((3, 11), np.int16, None),
        ((16, 32, 4), "float32", "HWC"),
        ((32, 4), cvc.Type.F32, cvc.TensorLayout.WC),
        ((32,), np.dtype("f8"), "W"),
        ((2, 3), float, None),
        ((1,) * 15, np.uint8, "abcdefghijklmno"),
        ((4, 4), np.float16, None),
        ((4, 4), np.complex128, None),
        ((4, 4), np.uint64, None),
    ],
)
def test_creation_by_shape(shape, dtype, layout):
    for tensor in (
        cvc.Tensor(shape, dtype, layout),
        cvc.Tensor(layout=layout, shape=shape, dtype=dtype),
        cvc.Tensor(np.array(shape), dtype, layout) if len(shape) > 1 else cvc.Tensor(shape, dtype),
    ):
        assert tensor.shape == shape
        assert tensor.dtype == (np.dtype(dtype) if dtype is not cvc.Type.F32 else np.float32)
        assert tensor.ndim == len(shape)
    assert cvc.Tensor(shape, dtype, layout).layout == layout


@pytest.mark.parametrize(
    "type, dtype",
    [
        (cvc.Type.U8, np.uint8),
        (cvc.Type.U8, "uint8"),
        (cvc.Type.S8, np.int8),
        (cvc.Type.U16, np.dtype("u2")),
        (cvc.Type.S16, np.int16),
        (cvc.Type.U32, np.uint32),
        (cvc.Type.S32, "i4"),
        (cvc.Type.U64, "u8"),
        (cvc.Type.S64, np.int64),
        (cvc.Type.F16, np.float16),
        (cvc.Type.F32, "<f4"),
        (cvc.Type.F64, float),
        (cvc.Type.C64, np.complex64),
        (cvc.Type.C128, complex),
        (cvc.Type._2C64, np.dtype("2F")),
        (cvc.Type._2C128, np.dtype("2D")),
        (cvc.Type._3S8, np.dtype("3i1")),
        (cvc.Type._4S32, np.dtype("4i")),
        (cvc.Type._4F64, np.dtype("4f8")),
    ],
)
def test_types_and_dtypes(type, dtype):
    assert type == dtype and dtype == type
    assert not type != dtype
    assert cvc.Type(dtype) is type
    assert np.dtype(type) == np.dtype(dtype)
    assert cvc.Tensor((2, 2), dtype).dtype == type
    assert type.itemsize == np.dtype(dtype).itemsize
    assert type.typestr == np.dtype(dtype).str


def test_types_that_are_none():
    for wrong in (
        np.dtype([("a", np.uint64), ("b", np.int32)]),
        "invalid",
        None,
        object,
        ">f4",
        "5u1",
        "3c16",
        np.dtype("datetime64[s]"),
        np.dtype((np.uint8, (2, 2))),
        [],
    ):
        with pytest.raises(TypeError):
            cvc.Type(wrong)
        with pytest.raises(TypeError):
            cvc.Tensor((2, 2), wrong)
    assert cvc.Type.U8 != np.int8
    assert cvc.Type.U8 != None  # noqa: E711
    assert cvc.Type.U8 != "nothing of the kind"
    with pytest.raises(ValueError, match="99"):
        cvc.Type(99)
    assert cvc.Type._3F32.components == 3 and cvc.Type._3F32.base is cvc.Type.F32


def test_layouts_are_texts():
    assert cvc.TensorLayout.NHWC == "NHWC" and cvc.TensorLayout("NHWC") == cvc.TensorLayout.NHWC
    assert cvc.TensorLayout.NONE == "" and len(cvc.TensorLayout.NCDHW) == 5
    tensor = cvc.Tensor((2, 3), np.uint8, cvc.TensorLayout.NONE)
    assert tensor.layout is None
    assert isinstance(cvc.Tensor((2, 3), np.uint8, "HW").layout, cvc.TensorLayout)


def test_strides():
    assert cvc.Tensor((37, 11, 3), np.uint8, rowalign=1).cuda().strides == (33, 3, 1)
    packed = cvc.Tensor(2, (37, 7), cvc.Format.RGB8, rowalign=1)
    assert packed.cuda().strides == (37 * 7 * 3, 37 * 3, 3, 1)
    assert cvc.Tensor((10, 10, 3), np.uint8, "HWC").cuda().strides == (32, 3, 1)
    assert cvc.Tensor((480, 640, 3), np.uint8).cuda().strides == (640 * 32, 32, 1)


def test_addresses_are_aligned():
    for shape in ((1,), (3, 5), (17, 31, 3)):
        assert address(cvc.Tensor(shape, np.uint8)) % 512 == 0


def packed(shape):
    return tuple(np.zeros(shape, np.uint8).strides)


@pytest.mark.parametrize(
    "shape, layout, new_shape, new_layout",
    [
        ((1, 23, 65, 3), "NHWC", (23, 65, 3), "HWC"),
        ((5, 23, 65, 3), None, (5, 23 * 65, 3), None),
        ((5, 23, 65, 3), None, (5, 23 * 65, 3), "ABC"),
        ((1,), "A", (1, 1, 1, 1, 1, 1), "ABCDEF"),
        ((5, 23, 65, 3), "NHWC", (5, 23, 65 * 3, 1), None),
    ],
)
def test_reshape(shape, layout, new_shape, new_layout):
    tensor = cvc.Tensor(shape, np.uint8, layout, rowalign=1)
    for view in (
        tensor.reshape(new_shape, layout=new_layout),
        cvc.reshape(tensor, new_shape, layout=new_layout),
    ):
        assert view.shape == new_shape
        assert view.dtype == np.uint8
        assert view.layout == (new_layout or layout)
        assert view.cuda().strides == packed(new_shape)
        assert address(view) == address(tensor)


@pytest.mark.parametrize(
    "shape, layout, strides",
    [
        ((1, 10, 10, 3), "XHWC", (320, 32, 3, 1)),
        ((10, 10, 3, 1), "HWCX", (32, 3, 1, 1)),
        ((10, 1, 10, 3), "HXWC", (32, 32, 3, 1)),
        ((10, 2, 5, 3), "HABC", (32, 15, 3, 1)),
        ((2, 5, 10, 3), "ABWC", (160, 32, 3, 1)),
    ],
)
def test_reshape_of_padded_rows(shape, layout, strides):
    tensor = cvc.Tensor((10, 10, 3), np.uint8, "HWC")
    view = tensor.reshape(shape, layout)
    # The stride of an axis of length 1 is anybody's choice.
    told = [s for s, n in zip(view.cuda().strides, shape) if n > 1]
    assert told == [s for s, n in zip(strides, shape) if n > 1]


@pytest.mark.parametrize(
    "shape, layout, new_shape, new_layout",
    [
        ((1, 23, 65, 3), "NHWC", (23, 65, 3), "ABCD"),
        ((1, 23, 65, 3), None, (23, 65, 3), "ABCD"),
        ((5, 23, 65, 3), "NHWC", (5, 23 * 65, 3), None),
        ((5, 23, 65, 3), "NHWC", (100, 100), "AB"),
        ((1,), "A", (), ""),
        ((5, 4), None, (-5, -4), None),
        ((5, 4), None, (1,) * 16, None),
        ((5, 4), None, (2**63, 20), None),
    ],
)
def test_reshape_errors(shape, layout, new_shape, new_layout):
    tensor = cvc.Tensor(shape, np.int8, layout, rowalign=1)
    for reshape in (tensor.reshape, lambda *a, **k: cvc.reshape(tensor, *a, **k)):
        with pytest.raises(RuntimeError) as caught:
            reshape(new_shape, layout=new_layout)
        assert isinstance(caught.value, ValueError)


def test_reshape_across_padding_is_an_error():
    tensor = cvc.Tensor((10, 10, 3), np.uint8, "HWC")
    with pytest.raises(ValueError, match="padding"):
        tensor.reshape((300,), "A")


def test_view_keeps_the_memory():
    tensor = cvc.upload(np.arange(600, dtype=np.uint8).reshape(20, 10, 3), "HWC", rowalign=1)
    view = tensor.reshape((200, 3), "WC")
    del tensor
    assert view.shape == (200, 3) and view.cuda().strides == (3, 1)
    assert view.cpu().ravel().tolist() == [n % 256 for n in range(600)]


def test_close():
    tensor = cvc.upload(np.arange(6, dtype=np.uint8))
    export, view = tensor.cuda(), tensor.reshape((2, 3))
    assert not tensor.closed
    tensor.close()
    tensor.close()
    assert tensor.closed
    for use in (
        lambda: tensor.shape,
        lambda: tensor.dtype,
        lambda: tensor.id,
        lambda: tensor.cuda(),
        lambda: tensor.cpu(),
        lambda: tensor.reshape((6,)),
        lambda: cvc.flip(tensor, 0),
        lambda: cvc.as_tensor(tensor),
        lambda: cvc.internal.nbytes_in_cache(tensor),
    ):
        with pytest.raises(cvc.StaleHandleError, match="closed"):
            use()
    assert "closed" in repr(tensor)
    assert view.cpu().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert export.shape == (6,)


def test_repr_tells_shape_dtype_layout_and_device():
    text = repr(cvc.Tensor((2, 3, 4), np.float32, "HWC"))
    for part in ("(2, 3, 4)", "F32", "HWC", "device=0"):
        assert part in text
    export = repr(cvc.Tensor((2, 3), np.uint8, rowalign=1).cuda())
    assert "(2, 3)" in export and "(3, 1)" in export and "U8" in export


def test_device_objects_are_not_pickled():
    tensor = cvc.Tensor((2, 2), np.uint8)
    for thing in (tensor, tensor.cuda(), cvc.Stream(), cvc.ImageBatchVarShape(1)):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(thing)


# --- exports -------------------------------------------------------------------------------------

EXPORTED = [
    ((1, 23, 65, 3), np.uint8),
    ((5, 23, 65, 3), np.int8),
    ((65, 3), np.int16),
    ((243, 65, 3), np.float32),
    ((1, 1), np.complex64),
    ((10,), np.uint8),
    ((2, 3, 4), np.float64),
]


@pytest.mark.parametrize("shape, dtype", EXPORTED)
def test_export_tells_the_memory(shape, dtype):
    gold = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
    tensor = cvc.upload(gold)
    export = tensor.cuda()
    assert export is not tensor.cuda()
    assert (export.shape, export.dtype, export.ndim) == (shape, dtype, len(shape))
    assert np.array_equal(tensor.cpu(), gold)


@on_host
@pytest.mark.parametrize("shape, dtype", EXPORTED)
def test_host_exports_are_read_without_a_copy(shape, dtype):
    gold = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
    tensor = cvc.upload(gold)
    for seen in (
        np.asarray(tensor.cuda()),
        np.from_dlpack(tensor.cuda()),
        np.from_dlpack(tensor),
        np.asarray(tensor),
    ):
        assert np.array_equal(seen, gold)
        assert seen.__array_interface__["data"][0] == address(tensor)
    assert np.array(tensor, copy=True).__array_interface__["data"][0] != address(tensor)
    assert np.asarray(tensor, dtype=np.complex128).dtype == np.complex128
    np.asarray(tensor.cuda())[...] = 0
    assert not tensor.cpu().any()


@on_host
def test_host_exports_have_no_cuda_interface():
    tensor = cvc.Tensor((2, 2), np.uint8)
    for thing in (tensor, tensor.cuda()):
        assert not hasattr(thing, "__cuda_array_interface__")
        assert thing.__dlpack_device__() == (1, 0)
    interface = tensor.cuda().__array_interface__
    assert interface["version"] == 3 and interface["data"] == (address(tensor), False)
    assert interface["typestr"] == "|u1" and interface["strides"] == tensor.cuda().strides


@on_host
@pytest.mark.parametrize("dtype", [np.dtype("2f4"), np.dtype("4f8"), np.dtype("2i1")])
def test_types_of_several_lanes_export_and_wrap(dtype):
    tensor = cvc.Tensor((3, 5, 7), dtype, "NHW")
    interface = tensor.cuda().__array_interface__
    assert interface["typestr"] == dtype.str
    assert interface["shape"] == (3, 5, 7)
    wrapped = cvc.as_tensor(tensor.cuda(), "NHW")
    assert (wrapped.shape, wrapped.dtype, wrapped.layout) == ((3, 5, 7), dtype, "NHW")
    assert tensor.cpu().shape == (3, 5, 7, dtype.shape[0])


@on_host
@pytest.mark.parametrize(
    "read",
    [
        lambda tensor: np.asarray(tensor.cuda()),
        lambda tensor: np.from_dlpack(tensor.cuda()),
        lambda tensor: np.asarray(tensor),
        lambda tensor: tensor.cpu(),
    ],
    ids=["asarray", "from_dlpack", "array", "cpu"],
)
def test_reading_waits_for_pending_work(read):
    import threading

    stream = cvc.Stream()
    original = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    with busy(stream) as latch:
        result = cvc.flip(cvc.as_tensor(original, "HWC"), 0, stream=stream)
        opener = threading.Timer(0.05, latch.open)
        opener.start()
        assert np.array_equal(read(result), original[::-1])
        opener.join()


def test_dlpack_versions_and_arguments():
    export = cvc.Tensor((2, 3), np.float32).cuda()
    assert '"dltensor"' in repr(export.__dlpack__())
    assert '"dltensor"' in repr(export.__dlpack__(max_version=(0, 8)))
    assert '"dltensor_versioned"' in repr(export.__dlpack__(max_version=(1, 0)))
    assert '"dltensor_versioned"' in repr(export.__dlpack__(max_version=(2, 0)))
    with pytest.raises(ValueError):
        export.__dlpack__(stream=0)
    for device in ((13, 0), (2, 99), (1, 1)):
        with pytest.raises(BufferError):
            export.__dlpack__(dl_device=device)
    own = export.__dlpack_device__()
    assert export.__dlpack__(dl_device=own) is not None
    if own == (1, 0):
        for stream in (1, 2, 77):
            with pytest.raises(ValueError, match=str(stream)):
                export.__dlpack__(stream=stream)
        assert export.__dlpack__(stream=-1) is not None


@on_host
def test_dlpack_copies_when_asked():
    tensor = cvc.upload(np.arange(6, dtype=np.float32).reshape(2, 3))
    copied = np.from_dlpack(tensor, copy=True)
    assert copied.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert copied.__array_interface__["data"][0] != address(tensor)
    same = np.from_dlpack(tensor, copy=False)
    assert same.__array_interface__["data"][0] == address(tensor)


@on_host
def test_dlpack_copies_of_another_device():
    program = """
        import numpy as np, cvc
        values = np.arange(6, dtype=np.uint8).reshape(2, 3)
        cvc.set_device(1)
        tensor, stream = cvc.upload(values, "HW"), cvc.Stream()
        cvc.set_device(0)
        for current in (cvc.Stream.default, stream, cvc.Stream()):
            with current:
                copied = np.from_dlpack(tensor, copy=True)
            assert np.array_equal(copied, values)
            assert not np.shares_memory(copied, np.from_dlpack(tensor))
        assert cvc.current_device() == 0
        print(cvc.cache_stats(0).live_handles, cvc.cache_stats(1).live_handles)
    """
    assert output_of(program, CVC_HOST_DEVICES="2") == "0 2\n"


@on_host
def test_exports_of_another_device_use_its_default_streams():
    # What the cuda backend does for readers on default streams runs on the host's devices as well.
    program = """
        import numpy as np, cvc
        from cvc import _export
        cvc.set_device(1)
        tensor = cvc.upload(np.arange(6, dtype=np.uint8))
        cvc.set_device(0)
        _export.backend = lambda: "cuda"
        export = tensor.cuda()
        assert export.__cuda_array_interface__["stream"] == 1
        export.close()
        for stream in (None, 1, 2, -1):
            for copy in (None, True):
                tensor.__dlpack__(stream=stream, copy=copy)
        tensor.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
        print(cvc.current_device())
    """
    assert output_of(program, CVC_HOST_DEVICES="2") == "0\n"


@on_host
def test_dlpack_struct_is_what_the_protocol_asks():
    from cvc import _foreign

    tensor = cvc.upload(np.zeros((4, 5, 3), np.uint8), "HWC")
    capsule = tensor.__dlpack__(max_version=(1, 1))
    managed = _foreign.DLManagedTensorVersioned.from_address(
        _foreign.capsule_pointer(capsule, b"dltensor_versioned")
    )
    inner = managed.dl_tensor
    assert managed.major == 1 and managed.flags == 0
    assert inner.byte_offset == 0 and inner.data == address(tensor)
    assert (inner.device_type, inner.device_id) == (1, 0)
    assert (inner.code, inner.bits, inner.lanes) == (1, 8, 1)
    assert inner.shape[: inner.ndim] == [4, 5, 3]
    assert inner.strides[: inner.ndim] == list(tensor.cuda().strides)
    copied = tensor.__dlpack__(max_version=(1, 1), copy=True)
    flags = _foreign.DLManagedTensorVersioned.from_address(
        _foreign.capsule_pointer(copied, b"dltensor_versioned")
    ).flags
    assert flags == _foreign.DLPACK_IS_COPIED


@on_host
def test_capsules_and_arrays_leave_nothing_behind():
    tensor = cvc.Tensor((8, 8), np.uint8)
    for _ in range(2000):
        np.from_dlpack(tensor)
        tensor.__dlpack__()
        tensor.__dlpack__(max_version=(1, 0))
    del tensor
    gc.collect()
    assert cvc.cache_stats().live_handles == 0


# --- wraps ---------------------------------------------------------------------------------------

WRAPPED = [
    ((3, 5, 7, 1), np.uint8),
    ((3, 5, 7, 1), np.int8),
    ((3, 5, 7, 1), np.int16),
    ((3, 5, 7, 1), np.float32),
    ((3, 5, 7, 1), np.float64),
    ((3, 5, 7, 2), np.float16),
    ((3, 5, 7), np.csingle),
    ((3, 5, 7), np.cdouble),
    ((3, 5, 7), np.uint64),
    ((3,), np.int8),
]


class DLPackOnly:
    def __init__(self, source):
        self.source = source

    def __dlpack__(self, **arguments):
        return self.source.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.source.__dlpack_device__()


class OldDLPack(DLPackOnly):
    def __dlpack__(self, stream=None):
        return self.source.__dlpack__()


class ArrayInterface:
    def __init__(self, source):
        self.source = source
        self.__array_interface__ = source.__array_interface__


class CudaArrayInterface:
    def __init__(self, source, **changes):
        self.source = source
        interface = {**source.__array_interface__, "version": 3, **changes}
        self.__cuda_array_interface__ = interface


@on_host
@pytest.mark.parametrize("shape, dtype", WRAPPED)
@pytest.mark.parametrize(
    "form", [lambda a: a, memoryview, DLPackOnly, OldDLPack, ArrayInterface, CudaArrayInterface]
)
def test_wrap_of_every_protocol(form, shape, dtype):
    source = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    tensor = cvc.as_tensor(form(source))
    assert (tensor.shape, tensor.dtype, tensor.layout) == (shape, dtype, None)
    assert address(tensor) == source.__array_interface__["data"][0]
    assert np.array_equal(tensor.cpu(), source)


@on_host
@pytest.mark.parametrize(
    "shape, dtype, layout",
    [
        ((3, 5, 7, 1), np.uint8, "NHWC"),
        ((3, 5, 7), np.uint8, cvc.TensorLayout.HWC),
        ((3, 5, 7, 2, 4, 2, 5), np.int16, "abcdefg"),
        ((5,), np.uint8, "W"),
    ],
)
def test_wrap_with_a_layout(shape, dtype, layout):
    tensor = cvc.as_tensor(np.zeros(shape, dtype), layout)
    assert (tensor.shape, tensor.layout, tensor.ndim) == (shape, layout, len(shape))


@on_host
def test_wrap_of_other_buffers():
    assert cvc.as_tensor(bytearray(b"abc")).cpu().tolist() == [97, 98, 99]
    assert cvc.as_tensor(array.array("f", [1, 2])).dtype == np.float32
    assert cvc.as_tensor((ctypes.c_int32 * 3)(1, 2, 3)).cpu().tolist() == [1, 2, 3]
    assert cvc.as_tensor(np.array(5, np.int16)).shape == (1,)
    assert cvc.as_tensor(np.zeros((2, 2), bool)).dtype == np.uint8
    strided = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)[::2]
    assert cvc.as_tensor(strided, "HWC").cuda().strides == (30, 3, 1)
    assert np.array_equal(cvc.as_tensor(strided, "HWC").cpu(), strided)


@on_host
@pytest.mark.parametrize(
    "source",
    [
        np.zeros((4, 5, 3), np.uint8).transpose(1, 0, 2),
        np.zeros((4, 5, 3), np.uint8)[:, ::2],
        np.zeros((4, 5, 3), np.uint8)[::-1],
        np.broadcast_to(np.zeros((1, 5, 3), np.uint8), (4, 5, 3)),
        np.lib.stride_tricks.as_strided(np.zeros(40, np.uint8), (4, 6), (3, 1)),
    ],
    ids=["permuted", "columns skipped", "reversed", "broadcast", "overlapping"],
)
def test_wrap_of_strides_no_tensor_has(source):
    with pytest.raises(ValueError, match="stride"):
        cvc.as_tensor(source, "HWC" if source.ndim == 3 else None)


@pytest.mark.parametrize("source", [[1, 2, 3], None, 3, "text", object(), {}])
def test_wrap_of_something_else(source):
    with pytest.raises(TypeError):
        cvc.as_tensor(source)
    with pytest.raises(RuntimeError):
        cvc.as_tensors([source])


@on_host
def test_wrap_of_bad_types_and_interfaces():
    with pytest.raises(TypeError):
        cvc.as_tensor(np.zeros(3, "datetime64[s]").view("V8"))
    for changes in ({"typestr": "i"}, {"typestr": ">f4"}, {"shape": None}, {"data": 5}):
        with pytest.raises(RuntimeError, match="interface"):
            cvc.as_tensor(CudaArrayInterface(np.zeros((2, 2), np.float32), **changes))
    with pytest.raises(RuntimeError, match="mask"):
        cvc.as_tensor(CudaArrayInterface(np.zeros((2, 2), np.float32), mask=np.ones((2, 2))))


@on_host
def test_wrap_of_null_memory_is_an_error():
    with pytest.raises(RuntimeError, match="null"):
        cvc.as_tensor(CudaArrayInterface(np.zeros((2, 2), np.uint8), data=(0, False)))
    with pytest.raises(RuntimeError, match="null"):
        cvc.as_image(CudaArrayInterface(np.zeros((2, 2), np.uint8), data=(0, False)))


@on_host
def test_failed_wrap_drops_its_source():
    source = np.zeros((4, 5), np.uint8)
    seen = weakref.ref(source)
    with pytest.raises(ValueError):
        cvc.as_tensor(source, "HWC")
    del source
    gc.collect()
    assert seen() is None


@on_host
def test_read_only_memory_is_read_and_never_written():
    frozen = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    frozen.flags.writeable = False
    tensor = cvc.as_tensor(frozen, "HWC")
    assert np.array_equal(cvc.flip(tensor, 0).cpu(), frozen[::-1])
    source = cvc.upload(frozen, "HWC")
    for target in (tensor, tensor.reshape((2, 2, 3)), cvc.as_tensor(cvc.as_image(frozen))):
        with pytest.raises(ValueError, match="read-only"):
            cvc.flip_into(target, source, 0)
    with pytest.raises(BufferError):
        tensor.__dlpack__()
    seen = np.from_dlpack(tensor)
    assert not seen.flags.writeable
    assert not np.asarray(tensor.cuda()).flags.writeable
    assert frozen.ravel().tolist() == list(range(12))


def test_own_exports_are_wrapped_as_views():
    tensor = cvc.upload(np.arange(12, dtype=np.uint8).reshape(2, 2, 3), "HWC")
    for source in (tensor, tensor.cuda()):
        view = cvc.as_tensor(source)
        assert (view.shape, view.layout) == ((2, 2, 3), "HWC")
        assert address(view) == address(tensor)
        assert cvc.as_tensor(source, "ABC").layout == "ABC"


def test_upload_and_download():
    for source in (
        np.arange(24, dtype=np.int32).reshape(2, 3, 4),
        np.arange(24, dtype=np.uint8).reshape(2, 3, 4)[:, :, ::1],
        np.arange(24, dtype=np.float64).reshape(4, 6)[::2],
        np.arange(24, dtype=np.int16).reshape(2, 3, 4)[::-1],
        np.arange(24, dtype=np.int16).reshape(2, 3, 4).transpose(2, 0, 1),
        np.asfortranarray(np.arange(24, dtype=np.uint8).reshape(4, 6)),
        np.broadcast_to(np.arange(6, dtype=np.float32), (4, 6)),
    ):
        tensor = cvc.upload(source)
        assert (tensor.shape, tensor.dtype) == (source.shape, source.dtype)
        assert np.array_equal(tensor.cpu(), source)
        assert np.array_equal(tensor.cpu(stream=cvc.Stream()), source)
    stream = cvc.Stream()
    packed_rows = cvc.upload(np.ones((3, 5, 3), np.uint8), "HWC", rowalign=1, stream=stream)
    assert packed_rows.cuda().strides == (15, 3, 1)
    with pytest.raises(TypeError):
        cvc.upload([1, 2])

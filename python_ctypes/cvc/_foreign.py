"""Reads memory that other libraries own: where it lies, what it holds and what keeps it alive.

Sources: NumPy arrays and all else with the buffer protocol, `__array_interface__`,
`__cuda_array_interface__` and `__dlpack__`.
"""

from __future__ import annotations

import ctypes
import operator
import sys
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_ssize_t, c_uint64, c_void_p
from typing import Any, NamedTuple

from ._abi import DEVICE_CURRENT, STREAM_LEGACY, STREAM_NONE
from ._convert import shown
from ._lib import backend, lib
from .errors import invalid
from .types import Type, as_type


class ForeignBuffer(NamedTuple):
    """Memory of another library, described the same way whatever protocol it came through."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes
    type: Type
    on_host: bool
    device: int
    read_only: bool
    owner: Any  # keeps the memory alive
    stream: int  # the stream whose queued work wrote the memory, or STREAM_NONE


# --- the buffer protocol -------------------------------------------------------------------------


class _PyBuffer(ctypes.Structure):
    """CPython's Py_buffer, read for the one thing a memoryview does not tell: the address."""

    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    ]


_PyBUF_FULL_RO = 0x11C
_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = (ctypes.py_object, POINTER(_PyBuffer), c_int)
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = (POINTER(_PyBuffer),)
_release_buffer.restype = None

_FORMAT_KINDS = {"?": "u", "Zf": "c", "Zd": "c", "e": "f", "f": "f", "d": "f"}
_FORMAT_KINDS.update(dict.fromkeys("BHILQN", "u"))
_FORMAT_KINDS.update(dict.fromkeys("bhilqn", "i"))


def _from_memoryview(view: memoryview) -> ForeignBuffer:
    code = view.format.lstrip("@=<")
    kind = "u" if view.format == "c" else _FORMAT_KINDS.get(code)
    if kind is None:
        raise TypeError(f"a buffer of format {view.format!r} holds no numbers libcvc knows")
    raw = _PyBuffer()
    _get_buffer(view, raw, _PyBUF_FULL_RO)
    address = raw.buf or 0
    _release_buffer(raw)  # the memoryview itself goes on holding the buffer
    return ForeignBuffer(
        address=address,
        shape=tuple(view.shape or ()),
        strides=tuple(view.strides or ()),
        type=as_type(f"{kind}{view.itemsize}"),
        on_host=True,
        device=0,
        read_only=view.readonly,
        owner=view,
        stream=STREAM_NONE,
    )


# --- array interfaces ----------------------------------------------------------------------------


def packed_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides in bytes of a C-contiguous array."""
    strides = [itemsize] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    return tuple(strides)


def _from_interface(source: Any, interface: dict[str, Any], on_host: bool) -> ForeignBuffer:
    try:
        shape = tuple(map(operator.index, interface["shape"]))
        typestr = interface["typestr"]
        if not isinstance(typestr, str) or typestr[:1] not in ("<", "|", "="):
            raise ValueError(f"typestr is {typestr!r}")
        kind = as_type(typestr)
        if not isinstance(interface["data"], tuple):
            raise TypeError(f"data is a {type(interface['data']).__name__}, expected a tuple")
        address, read_only = interface["data"]
        address = operator.index(address or 0)
        strides = interface.get("strides")
        if strides is None:
            strides = packed_strides(shape, kind.itemsize)
        strides = tuple(map(operator.index, strides))
    except (KeyError, TypeError, ValueError) as error:
        raise invalid(
            "INVALID_ARGUMENT", f"the array interface of {type(source).__name__} is bad: {error!r}"
        ) from error
    if interface.get("mask") is not None:
        raise invalid("NOT_SUPPORTED", "the array interface has a mask, expected none")
    stream = STREAM_NONE
    if not on_host and interface.get("stream") is not None:
        stream = operator.index(interface["stream"])
        if not 1 <= stream < 2**64:
            raise invalid(
                "INVALID_STREAM",
                f"stream is {shown(stream)} in __cuda_array_interface__, expected >= 1",
            )
    return ForeignBuffer(
        address=address,
        shape=shape,
        strides=strides,
        type=kind,
        on_host=on_host,
        device=0 if on_host else DEVICE_CURRENT,
        read_only=bool(read_only),
        owner=source,
        stream=stream,
    )


# --- DLPack --------------------------------------------------------------------------------------


class DLTensor(ctypes.Structure):
    """DLPack's tensor."""

    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class DLManagedTensorVersioned(ctypes.Structure):
    """DLPack's exported tensor, from version 1.0 on."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("dl_tensor", DLTensor),
    ]


DLPACK_VERSION = (1, 1)
DLPACK_READ_ONLY, DLPACK_IS_COPIED = 1, 2
DL_CPU, DL_CUDA, DL_CUDA_HOST, DL_CUDA_MANAGED = 1, 2, 3, 13
_DL_DEVICE_ACCESSIBLE = (DL_CUDA, DL_CUDA_HOST, DL_CUDA_MANAGED)
_DL_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "u"}

CAPSULE_NAME = b"dltensor"  # capsules keep these pointers, so the objects live as long as this one
CAPSULE_NAME_VERSIONED = b"dltensor_versioned"
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = c_void_p, (ctypes.py_object, c_char_p)
_capsule_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is_valid.restype, _capsule_is_valid.argtypes = c_int, (ctypes.py_object, c_char_p)


def _ask_for_capsule(source: Any, stream: int | None) -> Any:
    keywords = {} if stream is None else {"stream": stream}
    try:
        return source.__dlpack__(max_version=DLPACK_VERSION, **keywords)
    except TypeError:  # a producer from before DLPack 1.0
        return source.__dlpack__(**keywords)


def _from_dlpack(source: Any, device_type: int, consumer: int) -> ForeignBuffer:
    on_host = device_type not in _DL_DEVICE_ACCESSIBLE
    consumer = consumer or STREAM_LEGACY
    capsule = _ask_for_capsule(source, None if on_host else consumer)
    read_only = False
    if _capsule_is_valid(capsule, CAPSULE_NAME_VERSIONED):
        managed = DLManagedTensorVersioned.from_address(
            capsule_pointer(capsule, CAPSULE_NAME_VERSIONED)
        )
        if managed.major != DLPACK_VERSION[0]:
            raise BufferError(f"DLPack {managed.major}.{managed.minor} is not 1.x")
        read_only = bool(managed.flags & DLPACK_READ_ONLY)
        tensor = managed.dl_tensor
    else:
        tensor = DLTensor.from_address(capsule_pointer(capsule, CAPSULE_NAME))
    if tensor.ndim < 0:
        raise BufferError(f"a DLPack tensor has {tensor.ndim} dimensions, expected 0 or more")
    kind = _DL_KINDS.get(tensor.code)
    if kind is None or tensor.bits % 8:
        raise TypeError(
            f"DLPack type code {tensor.code} with {tensor.bits} bits is no element type of libcvc"
        )
    element = as_type(f"{kind}{tensor.bits // 8}")
    if tensor.lanes > 1:
        element = as_type(f"{tensor.lanes}{element.name}")
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    if tensor.strides:
        strides = tuple(stride * element.itemsize for stride in tensor.strides[: tensor.ndim])
    else:
        strides = packed_strides(shape, element.itemsize)
    on_managed = tensor.device_type in (DL_CUDA_HOST, DL_CUDA_MANAGED)
    return ForeignBuffer(
        address=(tensor.data or 0) + tensor.byte_offset,
        shape=shape,
        strides=strides,
        type=element,
        on_host=on_host,
        device=0 if on_host else DEVICE_CURRENT if on_managed else tensor.device_id,
        read_only=read_only,
        # An unconsumed capsule owns the export: dropping it calls the producer's deleter.
        owner=(capsule, source),
        stream=STREAM_NONE if on_host else consumer,
    )


# --- one entrance --------------------------------------------------------------------------------


def read(source: Any, consumer: int, name: str = "buffer") -> ForeignBuffer:
    """Describe the memory of `source`; `consumer` is the stream that will use it first.

    Device memory comes through DLPack where there is a choice, since its producer then orders its
    own work before the consumer; host memory comes through the buffer protocol.
    """
    numpy_ma = sys.modules.get("numpy.ma")
    if (
        numpy_ma is not None
        and isinstance(source, numpy_ma.MaskedArray)
        and numpy_ma.getmask(source) is not numpy_ma.nomask
    ):
        raise invalid(
            "NOT_SUPPORTED",
            f"{name} is a masked array, expected one without a mask: use .filled() or .data",
        )
    buffer = _read_unchecked(source, consumer, name)
    _check_extent(buffer, name)
    return buffer


def _check_extent(buffer: ForeignBuffer, name: str) -> None:
    """What producers say is checked where a wrong number could pass for another one in C."""
    shape, strides, address = buffer.shape, buffer.strides, buffer.address
    if len(strides) != len(shape):
        raise invalid(
            "INVALID_STRIDES",
            f"{name} has {len(strides)} strides, expected {len(shape)}, one a dimension",
        )
    _check_integers("INVALID_SHAPE", f"{name}'s shape", shape, 0)
    _check_integers("INVALID_STRIDES", f"{name}'s strides", strides, -(2**63))
    steps = [(length - 1) * stride for length, stride in zip(shape, strides)]
    first = last = address
    if 0 not in shape:
        first += sum(step for step in steps if step < 0)
        last += sum(step for step in steps if step > 0) + buffer.type.itemsize - 1
    if not 0 <= min(first, address) <= max(last, address) < 2**64:
        raise invalid(
            "INVALID_ARGUMENT",
            f"{name}'s address is {shown(address)}, expected one whose elements lie within 64 bits",
        )


def _check_integers(status_name: str, name: str, values: Sequence[int], least: int) -> None:
    for axis, value in enumerate(values):
        if not least <= value < 2**63:
            raise invalid(
                status_name, f"{name}[{axis}] is {shown(value)}, expected {least} to 2**63 - 1"
            )


def _read_unchecked(source: Any, consumer: int, name: str) -> ForeignBuffer:
    dlpack_device = getattr(source, "__dlpack_device__", None)
    device_type = int(dlpack_device()[0]) if dlpack_device is not None else None
    if device_type in _DL_DEVICE_ACCESSIBLE:
        if backend() == "host":
            raise invalid(
                "DEVICE_MISMATCH",
                f"{name} is on DLPack device {device_type}, but libcvc runs on its host backend",
            )
        return _from_dlpack(source, device_type, consumer)
    interface = getattr(source, "__cuda_array_interface__", None)
    if interface is not None:
        # The host backend has no device memory: what claims to be it lies in host memory.
        return _from_interface(source, interface, on_host=backend() == "host")
    try:
        view = memoryview(source)
    except TypeError:
        view = None
    if view is not None:
        return _from_memoryview(view)
    interface = getattr(source, "__array_interface__", None)
    if interface is not None:
        return _from_interface(source, interface, on_host=True)
    if device_type is not None:
        return _from_dlpack(source, device_type, consumer)
    raise invalid(
        "WRONG_KIND",
        f"{name} is a {type(source).__name__}, expected an object with the buffer protocol, "
        "__array_interface__, __cuda_array_interface__ or __dlpack__",
    )


def read_for_wrap(source: Any, consumer: int, name: str = "buffer") -> ForeignBuffer:
    """`read`, for memory that the backend in use can reach where it lies."""
    buffer = read(source, consumer, name)
    if buffer.on_host and backend() != "host":
        raise invalid(
            "NOT_SUPPORTED",
            f"{name} is host memory, which the GPU does not reach: use cvc.Image(array) or "
            "cvc.upload(array) to copy it to the device",
        )
    return buffer


def read_for_copy(source: Any, name: str = "buffer") -> ForeignBuffer:
    """`read`, for host memory whose values are to be copied to the device."""
    buffer = read(source, STREAM_NONE, name)
    if not buffer.on_host:
        raise invalid(
            "NOT_SUPPORTED",
            f"{name} is device memory: use cvc.as_tensor or cvc.as_image to use it where it lies",
        )
    return buffer


def common_producer(buffers: list[ForeignBuffer], consumer: int) -> int:
    """One stream that is ordered after what wrote any of the buffers, or STREAM_NONE."""
    producers = {buffer.stream for buffer in buffers if buffer.stream != STREAM_NONE}
    if len(producers) <= 1:
        return producers.pop() if producers else STREAM_NONE
    for producer in producers:
        lib.cvc_stream_wait_stream(consumer, producer)
    return consumer

"""Copies between host memory and tensors, with waits that keep the host memory alive meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from ctypes import byref, c_int64, c_void_p
from typing import TYPE_CHECKING, Any

from ._abi import DEVICE_CURRENT, STATUS, TensorData, sized
from ._foreign import ForeignBuffer
from ._lib import lib, raw, wait
from .errors import Error
from .stream import Stream, stream_handle
from .types import Type

if TYPE_CHECKING:
    import numpy

_NOT_READY = STATUS["NOT_READY"]

# Host memory of copies whose wait was interrupted, each with an event behind the copy.
_in_flight: list[tuple[int, Any]] = []


def _keep_until_passed(stream: int, memory: Any) -> None:
    """Keep host memory alive until what is queued on the stream is done, without waiting."""
    for entry in list(_in_flight):
        if raw.cvc_event_query(entry[0]) != _NOT_READY:
            with suppress(ValueError):  # another thread was first
                _in_flight.remove(entry)
                raw.cvc_event_destroy(entry[0])
    event = c_void_p()
    try:
        lib.cvc_event_create(DEVICE_CURRENT, 0, byref(event))
        lib.cvc_event_record(event, stream)
    finally:
        _in_flight.append((event.value or 0, memory))


def upload(
    stream: Stream | None, copies: Iterable[tuple[ForeignBuffer, int, int]], memory: Any
) -> None:
    """Copy host buffers into tensors and wait for it.

    Args:
        stream: the stream of the copies; None means the current one.
        copies: of each copy the buffer, the byte offset to begin at, and a tensor's handle, whose
            shape is that of the buffer from its last axes on.
        memory: what keeps the buffers' memory alive.
    """
    handle = stream_handle(stream)
    try:
        for buffer, offset, tensor in copies:
            strides = (c_int64 * len(buffer.strides))(*buffer.strides)
            lib.cvc_upload(handle, buffer.address + offset, strides, tensor)
        wait("cvc_stream_synchronize", handle)
    except BaseException:  # Ctrl-C ends the wait, but the copy still runs
        with suppress(Error):
            _keep_until_passed(handle, memory)
        raise


def download(tensor: int, stream: Stream | None = None) -> numpy.ndarray[Any, Any]:
    """A NumPy array with the tensor's values, once the work queued on it so far is done."""
    import numpy

    data = sized(TensorData)
    lib.cvc_tensor_get_data(tensor, data)
    array = numpy.empty(tuple(data.shape[: data.rank]), Type(data.dtype).dtype)
    handle = stream_handle(stream)
    try:
        lib.cvc_download(handle, tensor, array.ctypes.data, None)
        wait("cvc_stream_synchronize", handle)
    except BaseException:  # Ctrl-C ends the wait, but the copy still runs
        with suppress(Error):
            _keep_until_passed(handle, array)
        raise
    return array

"""Copies between host memory and tensors, with waits that Ctrl-C ends."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int64
from typing import TYPE_CHECKING, Any

from ._abi import ACCESS, TensorData, sized
from ._foreign import ForeignBuffer
from ._lib import backend, lib, wait
from ._lifetime import Copies, TensorReference
from ._resource import Resource, live
from .errors import Error
from .stream import Stream, stream_handle
from .types import Type

if TYPE_CHECKING:
    import numpy


def _wait_before(handle: int, source: int | None = None) -> None:
    """Wait for what a copy on the stream comes after, where the copy itself would.

    CUDA's driver copies memory that is not pinned inside the call, once the stream's earlier work
    is done, and no Ctrl-C ends that call.
    """
    if backend() == "cuda":
        if source is not None:
            lib.cvc_tensor_begin_access(source, handle, ACCESS["READ"])
        wait("cvc_stream_synchronize", handle)


def upload(
    stream: Stream | None, copies: Sequence[tuple[ForeignBuffer, int, Resource]], memory: Any
) -> None:
    """Copy host buffers into tensors and wait for it.

    Args:
        stream: the stream of the copies; None means the current one.
        copies: of each copy the buffer, the byte offset to begin at, and a tensor that nobody else
            has yet, whose shape is that of the buffer from its last axes on.
        memory: what keeps the buffers' memory alive.
    """
    handle = stream_handle(stream)
    _wait_before(handle)
    noted = Copies(memory, [tensor for _, _, tensor in copies])
    try:
        for buffer, offset, tensor in copies:
            strides = (c_int64 * len(buffer.strides))(*buffer.strides)
            lib.cvc_upload(handle, buffer.address + offset, strides, live(tensor))
        wait("cvc_stream_synchronize", handle)
    except Error:
        noted.failed()
        raise
    noted.passed()


def download(tensor: int, stream: Stream | None = None) -> numpy.ndarray[Any, Any]:
    """A NumPy array with the tensor's values, once the work queued on it so far is done."""
    import numpy

    data = sized(TensorData)
    lib.cvc_tensor_get_data(tensor, data)
    array = numpy.empty(tuple(data.shape[: data.rank]), Type(data.dtype).dtype)
    download_into(array, array.ctypes.data, tensor, stream)
    return array


def download_into(memory: Any, address: int, tensor: int, stream: Stream | None) -> None:
    """Copy a tensor's values, packed, into host memory that `memory` keeps alive, and wait."""
    handle = stream_handle(stream)
    _wait_before(handle, tensor)
    source = TensorReference.to(tensor)
    noted = Copies(memory, [source])
    try:
        lib.cvc_download(handle, live(source), address, None)
        wait("cvc_stream_synchronize", handle)
    except Error:
        noted.failed()
        raise
    noted.passed()

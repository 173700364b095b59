"""Raw memory of a device, drawn from the cache and given back in the order of streams."""

from __future__ import annotations

import sys
from ctypes import byref, c_void_p
from typing import Any

from ._abi import STATUS, STREAM_NONE
from ._context import default_cache
from ._convert import uint64
from ._device import device_of
from ._lib import lib, raw
from .errors import Error, invalid
from .stream import Stream, stream_handle

# Memory that was dropped while one of its streams captured, when nothing can be given back: tried
# again later.
_kept: list[int] = []


def _give_back_kept() -> None:
    while _kept:
        ptr = _kept.pop()
        if raw.cvc_mem_free(default_cache(), ptr, STREAM_NONE) == STATUS["CAPTURING"]:
            _kept.append(ptr)
            return


class Memory:
    """Bytes of a device that libcvc does not look into, for kernels and libraries of the caller's.

    Dropping a Memory, or `close`, gives it back: it may be used again by work that comes after all
    that is queued by then on its stream and on those of `record_stream`. Neither waits. What is
    dropped while one of these captures a graph is given back when a later Memory is made. At
    interpreter exit nothing is given back, since the process ends.

    Args:
        nbytes: its size; 0 is allowed, and gives the address 0.
        alignment: of its address: 0, for 512, or a power of two.
        stream: where it is first used; None means the thread's current stream. Memory with work
            ordered before that is considered too.
        device: the device's ordinal; None means the current device.

    Raises:
        cvc.OutOfMemoryError: the device has no room.
        cvc.SizeOverflowError: no device can have that many bytes.
        cvc.MismatchError: the stream is of another device.
        cvc.CapturingError: the stream captures a graph.
    """

    __slots__ = ("_ptr", "_nbytes", "_streams", "__weakref__")

    def __init__(
        self,
        nbytes: int,
        *,
        alignment: int = 0,
        stream: Stream | None = None,
        device: int | None = None,
    ) -> None:
        self._ptr: int | None = None
        handle = stream_handle(stream)
        self._streams = [Stream.current if stream is None else stream]
        self._nbytes = uint64(nbytes, "nbytes", "OVERFLOW")
        alignment = uint64(alignment, "alignment", "INVALID_ALIGNMENT")
        _give_back_kept()
        out = c_void_p()
        lib.cvc_mem_alloc(
            default_cache(), device_of(device), self._nbytes, alignment, handle, byref(out)
        )
        self._ptr = out.value or 0
        # The free may come on any thread, where a default stream's handle may mean another one.
        lib.cvc_mem_record_stream(default_cache(), self._ptr, handle)

    @property
    def ptr(self) -> int:
        """The address, valid until this object is closed or dropped."""
        if self._ptr is None:
            raise invalid("STALE_HANDLE", "the memory is closed")
        return self._ptr

    @property
    def nbytes(self) -> int:
        """The size that was asked for."""
        return self._nbytes

    @property
    def closed(self) -> bool:
        """Whether it was given back."""
        return self._ptr is None

    def record_stream(self, stream: Stream) -> None:
        """Say that work on `stream` uses the memory, up to when it is given back.

        Called before or after the launches. Orders nothing by itself.

        Raises:
            cvc.MismatchError: the stream is of another device.
            cvc.CapturingError: the stream captures a graph.
        """
        lib.cvc_mem_record_stream(default_cache(), self.ptr, stream_handle(stream))
        if not any(known is stream for known in self._streams):
            self._streams.append(stream)

    def close(self) -> None:
        """Give the memory back now. Closing it again does nothing.

        Raises:
            cvc.CapturingError: one of its streams captures; the memory is still this object's.
        """
        # Taken out first: another thread, or an interrupt, must not free what is another's by then.
        ptr, self._ptr = self._ptr, None
        if ptr is None:
            return
        try:
            lib.cvc_mem_free(default_cache(), ptr, STREAM_NONE)
        except Error:
            self._ptr = ptr
            raise
        self._streams.clear()

    def __del__(
        self,
        _is_finalizing: Any = sys.is_finalizing,
        _free: Any = raw.cvc_mem_free,
        _cache: Any = default_cache,
        _capturing: int = STATUS["CAPTURING"],
        _keep: Any = _kept.append,
    ) -> None:
        # Names are bound as defaults, since module globals may be gone at exit.
        ptr = getattr(self, "_ptr", None)
        if ptr and not _is_finalizing():
            if _free(_cache(), ptr, STREAM_NONE) == _capturing:
                _keep(ptr)

    def __repr__(self) -> str:
        where = "closed" if self._ptr is None else f"at {self._ptr:#x}"
        return f"<cvc.Memory of {self._nbytes} bytes, {where}>"

    def __reduce__(self) -> Any:
        raise TypeError("a cvc.Memory cannot be pickled: it exists in this process only")

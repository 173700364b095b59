"""Streams: ordered queues of work, the thread's current one, and streams of other libraries."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import weakref
from collections import deque
from ctypes import byref, c_int32, c_uint64, c_void_p
from types import TracebackType
from typing import Any, ClassVar

from . import _lifetime
from ._abi import DEVICE_CURRENT, STATUS, STREAM_NONE, STREAM_PER_THREAD
from ._context import context
from ._lib import check, lib, raw, wait
from .errors import error_of, invalid


class _StreamClass(type):
    """Makes `Stream.current` and `Stream.default` read-only attributes of the class itself."""

    _default: Stream

    @property
    def current(cls) -> Stream:
        """The stream of the innermost `with` block of the calling thread, else the default one."""
        streams = context.streams
        return streams[-1] if streams else cls._default

    @property
    def default(cls) -> Stream:
        """The default stream, CUDA's legacy stream: its handle is 0."""
        return cls._default


class Stream(metaclass=_StreamClass):
    """A queue on which work runs in order, beside the work of other streams.

    `Stream()` makes one on the current device that does not wait for the default stream. Inside
    `with stream:` it is the calling thread's `Stream.current`, which operators use when no stream
    is given. A context is left in the thread and in the order in which it was entered.

    Dropping a Stream returns at once; work queued on it still runs.

    Raises:
        cvc.DeviceError: the driver is missing or failed.
    """

    __slots__ = ("_handle", "_end", "_owner", "__weakref__")

    current: ClassVar[Stream]
    default: ClassVar[Stream]

    def __init__(self) -> None:
        out = c_void_p()
        lib.cvc_stream_create(DEVICE_CURRENT, 0, byref(out))
        self._handle: int = out.value or 0
        self._end: Any = _destroy
        self._owner: Any = None
        _created[self._handle] = self

    @classmethod
    def _adopt(cls, handle: int, end: Any, owner: Any) -> Stream:
        stream = cls.__new__(cls)
        stream._handle, stream._end, stream._owner = handle, end, owner
        return stream

    def __del__(self, _is_finalizing: Any = sys.is_finalizing) -> None:
        if _is_finalizing():
            return
        end = getattr(self, "_end", None)
        if end is not None:
            end(self._handle, self._owner)

    def __enter__(self) -> Stream:
        context.streams.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        streams = context.streams
        if not streams or streams[-1] is not self:
            raise RuntimeError(
                f"{self!r} is left out of order, or in another thread than it was entered in"
            )
        streams.pop()

    def sync(self) -> None:
        """Wait until all work queued on the stream so far is done. Ctrl-C interrupts the wait.

        Raises:
            cvc.DeviceError: that work failed.
        """
        wait("cvc_stream_synchronize", self._handle)
        _lifetime.drop_released()

    def query(self) -> bool:
        """Whether all work queued on the stream so far is done. Does not wait."""
        status = raw.cvc_stream_query(self._handle)
        if status == STATUS["NOT_READY"]:
            return False
        check(status)
        return True

    def wait_stream(self, other: Stream) -> None:
        """Make later work of this stream run after what is queued on `other` so far.

        Does not wait on the host. Waiting for itself does nothing.

        Raises:
            cvc.MismatchError: the streams are of different devices.
        """
        lib.cvc_stream_wait_stream(self._handle, stream_handle(other, "other"))

    @property
    def handle(self) -> int:
        """The native handle (a cudaStream_t on the cuda backend) as an int."""
        return self._handle

    @property
    def id(self) -> int:
        """The stream's id, which no other stream of the process ever has, unlike its handle."""
        out = c_uint64()
        lib.cvc_stream_get_id(self._handle, byref(out))
        return out.value

    @property
    def device(self) -> int:
        """The ordinal of the device the stream belongs to."""
        out = c_int32()
        lib.cvc_stream_get_device(self._handle, byref(out))
        return out.value

    def __int__(self) -> int:
        return self._handle

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol by which other libraries read a stream: (version, handle)."""
        return (0, self._handle)

    def __repr__(self) -> str:
        return f"<cvc.Stream handle={self._handle:#x}>"

    def __reduce__(self) -> Any:
        raise TypeError("a cvc.Stream cannot be pickled: it exists in this process only")


# --- the library's streams and those of others ---------------------------------------------------

_created: weakref.WeakValueDictionary[int, Stream] = weakref.WeakValueDictionary()

# A stream of others is registered once, however many wrappers it has: the number by handle. Ended
# wrappers wait in a queue, since the lock may be held by the very call in which one is collected.
_wrappers: dict[int, int] = {}
_wrappers_lock = threading.Lock()
_ended: deque[tuple[int, Any]] = deque()


def _destroy(handle: int, owner: None, _native: Any = raw.cvc_stream_destroy) -> None:
    _native(handle)


def _end_wrapper(handle: int, owner: Any) -> None:
    _ended.append((handle, owner))
    _unregister_ended()


def _unregister_ended() -> None:
    while _ended and _wrappers_lock.acquire(blocking=False):
        try:
            while _ended:
                handle, owner = _ended.popleft()
                _wrappers[handle] -= 1
                if not _wrappers[handle]:
                    del _wrappers[handle]
                    raw.cvc_stream_unregister(handle)
                del owner  # which keeps the stream alive until here
        finally:
            _wrappers_lock.release()


def _after_fork() -> None:
    """A thread that the child does not have may have held the lock."""
    global _wrappers_lock
    _wrappers_lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _register(handle: int) -> None:
    with _wrappers_lock:
        if handle not in _wrappers:
            device = c_int32()
            lib.cvc_stream_get_device(handle, byref(device))
            lib.cvc_stream_register(device.value, handle, 0)
            _wrappers[handle] = 0
        _wrappers[handle] += 1
    _unregister_ended()


_StreamClass._default = Stream._adopt(0, None, None)


def stream_handle(stream: Stream | None, name: str = "stream") -> int:
    """The handle of a stream argument; None means the thread's current stream.

    Every operator asks, so that a thread that gets its results from the cache has its context.
    """
    streams = context.streams
    if stream is None:
        return streams[-1]._handle if streams else 0
    if not isinstance(stream, Stream):
        raise invalid(
            "WRONG_KIND",
            f"{name} is a {type(stream).__name__}, expected a cvc.Stream; cvc.as_stream makes one "
            "of another library's stream",
        )
    return stream._handle


def consumer_handle(stream: Stream | None) -> int:
    """The handle for a creation; None means that no consumer is named."""
    return STREAM_NONE if stream is None else stream_handle(stream)


def _native_handle(stream: Any) -> int:
    """The handle of another library's stream object, of a ctypes pointer or of an int."""
    if isinstance(stream, ctypes.c_void_p):
        return stream.value or 0
    if isinstance(stream, int):
        return int(stream)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int(protocol()[1])
    for attribute in ("cuda_stream", "ptr", "handle"):  # torch, CuPy, Numba
        value = getattr(stream, attribute, None)
        if isinstance(value, ctypes.c_void_p):
            return value.value or 0
        if isinstance(value, int):
            return value
    raise invalid(
        "WRONG_KIND",
        f"a {type(stream).__name__} is no stream: expected a torch or CuPy stream, an object with "
        "__cuda_stream__, a ctypes.c_void_p or an int",
    )


def as_stream(stream: Any) -> Stream:
    """Wrap a stream of another library, or its handle, as a Stream.

    The stream is registered with libcvc until the wrapper goes, and the object it came from is kept
    alive that long, so that memory used on it can be ordered later. Given a bare handle, the caller
    keeps the stream alive for the wrapper's whole life.

    Args:
        stream: a torch or CuPy stream, an object with `__cuda_stream__`, a `ctypes.c_void_p`, an
            int, or a cvc.Stream or its handle, for which that Stream is returned.

    Raises:
        cvc.WrongKindError: none of these.
        cvc.Error: the handle is no stream, or one of another context.
    """
    if isinstance(stream, Stream):
        return stream
    handle = _native_handle(stream)
    if handle < 0 or handle >= 2**64:
        raise error_of(STATUS["INVALID_STREAM"], f"stream is {handle}, expected a stream's handle")
    if handle == 0:
        return Stream.default
    if handle <= STREAM_PER_THREAD:  # CUDA's own default streams need no registration
        return Stream._adopt(handle, None, stream)
    own = _created.get(handle)
    if own is not None:
        return own
    _unregister_ended()
    _register(handle)
    return Stream._adopt(handle, _end_wrapper, stream)

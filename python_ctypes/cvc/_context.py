"""What every thread has: the streams it has entered, and its part of the process-wide cache."""

from __future__ import annotations

import sys
import threading
from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any

from ._lib import lib, raw

if TYPE_CHECKING:
    from .stream import Stream


class _ThreadEnd:
    """Takes a thread out of the cache when Python ends it.

    `Thread.join` returns before the native thread is gone, so the library's own hook on the native
    thread's end may come later. Python drops what a `threading.local` holds before it lets join
    return: by then the thread's entries are handed over.
    """

    __slots__ = ()

    def __del__(
        self, _is_finalizing: Any = sys.is_finalizing, _detach: Any = raw.cvc_cache_thread_detach
    ) -> None:
        if not _is_finalizing() and _default_cache is not None:
            _detach(_default_cache)


class _ThreadContext(threading.local):
    """One a thread, made at the thread's first use of it."""

    def __init__(self) -> None:
        self.streams: list[Stream] = []
        self.end = _ThreadEnd()


context = _ThreadContext()

_default_cache: int | None = None


def default_cache() -> int:
    """The handle of the process-wide cache. It is asked for at first use, not at import."""
    global _default_cache
    context.end  # noqa: B018 - from here on the thread may own entries
    if _default_cache is None:
        cache = c_void_p()
        lib.cvc_cache_default(byref(cache))
        _default_cache = cache.value
    return _default_cache  # type: ignore[return-value]

"""The base of every object that owns a counted handle of libcvc."""

from __future__ import annotations

import sys
from ctypes import byref, c_uint64
from typing import Any, ClassVar

from ._lib import lib, raw
from .errors import invalid


class Resource:
    """Owns one reference to a native object, released when the last Python reference goes.

    Releasing returns at once: memory that work still uses stays with the cache until that work is
    done. At interpreter exit nothing is released, since the process ends.
    """

    __slots__ = ("_handle", "__weakref__")

    _noun: ClassVar[str] = "object"
    _release: ClassVar[Any] = None
    _get_id: ClassVar[Any] = None
    _nbytes: ClassVar[Any] = None

    _handle: int | None

    def __init_subclass__(cls, noun: str | None = None, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if noun is not None:
            cls._noun = noun.replace("_", " ")
            cls._release = getattr(raw, f"cvc_{noun}_release")
            cls._get_id = getattr(lib, f"cvc_{noun}_get_id")
            cls._nbytes = getattr(lib, f"cvc_{noun}_nbytes")

    def close(self) -> None:
        """Release the native object now. Every later use of this Python object is an error.

        Exports, views and batches made from it hold references of their own and stay valid.
        """
        handle, self._handle = self._handle, None
        if handle is not None:
            self._release(handle)

    def __del__(self, _is_finalizing: Any = sys.is_finalizing) -> None:
        # The name is bound as a default, since module globals may be gone at exit.
        if _is_finalizing():
            return
        try:
            self.close()
        except AttributeError:  # __init__ failed before there was a handle
            pass

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._handle is None

    @property
    def id(self) -> int:
        """Identifies the resource in the process; an object reused from the cache keeps its id."""
        out = c_uint64()
        self._get_id(live(self), byref(out))
        return out.value

    def _charge(self) -> int:
        out = c_uint64()
        self._nbytes(live(self), byref(out))
        return out.value


def live(resource: Resource, name: str = "") -> int:
    """The handle of an object that is not closed."""
    handle = resource._handle
    if handle is None:
        raise invalid("STALE_HANDLE", f"{name or 'the ' + resource._noun} is closed")
    return handle


def handle_of(value: Any, expected: type[Resource], name: str) -> int:
    """The handle of an argument, once it is of the expected class and not closed."""
    if not isinstance(value, expected):
        raise invalid(
            "WRONG_KIND",
            f"{name} is a {type(value).__name__}, expected a cvc.{expected.__name__}",
        )
    return live(value, name)

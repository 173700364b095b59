"""Finds libcvc, checks that it is the one this package was made for, and binds its functions.

Loading makes no driver call and starts no thread. Calls go through `ctypes.CDLL`, which drops the
GIL, so that a call that waits, or that runs a foreign release function, cannot deadlock with it.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ._abi import ABI_VERSION, BACKEND, FUNCTIONS, STATUS
from ._version import __version__
from ._wording import in_python_words
from .errors import error_of

_PACKAGE = Path(__file__).resolve().parent
_NOT_READY = STATUS["NOT_READY"]
_MISSING = (
    "libcvc.so was not found beside the package, in the source tree's target/release or by the "
    "system's loader; build it with `make build` or name it in CVC_LIBRARY"
)


def _candidates() -> Iterator[str]:
    """The places to look in, best first. What CVC_LIBRARY names is the only one when it is set."""
    named = os.environ.get("CVC_LIBRARY")
    if named:
        yield named
        return
    for beside in sorted(_PACKAGE.glob("lib/libcvc.so*")):
        yield str(beside)
    in_tree = _PACKAGE.parent.parent / "target" / "release" / "libcvc.so"
    if in_tree.is_file():
        yield str(in_tree)
    installed = ctypes.util.find_library("cvc")
    if installed:
        yield installed


def _load() -> tuple[str, ctypes.CDLL]:
    path = next(_candidates(), None)
    if path is None:
        raise ImportError(_MISSING)
    try:
        return path, ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"cannot load libcvc from {path}: {error}") from error


def _check_version(path: str, cdll: ctypes.CDLL) -> None:
    """An ImportError that names both sides when the library's ABI is another than the table's."""
    try:
        abi = cdll["cvc_abi_version"]
        version = cdll["cvc_version"]
    except AttributeError as error:
        raise ImportError(f"{path} is no libcvc: {error}") from error
    abi.restype, abi.argtypes = ctypes.c_uint32, ()
    version.restype, version.argtypes = ctypes.c_char_p, ()
    found = abi()
    if found != ABI_VERSION:
        raise ImportError(
            f"{path} is libcvc {version().decode()} with ABI {found}, but the Python package cvc "
            f"{__version__} in {_PACKAGE} needs ABI {ABI_VERSION}"
        )


def check(status: int) -> None:
    """Raise the cvc.Error of a status that the calling thread just got, unless it is OK."""
    if status:
        raise error_of(status, in_python_words(last_error_message()))


def _raise_on_failure(status: int, function: Any, arguments: Any) -> int:
    if status:
        raise error_of(status, in_python_words(last_error_message()))
    return status


def _bind(path: str, cdll: ctypes.CDLL) -> tuple[Any, Any]:
    checked, unchecked = {}, {}
    for name, result, arguments in FUNCTIONS:
        try:
            raw_function, function = cdll[name], cdll[name]
        except AttributeError as error:
            raise ImportError(
                f"{path} lacks {name}, which the Python package cvc {__version__} needs"
            ) from error
        for bound in (raw_function, function):
            bound.restype, bound.argtypes = result, arguments
        if result is ctypes.c_int32:
            function.errcheck = _raise_on_failure  # type: ignore[assignment]
        checked[name], unchecked[name] = function, raw_function
    return SimpleNamespace(**checked), SimpleNamespace(**unchecked)


def last_error_message() -> str:
    """What the last failed call of this thread said."""
    needed = ctypes.c_size_t()
    buffer = ctypes.create_string_buffer(512)
    raw.cvc_last_error_message(buffer, len(buffer), ctypes.byref(needed))
    if needed.value > len(buffer):
        buffer = ctypes.create_string_buffer(needed.value)
        raw.cvc_last_error_message(buffer, len(buffer), ctypes.byref(needed))
    return buffer.value.decode(errors="replace")


library_path, _cdll = _load()
_check_version(library_path, _cdll)
# `lib` raises a cvc.Error where a function returns a status other than CVC_STATUS_OK; `raw` does
# not, for waits in slices, for releases and for tests of bad input.
lib, raw = _bind(library_path, _cdll)

# A native wait is cut into slices of this length, since Python runs signal handlers only between
# two calls: Ctrl-C then ends a wait within one slice.
SLICE_NANOSECONDS = 50_000_000


def wait(function_name: str, *arguments: Any) -> None:
    """Call a native wait, whose last argument is a timeout, until it is done or Ctrl-C comes."""
    function = getattr(raw, function_name)
    while True:
        status = function(*arguments, SLICE_NANOSECONDS)
        if status != _NOT_READY:
            check(status)
            return


_backend: str | None = None


def backend() -> str:
    """The backend in use: "cuda" or "host" (the CPU). Asking starts it.

    The environment variable CVC_BACKEND (auto, cuda or host) chooses it before first use.

    Raises:
        cvc.DeviceError: the driver is missing (with CVC_BACKEND=cuda), too old or failed.
    """
    global _backend
    if _backend is None:
        code = ctypes.c_int32()
        lib.cvc_backend(ctypes.byref(code))
        _backend = next(name.lower() for name, value in BACKEND.items() if value == code.value)
    return _backend

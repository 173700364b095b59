"""Exceptions: one base class that carries libcvc's status, and subclasses people already catch.

Every error of libcvc is a `cvc.Error`, which is a `RuntimeError`. Where Python has a class of its
own for the case (`ValueError`, `TypeError`, `IndexError`, `MemoryError`, `OverflowError`,
`TimeoutError`, `NotImplementedError`), the subclass derives from that one too.
"""

from __future__ import annotations

from ._abi import STATUS

_STATUS_NAMES = {code: f"CVC_STATUS_{name}" for name, code in STATUS.items()}


class Error(RuntimeError):
    """A call of libcvc failed. The text names the argument, its value and what was expected.

    Attributes:
        status: libcvc's status code (`CVC_STATUS_…`) as an int.
        status_name: the name of that code.
    """

    def __init__(self, message: str, status: int = STATUS["INTERNAL"]) -> None:
        super().__init__(message)
        self.message = message
        self.status = status

    @property
    def status_name(self) -> str:
        """The status's name, for example `CVC_STATUS_OUT_OF_MEMORY`."""
        return _STATUS_NAMES.get(self.status, f"CVC_STATUS_{self.status}")

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[type[Error], tuple[str, int]]:
        return (type(self), (self.message, self.status))


class InvalidArgumentError(Error, ValueError):
    """An argument's value is out of its range: a shape, a stride, an enum value, a limit, …"""


class SizeOverflowError(InvalidArgumentError, OverflowError):
    """The byte count of a shape does not fit in 64 bits."""


class MismatchError(InvalidArgumentError):
    """Two arguments do not fit each other: their shapes, dtypes, formats or devices differ."""


class InvalidHandleError(Error, ValueError):
    """A handle is null, closed, or was never one."""


class StaleHandleError(InvalidHandleError):
    """The object behind the handle was released."""


class WrongKindError(Error, TypeError):
    """An object of another kind was given: a tensor where an image is expected, for example."""


class CapacityError(Error, ValueError):
    """A batch would pass its capacity, or more is popped than it holds."""


class InvalidIndexError(Error, IndexError):
    """An index is outside of a batch or of an image's planes."""


class NotSupportedError(Error, NotImplementedError):
    """The operation exists, but not for these dtypes, formats, layouts or this backend."""


class NotReadyError(Error, TimeoutError):
    """Work still runs, or a wait's timeout passed."""


class OutOfMemoryError(Error, MemoryError):
    """The device has no memory left for the request, and nothing idle could be given up."""


class LimitExceededError(OutOfMemoryError):
    """The request would pass the hard memory limit."""


class DeviceError(Error):
    """The driver is missing, too old or failed; the text has the driver's own code and name."""


class ContextLostError(DeviceError):
    """The device's context is gone: after a fatal error, or in a device reset."""


class CapturingError(Error):
    """The call would break a running stream capture."""


class ForkedError(Error):
    """The process was forked after libcvc was used in its parent."""


_CLASSES: dict[str, type[Error]] = {
    "INVALID_ARGUMENT": InvalidArgumentError,
    "NULL_POINTER": InvalidArgumentError,
    "INVALID_HANDLE": InvalidHandleError,
    "STALE_HANDLE": StaleHandleError,
    "WRONG_KIND": WrongKindError,
    "INVALID_RANK": InvalidArgumentError,
    "INVALID_SHAPE": InvalidArgumentError,
    "OVERFLOW": SizeOverflowError,
    "INVALID_STRIDES": InvalidArgumentError,
    "INVALID_ENUM": InvalidArgumentError,
    "INVALID_STRUCT_SIZE": InvalidArgumentError,
    "INVALID_LAYOUT": InvalidArgumentError,
    "INVALID_ALIGNMENT": InvalidArgumentError,
    "INVALID_VALUE": InvalidArgumentError,
    "INVALID_LIMIT": InvalidArgumentError,
    "DEVICE_MISMATCH": MismatchError,
    "SHAPE_MISMATCH": MismatchError,
    "DTYPE_MISMATCH": MismatchError,
    "CAPACITY_EXCEEDED": CapacityError,
    "CAPACITY_UNDERFLOW": CapacityError,
    "INVALID_INDEX": InvalidIndexError,
    "INVALID_DEVICE": InvalidArgumentError,
    "INVALID_STREAM": InvalidHandleError,
    "INVALID_EVENT": InvalidHandleError,
    "NOT_SUPPORTED": NotSupportedError,
    "NOT_READY": NotReadyError,
    "OUT_OF_MEMORY": OutOfMemoryError,
    "LIMIT_EXCEEDED": LimitExceededError,
    "NO_DRIVER": DeviceError,
    "DRIVER_TOO_OLD": DeviceError,
    "NO_DEVICE": DeviceError,
    "NO_KERNEL_IMAGE": DeviceError,
    "DEVICE_ERROR": DeviceError,
    "CONTEXT_LOST": ContextLostError,
    "CAPTURING": CapturingError,
    "FORKED": ForkedError,
    "INTERNAL": Error,
}
_BY_STATUS = {STATUS[name]: error for name, error in _CLASSES.items()}


def error_of(status: int, message: str) -> Error:
    """The exception for a status other than CVC_STATUS_OK."""
    return _BY_STATUS.get(status, Error)(message, status)


def invalid(status_name: str, message: str) -> Error:
    """The exception for a fault found in Python, before the library is called."""
    return error_of(STATUS[status_name], message)

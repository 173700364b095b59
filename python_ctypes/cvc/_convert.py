"""Checked conversions of Python values into what a C argument can hold.

ctypes cuts an integer that is too large to its low bits without a word; these raise instead.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Sequence
from typing import Any

from ._abi import MAX_RANK
from .errors import invalid


def shown(value: Any) -> str:
    """A value for a message. Python refuses to write very long integers out in decimal."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)


def int32(value: Any, name: str) -> int:
    """An integer that fits in 32 bits. Raises TypeError, or cvc.InvalidArgumentError."""
    number = operator.index(value)
    if not -(2**31) <= number < 2**31:
        raise invalid("INVALID_ARGUMENT", f"{name} is {shown(number)}, expected a 32-bit integer")
    return number


def uint32(value: Any, name: str, status_name: str = "INVALID_ARGUMENT") -> int:
    """An integer of 0 or more that fits in 32 bits. Raises TypeError, or `status_name`'s error."""
    number = operator.index(value)
    if not 0 <= number < 2**32:
        raise invalid(
            status_name, f"{name} is {shown(number)}, expected an unsigned 32-bit integer"
        )
    return number


def uint64(value: Any, name: str, status_name: str = "INVALID_ARGUMENT") -> int:
    """An integer of 0 or more that fits in 64 bits. Raises TypeError, or `status_name`'s error."""
    number = operator.index(value)
    if not 0 <= number < 2**64:
        raise invalid(
            status_name, f"{name} is {shown(number)}, expected an unsigned 64-bit integer"
        )
    return number


def int64(value: Any, name: str, status_name: str = "INVALID_ARGUMENT") -> int:
    """An integer that fits in 64 bits. Raises TypeError, or the error of `status_name`."""
    number = operator.index(value)
    if not -(2**63) <= number < 2**63:
        raise invalid(status_name, f"{name} is {shown(number)}, expected a 64-bit integer")
    return number


def float64(value: Any, name: str) -> float:
    """A finite number. Raises TypeError or ValueError, or cvc.InvalidArgumentError."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise invalid("INVALID_VALUE", f"{name} is {shown(value)}, expected a finite number")
    return number


def float32(value: Any, name: str) -> float:
    """A number that is finite in F32 too. Raises what `float64` does."""
    number = float64(value, name)
    try:
        struct.pack("<f", number)
    except OverflowError:
        raise invalid(
            "INVALID_VALUE", f"{name} is {shown(value)}, expected a number within F32's range"
        ) from None
    return number


def shape_of(value: Any, name: str = "shape") -> tuple[int, ...]:
    """A shape as a tuple of at most 15 integers. The values are checked by the library."""
    shape = tuple(map(operator.index, value))
    if len(shape) > MAX_RANK:
        raise invalid("INVALID_RANK", f"{name} has rank {len(shape)}, expected 1 to {MAX_RANK}")
    for axis, length in enumerate(shape):
        if not -(2**63) <= length < 2**63:
            raise invalid(
                "OVERFLOW", f"{name}[{axis}] is {shown(length)}, expected a 64-bit integer"
            )
    return shape


def size_of(value: Sequence[Any], name: str = "size") -> tuple[int, int]:
    """An image's size as (width, height)."""
    try:
        width, height = value
    except (TypeError, ValueError):
        raise invalid(
            "WRONG_KIND" if not hasattr(value, "__len__") else "INVALID_SHAPE",
            f"{name} is {value!r}, expected (width, height)",
        ) from None
    return int32(width, f"{name}[0]"), int32(height, f"{name}[1]")


def layout_of(value: str | None, name: str = "layout") -> bytes:
    """A layout's labels as C text; None is the empty one. Its length is checked by the library."""
    if value is None:
        return b""
    if not isinstance(value, str):
        raise invalid("WRONG_KIND", f"{name} is {value!r}, expected a layout such as 'NHWC'")
    if len(value) > MAX_RANK or not value.isascii() or "\0" in value:
        raise invalid(
            "INVALID_LAYOUT", f"{name} is {value!r}, expected at most {MAX_RANK} ASCII labels"
        )
    return value.encode()

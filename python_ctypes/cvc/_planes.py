"""Which image format, size and planes a list of foreign buffers makes up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ._abi import MAX_PLANES
from ._foreign import ForeignBuffer
from .errors import Error, invalid
from .types import Format, Type, format_info


class Plane(NamedTuple):
    """One plane of an image inside one of the buffers."""

    buffer: ForeignBuffer
    offset: int  # bytes from the buffer's address
    row_stride: int  # bytes
    width: int
    height: int
    channels: int


class Planes(NamedTuple):
    """An image as foreign buffers hold it."""

    format: Format
    width: int
    height: int
    planes: list[Plane]


_PACKED: dict[tuple[Type, int], Format] = {
    (Type.U8, 1): Format.U8,
    (Type.S8, 1): Format.S8,
    (Type.U16, 1): Format.U16,
    (Type.S16, 1): Format.S16,
    (Type.U32, 1): Format.U32,
    (Type.S32, 1): Format.S32,
    (Type.F16, 1): Format.F16,
    (Type.F32, 1): Format.F32,
    (Type.F64, 1): Format.F64,
    (Type.C64, 1): Format.C64,
    (Type.C128, 1): Format.C128,
    (Type.S16, 2): Format._2S16,
    (Type.F16, 2): Format._2F16,
    (Type.F32, 2): Format._2F32,
    (Type.C64, 2): Format._2C64,
    (Type.C128, 2): Format._2C128,
    (Type.U8, 3): Format.RGB8,
    (Type.F16, 3): Format.RGBf16,
    (Type.F32, 3): Format.RGBf32,
    (Type.U8, 4): Format.RGBA8,
    (Type.F16, 4): Format.RGBAf16,
    (Type.F32, 4): Format.RGBAf32,
}
_PLANAR: dict[tuple[Type, int], Format] = {
    (Type.U8, 3): Format.RGB8p,
    (Type.F16, 3): Format.RGBf16p,
    (Type.F32, 3): Format.RGBf32p,
    (Type.U8, 4): Format.RGBA8p,
    (Type.F16, 4): Format.RGBAf16p,
    (Type.F32, 4): Format.RGBAf32p,
}


def describe(buffers: Sequence[ForeignBuffer], format: Format) -> Planes:
    """The image that the buffers make up, in the format given, or inferred where it is NONE.

    A buffer of one or two axes is one plane of one channel. One of three axes is (H, W, C) where
    its last axis is the plane's number of channels (without a format: at most 4), else (C, H, W):
    one plane a channel. A fourth, first axis must be 1. Where the format's planes have one channel,
    a last axis of 1 may be a width too: it is where the buffers make up no image otherwise.

    Raises:
        cvc.InvalidArgumentError: the buffers make up no image, or not one of that format.
    """
    if not buffers:
        raise _error("INVALID_ARGUMENT", "there are no buffers, expected one a plane")
    if len({buffer.device for buffer in buffers}) > 1:
        raise _error("DEVICE_MISMATCH", "the buffers are of several devices, expected one")
    try:
        return _described(buffers, format, narrow=False)
    except Error as error:
        if format == Format.NONE or not any(buffer.shape[-1:] == (1,) for buffer in buffers):
            raise
        otherwise = error
    try:
        return _described(buffers, format, narrow=True)
    except Error:
        if len(buffers) == 1:
            raise
        raise otherwise from None


def _described(buffers: Sequence[ForeignBuffer], format: Format, narrow: bool) -> Planes:
    """`describe`; `narrow`: planes of one channel are one pixel wide where they can be."""
    planes: list[Plane] = []
    for buffer in buffers:
        channels = None
        if format != Format.NONE:
            info = format_info(int(format))
            if len(planes) >= info.plane_count:
                raise _error(
                    "DTYPE_MISMATCH",
                    f"the buffers have more planes than {format}, which has {info.plane_count}",
                )
            channels = Type(info.plane_dtype[len(planes)]).components
        planes += _split(buffer, channels, narrow)
    if format == Format.NONE:
        format = _infer(planes)
    width, height = planes[0].width, planes[0].height
    _check(planes, format, width, height)
    return Planes(format, width, height, planes)


def _error(status_name: str, message: str) -> Error:
    return invalid(status_name, message)


def _split(buffer: ForeignBuffer, channels: int | None, narrow: bool) -> list[Plane]:
    """The planes inside one buffer; `channels` are those of one plane where that is known."""
    shape, strides, itemsize = buffer.shape, buffer.strides, buffer.type.itemsize
    if not 1 <= len(shape) <= 4:
        raise _error("INVALID_RANK", f"a buffer has {len(shape)} axes, expected 1 to 4")
    if min(shape) < 1:
        raise _error("INVALID_SHAPE", f"a buffer's shape is {shape}, expected lengths of 1 or more")
    if len(shape) == 4:
        if shape[0] != 1:
            raise _error("INVALID_SHAPE", f"a buffer's shape is {shape}, expected 1 at first")
        shape, strides = shape[1:], strides[1:]
    if len(shape) == 1:
        shape, strides = (1, *shape), (shape[0] * strides[0], *strides)
    if len(shape) == 2:
        shape, strides = (*shape, 1), (*strides, itemsize)
    packed = shape[2] == channels if channels is not None else shape[2] <= 4
    if narrow and len(buffer.shape) > 2 and channels == 1:
        packed = False
    if packed:
        height, width, plane_channels = shape
        row_stride, pixel_stride, channel_stride = strides
        count, plane_stride = 1, 0
    else:
        count, height, width = shape
        plane_stride, row_stride, pixel_stride = strides
        plane_channels, channel_stride = 1, itemsize
        if count > MAX_PLANES or (channels is None and count > 4):
            raise _error("INVALID_SHAPE", f"a buffer's shape is {shape}: too many channels")
        if count > 1 and plane_stride < height * row_stride:
            raise _error("INVALID_STRIDES", f"the planes are {plane_stride} bytes apart: overlap")
    pixel = plane_channels * itemsize
    if (plane_channels > 1 and channel_stride != itemsize) or (width > 1 and pixel_stride != pixel):
        raise _error(
            "INVALID_STRIDES",
            f"a buffer's strides are {buffer.strides}, expected packed pixels of {pixel} bytes",
        )
    if height == 1:
        row_stride = max(row_stride, width * pixel)
    if row_stride < width * pixel:
        raise _error(
            "INVALID_STRIDES", f"the rows are {row_stride} bytes apart, expected {width * pixel}"
        )
    return [
        Plane(buffer, plane * plane_stride, row_stride, width, height, plane_channels)
        for plane in range(count)
    ]


def _infer(planes: list[Plane]) -> Format:
    types = {plane.buffer.type for plane in planes}
    channels = [plane.channels for plane in planes]
    found = None
    if len(types) == 1:
        kind = next(iter(types))
        if len(planes) == 1:
            found = _PACKED.get((kind, channels[0]))
        elif channels == [1] * len(planes):
            found = _PLANAR.get((kind, len(planes)))
        elif channels == [1, 2] and kind == Type.U8:
            found = Format.NV12_ER
    if found is None:
        shown = ", ".join(f"{plane.channels} of {plane.buffer.type.name}" for plane in planes)
        raise _error("DTYPE_MISMATCH", f"no format has planes with these channels: {shown}")
    return found


def _check(planes: list[Plane], format: Format, width: int, height: int) -> None:
    info = format_info(int(format))
    if len(planes) != info.plane_count:
        raise _error(
            "DTYPE_MISMATCH",
            f"the buffers have {len(planes)} planes, but {format} has {info.plane_count}",
        )
    for index, plane in enumerate(planes):
        expected = Type(info.plane_dtype[index])
        kind = plane.buffer.type
        if (kind, plane.channels) != (expected.base, expected.components):
            raise _error(
                "DTYPE_MISMATCH",
                f"plane {index} has {plane.channels} channels of {kind.name}, but {format} has "
                f"{expected.components} of {expected.base.name} there",
            )
        wanted = (
            -(-width >> info.plane_width_shift[index]),
            -(-height >> info.plane_height_shift[index]),
        )
        if (plane.width, plane.height) != wanted:
            raise _error(
                "SHAPE_MISMATCH",
                f"plane {index} is {plane.width} x {plane.height}, but {format} of size "
                f"{width} x {height} has {wanted[0]} x {wanted[1]} there",
            )

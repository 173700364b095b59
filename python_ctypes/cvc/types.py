"""Enumerations: element types, image formats, filters, flags, roundings and thread scopes."""

from __future__ import annotations

import enum
import sys
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Union

from ._abi import (
    COLOR_MATRIX,
    DTYPE,
    FILTER,
    FORMAT,
    NORMALIZE_SCALE_IS_STDDEV,
    ROUND,
    SCOPE,
    FormatInfo,
    sized,
)
from ._lib import lib

if TYPE_CHECKING:
    import numpy

_LANES_SHIFT = 8
_KIND_MASK = (1 << _LANES_SHIFT) - 1


class _Code(enum.IntEnum):
    """An integer of the C ABI that prints as its Python name."""

    def __repr__(self) -> str:
        return f"cvc.{type(self).__name__}.{self.name}"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return format(str(self), specification)


class Type(_Code):
    """The type of one element: a kind, in one to four lanes (`_3U8` is three bytes).

    Equal to the NumPy dtype, dtype name or Python type that means the same, and accepted by
    `numpy.dtype`. `Type(x)` converts any of those, and raises TypeError where there is none.
    """

    U8 = DTYPE["U8"]
    S8 = DTYPE["S8"]
    U16 = DTYPE["U16"]
    S16 = DTYPE["S16"]
    U32 = DTYPE["U32"]
    S32 = DTYPE["S32"]
    U64 = DTYPE["U64"]
    S64 = DTYPE["S64"]
    F16 = DTYPE["F16"]
    F32 = DTYPE["F32"]
    F64 = DTYPE["F64"]
    C64 = DTYPE["C64"]
    C128 = DTYPE["C128"]
    _2U8 = DTYPE["2U8"]
    _3U8 = DTYPE["3U8"]
    _4U8 = DTYPE["4U8"]
    _2S8 = DTYPE["2S8"]
    _3S8 = DTYPE["3S8"]
    _4S8 = DTYPE["4S8"]
    _2U16 = DTYPE["2U16"]
    _3U16 = DTYPE["3U16"]
    _4U16 = DTYPE["4U16"]
    _2S16 = DTYPE["2S16"]
    _3S16 = DTYPE["3S16"]
    _4S16 = DTYPE["4S16"]
    _2U32 = DTYPE["2U32"]
    _3U32 = DTYPE["3U32"]
    _4U32 = DTYPE["4U32"]
    _2S32 = DTYPE["2S32"]
    _3S32 = DTYPE["3S32"]
    _4S32 = DTYPE["4S32"]
    _2U64 = DTYPE["2U64"]
    _3U64 = DTYPE["3U64"]
    _4U64 = DTYPE["4U64"]
    _2S64 = DTYPE["2S64"]
    _3S64 = DTYPE["3S64"]
    _4S64 = DTYPE["4S64"]
    _2F16 = DTYPE["2F16"]
    _3F16 = DTYPE["3F16"]
    _4F16 = DTYPE["4F16"]
    _2F32 = DTYPE["2F32"]
    _3F32 = DTYPE["3F32"]
    _4F32 = DTYPE["4F32"]
    _2F64 = DTYPE["2F64"]
    _3F64 = DTYPE["3F64"]
    _4F64 = DTYPE["4F64"]
    _2C64 = DTYPE["2C64"]
    _3C64 = DTYPE["3C64"]
    _4C64 = DTYPE["4C64"]
    _2C128 = DTYPE["2C128"]

    @property
    def components(self) -> int:
        """The number of lanes, 1 to 4."""
        return (int(self) >> _LANES_SHIFT) + 1

    @property
    def base(self) -> Type:
        """The type of one lane."""
        return Type(int(self) & _KIND_MASK)

    @property
    def itemsize(self) -> int:
        """Bytes of one element, all its lanes together."""
        return int(self.base.name[1:]) // 8 * self.components

    @property
    def typestr(self) -> str:
        """The array interface's name of the type, for example `<f4`; `|V12` for three of them."""
        if self.components > 1:
            return f"|V{self.itemsize}"
        return _typestr(self)

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """The same type as a NumPy dtype. Raises ImportError where NumPy is not installed."""
        return _numpy_dtype(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return int(self) == int(other)
        if other is None:
            return False
        try:
            return int(self) == int(as_type(other))
        except TypeError:
            return NotImplemented

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = _Code.__hash__

    @classmethod
    def _missing_(cls, value: object) -> Type:
        if isinstance(value, int):
            raise ValueError(f"{value} is no element type of libcvc")
        return as_type(value)


_KIND_LETTERS = {"U": "u", "S": "i", "F": "f", "C": "c"}


def _typestr(kind: Type) -> str:
    order = "|" if kind.itemsize == 1 else "<"
    return f"{order}{_KIND_LETTERS[kind.name[0]]}{kind.itemsize}"


def _names() -> dict[str, Type]:
    """What a type may be called without NumPy: its own names, NumPy's and the array interface's."""
    words = {"u": "uint", "i": "int", "f": "float", "c": "complex"}
    names: dict[str, Type] = {"|b1": Type.U8, "?": Type.U8, "bool": Type.U8}
    for kind in Type:
        own = kind.name.lstrip("_")
        names[kind.name] = names[own] = kind
        if kind.components > 1:
            continue
        typestr = _typestr(kind)
        names[typestr] = names[typestr[1:]] = names["=" + typestr[1:]] = kind
        bits = 8 * kind.itemsize
        names[f"{words[typestr[1]]}{bits}"] = kind
    return names


_BY_NAME = _names()
_BY_CLASS = {bool: Type.U8, int: Type.S64, float: Type.F64, complex: Type.C128}

TypeLike = Union[Type, str, type, "numpy.dtype[Any]"]


def as_type(value: Any) -> Type:
    """The Type that a NumPy dtype, a name, or a Python number type means.

    Raises:
        TypeError: libcvc has no such element type, or the byte order is not the machine's.
    """
    if type(value) is Type:
        return value
    try:
        return _converted(value)
    except TypeError as error:
        raise TypeError(f"{value!r} is no element type of libcvc: {error}") from None


@lru_cache(maxsize=256, typed=True)
def _converted(value: Any) -> Type:
    if isinstance(value, int) and not isinstance(value, bool):
        return Type(value)
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if isinstance(value, type) and value in _BY_CLASS:
        return _BY_CLASS[value]
    if value is None:
        raise TypeError("None names none")
    numpy = sys.modules.get("numpy")
    if numpy is None and isinstance(value, str):
        numpy = _import_numpy()
    if numpy is None:
        raise TypeError("expected a cvc.Type, a dtype or a name such as 'uint8'")
    dtype = numpy.dtype(value)
    lanes = 1
    if dtype.subdtype is not None:
        dtype, shape = dtype.subdtype
        if len(shape) != 1:
            raise TypeError(f"a dtype of shape {shape}, expected one axis of 2 to 4 lanes")
        lanes = shape[0]
    kind = _BY_NAME.get(dtype.str)
    if kind is None or not dtype.isnative:
        raise TypeError("expected a number in the machine's byte order")
    name = kind.name if lanes == 1 else f"_{lanes}{kind.name}"
    if name not in Type.__members__:
        raise TypeError(f"{lanes} lanes of {kind.name}")
    return Type[name]


def _import_numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy


@cache
def _numpy_dtype(kind: Type) -> numpy.dtype[Any]:
    import numpy

    base = numpy.dtype(_typestr(kind.base))
    return base if kind.components == 1 else numpy.dtype((base, (kind.components,)))


@cache
def public_dtype(code: int) -> Any:
    """What `.dtype` of an object returns: a NumPy dtype, or the Type where NumPy is absent."""
    kind = Type(code)
    return kind if _import_numpy() is None else kind.dtype


class Format(_Code):
    """The format of an image's pixels: element type, channels, their order and planes."""

    NONE = FORMAT["NONE"]
    U8 = FORMAT["U8"]
    S8 = FORMAT["S8"]
    U16 = FORMAT["U16"]
    S16 = FORMAT["S16"]
    U32 = FORMAT["U32"]
    S32 = FORMAT["S32"]
    F16 = FORMAT["F16"]
    F32 = FORMAT["F32"]
    F64 = FORMAT["F64"]
    _2S16 = FORMAT["2S16"]
    _2F16 = FORMAT["2F16"]
    _2F32 = FORMAT["2F32"]
    C64 = FORMAT["C64"]
    _2C64 = FORMAT["2C64"]
    C128 = FORMAT["C128"]
    _2C128 = FORMAT["2C128"]
    Y8 = FORMAT["Y8"]
    Y8_ER = FORMAT["Y8_ER"]
    Y16 = FORMAT["Y16"]
    Y16_ER = FORMAT["Y16_ER"]
    NV12 = FORMAT["NV12"]
    NV12_ER = FORMAT["NV12_ER"]
    NV21 = FORMAT["NV21"]
    NV21_ER = FORMAT["NV21_ER"]
    NV24 = FORMAT["NV24"]
    NV24_ER = FORMAT["NV24_ER"]
    UYVY = FORMAT["UYVY"]
    UYVY_ER = FORMAT["UYVY_ER"]
    VYUY = FORMAT["VYUY"]
    VYUY_ER = FORMAT["VYUY_ER"]
    YUYV = FORMAT["YUYV"]
    YUYV_ER = FORMAT["YUYV_ER"]
    YUV8 = FORMAT["YUV8"]
    YUV8_ER = FORMAT["YUV8_ER"]
    YUV8p = FORMAT["YUV8P"]
    YUV8p_ER = FORMAT["YUV8P_ER"]
    RGB8 = FORMAT["RGB8"]
    BGR8 = FORMAT["BGR8"]
    RGBA8 = FORMAT["RGBA8"]
    BGRA8 = FORMAT["BGRA8"]
    RGB8p = FORMAT["RGB8P"]
    BGR8p = FORMAT["BGR8P"]
    RGBA8p = FORMAT["RGBA8P"]
    BGRA8p = FORMAT["BGRA8P"]
    RGBf16 = FORMAT["RGBF16"]
    BGRf16 = FORMAT["BGRF16"]
    RGBAf16 = FORMAT["RGBAF16"]
    BGRAf16 = FORMAT["BGRAF16"]
    RGBf16p = FORMAT["RGBF16P"]
    BGRf16p = FORMAT["BGRF16P"]
    RGBAf16p = FORMAT["RGBAF16P"]
    BGRAf16p = FORMAT["BGRAF16P"]
    RGBf32 = FORMAT["RGBF32"]
    BGRf32 = FORMAT["BGRF32"]
    RGBAf32 = FORMAT["RGBAF32"]
    BGRAf32 = FORMAT["BGRAF32"]
    RGBf32p = FORMAT["RGBF32P"]
    BGRf32p = FORMAT["BGRF32P"]
    RGBAf32p = FORMAT["RGBAF32P"]
    BGRAf32p = FORMAT["BGRAF32P"]
    HSV8 = FORMAT["HSV8"]
    CMYK8 = FORMAT["CMYK8"]
    YCCK8 = FORMAT["YCCK8"]

    @property
    def planes(self) -> int:
        """The number of planes."""
        return format_info(int(self)).plane_count

    @property
    def channels(self) -> int:
        """The number of channels, all planes together."""
        return format_info(int(self)).channel_count


@cache
def format_info(code: int) -> FormatInfo:
    """The planes of a format. Raises cvc.InvalidArgumentError for an unknown one."""
    info = sized(FormatInfo)
    lib.cvc_format_get_info(code, info)
    return info


class Interp(_Code):
    """Filters of a resize. The triangle of LINEAR is what Pillow calls BILINEAR."""

    NEAREST = FILTER["NEAREST"]
    LINEAR = FILTER["LINEAR"]
    CUBIC = FILTER["CUBIC"]
    AREA = FILTER["AREA"]
    LANCZOS = FILTER["LANCZOS"]
    HAMMING = FILTER["HAMMING"]
    BOX = FILTER["BOX"]


class NormalizeFlags(enum.IntFlag):
    """Flags of `normalize`."""

    SCALE_IS_STDDEV = NORMALIZE_SCALE_IS_STDDEV
    """`scale` is a standard deviation: values are multiplied by 1 / sqrt(scale² + epsilon)."""


class ColorMatrix(_Code):
    """The coefficients that frames in YCbCr were made with: ITU-R BT.601 or BT.709."""

    BT601 = COLOR_MATRIX["BT601"]
    BT709 = COLOR_MATRIX["BT709"]


class Round(_Code):
    """How `convertto` makes integers of fractions."""

    NEAREST = ROUND["NEAREST"]
    """To the nearest, halves to the even one."""
    TRUNCATE = ROUND["TRUNCATE"]
    """Towards zero."""


class ThreadScope(_Code):
    """Which threads' cache entries a call means."""

    GLOBAL = SCOPE["GLOBAL"]
    """Those of every thread."""
    LOCAL = SCOPE["LOCAL"]
    """Those of the calling thread."""

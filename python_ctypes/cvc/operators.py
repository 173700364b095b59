"""Image operators: flip, pillowresize, convertto, normalize and reformat.

Each is queued on a stream and returns at once. Without a destination it draws its result from the
cache; the `_into` form writes to one that is given, and returns it. `stream=None` means
`Stream.current`. Work queued on other streams on the same memory is ordered automatically.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_int32, c_void_p
from typing import Any, Union, overload

from ._abi import RESIZE_PILLOW_12_PASS_ORDER, RESIZE_PREMULTIPLY_ALPHA, NormalizeParams, sized
from ._convert import float32, float64, int32, layout_of, shape_of, size_of, uint32
from ._export import read_only_error
from ._lib import lib
from ._resource import handle_of
from .batch import ImageBatchVarShape
from .errors import invalid
from .stream import Stream, stream_handle
from .tensor import Tensor
from .types import Format, Interp, NormalizeFlags, Round, TypeLike, as_type

Values = Union[Tensor, Sequence[float], float]


def _tensor(value: Any, name: str) -> int:
    return handle_of(value, Tensor, name)


def _batch(value: Any, name: str) -> int:
    return handle_of(value, ImageBatchVarShape, name)


def _writable(value: Any, expected: type[Any], name: str = "dst") -> int:
    handle = handle_of(value, expected, name)
    read_only = value._read_only if expected is Tensor else value._has_read_only()
    if read_only:
        raise read_only_error(name)
    return handle


# --- flip ----------------------------------------------------------------------------------------


@overload
def flip(src: Tensor, flipCode: int, *, stream: Stream | None = None) -> Tensor: ...
@overload
def flip(
    src: ImageBatchVarShape, flipCode: Tensor, *, stream: Stream | None = None
) -> ImageBatchVarShape: ...
def flip(src: Any, flipCode: Any, *, stream: Stream | None = None) -> Any:
    """Mirror images.

    Args:
        src: a tensor (HWC, NHWC, CHW, NCHW), or a batch of images.
        flipCode: 0 reverses the rows, a positive number the columns, a negative one both. For a
            batch: an S32 tensor with a code for each image, 0, 1 or -1; another code copies.
        stream: the stream to run on; None means the current one.

    Raises:
        cvc.NotSupportedError: the dtype, format or layout is none of the operator's.
        cvc.MismatchError: src is of another device than the stream, or there are too few codes.
    """
    out = c_void_p()
    if isinstance(src, ImageBatchVarShape):
        codes = _tensor(flipCode, "flipCode")
        lib.cvc_op_flip_var_shape_new(stream_handle(stream), _batch(src, "src"), codes, byref(out))
        return ImageBatchVarShape._adopt(out.value)
    code = int32(flipCode, "flipCode")
    lib.cvc_op_flip_new(stream_handle(stream), _tensor(src, "src"), code, byref(out))
    return Tensor._adopt(out.value)


def flip_into(dst: Any, src: Any, flipCode: Any, *, stream: Stream | None = None) -> Any:
    """`flip` into a destination of the same shape and dtype, which is returned.

    Raises:
        cvc.MismatchError: dst does not fit src.
    """
    if isinstance(src, ImageBatchVarShape):
        target = _writable(dst, ImageBatchVarShape)
        codes = _tensor(flipCode, "flipCode")
        lib.cvc_op_flip_var_shape(stream_handle(stream), _batch(src, "src"), target, codes)
        return dst
    code = int32(flipCode, "flipCode")
    source = _tensor(src, "src")
    lib.cvc_op_flip(stream_handle(stream), source, _writable(dst, Tensor), code)
    return dst


# --- pillowresize --------------------------------------------------------------------------------


def _resize_flags(premultiply_alpha: bool, pillow12: bool) -> int:
    flags = RESIZE_PREMULTIPLY_ALPHA if premultiply_alpha else 0
    return flags | (RESIZE_PILLOW_12_PASS_ORDER if pillow12 else 0)


def _height_and_width(src: Tensor, shape: Sequence[int]) -> tuple[int, int]:
    """The target's height and width out of its whole shape, which else must equal src's."""
    target = shape_of(shape)
    source = src.shape
    layout = src.layout or {3: "HWC", 4: "NHWC"}.get(len(source), "")
    rows, columns = layout.find("H"), layout.find("W")
    if rows < 0 or columns < 0:
        raise invalid("INVALID_LAYOUT", f"src has the layout {src.layout}, expected H and W in it")
    others = [axis for axis in range(len(source)) if axis not in (rows, columns)]
    if len(target) != len(source) or any(target[axis] != source[axis] for axis in others):
        raise invalid(
            "SHAPE_MISMATCH",
            f"shape is {target}, expected that of src, {source}, but for height and width",
        )
    return target[rows], target[columns]


@overload
def pillowresize(
    src: Tensor,
    shape: Sequence[int],
    format: Format | None = None,
    interp: Interp = Interp.LINEAR,
    *,
    stream: Stream | None = None,
    premultiply_alpha: bool = False,
    pillow12: bool = False,
) -> Tensor: ...
@overload
def pillowresize(
    src: ImageBatchVarShape,
    sizes: Sequence[tuple[int, int]],
    interp: Interp = Interp.LINEAR,
    *,
    stream: Stream | None = None,
    premultiply_alpha: bool = False,
    pillow12: bool = False,
) -> ImageBatchVarShape: ...
def pillowresize(  # type: ignore[misc]
    src: Any,
    shape: Any = None,
    format: Any = None,
    interp: Any = None,
    *,
    sizes: Any = None,
    stream: Stream | None = None,
    premultiply_alpha: bool = False,
    pillow12: bool = False,
) -> Any:
    """Resize with Pillow's filters, to Pillow's own bits for U8, channel by channel.

    Args:
        src: a tensor (HWC, NHWC, CHW, NCHW), or a batch of images.
        shape: the result's whole shape, in src's layout.
        sizes: for a batch, in place of shape: (width, height) of each image.
        format: the pixels' format; it is checked, and needed by nothing else. A batch takes none.
        interp: the filter.
        stream: the stream to run on; None means the current one.
        premultiply_alpha: the last of 2 or 4 U8 channels is alpha, by which the others are
            multiplied meanwhile, as `PIL.Image.resize` does for LA and RGBA.
        pillow12: the order of passes of Pillow up to 12, in place of Pillow 13's.

    Raises:
        cvc.NotSupportedError: the dtype, layout or filter is none of the operator's.
        cvc.MismatchError: the shape differs from src's in more than height and width, or the sizes
            are not one an image.
    """
    out = c_void_p()
    flags = _resize_flags(premultiply_alpha, pillow12)
    if isinstance(src, ImageBatchVarShape):
        sizes = shape if sizes is None else sizes
        if format is not None and interp is None:  # (batch, sizes, interp)
            format, interp = None, format
        if format is not None:
            raise TypeError("pillowresize of a batch takes no format: its images have theirs")
        pairs = [size_of(size, f"sizes[{index}]") for index, size in enumerate(sizes)]
        flat = (c_int32 * (2 * len(pairs)))(*(length for pair in pairs for length in pair))
        lib.cvc_op_pillow_resize_var_shape_new(
            stream_handle(stream),
            _batch(src, "src"),
            flat,
            len(pairs),
            _filter(interp),
            flags,
            byref(out),
        )
        return ImageBatchVarShape._adopt(out.value)
    source = _tensor(src, "src")
    if format is not None:
        Format(format)
    height, width = _height_and_width(src, shape)
    lib.cvc_op_pillow_resize_new(
        stream_handle(stream), source, height, width, _filter(interp), flags, byref(out)
    )
    return Tensor._adopt(out.value)


def _filter(interp: Any) -> int:
    return Interp.LINEAR if interp is None else Interp(interp)


def pillowresize_into(
    dst: Any,
    src: Any,
    format: Any = None,
    interp: Any = None,
    *,
    stream: Stream | None = None,
    premultiply_alpha: bool = False,
    pillow12: bool = False,
) -> Any:
    """`pillowresize` into a destination whose size is the target's; it is returned.

    A batch takes no format: `pillowresize_into(dst, src, interp)`.

    Raises:
        cvc.MismatchError: dst differs from src in more than height and width.
    """
    flags = _resize_flags(premultiply_alpha, pillow12)
    if isinstance(src, ImageBatchVarShape):
        if format is not None and interp is None:
            format, interp = None, format
        if format is not None:
            raise TypeError("pillowresize_into of a batch takes no format: its images have theirs")
        target = _writable(dst, ImageBatchVarShape)
        lib.cvc_op_pillow_resize_var_shape(
            stream_handle(stream), _batch(src, "src"), target, _filter(interp), flags
        )
        return dst
    source = _tensor(src, "src")
    if format is not None:
        Format(format)
    lib.cvc_op_pillow_resize(
        stream_handle(stream), source, _writable(dst, Tensor), _filter(interp), flags
    )
    return dst


# --- convertto -----------------------------------------------------------------------------------


def convertto(
    src: Tensor,
    dtype: TypeLike,
    scale: float = 1,
    offset: float = 0,
    *,
    round: Round = Round.NEAREST,
    stream: Stream | None = None,
) -> Tensor:
    """Convert elements: scale * value + offset, rounded and clamped to the new type's range.

    It is computed in F32, or in F64 where either type is F64 or an integer of 32 or 64 bits.

    Args:
        src: a tensor of any shape.
        dtype: the result's element type.
        scale, offset: finite numbers.
        round: how fractions become integers.
        stream: the stream to run on; None means the current one.

    Raises:
        cvc.NotSupportedError: a dtype is none of the operator's.
        cvc.InvalidArgumentError: scale or offset is not finite.
    """
    out = c_void_p()
    lib.cvc_op_convert_to_new(
        stream_handle(stream),
        _tensor(src, "src"),
        as_type(dtype),
        float64(scale, "scale"),
        float64(offset, "offset"),
        Round(round),
        byref(out),
    )
    return Tensor._adopt(out.value)


def convertto_into(
    dst: Tensor,
    src: Tensor,
    scale: float = 1,
    offset: float = 0,
    *,
    round: Round = Round.NEAREST,
    stream: Stream | None = None,
) -> Tensor:
    """`convertto` into a destination of the same shape, whose dtype is the target's.

    Raises:
        cvc.MismatchError: the shapes differ.
    """
    lib.cvc_op_convert_to(
        stream_handle(stream),
        _tensor(src, "src"),
        _writable(dst, Tensor),
        float64(scale, "scale"),
        float64(offset, "offset"),
        Round(round),
    )
    return dst


# --- normalize -----------------------------------------------------------------------------------


def _set_values(params: NormalizeParams, field: str, values: Values, name: str) -> None:
    """Fill in base or scale, from a tensor or from one number, or one a channel."""
    if isinstance(values, Tensor):
        setattr(params, field, _tensor(values, name))
        return
    listed: Any = values if hasattr(values, "__len__") else (values,)
    numbers = [float32(value, f"{name}[{index}]") for index, value in enumerate(listed)]
    if not 1 <= len(numbers) <= 4:
        raise invalid(
            "INVALID_ARGUMENT", f"{name} has {len(numbers)} values, expected one, or one a channel"
        )
    getattr(params, f"{field}_values")[: len(numbers)] = numbers
    setattr(params, f"{field}_count", len(numbers))


def _normalize_params(
    base: Values,
    scale: Values,
    flags: int | None,
    globalscale: float,
    globalshift: float,
    epsilon: float,
    prefix: str = "",
) -> NormalizeParams:
    params = sized(NormalizeParams)
    _set_values(params, "base", base, f"{prefix}base")
    _set_values(params, "scale", scale, f"{prefix}scale")
    params.flags = 0 if flags is None else uint32(flags, f"{prefix}flags", "INVALID_ENUM")
    params.global_scale = float32(globalscale, f"{prefix}globalscale")
    params.global_shift = float32(globalshift, f"{prefix}globalshift")
    params.epsilon = float32(epsilon, f"{prefix}epsilon")
    return params


def normalize(
    src: Any,
    base: Values,
    scale: Values,
    flags: NormalizeFlags | int | None = None,
    *,
    globalscale: float = 1.0,
    globalshift: float = 0.0,
    epsilon: float = 0.0,
    stream: Stream | None = None,
    dtype: TypeLike | None = None,
    format: Format | None = None,
) -> Any:
    """(src - base) * scale * globalscale + globalshift, each step rounded once to F32.

    Args:
        src: a tensor (HWC, NHWC, CHW, NCHW), or a batch of images.
        base, scale: F32 tensors whose every dimension is 1 or src's, or lists of one number, or
            one a channel.
        flags: `NormalizeFlags.SCALE_IS_STDDEV` multiplies by 1 / sqrt(scale² + epsilon) instead.
        globalscale, globalshift, epsilon: finite numbers.
        stream: the stream to run on; None means the current one.
        dtype: the result's element type, for a tensor; None means src's.
        format: the format of the result's images, for a batch; None means src's.

    Raises:
        cvc.NotSupportedError: a dtype, format or layout is none of the operator's.
        cvc.MismatchError: base or scale does not fit src.
        cvc.InvalidArgumentError: a number is not finite, or a flag unknown.
    """
    params = _normalize_params(base, scale, flags, globalscale, globalshift, epsilon)
    out = c_void_p()
    if isinstance(src, ImageBatchVarShape):
        if dtype is not None:
            raise TypeError("normalize of a batch takes format in place of dtype")
        target = 0 if format is None else Format(format)
        lib.cvc_op_normalize_var_shape_new(
            stream_handle(stream), _batch(src, "src"), params, target, byref(out)
        )
        return ImageBatchVarShape._adopt(out.value)
    if format is not None:
        raise TypeError("normalize of a tensor takes dtype in place of format")
    params.dst_dtype = 0 if dtype is None else as_type(dtype)
    lib.cvc_op_normalize_new(stream_handle(stream), _tensor(src, "src"), params, byref(out))
    return Tensor._adopt(out.value)


def normalize_into(
    dst: Any,
    src: Any,
    base: Values,
    scale: Values,
    flags: NormalizeFlags | int | None = None,
    *,
    globalscale: float = 1.0,
    globalshift: float = 0.0,
    epsilon: float = 0.0,
    stream: Stream | None = None,
) -> Any:
    """`normalize` into a destination of the same shape, whose dtype or formats are the target's.

    Raises:
        cvc.MismatchError: dst does not fit src.
    """
    params = _normalize_params(base, scale, flags, globalscale, globalshift, epsilon)
    if isinstance(src, ImageBatchVarShape):
        target = _writable(dst, ImageBatchVarShape)
        lib.cvc_op_normalize_var_shape(stream_handle(stream), _batch(src, "src"), target, params)
        return dst
    source = _tensor(src, "src")
    lib.cvc_op_normalize(stream_handle(stream), source, _writable(dst, Tensor), params)
    return dst


# --- reformat ------------------------------------------------------------------------------------


def reformat(src: Tensor, layout: str, *, stream: Stream | None = None) -> Tensor:
    """Reorder dimensions: NHWC to NCHW, HWC to CHW, back, or a copy in the same layout.

    Args:
        src: a tensor with a layout.
        layout: the result's.
        stream: the stream to run on; None means the current one.

    Raises:
        cvc.NotSupportedError: the layouts or the dtype are none of the operator's.
    """
    out = c_void_p()
    lib.cvc_op_reformat_new(
        stream_handle(stream), _tensor(src, "src"), layout_of(layout), byref(out)
    )
    return Tensor._adopt(out.value)


def reformat_into(dst: Tensor, src: Tensor, *, stream: Stream | None = None) -> Tensor:
    """`reformat` into a destination, whose layout is the target's.

    Raises:
        cvc.MismatchError: the lengths of the dimensions differ.
    """
    source = _tensor(src, "src")
    lib.cvc_op_reformat(stream_handle(stream), source, _writable(dst, Tensor))
    return dst

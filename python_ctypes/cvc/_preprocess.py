"""The operator preprocess: what comes before a network, in one call into one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_void_p, pointer
from dataclasses import dataclass
from typing import Any, Union

from ._abi import (
    PREPROCESS_FLIP,
    PREPROCESS_NV12,
    PREPROCESS_NV12_FULL_RANGE,
    PREPROCESS_SWAP_CHANNELS,
    Crop,
    PreprocessParams,
    sized,
)
from ._convert import float64, int32, layout_of, size_of
from ._lib import lib
from .batch import ImageBatchVarShape
from .errors import invalid
from .operators import (
    Values,
    _batch,
    _filter,
    _normalize_params,
    _resize_flags,
    _tensor,
    _writable,
)
from .stream import Stream, stream_handle
from .tensor import Tensor
from .types import ColorMatrix, Interp, NormalizeFlags, Round, TypeLike, as_type

_NV12 = {None: 0, "limited": PREPROCESS_NV12, "full": PREPROCESS_NV12_FULL_RANGE}


@dataclass(frozen=True)
class Convert:
    """A step of `preprocess`: scale * value + offset in another element type, as in `convertto`."""

    dtype: TypeLike
    scale: float = 1
    offset: float = 0
    round: Round = Round.NEAREST


@dataclass(frozen=True)
class Normalize:
    """A step of `preprocess`: what `normalize` does.

    Dimensions of tensors are 1 or those of the result. `dtype` is the result's element type; None
    means that of what is normalized.
    """

    base: Values
    scale: Values
    flags: NormalizeFlags | int | None = None
    globalscale: float = 1.0
    globalshift: float = 0.0
    epsilon: float = 0.0
    dtype: TypeLike | None = None


Source = Union[Tensor, ImageBatchVarShape]
Crops = Union[Sequence[int], Sequence[Sequence[int]]]


def _crops(crop: Crops | None) -> list[Crop]:
    """Rectangles out of one (x, y, width, height), or out of a list of them."""
    if crop is None:
        return []
    listed: Any = list(crop)
    if not listed:
        return []
    rectangles = listed if hasattr(listed[0], "__len__") else [listed]
    crops = []
    for index, rectangle in enumerate(rectangles):
        if len(rectangle) != 4:
            raise invalid(
                "INVALID_ARGUMENT",
                f"crop[{index}] is {rectangle!r}, expected (x, y, width, height)",
            )
        crops.append(Crop(*(int32(value, f"crop[{index}]") for value in rectangle)))
    return crops


def _params(
    crop: Crops | None,
    interp: Any,
    flip: int | None,
    swap_channels: bool,
    convert: Convert | TypeLike | None,
    normalize: Normalize | None,
    nv12: str | None,
    matrix: ColorMatrix,
    resize_flags: int,
) -> PreprocessParams:
    params = sized(PreprocessParams)
    if nv12 not in _NV12:
        raise invalid("INVALID_ENUM", f"nv12 is {nv12!r}, expected None, 'limited' or 'full'")
    params.flags = _NV12[nv12] | (PREPROCESS_SWAP_CHANNELS if swap_channels else 0)
    if flip is not None:
        params.flags |= PREPROCESS_FLIP
        params.flip_code = int32(flip, "flip")
    params.resize_flags = resize_flags
    params.filter = _filter(interp)
    crops = _crops(crop)
    if crops:
        params.crops = (Crop * len(crops))(*crops)
        params.crop_count = len(crops)
    if convert is not None:
        step = convert if isinstance(convert, Convert) else Convert(convert)
        params.convert_dtype = as_type(step.dtype)
        params.alpha = float64(step.scale, "convert.scale")
        params.beta = float64(step.offset, "convert.offset")
        params.round = Round(step.round)
    params.color_matrix = ColorMatrix(matrix)
    if normalize is not None:
        own = _normalize_params(
            normalize.base,
            normalize.scale,
            normalize.flags,
            normalize.globalscale,
            normalize.globalshift,
            normalize.epsilon,
            prefix="normalize.",
        )
        own.dst_dtype = 0 if normalize.dtype is None else as_type(normalize.dtype)
        params.normalize = pointer(own)
    return params


def preprocess(
    src: Source,
    size: Sequence[int],
    layout: str = "NHWC",
    *,
    crop: Crops | None = None,
    interp: Interp = Interp.LINEAR,
    flip: int | None = None,
    swap_channels: bool = False,
    convert: Convert | TypeLike | None = None,
    normalize: Normalize | None = None,
    nv12: str | None = None,
    matrix: ColorMatrix = ColorMatrix.BT601,
    stream: Stream | None = None,
    premultiply_alpha: bool = False,
    pillow12: bool = False,
) -> Tensor:
    """Crop, resize, flip, swap colours, convert, normalize and reorder, any of them, in this order.

    The result has the bits of the operators called one after the other. What has the wanted size
    after the crop is not resized.

    Args:
        src: a tensor with H and W in its layout, or a batch of images of any sizes, which become
            one tensor. Images may be NV12 or NV21.
        size: (width, height) of the result.
        layout: the result's: NHWC or NCHW, or for one image HWC or CHW.
        crop: (x, y, width, height) of what is left of each image, or a list of one an image.
        interp: the filter of the resize.
        flip: 0 reverses the rows, a positive number the columns, a negative one both.
        swap_channels: exchange channels 0 and 2, RGB with BGR.
        convert: an element type, or a `cvc.Convert`.
        normalize: a `cvc.Normalize`.
        nv12: "limited" or "full" where a tensor has NV12 frames of that range: U8 of one channel,
            3/2 of the height, of which the last third has pairs of Cb and Cr. They become RGB.
        matrix: of NV12 frames.
        stream: the stream to run on; None means the current one.
        premultiply_alpha, pillow12: as in `pillowresize`.

    Raises:
        cvc.NotSupportedError: a dtype, format or filter is none of a step's.
        cvc.MismatchError: there are neither one nor as many crops as images, or base or scale does
            not fit the result.
        cvc.InvalidArgumentError: a crop is not within its image, a number is not finite, a name is
            unknown.
    """
    width, height = size_of(size)
    params = _params(
        crop,
        interp,
        flip,
        swap_channels,
        convert,
        normalize,
        nv12,
        matrix,
        _resize_flags(premultiply_alpha, pillow12),
    )
    call, source = lib.cvc_op_preprocess_new, _tensor
    if isinstance(src, ImageBatchVarShape):
        call, source = lib.cvc_op_preprocess_var_shape_new, _batch
    out = c_void_p()
    call(
        stream_handle(stream),
        source(src, "src"),
        params,
        height,
        width,
        layout_of(layout),
        byref(out),
    )
    return Tensor._adopt(out.value)


def preprocess_into(
    dst: Tensor,
    src: Source,
    *,
    crop: Crops | None = None,
    interp: Interp = Interp.LINEAR,
    flip: int | None = None,
    swap_channels: bool = False,
    convert: Convert | TypeLike | None = None,
    normalize: Normalize | None = None,
    nv12: str | None = None,
    matrix: ColorMatrix = ColorMatrix.BT601,
    stream: Stream | None = None,
    premultiply_alpha: bool = False,
    pillow12: bool = False,
) -> Tensor:
    """`preprocess` into a tensor, whose size and layout are the target's; it is returned.

    Its dtype is what the last step gives; where that is normalize, any that normalize takes.

    Raises:
        cvc.MismatchError: dst has other images, channels or another dtype.
    """
    params = _params(
        crop,
        interp,
        flip,
        swap_channels,
        convert,
        normalize,
        nv12,
        matrix,
        _resize_flags(premultiply_alpha, pillow12),
    )
    call, source = lib.cvc_op_preprocess, _tensor
    if isinstance(src, ImageBatchVarShape):
        call, source = lib.cvc_op_preprocess_var_shape, _batch
    call(stream_handle(stream), source(src, "src"), _writable(dst, Tensor), params)
    return dst

"""Tensors: arrays in device memory with a dtype and an optional layout."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_void_p
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

from . import _foreign, _lifetime, _transfer
from ._abi import DEVICE_CURRENT, TensorData, TensorDesc, sized
from ._context import default_cache
from ._convert import int32, int64, layout_of, shape_of, size_of
from ._export import Export, no_pickle
from ._lib import lib
from ._resource import Resource, handle_of, live
from .errors import Error, invalid
from .layout import TensorLayout
from .stream import Stream, consumer_handle, stream_handle
from .types import Format, Type, TypeLike, as_type, public_dtype

if TYPE_CHECKING:
    import numpy

    from .image import Image


@lru_cache(maxsize=512)
def _desc(shape: tuple[int, ...], dtype: int, layout: bytes, row_align: int) -> TensorDesc:
    """The C description of a tensor, kept since programs make the same few again and again."""
    desc = sized(TensorDesc)
    desc.device = DEVICE_CURRENT
    desc.rank = len(shape)
    desc.shape[: len(shape)] = shape
    desc.dtype = dtype
    desc.layout = layout
    desc.row_align = row_align
    return desc


@lru_cache(maxsize=512)
def _desc_of_images(count: int, width: int, height: int, format: int, row_align: int) -> TensorDesc:
    desc = sized(TensorDesc)
    lib.cvc_tensor_desc_from_image(
        DEVICE_CURRENT, count, width, height, format, row_align, byref(desc)
    )
    desc.device = DEVICE_CURRENT  # that of the day it is used, not of the day it was made
    return desc


class Tensor(Resource, noun="tensor"):
    """An array of 1 to 15 dimensions in device memory, whose values are undefined at first.

    Its memory comes from the cache and goes back there when the last reference to the tensor, to
    its views, exports and batches is gone. On the host backend it is host memory.

    Args:
        shape: the length of each dimension, outermost first.
        dtype: the element type: a cvc.Type, a NumPy dtype or its name.
        layout: one label a dimension ("NHWC"), or None.
        rowalign: bytes that rows are aligned to, a power of two; 0 the default, 1 packed.
        nimages, imgsize, format: the second form: a batch of images of size (width, height), NHWC
            or NCHW as the format has it.
        stream: the stream the tensor is first used on, if it is known. Memory that work still uses
            may then be taken where that stream is ordered behind it.

    Raises:
        cvc.InvalidArgumentError: a shape, layout, alignment or format is bad; the text says which.
        cvc.OutOfMemoryError: the device is full, and nothing idle was left to give up.
        TypeError: the dtype is none of libcvc's.
    """

    __slots__ = ("_data_cache", "_read_only", "_keeper", "_lent_export")

    @overload
    def __init__(
        self,
        shape: Sequence[int],
        dtype: TypeLike,
        layout: str | None = None,
        rowalign: int = 0,
        *,
        stream: Stream | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        nimages: int,
        imgsize: tuple[int, int],
        format: Format,
        rowalign: int = 0,
        *,
        stream: Stream | None = None,
    ) -> None: ...

    def __init__(  # type: ignore[misc]
        self,
        shape: Any = None,
        dtype: Any = None,
        layout: Any = None,
        rowalign: int = 0,
        *,
        nimages: Any = None,
        imgsize: Any = None,
        format: Any = None,
        stream: Stream | None = None,
    ) -> None:
        self._reset()
        row_align = int64(rowalign, "rowalign")
        if nimages is None and hasattr(shape, "__index__") and not hasattr(shape, "__len__"):
            nimages, shape = shape, None
        if nimages is None:
            if shape is None or dtype is None:
                raise TypeError("Tensor takes (shape, dtype, …) or (nimages, imgsize, format, …)")
            desc = _desc(shape_of(shape), int(as_type(dtype)), layout_of(layout), row_align)
        else:
            imgsize = dtype if imgsize is None else imgsize
            format = layout if format is None else format
            if imgsize is None or format is None:
                raise TypeError("Tensor(nimages, imgsize, format) lacks an argument")
            width, height = size_of(imgsize, "imgsize")
            count = int32(nimages, "nimages")
            desc = _desc_of_images(count, width, height, int(Format(format)), row_align)
        out = c_void_p()
        lib.cvc_tensor_create(default_cache(), desc, consumer_handle(stream), byref(out))
        self._handle = out.value

    def _reset(self) -> None:
        self._handle: int | None = None
        self._data_cache: TensorData | None = None
        self._read_only = False
        self._keeper: _lifetime.Keeper | None = None
        self._lent_export: Export | None = None

    @classmethod
    def _adopt(cls, handle: int | None, read_only: bool = False) -> Tensor:
        """Make the Python object of a handle, whose reference it takes over."""
        tensor = cls.__new__(cls)
        tensor._reset()
        tensor._handle = handle
        tensor._read_only = read_only
        return tensor

    def close(self) -> None:
        """Release the tensor now. Every later use of this Python object is an error.

        Exports, views and batches made from it hold references of their own and stay valid.
        """
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            super().close()
            return
        keeper.wrap_ends()
        super().close()
        _lifetime.drop_released(at_most=1)

    @property
    def _data(self) -> TensorData:
        data = self._data_cache
        if data is None:
            data = sized(TensorData)
            lib.cvc_tensor_get_data(live(self), data)
            self._data_cache = data
        elif self._handle is None:
            live(self)
        return data

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension, outermost first."""
        data = self._data
        return tuple(data.shape[: data.rank])

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._data.rank

    @property
    def dtype(self) -> Any:
        """The element type as a NumPy dtype (as a cvc.Type where NumPy is not installed)."""
        return public_dtype(self._data.dtype)

    @property
    def layout(self) -> TensorLayout | None:
        """The label of each dimension, or None."""
        labels = self._data.layout
        return TensorLayout(labels.decode()) if labels else None

    @property
    def device(self) -> int:
        """The ordinal of the device that holds the tensor."""
        return self._data.device

    def cuda(self) -> Export:
        """The tensor's memory for other libraries: a new export at each call."""
        return Export(live(self), self._read_only)

    def cpu(self, *, stream: Stream | None = None) -> numpy.ndarray[Any, Any]:
        """Copy the values to a new NumPy array, after the work queued on the tensor so far.

        Waits for the copy; Ctrl-C interrupts the wait. A type of several lanes adds a last axis.

        Args:
            stream: the stream of the copy; None means the current one.

        Raises:
            ImportError: NumPy is not installed.
        """
        return _transfer.download(live(self), stream)

    def reshape(self, shape: Sequence[int], layout: str | None = None) -> Tensor:
        """A view of the same memory with another shape, and the layout given or kept.

        The view keeps the memory alive. Dimensions may be joined and split where no padding lies
        between their elements.

        Raises:
            cvc.InvalidArgumentError: the volume differs, padding is in the way, or the layout's
                length is not the rank.
        """
        if layout is None:
            layout = self.layout
        desc = _desc(shape_of(shape), 0, layout_of(layout), 0)
        out = c_void_p()
        lib.cvc_tensor_reshape(live(self), desc, byref(out))
        return Tensor._adopt(out.value, self._read_only)

    def __dlpack__(self, **arguments: Any) -> Any:
        """A DLPack capsule: see `Export.__dlpack__`."""
        return self.cuda().__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's (device type, device id): (1, 0) on the host backend, (2, ordinal) on cuda."""
        return self.cuda().__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray[Any, Any]:
        return self.cuda().__array__(dtype, copy)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """See `Export.__cuda_array_interface__`."""
        # Kept until this object is gone, closed or not: readers hold this object, no export.
        export = self._lent_export
        if export is None:
            export = self.cuda()
        interface = export.__cuda_array_interface__
        self._lent_export = export
        return interface

    def __repr__(self) -> str:
        if self._handle is None:
            return "<cvc.Tensor closed>"
        data = self._data
        return (
            f"<cvc.Tensor shape={self.shape} dtype={Type(data.dtype).name} "
            f"layout={data.layout.decode() or None} device={data.device}>"
        )

    __reduce__ = no_pickle


def reshape(tensor: Tensor, shape: Sequence[int], layout: str | None = None) -> Tensor:
    """A view of a tensor's memory with another shape: see `Tensor.reshape`."""
    handle_of(tensor, Tensor, "tensor")
    return tensor.reshape(shape, layout)


def as_tensor(
    buffer: Any = None, layout: str | None = None, *, image: Image | None = None
) -> Tensor:
    """Use memory that something else owns as a tensor, without a copy.

    Args:
        buffer: an object with `__dlpack__`, `__cuda_array_interface__`, `__array_interface__` or
            the buffer protocol, in memory that the backend reaches; an export of `.cuda()`; or
            a cvc.Image, whose planes become an NHWC or NCHW tensor.
        layout: one label a dimension, or None.
        image: the same as `buffer`, for an image.

    The owner is kept alive until the tensor, its views and the work on it are gone. The memory is
    not counted in the cache. Work that its producer queued is ordered before its use here, where
    the protocol tells the producer's stream.

    Raises:
        cvc.WrongKindError: the object has none of these.
        cvc.InvalidArgumentError: its strides or its layout are not possible for a tensor.
        cvc.NotSupportedError: it is host memory, and the backend is cuda.
    """
    return wrap_tensor(buffer if image is None else image, layout, 0)


def wrap_tensor(source: Any, layout: str | None, flags: int) -> Tensor:
    """`as_tensor` with the native wrap's flags."""
    from .image import Image

    out = c_void_p()
    if isinstance(source, Image):
        lib.cvc_tensor_from_image(live(source, "image"), byref(out))
        tensor = Tensor._adopt(out.value, source._read_only)
        return tensor if layout is None else tensor.reshape(tensor.shape, layout)
    if isinstance(source, (Tensor, Export)):
        data = source._data
        labels = layout_of(layout) or data.layout
        shape = tuple(data.shape[: data.rank])
        lib.cvc_tensor_reshape(live(source, "buffer"), _desc(shape, 0, labels, 0), byref(out))
        return Tensor._adopt(out.value, source._read_only)
    return _wrap(_foreign.read_for_wrap(source, stream_handle(None)), layout, flags)


def _wrap(buffer: _foreign.ForeignBuffer, layout: str | None, flags: int) -> Tensor:
    shape, strides = buffer.shape, buffer.strides
    if not shape:  # a scalar array counts as one of rank 1
        shape, strides = (1,), (buffer.type.itemsize,)
    if len(shape) > len(TensorData().shape):
        raise invalid("INVALID_RANK", f"buffer has rank {len(shape)}, expected 1 to 15")
    data = sized(TensorData)
    data.device, data.rank = buffer.device, len(shape)
    data.shape[: len(shape)] = shape
    data.strides[: len(shape)] = strides
    data.dtype, data.layout, data.data = buffer.type, layout_of(layout), buffer.address or None
    data.flags = flags
    keeper = _lifetime.Keeper(buffer.owner)
    out = c_void_p()
    try:
        lib.cvc_tensor_wrap(
            default_cache(), data, _lifetime.RELEASE, keeper.semaphore, buffer.stream, byref(out)
        )
    except Error:
        keeper.discard()
        raise
    tensor = Tensor._adopt(out.value, buffer.read_only)
    tensor._keeper = keeper
    return tensor


def upload(
    buffer: Any,
    layout: str | None = None,
    *,
    rowalign: int = 0,
    stream: Stream | None = None,
) -> Tensor:
    """Copy a host array into a new tensor, and wait for the copy. Ctrl-C interrupts the wait.

    Args:
        buffer: a NumPy array, or another host object with the buffer protocol,
            `__array_interface__` or `__dlpack__`.
        layout: one label a dimension, or None.
        rowalign: bytes that rows are aligned to, a power of two; 0 the default, 1 packed.
        stream: the stream of the copy; None means the current one.

    Raises:
        cvc.NotSupportedError: the buffer is device memory.
        cvc.OutOfMemoryError: the device is full, and nothing idle was left to give up.
    """
    source = _foreign.read_for_copy(buffer)
    shape = source.shape or (1,)
    consumer = Stream.current if stream is None else stream
    tensor = Tensor(shape, source.type, layout, rowalign, stream=consumer)
    _transfer.upload(stream, [(source, 0, tensor)], source.owner)
    return tensor

"""Images: pixels of one format in one or more planes of device memory."""

from __future__ import annotations

from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any, overload

from . import _foreign, _lifetime, _planes, _transfer
from ._abi import DEVICE_CURRENT, MAX_PLANES, ImageData, ImageDesc, TensorDesc, sized
from ._context import default_cache
from ._convert import int64, layout_of, size_of
from ._export import Export, no_pickle
from ._lib import lib
from ._resource import Resource, live
from .errors import Error, invalid
from .stream import Stream, consumer_handle, stream_handle
from .types import Format, Type, format_info

if TYPE_CHECKING:
    import numpy


class Image(Resource, noun="image"):
    """Pixels of one format in device memory, whose values are undefined at first.

    Its memory comes from the cache and goes back there when the last reference to the image, to
    its views, exports and batches is gone. On the host backend it is host memory.

    Pixels of YUYV, UYVY and VYUY come in pairs that share their chroma, so the plane of an odd
    width is one pixel wider. `cuda` and `cpu` give the whole plane, and an image made of such an
    array has the even width.

    Args:
        size: (width, height) in pixels.
        format: the pixels' format. With buffers, NONE infers it: U8, RGB8, RGBA8, NV12_ER, … .
        rowalign: bytes that rows are aligned to, a power of two; 0 the default, 1 packed.
        buffer: the second form: a host array, or a list of them, one a plane, whose pixels are
            copied. It waits for the copy; Ctrl-C interrupts the wait.
        stream: the stream of the copy (None means the current one), or the stream that a new image
            is first used on, if it is known.

    Raises:
        cvc.InvalidArgumentError: a size, format or alignment is bad, or the buffers do not make up
            an image of the format; the text says which.
        cvc.OutOfMemoryError: the device is full, and nothing idle was left to give up.
    """

    __slots__ = ("_data_cache", "_read_only", "_keeper")

    @overload
    def __init__(
        self,
        size: tuple[int, int],
        format: Format,
        rowalign: int = 0,
        *,
        stream: Stream | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        buffer: Any,
        format: Format = Format.NONE,
        rowalign: int = 0,
        *,
        stream: Stream | None = None,
    ) -> None: ...

    def __init__(  # type: ignore[misc]
        self,
        size: Any = None,
        format: Format = Format.NONE,
        rowalign: int = 0,
        *,
        buffer: Any = None,
        stream: Stream | None = None,
    ) -> None:
        self._reset()
        if buffer is None and not _is_size(size):
            buffer, size = size, None
        if buffer is None:
            width, height = size_of(size)
            self._create(width, height, Format(format), rowalign, consumer_handle(stream))
            return
        sources = buffer if isinstance(buffer, (list, tuple)) else [buffer]
        buffers = [_foreign.read_for_copy(source) for source in sources]
        planes = _planes.describe(buffers, Format(format))
        self._create(planes.width, planes.height, planes.format, rowalign, stream_handle(stream))
        views = [self._plane_view(index) for index in range(len(planes.planes))]
        copies = []
        for plane, view in zip(planes.planes, views):
            itemsize = plane.buffer.type.itemsize
            strides = (plane.row_stride, plane.channels * itemsize, itemsize)
            copies.append((plane.buffer._replace(strides=strides), plane.offset, view))
        _transfer.upload(stream, copies, buffers)

    def _create(self, width: int, height: int, format: Format, row_align: int, stream: int) -> None:
        desc = sized(ImageDesc)
        desc.device, desc.format = DEVICE_CURRENT, int(format)
        desc.width, desc.height = width, height
        desc.row_align = int64(row_align, "rowalign")
        out = c_void_p()
        lib.cvc_image_create(default_cache(), desc, stream, byref(out))
        self._handle = out.value

    def _reset(self) -> None:
        self._handle: int | None = None
        self._data_cache: ImageData | None = None
        self._read_only = False
        self._keeper: _lifetime.Keeper | None = None

    @classmethod
    def _adopt(cls, handle: int | None, read_only: bool = False) -> Image:
        """Make the Python object of a handle, whose reference it takes over."""
        image = cls.__new__(cls)
        image._reset()
        image._handle = handle
        image._read_only = read_only
        return image

    @staticmethod
    def zeros(
        size: tuple[int, int], format: Format, rowalign: int = 0, *, stream: Stream | None = None
    ) -> Image:
        """A new image whose bytes are 0, written on the stream (None means the current one)."""
        image = Image(size, format, rowalign, stream=Stream.current if stream is None else stream)
        for index in range(image.format.planes):
            plane = image._plane_view(index)
            lib.cvc_fill_zero(stream_handle(stream), live(plane))
        return image

    def close(self) -> None:
        """Release the image now. Every later use of this Python object is an error.

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
    def _data(self) -> ImageData:
        data = self._data_cache
        if data is None:
            data = sized(ImageData)
            lib.cvc_image_get_data(live(self), data)
            self._data_cache = data
        elif self._handle is None:
            live(self)
        return data

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        data = self._data
        return data.width, data.height

    @property
    def width(self) -> int:
        """Pixels in a row."""
        return self._data.width

    @property
    def height(self) -> int:
        """The number of rows."""
        return self._data.height

    @property
    def format(self) -> Format:
        """The format of the pixels."""
        return Format(self._data.format)

    @property
    def device(self) -> int:
        """The ordinal of the device that holds the image."""
        return self._data.device

    def cuda(self, layout: str | None = None) -> Export | list[Export]:
        """The image's memory for other libraries: new exports at each call.

        One export where the planes can be told by one array, else a list, one a plane. Without a
        layout it is HW for one channel, HWC for several in one plane, CHW for planes of one
        channel each; a list has HWC.

        Args:
            layout: labels for the dimensions, which must have those of the image in their order;
                others get the length 1.

        Raises:
            cvc.InvalidArgumentError: the layout cannot tell the image.
        """
        views = self._views(layout)
        exports = [Export(live(view), self._read_only) for view in views]
        return exports[0] if len(exports) == 1 else exports

    def cpu(
        self, layout: str | None = None, *, stream: Stream | None = None
    ) -> numpy.ndarray[Any, Any] | list[numpy.ndarray[Any, Any]]:
        """Copy the pixels to NumPy arrays, one for each export that `cuda(layout)` would give.

        Waits for the work queued on the image so far and for the copy; Ctrl-C interrupts it.

        Raises:
            cvc.InvalidArgumentError: the layout cannot tell the image.
            ImportError: NumPy is not installed.
        """
        arrays = [_transfer.download(live(view), stream) for view in self._views(layout)]
        return arrays[0] if len(arrays) == 1 else arrays

    def _plane_view(self, index: int) -> Resource:
        """One plane as a tensor of layout HWC."""
        out = c_void_p()
        lib.cvc_tensor_from_image_plane(live(self), index, byref(out))
        return _lifetime.TensorReference(out.value)

    def _views(self, layout: str | None) -> list[Resource]:
        data = self._data
        width, height = data.width, data.height
        if data.plane_count == 1:
            channels = Type(format_info(data.format).plane_dtype[0]).components
            lengths = (self._data.planes[0].height, self._data.planes[0].width, channels)
            rank = 3 if channels > 1 else 2
            return [_relabelled(self._plane_view(0), "HWC"[:rank], lengths[:rank], layout)]
        if self._is_evenly_planar():
            out = c_void_p()
            lib.cvc_tensor_from_image(live(self), byref(out))
            shape = (data.plane_count, height, width)
            return [_relabelled(_lifetime.TensorReference(out.value), "CHW", shape, layout)]
        views = []
        for index in range(data.plane_count):
            plane = data.planes[index]
            channels = Type(format_info(data.format).plane_dtype[index]).components
            shape = (plane.height, plane.width, channels)
            views.append(_relabelled(self._plane_view(index), "HWC", shape, layout))
        return views

    def _is_evenly_planar(self) -> bool:
        """Whether all planes are alike, of one channel, and equally far apart."""
        data = self._data
        info = format_info(data.format)
        planes = data.planes[: data.plane_count]
        alike = {
            (plane.width, plane.height, plane.row_stride, info.plane_dtype[index])
            for index, plane in enumerate(planes)
        }
        gaps = {after.data - before.data for before, after in zip(planes, planes[1:])}
        return (
            len(alike) == 1
            and len(gaps) == 1
            and next(iter(gaps)) > 0
            and Type(info.plane_dtype[0]).components == 1
        )

    def __repr__(self) -> str:
        if self._handle is None:
            return "<cvc.Image closed>"
        data = self._data
        return (
            f"<cvc.Image size={data.width}x{data.height} format={self.format.name} "
            f"device={data.device}>"
        )

    __reduce__ = no_pickle


def _relabelled(
    view: Resource, inferred: str, lengths: tuple[int, ...], layout: str | None
) -> Resource:
    """A view with the labels of `layout`: those of `inferred` in order, others of length 1."""
    if layout is None:
        layout = inferred
    encoded = layout_of(layout)
    by_label = dict(zip(inferred, lengths))
    needed = [label for label, length in by_label.items() if length > 1]
    present = [label for label in layout if label in by_label]
    order = [inferred.index(label) for label in present]
    if not set(needed) <= set(present) or order != sorted(set(order)):
        raise invalid(
            "INVALID_LAYOUT",
            f"layout is {layout!r}, expected the labels of {inferred!r} in that order",
        )
    desc = sized(TensorDesc)
    desc.device, desc.rank, desc.layout = DEVICE_CURRENT, len(layout), encoded
    desc.shape[: len(layout)] = [by_label.get(label, 1) for label in layout]
    out = c_void_p()
    lib.cvc_tensor_reshape(live(view), desc, byref(out))
    return _lifetime.TensorReference(out.value)


def _is_size(value: Any) -> bool:
    """Whether a constructor's first argument is (width, height) and not pixels."""
    if isinstance(value, (list, tuple)):
        return all(hasattr(item, "__index__") and not hasattr(item, "__len__") for item in value)
    # A short row of two integers may come as a NumPy array; pixels are never of 64 bits.
    return (
        type(value).__module__ == "numpy"
        and getattr(value, "shape", None) == (2,)
        and value.dtype.kind in "iu"
        and value.dtype.itemsize == 8
    )


def as_image(buffer: Any, format: Format = Format.NONE) -> Image:
    """Use memory that something else owns as an image, without a copy.

    Args:
        buffer: an object with `__dlpack__`, `__cuda_array_interface__`, `__array_interface__` or
            the buffer protocol, in memory that the backend reaches; or a list of them, one a plane.
        format: the pixels' format; NONE infers it: U8, RGB8, RGBA8, RGB8p, NV12_ER, … .

    The owner is kept alive until the image, its views and the work on it are gone. The memory is
    not counted in the cache.

    Raises:
        cvc.WrongKindError: an object has none of these.
        cvc.InvalidArgumentError: the buffers do not make up an image of the format.
        cvc.NotSupportedError: it is host memory, and the backend is cuda.
    """
    return wrap_image(buffer, format, 0)


def wrap_image(buffer: Any, format: Format, flags: int) -> Image:
    """`as_image` with the native wrap's flags."""
    consumer = stream_handle(None)
    sources = buffer if isinstance(buffer, (list, tuple)) else [buffer]
    buffers = [_foreign.read_for_wrap(source, consumer) for source in sources]
    planes = _planes.describe(buffers, Format(format))
    data = sized(ImageData)
    data.device, data.format = buffers[0].device, int(planes.format)
    data.width, data.height = planes.width, planes.height
    data.plane_count, data.flags = len(planes.planes), flags
    for index, plane in enumerate(planes.planes[:MAX_PLANES]):
        record = data.planes[index]
        record.data = (plane.buffer.address + plane.offset) or None
        record.row_stride = plane.row_stride
        record.width, record.height = plane.width, plane.height
    keeper = _lifetime.Keeper([source.owner for source in buffers])
    out = c_void_p()
    try:
        lib.cvc_image_wrap(
            default_cache(),
            data,
            _lifetime.RELEASE,
            keeper.semaphore,
            _foreign.common_producer(buffers, consumer),
            byref(out),
        )
    except Error:
        keeper.discard()
        raise
    image = Image._adopt(out.value, any(source.read_only for source in buffers))
    image._keeper = keeper
    return image

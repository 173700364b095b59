"""Batches: images of different sizes, and tensors of one rank, dtype and layout, for one call."""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterable, Iterator, Sequence
from ctypes import byref, c_void_p
from typing import Any, ClassVar, Generic, TypeVar, Union

from ._abi import (
    DEVICE_CURRENT,
    STREAM_NONE,
    WRAP_KEEP_SHELLS,
    ImageBatchData,
    TensorBatchData,
    sized,
)
from ._context import default_cache
from ._convert import int32
from ._export import no_pickle
from ._lib import lib
from ._resource import Resource, handle_of, live
from .errors import invalid
from .image import Image, wrap_image
from .layout import TensorLayout
from .tensor import Tensor, wrap_tensor
from .types import Format, public_dtype

_Item = TypeVar("_Item", bound=Union[Image, Tensor])


class _Batch(Resource, Generic[_Item]):
    """What both kinds of batch share: a native batch, and the Python objects in it in order."""

    __slots__ = ("_items", "_lock", "_capacity")

    _item_class: ClassVar[type[Any]]
    _calls: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, noun: str | None = None, **keywords: Any) -> None:
        super().__init_subclass__(noun=noun, **keywords)
        if noun is not None:
            verbs = ("create", "push", "pop", "clear", "get", "get_data")
            cls._calls = {verb: getattr(lib, f"cvc_{noun}_{verb}") for verb in verbs}

    def __init__(self, capacity: int) -> None:
        self._handle = None
        capacity = int32(capacity, "capacity")
        out = c_void_p()
        create = self._calls["create"]
        create(default_cache(), DEVICE_CURRENT, capacity, STREAM_NONE, byref(out))
        self._start(out.value, capacity, 0)

    def _start(self, handle: int | None, capacity: int, count: int) -> None:
        self._handle = handle
        self._capacity = capacity
        # None stands for an item whose Python object nobody has asked for yet.
        self._items: list[_Item | None] = [None] * count
        self._lock = threading.RLock()

    @property
    def capacity(self) -> int:
        """How many items the batch can hold."""
        live(self)
        return self._capacity

    def pushback(self, items: _Item | Iterable[_Item]) -> None:
        """Add one item, or several in order, to the end: all of them or, on an error, none.

        The batch keeps them alive.

        Raises:
            cvc.CapacityError: the batch would pass its capacity.
            cvc.WrongKindError: an item is of another class.
            cvc.MismatchError: an item does not fit the others.
        """
        added = [items] if isinstance(items, self._item_class) else list(items)  # type: ignore[arg-type]
        handles = [
            handle_of(item, self._item_class, f"item {index}") for index, item in enumerate(added)
        ]
        with self._lock:
            array = (c_void_p * len(handles))(*handles)
            self._calls["push"](live(self), array, len(handles))
            self._items += added

    def popback(self, count: int = 1) -> None:
        """Remove the last `count` items.

        Raises:
            cvc.CapacityError: the batch holds fewer; it stays as it was.
        """
        count = int32(count, "count")
        with self._lock:
            self._calls["pop"](live(self), count)
            if count:
                del self._items[-count:]

    def clear(self) -> None:
        """Remove all items."""
        with self._lock:
            self._calls["clear"](live(self))
            self._items.clear()

    def __len__(self) -> int:
        live(self)
        return len(self._items)

    def __iter__(self) -> Iterator[_Item]:
        live(self)
        with self._lock:
            return iter([self._item(index) for index in range(len(self._items))])

    def __getitem__(self, index: int) -> _Item:
        with self._lock:
            return self._item(self._position(index))

    def _position(self, index: int) -> int:
        """A list's index, negative ones from the end, as an index from the start."""
        position = operator.index(index)
        count = len(self._items)
        live(self)
        if not -count <= position < count:
            raise invalid("INVALID_INDEX", f"index is {position}, but the batch holds {count}")
        return position % count

    def _item(self, position: int) -> _Item:
        item = self._items[position]
        if item is None:
            out = c_void_p()
            self._calls["get"](live(self), position, byref(out))
            item = self._items[position] = self._item_class._adopt(out.value)
        return item

    def __repr__(self) -> str:
        name = type(self).__name__
        if self._handle is None:
            return f"<cvc.{name} closed>"
        return f"<cvc.{name} {len(self._items)} of {self._capacity}>"

    __reduce__ = no_pickle


class ImageBatchVarShape(_Batch[Image], noun="image_batch"):
    """Images of any sizes and formats, up to a capacity, which operators take in one call.

    Iteration and `[i]` give the same Python objects that were pushed.

    Args:
        capacity: how many images it can hold.

    Raises:
        cvc.InvalidArgumentError: the capacity is not positive.
    """

    __slots__ = ()
    _item_class = Image

    @classmethod
    def _adopt(cls, handle: int | None) -> ImageBatchVarShape:
        """Make the Python object of a handle, whose reference it takes over."""
        batch = cls.__new__(cls)
        batch._handle = handle
        data = batch._data
        batch._start(handle, data.capacity, data.count)
        return batch

    @property
    def _data(self) -> ImageBatchData:
        data = sized(ImageBatchData)
        lib.cvc_image_batch_get_data(live(self), STREAM_NONE, data)
        return data

    @property
    def uniqueformat(self) -> Format | None:
        """The format that all images have, or None where they differ or there are none."""
        code = self._data.unique_format
        return Format(code) if code else None

    @property
    def maxsize(self) -> tuple[int, int]:
        """(the largest width, the largest height); (0, 0) without images."""
        data = self._data
        return data.max_width, data.max_height

    @property
    def device(self) -> int:
        """The ordinal of the device that holds the batch."""
        return self._data.device

    def _has_read_only(self) -> bool:
        return any(image is not None and image._read_only for image in self._items)


class TensorBatch(_Batch[Tensor], noun="tensor_batch"):
    """Tensors of one rank, dtype and layout, fixed by the first, up to a capacity.

    Iteration and `[i]` give the same Python objects that were pushed. One tensor may be in it many
    times.

    Args:
        capacity: how many tensors it can hold.

    Raises:
        cvc.InvalidArgumentError: the capacity is not positive.
    """

    __slots__ = ()
    _item_class = Tensor

    @property
    def _data(self) -> TensorBatchData:
        data = sized(TensorBatchData)
        lib.cvc_tensor_batch_get_data(live(self), STREAM_NONE, data)
        return data

    @property
    def layout(self) -> TensorLayout | None:
        """The layout of the tensors, or None without one or without tensors."""
        labels = self._data.layout
        return TensorLayout(labels.decode()) if labels else None

    @property
    def dtype(self) -> Any:
        """The element type of the tensors as `Tensor.dtype` tells it; None without tensors."""
        code = self._data.dtype
        return public_dtype(code) if code else None

    @property
    def ndim(self) -> int:
        """The rank of the tensors; -1 without tensors."""
        return self._data.rank

    @property
    def device(self) -> int:
        """The ordinal of the device that holds the batch."""
        return self._data.device

    def __setitem__(self, index: int, tensor: Tensor) -> None:
        """Replace a tensor by one of the same rank, dtype and layout."""
        handle = handle_of(tensor, Tensor, "tensor")
        with self._lock:
            position = self._position(index)
            lib.cvc_tensor_batch_set(live(self), position, handle)
            self._items[position] = tensor


def _with_flags(buffers: Sequence[Any]) -> Iterator[tuple[Any, int]]:
    """Each buffer with its wrap's flags: the last one alone drops the idle shells that are left."""
    last = len(buffers) - 1
    for index, buffer in enumerate(buffers):
        yield buffer, 0 if index == last else WRAP_KEEP_SHELLS


def as_images(buffers: Sequence[Any] = (), format: Format = Format.NONE) -> ImageBatchVarShape:
    """Use memory of others as a batch of images without a copy: `as_image` of each buffer.

    Args:
        buffers: of each image its buffer, or its list of buffers, one a plane.
        format: the format of all of them; NONE infers each one's.

    Raises:
        cvc.InvalidArgumentError: there are no buffers, or one is no image of the format.
    """
    images = [wrap_image(buffer, format, flags) for buffer, flags in _with_flags(buffers)]
    batch = ImageBatchVarShape(len(images))
    batch.pushback(images)
    return batch


def as_tensors(buffers: Sequence[Any] = (), layout: str | None = None) -> TensorBatch:
    """Use memory of others as a batch of tensors without a copy: `as_tensor` of each buffer.

    Raises:
        cvc.InvalidArgumentError: there are no buffers.
        cvc.MismatchError: their ranks or dtypes differ.
    """
    tensors = [wrap_tensor(buffer, layout, flags) for buffer, flags in _with_flags(buffers)]
    batch = TensorBatch(len(tensors))
    batch.pushback(tensors)
    return batch

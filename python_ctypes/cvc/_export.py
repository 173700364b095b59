"""What `.cuda()` returns: a tensor's memory as other libraries read it, without a copy."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import byref, c_char_p, c_int32, c_void_p, py_object
from typing import TYPE_CHECKING, Any, NoReturn

from . import _foreign
from ._abi import ACCESS, STATUS, STREAM_LEGACY, STREAM_NONE, TensorData, TensorDesc, sized
from ._context import default_cache
from ._lib import backend, lib, raw, wait
from ._lifetime import TensorReference
from ._resource import Resource, live
from .errors import Error, error_of, invalid
from .types import Type, public_dtype

if TYPE_CHECKING:
    import numpy

    from .stream import Stream

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = py_object, (c_void_p, c_char_p, c_void_p)


def _address(function: Any) -> int | None:
    return ctypes.cast(function, c_void_p).value


# Native, since a capsule is destroyed at reference count 0, maybe after Python's own end.
_CAPSULE_DESTRUCTOR = _address(raw.cvc_python_capsule_destructor)
lib.cvc_python_bind(
    _address(ctypes.pythonapi.PyCapsule_GetPointer), _address(ctypes.pythonapi.PyCapsule_IsValid)
)


class Export(Resource, noun="tensor"):
    """The memory of a tensor, or of an image's planes, for NumPy, PyTorch, CuPy and others.

    While an Export, or an array made from it, is alive, its memory is not reused. On the host
    backend reading it (`numpy.asarray`, `numpy.from_dlpack`) waits for the work queued on it so
    far; on the cuda backend the reader's stream is made to wait, not the host. Work that others
    queue on the memory afterwards is theirs to order, except where DLPack named their stream.
    """

    __slots__ = ("_data", "_read_only", "_lent")

    def __init__(self, handle: int, read_only: bool = False) -> None:
        """Export a tensor's handle, which is retained; made by `.cuda()` of an object."""
        self._lent = False
        self._handle = None
        lib.cvc_tensor_retain(handle)
        self._handle = handle
        self._read_only = read_only
        self._data = sized(TensorData)
        lib.cvc_tensor_get_data(handle, self._data)

    def close(self) -> None:
        """Release the memory now. Arrays that were made from the export must be gone."""
        if self._lent and self._handle is not None:
            # What the reader queued on CUDA's default stream until now is ordered before reuse.
            with suppress(Error), _current_device(self._data.device):
                raw.cvc_tensor_end_access(self._handle, STREAM_LEGACY, ACCESS["READ_WRITE"])
        super().close()

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        return tuple(self._data.shape[: self._data.rank])

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance in bytes of neighbours along each dimension."""
        return tuple(self._data.strides[: self._data.rank])

    @property
    def dtype(self) -> Any:
        """The element type as a NumPy dtype (as a cvc.Type where NumPy is not installed)."""
        return public_dtype(self._data.dtype)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._data.rank

    @property
    def device(self) -> int:
        """The ordinal of the device the memory belongs to."""
        return self._data.device

    def __repr__(self) -> str:
        return (
            f"<cvc.Export shape={self.shape} strides={self.strides} "
            f"dtype={Type(self._data.dtype).name} device={self.device}>"
        )

    def _interface(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": Type(self._data.dtype).typestr,
            "data": (self._data.data or 0, self._read_only),
            "strides": self.strides,
            "version": 3,
        }

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Host backend only. Waits for the work queued on the memory so far."""
        if backend() != "host":
            raise AttributeError("__array_interface__: the memory is on the GPU")
        wait("cvc_tensor_synchronize", live(self))
        return self._interface()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """cuda backend only. CUDA's default stream is made to wait for the work queued so far.

        The interface names that stream; a reader that ignores it (PyTorch does) must run on it,
        or use `torch.from_dlpack`.
        """
        if backend() != "cuda":
            raise AttributeError("__cuda_array_interface__: the memory is on the host")
        access = ACCESS["READ" if self._read_only else "READ_WRITE"]
        with _current_device(self._data.device):
            lib.cvc_tensor_begin_access(live(self), STREAM_LEGACY, access)
            lib.cvc_tensor_end_access(live(self), STREAM_LEGACY, access)
        self._lent = True
        return {**self._interface(), "stream": STREAM_LEGACY}

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray[Any, Any]:
        import numpy

        if backend() != "host":
            raise TypeError("the memory is on the GPU: use .cpu() to copy it to a NumPy array")
        if copy is None:
            return numpy.asarray(self, dtype)
        return numpy.array(self, dtype, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's (device type, device id): (1, 0) on the host backend, (2, ordinal) on cuda."""
        if backend() == "host":
            return (_foreign.DL_CPU, 0)
        return (_foreign.DL_CUDA, self._data.device)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of the memory.

        Args:
            stream: the reader's stream, which is made to wait for the work queued so far: None or
                1 CUDA's default one, 2 the per-thread one, -1 no wait, else a handle. None or -1
                on the host backend, where the call itself waits.
            max_version: the newest DLPack version the reader knows; None gets the old struct.
            dl_device: the memory's own device, or (1, 0) for a copy on the host.
            copy: True always copies, False never does.

        Raises:
            BufferError: the device or copy asked for cannot be had, or read-only memory is to go
                into the old struct, which cannot say so.
            ValueError: the stream is not one of those above.
        """
        versioned = max_version is not None and max_version[0] >= 1
        own_device = self.__dlpack_device__()
        wanted = own_device if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
        if wanted == own_device:
            with _current_device(self._data.device):
                return self._capsule(_consumer(stream, own_device), versioned, copy)
        if wanted == (_foreign.DL_CPU, 0) and stream is None:
            if copy is False:
                raise BufferError("device memory cannot be read on the host without a copy")
            with _current_device(self._data.device):
                return self._host_capsule(max_version, versioned)
        raise BufferError(
            f"dl_device is {wanted} with stream {stream}, expected {own_device}, or "
            f"({_foreign.DL_CPU}, 0) without a stream"
        )

    def _capsule(self, consumer: int, versioned: bool, copy: bool | None) -> Any:
        source, read_only, flags = self, self._read_only, 0
        if copy:
            source, read_only = Export._copy_of(self, consumer), False
            flags = _foreign.DLPACK_IS_COPIED
        if read_only:
            if not versioned:
                raise BufferError("read-only memory needs max_version >= (1, 0)")
            flags |= _foreign.DLPACK_READ_ONLY
        if backend() == "host":
            wait("cvc_tensor_synchronize", live(source))
        managed = c_void_p()
        lib.cvc_tensor_to_dlpack(live(source), consumer, int(versioned), byref(managed))
        name = _foreign.CAPSULE_NAME_VERSIONED if versioned else _foreign.CAPSULE_NAME
        capsule = _new_capsule(managed, name, _CAPSULE_DESTRUCTOR)
        if flags and versioned:
            _foreign.DLManagedTensorVersioned.from_address(managed.value or 0).flags |= flags
        return capsule

    def _copy_of(self, consumer: int) -> Export:
        stream = int(self._own_stream()) if consumer == STREAM_NONE else consumer
        data, desc = self._data, sized(TensorDesc)
        desc.device, desc.rank, desc.shape = data.device, data.rank, data.shape
        desc.dtype, desc.layout, desc.row_align = data.dtype, data.layout, 1
        out = c_void_p()
        lib.cvc_tensor_create(default_cache(), desc, stream, byref(out))
        copied = TensorReference(out.value)
        lib.cvc_copy(stream, live(self), live(copied))
        return Export(live(copied))

    def _own_stream(self) -> Stream:
        """The current stream, or where that is of another device, the current device's default."""
        from .stream import Stream

        current = Stream.current
        return current if current.device == self._data.device else Stream.default

    def _host_capsule(self, max_version: tuple[int, int] | None, versioned: bool) -> Any:
        from ._transfer import download

        array = download(live(self), self._own_stream())
        if not versioned:
            return array.__dlpack__()
        capsule = array.__dlpack__(max_version=max_version)
        managed = _foreign.capsule_pointer(capsule, _foreign.CAPSULE_NAME_VERSIONED)
        struct = _foreign.DLManagedTensorVersioned.from_address(managed)
        struct.flags |= _foreign.DLPACK_IS_COPIED
        return capsule

    def __reduce__(self) -> NoReturn:
        raise TypeError("a cvc.Export cannot be pickled: pickle a copy, .cpu()")


@contextmanager
def _current_device(device: int) -> Iterator[None]:
    """Makes a device the thread's current one, whose default streams the handles 0, 1 and 2 are."""
    before = c_int32()
    lib.cvc_device_get_current(byref(before))
    if before.value == device:
        yield
        return
    try:
        lib.cvc_device_set_current(device)
        yield
    finally:
        lib.cvc_device_set_current(before)


def _consumer(stream: int | None, device: tuple[int, int]) -> int:
    """The native handle of the stream that a DLPack reader names."""
    if device[0] == _foreign.DL_CPU:
        if stream not in (None, -1):
            raise ValueError(f"stream is {stream}, expected None: the memory is on the host")
        return STREAM_NONE
    if stream is None:
        return STREAM_LEGACY
    if not isinstance(stream, int) or stream == 0 or stream < -1:
        raise error_of(
            STATUS["INVALID_ARGUMENT"],
            f"stream is {stream!r}, expected None, -1, 1, 2 or a stream's handle",
        )
    return stream


def no_pickle(resource: Resource) -> NoReturn:
    """What `__reduce__` of device objects does: they exist in this process only."""
    raise TypeError(
        f"a cvc.{type(resource).__name__} cannot be pickled: pickle a copy on the host, .cpu()"
    )


def read_only_error(name: str) -> Exception:
    """The error of a destination that wraps read-only memory."""
    return invalid("INVALID_ARGUMENT", f"{name} wraps read-only memory, expected writable memory")

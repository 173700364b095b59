"""Memory and streams of others that libcvc can reach: NumPy's on the host, the driver's on CUDA."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np

import cvc


class Driver:
    """The driver calls that a test needs to own memory and streams, in the primary context."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.context = c_void_p()
        self("cuInit", 0)
        device = c_int()
        self("cuDeviceGet", byref(device), 0)
        self("cuDevicePrimaryCtxRetain", byref(self.context), device)

    def __call__(self, name: str, *arguments: Any) -> None:
        code = self.library[name](*arguments)
        assert code == 0, f"{name}: {code}"

    @contextmanager
    def entered(self):
        self("cuCtxPushCurrent_v2", self.context)
        try:
            yield
        finally:
            self("cuCtxPopCurrent_v2", byref(c_void_p()))


_driver: list[Driver] = []


def driver() -> Driver:
    if not _driver:
        _driver.append(Driver())
    return _driver[0]


class DeviceArray:
    """Device memory with the values of an array, as another library would hold it."""

    def __init__(self, source: np.ndarray, stream: int | None = None) -> None:
        packed = np.ascontiguousarray(source)
        address = c_uint64()
        self._driver = driver()
        with self._driver.entered():
            self._driver("cuMemAlloc_v2", byref(address), c_size_t(max(packed.nbytes, 1)))
            self._driver(
                "cuMemcpyHtoD_v2", address, c_void_p(packed.ctypes.data), c_size_t(packed.nbytes)
            )
        self.address = address.value
        self.shape, self.dtype = packed.shape, packed.dtype
        self.__cuda_array_interface__ = {
            "shape": packed.shape,
            "typestr": packed.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "version": 3,
            "stream": stream,
        }

    def get(self) -> np.ndarray:
        """The values now, once all work of the device is done."""
        values = np.empty(self.shape, self.dtype)
        with self._driver.entered():
            self._driver("cuCtxSynchronize")
            self._driver(
                "cuMemcpyDtoH_v2",
                c_void_p(values.ctypes.data),
                c_uint64(self.address),
                c_size_t(values.nbytes),
            )
        return values

    def __del__(self) -> None:
        address = getattr(self, "address", None)
        if address:
            with self._driver.entered():
                self._driver("cuMemFree_v2", c_uint64(address))


class DriverStream:
    """A stream of the driver that does not wait for the default one, as PyTorch would hold it."""

    def __init__(self) -> None:
        handle = c_void_p()
        self._driver = driver()
        with self._driver.entered():
            self._driver("cuStreamCreate", byref(handle), 1)
        self.cuda_stream = handle.value

    def __del__(self) -> None:
        handle = getattr(self, "cuda_stream", None)
        if handle:
            with self._driver.entered():
                self._driver("cuStreamDestroy_v2", c_void_p(handle))


def foreign(source: np.ndarray) -> Any:
    """Memory with these values that libcvc can wrap: the array itself, or a copy on the device."""
    return source if cvc.backend() == "host" else DeviceArray(source)


def values_of(memory: Any) -> np.ndarray:
    """What the memory holds now."""
    return memory if isinstance(memory, np.ndarray) else memory.get()


def address_of(memory: Any) -> int:
    if isinstance(memory, np.ndarray):
        return memory.__array_interface__["data"][0]
    return memory.address

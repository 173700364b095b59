"""Devices: which there are, which one is current, and waiting for one."""

from __future__ import annotations

from collections.abc import Iterable
from ctypes import byref, c_int32
from typing import NamedTuple

from . import _lifetime
from ._abi import BACKEND, DEVICE_CURRENT, sized
from ._abi import DeviceInfo as _NativeInfo
from ._convert import int32
from ._lib import lib, wait


class DeviceInfo(NamedTuple):
    """What a device is."""

    name: str
    backend: str
    """"cuda", or "host" for the CPU."""
    total_memory: int
    """Bytes."""
    free_memory: int
    """Bytes that the driver could still give."""


def device_count() -> int:
    """The number of devices; 1 on the host backend, unless CVC_HOST_DEVICES says more."""
    out = c_int32()
    lib.cvc_device_count(byref(out))
    return out.value


def current_device() -> int:
    """The ordinal of the calling thread's current device, on which new objects are made."""
    out = c_int32()
    lib.cvc_device_get_current(byref(out))
    return out.value


def set_device(device: int) -> None:
    """Make a device the calling thread's current one.

    Raises:
        cvc.InvalidArgumentError: there is no such device.
    """
    lib.cvc_device_set_current(int32(device, "device"))


def device_info(device: int | None = None) -> DeviceInfo:
    """Name, backend and memory of a device; None means the current one."""
    info = sized(_NativeInfo)
    lib.cvc_device_get_info(device_of(device), info)
    backend = next(name.lower() for name, code in BACKEND.items() if code == info.backend)
    name = info.name.decode(errors="replace")
    return DeviceInfo(name, backend, info.total_memory, info.free_memory)


def synchronize(device: int | None = None) -> None:
    """Wait until all work of a device is done; None means the current one.

    Ctrl-C interrupts the wait.
    """
    wait("cvc_device_synchronize", device_of(device))
    _lifetime.drop_released()


def device_of(device: int | None) -> int:
    """The ordinal of a device argument; None means the thread's current device."""
    return DEVICE_CURRENT if device is None else int32(device, "device")


def used_devices(device: int | None) -> Iterable[int]:
    """The ordinals that an argument means whose None means every device."""
    return range(device_count()) if device is None else (int32(device, "device"),)

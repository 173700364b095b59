"""The object cache: its size, its limit, its statistics, and giving memory back."""

from __future__ import annotations

from ctypes import byref, c_uint64
from typing import Any, NamedTuple

from . import _lifetime
from ._abi import CacheStats as _NativeStats
from ._abi import sized
from ._context import default_cache
from ._convert import int64
from ._device import device_of, used_devices
from ._lib import lib, wait
from .errors import invalid
from .types import ThreadScope


class CacheStats(NamedTuple):
    """Counts and bytes of the cache on one device. `bytes` = indexed live + idle + pending."""

    limit_bytes: int
    """What the cache may retain."""
    count: int  # type: ignore[assignment]
    """Entries that the cache knows: live, idle and pending ones."""
    bytes: int
    """What these entries are charged."""
    peak_bytes: int
    """The highest charge so far, or since `reset_peak_cache_stats`."""
    live_count: int
    live_bytes: int
    """Objects in use that own memory, known to the cache or not."""
    unindexed_count: int
    unindexed_bytes: int
    """The part of the live ones that the cache does not know: they passed the limit, were
    cleared, or were made by a thread that has ended. Their memory is not retained."""
    idle_count: int
    idle_bytes: int
    """Released objects whose work is done, kept for reuse."""
    pending_count: int
    pending_bytes: int
    """Released objects whose work may still run."""
    wrapped_count: int
    """Live wraps of others' memory."""
    view_count: int
    """Live views and reshapes."""
    hits_exact: int
    hits_fit: int
    """Requests served by memory of the same shape and strides, and by other memory that fits."""
    hits_pending: int
    """Hits of either kind on memory whose work was not seen complete."""
    misses: int
    evictions: int
    live_handles: int
    """Live objects of any kind: 0 when nothing leaks."""
    driver_bytes: int
    """Taken from the driver, for all caches of the device."""
    free_bytes: int
    """Held in no object: by the pool, on its way back, or as coefficients of resizes."""


def clear_cache(scope: ThreadScope = ThreadScope.GLOBAL, *, device: int | None = None) -> None:
    """Give the memory of all released objects back to the driver, after their work is done.

    Live objects stay usable, but leave the cache: their memory is given back when they go. Waits
    for pending work; Ctrl-C interrupts the wait.

    Args:
        scope: entries of all threads, or only those of the calling one.
        device: the device's ordinal; None means every device in use.
    """
    scope = ThreadScope(scope)
    for ordinal in used_devices(device):
        wait("cvc_cache_synchronize", default_cache(), ordinal)
        lib.cvc_cache_clear(default_cache(), ordinal, scope)
    _lifetime.drop_released()


def cache_size(scope: ThreadScope = ThreadScope.GLOBAL, *, device: int | None = None) -> int:
    """The number of cache entries: live, idle and pending objects, wraps included.

    Args:
        scope: entries of all threads, or only those of the calling one.
        device: the device's ordinal; None means every device in use.
    """
    scope = ThreadScope(scope)
    out = c_uint64()
    total = 0
    for ordinal in used_devices(device):
        lib.cvc_cache_count(default_cache(), ordinal, scope, byref(out))
        total += out.value
    return total


def get_cache_limit_inbytes(*, device: int | None = None) -> int:
    """How many bytes the cache may retain on a device; None means the current device."""
    out = c_uint64()
    lib.cvc_cache_get_limit(default_cache(), device_of(device), byref(out))
    return out.value


def set_cache_limit_inbytes(limit: int, /, *, device: int | None = None) -> None:
    """Set how many bytes the cache may retain on a device; None means the current device.

    The limit refuses no allocation. Idle entries above it are given up at once; 0 retains nothing.
    One above the device's memory is accepted with a warning on stderr.

    Raises:
        ValueError: the limit is negative.
    """
    limit = int64(limit, "limit", "INVALID_LIMIT")
    if limit < 0:
        raise invalid("INVALID_LIMIT", f"the cache limit is {limit}, expected 0 or more bytes")
    lib.cvc_cache_set_limit(default_cache(), device_of(device), limit)


def current_cache_size_inbytes(*, device: int | None = None) -> int:
    """The bytes of the cache's entries on a device; None means the current device.

    Live, idle and pending objects count with their whole allocation; wraps and views with 0.
    """
    out = c_uint64()
    lib.cvc_cache_bytes(default_cache(), device_of(device), byref(out))
    return out.value


def cache_stats(device: int | None = None) -> CacheStats:
    """Counts and bytes of the cache on a device; None means the current device."""
    stats = sized(_NativeStats)
    lib.cvc_cache_stats(default_cache(), device_of(device), stats)
    return CacheStats(*(getattr(stats, field) for field in CacheStats._fields))


def reset_peak_cache_stats(device: int | None = None) -> None:
    """Let `cache_stats().peak_bytes` start again from the bytes of now."""
    lib.cvc_cache_reset_peak(default_cache(), device_of(device))


def trim_cache(keep_bytes: int = 0, *, device: int | None = None) -> None:
    """Give free memory of the pool back to the driver, down to `keep_bytes`; entries stay."""
    keep_bytes = int64(keep_bytes, "keep_bytes")
    if keep_bytes < 0:
        raise invalid("INVALID_ARGUMENT", f"keep_bytes is {keep_bytes}, expected 0 or more")
    lib.cvc_cache_trim(default_cache(), device_of(device), keep_bytes)


def nbytes_in_cache(obj: Any, /) -> int:
    """The bytes that an object is charged in the cache: 0 for streams, wraps and views."""
    from ._resource import Resource
    from .stream import Stream

    if isinstance(obj, Stream):
        return 0
    if not isinstance(obj, Resource):
        raise invalid(
            "WRONG_KIND", f"obj is a {type(obj).__name__}, expected an object of the cache"
        )
    return obj._charge()

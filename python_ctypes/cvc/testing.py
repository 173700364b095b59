"""`cvc.testing`: instruments for tests of programs that use streams, without a GPU too.

`instrument` asks for them before anything else of the package is used; the environment can ask as
well: CVC_COUNT_CALLS=1, CVC_FAULTS=1, CVC_HOST_RACE_CHECK=1, CVC_HOST_CAPTURES=1,
CVC_HOST_EXECUTOR=stepped.

    import cvc.testing
    cvc.testing.instrument(race_check=True)
    ...                                     # the program under test
    assert not cvc.testing.race_report()
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_size_t, c_uint64
from itertools import count as count_up
from typing import NamedTuple

from ._abi import ACCESS, DEVICE_CURRENT, HOST_STEP, INSTRUMENT, STATUS, STREAM_NONE, HostStep
from ._lib import lib
from .stream import Stream

__all__ = [
    "Step",
    "announce_access",
    "call_counts",
    "capture",
    "fault",
    "forget_races",
    "instrument",
    "race_count",
    "race_report",
    "reset_call_counts",
    "step",
    "step_all",
    "step_stream",
    "steps",
]


class Step(NamedTuple):
    """One item of queued work that may run: its kind is "work" or "record"."""

    stream_id: int
    device: int
    kind: str


def instrument(
    *,
    count_calls: bool = False,
    faults: bool = False,
    race_check: bool = False,
    stepped: bool = False,
    captures: bool = False,
) -> None:
    """Ask for instruments around the backend; those that were asked for before stay.

    Raises:
        cvc.NotSupportedError: the backend is in use already without one of them.
    """
    wanted = {
        "COUNT_CALLS": count_calls,
        "FAULTS": faults,
        "RACE_CHECK": race_check,
        "STEPPED": stepped,
        "CAPTURES": captures,
    }
    lib.cvc_backend_instrument(sum(INSTRUMENT[name] for name, on in wanted.items() if on))


def _call_names() -> Iterator[bytes]:
    for index in count_up():
        name = lib.cvc_backend_call_name(index)
        if name is None:
            return
        yield name


def call_counts() -> dict[str, int]:
    """How often the library has called its backend since the last reset, by the call's name."""
    counts = {}
    out = c_uint64()
    for name in _call_names():
        lib.cvc_backend_call_count(name, byref(out))
        counts[name.decode()] = out.value
    return counts


def reset_call_counts() -> None:
    """Count from 0 again."""
    lib.cvc_backend_call_reset()


@contextmanager
def fault(
    call: str, *, skip: int = 0, count: int = 1, status: str = "DEVICE_ERROR"
) -> Iterator[None]:
    """Inside the block, `count` calls of that name fail after the next `skip` ones.

    `status` is NOT_READY (an event that never completes), OUT_OF_MEMORY, NOT_SUPPORTED,
    DEVICE_ERROR, CONTEXT_LOST or CAPTURING. The end of the block forgets all planned faults.
    """
    lib.cvc_host_fault(call.encode(), skip, count, STATUS[status])
    try:
        yield
    finally:
        lib.cvc_host_fault_clear()


def steps() -> list[Step]:
    """What may run now, in stepped mode: the oldest item of each stream that waits for nothing."""
    out = c_uint64()
    lib.cvc_host_step_count(byref(out))
    kinds = {code: name.lower() for name, code in HOST_STEP.items()}
    found = []
    for index in range(out.value):
        item = HostStep(struct_size=ctypes.sizeof(HostStep))
        lib.cvc_host_step_get(index, byref(item))
        found.append(Step(item.stream_id, item.device, kinds[item.kind]))
    return found


def step(index: int) -> None:
    """Run the item at that place of `steps()`."""
    lib.cvc_host_step(index)


def step_stream(stream: Stream) -> int:
    """Run what the stream's work needs, as far as it can; how many items that were."""
    out = c_uint64()
    lib.cvc_host_step_stream(int(stream), byref(out))
    return out.value


def step_all() -> int:
    """Run all that may run, the longest ready first; how many items that were."""
    out = c_uint64()
    lib.cvc_host_step_all(byref(out))
    return out.value


@contextmanager
def capture(stream: Stream) -> Iterator[None]:
    """Inside the block the stream captures a graph, on the host backend, which nobody runs.

    What is queued there by others goes into the graph, streams that wait for an event recorded
    there join, and the library refuses to work on such a stream: `cvc.CapturingError`.

    Raises:
        cvc.CapturingError: the stream captures already.
        cvc.InvalidStreamError: the legacy stream, which cannot capture.
        cvc.NotSupportedError: nobody asked by `instrument(captures=True)`, or the backend is CUDA.
    """
    lib.cvc_host_capture_begin(int(stream))
    try:
        yield
    finally:
        lib.cvc_host_capture_end(int(stream))


def race_count() -> int:
    """How many accesses to memory were found that nothing orders."""
    out = c_uint64()
    lib.cvc_host_race_count(byref(out))
    return out.value


def race_report() -> list[str]:
    """A sentence for each of the first hundred: both accesses, and what would order them."""
    needed = c_size_t()
    lib.cvc_host_race_report(None, 0, byref(needed))
    buffer = ctypes.create_string_buffer(needed.value)
    lib.cvc_host_race_report(buffer, len(buffer), byref(needed))
    return buffer.value.decode().splitlines()


def forget_races() -> None:
    """Forget the races that were found."""
    lib.cvc_host_race_forget()


def announce_access(address: int, nbytes: int, access: str, stream: Stream | None = None) -> None:
    """Tell the race checker that work of your own, queued on the stream by now, uses these bytes.

    `access` is READ, WRITE or READ_WRITE. Without a stream it is the host that uses them now.
    """
    handle = STREAM_NONE if stream is None else int(stream)
    lib.cvc_host_race_access(DEVICE_CURRENT, handle, address, nbytes, ACCESS[access])

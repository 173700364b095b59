"""`cvc.testing`: counted calls, planned faults, steps and races, each in a process of its own."""

from __future__ import annotations

from support import output_of

PROGRAM = """
import numpy as np
import cvc
import cvc.testing as testing

def tensor():
    return cvc.Tensor((8, 8, 3), cvc.Type.U8, "HWC")
"""


def test_calls_are_counted():
    output_of(
        PROGRAM
        + """
testing.instrument(count_calls=True)
with cvc.Stream() as stream:
    tensor()
    testing.reset_call_counts()
    for _ in range(10):
        tensor()
    called = {name for name, count in testing.call_counts().items() if count}
    assert called <= {"current_device"}, called
    cvc.flip(tensor(), 1)
    assert testing.call_counts()["launch"] == 1
try:
    testing.instrument(race_check=True)
except cvc.NotSupportedError as error:
    assert "before the first call" in str(error)
else:
    raise AssertionError("asked too late")
""",
        CVC_BACKEND="host",
    )


def test_a_fault_is_planned_and_over():
    output_of(
        PROGRAM
        + """
testing.instrument(faults=True)
with testing.fault("memory_allocate"):
    try:
        tensor()
    except cvc.DeviceError as error:
        assert "the fault plan" in str(error)
    else:
        raise AssertionError("no failure")
    tensor()
tensor()
""",
        CVC_BACKEND="host",
    )


def test_steps():
    output_of(
        PROGRAM
        + """
testing.instrument(stepped=True)
first, second = cvc.Stream(), cvc.Stream()
flipped = [cvc.flip(tensor(), 1, stream=stream) for stream in (first, second)]
found = testing.steps()
assert [item.kind for item in found] == ["work", "work"], found
testing.step(1)
assert [item.stream_id for item in testing.steps()] == [found[0].stream_id]
assert testing.step_stream(first) >= 1
assert testing.step_all() == 0 and testing.steps() == []
first.sync(); second.sync()
""",
        CVC_BACKEND="host",
    )


def test_captures():
    output_of(
        PROGRAM
        + """
testing.instrument(captures=True)
with cvc.Stream() as stream:
    source = tensor()
    with testing.capture(stream):
        try:
            cvc.flip(source, 1)
        except cvc.CapturingError as error:
            assert "capturing a graph" in str(error)
        else:
            raise AssertionError("it went into the graph")
    cvc.flip(source, 1)
    stream.sync()
""",
        CVC_BACKEND="host",
    )


def test_races():
    output_of(
        PROGRAM
        + """
testing.instrument(race_check=True)
first, second = cvc.Stream(), cvc.Stream()
source = tensor()
cvc.flip(source, 1, stream=first)
cvc.flip(source, 0, stream=second)
assert testing.race_count() == 0 and testing.race_report() == []
memory = np.zeros(64, np.uint8)
where = memory.ctypes.data
testing.announce_access(where, 64, "WRITE", first)
testing.announce_access(where, 64, "READ", second)
testing.announce_access(where, 64, "READ")
assert testing.race_count() == 2
report = testing.race_report()
assert f"stream {int(first):#x}" in report[0] and "An event recorded on" in report[0], report
assert "the host reads 64 bytes" in report[1], report
first.sync(); second.sync()
testing.forget_races()
testing.announce_access(where, 64, "READ")
assert testing.race_count() == 0
""",
        CVC_BACKEND="host",
    )

"""Memory lent to queued work outlives frames, interrupts and the interpreter, but not the work."""

from __future__ import annotations

import signal
import sys
import textwrap

import numpy as np
import pytest
from support import output_of, run

import cvc
from cvc import _lifetime

# An array that tells when it is freed, on the file descriptor itself: at the interpreter's end the
# modules that print are gone.
START = """
import os, signal, sys, weakref
import numpy as np
import cvc
from cvc._lib import raw
from support import Latch

class Noisy(np.ndarray):
    def __del__(self, write=os.write):
        write(1, b"freed ")

def noisy(*shape):
    return np.zeros(shape, np.uint8).view(Noisy)

def noisy_empty(shape, dtype, empty=np.empty):
    return empty(shape, dtype).view(Noisy)

def interrupt(native):
    def call(*arguments):
        setattr(raw, native.__name__, native)
        os.kill(os.getpid(), signal.SIGINT)
        return native(*arguments)
    setattr(raw, native.__name__, call)

stream = cvc.Stream()
latch = Latch(stream)
"""

on_the_host = pytest.mark.skipif(cvc.backend() != "host", reason="wraps host memory")
queued_at_once = pytest.mark.skipif(
    cvc.backend() != "host", reason="elsewhere the wait comes before the copy is queued"
)

BLOCKED_ENDS = {
    "a wrap that is gone": "cvc.flip(cvc.as_tensor(noisy(4, 6), 'HW'), 0, stream=stream)",
    "a wrap that is alive": """
        tensor = cvc.as_tensor(noisy(4, 6), "HW")
        cvc.flip(tensor, 0, stream=stream)
    """,
    "an image": "cvc.flip(cvc.as_tensor(cvc.as_image(noisy(4, 6, 3))), 0, stream=stream)",
    "a batch": """
        batch = cvc.as_images([noisy(4, 6, 3), noisy(4, 6, 3)])
        codes = cvc.upload(np.zeros(2, np.int32))
        cvc.flip(batch, codes, stream=stream)
    """,
    "a cycle": """
        class Node: pass
        node = Node()
        node.itself, node.tensor = node, cvc.as_tensor(noisy(4, 6), "HW")
        cvc.flip(node.tensor, 0, stream=stream)
    """,
    "values of normalize": """
        values = cvc.as_tensor(np.ones((1, 1, 3), np.float32).view(Noisy), "HWC")
        cvc.normalize(cvc.upload(np.zeros((4, 6, 3), np.uint8), "HWC"), values, values,
                      stream=stream)
    """,
    "use in atexit": """
        import atexit
        atexit.register(lambda: cvc.flip(cvc.as_tensor(noisy(4, 6), "HW"), 0, stream=stream))
    """,
}


@on_the_host
@pytest.mark.parametrize("end", BLOCKED_ENDS.values(), ids=BLOCKED_ENDS.keys())
def test_wrapped_memory_of_queued_work_is_not_freed_at_exit(end):
    done = run(START + textwrap.dedent(end))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@on_the_host
def test_running_work_on_mapped_memory_at_exit():
    done = run(
        """
        import mmap
        import numpy as np
        import cvc

        memory = np.frombuffer(mmap.mmap(-1, 64 << 20), np.uint8).reshape(64, 1 << 20)
        result = cvc.Tensor(memory.shape, np.uint8, "HW")
        for _ in range(50):
            cvc.flip_into(result, cvc.as_tensor(memory, "HW"), 0)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@on_the_host
def test_a_forked_child_that_ends_by_itself():
    program = """
        values = noisy(4, 6)
        cvc.flip(cvc.as_tensor(values, "HW"), 0, stream=stream)
        if os.fork() == 0:
            sys.exit()
        print(os.waitstatus_to_exitcode(os.wait()[1]))
    """
    assert output_of(START + textwrap.dedent(program)) == "0\n"


@on_the_host
def test_what_came_back_is_forgotten():
    stream = cvc.Stream()
    array = np.zeros((4, 6), np.uint8)
    for _ in range(100):
        cvc.flip(cvc.as_tensor(array, "HW"), 0, stream=stream)
        cvc.as_image(array).close()
        assert not cvc.upload(array).cpu().any()
        with pytest.raises(cvc.InvalidArgumentError):
            cvc.as_tensor(array, "HWC")
        with pytest.raises(cvc.InvalidArgumentError):
            cvc.as_image(array, cvc.Format.NV12)
        with pytest.raises(cvc.MismatchError):
            cvc.Image(array.astype(np.uint16), cvc.Format.U8)
    stream.sync()
    assert not _lifetime._lent and not _lifetime._ended and not _lifetime._copying
    assert sys.getrefcount(array) <= 2


COPIES = {
    "upload": "cvc.upload(noisy(4, 6), stream=stream)",
    "image": "cvc.Image([noisy(4, 6)], cvc.Format.U8, stream=stream)",
    "tensor to host": "np.empty = noisy_empty; cvc.Tensor((4, 6), np.uint8).cpu(stream=stream)",
    "image to host": """
        np.empty = noisy_empty; cvc.Image((6, 4), cvc.Format.U8).cpu(stream=stream)
    """,
}


@queued_at_once
@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES.keys())
def test_memory_of_an_interrupted_copy_is_not_freed_at_exit(copy):
    done = run(START + "interrupt(raw.cvc_stream_synchronize)\n" + textwrap.dedent(copy))
    assert done.returncode == -signal.SIGINT and done.stdout == ""
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")


INTERRUPTED_TWICE = """
np.empty = noisy_empty
tensor = cvc.Tensor((4, 6), np.uint8)
for _ in range(2):
    interrupt(raw.cvc_stream_synchronize)
    try:
        tensor.cpu(stream=stream)
    except KeyboardInterrupt:
        os.write(1, b"interrupted ")
cvc.Tensor((4, 6), np.uint8).cpu()
os.write(1, b"opened ")
latch.open()
stream.sync()
os.write(1, b"synced ")
"""


@queued_at_once
def test_memory_of_interrupted_copies_is_freed_once_they_are_done():
    assert output_of(START + INTERRUPTED_TWICE).split() == [
        *("interrupted", "interrupted", "freed", "opened", "freed", "freed", "synced")
    ]


@pytest.mark.skipif(cvc.backend() != "host", reason="the number of devices is the machine's")
def test_memory_of_interrupted_copies_on_another_device():
    start = START.replace("stream = ", "cvc.set_device(1); stream = ")
    program = INTERRUPTED_TWICE.replace("for", "cvc.set_device(0)\nfor", 1)
    assert output_of(start + program, CVC_HOST_DEVICES="2").split() == [
        *("interrupted", "interrupted", "freed", "opened", "freed", "freed", "synced")
    ]


# Raises KeyboardInterrupt before the n-th bytecode instruction that the package runs after `start`,
# for every n there is, as a signal's handler does, which runs between two instructions.
ANYWHERE = """
import gc

class Raiser:
    def __init__(self, at):
        self.left, self.raised = at, False

    def trace(self, frame, event, argument):
        if "/cvc/" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= 1
            if self.left < 0:
                self.raised = True
                raise KeyboardInterrupt
        return self.trace

    def start(self):
        frame = sys._getframe(1)
        while frame:
            frame.f_trace = self.trace
            frame.f_trace_opcodes = True
            frame = frame.f_back
        sys.settrace(self.trace)

def every_instruction(run):
    kept = []
    while True:
        stream = cvc.Stream()
        latch = Latch(stream)
        raiser = Raiser(len(kept))
        try:
            memory = run(stream, raiser)
        except KeyboardInterrupt:
            memory = made[-1]
        finally:
            sys.settrace(None)
        gc.collect()
        assert memory() is not None, f"freed in use, after {len(kept)} instructions"
        latch.open()
        stream.sync()
        kept.append(memory)
        if not raiser.raised:
            break
    print(len(kept) > 5)

made = []

class Memory(np.ndarray):
    def __array_finalize__(self, source):
        made.append(weakref.ref(self))
"""

WAITS_INTERRUPTED = """
def interrupted_wait(raiser):
    native = raw.cvc_stream_synchronize
    def call(*arguments):
        raw.cvc_stream_synchronize = native
        raiser.start()
        raise KeyboardInterrupt
    raw.cvc_stream_synchronize = call

def run(stream, raiser):
    {prepare}
    interrupted_wait(raiser)
    {copy}
"""

DOUBLE = {
    "cpu": (
        "np.empty = lambda *a, empty=np.zeros: empty(*a).view(Memory); "
        "tensor = cvc.Tensor((4, 6), np.uint8)",
        "tensor.cpu(stream=stream)",
    ),
    "upload": (
        "array = np.zeros((4, 6), np.uint8).view(Memory)",
        "cvc.upload(array, stream=stream)",
    ),
    "image": (
        "array = np.zeros((4, 6), np.uint8).view(Memory)",
        "cvc.Image(array, stream=stream)",
    ),
}


@queued_at_once
@pytest.mark.parametrize("prepare, copy", DOUBLE.values(), ids=DOUBLE.keys())
def test_a_second_interrupt_anywhere_after_the_first(prepare, copy):
    program = WAITS_INTERRUPTED.replace("{prepare}", prepare).replace("{copy}", copy)
    program += "every_instruction(run)\n"
    assert output_of(START + ANYWHERE + program) == "True\n"


@on_the_host
def test_an_interrupt_anywhere_in_the_release_of_a_wrap():
    program = """
    def run(stream, raiser):
        tensor = cvc.as_tensor(np.zeros((4, 6), np.uint8).view(Memory), "HW")
        memory = made[-1]
        cvc.flip(tensor, 0, stream=stream)
        raiser.start()
        tensor.close()
        return memory

    every_instruction(run)
    """
    assert output_of(START + ANYWHERE + textwrap.dedent(program)) == "True\n"

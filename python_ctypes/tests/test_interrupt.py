"""Ctrl-C ends every wait within one slice, though the work goes on."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap

import pytest
from support import HANG_SECONDS, environment

import cvc
from cvc import _lib

# Each native wait notes when a slice begins, and whether Ctrl-C had arrived by then. The signal's
# arrival shows at once on a file descriptor, while Python's handler waits for the slice to end.
PROGRAM = """
import os, select, signal, sys
import numpy as np
import cvc
from cvc import _lib
from foreign import foreign
from support import Latch

arrived, writer = os.pipe()
os.set_blocking(writer, False)
signal.set_wakeup_fd(writer)
slices, late, longest = 0, 0, 0

def counted(native):
    def call(*arguments):
        global slices, late, longest
        slices += 1
        longest = max(longest, arguments[-1])
        late += bool(select.select([arrived], [], [], 0)[0])
        if slices == 2:
            print("waiting", flush=True)
        return native(*arguments)
    return call

for name, native in list(vars(_lib.raw).items()):
    if name.endswith("_synchronize"):
        setattr(_lib.raw, name, counted(native))

stream = cvc.Stream()
latch = Latch(stream)
source = cvc.as_tensor(foreign(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)), "HWC")
result = cvc.flip(source, 0, stream=stream)
{prepare}
try:
    {wait}
except KeyboardInterrupt:
    print("interrupted", slices >= 2, late, longest, flush=True)
else:
    print("ended", flush=True)
latch.open()
cvc.synchronize()
assert np.array_equal(result.cpu(), source.cpu()[::-1])
print("correct", flush=True)
"""

WAITS = {
    "stream sync": ("", "stream.sync()"),
    "synchronize": ("", "cvc.synchronize()"),
    "clear_cache": ("cvc.flip(source, 0, stream=stream)", "cvc.clear_cache()"),
    "download": ("", "result.cpu(stream=stream)"),
    "upload": ("", "cvc.upload(np.zeros((500, 500), np.uint8), stream=stream)"),
    "image of a host array": ("", "cvc.Image(np.zeros((50, 50), np.uint8), stream=stream)"),
}
if cvc.backend() == "host":
    WAITS["numpy.asarray"] = ("", "np.asarray(result.cuda())")
    WAITS["numpy.from_dlpack"] = ("", "np.from_dlpack(result)")


@pytest.mark.parametrize("prepare, wait", WAITS.values(), ids=WAITS.keys())
def test_interrupt(prepare, wait):
    program = textwrap.dedent(PROGRAM).format(prepare=prepare, wait=wait)
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        ready, _, _ = select.select([child.stdout], [], [], HANG_SECONDS)
        assert ready and child.stdout.readline() == "waiting\n", child.stderr.read()
        os.kill(child.pid, signal.SIGINT)
        output, errors = child.communicate(timeout=HANG_SECONDS)
    finally:
        child.kill()
    assert child.returncode == 0, errors
    interrupted, correct = output.splitlines()
    word, waited, late, longest = interrupted.split()
    assert (word, waited, correct) == ("interrupted", "True", "correct")
    assert int(late) == 0, "a slice began after Ctrl-C had arrived"
    assert 0 < int(longest) <= 50_000_000


def test_a_slice_is_half_of_what_is_promised():
    assert _lib.SLICE_NANOSECONDS == 50_000_000

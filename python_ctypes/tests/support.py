"""What several tests share: latches, addresses, programs in a process of their own."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cvc
from cvc._lib import lib

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent
TREE = PACKAGE.parent

HWC = cvc.TensorLayout.HWC
MIB = 1 << 20

# Only for a process that hangs: what passes takes far less.
HANG_SECONDS = 240


class Latch:
    """Holds a stream's later work back until it is opened."""

    def __init__(self, stream: cvc.Stream) -> None:
        out = ctypes.c_uint64()
        lib.cvc_host_latch_create(int(stream), ctypes.byref(out))
        self._latch = out.value

    def open(self) -> None:
        latch, self._latch = self._latch, 0
        if latch:
            lib.cvc_host_latch_open(latch)


@contextmanager
def busy(stream: cvc.Stream) -> Iterator[Latch]:
    """The stream is busy until the block ends, or its latch is opened inside."""
    latch = Latch(stream)
    try:
        yield latch
    finally:
        latch.open()
        stream.sync()


def address(resource: Any) -> int:
    """Where an object's memory begins, without waiting for its work."""
    export = resource if isinstance(resource, cvc.Export) else resource.cuda()
    return export._data.data


def nbytes(resource: Any) -> int:
    return cvc.internal.nbytes_in_cache(resource)


def size() -> int:
    return cvc.current_cache_size_inbytes()


def local_count() -> int:
    return cvc.cache_size(cvc.ThreadScope.LOCAL)


def environment(**changes: str) -> dict[str, str]:
    """The variables of a child process: this process's backend, by name, and the paths of tests."""
    paths = os.pathsep.join([str(PACKAGE), str(TESTS)])
    return {**os.environ, "CVC_BACKEND": cvc.backend(), "PYTHONPATH": paths, **changes}


def run(program: str, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program in a process of its own."""
    return subprocess.run(
        [sys.executable, *arguments, "-c", textwrap.dedent(program)],
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )


def output_of(program: str, **changes: str) -> str:
    """What a Python program prints; its failure is the test's."""
    done = run(program, **changes)
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_thread(work):
    """Run `work` in a thread of its own to its end; its result, or its error."""
    outcome = []

    def body():
        try:
            outcome.append((work(), None))
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            outcome.append((None, error))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    result, error = outcome[0]
    if error is not None:
        raise error
    return result

"""The interpreter ends cleanly, whatever is alive, queued or running then."""

from __future__ import annotations

import textwrap

import pytest
from support import run

START = """
import threading
import numpy as np
import cvc
from foreign import foreign
from support import Latch

source = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
memory = foreign(source)
"""

ENDS = {
    "live objects": """
        kept = [cvc.Tensor((16, 16), np.uint8) for _ in range(100)]
        image, batch = cvc.Image((8, 8), cvc.Format.RGB8), cvc.TensorBatch(3)
        stream = cvc.Stream()
        batch.pushback(kept[0])
        entered = stream.__enter__()
    """,
    "exports, arrays and capsules": """
        tensor = cvc.upload(source, "HWC")
        kept = [tensor.cuda(), tensor.__dlpack__()]
        if cvc.backend() == "host":
            kept += [np.asarray(tensor.cuda()), np.from_dlpack(tensor)]
        capsule = tensor.__dlpack__(max_version=(1, 0))
        import builtins
        builtins.kept_beyond_modules = (kept, capsule)
    """,
    "wraps": """
        kept = [cvc.as_tensor(memory, "HWC"), cvc.as_image(memory)]
        view = kept[0].reshape((48,), "N")
        capsule = kept[0].__dlpack__()
    """,
    "cycles": """
        class Node: pass
        node = Node()
        node.itself, node.tensor = node, cvc.as_tensor(memory, "HWC")
        del node
    """,
    "queued work": """
        stream = cvc.Stream()
        for _ in range(50):
            result = cvc.flip(cvc.as_tensor(memory, "HWC"), 0, stream=stream)
    """,
    "blocked work": """
        stream = cvc.Stream()
        latch = Latch(stream)
        result = cvc.flip(cvc.as_tensor(memory, "HWC"), 0, stream=stream)
    """,
    "threads that ended": """
        def work():
            cvc.flip(cvc.upload(source, "HWC"), 0)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """,
    "threads that are not joined": """
        def work():
            for _ in range(200):
                cvc.flip(cvc.as_tensor(memory, "HWC"), 0)
        for _ in range(4): threading.Thread(target=work).start()
    """,
    "daemon threads at work": """
        started = threading.Barrier(5)
        def work():
            started.wait()
            while True:
                tensor = cvc.as_tensor(memory, "HWC")
                cvc.flip(tensor, 0)
                del tensor
        for _ in range(4): threading.Thread(target=work, daemon=True).start()
        started.wait()
    """,
    "a daemon thread that waits": """
        stream, waiting = cvc.Stream(), threading.Event()
        latch = Latch(stream)
        def work():
            waiting.set()
            stream.sync()
        threading.Thread(target=work, daemon=True).start()
        waiting.wait()
    """,
    "use in atexit": """
        import atexit
        kept = cvc.upload(source, "HWC")
        atexit.register(lambda: (kept.cpu(), cvc.clear_cache()))
    """,
    "an error that keeps frames": """
        def fail():
            tensor = cvc.as_tensor(memory, "HWC")
            raise KeyError
        try:
            fail()
        except KeyError as error:
            kept = error
    """,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_exit(end):
    for _ in range(2):
        done = run(START + textwrap.dedent(end))
        assert (done.returncode, done.stderr) == (0, "")


def test_fork_gives_an_error_and_no_hang():
    done = run(
        START
        + textwrap.dedent(
            """
            import os
            kept = cvc.upload(source, "HWC")
            child = os.fork()
            if child == 0:
                try:
                    cvc.flip(kept, 0)
                except cvc.ForkedError:
                    del kept
                    os._exit(7)
                os._exit(1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), kept.cpu().sum())
            """
        )
    )
    assert done.stdout.split() == ["7", str(sum(range(48)))], done.stderr

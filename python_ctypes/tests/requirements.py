"""What the tests of the numbered requirements share."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from foreign import foreign
from support import HANG_SECONDS, Latch, busy

import cvc
from cvc import _foreign
from cvc import tensor as tensor_module

ON_CUDA = cvc.backend() == "cuda"
NHWC = cvc.TensorLayout.NHWC

# Whose memory is wrapped: an array that has nothing but an array interface, or another library's.
OWNERS = ["array", "torch", "cupy"] if ON_CUDA else ["array", "torch"]
every_owner = pytest.mark.parametrize("owner", OWNERS)


@pytest.fixture(autouse=True)
def no_garbage():
    """No device memory of an earlier test is freed while a stream is held back."""
    gc.collect()


def random(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def torch_module() -> Any:
    torch = pytest.importorskip("torch")
    if ON_CUDA and not torch.cuda.is_available():
        pytest.skip("this torch has no GPU")
    return torch


def owned(owner: str, values: np.ndarray) -> Any:
    """Memory of that library with these values, apart from the array given."""
    if owner == "array":
        return foreign(values.copy())
    if owner == "torch":
        tensor = torch_module().from_numpy(values.copy())
        return tensor.cuda() if ON_CUDA else tensor
    return pytest.importorskip("cupy").asarray(values)


def values_in(memory: Any) -> np.ndarray:
    """What such memory holds once all work is done."""
    cvc.synchronize()
    if isinstance(memory, np.ndarray):
        return memory
    return memory.cpu().numpy() if hasattr(memory, "cpu") else memory.get()


@contextmanager
def held_back(stream: cvc.Stream) -> Iterator[Latch]:
    """`busy`, in which a call that waits for the stream fails the test and does not hang it.

    No memory of the driver's may be allocated or freed inside: those calls wait for running work.
    """
    with busy(stream) as latch:
        hung = threading.Timer(HANG_SECONDS, latch.open)
        hung.daemon = True
        hung.start()
        try:
            yield latch
        finally:
            hung.cancel()


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run `work` in so many threads, each with its number; their first error is the test's."""
    errors: list[BaseException] = []

    def body(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            errors.append(error)

    threads = [threading.Thread(target=body, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


def wrap_written_on(memory: Any, stream: int | None) -> cvc.Tensor:
    """A wrap whose producer names the stream on which it wrote the memory."""
    if ON_CUDA:
        memory.__cuda_array_interface__["stream"] = stream
        return cvc.as_tensor(memory, "HWC")
    # On the host backend no protocol tells a stream, though the native call takes one there too.
    found = _foreign.read_for_wrap(memory, 0)
    if stream is not None:
        found = found._replace(stream=stream)
    return tensor_module._wrap(found, "HWC", 0)

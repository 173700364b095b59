"""The numbered requirements that CV-CUDA's own tests state, by their numbers in the reference.

On a GPU the sizes and counts are those of these tests; the host backend takes smaller ones.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from foreign import DriverStream, foreign
from requirements import (
    NHWC,
    ON_CUDA,
    every_owner,
    held_back,
    in_threads,
    no_garbage,
    owned,
    random,
    torch_module,
    values_in,
)
from support import HANG_SECONDS, HWC, address, nbytes, size

import cvc
from cvc._abi import ACCESS
from cvc._lib import lib
from cvc._resource import live

__all__ = ["no_garbage"]

# --- clearing, and the life of what is wrapped ---------------------------------------------------


def test_r20_clear_between_submission_and_completion_of_an_operator_of_three_inputs():
    """`clear_cache` while an operator runs, then dropping all it used, is safe (here normalize)."""
    shape = (100, 1500, 1500, 3) if ON_CUDA else (3, 150, 150, 3)
    array = random(shape)
    base = random((1, *shape[1:]), 1)
    scale = np.full((1, 1, 1, 3), 2, np.float32)
    memories = [owned("array", values) for values in (array, base.astype(np.float32), scale)]
    seen = [weakref.ref(memory) for memory in memories]
    source, base_map, scales = (cvc.as_tensor(memory, "NHWC") for memory in memories)
    stream = cvc.Stream()
    with held_back(stream) as latch:
        result = cvc.normalize(source, base_map, scales, stream=stream)
        opener = threading.Timer(0.05, latch.open)
        opener.start()
        cvc.clear_cache()
        # What was cleared away under the running operator would be taken by this one.
        other = cvc.flip(source, 0, stream=stream)
        source.close()
        base_map.close()
        scales.close()
        del source, base_map, scales, memories
        opener.join()
    assert size() == nbytes(other), "the result has left the index, and is alive"
    assert address(result) != address(other)
    got = result.cpu()
    for number, image in enumerate(array):
        expected = (image.astype(np.int16) - base[0]) * 2
        assert np.array_equal(got[number], expected.clip(0, 255)), f"image {number}"
    del result, other
    gc.collect()
    cvc.clear_cache()
    assert (cvc.cache_size(), size(), cvc.cache_stats().live_handles) == (0, 0, 0)
    assert [ref() for ref in seen] == [None] * 3


@every_owner
def test_r21_source_of_a_wrap_is_referenced_until_the_work_is_done_and_collected(owner):
    """The source's reference count falls once the work is done and `clear_cache` has collected."""
    values = random((20, 32, 3))
    memory = owned(owner, values)
    original = sys.getrefcount(memory)
    wrapped = cvc.as_tensor(memory, "HWC")
    assert sys.getrefcount(memory) > original
    stream = cvc.Stream()
    with held_back(stream):
        result = cvc.flip(wrapped, 0, stream=stream)
        del wrapped
        gc.collect()
        assert sys.getrefcount(memory) > original
        assert not stream.query()
    assert np.array_equal(result.cpu(), values[::-1])
    cvc.clear_cache()
    assert sys.getrefcount(memory) == original


# --- many threads --------------------------------------------------------------------------------


def test_r22_many_submissions_of_one_resource_from_many_threads():
    """10000 submissions, each on a fresh stream, on one tensor: no deadlock, no crash, no loss."""
    threads, submissions = 10, 10_000 if ON_CUDA else 2000
    values = random((8, 32, 3))
    shared = cvc.upload(values, "HWC")
    done = [0] * threads

    def work(number: int) -> None:
        mine = cvc.Tensor(values.shape, np.uint8, HWC)
        for turn in range(submissions // threads):
            stream = cvc.Stream()
            if turn % 2:
                cvc.flip_into(mine, shared, number % 2, stream=stream)
            else:
                # A write that leaves the values, so that readers and writers alternate.
                access = ACCESS["READ_WRITE"]
                lib.cvc_tensor_begin_access(live(shared), int(stream), access)
                lib.cvc_tensor_end_access(live(shared), int(stream), access)
            done[number] += 1
        expected = values[:, ::-1] if number % 2 else values[::-1]
        assert np.array_equal(mine.cpu(), expected)

    in_threads(threads, work)
    assert sum(done) == submissions
    assert np.array_equal(shared.cpu(), values)


def test_r23_one_operator_on_shared_inputs_from_many_threads():
    """One operator on shared inputs from N threads gives equal results (here normalize)."""
    values = random((4, 60, 48, 3))
    source = cvc.as_tensor(foreign(values), "NHWC")
    base = random((1, 60, 48, 3), 1)
    base_map = cvc.upload(base.astype(np.float32), "NHWC")
    scale = cvc.upload(np.full((1, 1, 1, 3), 2, np.float32), "NHWC")
    expected = ((values.astype(np.int16) - base) * 2).clip(0, 255)
    results: list[cvc.Tensor | None] = [None] * 12

    def work(number: int) -> None:
        with cvc.Stream():
            for _ in range(20):
                results[number] = cvc.normalize(source, base_map, scale)

    in_threads(len(results), work)
    for result in results:
        assert result is not None
        assert (result.shape, result.dtype, result.layout) == (values.shape, np.uint8, NHWC)
        assert np.array_equal(result.cpu(), expected)


# --- streams -------------------------------------------------------------------------------------


def streams_of_others() -> dict[str, Callable[[], Any]]:
    """What `as_stream` takes, by name: a function that makes one."""

    class Owner:
        cuda_stream = 2  # the one stream that is not the library's on the host backend too

    found: dict[str, Callable[[], Any]] = {"owner": Owner}
    if ON_CUDA:
        found["driver"] = DriverStream
        found["torch"] = lambda: torch_module().cuda.Stream()
        found["cupy"] = lambda: pytest.importorskip("cupy").cuda.Stream(non_blocking=True)
    return found


@pytest.mark.parametrize("make", streams_of_others().values(), ids=streams_of_others().keys())
def test_r26_a_wrapped_stream_has_the_handle_and_keeps_its_owner(make):
    """A wrapped stream reports the same handle, works, and keeps its owner alive."""
    owner = make()
    handle = owner.ptr if hasattr(owner, "ptr") else owner.cuda_stream
    original = sys.getrefcount(owner)
    wrapped = cvc.as_stream(owner)
    assert int(wrapped) == wrapped.handle == handle != 0
    assert sys.getrefcount(owner) > original
    for form in (handle, ctypes.c_void_p(handle)):
        assert int(cvc.as_stream(form)) == handle
    values = random((8, 8, 3))
    result = cvc.flip(cvc.upload(values, "HWC"), 0, stream=wrapped)
    wrapped.sync()
    assert np.array_equal(result.cpu(), values[::-1])
    del wrapped, result
    gc.collect()
    assert sys.getrefcount(owner) == original


def test_r26_handles():
    """`int(stream)` is the handle, the default stream's is 0, and a bad one is a RuntimeError."""
    stream = cvc.Stream()
    assert int(stream) == stream.handle != 0
    for form in (int(stream), ctypes.c_void_p(int(stream))):
        assert int(cvc.as_stream(form)) == int(stream)
    assert int(cvc.Stream.default) == cvc.Stream.default.handle == 0
    # A driver crashes on other numbers that are no stream, so that nothing can tell there.
    for handle in (-1, 2**64) if ON_CUDA else (-1, 2**64, 0x1234567):
        with pytest.raises(RuntimeError):
            cvc.as_stream(handle)


def test_r27_the_current_stream():
    """Contexts nest and are restored, after exceptions too; stream= leaves the current one."""
    assert cvc.Stream.current is cvc.Stream.default
    outer, inner = cvc.Stream(), cvc.Stream()
    assert outer is not inner and int(outer) != int(inner)
    source = cvc.upload(random((8, 8, 3)), "HWC")
    with outer:
        assert cvc.Stream.current is outer
        with inner:
            assert cvc.Stream.current is inner
            cvc.flip(source, 0, stream=outer)
            assert cvc.Stream.current is inner
        assert cvc.Stream.current is outer
        with pytest.raises(KeyError), inner:
            raise KeyError
        assert cvc.Stream.current is outer
    with pytest.raises(KeyError), outer, inner:
        raise KeyError
    assert cvc.Stream.current is cvc.Stream.default


# --- workers -------------------------------------------------------------------------------------

SCALE = 1 / 255


class Case:
    """A batch of tiny images, a target size, and the result of the chain when it runs alone."""

    def __init__(self, seed: int) -> None:
        chance = np.random.default_rng(seed)
        count, height, width = chance.integers((5, 1, 1), (11, 11, 11)).tolist()
        rows, columns = chance.integers((110, 220), (116, 231)).tolist()
        self.array = chance.integers(0, 256, (count, height, width, 3), np.uint8)
        self.target = (count, rows, columns, 3)
        resized = cvc.pillowresize(cvc.upload(self.array, "NHWC"), self.target).cpu()
        scaled = resized.astype(np.float32) * np.float32(SCALE)
        self.expected = scaled.transpose(0, 3, 1, 2)

    def run(self, owner: str, stream: cvc.Stream, into: bool) -> tuple[cvc.Tensor, Any]:
        """The chain's result, queued, and the memory that it may lie in."""
        source = owned(owner, self.array)
        if not into:
            with stream:
                small = cvc.as_tensor(source, "NHWC")
                large = cvc.pillowresize(small, self.target, cvc.Format.RGB8, cvc.Interp.LINEAR)
                scaled = cvc.convertto(large, np.float32, SCALE)
                return cvc.reformat(scaled, "NCHW"), None
        count, rows, columns, channels = self.target
        large = owned(owner, np.zeros(self.target, np.uint8))
        scaled = owned(owner, np.zeros(self.target, np.float32))
        planes = owned(owner, np.zeros((count, channels, rows, columns), np.float32))
        with stream:
            first = cvc.pillowresize_into(
                cvc.as_tensor(large, "NHWC"), cvc.as_tensor(source, "NHWC"), cvc.Format.RGB8
            )
            second = cvc.convertto_into(cvc.as_tensor(scaled, "NHWC"), first, SCALE)
            return cvc.reformat_into(cvc.as_tensor(planes, "NCHW"), second), planes


def turns() -> Iterator[int]:
    """Numbers for ten seconds on a GPU, and 100 of them on the host."""
    if not ON_CUDA:
        return iter(range(100))
    end = time.monotonic() + 10
    return itertools.takewhile(lambda _: time.monotonic() < end, itertools.count())


@pytest.mark.parametrize("owner", ["array", "torch"])
def test_r28_ten_workers_on_a_queue(owner):
    """Ten threads wrap, resize, convert and reformat random batches: every value is right."""
    if owner == "torch":
        torch_module()
    cases = [Case(seed) for seed in range(48 if ON_CUDA else 16)]
    tasks: queue.Queue[int | None] = queue.Queue(20)
    results: queue.Queue[Any] = queue.Queue()

    def work() -> None:
        stream = cvc.Stream()
        try:
            while (turn := tasks.get()) is not None:
                case = cases[turn % len(cases)]
                results.put((case, *case.run(owner, stream, into=turn // len(cases) % 2 == 1)))
        except BaseException as error:  # noqa: BLE001 - handed to the test's thread
            results.put(error)

    def check(result: Any) -> None:
        if isinstance(result, BaseException):
            raise result
        case, tensor, memory = result
        assert (tensor.layout, tensor.dtype) == ("NCHW", np.float32)
        assert np.array_equal(tensor.cpu(), case.expected)
        if memory is not None:
            assert np.array_equal(values_in(memory), case.expected)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(10)]
    for thread in threads:
        thread.start()
    count = checked = 0
    for turn in turns():
        tasks.put(turn, timeout=HANG_SECONDS)
        count += 1
        while not results.empty():
            check(results.get())
            checked += 1
    for _ in threads:
        tasks.put(None, timeout=HANG_SECONDS)
    while checked < count:
        check(results.get(timeout=HANG_SECONDS))
        checked += 1
    for thread in threads:
        thread.join(HANG_SECONDS)
        assert not thread.is_alive(), "a worker hangs"
    assert count > len(cases), "each of both forms ran"
    gc.collect()
    cvc.clear_cache()
    assert (cvc.cache_size(), size(), cvc.cache_stats().live_handles) == (0, 0, 0)

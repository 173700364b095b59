"""The numbered requirements about order between streams and pending memory; see
test_requirements.py.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from foreign import foreign
from requirements import (
    NHWC,
    ON_CUDA,
    every_owner,
    held_back,
    no_garbage,
    owned,
    random,
    torch_module,
    values_in,
    wrap_written_on,
)
from support import HWC, Latch, address, nbytes, size

import cvc
from cvc._abi import STREAM_LEGACY

__all__ = ["no_garbage"]

# --- order between streams -----------------------------------------------------------------------

LARGE = (10, 1080, 1080, 3) if ON_CUDA else (2, 54, 54, 3)


@every_owner
def test_r24_there_and_back_on_four_streams(owner):
    """50 times `flip_into` there and back on each of 4 streams end with the bits of the start."""
    original = random(LARGE)
    memories = owned(owner, original), owned(owner, np.zeros_like(original))
    first, second = (cvc.as_tensor(memory, "NHWC") for memory in memories)
    streams = [cvc.Stream() for _ in range(4)]
    with held_back(streams[0]) as latch:
        for turn in range(50):
            for stream in streams:
                cvc.flip_into(second, first, -1, stream=stream)
                cvc.flip_into(first, second, -1, stream=stream)
            if turn == 1:  # a driver's queues hold about a thousand launches, then the caller
                latch.open()
    assert np.array_equal(values_in(memories[0]), original)
    assert np.array_equal(values_in(memories[1]), original[:, ::-1, ::-1])


@every_owner
def test_r24b_a_loaded_stream_feeds_another(owner):
    """Behind 100 flips, `flip_into` on one stream feeds `flip_into` on another, 50 times."""
    original = random(LARGE)
    memories = owned(owner, original), owned(owner, original)
    first, second = (cvc.as_tensor(memory, "NHWC") for memory in memories)
    scratch, load = (cvc.upload(original, "NHWC") for _ in range(2))
    one, two = cvc.Stream(), cvc.Stream()
    for turn in range(50):
        # Other values than those of the turn before, which a reader that does not wait would get.
        cvc.flip_into(second, first, 0)
        cvc.synchronize()
        with held_back(one):
            for _ in range(100 if ON_CUDA else 10):
                cvc.flip_into(load, scratch, -1, stream=one)
            cvc.flip_into(second, first, -1, stream=one)
            cvc.flip_into(first, second, -1, stream=two)
            assert not two.query()
        assert np.array_equal(first.cpu(), original), f"turn {turn}"
    assert np.array_equal(values_in(memories[0]), original)
    assert np.array_equal(values_in(memories[1]), original[:, ::-1, ::-1])


def test_r24b_write_after_read_and_write_after_write():
    """A write on another stream waits for earlier reads of its target, and for earlier writes."""
    one_values, two_values = random(LARGE, 1), random(LARGE, 2)
    source, other = cvc.upload(one_values, "NHWC"), cvc.upload(two_values, "NHWC")
    target, copy, third = (cvc.Tensor(LARGE, np.uint8, NHWC) for _ in range(3))
    one, two, three = cvc.Stream(), cvc.Stream(), cvc.Stream()
    with held_back(one):
        cvc.flip_into(target, source, 0, stream=one)
        cvc.flip_into(copy, target, 0, stream=one)
        cvc.flip_into(third, source, 0, stream=two)  # a later reader, done before the first one
        if not ON_CUDA:  # where the two may share a hardware queue
            two.sync()
        cvc.flip_into(source, other, 1, stream=two)  # which `one` has yet to read
        cvc.flip_into(target, other, 1, stream=three)  # which `one` has yet to write and to read
        assert not (one.query() or two.query() or three.query())
    assert np.array_equal(copy.cpu(), one_values)
    assert np.array_equal(third.cpu(), one_values[:, ::-1])
    for written in (source, target):
        assert np.array_equal(written.cpu(), two_values[:, :, ::-1])


@pytest.mark.parametrize("limit", [None, 0], ids=["default limit", "limit 0"])
def test_r25_result_and_stream_are_dropped_right_after_submission(limit):
    """Dropping a result and its fresh stream right after submission makes no later work wrong."""
    if limit is not None:  # then nothing is kept for reuse
        cvc.set_cache_limit_inbytes(limit)
    values = random((64, 64, 3))
    source = cvc.as_tensor(foreign(values), "HWC")
    for _ in range(300 if ON_CUDA else 100):
        stream = cvc.Stream()
        latch = Latch(stream)
        cvc.flip(source, 1, stream=stream)
        del stream
        # Were its memory free already, the dropped work would write into one of these.
        kept = [cvc.flip(source, 0, stream=cvc.Stream()), cvc.flip(source, 0)]
        latch.open()
        cvc.synchronize()
        for result in kept:
            assert np.array_equal(result.cpu(), values[::-1])
    for _ in range(3000 if ON_CUDA else 500):
        cvc.flip(source, 1, stream=cvc.Stream())
    assert np.array_equal(cvc.flip(source, -1).cpu(), values[::-1, ::-1])


def fill(value: int, shape: tuple[int, ...] = (64, 64, 3)) -> cvc.Tensor:
    return cvc.upload(np.full(shape, value, np.uint8), "HWC")


def test_r50_a_fill_behind_a_busy_stream_is_seen_over_several_hops():
    """77 filled on busy stream A is read on B, and on C through B, without a wait of the host."""
    value, target = fill(77), fill(0)
    a, b, c = cvc.Stream(), cvc.Stream(), cvc.Stream()
    with held_back(a):
        cvc.flip_into(target, value, 0, stream=a)
        on_b = cvc.flip(target, 1, stream=b)
        on_c = cvc.flip(on_b, 0, stream=c)
        back = cvc.flip(on_c, 0, stream=a)
        assert not (a.query() or b.query() or c.query())
    for result in (on_b, on_c, back):
        assert (result.cpu() == 77).all()


@pytest.mark.skipif(not ON_CUDA, reason="torch and CuPy have streams on a GPU alone")
@pytest.mark.parametrize("owner", ["torch", "cupy"])
def test_r50_a_fill_by_another_library_is_seen(owner):
    """77 filled by torch or CuPy on its busy stream is read here on another, and the other way."""
    array = np.zeros((64, 64, 3), np.uint8)
    memory, received = owned(owner, array), owned(owner, array)
    if owner == "torch":
        library = torch_module()
        native = library.cuda.Stream()
        entered, fill_with = library.cuda.stream(native), memory.fill_
        read, copy = library.from_dlpack, received.copy_
    else:
        library = pytest.importorskip("cupy")
        native = library.cuda.Stream(non_blocking=True)
        entered, fill_with = native, memory.fill
        read, copy = library.from_dlpack, lambda found: library.copyto(received, found)
    a, b, value = cvc.as_stream(native), cvc.Stream(), fill(88)
    written = fill(0)
    with entered:
        # What is launched for the first time may wait for the device. A 0 would take another way.
        fill_with(1)
        copy(read(written))
        cvc.as_tensor(memory, "HWC")
    cvc.synchronize()
    with held_back(a):
        with entered:
            fill_with(77)
            wrapped = cvc.as_tensor(memory, "HWC")
        result = cvc.flip(wrapped, 0, stream=b)
        assert not (a.query() or b.query())
    assert (result.cpu() == 77).all()
    with held_back(b):
        cvc.flip_into(written, value, 0, stream=b)
        with entered:
            found = read(written)
            copy(found)
        assert not (a.query() or b.query())
    assert (values_in(received) == 88).all()
    del found


def test_r51_a_producer_that_names_the_legacy_stream_is_observed():
    """Work that a producer covers by stream=1 comes first, by waits of the GPU (DESIGN's law 2)."""
    values = random((64, 64, 3))
    source, memory = cvc.upload(values, "HWC"), foreign(np.zeros_like(values))
    writer = cvc.as_tensor(memory, "HWC")
    producer, consumer = cvc.Stream(), cvc.Stream()
    with held_back(producer):
        cvc.flip_into(writer, source, 0, stream=producer)
        # The interface asks a producer that the stream that it names comes after all its work.
        # CV-CUDA waits for the whole device instead, which libcvc never does for a look-up.
        cvc.Stream.default.wait_stream(producer)
        reader = wrap_written_on(memory, STREAM_LEGACY)
        result = cvc.flip(reader, 0, stream=consumer)
        assert not (producer.query() or consumer.query())
    assert np.array_equal(result.cpu(), values)


@pytest.mark.skipif(not ON_CUDA, reason="the host backend has no such interface")
def test_r51_the_librarys_own_interface_names_the_legacy_stream_and_covers_its_work():
    """A tensor written on a non-blocking stream advertises stream=1, which waits for the work."""

    class InterfaceAlone:
        def __init__(self, tensor: cvc.Tensor) -> None:
            self.__cuda_array_interface__ = tensor.__cuda_array_interface__
            self.tensor = tensor

    values = random((64, 64, 3))
    source = cvc.upload(values, "HWC")
    producer, consumer = cvc.Stream(), cvc.Stream()
    with held_back(producer):
        producing = InterfaceAlone(cvc.flip(source, 0, stream=producer))
        assert producing.__cuda_array_interface__["stream"] == 1
        result = cvc.flip(cvc.as_tensor(producing, "HWC"), 0, stream=consumer)
        assert not (producer.query() or consumer.query())
    assert np.array_equal(result.cpu(), values)


def test_r52_a_shell_that_is_bound_anew_waits_for_its_new_producer_alone():
    """A wrap's shell that serves another wrap has that one's producer and not the one before's."""
    values = random((64, 64, 3))
    source = cvc.upload(values, "HWC")
    memories = [foreign(values.copy()) for _ in range(3)]
    # Several readers, since one of them may share a hardware queue with what is held back.
    old, new, *consumers = [cvc.Stream() for _ in range(6)]
    writer = cvc.as_tensor(memories[2], "HWC")
    first = wrap_written_on(memories[0], int(old))
    shell = first.id
    assert np.array_equal(cvc.flip(first, 0, stream=consumers[0]).cpu(), values[::-1])
    cvc.synchronize()
    del first
    with held_back(old):
        second = wrap_written_on(memories[1], None)
        assert second.id == shell
        results = [cvc.flip(second, 0, stream=consumer) for consumer in consumers]
        while not any(consumer.query() for consumer in consumers):
            time.sleep(0)
        assert not old.query(), "the wrap waited for the producer of the one before"
    assert all(np.array_equal(result.cpu(), values[::-1]) for result in results)
    cvc.synchronize()
    del second
    with held_back(new):
        cvc.flip_into(writer, source, 1, stream=new)
        third = wrap_written_on(memories[2], int(new))
        assert third.id == shell
        result = cvc.flip(third, 0, stream=consumers[0])
        assert not consumers[0].query()
    assert np.array_equal(result.cpu(), values[::-1, ::-1])


def test_r53_images_of_batches_are_guarded():
    """Each image of a batch, in or out of a var-shape operator, is ordered as one by itself."""
    arrays = [random((24 + 8 * n, 40 - 8 * n, 3), n) for n in range(3)]
    images = [cvc.Image(array) for array in arrays]
    batch = cvc.ImageBatchVarShape(3)
    batch.pushback(images)
    codes = cvc.upload(np.array([0, 1, -1], np.int32))
    no_codes = cvc.upload(np.array([9, 9, 9], np.int32), "W")
    blank = cvc.upload(np.zeros((1, *arrays[0].shape), np.uint8), "NHWC")
    streams = one, two, three, four, five = [cvc.Stream() for _ in range(5)]
    turned_arrays = [arrays[0][::-1], arrays[1][:, ::-1], arrays[2][::-1, ::-1]]
    kept = [cvc.flip(batch, codes, stream=one) for _ in range(3)]  # records once, before the latch
    cvc.synchronize()
    del kept
    with held_back(one):
        turned = cvc.flip(batch, codes, stream=one)
        image = turned[1]
        alone = cvc.flip(cvc.as_tensor(image), 0, stream=two)
        again = cvc.flip(turned, codes, stream=three)
        # An image that the first operator has yet to read.
        cvc.flip_into(cvc.as_tensor(images[0]), blank, 0, stream=four)
        del turned
        other = cvc.flip(batch, codes, stream=one)
        assert address(image) not in [address(each) for each in other]
        # The second input, which three operators have yet to read.
        cvc.convertto_into(codes.reshape((3,), "W"), no_codes, stream=five)
        assert not any(stream.query() for stream in streams)
    assert np.array_equal(alone.cpu()[0], turned_arrays[1][::-1])
    for result, expected in zip(again, arrays):
        assert np.array_equal(result.cpu(), expected)
    assert np.array_equal(image.cpu(), turned_arrays[1])
    assert not images[0].cpu().any()
    for result, expected in zip(other, [np.zeros_like(arrays[0]), *turned_arrays[1:]]):
        assert np.array_equal(result.cpu(), expected)


def test_r53_tensors_of_batches_are_guarded():
    """A tensor in a batch, which no operator takes whole, keeps its memory and its order."""
    values = random((64, 64, 3))
    source, batch = cvc.as_tensor(foreign(values), "HWC"), cvc.TensorBatch(2)
    one, two = cvc.Stream(), cvc.Stream()
    with held_back(one):
        batch.pushback([cvc.flip(source, code, stream=one) for code in (0, 1)])
        other = cvc.flip(source, -1, stream=one)
        assert address(other) not in [address(tensor) for tensor in batch]
        results = [cvc.flip(tensor, 0, stream=two) for tensor in batch]
        assert not (one.query() or two.query())
    assert np.array_equal(results[0].cpu(), values)
    assert np.array_equal(results[1].cpu(), values[::-1, ::-1])
    assert np.array_equal(batch[1].cpu(), values[:, ::-1])


# --- pending memory ------------------------------------------------------------------------------


def test_r62_pending_memory_is_reused_on_its_stream():
    """Pending memory of the same shape is taken on its own stream, unless it can be observed."""
    values = random((64, 64, 3))
    source, stream = cvc.as_tensor(foreign(values), "HWC"), cvc.Stream()
    with held_back(stream):
        first = cvc.flip(source, 0, stream=stream)
        where = address(first)
        kept = cvc.flip(first, 0, stream=stream)  # reads it before it is written again
        del first
        charged = size()
        second = cvc.flip(source, 1, stream=stream)
        assert address(second) == where and size() == charged
        view = second.reshape((64 * 64, 3), "WC")
        del second
        third = cvc.flip(source, -1, stream=stream)
        assert address(third) != where
        assert not stream.query()
    assert np.array_equal(kept.cpu(), values)
    assert np.array_equal(view.cpu(), values[:, ::-1].reshape(-1, 3))
    assert np.array_equal(third.cpu(), values[::-1, ::-1])


def test_r63_pending_memory_is_reused_on_another_stream_once_that_waits():
    """Below the limit another stream takes no pending memory, and does after `wait_stream`."""
    values = random((64, 64, 3))
    source, one, other = cvc.as_tensor(foreign(values), "HWC"), cvc.Stream(), cvc.Stream()
    with held_back(one):
        first = cvc.flip(source, 0, stream=one)
        where = address(first)
        kept = cvc.flip(first, 0, stream=one)
        del first
        charged = size()
        second = cvc.flip(source, 0, stream=other)
        assert address(second) != where
        assert size() == charged + nbytes(second)
        other.wait_stream(one)
        third = cvc.flip(source, 1, stream=other)
        assert address(third) == where
        assert size() == charged + nbytes(second)
        assert not (one.query() or other.query())
    assert np.array_equal(kept.cpu(), values)
    assert np.array_equal(second.cpu(), values[::-1])
    assert np.array_equal(third.cpu(), values[:, ::-1])


@pytest.mark.parametrize("form", ["operator", "tensor"])
def test_r64_pending_memory_is_reused_on_another_stream_under_pressure(form):
    """At the limit another stream takes pending memory, behind a wait of the GPU, not the host."""
    values = random((64, 64, 3))
    source, one, other = cvc.as_tensor(foreign(values), "HWC"), cvc.Stream(), cvc.Stream()
    with held_back(one):
        first = cvc.flip(source, 0, stream=one)
        where = address(first)
        kept = cvc.flip(first, 0, stream=one)
        del first
        charged = size()
        cvc.set_cache_limit_inbytes(charged)
        if form == "operator":
            second = cvc.flip(source, 1, stream=other)
        else:
            second = cvc.Tensor(values.shape, np.uint8, HWC, stream=other)
        assert address(second) == where
        assert size() == charged
        assert not (one.query() or other.query())
        if form == "tensor":
            cvc.flip_into(second, source, 1, stream=other)
    assert np.array_equal(kept.cpu(), values)
    assert np.array_equal(second.cpu(), values[:, ::-1])


def test_r71_no_look_up_waits_for_a_long_kernel():
    """No look-up, hit or miss, waits on the host for work that runs: each is over before it."""
    values = random((64, 64, 3))
    shape = values.shape
    memories = [foreign(values) for _ in range(2)]
    source = cvc.as_tensor(memories[0], "HWC")
    busy_stream, other = cvc.Stream(), cvc.Stream()
    limit = cvc.get_cache_limit_inbytes()

    def look_up(streams: list[cvc.Stream]) -> list[Any]:
        stream, other = streams
        found: list[Any] = []
        cvc.flip(source, 0, stream=stream)
        found.append(cvc.flip(source, 0, stream=stream))  # pending, ordered
        cvc.flip(source, 0, stream=stream)
        found.append(cvc.flip(source, 0, stream=other))  # pending, not ordered
        found.append(cvc.Tensor(shape, np.uint8, HWC))  # no stream is named
        found.append(cvc.Tensor((16, 16, 3), np.uint8, HWC, stream=stream))  # pending, a fit
        found.append(cvc.Tensor((500, 1000, 3), np.float32, HWC))  # new memory
        cvc.Tensor((32, 32), np.uint16)
        found.append(cvc.Tensor((32, 32), np.uint16))  # idle
        found.append(cvc.Tensor((8, 8), np.uint16, stream=other))
        found.append(cvc.Image((40, 30), cvc.Format.RGB8))
        found.append(cvc.ImageBatchVarShape(3))
        found.append(cvc.TensorBatch(3))
        found.append(cvc.Memory(1 << 20, stream=other))
        found.append(cvc.as_tensor(memories[1], "HWC"))
        cvc.flip(source, 0, stream=stream)
        cvc.set_cache_limit_inbytes(size())
        found.append(cvc.flip(source, 0, stream=other))  # pending, under pressure
        cvc.set_cache_limit_inbytes(1024)
        found.append(cvc.Tensor((100, 100, 3), np.uint8, HWC))  # over the limit
        cvc.set_cache_limit_inbytes(limit)
        return found

    look_up([cvc.Stream(), cvc.Stream()])  # what a process does once may wait
    cvc.clear_cache()
    before = cvc.cache_stats()
    with held_back(busy_stream):
        found = look_up([busy_stream, other])
        after = cvc.cache_stats()
        assert not busy_stream.query(), "a look-up waited"
    assert after.hits_pending - before.hits_pending >= 3
    assert after.misses - before.misses >= 5
    for result in (found[0], found[1]):
        assert np.array_equal(result.cpu(), values[::-1])

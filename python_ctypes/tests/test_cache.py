"""What the cache counts, charges, retains, reuses and gives back."""

from __future__ import annotations

import gc
import os
import threading
import weakref

import numpy as np
import pytest
from foreign import foreign, values_of
from support import HWC, MIB, address, busy, in_thread, local_count, nbytes, size

import cvc

# --- charges -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, charge, entries",
    [
        (lambda: cvc.Image((1, 1), cvc.Format.F32), 512, 1),
        (lambda: cvc.Image((8, 6), cvc.Format.NV12), 1024, 1),
        (lambda: cvc.ImageBatchVarShape(5), 800, 1),
        (lambda: cvc.TensorBatch(10), 2560, 1),
        (lambda: cvc.Tensor(2, (37, 7), cvc.Format.RGB8, rowalign=1), 2048, 1),
        (lambda: cvc.Tensor((480, 640, 3), np.uint8), 9_830_400, 1),
        (lambda: cvc.Tensor((16, 32, 4), np.float32, HWC), 8192, 1),
        (lambda: cvc.Tensor((4, 64, 4), np.float32, HWC), 4096, 1),
        (lambda: cvc.Stream(), 0, 0),
    ],
)
def test_charge_of_one_object(make, charge, entries):
    assert size() == 0
    made = make()
    assert nbytes(made) == charge
    assert size() == charge
    assert cvc.cache_size() == entries


def test_charges_add_up():
    total, kept = 0, []
    for make in (
        lambda: cvc.Image.zeros((1, 1), cvc.Format.F32),
        lambda: cvc.ImageBatchVarShape(5),
        cvc.Stream,
        lambda: cvc.Tensor(2, (37, 7), cvc.Format.RGB8, rowalign=1),
        lambda: cvc.TensorBatch(10),
    ):
        kept.append(make())
        total += nbytes(kept[-1])
        assert size() == total


def test_wraps_and_views_are_not_charged():
    array = np.zeros((16, 32, 4), np.uint8)
    memory = foreign(array)
    tensor = cvc.as_tensor(memory, "HWC")
    image = cvc.as_image(memory)
    assert size() == nbytes(tensor) == nbytes(image) == 0
    own = cvc.Image((8, 8), cvc.Format.RGB8)
    charge = size()
    view = cvc.as_tensor(own)
    assert nbytes(view) == nbytes(view.reshape((8, 24), "HW")) == 0
    assert size() == charge
    assert nbytes(cvc.Image(array)) > 0


def test_batches_of_wraps_are_charged_their_records():
    memory = foreign(np.zeros((16, 32, 4), np.float32))
    assert nbytes(cvc.as_images([memory])) > 0
    assert nbytes(cvc.as_tensors([memory])) > 0


def test_operator_charges_its_result_alone():
    source = cvc.as_tensor(foreign(np.zeros((2, 30, 16, 1), np.uint8)), "NHWC")
    assert size() == 0
    result = cvc.pillowresize(source, (2, 11, 23, 1))
    assert size() == nbytes(result) > 0


def test_nbytes_of_something_else():
    with pytest.raises(TypeError):
        cvc.internal.nbytes_in_cache(np.zeros(3))


# --- reuse ---------------------------------------------------------------------------------------


def test_dropped_memory_stays_charged_and_is_taken_again():
    tensor = cvc.Tensor((16, 32, 4), np.float32, HWC)
    where, identity = address(tensor), tensor.id
    del tensor
    assert size() == 8192 and cvc.cache_size() == 1
    again = cvc.Tensor((16, 32, 4), np.float32, HWC)
    assert address(again) == where and again.id == identity
    assert size() == 8192 and cvc.cache_size() == 1
    assert cvc.cache_stats().hits_exact >= 1


def test_larger_memory_serves_a_smaller_request_and_stays_charged_whole():
    tensor = cvc.Tensor((16, 32, 4), np.float32, HWC)
    where = address(tensor)
    del tensor
    other = cvc.Tensor((4, 64, 4), np.float32, HWC)
    assert address(other) == where
    assert other.shape == (4, 64, 4)
    assert size() == 8192 and cvc.cache_size() == 1
    assert nbytes(other) == 8192


@pytest.mark.parametrize(
    "dtype, layout", [(np.int32, HWC), (np.float32, "CHW"), (np.float32, None)]
)
def test_other_dtype_or_layout_is_not_served(dtype, layout):
    tensor = cvc.Tensor((16, 32, 4), np.float32, HWC)
    where = address(tensor)
    del tensor
    other = cvc.Tensor((4, 16, 4), dtype, layout)
    assert address(other) != where
    assert cvc.cache_size() == 2


def test_of_two_that_fit_the_smaller_is_taken():
    large, small = cvc.Tensor((4 * MIB,), np.uint8), cvc.Tensor((2 * MIB,), np.uint8)
    expected = address(small)
    del large, small
    assert address(cvc.Tensor((MIB,), np.uint8)) == expected
    assert size() == 6 * MIB


def test_same_shape_comes_before_smaller():
    same = cvc.Tensor((16, 32, 4), np.float32, HWC, rowalign=4096)
    smaller = cvc.Tensor((16, 32, 4), np.float32, HWC)
    assert nbytes(same) > nbytes(smaller)
    expected = address(same)
    del same, smaller
    assert address(cvc.Tensor((16, 32, 4), np.float32, HWC, rowalign=4096)) == expected


def test_wider_and_shorter_image_fits_one_of_the_same_format():
    image = cvc.Image((32, 64), cvc.Format.RGB8)
    where = address(image)
    del image
    other = cvc.Image((64, 16), cvc.Format.BGR8)
    assert address(other) != where
    fitting = cvc.Image((64, 16), cvc.Format.RGB8)
    assert address(fitting) == where
    assert fitting.size == (64, 16)


def test_growing_shapes_need_new_memory_each():
    for height in range(100, 110):
        cvc.Tensor((height, 100, 3), np.float32, HWC)
    assert cvc.cache_size() == 10


@pytest.mark.parametrize(
    "hold",
    [
        lambda tensor: tensor.cuda(),
        lambda tensor: tensor.reshape((16 * 32, 4), "WC"),
        lambda tensor: tensor.__dlpack__(),
        lambda tensor: in_batch(tensor),
        lambda tensor: on_host_alone(np.asarray, tensor),
        lambda tensor: on_host_alone(np.from_dlpack, tensor),
    ],
    ids=["export", "view", "capsule", "batch", "array", "dlpack array"],
)
def test_what_can_be_observed_is_not_reused(hold):
    tensor = cvc.Tensor((16, 32, 4), np.float32, HWC)
    where = address(tensor)
    held = hold(tensor)
    del tensor
    gc.collect()
    other = cvc.Tensor((16, 32, 4), np.float32, HWC)
    assert address(other) != where
    del other
    cvc.clear_cache()
    del held
    gc.collect()
    assert address(cvc.Tensor((16, 32, 4), np.float32, HWC)) != 0


def on_host_alone(read, tensor):
    """An array on the memory itself, which the host reaches on its own backend alone."""
    return read(tensor.cuda()) if cvc.backend() == "host" else tensor.cuda()


def in_batch(tensor):
    batch = cvc.TensorBatch(3)
    batch.pushback(tensor)
    return batch


def test_export_that_is_dropped_frees_the_memory_for_reuse():
    tensor = cvc.Tensor((16, 32, 4), np.float32, HWC)
    export = tensor.cuda()
    where = address(export)
    del tensor, export
    assert address(cvc.Tensor((16, 32, 4), np.float32, HWC)) == where


# --- pending work --------------------------------------------------------------------------------


def source_of(shape=(16, 32, 3)):
    return cvc.as_tensor(foreign(np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)), "HWC")


def test_pending_memory_is_reused_on_the_same_stream():
    stream, source = cvc.Stream(), source_of()
    with busy(stream):
        first = cvc.flip(source, 0, stream=stream)
        where = address(first)
        del first
        charged, entries = size(), cvc.cache_size()
        second = cvc.flip(source, 1, stream=stream)
        assert address(second) == where
        assert (size(), cvc.cache_size()) == (charged, entries)
    assert np.array_equal(second.cpu(), source.cpu()[:, ::-1])
    assert cvc.cache_stats().hits_pending >= 1


def test_pending_memory_of_another_stream_is_not_taken_until_ordered():
    one, other, source = cvc.Stream(), cvc.Stream(), source_of()
    with busy(one):
        first = cvc.flip(source, 0, stream=one)
        where = address(first)
        del first
        second = cvc.flip(source, 0, stream=other)
        assert address(second) != where
        third_stream = cvc.Stream()
        third_stream.wait_stream(one)
        third = cvc.flip(source, 1, stream=third_stream)
        assert address(third) == where
    assert np.array_equal(third.cpu(), source.cpu()[:, ::-1])
    assert np.array_equal(second.cpu(), source.cpu()[::-1])


def test_pending_memory_is_not_taken_where_no_stream_is_named():
    stream, source = cvc.Stream(), source_of()
    with busy(stream):
        first = cvc.flip(source, 0, stream=stream)
        where, shape = address(first), first.shape
        del first
        plain = cvc.Tensor(shape, np.uint8, HWC)
        assert address(plain) != where
        named = cvc.Tensor(shape, np.uint8, HWC, stream=stream)
        assert address(named) == where


def test_many_queued_chains_need_little_memory():
    stream, source = cvc.Stream(), source_of((64, 64, 3))
    cvc.flip(cvc.pillowresize(source, (32, 48, 3), stream=stream), 0, stream=stream)
    stream.sync()
    with busy(stream):
        for _ in range(50):
            cvc.flip(cvc.pillowresize(source, (32, 48, 3), stream=stream), 0, stream=stream)
        assert cvc.cache_size() <= 7


def test_clear_waits_for_pending_work():
    stream, source = cvc.Stream(), source_of()
    with busy(stream) as latch:
        result = cvc.flip(source, 0, stream=stream)
        held = foreign(np.zeros(result.shape, np.uint8))
        copied = cvc.as_tensor(held, "HWC")
        cvc.flip_into(copied, result, 0, stream=stream)
        del result
        opener = threading.Timer(0.05, latch.open)
        opener.start()
        cvc.clear_cache()
        opener.join()
        assert size() == 0
        assert np.array_equal(values_of(held), source.cpu())


def test_clear_between_submission_and_completion_is_safe():
    stream, source = cvc.Stream(), source_of()
    with busy(stream) as latch:
        result = cvc.flip(source, -1, stream=stream)
        opener = threading.Timer(0.02, latch.open)
        opener.start()
        cvc.clear_cache()
        opener.join()
    assert np.array_equal(result.cpu(), source.cpu()[::-1, ::-1])


# --- counts and clearing -------------------------------------------------------------------------


def test_clear_empties_the_cache():
    cvc.Tensor((16, 32), np.uint8)
    assert (cvc.cache_size(), size() > 0) == (1, True)
    cvc.clear_cache()
    assert (cvc.cache_size(), size()) == (0, 0)


def test_clear_leaves_live_objects_usable_and_unindexed():
    tensor = cvc.upload(np.arange(12, dtype=np.uint8).reshape(2, 2, 3), "HWC")
    cvc.clear_cache()
    assert size() == 0
    stats = cvc.cache_stats()
    assert (stats.unindexed_count, stats.live_count) == (1, 1)
    assert stats.unindexed_bytes == nbytes(tensor)
    assert tensor.cpu().ravel().tolist() == list(range(12))
    del tensor
    assert cvc.cache_stats().idle_count == 0


def test_clear_from_another_thread_and_the_same_charge_again():
    cvc.Tensor((16, 32), np.uint8)
    charged = size()
    assert cvc.cache_size() == 1
    in_thread(cvc.clear_cache)
    assert (cvc.cache_size(), size()) == (0, 0)
    cvc.Tensor((16, 32), np.uint8)
    assert (cvc.cache_size(), size()) == (1, charged)


def test_clear_local_touches_only_the_own_thread():
    def work():
        mine = cvc.Tensor((16, 32), np.uint8)
        counts = [(cvc.cache_size(), local_count())]
        cvc.clear_cache(cvc.ThreadScope.LOCAL)
        counts.append((cvc.cache_size(), local_count()))
        return counts, nbytes(mine)

    kept = cvc.Tensor((16, 32), np.uint8)
    counts, _ = in_thread(work)
    assert counts == [(2, 1), (1, 0)]
    assert local_count() == 1
    assert size() == nbytes(kept)


def test_count_without_argument_is_global():
    kept = [cvc.Tensor((16, 32), np.uint8) for _ in range(3)]
    assert in_thread(lambda: (cvc.cache_size(), local_count())) == (3, 0)
    assert cvc.cache_size() == cvc.cache_size(cvc.ThreadScope.GLOBAL) == len(kept)


def test_count_of_held_tensors_by_thread():
    barrier = threading.Barrier(5)
    counts = []

    def work(number):
        kept = [cvc.Tensor((16, 32), np.uint8) for _ in range(number)]
        counts.append((local_count() == number, cvc.cache_size() >= number))
        barrier.wait()
        barrier.wait()
        del kept

    threads = [threading.Thread(target=work, args=(10 * n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    barrier.wait()
    assert local_count() == 0
    assert cvc.cache_size() == 100
    barrier.wait()
    for thread in threads:
        thread.join()
    assert counts == [(True, True)] * 4


def test_objects_of_an_ended_thread_leave_the_index_and_live_on():
    kept = []

    def work(count):
        kept.extend(cvc.Tensor((16, 32), np.uint8) for _ in range(count))

    workers = max(2, os.cpu_count() or 2)
    threads = [threading.Thread(target=work, args=(50 + 7 * n,)) for n in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Complete when join returns: no sleep.
    assert (cvc.cache_size(), size()) == (0, 0)
    assert len(kept) == sum(50 + 7 * n for n in range(workers))
    assert cvc.cache_stats().unindexed_count == len(kept)
    assert kept[0].shape == (16, 32)
    kept.clear()
    assert cvc.cache_stats().live_handles == 0


def test_ended_thread_with_pending_work_leaves_its_memory_to_others():
    stream, source = cvc.Stream(), source_of()

    def work():
        result = cvc.flip(source, 0, stream=stream)
        return address(result), nbytes(result)

    with busy(stream):
        where, charge = in_thread(work)
        assert size() == charge
        result = cvc.flip(source, 0, stream=stream)
        assert address(result) == where
        assert size() == charge
    assert np.array_equal(result.cpu(), source.cpu()[::-1])


def test_ended_thread_with_finished_work_leaves_nothing():
    source = source_of()

    def work():
        stream = cvc.Stream()
        cvc.flip(source, 0, stream=stream)
        stream.sync()

    in_thread(work)
    assert (cvc.cache_size(), size()) == (1, 0), "the wrapped source alone"


def test_another_threads_idle_memory_is_not_taken():
    ready, done = threading.Event(), threading.Event()
    where = []

    def work():
        tensor = cvc.Tensor((16, 32, 4), np.float32, HWC)
        where.append(address(tensor))
        del tensor
        ready.set()
        done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    assert address(cvc.Tensor((16, 32, 4), np.float32, HWC)) != where[0]
    done.set()
    thread.join()


def test_release_in_another_thread_goes_back_to_the_owner():
    box = [cvc.Tensor((16, 32, 4), np.float32, HWC)]
    where = address(box[0])
    in_thread(box.clear)
    assert address(cvc.Tensor((16, 32, 4), np.float32, HWC)) == where


# --- wraps ---------------------------------------------------------------------------------------


def test_idle_wraps_are_dropped_by_the_next_one():
    arrays = [foreign(np.zeros((4, 4 + n), np.uint8)) for n in range(8)]
    wraps = [cvc.as_image(array) for array in arrays]
    assert cvc.cache_size() == 8
    del wraps
    last = cvc.as_image(arrays[0])
    assert cvc.cache_size() == 1
    assert last.size == (4, 4)


def test_shells_of_wraps_are_used_again():
    identities = set()
    for n in range(50):
        identities.add(cvc.as_tensor(foreign(np.zeros((1 + n, 2), np.uint8))).id)
    assert len(identities) == 1


def test_shells_of_image_batches_are_used_again():
    def identities(n):
        arrays = [foreign(np.zeros((1 + n, 2 + i), np.float32)) for i in range(2)]
        return {image.id for image in cvc.as_images(arrays)}

    first = identities(0)
    for n in range(50):
        assert identities(n) <= first


def test_dropped_batches_come_back():
    def one():
        batch = cvc.ImageBatchVarShape(4)
        batch.pushback(cvc.Image((4, 4), cvc.Format.U8))
        return batch.id

    first = one()
    assert one() == first


def test_wrap_keeps_its_source_until_it_is_dropped_and_never_frees_it():
    array = foreign(np.arange(6, dtype=np.uint8))
    seen = weakref.ref(array)
    for wrap in (cvc.as_tensor, cvc.as_image):
        wrapped = wrap(array)
        assert seen() is not None
        wrapped.close()
        assert values_of(array).tolist() == [0, 1, 2, 3, 4, 5]
    wrapped = cvc.as_tensor(array)
    del array
    gc.collect()
    assert seen() is not None
    assert wrapped.cpu().tolist() == [0, 1, 2, 3, 4, 5]
    del wrapped
    assert seen() is None


def test_source_of_a_wrap_outlives_the_work_on_it():
    stream = cvc.Stream()
    original = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    array = foreign(original.copy())
    expected, seen = original[::-1], weakref.ref(array)
    with busy(stream):
        result = cvc.flip(cvc.as_tensor(array, "HWC"), 0, stream=stream)
        del array
        gc.collect()
        assert seen() is not None
    assert np.array_equal(result.cpu(), expected)
    cvc.clear_cache()
    assert seen() is None


def test_view_of_a_wrap_keeps_the_source():
    array = foreign(np.arange(6, dtype=np.uint8))
    seen = weakref.ref(array)
    view = cvc.as_tensor(array).reshape((2, 3))
    del array
    gc.collect()
    assert seen() is not None
    assert view.cpu().tolist() == [[0, 1, 2], [3, 4, 5]]
    del view
    cvc.clear_cache()
    assert seen() is None


# --- statistics ----------------------------------------------------------------------------------


def test_stats_tell_live_idle_and_pending():
    stream, source = cvc.Stream(), source_of()
    with busy(stream):
        live = cvc.Tensor((16, 32, 4), np.float32, HWC)
        cvc.Tensor((8, 8), np.uint8)
        cvc.flip(source, 0, stream=stream)
        stats = cvc.cache_stats()
        assert (stats.live_count, stats.idle_count, stats.pending_count) == (1, 1, 1)
        assert stats.live_bytes == nbytes(live)
        assert stats.wrapped_count == 1
        indexed = stats.live_bytes - stats.unindexed_bytes
        assert stats.bytes == indexed + stats.idle_bytes + stats.pending_bytes == size()
        assert stats._asdict()["bytes"] == size()


def test_counts_of_hits_outlive_the_thread_that_had_them():
    before = cvc.cache_stats()

    def work():
        for _ in range(3):
            cvc.Tensor((16, 32, 4), np.float32, HWC)

    in_thread(work)
    after = cvc.cache_stats()
    assert after.misses - before.misses == 1
    assert after.hits_exact - before.hits_exact == 2


def test_peak_and_its_reset():
    tensor = cvc.Tensor((MIB,), np.uint8)
    charge = nbytes(tensor)
    del tensor
    cvc.clear_cache()
    assert cvc.cache_stats().peak_bytes >= charge
    cvc.reset_peak_cache_stats()
    assert cvc.cache_stats().peak_bytes == 0


def test_nothing_leaks():
    cvc.upload(np.zeros((4, 4, 3), np.uint8), "HWC").reshape((4, 12), "HW").cuda()
    batch = cvc.ImageBatchVarShape(2)
    batch.pushback(cvc.Image((4, 4), cvc.Format.U8))
    del batch
    gc.collect()
    assert cvc.cache_stats().live_handles == 0
    cvc.clear_cache()
    stats = cvc.cache_stats()
    assert (stats.count, stats.bytes, stats.idle_bytes, stats.pending_bytes) == (0, 0, 0, 0)


def test_trim_keeps_the_entries():
    cvc.Tensor((MIB,), np.uint8)
    cvc.trim_cache()
    assert cvc.cache_size() == 1
    with pytest.raises(ValueError, match="-5"):
        cvc.trim_cache(-5)

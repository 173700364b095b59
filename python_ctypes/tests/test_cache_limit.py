"""The limit of what the cache retains, and what happens at it."""

from __future__ import annotations

import numpy as np
import pytest
from foreign import foreign
from support import HWC, MIB, address, busy, in_thread, nbytes, size

import cvc


def test_default_limit_is_half_of_the_device(default_limit):
    assert default_limit == cvc.device_info().total_memory // 2


def test_limit_is_what_was_set():
    cvc.set_cache_limit_inbytes(12345)
    assert cvc.get_cache_limit_inbytes() == 12345
    assert cvc.cache_stats().limit_bytes == 12345


def test_limit_is_one_for_all_threads():
    in_thread(lambda: cvc.set_cache_limit_inbytes(777))
    assert cvc.get_cache_limit_inbytes() == 777


@pytest.mark.parametrize("limit", [-1, -(2**40), -(2**80)])
def test_negative_limit_is_an_error_that_shows_it(limit, default_limit):
    with pytest.raises(ValueError, match=str(limit)) as caught:
        cvc.set_cache_limit_inbytes(limit)
    assert isinstance(caught.value, cvc.Error)
    assert cvc.get_cache_limit_inbytes() == default_limit


def test_limit_of_the_whole_device_is_silent_and_a_larger_one_warns(capfd):
    total = cvc.device_info().total_memory
    cvc.set_cache_limit_inbytes(total)
    assert cvc.get_cache_limit_inbytes() == total
    assert capfd.readouterr().err == ""
    cvc.set_cache_limit_inbytes(10**15)
    warning = capfd.readouterr().err
    assert str(10**15) in warning and str(total) in warning
    assert cvc.get_cache_limit_inbytes() == 10**15


def test_lowering_the_limit_empties_the_cache():
    kept = cvc.Tensor((16, 32, 4), "float32", HWC)
    cvc.Tensor((16, 32, 4), "float32", HWC)
    assert size() == 2 * 8192
    cvc.set_cache_limit_inbytes(1024)
    assert size() <= 1024
    assert kept.shape == (16, 32, 4)


def test_lowering_the_limit_below_a_live_object_leaves_nothing_charged():
    image = cvc.Image.zeros((1, 1), cvc.Format.F32)
    cvc.synchronize()
    cvc.set_cache_limit_inbytes(nbytes(image) - 1)
    assert size() == 0
    assert image.cpu().tolist() == [[0.0]]


def test_object_over_the_limit_is_usable_but_not_cached():
    cvc.set_cache_limit_inbytes(511)
    image = cvc.Image.zeros((1, 1), cvc.Format.F32)
    assert nbytes(image) == 512
    assert size() == 0
    assert image.cpu().tolist() == [[0.0]]
    del image
    assert size() == 0


def test_limit_of_one_object_charges_one_of_two():
    cvc.set_cache_limit_inbytes(512)
    first = cvc.Image((1, 1), cvc.Format.F32)
    assert size() == 512
    second = cvc.Image((1, 1), cvc.Format.F32)
    assert size() == 512
    assert address(first) != address(second)


def test_limit_zero_retains_nothing():
    cvc.set_cache_limit_inbytes(0)
    assert cvc.get_cache_limit_inbytes() == 0
    image = cvc.Image((1, 1), cvc.Format.F32)
    assert nbytes(image) > 0
    assert size() == 0
    del image
    assert size() == 0


def test_limit_zero_reuses_pending_memory_and_lets_it_go_once_done():
    stream = cvc.Stream()
    cvc.set_cache_limit_inbytes(0)
    source = cvc.as_tensor(foreign(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)), "HWC")
    with busy(stream):
        first = cvc.flip(source, 0, stream=stream)
        charge, where = nbytes(first), address(first)
        del first
        assert size() == charge
        second = cvc.flip(source, 1, stream=stream)
        assert address(second) == where
        del second
        assert size() == charge
    cvc.synchronize()
    assert size() == 0


def test_limit_zero_lets_go_after_a_sync_of_the_stream():
    stream = cvc.Stream()
    cvc.set_cache_limit_inbytes(0)
    source = cvc.as_tensor(foreign(np.zeros((4, 4, 3), np.uint8)), "HWC")
    with busy(stream):
        cvc.flip(source, 0, stream=stream)
        assert size() > 0
    assert size() == 0


def test_live_objects_over_the_limit_are_not_charged():
    cvc.set_cache_limit_inbytes(20 * MIB)
    live = [cvc.Tensor((4 * MIB,), "uint8", rowalign=1) for _ in range(8)]
    assert size() == 20 * MIB
    assert len({address(tensor) for tensor in live}) == 8
    del live
    assert size() == 20 * MIB
    large = cvc.Tensor((32 * MIB,), "uint8", rowalign=1)
    assert size() <= 20 * MIB
    del large
    assert size() <= 20 * MIB


def test_lowered_limit_with_idle_entries():
    for length in (MIB, 2 * MIB):
        cvc.Tensor((length,), "uint8")
    assert size() > 0
    cvc.set_cache_limit_inbytes(1024)
    assert size() == 0


def test_limit_lowered_under_pending_work_holds_after_it():
    stream = cvc.Stream()
    source = cvc.as_tensor(foreign(np.zeros((64, 64, 3), np.uint8)), "HWC")
    with busy(stream):
        cvc.flip(source, 0, stream=stream)
        charged = size()
        cvc.set_cache_limit_inbytes(charged // 2)
        assert size() == charged
    cvc.flip(source, 0, stream=stream)
    stream.sync()
    assert size() <= charged // 2

"""Streams: the current one, contexts, order between streams, and streams of others."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest
from foreign import foreign
from support import busy

import cvc


def test_current_is_default_at_the_start():
    assert cvc.Stream.current is cvc.Stream.default
    assert type(cvc.Stream.current) is cvc.Stream
    assert cvc.cuda.Stream is cvc.Stream
    assert cvc.cuda.as_stream is cvc.as_stream
    assert cvc.Stream.default.handle == int(cvc.Stream.default) == 0


def test_default_and_current_are_read_only():
    for name in ("default", "current"):
        with pytest.raises(AttributeError):
            setattr(cvc.Stream, name, cvc.Stream())


def test_contexts_nest_and_restore():
    one, two = cvc.Stream(), cvc.Stream()
    assert one is not two and one.handle != two.handle and one.id != two.id
    with one as entered:
        assert entered is one is cvc.Stream.current
        with two:
            assert cvc.Stream.current is two
            with one:
                assert cvc.Stream.current is one
            assert cvc.Stream.current is two
        assert cvc.Stream.current is one
    assert cvc.Stream.current is cvc.Stream.default


def test_context_is_left_when_an_exception_leaves_it():
    outer, inner = cvc.Stream(), cvc.Stream()
    with outer:
        with pytest.raises(KeyError), inner:
            raise KeyError
        assert cvc.Stream.current is outer
    assert cvc.Stream.current is cvc.Stream.default


def test_leaving_out_of_order_is_an_error():
    one, two = cvc.Stream(), cvc.Stream()
    one.__enter__()
    two.__enter__()
    with pytest.raises(RuntimeError, match="order"):
        one.__exit__(None, None, None)
    assert cvc.Stream.current is two
    two.__exit__(None, None, None)
    one.__exit__(None, None, None)
    with pytest.raises(RuntimeError):
        one.__exit__(None, None, None)


def test_contexts_are_of_one_thread():
    stream, errors, seen = cvc.Stream(), [], []

    def other():
        seen.append(cvc.Stream.current)
        try:
            stream.__exit__(None, None, None)
        except RuntimeError as error:
            errors.append(error)

    with stream:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert cvc.Stream.current is stream
    assert seen == [cvc.Stream.default]
    assert "thread" in str(errors[0])


def test_operator_uses_the_current_stream_or_the_one_given():
    one, two = cvc.Stream(), cvc.Stream()
    source = cvc.as_tensor(foreign(np.zeros((4, 4, 3), np.uint8)), "HWC")
    with busy(one) as latch:
        with one:
            cvc.flip(source, 0, stream=two)
            assert cvc.Stream.current is one
            two.sync()
            queued = cvc.flip(source, 0)
        assert not one.query()
        assert two.query()
        latch.open()
        one.sync()
        assert one.query()
    assert queued.shape == (4, 4, 3)


def test_streams_order_reads_after_writes_and_writes_after_reads():
    one, two = cvc.Stream(), cvc.Stream()
    original = np.random.default_rng(3).integers(0, 256, (40, 50, 3), np.uint8)
    first = cvc.upload(original, "HWC")
    second = cvc.Tensor(original.shape, np.uint8, "HWC")
    with busy(one):
        for _ in range(10):
            cvc.flip_into(second, first, -1, stream=one)
            cvc.flip_into(first, second, -1, stream=two)
    assert np.array_equal(first.cpu(), original)


def test_wait_stream_orders_and_itself_is_no_op():
    one, two = cvc.Stream(), cvc.Stream()
    with busy(one) as latch:
        two.wait_stream(one)
        assert not two.query()
        latch.open()
        two.sync()
        assert two.query()
    one.wait_stream(one)
    one.sync()
    with pytest.raises(TypeError):
        one.wait_stream(3)


def test_sync_waits_and_synchronize_waits_for_all():
    streams = [cvc.Stream() for _ in range(3)]
    source = cvc.as_tensor(foreign(np.arange(12, dtype=np.uint8).reshape(2, 2, 3)), "HWC")
    results = [cvc.flip(source, 0, stream=stream) for stream in streams]
    cvc.synchronize()
    assert all(stream.query() for stream in streams)
    assert all(np.array_equal(result.cpu(), source.cpu()[::-1]) for result in results)


def test_dropping_a_stream_lets_its_work_run():
    source = cvc.as_tensor(foreign(np.arange(12, dtype=np.uint8).reshape(2, 2, 3)), "HWC")
    for _ in range(50):
        stream = cvc.Stream()
        result = cvc.flip(source, 0, stream=stream)
        del stream
        assert np.array_equal(result.cpu(), source.cpu()[::-1])


def test_ids_are_never_repeated():
    identities = set()
    for _ in range(200):
        identities.add(cvc.Stream().id)
    assert len(identities) == 200


def test_handle_device_and_protocol():
    stream = cvc.Stream()
    assert int(stream) == stream.handle > 2
    assert stream.device == cvc.current_device()
    assert stream.__cuda_stream__() == (0, stream.handle)
    assert f"{stream.handle:#x}" in repr(stream)


@pytest.mark.parametrize(
    "form",
    [
        lambda stream: stream,
        lambda stream: stream.handle,
        lambda stream: ctypes.c_void_p(stream.handle),
        lambda stream: type("Torch", (), {"cuda_stream": stream.handle})(),
        lambda stream: type("CuPy", (), {"ptr": stream.handle})(),
        lambda stream: type("Numba", (), {"handle": ctypes.c_void_p(stream.handle)})(),
        lambda stream: type("Core", (), {"__cuda_stream__": lambda self: (0, stream.handle)})(),
    ],
    ids=["cvc", "int", "c_void_p", "torch", "cupy", "numba", "protocol"],
)
def test_as_stream_of_the_librarys_own(form):
    stream = cvc.Stream()
    assert cvc.as_stream(form(stream)) is stream


@pytest.mark.parametrize("handle", [0, 1, 2])
def test_as_stream_of_the_default_streams(handle):
    stream = cvc.as_stream(handle)
    assert stream.handle == handle
    assert cvc.as_stream(ctypes.c_void_p(handle)).handle == handle
    assert (stream is cvc.Stream.default) == (handle == 0)


@pytest.mark.parametrize("value", [None, "stream", 3.5, object()])
def test_as_stream_of_something_else(value):
    with pytest.raises(TypeError):
        cvc.as_stream(value)


@pytest.mark.parametrize("handle", [-1, -5, 2**64, 2**70])
def test_as_stream_of_no_handle(handle):
    with pytest.raises(RuntimeError, match=str(handle)):
        cvc.as_stream(handle)


@pytest.mark.skipif(cvc.backend() == "cuda", reason="a driver crashes on such a handle")
def test_as_stream_of_a_dead_handle():
    with pytest.raises(RuntimeError):
        cvc.as_stream(0x1234567)
    dead = cvc.Stream().handle
    gc.collect()
    with pytest.raises(RuntimeError):
        cvc.as_stream(dead)


def test_wrapper_keeps_the_owner_alive():
    class Owner:
        def __init__(self):
            self.cuda_stream = 2

    owner = Owner()
    seen = weakref.ref(owner)
    wrapped = cvc.as_stream(owner)
    del owner
    gc.collect()
    assert seen() is not None
    del wrapped
    gc.collect()
    assert seen() is None


def test_stream_argument_of_another_kind():
    source = cvc.as_tensor(foreign(np.zeros((4, 4, 3), np.uint8)), "HWC")
    for wrong in (0, "stream", object()):
        with pytest.raises(TypeError, match="stream"):
            cvc.flip(source, 0, stream=wrong)


def test_many_threads_share_one_tensor():
    shared = cvc.upload(np.arange(300, dtype=np.uint8).reshape(10, 10, 3), "HWC")
    expected = shared.cpu()
    wrong = []

    def work():
        for _ in range(30):
            result = cvc.flip(cvc.flip(shared, -1, stream=cvc.Stream()), -1)
            if not np.array_equal(result.cpu(), expected):
                wrong.append(True)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []

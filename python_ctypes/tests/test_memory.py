"""Raw memory: its address, its order on streams, and when it is given back."""

from __future__ import annotations

import gc
import pickle
import threading

import pytest
from support import busy

import cvc
from cvc._lib import lib


def test_memory_is_aligned_charged_and_reused():
    memory = cvc.Memory(1000)
    address = memory.ptr
    assert address % 512 == 0
    assert memory.nbytes == 1000
    assert cvc.current_cache_size_inbytes() == 1024
    assert hex(address) in repr(memory)
    del memory
    cvc.synchronize()
    again = cvc.Memory(1024)
    assert again.ptr == address
    assert cvc.Memory(1024, alignment=4096).ptr % 4096 == 0


def test_close_gives_back_once():
    memory = cvc.Memory(64)
    memory.close()
    memory.close()
    assert memory.closed
    assert "closed" in repr(memory)
    assert cvc.cache_stats().live_handles == 0
    with pytest.raises(cvc.StaleHandleError, match="closed"):
        memory.ptr  # noqa: B018 - the look itself is the error
    with pytest.raises(cvc.StaleHandleError, match="closed"):
        memory.record_stream(cvc.Stream())


def test_no_bytes_have_no_address():
    memory = cvc.Memory(0)
    assert memory.ptr == 0
    memory.record_stream(cvc.Stream())
    memory.close()
    assert cvc.cache_stats().live_handles == 0


def test_pending_memory_is_taken_on_its_own_stream_only():
    stream, other = cvc.Stream(), cvc.Stream()
    memory = cvc.Memory(2048, stream=stream)
    address = memory.ptr
    with busy(stream):
        del memory
        assert cvc.Memory(2048, stream=other).ptr != address
        with stream:
            assert cvc.Memory(2048).ptr == address


def test_a_recorded_stream_counts_up_to_the_end():
    stream, other = cvc.Stream(), cvc.Stream()
    memory = cvc.Memory(2048, stream=stream)
    address = memory.ptr
    memory.record_stream(other)
    with busy(other):
        memory.close()
        assert cvc.Memory(2048, stream=stream).ptr != address
    other.sync()
    found = [cvc.Memory(2048, stream=stream) for _ in range(2)]
    assert address in [memory.ptr for memory in found]


def test_any_thread_may_drop_it():
    memories = [cvc.Memory(2048), cvc.Memory(2048, stream=cvc.as_stream(2))]
    thread = threading.Thread(target=memories.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert cvc.cache_stats().live_handles == 0


def test_wrong_arguments():
    with pytest.raises(cvc.SizeOverflowError, match="nbytes is -1"):
        cvc.Memory(-1)
    with pytest.raises(cvc.SizeOverflowError, match="bytes is"):
        cvc.Memory(2**64 - 1)
    with pytest.raises(cvc.InvalidArgumentError, match="alignment is 3"):
        cvc.Memory(1, alignment=3)
    with pytest.raises(cvc.OutOfMemoryError):
        cvc.Memory(2**60)
    with pytest.raises(TypeError):
        cvc.Memory("1")
    with pytest.raises(cvc.WrongKindError, match="stream is a int"):
        cvc.Memory(1).record_stream(5)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(cvc.Memory(1))
    assert cvc.cache_stats().live_handles == 0


def test_closing_from_several_threads_gives_it_back_once():
    errors = []

    def close(memory):
        try:
            memory.close()
        except cvc.Error as error:
            errors.append(error)

    for _ in range(200):
        memory = cvc.Memory(512)
        threads = [threading.Thread(target=close, args=(memory,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert memory.closed
    assert not errors


def test_an_interrupted_close_frees_nothing_twice(monkeypatch):
    memory = cvc.Memory(512)

    def free_and_be_interrupted(*arguments):
        free(*arguments)
        raise KeyboardInterrupt

    free = lib.cvc_mem_free
    monkeypatch.setattr(lib, "cvc_mem_free", free_and_be_interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.close()
    monkeypatch.undo()
    assert memory.closed
    # The address may be another's by now.
    other = cvc.Memory(512)
    memory.close()
    del memory
    assert other.ptr and not other.closed
    other.close()

"""Device memory and streams of other libraries on the cuda backend: exports, wraps and order."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from foreign import DeviceArray, DriverStream, address_of
from support import address, busy

import cvc

pytestmark = pytest.mark.skipif(cvc.backend() != "cuda", reason="the backend is the host")

VALUES = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)


class DLPackOnly:
    def __init__(self, source):
        self.source = source

    def __dlpack__(self, **arguments):
        return self.source.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.source.__dlpack_device__()


def test_export_is_device_memory():
    tensor = cvc.upload(VALUES, "HWC")
    for thing in (tensor, tensor.cuda()):
        interface = thing.__cuda_array_interface__
        assert interface["data"] == (address(tensor), False)
        assert interface["shape"] == (4, 4, 3) and interface["typestr"] == "|u1"
        assert interface["strides"] == tensor.cuda().strides
        assert interface["version"] == 3 and interface["stream"] == 1
        assert not hasattr(thing, "__array_interface__")
        assert thing.__dlpack_device__() == (2, tensor.device)
        with pytest.raises(TypeError, match="cpu"):
            np.asarray(thing)


def test_interface_keeps_the_memory_of_a_closed_tensor():
    tensor = cvc.upload(VALUES, "HWC")
    where = tensor.__cuda_array_interface__["data"][0]
    tensor.close()
    assert address(cvc.Tensor(VALUES.shape, np.uint8, "HWC")) != where


def test_dlpack_to_the_host_is_a_copy():
    tensor = cvc.upload(VALUES, "HWC")
    capsule = tensor.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
    assert '"dltensor_versioned"' in repr(capsule)

    class Producer:
        def __dlpack__(self, **arguments):
            return capsule

        def __dlpack_device__(self):
            return (1, 0)

    assert np.array_equal(np.from_dlpack(Producer()), VALUES)
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(1, 0), stream=1)
    with pytest.raises(ValueError):
        tensor.__dlpack__(stream=0)


@pytest.mark.parametrize("stream", [None, 1, 2, -1])
def test_dlpack_round_trip(stream):
    tensor = cvc.upload(VALUES, "HWC")
    assert tensor.__dlpack__(stream=stream) is not None
    wrapped = cvc.as_tensor(DLPackOnly(tensor.cuda()), "HWC")
    assert address(wrapped) == address(tensor)
    assert wrapped.cuda().strides == tensor.cuda().strides
    assert np.array_equal(cvc.flip(wrapped, 0).cpu(), VALUES[::-1])
    copied = tensor.__dlpack__(stream=stream, copy=True)
    assert copied is not None
    del tensor, wrapped, copied
    cvc.synchronize()
    gc.collect()
    assert cvc.cache_stats().live_handles == 0


@pytest.mark.parametrize("stream", [None, 1, 2])
def test_wrap_of_a_cuda_array(stream):
    memory = DeviceArray(VALUES, stream)
    tensor = cvc.as_tensor(memory, "HWC")
    assert address(tensor) == address_of(memory)
    assert np.array_equal(tensor.cpu(), VALUES)
    assert np.array_equal(cvc.as_image(memory).cpu(), VALUES)
    assert cvc.flip_into(tensor, cvc.upload(VALUES, "HWC"), 0) is tensor
    assert np.array_equal(memory.get(), VALUES[::-1])


def test_wrap_of_a_cuda_array_that_another_stream_still_writes():
    producer = cvc.Stream()
    memory = DeviceArray(np.zeros_like(VALUES), producer.handle)
    source = cvc.upload(VALUES, "HWC")
    writer = cvc.as_tensor(memory, "HWC")
    consumer = cvc.Stream()
    with busy(producer) as latch:
        cvc.flip_into(writer, source, 0, stream=producer)
        reader = cvc.as_tensor(memory, "HWC")
        result = cvc.flip(reader, 0, stream=consumer)
        assert not consumer.query()
        latch.open()
    assert np.array_equal(result.cpu(), VALUES)


def test_bad_streams_of_a_cuda_array():
    with pytest.raises(RuntimeError, match="stream is 0"):
        cvc.as_tensor(DeviceArray(VALUES, 0))


def test_host_memory_is_refused_with_advice():
    with pytest.raises(cvc.NotSupportedError, match="upload"):
        cvc.as_tensor(VALUES)
    with pytest.raises(cvc.NotSupportedError, match="Image"):
        cvc.as_image(VALUES)
    with pytest.raises(cvc.NotSupportedError, match="as_tensor"):
        cvc.upload(DeviceArray(VALUES))
    with pytest.raises(cvc.NotSupportedError, match="as_image"):
        cvc.Image(DeviceArray(VALUES))


def test_streams_of_others():
    first = DriverStream()
    handle = first.cuda_stream
    wrappers = [cvc.as_stream(first), cvc.as_stream(handle)]
    assert [int(wrapper) for wrapper in wrappers] == [handle, handle]
    assert wrappers[0].id == wrappers[1].id
    source = cvc.upload(VALUES, "HWC")
    with wrappers[0]:
        result = cvc.flip(source, 1)
    wrappers[0].sync()
    assert np.array_equal(result.cpu(), VALUES[:, ::-1])
    with busy(wrappers[1]) as latch:
        queued = cvc.flip(source, 0, stream=wrappers[1])
        other = cvc.Stream()
        other.wait_stream(wrappers[0])
        assert not other.query()
        latch.open()
    assert np.array_equal(queued.cpu(), VALUES[::-1])
    del first
    wrappers.pop()
    gc.collect()
    assert wrappers[0].query()
    wrappers.clear()
    gc.collect()
    # The registration ended with the last wrapper: the same handle can be registered anew.
    again = DriverStream()
    assert int(cvc.as_stream(again)) == again.cuda_stream

"""Batches of images and of tensors: identity, order, capacity, and what they have in common."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from foreign import address_of, foreign, values_of
from support import address, nbytes

import cvc

Format = cvc.Format


def image(width, height, format=Format.RGBA8):
    return cvc.Image((width, height), format)


# --- images --------------------------------------------------------------------------------------


def test_empty_image_batch():
    batch = cvc.ImageBatchVarShape(15)
    assert (batch.capacity, len(batch)) == (15, 0)
    assert batch.uniqueformat is None and batch.maxsize == (0, 0)
    assert list(batch) == []
    assert "0 of 15" in repr(batch)


def test_one_image():
    batch = cvc.ImageBatchVarShape(15)
    pushed = image(64, 32)
    batch.pushback(pushed)
    assert len(batch) == 1 and batch[0] is pushed and batch[-1] is pushed
    assert (batch.uniqueformat, batch.maxsize) == (Format.RGBA8, (64, 32))
    assert [item is pushed for item in batch] == [True]
    batch.popback()
    assert list(batch) == []


def test_several_images():
    batch = cvc.ImageBatchVarShape(15)
    pushed = [image(2 * m, m) for m in range(2, 10, 2)]
    batch.pushback(pushed)
    assert all(item is expected for item, expected in zip(batch, pushed))
    assert (len(batch), batch.maxsize, batch.uniqueformat) == (4, (16, 8), Format.RGBA8)
    batch.popback(2)
    assert (len(batch), batch.maxsize) == (2, (8, 4))
    batch.pushback(image(58, 26, Format.NV12))
    assert (batch.maxsize, batch.uniqueformat) == ((58, 26), None)
    batch.pushback(image(2, 90))
    assert batch.maxsize == (58, 90)
    batch.clear()
    assert (len(batch), list(batch), batch.maxsize, batch.uniqueformat) == (0, [], (0, 0), None)


def test_images_from_an_iterator_and_in_parts():
    batch = cvc.ImageBatchVarShape(4)
    pushed = [image(4, 4) for _ in range(4)]
    batch.pushback(iter(pushed[:3]))
    batch.pushback([])
    batch.pushback(tuple(pushed[3:]))
    assert all(item is expected for item, expected in zip(batch, pushed))


def test_over_capacity_leaves_the_batch_as_it_was():
    batch = cvc.ImageBatchVarShape(2)
    first = image(4, 4)
    batch.pushback(first)
    with pytest.raises(cvc.CapacityError):
        batch.pushback([image(8, 8), image(9, 9)])
    assert list(batch) == [first] and batch.maxsize == (4, 4)
    with pytest.raises(TypeError):
        batch.pushback([image(8, 8), cvc.Tensor((2, 2), np.uint8)])
    assert list(batch) == [first]
    with pytest.raises(TypeError):
        batch.pushback(3)
    with pytest.raises(cvc.CapacityError):
        batch.popback(2)
    with pytest.raises(ValueError):
        batch.popback(-1)
    assert list(batch) == [first]
    batch.popback(0)
    assert list(batch) == [first]


@pytest.mark.parametrize("capacity", [0, -1, 2**31, 2**70])
def test_capacities_that_are_none(capacity):
    for kind in (cvc.ImageBatchVarShape, cvc.TensorBatch):
        with pytest.raises(ValueError, match=str(capacity)):
            kind(capacity)
    with pytest.raises(TypeError):
        cvc.ImageBatchVarShape("3")


def test_batch_keeps_its_images():
    batch = cvc.ImageBatchVarShape(2)
    pushed = image(16, 16)
    where, identity = address(pushed), pushed.id
    batch.pushback(pushed)
    del pushed
    gc.collect()
    assert address(image(16, 16)) != where
    assert batch[0].id == identity


BUFFERS = [
    ((5, 7, 1), np.uint8, Format.U8),
    ((5, 7), np.uint8, Format.U8),
    ((5, 7, 2), np.int16, Format._2S16),
    ((5, 7, 1), np.float32, Format.F32),
    ((5, 7, 3), np.uint8, Format.RGB8),
    ((5, 7, 4), np.uint8, Format.RGBA8),
    ((5, 7), np.csingle, Format.C64),
]


@pytest.mark.parametrize("shape, dtype, format", BUFFERS)
def test_as_images(shape, dtype, format):
    shapes = [(shape[0] + i, shape[1] + i, *shape[2:]) for i in range(3)]
    arrays = [foreign(np.zeros(each, dtype)) for each in shapes]
    for batch in (cvc.as_images(arrays), cvc.as_images(buffers=arrays, format=format)):
        assert batch.capacity == len(batch) == 3
        assert (batch.maxsize, batch.uniqueformat) == ((9, 7), format)
        for item, source in zip(batch, arrays):
            assert item.size == (source.shape[1], source.shape[0])
            assert address(item) == address_of(source)
    assert nbytes(batch) > 0


def test_as_images_never_frees_the_users_memory():
    for i in range(2):
        source = np.random.default_rng(i).random((1 + i, 2 + i)).astype(np.float32)
        memory = foreign(source.copy())
        cvc.as_images([memory])
        assert np.array_equal(values_of(memory), source)


def test_as_images_of_planes_and_of_nothing():
    shapes = ((6, 8), (3, 4, 2), (6, 8, 3))
    luma, chroma, colours = (foreign(np.zeros(shape, np.uint8)) for shape in shapes)
    batch = cvc.as_images([[luma, chroma], colours])
    assert [item.format for item in batch] == [Format.NV12_ER, Format.RGB8]
    with pytest.raises(ValueError):
        cvc.as_images([])
    with pytest.raises(ValueError):
        cvc.as_tensors()


def test_result_of_an_operator_gives_the_same_objects_each_time():
    batch = cvc.ImageBatchVarShape(3)
    batch.pushback([cvc.Image.zeros((8 + i, 6), Format.RGB8) for i in range(2)])
    result = cvc.pillowresize(batch, [(4, 3), (5, 2)])
    assert (len(result), result.capacity) == (2, 3)
    first = list(result)
    assert all(a is b for a, b in zip(first, result))
    assert [item.size for item in first] == [(4, 3), (5, 2)]
    assert all(item.format == Format.RGB8 for item in first)


# --- tensors -------------------------------------------------------------------------------------


def tensors(count, dtype=np.float32, layout="HWC", rank=3):
    shape = tuple(range(2, 2 + rank))
    return [cvc.Tensor((i + 1, *shape[1:]), dtype, layout) for i in range(count)]


def test_empty_tensor_batch():
    batch = cvc.TensorBatch(15)
    assert (batch.capacity, len(batch), batch.ndim) == (15, 0, -1)
    assert batch.layout is None and batch.dtype is None
    assert list(batch) == []


def test_tensor_batch_takes_the_form_of_the_first():
    batch = cvc.TensorBatch(10)
    first = tensors(5)
    batch.pushback(first)
    assert (batch.layout, batch.dtype, batch.ndim) == ("HWC", np.float32, 3)
    assert all(a is b for a, b in zip(batch, first))
    batch.popback(5)
    assert (batch.layout, batch.dtype, batch.ndim, list(batch)) == (None, None, -1, [])
    view = cvc.as_tensor(cvc.Image((64, 32), Format.RGBA8))
    batch.pushback(view)
    assert (batch.layout, batch.dtype, batch.ndim) == ("NHWC", np.uint8, 4)
    assert batch[0] is view
    batch.clear()
    assert (batch.layout, batch.dtype, batch.ndim) == (None, None, -1)
    batch.pushback(tensors(1, np.int16, None, 2))
    assert (batch.layout, batch.dtype, batch.ndim) == (None, np.int16, 2)


def test_one_tensor_may_be_in_it_many_times():
    pushed = tensors(5, np.int16)
    batch = cvc.TensorBatch(50)
    for _ in range(10):
        batch.pushback(pushed)
    assert list(batch) == pushed * 10


def test_subscripts():
    first, second = tensors(10), tensors(5)
    batch = cvc.TensorBatch(10)
    batch.pushback(first)
    assert all(batch[i] is first[i] for i in range(10))
    for index in (10, -11, 2**40):
        with pytest.raises(IndexError, match=str(index)):
            batch[index]
        with pytest.raises(RuntimeError):
            batch[index] = second[0]
    for i, tensor in enumerate(second):
        batch[i] = tensor
    assert list(batch) == second + first[5:]
    batch[-1] = second[0]
    assert batch[9] is second[0]
    with pytest.raises(TypeError):
        batch[0] = image(3, 3)
    with pytest.raises(TypeError):
        batch["0"]


@pytest.mark.parametrize(
    "other",
    [
        lambda: tensors(2, np.float32, "NHWC", 4),
        lambda: tensors(2, np.int16),
        lambda: tensors(2, np.float32, "CHW"),
    ],
    ids=["rank", "dtype", "layout"],
)
def test_tensor_that_does_not_fit_is_refused(other):
    batch = cvc.TensorBatch(10)
    kept = tensors(2)
    batch.pushback(kept)
    with pytest.raises(ValueError):
        batch.pushback(other())
    with pytest.raises(ValueError):
        batch.pushback(kept[:1] + other())
    with pytest.raises(ValueError):
        batch[1] = other()[0]
    assert list(batch) == kept
    assert batch.dtype == np.float32


def test_tensor_capacity():
    batch = cvc.TensorBatch(2)
    kept = tensors(1)
    batch.pushback(kept)
    with pytest.raises(cvc.CapacityError, match="2"):
        batch.pushback(tensors(2))
    with pytest.raises(cvc.CapacityError):
        batch.popback(3)
    assert list(batch) == kept


def test_as_tensors():
    arrays = [foreign(np.ones((i + 1, 4, 3), np.int32)) for i in range(10)]
    batch = cvc.as_tensors(arrays)
    assert batch.capacity == len(batch) == 10
    assert (batch.dtype, batch.layout, batch.ndim) == (np.int32, None, 3)
    batch = cvc.as_tensors(arrays, layout="HWC")
    assert batch.layout == "HWC"
    for other in (np.ones((2, 2), np.int32), np.ones((2, 4, 3), np.int16)):
        with pytest.raises(ValueError):
            cvc.as_tensors([arrays[0], foreign(other)])


# --- both ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [cvc.ImageBatchVarShape, cvc.TensorBatch])
def test_closed_batch(kind):
    batch = kind(3)
    batch.close()
    for use in (
        lambda: len(batch),
        lambda: list(batch),
        lambda: batch[0],
        lambda: batch.capacity,
        lambda: batch.device,
        lambda: batch.clear(),
        lambda: batch.popback(),
        lambda: batch.id,
    ):
        with pytest.raises(cvc.StaleHandleError, match="closed"):
            use()
    assert "closed" in repr(batch)


def test_threads_push_and_pop_without_losing_one():
    batch = cvc.TensorBatch(400)
    pushed = [tensors(1)[0] for _ in range(4)]

    def work(tensor):
        for _ in range(100):
            batch.pushback(tensor)

    threads = [threading.Thread(target=work, args=(tensor,)) for tensor in pushed]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(batch) == 400
    counted = {id(tensor): 0 for tensor in pushed}
    for tensor in batch:
        counted[id(tensor)] += 1
    assert set(counted.values()) == {100}

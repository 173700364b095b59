"""preprocess against Pillow and NumPy, bit for bit, and NV12 against a formula of its own."""

from __future__ import annotations

import numpy as np
import pytest
from test_operators import pillow, random

import cvc

Format, Interp = cvc.Format, cvc.Interp
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
SCALE = np.array([4.3, 4.5, 4.4], np.float32)
STEPS = {
    "convert": cvc.Convert("float32", 1 / 255),
    "normalize": cvc.Normalize(list(MEAN), list(SCALE)),
}


def expected_of(array, crop, size, filter, flip=None, swap=False):
    """An HWC array up to the colour swap."""
    x, y, width, height = crop
    array = array[y : y + height, x : x + width]
    if (width, height) != size:
        array = pillow(array, size, filter)
    axes = {None: (), 0: (0,), 1: (1,), -1: (0, 1)}[flip]
    array = np.flip(array, axes)
    return array[..., ::-1] if swap else array


def normalized(array):
    floats = array.astype(np.float32) * np.float32(1 / 255) + np.float32(0)
    return (floats - MEAN) * SCALE * np.float32(1) + np.float32(0)


@pytest.mark.parametrize("filter", [Interp.LINEAR, Interp.CUBIC, Interp.LANCZOS, Interp.BOX])
@pytest.mark.parametrize("flip", [None, 0, 1, -1])
@pytest.mark.parametrize("swap", [False, True])
def test_frames_become_network_input(filter, flip, swap):
    frames = random((2, 40, 53, 3), np.uint8)
    crops = [(3, 5, 30, 31), (11, 0, 42, 17)]
    source = cvc.upload(frames, "NHWC")
    arguments = {"interp": filter, "flip": flip, "swap_channels": swap}
    plain = np.stack(
        [
            expected_of(frame, crop, (19, 23), filter, flip, swap)
            for frame, crop in zip(frames, crops)
        ]
    )
    result = cvc.preprocess(source, (19, 23), crop=crops, **arguments)
    assert (result.shape, result.dtype, result.layout) == ((2, 23, 19, 3), "uint8", "NHWC")
    assert np.array_equal(result.cpu(), plain)
    wanted = normalized(plain).transpose(0, 3, 1, 2)
    result = cvc.preprocess(source, (19, 23), "NCHW", crop=crops, **arguments, **STEPS)
    assert (result.shape, result.dtype) == ((2, 3, 23, 19), "float32")
    assert np.array_equal(result.cpu(), wanted)
    target = cvc.Tensor((2, 3, 23, 19), "float32", "NCHW", rowalign=1)
    stream = cvc.Stream()
    again = cvc.preprocess_into(target, source, crop=crops, stream=stream, **arguments, **STEPS)
    assert again is target and np.array_equal(target.cpu(), wanted)


def test_one_crop_for_all_and_no_resize():
    frames = random((3, 20, 24, 4), np.uint16)
    source = cvc.upload(frames, "NHWC")
    result = cvc.preprocess(source, (8, 9), crop=(7, 2, 8, 9), swap_channels=True)
    assert np.array_equal(result.cpu(), frames[:, 2:11, 7:15][..., [2, 1, 0, 3]])
    result = cvc.preprocess(cvc.upload(frames[0], "HWC"), (24, 20), "CHW", convert="float64")
    assert np.array_equal(result.cpu(), frames[0].transpose(2, 0, 1).astype(np.float64))


def test_images_of_different_sizes():
    arrays = [random((12 + 7 * i, 30 - 5 * i, 3), np.uint8, i) for i in range(4)]
    batch = cvc.ImageBatchVarShape(4)
    batch.pushback([cvc.Image(array) for array in arrays])
    wanted = np.stack(
        [
            expected_of(array, (0, 0, array.shape[1], array.shape[0]), (16, 16), Interp.LINEAR, 1)
            for array in arrays
        ]
    )
    result = cvc.preprocess(batch, (16, 16), "NCHW", flip=1, **STEPS)
    assert np.array_equal(result.cpu(), normalized(wanted).transpose(0, 3, 1, 2))
    target = cvc.Tensor((4, 16, 16, 3), "uint8", "NHWC")
    assert cvc.preprocess_into(target, batch, flip=1) is target
    assert np.array_equal(target.cpu(), wanted)


def rgb_of(luma, chroma, matrix, full):
    """Planes to an HWC array: the equations of BT.601 and BT.709 in 20 fraction bits."""
    red, blue = (0.299, 0.114) if matrix == cvc.ColorMatrix.BT601 else (0.2126, 0.0722)
    green = 1 - red - blue
    black, luma_range, chroma_range = (0, 255, 255) if full else (16, 219, 224)
    one = 2**20
    height, width = luma.shape
    spread = chroma.repeat(2, axis=0).repeat(2, axis=1)[:height, :width].astype(np.int64) - 128
    cb, cr = spread[..., 0], spread[..., 1]
    grey = (luma.astype(np.int64) - black) * round(one * 255 / luma_range)

    def weight(value):
        return round(one * value * 255 / chroma_range)

    sums = [
        grey + weight(2 * (1 - red)) * cr,
        grey
        - weight(2 * (1 - blue) * blue / green) * cb
        - weight(2 * (1 - red) * red / green) * cr,
        grey + weight(2 * (1 - blue)) * cb,
    ]
    return np.clip((np.stack(sums, axis=-1) + one // 2) >> 20, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("matrix", cvc.ColorMatrix)
@pytest.mark.parametrize("nv12", ["limited", "full"])
def test_nv12_tensors(matrix, nv12):
    height, width = 26, 38
    frames = random((2, height * 3 // 2, width, 1), np.uint8)
    pictures = np.stack(
        [
            rgb_of(
                frame[:height, :, 0],
                frame[height:, :, 0].reshape(height // 2, width // 2, 2),
                matrix,
                nv12 == "full",
            )
            for frame in frames
        ]
    )
    source = cvc.upload(frames, "NHWC")
    result = cvc.preprocess(source, (width, height), nv12=nv12, matrix=matrix)
    assert np.array_equal(result.cpu(), pictures)
    crop = (5, 3, 21, 20)
    wanted = np.stack([expected_of(p, crop, (11, 12), Interp.CUBIC, 0, True) for p in pictures])
    result = cvc.preprocess(
        source,
        (11, 12),
        "NCHW",
        crop=crop,
        interp=Interp.CUBIC,
        flip=0,
        swap_channels=True,
        nv12=nv12,
        matrix=matrix,
        **STEPS,
    )
    assert np.array_equal(result.cpu(), normalized(wanted).transpose(0, 3, 1, 2))


@pytest.mark.parametrize("format", [Format.NV12, Format.NV12_ER, Format.NV21, Format.NV21_ER])
def test_nv12_images_of_odd_sizes(format):
    batch, pictures = cvc.ImageBatchVarShape(3), []
    for index, (height, width) in enumerate([(11, 17), (12, 9), (1, 1)]):
        luma = random((height, width), np.uint8, index)
        chroma = random(((height + 1) // 2, (width + 1) // 2, 2), np.uint8, index + 10)
        batch.pushback(cvc.Image([luma, chroma], format))
        pairs = chroma[..., ::-1] if format in (Format.NV21, Format.NV21_ER) else chroma
        full = format in (Format.NV12_ER, Format.NV21_ER)
        picture = rgb_of(luma, pairs, cvc.ColorMatrix.BT709, full)
        pictures.append(pillow(picture, (10, 7), Interp.LINEAR))
    result = cvc.preprocess(batch, (10, 7), matrix=cvc.ColorMatrix.BT709)
    assert np.array_equal(result.cpu(), np.stack(pictures))


def test_known_colours():
    """Black, white, grey, and the red of colour bars, in limited range of BT.601."""
    frame = np.array(
        [[16, 235, 81, 81], [126, 126, 81, 81], [128, 128, 90, 240]], np.uint8
    ).reshape(1, 3, 4, 1)
    result = cvc.preprocess(cvc.upload(frame, "NHWC"), (4, 2), nv12="limited").cpu()[0]
    assert [tuple(pixel) for pixel in result[:, :2].reshape(-1, 3).tolist()] == [
        (0, 0, 0),
        (255, 255, 255),
        (128, 128, 128),
        (128, 128, 128),
    ]
    assert np.all(np.abs(result[:, 2:].astype(int) - (255, 0, 0)) <= 1)


def test_empty_batches():
    assert cvc.preprocess(cvc.ImageBatchVarShape(3), (4, 5)).shape == (0, 5, 4, 3)
    assert cvc.preprocess(cvc.Tensor((0, 6, 6, 1), "uint8", "NHWC"), (4, 5)).shape == (0, 5, 4, 1)


def test_messages_name_the_argument():
    source = cvc.upload(random((6, 8, 3), np.uint8), "HWC")
    with pytest.raises(cvc.InvalidArgumentError, match=r"^crop\[0\].*9x1"):
        cvc.preprocess(source, (4, 4), "HWC", crop=(0, 0, 9, 1))
    with pytest.raises(cvc.MismatchError, match=r"^len\(crop\) is 2"):
        cvc.preprocess(source, (4, 4), "HWC", crop=[(0, 0, 1, 1)] * 2)
    with pytest.raises(cvc.InvalidArgumentError, match=r"^normalize.scale\[0\] is nan"):
        cvc.preprocess(source, (4, 4), "HWC", normalize=cvc.Normalize([1], [float("nan")]))
    with pytest.raises(ValueError, match="nv12 is 'wide'"):
        cvc.preprocess(source, (4, 4), "HWC", nv12="wide")

"""Images: creation, formats, planes, exports, copies, and wraps of others' memory."""

from __future__ import annotations

import numpy as np
import pytest
from foreign import address_of, foreign
from support import address, nbytes

import cvc

Format = cvc.Format
on_host = pytest.mark.skipif(cvc.backend() != "host", reason="host memory is the device's")


def test_creation():
    for image in (
        cvc.Image((7, 5), Format.NV12),
        cvc.Image(size=(7, 5), format=Format.NV12),
        cvc.Image(np.array((7, 5)), Format.NV12),
        cvc.Image([7, 5], Format.NV12, 0),
    ):
        assert (image.width, image.height, image.size) == (7, 5, (7, 5))
        assert image.format == Format.NV12
        assert image.device == cvc.current_device()
    assert "7x5" in repr(image) and "NV12" in repr(image) and "device=0" in repr(image)


def test_formats_tell_planes_and_channels():
    for format, planes, channels in (
        (Format.U8, 1, 1),
        (Format._2F32, 1, 2),
        (Format.RGB8, 1, 3),
        (Format.RGBA8p, 4, 4),
        (Format.NV12, 2, 3),
        (Format.YUYV, 1, 3),
        (Format.YUV8p, 3, 3),
        (Format.BGRAf16, 1, 4),
    ):
        assert (format.planes, format.channels) == (planes, channels)


@pytest.mark.parametrize("format", [f for f in Format if f != Format.NONE])
def test_every_format_can_be_made_and_copied(format):
    image = cvc.Image.zeros((6, 4), format)
    arrays = image.cpu()
    for plane in arrays if isinstance(arrays, list) else [arrays]:
        assert plane.size > 0 and not plane.any()
    assert nbytes(image) >= 512


INFERRED = [
    ((5, 7, 1), np.uint8, Format.U8),
    ((5, 7), np.uint8, Format.U8),
    ((5, 7, 1), np.int8, Format.S8),
    ((5, 7, 1), np.uint16, Format.U16),
    ((5, 7, 1), np.int16, Format.S16),
    ((5, 7), np.uint32, Format.U32),
    ((5, 7), np.int32, Format.S32),
    ((5, 7, 2), np.int16, Format._2S16),
    ((5, 7), np.float16, Format.F16),
    ((5, 7, 1), np.float32, Format.F32),
    ((5, 7, 1), np.float64, Format.F64),
    ((5, 7, 2), np.float32, Format._2F32),
    ((5, 7, 3), np.uint8, Format.RGB8),
    ((5, 7, 4), np.uint8, Format.RGBA8),
    ((5, 7, 3), np.float32, Format.RGBf32),
    ((5, 7, 4), np.float16, Format.RGBAf16),
    ((1, 5, 7), np.uint8, Format.U8),
    ((3, 5, 7), np.uint8, Format.RGB8p),
    ((4, 5, 7), np.float32, Format.RGBAf32p),
    ((1, 5, 7, 4), np.uint8, Format.RGBA8),
    ((1, 3, 5, 7), np.uint8, Format.RGB8p),
    ((5, 7), np.csingle, Format.C64),
    ((5, 7), np.cdouble, Format.C128),
]
EXPLICIT = [
    ((5, 7, 1), np.uint8, Format.Y8),
    ((5, 7, 3), np.uint8, Format.BGR8),
    ((5, 7, 4), np.uint8, Format.BGRA8),
    ((5, 7, 3), np.uint8, Format.HSV8),
    ((3, 5, 7), np.uint8, Format.BGR8p),
]


def random(shape, dtype):
    return (np.random.default_rng(5).random(shape) * 100).astype(dtype)


@pytest.mark.parametrize("shape, dtype, format", INFERRED)
def test_host_buffer_with_inferred_format(shape, dtype, format):
    source = random(shape, dtype)
    image = cvc.Image(source)
    assert (image.size, image.format) == ((7, 5), format)
    assert np.array_equal(np.asarray(image.cpu()).ravel(), source.ravel())
    assert nbytes(image) > 0


@pytest.mark.parametrize("shape, dtype, format", INFERRED + EXPLICIT)
def test_host_buffer_with_given_format(shape, dtype, format):
    source = random(shape, dtype)
    image = cvc.Image(buffer=source, format=format)
    assert (image.size, image.format) == ((7, 5), format)
    assert np.array_equal(np.asarray(image.cpu()).ravel(), source.ravel())


@pytest.mark.parametrize("shape, dtype, format", INFERRED + EXPLICIT)
def test_wrap(shape, dtype, format):
    source = random(shape, dtype)
    memory = foreign(source)
    explicit = cvc.as_image(buffer=memory, format=format)
    assert (explicit.size, explicit.format) == ((7, 5), format)
    assert np.array_equal(np.asarray(explicit.cpu()).ravel(), source.ravel())
    if (shape, dtype, format) in INFERRED:
        image = cvc.as_image(memory)
        assert (image.size, image.format) == ((7, 5), format)
        assert nbytes(image) == 0


@on_host
@pytest.mark.parametrize(
    "shape, planes, height, width, channels",
    [
        ((3, 7, 6), 3, 7, 6, 3),
        ((1, 4, 7, 6), 4, 7, 6, 4),
        ((2, 7, 3), 1, 2, 7, 3),
        ((1, 7, 3), 1, 1, 7, 3),
        ((7, 3), 1, 7, 3, 1),
        ((7, 1), 1, 7, 1, 1),
        ((1, 3), 1, 1, 3, 1),
        ((1, 1), 1, 1, 1, 1),
        ((9,), 1, 1, 9, 1),
    ],
)
def test_inferred_geometry(shape, planes, height, width, channels):
    for image in (cvc.Image(np.zeros(shape, np.uint8)), cvc.as_image(np.zeros(shape, np.uint8))):
        assert (image.height, image.width) == (height, width)
        assert (image.format.planes, image.format.channels) == (planes, channels)


def test_planes_of_several_buffers():
    luma, chroma = random((6, 8), np.uint8), random((3, 4, 2), np.uint8)
    for format in (Format.NONE, Format.NV12_ER, Format.NV12):
        image = cvc.Image([luma, chroma], format)
        assert image.size == (8, 6)
        assert image.format == (Format.NV12_ER if format == Format.NONE else format)
        back = image.cpu()
        assert np.array_equal(back[0][..., 0], luma) and np.array_equal(back[1], chroma)
    red, green, blue = (random((4, 5), np.float32) for _ in range(3))
    image = cvc.Image([red, green, blue])
    assert image.format == Format.RGBf32p
    assert np.array_equal(image.cpu(), np.stack([red, green, blue]))


def test_wrapped_planes_of_several_buffers():
    luma = foreign(random((6, 8), np.uint8))
    chroma = foreign(random((3, 4, 2), np.uint8))
    image = cvc.as_image([luma, chroma])
    assert (image.size, image.format) == ((8, 6), Format.NV12_ER)
    first, second = image.cuda()
    assert (address(first), address(second)) == (address_of(luma), address_of(chroma))
    assert (first.shape, second.shape) == ((6, 8, 1), (3, 4, 2))


@pytest.mark.parametrize(
    "source, format",
    [
        (np.array([1 + 2j, 4 + 7j]), Format._2F32),
        (np.array([1.4, 2.85]), Format.U8),
        (np.zeros((6, 4), np.uint8), Format.NV12),
        (np.zeros((5, 3, 4), np.uint8), Format.RGB8),
        (np.zeros((5, 7, 4), np.uint8), Format.RGB8),
        (np.zeros((2, 3, 4, 5), np.uint8), Format.NONE),
        (np.zeros((1, 1, 15, 7, 1), np.uint8), Format.NONE),
        (np.zeros((0,), np.uint8), Format.NONE),
        (np.zeros((), np.uint8), Format.NONE),
        (np.zeros((8, 7, 9), np.uint8), Format.NONE),
        (np.zeros((8, 7, 2), np.uint8), Format.NONE),
        (np.zeros((8, 7, 3), np.int32), Format.NONE),
        (np.zeros((3, 4), np.uint8)[:, ::2], Format.NONE),
        (np.lib.stride_tricks.as_strided(np.zeros(9, np.uint8), (3, 2), (0, 1)), Format.NONE),
        (np.zeros((8, 7), np.uint64), Format.NONE),
    ],
)
def test_buffers_that_are_no_image(source, format):
    with pytest.raises(ValueError):
        cvc.Image(source, format)
    if cvc.backend() == "host":
        with pytest.raises(ValueError):
            cvc.as_image(source, format)


@pytest.mark.parametrize(
    "shapes, format",
    [
        ([(3, 4), (2, 2, 3, 1)], Format.NONE),
        ([(3, 4), (5, 2, 2, 3, 1)], Format.NONE),
        ([(6, 8), (3, 3, 2)], Format.NV12),
        ([(6, 8), (3, 4, 2), (3, 4)], Format.NV12),
        ([(6, 8), (6, 7), (6, 8)], Format.RGB8p),
    ],
)
def test_planes_that_are_no_image(shapes, format):
    with pytest.raises(ValueError):
        cvc.Image([np.zeros(shape, np.uint8) for shape in shapes], format)


def test_no_buffers_and_no_size():
    with pytest.raises((TypeError, ValueError)):
        cvc.Image([])
    with pytest.raises(TypeError):
        cvc.Image()
    for size in ((3,), (3, 4, 5), (1.5, 2)):
        with pytest.raises((TypeError, ValueError)):
            cvc.Image(size, Format.U8)
    with pytest.raises(RuntimeError):
        cvc.as_image(object())


@pytest.mark.parametrize("size", [(-1, 4), (4, -1), (0, 4), (2**31, 4), (4, 2**40)])
def test_sizes_that_are_none(size):
    with pytest.raises(ValueError):
        cvc.Image(size, Format.U8)


def test_unknown_format():
    for format in (999, -1, "RGB8"):
        with pytest.raises(ValueError):
            cvc.Image((3, 4), format)
    with pytest.raises(ValueError):
        cvc.Image((3, 4), Format.NONE)


def test_packed_rows():
    for image in (
        cvc.Image((37, 11), Format.U8, rowalign=1),
        cvc.Image.zeros((37, 11), Format.U8, rowalign=1),
        cvc.Image(np.zeros((11, 37), np.uint8), rowalign=1),
    ):
        assert image.cuda().strides == (37, 1)
    assert cvc.Image((37, 11), Format.U8).cuda().strides == (64, 1)


@pytest.mark.parametrize(
    "size, format, layout, dtype, shape",
    [
        ((257, 231), Format.U8, None, np.uint8, (231, 257)),
        ((257, 231), Format.U8, "HWC", np.uint8, (231, 257, 1)),
        ((257, 231), Format.U8, "CHW", np.uint8, (1, 231, 257)),
        (
            (257, 231),
            Format.U8,
            "xyCrodHlimpWqb",
            np.uint8,
            (1, 1, 1, 1, 1, 1, 231, 1, 1, 1, 1, 257, 1, 1),
        ),
        ((257, 231), Format.RGBAf32, None, np.float32, (231, 257, 4)),
        ((257, 231), Format.RGBA8, "NHWC", np.uint8, (1, 231, 257, 4)),
        ((257, 231), Format.RGBA8p, None, np.uint8, (4, 231, 257)),
        ((257, 231), Format.RGBAf32p, "NCHW", np.float32, (1, 4, 231, 257)),
        ((257, 231), Format._2S16, None, np.int16, (231, 257, 2)),
        ((258, 232), Format.YUYV, None, np.uint8, (232, 258, 2)),
        ((257, 231), Format.C64, None, np.complex64, (231, 257)),
    ],
)
def test_exports(size, format, layout, dtype, shape):
    image = cvc.Image.zeros(size, format)
    export = image.cuda(layout)
    assert (export.shape, export.dtype) == (shape, dtype)
    assert image.cuda(layout) is not export
    assert image.cpu(layout).shape == shape


def test_exports_of_unequal_planes():
    image = cvc.Image((258, 232), Format.NV12)
    for layout in (None, "HWC"):
        shapes = [export.shape for export in image.cuda(layout)]
        assert shapes == [(232, 258, 1), (116, 129, 2)]
        assert [array.shape for array in image.cpu(layout)] == shapes


@pytest.mark.parametrize("layout", ["CHW", "HC", "WHC", "", "HHWC", "ABC", "NHW"])
def test_layouts_an_image_cannot_have(layout):
    with pytest.raises(ValueError, match="layout"):
        cvc.Image((8, 6), Format.RGB8).cuda(layout)


@on_host
def test_writing_through_an_export_is_seen():
    image = cvc.Image.zeros((5, 4), Format.RGB8p)
    np.asarray(image.cuda())[2] = 7
    assert image.cpu()[2].tolist() == [[7] * 5] * 4
    assert not image.cpu()[:2].any()


def test_image_is_kept_by_its_export():
    image = cvc.Image((640, 480), Format.U8)
    export = image.cuda()
    where = address(export)
    del image
    other = cvc.Image((640, 480), Format.U8)
    assert address(other) != where
    del other
    cvc.clear_cache()
    del export
    cvc.Image((640, 480), Format.U8)
    assert cvc.cache_stats().live_handles == 0


def test_zeros_of_reused_memory():
    image = cvc.Image(np.full((34, 67), 7, np.float32))
    where = address(image)
    del image
    image = cvc.Image.zeros((67, 34), Format.F32)
    assert address(image) == where
    assert not image.cpu().any()


@pytest.mark.parametrize("height", [1, 2, 3, 4, 7])
@pytest.mark.parametrize(
    "format, dtype, planes",
    [
        (Format.RGB8p, np.uint8, 3),
        (Format.BGRA8p, np.uint8, 4),
        (Format.YUV8p, np.uint8, 3),
        (Format.RGBf32p, np.float32, 3),
    ],
)
def test_planes_that_are_one_pixel_wide(format, dtype, planes, height):
    values = np.arange(planes * height).reshape(planes, height, 1).astype(dtype)
    for buffer in (
        values,
        values[np.newaxis],
        list(values),
        [plane[..., np.newaxis] for plane in values],
        [values[:1], values[1:]],
        [values[:2], values[2:]],
    ):
        image = cvc.Image(buffer, format)
        assert image.size == (1, height)
        assert np.array_equal(image.cpu(), values)
    assert np.array_equal(cvc.Image(image.cpu(), format).cpu(), values)
    assert np.array_equal(cvc.as_image(foreign(values), format).cpu(), values)


def test_wrong_numbers_of_planes_that_are_one_pixel_wide():
    for count in (1, 2, 4):
        with pytest.raises(cvc.MismatchError, match=f"have {count} planes, but .*RGB8p has 3"):
            cvc.Image(np.zeros((count, 7, 1), np.uint8), Format.RGB8p)
    with pytest.raises(cvc.MismatchError, match="plane 1 is 8 x 1"):
        cvc.Image([np.zeros((1, width, 1), np.uint8) for width in (7, 8, 7)], Format.RGB8p)


@pytest.mark.parametrize("format", [Format.YUYV, Format.UYVY, Format.VYUY])
def test_an_odd_width_of_pixels_in_pairs(format):
    image = cvc.Image.zeros((5, 3), format)
    assert image.size == (5, 3) and image.cuda().shape == (3, 6, 2)
    assert cvc.Image(image.cpu(), format).size == (6, 3)
    assert "one pixel wider" in cvc.Image.__doc__


@pytest.mark.parametrize(
    "size, format, layout, shape",
    [
        ((32, 16), Format.RGBA8, "NHWC", (1, 16, 32, 4)),
        ((38, 7), Format.RGB8p, "NCHW", (1, 3, 7, 38)),
        ((38, 7), Format.U8, "NCHW", (1, 1, 7, 38)),
    ],
)
def test_image_as_tensor(size, format, layout, shape):
    image = cvc.Image.zeros(size, format)
    for tensor in (cvc.as_tensor(image), cvc.as_tensor(image=image)):
        assert (tensor.shape, tensor.layout, tensor.dtype) == (shape, layout, np.uint8)
        assert nbytes(tensor) == 0
    del image
    assert not tensor.cpu().any()


def test_image_of_subsampled_planes_is_no_tensor():
    with pytest.raises(cvc.NotSupportedError):
        cvc.as_tensor(cvc.Image((8, 6), Format.NV12))


def test_close():
    image = cvc.Image((8, 6), Format.U8)
    export = image.cuda()
    image.close()
    for use in (
        lambda: image.size,
        lambda: image.format,
        lambda: image.cuda(),
        lambda: image.cpu(),
        lambda: image.id,
        lambda: cvc.as_tensor(image),
        lambda: cvc.ImageBatchVarShape(1).pushback(image),
    ):
        with pytest.raises(cvc.StaleHandleError, match="closed"):
            use()
    assert export.shape == (6, 8)

"""Operators against NumPy, bit for bit, and pillowresize against Pillow itself."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image as PillowImage
from pillow_cases import pillow_cases

import cvc

Format, Interp = cvc.Format, cvc.Interp
LAYOUTS = [
    ("HWC", (9, 13, 3)),
    ("NHWC", (2, 9, 13, 4)),
    ("CHW", (3, 9, 13)),
    ("NCHW", (2, 3, 9, 13)),
]


def random(shape, dtype, seed=0):
    generator = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return generator.integers(info.min, info.max, shape, dtype, endpoint=True)
    return generator.normal(0, 100, shape).astype(dtype)


def batch_of(arrays, format=Format.NONE, capacity=None):
    batch = cvc.ImageBatchVarShape(capacity or len(arrays))
    batch.pushback([cvc.Image(array, format) for array in arrays])
    return batch


def arrays_of(batch):
    return [image.cpu() for image in batch]


def like(tensor, **changes):
    keywords = {"shape": tensor.shape, "dtype": tensor.dtype, "layout": tensor.layout, **changes}
    return cvc.Tensor(**keywords)


# --- flip ----------------------------------------------------------------------------------------


def flipped(array, code, layout):
    axes = {0: "H", 1: "W", -1: "HW"}[int(np.sign(code))]
    return np.flip(array, [layout.index(axis) for axis in axes])


@pytest.mark.parametrize("layout, shape", LAYOUTS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "float32"])
@pytest.mark.parametrize("code", [0, 1, 7, -1, -9])
def test_flip(layout, shape, dtype, code):
    array = random(shape, dtype)
    source = cvc.upload(array, layout)
    result = cvc.flip(source, code)
    assert (result.shape, result.dtype, result.layout) == (shape, dtype, layout)
    assert np.array_equal(result.cpu(), flipped(array, code, layout))
    target = like(source, rowalign=1)
    assert cvc.flip_into(target, source, code, stream=cvc.Stream()) is target
    assert np.array_equal(target.cpu(), flipped(array, code, layout))
    assert cvc.flip_into(dst=target, src=source, flipCode=code) is target


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_flip_of_every_channel_count(channels):
    array = random((5, 6, channels), np.uint8)
    assert np.array_equal(cvc.flip(cvc.upload(array, "HWC"), 1).cpu(), array[:, ::-1])


def test_flip_of_images_of_different_sizes():
    arrays = [random((4 + i, 9 - i, 3), np.uint8, i) for i in range(4)]
    batch = batch_of(arrays, capacity=6)
    codes = cvc.upload(np.array([0, 1, -1, 5], np.int32), "N")
    expected = [arrays[0][::-1], arrays[1][:, ::-1], arrays[2][::-1, ::-1], arrays[3]]
    result = cvc.flip(batch, codes)
    assert result.capacity == 6 and result.uniqueformat == Format.RGB8
    for got, wanted in zip(arrays_of(result), expected):
        assert np.array_equal(got, wanted)
    target = batch_of([np.zeros_like(array) for array in arrays])
    assert cvc.flip_into(target, batch, codes) is target
    for got, wanted in zip(arrays_of(target), expected):
        assert np.array_equal(got, wanted)


def test_flip_there_and_back_on_streams():
    array = random((10, 108, 96, 3), np.uint8)
    first, second = cvc.upload(array, "NHWC"), cvc.Tensor(array.shape, np.uint8, "NHWC")
    streams = [cvc.Stream() for _ in range(4)]
    for _ in range(20):
        for stream in streams:
            cvc.flip_into(second, first, -1, stream=stream)
            cvc.flip_into(first, second, -1, stream=stream)
    assert np.array_equal(first.cpu(), array)


# --- pillowresize --------------------------------------------------------------------------------

NUMPY = {"u8": np.uint8, "u16": np.uint16, "s32": np.int32, "f32": np.float32}
PILLOW = {
    Interp.NEAREST: PillowImage.Resampling.NEAREST,
    Interp.LINEAR: PillowImage.Resampling.BILINEAR,
    Interp.CUBIC: PillowImage.Resampling.BICUBIC,
    Interp.LANCZOS: PillowImage.Resampling.LANCZOS,
    Interp.HAMMING: PillowImage.Resampling.HAMMING,
    Interp.BOX: PillowImage.Resampling.BOX,
}


def pillow_plane(plane, size, filter):
    """One channel, resized by Pillow, of which the mode follows from the array's type."""
    image = PillowImage.fromarray(plane)
    return np.asarray(image.resize(size, PILLOW[filter])).astype(plane.dtype)


def pillow(array, size, filter):
    channels = [pillow_plane(array[..., c].copy(), size, filter) for c in range(array.shape[2])]
    return np.stack(channels, axis=-1)


def case_id(case):
    (in_width, in_height), (out_width, out_height) = case.in_size, case.out_size
    sizes = f"{in_width}x{in_height}-{out_width}x{out_height}"
    return f"{case.dtype}x{case.channels}-{case.filter}-{sizes}"


def check_case(case):
    width, height = case.in_size
    array = random((height, width, case.channels), NUMPY[case.dtype], case.pixel_seed)
    if case.dtype == "s32":
        array >>= 4  # beyond 2**28 Pillow itself overflows
    filter = Interp[case.filter.upper()]
    shape = (case.out_size[1], case.out_size[0], case.channels)
    result = cvc.pillowresize(cvc.upload(array, "HWC"), shape, None, filter).cpu()
    expected = pillow(array, case.out_size, filter)
    assert result.shape == expected.shape
    assert np.array_equal(result, expected), (
        f"{case_id(case)}: {np.count_nonzero(result != expected)} of {expected.size} differ, by at "
        f"most {np.abs(result.astype(float) - expected.astype(float)).max()}"
    )


@pytest.mark.parametrize("case", list(pillow_cases(2026, 300, dtypes=("u8",))), ids=case_id)
def test_pillowresize_has_pillows_bits(case):
    check_case(case)


@pytest.mark.parametrize(
    "case", list(pillow_cases(7, 120, dtypes=("u16", "s32", "f32"), largest=120)), ids=case_id
)
def test_pillowresize_of_other_types_has_pillows_values(case):
    check_case(case)


@pytest.mark.parametrize("layout, shape", LAYOUTS)
@pytest.mark.parametrize("filter", list(PILLOW))
def test_pillowresize_in_every_layout(layout, shape, filter):
    array = random(shape, np.uint8)
    target = {**dict(zip(layout, shape)), "H": 6, "W": 21}
    target_shape = tuple(target[label] for label in layout)
    source = cvc.upload(array, layout)
    result = cvc.pillowresize(source, target_shape, Format.RGB8, filter)
    assert (result.shape, result.layout, result.dtype) == (target_shape, layout, np.uint8)
    order = [layout.index(label) for label in "NHWC" if label in layout]
    ordered = array.transpose(order).reshape(-1, 9, 13, target["C"])
    expected = np.stack([pillow(image, (21, 6), filter) for image in ordered])
    got = result.cpu().transpose(order).reshape(expected.shape)
    assert np.array_equal(got, expected)
    other = like(result, rowalign=1)
    assert cvc.pillowresize_into(other, source, Format.RGB8, filter) is other
    assert np.array_equal(other.cpu(), result.cpu())
    assert cvc.pillowresize_into(other, source, format=Format.RGB8, interp=filter) is other


def test_pillowresize_default_filter_is_linear():
    array = random((9, 13, 3), np.uint8)
    source = cvc.upload(array, "HWC")
    for result in (
        cvc.pillowresize(source, (5, 6, 3)),
        cvc.pillowresize(source, (5, 6, 3), Format.RGB8),
        cvc.pillowresize(src=source, shape=[5, 6, 3], format=Format.RGB8, interp=Interp.LINEAR),
    ):
        assert np.array_equal(result.cpu(), pillow(array, (6, 5), Interp.LINEAR))


@pytest.mark.parametrize("mode", ["LA", "RGBA"])
@pytest.mark.parametrize("filter", [Interp.LINEAR, Interp.CUBIC, Interp.LANCZOS, Interp.BOX])
def test_pillowresize_with_premultiplied_alpha(mode, filter):
    array = random((23, 31, len(mode)), np.uint8, 4)
    source = cvc.upload(array, "HWC")
    result = cvc.pillowresize(source, (11, 40, len(mode)), None, filter, premultiply_alpha=True)
    image = PillowImage.fromarray(array, mode)
    assert np.array_equal(result.cpu(), np.asarray(image.resize((40, 11), PILLOW[filter])))


def test_pillowresize_in_pillow_12s_order_of_passes():
    array = random((64, 8, 1), np.uint8)
    source = cvc.upload(array, "HWC")
    older = cvc.pillowresize(source, (7, 5, 1), None, Interp.CUBIC, pillow12=True).cpu()
    across = pillow(array, (5, 64), Interp.CUBIC)
    assert np.array_equal(older, pillow(across, (5, 7), Interp.CUBIC))


def test_pillowresize_of_images_of_different_sizes():
    arrays = [random((20 + 3 * i, 30 - 5 * i, 3), np.uint8, i) for i in range(4)]
    sizes = [(7, 9), (30, 20), (1, 1), (40, 3)]
    batch = batch_of(arrays)
    expected = [pillow(a, size, Interp.CUBIC) for a, size in zip(arrays, sizes)]
    for result in (
        cvc.pillowresize(batch, sizes, Interp.CUBIC),
        cvc.pillowresize(batch, sizes=sizes, interp=Interp.CUBIC),
    ):
        assert [image.size for image in result] == sizes
        for got, wanted in zip(arrays_of(result), expected):
            assert np.array_equal(got, wanted)
    target = batch_of([np.zeros_like(array) for array in expected])
    assert cvc.pillowresize_into(target, batch, Interp.CUBIC) is target
    for got, wanted in zip(arrays_of(target), expected):
        assert np.array_equal(got, wanted)
    linear = cvc.pillowresize(batch, sizes)
    for got, array, size in zip(arrays_of(linear), arrays, sizes):
        assert np.array_equal(got, pillow(array, size, Interp.LINEAR))


# --- convertto -----------------------------------------------------------------------------------


def converted(array, dtype, scale, offset, truncate=False):
    """Each operation rounded once, in F32, or in F64 where either side needs it; then clamped."""
    dtype = np.dtype(dtype)
    wide = {np.dtype(name) for name in ("float64", "int32", "uint32", "int64", "uint64")}
    work = np.float64 if wide & {array.dtype, dtype} else np.float32
    with np.errstate(all="ignore"):
        values = array.astype(work) * work(scale) + work(offset)
        if dtype.kind == "f":
            return values.astype(dtype)
        values = np.trunc(values) if truncate else np.rint(values)
        info = np.iinfo(dtype)
        exact = values.astype(np.float64)
        inside = np.clip(exact, float(info.min), float(info.max))
        return np.nan_to_num(inside).astype(np.int64).clip(info.min, info.max).astype(dtype)


CONVERTED = ["uint8", "int8", "uint16", "int16", "int32", "float32", "float64"]


@pytest.mark.parametrize("target", CONVERTED)
@pytest.mark.parametrize("source", CONVERTED)
@pytest.mark.parametrize("scale, offset", [(1, 0), (1 / 255, 0), (-3.7, 11.25), (0.5, 0.5)])
def test_convertto(source, target, scale, offset):
    array = random((7, 5, 3), source)
    if scale == 1 and source != "float32" and source != "float64":
        expected_exact = array.astype(np.float64)
        assert np.array_equal(
            cvc.convertto(cvc.upload(array, "HWC"), "float64").cpu(), expected_exact
        )
    tensor = cvc.upload(array, "HWC")
    result = cvc.convertto(tensor, target, scale, offset)
    assert (result.shape, result.dtype, result.layout) == (tensor.shape, target, "HWC")
    assert np.array_equal(result.cpu(), converted(array, target, scale, offset))
    into = like(tensor, dtype=target, rowalign=1)
    assert cvc.convertto_into(into, tensor, scale, offset) is into
    assert np.array_equal(into.cpu(), result.cpu())


def test_convertto_rounding():
    array = np.array([[[-2.5, -1.5, -0.5], [0.5, 1.5, 2.5]], [[2.9, -2.9, np.nan], [9e9, -9e9, 0]]])
    source = cvc.upload(array.astype(np.float32), "HWC")
    nearest = cvc.convertto(source, "int8").cpu().ravel().tolist()
    assert nearest == [-2, -2, 0, 0, 2, 2, 3, -3, 0, 127, -128, 0]
    cut = cvc.convertto(source, "int8", round=cvc.Round.TRUNCATE).cpu().ravel().tolist()
    assert cut == [-2, -1, 0, 0, 1, 2, 2, -2, 0, 127, -128, 0]
    unsigned = cvc.convertto(source, "uint8", scale=2.0, offset=1, stream=cvc.Stream())
    assert unsigned.cpu().ravel().tolist() == [0, 0, 0, 2, 4, 6, 7, 0, 0, 255, 0, 1]
    into = cvc.Tensor(source.shape, np.int8, "HWC")
    cvc.convertto_into(into, source, 1, 0, round=cvc.Round.TRUNCATE)
    assert into.cpu().ravel().tolist() == cut


# --- normalize -----------------------------------------------------------------------------------


def normalized(array, base, scale, globalscale=1.0, globalshift=0.0, epsilon=0.0, stddev=False):
    one = np.float32
    base, scale = np.asarray(base, one), np.asarray(scale, one)
    if stddev:
        scale = one(1) / np.sqrt(scale * scale + one(epsilon), dtype=one)
    return (array.astype(one) - base) * scale * one(globalscale) + one(globalshift)


def saturated(values, dtype):
    if np.dtype(dtype).kind == "f":
        return values.astype(dtype)
    info = np.iinfo(dtype)
    return np.clip(np.rint(values.astype(np.float64)), info.min, info.max).astype(dtype)


BASE, SCALE = [10.5, 20.25, 30.125], [0.5, 1.25, 2.0]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("base, scale", [(BASE, SCALE), ([7.0], [0.25]), (7.0, 0.25)])
@pytest.mark.parametrize("stddev", [False, True])
def test_normalize_with_numbers(dtype, base, scale, stddev):
    array = random((2, 5, 7, 3), dtype)
    source = cvc.upload(array, "NHWC")
    flags = cvc.NormalizeFlags.SCALE_IS_STDDEV if stddev else None
    keywords = {"globalscale": 1.5, "globalshift": 3.0, "epsilon": 0.125}
    wanted = normalized(array, base, scale, stddev=stddev, **keywords)
    result = cvc.normalize(source, base, scale, flags, **keywords)
    assert (result.shape, result.dtype, result.layout) == (source.shape, dtype, "NHWC")
    assert np.array_equal(result.cpu(), saturated(wanted, dtype))
    into = like(source, rowalign=1)
    assert cvc.normalize_into(into, source, base, scale, flags, **keywords) is into
    assert np.array_equal(into.cpu(), result.cpu())
    as_float = cvc.normalize(source, base, scale, flags, dtype="float32", **keywords)
    assert np.array_equal(as_float.cpu(), wanted)


@pytest.mark.parametrize(
    "base_shape, scale_shape",
    [((1, 1, 1, 3), (1, 1, 1, 3)), ((1, 1, 1, 1), (2, 5, 7, 3)), ((2, 1, 7, 1), (1, 5, 1, 3))],
)
def test_normalize_with_tensors(base_shape, scale_shape):
    array = random((2, 5, 7, 3), np.uint8)
    base, scale = random(base_shape, np.float32, 1), random(scale_shape, np.float32, 2)
    result = cvc.normalize(
        cvc.upload(array, "NHWC"), base=cvc.upload(base, "NHWC"), scale=cvc.upload(scale, "NHWC")
    )
    assert np.array_equal(result.cpu(), saturated(normalized(array, base, scale), np.uint8))


def test_normalize_of_images_of_different_sizes():
    arrays = [random((4 + i, 9 - i, 3), np.uint8, i) for i in range(3)]
    batch = batch_of(arrays)
    base = cvc.upload(np.float32(BASE).reshape(1, 1, 1, 3), "NHWC")
    scale = cvc.upload(np.float32(SCALE).reshape(1, 1, 1, 3), "NHWC")
    wanted = [normalized(array, BASE, SCALE, globalshift=2) for array in arrays]
    for arguments in ((base, scale), (BASE, SCALE)):
        result = cvc.normalize(batch, *arguments, globalshift=2)
        for got, values in zip(arrays_of(result), wanted):
            assert np.array_equal(got, saturated(values, np.uint8))
    as_float = cvc.normalize(batch, base, scale, globalshift=2, format=Format.RGBf32)
    assert as_float.uniqueformat == Format.RGBf32
    for got, values in zip(arrays_of(as_float), wanted):
        assert np.array_equal(got, values)
    target = batch_of([np.zeros(array.shape, np.float32) for array in arrays])
    assert cvc.normalize_into(target, batch, base, scale, globalshift=2) is target
    for got, values in zip(arrays_of(target), wanted):
        assert np.array_equal(got, values)


# --- reformat ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, target",
    [("NHWC", "NCHW"), ("NCHW", "NHWC"), ("HWC", "CHW"), ("CHW", "HWC"), ("HWC", "HWC")],
)
@pytest.mark.parametrize("dtype", CONVERTED)
def test_reformat(source, target, dtype):
    lengths = {"N": 2, "H": 5, "W": 7, "C": 3}
    array = random([lengths[label] for label in source], dtype)
    expected = array.transpose([source.index(label) for label in target])
    tensor = cvc.upload(array, source)
    result = cvc.reformat(tensor, target)
    assert (result.shape, result.layout, result.dtype) == (expected.shape, target, dtype)
    assert np.array_equal(result.cpu(), expected)
    into = cvc.Tensor(expected.shape, dtype, target, rowalign=1)
    assert cvc.reformat_into(into, tensor) is into
    assert np.array_equal(into.cpu(), expected)
    assert into.cuda().strides == np.ascontiguousarray(expected).strides


# --- together ------------------------------------------------------------------------------------


def test_chain_of_operators_in_threads():
    """Random tiny images to larger ones, as a service would do it, with every value checked."""
    import threading

    wrong = []

    def work(seed):
        generator = np.random.default_rng(seed)
        stream = cvc.Stream()
        with stream:
            for _ in range(15):
                count, height, width = generator.integers(1, 10, 3)
                array = generator.integers(0, 256, (count, height, width, 3), np.uint8)
                rows, columns = int(generator.integers(20, 30)), int(generator.integers(30, 40))
                resized = cvc.pillowresize(cvc.upload(array, "NHWC"), (count, rows, columns, 3))
                scaled = cvc.convertto(resized, np.float32, 1 / 255)
                result = cvc.reformat(scaled, "NCHW").cpu()
                images = [pillow(image, (columns, rows), Interp.LINEAR) for image in array]
                expected = converted(np.stack(images), np.float32, 1 / 255, 0)
                if not np.array_equal(result, expected.transpose(0, 3, 1, 2)):
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []

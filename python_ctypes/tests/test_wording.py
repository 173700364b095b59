"""Messages name what Python was given: its arguments, and their values as they were."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cvc
from cvc._wording import in_python_words

PIXELS = np.zeros((4, 6, 3), np.uint8)


def convertto(**arguments):
    cvc.convertto(cvc.upload(PIXELS, "HWC"), np.float32, **arguments)


def convertto_into(**arguments):
    target = cvc.Tensor(PIXELS.shape, np.float32, "HWC")
    cvc.convertto_into(target, cvc.upload(PIXELS, "HWC"), **arguments)


def normalize(base=0, scale=1, **arguments):
    cvc.normalize(cvc.upload(PIXELS.astype(np.float32), "HWC"), base, scale, **arguments)


def preprocess(size=(2, 2), **arguments):
    cvc.preprocess(cvc.upload(PIXELS, "HWC"), size, **arguments)


def preprocess_normalize(base=0, scale=1, **arguments):
    preprocess(normalize=cvc.Normalize(base, scale, **arguments))


NUMBERS = {
    "inf": math.inf,
    "-inf": -math.inf,
    "nan": math.nan,
    "an integer of 1329 bits": 10**400,
    "an integer of 33216 bits": -(10**9999),
}
SINGLES = {**NUMBERS, "1e\\+300": 1e300, "3.5e\\+38": 3.5e38}


@pytest.mark.parametrize("shown, number", NUMBERS.items(), ids=NUMBERS)
def test_numbers_that_are_not_finite(shown, number):
    for call in (convertto, convertto_into):
        for name in ("scale", "offset"):
            with pytest.raises(cvc.InvalidArgumentError, match=f"^{name} is {shown}, "):
                call(**{name: number})
    for name in ("scale", "offset"):
        step = cvc.Convert(np.float32, **{name: number})
        with pytest.raises(cvc.InvalidArgumentError, match=f"^convert.{name} is {shown}, "):
            preprocess(convert=step)


@pytest.mark.parametrize("shown, number", SINGLES.items(), ids=SINGLES)
def test_numbers_that_are_not_finite_in_f32(shown, number):
    for call, prefix in ((normalize, ""), (preprocess_normalize, "normalize.")):
        for name in ("base", "scale"):
            with pytest.raises(cvc.Error, match=rf"^{prefix}{name}\[0\] is {shown}, "):
                call(**{name: number})
            with pytest.raises(cvc.Error, match=rf"^{prefix}{name}\[2\] is {shown}, "):
                call(**{name: [0, 0, number]})
        for name in ("globalscale", "globalshift", "epsilon"):
            with pytest.raises(cvc.Error, match=f"^{prefix}{name} is {shown}, "):
                call(**{name: number})


def test_the_largest_numbers_are_taken():
    normalize([float(np.finfo(np.float32).max)] * 3, globalshift=-3.4028235e38)
    convertto(scale=1.7e308, offset=10**308)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: cvc.upload(PIXELS, "HW"), "^layout is "),
        (lambda: cvc.Tensor((4, 6), np.uint8, "HWC"), "^layout is "),
        (lambda: cvc.Tensor((-4,), np.uint8), r"^shape\[0\] is -4"),
        (lambda: cvc.Tensor((4,), np.uint8, rowalign=3), "^rowalign is 3"),
        (lambda: cvc.Tensor((10**9999,), np.uint8), r"^shape\[0\] is an integer of 33216 bits"),
        (lambda: cvc.Image((4, 4), cvc.Format.U8, rowalign=3), "^rowalign is 3"),
        (lambda: cvc.Image((0, 4), cvc.Format.U8), "^width is 0"),
        (lambda: cvc.upload(PIXELS).reshape((7,)), r"^shape is \[7\]"),
        (lambda: normalize([1, 2]), r"^len\(base\) is 2"),
        (lambda: normalize(scale=[1, 2]), r"^len\(scale\) is 2"),
        (lambda: normalize(flags=64), "^flags is 0x40"),
        (lambda: normalize(flags=1, epsilon=-1), "^epsilon is -1.*NormalizeFlags.SCALE_IS_STDDEV$"),
        (lambda: normalize(dtype=np.complex64), "^dtype is C64"),
        (lambda: preprocess_normalize([1, 2]), r"^len\(normalize.base\) is 2"),
        (lambda: preprocess_normalize(dtype=np.complex64), "^normalize.dtype is C64"),
        (lambda: preprocess(convert=np.complex64), "^convert is C64"),
        (lambda: preprocess(crop=(0, 0, 9, 1)), r"^crop\[0\] is 9x1"),
        (lambda: preprocess(premultiply_alpha=True), "^premultiply_alpha is True"),
        (lambda: cvc.flip(cvc.upload(PIXELS, "HWC"), 10**9999), "^flipCode is an integer of"),
        (lambda: cvc.set_cache_limit_inbytes(10**9999), "^limit is an integer of 33216 bits"),
    ],
)
def test_names_of_arguments(call, message):
    with pytest.raises(cvc.Error, match=message):
        call()


@pytest.mark.skipif(cvc.backend() != "host", reason="wraps host memory")
def test_names_of_arguments_of_wraps():
    with pytest.raises(cvc.InvalidArgumentError, match="^layout is "):
        cvc.as_tensor(PIXELS, "HW")
    with pytest.raises(cvc.InvalidArgumentError, match=r"^strides\[1\] is -3"):
        cvc.as_tensor(PIXELS[:, ::-1], "HWC")
    with pytest.raises(cvc.MismatchError, match="^flipCode has dtype U8"):
        cvc.flip(cvc.as_images([PIXELS]), cvc.upload(PIXELS))


def test_other_words_stay():
    for message in ("src.data. is 3", "alphabet is 1", "the crop_counts", "database_values"):
        assert in_python_words(message) == message

"""The same steps with Pillow and NumPy, to compare the library's results with, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL
from PIL import Image

import cvc

# Per channel, of ImageNet: what most networks for photographs were trained with.
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
SCALE = 1 / 255

# Up to Pillow 12 the horizontal pass always came first.
PILLOW_12 = int(PIL.__version__.split(".")[0]) < 13

_FILTERS = {
    cvc.Interp.LINEAR: Image.Resampling.BILINEAR,
    cvc.Interp.LANCZOS: Image.Resampling.LANCZOS,
}


def expected(
    crop: np.ndarray[Any, Any], side: int, interp: cvc.Interp, flip_code: int
) -> np.ndarray[Any, Any]:
    """What the pipeline makes of a crop (height, width, 3): F32 of shape (3, side, side)."""
    resized = np.asarray(Image.fromarray(crop).resize((side, side), _FILTERS[interp]))
    rows = -1 if flip_code <= 0 else 1
    columns = -1 if flip_code != 0 else 1
    flipped = resized[::rows, ::columns]
    one, zero = np.float32(1), np.float32(0)
    converted = flipped.astype(np.float32) * np.float32(SCALE) + zero
    mean, deviation = np.float32(MEAN), np.float32(DEVIATION)
    inverse = one / np.sqrt(deviation * deviation + zero)
    normalized = (converted - mean) * inverse * one + zero
    return np.ascontiguousarray(normalized.transpose(2, 0, 1))


def differing(result: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> int:
    """How many values of two F32 arrays differ in any bit; all of them where the shapes differ."""
    if result.shape != wanted.shape or result.dtype != wanted.dtype:
        return wanted.size
    result = np.ascontiguousarray(result)
    return int(np.count_nonzero(result.view(np.uint32) != wanted.view(np.uint32)))


def as_picture(result: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A result (3, height, width) as RGB again, U8 of shape (height, width, 3)."""
    values = result.transpose(1, 2, 0) * np.float32(DEVIATION) + np.float32(MEAN)
    return np.clip(np.rint(values * 255), 0, 255).astype(np.uint8)


def versions() -> str:
    return f"Pillow {PIL.__version__} and NumPy {np.__version__}"

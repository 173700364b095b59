"""What is done with which frames: batches of whole frames, then of random crops."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import cvc

from . import DemoError
from .video import Clip

LARGEST_BATCH = 8
# Crop sizes are multiples of this many pixels: hundreds of shapes, each of which may come again.
CROP_STEP = 16
# Sides of the square results of whole frames and of crops. Smaller videos get smaller ones.
WHOLE_SIDE, CROP_SIDE = 224, 416
# The part of the limit that the streams may need together. What it leaves is less than what the
# first part's results take, so that some of them are evicted in the second.
USABLE = 0.9


@dataclass(frozen=True)
class Batch:
    """Crops of one size out of several frames, and what becomes of them."""

    number: int
    frames: tuple[int, ...]
    corners: tuple[tuple[int, int], ...]
    """The left upper corner (x, y) of each crop."""
    width: int
    height: int
    side: int
    """Each crop becomes a square of this many pixels."""
    interp: cvc.Interp
    flip_code: int
    sampled: int | None = None
    """The position in the batch of the one that is checked against Pillow and NumPy."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The input's shape, NHWC."""
        return (len(self.frames), self.height, self.width, 3)

    @property
    def bytes(self) -> int:
        """The bytes of the input."""
        return len(self.frames) * self.height * self.width * 3


@dataclass(frozen=True)
class Sizes:
    """The batch size and the sides of the results that suit a video and a retention limit."""

    batch: int
    whole_side: int
    crop_side: int


def sizes_for(clip: Clip, limit: int, streams: int) -> Sizes:
    """Sizes at which what the streams need at once stays below the limit.

    Raises:
        DemoError: not even single frames do.
    """
    shorter = min(clip.width, clip.height)
    crop_side = min(CROP_SIDE, shorter * 26 // 45)
    whole_side = crop_side * WHOLE_SIDE // CROP_SIDE
    # The input, in whose place the flipped picture comes, the resized one and three of floats.
    per_frame = clip.width * clip.height * 3 + crop_side**2 * 3 * (1 + 3 * 4)
    batch = min(LARGEST_BATCH, int(limit * USABLE) // (streams * per_frame))
    if batch < 1:
        raise DemoError(
            f"a limit of {limit >> 20} MiB is too small for {streams} streams with frames of "
            f"{clip.width}x{clip.height}"
        )
    return Sizes(batch, whole_side, crop_side)


def whole_frames(clip: Clip, sizes: Sizes) -> Iterator[Batch]:
    """Every frame of the clip once, one checked in each batch."""
    for number, first in enumerate(range(0, len(clip), sizes.batch)):
        frames = tuple(range(first, min(first + sizes.batch, len(clip))))
        yield Batch(
            number=number,
            frames=frames,
            corners=((0, 0),) * len(frames),
            width=clip.width,
            height=clip.height,
            side=sizes.whole_side,
            interp=cvc.Interp.LANCZOS,
            flip_code=1,
            sampled=number % len(frames),
        )


def random_crops(
    clip: Clip, sizes: Sizes, count: int, seed: int, sample_every: int
) -> Iterator[Batch]:
    """`count` frames, the clip again and again, each batch cropped to a size of its own.

    The same for the same seed; one crop of every `sample_every`-th batch is checked.
    """
    source = random.Random(seed)
    # More pixels than the result has: no batch then takes memory that a result needs.
    smallest = sizes.crop_side + 1
    widths = _lengths(smallest, clip.width)
    heights = _lengths(smallest, clip.height)
    for number, first in enumerate(range(0, count, sizes.batch)):
        amount = min(sizes.batch, count - first)
        width, height = source.choice(widths), source.choice(heights)
        corners = tuple(
            (source.randint(0, clip.width - width), source.randint(0, clip.height - height))
            for _ in range(amount)
        )
        flip_code = source.choice((0, 1, -1))
        sampled = source.randrange(amount)
        yield Batch(
            number=number,
            frames=tuple((first + i) % len(clip) for i in range(amount)),
            corners=corners,
            width=width,
            height=height,
            side=sizes.crop_side,
            interp=cvc.Interp.LINEAR,
            flip_code=flip_code,
            sampled=sampled if number % sample_every == 0 else None,
        )


def _lengths(smallest: int, largest: int) -> list[int]:
    first = -(-smallest // CROP_STEP) * CROP_STEP
    return list(range(first, largest + 1, CROP_STEP)) or [largest]

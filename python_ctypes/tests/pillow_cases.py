"""Random resize cases, the same for the same seed, to compare pillow_resize with Pillow itself.

Pillow lets sums of mode I overflow, where libcvc clips: keep s32 pixels within 2**28 of zero.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

FILTERS = ("nearest", "linear", "cubic", "lanczos", "hamming", "box")

# Pillow's mode for each element type that both resize with the same arithmetic, channel by channel.
MODES = {"u8": "L", "u16": "I;16", "s32": "I", "f32": "F"}

SMALL_PRIMES = (
    2,
    3,
    5,
    7,
    11,
    13,
    17,
    19,
    23,
    29,
    31,
    37,
    41,
    43,
    47,
    53,
    59,
    61,
    67,
    71,
    73,
    79,
    83,
    89,
    97,
    101,
)


@dataclass(frozen=True)
class PillowCase:
    """One resize: element type, channels, sizes as (width, height), filter, seed of the pixels."""

    dtype: str
    channels: int
    in_size: tuple[int, int]
    out_size: tuple[int, int]
    filter: str
    pixel_seed: int

    @property
    def mode(self) -> str:
        """Pillow's mode of one channel."""
        return MODES[self.dtype]


def _length(source: random.Random, largest: int) -> int:
    """A size that finds mistakes: tiny, prime, about a power of two, else any, often small."""
    kind = source.randrange(8)
    if kind == 0:
        return source.randint(1, min(4, largest))
    if kind == 1:
        return min(source.choice(SMALL_PRIMES), largest)
    if kind == 2:
        return max(1, min((1 << source.randint(1, 9)) + source.randint(-1, 1), largest))
    if kind == 3:
        return source.randint(1, largest)
    return source.randint(1, max(1, largest // 4))


def _around_boundary(
    source: random.Random, in_size: tuple[int, int], largest: int
) -> tuple[int, int]:
    """An output size at which Pillow 13 only just does, or does not do, the vertical pass first."""
    in_width, in_height = in_size
    out_width = source.randint(max(1, in_width - (in_height - 1) // 2), in_width)
    out_height = in_height - 2 * (in_width - out_width) + source.randint(-1, 1)
    return out_width, max(1, min(out_height, largest))


def pillow_cases(
    seed: int,
    count: int,
    *,
    dtypes: tuple[str, ...] = ("u8", "u16", "s32", "f32"),
    filters: tuple[str, ...] = FILTERS,
    largest: int = 300,
) -> Iterator[PillowCase]:
    """Yields `count` cases. Sizes are 1 to `largest`; a tenth of them keep one axis as it is."""
    source = random.Random(seed)
    for _ in range(count):
        in_size = (_length(source, largest), _length(source, largest))
        out_size = (_length(source, largest), _length(source, largest))
        change = source.randrange(10)
        if change == 0:
            kept = source.randrange(2)
            out_size = (in_size[0], out_size[1]) if kept == 0 else (out_size[0], in_size[1])
        elif change <= 2:
            out_size = _around_boundary(source, in_size, largest)
        dtype = source.choice(dtypes)
        yield PillowCase(
            dtype=dtype,
            channels=source.randint(1, 4),
            in_size=in_size,
            out_size=out_size,
            filter=source.choice(filters),
            pixel_seed=source.getrandbits(32),
        )

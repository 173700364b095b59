"""Draws the demo's two pictures with Pillow: memory over frames, and a contact sheet of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from .pipeline import History
from .plan import Batch
from .video import Clip

MIB = 1 << 20

PAPER, INK, FAINT, GRID = "#ffffff", "#22272e", "#6b7480", "#e6e9ed"
ACCOUNTS = {"live": "#2f6fb0", "pending": "#f0a13c", "idle": "#a9cdea", "unindexed": "#7d5ba6"}
LIMIT, RESIDENT, TOLERANCE = "#d13438", "#22272e", "#dff0df"
# Drawn larger and scaled down, which smooths the lines.
SCALE = 2


class Canvas:
    """A drawing in points, each of SCALE pixels."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._image = Image.new("RGB", (width * SCALE, height * SCALE), PAPER)
        self._draw = ImageDraw.Draw(self._image)

    def text(
        self, x: float, y: float, text: str, size: int = 13, colour: str = INK, anchor: str = "la"
    ) -> None:
        font = ImageFont.load_default(size * SCALE)
        self._draw.text((x * SCALE, y * SCALE), text, fill=colour, font=font, anchor=anchor)

    def text_width(self, text: str, size: int = 13) -> float:
        return ImageFont.load_default(size * SCALE).getlength(text) / SCALE

    def line(self, points: Any, colour: str, width: float = 1.0) -> None:
        scaled = [(x * SCALE, y * SCALE) for x, y in points]
        self._draw.line(scaled, fill=colour, width=max(1, round(width * SCALE)), joint="curve")

    def dashes(self, x0: float, x1: float, y: float, colour: str, width: float = 1.5) -> None:
        x = x0
        while x < x1:
            self.line([(x, y), (min(x + 8, x1), y)], colour, width)
            x += 13

    def polygon(self, points: Any, colour: str) -> None:
        self._draw.polygon([(x * SCALE, y * SCALE) for x, y in points], fill=colour)

    def box(self, x0: float, y0: float, x1: float, y1: float, colour: str) -> None:
        self._draw.rectangle([x0 * SCALE, y0 * SCALE, x1 * SCALE, y1 * SCALE], fill=colour)

    def outline(self, x0: float, y0: float, x1: float, y1: float, colour: str, width: int) -> None:
        corners = [x0 * SCALE, y0 * SCALE, x1 * SCALE, y1 * SCALE]
        self._draw.rectangle(corners, outline=colour, width=width * SCALE)

    def dot(self, x: float, y: float, radius: float, colour: str) -> None:
        corners = [(c + r) * SCALE for r in (-radius, radius) for c in (x, y)]
        self._draw.ellipse(corners, fill=colour, outline=PAPER, width=SCALE)

    def picture(self, x: float, y: float, image: Image.Image, size: tuple[int, int]) -> None:
        pixels = (size[0] * SCALE, size[1] * SCALE)
        self._image.paste(
            image.resize(pixels, Image.Resampling.LANCZOS), (round(x * SCALE), round(y * SCALE))
        )

    def save(self, path: Path) -> None:
        small = self._image.resize((self.width, self.height), Image.Resampling.BOX)
        small.save(path, optimize=True)


# --- memory over frames --------------------------------------------------------------------------


class _Axes:
    """One plot's frame: where a value stands on the canvas, grid lines and labels."""

    def __init__(
        self,
        canvas: Canvas,
        place: tuple[float, float, float, float],
        frames: int,
        lowest: float,
        highest: float,
    ) -> None:
        self.canvas = canvas
        self.left, self.top, self.right, self.bottom = place
        self.frames, self.lowest, self.highest = frames, lowest, highest

    def x(self, frame: float) -> float:
        return self.left + (self.right - self.left) * frame / self.frames

    def y(self, mebibytes: float) -> float:
        part = (mebibytes - self.lowest) / (self.highest - self.lowest)
        return self.bottom - (self.bottom - self.top) * part

    def grid(self, title: str) -> None:
        step = _round_step((self.highest - self.lowest) / 5)
        value = np.ceil(self.lowest / step) * step
        while value <= self.highest + 1e-9:
            y = self.y(value)
            self.canvas.line([(self.left, y), (self.right, y)], GRID)
            self.canvas.text(self.left - 8, y, f"{value:g}", 12, FAINT, "rm")
            value += step
        self.canvas.text(self.left, self.top - 12, title, 14, INK, "ls")

    def frame_labels(self) -> None:
        step = _round_step(max(self.frames / 8, 1))
        for frame in np.arange(0, self.frames + 1, step):
            x = self.x(frame)
            self.canvas.line([(x, self.bottom), (x, self.bottom + 4)], FAINT)
            self.canvas.text(x, self.bottom + 8, f"{frame:g}", 12, FAINT, "ma")
        self.canvas.text(self.right, self.bottom + 26, "frames", 12, FAINT, "ra")

    def curve(self, frames: Any, mebibytes: Any) -> list[tuple[float, float]]:
        return [(self.x(f), self.y(v)) for f, v in zip(frames.tolist(), mebibytes.tolist())]


def _round_step(about: float) -> float:
    """The next of 1, 2, 5, 10, 20, … that is not below `about`."""
    power = 10.0 ** np.floor(np.log10(max(about, 1e-9)))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= about - 1e-12)


def memory_chart(
    path: Path,
    history: History,
    limit: int,
    crops_begin: int,
    measured_from: int | None,
    tolerance: int,
    subtitle: str,
) -> None:
    """Bytes by account under the retention limit, and the process's resident memory.

    Args:
        limit: the retention limit in bytes.
        crops_begin: the frame with which the part of varying shapes begins.
        measured_from: the frame whose resident memory later ones are compared with, if there is
            one, and by how many bytes (`tolerance`) these may pass it.
    """
    canvas = Canvas(1240, 800)
    canvas.text(40, 24, "Memory while the video passes through libcvc", 24)
    canvas.text(40, 58, subtitle, 14, FAINT)
    frames = history["frames"]
    total = int(frames[-1])

    top = max(limit, int((history["retained"] + history["unindexed"]).max()))
    axes = _Axes(canvas, (80, 142, 1200, 470), total, 0, top / MIB * 1.2)
    axes.grid("Bytes of the cache by account, MiB")
    _accounts(axes, history)
    y = axes.y(limit / MIB)
    canvas.dashes(axes.left, axes.right, y, LIMIT, 2)
    canvas.text(axes.right, y - 6, f"retention limit {limit / MIB:.0f} MiB", 13, LIMIT, "rs")
    _parts(axes, crops_begin, "random crops, after the whole frames")
    _legend(canvas, axes.right, axes.top - 12, [n for n in ACCOUNTS if history[n].any()])

    resident = history["resident"] / MIB
    span = max(float(resident.max() - resident.min()), 16.0)
    lowest, highest = float(resident.min()) - 0.12 * span, float(resident.max()) + 0.2 * span
    axes = _Axes(canvas, (80, 540, 1200, 740), total, lowest, highest)
    axes.grid("Resident memory of the process, MiB")
    if measured_from is not None:
        row = int(np.searchsorted(frames, crops_begin + measured_from))
        x, base = axes.x(int(frames[row])), float(resident[row])
        high = axes.y(base + tolerance / MIB)
        canvas.box(x, min(high, axes.y(base) - 2), axes.right, axes.y(base), TOLERANCE)
    canvas.line(axes.curve(frames, resident), RESIDENT, 1.8)
    if measured_from is not None:
        canvas.dot(x, axes.y(base), 4.5, LIMIT)
        label = f"{base:.1f} MiB at frame {measured_from} of the crops; at most "
        label += f"{tolerance / MIB:.0f} MiB more allowed in the last 1000"
        canvas.text(x + 4, axes.y(base) - 12, label, 13, INK, "ls")
    _parts(axes, crops_begin)
    axes.frame_labels()
    canvas.save(path)


def _accounts(axes: _Axes, history: History) -> None:
    frames = history["frames"]
    below = np.zeros(len(frames))
    for name, colour in ACCOUNTS.items():
        above = below + history[name] / MIB
        if history[name].any():
            outline = axes.curve(frames, above) + axes.curve(frames, below)[::-1]
            axes.canvas.polygon(outline, colour)
        below = above


def _parts(axes: _Axes, crops_begin: int, label: str = "") -> None:
    canvas, x = axes.canvas, axes.x(crops_begin)
    canvas.line([(x, axes.top), (x, axes.bottom)], FAINT)
    canvas.line([(axes.left, axes.bottom), (axes.right, axes.bottom)], FAINT)
    canvas.text(x + 8, axes.top + 28, label, 12, FAINT, "ls")


def _legend(canvas: Canvas, right: float, y: float, names: Sequence[str]) -> None:
    x = right
    for name in reversed(names):
        x -= canvas.text_width(name)
        canvas.text(x, y, name, 13, INK, "ls")
        x -= 18
        canvas.box(x, y - 10, x + 11, y + 1, ACCOUNTS[name])
        x -= 20


# --- the contact sheet ---------------------------------------------------------------------------

_THUMB_HEIGHT, _GAP, _MARGIN, _COLUMNS, _TITLE = 150, 8, 32, 3, 96


def contact_sheet(
    path: Path,
    clip: Clip,
    shown: Sequence[tuple[Batch, np.ndarray[Any, Any]]],
    subtitle: str,
    describe: Callable[[Batch], str],
) -> None:
    """Pairs of a frame, with its crop marked, and what the pipeline made of the crop."""
    thumb_width = min(300, max(100, round(_THUMB_HEIGHT * clip.width / clip.height)))
    tile_width = thumb_width + _GAP + _THUMB_HEIGHT
    tile_height = _THUMB_HEIGHT + 38
    rows = -(-len(shown) // _COLUMNS)
    width = 2 * _MARGIN + _COLUMNS * tile_width + (_COLUMNS - 1) * _MARGIN
    canvas = Canvas(width, _TITLE + rows * tile_height + _MARGIN // 2)
    canvas.text(_MARGIN, 22, "Frames, and what the pipeline made of them", 24)
    canvas.text(_MARGIN, 56, subtitle, 14, FAINT)
    for index, (batch, result) in enumerate(shown):
        x = _MARGIN + index % _COLUMNS * (tile_width + _MARGIN)
        y = _TITLE + index // _COLUMNS * tile_height
        _tile(canvas, x, y, thumb_width, clip, batch, result)
        canvas.text(x, y + _THUMB_HEIGHT + 6, describe(batch), 12, FAINT)
    canvas.save(path)


def _tile(
    canvas: Canvas,
    x: float,
    y: float,
    thumb_width: int,
    clip: Clip,
    batch: Batch,
    result: np.ndarray[Any, Any],
) -> None:
    position = batch.sampled or 0
    left, top = batch.corners[position]
    right, bottom = left + batch.width, top + batch.height
    frame = clip.frames[batch.frames[position]]
    dimmed = frame // 3 + 120
    dimmed[top:bottom, left:right] = frame[top:bottom, left:right]
    canvas.picture(x, y, Image.fromarray(dimmed), (thumb_width, _THUMB_HEIGHT))
    across, down = thumb_width / clip.width, _THUMB_HEIGHT / clip.height
    canvas.outline(
        x + left * across,
        y + top * down,
        x + right * across - 1 / SCALE,
        y + bottom * down - 1 / SCALE,
        LIMIT,
        1,
    )
    square = (_THUMB_HEIGHT, _THUMB_HEIGHT)
    canvas.picture(x + thumb_width + _GAP, y, Image.fromarray(result), square)

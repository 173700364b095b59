"""Lines, a progress bar and a table, on a terminal or in a file."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from typing import TextIO

_REDRAW_SECONDS = 0.1
_BAR_WIDTH = 30
# How often a line tells the progress where there is no terminal.
_QUIET_STEPS = 4


class Terminal:
    """Writes to one stream; a bar under way gives way to every other line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._is_terminal = self._stream.isatty()
        self._bar_drawn = False
        self._last_drawn = 0.0
        self._started = 0.0
        self._quiet_step = 0
        encoding = (getattr(self._stream, "encoding", None) or "ascii").lower()
        self._unicode = encoding.replace("-", "") == "utf8"
        self._colour = self._is_terminal and "NO_COLOR" not in os.environ

    def say(self, line: str = "") -> None:
        self.clear_bar()
        print(line, file=self._stream, flush=True)

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour else text

    def bold(self, text: str) -> str:
        return self._paint(text, "1")

    def verdict(self, good: bool | None) -> str:
        """The word that a check begins with; None stands for one that was left out."""
        if good is None:
            return self._paint("--", "2")
        return self._paint("ok", "32") if good else self._paint("FAILED", "31;1")

    # --- the bar ---------------------------------------------------------------------------------

    def start_bar(self) -> None:
        self._started = time.monotonic()
        self._last_drawn = 0.0
        self._quiet_step = 0

    def bar(self, label: str, done: int, total: int, note: str = "") -> None:
        """Show how far the work is: a bar, or, where there is no terminal, a line now and then."""
        total = max(total, done, 1)
        if not self._is_terminal:
            step = done * _QUIET_STEPS // total
            if step > self._quiet_step:
                self._quiet_step = step
                suffix = f", {note}" if note else ""
                print(f"{label}: {done} of {total}{suffix}", file=self._stream, flush=True)
            return
        now = time.monotonic()
        if now - self._last_drawn < _REDRAW_SECONDS and done < total:
            return
        self._last_drawn = now
        eighths = _BAR_WIDTH * 8 * done // total
        if self._unicode:
            bar = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
            bar = f"▕{bar:<{_BAR_WIDTH}}▏"
        else:
            bar = f"[{'#' * (eighths // 8):<{_BAR_WIDTH}}]"
        left = (now - self._started) * (total - done) / max(done, 1)
        ending = f"  {left // 60:.0f}:{left % 60:02.0f} left" if done < total else ""
        separator = f"  {note}" if note else ""
        line = f"{label:<15} {bar} {done:>5}/{total}{separator}{ending}"
        columns = shutil.get_terminal_size().columns
        self._bar_drawn = True  # first, since Ctrl-C may come between any two lines
        self._stream.write(f"\r{line[: columns - 1]}\x1b[K")
        self._stream.flush()

    def clear_bar(self) -> None:
        if self._bar_drawn:
            self._stream.write("\r\x1b[K")
            self._bar_drawn = False

    # --- the table -------------------------------------------------------------------------------

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns of figures, right-aligned under their headings; the first column is of words.

        A row of one cell is a heading within the table.
        """
        widths = [
            max(len(row[column]) for row in [headings, *rows] if column < len(row))
            for column in range(len(headings))
        ]
        rule = ("─" if self._unicode else "-") * (sum(widths) + 3 * (len(widths) - 1))
        self.say(self.bold(_row(headings, widths)))
        self.say(rule)
        for row in rows:
            self.say(self.bold(row[0]) if len(row) == 1 else _row(row, widths))
        self.say(rule)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = cells
    aligned = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:])]
    return "   ".join([f"{first:<{widths[0]}}", *aligned])

"""The demo from start to end: frames, two parts of work, the table, the checks, the pictures."""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import cvc

from . import DemoError, charts, verify, video
from .pipeline import Checker, History, Part, Run
from .plan import Batch, Sizes, random_crops, sizes_for, whole_frames
from .terminal import Terminal
from .video import Clip

MIB = 1 << 20
# Resident memory of the last frames may pass that at one early frame by this much.
EARLY_FRAME, LAST_FRAMES, TOLERANCE = 300, 1000, 2 * MIB
SAMPLE_EVERY = 8
WHOLE_PICTURES, CROP_PICTURES = 3, 12


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    """Run the demo with the command line's options. Returns the exit status."""
    _check_writable(options.out)
    limit = options.limit_mib * MIB
    terminal.say(
        f"libcvc {cvc.__version__} on the {cvc.backend()} backend, {os.cpu_count()} processors; "
        f"the cache may retain {options.limit_mib} MiB"
    )
    clip = _clip(options, terminal)
    sizes = sizes_for(clip, limit, options.streams)
    terminal.say(
        f"{clip.title}: {len(clip)} frames of {clip.width}x{clip.height}; batches of "
        f"{sizes.batch} on {options.streams} streams"
    )
    cvc.set_cache_limit_inbytes(limit)
    cvc.clear_cache()
    parts, history, checker = _work(options, terminal, clip, sizes)
    _report(terminal, parts, limit)
    good = _checks(terminal, parts, history, checker, limit)
    _pictures(options.out, parts, history, checker, clip, sizes, limit)
    terminal.say(f"pictures: {_shown(options.out / 'contact_sheet.png')}")
    terminal.say(f"          {_shown(options.out / 'memory.png')}")
    return 0 if good else 1


def _shown(path: Path) -> str:
    """A path, relative to the working directory where it lies inside."""
    with suppress(ValueError):
        return str(path.resolve().relative_to(Path.cwd()))
    return str(path)


def _check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DemoError(f"cannot write to {folder}: {error.strerror}") from error


def _clip(options: argparse.Namespace, terminal: Terminal) -> Clip:
    terminal.start_bar()
    progress = partial(terminal.bar, "decoding")
    if options.video is not None:
        try:
            return video.decode(options.video, progress)
        except video.Unavailable as error:
            raise DemoError(f"cannot read the video {options.video}: {error}") from error
    reason = "as asked"
    if not options.generated:
        try:
            return video.decode(video.fetch(options.media, terminal.say), progress)
        except video.Unavailable as error:
            reason = f"the test video cannot be had: {' '.join(str(error).split())}"
    terminal.say(f"running on generated frames ({reason})")
    return video.generate()


def _work(
    options: argparse.Namespace, terminal: Terminal, clip: Clip, sizes: Sizes
) -> tuple[list[Part], History, Checker]:
    whole = list(whole_frames(clip, sizes))
    crops = list(random_crops(clip, sizes, options.frames, options.seed, SAMPLE_EVERY))
    history = History(len(whole) + len(crops))
    checker = Checker(clip, WHOLE_PICTURES + CROP_PICTURES, sizes.crop_side)
    work = Run(clip, options.streams, sizes.batch, history, checker)

    def part(name: str, batches: list[Batch], pictures: int) -> Part:
        sampled = [batch.number for batch in batches if batch.sampled is not None]
        checker.want_pictures(_evenly(sampled, pictures))
        frames = sum(len(batch.frames) for batch in batches)

        def progress(part: Part) -> None:
            note = f"{part.frames / part.seconds:.0f}/s, cache {part.after.bytes / MIB:.0f} MiB"
            terminal.bar(name, part.frames, frames, note)

        terminal.say(f"{name}: {frames} frames, {len({b.shape for b in batches})} shapes")
        terminal.start_bar()
        return work.part(name, batches, progress)

    try:
        parts = [
            part("whole frames", whole, WHOLE_PICTURES),
            part("random crops", crops, CROP_PICTURES),
        ]
    except KeyboardInterrupt:
        # Another one must not cut the end short: queued work reads memory of this process.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise
    finally:
        work.end()
    terminal.clear_bar()
    return parts, history, checker


def _evenly(numbers: list[int], wanted: int) -> list[int]:
    """`wanted` of the numbers, evenly spaced; all of them where there are not that many."""
    wanted = min(len(numbers), wanted)
    return [numbers[index * len(numbers) // wanted] for index in range(wanted)]


# --- what is reported ----------------------------------------------------------------------------


def _report(terminal: Terminal, parts: list[Part], limit: int) -> None:
    def numbers(name: str) -> list[str]:
        return [f"{part.counted(name):,}" for part in parts]

    def mebibytes(values: list[int]) -> list[str]:
        return [f"{value / MIB:,.1f} MiB" for value in values]

    def account(*names: str) -> list[str]:
        return mebibytes([sum(getattr(part.after, name) for name in names) for part in parts])

    rows = [
        ["frames", *(f"{part.frames:,}" for part in parts)],
        ["frames a second", *(f"{part.frames / part.seconds:,.0f}" for part in parts)],
        ["input shapes", *(f"{len(part.shapes):,}" for part in parts)],
        ["  one block for each would take", *mebibytes([sum(p.shapes.values()) for p in parts])],
        ["Requests to the cache"],
        ["  hits, exact", *numbers("hits_exact")],
        ["  hits, fit", *numbers("hits_fit")],
        ["    of both: still pending", *numbers("hits_pending")],
        ["  misses", *numbers("misses")],
        ["  evictions", *numbers("evictions")],
        ["Bytes at the end"],
        ["  live", *mebibytes([p.after.live_bytes - p.after.unindexed_bytes for p in parts])],
        ["  idle", *account("idle_bytes")],
        ["  pending", *account("pending_bytes")],
        ["  unindexed", *account("unindexed_bytes")],
        ["  retained (live, idle, pending)", *account("bytes")],
        ["  retained, peak", *account("peak_bytes")],
        ["  retention limit", *mebibytes([limit] * len(parts))],
        ["  free in the pool", *account("free_bytes")],
        ["  taken from the driver", *account("driver_bytes")],
        ["  resident memory of the process", *mebibytes([part.resident for part in parts])],
    ]
    terminal.say()
    terminal.table(["", *(part.name for part in parts)], rows)


def _checks(
    terminal: Terminal, parts: list[Part], history: History, checker: Checker, limit: int
) -> bool:
    """Print each check with its verdict. Returns whether none failed."""
    whole, crops = parts
    peak = max(crops.after.peak_bytes, int(history["retained"].max()))
    verdicts = [
        (
            checker.frames > 0 and checker.differing == 0,
            f"{checker.frames} sampled frames against {verify.versions()}: {checker.differing:,} "
            f"of {checker.values:,} values differ",
        ),
        (peak <= limit, f"retained bytes: at most {peak / MIB:.1f} of {limit / MIB:.0f} MiB"),
        _resident_check(history, whole.frames, crops.frames),
    ]
    for good, text in verdicts:
        terminal.say(f"{terminal.verdict(good)}  {text}")
    return all(good is not False for good, _ in verdicts)


def _resident_check(history: History, before: int, crops: int) -> tuple[bool | None, str]:
    if not _is_long(crops):
        return None, f"resident memory: not judged below {EARLY_FRAME + LAST_FRAMES} crops"
    frames = history["frames"] - before
    early = int(history["resident"][frames >= EARLY_FRAME][0])
    late = int(history["resident"][frames > crops - LAST_FRAMES].max())
    return late - early <= TOLERANCE, (
        f"resident memory: {early / MIB:.1f} MiB at crop {EARLY_FRAME}, at most "
        f"{late / MIB:.1f} MiB in the last {LAST_FRAMES}: {(late - early) / MIB:+.1f} MiB, "
        f"{TOLERANCE / MIB:.0f} allowed"
    )


def _is_long(crops: int) -> bool:
    """Whether the last frames begin after the early one."""
    return crops >= EARLY_FRAME + LAST_FRAMES


def _pictures(
    out: Path,
    parts: list[Part],
    history: History,
    checker: Checker,
    clip: Clip,
    sizes: Sizes,
    limit: int,
) -> None:
    whole, crops = parts
    work = f"{clip.title}, {cvc.backend()} backend"
    shapes = len(whole.shapes) + len(crops.shapes)
    try:
        charts.memory_chart(
            out / "memory.png",
            history,
            limit,
            whole.frames,
            EARLY_FRAME if _is_long(crops.frames) else None,
            TOLERANCE,
            f"{work}: {whole.frames + crops.frames:,} frames in batches of up to {sizes.batch}, "
            f"{shapes} input shapes",
        )
        charts.contact_sheet(
            out / "contact_sheet.png",
            clip,
            checker.shown,
            f"{work}: pillowresize, flip, convertto, normalize, reformat; shown after undoing "
            "normalize",
            _description,
        )
    except OSError as error:
        raise DemoError(f"cannot write to {out}: {error.strerror or error}") from error


def _description(batch: Batch) -> str:
    position = batch.sampled or 0
    flip = {0: "upside down", 1: "mirrored", -1: "turned round"}[batch.flip_code]
    name = batch.interp.name.lower()
    return (
        f"frame {batch.frames[position]}: {batch.width}x{batch.height} to {batch.side}x"
        f"{batch.side}, {name}, {flip}"
    )

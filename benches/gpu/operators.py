"""Times libcvc's operators on the GPU beside the rivals that this machine has, in one run.

    python operators.py [NAME ...]      only rows whose name contains one of these

Every result is checked before it is timed. Each row is the median of 30 runs, queued behind a
spinning kernel so that no time of the CPU is in them; buffers are taken in turn from two sets that
together exceed the L2 cache. "copy" is a device-to-device copy of as many bytes, timed in the same
run: "of copy" 1.00 means as fast as memory allows.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import cvc
import numpy as np
import torch

try:
    import cvcuda
except ImportError:
    cvcuda = None
try:
    from torchvision.transforms.v2 import functional as torchvision
except ImportError:
    torchvision = None

FRAMES, HEIGHT, WIDTH = 32, 1080, 1920
RUNS = 30
MEAN, SCALE = (123.675, 116.28, 103.53), (0.0171, 0.0175, 0.0174)

stream = cvc.Stream()
torch_stream = torch.cuda.ExternalStream(stream.handle)
wanted = sys.argv[1:]
random = np.random.default_rng(1)


def median_microseconds(work: Callable[[int], Any], runs: int = RUNS) -> float:
    """GPU time of one call of `work`, which is given the number of its run."""
    with torch.cuda.stream(torch_stream):
        for i in range(4):
            work(i)
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2 * runs)]
        torch.cuda._sleep(20_000_000)
        for i in range(runs):
            events[2 * i].record()
            work(i)
            events[2 * i + 1].record()
        torch.cuda.synchronize()
    return statistics.median(
        1000 * events[2 * i].elapsed_time(events[2 * i + 1]) for i in range(runs)
    )


def copy_microseconds(moved: int) -> float:
    """A copy that reads and writes `moved` bytes together."""
    half = max(moved // 2, 1)
    sources = [torch.empty(half, dtype=torch.uint8, device="cuda").random_() for _ in range(2)]
    targets = [torch.empty_like(sources[0]) for _ in range(2)]
    return median_microseconds(lambda i: targets[i % 2].copy_(sources[i % 2]))


_copies: dict[int, float] = {}


def row(
    name: str,
    moved: int,
    ours: Callable[[int], Any],
    rivals: dict[str, Callable[[int], Any] | None],
    check: Callable[[], None],
    limit: float | None = None,
) -> None:
    """Print one line. `limit`: the microseconds to reach; None: 0.97 of the copy."""
    if wanted and not any(part in name for part in wanted):
        return
    ours(0)
    check()
    if moved not in _copies:
        _copies[moved] = copy_microseconds(moved)
    copy = _copies[moved]
    own = median_microseconds(ours)
    reached = own <= limit if limit else copy / own >= 0.97
    line = f"{name:34} {own:8.1f} us {moved / own / 1e6:6.3f} TB/s {copy / own:6.3f} of copy"
    for rival, work in rivals.items():
        if work is None:
            continue
        try:
            theirs = median_microseconds(work)
        except Exception as error:  # a rival that refuses the work is no reason to stop
            line += f"  {rival}: {type(error).__name__}"
            continue
        line += f"  {rival} {theirs:8.1f} us ({theirs / own:5.2f}x)"
    target = f"{limit:g} us" if limit else "0.97"
    print(line + ("" if reached else f"  short of {target}"), flush=True)


def tensors(shape: tuple[int, ...], dtype: Any, layout: str) -> list[cvc.Tensor]:
    return [cvc.Tensor(shape, dtype, layout) for _ in range(2)]


def view(tensor: cvc.Tensor) -> torch.Tensor:
    """The same memory, as torch sees it."""
    return torch.as_tensor(tensor.cuda(), device="cuda")


def filled(shape: tuple[int, ...], dtype: Any, layout: str) -> list[cvc.Tensor]:
    made = tensors(shape, dtype, layout)
    for tensor in made:
        seen = view(tensor)
        if seen.dtype == torch.uint8:
            seen.random_(0, 256)
        else:
            seen.uniform_(0, 255)
    torch.cuda.synchronize()
    return made


def as_rival(tensor: cvc.Tensor, layout: str) -> Any:
    return cvcuda.as_tensor(view(tensor), layout) if cvcuda else None


def equal(ours: torch.Tensor, expected: torch.Tensor | np.ndarray) -> None:
    stream.sync()
    torch.cuda.synchronize()
    if isinstance(expected, np.ndarray):
        expected = torch.from_numpy(expected).cuda()
    different = int((ours != expected).sum())
    if different:
        raise AssertionError(f"{different} values differ from what is expected")


def main() -> None:
    device = torch.cuda.get_device_properties(0)
    rivals = [
        f"{module.__name__.split('.')[0]} {getattr(module, '__version__', '')}"
        for module in (cvcuda,)
        if module
    ]
    if torchvision:
        import torchvision as package

        rivals.append(f"torchvision {package.__version__}")
    print(f"{device.name}, torch {torch.__version__}; rivals: {', '.join(rivals) or 'none here'}")
    shape = (FRAMES, HEIGHT, WIDTH, 3)
    count = FRAMES * HEIGHT * WIDTH * 3
    rival_stream = cvcuda.as_stream(torch_stream) if cvcuda else None
    bytes_in, bytes_out = filled(shape, np.uint8, "NHWC"), tensors(shape, np.uint8, "NHWC")
    floats_in, floats_out = filled(shape, np.float32, "NHWC"), tensors(shape, np.float32, "NHWC")
    planes8 = tensors((FRAMES, 3, HEIGHT, WIDTH), np.uint8, "NCHW")
    planes32 = tensors((FRAMES, 3, HEIGHT, WIDTH), np.float32, "NCHW")
    size = {"u8": 1, "f32": 4}
    theirs = {
        id(tensor): as_rival(tensor, layout)
        for group, layout in (
            (bytes_in, "NHWC"),
            (bytes_out, "NHWC"),
            (floats_in, "NHWC"),
            (floats_out, "NHWC"),
            (planes8, "NCHW"),
            (planes32, "NCHW"),
        )
        for tensor in group
    }

    def rival(function: str, target: Any, source: Any, *arguments: Any, **named: Any) -> Any:
        if cvcuda is None:
            return None
        call = getattr(cvcuda, function)
        return lambda i: call(
            theirs[id(target[i % 2])],
            theirs[id(source[i % 2])],
            *arguments,
            stream=rival_stream,
            **named,
        )

    for label, source, target in (("u8", bytes_in, bytes_out), ("f32", floats_in, floats_out)):
        for axis, code, dims in (("x", 1, (2,)), ("y", 0, (1,)), ("both", -1, (1, 2))):
            permuted = view(source[0]).permute(0, 3, 1, 2)
            row(
                f"flip {label} {axis}",
                2 * count * size[label],
                lambda i, s=source, t=target, c=code: cvc.flip_into(
                    t[i % 2], s[i % 2], c, stream=stream
                ),
                {
                    "cvcuda": rival("flip_into", target, source, code),
                    "torchvision": (lambda i, p=permuted: torchvision.horizontal_flip(p))
                    if torchvision and code == 1
                    else None,
                },
                lambda s=source, t=target, d=dims: equal(view(t[0]), view(s[0]).flip(d)),
            )
    for name, source, target, alpha in (
        ("convert_to u8 -> f32", bytes_in, floats_out, 1 / 255),
        ("convert_to f32 -> u8", floats_in, bytes_out, 1.0),
    ):

        def expected_of(source: Any = source, target: Any = target, alpha: float = alpha) -> None:
            values = view(source[0])[:2].float().mul(np.float32(alpha)).add(0.0)
            result = view(target[0])[:2]
            equal(result, values.round().clamp(0, 255).byte() if alpha == 1.0 else values)

        row(
            name,
            5 * count,
            lambda i, s=source, t=target, a=alpha: cvc.convertto_into(
                t[i % 2], s[i % 2], a, 0.0, stream=stream
            ),
            {"cvcuda": rival("convertto_into", target, source, scale=alpha, offset=0.0)},
            expected_of,
        )
    base = cvc.as_tensor(torch.tensor(MEAN, device="cuda").reshape(1, 1, 1, 3), "NHWC")
    scale = cvc.as_tensor(torch.tensor(SCALE, device="cuda").reshape(1, 1, 1, 3), "NHWC")
    rival_factors = [as_rival(base, "NHWC"), as_rival(scale, "NHWC")]
    for name, source, moved in (
        ("normalize f32", floats_in, 8 * count),
        ("normalize u8 -> f32", bytes_in, 5 * count),
    ):
        row(
            name,
            moved,
            lambda i, s=source: cvc.normalize_into(
                floats_out[i % 2], s[i % 2], base, scale, stream=stream
            ),
            {"cvcuda": rival("normalize_into", floats_out, source, *rival_factors)},
            lambda s=source: equal(
                view(floats_out[0])[:2],
                (view(s[0])[:2].float() - torch.tensor(MEAN).cuda()) * torch.tensor(SCALE).cuda(),
            ),
        )
    for label, packed, packed_out, planes in (
        ("u8", bytes_in, bytes_out, planes8),
        ("f32", floats_in, floats_out, planes32),
    ):
        row(
            f"reformat {label} NHWC -> NCHW",
            2 * count * size[label],
            lambda i, s=packed, t=planes: cvc.reformat_into(t[i % 2], s[i % 2], stream=stream),
            {"cvcuda": rival("reformat_into", planes, packed)},
            lambda s=packed, t=planes: equal(view(t[0]), view(s[0]).permute(0, 3, 1, 2)),
        )
        view(planes[1]).copy_(view(packed[1]).permute(0, 3, 1, 2))
        row(
            f"reformat {label} NCHW -> NHWC",
            2 * count * size[label],
            lambda i, s=planes, t=packed_out: cvc.reformat_into(t[i % 2], s[i % 2], stream=stream),
            {"cvcuda": rival("reformat_into", packed_out, planes)},
            lambda s=planes, t=packed_out: equal(view(t[0]), view(s[0]).permute(0, 2, 3, 1)),
        )
    resizes(bytes_in, theirs, rival, count)
    chains(bytes_in)
    host_times()


def resizes(bytes_in: list[cvc.Tensor], theirs: dict[int, Any], rival: Any, count: int) -> None:
    """pillow_resize, checked against Pillow itself on one frame."""
    from PIL import Image

    for height, width, name, limit in (
        (224, 224, "LINEAR", 60.0),
        (720, 1280, "LINEAR", 95.0),
        (720, 1280, "LANCZOS", 140.0),
        (2160, 3840, "CUBIC", 300.0),
    ):
        title = f"resize u8 -> {width}x{height} {name.lower()}"
        if wanted and not any(part in title for part in wanted):
            continue
        target = tensors((FRAMES, height, width, 3), np.uint8, "NHWC")
        for tensor in target:
            theirs[id(tensor)] = as_rival(tensor, "NHWC")
        pillow = {"LINEAR": "BILINEAR", "CUBIC": "BICUBIC", "LANCZOS": "LANCZOS"}[name]
        chosen, ours = getattr(Image.Resampling, pillow), getattr(cvc.Interp, name)
        permuted = view(bytes_in[0]).permute(0, 3, 1, 2)

        def expected_of(target: Any = target, size: Any = (width, height), f: Any = chosen) -> None:
            frame = Image.fromarray(view(bytes_in[0])[5].cpu().numpy())
            equal(view(target[0])[5], np.asarray(frame.resize(size, f)))

        row(
            title,
            count + FRAMES * height * width * 3,
            lambda i, t=target, f=ours: cvc.pillowresize_into(
                t[i % 2], bytes_in[i % 2], interp=f, stream=stream
            ),
            {
                "cvcuda": rival(
                    "pillowresize_into",
                    target,
                    bytes_in,
                    format=cvcuda.Format.RGB8,
                    interp=getattr(cvcuda.Interp, name),
                )
                if cvcuda
                else None,
                "torchvision": (
                    lambda i, p=permuted: torchvision.resize(p, [224, 224], antialias=True)
                )
                if torchvision and height == 224
                else None,
            },
            expected_of,
            limit,
        )


def chains(bytes_in: list[cvc.Tensor]) -> None:
    """Resize, flip, convert, normalize, reformat: in one pass, and in the five calls of either."""
    scaled = cvc.Convert(np.float32, 1 / 255)
    mean, deviation = [0.485, 0.456, 0.406], [4.367, 4.464, 4.444]
    rival_stream = cvcuda.as_stream(torch_stream) if cvcuda else None
    for frames, limit in ((FRAMES, 65.0), (1, 12.0)):
        title = f"chain of five, {frames} to 224 f32 NCHW"
        if wanted and not any(part in title for part in wanted):
            continue
        sources = bytes_in if frames == FRAMES else filled((1, HEIGHT, WIDTH, 3), np.uint8, "NHWC")
        shape = (frames, 224, 224, 3)
        resized, flipped = tensors(shape, np.uint8, "NHWC"), tensors(shape, np.uint8, "NHWC")
        floats, normal = tensors(shape, np.float32, "NHWC"), tensors(shape, np.float32, "NHWC")
        planar = tensors((frames, 3, 224, 224), np.float32, "NCHW")
        fused = tensors((frames, 3, 224, 224), np.float32, "NCHW")

        def five(i: int, s: Any = sources, steps: Any = (resized, flipped, floats, normal, planar)):
            a, b, c, d, e = (step[i % 2] for step in steps)
            cvc.pillowresize_into(a, s[i % 2], stream=stream)
            cvc.flip_into(b, a, 1, stream=stream)
            cvc.convertto_into(c, b, 1 / 255, stream=stream)
            cvc.normalize_into(d, c, mean, deviation, stream=stream)
            cvc.reformat_into(e, d, stream=stream)

        def one(i: int, s: Any = sources, t: Any = fused) -> None:
            cvc.preprocess_into(
                t[i % 2],
                s[i % 2],
                flip=1,
                convert=scaled,
                normalize=cvc.Normalize(mean, deviation),
                stream=stream,
            )

        rival = None
        if cvcuda:
            steps = [
                [as_rival(tensor, layout) for tensor in group]
                for group, layout in (
                    (sources, "NHWC"),
                    (resized, "NHWC"),
                    (flipped, "NHWC"),
                    (floats, "NHWC"),
                    (normal, "NHWC"),
                    (planar, "NCHW"),
                )
            ]
            factors = [
                as_rival(
                    cvc.as_tensor(
                        torch.tensor(list(values), device="cuda").reshape(1, 1, 1, 3), "NHWC"
                    ),
                    "NHWC",
                )
                for values in (mean, deviation)
            ]

            def rival(i: int, steps: Any = steps, factors: Any = factors) -> None:
                s, a, b, c, d, e = (step[i % 2] for step in steps)
                cvcuda.pillowresize_into(
                    a, s, cvcuda.Format.RGB8, cvcuda.Interp.LINEAR, stream=rival_stream
                )
                cvcuda.flip_into(b, a, 1, stream=rival_stream)
                cvcuda.convertto_into(c, b, scale=1 / 255, offset=0.0, stream=rival_stream)
                cvcuda.normalize_into(d, c, *factors, stream=rival_stream)
                cvcuda.reformat_into(e, d, stream=rival_stream)

        def check(five: Any = five, ours: Any = fused, theirs: Any = planar) -> None:
            five(0)
            equal(view(ours[0]), view(theirs[0]))

        moved = frames * (HEIGHT * WIDTH * 3 + 224 * 224 * 3 * 4)
        row(title, moved, one, {"our five calls": five, "cvcuda": rival}, check, limit)


def host_nanoseconds(work: Callable[[], Any]) -> float:
    """Of the calling thread, for one call: best of 15 groups of 200."""
    best = float("inf")
    for _ in range(15):
        begin = time.perf_counter_ns()
        for _ in range(200):
            work()
        best = min(best, (time.perf_counter_ns() - begin) / 200)
        torch.cuda.synchronize()
    return best


def host_times() -> None:
    if wanted and not any("host" in part for part in wanted):
        return
    small = cvc.Tensor((1, 16, 16, 3), np.uint8, "NHWC")
    view(small).zero_()
    torch.cuda.synchronize()
    shape = (HEIGHT, WIDTH, 3)
    rows: list[tuple[str, Callable[[], Any]]] = [
        ("cvc.Tensor 1080x1920x3", lambda: cvc.Tensor(shape, np.uint8, "HWC")),
        ("cvc.flip 16x16x3", lambda: cvc.flip(small, 1, stream=stream)),
        ("torch.empty 1080x1920x3", lambda: torch.empty(shape, dtype=torch.uint8, device="cuda")),
    ]
    if cvcuda:
        theirs, their_stream = as_rival(small, "NHWC"), cvcuda.as_stream(torch_stream)
        rows += [
            ("cvcuda.Tensor 1080x1920x3", lambda: cvcuda.Tensor(shape, np.uint8, "HWC")),
            ("cvcuda.flip 16x16x3", lambda: cvcuda.flip(theirs, 1, stream=their_stream)),
        ]
    for name, work in rows:
        print(f"host time, Python: {name:30} {host_nanoseconds(work):8.0f} ns", flush=True)


main()

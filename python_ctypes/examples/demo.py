"""A real video through libcvc's cache and operators, with flat memory: what `make demo` runs.

Every frame goes through pillowresize, flip, convertto, normalize and reformat, in batches on
several streams: first whole, then as random crops of hundreds of shapes, under a limit on what the
cache retains. Sampled results are compared with Pillow and NumPy; two pictures show the results and
the memory. Works on a GPU or, on the host backend, without one.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent.parent
FAILED, INTERRUPTED = 1, 130


def read_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__.splitlines()[0])
    out = TREE / "build" / "demo"
    parser.add_argument("--frames", type=_positive, default=3000, help="random crops (3000)")
    parser.add_argument("--out", type=Path, default=out, help="folder of the pictures (build/demo)")
    parser.add_argument("--video", type=Path, help="a video of your own, in place of the fetched")
    parser.add_argument("--media", type=Path, default=out / "media", help="where it is fetched to")
    parser.add_argument("--generated", action="store_true", help="generated frames, no video")
    parser.add_argument("--limit-mib", type=_positive, default=256, help="retention limit (256)")
    parser.add_argument("--streams", type=_positive, default=3, help="streams in turn (3)")
    parser.add_argument("--seed", type=int, default=1, help="of the random crops (1)")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def main(arguments: list[str] | None = None) -> int:
    """Run the demo.

    Returns:
        The exit status: 0, 1 where a check or anything else failed, 130 after Ctrl-C.
    """
    options = read_options(arguments)
    terminal = None
    try:
        from demo_parts.terminal import Terminal

        terminal = Terminal()
        # Imported late, so that Ctrl-C and a missing package end with a line here too.
        from demo_parts.run import run

        return run(options, terminal)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends already
        message, status = "interrupted", INTERRUPTED
    except ImportError as error:
        message, status = str(error), FAILED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if not _is_expected(error):
            raise
        message, status = str(error), FAILED
    if terminal is not None:
        terminal.clear_bar()
    sys.stdout.flush()
    print(f"demo: {' '.join(message.split())}", file=sys.stderr)
    return status


def _is_expected(error: Exception) -> bool:
    """Whether an error's text tells the user all there is to know."""
    from demo_parts import DemoError

    import cvc

    return isinstance(error, (DemoError, cvc.Error))


if __name__ == "__main__":
    sys.exit(main())

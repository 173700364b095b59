"""`python -m cvc`: a self-test of the installation, and where its C and C++ files lie."""

from __future__ import annotations

import argparse
import ctypes
import sys
from pathlib import Path

from ._abi import STATUS
from ._lib import library_path
from ._version import __version__

_PACKAGE = Path(__file__).resolve().parent
_TREE = _PACKAGE.parent.parent


def _prefix() -> Path:
    """The folder to put on CMAKE_PREFIX_PATH: this package's own in an installed wheel."""
    return _PACKAGE if (_PACKAGE / "include").is_dir() else _TREE


def _include() -> Path:
    return _prefix() / "include"


def _cmake_dir() -> Path:
    """What an installed wheel has; the tree has only what it is made from."""
    return _PACKAGE / "lib" / "cmake" / "cvc"


def _print_path(path: Path) -> int:
    if not path.is_dir():
        print(f"{path} is missing from this installation", file=sys.stderr)
        return 1
    print(path)
    return 0


def _round_trip() -> None:
    """Copy an image to the device, flip it there and back, and compare; then reuse its memory."""
    import cvc
    from cvc._resource import live
    from cvc._transfer import download_into

    height, width, channels = 48, 64, 3
    pixels = bytes(index * 7 % 251 for index in range(height * width * channels))
    with cvc.Stream() as stream:
        source = cvc.upload(memoryview(pixels).cast("B", (height, width, channels)), "HWC")
        there = cvc.flip(source, -1)
        back = cvc.flip(there, -1)
        result = ctypes.create_string_buffer(len(pixels))
        download_into(result, ctypes.addressof(result), live(back), stream)
        if result.raw != pixels:
            raise cvc.Error("the pixels that came back differ from those that were sent")
        address = there.cuda()._data.data
        del there
        if cvc.flip(source, 0).cuda()._data.data != address:
            raise cvc.Error("the memory of a dropped result was not reused")


def doctor() -> int:
    """Print what libcvc found on this machine and test it. Returns 0 where all is well."""
    import cvc

    print(f"cvc {__version__}, Python {sys.version.split()[0]}")
    print(f"library: {library_path}")
    try:
        print(f"backend: {cvc.backend()}")
        for device in range(cvc.device_count()):
            info = cvc.device_info(device)
            print(
                f"device {device}: {info.name}, {info.total_memory} bytes, {info.free_memory} free"
            )
            limit = cvc.get_cache_limit_inbytes(device=device)
            print(f"device {device}: cache limit {limit} bytes")
        _round_trip()
    except cvc.DeviceError as error:
        print(f"device: {error.status_name}: {error}")
        if error.status == STATUS["NO_DRIVER"]:
            print("Install an NVIDIA driver.")
        print("CVC_BACKEND=host runs on the CPU.")
        return 1
    except cvc.Error as error:
        print(f"self-test: FAILED: {error.status_name}: {error}")
        return 1
    print("self-test: passed")
    if cvc.backend() == "host":
        print("No GPU is in use: the host backend runs everything on the CPU.")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m cvc", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["doctor"], help="test the installation")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--prefix", action="store_true", help="print the CMake prefix")
    group.add_argument("--include", action="store_true", help="print the folder of cvc.h")
    group.add_argument("--cmake-dir", action="store_true", help="print the folder of cvcConfig")
    group.add_argument("--version", action="version", version=__version__)
    options = parser.parse_args(arguments)
    if options.prefix:
        return _print_path(_prefix())
    if options.include:
        return _print_path(_include())
    if options.cmake_dir:
        return _print_path(_cmake_dir())
    if options.command == "doctor":
        return doctor()
    parser.print_help()
    return 2


if __name__ == "__main__":
    sys.exit(main())

"""Builds the wheel: puts libcvc, its headers and its CMake package inside, and tags it for Linux.

The library is the file that CVC_LIBRARY names, else ../target/release/libcvc.so (`make build`).
The wheel serves every CPython from 3.9 on, since ctypes needs no build for each.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
TREE = HERE.parent


def library() -> Path:
    path = Path(os.environ.get("CVC_LIBRARY") or TREE / "target" / "release" / "libcvc.so")
    if not path.is_file():
        raise SystemExit(f"{path} does not exist: run `make build`, or name libcvc in CVC_LIBRARY")
    return path.resolve()


def soname(path: Path) -> str:
    """The name under which programs that link the library look for it."""
    found = re.search(rb"libcvc\.so(?:\.\d+)+(?=\0)", path.read_bytes())
    return found[0].decode() if found else "libcvc.so"


def manylinux_tag(path: Path) -> str:
    """The oldest glibc that has every symbol version the library asks for."""
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", path.read_bytes())
    major, minor = max((int(major), int(minor)) for major, minor in versions)
    return f"manylinux_{major}_{minor}_{os.uname().machine}"


def install_cmake_package(target: Path, name: str, scratch: Path) -> None:
    """Put cvcConfig.cmake beside the library, by the same CMake project that installs it."""
    cmake = shutil.which("cmake")
    release = TREE / "target" / "release"
    if cmake is None or not (release / "libcvc.a").is_file():
        print("cmake or libcvc.a is missing: the wheel has no CMake package")
        return
    build, prefix = scratch / "cmake", scratch / "prefix"
    configure = ["-S", TREE / "cmake", "-B", build, "-DCVC_SKIP_CARGO=ON"]
    subprocess.run([cmake, *configure, f"-DCVC_CARGO_TARGET_DIR={TREE / 'target'}"], check=True)
    subprocess.run([cmake, "--install", build, "--prefix", prefix], check=True)
    package = target / "lib" / "cmake" / "cvc"
    package.mkdir(parents=True, exist_ok=True)
    for file in (prefix / "lib" / "cmake" / "cvc").glob("*.cmake"):
        # A wheel holds no links: its one library file has the name that programs load.
        text = re.sub(r"libcvc\.so(\.\d+){3}", name, file.read_text())
        (package / file.name).write_text(text)


class BuildWithLibrary(build_py):
    """build_py, and the native files beside the Python ones."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:  # an editable install uses the tree's own library
            return
        source = library()
        target = Path(self.build_lib) / "cvc"
        name = soname(source)
        (target / "lib").mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target / "lib" / name)
        headers = TREE / "include"
        if (headers / "cvc.h").is_file():
            shutil.copytree(headers, target / "include", dirs_exist_ok=True)
        if (TREE / "cmake" / "CMakeLists.txt").is_file():
            install_cmake_package(target, name, Path(self.build_lib).resolve().parent)


class PlatformWheel(bdist_wheel):
    """A wheel for any Python 3 on one platform."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", manylinux_tag(library())


class NativeDistribution(Distribution):
    """A distribution that is not pure Python, though setuptools compiles nothing of it."""

    def has_ext_modules(self) -> bool:
        return True


OPTIONS: dict[str, dict[str, str]] = {}
if (TREE / "Cargo.toml").is_file():
    scratch = TREE / "build" / "python"
    scratch.mkdir(parents=True, exist_ok=True)
    OPTIONS = {"build": {"build_base": str(scratch)}, "egg_info": {"egg_base": str(scratch)}}

setup(
    distclass=NativeDistribution,
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel},
    options=OPTIONS,
)

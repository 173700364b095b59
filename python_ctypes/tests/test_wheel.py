"""The wheel: built, installed in an environment of its own, imported and used from C."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from support import PACKAGE, TREE

import cvc
from cvc import _lib

pytestmark = pytest.mark.skipif(not (TREE / "Cargo.toml").is_file(), reason="no source tree")


def run(*command, cwd, **changes):
    variables = {**os.environ, "PYTHONPATH": "", "CVC_LIBRARY": "", **changes}
    variables["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), variables["PATH"]])
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def has_setuptools() -> bool:
    """Whether the build's requirement is here already; else pip fetches it for the build."""
    try:
        major, minor = metadata.version("setuptools").split(".")[:2]
    except metadata.PackageNotFoundError:
        return False
    return (int(major), int(minor)) >= (70, 1)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of a copy of the sources, so that building leaves nothing in the tree."""
    tree = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "tests", "build")
    shutil.copytree(PACKAGE, tree / "python_ctypes", ignore=ignored)
    for name in ("include", "cmake"):
        shutil.copytree(TREE / name, tree / name)
    shutil.copy(TREE / "Cargo.toml", tree)
    release = tree / "target" / "release"
    release.mkdir(parents=True)
    archive = Path(_lib.library_path).with_suffix(".a")
    if archive.is_file():
        (release / "libcvc.a").symlink_to(archive)
    shutil.copy(_lib.library_path, release / "libcvc.so")
    out = tree / "wheels"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    options = ["-q", "--no-deps", "-w", out]
    if has_setuptools():
        options.append("--no-build-isolation")
    run(*pip, "wheel", *options, tree / "python_ctypes", cwd=tree)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The interpreter of a fresh environment that has the wheel, and no NumPy."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-index")
    run(*pip, "--no-deps", wheel, cwd=folder)
    return python


def test_tag_and_content(wheel):
    name, version, python, abi, platform = wheel.stem.split("-")
    assert (name, version) == ("cvc", cvc.__version__)
    assert (python, abi) == ("py3", "none")
    assert platform.startswith("manylinux_2_") and platform.endswith("_x86_64")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (record,) = [n for n in names if n.endswith("/WHEEL")]
        assert "Root-Is-Purelib: false" in archive.read(record).decode()
    libraries = [n for n in names if "libcvc" in n]
    assert len(libraries) == 1 and libraries[0].startswith("cvc/lib/libcvc.so")
    for part in ("cvc/py.typed", "cvc/include/cvc.h", "cvc/include/cvc.hpp", "cvc/_abi.py"):
        assert part in names
    assert not [n for n in names if "tests" in n or n.endswith((".pyc", ".a"))]


def test_doctor_in_a_fresh_environment(installed, tmp_path):
    output = run(installed, "-m", "cvc", "doctor", cwd=tmp_path)
    assert "self-test: passed" in output
    path = run(installed, "-c", "import cvc._lib; print(cvc._lib.library_path)", cwd=tmp_path)
    assert str(installed.parent.parent) in path


PROGRAM = """
#include <cvc.h>
#include <stdio.h>
int main(void) {
  cvc_cache_t cache;
  uint64_t bytes;
  if (cvc_cache_default(&cache) != CVC_STATUS_OK) return 1;
  if (cvc_cache_bytes(cache, 0, &bytes) != CVC_STATUS_OK) return 2;
  printf("%s %llu\\n", cvc_version(), (unsigned long long)bytes);
  return 0;
}
"""

CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(app C)
find_package(cvc CONFIG REQUIRED)
add_executable(app app.c)
target_link_libraries(app PRIVATE cvc::cvc)
"""


def test_c_program_against_the_wheel(installed, tmp_path):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    cmake = shutil.which("cmake", path=path)
    if cmake is None or not Path(_lib.library_path).with_suffix(".a").is_file():
        pytest.skip("the wheel has a CMake package only where cmake and libcvc.a were there")
    (tmp_path / "app.c").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    prefix = run(installed, "-m", "cvc", "--prefix", cwd=tmp_path).strip()
    folder = run(installed, "-m", "cvc", "--cmake-dir", cwd=tmp_path).strip()
    assert Path(folder, "cvcConfig.cmake").is_file()
    assert Path(run(installed, "-m", "cvc", "--include", cwd=tmp_path).strip(), "cvc.h").is_file()
    build = tmp_path / "build"
    run(cmake, "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", cwd=tmp_path)
    run(cmake, "--build", build, cwd=tmp_path)
    assert run(build / "app", cwd=tmp_path) == f"{cvc.__version__} 0\n"

"""Importing, finding the library, and what works without NumPy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig

import pytest
from support import PACKAGE, TREE, output_of, run

import cvc
from cvc import _abi, _lib

WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None
"""


def test_import_starts_nothing():
    assert (
        output_of(
            """
            import os, sys
            before = len(os.listdir("/proc/self/task"))
            import cvc
            maps = open("/proc/self/maps").read()
            print(len(os.listdir("/proc/self/task")) - before, "libcuda.so" in maps)
            print("numpy" in sys.modules)
            """
        )
        == "0 False\nFalse\n"
    )


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a lock of its own"
)
def test_a_free_threaded_python_stays_so():
    program = """
        import sys, threading
        import cvc
        tensor = cvc.Tensor((64, 64, 3), "uint8", "HWC")

        def work():
            with cvc.Stream() as stream:
                for _ in range(200):
                    cvc.flip(tensor, 1)
                stream.sync()

        threads = [threading.Thread(target=work) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(sys._is_gil_enabled())
        """
    assert output_of(program, CVC_BACKEND="host") == "False\n"


def test_without_numpy():
    program = """
        import cvc
        tensor = cvc.Tensor((4, 4, 3), "uint8", "HWC")
        assert tensor.dtype is cvc.Type.U8 and tensor.dtype == "uint8" and tensor.dtype == "u1"
        if cvc.backend() == "host":
            assert cvc.as_tensor(bytearray(48)).reshape((4, 4, 3), "HWC").dtype is cvc.Type.U8
        image = cvc.Image(memoryview(bytearray(range(48))).cast("B", (4, 4, 3)))
        assert (image.size, image.format) == ((4, 4), cvc.Format.RGB8)
        small = cvc.upload(bytearray(12)).reshape((2, 2, 3), "HWC")
        result = cvc.convertto(cvc.flip(small, 0), "float32")
        assert result.cuda().dtype is cvc.Type.F32
        assert cvc.normalize(tensor, [1.0], [2.0]).shape == (4, 4, 3)
        for call in (tensor.cpu, image.cpu):
            try:
                call()
            except ImportError:
                pass
            else:
                raise AssertionError("NumPy was found")
        try:
            cvc.Tensor((2, 2), "nothing")
        except TypeError as error:
            print(error)
        """
    done = run(WITHOUT_NUMPY + _dedent(program))
    assert done.returncode == 0, done.stderr
    assert "nothing" in done.stdout


def _dedent(program):
    import textwrap

    return textwrap.dedent(program)


def test_named_library_is_the_only_one_tried(tmp_path):
    done = run("import cvc", CVC_LIBRARY=str(tmp_path / "none.so"))
    assert done.returncode == 1
    assert "ImportError" in done.stderr and "none.so" in done.stderr
    (tmp_path / "text.so").write_text("no library")
    done = run("import cvc", CVC_LIBRARY=str(tmp_path / "text.so"))
    assert "ImportError" in done.stderr and "text.so" in done.stderr
    copied = shutil.copy(_lib.library_path, tmp_path / "libcvc-copy.so")
    named = output_of("import cvc._lib; print(cvc._lib.library_path)", CVC_LIBRARY=str(copied))
    assert named.strip() == str(copied)


def _compiled(tmp_path, name, source):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "source.c").write_text(source)
    library = tmp_path / name
    command = [compiler, "-w", "-shared", "-fPIC", tmp_path / "source.c", "-o", library]
    subprocess.run(command, check=True)
    return str(library)


def test_library_of_another_abi_is_named(tmp_path):
    source = (
        'const char *cvc_version(void) { return "9.8.7"; }\n'
        "unsigned cvc_abi_version(void) { return 42; }\n"
    )
    other = _compiled(tmp_path, "libother.so", source)
    done = run("import cvc", CVC_LIBRARY=other)
    for part in ("ImportError", other, "9.8.7", "42", str(_abi.ABI_VERSION), cvc.__version__):
        assert part in done.stderr


def test_library_that_lacks_a_function_is_named(tmp_path):
    source = (
        'const char *cvc_version(void) { return "0.1.0"; }\n'
        f"unsigned cvc_abi_version(void) {{ return {_abi.ABI_VERSION}; }}\n"
    )
    older = _compiled(tmp_path, "libolder.so", source)
    done = run("import cvc", CVC_LIBRARY=older)
    assert "ImportError" in done.stderr and older in done.stderr and "lacks cvc_" in done.stderr
    none = _compiled(tmp_path, "libnone.so", "int nothing;\n")
    done = run("import cvc", CVC_LIBRARY=none)
    assert "ImportError" in done.stderr and "no libcvc" in done.stderr


@pytest.mark.skipif(
    not (TREE / "target" / "release" / "libcvc.so").is_file(), reason="the tree has no library"
)
def test_library_of_the_tree_is_found():
    found = output_of("import cvc._lib; print(cvc._lib.library_path)", CVC_LIBRARY="")
    assert found.strip() == str(TREE / "target" / "release" / "libcvc.so")


def test_public_names_are_documented():
    for name in cvc.__all__:
        value = getattr(cvc, name)
        if name != "__version__":
            assert value.__doc__, name
    for kind in (cvc.Tensor, cvc.Image, cvc.Stream, cvc.TensorBatch, cvc.ImageBatchVarShape):
        for name in dir(kind):
            if not name.startswith("_") and name not in ("current", "default"):
                assert getattr(kind, name).__doc__, f"{kind.__name__}.{name}"
    assert (PACKAGE / "cvc" / "py.typed").is_file()


def test_doctor():
    done = subprocess.run(
        [os.sys.executable, "-m", "cvc", "doctor"],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for part in (cvc.__version__, cvc.backend(), "cache limit", "self-test: passed"):
        assert part in done.stdout


def test_doctor_without_a_driver():
    done = run("import sys, cvc.__main__ as m; sys.exit(m.main(['doctor']))", CVC_BACKEND="cuda")
    if done.returncode:
        assert "CVC_STATUS_NO_DRIVER" in done.stdout and "CVC_BACKEND=host" in done.stdout
    else:
        assert "backend: cuda" in done.stdout


def test_folders_of_the_tree():
    for option, file in (("--include", "cvc.h"), ("--prefix", "include/cvc.h")):
        done = run(f"import sys, cvc.__main__ as m; sys.exit(m.main(['{option}']))")
        assert done.returncode == 0, done.stderr
        assert os.path.exists(os.path.join(done.stdout.strip(), file))
    assert run("import sys, cvc.__main__ as m; sys.exit(m.main([]))").returncode == 2

"""The table of signatures, structs and constants against the header, in both directions."""

from __future__ import annotations

import ctypes
import functools
import re
import shutil
import subprocess

import pytest
from support import TREE

from cvc import _abi, _lib, _version

HEADER = TREE / "include" / "cvc.h"
COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(not HEADER.is_file(), reason="there is no include/cvc.h")

_HANDLES = (
    "cvc_stream_t cvc_event_t cvc_cache_t cvc_tensor_t cvc_image_t cvc_image_batch_t "
    "cvc_tensor_batch_t cvc_release_fn cvc_log_fn"
).split()
_SCALARS = {
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}


@functools.cache
def header_text() -> str:
    text = HEADER.read_text()
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"//[^\n]*", " ", text)


@functools.cache
def code() -> str:
    """The header without its directives."""
    return re.sub(r"^[ \t]*#[^\n]*(\\\n[^\n]*)*", " ", header_text(), flags=re.M)


@functools.cache
def integer_aliases() -> dict[str, type]:
    found = re.findall(r"typedef\s+(u?int(?:32|64)_t)\s+(\w+)\s*;", code())
    return {alias: _SCALARS[base] for base, alias in found}


def struct_classes() -> dict[str, type]:
    return {f"{name}_t": struct for name, struct in _abi.STRUCTS.items()}


def ctype_of(declaration: str) -> object:
    """The ctypes type that a parameter or a result is declared with, its name left out."""
    text = re.sub(r"\b(const|struct|enum)\b", " ", declaration)
    stars = text.count("*")
    base = text.replace("*", " ").split()[0]
    scalars = {**_SCALARS, **integer_aliases()}
    if stars == 0:
        return None if base == "void" else ctypes.c_void_p if base in _HANDLES else scalars[base]
    if base == "char":
        # A text that is read, or a buffer that is written.
        return ctypes.c_char_p if "const" in declaration else ctypes.c_void_p
    if base == "void":
        return ctypes.c_void_p if stars == 1 else ctypes.POINTER(ctypes.c_void_p)
    if base in _HANDLES:
        return ctypes.POINTER(ctypes.c_void_p)
    if base in struct_classes():
        return ctypes.POINTER(struct_classes()[base])
    return ctypes.POINTER(scalars[base])


@functools.cache
def header_functions() -> dict[str, tuple[object, list[object]]]:
    text = re.sub(r'extern\s+"C"\s*\{?', " ", code())
    found = {}
    pattern = r"((?:const\s+)?\w+\s*\**)\s*\b(cvc_\w+)\s*\(([^()]*)\)\s*;"
    for result, name, parameters in re.findall(pattern, text):
        if result.strip().startswith("typedef"):
            continue
        listed = [] if parameters.strip() in ("", "void") else parameters.split(",")
        found[name] = (ctype_of(result), [ctype_of(parameter) for parameter in listed])
    return found


def test_every_function_of_the_header_is_in_the_table_and_back():
    header, table = header_functions(), {name for name, _, _ in _abi.FUNCTIONS}
    assert len(header) > 100
    assert header.keys() - table == set(), "in the header, not in the table"
    assert table - header.keys() == set(), "in the table, not in the header"
    assert len(table) == len(_abi.FUNCTIONS), "a function is in the table twice"


@pytest.mark.parametrize("name, result, arguments", _abi.FUNCTIONS)
def test_signature(name, result, arguments):
    expected_result, expected = header_functions()[name]
    assert result is expected_result
    assert list(arguments) == expected


def compiled(tmp_path, body: str) -> list[str]:
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    source, program = tmp_path / "probe.c", tmp_path / "probe"
    source.write_text(
        '#include "cvc.h"\n#include <stdio.h>\n#include <stddef.h>\nint main(void) {\n'
        + body
        + "\n  return 0;\n}\n"
    )
    include = f"-I{HEADER.parent}"
    subprocess.run(
        [COMPILER, "-std=c11", "-Wall", "-Werror", include, source, "-o", program], check=True
    )
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.split("\n")


def test_sizes_and_offsets_of_every_struct(tmp_path):
    expected, body = [], []
    for name, struct in _abi.STRUCTS.items():
        expected.append(f"{name} {ctypes.sizeof(struct)}")
        body.append(f'  printf("{name} %zu\\n", sizeof({name}_t));')
        for field in struct._fields_:
            member = getattr(struct, field[0])
            expected.append(f"{name}.{field[0]} {member.offset} {member.size}")
            body.append(
                f'  printf("{name}.{field[0]} %zu %zu\\n", offsetof({name}_t, {field[0]}), '
                f"sizeof((({name}_t *)0)->{field[0]}));"
            )
    assert [line for line in compiled(tmp_path, "\n".join(body)) if line] == expected


def test_every_struct_and_field_of_the_header_is_in_the_table():
    found = {}
    for body, name in re.findall(r"typedef\s+struct\s+\w*\s*\{(.*?)\}\s*(\w+)_t\s*;", code(), re.S):
        fields = []
        for declaration in filter(str.strip, body.split(";")):
            names = re.sub(r"^\s*(?:const\s+|struct\s+)*\w+", "", declaration, count=1)
            fields += [re.search(r"\w+", part)[0] for part in names.split(",")]
        found[name] = fields
    table = {name: [field[0] for field in struct._fields_] for name, struct in _abi.STRUCTS.items()}
    assert found == table


@functools.cache
def defines() -> set[str]:
    names = set(re.findall(r"^[ \t]*#define[ \t]+(CVC_\w+)[ \t]+\S", header_text(), re.M))
    return {name for name in names if not name.startswith("CVC_VERSION_")}


def test_every_constant_of_the_header_is_in_the_table_and_back():
    assert defines() - _abi.CONSTANTS.keys() == set(), "in the header, not in the table"
    assert _abi.CONSTANTS.keys() - defines() == set(), "in the table, not in the header"


def test_values_of_every_constant(tmp_path):
    body = [
        f'  printf("{name} %lld\\n", (long long)(intptr_t)({name}));' for name in sorted(defines())
    ]
    lines = [line for line in compiled(tmp_path, "\n".join(body)) if line]
    assert lines == [f"{name} {_abi.CONSTANTS[name]}" for name in sorted(defines())]


def test_the_library_exports_every_function_of_the_table():
    for name, _, _ in _abi.FUNCTIONS:
        assert hasattr(_lib.lib, name)


def test_versions_agree(tmp_path):
    lines = compiled(
        tmp_path,
        '  printf("%d.%d.%d\\n", CVC_VERSION_MAJOR, CVC_VERSION_MINOR, CVC_VERSION_PATCH);',
    )
    assert lines[0] == _version.__version__ == _lib.lib.cvc_version().decode()


def test_statuses_have_the_names_of_the_header():
    for name, status in _abi.STATUS.items():
        assert _lib.lib.cvc_status_string(status).decode() == f"CVC_STATUS_{name}"


def test_cffi_reads_the_header(tmp_path):
    cffi = pytest.importorskip("cffi")
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    for standard in ("stddef.h", "stdint.h", "stdbool.h", "stdarg.h", "stdlib.h"):
        (tmp_path / standard).write_text("")
    text = subprocess.run(
        [COMPILER, "-E", "-P", "-nostdinc", f"-I{tmp_path}", HEADER],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    ffi = cffi.FFI()
    ffi.cdef(text)
    library = ffi.dlopen(_lib.library_path)
    assert library.cvc_abi_version() == _abi.ABI_VERSION
    for name, struct in _abi.STRUCTS.items():
        assert ffi.sizeof(f"{name}_t") == ctypes.sizeof(struct)

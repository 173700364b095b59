"""Copies the programs that CTest would run into a folder, with a list of how to run them.

Usage: ctest_programs.py BUILD-FOLDER FOLDER. Each line of FOLDER/list is a test's name, the program
with its arguments, relative to FOLDER, and the test's labels, with tabs between them. Tests that
run under another program (valgrind, a script), long ones and those in steps are left out.
"""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path


def main() -> int:
    build, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    ctest = shutil.which("ctest") or Path(sys.executable).with_name("ctest")
    shown = subprocess.run(
        [ctest, "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True
    )
    lines = []
    for test in json.loads(shown.stdout)["tests"]:
        program, *arguments = test.get("command", [""])
        if build not in Path(program).parents:
            continue
        name = Path(program).name
        if name.endswith("_static") and name != "test_tensor_static":
            continue
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        labels = properties.get("LABELS", [])
        if "long" in labels or "CVC_HOST_EXECUTOR=stepped" in properties.get("ENVIRONMENT", []):
            continue
        subprocess.run(["strip", "-o", folder / name, program], check=True)
        command = shlex.join([f"./{name}", *arguments])
        lines.append(f"{test['name']}\t{command}\t{' '.join(labels)}\n")
    (folder / "list").write_text("".join(lines))
    return 0 if lines else 1


if __name__ == "__main__":
    sys.exit(main())

"""Copies the programs that cargo's JSON messages name, stripped, into a folder.

Usage: cargo test --no-run --message-format=json | cargo_programs.py FOLDER [TARGET-TO-LEAVE-OUT...]
"""

import json
import subprocess
import sys


def main() -> int:
    folder, *left_out = sys.argv[1:]
    copied = 0
    for line in sys.stdin:
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("reason") == "compiler-message":
            print(message["message"]["rendered"], file=sys.stderr, end="")
        if message.get("reason") == "build-finished" and not message["success"]:
            return 1
        program = message.get("executable")
        target = message.get("target", {})
        wanted = {"lib", "test", "bench", "cdylib"} & set(target.get("kind", []))
        if program and wanted and target["name"] not in left_out:
            subprocess.run(["strip", "-o", f"{folder}/{target['name']}", program], check=True)
            copied += 1
    return 0 if copied else 1


if __name__ == "__main__":
    sys.exit(main())

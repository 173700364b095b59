#!/usr/bin/env bash
# `make demo`: sets up what is missing, builds the library, and shows a video going through it on this machine's backend.
set -uo pipefail
source "$(dirname "$0")/common.sh"

scripts/setup.sh venv || say "going on with the packages of $(command -v python3)"
[ -x "$PYTHON" ] || PYTHON=python3

if [ -e "$TARGET/release/libcvc.so" ]; then
  say "building libcvc, where something changed"
else
  say "building libcvc, which takes a few minutes the first time"
fi
retry cargo fetch --locked --quiet && cargo build --release --locked --lib --quiet || exit 1

export CVC_LIBRARY=$TARGET/release/libcvc.so PYTHONPATH=$ROOT/python_ctypes
exec "$PYTHON" python_ctypes/examples/demo.py "$@"

#!/usr/bin/env bash
# `make test`: sets up what is missing, then runs every check and test, each as a stage with its time.
set -uo pipefail
source "$(dirname "$0")/common.sh"
export CARGO_TERM_COLOR=never PYTHONDONTWRITEBYTECODE=1

PACKAGE=python_ctypes
CMAKE=$(command -v cmake || echo "$BUILD/venv/bin/cmake")
CTEST=$(dirname "$CMAKE")/ctest
VENV_BIN=$BUILD/venv/bin

set_up() {
  scripts/setup.sh venv nvcc valgrind pkg-config || say "going on without what was skipped"
  retry cargo fetch --locked --quiet
}

# All four are asked, so that one `make fmt` mends what is named.
check_format() {
  local failed=0
  cargo fmt --check -- -l || failed=1
  "$VENV_BIN/ruff" format --check . || failed=1
  "$VENV_BIN/ruff" check . || failed=1
  git ls-files '*.c' '*.cc' '*.cpp' '*.cu' '*.cuh' '*.h' '*.hpp' ':!include/cvc.h' |
    xargs -r "$VENV_BIN/clang-format" --dry-run -Werror || failed=1
  return "$failed"
}

# With the deliberate mistakes of tests/mistakes.rs, none of which is chosen elsewhere: so the tests are compiled once. The
# library that is installed is built without them.
lint() { cargo clippy --locked --all-targets --features mistakes --quiet -- -D warnings; }

# Built first, so that the time and the failures of compiling are told from those of the tests.
build_tests() { cargo test --locked --features mistakes --quiet --no-run; }
rust_tests() { cargo test --locked --features mistakes --no-fail-fast; }
build_release() { cargo build --locked --release --examples --lib; }

install_library() {
  rm -rf "$BUILD/install"
  "$CMAKE" -S cmake -B "$BUILD/test-cmake" -DCVC_SKIP_CARGO=ON -DCVC_CARGO_TARGET_DIR="$TARGET" \
    -DCMAKE_INSTALL_PREFIX="$BUILD/install"
  "$CMAKE" --install "$BUILD/test-cmake" | tail -n 3
}

build_c_tests() {
  "$CMAKE" -S c_tests -B "$BUILD/c_tests" -DCMAKE_PREFIX_PATH="$BUILD/install" -DCMAKE_BUILD_TYPE=RelWithDebInfo
  "$CMAKE" --build "$BUILD/c_tests" -j"$JOBS"
}

c_tests() { "$CTEST" --test-dir "$BUILD/c_tests" --output-on-failure -LE 'valgrind|long' -j"$JOBS"; }
valgrind_tests() { "$CTEST" --test-dir "$BUILD/c_tests" --output-on-failure -L valgrind -LE long -j"$JOBS"; }

python_tests() {
  cd "$PACKAGE"
  # A file's tests stay in one process, since they may share what they build.
  CVC_LIBRARY=$TARGET/release/libcvc.so "$PYTHON" -m pytest -q -p no:cacheprovider -m 'not long' \
    -n "$JOBS" --dist loadfile tests
}

# Each example is run once, as a reader would: the Rust ones here, those in C by ctest, those in Python by name.
run_examples() {
  local source
  for source in examples/*.rs; do
    [ -e "$source" ] || continue
    say "$source"
    cargo run --locked --quiet --release --example "$(basename "$source" .rs)"
  done
  for source in "$PACKAGE"/examples/*.py; do
    [ -e "$source" ] || continue
    say "$source"
    PYTHONPATH=$PACKAGE CVC_LIBRARY=$TARGET/release/libcvc.so "$PYTHON" "$source"
  done
}

begin_stages
stage set-up set_up
stage format check_format
stage lint lint
stage build-tests build_tests
if passed; then
  stage rust-tests rust_tests
  stage emulated-gpu scripts/emulated_gpu.sh
fi
stage build-release build_release
if passed; then
  stage header scripts/check_header.sh
  stage library scripts/check_library.sh
  stage python-tests python_tests
  stage examples run_examples
  stage install install_library
  if passed; then stage build-c-tests build_c_tests; fi
  if passed; then
    stage c-tests c_tests
    if command -v valgrind >/dev/null; then stage valgrind valgrind_tests; fi
  fi
fi
end_stages

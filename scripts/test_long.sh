#!/usr/bin/env bash
# `make test-long`: what takes too long for every change. Long and ignored tests, fuzzing, then the sanitizers.
set -uo pipefail
source "$(dirname "$0")/common.sh"
export CARGO_TERM_COLOR=never PYTHONDONTWRITEBYTECODE=1

CMAKE=$(command -v cmake || echo "$BUILD/venv/bin/cmake")
CTEST=$(dirname "$CMAKE")/ctest
HOST=$(rustc -vV | sed -n 's/^host: //p')

set_up() {
  scripts/setup.sh venv nvcc valgrind pkg-config || say "going on without what was skipped"
  retry cargo fetch --locked --quiet
}

ignored_tests() { cargo test --locked --features mistakes --no-fail-fast -- --ignored; }

python_long() {
  cargo build --locked --release --lib
  cd python_ctypes
  # pytest's status 5: no test has the mark.
  CVC_LIBRARY=$TARGET/release/libcvc.so "$PYTHON" -m pytest -q -p no:cacheprovider -m long tests || [ $? -eq 5 ]
}

# The package's tests where threads have no lock of Python's in common. There is no Pillow for such a Python of 3.13.
python_free_threaded() {
  local python folder=$BUILD/free_threaded
  python=${FREE_THREADED_PYTHON:-$(command -v python3.14t || command -v python3.13t || true)}
  if [ -z "$python" ]; then
    skip free-threaded "no python3.14t, python3.13t or FREE_THREADED_PYTHON"
    return 0
  fi
  "$python" -m venv "$folder"
  retry "$folder/bin/pip" install --quiet --only-binary :all: 'numpy<2.4' pytest pytest-xdist
  cd python_ctypes
  CVC_LIBRARY=$TARGET/release/libcvc.so "$folder/bin/python" -m pytest -q -p no:cacheprovider -m 'not long' -n "$JOBS" \
    --dist loadfile --ignore tests/test_operators.py --ignore tests/test_preprocess.py tests
}

c_long() {
  rm -rf "$BUILD/install"
  "$CMAKE" -S cmake -B "$BUILD/test-cmake" -DCVC_SKIP_CARGO=ON -DCVC_CARGO_TARGET_DIR="$TARGET" \
    -DCMAKE_INSTALL_PREFIX="$BUILD/install"
  "$CMAKE" --install "$BUILD/test-cmake" >/dev/null
  "$CMAKE" -S c_tests -B "$BUILD/c_tests" -DCMAKE_PREFIX_PATH="$BUILD/install" -DCMAKE_BUILD_TYPE=RelWithDebInfo
  "$CMAKE" --build "$BUILD/c_tests" -j"$JOBS"
  "$CTEST" --test-dir "$BUILD/c_tests" --output-on-failure -L long --no-tests=ignore
}

# The compiler's sanitizers are open to nightly only; this variable opens them in the stable one. Kernels for the
# device are left out: nothing here runs on one. `sanitize NAME FLAGS TEST-ARGUMENTS...`
sanitize() {
  local name=$1 flags=$2
  shift 2
  CVC_CUDA_ARCHS=none RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags \
    cargo test --locked --no-fail-fast --lib --tests --target "$HOST" --target-dir "$TARGET/$name" -- \
    --skip under_shuttle "$@"
}

address_sanitizer() { ASAN_OPTIONS=detect_leaks=0 sanitize asan "-Zsanitizer=address"; }

thread_sanitizer() {
  TSAN_OPTIONS="suppressions=$ROOT/scripts/tsan.supp" \
    sanitize tsan "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" --test-threads=1
}

# Every day another twentieth of the mutants, so that all have their turn.
mutants() {
  if ! command -v cargo-mutants >/dev/null; then
    skip mutants "cargo-mutants is not installed (cargo install --locked cargo-mutants)"
    return 0
  fi
  python3 scripts/mutants.py --outside --part "$((10#$(date +%j) % 20 + 1))/20"
}

begin_stages
stage set-up set_up
stage rust-ignored ignored_tests
stage python-long python_long
stage python-free-threaded python_free_threaded
stage c-long c_long
stage emulated-gpu scripts/emulated_gpu.sh 10
stage fuzz scripts/fuzz.sh 180
stage mutants mutants
stage asan address_sanitizer
stage tsan thread_sanitizer
end_stages

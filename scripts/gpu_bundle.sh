#!/usr/bin/env bash
# `make gpu-bundle`: collects into build/gpu the library with kernels for every architecture (or those that
# CVC_CUDA_ARCHS names), its tests and run.sh, for a machine that has a GPU and Python with NumPy and pytest, and no
# network. What checks the kernels by themselves is built there, where nvcc is found.
set -euo pipefail
source "$(dirname "$0")/common.sh"
export CVC_CUDA_ARCHS=${CVC_CUDA_ARCHS:-all} CVC_REQUIRE_NVCC=1 CARGO_TERM_COLOR=never

BUNDLE=$BUILD/gpu
# Another target folder, so that the everyday build keeps its one architecture.
GPU_TARGET=$TARGET/gpu
CMAKE=$(command -v cmake || echo "$BUILD/venv/bin/cmake")
MAX_MIB=60
# The Python of the other machine, for which the wheels are.
PYTHON_VERSION=${CVC_GPU_PYTHON:-3.12}

scripts/setup.sh venv nvcc
rm -rf "$BUNDLE"
mkdir -p "$BUNDLE"/{lib,scripts,rust_tests,benches,c_tests,wheels}

say "building the library for every architecture"
cargo build --locked --release --lib --target-dir "$GPU_TARGET"

image=$(find "$GPU_TARGET"/release/build/cvc-*/out -name cvc_kernels.fatbin -printf '%T@ %p\n' | sort -rn | head -n 1 | cut -d ' ' -f 2)
image_bytes=$(stat -c %s "$image")
say "the kernels for every architecture are $((image_bytes >> 10)) KiB"
[ "$image_bytes" -le $((12 << 20)) ] || {
  say "that is more than 12 MiB"
  exit 1
}

say "installing it, and building the C and C++ tests against it"
"$CMAKE" -S cmake -B "$BUILD/gpu-cmake" -DCVC_SKIP_CARGO=ON -DCVC_CARGO_TARGET_DIR="$GPU_TARGET" \
  -DCMAKE_INSTALL_PREFIX="$BUILD/gpu-install" >/dev/null
"$CMAKE" --install "$BUILD/gpu-cmake" >/dev/null
cp -a "$BUILD"/gpu-install/lib/libcvc.so* "$BUNDLE/lib/"
cp -a "$BUILD/gpu-install/include" "$BUNDLE/include"
strip --strip-debug "$BUNDLE"/lib/libcvc.so.*.*.*
"$CMAKE" -S c_tests -B "$BUILD/gpu-c_tests" -DCMAKE_PREFIX_PATH="$BUILD/gpu-install" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_BUILD_RPATH_USE_ORIGIN=ON '-DCMAKE_BUILD_RPATH=$ORIGIN/../lib' >/dev/null
"$CMAKE" --build "$BUILD/gpu-c_tests" -j"$JOBS"
"$PYTHON" scripts/ctest_programs.py "$BUILD/gpu-c_tests" "$BUNDLE/c_tests"

say "building the Rust tests and benchmarks"
# Those in tests/ are of the host backend or of the tree itself.
cargo test --locked --no-run --lib --message-format=json --target-dir "$GPU_TARGET" |
  "$PYTHON" scripts/cargo_programs.py "$BUNDLE/rust_tests"
if compgen -G 'benches/*.rs' >/dev/null; then
  cargo bench --locked --no-run --benches --message-format=json --target-dir "$GPU_TARGET" |
    "$PYTHON" scripts/cargo_programs.py "$BUNDLE/benches"
fi

say "collecting the GPU benchmarks"
"${CC:-cc}" -std=c11 -O2 -Wall -Wextra -D_GNU_SOURCE -I "$BUNDLE/include" benches/gpu/call_cost.c \
  -o "$BUNDLE/benches/call_cost" -L "$BUNDLE/lib" -lcvc -ldl '-Wl,-rpath,$ORIGIN/../lib'
git ls-files benches/gpu cuda | tar -cf - -T - | tar -xf - -C "$BUNDLE"

say "collecting the Python package and the wheels that its tests need"
git ls-files python_ctypes | tar -cf - -T - | tar -xf - -C "$BUNDLE"
retry "$PYTHON" -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
  --python-version "$PYTHON_VERSION" --implementation cp -d "$BUNDLE/wheels" \
  --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
  'cffi>=2' 'pycparser' 'pillow==13.0.0'

cp scripts/common.sh "$BUNDLE/scripts/"
cp scripts/gpu_run.sh "$BUNDLE/run.sh"
mebibytes=$(du -sm "$BUNDLE" | cut -f 1)
du -sh "$BUNDLE"/*
say "build/gpu has $mebibytes MiB; copy it and run: ./run.sh tests sanitizers order kernels bench"
[ "$mebibytes" -le "$MAX_MIB" ] || {
  say "that is more than $MAX_MIB MiB"
  exit 1
}

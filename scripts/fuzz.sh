#!/usr/bin/env bash
# Runs each fuzz target for a while, by libFuzzer and AddressSanitizer on the nightly toolchain. `fuzz.sh [SECONDS]`.
# What a target learns stays in build/fuzz/TARGET, and is where the next run begins; what makes it fail is in
# build/fuzz/failures, to be run again by naming the file: build/fuzz/target/.../TARGET FILE.
set -euo pipefail
source "$(dirname "$0")/common.sh"
seconds=${1:-60}
host=$(rustc -vV | sed -n 's/^host: //p')
if ! cargo +nightly --version >/dev/null 2>&1; then
  skip fuzz "there is no nightly toolchain"
  exit 0
fi
if ! retry cargo +nightly fetch --locked --quiet --manifest-path fuzz/Cargo.toml; then
  skip fuzz "libfuzzer-sys could not be fetched"
  exit 0
fi
# What cargo-fuzz asks the compiler for.
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
flags+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
flags+=" -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address -Ccodegen-units=1"
CVC_CUDA_ARCHS=none RUSTFLAGS=$flags cargo +nightly build --locked --quiet --release --manifest-path fuzz/Cargo.toml \
  --target "$host" --target-dir "$BUILD/fuzz/target"
mkdir -p "$BUILD/fuzz/failures"
for source in fuzz/fuzz_targets/*.rs; do
  name=$(basename "$source" .rs)
  program=$BUILD/fuzz/target/$host/release/$name
  # Parts of a target are no targets.
  [ -x "$program" ] || continue
  mkdir -p "$BUILD/fuzz/$name"
  say "$name for $seconds s"
  # Caches and streams live as long as the process.
  ASAN_OPTIONS=detect_leaks=0 "$program" -max_total_time="$seconds" -max_len=4096 -timeout=20 -print_final_stats=1 \
    -verbosity=0 -artifact_prefix="$BUILD/fuzz/failures/$name-" "$BUILD/fuzz/$name" 2>&1 | grep -v '^"'
  echo "test result: ok. 1 passed; 0 failed; $name was fuzzed for $seconds s"
done

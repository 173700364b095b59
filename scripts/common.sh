# Shared by the scripts of this folder: places, retries, skips by name, and stages with their times and test counts.
# Source it from a script that has set -uo pipefail; it changes to the repository's root.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
ROOT=$PWD
BUILD=$ROOT/build
LOGS=$BUILD/logs
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
PYTHON=$BUILD/venv/bin/python
NVCC_PATH=$BUILD/nvcc/nvidia/cu13/bin/nvcc
JOBS=$(nproc)
# One compilation of the kernels serves every profile and target folder.
export CVC_KERNEL_CACHE=$BUILD/kernels
mkdir -p "$LOGS"

say() { printf '%s\n' "-- $*"; }

# retry COMMAND...: three tries, since what fetches may fail once.
retry() {
  local try
  for try in 1 2 3; do
    "$@" && return 0
    say "try $try of 3 failed: $*"
  done
  return 1
}

# skip NAME REASON: something could not be had. The run goes on without it, and CI fails on it.
skip() {
  printf 'SKIPPED: %s: %s\n' "$1" "$2" | tee -a "$LOGS/skipped"
}

# ---- Stages ----

STAGE_LINES=()
STAGE_STATUS=0
FAILED_STAGES=0
PASSED_TESTS=0
FAILED_TESTS=0

begin_stages() {
  rm -rf "$LOGS"
  mkdir -p "$LOGS"
  : >"$LOGS/skipped"
}

# stage NAME COMMAND...: runs it, with its output shown and kept, and counts the tests that it reports. Ask `passed`
# afterwards: in `stage … && …` bash would ignore `set -e` in the command.
stage() {
  local name=$1 start=$SECONDS log=$LOGS/$1.log status outcome=ok counts passed failed
  shift
  printf '\n==> %s\n' "$name"
  (set -e; "$@") 2>&1 </dev/null | tee "$log"
  status=${PIPESTATUS[0]}
  counts=$(count_tests "$log")
  passed=${counts% *} failed=${counts#* }
  if [ "$status" -ne 0 ]; then
    outcome="FAILED (status $status)"
    FAILED_STAGES=$((FAILED_STAGES + 1))
    # A stage that failed without counting a failed test counts as one.
    [ "$failed" -gt 0 ] || failed=1
  fi
  PASSED_TESTS=$((PASSED_TESTS + passed))
  FAILED_TESTS=$((FAILED_TESTS + failed))
  STAGE_LINES+=("$(printf '%-16s %5d s  %5d passed %3d failed  %s' "$name" $((SECONDS - start)) "$passed" "$failed" "$outcome")")
  printf '<== %s: %s, %d s\n' "$name" "$outcome" $((SECONDS - start))
  STAGE_STATUS=$status
}

# Whether the last stage succeeded.
passed() { [ "$STAGE_STATUS" -eq 0 ]; }

# Adds up the closing lines of cargo test, ctest and pytest.
count_tests() {
  awk '
    /^test result: / { passed += $4; failed += $6 }
    /^[0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+/ { failed += $4; passed += $9 - $4 }
    /^(=+ )?[0-9]+ [a-z]+.* in [0-9.]+s/ {
      for (i = 1; i < NF; i++) {
        if ($(i + 1) ~ /^passed/) passed += $i
        if ($(i + 1) ~ /^(failed|errors?)/) failed += $i
      }
    }
    END { print passed + 0, failed + 0 }' "$1"
}

# Prints the stages and the closing line; fails where a stage failed, no test ran, or (CVC_FAIL_ON_SKIP=1) one was skipped.
end_stages() {
  local status=0
  printf '\n'
  printf '%s\n' "${STAGE_LINES[@]}"
  printf '%-16s %5d s\n' total "$SECONDS"
  cat "$LOGS/skipped"
  [ "$FAILED_STAGES" -eq 0 ] && [ "$FAILED_TESTS" -eq 0 ] || status=1
  if [ "$PASSED_TESTS" -eq 0 ]; then
    say "no test ran"
    status=1
  fi
  if [ -s "$LOGS/skipped" ] && [ "${CVC_FAIL_ON_SKIP:-0}" = 1 ]; then
    say "failed, since something was skipped"
    status=1
  fi
  printf '%d passed, %d failed\n' "$PASSED_TESTS" "$FAILED_TESTS"
  return "$status"
}

#!/usr/bin/env bash
# Runs what `make gpu-bundle` collected on a machine with a GPU: `run.sh tests sanitizers bench`, or some of these.
# Where OUT names a folder, the whole log is left there.
set -uo pipefail
source "$(dirname "$0")/scripts/common.sh"
export CVC_BACKEND=${CVC_BACKEND:-cuda} CVC_LIBRARY=$ROOT/lib/libcvc.so PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
PYTHON=${PYTHON:-python3}
SANITIZER=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)

describe_machine() {
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv
  "$PYTHON" --version
  "$PYTHON" -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$ROOT/site" wheels/*.whl
}

# each_c_test PREFIX...: every program of c_tests/list, run under PREFIX; closes with a line that common.sh counts.
each_c_test() {
  local name command status good=0 bad=0
  cd "$ROOT/c_tests"
  while IFS=$'\t' read -r name command; do
    status=0
    (eval "$* $command") </dev/null >"$LOGS/output" 2>&1 || status=$?
    case $status in
      0)
        good=$((good + 1))
        say "$name: ok"
        ;;
      77) say "$name: does not apply here" ;;
      *)
        bad=$((bad + 1))
        say "$name: FAILED (status $status)"
        tail -n 60 "$LOGS/output"
        ;;
    esac
  done <list
  echo "test result: done. $good passed; $bad failed;"
  [ "$bad" -eq 0 ]
}

rust_tests() {
  local program status=0
  cd "$ROOT/rust_tests"
  for program in ./*; do
    say "$program"
    "$program" || status=1
  done
  return "$status"
}

python_tests() {
  cd "$ROOT/python_ctypes"
  PYTHONPATH=$ROOT/site:. "$PYTHON" -m pytest -q -p no:cacheprovider tests
}

run_benches() {
  local program
  cd "$ROOT/benches"
  for program in ./*; do
    say "$program"
    "$program" --bench
  done
}

begin_stages
stage machine describe_machine
for step in "${@:-tests}"; do
  case $step in
    tests)
      stage c-tests each_c_test
      stage rust-tests rust_tests
      stage python-tests python_tests
      ;;
    sanitizers)
      for tool in memcheck racecheck initcheck synccheck; do
        stage "$tool" each_c_test "$SANITIZER" --tool "$tool" --error-exitcode 1
      done
      ;;
    bench) stage bench run_benches ;;
    *)
      say "$step is not known; tests, sanitizers and bench are"
      exit 2
      ;;
  esac
done
end_stages
status=$?
if [ -n "${OUT:-}" ]; then
  cat "$LOGS"/*.log >"$OUT/gpu.log"
fi
exit "$status"

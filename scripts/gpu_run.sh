#!/usr/bin/env bash
# Runs what `make gpu-bundle` collected on a machine with a GPU: `run.sh tests sanitizers order kernels bench`, or some of
# these.
# Where OUT names a folder, the whole log is left there.
set -uo pipefail
python=${PYTHON:-python3}
source "$(dirname "$0")/scripts/common.sh"
PYTHON=$python
export CVC_BACKEND=${CVC_BACKEND:-cuda} CVC_LIBRARY=$ROOT/lib/libcvc.so PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# So many processes use the GPU at once: each has a context, which takes memory of the machine's too.
export CVC_JOBS=${CVC_JOBS:-4}
SANITIZER=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)

describe_machine() {
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv
  "$PYTHON" --version
  "$PYTHON" -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$ROOT/site" wheels/*.whl
}

# one_c_test LINE PREFIX: one line of c_tests/list, run under PREFIX, and what came of it in one piece. Under a prefix only
# those that CMakeLists.txt labels `kernels`, since a sanitizer takes most of a minute to patch a process's kernels.
one_c_test() {
  local name command labels prefix=$2 status=0 output
  IFS=$'\t' read -r name command labels <<<"$1"
  if [ -n "$prefix" ] && [[ " $labels " != *" kernels "* ]]; then
    return
  fi
  output=$(eval "timeout 300 $prefix $command" </dev/null 2>&1) || status=$?
  case $status in
    0) say "$name: ok" ;;
    77) say "$name: does not apply here" ;;
    *) printf '%s\n%s\n' "-- $name: FAILED (status $status)" "$(tail -n 60 <<<"$output")" ;;
  esac
}

# each_c_test PREFIX...: every program of c_tests/list, several at once; closes with a line that common.sh counts.
each_c_test() {
  local results good bad
  cd "$ROOT/c_tests"
  results=$(mktemp)
  export -f one_c_test say
  xargs -d '\n' -P "$CVC_JOBS" -I{} bash -c 'one_c_test "$@"' _ {} "$*" <list | tee "$results"
  good=$(grep -c ': ok$' "$results" || true)
  bad=$(grep -c ': FAILED (status ' "$results" || true)
  rm -f "$results"
  echo "test result: done. $good passed; $bad failed;"
  [ "$good" -gt 0 ] && [ "$bad" -eq 0 ]
}

# One of c_tests by itself; its closing line is made one that common.sh counts.
one_program() {
  cd "$ROOT/c_tests"
  "./$1" && echo "test result: done. 1 passed; 0 failed;"
}

# They are of the host backend and of the CUDA backend over a driver made of ordinary memory.
rust_tests() {
  local program status=0
  export CVC_BACKEND=host
  cd "$ROOT/rust_tests"
  for program in ./*; do
    say "$program"
    "$program" || status=1
  done
  return "$status"
}

python_tests() {
  local several=()
  cd "$ROOT/python_ctypes"
  if "$PYTHON" -c 'import xdist' 2>/dev/null; then
    several=(-n "$CVC_JOBS" --dist loadfile)
  fi
  PYTHONPATH=$ROOT/site:. "$PYTHON" -m pytest -q -p no:cacheprovider "${several[@]}" tests
}

# The kernels by themselves: against their host build, then timed.
kernels() {
  if ! command -v nvcc >/dev/null && [ -z "${NVCC:-}" ]; then
    say "nvcc is not here, so the kernels are not checked by themselves"
    return 0
  fi
  CVC_CUDA_ARCHS=$("$PYTHON" -c 'import torch; print("%d%d" % torch.cuda.get_device_capability())' 2>/dev/null ||
    echo 90) "$ROOT/benches/gpu/run_kernels.sh"
}

run_benches() {
  local program
  cd "$ROOT/benches"
  for program in ./*; do
    if [ -f "$program" ]; then
      say "$program"
      "$program" --bench || return 1
    fi
  done
  if "$PYTHON" -c 'import torch' 2>/dev/null; then
    PYTHONPATH=$ROOT/site:$ROOT/python_ctypes "$PYTHON" gpu/operators.py
  else
    say "torch is not here, so the operators are not timed from Python"
  fi
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
      # Calls of the driver that are to fail are the tests' own matter.
      for tool in 'memcheck --report-api-errors no' racecheck initcheck synccheck; do
        # See c_tests/test_var_shape.c.
        case $tool in initcheck) export CVC_NOT_HELD=1 ;; *) unset CVC_NOT_HELD ;; esac
        stage "${tool%% *}" each_c_test "$SANITIZER" --tool $tool --error-exitcode 1
        CVC_CHECK_PREFIX="$SANITIZER --tool $tool --error-exitcode 1" stage "kernels-${tool%% *}" kernels
      done
      ;;
    # Two minutes of the test that `tests` runs for two seconds.
    order) CVC_ORDER_SECONDS=120 stage order one_program test_cuda_order ;;
    kernels) stage kernels kernels ;;
    bench) stage bench run_benches ;;
    *)
      say "$step is not known; tests, sanitizers, order, kernels and bench are"
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

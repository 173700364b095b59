#!/usr/bin/env bash
# Checks the GPU kernels against their host build on this machine's GPU, then times them. `run_kernels.sh DIR`: the
# programs are there; without them they are built there from the sources, with nvcc and g++. CVC_CHECK_PREFIX: a command
# under which a few cases are checked, and nothing is timed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
programs=${1:-$root/build/gpu/kernels}
mkdir -p "$programs"

if [ ! -x "$programs/kernel_check" ] || [ ! -x "$programs/kernel_bench" ]; then
  nvcc=${NVCC:-$(command -v nvcc || echo "$root/build/nvcc/nvidia/cu13/bin/nvcc")}
  architecture=${CVC_CUDA_ARCHS:-90}
  for source in "$root"/cuda/host/*.cpp; do
    printf '%s\0' "$source"
  done | xargs -0 -P "$(nproc)" -I{} sh -c 'g++ -O3 -std=c++17 -ffp-contract=off -fno-math-errno -fno-exceptions \
    -fno-rtti -I"$1/cuda" -c "$2" -o "$3/$(basename "$2" .cpp).host.o"' sh "$root" {} "$programs"
  for program in kernel_check kernel_bench; do
    "$nvcc" -gencode "arch=compute_$architecture,code=sm_$architecture" -O3 -std=c++17 -lineinfo -Xptxas -v \
      -fmad=false --ftz=false --prec-div=true --prec-sqrt=true -cudart static \
      -I "$root/cuda" -I "$here" "$here/$program.cu" "$programs"/*.host.o -o "$programs/$program" \
      >"$programs/$program.log" 2>&1 &
  done
  for _ in 1 2; do
    wait -n || {
      cat "$programs"/*.log
      exit 2
    }
  done
fi

if [ -n "${CVC_CHECK_PREFIX:-}" ]; then
  # shellcheck disable=SC2086 # the words of a command
  exec timeout 300 $CVC_CHECK_PREFIX "$programs/kernel_check" "${CVC_CHECK_CASES:-6}" "${CVC_CHECK_SEED:-1}"
fi
timeout 150 "$programs/kernel_check" "${CVC_CHECK_CASES:-600}" "${CVC_CHECK_SEED:-1}"
timeout 60 "$programs/kernel_bench"

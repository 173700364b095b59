#!/usr/bin/env bash
# Runs the GPU kernels' sources on a GPU made of fibers and compares them with their host build, bit for bit. It needs
# no GPU and no nvcc. `emulated_gpu.sh [FACTOR]`: how many times as many cases.
set -euo pipefail
source "$(dirname "$0")/common.sh"
factor=${1:-1}
if [ "$(uname -m)" != x86_64 ]; then
  say "the emulated GPU is for x86-64"
  exit 0
fi
# The host build of the kernels, which every build of the crate leaves here.
archive=$(find "$CVC_KERNEL_CACHE" -name '*libcvc_host_kernels.a' -printf '%T@ %p\n' | sort -rn | head -n 1 | cut -d ' ' -f 2)
folder=$BUILD/emulated_gpu
mkdir -p "$folder"
compiler=${CXX:-g++}
# What the CUDA compiler knows, such as unrolling, means nothing to this one: no warnings.
"$compiler" -std=c++17 -O1 -ffp-contract=off -w -x c++ -include tests/emulated_gpu/emulator.h -Icuda -Ibenches/gpu \
  -c benches/gpu/kernel_check.cu -o "$folder/kernel_check.o" &
"$compiler" -std=c++17 -O2 -Wall -Wextra -c tests/emulated_gpu/emulator.cpp -o "$folder/emulator.o"
wait $!
"$compiler" "$folder/kernel_check.o" "$folder/emulator.o" "$archive" -o "$folder/kernel_check"
checks() { "$folder/kernel_check" "$(($1 * factor))" "${CVC_CHECK_SEED:-1}" "$2"; }
for kernel in flip convert_to normalize reformat nv12; do
  checks 100 "$kernel"
done
for kernel in flip_var_shape normalize_var_shape; do
  checks 60 "$kernel"
done
checks 12 preprocess
checks 4 resize

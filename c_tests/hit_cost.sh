#!/bin/sh
# Counts the instructions of a hit (one create and release) with callgrind: below a bound, and the same beside 10 and
# beside 100 000 idle entries; no allocation and no lock that waits is called on the way.
#
# Usage: hit_cost.sh VALGRIND PROGRAM FOLDER
set -eu
valgrind=$1
program=$2
folder=$3
most=400
pairs=2000

mkdir -p "$folder"

# cost IDLE [current]: instructions a pair. Counted inside the two functions, from the last entry of the loop on.
cost() {
  log=$folder/$1${2:-}.log
  profile=$folder/$1${2:-}.out
  "$valgrind" --tool=callgrind --callgrind-out-file="$profile" --zero-before=create_and_release \
    --toggle-collect=cvc_tensor_create --toggle-collect=cvc_tensor_release \
    "$program" "$1" $pairs "${2:-}" >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
  }
  collected=$(sed -n 's/^summary: \([0-9]*\)$/\1/p' "$profile")
  echo $((collected / pairs))
}

current=$(cost 10 current)
few=$(cost 10)
many=$(cost 100000)
echo "instructions a create and release: $few beside 10 idle entries, $many beside 100000;" \
  "$current where the device is left to the thread"

status=0
for value in "$few" "$many"; do
  if [ "$value" -le 0 ] || [ "$value" -ge $most ]; then
    echo "failed: expected between 0 and $most" >&2
    status=1
  fi
done
difference=$((many - few))
[ $difference -ge 0 ] || difference=$((-difference))
if [ $((difference * 20)) -gt "$few" ]; then
  echo "failed: the two differ by more than 5 %" >&2
  status=1
fi
# Functions in the profile: the loop's alone.
if grep -E '^c?fn=\([0-9]+\) ([a-z_]*(malloc|calloc|realloc)|free|cfree|mmap|munmap|brk|sbrk|syscall|futex.*|.*lll_lock_wait.*)$' \
  "$folder"/100000.out >&2; then
  echo "failed: a hit calls the functions above" >&2
  status=1
fi
exit $status

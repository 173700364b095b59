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

# cost IDLE: hundredths of instructions a pair, the loop's own few included.
cost() {
  log=$folder/$1.log
  "$valgrind" --tool=callgrind --callgrind-out-file="$folder/$1.out" --toggle-collect=create_and_release \
    "$program" "$1" $pairs >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
  }
  collected=$(sed -n 's/^==[0-9]*== Collected : \([0-9]*\).*/\1/p' "$log")
  echo $((collected * 100 / (pairs + 10))) # ten more come first, to warm up
}

few=$(cost 10)
many=$(cost 100000)
echo "instructions a create and release: $((few / 100)).$((few % 100)) beside 10 idle entries," \
  "$((many / 100)).$((many % 100)) beside 100000"

status=0
for value in "$few" "$many"; do
  if [ "$value" -le 0 ] || [ "$value" -ge $((most * 100)) ]; then
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

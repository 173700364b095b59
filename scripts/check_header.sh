#!/usr/bin/env bash
# Checks include/: the generated header is the one of the last build, and each header compiles on its own without warnings.
set -euo pipefail
source "$(dirname "$0")/common.sh"

profile=${1:-release}
generated=$(ls -t "$TARGET/$profile"/build/cvc-*/out/cvc.h | head -n 1)
if ! diff -u include/cvc.h "$generated"; then
  say "include/cvc.h is stale: make header writes it anew"
  exit 1
fi
strict=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only)
"${CC:-cc}" -std=c11 "${strict[@]}" -x c include/cvc.h
"${CXX:-c++}" -std=c++17 "${strict[@]}" -x c++ include/cvc.h
for header in include/*.hpp include/*/*.hpp; do
  [ -e "$header" ] || continue
  "${CXX:-c++}" -std=c++17 "${strict[@]}" -x c++ -I include - <<<"#include \"${header#include/}\""
done
say "include/ is up to date and compiles as C11 and C++17"

#!/usr/bin/env bash
# Checks the built shared library: it exports the header's functions and nothing else, and needs the C library alone.
set -euo pipefail
source "$(dirname "$0")/common.sh"

library=${1:-$TARGET/release/libcvc.so}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() {
  say "$*"
  failed=1
}

nm -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | sort -u >"$work/exported"
"${CC:-cc}" -E -P -x c include/cvc.h | tr '\n' ' ' | tr ';' '\n' | grep -v typedef |
  grep -oE '\bcvc_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u >"$work/declared"
if ! diff "$work/declared" "$work/exported" >"$work/difference"; then
  complain "declared in include/cvc.h (<) and exported (>) differ:"
  cat "$work/difference"
fi

if nm -D --undefined-only "$library" | grep -E ' (_Z|__cxa_(begin|end|throw|guard|pure)|__gxx)|GLIBCXX'; then
  complain "it needs the C++ run-time library"
fi
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for name in $needed; do
  case $name in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libgcc_s.so.* | ld-linux*) ;;
    *) complain "it needs $name" ;;
  esac
done
version=$(sed -n '/^\[package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
IFS=. read -r major minor _ <<<"$version"
soname=libcvc.so.$([ "$major" = 0 ] && echo "0.$minor" || echo "$major")
readelf -d "$library" | grep -q "(SONAME).*\[$soname\]" || complain "its soname is not $soname"
readelf -d "$library" | grep -q NODELETE || complain "it can be unloaded (no -z nodelete)"

if compgen -G 'cuda/*.cu' >/dev/null; then
  image=$(ls -t "$(dirname "$library")"/build/cvc-*/out/cvc_kernels.fatbin 2>/dev/null | head -n 1)
  bytes=$([ -n "$image" ] && stat -c %s "$image" || echo 0)
  [ "$bytes" -gt 0 ] || [ -s "$LOGS/skipped" ] || complain "it was built without device kernels"
  [ "$bytes" -le $((12 << 20)) ] || complain "the device kernels are larger than 12 MiB"
  say "device kernels: $bytes bytes"
fi
say "$(wc -l <"$work/exported") functions exported, library $(stat -c %s "$library") bytes, needs: ${needed//$'\n'/ }"
exit "$failed"

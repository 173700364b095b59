#!/bin/sh
# Builds one program with pkg-config's flags, with the shared and with the static library, and runs both.
#
# Usage: pkg_config.sh PKG_CONFIG COMPILER FOLDER-OF-CVC.PC SOURCE FOLDER
set -eu
pkg_config=$1
compiler=$2
export PKG_CONFIG_PATH=$3
source=$4
folder=$5
mkdir -p "$folder"

# shellcheck disable=SC2046 # the flags are words
"$compiler" -std=c11 "$source" -o "$folder/shared" $("$pkg_config" --cflags --libs cvc)
LD_LIBRARY_PATH=$("$pkg_config" --variable=libdir cvc)
export LD_LIBRARY_PATH
"$folder/shared"

static=$("$pkg_config" --static --libs cvc | sed 's/-lcvc\b/-l:libcvc.a/')
# shellcheck disable=SC2046,SC2086
"$compiler" -std=c11 "$source" -o "$folder/static" $("$pkg_config" --cflags cvc) $static
unset LD_LIBRARY_PATH
"$folder/static"
if ldd "$folder/static" | grep libcvc; then
  echo "failed: the static program needs the shared library" >&2
  exit 1
fi
echo "version $("$pkg_config" --modversion cvc)"

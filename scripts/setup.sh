#!/usr/bin/env bash
# Puts what the other targets need into build/, or installs it: `setup.sh venv nvcc valgrind pkg-config`. What is there
# already costs no call.
set -uo pipefail
source "$(dirname "$0")/common.sh"

# The same text as when the place was last filled means that there is nothing to do.
fresh() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

apt_install() {
  [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return 1
  say "installing $* with apt-get"
  export DEBIAN_FRONTEND=noninteractive
  retry sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null' sh "$@"
}

make_venv() {
  rm -rf "$BUILD/venv"
  python3 -m venv "$BUILD/venv" >/dev/null 2>&1 && return 0
  rm -rf "$BUILD/venv"
  python3 -m virtualenv -q "$BUILD/venv" 2>/dev/null && return 0
  rm -rf "$BUILD/venv"
  apt_install python3-venv && python3 -m venv "$BUILD/venv"
}

setup_venv() {
  local stamp=$BUILD/venv/.stamp wanted
  command -v python3 >/dev/null || apt_install python3 python3-venv
  wanted="$(python3 --version) $(cat scripts/requirements.txt)"
  fresh "$stamp" "$wanted" && return 0
  say "making build/venv and installing the Python packages of scripts/requirements.txt"
  if ! make_venv; then
    skip venv "neither venv nor virtualenv made an environment for $(command -v python3)"
    return 1
  fi
  if ! retry "$PYTHON" -m pip install -q --disable-pip-version-check -r scripts/requirements.txt; then
    skip venv "pip could not install scripts/requirements.txt"
    return 1
  fi
  printf '%s' "$wanted" >"$stamp"
}

# cargo cannot watch a compiler that is not there yet. Where it is another one than at the last time, or the first, this
# makes cargo look for it again.
note_nvcc() {
  fresh "$BUILD/.nvcc" "$1" && return 0
  touch build.rs && printf '%s' "$1" >"$BUILD/.nvcc"
}

setup_nvcc() {
  local stamp=$BUILD/nvcc/.stamp wanted installed
  wanted=$(cat scripts/requirements-nvcc.txt)
  fresh "$stamp" "$wanted" && return 0
  if [ ! -e "$BUILD/nvcc" ] && installed=$(command -v "${NVCC:-nvcc}"); then
    say "using the nvcc that is installed: $installed"
    # One that went away and came back has another time of change.
    note_nvcc "$installed $(stat -Lc %Z "$installed")"
    return
  fi
  setup_venv || return 1
  say "installing CUDA's compiler into build/nvcc (100 MB to fetch, 270 MB on disk)"
  rm -rf "$BUILD/nvcc" "$BUILD/nvcc.part"
  if ! retry "$PYTHON" -m pip install -q --disable-pip-version-check --no-deps --upgrade \
    --target "$BUILD/nvcc.part" -r scripts/requirements-nvcc.txt; then
    skip nvcc "pip could not install scripts/requirements-nvcc.txt"
    return 1
  fi
  mv "$BUILD/nvcc.part" "$BUILD/nvcc"
  if ! "$NVCC_PATH" --version >/dev/null; then
    skip nvcc "the installed one does not run"
    return 1
  fi
  printf '%s' "$wanted" >"$stamp"
  rm -f "$BUILD/.nvcc"
  note_nvcc "$NVCC_PATH"
}

# A tool from Debian's package of the same name.
setup_tool() {
  command -v "$1" >/dev/null && return 0
  apt_install "$1" && return 0
  skip "$1" "it is not installed, and apt-get could not install it"
  return 1
}

status=0
for what in "$@"; do
  case $what in
    venv | nvcc) "setup_$what" || status=1 ;;
    valgrind | pkg-config) setup_tool "$what" || status=1 ;;
    *)
      echo "setup.sh: $what is not known; venv, nvcc, valgrind and pkg-config are" >&2
      exit 2
      ;;
  esac
done
exit "$status"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash bench/peers/run.sh PHOTOS [ROUNDS] [SECONDS]
#
# Measures other loaders and millrace on the JPEGs in the class folders of PHOTOS. Makes a venv of
# packages from PyPI for each in build/peers (10 GB), and writes build/peers/table.md. A loader that
# cannot be installed is skipped, with its reason in the table. With MILLRACE_LIBRARY
# (libmillrace.so) and MILLRACE_COMMAND set, millrace is not built.
set -euo pipefail
if [ ! -d "${1:-}" ]; then
  sed -n '4s/^# *//p' "$0" >&2
  exit 2
fi
photos=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bash cmake/install_packages.sh peers >&2
work=$PWD/build/peers
mkdir -p "$work"
export PIP_DISABLE_PIP_VERSION_CHECK=1

# Makes the venv $1 with the packages that follow.
venv() {
  local name=$1
  shift
  [ ! -e "$work/$name.installed" ] || return 0
  printf '=== %s\n' "$name" >&2
  rm -rf "${work:?}/$name" "$work/$name.skipped"
  python3 -m venv "$work/$name"
  # FFCV uses torch's packages.
  [ "$name" != ffcv ] || ls -d "$work"/torch/lib/python3*/site-packages >"$(
    ls -d "$work"/ffcv/lib/python3*/site-packages
  )/torch.pth"
  if "$work/$name/bin/pip" install --quiet "$@" 2>"$work/$name.log"; then
    touch "$work/$name.installed"
  else
    grep -i error "$work/$name.log" | tail -n 1 | tr '|' '/' >"$work/$name.skipped"
  fi
}

if [ -n "${MILLRACE_LIBRARY:-}" ]; then
  export PYTHONPATH=$PWD/bench/python
  venv millrace numpy pillow
else
  rm -f "$work/millrace.installed"  # the sources may have changed
  venv millrace numpy pillow ./bench/python
fi
venv spdl spdl numpy pillow
venv mlx-data mlx-data numpy pillow
venv grain grain pillow
venv turboloader turboloader numpy pillow
venv tensorflow tensorflow-cpu pillow
venv dali nvidia-dali-cuda120 numpy pillow
venv torch torch torchvision numpy pillow
venv ffcv opencv-python-headless ffcv

"$work/millrace/bin/python" -B bench/peers/table.py "$photos" "$work" "${2:-3}" "${3:-3}" |
  tee "$work/table.md"

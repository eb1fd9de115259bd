#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash examples/quickstart.sh [FOLDER]
#
# From nothing to numbers: installs the packages that millrace needs, builds it, packs the
# photographs of FOLDER into a dataset and runs the throughput bench on it. Without FOLDER it makes
# 300 photograph-like pictures first. All output is in build/.
set -euo pipefail

usage() { sed -n 's/^# \?//; 4,8p' "${BASH_SOURCE[0]}"; }
case "$#:${1:-}" in
  1:-h | 1:--help) usage && exit 0 ;;
  0:* | 1:*) ;;
  *) usage >&2 && exit 2 ;;
esac
folder=${1:-}
if [ -n "$folder" ]; then
  if [ ! -d "$folder" ]; then
    printf 'quickstart.sh: %s is not a folder. ' "$folder" >&2
    printf 'Name one with photographs, or none to have some made.\n' >&2
    exit 1
  fi
  folder=$(cd "$folder" && pwd)
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
printf 'In %s:\n' "$PWD"

# Shows each command before it runs it.
run() {
  printf '\n$'
  printf ' %q' "$@"
  printf '\n'
  "$@"
}

out=build/quickstart
targets=(millrace)
[ -n "$folder" ] || targets+=(make_photos)

run bash cmake/install_packages.sh build
run cmake --preset release -DMILLRACE_TESTS=OFF
run cmake --build --preset release --target "${targets[@]}"
mkdir -p "$out"
if [ -z "$folder" ]; then
  folder=$out/photos
  run rm -rf "$folder"
  run build/release/examples/make_photos "$folder" 300
fi
run build/release/bench/millrace pack "$folder" "$out/photos.lmdb" --skip-bad --force
run build/release/bench/millrace bench "$out/photos.lmdb" --recipe train --size 224 \
  --batch-size 64 --step-ms auto --seconds 5

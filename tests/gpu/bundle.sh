#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash tests/gpu/bundle.sh OUT [BUILD_DIR] [PHOTOS]
#
# Makes a bundle in the new folder OUT: all that tests/gpu/run.sh needs on an x86-64 Linux machine
# with a GPU whose C library is as new as this one's, in at most 58 MiB: with the tree below 64.
#
#   programs.tar.gz   bin and lib: the programs of BUILD_DIR (build/release) with their libraries,
#                     and resnet18 of MILLRACE_TORCH_BUILD (build/torch_cuda, tests/torch_cuda.sh)
#   photos.tar        at most 20 MB: every k-th JPEG in PHOTOS (a folder of class
#                     folders; ../shared/data/photos beside the project), packed there
#   run.sh ...        the script, what it includes, and the example for Python
#
# The C and C++ libraries, the driver, CUDA's large libraries (cuBLAS, CUPTI) and PyTorch's are left
# to that machine. A program that is not built is left out, and the script tells its steps as not
# run. There: bash OUT/run.sh
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../.." && pwd)
programs=(bench/millrace bench/micro/millrace_gpu_benchmarks examples/train tests/gpu/gpu_tests
  tests/gpu/gpu_call_tests)
most_photo_bytes=20000000
most_bytes=$((58 << 20))

fail() {
  printf 'bundle.sh: %s\n' "$*" >&2
  exit 1
}
if [ $# -lt 1 ] || [ $# -gt 3 ]; then
  printf 'usage: %s OUT [BUILD_DIR] [PHOTOS]\n' "$0" >&2
  exit 2
fi
out=$1
build=${2:-$project/build/release}
photos=${3:-$project/../shared/data/photos}
torch_build=${MILLRACE_TORCH_BUILD:-$project/build/torch_cuda}
[ -x "$build/bench/millrace" ] ||
  fail "$build/bench/millrace: there is no such program; build millrace, or name its build folder"
[ -d "$photos" ] || fail "$photos: there is no such folder; name one with JPEGs in class folders"
[ ! -e "$out" ] || fail "$out: is there already; name a new folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/bin" "$work/lib"

# Libraries that every Linux machine has, and libraries of CUDA that belong to the driver or are
# large.
linux='linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s)'
cuda='lib(cuda|cudart|cu(blas|dnn|fft|file|pti|rand|solver|sparse).*|nccl|nv.*)'
torch='lib(torch.*|c10.*|shm|gomp.*)'
leave="^($linux|$cuda|$torch)[.-]"
# copy_libraries FILE: copies the libraries that it names, and those that they name in turn. `ldd`
# would also list the dependencies of libraries that are left out.
copy_libraries() {
  local name path
  local -A found=()
  while read -r name path; do found[$name]=$path; done < <(ldd "$1" |
    awk '$2 == "=>" {print $1, $3}')
  copy_named "$1"
}
copy_named() {
  local name path
  while read -r name; do
    path=${found[$name]:-not}
    if [[ $name =~ $leave ]] || [ -e "$work/lib/$name" ]; then continue; fi
    [ "$path" != not ] || fail "$1 needs $name, which is not here"
    cp -L "$path" "$work/lib/$name"
    copy_named "$path"
  done < <(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p')
}
# take FILE FOLDER: copies FILE into bin or lib, with the libraries that it loads.
take() {
  if [ ! -e "$1" ]; then
    printf 'bundle.sh: left out, since it is not built: %s\n' "$1" >&2
    return
  fi
  cp -L "$1" "$work/$2/"
  copy_libraries "$1"
}
for program in "${programs[@]}"; do take "$build/$program" bin; done
take "$torch_build/examples/resnet18" bin
take "$build/bench/c/libmillrace.so.0.1" lib
# Half of the libraries' bytes are tables that compress well.
tar -czf "$out/programs.tar.gz" -C "$work" bin lib

# Takes every k-th photograph, with k as small as the limit allows, in their class folders.
mapfile -t files < <(cd "$photos" && find . -type f \( -iname '*.jpg' -o -iname '*.jpeg' \) | sort)
[ ${#files[@]} -gt 0 ] || fail "$photos: has no .jpg or .jpeg"
all_bytes=$(cd "$photos" && printf '%s\0' "${files[@]}" | du -bc --files0-from=- | tail -n 1 |
  cut -f 1)
every=$(((all_bytes * 21 / 20 + most_photo_bytes - 1) / most_photo_bytes))
for ((i = 0; i < ${#files[@]}; i += every)); do
  printf '%s\0' "${files[i]#./}"
done | tar -c -f "$out/photos.tar" -C "$photos" --dereference --transform 's|^|photos/|' --null -T -

for part in run.sh plan.sh steps.py machine.py summarize.py table.py cost_model.py cost_model.json \
  README.md; do
  cp "$here/$part" "$out/"
done
mkdir "$out/python"
for part in loader.py resnet18.py; do
  if [ -e "$project/examples/python/$part" ]; then
    cp "$project/examples/python/$part" "$out/python/"
  else
    printf 'bundle.sh: left out, since it is not there: %s\n' "examples/python/$part" >&2
  fi
done
mkdir "$out/python/millrace"
cp "$project"/bench/python/millrace/*.py "$out/python/millrace/"
{ git -C "$project" describe --always --dirty --exclude='*' 2>/dev/null || echo unknown; } \
  >"$out/commit"

for part in programs.tar.gz photos.tar; do
  printf '%s: %d bytes\n' "$part" "$(du -sb "$out/$part" | cut -f 1)"
done
bytes=$(du -sb "$out" | cut -f 1)
printf '%s: %d bytes\n' "$out" "$bytes"
[ "$bytes" -le "$most_bytes" ] || fail "$out: is larger than $most_bytes bytes"

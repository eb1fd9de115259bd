#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash tests/gpu/bundle.sh OUT [BUILD_DIR] [PHOTOS]
#
# Packs what tests/gpu/run.sh needs in the new folder OUT, for an x86-64 Linux machine with a GPU
# whose C library is as new as this one's: the programs of BUILD_DIR (build/release) with their
# shared libraries (programs.tar.gz: bin and lib), and a dataset of at most 20 MB made of every
# so-and-so-many-th JPEG in PHOTOS (a folder of class folders; ../shared/data/photos beside the
# project). The C and C++ libraries, the driver and CUDA's large libraries (cuBLAS, CUPTI) are left
# to that machine. There: bash OUT/run.sh
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../.." && pwd)
programs=(bench/millrace bench/micro/millrace_gpu_benchmarks examples/train tests/gpu/gpu_tests
  tests/gpu/gpu_call_tests)
most_photo_bytes=20000000
most_bytes=60000000

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
[ -x "$build/bench/millrace" ] ||
  fail "$build/bench/millrace: there is no such program; build millrace, or name its build folder"
[ -d "$photos" ] || fail "$photos: there is no such folder; name one with JPEGs in class folders"
[ ! -e "$out" ] || fail "$out: is there already; name a new folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chosen=$work/photos
mkdir -p "$out" "$work/bin" "$work/lib" "$chosen"

# What every Linux machine has, and what is of CUDA and goes with the driver or is large.
linux='linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s)'
cuda='lib(cuda|nvidia-.*|cublas|cublasLt|cupti|nvrtc|nvJitLink)'
leave="^($linux|$cuda)[.-]"
copy_libraries() {
  local name path
  while read -r name path; do
    if [[ $name =~ $leave ]] || [ -e "$work/lib/$name" ]; then continue; fi
    [ "$path" != not ] || fail "$1 needs $name, which is not here"
    cp -L "$path" "$work/lib/$name"
  done < <(ldd "$1" | awk '$2 == "=>" {print $1, $3}')
}
for program in "${programs[@]}"; do
  if [ ! -x "$build/$program" ]; then
    printf 'bundle.sh: left out, since %s has none: %s\n' "$build" "$program" >&2
    continue
  fi
  cp -L "$build/$program" "$work/bin/"
  copy_libraries "$build/$program"
done
# Half of the libraries' bytes are tables that shrink well.
tar -czf "$out/programs.tar.gz" -C "$work" bin lib

# Every k-th of the photographs, k as small as the limit allows. Copies, in their class folders:
# their names become the classes.
mapfile -t files < <(cd "$photos" && find . -type f \( -iname '*.jpg' -o -iname '*.jpeg' \) | sort)
[ ${#files[@]} -gt 0 ] || fail "$photos: has no .jpg or .jpeg"
all_bytes=$(cd "$photos" && printf '%s\0' "${files[@]}" | du -bc --files0-from=- | tail -n 1 |
  cut -f 1)
every=$(((all_bytes * 21 / 20 + most_photo_bytes - 1) / most_photo_bytes))
for ((i = 0; i < ${#files[@]}; i += every)); do
  mkdir -p "$chosen/$(dirname "${files[i]}")"
  cp -L "$photos/${files[i]}" "$chosen/${files[i]}"
done
"$build/bench/millrace" pack "$chosen" "$out/photos.lmdb" --skip-bad

cp "$here/run.sh" "$here/summarize.py" "$out/"
{ git -C "$project" describe --always --dirty --exclude='*' 2>/dev/null || echo unknown; } \
  >"$out/commit"

for part in programs.tar.gz photos.lmdb; do
  printf '%s: %d bytes\n' "$part" "$(du -sb "$out/$part" | cut -f 1)"
done
bytes=$(du -sb "$out" | cut -f 1)
printf '%s: %d bytes\n' "$out" "$bytes"
[ "$bytes" -le "$most_bytes" ] || fail "$out: is larger than $most_bytes bytes"

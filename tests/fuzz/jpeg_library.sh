#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash tests/fuzz/jpeg_library.sh FOLDER
#
# Builds Debian's libjpeg-turbo from its source package: libjpeg.so.62 in FOLDER. It is built with
# the address and undefined-behaviour sanitizers and with libFuzzer's instrumentation of branches.
# The fuzzers of the asan build load it instead of Debian's if FOLDER is build/libjpeg-turbo when
# CMake runs. It has no SIMD, because assembler code is not checked; the pixels are the same. Fast
# if it is done already. Otherwise it fetches 10 MB of lists and 3 MB of sources, and takes about
# 110 s of processor time.
#
# The machine's packages and lists are not changed. Ends with status 1 and a message if the library
# cannot be built.
set -euo pipefail

folder=${1:?usage: jpeg_library.sh FOLDER}
[ ! -e "$folder/libjpeg.so.62" ] || exit 0
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf 'jpeg_library.sh: %s\n' "$*" >&2
  if [ -s "$work/log" ]; then tail -n 5 "$work/log" >&2; fi
  exit 1
}
for tool in apt-get dpkg-source clang cmake ninja; do
  command -v "$tool" >/dev/null || fail "there is no $tool"
done

# The sources of packages are on the same servers as the packages.
mkdir -p "$work"/{sources,lists/partial,cache/archives/partial}
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
  if [ -r "$list" ]; then
    sed -E 's/^Types:.*/Types: deb-src/; /^deb-src /d; s/^deb /deb-src /' "$list" \
      >"$work/sources/$(basename "$list")"
  fi
done
apt() {
  apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/sources" \
    -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root \
    "$@" >>"$work/log" 2>&1
}
cd "$work"
apt update || fail "there are no lists of source packages:"
apt source libjpeg-turbo || fail "there is no source package libjpeg-turbo:"
cd libjpeg-turbo-*/

flags="-O1 -gline-tables-only -fno-omit-frame-pointer"
flags+=" -fsanitize=address,undefined -fno-sanitize-recover=all"
flags+=" -fsanitize-coverage=inline-8bit-counters,pc-table"
cmake -G Ninja -S . -B build -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE= -DCMAKE_C_FLAGS="$flags" \
  -DWITH_SIMD=0 -DENABLE_STATIC=0 >>"$work/log" 2>&1 || fail "CMake refuses it:"
cmake --build build -j "$(nproc)" --target jpeg >>"$work/log" 2>&1 || fail "it does not compile:"
cp build/libjpeg.so.62 "$folder/"

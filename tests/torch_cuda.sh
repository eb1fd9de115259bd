#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash tests/torch_cuda.sh [--if-fetched] [BUILD_DIR]
#
# Builds with the LibTorch for CUDA of PyPI's torch: configures the project with it, installs
# BUILD_DIR (build/release), and builds examples/resnet18 against the two, as
# build/torch_cuda/examples/resnet18. Trains with that on the CPU where CUDA's libraries are there.
# tests/gpu/bundle.sh takes this program along: it starts with the libraries of any PyTorch of that
# version (LD_LIBRARY_PATH).
#
# Fetches about 530 MB once and leaves 1.1 GB in build/torch_cuda. Exits with 77, and says why,
# without a CUDA toolkit or if pip cannot fetch the package. With --if-fetched it also exits with 77
# if the package has not been fetched yet.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=2.11.0  # for CUDA 13.0
out=$PWD/build/torch_cuda

skip() {
  printf 'torch_cuda.sh: skipped: %s\n' "$*"
  exit 77
}
fail() {
  printf 'torch_cuda.sh: %s\n' "$*" >&2
  exit 1
}
quietly() {
  "$@" >"$out/log" 2>&1 || {
    tail -n 40 "$out/log" >&2
    fail "failed: $*"
  }
}

if_fetched=
if [ "${1:-}" = --if-fetched ]; then
  if_fetched=yes
  shift
fi
[ $# -le 1 ] || fail "usage: bash tests/torch_cuda.sh [--if-fetched] [BUILD_DIR]"
build=${1:-build/release}
export PATH=$PATH:/usr/local/cuda/bin
[ -x "$build/bench/millrace" ] || fail "$build: has no bench/millrace; build it first"
cuda=$({ nvcc --version 2>/dev/null || true; } | sed -n 's/^.*release \([0-9.]*\).*/\1/p')
[ -n "$cuda" ] || skip "there is no nvcc"
[ "${cuda%%.*}" = 13 ] || skip "nvcc is of CUDA $cuda, and torch $version needs CUDA 13"
grep -q '^MILLRACE_CUDA:BOOL=ON' "$build/CMakeCache.txt" || skip "$build is built without CUDA"

# Only what programs in C++ need of the package.
torch=$out/wheel/torch
mkdir -p "$out"
if [ ! -e "$out/wheel/complete-$version" ]; then
  [ -z "$if_fetched" ] || skip "torch $version is not fetched; bash tests/torch_cuda.sh does that"
  rm -rf "$out/wheel"
  mkdir "$out/wheel"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --dest "$out/wheel" "torch==$version" >"$out/log" 2>&1 ||
    skip "pip cannot fetch torch $version: $(tail -n 1 "$out/log")"
  quietly python3 - "$out/wheel" <<'END'
import pathlib, sys, zipfile

folder = pathlib.Path(sys.argv[1])
[wheel] = folder.glob("torch-*.whl")
libraries = ["c10", "c10_cuda", "torch", "torch_cpu", "torch_cuda", "torch_nvshmem"]
libraries = {f"torch/lib/lib{name}.so" for name in libraries} | {"torch/lib/libgomp.so.1"}
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if name.startswith(("torch/include/", "torch/share/cmake/")) or name in libraries:
            archive.extract(name, folder)
wheel.unlink()
END
  [ -e "$torch/lib/libtorch_cuda.so" ] || skip "PyPI's torch $version is without CUDA here"
  touch "$out/wheel/complete-$version"
fi

options=(-G Ninja -DCMAKE_BUILD_TYPE=Release -DMILLRACE_TORCH=ON)
printf 'Configuring millrace with LibTorch %s\n' "$version"
quietly cmake -S . -B "$out/configure" "${options[@]}" -DCMAKE_PREFIX_PATH="$torch" \
  -DMILLRACE_CUDA=ON -DMILLRACE_TESTS=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
grep -q -e -DMILLRACE_TORCH_CUDA "$out/configure/compile_commands.json" ||
  fail "$out/configure: nothing is compiled with MILLRACE_TORCH_CUDA"

printf 'Building resnet18 with it\n'
quietly cmake --install "$build" --prefix "$out/prefix"
# Torch's libraries need others of CUDA, which only programs that run have to find.
quietly cmake --fresh -S examples -B "$out/examples" "${options[@]}" \
  -DCMAKE_PREFIX_PATH="$out/prefix;$torch" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wconversion -Werror" \
  -DCMAKE_EXE_LINKER_FLAGS=-Wl,--unresolved-symbols=ignore-in-shared-libs
architectures() { sed -n 's/^CMAKE_CUDA_ARCHITECTURES:[^=]*=//p' "$1/CMakeCache.txt"; }
[ "$(architectures "$out/examples")" = "$(architectures "$build")" ] ||
  fail "$out/examples: is for the GPUs $(architectures "$out/examples"), not millrace's"
quietly cmake --build "$out/examples" --target resnet18
program=$out/examples/resnet18
strip --strip-unneeded "$program"
printf '%s: %d bytes\n' "$program" "$(stat -c %s "$program")"

missing=$(ldd "$program" | sed -n 's/^\s*\(.*\) => not found$/\1/p' | sort -u | tr '\n' ' ')
if [ -n "$missing" ]; then
  printf 'It is not run: these libraries are not here: %s\n' "$missing"
  exit 0
fi
quietly "$build/examples/make_photos" "$out/photos" 40
quietly "$build/bench/millrace" pack "$out/photos" "$out/photos.lmdb" --force
"$program" "$out/photos.lmdb" --size 32 --batch-size 20 --epochs 1

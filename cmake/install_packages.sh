#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the packages of Debian 12 or 13 that millrace needs. If all of them are installed
# already, it is fast and does not call apt-get.
#
#   bash cmake/install_packages.sh build    to build library, command and examples (the default)
#   bash cmake/install_packages.sh test     and the tests
#   bash cmake/install_packages.sh ci       and the format, lint and sanitizer checks of .ci/run
#
#   bash cmake/install_packages.sh peers    what bench/peers needs, beside those of build
set -euo pipefail

fail() {
  printf 'install_packages.sh: %s\n' "$*" >&2
  exit 1
}

packages=(g++ cmake ninja-build pkg-config libtbb-dev liblmdb-dev libhwloc-dev
  libjpeg62-turbo-dev libturbojpeg0-dev libhwy-dev libcli11-dev
  libfmt-dev nlohmann-json3-dev libxxhash-dev libdlpack-dev libarchive-dev libboost-math-dev
  libutfcpp-dev libpng-dev libwebp-dev libssl-dev libstb-dev)
# Tests list the project's files by git. Micro-benchmarks compare with OpenCV's resize, tests with
# Pillow's. Boost.Context runs the threads of GPU kernels as fibres.
test_packages=(git libgtest-dev libgmock-dev libboost-context-dev libopenmpi-dev openmpi-bin
  libbenchmark-dev python3 python3-pil python3-lmdb python3-msgpack python3-protobuf
  libopencv-core-dev libopencv-imgproc-dev)
# llvm contains the symbolizer, which adds function names to sanitizer reports. tests/numa_vm.sh
# needs QEMU, busybox and e2fsprogs; cmake/install_cuda.sh needs pip. Libtorch is large, and few
# users of the tests need what is tested with it: <millrace/torch.h>, examples/resnet18,
# examples/python and DLPack.
ci_packages=(ccache clang clang-format clang-tidy lld llvm qemu-system-x86
  busybox-static e2fsprogs python3-pip dpkg-dev file libtorch-dev python3-torch python3-numpy
  python3-torchvision)

# FFCV is compiled with OpenCV, and SPDL loads the libraries of FFmpeg.
peers_packages=(python3-dev python3-venv libopencv-dev ffmpeg)

system=$(. /etc/os-release 2>/dev/null && printf '%s %s' "${ID:-}" "${VERSION_ID:-}") ||
  system=unknown
case "$system" in  # each has the sanitizers' libraries of its own clang
  "debian 13") ci_packages+=(libclang-rt-19-dev) ;;
  *) ci_packages+=(libclang-rt-14-dev) ;;
esac

level=${1:-build}
case "$level" in
  build) ;;
  test) packages+=("${test_packages[@]}") ;;
  ci) packages+=("${test_packages[@]}" "${ci_packages[@]}") ;;
  peers) packages+=("${peers_packages[@]}") ;;
  *)
    printf 'usage: %s [build|test|ci|peers]\n' "$0" >&2
    exit 2
    ;;
esac

if [ "$system" != "debian 12" ] && [ "$system" != "debian 13" ]; then
  printf 'This is not Debian 12 or 13 but %s, so nothing is installed. ' "$system"
  printf 'millrace needs what Debian 12 calls:\n  %s\n' "${packages[*]}"
  for tool in cmake ninja pkg-config c++; do
    command -v "$tool" >/dev/null ||
      fail "'$tool' is missing; install it and the libraries above, then run this again."
  done
  printf 'The build tools are there: going on.\n'
  exit 0
fi

format='${db:Status-Abbrev}${Package} '
installed=" $(dpkg-query -W -f "$format" "${packages[@]}" 2>/dev/null || true)"
missing=()
for package in "${packages[@]}"; do
  [[ "$installed" == *" ii $package "* ]] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  printf 'All packages for "%s" are installed.\n' "$level"
  exit 0
fi

root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    fail "not root and no sudo. Have an administrator run:" \
      "apt-get install --no-install-recommends ${missing[*]}"
  root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 \
    -o Dpkg::Use-Pty=0 "$@" >>"$log" 2>&1 </dev/null
}
# Whether the package lists know a package. Lists are fetched if they are missing or outdated.
lists_know() {
  [ "$(apt-cache policy "$@" 2>/dev/null | grep -c '^  Candidate: [^(]')" -eq $# ]
}

printf 'Installing %d packages: %s\n' "${#missing[@]}" "${missing[*]}"
lists_know "${missing[@]}" || apt update || true
if ! apt install -y --no-install-recommends "${missing[@]}"; then
  printf 'That failed; fetching the package lists and trying once more.\n'
  apt update || true
  apt install -y --no-install-recommends "${missing[@]}" || {
    tail -n 30 "$log" >&2
    fail "apt-get could not install: ${missing[*]} (its last lines are above)."
  }
fi

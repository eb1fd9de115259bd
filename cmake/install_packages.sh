#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the packages that millrace needs on Debian 12 or 13 or Ubuntu 22.04 or 24.04. If all of
# them are installed already, it is fast and does not call apt-get. On another system it prints
# what to install, and ends with status 0 if the build tools are there.
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
  libturbojpeg0-dev libhwy-dev libcli11-dev libfmt-dev nlohmann-json3-dev libxxhash-dev
  libdlpack-dev libarchive-dev libboost-math-dev libutfcpp-dev libpng-dev libwebp-dev libssl-dev
  libstb-dev)
# Tests list the project's files by git. Micro-benchmarks compare with OpenCV's resize, tests with
# Pillow's. Boost.Context runs the threads of GPU kernels as fibres.
test_packages=(git ccache libgtest-dev libgmock-dev libboost-context-dev libopenmpi-dev openmpi-bin
  libbenchmark-dev python3 python3-pil python3-lmdb python3-msgpack python3-protobuf
  libopencv-core-dev libopencv-imgproc-dev)
# llvm contains the symbolizer, which adds function names to sanitizer reports. tests/numa_vm.sh
# needs QEMU, busybox and e2fsprogs; cmake/install_cuda.sh needs pip. Libtorch is large, and few
# users of the tests need what is tested with it: <millrace/torch.h>, examples/resnet18,
# examples/python and DLPack.
ci_packages=(clang clang-format clang-tidy lld llvm qemu-system-x86
  busybox-static e2fsprogs python3-pip dpkg-dev file python3-numpy)
torch_packages=(libtorch-dev python3-torch python3-torchvision)  # Ubuntu 24.04 lacks them

# FFCV is compiled with OpenCV, and SPDL loads the libraries of FFmpeg.
peers_packages=(python3-dev python3-venv libopencv-dev ffmpeg)

system=$(. /etc/os-release 2>/dev/null && printf '%s %s' "${ID:-}" "${VERSION_ID:-}") ||
  system=unknown
# Names that differ: libjpeg-turbo, and the sanitizers' libraries of the system's clang.
known=1
jpeg=libjpeg62-turbo-dev
sanitizers=libclang-rt-14-dev
case "$system" in
  "debian 12") ;;
  "debian 13") sanitizers=libclang-rt-19-dev ;;
  "ubuntu 22.04") jpeg=libjpeg-turbo8-dev sanitizers=libclang-common-14-dev ;;
  "ubuntu 24.04") jpeg=libjpeg-turbo8-dev sanitizers=libclang-rt-18-dev torch_packages=() ;;
  *) known= ;;
esac
packages+=("$jpeg")
ci_packages+=("$sanitizers" "${torch_packages[@]}")

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

# Ubuntu 22.04 has an older CMake.
check_cmake() {
  local version
  version=$(cmake --version | sed -n 's/^cmake version //p')
  printf '3.25\n%s\n' "$version" | sort -C -V ||
    fail "CMake is too old ($version, millrace needs 3.25 or later): install a later one, for" \
      "example by 'python3 -m pip install --user cmake', and put it first in PATH."
}

if [ -z "$known" ]; then
  printf 'This system is %s. Packages are installed only on Debian 12, Debian 13, ' "$system"
  printf 'Ubuntu 22.04 and Ubuntu 24.04.\nmillrace needs GCC 11 or clang 14, CMake 3.25 '
  printf '(or later ones), and what Debian 12 calls:\n  %s\n' "${packages[*]}"
  for tool in cmake ninja pkg-config c++; do
    command -v "$tool" >/dev/null ||
      fail "'$tool' is missing; install it and the libraries above, then run this again."
  done
  check_cmake
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
  check_cmake
  exit 0
fi

root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    fail "not root, and sudo is missing. Have an administrator run: apt-get update &&" \
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
check_cmake

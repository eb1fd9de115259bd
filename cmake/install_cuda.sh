#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash cmake/install_cuda.sh DIRECTORY
#
# Installs CUDA's compiler, headers, cuBLAS and CUPTI into DIRECTORY, from their Python packages.
# This is enough to build millrace with its CUDA device on a machine without a CUDA toolkit, such as
# one of CI. Fast if they are installed already. Needs python3 with pip, and fetches about 540 MB.
# Add DIRECTORY/bin to the PATH afterwards.
set -euo pipefail

fail() {
  printf 'install_cuda.sh: %s\n' "$*" >&2
  exit 1
}

[ $# -eq 1 ] || fail "usage: bash cmake/install_cuda.sh DIRECTORY"
directory=$1
packages=('nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-nvvm==13.0.*'
  'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*' 'nvidia-nvtx==13.0.*'
  'nvidia-cuda-cupti==13.0.*' 'nvidia-cublas==13.0.*')

if [ -e "$directory/complete" ]; then
  printf 'CUDA is in %s.\n' "$directory"
  exit 0
fi
rm -rf "$directory"
mkdir -p "$directory"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
printf 'Fetching CUDA into %s\n' "$directory"
python3 -m pip install --quiet --disable-pip-version-check --no-deps --no-compile \
  --target "$directory/packages" "${packages[@]}" >"$log" 2>&1 || {
  tail -n 10 "$log" >&2
  fail "pip could not install: ${packages[*]} (its last lines are above)."
}

# Arranges the packages' folder like a toolkit's.
toolkit=$directory/packages/nvidia/cu13
[ -x "$toolkit/bin/nvcc" ] || fail "the packages have no nvcc in $toolkit/bin"
ln -s lib "$toolkit/lib64"
for library in "$toolkit"/lib/lib*.so.*; do
  plain=${library%%.so.*}.so
  [ -e "$plain" ] || ln -s "$(basename "$library")" "$plain"
done
for part in bin include lib lib64 nvvm; do
  ln -s "packages/nvidia/cu13/$part" "$directory/$part"
done
touch "$directory/complete"
"$directory/bin/nvcc" --version | tail -n 2

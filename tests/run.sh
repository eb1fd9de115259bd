#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash tests/run.sh [ctest arguments ...]
#
# Installs what the tests need, builds millrace with warnings as errors and runs all its tests;
# e.g. `bash tests/run.sh -R Sampler` runs those with "Sampler" in their name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash cmake/install_packages.sh test
cmake --preset release -DMILLRACE_TESTS=ON -DMILLRACE_BENCH=ON -DMILLRACE_EXAMPLES=ON \
  -DMILLRACE_WERROR=ON -DMILLRACE_TORCH=ON
cmake --build --preset release
# Many tests wait for a program or for time.
ctest --preset release --no-tests=error -j "$((3 * $(nproc) / 2))" "$@"

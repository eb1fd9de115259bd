#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash tests/portability.sh SYSTEM [--no-tests] [--compilers]
#
# Runs the README's two commands, the quick start and the tests, on a fresh SYSTEM (debian12 or
# debian13) in build/portability/SYSTEM: as root, and as a user without sudo. The user gets the
# folder that root has built, which saves a second build. Then it packs the same photographs there
# and here and compares the digests of three recipes. Ends with status 0 if all commands pass and
# all digests are equal. build/portability/SYSTEM.txt has the result in a few lines.
#
# SYSTEM arm64 is Debian 12 with a cross-compiler: library and command are compiled there without
# warnings, and the tests of decode/, augment/, orders and packed datasets and the digests run under
# qemu-user.
#
# --no-tests leaves out the tests. --compilers compiles library, command and examples with each GCC
# from 11 and each clang from 14 that the system has. Warnings are errors. It neither links nor runs
# them.
#
# Needs root (for chroot), debootstrap and Debian's packages. A second run goes on with the same
# folder, so only what changed is built again.
set -euo pipefail

usage() { sed -n 's/^# \?//; 4,21p' "${BASH_SOURCE[0]}"; }
fail() {
  printf 'portability.sh: %s\n' "$*" >&2
  exit 1
}

system=
tests=1
compilers=
for argument in "$@"; do
  case "$argument" in
    debian12) system=$argument suite=bookworm ;;
    debian13) system=$argument suite=trixie ;;
    arm64) system=$argument suite=bookworm ;;
    --no-tests) tests= ;;
    --compilers) compilers=1 ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
done
[ -n "$system" ] || { usage >&2 && exit 2; }
[ "$system" != arm64 ] || [ -z "$compilers" ] || fail "--compilers is for debian12 and debian13."
[ "$(id -u)" -eq 0 ] || fail "not root, which chroot asks for."
PATH=$PATH:/usr/sbin:/sbin
command -v debootstrap >/dev/null ||
  fail "debootstrap is missing; Debian has a package of that name."

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# A mount namespace of its own: however this ends, its mounts end with it.
[ -n "${MILLRACE_PORTABILITY_UNSHARED:-}" ] ||
  MILLRACE_PORTABILITY_UNSHARED=1 exec unshare --mount bash tests/portability.sh "$@"

work=build/portability
root=$work/$system
project=$root/home/millrace
mkdir -p "$work"

if [ ! -e "$root/etc/debian_version" ]; then
  printf '=== %s into %s\n' "$suite" "$root"
  rm -rf "$root.part"
  debootstrap --variant=minbase "$suite" "$root.part" >"$work/debootstrap.log" || {
    tail -n 20 "$work/debootstrap.log" >&2
    fail "debootstrap failed (its last lines are above)."
  }
  mv "$root.part" "$root"
fi
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"

# The project as it is here, committed or not; times stay, so that a build goes on.
mkdir -p "$project/build"
find "$project" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git ls-files -co --exclude-standard --deduplicate | tar -c -T - | tar -x -C "$project"
if [ -d ../shared ]; then
  mkdir -p "$root/home/shared"
  mount --bind -o ro "$(cd ../shared && pwd)" "$root/home/shared"
fi

# there USER COMMAND ...: runs the command in the project on the system.
there() {
  chroot "$root" setpriv --reuid "$1" --regid "$1" --init-groups --reset-env \
    env LANG=C.UTF-8 bash -c 'cd /home/millrace && exec "$@"' bash "${@:2}"
}
# listed LEVEL: the names of the packages that install_packages.sh would install there.
listed() {
  { there trainer env DPKG_ADMINDIR=/nowhere bash cmake/install_packages.sh "$1" 2>&1 || true; } |
    sed -n 's/^install_packages.sh: .*--no-install-recommends //p'
}
note() { printf '%s: %s\n' "$system" "$*" | tee -a "$work/$system.txt"; }
date +%F >"$work/$system.txt"

# A user without packages and sudo must learn which packages the administrator has to install.
[ -d "$root/home/trainer" ] || chroot "$root" useradd --create-home trainer
printf '=== %s: a user without packages\n' "$system"
! there trainer env DPKG_ADMINDIR=/nowhere bash examples/quickstart.sh >"$work/message.txt" 2>&1 ||
  fail "the quick start passed without packages."
tail -n 1 "$work/message.txt"
grep -q '^install_packages.sh: .*apt-get install .* g++ cmake .*libtbb-dev' "$work/message.txt" ||
  fail "the message above names no packages."

# run USER: both commands as that user.
run() {
  there root chown -R "$1:$1" .
  printf '=== %s, %s: quick start\n' "$system" "$1"
  there "$1" bash examples/quickstart.sh
  note "$1: quick start passed"
  [ -n "$tests" ] || return 0
  printf '=== %s, %s: tests\n' "$system" "$1"
  [ "$1" != root ] || there root bash cmake/install_packages.sh test
  there "$1" git init --quiet .  # tests of the house and of pages ask git for the project's files
  there "$1" bash tests/run.sh | tee "$work/$system.$1.log"
  note "$1: $(grep 'tests passed' "$work/$system.$1.log"), $(
    grep -c '\*\*\*Skipped' "$work/$system.$1.log" || true) of them skipped"
}

# Compiles for arm64 and runs the tests there whose results could depend on the processor.
run_arm64() {
  command -v qemu-aarch64-static >/dev/null ||
    fail "qemu-aarch64-static is missing; Debian has it in the package qemu-user-static."
  cp "$(command -v qemu-aarch64-static)" "$root/usr/bin/"
  cat >"$project/build/cross.sh" <<'SCRIPT'
set -euo pipefail
dpkg --add-architecture arm64
apt-get update -qq
packages=(crossbuild-essential-arm64 cmake ninja-build pkg-config git python3 python3-pil)
for package in "$@"; do
  case "$package" in *openmpi*) continue ;; lib* | nlohmann*) ;; *) continue ;; esac
  # Packages of headers alone are the same for all processors.
  ! apt-cache show "$package:arm64" 2>/dev/null | grep '^Architecture: arm64' >/dev/null ||
    package+=:arm64
  packages+=("$package")
done
DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "${packages[@]}"
SCRIPT
  # shellcheck disable=SC2046
  there root bash build/cross.sh $(listed test) >"$work/apt.log" 2>&1 ||
    fail "the packages for arm64 could not be installed: see $work/apt.log"
  printf '=== arm64: build\n'
  # Otherwise ctest would also run programs of an earlier run that are not built now.
  find "$project/build" -path '*/arm64/tests/*' -name '*_tests*' -type f -delete
  there root chown -R trainer:trainer .
  cat >"$project/build/arm64.cmake" <<'SETTINGS'
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/bin/qemu-aarch64-static)
SETTINGS
  there trainer env PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig \
    cmake --preset release -B build/arm64 --toolchain build/arm64.cmake -DMILLRACE_WERROR=ON \
    -DMILLRACE_TESTS=ON -DMILLRACE_BENCH=ON -DMILLRACE_EXAMPLES=OFF -DMILLRACE_CUDA=OFF
  there trainer cmake --build build/arm64 --target millrace "${arm64_tests[@]}"
  note "library, command and tests compile without warnings"
  [ -n "$tests" ] || return 0
  there trainer git init --quiet .
  # Scripts and programs that were not built have names in lower case.
  there trainer ctest --test-dir build/arm64 --no-tests=error --output-on-failure -j "$(nproc)" \
    -R '^[A-Z]' | tee "$work/$system.log"
  note "$(grep 'tests passed' "$work/$system.log"), $(
    grep -c '\*\*\*Skipped' "$work/$system.log" || true) of them skipped"
}
arm64_tests=(decode_tests decode_wrong_set_tests decode_memory_tests augment_tests
  augment_wrong_set_tests augment_memory_tests loader_core_tests dataset_tests
  damaged_dataset_tests)

command=(build/release/bench/millrace)
if [ "$system" = arm64 ]; then
  command=(qemu-aarch64-static build/arm64/bench/millrace)
  run_arm64
else
  run root
  run trainer
fi

cat >"$project/build/compile.sh" <<'SCRIPT'
set -euo pipefail
folder=build/compilers/$1
# GCC finds variables without a value only if it optimises. -O1 compiles in half of -O3's time.
cmake --preset release -B "$folder" -DCMAKE_CXX_COMPILER="$1" -DMILLRACE_WERROR=ON \
  -DMILLRACE_TESTS=OFF -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG"
# Objects alone: linking finds no warnings.
ninja -C "$folder" -t targets all | sed -nE 's/^(.*\.o): CXX_COMPILER.*/\1/p' |
  xargs ninja -C "$folder" --quiet
SCRIPT
if [ -n "$compilers" ]; then
  there root bash cmake/install_packages.sh test
  for compiler in $(there root apt-cache pkgnames | sort -V |
    grep -xE '(g\+\+-1[1-9]|clang-(1[4-9]|2[0-9]))'); do
    printf '=== %s: %s\n' "$system" "$compiler"
    there root apt-get install -qq --no-install-recommends "$compiler" >"$work/apt.log" 2>&1 ||
      fail "apt-get could not install $compiler: see $work/apt.log"
    there trainer bash build/compile.sh "${compiler/clang/clang++}"
    note "compiles with $compiler without warnings"
  done
fi

printf '=== digests\n'
cmake --preset release >"$work/here.log"
cmake --build --preset release --target millrace make_photos >>"$work/here.log" || {
  tail -n 20 "$work/here.log" >&2
  fail "the build on this machine failed."
}
# Prints what must be the same on each machine: the packed files and the batches of each recipe.
cat >"$work/digests.sh" <<'SCRIPT'
set -euo pipefail
out=build/portability_digests
photos=$1
shift
rm -rf "$out" && mkdir -p "$out"
"$@" pack "$photos" "$out/photos.lmdb" --skip-bad >"$out/pack.log"
for recipe in train swin eval; do
  "$@" bench "$out/photos.lmdb" --recipe "$recipe" --batch-size 32 \
    --batches 20 --warmup 0 --digest >"$out/$recipe.log" || { cat "$out/$recipe.log"; exit 1; }
  printf '%s: %s\n' "$recipe" "$(sed -n 's/^ *digest *//p' "$out/$recipe.log")"
done
SCRIPT
rm -rf "$work/photos" "$project/build/photos"
build/release/examples/make_photos "$work/photos" 300
cp -r "$work/photos" "$work/digests.sh" "$project/build/"
bash "$work/digests.sh" "$work/photos" build/release/bench/millrace | tee "$work/here.txt"
there trainer bash build/digests.sh build/photos "${command[@]}" >"$work/there.txt"
diff "$work/here.txt" "$work/there.txt" ||
  fail "$system makes other batches of the same photographs (lines of '<' are from here)."
note "makes the same batches"

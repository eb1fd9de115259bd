#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash tests/portability.sh [--no-tests]
#
# Runs the README's two commands, the quick start and the tests, on a fresh Debian 13 in
# build/portability/debian13. Then it packs the same photographs there and here and compares the
# digests of three recipes. Ends with status 0 if both commands pass and all digests are equal.
#
# Needs root (for chroot), debootstrap and Debian's packages. A second run goes on with the same
# folder, so only what changed is built again. --no-tests leaves out the tests.
set -euo pipefail

usage() { sed -n 's/^# \?//; 3,11p' "${BASH_SOURCE[0]}"; }
fail() {
  printf 'portability.sh: %s\n' "$*" >&2
  exit 1
}

tests=1
case "$#:${1:-}" in
  0:) ;;
  1:--no-tests) tests= ;;
  1:-h | 1:--help) usage && exit 0 ;;
  *) usage >&2 && exit 2 ;;
esac
[ "$(id -u)" -eq 0 ] || fail "not root, which chroot asks for."
PATH=$PATH:/usr/sbin:/sbin
command -v debootstrap >/dev/null || fail "there is no debootstrap; Debian has it in a package."

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# A mount namespace of its own: however this ends, its mounts end with it.
[ -n "${MILLRACE_PORTABILITY_UNSHARED:-}" ] ||
  MILLRACE_PORTABILITY_UNSHARED=1 exec unshare --mount bash tests/portability.sh "$@"

work=build/portability
root=$work/debian13
mkdir -p "$work"

if [ ! -e "$root/etc/debian_version" ]; then
  printf '=== Debian 13 into %s\n' "$root"
  rm -rf "$root.part"
  debootstrap --variant=minbase trixie "$root.part" >"$work/debootstrap.log" || {
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
mkdir -p "$root/home/millrace"
git ls-files -co --exclude-standard --deduplicate | tar -c -T - | tar -x -C "$root/home/millrace"
if [ -d ../shared ]; then
  mkdir -p "$root/home/shared"
  mount --bind -o ro "$(cd ../shared && pwd)" "$root/home/shared"
fi
there() {
  chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    bash -c 'cd /home/millrace && exec "$@"' bash "$@"
}

printf '=== Debian 13: quick start\n'
there bash examples/quickstart.sh
if [ -n "$tests" ]; then
  printf '=== Debian 13: tests\n'
  there bash cmake/install_packages.sh test
  there git init --quiet .  # tests of the house and of pages ask git for the project's files
  there bash tests/run.sh
fi

printf '=== digests\n'
cmake --preset release >"$work/here.log"
cmake --build --preset release --target millrace >>"$work/here.log" || {
  tail -n 20 "$work/here.log" >&2
  fail "the build on this machine failed."
}
# Prints what must be the same on each machine: the packed files and the batches of each recipe.
cat >"$work/digests.sh" <<'SCRIPT'
set -euo pipefail
out=build/portability_digests
rm -rf "$out" && mkdir -p "$out"
build/release/bench/millrace pack "$1" "$out/photos.lmdb" --skip-bad >"$out/pack.log"
for recipe in train swin eval; do
  build/release/bench/millrace bench "$out/photos.lmdb" --recipe "$recipe" --batch-size 32 \
    --batches 20 --warmup 0 --digest >"$out/$recipe.log" || { cat "$out/$recipe.log"; exit 1; }
  printf '%s: %s\n' "$recipe" "$(sed -n 's/^ *digest *//p' "$out/$recipe.log")"
done
SCRIPT
photos=build/quickstart/photos
rm -rf "$work/photos"
cp -r "$root/home/millrace/$photos" "$work/photos"
cp "$work/digests.sh" "$root/home/millrace/build/"
bash "$work/digests.sh" "$work/photos" | tee "$work/here.txt"
there bash build/digests.sh "$photos" >"$work/debian13.txt"
diff "$work/here.txt" "$work/debian13.txt" ||
  fail "Debian 13 makes other batches of the same photographs (lines of '<' are from here)."
printf 'Debian 13 makes the same batches.\n'

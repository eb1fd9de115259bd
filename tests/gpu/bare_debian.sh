#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash tests/gpu/bare_debian.sh BUNDLE
#
# Runs a bundle (run.sh --bundle BUNDLE) on a fresh Debian 12 with python3 and nothing else, in
# build/bare_debian. Ends with 0 if the script says there that it finds no GPU, each program starts,
# and a run with a made-up nvidia-smi leaves a table. Libraries that are left to the machine with
# the GPU (CUDA's, PyTorch's) may be missing.
#
# Needs root (for chroot), debootstrap and Debian's packages. A second run takes the same folder.
set -euo pipefail

fail() {
  printf 'bare_debian.sh: %s\n' "$*" >&2
  exit 1
}
if [ $# -ne 1 ] || [ ! -e "$1/programs.tar.gz" ]; then
  printf 'usage: %s BUNDLE\n' "$0" >&2
  exit 2
fi
bundle=$(cd "$1" && pwd)
[ "$(id -u)" -eq 0 ] || fail "not root, which chroot asks for."
PATH=$PATH:/usr/sbin:/sbin
command -v debootstrap >/dev/null || fail "there is no debootstrap; Debian has it in a package."
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# Mounts made below are removed with the namespace, however the script ends.
[ -n "${MILLRACE_BARE_UNSHARED:-}" ] ||
  MILLRACE_BARE_UNSHARED=1 exec unshare --mount bash tests/gpu/bare_debian.sh "$bundle"

work=build/bare_debian
root=$work/debian12
mkdir -p "$work"
if [ ! -e "$root/etc/debian_version" ]; then
  rm -rf "$root.part"
  debootstrap --variant=minbase --include=python3 bookworm "$root.part" \
    >"$work/debootstrap.log" || {
    tail -n 20 "$work/debootstrap.log" >&2
    fail "debootstrap failed (its last lines are above)."
  }
  mv "$root.part" "$root"
fi
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
rm -rf "$root/home/there"
mkdir -p "$root/home/there/made_up"
cp -r "$bundle" "$root/home/there/bundle"
there() {
  chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin OUT=/home/there/out "$@"
}

status=0
told=$(there bash /home/there/bundle/run.sh) || status=$?
printf 'without a driver: status %d, %s\n' "$status" "$told"
[ "$status" -eq 77 ] || fail "the script did not end with 77."

# With a fake GPU, the programs start and report that they find no device.
cat >"$root/home/there/made_up/nvidia-smi" <<'SCRIPT'
#!/bin/sh
echo A made-up GPU, 1.2
SCRIPT
chmod +x "$root/home/there/made_up/nvidia-smi"
status=0
there MILLRACE_GPU_PROGRAMS=/home/there/made_up bash /home/there/bundle/run.sh >"$work/run.log" ||
  status=$?
[ "$status" -eq 1 ] || fail "the script did not end with 1, but $status: see $work/run.log"
grep -q '^processor .* cores, threads of each' "$root/home/there/out/table.txt" ||
  fail "the script's table has no processor."
for file in table.txt results.json raw.tar.gz; do
  [ -s "$root/home/there/out/$file" ] || fail "the script left no $file."
done

# Libraries that a program lacks there.
cuda='cuda|cudart|cu(blas|dnn|fft|file|pti|rand|solver|sparse).*|nccl|nv.*'
leave="^lib($cuda|torch.*|c10.*|shm|gomp.*)[.-]"
there bash -euc 'mkdir /home/there/unpacked && cd /home/there/unpacked
tar -xzf ../bundle/programs.tar.gz && tar -xf ../bundle/photos.tar'
missing=$(there bash -c 'cd /home/there/unpacked
for program in bin/* lib/*; do
  LD_LIBRARY_PATH=lib LD_TRACE_LOADED_OBJECTS=1 /lib64/ld-linux-x86-64.so.2 "$program" 2>&1 |
    sed -n "s|^[[:space:]]*\([^ ]*\) => not found.*|$program \1|p; /version .* not found/p"
done' | awk -v leave="$leave" '$2 !~ leave')
[ -z "$missing" ] || fail "there are libraries missing: $missing"
there env LD_LIBRARY_PATH=/home/there/unpacked/lib /home/there/unpacked/bin/millrace bench \
  /home/there/unpacked/photos --batches 4 --warmup 0 --batch-size 16 >"$work/bench.log" ||
  fail "millrace made no batches on the host."
printf 'with a made-up GPU: a table of %d lines; all programs find their libraries\n' \
  "$(wc -l <"$root/home/there/out/table.txt")"
tail -n 1 "$work/run.log"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash tests/numa_vm.sh [--require] [--disk FOLDER] PROGRAM [ARGUMENT ...]
#
# Runs a program on a simulated machine with two NUMA nodes, each of two processors (0-1 and 2-3)
# and 512 MiB: a Debian kernel in QEMU, which emulates the processors in software. The machine
# contains the program, the libraries that it is linked with, and busybox. Prints the program's
# output and ends with its status.
#
# With --disk there is /disk, a file system with the files of FOLDER, on a disk with unreadable
# pages: each line "FILE PAGE" of FOLDER/lost_pages names a page of 4 KiB that causes an I/O error.
#
# If a dependency is missing, it prints which one and ends with 77. With --require, or
# MILLRACE_REQUIRE_NUMA_VM=1 in the environment, it fetches a missing kernel, and any other missing
# dependency is a failure.
set -euo pipefail

require=${MILLRACE_REQUIRE_NUMA_VM:-}
disk=
if [ "${1:-}" = --require ]; then
  require=1
  shift
fi
if [ "${1:-}" = --disk ]; then
  disk=${2:-}
  shift 2
fi
if [ $# -eq 0 ]; then
  printf 'usage: %s [--require] [--disk FOLDER] PROGRAM [ARGUMENT ...]\n' "$0" >&2
  exit 2
fi

fail() {
  printf 'numa_vm.sh: %s\n' "$*" >&2
  exit 1
}
missing() {
  [ -z "$require" ] || fail "$*"
  printf 'numa_vm.sh: skipped: %s\n' "$*"
  exit 77
}

[ "$(uname -m)" = x86_64 ] || missing "this machine is no x86-64"
for tool in qemu-system-x86_64 busybox; do
  command -v "$tool" >/dev/null ||
    missing "there is no $tool; 'bash cmake/install_packages.sh ci' installs it"
done
if [ -n "$disk" ]; then
  [ -f "$disk/lost_pages" ] || fail "there is no $disk/lost_pages."
  PATH=$PATH:/usr/sbin:/sbin
  for tool in mke2fs debugfs; do
    command -v "$tool" >/dev/null || missing "there is no $tool; Debian's e2fsprogs has it"
  done
fi

work=$(mktemp -d)
qemu=
trap '[ -z "$qemu" ] || kill -KILL "$qemu" 2>/dev/null || true; rm -rf "$work"' EXIT
kernels=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/debian_kernel

find_kernel() {
  local file
  kernel=
  for file in /boot/vmlinuz-*-amd64 "$kernels"/vmlinuz-*-amd64; do
    if [ -r "$file" ]; then kernel=$file; fi
  done
  [ -n "$kernel" ]
}

# Takes the kernel alone out of its package: nothing is installed.
download_kernel() (
  package=$(apt-cache depends linux-image-cloud-amd64 |
    sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p')
  [ -n "$package" ] && cd "$work" && apt-get download "$package" &&
    dpkg-deb --fsys-tarfile "$package"_*.deb | tar -x --wildcards './boot/vmlinuz-*' &&
    mkdir -p "$kernels" && mv boot/vmlinuz-* "$kernels"
)

fetch_kernel() {
  printf 'Fetching a Debian kernel to %s\n' "$kernels"
  { download_kernel || { apt-get update && download_kernel; }; } >"$work/apt.log" 2>&1 || {
    tail -n 20 "$work/apt.log" >&2
    fail "a Debian kernel (package linux-image-cloud-amd64) could not be fetched;" \
      "apt's last lines are above."
  }
}

if ! find_kernel; then
  [ -n "$require" ] ||
    missing "there is no Debian kernel /boot/vmlinuz-*-amd64 that can be read;" \
      "'bash $0 --require ...' fetches one (27 MB)"
  fetch_kernel
  find_kernel || fail "the package linux-image-cloud-amd64 brought no kernel."
fi

# The made-up machine's files. All lie where they lie here, so that the program finds its libraries.
[ -f "$1" ] || fail "there is no program $1."
program=$(realpath "$1")
root=$work/root
mkdir -p "$root"/{bin,dev,proc,sys,tmp}
cp "$(command -v busybox)" "$root/bin/busybox"
libraries=$(ldd "$program") || fail "$program is no dynamically linked program."
case "$libraries" in *"not found"*) fail "$program misses libraries: $libraries" ;; esac
libraries+=$(ldd "$root/bin/busybox" 2>/dev/null || true)  # of one that is not static
for file in "$program" $(grep -o '/[^ ]*' <<<"$libraries" | sort -u); do
  mkdir -p "$root${file%/*}"
  cp -L "$file" "$root$file"
done

# The file system, and the sectors of which QEMU makes a read an I/O error. Debian's kernel for
# virtual machines has the drivers for both built in, others may have them as modules.
disk_arguments=()
mount_disk=
if [ -n "$disk" ]; then
  mke2fs -q -t ext4 -b 4096 -O ^has_journal -d "$disk" "$work/disk" 16M >/dev/null
  while read -r file page; do
    block=$(debugfs -R "bmap /$file $page" "$work/disk" 2>/dev/null)
    [ "${block:-0}" -gt 0 ] || fail "$disk/$file has no page $page."
    printf '[inject-error]\nevent = "none"\niotype = "read"\nerrno = "5"\nsector = "%d"\n' \
      $((block * 8))
  done <"$disk/lost_pages" >"$work/lost_sectors"
  disk_arguments=(-drive "file=blkdebug:$work/lost_sectors:$work/disk,format=raw,if=none,id=disk"
    -device nvme,drive=disk,serial=disk)
  mkdir "$root/disk"
  mount_disk='n=0; while [ ! -e /dev/nvme0n1 ] && [ $n -lt 600 ]; do n=$((n + 1)); sleep 0.1; done
mount -t ext4 -o ro /dev/nvme0n1 /disk || { echo disk >/dev/ttyS2; poweroff -f; }'
fi

command=
for word in "$program" "${@:2}"; do command+="'${word//\'/\'\\\'\'}' "; done
cat >"$root/init" <<END
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo started >/dev/ttyS2
stty -F /dev/ttyS1 -opost
export PATH=/bin HOME=/tmp TERM=dumb MILLRACE_NUMA_VM=1
cd /tmp
$mount_disk
$command >/dev/ttyS1 2>&1
echo \$? >/dev/ttyS2
poweroff -f
END
chmod +x "$root/init"
(cd "$root" && find . | busybox cpio -o -H newc) >"$work/files.cpio" 2>"$work/cpio.log" ||
  fail "busybox cpio: $(tail -n 1 "$work/cpio.log")"

# Three serial lines: the kernel's messages, what the program prints, and the machine's progress
# (the word "started", then the program's status). The kernel gives up when its timer does not tick
# as expected, which is so where QEMU does not get its share of a processor: hence no_timer_check.
# QEMU itself has a line for each error of the disk.
boot() {
  : >"$work/console" >"$work/progress"
  qemu-system-x86_64 -accel tcg -cpu max -smp 4,sockets=2,cores=2 -m 1024 \
    -object memory-backend-ram,id=memory0,size=512M -numa node,nodeid=0,cpus=0-1,memdev=memory0 \
    -object memory-backend-ram,id=memory1,size=512M -numa node,nodeid=1,cpus=2-3,memdev=memory1 \
    -nodefaults -no-user-config -display none -no-reboot \
    "${disk_arguments[@]}" -kernel "$kernel" -initrd "$work/files.cpio" \
    -append "console=ttyS0 panic=-1 no_timer_check" \
    -serial "file:$work/console" -serial stdio -serial "file:$work/progress" \
    </dev/null 2>"$work/qemu" &
  qemu=$!
  wait_until 120 has_started
}
has_started() { grep -q started "$work/progress"; }
never() { false; }

# Waits until QEMU has ended or the condition holds. After so many seconds it kills QEMU and fails.
wait_until() {
  local deadline=$((SECONDS + $1))
  while kill -0 "$qemu" 2>/dev/null && ! "$2"; do
    if [ "$SECONDS" -ge "$deadline" ]; then
      kill -KILL "$qemu"
      wait "$qemu" 2>/dev/null || true
      return 1
    fi
    sleep 0.1
  done
}

# The kernel's start takes about 15 s. On a busy machine it was once seen to stop for good, long
# before the program's turn: such a machine is started again.
attempts=3
until boot; do
  printf 'numa_vm.sh: the kernel (%s) did not start within 120 s; its last lines:\n' "$kernel" >&2
  tail -n 5 "$work/console" | tr -d '\r' >&2
  attempts=$((attempts - 1))
  [ "$attempts" -gt 0 ] || fail "the machine did not start; $program was not run."
done
ended=0
in_time=1
wait_until 240 never || in_time=
wait "$qemu" || ended=$?

status=$(tr -d '\r' <"$work/progress" | sed '/^started$/d')
[ "$status" != disk ] || missing "$kernel has no drivers for NVMe and ext4 built in"
if [ -z "$status" ] || [ "$status" -ge 128 ]; then
  printf '\nThe last lines of the console (%s):\n' "$kernel" >&2
  tail -n 40 "$work/console" | tr -d '\r' >&2
  printf 'and of QEMU:\n' >&2
  tail -n 10 "$work/qemu" >&2
fi
[ -n "$in_time" ] || fail "$program was not done after 240 s."
[ -n "$status" ] || fail "the machine went down before $program was done (QEMU ended with $ended)."
exit "$status"

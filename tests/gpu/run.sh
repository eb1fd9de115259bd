#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash tests/gpu/run.sh [DATASET] [--photos FOLDER] [--quick] [--out FOLDER]
#   bash tests/gpu/run.sh --plan [--quick]                       prints the steps and their limits
#   bash tests/gpu/run.sh --bundle OUT [BUILD_DIR] [PHOTOS]      makes a bundle: see bundle.sh
#
# Tests and measures on a machine with a GPU in at most 8 minutes (--quick: 4). It runs from a
# bundle, which contains photographs, or from a build tree (MILLRACE_BUILD=build/release) with a
# DATASET and the FOLDER of class folders that it was packed from. README.md in this folder explains
# everything.
#
# Each step has a time limit. A failed step does not stop the next ones. After each step the results
# are written: FOLDER/table.txt (measured values with bars), results.json and raw.tar.gz (all
# outputs). FOLDER is $OUT, or gpu_results. Ends with 0 if all steps ran and met their bars, 1 if
# something failed or missed its bar, 77 if the programs find no usable GPU.
#
# For testing the script:
#   MILLRACE_GPU_PROGRAMS=FOLDER   uses programs in FOLDER instead of all others.
#   MILLRACE_GPU_LIMIT=SECONDS     limits the time of each step.
#   MILLRACE_GPU_TIME=SECONDS      limits the time of all steps.
#   MILLRACE_GPU_SLOWER=N          multiplies the limits of the steps.
#   MILLRACE_GPU_FILE=FILE         keeps FILE open in place of /dev/nvidia0.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1:-}" = --bundle ]; then exec bash "$here/bundle.sh" "${@:2}"; fi

usage() {
  printf 'usage: %s %s\n' "$0" \
    '[DATASET] [--photos FOLDER] [--quick] [--out FOLDER] | --plan [--quick] | --bundle OUT ...' >&2
  exit 2
}
fail() {
  printf 'run.sh: %s\n' "$*" >&2
  exit 1
}
command_line="$0 $*"
dataset=
photos=
quick=
only_plan=
out=${OUT:-gpu_results}
while [ $# -gt 0 ]; do
  case "$1" in
    --out | --photos)
      [ $# -ge 2 ] || usage
      if [ "$1" = --out ]; then out=$2; else photos=$2; fi
      shift
      ;;
    --quick) quick=1 ;;
    --plan) only_plan=1 ;;
    -*) usage ;;
    *)
      [ -z "$dataset" ] || usage
      dataset=$1
      ;;
  esac
  shift
done

programs=${MILLRACE_GPU_PROGRAMS:-}
if [ -n "$programs" ]; then PATH=$programs:$PATH; fi
PATH=$PATH:/usr/local/nvidia/bin:/usr/local/cuda/bin${CUDA_HOME:+:$CUDA_HOME/bin}
for folder in /opt/nvidia/nsight-compute/*/; do PATH=$PATH:${folder%/}; done
bundled=
if [ -e "$here/programs.tar.gz" ]; then bundled=1; fi

# Limits in seconds before the first step: nvidia-smi, unpacking and packing, looking for the GPU.
smi_limit=12
unpack_limit=8
probe_limit=12
# For all steps: a last step that must be killed, and its table, end within 8 minutes (4).
time_for_all=${MILLRACE_GPU_TIME:-$((quick ? 226 : 466))}

# A bundle has its programs in one folder; a build tree has them in their targets' folders.
if [ -n "$bundled" ]; then
  unpacked=UNPACKED
  if [ -z "$only_plan" ]; then
    unpacked=$(mktemp -d)
    trap 'rm -rf "$unpacked"' EXIT
  fi
  folders=("$unpacked/bin")
  library_folder=$unpacked/lib
  python_example=$here/python/resnet18.py
  export PYTHONDONTWRITEBYTECODE=1  # the bundle stays as it is
else
  build=${MILLRACE_BUILD:-$here/../../build/release}
  folders=("$build/bench" "$build/bench/micro" "$build/examples" "$build/tests/gpu"
    "$here/../../build/torch_cuda/examples")
  library_folder=$build/bench/c
  python_example=$here/../../examples/python/resnet18.py
  export PYTHONPATH=$here/../../bench/python${PYTHONPATH:+:$PYTHONPATH}
fi
find_program() {
  local folder
  for folder in ${programs:+"$programs"} "${folders[@]}"; do
    if [ -x "$folder/$1" ]; then
      printf '%s' "$folder/$1"
      return
    fi
  done
  command -v "$1" || true
}

# Prints the folders of CUDA's libraries on this machine, which a bundle does not contain: those of
# its toolkit, or else of Python packages. If PyTorch is installed, its libraries are the second
# line. PyTorch is not imported.
python_folders() {
  python3 -c '
import importlib.util, os, site
print(":".join(f"{p}/nvidia/{d}/lib" for p in site.getsitepackages()
               for d in ("cu13", "cublas", "cuda_cupti")))
torch = importlib.util.find_spec("torch")
print(os.path.join(os.path.dirname(torch.origin), "lib") if torch and torch.origin else "")' || true
}
cuda_libraries() {
  local nvcc folder
  nvcc=$(command -v nvcc || true)
  [ -z "$nvcc" ] || nvcc=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  for folder in ${CUDA_HOME:+"$CUDA_HOME/lib64"} ${nvcc:+"$nvcc/lib64"} /usr/local/cuda/lib64; do
    if compgen -G "$folder/libcublas.so*" >/dev/null; then
      printf '%s:' "$folder" "${folder%/*}/extras/CUPTI/lib64"
    fi
  done
}

. "$here/plan.sh"

if [ -n "$only_plan" ]; then
  raw=RAW
  torch=TORCH
  torch_libraries=TORCH
  dataset=${dataset:-DATASET}
  photos=${photos:-PHOTOS}
  make_plan
  print_plan
  exit
fi

# Keeps the GPU's file open. Otherwise the driver would reset its state when no program uses it, and
# start again for each program.
for file in ${MILLRACE_GPU_FILE:-/dev/nvidia[0-9]*}; do
  if [ -e "$file" ] && exec {held}<>"$file"; then break; fi
done 2>/dev/null

# Prints the reason why nothing is run, if it is known.
no_gpu() {
  printf 'no CUDA device%s\n' "${1:+: $1}"
  exit 77
}
command -v nvidia-smi >/dev/null || no_gpu "there is no nvidia-smi, so no driver"
told=$(timeout "$smi_limit" nvidia-smi --query-gpu=name,driver_version --format=csv,noheader \
  2>&1) || no_gpu "${told//$'\n'/ }"
gpu=${told%%$'\n'*}
[ -n "$gpu" ] || no_gpu ""
command -v python3 >/dev/null || fail "there is no python3, which runs the steps"

mkdir -p "$out"
raw=$(mktemp -d)
trap 'rm -rf "$raw" ${bundled:+"$unpacked"}' EXIT
mapfile -t found < <(python_folders)
torch=${found[1]:-}
libraries=$library_folder:$(cuda_libraries)${found[0]:-}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# PyTorch has CUDA libraries of its own, which must not be mixed with the toolkit's. Python uses
# this machine's other libraries, and takes missing ones from the bundle.
torch_libraries=$torch:${found[0]:-}:/usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu
torch_libraries+=:/usr/lib64:$library_folder

# A bundle contains the photographs once, as the JPEGs that torchvision reads. They are packed here.
# If that fails, the folder itself is the dataset.
unpack() {
  tar -xzf "$here/programs.tar.gz" -C "$unpacked"
  tar -xf "$here/photos.tar" -C "$unpacked"
  LD_LIBRARY_PATH=$libraries "$unpacked/bin/millrace" pack "$unpacked/photos" \
    "$unpacked/photos.lmdb" --skip-bad
}
if [ -n "$bundled" ]; then
  commit=$(cat "$here/commit")
  export here libraries unpacked
  export -f unpack
  packed=$unpacked/photos.lmdb
  if ! timeout -k 1 "$unpack_limit" bash -euc unpack >"$raw/unpack.out" 2>"$raw/unpack.err"; then
    printf 'run.sh: not unpacked and packed: %s\n' "$(tail -n 3 "$raw/unpack.err")" >&2
    packed=$unpacked/photos
  fi
  dataset=${dataset:-$packed}
  photos=${photos:-$unpacked/photos}
else
  commit=$(git -C "$here" describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)
  [ -n "$dataset" ] || fail "name a DATASET that millrace pack wrote"
  [ -e "$dataset" ] || fail "$dataset: there is no such dataset"
fi

# The driver may be too old for the programs: a program that looks for a GPU reports that.
probe=$(find_program gpu_tests)
if [ -n "$probe" ]; then
  told=$(LD_LIBRARY_PATH=$libraries timeout -k 2 "$probe_limit" "$probe" \
    --gtest_filter=CudaDevice.IsFoundHere 2>&1 |
    sed -n '/: Skipped$/{n;/this build needs/p}') || told=
  if [ -n "$told" ]; then
    printf 'nothing ran on %s: %s\n' "$gpu" "$told"
    exit 77
  fi
fi

make_plan
printf '%s, commit %s, %s, %d cores\n' "$gpu" "$commit" "$dataset" "$(nproc)"
print_plan
for ((n = 0; n < ${#names[@]}; n++)); do
  printf '%s\t%s\t%s\n' "${names[n]}" "${limits[n]}" "${commands[n]}"
done >"$raw/plan.tsv"

status=0
python3 "$here/steps.py" "$raw" "$out" --libraries "$libraries" \
  --seconds $((time_for_all - SECONDS)) \
  ${MILLRACE_GPU_LIMIT:+--step-seconds "$MILLRACE_GPU_LIMIT"} \
  --facts "gpu=${gpu%, *}" --facts "driver=${gpu##*, }" --facts "commit=$commit" \
  --facts "dataset=$dataset" --facts "command=$command_line" --facts "cores=$(nproc)" \
  --facts "quick=$quick" || status=$?
exit "$status"

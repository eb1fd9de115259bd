#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   bash tests/gpu/run.sh [DATASET] [--out FOLDER]            measures, on a machine with a GPU
#   bash tests/gpu/run.sh --bundle OUT [BUILD_DIR] [PHOTOS]   packs what that needs: see bundle.sh
#
# Runs the tests, sanitizers and measurements that need a GPU in less than 8 minutes, from a bundle
# (whose own photographs are the default DATASET) or a build tree (MILLRACE_BUILD=build/release).
# Each step has a time limit, and the next ones run whatever became of it. Prints one table of what
# was measured against what is asked for, and leaves it in FOLDER/table.txt (gpu_results) and
# everything in FOLDER/results.json. Ends with 0 if all ran and nothing falls short, 1 if something
# failed or falls short, 77 if there is no GPU that the programs can use, and says why.
#
# For trying the script: MILLRACE_GPU_PROGRAMS=FOLDER has programs that go before all others,
# MILLRACE_GPU_LIMIT=SECONDS is the most that a step may take, MILLRACE_GPU_TIME=SECONDS (470) the
# most for all.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1:-}" = --bundle ]; then exec bash "$here/bundle.sh" "${@:2}"; fi

usage() {
  printf 'usage: %s [DATASET] [--out FOLDER] | --bundle OUT [BUILD_DIR] [PHOTOS]\n' "$0" >&2
  exit 2
}
fail() {
  printf 'run.sh: %s\n' "$*" >&2
  exit 1
}
command_line="$0 $*"
dataset=
out=gpu_results
while [ $# -gt 0 ]; do
  case "$1" in
    --out)
      [ $# -ge 2 ] || usage
      out=$2
      shift
      ;;
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
PATH=$PATH:/usr/local/nvidia/bin
# Says why nothing is run, where that is known.
no_gpu() {
  printf 'no CUDA device%s\n' "${1:+: $1}"
  exit 77
}
command -v nvidia-smi >/dev/null || no_gpu "there is no nvidia-smi, so no driver"
told=$(timeout 30 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1) ||
  no_gpu "${told//$'\n'/ }"
gpu=${told%%$'\n'*}
[ -n "$gpu" ] || no_gpu ""

# A bundle has its programs in one folder, a build tree has each in its target's.
if [ -e "$here/programs.tar.gz" ]; then
  if [ ! -e "$here/unpacked" ]; then
    tar -xzf "$here/programs.tar.gz" -C "$here"
    touch "$here/unpacked"
  fi
  folders=("$here/bin")
  commit=$(cat "$here/commit")
  dataset=${dataset:-$here/photos.lmdb}
else
  build=${MILLRACE_BUILD:-$here/../../build/release}
  folders=("$build/bench" "$build/bench/micro" "$build/examples" "$build/tests/gpu")
  commit=$(git -C "$here" describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)
fi

[ -n "$dataset" ] || fail "name a DATASET that millrace pack wrote"
[ -e "$dataset" ] || fail "$dataset: there is no such dataset"
command -v python3 >/dev/null || fail "there is no python3, which makes the table"
mkdir -p "$out"
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT

# Where this machine has the libraries of CUDA that a bundle leaves to it: its toolkit, or else the
# packages of Python.
cuda_libraries() {
  local nvcc folder
  nvcc=$(command -v nvcc || true)
  [ -z "$nvcc" ] || nvcc=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  for folder in ${CUDA_HOME:+"$CUDA_HOME/lib64"} ${nvcc:+"$nvcc/lib64"} /usr/local/cuda/lib64; do
    if compgen -G "$folder/libcublas.so*" >/dev/null; then
      printf '%s:' "$folder" "${folder%/*}/extras/CUPTI/lib64"
    fi
  done
  python3 -c 'import site
print(":".join(f"{p}/nvidia/{d}/lib" for p in site.getsitepackages()
               for d in ("cu13", "cublas", "cuda_cupti")))' || true
}
libraries=$here/lib:$(cuda_libraries)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

find_program() {
  local folder
  for folder in ${programs:+"$programs"} "${folders[@]}"; do
    if [ -x "$folder/$1" ]; then
      printf '%s' "$folder/$1"
      return
    fi
  done
}
# The driver may be too old for the programs: one that looks for a GPU says so.
probe=$(find_program gpu_tests)
if [ -n "$probe" ]; then
  told=$(LD_LIBRARY_PATH=$libraries timeout 60 "$probe" --gtest_filter=CudaDevice.IsFoundHere 2>&1 |
    sed -n '/: Skipped$/{n;/this build needs/p}') || told=
  if [ -n "$told" ]; then
    printf 'nothing ran on %s: %s\n' "$gpu" "$told"
    exit 77
  fi
fi
if ! sanitizer=$(command -v compute-sanitizer); then
  sanitizer=
  for folder in ${CUDA_HOME:+"$CUDA_HOME/bin"} /usr/local/cuda/bin; do
    if [ -x "$folder/compute-sanitizer" ]; then sanitizer=$folder/compute-sanitizer; fi
  done
fi

# plan NAME SECONDS PROGRAM ARGUMENT...: a step, with its limit. Its result is NAME.json, where the
# arguments name that.
names=()
limits=()
commands=()
plan() {
  local program
  program=$(find_program "$3")
  names+=("$1")
  limits+=("$2")
  if [ -n "$program" ]; then
    commands+=("$(printf '%q ' "$program" "${@:4}")")
  else
    commands+=("missing: there is no program $3")
  fi
}
# Under the sanitizer NAME only what is about kernels: it makes a program many times slower.
plan_sanitizer() {
  plan "$1" 40 gpu_tests '--gtest_filter=*ConversionKernel*'
  local last=$((${#commands[@]} - 1))
  if [ -z "$sanitizer" ]; then
    commands[last]="missing: there is no program compute-sanitizer"
  elif [[ ${commands[last]} != missing:* ]]; then
    commands[last]="$(printf '%q ' "$sanitizer" --tool "$1" --error-exitcode 1)${commands[last]}"
  fi
}
plan_bench() {
  plan "$1" "$2" millrace bench "$dataset" --device cuda:0 --convert bfloat16 \
    --json "$raw/$1.json" "${@:3}"
}

# A few photographs, where they are there: what train learns in a minute.
train_on=$here/photos.lmdb
[ -e "$train_on" ] || train_on=$dataset
cores=$(nproc)
half=$(((cores + 1) / 2))
plan gpu_tests 60 gpu_tests
plan gpu_calls 40 gpu_call_tests
for tool in memcheck racecheck initcheck; do plan_sanitizer "$tool"; done
plan conversion 60 millrace_gpu_benchmarks --benchmark_format=json
# A step of 1.25 x the loader's time per batch: what the loader just feeds.
plan_bench auto_256 40 --step-ms auto --batch-size 256 --workers "$cores" --seconds 6
plan_bench auto_64 30 --step-ms auto --batch-size 64 --workers "$cores" --seconds 6
plan_scaling() {
  plan_bench "scaling_$1" 25 --step-ms 0 --batch-size 64 --workers "$1" --warmup 6 --seconds 4
}
for ((workers = 1; workers < cores; workers *= 2)); do plan_scaling "$workers"; done
plan_scaling "$cores"
plan train 40 train "$train_on" --device cuda:0
plan_bench soak 215 --step-ms auto --batch-size 256 --workers "$cores" --seconds 180
# What is good to know, if there is time: the first step on parts, fewer workers, a longer step, and
# one of matrix products.
plan_bench auto_256_parts 40 --step-ms auto --batch-size 256 --workers "$cores" --micro-batches 4 \
  --seconds 6
plan_bench auto_256_half 40 --step-ms auto --batch-size 256 --workers "$half" --seconds 6
plan_bench step_200ms 30 --step-ms 200 --batch-size 256 --workers "$cores" --seconds 6
# About 10 ms each: the conversion waits behind products that fill the GPU.
plan_bench step_gemm_short 30 --step gemm:16384 --batch-size 64 --workers "$cores" --seconds 6
plan_bench step_gemm 30 --step gemm:32768 --batch-size 256 --workers "$cores" --seconds 6

printf '%s, commit %s, %s, %d cores\n' "$gpu" "$commit" "$dataset" "$cores"
printf 'The plan, with the most seconds that each may take:\n'
for i in "${!names[@]}"; do
  printf '  %-16s %4d  %s\n' "${names[i]}" "${limits[i]}" "${commands[i]}"
done

# steps.tsv has a line for each: name, status (or why there is none), seconds, limit, command.
note() { printf '%s\t%s\t%s\t%s\t%s\n' "$@" >>"$raw/steps.tsv"; }
time_for_all=${MILLRACE_GPU_TIME:-470}
for i in "${!names[@]}"; do
  name=${names[i]}
  limit=${limits[i]}
  command=${commands[i]}
  left=$((time_for_all - SECONDS))
  for most in ${MILLRACE_GPU_LIMIT:+"$MILLRACE_GPU_LIMIT"} "$left"; do
    if [ "$limit" -gt "$most" ]; then limit=$most; fi
  done
  if [[ $command == missing:* ]]; then
    note "$name" "not run: ${command#missing: }" 0 "$limit" ""
    continue
  elif [ "$limit" -lt 1 ] || { [ "$limit" -eq "$left" ] && [ "$left" -lt 20 ]; }; then
    if [ "$left" -lt 0 ]; then left=0; fi
    note "$name" "not run: of $time_for_all s in all $left are left" 0 0 "$command"
    continue
  fi
  begin=$SECONDS
  status=0
  LD_LIBRARY_PATH=$libraries timeout -k 5 "$limit" bash -c "exec $command" \
    >"$raw/$name.out" 2>"$raw/$name.err" </dev/null || status=$?
  note "$name" "$status" $((SECONDS - begin)) "$limit" "$command"
  printf '%-16s ended with %d after %d s\n' "$name" "$status" $((SECONDS - begin))
done
# The benchmarks' result is what they print.
if [ -s "$raw/conversion.out" ]; then mv "$raw/conversion.out" "$raw/conversion.json"; fi

status=0
python3 "$here/summarize.py" "$raw" --gpu "${gpu%, *}" --driver "${gpu##*, }" --commit "$commit" \
  --dataset "$dataset" --command "$command_line" --cores "$cores" --json "$out/results.json" |
  tee "$out/table.txt" || status=${PIPESTATUS[0]}
exit "$status"

# SPDX-License-Identifier: Apache-2.0
#
# The plan of run.sh, which includes this file: the steps in the order of their importance. All
# limits, including those before the first step, add up to at most 480 s (--quick: 240).

# plan NAME SECONDS QUICK_SECONDS PROGRAM ARGUMENT...: adds a step with its limits; - leaves it out.
# Its result is NAME.json if the arguments name that file, or its output if that is JSON.
names=()
limits=()
commands=()
plan() {
  local name=$1 limit=$2 program=$4 path
  if [ -n "$quick" ]; then limit=$3; fi
  if [ "$limit" = - ]; then return; fi
  path=$(find_program "$program")
  if [ -n "$only_plan" ]; then path=${path:-$program}; fi
  if [ -n "$path" ]; then
    add_step "$name" "$limit" "$(printf '%q ' "$path" "${@:5}")"
  else
    add_step "$name" "$limit" "missing: there is no program $program"
  fi
}
add_step() {
  names+=("$1")
  limits+=("$(($2 * ${MILLRACE_GPU_SLOWER:-1}))")
  commands+=("$3")
}
# Whether the last step is NAME and has its program.
is_last() {
  local last=$((${#names[@]} - 1))
  [ "$last" -ge 0 ] && [ "${names[last]}" = "$1" ] && [[ ${commands[last]} != missing:* ]]
}
# needs NAME VALUE WHY: the step NAME, if it is the last, does not run if VALUE is empty.
needs() {
  if [ -z "$2" ] && is_last "$1"; then commands[${#commands[@]} - 1]="missing: $3"; fi
}
# under NAME TOOL ARGUMENT...: the step NAME, if it is the last, runs its program under a tool.
under() {
  local path last=$((${#names[@]} - 1))
  if ! is_last "$1"; then return; fi
  path=$(find_program "$2")
  if [ -n "$only_plan" ]; then path=${path:-$2}; fi
  if [ -z "$path" ]; then
    commands[last]="missing: there is no program $2"
  else
    commands[last]="$(printf '%q ' "$path" "${@:3}")${commands[last]}"
  fi
}
# plan_sanitizer NAME SECONDS QUICK_SECONDS TOOL FILTER: only a few tests, because it makes a
# program many times slower.
plan_sanitizer() {
  plan "$1" "$2" "$3" gpu_tests "--gtest_filter=$5"
  under "$1" compute-sanitizer --tool "$4" --error-exitcode 1
}
plan_bench() {
  plan "$1" "$2" "$3" millrace bench "$dataset" --device cuda:0 --convert bfloat16 \
    --json "$raw/$1.json" "${@:4}"
}
# The rate with a given number of workers, with T's rate. In all other rows the library itself
# chooses the number of workers, and leaves a processor to the trainer's thread.
plan_scaling() {
  plan_bench "scaling_$1" 14 "$2" --step-ms 0 --batch-size 64 --workers "$1" --warmup 4 \
    --seconds 1 --ceiling --ceiling-seconds 8
}
plan_resnet18() {
  plan "resnet18_$1" "$2" "$3" resnet18 "$dataset" --device cuda:0 --batch-size "$1" --feed both \
    --repeat 40 --warm-up 2 --measure 4 --json "$raw/resnet18_$1.json"
  needs "resnet18_$1" "$torch" "there is no PyTorch"
  under "resnet18_$1" env "LD_LIBRARY_PATH=$torch_libraries"
}
# One kernel each: ncu counts the launches of all that match. The first launch is the comparison
# with the host, on a few samples.
plan_ncu() {
  plan "ncu_$1" 8 - millrace_gpu_benchmarks "--benchmark_filter=^$3/"
  under "ncu_$1" ncu --clock-control none --csv --metrics \
    gpu__time_duration.sum,gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed \
    --kernel-name "$2" --launch-skip 1 --launch-count 1
}

make_plan() {
  local cores seconds
  cores=$(nproc)
  seconds=$((quick ? 3 : 4))
  plan machine 5 5 python3 "$here/machine.py" --data "$dataset"
  under machine env "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}"
  plan gpu_tests 30 36 gpu_tests
  plan gpu_calls 9 - gpu_call_tests
  local kernels='*ConversionKernel*:*MixKernel*'
  plan_sanitizer memcheck 18 20 memcheck "$kernels"
  plan_sanitizer memcheck_pipeline 18 - memcheck CudaPipelineOnGpu.BatchesAreThoseOfTheHost
  plan kernels 17 17 millrace_gpu_benchmarks --benchmark_format=json --photos "$photos" \
    '--benchmark_filter=^(Convert/.*/bfloat16/nchw|Mix/|(Jpeg)?Crop/|DeviceBandwidth)'
  # About half of the rate that 16 cores can feed: 90 and 22 ms on an H100.
  plan_bench gemm_256 20 18 --step gemm:32768 --batch-size 256 --seconds "$seconds"
  plan_bench gemm_64 20 16 --step gemm:20480 --batch-size 64 --seconds "$seconds"
  plan_resnet18 128 28 -
  plan_resnet18 256 26 30
  # A step of 1.25 x the loader's time per batch, which the loader can just feed.
  plan_bench spin_256 16 - --step-ms auto --batch-size 256 --seconds 4
  if [ "$cores" -gt 1 ]; then plan_scaling 1 -; fi
  if [ "$cores" -gt 8 ]; then plan_scaling 8 -; fi
  plan_scaling "$cores" 16
  plan latency 9 - millrace_gpu_benchmarks --benchmark_format=json \
    '--benchmark_filter=^(PinnedAllocation|LaunchLatency)/'
  plan_sanitizer racecheck 30 - racecheck "$kernels"
  plan_sanitizer initcheck 11 - initcheck "$kernels"
  plan_sanitizer synccheck 11 - synccheck "$kernels"
  plan_bench soak 80 - --step gemm:32768 --batch-size 256 --seconds 60
  plan python 32 32 python3 "$python_example" "$photos" "$dataset" \
    --library "$library_folder/libmillrace.so.0.1" --device cuda:0 --batch-size 256 \
    --warm-up 2 --seconds 4 --feeds synthetic,millrace,torchvision --json "$raw/python.json"
  needs python "$torch" "there is no PyTorch"
  needs python "$photos" "no folder of photographs was named"
  under python env "LD_LIBRARY_PATH=$torch_libraries"
  plan_ncu convert to_planes Convert/256x224x224x3/bfloat16/nchw/no_flips
  plan_ncu mix erase_and_mix Mix/256x224x224x3/mixup
  plan train 10 - train "$dataset" --device cuda:0
}

print_plan() {
  local n sum=0 first="nvidia-smi, unpacking, looking for the GPU"
  printf 'The plan, with the most seconds that each may take:\n'
  printf '  %-18s %4d  %s\n' before $((smi_limit + unpack_limit + probe_limit)) "$first"
  sum=$((smi_limit + unpack_limit + probe_limit))
  for ((n = 0; n < ${#names[@]}; n++)); do
    printf '  %-18s %4d  %s\n' "${names[n]}" "${limits[n]}" "${commands[n]}"
    sum=$((sum + limits[n]))
  done
  printf '  %-18s %4d\n' "in all" "$sum"
}

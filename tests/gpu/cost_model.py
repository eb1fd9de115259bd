#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicts the rate of the kernels that make crops, without a GPU.

  cost_model.py [--work BENCHMARKS.json]   prints the prediction.
  cost_model.py --count [--nvcc NVCC] [--nvdisasm NVDISASM] [--work BENCHMARKS.json]
                                           first counts the instructions of the compiled kernels,
                                           and writes them and the mean work to cost_model.json.

gpu/DECISIONS.md explains the model. BENCHMARKS.json is the output of millrace_gpu_benchmarks with
--benchmark_filter=CropCounts --benchmark_format=json --photos FOLDER. The default is the mean work
in cost_model.json. PyPI's nvidia-cuda-nvdisasm has nvdisasm.
"""
import argparse
import collections
import itertools
import json
import math
import pathlib
import sys

COUNTS = pathlib.Path(__file__).with_name("cost_model.json")
BLOCKS = 16  # of threads for each sample (crop_blocks in gpu/pixel/crop_kernel.h)
LAUNCHED = 64  # samples in a launch (CropWork::max_samples)
SCHEDULERS = 4  # of an SM; each issues one instruction of a warp per cycle
MODEL_ERROR = 0.25  # accepted, of the predicted rate
LAUNCH_SECONDS = 3e-6  # of a kernel, from the end of the one before

# SMs, bandwidth and clocks: NVIDIA's whitepapers and data sheets of the A100 80 GB SXM, L40S, H100
# SXM and H200. Warps, blocks and shared memory of an SM: the CUDA programming guide's table of
# technical specifications. An H100 SXM and an H200 have up to 1,980 MHz, and lower it under load:
# the model takes the boost clock of the H100 PCIe.
MACHINES = {
    "A100": {"arch": "80", "sms": 108, "mhz": 1410, "gb_per_second": 2039, "warps": 64,
             "blocks": 32, "shared_kib": 164},
    "L40S": {"arch": "89", "sms": 142, "mhz": 2520, "gb_per_second": 864, "warps": 48,
             "blocks": 24, "shared_kib": 100},
    "H100": {"arch": "90", "sms": 132, "mhz": 1755, "gb_per_second": 3350, "warps": 64,
             "blocks": 32, "shared_kib": 228},
    "H200": {"arch": "90", "sms": 132, "mhz": 1755, "gb_per_second": 4800, "warps": 64,
             "blocks": 32, "shared_kib": 228},
}
# Cycles that a warp's instruction keeps a unit of a scheduler's quarter of the SM, from the
# programming guide's table of arithmetic throughput for compute capability 8.0, 8.9 and 9.0: 64
# lanes of integers (alu), 64 of multiply-adds (imad), 16 of bit counts (xu) in a cycle of an SM.
# The unit of loads and stores (lsu) is shared: 32 lanes in a cycle of an SM.
CYCLES = {"issue": 1, "alu": 2, "imad": 2, "xu": 8, "lsu": 4}
# Numbers of a loop in cost_model.json: the cycles that a warp alone takes for a pass, and its
# instructions by their unit.
COLUMNS = ("serial", *CYCLES)


# For each kernel: its threads, its bytes of device memory for a sample, its loops, and the blocks
# of threads that have work, if others end at once. A loop has a part of the source line with `for`,
# and how often it runs for a sample: in warps of all blocks, and in rounds of the blocks' slowest
# warps; and how often in the longest warp of a launch, where that is counted. A branch that many
# passes of its loop do not take has the same. These are sums of factors times numbers of the mean
# work of a crop (bench/micro/crop_batch.h). The number "" is 1, and "launched" the number of
# samples in the launch.
Loop = collections.namedtuple("Loop", "line warps rounds longest")


def loop(line, warps, rounds, longest=()):
    """The name of a number alone stands for that number."""
    return Loop(line, *({of: 1} if isinstance(of, str) else dict(of)
                        for of in (warps, rounds, longest)))


def first_loop(warps):
    """The needs of all samples of the launch, 32 in a pass, which each warp adds up at first."""
    return loop("other < work.samples", {"launched": BLOCKS * warps / 32},
                {"launched": BLOCKS / 32}, {"launched": 1 / 32})


def scan_loop(line, name, factor=1):
    """A loop of `decode_segments`, whose blocks are a warp. It runs `factor` times for each pass of
    the loop that the counters of the name count. 0: nvcc has unrolled it so far that the code
    behind it makes all passes."""
    return loop(line, *2 * [{f"{name}_warps": factor}], {f"{name}_longest": factor})


KERNELS = {
    "transform_tiles": {
        "threads": 128, "bytes": {"packed_bytes": 1, "plane_bytes": 1},
        "loops": [
            first_loop(4),
            loop("component < crop.components", {"": 3 * 64}, {"": 3 * 16}),
            loop("row < plane.rows", {"tile_rows": 4}, "tile_rows"),
            loop("tile < plane.tiles", "tile_warps", "tile_rounds"),
            loop("round * 64 < count", "value_warps", "value_rounds"),
            loop("column += 32", {"tile_warps": 2}, {"tile_rounds": 2}),
            loop("row += 32", {"tile_warps": 2}, {"tile_rounds": 2}),
        ],
    },
    "decode_segments": {
        "threads": 32, "bytes": {"packed_bytes": 1, "plane_bytes": 1}, "blocks": "scan_warps",
        "loops": [
            first_loop(1),
            scan_loop("n < crop.scan.code_count", "code"),
            scan_loop("index < 1U << index_bits", "code", 16),
            scan_loop("n < 256; n += threads", "code", 0),
            scan_loop("component < crop.components", "scan", 3),
            scan_loop("n < values_of_block", "scan", 0),
            scan_loop("first < crop.scan.segment_count", "part"),
            scan_loop("n < segment.mcus", "mcu"),
            scan_loop("n < sizeof blocks", "mcu", 3),  # unrolled 16 times, of 55 passes
            scan_loop("block < layout.blocks", "symbol"),
            # Rows and columns of blocks. The loops differ by the brace alone.
            scan_loop("number < tables.layout.blocks; ++number) {", "block"),
            scan_loop("owner += scan_threads / 8) {", "transform"),
            scan_loop("number < tables.layout.blocks; ++number)", "block"),
            scan_loop("owner += scan_threads / 8)", "transform"),
        ],
        "branches": [scan_loop("find_long(bits)", "long")],
    },
    "resize_rows": {
        "threads": 256, "bytes": {"plane_bytes": 1, "rows": 3 * 224},
        "loops": [
            first_loop(8),
            loop("y < rows", {"rows": 8}, "rows"),
            loop("x < width", {"plain_warps": 1, "summed_warps": 1},
                 {"plain_rounds": 1, "summed_rounds": 1}),
            loop("from < down.count", {"plain_warps": 1, "summed_tap_warps": 1},
                 {"plain_rounds": 1, "summed_tap_rounds": 1}),
            loop("x < work.width", "across_warps", "across_rounds"),
            loop("tap < across.count", "across_tap_warps", "across_tap_rounds"),
        ],
    },
    "resize_columns": {
        "threads": 256, "bytes": {"rows": 3 * 224, "": 3 * 224 * 224},
        "loops": [
            first_loop(8),
            loop("y < work.height", {"down_rows": 8}, "down_rows"),
            loop("n < row_values", "down_warps", "down_rounds"),
            loop("tap < down.count", "down_tap_warps", "down_tap_rounds"),
        ],
    },
}


# For each form of records: its benchmark, the key of its mean work, and the kernel that it has
# nothing to do for.
Form = collections.namedtuple("Form", "benchmark work idle")
FORMS = {"coefficients": Form("Crop", "work", "decode_segments"),
         "JPEGs": Form("JpegCrop", "jpeg_work", "transform_tiles")}


def parts_of(kernel):
    """Loops and branches, and the code outside of all loops."""
    return [*kernel["loops"], *kernel.get("branches", ()),
            loop("launch", {"": BLOCKS * kernel["threads"] // 32}, {"": BLOCKS}, {"": 1})]


def idle(kernel):
    """A kernel whose blocks all end after they have added up the needs of the launch."""
    return {**kernel, "loops": kernel["loops"][:1], "branches": (), "bytes": {}, "blocks": ""}


def occupancy(kernel, machine):
    """Blocks of threads that an SM holds."""
    warps = kernel["threads"] // 32
    registers = -(-kernel["registers"] * 32 // 256) * 256 * warps
    shared = kernel["shared_bytes"] + 1024  # of which CUDA keeps 1 KiB for each block
    return min(machine["warps"] // warps, machine["blocks"], 65536 // registers,
               machine["shared_kib"] * 1024 // shared)


def per_second(warps, demand, serial):
    """Warps that a scheduler ends in a cycle, if `warps` of them share its busiest unit.

    Each takes `serial` cycles alone, and the unit for `demand` of them. It is the exact mean value
    analysis of a closed network of one queue and one delay (Reiser and Lavenberg, 1980). A fraction
    of a warp is interpolated."""
    rate, queue = 0.0, 0.0
    for present in range(1, int(warps) + 2):
        time = demand * (1 + queue) + max(serial - demand, 0)
        share = min(1.0, warps - present + 1)
        if share <= 0:
            break
        rate += share * (present / time - rate)
        queue = present / time * demand * (1 + queue)
    return rate


def predict_kernel(kernel, work, machine, launched):
    """Seconds for a sample, of `launched` ones at a time, with all that they follow from."""
    loops = [(of, dict(zip(COLUMNS, kernel["counts"][of.line])))
             for of in parts_of(kernel)]
    counts = {unit: sum(numbers[unit] * count(of.warps, work) for of, numbers in loops)
              for unit in CYCLES}
    blocks = work[kernel["blocks"]] if kernel.get("blocks") else BLOCKS  # with work, of a sample
    serial, longest = (sum(numbers["serial"] * count(passes(of), work) for of, numbers in loops)
                       for passes in (lambda of: of.rounds, lambda of: of.longest))
    serial /= blocks
    has_longest = all(of.longest for of, _ in loops)
    block_warps = kernel["threads"] / 32
    cycles = {unit: counts[unit] * CYCLES[unit] / SCHEDULERS for unit in CYCLES}
    bound = max(cycles, key=cycles.get)
    # The SM with the most blocks: full waves of as many as it holds, and the rest.
    held = occupancy(kernel, machine)
    waves, rest = divmod(math.ceil(launched * blocks / machine["sms"]), held)
    demand = cycles[bound] * SCHEDULERS / (blocks * block_warps)
    in_cycles = sum(
        times * warps / per_second(warps, demand, serial) for times, warps in (
            (waves, held * block_warps / SCHEDULERS), (1, rest * block_warps / SCHEDULERS))
        if times and warps)
    shared_cycles, in_cycles = in_cycles, max(in_cycles, longest if has_longest else 0)
    bytes_moved = count(kernel["bytes"], work)
    seconds = {"compute": in_cycles / launched / machine["mhz"] / 1e6,
               "memory": bytes_moved / machine["gb_per_second"] / 1e9}
    return {
        "instructions": counts["issue"], "bytes": bytes_moved, "bound": bound, "serial": serial,
        "longest": longest if has_longest else None,
        "at_full_unit": cycles[bound] / machine["sms"] / machine["mhz"] / 1e6, "blocks": held,
        "occupancy": held * block_warps / machine["warps"], "units": counts,
        "seconds": max(seconds.values()) + LAUNCH_SECONDS / launched,
        "busy": cycles[bound] * launched / machine["sms"] / in_cycles,
        "memory_bound": seconds["memory"] > seconds["compute"],
        "warp_bound": in_cycles > shared_cycles,
    }


def count(terms, work):
    """How often something happens for a sample: a sum of factors times the work's numbers."""
    return sum(factor * (work[name] if name else 1) for name, factor in terms.items())


def beside_prediction(runs, gpu, form):
    """A benchmark's rate beside the prediction for its work: why it is missing, the text, the bar,
    and whether it is met. `form`: a key of FORMS."""
    machine = machine_of(gpu or "")
    bar = f"prediction +- {MODEL_ERROR:.0%}" if machine else ""
    run = next((run for run in runs
                if str(run.get("name")).startswith(f"{FORMS[form].benchmark}/224/")), {})
    rate = run.get("samples_per_second")
    if not isinstance(rate, (int, float)):
        return run.get("error_message") or "the result has no samples_per_second", "", bar, None
    if not machine:
        return None, f"{rate:.0f} samples/s, no prediction for {gpu or 'this GPU'}", bar, None
    counts = read_counts()
    work = {name: run[name] for name in counts[FORMS[form].work] if name in run}
    _, predicted = predict(counts, machine, form, work, run.get("samples_per_launch", LAUNCHED))
    return None, (f"{rate:.0f} samples/s, predicted {predicted:.0f} for {machine}: "
                  f"{rate / predicted:.2f} of it"), bar, abs(rate / predicted - 1) <= MODEL_ERROR


def machine_of(gpu):
    """The machine whose name a GPU's name has, or None."""
    return next((name for name in MACHINES if name in gpu), None)


def read_counts():
    return json.loads(COUNTS.read_text(encoding="utf-8"))


def predict(counts, name, form, work=None, launched=LAUNCHED):
    """The kernels' predictions on a machine by their names, and samples per second. The mean work
    stands for numbers that `work` lacks."""
    machine = MACHINES[name]
    work = {**counts[FORMS[form].work], **(work or {}), "launched": launched}
    kernels = {}
    for kernel, entry in counts["kernels"][machine["arch"]].items():
        declared = KERNELS[kernel] if kernel != FORMS[form].idle else idle(KERNELS[kernel])
        kernels[kernel] = predict_kernel({**declared, **entry}, work, machine, launched)
    return kernels, 1 / sum(kernel["seconds"] for kernel in kernels.values())


def works_of(path):
    """The counters of the benchmarks CropCounts and JpegCropCounts: the mean work of a crop of each
    form, by its key in cost_model.json."""
    runs = json.loads(path.read_text(encoding="utf-8"))["benchmarks"]
    works = {form.work: {key: round(value, 3) for key, value in run.items()
                         if isinstance(value, float) and not key.endswith("_time")}
             for form in FORMS.values() for run in runs
             if str(run.get("name")).startswith(f"{form.benchmark}Counts") and "rows" in run}
    if len(works) < len(FORMS):
        raise SystemExit(f"{path}: lacks counters of CropCounts or JpegCropCounts; run them with "
                         "--photos FOLDER")
    return works


def print_prediction(counts):
    units = [unit for unit in CYCLES if unit != "issue"]
    print(f"{'':6}{'kernel':<17}{'regs':>5}{'shared':>8}{'occupancy':>10}"
          f"{'instructions':>13}" + "".join(f"{unit:>9}" for unit in units) +
          f"{'KB':>7}{'bound':>7}{'busy':>6}{'ns':>8}")
    for name, form in itertools.product(MACHINES, FORMS):
        kernels, rate = predict(counts, name, form)
        for kernel, of in kernels.items():
            entry = counts["kernels"][MACHINES[name]["arch"]][kernel]
            bound = ("memory" if of["memory_bound"] else "warp" if of["warp_bound"] else
                     of["bound"])
            print(f"{name:<6}{kernel:<17}{entry['registers']:>5}{entry['shared_bytes']:>8}"
                  f"{of['occupancy']:>10.0%}{of['instructions']:>13,.0f}" +
                  "".join(f"{of['units'][unit]:>9,.0f}" for unit in units) +
                  f"{of['bytes'] / 1e3:>7.0f}{bound:>7}{of['busy']:>6.0%}"
                  f"{of['seconds'] * 1e9:>8.0f}")
        print(f"{name:<6}{form}: {rate:,.0f} samples/s")


def to_text(value, depth=0):
    """JSON with a line for each loop."""
    if depth == 5 or not isinstance(value, (dict, list)):
        return json.dumps(value)
    inner = [(f"{json.dumps(key)}: " if isinstance(value, dict) else "") +
             to_text(value[key] if isinstance(value, dict) else key, depth + 1) for key in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return begin + ",".join(f"\n{' ' * (depth + 1)}{text}" for text in inner) + \
        f"\n{' ' * depth}{end}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--work", type=pathlib.Path)
    arguments.add_argument("--count", action="store_true")
    arguments.add_argument("--nvcc", default="nvcc")
    arguments.add_argument("--nvdisasm", default="nvdisasm")
    options = arguments.parse_args()
    works = works_of(options.work) if options.work else {}
    if options.count:
        import kernel_counts  # pylint: disable=import-outside-toplevel  # not in a bundle
        counted = {**read_counts(), **works,
                   **kernel_counts.count_all(options.nvcc, options.nvdisasm)}
        COUNTS.write_text(to_text(counted) + "\n", encoding="utf-8")
    print_prediction({**read_counts(), **works})
    return 0


if __name__ == "__main__":
    sys.exit(main())

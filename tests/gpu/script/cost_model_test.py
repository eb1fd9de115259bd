#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cost_model_test.py [NVCC]: tests the model of the kernels' cost.

With nvcc of the version that cost_model.json was counted with, it compares the compiled kernels
with that file: registers and shared memory, and with nvdisasm in the PATH all counts.
"""
import pathlib
import shutil
import sys
import tempfile
import unittest

GPU = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(GPU))
import cost_model  # pylint: disable=wrong-import-position
import kernel_counts  # pylint: disable=wrong-import-position

NVCC = None
# An instruction that waits 4 cycles; one that also waits for barrier 0; a load that sets it.
PLAIN, WAITING, LOAD = "000fc800078e00ff", "001fc800078e00ff", "000e2800078e00ff"
LINE = '\t//## File "/somewhere/{}", line {}\n'


def listing(*parts):
    """Output of nvdisasm for parts: (file, line, label, instruction, higher half)."""
    text = ".text._ZN8millrace7kernels14resize_columnsENS_8CropWorkE:\n"
    for n, (file, line, label, code, high) in enumerate(parts):
        text += LINE.format(file, line) + (f"{label}:\n" if label else "")
        text += f"        /*{n * 16:04x}*/    {code} ;    /* 0x0000000000000000 */\n"
        text += f"                                       /* 0x{high} */\n"
    return text


def line_of(file, text):
    for name, lines in kernel_counts.Source().texts.items():
        if name == file:
            return next(n for n, line in enumerate(lines, 1) if text in line)
    raise AssertionError(file)


class CountTest(unittest.TestCase):
    def count(self, *parts):
        code = kernel_counts.parse(listing(*parts), ["resize_columns"])["resize_columns"]
        kernel = {"threads": 256, "loops": [
            cost_model.loop("tap < down.count", "taps", "tap_rounds")],
            "branches": [cost_model.loop("find_long(bits)", "long", "long")]}
        counts = kernel_counts.count_kernel("resize_columns", code, kernel, kernel_counts.Source())
        return [{name: number for name, number in zip(cost_model.COLUMNS, numbers) if number}
                for part, numbers in counts.items() if part != "find_long(bits)" or any(numbers)]

    def test_a_loop_and_the_code_around_it(self):
        at = line_of("crop_kernel.h", "tap < down.count")
        loop, launch = self.count(
            ("crop_kernel.h", 1, "", "IMAD R0, R1, R2, R3", PLAIN),
            ("crop_kernel.h", at, ".L_x_1", "LDG.E R4, desc[UR4][R2.64]", LOAD),
            ("crop_kernel.h", at, "", "IADD3 R4, R4, R5, RZ", WAITING),
            ("crop_kernel.h", at, "", "@!P0 BRA `(.L_x_1)", PLAIN),
            ("crop_kernel.h", 1, "", "STG.E.64 desc[UR4][R2.64], R4", PLAIN),
            ("crop_kernel.h", 1, "", "EXIT", PLAIN))
        # The load's result is waited for, and two instructions wait 4 cycles after it.
        self.assertEqual(loop, {"serial": kernel_counts.LATENCIES["LDG"] + 8, "issue": 3, "alu": 1,
                                "lsu": 1})
        self.assertEqual(launch, {"serial": 12, "issue": 3, "imad": 1, "lsu": 2})

    def test_a_loop_that_is_not_known(self):
        with self.assertRaisesRegex(SystemExit, r"^crop_kernel.h:1: a loop that"):
            self.count(("crop_kernel.h", 1, ".L_x_1", "NOP", PLAIN),
                       ("crop_kernel.h", 1, "", "@P0 BRA `(.L_x_1)", PLAIN),
                       ("crop_kernel.h", 1, "", "EXIT", PLAIN))

    def test_a_loop_whose_file_is_wrong(self):
        at = line_of("crop_kernel.h", "tap < down.count")
        loop, _ = self.count(("crop_layout.h", at, ".L_x_1", "NOP", PLAIN),
                             ("crop_layout.h", at, "", "@P0 BRA `(.L_x_1)", PLAIN),
                             ("crop_kernel.h", 1, "", "EXIT", PLAIN))
        self.assertEqual(loop["issue"], 2)

    def test_a_branch_that_is_counted_alone(self):
        at = line_of("crop_kernel.h", "tap < down.count")
        rare = line_of("scan_tables.h", "find_long(bits)")
        loop, branch, _ = self.count(
            ("crop_kernel.h", at, ".L_x_1", "@P0 BRA `(.L_x_2)", PLAIN),
            ("scan_tables.h", rare, "", "LDS R4, [R2]", LOAD),
            ("scan_tables.h", rare, "", "IADD3 R4, R4, R5, RZ", WAITING),
            ("crop_kernel.h", at, ".L_x_2", "@!P0 BRA `(.L_x_1)", PLAIN),
            ("crop_kernel.h", 1, "", "EXIT", PLAIN))
        self.assertEqual(loop, {"serial": 8, "issue": 2})
        self.assertEqual(branch, {"serial": kernel_counts.LATENCIES["LDS"] + 4, "issue": 2,
                                  "alu": 1, "lsu": 1})

    def test_a_load_that_the_cache_has(self):
        at = line_of("crop_kernel.h", "tap < down.count")
        text, cycles = next(iter(kernel_counts.CACHED.items()))
        loop, _ = self.count(
            ("scan_kernel.h", line_of("scan_kernel.h", text), ".L_x_1",
             "LDG.E.U8 R4, desc[UR4][R2.64]", LOAD),
            ("crop_kernel.h", at, "", "@!P0 BRA `(.L_x_1)", WAITING),
            ("crop_kernel.h", 1, "", "EXIT", PLAIN))
        self.assertEqual(loop["serial"], cycles + 4)

    def test_a_loop_that_is_missing(self):
        with self.assertRaisesRegex(SystemExit, r"resize_columns: .*tap < down.count"):
            self.count(("crop_kernel.h", 1, "", "EXIT", PLAIN))

    def test_an_unknown_instruction(self):
        with self.assertRaisesRegex(SystemExit, "QUUX.U32 R1: the instruction is not"):
            self.count(("crop_kernel.h", 1, "", "@P1 QUUX.U32 R1", PLAIN))

    def test_code_that_photographs_do_not_run(self):
        not_taken = line_of("crop_kernel.h", kernel_counts.NOT_TAKEN[0])
        (_, launch) = self.count(*[
            ("crop_kernel.h", line, label, code, PLAIN) for line, label, code in (
                (not_taken, ".L_x_2", "IADD3 R4, R4, R5, RZ"),
                (not_taken, "", "@P0 BRA `(.L_x_2)"),
                (line_of("crop_kernel.h", "tap < down.count"), ".L_x_1", "NOP"),
                (line_of("crop_kernel.h", "tap < down.count"), "", "@P0 BRA `(.L_x_1)"),
                (1, "", "EXIT"))])
        self.assertEqual(launch, {"serial": 4, "issue": 1})

    def test_the_file_has_the_compiled_kernels(self):
        if not NVCC:
            self.skipTest("needs nvcc")
        counts = cost_model.read_counts()
        if kernel_counts.compiler_version(NVCC) != counts["nvcc"]:
            self.skipTest(f"needs nvcc {counts['nvcc']}")
        advice = "cost_model.json is of other kernels; run cost_model.py --count"
        nvdisasm = shutil.which("nvdisasm")
        if nvdisasm:
            again = kernel_counts.count_all(NVCC, nvdisasm)
            self.assertEqual(again["kernels"], counts["kernels"], advice)
        else:
            with tempfile.TemporaryDirectory() as folder:
                _, kernels = kernel_counts.compile_kernels(NVCC, "90", pathlib.Path(folder))
            for name, facts in kernels.items():
                self.assertLessEqual(facts.items(), counts["kernels"]["90"][name].items(), advice)


def kernel(units, serial, **changes):
    numbers = [serial] + [units.get(unit, 0) for unit in cost_model.CYCLES]
    return {"threads": 128, "registers": 32, "shared_bytes": 0, "bytes": {"bytes": 1},
            "loops": [cost_model.loop("a loop", "warps", "rounds")],
            "counts": {"a loop": numbers, "launch": [0] * len(numbers)}, **changes}


class PredictTest(unittest.TestCase):
    machine = cost_model.MACHINES["H100"]

    def predict(self, entry, launched=256, size=0.0):
        # Each of the 16 x 4 warps makes one pass.
        work = {"warps": 64, "rounds": 16, "bytes": size}
        return cost_model.predict_kernel(entry, work, self.machine, launched)

    def test_occupancy(self):
        for changes, blocks in (({}, 16), ({"registers": 128}, 4), ({"shared_bytes": 50000}, 4),
                                ({"threads": 32}, 32)):
            self.assertEqual(cost_model.occupancy(kernel({}, 0, **changes), self.machine), blocks)

    def test_warps_that_share_a_unit(self):
        self.assertAlmostEqual(cost_model.per_second(1, 100, 1000), 1 / 1000)
        self.assertAlmostEqual(cost_model.per_second(0.5, 100, 1000), 0.5 / 1000)
        self.assertAlmostEqual(cost_model.per_second(64, 100, 1000), 1 / 100, 6)
        rates = [cost_model.per_second(warps, 100, 1000) for warps in (4, 8, 8.5, 9, 12)]
        self.assertEqual(rates, sorted(rates))
        self.assertLess(rates[-1], 1 / 100)

    def test_the_busiest_unit_bounds_a_kernel(self):
        for unit, cycles in cost_model.CYCLES.items():
            told = self.predict(kernel({"issue": 1, unit: 10**7}, 1e7))
            self.assertEqual(told["bound"], unit)
            # 64 warps on 132 SMs with 4 schedulers
            full = 64 * 1e7 * cycles / 4 / 132 / 1755e6
            self.assertAlmostEqual(told["at_full_unit"] / full, 1)
            self.assertGreater(told["seconds"], full)
            self.assertAlmostEqual(told["busy"] * told["seconds"] / full, 1, 1)

    def test_latency_bounds_a_kernel(self):
        fast, slow = (self.predict(kernel({"issue": 10}, serial)) for serial in (1e5, 2e5))
        self.assertAlmostEqual(slow["seconds"] / fast["seconds"], 2, 1)
        self.assertLess(slow["busy"], 0.01)

    def test_few_samples_do_not_fill_a_gpu(self):
        entry = kernel({"issue": 10}, 1e5)
        few, many = (self.predict(entry, launched)["seconds"] for launched in (16, 256))
        self.assertGreater(few / many, 7)

    def test_memory_bounds_a_kernel(self):
        told = self.predict(kernel({"issue": 10}, 10), size=3350e9)
        self.assertTrue(told["memory_bound"])
        self.assertAlmostEqual(told["seconds"], 1, 3)

    def test_the_longest_warp_bounds_a_launch(self):
        loops = [cost_model.loop("a loop", "warps", "rounds", "longest")]
        seconds = []
        for longest in (1, 10):
            work = {"warps": 64, "rounds": 16, "longest": longest, "bytes": 0}
            told = cost_model.predict_kernel(kernel({"issue": 10}, 1e5, loops=loops), work,
                                             self.machine, 64)
            self.assertEqual(told["warp_bound"], longest > 1)
            seconds.append(told["seconds"])
        self.assertAlmostEqual(seconds[1] * 64, 10 * 1e5 / 1755e6, 4)
        self.assertGreater(seconds[1], 5 * seconds[0])

    def test_blocks_without_work_take_no_turns(self):
        entry = kernel({"issue": 10}, 1e5)
        work = {"warps": 4, "rounds": 1, "busy": 1, "bytes": 0}
        few, all_blocks = (cost_model.predict_kernel(
            {**entry, "blocks": blocks}, work, self.machine, 132)["seconds"]
            for blocks in ("busy", ""))
        self.assertAlmostEqual(few * 132, 1e5 / 1755e6 + cost_model.LAUNCH_SECONDS, 5)
        self.assertLess(all_blocks, few)

    def test_the_kernel_of_the_other_form_is_idle(self):
        counts = cost_model.read_counts()
        for form, others in (("coefficients", "JPEGs"), ("JPEGs", "coefficients")):
            idle = cost_model.FORMS[form].idle
            (kernels, rate), (busy, _) = (cost_model.predict(counts, "H100", of)
                                          for of in (form, others))
            self.assertEqual(kernels[idle]["bytes"], 0)
            self.assertLess(kernels[idle]["instructions"], busy[idle]["instructions"] / 20)
            self.assertAlmostEqual(rate * sum(of["seconds"] for of in kernels.values()), 1)

    def test_names_of_gpus(self):
        for gpu, name in (("NVIDIA H100 80GB HBM3", "H100"), ("NVIDIA A100-SXM4-80GB", "A100"),
                          ("NVIDIA L40S", "L40S"), ("NVIDIA L4", None)):
            self.assertEqual(cost_model.machine_of(gpu), name)

    def test_the_prediction_reaches_its_bar(self):
        for form, bar in (("coefficients", 250_000), ("JPEGs", 60_000)):
            _, rate = cost_model.predict(cost_model.read_counts(), "H100", form)
            self.assertGreaterEqual(rate, bar, form)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1]:
        NVCC = sys.argv[1]
    unittest.main(argv=sys.argv[:1])

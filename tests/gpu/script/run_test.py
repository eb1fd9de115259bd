#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests run.sh with fakes of the programs that need a GPU."""
import os
import re
import tarfile
import unittest

from stand_ins import ScriptTest


class RunTest(ScriptTest):
    def test_without_a_gpu(self):
        for body in ("exit 9", "true"):
            self.stand_in("nvidia-smi", body)
            done = self.run_script(self.dataset)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (77, "no CUDA device\n", ""))

    def test_why_there_is_none(self):
        self.stand_in("nvidia-smi", "echo NVIDIA-SMI has failed; echo 'as it did'; exit 9")
        done = self.run_script(self.dataset)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (77, "no CUDA device: NVIDIA-SMI has failed as it did\n", ""))
        (self.programs / "nvidia-smi").unlink()
        done = self.run_script(self.dataset, PATH="/usr/bin:/bin")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (77, "no CUDA device: there is no nvidia-smi, so no driver\n", ""))

    def test_a_driver_that_is_too_old(self):
        why = "driver 570.86 knows CUDA 12.8, this build needs 13.0"
        self.stand_in("gpu_tests", f"""
if [[ $1 == --gtest_filter=CudaDevice.IsFoundHere ]]; then
  printf 'cuda_device_test.cpp:20: Skipped\\n%s\\n\\n[  SKIPPED ] CudaDevice\\n' '{why}'
fi""")
        done = self.run_script(self.dataset)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (77, f"nothing ran on NVIDIA H200, 580.1: {why}\n", ""))

    def test_all_is_well(self):
        code, out, rows = self.measure()
        self.assertEqual(code, 0, out)
        self.assertEqual({row["verdict"] for row in rows.values()}, {"ok", "-"}, out)
        self.assertNotIn("not measured", out)
        self.assertIn("every step ran and nothing falls short", out)
        self.assertEqual((self.record["gpu"], self.record["driver"]), ("NVIDIA H200", "580.1"))
        self.assertIn(str(self.dataset), self.record["command"])
        commands = {step["name"]: step["command"] for step in self.record["steps"]}
        self.assertIn("--tool racecheck --error-exitcode 1", commands["racecheck"])
        self.assertIn(r"ConversionKernel", commands["racecheck"])
        self.assertIn("--step gemm:32768 --batch-size 256", commands["gemm_256"])
        self.assertIn("--seconds 60", commands["soak"])
        self.assertIn("LD_LIBRARY_PATH=/none/torch/lib:", commands["resnet18_128"])
        # The plan is printed before anything runs.
        self.assertLess(out.index("--seconds 60"), out.index("gpu_tests          ended with 0"))
        self.assertEqual(sorted(os.listdir(self.out)),
                         ["raw.tar.gz", "results.json", "table.txt"])
        with tarfile.open(self.out / "raw.tar.gz") as archive:
            self.assertLessEqual({"raw/gemm_256.json", "raw/soak.out", "raw/steps.tsv"},
                                 set(archive.getnames()))

    def test_the_librarys_workers_but_in_one_row(self):
        self.measure()
        commands = {step["name"]: step["command"] for step in self.record["steps"]}
        self.assertEqual({name for name in commands if "--workers" in commands[name]},
                         {"scaling_1", "scaling_8", "scaling_16"})

    def plan(self, *arguments):
        """The limits of the steps by name, in order, and their printed sum."""
        done = self.run_script("--plan", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        limits = {name: int(limit)
                  for name, limit in re.findall(r"^  (\w[\w ]*?) +(\d+)\b", done.stdout, re.M)}
        return limits, limits.pop("in all")

    def test_the_limits_add_up_to_8_minutes(self):
        for arguments, most in (((), 480), (("--quick",), 240)):
            limits, told = self.plan(*arguments)
            self.assertGreater(len(limits), 8)
            self.assertEqual(sum(limits.values()), told)
            self.assertLessEqual(told, most)

    def test_the_plan_needs_no_gpu(self):
        (self.programs / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
        self.assertGreater(len(self.plan()[0]), 20)
        self.assertEqual(sorted(os.listdir(self.folder)), ["photos.lmdb", "programs"])

    def test_the_order_is_by_worth(self):
        order = list(self.plan()[0])
        worth = ["gpu_tests", "memcheck", "memcheck_pipeline", "kernels", "gemm_256", "gemm_64",
                 "resnet18_128", "resnet18_256", "spin_256", "scaling_1", "scaling_8",
                 "scaling_16", "racecheck", "initcheck", "synccheck", "soak", "python"]
        self.assertEqual([name for name in order if name in worth], worth)

    def test_the_quick_plan_is_a_part_in_the_same_order(self):
        order, quick = list(self.plan()[0]), list(self.plan("--quick")[0])
        self.assertEqual(quick, [name for name in order if name in quick])
        self.assertIn("gemm_256", quick)

    def test_the_quick_plan_is_well_without_the_rest(self):
        code, out, rows = self.measure("--quick")
        self.assertEqual(code, 0, out)
        self.assertEqual(rows["soak"]["measured"], "not measured: not in the quick plan")
        self.assertEqual(rows["soak"]["verdict"], "-")

    def test_the_gpus_file_is_held_open(self):
        file = self.folder / "nvidia0"
        file.touch()
        self.stand_in("nvidia-smi", (self.programs / "nvidia-smi").read_text() +
                      f"readlink /proc/$PPID/fd/* >>{self.folder}/held 2>&1")
        self.stand_in("train", f"readlink /proc/$PPID/fd/* >{self.folder}/held_late 2>&1")
        self.measure(MILLRACE_GPU_FILE=str(file))
        for name in ("held", "held_late"):
            self.assertIn(str(file), (self.folder / name).read_text().splitlines())

    def test_a_gpus_file_that_cannot_be_opened(self):
        for file in (self.folder, self.folder / "none"):
            self.assertEqual(self.measure("--quick", MILLRACE_GPU_FILE=str(file))[0], 0)
        self.assertFalse((self.folder / "none").exists())

    def test_wrong_calls(self):
        missing = self.run_script(self.folder / "none.lmdb")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("none.lmdb: there is no such dataset", missing.stderr)
        self.assertEqual(self.run_script("--nonsense").returncode, 2)
        self.assertEqual(self.run_script().returncode, 1)
        bundle = self.run_script("--bundle", self.folder / "bundle", self.folder)
        self.assertEqual(bundle.returncode, 1)
        self.assertIn("there is no such program", bundle.stderr)


if __name__ == "__main__":
    unittest.main()

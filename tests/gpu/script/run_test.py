#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.sh with programs that stand in for those that need a GPU."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

RUN = pathlib.Path(__file__).resolve().parent.parent / "run.sh"
TESTS_PASSED = "echo '[  PASSED  ] 12 tests.'"
MILLRACE = """
while [ $# -gt 0 ]; do
  case "$1" in
    --json) json=$2 ;;
    --workers) workers=$2 ;;
  esac
  shift
done
cat >"$json" <<END
{"device_idle_percent": 0.3, "idle_by_synthetic_percent": 0.2, "h2d_gb_per_second": 54,
 "h2d_percent_of_plain": 99.3, "copy_hidden_percent": 99.9, "consumer_us_per_batch": {"mean": 7.5},
 "rss_growth_mb": 0.4, "device_memory_growth_mb": 0, "samples_per_second": $((workers * 300)),
 "seconds": 180, "first_step_ms": {"parts": 20, "whole": 60}}
END
"""
STAND_INS = {
    "nvidia-smi": "printf 'NVIDIA H200, 580.1\\nNVIDIA H200, 580.1\\n'",
    "nproc": "echo 4",
    "gpu_tests": TESTS_PASSED,
    "gpu_call_tests": TESTS_PASSED,
    "compute-sanitizer": 'while [[ $1 == --* ]]; do shift 2; done; exec "$@"',
    "millrace_gpu_benchmarks": """echo '{"benchmarks": [{"name": "one", "of_copy": 0.9}]}'""",
    "millrace": MILLRACE,
    "train": "printf 'on cuda:0\\nepoch 0: loss 0.7, training accuracy 50.0%%\\n"
             "epoch 1: loss 0.2, training accuracy 95.0%%\\n'",
}


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.programs = self.folder / "programs"
        self.programs.mkdir()
        for name, body in STAND_INS.items():
            self.stand_in(name, body)
        self.dataset = self.folder / "photos.lmdb"
        self.dataset.touch()

    def stand_in(self, name, body):
        path = self.programs / name
        path.write_text(f"#!/usr/bin/env bash\n{body}\n")
        path.chmod(0o755)

    def run_script(self, *arguments, **settings):
        # No build of this machine's may be found: the folder is empty.
        environment = {
            **os.environ, "MILLRACE_GPU_PROGRAMS": str(self.programs),
            "MILLRACE_BUILD": str(self.folder), **settings
        }
        return subprocess.run(["bash", RUN, *arguments], cwd=self.folder, env=environment,
                              capture_output=True, text=True)

    def measure(self, **settings):
        """Exit status, output, and the verdicts by what they are about."""
        done = self.run_script(self.dataset, "--out", self.folder / "out", **settings)
        self.assertEqual(done.stderr, "")
        self.record = json.loads((self.folder / "out/results.json").read_text())
        self.assertIn((self.folder / "out/table.txt").read_text(), done.stdout)
        return done.returncode, done.stdout, {row["what"]: row for row in self.record["bars"]}

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
        self.assertIn("every step ran and nothing falls short", out)
        self.assertEqual((self.record["gpu"], self.record["driver"]), ("NVIDIA H200", "580.1"))
        self.assertIn(str(self.dataset), self.record["command"])
        commands = {step["name"]: step["command"] for step in self.record["steps"]}
        self.assertIn("--tool racecheck --error-exitcode 1", commands["racecheck"])
        self.assertIn(r"ConversionKernel", commands["racecheck"])
        self.assertIn("--step-ms auto --batch-size 256", commands["auto_256"])
        self.assertIn("--seconds 180", commands["soak"])
        # The plan is printed before anything runs.
        self.assertLess(out.index("--seconds 180"), out.index("gpu_tests        ended with 0"))
        self.assertEqual(sorted(os.listdir(self.folder / "out")), ["results.json", "table.txt"])

    def test_a_program_that_fails_does_not_end_the_run(self):
        self.stand_in("gpu_tests", "echo '[  FAILED  ] 1 test'; exit 1")
        code, out, rows = self.measure()
        self.assertEqual(code, 1)
        for what in ("tests on the device", "compute-sanitizer memcheck"):
            self.assertEqual(rows[what]["verdict"], "short")
            self.assertIn("ended with 1: [  FAILED  ] 1 test", rows[what]["measured"])
        self.assertEqual(rows["train on CUDA"]["verdict"], "ok", out)

    def test_a_program_that_hangs_is_stopped(self):
        self.stand_in("train", "sleep 60 & wait")
        code, out, rows = self.measure(MILLRACE_GPU_LIMIT="5")
        self.assertEqual(code, 1)
        self.assertEqual(rows["train on CUDA"]["measured"], "not measured: stopped after 5 s")
        self.assertEqual(rows["memory grows in a soak"]["verdict"], "ok", out)

    def test_a_missing_program_is_told(self):
        for name in ("millrace_gpu_benchmarks", "train"):
            (self.programs / name).unlink()
        code, out, rows = self.measure()
        self.assertEqual(code, 1)
        self.assertEqual(rows["train on CUDA"]["measured"],
                         "not measured: not run: there is no program train")
        self.assertEqual(rows["conversion of a copy on the device"]["measured"],
                         "not measured: not run: there is no program millrace_gpu_benchmarks")

    def test_there_is_an_end_to_all_of_it(self):
        code, out, rows = self.measure(MILLRACE_GPU_TIME="0")
        self.assertEqual(code, 1)
        self.assertEqual(rows["train on CUDA"]["measured"],
                         "not measured: not run: of 0 s in all 0 are left")
        self.assertNotIn("ok", {row["verdict"] for row in rows.values()})

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

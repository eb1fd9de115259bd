#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""over_stand_in_test.py BUILD_DIR DATASET PHOTOS [--full]: runs run.sh with millrace's own programs
over the stand-in for the CUDA runtime.

It runs the quick plan, or all of it. Wrappers reduce the work, because the limits are for a GPU.
"""
import pathlib
import sys
import unittest

from stand_ins import SANITIZER, ScriptTest

BUILD = DATASET = PHOTOS = None
FULL = False
# Values for options of the plan in this test.
SMALL = """
arguments=()
while [ $# -gt 0 ]; do
  arguments+=("$1")
  case "$1" in
    --seconds | --ceiling-seconds) value=1 ;;
    --batch-size) value=16 ;;
    --step) value=gemm:64 ;;
    *) value= ;;
  esac
  if [ -n "$value" ]; then arguments+=("$value"); shift; fi
  shift
done
"""
MILLRACE = SMALL + """
export LD_LIBRARY_PATH={build}/tests/bench/cublas
exec {build}/tests/bench/millrace_on_stand_in "${arguments[@]}" --size 32
"""
TESTS = """
[ $# -gt 0 ] || set -- '--gtest_filter=CudaPipelineOnGpu.*:*ConversionKernels*:*MixKernels*'
exec {build}/tests/gpu/gpu_stand_in_tests "$@"
"""
BENCHMARKS = """exec {build}/tests/bench/gpu_benchmarks_on_stand_in --small "$@" """
TRAIN = """exec {build}/tests/examples/train_on_stand_in "$@" --epochs 2 """


class OverStandInTest(ScriptTest):
    def setUp(self):
        super().setUp()
        self.built = set()
        for name, program, body in (
                ("millrace", "tests/bench/millrace_on_stand_in",
                 MILLRACE),
                ("gpu_tests", "tests/gpu/gpu_stand_in_tests", TESTS),
                ("millrace_gpu_benchmarks", "tests/bench/gpu_benchmarks_on_stand_in", BENCHMARKS),
                ("train", "tests/examples/train_on_stand_in", TRAIN)):
            (self.programs / name).unlink()
            if (BUILD / program).exists():
                self.built.add(name)
                self.stand_in(name, body.replace("{build}", str(BUILD)))
        for name in ("nproc", "python3", "resnet18", "gpu_call_tests", "ncu"):
            (self.programs / name).unlink()
        self.stand_in("compute-sanitizer", SANITIZER)
        self.dataset = DATASET
        self.photos = PHOTOS

    def test_each_program_is_called_as_it_takes_it(self):
        arguments = [] if FULL else ["--quick"]
        _, out, rows = self.measure(*arguments, MILLRACE_GPU_SLOWER="10", MILLRACE_GPU_TIME="3000")
        ended = {step["name"]: step["trouble"] for step in self.record["steps"]
                 if step["status"] not in (None, 0)}
        self.assertEqual(ended, {}, out)
        step = ", step of matrix products, batches of"
        for what in (f"rate{step} 256", f"H2D{step} 64", f"copies hidden{step} 256",
                     f"trainer's thread per batch{step} 64", "dataset, last-level cache",
                     f"idle by synthetic batches{step} 256"):
            self.assertNotIn("not measured", rows[what]["measured"], out)
        rates = [what for what in rows if what.startswith("rate of ")]
        self.assertTrue(rates)
        for what in rates:
            self.assertIn("x T", rows[what]["measured"])
        self.assertEqual(rows["tests on the device"]["verdict"], "ok")
        if "millrace_gpu_benchmarks" in self.built:
            self.assertNotIn("the result has no", out)
            for pixels in (224, 299, 384, 518):
                for kernel in ("conversion", "mix"):
                    self.assertIn("of a copy", rows[f"{kernel} kernel at {pixels} px"]["measured"])
            for form in ("coefficients", "JPEGs"):
                self.assertRegex(rows[f"kernels of crops of {form} at 224 px"]["measured"],
                                 r"^\d+ samples/s, predicted \d+ for H200: [\d.]+ of it$")
        if FULL:
            print(out)


if __name__ == "__main__":
    BUILD, DATASET, PHOTOS = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
    FULL = "--full" in sys.argv[4:]
    unittest.main(argv=sys.argv[:1])

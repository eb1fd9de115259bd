#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""summarize.py on made-up results."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SUMMARIZE = pathlib.Path(__file__).resolve().parent.parent / "summarize.py"
TESTS_PASSED = "[==========] 12 tests from 3 test suites ran.\n[  PASSED  ] 12 tests.\n"


def bench(**changes):
    return {
        "device_idle_percent": 0.31, "idle_by_synthetic_percent": 0.2, "h2d_gb_per_second": 54.2,
        "plain_h2d_gb_per_second": 54.6, "h2d_percent_of_plain": 99.3, "copy_hidden_percent": 99.9,
        "consumer_us_per_batch": {"mean": 7.5, "p50": 7, "p99": 12}, "rss_growth_mb": 0.4,
        "device_memory_growth_mb": 0, "samples_per_second": 5000, "seconds": 180,
        "first_step_ms": {"parts": 20, "whole": 60}, **changes
    }


class Results:
    """A run in which all is well; tests change what they are about."""

    def __init__(self):
        self.steps = {}
        for tool in ("gpu_tests", "gpu_calls", "memcheck", "racecheck", "initcheck"):
            self.add(tool, out=TESTS_PASSED)
        self.add("conversion", result={"benchmarks": [
            {"name": "large", "of_copy": 0.93}, {"name": "small", "of_copy": 0.85},
            {"name": "none"}]})
        for name in ("auto_256", "auto_64", "auto_256_parts", "auto_256_half", "step_200ms",
                     "step_gemm_short", "step_gemm", "soak"):
            self.add(name, result=bench())
        for workers in (1, 2, 4, 8, 16):
            self.add(f"scaling_{workers}",
                     result=bench(samples_per_second=300 * workers * (0.95 if workers > 1 else 1)))
        self.add("train",
                 out="on cuda:0\nepoch 0: loss 0.700, training accuracy 55.0%, held out 50.0%\n"
                 "epoch 1: loss 0.300, training accuracy 91.0%, held out 60.0%\nidle 3.0%; x\n")

    def add(self, name, status="0", result=None, out="", err=""):
        self.steps[name] = {
            "status": status, "result": json.dumps(result) if isinstance(result, dict) else result,
            "out": out, "err": err
        }

    def summarize(self):
        with tempfile.TemporaryDirectory() as folder:
            raw = pathlib.Path(folder)
            lines = []
            for name, step in self.steps.items():
                lines.append(f"{name}\t{step['status']}\t3\t30\tprogram --of {name}\n")
                for kind in ("out", "err"):
                    (raw / f"{name}.{kind}").write_text(step[kind])
                if step["result"] is not None:
                    (raw / f"{name}.json").write_text(step["result"])
            (raw / "steps.tsv").write_text("".join(lines))
            command = [sys.executable, SUMMARIZE, raw, "--gpu", "Made-up GPU", "--driver", "1.2",
                       "--commit", "abc", "--cores", "16", "--json", raw / "results.json"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode not in (0, 1):
                raise AssertionError(done.stderr)
            return done.returncode, done.stdout, json.loads((raw / "results.json").read_text())


class SummarizeTest(unittest.TestCase):
    def setUp(self):
        self.results = Results()

    def verdict(self, what):
        """Of the one row that begins so."""
        code, text, record = self.results.summarize()
        rows = [row for row in record["bars"] if row["what"].startswith(what)]
        self.assertEqual(len(rows), 1, text)
        self.assertEqual(code, 0 if record["all_met"] else 1)
        return rows[0]["verdict"], rows[0]["measured"], record["all_met"]

    def short(self, what, measured):
        verdict, said, met = self.verdict(what)
        self.assertEqual(verdict, "short", said)
        self.assertIn(measured, said)
        self.assertFalse(met)

    def test_all_is_well(self):
        code, text, record = self.results.summarize()
        self.assertEqual(code, 0, text)
        self.assertTrue(record["all_met"])
        self.assertNotIn("short", text.replace("falls short", ""))
        self.assertIn("Made-up GPU, driver 1.2, commit abc: every step ran and nothing falls short",
                      text)
        self.assertEqual(record["steps"][0]["out"], TESTS_PASSED)
        self.assertEqual({step["name"] for step in record["steps"]}, set(self.results.steps))

    def test_each_bar_falls_short(self):
        for what, name, change in (
                ("device idle, step auto, batches of 256", "auto_256",
                 {"device_idle_percent": 1.0}),
                ("idle by synthetic input, batches of 64", "auto_64",
                 {"idle_by_synthetic_percent": 1.2}),
                ("copies of plain ones', 36.8 MiB", "auto_256", {"h2d_percent_of_plain": 96.9}),
                ("copies hidden under steps, batches of 64", "auto_64",
                 {"copy_hidden_percent": 98.9}),
                ("trainer's thread per batch, batches of 256", "auto_256",
                 {"consumer_us_per_batch": {"mean": 20.1, "p50": 1}}),
                ("memory grows in a soak", "soak", {"rss_growth_mb": 11}),
                ("device memory grows in a soak", "soak", {"device_memory_growth_mb": 2}),
                ("soak", "soak", {"seconds": 20}),
                ("scaling", "scaling_16", {"samples_per_second": 0.89 * 16 * 300})):
            with self.subTest(what):
                self.results = Results()
                self.results.add(name, result=bench(**change))
                self.short(what, "")

    def test_the_worst_conversion_counts(self):
        self.results.add("conversion", result={"benchmarks": [
            {"name": "large", "of_copy": 0.93}, {"name": "odd", "of_copy": 0.79}]})
        self.short("conversion", "0.790 (odd")

    def test_a_conversion_that_failed_is_told(self):
        self.results.add("conversion", result={"benchmarks": [
            {"name": "large", "of_copy": 0.93}, {"name": "odd", "error_occurred": True}]})
        self.short("conversion", "not measured: odd failed")

    def test_a_missing_number_is_told(self):
        self.results.add("auto_256", result=bench(device_idle_percent=None))
        self.short("device idle, step auto, batches of 256",
                   "not measured: the result has no device_idle_percent")

    def test_what_failed_is_told(self):
        self.results.add("soak", status="1", err="millrace: cudaMalloc failed\n")
        self.short("memory grows in a soak",
                   "not measured: ended with 1: millrace: cudaMalloc failed")

    def test_what_was_stopped_is_told(self):
        self.results.add("auto_64", status="124")
        self.short("device idle, step auto, batches of 64", "not measured: stopped after 30 s")

    def test_what_did_not_run_is_told(self):
        self.results.add("racecheck", status="not run: there is no program compute-sanitizer")
        self.short("compute-sanitizer racecheck",
                   "not measured: not run: there is no program compute-sanitizer")

    def test_what_was_not_planned_is_told(self):
        del self.results.steps["scaling_1"]
        self.short("scaling", "not measured: the plan has no step scaling_1")

    def test_a_result_that_is_cut_off_is_told(self):
        self.results.add("auto_256", result='{"device_idle_percent": 0.')
        self.short("device idle, step auto, batches of 256", "not measured: its result is no JSON")

    def test_tests_that_did_not_run_are_not_clean(self):
        self.results.add(
            "memcheck", out="[==========] 0 tests from 0 test suites ran.\n[  PASSED  ] 0 tests.\n")
        self.short("compute-sanitizer memcheck", "no test ran")

    def test_tests_that_found_no_device_are_not_clean(self):
        self.results.add("gpu_tests",
                         out="[  PASSED  ] 2 tests.\n[  SKIPPED ] 38 tests, listed below:\n")
        self.short("tests on the device", "2 passed, 38 skipped")
        self.results.add("gpu_tests",
                         out="[  PASSED  ] 38 tests.\n[  SKIPPED ] 1 test, listed below:\n")
        self.assertEqual(self.verdict("tests on the device"), ("ok", "38 passed, 1 skipped", True))

    def test_a_sanitizer_that_found_something(self):
        self.results.add("initcheck", status="1",
                         out=TESTS_PASSED + "========= ERROR SUMMARY: 3 errors\n")
        self.short("compute-sanitizer initcheck", "ended with 1: ========= ERROR SUMMARY: 3 errors")

    def test_a_loss_that_does_not_fall(self):
        self.results.add(
            "train",
            out="on cuda:0\nepoch 0: loss 0.7, training accuracy 50.0%\n"
                "epoch 1: loss 0.6, training accuracy 50.0%\n")
        self.short("train on CUDA", "loss 0.700 -> 0.600")

    def test_training_on_the_host_is_not_meant(self):
        self.results.add("train", out=self.results.steps["train"]["out"].replace("cuda:0", "host"))
        self.short("train on CUDA", "not measured: its output has no epochs on cuda")

    def test_a_step_without_a_bar_must_run_too(self):
        self.results.add("scaling_4", status="124")
        code, text, record = self.results.summarize()
        self.assertEqual(code, 1)
        self.assertIn("step scaling_4: stopped after 30 s", text)


if __name__ == "__main__":
    unittest.main()

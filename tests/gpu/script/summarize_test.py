#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests summarize.py with made-up results."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SUMMARIZE = pathlib.Path(__file__).resolve().parent.parent / "summarize.py"
sys.path.insert(0, str(SUMMARIZE.parent))
import cost_model  # pylint: disable=wrong-import-position  # beside summarize.py
TESTS_PASSED = "[==========] 12 tests from 3 test suites ran.\n[  PASSED  ] 12 tests.\n"
CLEAN = "========= ERROR SUMMARY: 0 errors\n"
NCU = ('==PROF== Connected\n"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
       '"0","to_planes","gpu__time_duration.sum","us","41.2"\n')


def bench(**changes):
    return {
        "device_idle_percent": 0.31, "idle_floor_percent": 0.1, "idle_by_synthetic_percent": 0.2,
        "h2d_gb_per_second": 54.2, "h2d_percent_of_plain": 99.3, "h2d_percent_of_plain_busy": 100,
        "h2d_percent_of_paced": 99.8, "h2d_percent_of_paced_busy": 99.7,
        "h2d_percent_of_paced_under_steps": 99.1,
        "h2d_percent_of_paced_malloc_host_under_steps": 99.2,
        "h2d_percent_of_paced_malloc_host": 99.4, "h2d_percent_of_paced_malloc_host_busy": 98.6,
        "h2d_percent_of_plain_malloc_host": 99.4, "h2d_percent_of_plain_malloc_host_busy": 98.5,
        "copy_hidden_percent": 99.9, "consumer_us_per_batch": {"mean": 7.5, "p50": 7, "p99": 12},
        "rss_growth_mb": 0.4, "device_memory_growth_mb": 0, "samples_per_second": 5000,
        "seconds": 60, **changes
    }


def ceiling(workers, share=1.0):
    return bench(ceiling={"samples_per_second": 300 * workers * share,
                          "reference_images_per_second": 250 * workers})


def kernel(name, share):
    return {"name": f"{name}/iterations:30/manual_time", "of_copy": share, "of_bandwidth": 0.9}


def crop_run(form, rate, **counters):
    return {"name": f"{cost_model.FORMS[form].benchmark}/224/64/iterations:30/manual_time",
            "samples_per_second": rate, **counters}


def feeds(**rates):
    return "".join(json.dumps({"feed": feed, "images_per_second": rate, "idle": 0.002}) + "\n"
                   for feed, several in rates.items() for rate in several)


class Results:
    """Results of a run without faults; each test changes those that it is about."""

    def __init__(self):
        self.steps, self.planned, self.files = {}, [], {"load.json": {"gpu": {
            "pcie.link.gen.current": "5", "clocks.current.sm": "1755"}}}
        self.add("machine", result={"gpu": {
            "name": "Made-up GPU", "driver_version": "1.2", "memory.total": "81559",
            "pcie.link.gen.current": "1", "pcie.link.gen.max": "5", "pcie.link.width.current": "16",
            "pcie.link.width.max": "16", "clocks.current.sm": "345", "clocks.max.sm": "1980",
            "clocks.current.memory": "2619", "clocks.max.memory": "2619"},
            "cpu": {"model": "A processor", "usable": 16, "threads_per_core": 2,
                    "cores_per_socket": 8, "sockets": 1, "l3_bytes": 105_000_000},
            "data_bytes": 20_000_000})
        for tool in ("gpu_tests", "gpu_calls"):
            self.add(tool, out=TESTS_PASSED)
        for tool in ("memcheck", "memcheck_pipeline", "initcheck", "synccheck"):
            self.add(tool, out=TESTS_PASSED + CLEAN)
        self.add("racecheck", out=TESTS_PASSED + "========= RACECHECK SUMMARY: 0 hazards "
                 "displayed (0 errors, 0 warnings)\n")
        self.add("kernels", result={"benchmarks": [
            kernel(f"{kind}/64x{pixels}x{pixels}x3/{way}", 0.9)
            for pixels in (224, 299, 384, 518)
            for kind, way in (("Convert", "bfloat16/nchw/no_flips"), ("Mix", "mixup"))] + [
            crop_run(form, 123456) for form in cost_model.FORMS]})
        for name in ("gemm_256", "gemm_64", "spin_256", "soak"):
            self.add(name, result=bench())
        for name in ("resnet18_128", "resnet18_256"):
            self.add(name, result=feeds(synthetic=(4000, 4020), millrace=(3999,)))
        self.add("python", result=feeds(synthetic=(3000,), millrace=(2990,), torchvision=(400,)))
        for workers in (1, 8, 16):
            self.add(f"scaling_{workers}", result=ceiling(workers, 0.95 if workers > 1 else 1))
        self.add("latency", result={"benchmarks": [
            {"name": "PinnedAllocation/device/256MiB", "ms_per_gib": 210},
            {"name": "PinnedAllocation/cudaMallocHost/256MiB", "ms_per_gib": 250},
            {"name": "LaunchLatency/memory_freed", "p50_us": 5, "p99_us": 9, "max_us": 30}]})
        self.add("ncu_convert", out=NCU)
        self.add("ncu_mix", out=NCU)
        self.add("train",
                 out="on cuda:0\nepoch 0: loss 0.700, training accuracy 55.0%, held out 50.0%\n"
                 "epoch 1: loss 0.300, training accuracy 91.0%, held out 60.0%\nidle 3.0%; x\n")

    def add(self, name, status="0", result=None, out="", err=""):
        self.steps[name] = {
            "status": status, "result": json.dumps(result) if isinstance(result, dict) else result,
            "out": out, "err": err
        }

    def summarize(self, **facts):
        facts = {"gpu": "Made-up GPU", "driver": "1.2", "commit": "abc", **facts}
        with tempfile.TemporaryDirectory() as folder:
            raw = pathlib.Path(folder)
            lines = []
            for name, step in self.steps.items():
                lines.append(f"{name}\t{step['status']}\t3.5\t30\tprogram --of {name}\n")
                for kind in ("out", "err"):
                    (raw / f"{name}.{kind}").write_text(step[kind])
                if step["result"] is not None:
                    (raw / f"{name}.json").write_text(step["result"])
            for name, value in {**self.files, "facts.json": facts}.items():
                (raw / name).write_text(json.dumps(value))
            (raw / "steps.tsv").write_text("".join(lines))
            (raw / "plan.tsv").write_text("".join(
                f"{name}\t30\tprogram --of {name}\n" for name in [*self.steps, *self.planned]))
            command = [sys.executable, SUMMARIZE, raw, "--json", raw / "results.json"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode not in (0, 1):
                raise AssertionError(done.stderr)
            return done.returncode, done.stdout, json.loads((raw / "results.json").read_text())


class SummarizeTest(unittest.TestCase):
    def setUp(self):
        self.results = Results()

    def verdict(self, what, **facts):
        """The verdict of the only row whose text begins with `what`."""
        code, text, record = self.results.summarize(**facts)
        rows = [row for row in record["bars"] if row["what"].startswith(what)]
        self.assertEqual(len(rows), 1, text)
        self.assertEqual(code, 0 if record["all_met"] else 1)
        return rows[0]["verdict"], rows[0]["measured"], record["all_met"]

    def short(self, what, measured):
        verdict, said, met = self.verdict(what)
        self.assertEqual(verdict, "short", said)
        self.assertIn(measured, said)
        self.assertFalse(met)

    def told(self, what, *parts):
        verdict, said, _ = self.verdict(what)
        self.assertNotEqual(verdict, "short")
        for part in parts:
            self.assertIn(part, said)

    def test_all_is_well(self):
        code, text, record = self.results.summarize()
        self.assertEqual(code, 0, text)
        self.assertTrue(record["all_met"])
        self.assertNotIn("not measured", text)
        self.assertNotIn("short", text.replace("falls short", ""))
        self.assertIn("Made-up GPU, driver 1.2, commit abc: every step ran and nothing falls short",
                      text)
        self.assertEqual(record["steps"][1]["out"], TESTS_PASSED)
        self.assertEqual({step["name"] for step in record["steps"]}, set(self.results.steps))

    def test_the_machine_under_load(self):
        self.told("GPU", "Made-up GPU, driver 1.2, 81559 MiB")
        self.told("PCIe, under load", "generation 5 of 5, 16 of 16 lanes")
        self.told("clocks, under load", "SM 1755 of 1980 MHz, memory 2619 of 2619 MHz")
        self.told("processor", "A processor, 16 usable, 8 cores, threads of each: 2 (SMT on)")
        del self.results.files["load.json"]
        self.told("PCIe, without load", "generation 1 of 5")

    def test_each_figure_is_told(self):
        size = "20.0 MB of data, cache of 105.0 MB"
        for what, *parts in (
                ("dataset, last-level cache", size),
                ("idle by events, step of matrix products, batches of 64", "0.310% (floor 0.100%)"),
                ("idle by synthetic batches, step of matrix products, batches of 256", "0.2%"),
                ("H2D of plain copies, our pinned memory, idle workers, 36.8 MiB", "99.3%"),
                ("H2D of plain copies, cudaMallocHost memory, busy workers, 9.2 MiB", "98.5%"),
                ("copies hidden, step of matrix products, batches of 64", "99.9%"),
                ("trainer's thread per batch, step of matrix products, batches of 64",
                 "p50 7 us", "p99 12 us"),
                ("pinned allocation: PinnedAllocation/cudaMallocHost", "250.0 ms/GiB"),
                ("conversion kernel at 299 px", "0.900 of the device's bandwidth"),
                ("mix kernel at 518 px", "0.900 of the device's bandwidth"),
                ("rate of 8 workers", "2280 samples/s, T 2000 images/s: 1.14 x T", size),
                ("scaling from 1 to 16 workers", "95.0% (15.20 times, T 16.00)"),
                ("ResNet-18 training, batches of 128", "3999 images/s with millrace",
                 "4010 with synthetic batches: 99.7%", size),
                ("device idle, ResNet-18 training, batches of 128", "0.200%"),
                ("ResNet-18 training from Python", "2990 images/s", "400 with torchvision's"),
                ("launch of another thread", "5 us p50, 9 us p99, 30 us at most"),
                ("compute-sanitizer synccheck", "0 findings, 12 tests"),
                ("ncu, mix kernel", "gpu__time_duration.sum 41.2 us"),
                ("soak", "60 s")):
            with self.subTest(what):
                self.told(what, *parts)

    def test_each_bar_falls_short(self):
        step = ", step of matrix products, batches of"
        for what, name, change in (
                (f"idle by events{step} 256", "gemm_256", {"device_idle_percent": 0.41}),
                (f"idle by events{step} 64", "gemm_64", {"idle_floor_percent": 0}),
                (f"idle by synthetic batches{step} 64", "gemm_64",
                 {"idle_by_synthetic_percent": 0.31}),
                ("H2D of plain copies, our pinned memory, idle workers, 36.8 MiB", "gemm_256",
                 {"h2d_percent_of_plain": 98.9}),
                ("H2D of plain copies, cudaMallocHost memory, idle workers, 9.2 MiB", "gemm_64",
                 {"h2d_percent_of_plain_malloc_host": 98.9}),
                (f"copies hidden{step} 64", "gemm_64", {"copy_hidden_percent": 98.9}),
                (f"trainer's thread per batch{step} 256", "gemm_256",
                 {"consumer_us_per_batch": {"mean": 20.1, "p50": 19, "p99": 30}}),
                ("idle by events, spinning step", "spin_256", {"device_idle_percent": 1.0}),
                ("memory grows in a soak", "soak", {"rss_growth_mb": 11}),
                ("device memory grows in a soak", "soak", {"device_memory_growth_mb": 2}),
                ("soak", "soak", {"seconds": 20})):
            with self.subTest(what):
                self.results = Results()
                self.results.add(name, result=bench(**change))
                self.short(what, "")

    def test_a_scaling_worse_than_ts(self):
        self.results.add("scaling_16", result=ceiling(16, 0.89))
        self.short("scaling", "89.0%")

    def test_a_training_step_that_waits(self):
        self.results.add("resnet18_256", result=feeds(synthetic=(4000, 4000), millrace=(3950,)))
        self.short("ResNet-18 training, batches of 256", "98.8%")

    def test_a_feed_that_failed_is_told(self):
        self.results.add("python", status="1", result=feeds(synthetic=(3000,)) +
                         json.dumps({"feed": "millrace", "failed": "it has no CUDA"}))
        self.told("ResNet-18 training from Python", "not measured: millrace: it has no CUDA")

    def test_the_feeds_before_one_that_failed_are_told(self):
        self.results.add("python", status="1", result=feeds(synthetic=(3000,), millrace=(2990,)) +
                         json.dumps({"feed": "torchvision", "failed": "no torchvision"}))
        self.told("ResNet-18 training from Python", "2990 images/s",
                  "not measured with torchvision's loader")

    def test_a_training_that_was_stopped_is_told(self):
        self.results.add("resnet18_128", status="124",
                         result=feeds(synthetic=(4000,)) + '{"feed": "mill')
        self.short("ResNet-18 training, batches of 128", "stopped after 30 s")

    def test_the_worst_conversion_counts(self):
        self.results.add("kernels", result={"benchmarks": [
            kernel("Convert/256x224x224x3/a", 0.93), kernel("Convert/256x224x224x3/b", 0.79)]})
        self.short("conversion kernel at 224 px",
                   "0.790 of a copy of as many bytes (Convert/256x224x224x3/b, the worst of 2)")

    def test_a_conversion_that_failed_is_told(self):
        self.results.add("kernels", result={"benchmarks": [
            kernel("Convert/256x224x224x3/a", 0.93),
            {"name": "Convert/256x224x224x3/b", "error_occurred": True}]})
        self.short("conversion kernel at 224 px",
                   "not measured: Convert/256x224x224x3/b failed")

    def crops(self, form, gpu, share, **counters):
        """The row of crops at this share of the rate that is predicted for an H100 and the work of
        the counters."""
        counts = cost_model.read_counts()
        _, rate = cost_model.predict(counts, "H100", form, counters)
        self.results = Results()
        self.results.add("machine", result={"gpu": {"name": gpu}})
        self.results.add("kernels", result={"benchmarks": [
            crop_run(form, rate * share, samples_per_launch=64, **counters)]})
        return self.verdict(f"kernels of crops of {form} at 224 px")[:2]

    def test_crops_beside_their_prediction(self):
        for gpu, share, verdict in (("NVIDIA H100 80GB HBM3", 0.76, "ok"),
                                    ("NVIDIA H100 80GB HBM3", 0.74, "short"),
                                    ("NVIDIA H100 80GB HBM3", 1.24, "ok"),
                                    ("NVIDIA H100 80GB HBM3", 1.26, "short"),
                                    ("NVIDIA H200", 0.9, "ok"), ("NVIDIA B200", 1, "-")):
            for form in cost_model.FORMS:
                with self.subTest(form=form, gpu=gpu, share=share):
                    told, measured = self.crops(form, gpu, share)
                    self.assertEqual(told, verdict)
                    self.assertIn("no prediction for" if verdict == "-" else "predicted", measured)

    def test_crops_are_predicted_for_the_work_that_was_measured(self):
        for form, key in (("coefficients", "tile_warps"), ("JPEGs", "symbol_longest")):
            work = cost_model.read_counts()[cost_model.FORMS[form].work]
            told, measured = self.crops(form, "NVIDIA H100", 1, **{key: 9 * work[key]})
            self.assertIn("1.00 of it", measured)
            self.assertEqual(told, "ok")

    def test_crops_that_failed_are_told(self):
        self.results.add("kernels", result={"benchmarks": [{
            "name": "Crop/224/64/iterations:30/manual_time", "error_occurred": True,
            "error_message": "the result is not the host's"}]})
        what = "kernels of crops of coefficients at 224 px"
        self.told(what, "not measured: the result is not the host's")
        self.results.add("machine", result={"gpu": {"name": "NVIDIA L40S"}})
        self.short(what, "not measured: the result is not the host's")

    def test_a_runs_warnings_are_told(self):
        self.results.add("gemm_64", result=bench(warnings=["other programs' work: 9%"]))
        self.assertIn("step gemm_64 warns: other programs' work: 9%", self.results.summarize()[1])

    def test_a_missing_number_is_told(self):
        self.results.add("gemm_256", result=bench(device_idle_percent=None))
        self.short("idle by events, step of matrix products, batches of 256",
                   "not measured: the result has no device_idle_percent")

    def test_what_failed_is_told(self):
        self.results.add("soak", status="1", err="millrace: cudaMalloc failed\n")
        self.short("memory grows in a soak",
                   "not measured: ended with 1: millrace: cudaMalloc failed")

    def test_what_did_not_run_is_told(self):
        self.results.add("racecheck", status="not run: there is no program compute-sanitizer")
        self.short("compute-sanitizer racecheck",
                   "not measured: not run: there is no program compute-sanitizer")

    def test_a_run_that_is_under_way(self):
        del self.results.steps["soak"]
        self.results.planned.append("soak")
        self.short("soak", "not measured: not run yet")

    def test_what_was_not_planned_is_told(self):
        del self.results.steps["soak"]
        self.short("soak", "not measured: the plan has no step soak")
        self.assertEqual(self.verdict("soak", quick="1"),
                         ("-", "not measured: not in the quick plan", True))

    def test_a_result_that_is_cut_off_is_told(self):
        self.results.add("gemm_256", result='{"device_idle_percent": 0.')
        self.short("idle by events, step of matrix products, batches of 256",
                   "not measured: its result is no JSON")

    def test_tests_that_did_not_run_are_not_clean(self):
        for out in ("[==========] 0 tests from 0 test suites ran.\n[  PASSED  ] 0 tests.\n", ""):
            self.results.add("memcheck", out=out + CLEAN)
            self.short("compute-sanitizer memcheck, kernels", "no test ran")

    def test_tests_that_found_no_device_are_not_clean(self):
        self.results.add("gpu_tests",
                         out="[  PASSED  ] 2 tests.\n[  SKIPPED ] 38 tests, listed below:\n")
        self.short("tests on the device", "2 passed, 38 skipped")
        self.results.add("gpu_tests",
                         out="[  PASSED  ] 38 tests.\n[  SKIPPED ] 1 test, listed below:\n")
        self.assertEqual(self.verdict("tests on the device"), ("ok", "38 passed, 1 skipped", True))

    def test_a_sanitizer_that_found_something(self):
        for status in ("0", "1"):
            self.results.add("initcheck", status=status,
                             out=TESTS_PASSED + "========= ERROR SUMMARY: 3 errors\n")
            self.short("compute-sanitizer initcheck", "ERROR SUMMARY: 3 errors")

    def test_a_sanitizer_without_a_summary(self):
        self.results.add("synccheck", out=TESTS_PASSED)
        self.short("compute-sanitizer synccheck", "it told no summary")

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
        self.results.add("scaling_8", status="124")
        code, text, record = self.results.summarize()
        self.assertEqual(code, 1)
        self.assertIn("step scaling_8: stopped after 30 s", text)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""bench, tune and diagnose of a step in Python. No test depends on speed."""

import gc
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock
from pathlib import Path

import millrace
from millrace.dataset import Owner
from support import AS_THEY_ARE, HAS_NUMPY, Images, PackedTest, labels, loader


def workload(records=None, **options):
    options = {"batch_size": 4, "workers": 1, "order": "sequential"} | options
    return millrace.Workload(Images() if records is None else records, AS_THEY_ARE, **options)


def sleeping(batch):
    time.sleep(0.02)


class MeasureTest(unittest.TestCase):
    def test_bench_runs_the_step(self):
        seen = []
        result = millrace.bench(workload(), lambda batch: seen.append(labels(batch)),
                                warmup=2, batches=10)
        self.assertEqual((result["batches"], result["samples"]), (10, 40))
        self.assertEqual(result["options"]["workers"], 1)
        self.assertEqual(result["options"]["dataset"], "Images")
        self.assertEqual(seen[:6], [[4 * k % 20, *range(4 * k % 20 + 1, 4 * k % 20 + 4)]
                                    for k in range(6)])
        self.assertGreaterEqual(len(seen), 12)
        self.assertGreater(result["samples_per_second"], 0)
        self.assertGreater(result["device_step_ms"], 0)
        self.assertEqual(str(result), result["verdict"]["text"])

    def test_the_names_of_fields_are_read_in_the_first_step_alone(self):
        names = unittest.mock.Mock(return_value=["image", "label"])
        with unittest.mock.patch("millrace.batch.Batch.names", names):
            millrace.bench(workload(), lambda batch: batch["label"], warmup=2, batches=10)
        self.assertEqual(names.call_count, 1)

    def test_bench_without_a_step(self):
        result = millrace.bench(workload(), warmup=0, batches=3)
        self.assertEqual(result["batches"], 3)
        self.assertIsNone(result["device_step_ms"])

    def test_tune_gives_options_of_a_loader(self):
        for budget in (1, 4, 16):  # a busy machine needs more for a run of each number of workers
            told = []
            result = millrace.tune(workload(), lambda _: time.sleep(0.001), max_workers=2,
                                   budget=budget, on_run=told.append)
            if len({one["workers"] for one in told}) == 2:
                break
        self.assertIn(result["chosen"]["workers"], (1, 2))
        self.assertIn(result["chosen"], told)
        self.assertEqual({one["workers"] for one in told}, {1, 2})
        self.assertEqual(result["goal"]["max_workers"], 2)
        self.assertGreaterEqual(result["own_step_ms"], 1)
        self.assertEqual(str(result), result["verdict"])
        train = millrace.Loader(Images(), AS_THEY_ARE, epochs=1, **result["chosen"])
        self.assertEqual(next(train).size, 4)

    def test_tune_searches_the_batch_size_within_a_limit(self):
        result = millrace.tune(workload(Images(64)), max_workers=1, budget=0.3, p99_ms=1000,
                               memory_bytes=2**20)
        self.assertEqual((result["goal"]["p99_ms"], result["goal"]["memory_bytes"]),
                         (1000, 2**20))
        self.assertTrue(millrace.tune(workload(), max_workers=1, budget=0.3,
                                      tune_batch_size=True)["goal"]["tune_batch_size"])

    def test_measures_a_loader_that_runs(self):
        train = loader(epochs=None)
        next(train)
        result = millrace.bench(train, sleeping, warmup=1, batches=3)
        self.assertEqual((result["batches"], result["options"]["workers"]), (3, 2))
        self.assertEqual(labels(next(train)), [4, 5, 6, 7])  # its run goes on

    def test_batches_and_arrays_outlive_the_measurement(self):
        kept = []

        def step(batch):
            if not kept:
                kept.append((batch, labels(batch)))
                if HAS_NUMPY:
                    kept.append((batch["label"].numpy(), labels(batch)))

        millrace.bench(workload(prefetch=4), step, warmup=0, batches=8)
        self.assertEqual(labels(kept[0][0]), kept[0][1])
        if HAS_NUMPY:
            self.assertEqual(kept[1][0].tolist(), kept[1][1])
        with self.assertRaisesRegex(millrace.Error, "live batches hold every host slot"):
            millrace.bench(workload(), kept.append, batches=100)

    def test_an_exception_of_the_step_is_raised(self):
        for failing in (1, 3, 20):
            steps = []

            def step(batch):
                steps.append(batch.size)
                if len(steps) == failing:
                    raise KeyError("no such weight") from ValueError("a cause")

            for measure in (millrace.bench, millrace.tune, millrace.diagnose):
                steps.clear()
                with self.subTest(measure), self.assertRaises(KeyError) as raised:
                    measure(workload(), step)
                self.assertEqual(len(steps), failing)
                self.assertIsInstance(raised.exception.__cause__, ValueError)

        def bad(_):
            raise millrace.BadRecord("not here")

        with self.assertRaisesRegex(millrace.BadRecord, "not here"):
            millrace.bench(workload(), bad)
        with self.assertRaisesRegex(ZeroDivisionError, "division by zero"):
            millrace.tune(workload(), on_run=lambda setting: 1 / 0)

    def test_an_exception_of_a_record_is_the_cause(self):
        class Failing(Images):
            def __getitem__(self, index):
                raise OSError("the disk is gone")

        with self.assertRaisesRegex(millrace.Error, "the disk is gone") as raised:
            millrace.bench(workload(Failing()), sleeping)
        self.assertIsInstance(raised.exception.__cause__, OSError)

    def test_refuses_options(self):
        for measure, options, message in [
            (millrace.bench, {"warmup": -1}, "warmup is -1, must be an integer in 0..109951162777"),
            (millrace.bench, {"batches": 1.5}, "batches is 1.5, must be an integer"),
            (millrace.bench, {"duration": 0}, "duration is 0, must be in 0.001..86400"),
            (millrace.bench, {"duration": float("nan")}, "duration is nan, must be in"),
            (millrace.tune, {"max_workers": 4097}, "max_workers is 4097, must be an integer in"),
            (millrace.tune, {"p99_ms": 0}, "p99_ms is 0, must be in 0.001..3600000"),
            (millrace.tune, {"p99_ms": 1e9}, "p99_ms is 1000000000, must be in 0.001..3600000"),
            (millrace.tune, {"memory_bytes": 3}, "memory_bytes is 3, must be an integer in 1024"),
            (millrace.tune, {"budget": 0}, "budget is 0, must be in 0.1..86400"),
            (millrace.diagnose, {"rounds": 1}, "rounds is 1, must be an integer in 2..1000000"),
            (millrace.diagnose, {"duration": -2}, "duration is -2, must be in 0.001..86400"),
        ]:
            with self.subTest(options), self.assertRaises(millrace.Error) as raised:
                measure(workload(), sleeping, **options)
            self.assertIn(message, str(raised.exception))
            self.assertEqual(raised.exception.code, "invalid_argument")
        with self.assertRaisesRegex(millrace.Error, '"options.batch_size" is 0, must be'):
            millrace.bench(workload(batch_size=0))
        with self.assertRaisesRegex(TypeError, "unknown option bach_size"):
            workload(bach_size=3)
        with self.assertRaisesRegex(millrace.Error, "diagnose needs a step"):
            millrace.diagnose(workload(), None)
        with self.assertRaisesRegex(millrace.Error, 'the device is "gpu"'):
            millrace.bench(workload(device="gpu"))

    def test_runs_on_another_thread(self):
        results, threads = [], []

        def measure():
            results.append(millrace.bench(workload(), lambda _: threads.append(
                threading.current_thread()), batches=3))

        thread = threading.Thread(target=measure)
        thread.start()
        thread.join()
        self.assertEqual(results[0]["batches"], 3)
        self.assertEqual(set(threads), {thread})

    def test_leaves_nothing(self):
        before, handler = len(Owner.all), signal.getsignal(signal.SIGINT)
        millrace.bench(workload(), sleeping, warmup=0, batches=2)
        gc.collect()
        self.assertEqual(len(Owner.all), before)
        self.assertEqual(signal.getsignal(signal.SIGINT), handler)


class FilesTest(PackedTest):
    def bound_by_step(self, measure):
        """The result of `measure`, which other programs may disturb twice."""
        # A loader has 2% of a step before it counts as a bound, so longer steps are less disturbed.
        packed = millrace.Workload(self.dataset, AS_THEY_ARE, batch_size=4, workers=1, prefetch=2)
        for seconds in (0.05, 0.2, 1):
            result = measure(packed, lambda _, seconds=seconds: time.sleep(seconds))
            if result["verdict"]["stage"] == "step":
                break
        self.assertEqual(result["verdict"]["stage"], "step", result["verdict"])
        self.assertEqual(str(result), result["verdict"]["text"])
        return result

    def test_a_step_that_waits_is_the_bound(self):
        self.bound_by_step(lambda *given: millrace.bench(*given, batches=5))
        result = self.bound_by_step(lambda *given: millrace.diagnose(*given, rounds=2, batches=3))
        self.assertGreaterEqual(result["parts"]["compute"]["ms_per_batch"], 50)

    def test_diagnose_opens_a_path_itself(self):
        packed = millrace.Workload(self.dataset, AS_THEY_ARE, batch_size=4, workers=1)
        result = millrace.diagnose(packed, sleeping, rounds=2, batches=2)
        self.assertEqual(result["options"]["records"], 20)
        if result["cold_cache"]["measured"]:
            self.assertIsNotNone(result["parts"]["fetch"])
        else:  # a memory file system has no storage
            self.assertIn("page cache", result["cold_cache"]["missing"])
        with millrace.Loader(self.dataset, AS_THEY_ARE, batch_size=4, workers=1) as train:
            result = millrace.diagnose(train, sleeping, rounds=2, batches=2)
        self.assertIn("the dataset stays open", result["cold_cache"]["missing"])
        lost = millrace.Workload("nowhere.lmdb", AS_THEY_ARE)
        for measure in (millrace.diagnose, millrace.bench):
            with self.assertRaisesRegex(millrace.Error, "nowhere.lmdb.* does not exist"):
                measure(lost, sleeping)


# Measures until a signal comes; `{}` is the call.
MEASURES = """
import os, signal, sys, threading, time, millrace
from support import *

class Hanging(Images):
    go = threading.Event()
    def __getitem__(self, index):
        self.go.wait()
        return super().__getitem__(index)

def workload(records):
    return millrace.Workload(records, AS_THEY_ARE, batch_size=4, workers=1)

def step(batch):
    os.write(1, b"runs\\n")
    time.sleep(0.001)

def long_step(batch):
    os.write(1, b"runs\\n")
    time.sleep(3600)

def started():
    os.write(1, b"runs\\n")
    return Images(20)

def hanging():
    os.write(1, b"runs\\n")
    threading.Timer(3, Hanging.go.set).start()  # ends the worker's call
    return Hanging()

try:
    {}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


class CtrlCTest(unittest.TestCase):
    def outputs_of(self, call):
        run = subprocess.Popen([sys.executable, "-c", MEASURES.format(call)],
                               cwd=Path(__file__).parent, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        with run:
            self.assertEqual(run.stdout.readline(), "runs\n")
            time.sleep(0.2)
            run.send_signal(signal.SIGINT)
            output, errors = run.communicate(timeout=60)
        self.assertEqual((run.returncode, errors), (0, ""))
        return output.replace("runs\n", "")

    def test_ends_a_measurement(self):
        for call in (
            "millrace.bench(workload(Images()), step, duration=3600)",
            "millrace.bench(workload(Images()), long_step)",
            "millrace.bench(workload(started()), duration=3600)",
            "millrace.bench(workload(hanging()), duration=3600)",
            "millrace.tune(workload(Images()), step, budget=3600)",
            "millrace.diagnose(workload(Images()), step, duration=3600)",
            "millrace.diagnose(workload(hanging()), step)",
        ):
            with self.subTest(call):
                self.assertEqual(self.outputs_of(call), "interrupted\n")

    def test_a_handler_that_does_not_raise_ends_nothing(self):
        call = """
    taken, steps = [], []
    signal.signal(signal.SIGINT, lambda number, frame: taken.append(number))
    def waits_at_last(batch):
        step(batch)
        steps.append(batch.size)
        while len(steps) == 300 and not taken:
            time.sleep(0.001)
    millrace.bench(workload(Images()), waits_at_last, batches=400)
    print(taken)"""
        self.assertEqual(self.outputs_of(call), "[2]\n")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Processes, threads and memory: Ctrl-C, fork, many loaders, the interpreter's end."""

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock
from pathlib import Path

import millrace
from support import AS_THEY_ARE, SANITIZED, Images, labels, loader, run_python

WAITS = """
import sys, threading, millrace
from support import *

class Slow(Images):
    go = threading.Event()
    def __getitem__(self, index):
        if index == 4:
            self.go.wait()
        return super().__getitem__(index)

train = loader(Slow())
next(train)
try:
    print("waiting", flush=True)
    next(train)
except KeyboardInterrupt:
    Slow.go.set()
    print(labels(next(train)), len(list(labels(b) for b in train)))
"""

ENDS_WHILE_IT_RUNS = """
from support import *
train = loader(Images(100000), batch_size=1)
batch = next(train)
print("end")
"""


def threads_of_process():
    return len(os.listdir("/proc/self/task"))


def resident_kilobytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


class Interrupted(millrace.Loader):
    """Behaves as if Ctrl-C came together with a batch."""

    interrupts = False

    def _take(self, *arguments):
        status = super()._take(*arguments)
        if self.interrupts:
            self.interrupts = False
            raise KeyboardInterrupt
        return status


class LifetimeTest(unittest.TestCase):
    def test_ctrl_c_ends_a_wait(self):
        run = subprocess.Popen([sys.executable, "-c", WAITS], cwd=Path(__file__).parent,
                               stdout=subprocess.PIPE, text=True)
        with run:
            self.assertEqual(run.stdout.readline(), "waiting\n")
            time.sleep(0.1)
            run.send_signal(signal.SIGINT)
            output, _ = run.communicate(timeout=60)
        self.assertEqual(output, "[4, 5, 6, 7] 3\n")
        self.assertEqual(run.returncode, 0)

    def test_a_batch_that_came_with_ctrl_c_is_not_lost(self):
        train = Interrupted(Images(), batch_size=10, order="sequential", epochs=1, size=8)
        train.interrupts = True
        with self.assertRaises(KeyboardInterrupt):
            next(train)
        self.assertEqual([labels(batch)[0] for batch in train], [0, 10])

    def test_the_interpreter_ends_while_a_loader_runs(self):
        ended = run_python(ENDS_WHILE_IT_RUNS)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "end\n", ""))

    @unittest.skipIf(SANITIZED, "a sanitizer's own locks may be held during fork(), and hang the "
                                "child")
    def test_a_child_of_fork_is_told(self):
        train = loader()
        next(train)
        self.check_child_of_fork(train, [4, 5, 6, 7])

    @unittest.skipIf(SANITIZED, "a sanitizer's own locks may be held during fork(), and hang the "
                                "child")
    def test_a_child_of_fork_does_not_get_a_batch_that_came_with_ctrl_c(self):
        train = Interrupted(Images(), AS_THEY_ARE, batch_size=4, order="sequential", epochs=1)
        train.interrupts = True
        with self.assertRaises(KeyboardInterrupt):
            next(train)
        self.check_child_of_fork(train, [0, 1, 2, 3])

    def check_child_of_fork(self, train, next_labels):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            status = 1
            try:
                next(train)
            except millrace.Error as error:
                status = 2 if "pipeline was made before fork()" in str(error) else 3
            del train
            if labels(next(loader())) != [0, 1, 2, 3]:
                status = 4
            os._exit(status)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 2)
        self.assertEqual(labels(next(train)), next_labels)  # the parent's goes on

    @unittest.skipIf(SANITIZED, "a sanitizer's own locks may be held during fork(), and hang the "
                                "child")
    def test_a_child_of_fork_makes_a_runtime_of_its_own(self):
        runtime = millrace.Runtime(1)
        next(loader(runtime=runtime))
        measured = millrace.Workload(Images(), size=8, batch_size=4, runtime=runtime)
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            told = 0
            try:
                for use in (lambda: loader(runtime=runtime), lambda: millrace.bench(measured)):
                    with self.assertRaisesRegex(millrace.Error, "runtime was made before fork"):
                        use()
                    told += 1
            finally:
                os._exit(told)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 2)

    def test_cannot_be_pickled_or_copied(self):
        for value in (loader(), millrace.Dataset.from_records(Images()), millrace.Runtime(1)):
            for function in (pickle.dumps, copy.deepcopy):
                with self.assertRaisesRegex(TypeError, "cannot be pickled"):
                    function(value)

    def test_batches_cannot_be_pickled_or_copied(self):
        batch = next(loader())
        for value in (batch, batch["label"]):
            for function in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaisesRegex(TypeError, "cannot be pickled or copied"):
                    function(value)
        self.assertEqual(labels(batch), [0, 1, 2, 3])

    def test_a_batch_without_its_constructor_is_collected(self):
        with unittest.mock.patch("sys.unraisablehook") as told:
            millrace.Batch.__new__(millrace.Batch)
            gc.collect()
        told.assert_not_called()

    def test_loaders_broken_off_leave_nothing(self):
        def break_off(count):
            for _ in range(count):
                train = loader(Images(64), order="shuffled", epochs=None)
                batch = next(train)
                self.assertEqual(batch.size, 4)
                del train, batch

        break_off(10)  # the allocator's caches fill
        gc.collect()
        threads, memory = threads_of_process(), resident_kilobytes()
        break_off(100 if SANITIZED else 1000)  # with a sanitizer, 1000 take minutes
        gc.collect()
        # A thread may be listed for a moment after it was joined.
        deadline = time.monotonic() + 60
        while threads_of_process() > threads and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertLessEqual(threads_of_process(), threads)
        if not SANITIZED:  # the sanitizer keeps freed memory, and looks for leaks itself
            self.assertLess(resident_kilobytes() - memory, 4096)
        self.assertEqual(threading.active_count(), 1)

    def test_errors_can_be_pickled(self):
        error = pickle.loads(pickle.dumps(millrace.Error("io", "no paper")))
        self.assertEqual((error.code, str(error)), ("io", "no paper"))


if __name__ == "__main__":
    unittest.main()

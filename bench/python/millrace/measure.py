# SPDX-License-Identifier: Apache-2.0
"""Measurements of a trainer in its own process, as <millrace/measure.h> describes them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from ctypes import byref, pointer
from typing import Any

from . import structs
from .batch import Batch, Run
from .dataset import Dataset, dataset_of
from .failures import text_of, write
from .library import Error, json_of, whole
from .loader import Report
from .workload import Workload

# A training step. On a GPU it enqueues its work on PyTorch's current stream, or on the workload's.
Step = Callable[[Batch], object]

LARGEST_COUNT = 2**40


class Interrupts:
    """Handles Ctrl-C while C code runs.

    ctypes prints and drops an exception that is raised at the entry of a callback. So the signal's
    handler runs only inside `call`, where its exception ends the call. A signal at any other time
    is kept until the next `call` or the end.
    """

    def __init__(self) -> None:
        self.handler: Any = None
        self.inside = False
        self.kept: tuple[int, Any] | None = None

    def __enter__(self) -> Interrupts:
        handler = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(handler):
            self.handler = handler
            signal.signal(signal.SIGINT, self.take)
        return self

    def take(self, number: int, frame: Any) -> None:
        if not self.inside:
            self.kept = (number, frame)
            return
        self.inside = False  # an exception leaves `call`
        self.handler(number, frame)
        self.inside = True

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        try:
            self.inside = True
            self.deliver()
            function(*arguments)
        finally:
            self.inside = False

    def deliver(self) -> None:
        if self.kept is not None:
            kept, self.kept = self.kept, None
            self.handler(*kept)

    def __exit__(self, *_: object) -> None:
        if self.handler is not None:
            signal.signal(signal.SIGINT, self.handler)
            self.deliver()


class Trainer:
    """The callbacks of one measurement. The first exception of a callback ends the measurement."""

    def __init__(self, workload: Workload, step: Step | None, interrupts: Interrupts) -> None:
        self.workload, self.step, self.interrupts = workload, step, interrupts
        self.failures: list[BaseException] = []
        self.names: dict[str, bytes] = {}

    def called(self, error: Any, function: Callable[..., object], *arguments: Any) -> int:
        """Calls Python code on behalf of a callback. Returns the callback's status."""
        try:
            self.interrupts.call(function, *arguments)
        except BaseException as failed:
            self.failures.append(failed)
            if error is not None:
                write(error, f"{type(failed).__name__}: {text_of(failed)}")
            return structs.TRANSFORM
        return structs.OK

    def struct(self, setup: structs.PipelineSetup) -> structs.WorkloadStruct:
        made = structs.WorkloadStruct(
            setup=pointer(setup),
            stream=self.workload._stream_of_step(),
            interrupted=structs.Interrupted(lambda _: self.called(None, lambda: None)),
        )
        if self.step is not None:
            made.step = structs.Step(self.run_step)
        return made

    def run_step(self, _: Any, handle: int, stream: int | None, error: Any) -> int:
        return self.called(error, self.step_on, handle, stream)

    def step_on(self, handle: int, stream: int | None) -> None:
        run = Run(self.workload._gpu)  # of this step alone: each phase has memory of its own
        run.names = self.names
        batch = Batch(run, stream or 0)
        batch._handle.value = handle
        if not self.names:
            batch.know_names()
        assert self.step is not None
        self.step(batch)

    def run(self, function: str, options: Any, dataset: Dataset | None) -> Report:
        """Calls a function of <millrace/c_measure.h>."""
        struct = self.struct(self.workload._setup(dataset))
        try:
            return Report(json_of(function, byref(struct), byref(options)))
        except Error as failed:
            error = failed
        if self.failures:
            raise self.failures[0]
        raise error from self.workload._cause(error, dataset)


def bench(
    workload: Workload,
    step: Step | None = None,
    *,
    warmup: int = 10,
    batches: int = 0,
    duration: float = 5.0,
) -> Report:
    """Runs a training loop, and returns its rates and the stage that limits them.

    `workload` is a `Workload` or a `Loader`; a `Loader` keeps its own run and memory meanwhile.
    `step(batch)` trains on a `Batch`. Without a step, batches are taken as fast as they come. On
    the host the step ends with the call. On a GPU the step is the work that the call enqueues on
    PyTorch's current stream, or on the workload's stream. The step runs many times, also on earlier
    batches, so it changes the model. It may keep a few batches at most, since these hold slots.

    `warmup` is the number of batches before the measurement. `batches` is the number of measured
    batches; 0 = as many as fit into `duration` seconds. Returns a mapping with the keys of
    `millrace bench --json`; `print` shows its verdict. Raises the first exception of the step, and
    `Error`. Ctrl-C ends the measurement.

    Measure on one thread at a time, while nothing else runs on the machine.
    """
    options = structs.BenchOptions(
        warmup=whole("warmup", warmup, 0, LARGEST_COUNT),
        batches=whole("batches", batches, 0, LARGEST_COUNT),
        duration_seconds=duration,
    )
    with Interrupts() as interrupts:
        return Trainer(workload, step, interrupts).run(
            "bench", options, dataset_of(workload._given)
        )


def tune(
    workload: Workload,
    step: Step | None = None,
    *,
    max_workers: int = 0,
    tune_batch_size: bool = False,
    p99_ms: float | None = None,
    memory_bytes: int | None = None,
    budget: float = 100.0,
    on_run: Callable[[dict[str, int]], object] | None = None,
) -> Report:
    """Finds the smallest setting that feeds the step: workers, prefetch and micro-batches.

    `workload` and `step` are as for `bench`. The workload's number of workers is ignored. Its batch
    size is kept, unless `tune_batch_size` is true or a limit is given. `p99_ms` limits the 99th
    percentile of the batch time; `memory_bytes` limits the memory of slots and scratch. With
    limits, `tune` finds the largest batch size within them. `max_workers` is the largest number of
    workers to try; 0 = one for each processor of this rank. `budget` limits the total time, in
    seconds. `on_run(setting)` is called before each run.

    Returns a mapping with the keys of `millrace tune --json`. `Loader(..., **result["chosen"])`
    uses the chosen setting, and "why" has the reason. "doubtful" is true if the choice is
    uncertain, for example because of noise or other programs. Raises as `bench`.
    """
    if p99_ms is not None and not p99_ms > 0:
        raise Error("invalid_argument", f"p99_ms is {p99_ms}, must be in 0.001..3600000")
    memory = 0 if memory_bytes is None else whole("memory_bytes", memory_bytes, 1024, 2**62)
    options = structs.TuneOptions(
        max_workers=whole("max_workers", max_workers, 0, 4096),
        tune_batch_size=bool(tune_batch_size),
        p99_ms=p99_ms or 0,
        memory_bytes=memory,
        budget_seconds=budget,
    )
    with Interrupts() as interrupts:
        trainer = Trainer(workload, step, interrupts)
        if on_run is not None:
            callback = on_run
            options.on_run = structs.OnRun(
                lambda _, setting, error: trainer.called(error, callback, as_dict(setting.contents))
            )
        return trainer.run("tune", options, dataset_of(workload._given))


def diagnose(
    workload: Workload,
    step: Step,
    *,
    rounds: int = 3,
    batches: int = 0,
    duration: float = 2.0,
) -> Report:
    """Divides an epoch's time into compute, trainer, copy, preparation and fetch.

    `workload` and `step` are as for `bench`; the step also gets samples of zeros. `rounds` is at
    least 2. Each round measures every phase once, with `batches` batches; 0 = as many as fit into
    `duration` seconds. More rounds find smaller stalls. The time to fetch records from storage is
    measured only for a `Workload` with a path. Nothing else in the process may have this path open,
    since its pages are dropped from the page cache. Returns a mapping with the keys of `millrace
    diagnose --json`. Raises as `bench`.
    """
    options = structs.DiagnoseOptions(
        rounds=whole("rounds", rounds, 2, 1_000_000),
        batches=whole("batches", batches, 0, LARGEST_COUNT),
        duration_seconds=duration,
    )
    with Interrupts() as interrupts:
        trainer = Trainer(workload, step, interrupts)
        path = workload._path()
        if path is None:
            return trainer.run("diagnose", options, dataset_of(workload._given))
        options.open = structs.Open(
            lambda _, opened, error: trainer.called(error, open_dataset, path, opened)
        )
        return trainer.run("diagnose", options, None)


def as_dict(setting: structs.SettingStruct) -> dict[str, int]:
    names = [field[0] for field in structs.SettingStruct._fields_]
    return {name: int(getattr(setting, name)) for name in names}


def open_dataset(path: Any, opened: Any) -> None:
    dataset = Dataset(path)
    opened[0] = dataset.handle
    dataset.handle = 0  # the library frees it

# SPDX-License-Identifier: Apache-2.0
"""The loader: runs over a dataset and hands batches to a training loop."""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import math
import time
import weakref
from collections.abc import Iterator, Mapping
from ctypes import byref, c_int32
from typing import TYPE_CHECKING, Any, Union

from . import streams, structs
from .batch import Batch, Run
from .batch_transform import BatchTransformHandle
from .dataset import DatasetLike, dataset_of
from .library import FUNCTIONS, Error, Handle, call, failure, json_of, last, new_handle, number
from .options import Options
from .order import Numbers, array_of, list_arguments
from .transform import RecipeLike, TransformHandle
from .workload import Runtime, Workload

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Seconds of one wait. Python handles Ctrl-C between two waits.
WAIT = 0.25
ENDLESS = 2**64 - 1

_next = FUNCTIONS["pipeline_next"]


class Report(dict):  # type: ignore[type-arg]
    """A mapping with everything that was measured. `to_json` of <millrace/report.h> lists its keys;
    a report of a measurement has the keys of the command's JSON. `print` shows the verdict."""

    def __str__(self) -> str:
        verdict = self["verdict"]
        return str(verdict if isinstance(verdict, str) else verdict["text"])


class Pipeline(Handle):
    """The handle of a run."""

    kind = "pipeline"
    run: Run


class Loader(Workload):
    """Batches of a dataset, in the order of a run.

        for batch in train:
            step(batch["image"].torch(), batch["label"].torch())

    `dataset` is a path, a `Dataset`, or records in Python (`Dataset.from_records`).
    `concat_datasets` joins several datasets. `recipe` is a preset, a recipe, the path of a recipe,
    or a transform. `size` is the width and height that a preset makes. Images are uint8, [samples,
    height, width, channels]. With `dtype`, `layout`, `mean` or `std` they are converted, by default
    to float32, [samples, channels, height, width].

    `device` is "host" or "cuda:N". On a GPU, batches are taken on PyTorch's current stream if
    PyTorch is imported. `stream` sets another stream; with 0, `next` waits until the host can read
    the data. `timeout` limits the wait for a batch, in seconds. `runtime` shares workers with other
    loaders. `batch_transform` changes whole batches on the workers (`BatchTransform`,
    `mix_transform`). `state`, a result of `state_dict`, is the state at which the run continues.
    The other keywords are those of `Options`.

    The loader is its own iterator over the remaining batches of the run: after `break`, a later
    `for` continues with the next batch. `len()` is the number of batches in an epoch. Without
    `epochs` the run never ends. `one_epoch()` iterates over one epoch.

    Threads: several threads may take batches; each batch goes to one of them. Processes: a child of
    `fork` needs a loader of its own. Errors: the first `Error` ends the run. If an exception of
    Python code caused it, this is its `__cause__`. A timeout, Ctrl-C, and live batches that hold
    all slots do not end the run. The loader stops when it is closed, when its `with` block ends, or
    when it is collected. Batches outlive the loader.
    """

    def __init__(
        self,
        dataset: DatasetLike,
        recipe: Union[RecipeLike, TransformHandle] = "train",
        *,
        size: int | None = None,
        device: Any = "host",
        stream: Any = None,
        timeout: float | None = None,
        runtime: Runtime | None = None,
        batch_transform: BatchTransformHandle | None = None,
        state: Mapping[str, Any] | str | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            dataset,
            recipe,
            size=size,
            device=device,
            stream=stream,
            runtime=runtime,
            batch_transform=batch_transform,
            **options,
        )
        self._given = self.dataset = dataset_of(dataset)
        self.timeout = timeout
        self._interrupted: list[Batch] = []
        self._epoch = 0
        self._pipeline: Pipeline | None = self._start(None if state is None else text_of(state))
        open_loaders.add(self)

    def _start(self, state: str | None) -> Pipeline:
        setup = self._setup(self.dataset, state)
        pipeline = Pipeline()
        pipeline.run = Run(self._gpu)
        try:
            pipeline.handle = new_handle("pipeline_create", byref(setup))
        except Error as error:
            raise error from self._cause(error, self.dataset)
        return pipeline

    def _running(self) -> Pipeline:
        """Returns the run. Raises `Error` after `close`."""
        if self._pipeline is None:
            raise Error("stopped", "the loader is closed")
        return self._pipeline

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __len__(self) -> int:
        batches = number("pipeline_batches_per_epoch", self._running().handle)
        if batches == 0:
            raise TypeError("the number of batches of a stream is known only at its end")
        return batches

    def __next__(self) -> Batch:
        batch = self.next()
        if batch is None:
            raise StopIteration
        return batch

    def next(self, *, stream: Any = None, timeout: float | None = None) -> Batch | None:
        """Returns the next batch; None after the last one.

        `stream` and `timeout` replace those of the loader. A stream is a number (0 = the host, 1 =
        CUDA's default stream, otherwise a cudaStream_t) or an object of PyTorch or CuPy. It must
        outlive the batch. Raises `Error` with the code "timeout" or "slots_exhausted" if no batch
        was ready; the run continues after this.
        """
        pipeline = self._running()
        if self._interrupted:
            number("pipeline_total_batches", pipeline.handle)  # raises in a child of fork
            return self._handed_out(self._interrupted.pop(0))
        if self._gpu is not None and stream is not None:
            number_of_stream = streams.number_of(stream)
        else:
            number_of_stream = self._stream_of_step()
        limit = self.timeout if timeout is None else timeout
        if limit is not None and math.isnan(limit):
            raise Error("invalid_argument", "timeout is nan, must be a number of seconds")
        batch = Batch(pipeline.run, number_of_stream)
        try:
            status = self._take(pipeline.handle, batch, limit)
        except BaseException:
            if batch._handle:  # Ctrl-C came behind it: the next call returns it
                self._interrupted.append(batch)
            raise
        if status == structs.END:
            return None
        if status:
            error = failure()
            raise error from self._cause(error, self.dataset)
        return self._handed_out(batch)

    def _handed_out(self, batch: Batch) -> Batch:
        if not batch._run.names:
            batch.know_names()
        self._epoch = batch.describe().epoch
        return batch

    def _take(self, pipeline: int, batch: Batch, limit: float | None) -> int:
        """Waits for the next batch. Each wait is short, so that Python can handle Ctrl-C after
        it."""
        into = byref(batch._handle)
        if limit is not None and limit <= WAIT:
            return int(_next(pipeline, batch._stream, max(limit, 0), into, last.reference))
        end = 0.0 if limit is None else time.monotonic() + limit
        wait, held = WAIT, 0
        while True:
            status = int(_next(pipeline, batch._stream, wait, into, last.reference))
            if status != structs.TIMEOUT:
                return status
            if limit is not None:
                wait = min(WAIT, end - time.monotonic())
                if wait <= 0:
                    message = last.struct.message.decode().rpartition(" after ")[0]
                    raise Error("timeout", f"{message} after {limit} s")
            elif last.struct.status == structs.SLOTS_HELD:
                held += 1
                gc.collect()  # of cycles, such as exceptions that hold a batch
                if held > 1:
                    wait = -1  # reports that no batch can come
            else:
                held = 0

    def one_epoch(self) -> Iterator[Batch]:
        """Yields the remaining batches of the current epoch; yields nothing after the last
        epoch."""
        for batch in self:
            yield batch
            if batch.last_in_epoch:
                return

    @property
    def epoch(self) -> int:
        """Number of the last batch's epoch, from 0."""
        return self._epoch

    @property
    def total_batches(self) -> int | None:
        """Number of batches of the whole run; None if it never ends or is unknown."""
        total = number("pipeline_total_batches", self._running().handle)
        return None if total == ENDLESS else total

    def set_weights(self, weights: Numbers) -> int:
        """Changes the weights of `Order.weighted`. Returns the first epoch with the new weights.

        Batches are planned ahead: `prefetch` of them, and `device_slots` more on a GPU or with a
        conversion. The returned epoch is the first one that begins after these. To change the next
        epoch, call this while at least that many batches of the current epoch are left. With the
        option `epoch_break`, a call between two epochs changes the second one, but the trainer
        waits for the first batch of each epoch. All ranks must call it with the same weights after
        the same number of batches. Any thread may call it.

        A run resumes at a state only with the same weights: those of the state's epoch, and those
        of later epochs that the state lists in `new_weights`. Make them by
        `Order.weighted(...).reweighted(epoch, ...)`. Set `order` to the result before
        `load_state_dict`, or give it to a new loader. Raises `Error`.
        """
        values = array_of("weights", "d", weights)
        return number("pipeline_set_weights", self._running().handle, *list_arguments(values))

    def state_dict(self) -> dict[str, Any]:
        """Returns the state after the last batch that was handed out, for a checkpoint.

        The state is the same on all ranks. A run with any number of ranks can resume from it if
        `global_batch_size` is the same. If Ctrl-C ended a call of `next`, the batch of this call
        may count as handed out.
        """
        state: dict[str, Any] = json_of("pipeline_state", self._running().handle)
        return state

    def load_state_dict(self, state: Mapping[str, Any] | str) -> None:
        """Continues the run at a state. Raises `Error` if the state is of another run, seed, order
        or dataset, or if the dataset is a stream that can be read only once. After such an error
        the run continues where it was; over a stream it first reads the stream again up to this
        position."""
        text = text_of(state)
        facts = self.dataset.describe()
        if not facts["can_restart"]:
            raise Error(
                "invalid_argument",
                f"{facts['name']}: this stream can be read only once, and this loader reads it; "
                "give the state to a new loader with a new dataset",
            )
        if facts["records"] is None and self._pipeline is not None:
            self._restart(self._running(), text)
        else:
            self._pipeline = self._start(text)  # and the old one ends
        self._interrupted.clear()

    def _restart(self, pipeline: Pipeline, state: str) -> None:
        """Ends the old run before the new one begins, since only one run at a time can read a
        stream."""
        before = text_of(self.state_dict())
        call("pipeline_stop", pipeline.handle)
        self._pipeline = None
        pipeline.free()
        try:
            self._pipeline = self._start(state)
        except BaseException:
            with contextlib.suppress(Error):  # the first error tells more
                self._pipeline = self._start(before)
            raise

    def report(self, restart: bool = False) -> Report:
        """Returns a report since the start or the last `restart`. With `restart` a new one
        begins."""
        return Report(json_of("pipeline_report", self._running().handle, c_int32(restart)))

    def close(self) -> None:
        """Stops the run and its threads. Batches and their arrays stay valid."""
        self._pipeline = None
        self._interrupted.clear()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<millrace.Loader of {self.dataset.describe()['name']} on {self.device}>"


def text_of(state: Mapping[str, Any] | str) -> str:
    """Returns the JSON text of a state."""
    if isinstance(state, str):
        return state
    if not isinstance(state, Mapping):
        raise TypeError(
            f"state is a {type(state).__name__}, must be a dict or str from state_dict()"
        )
    return json.dumps(dict(state))


open_loaders: weakref.WeakSet[Loader] = weakref.WeakSet()


@atexit.register
def close_all() -> None:
    """Ends all threads before the interpreter ends, since their callbacks may need it."""
    for loader in list(open_loaders):
        loader.close()

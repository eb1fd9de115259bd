# SPDX-License-Identifier: Apache-2.0
"""A dataset, a transform, a device and options, for a loader or a measurement."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Union

from . import streams, structs
from .batch_transform import BatchTransformHandle
from .dataset import Dataset, DatasetLike
from .failures import cause_of
from .library import Error, Handle, call, new_handle, text
from .options import Options, options_json
from .order import Order
from .transform import ImageTransform, RecipeLike, TransformHandle

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Runtime(Handle):
    """Workers that several loaders share, for example a training and an evaluation loader.

    `workers` is the number of threads; 0 = one for each usable processor of this rank's share of
    the host. The ranks are as for `Loader`.
    """

    kind = "runtime"

    def __init__(
        self,
        workers: int = 0,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        local_rank: int | None = None,
        local_world_size: int | None = None,
    ) -> None:
        options: Options = {"workers": workers, "rank": rank, "world_size": world_size}
        options |= {"local_rank": local_rank, "local_world_size": local_world_size}
        self._process = os.getpid()
        self.handle = new_handle("runtime_create", text(options_json(options)[0]))

    def free_unused_caches(self) -> None:
        """Frees the record hints and the caches that no loader uses now.

        Without this call they stay for later loaders over the same dataset.
        """
        self.check_process()
        call("runtime_free_unused_caches", self.handle)

    def check_process(self) -> None:
        """Raises `Error` in a child of fork."""
        if self._process != os.getpid():
            raise Error(
                "invalid_argument",
                "the runtime was made before fork(), whose child does not have its threads; make a "
                "runtime in the child",
            )


class Workload:
    """The parameters of a loader, without a run, for `bench`, `tune` and `diagnose`.

    The arguments are those of `Loader`. If `dataset` is a path, each measurement opens it again, so
    that `diagnose` can drop its pages from the page cache. The options `epochs` and `last_batch`
    are ignored: a measurement has its own length, and all batches are full. Raises `Error`. Any
    thread may use it.
    """

    def __init__(
        self,
        dataset: DatasetLike,
        recipe: Union[RecipeLike, TransformHandle] = "train",
        *,
        size: int | None = None,
        device: Any = "host",
        stream: Any = None,
        runtime: Runtime | None = None,
        batch_transform: BatchTransformHandle | None = None,
        **options: Unpack[Options],
    ) -> None:
        order = options.get("order")
        self.order = order if isinstance(order, Order) else None
        self._options, self.ranks = options_json(options)
        self._given: DatasetLike = dataset
        if not isinstance(recipe, TransformHandle):
            recipe = ImageTransform(recipe, size=size)
        elif size is not None:
            raise TypeError("size is for presets of recipes, but a transform is given")
        self.transform, self.runtime = recipe, runtime
        self.batch_transform = batch_transform
        self.device = streams.device_of(device)
        self._stream = None if stream is None else streams.number_of(stream)
        self._gpu = int(self.device[5:]) if self.device[5:].isdigit() else None

    def _path(self) -> str | os.PathLike[str] | None:
        """Returns the path of the dataset, if this object does not keep the dataset open."""
        return self._given if isinstance(self._given, (str, os.PathLike)) else None

    def _setup(self, dataset: Dataset | None, state: str | None = None) -> structs.PipelineSetup:
        if self.runtime is not None:
            self.runtime.check_process()
        return structs.PipelineSetup(
            dataset=0 if dataset is None else dataset.handle,
            transform=self.transform.handle,
            runtime=0 if self.runtime is None else self.runtime.handle,
            device=text(self.device),
            options=text(self._options),
            state=text(state),
            order=0 if self.order is None else self.order.handle,
            batch_transform=0 if self.batch_transform is None else self.batch_transform.handle,
        )

    def _stream_of_step(self) -> int:
        """Returns the number of the stream on which batches are taken; 0 = the host."""
        if self._gpu is None:
            return 0
        return streams.current_of_torch(self._gpu) if self._stream is None else self._stream

    def _cause(self, error: Error, dataset: Dataset | None) -> BaseException | None:
        """Returns the exception of Python code that caused the error."""
        failures = [*self.transform.failures]
        if dataset is not None:
            failures += dataset.raised()
        if self.batch_transform is not None:
            failures += self.batch_transform.failures
        return cause_of(str(error), failures)

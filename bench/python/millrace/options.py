# SPDX-License-Identifier: Apache-2.0
"""The options of a run as keywords, and the ranks of a data-parallel run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from .library import Error, finite_json, json_of
from .order import Order


class Conversion(TypedDict, total=False):
    """Conversion of images on the device: C++'s `Conversion`. It does what torchvision's ToTensor
    and Normalize do."""

    field: str
    dtype: str
    layout: str
    mean: Sequence[float]
    std: Sequence[float]


class Options(TypedDict, total=False):
    """The options of a run, with C++'s names, defaults and messages.

    `load_options` in <millrace/options_file.h> lists their values, and
    <millrace/pipeline_options.h> describes them. None means the default. `order` is a name or an
    `Order`.
    """

    # Workers and slots. The default of `workers` is one for each usable processor.
    workers: int | None
    batch_size: int | None
    prefetch: int | None
    micro_batches: int | None
    # The run.
    name: str | None
    seed: int | None
    epochs: int | None
    order: str | Order | None
    block_records: int | None
    window_blocks: int | None
    length_field: str | None
    window_records: int | None
    group_records: int | None
    last_batch: str | None
    bad_records: str | None
    index_bytes: int | None
    cache_bytes: int | None
    device_slots: int | None
    read_ahead: int | None
    epoch_break: bool | None
    nodes: str | None
    resume_anyway: bool | None
    stop_timeout_ms: int | None
    # Conversion of the images. Any of these four converts.
    dtype: str | None
    layout: str | None
    mean: Sequence[float] | None
    std: Sequence[float] | None
    conversion: Conversion | None
    # Ranks. The default is found by `ranks()`.
    rank: int | None
    world_size: int | None
    local_rank: int | None
    local_world_size: int | None
    global_batch_size: int | None


WORKER_OPTIONS = ("workers", "batch_size", "prefetch", "micro_batches")
CONVERSION = ("dtype", "layout", "mean", "std")
# millrace's names of the options that PyTorch calls otherwise.
OTHER_NAMES = {"world_size": "world", "local_world_size": "local_world"}
RANKS = ("rank", "world", "local_rank", "local_world")


def ranks() -> dict[str, Any]:
    """Returns the ranks of this process: "rank", "world", "local_rank", "local_world", "source".

    They come from torch.distributed if it is initialised, otherwise from the launcher (torchrun,
    Open MPI, MPICH or SLURM). Without a launcher there is one rank. Raises `Error` if the
    launcher's variables contradict each other.
    """
    distributed = sys.modules.get("torch.distributed")
    if not (distributed and distributed.is_available() and distributed.is_initialized()):
        found: dict[str, Any] = json_of("ranks_json")
        return found
    here = {"rank": distributed.get_rank(), "world": distributed.get_world_size()}
    here |= {"local_rank": 0, "local_world": 1, "source": "torch.distributed", "warnings": []}
    try:
        found = json_of("ranks_json")
    except Error:
        return here
    if [found["rank"], found["world"]] == [here["rank"], here["world"]]:
        here |= {"local_rank": found["local_rank"], "local_world": found["local_world"]}
    return here


def refuse_unknown(options: Mapping[str, Any]) -> None:
    unknown = [name for name in options if name not in Options.__annotations__]
    if unknown:
        known = ", ".join(Options.__annotations__)
        raise TypeError(f"unknown option {', '.join(unknown)}; the options are {known}")


def options_json(options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the options as JSON for the C library, and the ranks that they contain."""
    refuse_unknown(options)
    given = {OTHER_NAMES.get(name, name): value for name, value in options.items()}
    if isinstance(given.get("order"), Order):
        del given["order"]  # which the C library gets as a handle
    given = {name: plain(value) for name, value in given.items() if value is not None}
    conversion = dict(given.pop("conversion", {}))
    for name in CONVERSION:
        if name in given:
            if name in conversion:
                raise TypeError(f"{name} is given twice, alone and in conversion")
            conversion[name] = given.pop(name)
    workers = {name: given.pop(name) for name in WORKER_OPTIONS if name in given}
    mine = {name: given[name] for name in RANKS if name in given}
    if not mine:
        found = ranks()
        mine = {name: found[name] for name in RANKS}
    run = given | mine
    if conversion:
        run["conversion"] = conversion
    return finite_json({"format": 1, "options": workers, "run": run}), mine


def plain(value: Any) -> Any:
    """Converts a number, array or dtype of NumPy or PyTorch to a value that JSON supports."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, type):
        return value.__name__  # numpy.float16
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Sequence):
        return [plain(one) for one in value]
    return str(value).removeprefix("torch.")  # torch.bfloat16

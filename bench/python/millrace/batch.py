# SPDX-License-Identifier: Apache-2.0
"""Batches, and their fields as arrays of other libraries."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from ctypes import byref, c_void_p
from typing import Any, NamedTuple

from . import dlpack, streams, structs
from .library import FUNCTIONS, call, failure, json_of, last, new_handle, unchecked

_describe = unchecked("batch_describe")


class Layout(NamedTuple):
    """Address, shape and type of a field's data, for libraries without DLPack."""

    address: int
    shape: tuple[int, ...]
    dtype: str
    array_interface: dict[str, Any]  # of NumPy
    device_type: int
    device_id: int


# NumPy's kinds. It has no bfloat16.
KINDS = {"int": "<i", "uint": "<u", "float": "<f", "bool": "|b", "bfloat": "<u"}


def layout_of(address: int) -> Layout:
    """Reads the DLPack tensor at this address."""
    tensor = dlpack.Managed.from_address(address).tensor
    kind = dlpack.DTYPES[tensor.code]
    place = (tensor.data or 0) + tensor.byte_offset
    shape = tuple(tensor.shape[: tensor.ndim])
    dtype = kind if kind == "bool" else f"{kind}{tensor.bits}"
    typestr = KINDS[kind] + str(tensor.bits // 8)
    interface = {"version": 3, "shape": shape, "data": (place, False), "typestr": typestr}
    return Layout(place, shape, dtype, interface, tensor.device_type, tensor.device_id)


class Run:
    """Facts that all batches of a run share."""

    def __init__(self, gpu: int | None) -> None:
        self.gpu = gpu  # its number; None = the host
        self.names: dict[str, bytes] = {}  # of the fields; filled by the first batch
        # A slot's addresses never change.
        self.layouts: dict[tuple[int, int, bytes], Layout] = {}


def refuse_copy(self: Field | Batch) -> Any:
    """Raises `TypeError`, since the slot behind a copied handle is reused for later batches."""
    raise TypeError(
        f"a millrace.{type(self).__name__} cannot be pickled or copied; copy the arrays of its "
        "fields, for example numpy().copy() or torch().clone()"
    )


class Field:
    """One field of all samples of a batch, for example its images.

    A field refers to the batch's own memory and keeps it alive, as do the arrays made of the field.
    The memory is reused when the batch and all of its fields, arrays and tensors are collected. Any
    thread may use a field. On a GPU the data is ready for the stream on which the batch was taken.
    """

    __slots__ = ("_batch", "_name")
    __reduce__ = refuse_copy  # copy.copy and copy.deepcopy call it, too

    def __init__(self, batch: Batch, name: bytes) -> None:
        self._batch = batch
        self._name = name

    def _facts(self) -> Layout:
        facts = self._batch.describe()
        key = (facts.slot, facts.size, self._name)
        layouts = self._batch._run.layouts
        layout = layouts.get(key)
        if layout is None:
            address = new_handle("batch_field", self._batch._handle, self._name)
            layout = layouts[key] = layout_of(address)
            dlpack.delete(address)
        return layout

    @property
    def name(self) -> str:
        return self._name.decode()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of samples, then the shape of one sample's field."""
        return self._facts().shape

    @property
    def dtype(self) -> str:
        """The type, for example "uint8", "int64", "bfloat16", "float32" or "bool"."""
        return self._facts().dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<millrace.Field {self.name} {self.dtype} {list(self.shape)}>"

    def torch(self) -> Any:
        """Returns a `torch.Tensor` over the same memory.

        On a GPU the data is ready for PyTorch's current stream. Older versions of PyTorch do not
        accept uint16, uint32, uint64 and bool; `numpy()` does.
        """
        torch: Any = sys.modules.get("torch") or importlib.import_module("torch")
        batch = self._batch
        gpu = batch._run.gpu
        if gpu is not None:
            stream = streams.current_of_torch(gpu)
            if stream != batch._stream:
                self._use_on(stream)
        return torch.from_dlpack(dlpack.capsule(batch._handle, self._name, False))

    def numpy(self) -> Any:
        """Returns a `numpy.ndarray` over the same memory. bfloat16 needs the package ml_dtypes.
        Raises `BufferError` for a batch on a GPU."""
        numpy: Any = sys.modules.get("numpy") or importlib.import_module("numpy")
        facts = self._facts()
        if facts.device_type != dlpack.CPU:
            raise BufferError(
                f"the field {self.name} is on cuda:{facts.device_id}, where NumPy cannot read it; "
                f'use batch["{self.name}"].torch().cpu().numpy()'
            )
        array = numpy.asarray(ArrayInterface(self, facts.array_interface))
        if facts.dtype != "bfloat16":
            return array
        import ml_dtypes

        return array.view(ml_dtypes.bfloat16)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Serves `numpy.asarray`, which copies only if `dtype` or `copy` requires it. Raises as
        `numpy()`. Also raises `ValueError` if `copy` is False but `dtype` differs."""
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"the field {self.name} is {array.dtype}; {dtype} needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack_device__(self) -> tuple[int, int]:
        facts = self._facts()
        return facts.device_type, facts.device_id

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Returns a DLPack capsule over the same memory, for JAX, CuPy and others.

        `stream` is the consumer's stream on a GPU: None or 1 for CUDA's default stream, -1 for a
        consumer that waits by itself. Raises `BufferError` if a copy or another device is
        requested.
        """
        if copy:
            raise BufferError("millrace does not copy fields; copy the array that you receive")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the field {self.name} is on {self.__dlpack_device__()}")
        if self._batch._run.gpu is not None and stream != -1:
            self._use_on(1 if stream is None else int(stream))
        versioned = max_version is not None and bool(max_version[0] >= 1)
        return dlpack.capsule(self._batch._handle, self._name, versioned)

    def _use_on(self, stream: int) -> None:
        """Makes another stream wait for the data. The memory is reused after that stream's work."""
        batch = self._batch
        if stream == batch._stream:
            return
        if batch._stream:  # else the host has waited for the data
            streams.wait(stream, batch._stream, batch._run.gpu)
        batch.record_stream(stream)


class ArrayInterface:
    """NumPy's array interface of a field (numpy.org/doc/stable/reference/arrays.interface.html)."""

    __slots__ = ("__array_interface__", "field")

    def __init__(self, field: Field, interface: dict[str, Any]) -> None:
        self.field = field  # which the array keeps alive through this object
        self.__array_interface__ = interface


class Batch(Mapping[str, Field]):
    """A batch: a mapping from names of fields to `Field`s.

    The recipe determines the fields, usually "image" and "label". "index" has the number of each
    sample's record. "valid" is 0 for padding and bad records, otherwise 1. The memory of a batch is
    reused when the batch and its fields, arrays and tensors are no longer referenced. Any thread
    may use a batch.
    """

    __slots__ = ("_facts", "_handle", "_run", "_stream")
    __reduce__ = refuse_copy

    def __init__(self, run: Run, stream: int) -> None:
        self._handle = c_void_p()
        self._run = run
        self._stream = stream  # on which the batch was taken; 0 = the host
        self._facts: structs.BatchFacts | None = None

    def __del__(self, free: Any = FUNCTIONS["batch_free"]) -> None:
        handle = getattr(self, "_handle", None)  # None if the constructor has not run
        if handle:
            free(handle)

    def __getitem__(self, name: str) -> Field:
        try:
            return Field(self, self._run.names[name])
        except KeyError:
            raise KeyError(f"{name!r}: the batch has the fields {list(self._run.names)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._run.names)

    def __len__(self) -> int:
        return len(self._run.names)

    def __repr__(self) -> str:
        return f"<millrace.Batch {self.number}, {self.size} samples: {', '.join(self._run.names)}>"

    def names(self) -> list[str]:
        return list(json_of("batch_fields", self._handle))

    def know_names(self) -> None:
        """Fills the run's names of fields."""
        # In one step, since another thread may take a batch of this run now.
        self._run.names.update({name: name.encode() for name in self.names()})

    def describe(self) -> structs.BatchFacts:
        if self._facts is None:
            facts = structs.BatchFacts(structs.BATCH_FACTS_BYTES)
            if _describe(self._handle, byref(facts), last.reference):
                raise failure()
            self._facts = facts
        return self._facts

    @property
    def size(self) -> int:
        """Number of samples."""
        return int(self.describe().size)

    @property
    def valid(self) -> int:
        """Number of samples that are neither padding nor marked bad records."""
        return int(self.describe().valid)

    @property
    def global_size(self) -> int:
        """Number of samples over all ranks."""
        return int(self.describe().global_size)

    @property
    def number(self) -> int:
        """Number of the batch in the run, from 0."""
        return int(self.describe().number)

    @property
    def epoch(self) -> int:
        """Number of the epoch, from 0."""
        return int(self.describe().epoch)

    @property
    def slot(self) -> int:
        """Number of the slot, which is the memory of the batch. A slot's addresses never change."""
        return int(self.describe().slot)

    @property
    def last_in_epoch(self) -> bool:
        return bool(self.describe().last_in_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state after this batch. Another `Loader` can continue from it."""
        state: dict[str, Any] = json_of("batch_state", self._handle)
        return state

    def record_stream(self, stream: Any) -> None:
        """Keeps the memory until the work of another stream of the GPU is done. First make this
        stream wait for the data. `stream` is as for `Loader.next`."""
        call("batch_record_stream", self._handle, streams.number_of(stream))

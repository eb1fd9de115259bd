# SPDX-License-Identifier: Apache-2.0
"""Datasets: files that millrace reads, or records that Python code gives."""

from __future__ import annotations

import ctypes
import itertools
import os
import struct
from collections.abc import Iterable, Mapping
from ctypes import byref, c_void_p
from typing import Any, Protocol, Union

from . import structs
from .library import BadRecord, Handle, json_of, new_handle, text

# The value of a record's field. A number is stored as int64, as labels are; a text as UTF-8.
FieldValue = Union[bytes, bytearray, memoryview, int, str, Any]


class Records(Protocol):
    """Numbered records in Python, such as a map-style dataset of PyTorch.

    `records[index]` returns a mapping from names of fields to bytes, buffers, numbers or texts. The
    presets of recipes read "image", an encoded image, and "label", a number. Several threads call
    it, one at a time, since each holds the GIL.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Mapping[str, FieldValue]: ...


class Dataset(Handle):
    """A dataset. `len()` is its number of records.

    `path` is a packed dataset or another format that millrace reads: LMDB files of other programs,
    tars, class folders, lists, arrays. The options are those of C++'s `OpenOptions`:

    - `format`: the name of the format; the default probes the path.
    - `images`, `labels`: the names of the databases of an LMDB file that has several.
    - `map`: False reads files by `pread` instead of mapping them.
    - `verify_checksums`: False does not compare the stored checksums.
    - `hints`: False does not use stored seek indices.

    Raises `Error`. Files must not change while the dataset is open. Any thread may use it.
    """

    kind = "dataset"
    parts: tuple[Dataset, ...] = ()  # of `concat_datasets`

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        images: str | None = None,
        labels: str | None = None,
        map: bool = True,
        verify_checksums: bool = True,
        hints: bool = True,
    ) -> None:
        options = structs.OpenOptionsStruct(
            format=text(format),
            images=text(images),
            labels=text(labels),
            no_map=not map,
            no_checksums=not verify_checksums,
            no_notes=not hints,
        )
        self.failures: list[BaseException] = []
        self.handle = new_handle("dataset_open_with", text(path), byref(options))
        self._facts: dict[str, Any] | None = None

    @classmethod
    def from_records(cls, records: Records, name: str | None = None) -> Dataset:
        """Makes a dataset of Python records. `name` is for messages and reports.

        Python code runs under the GIL, so records come from one thread at a time, and the training
        step waits for the GIL, too. Each read adds about 15 µs to the code's own time. An exception
        ends the run, and `next` raises it as the cause of its `Error`; for `BadRecord` the option
        `bad_records` decides.
        """
        self = cls.__new__(cls)
        self.failures = []
        self._facts = None
        owner = Owner(records, self.failures)
        name = type(records).__name__ if name is None else name
        callbacks = structs.DatasetCallbacks(
            user=owner.key,
            name=text(name),
            size=len(records),
            make_reader=make_reader,
            free_reader=free_reader,
            read=read,
            free_user=free_owner,
        )
        try:
            self.handle = new_handle("dataset_create", byref(callbacks))
        except BaseException:
            free_owner(owner.key)
            raise
        return self

    def raised(self) -> list[BaseException]:
        """The exceptions of Python code that reads records."""
        return [*self.failures, *(one for part in self.parts for one in part.raised())]

    def describe(self) -> dict[str, Any]:
        """Returns "name", "records", "classes", "fields", "files", "fingerprint", "warnings"."""
        if self._facts is None:
            self._facts = json_of("dataset_describe", self.handle)
        return self._facts

    def __len__(self) -> int:
        return int(self.describe()["records"])

    @property
    def classes(self) -> list[str]:
        """Names of the classes, by label; empty if they are unknown."""
        return list(self.describe()["classes"])

    def __repr__(self) -> str:
        return f"<millrace.Dataset {self.describe()['name']}, {len(self)} records>"


def dataset_of(given: DatasetLike) -> Dataset:
    """Returns the dataset, opened or made from records if it is not one."""
    if isinstance(given, Dataset):
        return given
    if isinstance(given, (str, os.PathLike)):
        return Dataset(given)
    return Dataset.from_records(given)


def concat_datasets(parts: Iterable[DatasetLike]) -> Dataset:
    """Joins datasets, paths or Python records into one dataset.

    Record numbers continue from part to part. `Order.mixed` gives each part its share of an epoch.
    The fields are those that all parts have. Raises `Error` without parts, and if two of them
    name different classes.
    """
    self = Dataset.__new__(Dataset)
    self.failures, self._facts = [], None
    self.parts = tuple(dataset_of(part) for part in parts)
    handles = (c_void_p * len(self.parts))(*(part.handle for part in self.parts))
    self.handle = new_handle("dataset_concat", handles, len(self.parts))
    return self


# A dataset, the path of one, or records in Python.
DatasetLike = Union[str, "os.PathLike[str]", Dataset, Records]


class Owner:
    """Keeps an object for the callbacks, which get its key, until the C library frees it."""

    keys = itertools.count(1)
    all: dict[int, Owner] = {}

    def __init__(self, value: Any, failures: list[BaseException]) -> None:
        self.value, self.failures = value, failures
        self.key = next(self.keys)
        self.all[self.key] = self


def report(error: Any, failed: BaseException, owner: Owner, status: int) -> int:
    """Writes an exception into the callback's error. Returns the status."""
    name = "" if isinstance(failed, BadRecord) else f"{type(failed).__name__}: "
    message = f"{name}{failed}".encode(errors="replace")
    error.contents.message = message[: structs.ErrorStruct.message.size - 1]
    if isinstance(failed, BadRecord):
        return structs.BAD_RECORD
    if len(owner.failures) < 64:  # further ones end no run
        owner.failures.append(failed)
    return status


def stored(value: Any) -> bytes:
    """Returns the bytes of a field's value."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if hasattr(value, "__index__") and getattr(value, "shape", ()) == ():
        return struct.pack("<q", value.__index__())
    return memoryview(value).tobytes()


class Reader(Owner):
    """The reader of one thread. It keeps the bytes of its last record."""

    kept: Any = None


@structs.MakeReader
def make_reader(user: int, reader: Any, error: Any) -> int:
    owner = Owner.all[user]
    reader[0] = Reader(owner.value, owner.failures).key
    return structs.OK


@structs.FreeUser
def free_owner(key: int) -> None:
    Owner.all.pop(key, None)


free_reader = free_owner


@structs.Read
def read(key: int, index: int, record: Any, error: Any) -> int:
    reader: Any = Owner.all[key]
    try:
        fields = [(name.encode(), stored(value)) for name, value in reader.value[index].items()]
        array = (structs.FieldStruct * len(fields))()
        for to, (name, data) in zip(array, fields):
            to.name, to.bytes = name, len(data)
            to.data = ctypes.cast(ctypes.c_char_p(data), c_void_p)
        reader.kept = (array, fields)
        record.contents.fields = array
        record.contents.n_fields = len(fields)
    except BaseException as failed:
        return report(error, failed, reader, structs.IO)
    return structs.OK

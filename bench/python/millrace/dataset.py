# SPDX-License-Identifier: Apache-2.0
"""Datasets: files that millrace reads, or records that Python code gives."""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from ctypes import byref, c_void_p
from typing import Any, Protocol, Union

from . import structs
from .failures import Failure, Failures, text_of, write
from .library import BadRecord, Error, Handle, json_of, new_handle, text

# Marks of a byte order in formats of buffers.
FOREIGN_ORDER = ">!" if sys.byteorder == "little" else "<"

# The value of a record's field. An integer is stored as int64, as labels are; a text as UTF-8.
FieldValue = Union[bytes, bytearray, memoryview, int, str, Any]


class Records(Protocol):
    """Numbered records in Python, such as a map-style dataset of PyTorch.

    `records[index]` returns a mapping from names of fields to bytes, arrays, integers or texts. The
    presets of recipes read "image", an encoded image, and "label", an integer. Several threads call
    `records[index]`, but only one at a time, since each holds the GIL.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Mapping[str, FieldValue]: ...


class Dataset(Handle):
    """A dataset. `len()` returns its number of records.

    `path` is a packed dataset, or one in another format that millrace reads: LMDB files of other
    programs, tars, class folders, lists, arrays. The options are those of C++'s `OpenOptions`:

    - `format`: the name of the format; by default the path is probed.
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
            no_hints=not hints,
        )
        self.failures = Failures()
        self.handle = new_handle("dataset_open_with", text(path), byref(options))
        self._facts: dict[str, Any] | None = None

    @classmethod
    def from_records(cls, records: Records, name: str | None = None) -> Dataset:
        """Makes a dataset of Python records. `name` is for messages and reports.

        Python code runs under the GIL, so only one thread at a time reads records, and the training
        step may wait for the GIL. Each read takes about 15 µs more than the Python code itself. An
        exception ends the run: `next` raises an `Error` whose cause is the exception. After
        `BadRecord` the option `bad_records` decides.
        """
        self = cls.__new__(cls)
        self.failures = Failures()
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
        self.handle = owner.new_handle("dataset_create", byref(callbacks))
        return self

    @classmethod
    def from_stream(
        cls,
        records: Iterable[Mapping[str, FieldValue]],
        name: str | None = None,
        *,
        window_records: int = 2048,
        memory_bytes: int = 1 << 30,
    ) -> Dataset:
        """Makes a dataset of records that come one after the other, such as those of a generator.

        The number of records is known only at the end, so `len()` raises `TypeError`. Records are
        mappings, as in `from_records`. They are shuffled within windows of `window_records`
        records, which take at most `memory_bytes`. <millrace/one_pass_dataset.h> compares this with
        a true shuffle. An iterator has a single epoch. For several epochs, give an iterable whose
        `__iter__` begins again each time. A resumed run reads all earlier records again. To resume
        a run over an iterator, give the state to a new loader with a new dataset. Only one loader
        at a time may use the dataset. Exceptions act as in `from_records`, but an exception of a
        generator always ends the run.
        """
        self = cls.__new__(cls)
        self.failures, self._facts = Failures(), None
        callbacks = structs.StreamCallbacks(
            name=text(type(records).__name__ if name is None else name),
            next=next_record,
            free_user=free_owner,
        )
        if not isinstance(records, Iterator):
            callbacks.restart = restart_stream
        options = one_pass_options(window_records, memory_bytes)
        owner = Stream(records, self.failures)
        callbacks.user = owner.key
        self.handle = owner.new_handle("dataset_one_pass", byref(callbacks), byref(options))
        return self

    @classmethod
    def from_tar_stream(
        cls,
        path: str | os.PathLike[str],
        *,
        window_records: int = 2048,
        memory_bytes: int = 1 << 30,
    ) -> Dataset:
        """Makes a dataset of tars that are read once from front to back, without the GIL.

        `path` is a pipe such as "/dev/stdin", a file, a pattern or a list of tars. The other
        arguments are those of `from_stream`. Only files can have several epochs.
        """
        self = cls.__new__(cls)
        self.failures, self._facts = Failures(), None
        options = one_pass_options(window_records, memory_bytes)
        self.handle = new_handle("dataset_tar_stream", text(path), byref(options))
        return self

    def raised(self) -> list[Failure]:
        """Returns the failures of Python code that reads records."""
        return [*self.failures, *(one for part in self.parts for one in part.raised())]

    def describe(self) -> dict[str, Any]:
        """Returns "name", "records", "can_restart", "classes", "fields", "files", "fingerprint",
        "warnings"."""
        if self._facts is None:
            self._facts = json_of("dataset_describe", self.handle)
        return self._facts

    def __len__(self) -> int:
        records = self.describe()["records"]
        if records is None:
            raise TypeError("the number of records of a stream is known only at its end")
        return int(records)

    @property
    def classes(self) -> list[str]:
        """Names of the classes, by label; empty if they are unknown."""
        return list(self.describe()["classes"])

    def __repr__(self) -> str:
        facts = self.describe()
        records = "a stream" if facts["records"] is None else f"{facts['records']} records"
        return f"<millrace.Dataset {facts['name']}, {records}>"


def dataset_of(given: DatasetLike) -> Dataset:
    """Returns a dataset: the given one, or one opened from a path or made from records."""
    if isinstance(given, Dataset):
        return given
    if isinstance(given, (str, os.PathLike)):
        return Dataset(given)
    return Dataset.from_records(given)


def concat_datasets(parts: Iterable[DatasetLike]) -> Dataset:
    """Joins datasets, paths or Python records into one dataset.

    Record numbers continue from part to part. `Order.mixed` gives each part its share of an epoch.
    The dataset has the fields that all parts have. Raises `Error` for an empty list, or if two
    parts name different classes.
    """
    if isinstance(parts, (str, bytes)):
        raise Error("invalid_argument", f"parts is {parts!r}, must be a list of datasets or paths")
    self = Dataset.__new__(Dataset)
    self.failures, self._facts = Failures(), None
    self.parts = tuple(dataset_of(part) for part in parts)
    handles = (c_void_p * len(self.parts))(*(part.handle for part in self.parts))
    self.handle = new_handle("dataset_concat", handles, len(self.parts))
    return self


# A dataset, the path of one, or records in Python.
DatasetLike = Union[str, "os.PathLike[str]", Dataset, Records]


class Owner:
    """Keeps an object until the C library frees it. Callbacks find it by its key."""

    keys = itertools.count(1)
    all: dict[int, Owner] = {}

    def __init__(self, value: Any, failures: Failures) -> None:
        self.value, self.failures = value, failures
        self.key = next(self.keys)
        self.all[self.key] = self

    def new_handle(self, name: str, *arguments: Any) -> int:
        """Like `library.new_handle`. After an error the library does not free the owner."""
        try:
            return new_handle(name, *arguments)
        except BaseException:
            free_owner(self.key)
            raise


def report(error: Any, failed: BaseException, owner: Owner, status: int) -> int:
    """Writes an exception into the callback's error. Returns the callback's status."""
    if isinstance(failed, BadRecord):
        write(error, text_of(failed))
        return structs.BAD_RECORD
    text = write(error, f"{type(failed).__name__}: {text_of(failed)}")
    owner.failures.append(Failure(failed, text))
    return status


def stored(value: Any) -> bytes:
    """Returns the bytes of a field's value. Raises `OverflowError` for an integer that is not an
    int64. Raises `TypeError` for other scalars, for a foreign byte order, for Python objects and
    for values without a buffer."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    shape = getattr(value, "shape", ())
    if hasattr(value, "__index__") and shape == ():
        number = value.__index__()
        if not -(2**63) <= number < 2**63:
            raise OverflowError(f"{number:#x} does not fit into an int64")
        return struct.pack("<q", number)
    if isinstance(value, (float, complex)) or (hasattr(value, "dtype") and shape == ()):
        raise TypeError(
            f"{value!r} is of type {type(value).__name__}, not an integer; give an integer, an"
            " array or its bytes"
        )
    try:
        view = memoryview(value)
    except TypeError:
        raise TypeError(
            f"a {type(value).__name__} gives no bytes; give bytes, a text, an integer or an array,"
            " such as a tensor's .numpy()"
        ) from None
    types = re.sub(":[^:]*:", "", view.format)  # without the names of a structure's fields
    if "O" in types:
        raise TypeError(f"the array has Python objects (its format is {view.format!r})")
    if any(mark in FOREIGN_ORDER for mark in types):
        raise TypeError(f"the array has a foreign byte order (its format is {view.format!r})")
    return view.tobytes()


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


def fill(record: Any, value: Mapping[str, FieldValue]) -> Any:
    """Writes a record's fields for the C library. Returns their memory, which the caller must
    keep."""
    fields = [(name.encode(), stored(field)) for name, field in value.items()]
    array = (structs.FieldStruct * len(fields))()
    for to, (name, data) in zip(array, fields):
        to.name, to.bytes = name, len(data)
        to.data = ctypes.cast(ctypes.c_char_p(data), c_void_p)
    record.contents.fields = array
    record.contents.n_fields = len(fields)
    return array, fields


@structs.Read
def read(key: int, index: int, record: Any, error: Any) -> int:
    reader: Any = Owner.all[key]
    try:
        reader.kept = fill(record, reader.value[index])
    except BaseException as failed:
        return report(error, failed, reader, structs.IO)
    return structs.OK


class Stream(Reader):
    """The iterable of a stream, and the iterator of the current pass."""

    iterator: Iterator[Mapping[str, FieldValue]] | None = None


@structs.NextRecord
def next_record(key: int, record: Any, ended: Any, error: Any) -> int:
    stream: Any = Owner.all[key]
    try:
        if stream.iterator is None:
            stream.iterator = iter(stream.value)
        try:
            value = next(stream.iterator)
        except StopIteration:
            ended[0] = 1
            return structs.OK
        stream.kept = fill(record, value)
    except BaseException as failed:
        if isinstance(failed, BadRecord) and getattr(stream.iterator, "gi_frame", stream) is None:
            ended_by = RuntimeError(
                f"{text_of(failed)} (a generator ends when it raises BadRecord; give an iterator)"
            )
            return report(error, ended_by, stream, structs.IO)
        return report(error, failed, stream, structs.IO)
    return structs.OK


@structs.Restart
def restart_stream(key: int, error: Any) -> int:
    stream: Any = Owner.all[key]
    stream.iterator = None
    return structs.OK


def one_pass_options(window_records: int, memory_bytes: int) -> structs.OnePassOptionsStruct:
    for name, value in {"window_records": window_records, "memory_bytes": memory_bytes}.items():
        if not 0 < value < 2**64:
            raise Error("invalid_argument", f"{name} is {value}; it must be at least 1")
    return structs.OnePassOptionsStruct(window_records=window_records, memory_bytes=memory_bytes)

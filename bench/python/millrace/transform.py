# SPDX-License-Identifier: Apache-2.0
"""Transforms, which make samples of records by a recipe for images, by a copy of fields, or by
Python code."""

from __future__ import annotations

import ctypes
import json
import numbers
import os
import reprlib
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from ctypes import byref
from pathlib import Path
from typing import Any, NamedTuple, Union

from . import structs
from .dataset import Dataset, Owner, free_owner, report
from .failures import Failures
from .library import FUNCTIONS, Error, Handle, finite_json, json_of, new_handle, text, whole

# A preset's name, a recipe as JSON text or as a dictionary, or the path of a file with one.
RecipeLike = Union[str, Mapping[str, Any], "os.PathLike[str]"]

# The formats of `struct` and of buffers for the dtypes of fields.
FORMATS = {
    "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I", "int32": "i",
    "uint64": "Q", "int64": "q", "bool": "?", "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip
# Types of values that are the bytes of any dtype.
BYTES = (bytes, bytearray, memoryview)
ITEM_BYTES = {name: struct.calcsize(form) for name, form in FORMATS.items()} | {"bfloat16": 2}


def recipe_text(recipe: RecipeLike) -> str:
    if isinstance(recipe, Mapping):
        return finite_json(dict(recipe))
    if isinstance(recipe, os.PathLike) or recipe.endswith(".json"):
        return Path(recipe).read_text(encoding="utf-8")
    return recipe


LARGEST = 2**64 - 1
LARGEST_SIDE = 16384


def recipe(recipe: RecipeLike = "train", size: int | None = None) -> dict[str, Any]:
    """Returns a recipe as a dictionary, with the defaults of all keys that it leaves out.

    `size` is the width and height that a preset makes. Raises `Error` for an unknown preset or a
    wrong recipe, and for a size if the recipe is not a preset.
    """
    return _sized(recipe_text(recipe), size)


def _sized(program: str, size: int | None) -> dict[str, Any]:
    pixels = 0 if size is None else whole("size", size, 1, LARGEST_SIDE)
    made: dict[str, Any] = json_of("recipe_json", text(program), pixels)
    return made


class TransformHandle(Handle):
    kind = "transform"

    def __init__(self, handle: int) -> None:
        self.failures = Failures()
        self.handle = handle

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The fields of samples: "name", "dtype", "shape" and "variable" of each."""
        return list(json_of("transform_fields", self.handle))


class ImageTransform(TransformHandle):
    """Makes images and their targets by a recipe, on millrace's workers without the GIL.

    `recipe` is the name of a preset ("train", "eval", "resnet" ...), a recipe as JSON text or
    dictionary, or the path of a JSON file. `size` is the width and height that a preset makes. The
    limits are those of C++'s `DecodeLimits`; 0 is the default. Raises `Error`.

    "images" in a recipe names further encoded images of each record, for pairs. Each becomes a
    field of the same name. It uses the random numbers of "image" or its own:

        {"output": [224, 224], "ops": [{"op": "random_resized_crop"}],
         "images": {"depth": {}, "positive": {"draws": "own"}}}
    """

    def __init__(
        self,
        recipe: RecipeLike = "train",
        *,
        size: int | None = None,
        max_pixels: int = 0,
        max_pixels_per_byte: int = 0,
        max_scan_pixels: int = 0,
        max_decode_bytes: int = 0,
    ) -> None:
        limits = structs.DecodeLimits(
            max_pixels=whole("max_pixels", max_pixels, 0, LARGEST),
            max_pixels_per_byte=whole("max_pixels_per_byte", max_pixels_per_byte, 0, LARGEST),
            max_scan_pixels=whole("max_scan_pixels", max_scan_pixels, 0, LARGEST),
            max_decode_bytes=whole("max_decode_bytes", max_decode_bytes, 0, LARGEST),
        )
        program = recipe_text(recipe)
        if size is not None:
            program = json.dumps(_sized(program, size))
        super().__init__(new_handle("transform_images_with", text(program), byref(limits)))


def refuse(name: str, value: Any, wanted: str) -> Error:
    """Returns the error for an argument of the wrong kind."""
    given = f'"{value}"' if isinstance(value, str) else reprlib.repr(value)
    return Error("invalid_argument", f"{name} is {given}, must be {wanted}")


class FieldSpec(NamedTuple):
    """A field of samples.

    `dtype` is uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, float16, bfloat16,
    float32 or float64. A shape has up to 5 extents. If `variable` is true, the first extent is a
    maximum, and batches have a further field NAME.length (uint32). The unused rest of a variable
    field is set to `fill` in `RawTransform`, and to 0 in other transforms.
    """

    name: str
    dtype: str = "uint8"
    shape: tuple[int, ...] = ()
    variable: bool = False
    fill: float = 0

    def struct(self) -> structs.FieldSpecStruct:
        if not isinstance(self.name, str):
            raise refuse("a field's name", self.name, "a text")
        if not isinstance(self.dtype, str) or self.dtype not in ITEM_BYTES:
            raise refuse(f"{self.name}: dtype", self.dtype, "one of " + ", ".join(ITEM_BYTES))
        if not isinstance(self.shape, (tuple, list)):
            raise refuse(f"{self.name}: shape", self.shape, "a tuple of integers")
        if len(self.shape) > 5:
            raise Error("invalid_argument", f"{self.name}: a shape has at most 5 extents")
        shape = tuple(
            whole(f"{self.name}: shape[{axis}]", extent, 0, LARGEST)
            for axis, extent in enumerate(self.shape)
        )
        return structs.FieldSpecStruct(
            text(self.name), text(self.dtype), len(shape), shape, self.variable
        )


def field_list(fields: Any) -> list[FieldSpec]:
    """Returns the fields as a list. Raises `Error` if they are something else."""
    if isinstance(fields, (FieldSpec, str, bytes, Mapping)) or not isinstance(fields, Iterable):
        raise refuse("fields", fields, "a list of FieldSpec")
    listed = list(fields)
    for number, field in enumerate(listed):
        if not isinstance(field, FieldSpec):
            raise refuse(f"fields[{number}]", field, "a FieldSpec")
    return listed


class RawTransform(TransformHandle):
    """Copies fields of records unchanged: tokens, numbers, features.

    `fields` lists the fields; by default they are those that the dataset describes. A variable
    field is truncated at its maximal length, or filled up to it. Raises `Error`. If `dataset` and
    `fields` are both given, also raises it for a field that the dataset lacks or has with another
    dtype.
    """

    def __init__(
        self, fields: Iterable[FieldSpec] | None = None, *, dataset: Dataset | None = None
    ) -> None:
        if dataset is not None and not isinstance(dataset, Dataset):
            raise refuse("dataset", dataset, "a millrace.Dataset")
        listed = [] if fields is None else field_list(fields)
        if fields is not None and not listed:
            raise refuse("fields", listed, "a list of at least one FieldSpec, or None")
        for field in listed:
            if not isinstance(field.fill, numbers.Real):
                raise refuse(f"{field.name}: fill", field.fill, "a number")
        given = [structs.RawFieldStruct(field.struct(), float(field.fill)) for field in listed]
        array = (structs.RawFieldStruct * len(given))(*given)
        handle = 0 if dataset is None else dataset.handle
        super().__init__(new_handle("transform_raw", handle, array, len(given)))


class Random:
    """The random numbers of one sample or batch. They depend only on seed and position. The object
    may be used only during the call."""

    __slots__ = ("_random",)

    def __init__(self, random: int) -> None:
        self._random = random

    def bits(self) -> int:
        """Returns 64 random bits, for example as a seed of another generator."""
        return int(FUNCTIONS["random_bits"](self._random))

    def uniform(self) -> float:
        """Returns a number uniform in [0, 1)."""
        return float(FUNCTIONS["random_uniform"](self._random))


class Record(Mapping[str, bytes]):
    """A record as a mapping from names of fields to bytes. `index` is its number. The record may be
    used only during the call. Its values are copies, which stay valid."""

    def __init__(self, record: structs.RecordStruct) -> None:
        self.index = int(record.index)
        self._fields = {
            field.name.decode(errors="replace"): (field.data, field.bytes)
            for field in record.fields[: record.n_fields]
        }

    def __getitem__(self, name: str) -> bytes:
        return ctypes.string_at(*self._fields[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


class Transform(TransformHandle):
    """Makes samples by Python code.

    `make(record, random)` returns a mapping from the names of `fields` to arrays, buffers, numbers
    or lists of numbers. The values are copied. Several threads call `make`, but only one at a time,
    since each holds the GIL; the training step may wait for the GIL, too. A sample takes about 20
    µs more than the Python code itself. Exceptions are as for `Dataset.from_records`. `fingerprint`
    identifies the code in states; 0 = none. `description` is for the report.
    """

    def __init__(
        self,
        fields: Iterable[FieldSpec],
        make: Callable[[Record, Random], Mapping[str, Any]],
        *,
        description: str | None = None,
        fingerprint: int = 0,
    ) -> None:
        fields = field_list(fields)
        specs = [field.struct() for field in fields]
        failures = Failures()
        owner = Owner((fields, make), failures)
        callbacks = structs.TransformCallbacks(
            user=owner.key,
            fields=(structs.FieldSpecStruct * len(specs))(*specs),
            n_fields=len(specs),
            description=text(description or getattr(make, "__name__", type(make).__name__)),
            fingerprint=fingerprint,
            make=make_sample,
            free_user=free_owner,
        )
        super().__init__(owner.new_handle("transform_create", byref(callbacks)))
        self.failures = failures


def sample_bytes(field: FieldSpec, value: Any) -> tuple[bytes, int]:
    """Returns a field's bytes and length. Raises `ValueError` if the value does not fit."""
    form = FORMATS.get(field.dtype)
    if hasattr(value, "numpy"):
        value = value.numpy()
    if field.dtype == "bfloat16" and str(getattr(value, "dtype", "")) == "bfloat16":
        value, form = value.view("uint16"), "H"  # which NumPy shows as a buffer
    if isinstance(value, (int, float)):
        value = [value]
    if isinstance(value, (list, tuple)):
        if form is None:
            raise ValueError(f"{field.name}: a {field.dtype} must be given as an array")
        data = struct.pack(f"<{len(value)}{form}", *value)
    else:
        view = memoryview(value)
        data = view.tobytes()
        kind = view.format.lstrip("@=<").replace("l", "q").replace("L", "Q")
        if kind != form and not (kind in ("B", "c") and isinstance(value, BYTES)):
            raise ValueError(f"{field.name}: the value has the format {kind!r}, not {field.dtype}")
        if kind == form and (view.shape or ())[1:] != tuple(field.shape[1:]):
            raise ValueError(f"{field.name}: the value has the shape {view.shape}")
    row = ITEM_BYTES[field.dtype]
    for extent in field.shape[1:]:
        row *= extent
    most = field.shape[0] if field.shape else 1
    length, rest = divmod(len(data), row)
    if rest or length > most or (length < most and not field.variable):
        raise ValueError(
            f"{field.name}: the value has {len(data)} bytes, must have "
            f"{'at most ' if field.variable else ''}{most * row}"
        )
    return data, length


@structs.Make
def make_sample(user: int, record: Any, sample: Any, error: Any) -> int:
    owner = Owner.all[user]
    try:
        fields, make = owner.value
        into = sample.contents
        made = make(Record(record.contents), Random(into.random))
        for number, field in enumerate(fields):
            data, length = sample_bytes(field, made[field.name])
            to = into.fields[number]
            ctypes.memmove(to, data, len(data))
            if field.variable:
                size = ITEM_BYTES[field.dtype]
                for extent in field.shape:
                    size *= extent
                ctypes.memset(to + len(data), 0, size - len(data))
                into.lengths[number] = length
    except BaseException as failed:
        return report(error, failed, owner, structs.TRANSFORM)
    return structs.OK

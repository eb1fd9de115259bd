# SPDX-License-Identifier: Apache-2.0
"""Finds libmillrace.so, declares its functions, and turns their failures into exceptions."""

from __future__ import annotations

import ctypes
import json
import math
import operator
import os
import sys
import threading
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_size_t, c_uint32, c_uint64
from ctypes import c_void_p
from pathlib import Path
from typing import Any

from . import structs

SONAME = "libmillrace.so.0.1"


class Error(RuntimeError):
    """A failure of millrace. The message names the file, key and value.

    `code` is the name of the C status: "invalid_argument", "not_found", "io", "corrupt",
    "bad_record", "transform", "device", "slots_exhausted", "timeout", "stopped" or another.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return Error, (self.code, str(self))


def whole(name: str, value: Any, least: int, most: int) -> int:
    """Returns an integer option. Raises `Error` for values out of range, which would wrap around in
    C."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        message = f"{name} is {value}, must be an integer in {least}..{most}"
        raise Error("invalid_argument", message)
    return number


def finite_json(value: Any) -> str:
    """Returns JSON text. Raises `Error` for infinity and nan, which JSON does not have."""
    refuse_not_finite("", value)
    return json.dumps(value)


def refuse_not_finite(name: str, value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise Error("invalid_argument", f"{name} is {value}, must be a finite number")
    if isinstance(value, dict):
        for key, one in value.items():
            refuse_not_finite(str(key), one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            refuse_not_finite(name, one)


class BadRecord(Exception):
    """Exception for a record that cannot be used, for Python code of datasets and transforms to
    raise. The option `bad_records` then decides; every other exception ends the run."""


def library_path() -> str:
    """Returns the path of libmillrace.so: the environment variable MILLRACE_LIBRARY if it is set,
    else the library in this package if there is one, else the name for the system's search."""
    chosen = os.environ.get("MILLRACE_LIBRARY")
    if chosen:
        return chosen
    own = Path(__file__).parent / "lib" / SONAME
    return str(own) if own.exists() else SONAME


def load() -> ctypes.CDLL:
    path = library_path()
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"{path}: cannot be loaded ({error}); install the package with pip, or set "
            "MILLRACE_LIBRARY to the path of libmillrace.so"
        ) from None


# The arguments of each function, without the last one, the error.
PROTOTYPES: dict[str, list[Any]] = {
    "dataset_open_with": [c_char_p, POINTER(structs.OpenOptionsStruct), c_void_p],
    "dataset_create": [POINTER(structs.DatasetCallbacks), c_void_p],
    "dataset_concat": [POINTER(c_void_p), c_size_t, c_void_p],
    "dataset_one_pass": [
        POINTER(structs.StreamCallbacks),
        POINTER(structs.OnePassOptionsStruct),
        c_void_p,
    ],
    "dataset_tar_stream": [c_char_p, POINTER(structs.OnePassOptionsStruct), c_void_p],
    "dataset_describe": [c_void_p, c_void_p],
    "recipe_json": [c_char_p, c_uint32, c_void_p],
    "transform_images_with": [c_char_p, POINTER(structs.DecodeLimits), c_void_p],
    "transform_raw": [c_void_p, POINTER(structs.RawFieldStruct), c_size_t, c_void_p],
    "transform_create": [POINTER(structs.TransformCallbacks), c_void_p],
    "batch_transform_create": [POINTER(structs.BatchTransformCallbacks), c_void_p],
    "batch_transform_mix": [POINTER(structs.MixStruct), c_void_p],
    "transform_fields": [c_void_p, c_void_p],
    "ranks_json": [c_void_p],
    "order_shuffled": [c_void_p],
    "order_sequential": [c_void_p],
    "order_blocks": [c_uint64, c_uint64, c_void_p],
    "order_bucketed": [c_void_p, c_size_t, c_uint64, c_uint64, c_void_p],
    "order_bucketed_by": [c_char_p, c_uint64, c_uint64, c_void_p],
    "order_weighted": [c_void_p, c_size_t, c_uint64, c_void_p],
    "order_reweighted": [c_void_p, c_uint64, c_void_p, c_size_t, c_void_p],
    "order_mixed": [POINTER(structs.SourceStruct), c_size_t, c_uint64, c_void_p],
    "order_subset": [c_void_p, c_void_p, c_size_t, c_void_p],
    "order_filtered": [c_void_p, c_uint64, structs.Keep, c_void_p, c_void_p],
    "order_repeated": [c_void_p, c_uint64, c_void_p],
    "runtime_create": [c_char_p, c_void_p],
    "runtime_free_unused_caches": [c_void_p],
    "pipeline_create": [POINTER(structs.PipelineSetup), c_void_p],
    "pipeline_next": [c_void_p, c_void_p, c_double, c_void_p],
    "pipeline_batches_per_epoch": [c_void_p, c_void_p],
    "pipeline_total_batches": [c_void_p, c_void_p],
    "pipeline_set_weights": [c_void_p, c_void_p, c_size_t, c_void_p],
    "pipeline_state": [c_void_p, c_void_p],
    "pipeline_report": [c_void_p, c_int32, c_void_p],
    "pipeline_stop": [c_void_p],
    "bench": [POINTER(structs.WorkloadStruct), POINTER(structs.BenchOptions), c_void_p],
    "tune": [POINTER(structs.WorkloadStruct), POINTER(structs.TuneOptions), c_void_p],
    "diagnose": [POINTER(structs.WorkloadStruct), POINTER(structs.DiagnoseOptions), c_void_p],
    "batch_field": [c_void_p, c_char_p, c_void_p],
    "batch_fields": [c_void_p, c_void_p],
    "batch_state": [c_void_p, c_void_p],
    "batch_record_stream": [c_void_p, c_void_p],
}


def declared(library: ctypes.CDLL) -> dict[str, Any]:
    functions: dict[str, Any] = {}
    for name, arguments in PROTOTYPES.items():
        function = getattr(library, "millrace_" + name)
        function.argtypes = [*arguments, c_void_p]
        function.restype = c_int32
        functions[name] = function
    kinds = ("text", "dataset", "transform", "runtime", "order", "batch_transform")
    for kind in (*kinds, "pipeline", "batch"):
        function = getattr(library, f"millrace_{kind}_free")
        function.argtypes, function.restype = [c_void_p], None
        functions[kind + "_free"] = function
    random = {"random_bits": c_uint64, "random_uniform": c_double}
    for name, result in random.items():
        function = getattr(library, "millrace_" + name)
        function.argtypes, function.restype = [c_void_p], result
        functions[name] = function
    library.millrace_version.restype = c_char_p
    library.millrace_status_name.restype = c_char_p
    return functions


LIBRARY = load()
FUNCTIONS = declared(LIBRARY)


def unchecked(name: str, result: Any = c_int32, with_gil: bool = False) -> Any:
    """Returns a function whose arguments are not checked, for calls in each batch: the check takes
    longer than such a call. Arguments must be bytes or objects of ctypes, for pointers, or small
    integers."""
    kind = ctypes.PyDLL if with_gil else ctypes.CDLL
    function = kind(LIBRARY._name, handle=LIBRARY._handle)["millrace_" + name]
    function.restype = result
    return function


class ErrorOfThread(threading.local):
    """The error struct that all calls of one thread fill."""

    def __init__(self) -> None:
        self.struct = structs.ErrorStruct()
        self.reference = byref(self.struct)


last = ErrorOfThread()


def failure() -> Error:
    """Makes the exception for the last failed call of this thread."""
    status = last.struct.status
    name = LIBRARY.millrace_status_name(
        structs.TIMEOUT if status == structs.SLOTS_HELD else status
    ).decode()
    return Error(name, last.struct.message.decode(errors="replace"))


def call(name: str, *arguments: Any) -> None:
    """Calls a function. Raises `Error` if it fails."""
    if FUNCTIONS[name](*arguments, last.reference):
        raise failure()


def new_handle(name: str, *arguments: Any) -> int:
    """Calls a function and returns the handle that it makes."""
    handle = c_void_p()
    call(name, *arguments, byref(handle))
    return handle.value or 0


def number(name: str, *arguments: Any) -> int:
    value = c_uint64()
    call(name, *arguments, byref(value))
    return value.value


def json_of(name: str, *arguments: Any) -> Any:
    """Calls a function and returns its JSON text, parsed."""
    text = new_handle(name, *arguments)
    try:
        return json.loads(ctypes.string_at(text))
    finally:
        FUNCTIONS["text_free"](text)


class Handle:
    """Owns a handle of the C library. The handle is freed with this object."""

    kind = ""
    handle = 0

    def free(self) -> None:
        if self.handle:
            FUNCTIONS[self.kind + "_free"](self.handle)
            self.handle = 0

    def __del__(self) -> None:
        # A late call could run callbacks in an interpreter that has ended.
        if not sys.is_finalizing():
            self.free()

    def __reduce__(self) -> Any:
        raise TypeError(
            f"a millrace.{type(self).__name__} cannot be pickled or sent to another process; "
            "make one in each process"
        )


def text(value: str | os.PathLike[str] | None) -> bytes | None:
    """Encodes a text as an argument for the C library."""
    if value is None:
        return None
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise Error("invalid_argument", f"{value!r} contains a zero byte")
    return encoded

# SPDX-License-Identifier: Apache-2.0
"""The structs of DLPack (https://dmlc.github.io/dlpack), and capsules that hold them."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any

from .library import failure, last, unchecked

CPU, CUDA = 1, 2
DTYPES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


Deleter = ctypes.CFUNCTYPE(None, c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", c_void_p), ("deleter", Deleter)]


ctypes.pythonapi.PyCapsule_New  # noqa: B018: fails at import if this Python has no capsules
_batch_capsule = unchecked("batch_capsule", ctypes.py_object, with_gil=True)


def delete(address: int) -> None:
    """Calls the deleter of a `Managed` at this address."""
    Managed.from_address(address).deleter(address)


def capsule(batch: c_void_p, field: bytes, versioned: bool) -> Any:
    """Makes a capsule that owns the field's tensor until a consumer takes it."""
    try:
        return _batch_capsule(batch, field, versioned, last.reference)
    except ValueError:  # set by the C library
        raise failure() from None

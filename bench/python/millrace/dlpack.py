# SPDX-License-Identifier: Apache-2.0
"""The structs of DLPack (https://dmlc.github.io/dlpack), and capsules that hold them."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any

from .library import LIBRARY

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


NAME, NAME_OF_VERSIONED = b"dltensor", b"dltensor_versioned"


def of_python(name: str, result: Any, *arguments: Any) -> Any:
    """Returns a separate object for a function of Python's C interface. Other packages may declare
    the one in `ctypes.pythonapi`."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


new_capsule = of_python("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
# A destructor in Python would lose the exception of a consumer that refuses the tensor: ctypes
# clears an exception that is pending when it calls Python code.
FREE_UNUSED = ctypes.cast(LIBRARY.millrace_capsule_free, c_void_p)


def delete(address: int) -> None:
    """Calls the deleter of a `Managed` at this address."""
    Managed.from_address(address).deleter(address)


def capsule(address: int, versioned: bool) -> Any:
    """Makes a capsule that owns the tensor until a consumer takes it."""
    return new_capsule(address, NAME_OF_VERSIONED if versioned else NAME, FREE_UNUSED)

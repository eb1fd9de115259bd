# SPDX-License-Identifier: Apache-2.0
"""The structs of DLPack (https://dmlc.github.io/dlpack), and capsules that hold them."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64
from ctypes import c_void_p
from typing import Any

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


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", Deleter),
        ("flags", c_uint64),
        ("tensor", Tensor),
    ]


NAME, NAME_OF_VERSIONED = b"dltensor", b"dltensor_versioned"


def of_python(name: str, result: Any, *arguments: Any) -> Any:
    """Returns a function of Python's C interface. Others may declare `ctypes.pythonapi`'s own."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


new_capsule = of_python("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
is_capsule = of_python("PyCapsule_IsValid", ctypes.c_int, c_void_p, c_char_p)
pointer_of = of_python("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)


def delete(address: int) -> None:
    """Calls the deleter of a `Managed` at this address."""
    Managed.from_address(address).deleter(address)


@ctypes.PYFUNCTYPE(None, c_void_p)
def free_unused(capsule: int) -> None:
    """Frees the tensor of a capsule. A consumer that takes the tensor renames the capsule."""
    if is_capsule(capsule, NAME):
        delete(pointer_of(capsule, NAME))
    elif is_capsule(capsule, NAME_OF_VERSIONED):
        address = pointer_of(capsule, NAME_OF_VERSIONED)
        Versioned.from_address(address).deleter(address)


FREE_UNUSED = ctypes.cast(free_unused, c_void_p)


def capsule(address: int, versioned: bool) -> Any:
    """Makes a capsule that owns the tensor until a consumer takes it."""
    return new_capsule(address, NAME_OF_VERSIONED if versioned else NAME, FREE_UNUSED)

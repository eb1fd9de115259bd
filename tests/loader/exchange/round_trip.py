# SPDX-License-Identifier: Apache-2.0
"""Fields of a pipeline's batches in PyTorch and NumPy, through DLPack and back.

    python3 round_trip.py MODULE

MODULE is dlpack_module as a shared library. Exits with 77 without PyTorch or NumPy.
"""

import ctypes
import sys

try:
    import numpy
    import torch
    from torch.utils.dlpack import from_dlpack, to_dlpack
except ImportError as error:
    print(f"skipped: {error} (python3-torch, python3-numpy)")
    sys.exit(77)

# Types that PyTorch's DLPack accepts. Debian's version does not have the other unsigned types.
TORCH = {
    "uint8": torch.uint8,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}
NUMPY = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
NUMPY += ["float16", "float32", "float64"]

module = ctypes.CDLL(sys.argv[1])
module.field.restype = module.versioned_field.restype = ctypes.c_void_p
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Field:
    """A field of the current batch, as Python's protocol for DLPack wants it."""

    def __init__(self, name):
        self.name = name

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, stream=None, **newer):
        if tuple(newer.get("max_version") or (0, 0)) >= (1, 0):
            pointer = module.versioned_field(self.name.encode())
            return new_capsule(pointer, b"dltensor_versioned", None)
        return new_capsule(module.field(self.name.encode()), b"dltensor", None)


def expected(first):
    """The elements of a field of a batch that begins with record `first`."""
    return [[[first + s + 3 * i + j for j in range(3)] for i in range(2)] for s in range(8)]


def check(condition, what):
    if not condition:
        sys.exit(f"round_trip.py: {what}")


for batch in range(20):
    slot = module.take()
    first = batch * 8 % 64
    kept = {}
    for name, dtype in TORCH.items():
        tensor = from_dlpack(Field(name).__dlpack__())
        check(tensor.dtype == dtype and tuple(tensor.shape) == (8, 2, 3), f"{name}: {tensor}")
        check(tensor.is_contiguous(), f"{name} is not contiguous")
        wanted = torch.tensor(expected(first), dtype=torch.float64)
        if name == "float16":
            wanted = 256 + wanted
        elif name == "bfloat16":  # has every second number there
            wanted = 256 + 2 * torch.floor(wanted / 2)
        check(torch.equal(tensor.double(), wanted), f"{name}: {tensor} is not {wanted}")
        kept[name] = tensor
    for name in NUMPY:
        array = numpy.from_dlpack(Field(name))
        check(array.dtype == name and array.shape == (8, 2, 3), f"{name}: {array!r}")
        if name in TORCH:
            same = array.__array_interface__["data"][0] == kept[name].data_ptr()
            check(same, f"{name} was copied")
    # Back again: PyTorch's tensor as a DLPack capsule is the same memory.
    back = from_dlpack(to_dlpack(kept["int64"]))
    check(back.data_ptr() == kept["int64"].data_ptr(), "the way back copied")
    # The batch's slot is used by no other as long as a tensor shows it.
    values = back.clone()
    module.let_go()
    del kept, array, tensor
    if batch == 10:
        for _ in range(8):
            check(module.take() != slot, "a slot was used again below a tensor")
        check(torch.equal(back, values), "a tensor changed")
        break
print("PyTorch", torch.__version__, "and NumPy", numpy.__version__, "agree")

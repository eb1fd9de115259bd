# SPDX-License-Identifier: Apache-2.0
"""Writes arrays of many dtypes and shapes with numpy.save.

    python3 live_numpy.py FOLDER

Writes NAME.npy and the array's bytes, NAME.bin, and prints a line for each: "read NAME DTYPE
EXTENT..." if the file must be read, "refused NAME WORDS..." if it must be refused with these words.
Also writes tokens.npy with windows.bin, its windows of 7 every 5, and values.npy with offsets.npy.
Exits with 77 if NumPy is missing.
"""

import sys
from pathlib import Path

try:
    import numpy
except ImportError as error:
    print(f"skipped: {error} (python3-numpy)")
    sys.exit(77)

folder = Path(sys.argv[1])
numbers = numpy.random.default_rng(17)


def filled(dtype, shape):
    dtype = numpy.dtype(dtype)
    if dtype == bool:
        return numbers.integers(0, 2, shape).astype(bool)
    count = int(numpy.prod(shape))
    if dtype.kind == "f":
        return numbers.standard_normal(shape).astype(dtype)
    return numpy.frombuffer(numbers.bytes(count * dtype.itemsize), dtype).reshape(shape)


def write(name, array, version=None):
    with open(folder / f"{name}.npy", "wb") as file:
        if version:
            numpy.lib.format.write_array(file, array, version=version)
        else:
            numpy.save(file, array)


def to_read(name, array, version=None):
    write(name, array, version)
    (folder / f"{name}.bin").write_bytes(array.tobytes())
    print("read", name, array.dtype.name, *array.shape)


def to_refuse(name, array, words):
    write(name, array)
    print("refused", name, words)


DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
SHAPES = [(0,), (1,), (5,), (3, 4), (0, 3), (2, 3, 4), (3, 1, 2, 1, 2, 2)]
for dtype in DTYPES:
    for number, shape in enumerate(SHAPES):
        to_read(f"{dtype}_{number}", filled(dtype, shape))
to_read("version_2", filled("int32", (6, 5)), (2, 0))
to_read("version_3", filled("float32", (6, 5)), (3, 0))
to_read("every_other", filled("int16", (20, 3))[::2])
to_read("in_both_orders", numpy.asfortranarray(filled("int16", (20,))))

to_refuse("scalar", numpy.array(3), "without a first axis")
to_refuse("empty_records", filled("int32", (4, 0)), "its records are empty")
to_refuse("seven", filled("uint8", (1,) * 7), "at most 6 extents")
to_refuse("fortran", numpy.asfortranarray(filled("int32", (4, 5))), "Fortran order")
to_refuse("big", filled(">i4", (4,)), "big-endian")
to_refuse("structured", numpy.zeros(3, [("x", "<i4"), ("y", "<f8")]), "structured")
to_refuse("objects", numpy.array([1, "two", None], object), "Python objects")
to_refuse("complex", numpy.zeros(3, "complex64"), "has dtype")
to_refuse("times", numpy.zeros(3, "datetime64[ns]"), "has dtype")
to_refuse("bytes", numpy.array([b"abc", b"de"]), "has dtype")
to_refuse("text", numpy.array(["abc", "de"]), "has dtype")

tokens = filled("uint16", (100,))
write("tokens", tokens)
windows = numpy.lib.stride_tricks.sliding_window_view(tokens, 7)[::5]
(folder / "windows.bin").write_bytes(numpy.ascontiguousarray(windows).tobytes())
lengths = numbers.integers(0, 9, 50)
lengths[:3] = 0
write("values", filled("float32", (int(lengths.sum()), 2)))
write("offsets", numpy.concatenate([[0], numpy.cumsum(lengths)]).astype("int32"))

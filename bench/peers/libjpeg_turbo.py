# SPDX-License-Identifier: Apache-2.0
"""T: libjpeg-turbo decodes all photographs completely, in threads of its own."""

import ctypes
import ctypes.util
import itertools
import queue
import threading

import common

RGB = 0


def _library():
    lib = ctypes.CDLL(ctypes.util.find_library("turbojpeg") or "libturbojpeg.so.0")
    lib.tjInitDecompress.restype = ctypes.c_void_p
    lib.tjDecompressHeader3.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_ulong]
    lib.tjDecompressHeader3.argtypes += [ctypes.POINTER(ctypes.c_int)] * 4
    lib.tjDecompress2.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_void_p]
    lib.tjDecompress2.argtypes += [ctypes.c_int] * 5
    return lib


def _decode(lib, jpegs, numbers, done):
    handle = lib.tjInitDecompress()
    numbers_of_image = [ctypes.c_int() for _ in range(4)]
    pixels = ctypes.create_string_buffer(1)
    for number in numbers:
        jpeg = jpegs[number % len(jpegs)]
        pointers = [ctypes.byref(one) for one in numbers_of_image]
        if lib.tjDecompressHeader3(handle, jpeg, len(jpeg), *pointers):
            continue
        width, height = (one.value for one in numbers_of_image[:2])
        if len(pixels) < width * height * 3:
            pixels = ctypes.create_string_buffer(width * height * 3)
        lib.tjDecompress2(handle, jpeg, len(jpeg), pixels, width, 0, height, RGB, 0)
        done.put(1)


def batches(photos):
    lib, done, numbers = _library(), queue.Queue(64), itertools.count()
    jpegs = [open(path, "rb").read() for path in common.files(photos)]
    for _ in range(common.THREADS):
        threading.Thread(target=_decode, args=(lib, jpegs, numbers, done), daemon=True).start()
    while True:
        yield done.get()

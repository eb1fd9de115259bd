# SPDX-License-Identifier: Apache-2.0
"""Records and datasets for the tests of the Python package."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import millrace

HAS_NUMPY = importlib.util.find_spec("numpy") is not None
HAS_TORCH = importlib.util.find_spec("torch") is not None
# Python runs with the address sanitizer's library, for a libmillrace.so with sanitizers.
SANITIZED = "libclang_rt.asan" in os.environ.get("LD_PRELOAD", "")
needs_numpy = unittest.skipUnless(HAS_NUMPY, "NumPy is not installed")
needs_torch = unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")

# A shell starts programs in the background with SIGINT ignored, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

SIDE = 8
# Images keep their size and their pixels.
AS_THEY_ARE = {"output": [SIDE, SIDE], "ops": [{"op": "center_crop"}]}


def image_of(number):
    """A PPM whose channels have the values number, number + 1, number + 2."""
    return b"P6 %d %d 255\n" % (SIDE, SIDE) + bytes(
        [number % 256, (number + 1) % 256, (number + 2) % 256] * SIDE * SIDE
    )


class Images:
    """Records in Python: the image and label of record N are those of N."""

    def __init__(self, size=20):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return {"image": image_of(index), "label": index}


def loader(records=None, recipe=None, **options):
    """A loader of `records`, by default of `Images`, in order and once."""
    options = {"batch_size": 4, "workers": 2, "order": "sequential", "epochs": 1} | options
    records = Images() if records is None else records
    return millrace.Loader(records, AS_THEY_ARE if recipe is None else recipe, **options)


def values(field):
    """The values of a small field on the host, without NumPy or PyTorch."""
    import ctypes

    facts = field._facts()
    count = 1
    for extent in facts.shape:
        count *= extent
    types = {"int64": ctypes.c_int64, "uint64": ctypes.c_uint64, "uint32": ctypes.c_uint32,
             "uint8": ctypes.c_uint8, "int16": ctypes.c_int16, "float32": ctypes.c_float,
             "float64": ctypes.c_double}
    return list((types[facts.dtype] * count).from_address(facts.address))


def labels(batch):
    return values(batch["label"])


def command():
    """The path of the millrace program; None if it is not installed."""
    chosen = os.environ.get("MILLRACE_COMMAND")
    return chosen or shutil.which("millrace", path=str(Path(sys.executable).parent))


class PackedTest(unittest.TestCase):
    """Tests with a packed dataset of 20 images, in two classes."""

    @classmethod
    def setUpClass(cls):
        program = command()
        if program is None:
            raise unittest.SkipTest("the millrace command is not installed")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        photos = Path(cls.folder.name) / "photos"
        for number in range(20):
            path = photos / f"class{number % 2}" / f"{number:02}.ppm"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(image_of(number))
        cls.dataset = Path(cls.folder.name) / "photos.lmdb"
        # A command with sanitizers has their library inside.
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        subprocess.run([program, "pack", photos, cls.dataset], check=True, capture_output=True,
                       env=environment)


def run_python(code, **options):
    """Runs Python code in a process of its own, beside these tests."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )

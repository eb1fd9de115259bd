# SPDX-License-Identifier: Apache-2.0
"""Fields as arrays of NumPy, PyTorch and DLPack, and how long their memory lives."""

import ctypes
import gc
import sys
import unittest
import unittest.mock
import weakref
from ctypes import c_char_p, c_int, c_uint32, c_uint64, c_void_p

import millrace
from millrace import dlpack
from support import Images, labels, loader, needs_numpy, needs_torch, values

FIELDS = [
    millrace.FieldSpec(name, name, (2,))
    for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "bool",
                 "float16", "float32", "float64")
]  # fmt: skip


def of_all_types():
    """A batch of two samples; record N has N and N + 1 in each field."""
    transform = millrace.Transform(
        FIELDS, lambda record, _: {one.name: [record.index, record.index + 1] for one in FIELDS}
    )
    return next(loader(Images(2), transform, batch_size=2))


def of_python(name, result, *arguments):
    """A separate object for a function of Python's C interface. Other packages may declare the one
    in `ctypes.pythonapi`."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


is_capsule = of_python("PyCapsule_IsValid", c_int, c_void_p, c_char_p)
pointer_of = of_python("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned of DLPack 1.0."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", dlpack.Deleter),
        ("flags", c_uint64),
        ("tensor", dlpack.Tensor),
    ]


def capsule_named(capsule, name):
    return bool(is_capsule(id(capsule), name))


class FieldTest(unittest.TestCase):
    def test_describes_itself(self):
        field = next(loader())["image"]
        self.assertEqual((field.name, field.shape, field.dtype), ("image", (4, 8, 8, 3), "uint8"))
        self.assertEqual(len(field), 4)
        self.assertEqual(repr(field), "<millrace.Field image uint8 [4, 8, 8, 3]>")
        self.assertEqual([one.dtype for one in of_all_types().values()][:12],
                         [one.name for one in FIELDS])

    @needs_numpy
    def test_becomes_a_numpy_array(self):
        import numpy

        batch = of_all_types()
        for spec in FIELDS:
            array = batch[spec.name].numpy()
            self.assertEqual(array.dtype, numpy.dtype(spec.dtype))
            two = 1 if spec.name == "bool" else 2
            self.assertEqual(array.astype(int).tolist(), [[0, 1], [1, two]])
        array = batch["int64"].numpy()
        array[0, 0] = 7  # the batch's own memory
        self.assertEqual(values(batch["int64"]), [7, 1, 1, 2])
        self.assertEqual(numpy.from_dlpack(batch["int16"]).tolist(), [[0, 1], [1, 2]])

    @needs_numpy
    def test_numpy_makes_arrays_of_fields(self):
        import numpy

        batch = of_all_types()
        for spec in FIELDS:
            array = numpy.asarray(batch[spec.name])
            self.assertEqual((array.dtype, array.shape), (numpy.dtype(spec.dtype), (2, 2)))
        field = batch["int64"]
        copies = [numpy.array(field), field.__array__(copy=True),
                  numpy.asarray(field, dtype="float32"), field.__array__("float32", copy=None)]
        numpy.asarray(field)[0, 0] = 7
        field.__array__("int64", copy=False)[0, 1] = 8
        self.assertEqual(values(field), [7, 8, 1, 2])
        self.assertEqual([one.tolist() for one in copies], [[[0, 1], [1, 2]]] * 4)
        self.assertEqual([one.dtype for one in copies], ["int64", "int64", "float32", "float32"])
        with self.assertRaisesRegex(ValueError, "int64 is int64; float32 needs a copy"):
            field.__array__("float32", copy=False)

    @needs_numpy
    def test_bfloat16_needs_a_package(self):
        field = next(loader(dtype="bfloat16"))["image"]
        try:
            import ml_dtypes
        except ImportError:
            self.assertRaisesRegex(ImportError, "ml_dtypes", field.numpy)
        else:
            self.assertEqual(field.numpy().dtype, ml_dtypes.bfloat16)

    @needs_torch
    def test_becomes_a_torch_tensor(self):
        import torch

        batch = of_all_types()
        for name in ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"):
            for tensor in (batch[name].torch(), torch.from_dlpack(batch[name])):
                self.assertEqual(str(tensor.dtype), f"torch.{name}")
                self.assertEqual(tensor.tolist(), [[0, 1], [1, 2]])
        batch["int64"].torch()[0, 0] = 7
        self.assertEqual(values(batch["int64"]), [7, 1, 1, 2])
        image = next(loader(dtype=torch.bfloat16))["image"].torch()
        self.assertEqual((image.dtype, list(image.shape)), (torch.bfloat16, [4, 3, 8, 8]))

    def test_gives_dlpack_capsules(self):
        field = next(loader())["label"]
        self.assertEqual(field.__dlpack_device__(), (dlpack.CPU, 0))
        self.assertTrue(capsule_named(field.__dlpack__(), b"dltensor"))
        self.assertTrue(capsule_named(field.__dlpack__(max_version=(0, 8)), b"dltensor"))
        capsule = field.__dlpack__(max_version=(1, 1), dl_device=(1, 0), copy=False)
        self.assertTrue(capsule_named(capsule, b"dltensor_versioned"))
        tensor = Versioned.from_address(pointer_of(id(capsule), b"dltensor_versioned"))
        self.assertEqual((tensor.major, tensor.flags, tensor.tensor.shape[0]), (1, 0, 4))
        with self.assertRaises(BufferError):
            field.__dlpack__(copy=True)
        with self.assertRaises(BufferError):
            field.__dlpack__(dl_device=(2, 0))

    @needs_numpy
    def test_takes_versions_of_numpys_types(self):
        import numpy

        capsule = next(loader())["label"].__dlpack__(max_version=(numpy.int64(1), numpy.int64(0)))
        self.assertTrue(capsule_named(capsule, b"dltensor_versioned"))

    def test_a_capsule_that_cannot_be_made_is_an_error(self):
        batch = next(loader())
        for versioned in (False, True):
            with self.assertRaisesRegex(millrace.Error, "label"):
                dlpack.capsule(batch._handle, b"no such field", versioned)
            with self.assertRaisesRegex(millrace.Error, "the batch is null"):
                dlpack.capsule(ctypes.c_void_p(), b"label", versioned)


@unittest.mock.patch("millrace.loader.WAIT", 0.02)  # for the tests' speed
class LifetimeOfBatchesTest(unittest.TestCase):
    def slots_left(self, holds):
        """Number of batches that a loader of 2 slots can give while `holds(batch)` is kept."""
        train = loader(Images(40), prefetch=2)
        kept = holds(next(train))
        gc.collect()
        batches = []
        with self.assertRaisesRegex(millrace.Error, "hold every host slot"):
            while True:
                batches.append(next(train))
        del kept
        return len(batches)

    def test_frees_what_is_not_referenced(self):
        self.assertEqual(self.slots_left(lambda batch: None), 2)
        self.assertEqual(self.slots_left(lambda batch: batch), 1)
        self.assertEqual(self.slots_left(lambda batch: batch["label"]), 1)
        # A capsule that nobody takes frees its tensor.
        self.assertEqual(self.slots_left(lambda batch: batch["label"].__dlpack__()), 1)
        self.assertEqual(self.slots_left(lambda batch: batch["label"].__dlpack__() and None), 2)
        self.assertEqual(
            self.slots_left(lambda batch: batch["label"].__dlpack__(max_version=(1, 0)) and None), 2
        )

    def test_a_consumer_that_fails_frees_the_tensor(self):
        for versions in (None, (1, 0)):
            for batch in loader(Images(40), prefetch=2):
                with self.assertRaises(ZeroDivisionError):
                    # The interpreter drops the capsule while the exception is pending.
                    [batch["label"].__dlpack__(max_version=versions), 1 // 0]
        self.assertEqual(batch.number, 9)

    @needs_numpy
    def test_a_refusal_of_numpy_is_seen(self):
        import numpy

        for batch in loader(Images(40), prefetch=2, dtype="bfloat16"):
            with self.assertRaisesRegex((BufferError, RuntimeError), "(?i)unsupported dtype"):
                numpy.from_dlpack(batch["image"])
        self.assertEqual(batch.number, 9)

    @needs_numpy
    def test_numpy_arrays_keep_their_batch(self):
        import numpy

        self.assertEqual(self.slots_left(lambda batch: batch["label"].numpy()), 1)
        self.assertEqual(self.slots_left(lambda batch: batch["label"].numpy()[1:][:1]), 1)
        self.assertEqual(self.slots_left(lambda batch: numpy.asarray(batch["label"])), 1)
        self.assertEqual(self.slots_left(lambda batch: batch["label"].numpy().copy()), 2)

    @needs_torch
    def test_torch_tensors_keep_their_batch(self):
        self.assertEqual(self.slots_left(lambda batch: batch["label"].torch()), 1)
        self.assertEqual(self.slots_left(lambda batch: batch["label"].torch()[1:]), 1)
        self.assertEqual(self.slots_left(lambda batch: batch["label"].torch().clone()), 2)
        self.assertIn("torch", sys.modules)

    def test_batches_outlive_their_loader(self):
        train = loader()
        batch, gone = next(train), weakref.ref(train)
        field = batch["label"]
        del train, batch
        self.assertIsNone(gone())
        self.assertEqual(values(field), [0, 1, 2, 3])

    def test_reuses_memory(self):
        train = loader(Images(40), prefetch=2)
        slots = {batch.slot for batch in train}
        self.assertEqual(slots, {0, 1})
        self.assertEqual(labels(next(loader())), [0, 1, 2, 3])


if __name__ == "__main__":
    unittest.main()

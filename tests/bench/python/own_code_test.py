# SPDX-License-Identifier: Apache-2.0
"""Datasets and transforms in Python."""

import gc
import importlib.util
import json
import struct
import tempfile
import unittest
from pathlib import Path

import millrace
from millrace.dataset import Owner
from support import HAS_NUMPY, Images, labels, loader, needs_numpy, values


class Texts:
    """Record N has the number N, and N letters."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        number = bytearray(index.to_bytes(2, "little"))
        return {"number": memoryview(number), "letters": "é" * index, "label": index}


HAS_BFLOAT16 = importlib.util.find_spec("ml_dtypes") is not None
NUMBER = millrace.FieldSpec("number", "int16")
LETTERS = millrace.FieldSpec("letters", "uint8", (10,), variable=True)


class Failing(Images):
    """Images of which two fail."""

    def __init__(self, failure):
        super().__init__(8)
        self.failure = failure

    def __getitem__(self, index):
        if index in (2, 5):
            raise self.failure
        return super().__getitem__(index)


def without_text(kind):
    class WithoutText(kind):
        def __str__(self):
            raise RuntimeError("has no text")

    return WithoutText()


class DatasetTest(unittest.TestCase):
    def test_gives_images(self):
        train = loader(Images(8))
        self.assertEqual(len(train.dataset), 8)
        self.assertIn("millrace.Dataset Images, 8 records", repr(train.dataset))
        pixels = [values(batch["image"])[:: 8 * 8 * 3] for batch in train]
        self.assertEqual(pixels, [[0, 1, 2, 3], [4, 5, 6, 7]])

    def test_gives_bytes_buffers_texts_and_numbers(self):
        raw = millrace.RawTransform([NUMBER, LETTERS, millrace.FieldSpec("label", "int64")])
        batch = next(loader(Texts(), raw))
        self.assertEqual(values(batch["number"]), [0, 1, 2, 3])
        self.assertEqual(values(batch["label"]), [0, 1, 2, 3])
        self.assertEqual(values(batch["letters.length"]), [0, 2, 4, 6])
        self.assertEqual(bytes(values(batch["letters"])[20:24]).decode(), "éé")

    @needs_numpy
    def test_gives_numpy_arrays(self):
        import numpy

        class Arrays(Images):
            def __getitem__(self, index):
                wide = numpy.arange(6, dtype=numpy.int16).reshape(2, 3) + index
                return {"wide": wide.T, "label": numpy.int64(index)}

        raw = millrace.RawTransform(
            [millrace.FieldSpec("wide", "int16", (3, 2)), millrace.FieldSpec("label", "int64")]
        )
        batch = next(loader(Arrays(), raw))
        self.assertEqual(batch["wide"].numpy()[1].tolist(), [[1, 4], [2, 5], [3, 6]])
        self.assertEqual(labels(batch), [0, 1, 2, 3])

    @needs_numpy
    def test_refuses_values_whose_bytes_would_be_another_number(self):
        import numpy

        for value, message in [
            (2.0, "2.0 is of type float, not an integer"),
            (numpy.float64(2), "is of type float64, not an integer; give an integer"),
            (numpy.zeros(1, "i8,i8")[0], "is of type void, not an integer"),
            (2**63, "0x8000000000000000 does not fit into an int64"),
            (-(2**63) - 1, "-0x8000000000000001 does not fit into an int64"),
            ([2], "a list gives no bytes; give bytes, .* or an array, such as a tensor's"),
            (numpy.array(2.0), "only integer"),
            (numpy.array([2], ">i8"), "the array has a foreign byte order .its format is '>q'"),
            (memoryview(numpy.array([2], ">i8")), "a foreign byte order"),
            (numpy.array([2], object), "the array has Python objects .its format is 'O'"),
            (numpy.zeros(1, [("a", "i4"), ("b", object)]), "the array has Python objects"),
        ]:
            records = [{"image": Images()[0]["image"], "label": value}] * 4
            with self.subTest(repr(value)):
                with self.assertRaisesRegex(millrace.Error, message):
                    next(loader(records))
        named = numpy.array([(2,)], [("<O>", "<i8")])
        for value in (numpy.array(2, ">i8"), numpy.int8(2), numpy.array([2], "<i8"), named):
            records = [{"image": Images()[0]["image"], "label": value}] * 4
            self.assertEqual(labels(next(loader(records))), [2] * 4)

    def test_an_exception_ends_the_run_as_its_cause(self):
        train = loader(Failing(ValueError("out of paper")))
        with self.assertRaisesRegex(
            millrace.Error, "Failing: record [25]: ValueError: out of paper"
        ) as raised:
            next(train)
        self.assertIsInstance(raised.exception.__cause__, ValueError)
        self.assertEqual(raised.exception.code, "io")
        with self.assertRaisesRegex(millrace.Error, "out of paper"):
            next(train)

    def test_the_latest_exceptions_are_kept(self):
        failing = Failing(None)
        dataset = millrace.Dataset.from_records(failing)
        for number in range(70):
            failing.failure = ValueError(f"failure {number} of many")
            with self.assertRaises(millrace.Error) as raised:
                next(loader(dataset))
            self.assertIs(raised.exception.__cause__, failing.failure)
        self.assertLessEqual(len(dataset.failures), 64)

    def test_an_exception_without_a_text_is_reported_by_its_type(self):
        for kind, code in ((ValueError, "io"), (millrace.BadRecord, "bad_record")):
            failure = without_text(kind)
            with self.assertRaisesRegex(millrace.Error, "record [25].*: WithoutText") as raised:
                next(loader(Failing(failure)))
            self.assertEqual(raised.exception.code, code)

            def of_generator(failure=failure):
                yield Images()[0]
                raise failure

            stream = millrace.Dataset.from_stream(of_generator())
            with self.assertRaisesRegex(millrace.Error, "record 1 .*WithoutText"):
                list(loader(stream))

    def test_the_cause_is_the_exception_that_ended_the_run(self):
        texts = ["", "2", "record", "a\nb", "a\0b", "\ud800", "x" * 3000, "é" * 600, "5"]
        failing = Failing(None)
        dataset = millrace.Dataset.from_records(failing)
        for text in texts:
            with self.subTest(text[:9]):
                failing.failure = ValueError(text)
                with self.assertRaises(millrace.Error) as raised:
                    next(loader(dataset))
                self.assertIs(raised.exception.__cause__, failing.failure)
        failing.failure = millrace.BadRecord("torn page")
        with self.assertRaisesRegex(millrace.Error, "torn page") as raised:
            next(loader(dataset))
        self.assertIsNone(raised.exception.__cause__)

    def test_bad_records_follow_the_policy(self):
        bad = millrace.BadRecord("torn page")
        with self.assertRaisesRegex(millrace.Error, "torn page") as raised:
            list(loader(Failing(bad)))
        self.assertEqual(raised.exception.code, "bad_record")
        marked = loader(Failing(bad), bad_records="mark")
        batches = [(values(one["valid"]), labels(one)) for one in marked]
        self.assertEqual(batches, [([1, 1, 0, 1], [0, 1, 0, 3]), ([1, 0, 1, 1], [4, 0, 6, 7])])

    def test_is_freed_with_its_last_user(self):
        before = len(Owner.all)
        train = loader(Images(8))
        next(train)
        self.assertGreater(len(Owner.all), before)
        del train
        gc.collect()
        self.assertEqual(len(Owner.all), before)


class TransformTest(unittest.TestCase):
    def test_makes_samples(self):
        def make(record, random):
            self.assertEqual(sorted(record), ["label", "letters", "number"])
            self.assertTrue(0 <= random.uniform() < 1)
            number = int.from_bytes(record["number"], "little")
            return {"number": -number, "letters": record["letters"], "bits": random.bits()}

        fields = [NUMBER, LETTERS, millrace.FieldSpec("bits", "uint64")]
        transform = millrace.Transform(fields, make, fingerprint=17)
        names = [one["name"] for one in transform.fields]
        self.assertEqual(names, ["number", "letters", "bits", "letters.length"])
        bits = []
        for workers in (1, 2):
            batch = next(loader(Texts(), transform, workers=workers, seed=3))
            self.assertEqual(values(batch["number"]), [0, -1, -2, -3])
            self.assertEqual(values(batch["letters.length"]), [0, 2, 4, 6])
            self.assertEqual(values(batch["letters"])[10:20], [*"é".encode(), *[0] * 8])
            bits.append(values(batch["bits"]))
        self.assertEqual(bits[0], bits[1])
        self.assertEqual(len(set(bits[0])), 4)

    @needs_numpy
    def test_takes_arrays(self):
        import numpy

        field = millrace.FieldSpec("pair", "float32", (2, 2))
        make = lambda record, _: {"pair": numpy.full((2, 2), record.index, numpy.float32)}
        batch = next(loader(Images(), millrace.Transform([field], make)))
        self.assertEqual(batch["pair"].numpy()[3].tolist(), [[3, 3], [3, 3]])

    def test_an_exception_without_a_text_ends_the_run(self):
        failure = without_text(ValueError)

        def fail(*_):
            raise failure

        field = millrace.FieldSpec("x", "int64")
        for options in ({"recipe": millrace.Transform([field], fail)},
                        {"batch_transform": millrace.BatchTransform(fail)}):
            with self.assertRaisesRegex(millrace.Error, "WithoutText: WithoutText"):
                list(loader(**options))
        with self.assertRaises(type(failure)):
            millrace.bench(loader(epochs=None), fail, warmup=0, batches=1)

    def test_takes_the_bytes_of_any_dtype(self):
        field = millrace.FieldSpec("pair", "int16", (2,))
        data = struct.pack("<2h", 3, -4)
        for value in (data, bytearray(data), memoryview(data), memoryview(data).cast("c")):
            transform = millrace.Transform([field], lambda *_: {"pair": value})
            self.assertEqual(values(next(loader(recipe=transform))["pair"])[:2], [3, -4])

    @unittest.skipUnless(HAS_BFLOAT16, "ml_dtypes is not installed")
    def test_takes_arrays_of_bfloat16(self):
        import ml_dtypes
        import numpy

        field = millrace.FieldSpec("pair", "bfloat16", (2,))
        array = numpy.array([3, -0.5], ml_dtypes.bfloat16)
        transform = millrace.Transform([field], lambda *_: {"pair": array})
        pairs = next(loader(recipe=transform))["pair"].numpy()
        self.assertEqual(pairs.astype(float).tolist(), [[3, -0.5]] * 4)
        self.assertIn("the format 'H', not bfloat16",
                      self.failure_of(array.view("uint16"), field))

    def failure_of(self, value, field):
        transform = millrace.Transform([field], lambda record, _: {field.name: value})
        with self.assertRaises(millrace.Error) as raised:
            next(loader(Images(), transform))
        self.assertEqual(raised.exception.code, "transform")
        return str(raised.exception)

    def test_refuses_values_that_do_not_fit(self):
        pair = millrace.FieldSpec("pair", "int16", (2,))
        self.assertIn("pair: the value has 2 bytes, must have 4", self.failure_of([1], pair))
        self.assertIn("pair: the value has 6 bytes, must have 4", self.failure_of([1, 2, 3], pair))
        self.assertIn("has 22 bytes, must have at most 10", self.failure_of(b"x" * 22, LETTERS))
        self.assertIn("format requires -32768", self.failure_of([1, 1 << 20], pair))
        self.assertIn("TypeError: memoryview", self.failure_of(None, pair))
        self.assertIn("must be given as an array",
                      self.failure_of([1, 2], pair._replace(dtype="bfloat16")))
        if HAS_NUMPY:
            import numpy

            self.assertIn("the format 'H', not int16",
                          self.failure_of(numpy.zeros(2, numpy.uint16), pair))
            numbers = numpy.arange(4, dtype=numpy.uint8)
            variable = millrace.FieldSpec("numbers", "float32", (4,), variable=True)
            self.assertIn("the format 'B', not float32", self.failure_of(numbers, variable))
            self.assertIn("the format '>h', not int16",
                          self.failure_of(numpy.zeros(2, ">i2"), pair))
            square = millrace.FieldSpec("square", "uint8", (2, 2))
            self.assertIn("the value has the shape (4,)",
                          self.failure_of(numpy.zeros(4, numpy.uint8), square))

    def test_names_wrong_fields(self):
        with self.assertRaisesRegex(millrace.Error, 'dtype is "int15"'):
            millrace.Transform([millrace.FieldSpec("x", "int15")], lambda *_: {})
        with self.assertRaisesRegex(millrace.Error, "at most 5 extents"):
            millrace.RawTransform([millrace.FieldSpec("x", "int16", (1,) * 6)])
        with self.assertRaisesRegex(millrace.Error, "the dataset is null"):
            millrace.RawTransform()

    def test_refuses_what_is_not_a_list_of_fields(self):
        for fields, message in (
            ("letters", 'fields is "letters", must be a list of FieldSpec'),
            (NUMBER, "fields is FieldSpec.*, must be a list of FieldSpec"),
            (7, "fields is 7, must be a list of FieldSpec"),
            ({"number": "int16"}, "fields is {.*}, must be a list of FieldSpec"),
            ([NUMBER, "letters"], r'fields\[1\] is "letters", must be a FieldSpec'),
        ):
            with self.assertRaisesRegex(millrace.Error, message) as raised:
                millrace.RawTransform(fields)
            self.assertEqual(raised.exception.code, "invalid_argument")
            with self.assertRaisesRegex(millrace.Error, message):
                millrace.Transform(fields, lambda *_: {})
        with self.assertRaisesRegex(millrace.Error, r"fields is \[\], must be .*at least one"):
            millrace.RawTransform([])

    def test_names_the_wrong_part_of_a_field(self):
        for changed, message in (
            ({"name": 7}, "a field's name is 7, must be a text"),
            ({"dtype": "int15"}, 'number: dtype is "int15", must be one of uint8, .*bfloat16'),
            ({"dtype": int}, "number: dtype is <class 'int'>, must be one of uint8"),
            ({"shape": 5}, "number: shape is 5, must be a tuple of integers"),
            ({"shape": (2, -1)}, r"number: shape\[1\] is -1, must be an integer in 0\.\."),
            ({"shape": (2.5,)}, r"number: shape\[0\] is 2.5, must be an integer"),
            ({"fill": "0"}, 'number: fill is "0", must be a number'),
        ):
            with self.assertRaisesRegex(millrace.Error, message):
                millrace.RawTransform([NUMBER._replace(**changed)])

    def test_compares_raw_fields_with_the_dataset(self):
        with self.assertRaisesRegex(millrace.Error, r"dataset is \[1, 2\], must be a millrace.D"):
            millrace.RawTransform([NUMBER], dataset=[1, 2])
        with self.assertRaisesRegex(millrace.Error, 'dataset is "x.lmdb", must be a millrace.Dat'):
            millrace.RawTransform(dataset="x.lmdb")
        with tempfile.TemporaryDirectory() as folder:
            header = "{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }"
            (Path(folder) / "n.npy").write_bytes(
                b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117).encode() + b"\n"
                + struct.pack("<3h", 5, 6, 7)
            )  # fmt: skip
            description = Path(folder) / "all.json"
            description.write_text(json.dumps(
                {"format": "arrays", "fields": {"number": {"npy": "n.npy"},
                                                "label": {"npy": "n.npy", "as": "int64"}}}
            ))  # fmt: skip
            dataset = millrace.Dataset(description)
            with self.assertRaisesRegex(
                millrace.Error,
                r'name is "nubmer", but the fields of .*all.json are "number", "label"',
            ):
                millrace.RawTransform([NUMBER._replace(name="nubmer")], dataset=dataset)
            with self.assertRaisesRegex(
                millrace.Error, r'dtype is "uint16", but the field "number" of .*all.json is int16'
            ):
                millrace.RawTransform([NUMBER._replace(dtype="uint16")], dataset=dataset)
            for raw in (
                millrace.RawTransform([NUMBER], dataset=dataset),
                millrace.RawTransform(dataset=dataset),
            ):
                batch = next(loader(dataset, raw, batch_size=3))
                self.assertEqual(values(batch["number"]), [5, 6, 7])

    def test_raw_fields_are_filled(self):
        field = millrace.FieldSpec("letters", "uint8", (3,), variable=True, fill=7)
        batch = next(loader(Texts(), millrace.RawTransform([field])))
        self.assertEqual(values(batch["letters"])[:6], [7, 7, 7, *"é".encode(), 7])


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Batch transforms: Python code, mixup and CutMix."""

import gc
import unittest

import millrace
from millrace.dataset import Owner
from support import AS_THEY_ARE, Images, labels, loader, needs_numpy, values


class BatchTransformTest(unittest.TestCase):
    def test_changes_batches_and_adds_fields(self):
        def run(batch, random):
            self.assertEqual(list(batch)[:2], ["image", "label"])
            self.assertEqual(batch["image"].shape, (batch.size, 8, 8, 3))
            self.assertEqual(batch.valid, [True] * batch.size)
            self.assertEqual(batch["sum"].tolist(), [0] * batch.size)
            self.assertEqual(batch["half"].format, "H")
            for place, index in enumerate(batch.indices):
                batch["sum"][place] = index + batch["label"][place]
                batch["label"][place] += 100
            batch["half"][0] = 0x3C00
            bits.append(random.bits())

        fields = [millrace.FieldSpec("sum", "int64"), millrace.FieldSpec("half", "float16")]
        drawn = []
        for workers in (1, 2):
            bits = []
            transform = millrace.BatchTransform(run, fields=fields, stage="sum")
            train = loader(batch_transform=transform, workers=workers, seed=3)
            batch = next(train)
            self.assertEqual(values(batch["sum"]), [0, 2, 4, 6])
            self.assertEqual(batch["half"].dtype, "float16")
            self.assertEqual(labels(batch), [100, 101, 102, 103])
            self.assertIn("sum", [stage["name"] for stage in train.report()["stages"]])
            del batch
            self.assertEqual(sum(1 for _ in train), 4)
            drawn.append(sorted(bits))
        self.assertEqual(drawn[0], drawn[1])
        self.assertEqual(len(set(bits)), 5)

    @needs_numpy
    def test_gives_arrays_without_a_copy(self):
        import numpy

        def invert(batch, _):
            images = numpy.asarray(batch["image"])
            numpy.subtract(255, images, out=images)

        batch = next(loader(batch_transform=millrace.BatchTransform(invert)))
        self.assertEqual(values(batch["image"])[:3], [255, 254, 253])

    @needs_numpy
    def test_refuses_arrays_that_outlive_the_call(self):
        import numpy

        kept = []
        keep = millrace.BatchTransform(lambda batch, _: kept.append(numpy.asarray(batch["label"])))
        with self.assertRaisesRegex(millrace.Error, "field label outlives its call; keep a copy"):
            next(loader(batch_transform=keep))

    def test_raises_what_the_code_raised(self):
        def fail(batch, _):
            raise ZeroDivisionError("no share")

        # Workers run batches at the same time, so any of the first ones may fail first.
        failed = r"batch of batch \d+ failed: ZeroDivisionError: no share"
        with self.assertRaisesRegex(millrace.Error, failed) as raised:
            next(loader(batch_transform=millrace.BatchTransform(fail)))
        self.assertIsInstance(raised.exception.__cause__, ZeroDivisionError)
        lookup = millrace.BatchTransform(lambda batch, _: batch["mask"])
        with self.assertRaisesRegex(millrace.Error, "'mask': the batch has the fields .'image'"):
            next(loader(batch_transform=lookup))

    def test_is_freed_with_its_last_user(self):
        gc.collect()
        before = len(Owner.all)
        train = loader(batch_transform=millrace.BatchTransform(lambda batch, _: None))
        next(train)
        del train
        gc.collect()
        self.assertEqual(len(Owner.all), before)

    def test_mixes_as_a_recipe_does(self):
        options = {"seed": 4, "batch_size": 10}
        by_recipe = loader(recipe=AS_THEY_ARE | {"mix": {"classes": 20}}, **options)
        own = loader(batch_transform=millrace.mix_transform(20), **options)
        for one, other in zip(by_recipe, own):
            for name in ("image", "target"):
                self.assertEqual(values(one[name]), values(other[name]))
            self.assertNotEqual(set(values(one["target"])), {0.0, 1.0})

    def test_mix_refuses_as_cpp_does(self):
        for options, message in [({"p": 2}, '"p" is 2'), ({"classes": 0}, '"classes" is 0'),
                                 ({"mixup": 0, "cutmix": 0}, "both 0"), ({"on": "gpu"}, '"on" is')]:
            with self.assertRaises(millrace.Error) as raised:
                millrace.mix_transform(**{"classes": 20} | options)
            self.assertIn(message, str(raised.exception))


if __name__ == "__main__":
    unittest.main()

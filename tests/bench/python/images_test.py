# SPDX-License-Identifier: Apache-2.0
"""Several images of a record, by a recipe's "images"."""

import random
import unittest

import millrace
from support import Images, labels, loader, values

RECIPE = {
    "output": [8, 8],
    "ops": [{"op": "random_crop"}, {"op": "random_horizontal_flip"}],
    "images": {"same": {}, "own": {"draws": "own"}},
}


class Pairs(Images):
    """Records with an image of 12 x 10 pixels in three fields."""

    def __getitem__(self, index):
        image = b"P6 12 10 255\n" + random.Random(index).randbytes(360)
        return {"image": image, "same": image, "own": image, "label": index}


class Damaged(Pairs):
    def __getitem__(self, index):
        record = super().__getitem__(index)
        if index == 3:
            record["same"] = record["same"][:20]
        return record


def pixels(batch):
    return {name: values(batch[name]) for name in ("image", "same", "own")}


class RecordImagesTest(unittest.TestCase):
    def test_same_and_own_draws(self):
        transform = millrace.ImageTransform(RECIPE)
        self.assertEqual([one["name"] for one in transform.fields],
                         ["image", "label", "same", "own"])
        batches = []
        for batch in loader(Pairs(), transform):
            self.assertEqual(batch["same"].shape, (4, 8, 8, 3))
            batches.append(pixels(batch))
        for made in batches:
            self.assertEqual(made["same"], made["image"])
            self.assertNotEqual(made["own"], made["image"])
        again = loader(Pairs(), RECIPE, workers=1)
        self.assertEqual([pixels(batch) for batch in again], batches)

    def test_resumes(self):
        train = loader(Pairs(), RECIPE, epochs=2, seed=4)
        state = next(train).state_dict()
        expected = [pixels(batch) for batch in train]
        resumed = loader(Pairs(), RECIPE, epochs=2, seed=4, state=state)
        self.assertEqual([pixels(batch) for batch in resumed], expected)

    def test_a_bad_one_makes_a_bad_record(self):
        with self.assertRaisesRegex(millrace.Error, 'record 3 .*its field "same"'):
            list(loader(Damaged(), RECIPE))
        train = loader(Damaged(), RECIPE, bad_records="replace")
        self.assertNotIn(3, [label for batch in train for label in labels(batch)])

    def test_refuses_as_cpp_does(self):
        for images, message in [
            ({"label": {}}, 'images: "label": the field comes twice'),
            ({"depth": {"draws": "none"}}, '"draws" is "none", must be "same" or "own"'),
        ]:
            with self.assertRaisesRegex(millrace.Error, message):
                millrace.ImageTransform(RECIPE | {"images": images})

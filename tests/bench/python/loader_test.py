# SPDX-License-Identifier: Apache-2.0
"""Runs: the order of batches, epochs, states, options, errors."""

import json
import re
import threading
import unittest

import millrace
from support import AS_THEY_ARE, Images, PackedTest, labels, loader, needs_numpy, values


def count(batches):
    """The number of batches, none of which is kept."""
    return sum(1 for _ in batches)


class LoaderTest(unittest.TestCase):
    def test_gives_batches_in_order(self):
        train = loader(batch_size=8, epochs=2)
        self.assertEqual(len(train), 3)
        self.assertEqual(train.total_batches, 6)
        seen = [(labels(batch), batch.number, batch.epoch, batch.last_in_epoch, train.epoch)
                for batch in train]
        rest = [[*range(8)], [*range(8, 16)], [*range(16, 20)]]
        self.assertEqual([one[0] for one in seen], rest * 2)
        self.assertEqual([one[1] for one in seen], [0, 1, 2, 3, 4, 5])
        self.assertEqual([one[2] for one in seen], [0, 0, 0, 1, 1, 1])
        self.assertEqual([one[3] for one in seen], [False, False, True] * 2)
        self.assertEqual([one[4] for one in seen], [0, 0, 0, 1, 1, 1])
        self.assertIsNone(train.next())
        self.assertEqual(list(train), [])

    def test_goes_on_after_break(self):
        train = loader()
        for batch in train:
            break
        self.assertEqual(labels(batch), [0, 1, 2, 3])
        self.assertEqual([labels(batch)[0] for batch in train], [4, 8, 12, 16])

    def test_one_epoch_ends_with_each_epoch(self):
        train = loader(epochs=2)
        next(train)
        self.assertEqual(count(train.one_epoch()), 4)
        self.assertEqual(count(train.one_epoch()), 5)
        self.assertEqual(list(train.one_epoch()), [])

    def test_runs_without_end(self):
        train = loader(epochs=None)
        self.assertIsNone(train.total_batches)
        self.assertEqual([train.next().epoch for _ in range(12)], [0] * 5 + [1] * 5 + [2] * 2)

    def test_batch_is_a_mapping(self):
        batch = next(loader(batch_size=7, last_batch="pad"))
        self.assertEqual(list(batch), ["image", "label", "index", "valid"])
        self.assertEqual(len(batch), 4)
        self.assertIn("label", batch)
        self.assertNotIn("mask", batch)
        with self.assertRaisesRegex(KeyError, "'mask': the batch has the fields .'image'"):
            batch["mask"]
        self.assertEqual((batch.size, batch.valid, batch.global_size), (7, 7, 7))
        self.assertIn("Batch 0, 7 samples", repr(batch))

    def test_continues_at_a_state(self):
        options = {"order": "shuffled", "seed": 3, "epochs": 3}
        train = loader(**options)
        for _ in range(7):
            batch = next(train)
        state = json.loads(json.dumps(train.state_dict()))
        self.assertEqual(state, batch.state_dict())
        expected = [labels(batch) for batch in train]
        self.assertEqual(len(expected), 8)
        self.assertEqual([labels(batch) for batch in loader(state=state, **options)], expected)
        train.load_state_dict(state)
        self.assertEqual([labels(batch) for batch in train], expected)

    def test_continues_with_another_number_of_ranks(self):
        options = {"order": "shuffled", "seed": 5, "epochs": 2, "global_batch_size": 6}
        options |= {"batch_size": None}
        one = loader(**options)
        next(one)
        state = one.state_dict()
        expected = [labels(batch) for batch in one]
        two = [loader(state=state, rank=rank, world_size=2, **options) for rank in (0, 1)]
        self.assertEqual(two[1].ranks, {"rank": 1, "world": 2})
        self.assertEqual([labels(a) + labels(b) for a, b in zip(*two)], expected)

    def test_refuses_a_state_of_another_run(self):
        train = loader(order="shuffled", seed=1)
        first = next(train)
        state = first.state_dict() | {"seed": 2}
        with self.assertRaisesRegex(millrace.Error, "seed was 2, here it is 1"):
            train.load_state_dict(state)
        self.assertEqual(count(train), 4)  # this run goes on

    def test_refuses_what_is_not_a_state(self):
        train = loader()
        for wrong, name in ((None, "NoneType"), (3, "int"), ([1, 2], "list"), (b"{}", "bytes")):
            message = f"state is a {name}, must be a dict or str from state_dict()"
            with self.assertRaisesRegex(TypeError, re.escape(message)):
                train.load_state_dict(wrong)
            if wrong is not None:  # which is the beginning
                with self.assertRaisesRegex(TypeError, re.escape(message)):
                    loader(state=wrong)
        self.assertEqual(count(train), 5)

    def test_refuses_options(self):
        with self.assertRaisesRegex(TypeError, "unknown option bach_size; .* workers, batch_size"):
            loader(bach_size=3)
        for options, message in [
            ({"batch_size": 0}, '"options.batch_size" is 0, must be an integer in 1..1048576'),
            ({"order": "random"}, '"run.order" is "random", must be one of "shuffled"'),
            ({"dtype": "int8"}, '"run.conversion.dtype" is "int8", must be one of "uint8"'),
            ({"rank": 2, "world_size": 2}, '"run.rank" is 2, must be an integer in 0..1'),
            ({"world_size": 2}, '"run.rank" is missing, but "run.world" is 2'),
            ({"device": "gpu"}, 'the device is "gpu", must be "host" or "cuda:N"'),
        ]:
            with self.subTest(options), self.assertRaises(millrace.Error) as raised:
                loader(**options)
            self.assertIn(message, str(raised.exception))
            self.assertEqual(raised.exception.code, "invalid_argument")
        with self.assertRaisesRegex(TypeError, "dtype is given twice"):
            loader(dtype="float16", conversion={"dtype": "float32"})

    def test_refuses_numbers_that_would_wrap_around_or_last_for_ever(self):
        for key, value in [("size", 0), ("size", -3), ("size", 2**32 + 224), ("size", 1.5)]:
            with self.assertRaisesRegex(millrace.Error, f"{key} is {value}, must be an integer in"):
                millrace.ImageTransform("train", **{key: value})
        for value in (-1, 2**64):
            with self.assertRaisesRegex(millrace.Error, f"max_scan_pixels is {value}, must be"):
                millrace.ImageTransform("train", max_scan_pixels=value)
        with self.assertRaisesRegex(millrace.Error, "batch_size is nan, must be a finite number"):
            loader(batch_size=float("nan"))
        with self.assertRaisesRegex(millrace.Error, "mean is inf, must be a finite number"):
            loader(mean=[0.5, float("inf"), 0.5])
        for key, values in [("mean", [0.5]), ("std", [1, 1]), ("mean", [0, 0, 0, 0])]:
            told = rf'{key} has {len(values)} values?, but "image" has 3 channels'
            with self.assertRaisesRegex(millrace.Error, told):
                loader(**{key: values})
        with self.assertRaisesRegex(millrace.Error, "timeout is nan"):
            loader().next(timeout=float("nan"))

    def test_converts_images(self):
        [batch] = loader(Images(3), mean=[0, 0, 0], std=[1 / 255] * 3)
        self.assertEqual(batch["image"].dtype, "float32")
        self.assertEqual(batch["image"].shape, (3, 3, 8, 8))
        pixels = values(batch["image"])
        self.assertAlmostEqual(pixels[64], 1, 4)  # the second channel of image 0
        self.assertAlmostEqual(pixels[5 * 64], 3, 4)  # the third channel of image 1
        [batch] = loader(Images(3), dtype="uint8", layout="nchw")
        self.assertEqual(values(batch["image"])[::64], [0, 1, 2, 1, 2, 3, 2, 3, 4])
        [batch] = loader(Images(3), conversion={"dtype": "bfloat16"})
        self.assertEqual(batch["image"].dtype, "bfloat16")

    @needs_numpy
    def test_takes_dtypes_of_numpy(self):
        import numpy

        for dtype in (numpy.float16, numpy.dtype("float16")):
            self.assertEqual(next(loader(dtype=dtype))["image"].dtype, "float16")
        with self.assertRaisesRegex(millrace.Error, 'dtype" is "int8", must be one of'):
            loader(dtype=numpy.int8)

    def test_reports(self):
        train = loader()
        self.assertEqual(count(train), 5)
        report = train.report(restart=True)
        self.assertEqual((report["batches"], report["samples"]), (5, 20))
        self.assertEqual(str(report), report["verdict"]["text"])
        self.assertEqual(train.report()["batches"], 0)

    def test_live_batches_that_hold_all_memory_are_an_error(self):
        train = loader(Images(40), prefetch=2)
        with self.assertRaisesRegex(millrace.Error, "2 live batches hold every host slot"):
            held = [batch for batch in train]
        held = [next(train)]  # the run goes on
        held.append(next(train))
        with self.assertRaisesRegex(millrace.Error, r"hold every host slot .* after 0\.3 s") as one:
            train.next(timeout=0.3)
        self.assertEqual(one.exception.code, "timeout")
        with self.assertRaisesRegex(millrace.Error, "hold every host slot .* after 10 ms") as one:
            train.next(timeout=0.01)
        self.assertEqual(one.exception.code, "timeout")
        timer = threading.Timer(0.1, held.clear)
        timer.start()
        self.assertEqual(len(labels(train.next(timeout=60))), 4)
        timer.join()

    def test_times_out(self):
        go = threading.Event()
        self.addCleanup(go.set)

        class Slow(Images):
            def __getitem__(self, index):
                if index > 0:  # the loader reads the first record when it is made
                    go.wait()
                return super().__getitem__(index)

        train = loader(Slow(8), timeout=0.01)
        with self.assertRaisesRegex(millrace.Error, "the next batch is not made") as raised:
            next(train)
        go.set()
        self.assertEqual(raised.exception.code, "timeout")
        self.assertEqual(labels(train.next(timeout=60)), [0, 1, 2, 3])

    def test_closes(self):
        with loader() as train:
            batch = next(train)
        for use in (lambda: next(train), lambda: len(train), train.state_dict, train.report):
            with self.assertRaisesRegex(millrace.Error, "the loader is closed"):
                use()
        self.assertEqual(labels(batch), [0, 1, 2, 3])
        train.close()

    def test_threads_share_a_run(self):
        train, seen = loader(Images(200), prefetch=8), []

        def take():
            for batch in train:
                seen.extend(labels(batch))

        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(seen), [*range(200)])

    def test_loaders_share_workers(self):
        runtime = millrace.Runtime(2)
        train, check = (loader(runtime=runtime, workers=None) for _ in range(2))
        del runtime
        self.assertEqual([labels(one) for one in train], [labels(one) for one in check])
        self.assertEqual(train.report()["workers"], 2)


class FilesTest(PackedTest):
    def test_caches_stay_until_they_are_freed(self):
        runtime = millrace.Runtime(2)
        dataset = millrace.Dataset(self.dataset)

        def hits():
            run = millrace.Loader(
                dataset, AS_THEY_ARE, batch_size=20, epochs=1, cache_bytes=10**7, runtime=runtime
            )
            self.assertEqual(count(run), 1)
            return run.report()["cache"]["hits"]

        self.assertEqual(hits(), 0)
        self.assertEqual(hits(), 20)
        runtime.free_unused_caches()
        self.assertEqual(hits(), 0)

    def test_opens_a_dataset(self):
        train = millrace.Loader(self.dataset, AS_THEY_ARE, batch_size=20, epochs=1, seed=1)
        self.assertEqual(len(train.dataset), 20)
        self.assertEqual(train.dataset.classes, ["class0", "class1"])
        self.assertIn("photos.lmdb, 20 records", repr(train.dataset))
        [batch] = train
        self.assertEqual(sorted(labels(batch)), [0] * 10 + [1] * 10)

    def test_open_options(self):
        dataset = millrace.Dataset(
            str(self.dataset), format="packed file", map=False, verify_checksums=False, hints=False
        )
        self.assertEqual(count(loader(dataset)), 5)
        with self.assertRaises(millrace.Error) as raised:
            millrace.Dataset(self.dataset, format="tars")
        self.assertEqual(raised.exception.code, "corrupt")
        with self.assertRaisesRegex(millrace.Error, "does not exist"):
            millrace.Loader("nowhere.lmdb")
        with self.assertRaisesRegex(millrace.Error, "contains a zero byte"):
            millrace.Loader("no\0where.lmdb")

    def test_recipes(self):
        self.assertEqual(millrace.recipe("eval", 112)["output"], [112, 112])
        with self.assertRaisesRegex(millrace.Error, "not a preset"):
            millrace.recipe(AS_THEY_ARE, 112)
        path = self.dataset.with_name("recipe.json")
        path.write_text(json.dumps(AS_THEY_ARE), encoding="utf-8")
        for recipe in (path, str(path), path.read_text(), AS_THEY_ARE):
            self.assertEqual(next(loader(self.dataset, recipe))["image"].shape, (4, 8, 8, 3))
        batch = next(millrace.Loader(self.dataset, recipe="train", size=16, batch_size=2))
        self.assertEqual(batch["image"].shape, (2, 16, 16, 3))
        small = millrace.ImageTransform(AS_THEY_ARE, max_pixels=63)
        with self.assertRaisesRegex(millrace.Error, "at most 63 are decoded"):
            next(loader(self.dataset, small))
        with self.assertRaisesRegex(TypeError, "size is for presets"):
            loader(self.dataset, small, size=3)


if __name__ == "__main__":
    unittest.main()

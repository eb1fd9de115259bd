# SPDX-License-Identifier: Apache-2.0
"""Datasets of streams: generators, iterables and tars that are read once."""

import gc
import io
import os
import tarfile
import tempfile
import threading
import unittest

import millrace
from millrace.dataset import Owner
from support import Images, image_of, labels, loader, values


def images(count, first=0):
    """A generator of the records of `Images`."""
    for number in range(first, count):
        yield {"image": image_of(number), "label": number}


class Again:
    """An iterable that can begin again."""

    def __iter__(self):
        return images(10)


class Torn:
    """An iterator that goes on after a bad record."""

    def __init__(self):
        self.records = images(8)

    def __iter__(self):
        return self

    def __next__(self):
        record = next(self.records)
        if record["label"] == 2:
            raise millrace.BadRecord("torn page")
        return record


def stream(records, **options):
    return millrace.Dataset.from_stream(records, **options)


class StreamTest(unittest.TestCase):
    def test_reads_a_generator_to_its_end(self):
        train = loader(stream(images(10)))
        self.assertEqual([labels(batch) for batch in train], [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])
        self.assertIsNone(train.total_batches)
        with self.assertRaisesRegex(TypeError, "known only at its end"):
            len(train)
        with self.assertRaisesRegex(TypeError, "known only at its end"):
            len(train.dataset)
        self.assertEqual(repr(train.dataset), "<millrace.Dataset generator, a stream>")

    def test_has_the_same_batches_for_any_number_of_workers(self):
        def batches(workers, seed=3):
            train = loader(
                stream(images(50), window_records=16), order="shuffled", workers=workers, seed=seed
            )
            return [(labels(batch), values(batch["image"])) for batch in train]

        self.assertEqual(batches(1), batches(3))
        self.assertNotEqual(batches(1), batches(1, seed=4))
        self.assertEqual(sorted(sum((one for one, _ in batches(2)), [])), list(range(50)))

    def test_begins_again_if_the_iterable_does(self):
        train = loader(stream(Again()), epochs=3, order="shuffled", seed=5)
        epochs = [[], [], []]
        for batch in train:
            epochs[batch.epoch] += labels(batch)
        self.assertEqual([sorted(one) for one in epochs], [list(range(10))] * 3)
        self.assertNotEqual(epochs[0], epochs[1])
        with self.assertRaisesRegex(millrace.Error, "this stream can be read only once"):
            loader(stream(images(10)), epochs=2)

    def test_resumes_with_a_new_stream(self):
        def run(state=None):
            dataset = stream(images(50), window_records=8)
            return loader(dataset, order="shuffled", seed=5, state=state)

        train = run()
        for _ in range(5):
            next(train)
        state = train.state_dict()
        rest = [labels(batch) for batch in train]
        self.assertEqual([labels(batch) for batch in run(state)], rest)
        self.assertEqual(state["window"], 16)

    def test_continues_at_a_state_if_the_iterable_begins_again(self):
        train = loader(stream(Again(), window_records=4), epochs=3, order="shuffled", seed=5)
        for _ in range(4):
            batch = next(train)
        state = train.state_dict()
        rest = [labels(batch) for batch in train]
        self.assertEqual(len(rest), 5)
        train.load_state_dict(state)
        self.assertEqual(labels(next(train)), rest[0])
        with self.assertRaisesRegex(millrace.Error, "seed was 2, here it is 5"):
            train.load_state_dict(state | {"seed": 2})
        self.assertEqual([labels(batch) for batch in train], rest[1:])  # this run goes on
        train.close()
        train.load_state_dict(batch.state_dict())
        self.assertEqual([labels(batch) for batch in train], rest)

    def test_refuses_a_state_if_the_stream_cannot_begin_again(self):
        train = loader(stream(images(10)))
        state = next(train).state_dict()
        with self.assertRaisesRegex(
            millrace.Error, "generator: this stream can be read only once, .* with a new dataset"
        ):
            train.load_state_dict(state)
        self.assertEqual(sum((labels(batch) for batch in train), []), list(range(4, 10)))

    def test_an_exception_ends_the_run_as_its_cause(self):
        def failing():
            yield from images(6)
            raise ValueError("out of paper")

        with self.assertRaisesRegex(
            millrace.Error, "failing: record 6 of epoch 0 cannot be read: ValueError: out of paper"
        ) as raised:
            list(loader(stream(failing(), name="failing")))
        self.assertIsInstance(raised.exception.__cause__, ValueError)

    def test_bad_records_follow_the_policy(self):
        marked = loader(stream(Torn()), bad_records="mark")
        batches = [(values(one["valid"]), labels(one)) for one in marked]
        self.assertEqual(batches, [([1, 1, 0, 1], [0, 1, 0, 3]), ([1, 1, 1, 1], [4, 5, 6, 7])])

    def test_a_generator_that_raises_bad_record_does_not_end_silently(self):
        def torn():
            yield from images(6)
            raise millrace.BadRecord("torn page")

        with self.assertRaisesRegex(millrace.Error, "a generator ends when it raises BadRecord"):
            list(loader(stream(torn()), bad_records="mark"))

    def test_is_freed_with_its_last_user(self):
        before = len(Owner.all)
        train = loader(stream(images(8)))
        next(train)
        self.assertGreater(len(Owner.all), before)
        del train
        gc.collect()
        self.assertEqual(len(Owner.all), before)

    def test_refuses_windows_of_0(self):
        with self.assertRaisesRegex(millrace.Error, "window_records is 0"):
            stream(images(8), window_records=0)

    def test_keeps_nothing_after_a_wrong_argument(self):
        before = len(Owner.all)
        for wrong in ({"window_records": "many"}, {"memory_bytes": None}, {"name": 3}):
            with self.subTest(wrong), self.assertRaises((TypeError, AttributeError)):
                stream(images(8), **wrong)
        self.assertEqual(len(Owner.all), before)

    def test_reads_a_tar_from_a_pipe(self):
        bytes_of_tar = io.BytesIO()
        with tarfile.open(fileobj=bytes_of_tar, mode="w") as tar:
            for number, record in enumerate(images(10)):
                for name, content in (("ppm", record["image"]), ("cls", b"%d" % number)):
                    member = tarfile.TarInfo(f"{number}.{name}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)

            def write():
                with open(pipe, "wb") as into:
                    into.write(bytes_of_tar.getvalue())

            train = loader(millrace.Dataset.from_tar_stream(pipe))
            writer = threading.Thread(target=write)
            writer.start()
            self.assertEqual(sum((labels(batch) for batch in train), []), list(range(10)))
            writer.join()


class OtherDatasetsTest(unittest.TestCase):
    def test_have_a_length(self):
        self.assertEqual(len(loader(Images(8))), 2)


if __name__ == "__main__":
    unittest.main()

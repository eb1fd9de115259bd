# SPDX-License-Identifier: Apache-2.0
"""Orders, and several datasets in one loader."""

import unittest
from collections import Counter

import millrace
from millrace import Order
from support import HAS_NUMPY, Images, labels, loader, needs_torch


def epoch(order, records=None, **options):
    """The labels of one epoch."""
    batches = loader(records, order=order, **options)
    return [label for batch in batches for label in labels(batch)]


class Labelled(Images):
    """Records with labels from `first` on."""

    def __init__(self, size, first):
        super().__init__(size)
        self.first = first

    def __getitem__(self, index):
        return super().__getitem__(index) | {"label": self.first + index}


class Failing(Images):
    def __getitem__(self, index):
        raise ValueError(f"no record {index}")


class OrderTest(unittest.TestCase):
    def test_equals_the_named_orders(self):
        for order, named in [
            (Order(), {"order": "shuffled"}),
            (Order.shuffled(), {"order": None}),
            (Order.sequential(), {"order": "sequential"}),
            (Order.blocks(4, 2), {"order": "blocks", "block_records": 4, "window_blocks": 2}),
            (Order.blocks(), {"order": "blocks"}),
            (Order.bucketed_by("image", group_records=4),
             {"order": "bucketed", "length_field": "image", "group_records": 4}),
        ]:
            with self.subTest(named):
                self.assertEqual(epoch(order, seed=3), epoch(seed=3, **named))
                self.assertEqual(sorted(epoch(order, seed=3)), [*range(20)])

    def test_bucketed(self):
        drawn = epoch(Order.bucketed([index % 5 for index in range(20)], group_records=4), seed=1)
        self.assertEqual(sorted(drawn), [*range(20)])
        groups = [drawn[at : at + 4] for at in range(0, 20, 4)]
        lengths = [{index % 5 for index in group} for group in groups]
        self.assertEqual({len(one) for one in lengths}, {1})
        self.assertEqual(set().union(*lengths), {*range(5)})

    def test_weighted(self):
        weights = [0.0] * 20
        weights[3], weights[7] = 1, 3
        drawn = Counter(epoch(Order.weighted(weights, 4000), batch_size=500))
        self.assertEqual(sorted(drawn), [3, 7])
        self.assertAlmostEqual(drawn[7] / 4000, 0.75, 1)
        self.assertEqual(len(epoch(Order.weighted([1] * 20))), 20)

    def test_subset_filtered_repeated(self):
        order = Order.sequential()
        self.assertEqual(epoch(order.subset([5, 3, 5])), [5, 3, 5])
        self.assertEqual(epoch(order.subset([5, 3, 8]).subset([2, 0])), [8, 5])
        self.assertEqual(epoch(order.filtered(20, lambda index: index % 6 == 1)), [1, 7, 13, 19])
        self.assertEqual(epoch(order.subset([4, 2]).repeated(2)), [4, 4, 2, 2])
        self.assertEqual(epoch(order), [*range(20)])

    @unittest.skipUnless(HAS_NUMPY, "NumPy is not installed")
    def test_takes_arrays(self):
        import numpy

        self.assertEqual(epoch(Order.sequential().subset(numpy.arange(4, 7))), [4, 5, 6])
        self.assertEqual({*epoch(Order.weighted(numpy.eye(20)[2]))}, {2})
        mask = numpy.arange(20) > 15
        for numbers in (mask, list(mask), mask[:0]):
            with self.assertRaisesRegex(millrace.Error, "indices: must be numbers, not bools"):
                Order.sequential().subset(numbers)

    @needs_torch
    def test_refuses_masks_of_torch(self):
        import torch

        self.assertEqual(epoch(Order.sequential().subset(torch.arange(4, 7))), [4, 5, 6])
        for numbers in (torch.arange(20) > 15, list(torch.arange(20) > 15)):
            with self.assertRaisesRegex(millrace.Error, "indices: must be numbers, not bools"):
                Order.sequential().subset(numbers)

    def test_refuses_as_cpp_does(self):
        order = Order.sequential()
        for make, message in [
            (lambda: Order.blocks(0), "order: block_records is 0"),
            (lambda: Order.weighted([]), "there are no weights; it takes one per record"),
            (lambda: Order.weighted([1, -1]), "weight 1 is -1; it must be a finite number"),
            (lambda: Order.weighted(["one"]), "weights: must be real number, not str"),
            (lambda: Order.mixed([(0, 1)]), "part 0 has no records, but a weight of 1"),
            (lambda: Order.bucketed([1], group_records=9, window_records=3), "less than group_rec"),
            (lambda: Order.bucketed_by("", group_records=2), "has no name"),
            (lambda: order.subset([]), "the subset is empty"),
            (lambda: order.subset([-1]), "indices: "),
            (lambda: order.subset([True, False]), "indices: must be numbers, not bools; give the"),
            (lambda: order.subset(bytes(8)), "indices: must be a list or an array, not bytes"),
            (lambda: Order.weighted(b"ab"), "weights: must be a list or an array, not bytes"),
            (lambda: Order.weighted(bytearray(8)), "must be a list or an array, not bytearray"),
            (lambda: order.filtered(3, lambda _: False), "the filter keeps none of 3 records"),
            (lambda: order.repeated(0), "repeated 0 times"),
            (lambda: order.repeated(2**64), "times is 18446744073709551616, must be"),
            (lambda: loader(order=Order.weighted([1, 2])), "20 records"),
            (lambda: loader(order=order.subset([20])), "20"),
        ]:
            with self.assertRaises(millrace.Error) as raised:
                make()
            self.assertIn(message, str(raised.exception))
            self.assertEqual(raised.exception.code, "invalid_argument")
        with self.assertRaises(ZeroDivisionError):
            order.filtered(3, lambda index: 1 // index)

    def test_weights_change_between_epochs(self):
        def only(record):
            return [float(index == record) for index in range(20)]

        order = Order.weighted(only(3))
        train = loader(order=order, epochs=3)
        next(train)
        self.assertEqual(train.set_weights(only(5)), 1)
        state = train.state_dict()
        self.assertEqual([one["epoch"] for one in state["new_weights"]], [1])
        drawn = [label for batch in train.one_epoch() for label in labels(batch)]
        self.assertEqual(train.set_weights(only(8)), 2)
        drawn += [label for batch in train for label in labels(batch)]
        self.assertEqual(drawn, [3] * 16 + [5] * 20 + [8] * 20)

        with self.assertRaisesRegex(millrace.Error, "the new weights of epoch 1"):
            train.load_state_dict(state)
        train.order = order.reweighted(1, only(5))
        train.load_state_dict(state)
        drawn = [label for batch in train for label in labels(batch)]
        self.assertEqual(drawn, [3] * 16 + [5] * 40)
        for weights, message in [
            ([1.0], "there are 1 new weights, but the order has 20"),
            ([], "there are no weights"),
            ([-1.0] * 20, "weight 0 is -1"),
        ]:
            with self.assertRaisesRegex(millrace.Error, message):
                train.set_weights(weights)
        with self.assertRaisesRegex(millrace.Error, "has no weights to change"):
            loader().set_weights(only(1))
        with self.assertRaisesRegex(millrace.Error, "has no weights to change"):
            Order().reweighted(1, [1.0])

    def test_weights_of_the_very_next_epoch(self):
        train = loader(order=Order.weighted([1.0] + [0.0] * 19), epochs=3, epoch_break=True)
        drawn = [label for batch in train.one_epoch() for label in labels(batch)]
        for record in (1, 2):
            weights = [float(index == record) for index in range(20)]
            self.assertEqual(train.set_weights(weights), record)
            drawn += [label for batch in train.one_epoch() for label in labels(batch)]
        self.assertEqual(drawn, [0] * 20 + [1] * 20 + [2] * 20)

    def test_state_names_the_order(self):
        options = {"order": Order.weighted([1, 2] * 10), "epochs": 3, "seed": 5}
        train = loader(**options)
        next(train)
        state = train.state_dict()
        expected = [labels(batch) for batch in train]
        self.assertEqual([labels(batch) for batch in loader(state=state, **options)], expected)
        with self.assertRaisesRegex(millrace.Error, "order"):
            loader(state=state, **options | {"order": Order.weighted([2, 1] * 10)})


class JoinedTest(unittest.TestCase):
    def test_records_continue_from_part_to_part(self):
        joined = millrace.concat_datasets([Labelled(5, 0), Labelled(3, 100), Labelled(2, 200)])
        self.assertEqual(len(joined), 10)
        self.assertEqual(epoch("sequential", joined), [*range(5), *range(100, 103), 200, 201])

    def test_mixed(self):
        joined = millrace.concat_datasets([Labelled(10, 0), Labelled(50, 100)])
        parts = [millrace.Source(10, 3), (50, 1)]
        drawn = epoch(Order.mixed(parts, 4000), joined, batch_size=500)
        self.assertAlmostEqual(sum(label < 100 for label in drawn) / 4000, 0.75, 2)
        self.assertEqual({*drawn}, {*range(10), *range(100, 150)})
        self.assertEqual(len(epoch(Order.mixed(parts), joined)), 60)

    def test_refuses_no_parts(self):
        with self.assertRaises(millrace.Error) as raised:
            millrace.concat_datasets([])
        self.assertEqual(raised.exception.code, "invalid_argument")

    def test_refuses_a_path_in_place_of_parts(self):
        for path in ("photos.lmdb", b"photos.lmdb"):
            message = "parts is b?'photos.lmdb', must be a list of datasets or paths"
            with self.assertRaisesRegex(millrace.Error, message):
                millrace.concat_datasets(path)

    def test_keeps_the_cause_of_a_failing_part(self):
        joined = millrace.concat_datasets([Labelled(2, 0), Failing(3)])
        with self.assertRaisesRegex(millrace.Error, "no record 0") as raised:
            epoch("sequential", joined, workers=1)
        self.assertIsInstance(raised.exception.__cause__, ValueError)


if __name__ == "__main__":
    unittest.main()

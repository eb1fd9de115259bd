# SPDX-License-Identifier: Apache-2.0
"""Orders: the sequence in which a run takes the records of its dataset."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from ctypes import c_void_p
from typing import Any, NamedTuple, Union

from . import structs
from .library import Error, Handle, new_handle, text, whole

LARGEST = 2**64 - 1
# A list, or an array or tensor of NumPy or PyTorch.
Numbers = Union[Iterable[float], Any]


def is_bool(value: Any) -> bool:
    """Returns whether this is a bool, or an array or tensor of bools."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")


def array_of(name: str, kind: str, numbers: Numbers) -> array[Any]:
    """Returns numbers as a C array. Raises `Error` for numbers that do not fit. Also raises it for
    bools, since the caller may have passed a mask by mistake."""
    if isinstance(numbers, (bytes, bytearray)):
        given = type(numbers).__name__
        raise Error("invalid_argument", f"{name}: must be a list or an array, not {given}")
    try:
        values = numbers.tolist() if hasattr(numbers, "tolist") else list(numbers)
        others = set(map(type, values)) - {int, float}
        if is_bool(numbers) or (others and any(map(is_bool, values))):
            raise TypeError("must be numbers, not bools; give the indices of a mask's true values")
        return array(kind, values)
    except (TypeError, OverflowError) as error:
        raise Error("invalid_argument", f"{name}: {error}") from None


def list_arguments(numbers: array[Any]) -> tuple[c_void_p, int]:
    address, count = numbers.buffer_info()
    return c_void_p(address), count


class Source(NamedTuple):
    """A part of a joined dataset: its number of records, and its weight in `Order.mixed`."""

    records: int
    weight: float = 1.0


class Order(Handle):
    """The order in which a run takes a dataset's records, for the option `order` of `Loader`.

    Its functions have the names, defaults and messages of C++'s `Order` (<millrace/order.h>). An
    order is immutable; any number of loaders may share it. The functions raise `Error`.
    """

    kind = "order"

    def __init__(self) -> None:
        """Makes the order that is the default, `shuffled`."""
        self.handle = new_handle("order_shuffled")

    @classmethod
    def _made(cls, function: str, *arguments: Any) -> Order:
        order = cls.__new__(cls)
        order.handle = new_handle(function, *arguments)
        return order

    @classmethod
    def shuffled(cls) -> Order:
        """Each epoch has every record once, in a new random order."""
        return cls()

    @classmethod
    def sequential(cls) -> Order:
        """Records 0, 1, 2 ..., the same in every epoch."""
        return cls._made("order_sequential")

    @classmethod
    def blocks(cls, block_records: int = 1024, window_blocks: int = 16) -> Order:
        """Near-sequential reads: records are shuffled within windows of `window_blocks` blocks of
        consecutive records."""
        return cls._made(
            "order_blocks",
            whole("block_records", block_records, 0, LARGEST),
            whole("window_blocks", window_blocks, 0, LARGEST),
        )

    @classmethod
    def bucketed(
        cls, lengths: Numbers, *, group_records: int, window_records: int = 8192
    ) -> Order:
        """Batches of records of similar length. `lengths` has one integer for each record;
        `group_records` is the global batch."""
        values = array_of("lengths", "I", lengths)
        window = whole("window_records", window_records, 0, LARGEST)
        group = whole("group_records", group_records, 0, LARGEST)
        return cls._made("order_bucketed", *list_arguments(values), window, group)

    @classmethod
    def bucketed_by(cls, field: str, *, group_records: int, window_records: int = 8192) -> Order:
        """Does the same, with the sizes of a field in bytes as lengths. Each new loader reads these
        sizes."""
        window = whole("window_records", window_records, 0, LARGEST)
        group = whole("group_records", group_records, 0, LARGEST)
        return cls._made("order_bucketed_by", text(field), window, group)

    @classmethod
    def weighted(cls, weights: Numbers, epoch_size: int = 0) -> Order:
        """Draws with replacement, each record with a probability in proportion to its weight. An
        epoch is `epoch_size` draws; 0 = as many as there are weights."""
        values = array_of("weights", "d", weights)
        size = whole("epoch_size", epoch_size, 0, LARGEST)
        return cls._made("order_weighted", *list_arguments(values), size)

    def reweighted(self, epoch: int, weights: Numbers) -> Order:
        """Returns a `weighted` order with other weights from `epoch` on. Their number must be the
        same as before."""
        values = array_of("weights", "d", weights)
        first = whole("epoch", epoch, 0, LARGEST)
        return self._made("order_reweighted", self.handle, first, *list_arguments(values))

    @classmethod
    def mixed(cls, parts: Iterable[tuple[int, float]], epoch_size: int = 0) -> Order:
        """Gives each part of a joined dataset (`concat_datasets`) its share of the samples.

        `parts` are `Source`s, or pairs of a number of records and a weight. An epoch is
        `epoch_size` positions; 0 = as many as all parts have records.
        """
        given = [
            structs.SourceStruct(whole("records", records, 0, LARGEST), weight)
            for records, weight in parts
        ]
        sources = (structs.SourceStruct * len(given))(*given)
        size = whole("epoch_size", epoch_size, 0, LARGEST)
        return cls._made("order_mixed", sources, len(given), size)

    def subset(self, indices: Numbers) -> Order:
        """Returns the same order over a list of records. A record that is listed twice comes twice.
        If this order is already a subset, the indices are positions in its list."""
        values = array_of("indices", "Q", indices)
        return self._made("order_subset", self.handle, *list_arguments(values))

    def filtered(self, records: int, keep: Callable[[int], Any]) -> Order:
        """Returns the subset of the indices below `records` for which `keep` returns true."""
        raised: list[BaseException] = []

        @structs.Keep
        def kept(_: Any, index: int) -> int:
            try:
                return bool(not raised and keep(index))
            except BaseException as error:
                raised.append(error)
                return 0

        try:
            count = whole("records", records, 0, LARGEST)
            return self._made("order_filtered", self.handle, count, kept, None)
        finally:
            if raised:
                raise raised[0] from None

    def repeated(self, times: int) -> Order:
        """Repeats each record, in succession, each time with its own random numbers."""
        return self._made("order_repeated", self.handle, whole("times", times, 0, LARGEST))

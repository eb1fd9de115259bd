# SPDX-License-Identifier: Apache-2.0
"""Batch transforms, which change a whole batch after its samples are made."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from ctypes import byref
from typing import Any

from . import structs
from .dataset import Owner, free_owner, report
from .failures import Failures
from .library import Error, Handle, new_handle, text, whole
from .transform import FORMATS, ITEM_BYTES, FieldSpec, Random


class MadeBatch(Mapping[str, memoryview]):
    """A batch on the host, to be changed: a mapping from names of fields to writable memory.

    Each field is a `memoryview` of the shape [samples, ...]; `numpy.asarray` makes an array of it
    without a copy. The bits of float16 and bfloat16 appear as uint16. `indices` has the number of
    each sample's record. `valid` is false for samples that are marked as not valid. The batch, and
    all arrays over its memory, may be used only during the call.
    """

    def __init__(self, made: structs.MadeBatchStruct) -> None:
        self.size = int(made.size)
        self.indices: list[int] = made.indices[: self.size]
        self.valid = [bool(valid) for valid in made.valid[: self.size]]
        self._fields: dict[str, Any] = {}
        self._memory: dict[str, Any] = {}
        for field in made.fields[: made.n_fields]:
            name = field.name.decode()
            self._fields[name], self._memory[name] = view(field)

    def __getitem__(self, name: str) -> memoryview:
        try:
            field: memoryview = self._fields[name]
            return field
        except KeyError:
            raise KeyError(f"{name!r}: the batch has the fields {list(self._fields)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def release(self) -> None:
        """Ends the views. Raises `BufferError` if an array over one of them is still alive."""
        for field in self._fields.values():
            field.release()
        for name, memory in self._memory.items():
            if memory() is not None:
                message = f"an array of the field {name} outlives its call; keep a copy instead"
                raise BufferError(message)


def view(field: structs.MadeField) -> tuple[Any, Any]:
    """Returns a view of the field's memory, and a weak reference that is dead after the last
    view."""
    dtype = field.dtype.decode()
    shape = list(field.shape[: field.rank])
    count = ITEM_BYTES[dtype]
    for extent in shape:
        count *= extent
    form: Any = "H" if dtype in ("float16", "bfloat16") else FORMATS[dtype]
    memory = (ctypes.c_uint8 * count).from_address(field.data)
    return memoryview(memory).cast("B").cast(form, shape), weakref.ref(memory)


class BatchTransformHandle(Handle):
    kind = "batch_transform"

    def __init__(self, handle: int) -> None:
        self.failures = Failures()
        self.handle = handle


class BatchTransform(BatchTransformHandle):
    """Changes whole batches by Python code, in place, before they are copied to the device.

    `run(batch, random)` gets a `MadeBatch`. Random numbers must come from `random`, which depends
    only on the seed and the batch's position. `fields` are added to the fields of the samples, and
    are 0 before the call. `run` is called on a worker, under the GIL; an exception ends the run.
    `stage` is the name of this stage in reports. `fingerprint` identifies the code in states; 0 =
    none.
    """

    def __init__(
        self,
        run: Callable[[MadeBatch, Random], object],
        *,
        fields: Iterable[FieldSpec] = (),
        stage: str = "batch",
        fingerprint: int = 0,
    ) -> None:
        specs = [field.struct() for field in fields]
        failures = Failures()
        owner = Owner(run, failures)
        callbacks = structs.BatchTransformCallbacks(
            user=owner.key,
            fields=(structs.FieldSpecStruct * len(specs))(*specs),
            n_fields=len(specs),
            stage=text(stage),
            fingerprint=fingerprint,
            run=run_batch,
            free_user=free_owner,
        )
        super().__init__(owner.new_handle("batch_transform_create", byref(callbacks)))
        self.failures = failures


@structs.RunBatch
def run_batch(user: int, made: Any, error: Any) -> int:
    owner = Owner.all[user]
    try:
        batch = MadeBatch(made.contents)
        owner.value(batch, Random(made.contents.random))
        batch.release()
    except BaseException as failed:
        return report(error, failed, owner, structs.TRANSFORM)
    return structs.OK


def mix_transform(
    classes: int,
    *,
    mixup: float = 0.2,
    cutmix: float = 1.0,
    cutmix_share: float = 0.5,
    p: float = 1.0,
    on: str = "worker",
) -> BatchTransformHandle:
    """Returns a batch transform for mixup and CutMix, which runs without the GIL.

    Samples need the fields "image" and "label"; batches also get the field "target", [samples,
    classes]. The parameters are those of C++'s `Mix` and of a recipe's "mix". `on` is "worker" or
    "device". Raises `Error`.
    """
    if on not in ("worker", "device"):
        raise Error("invalid_argument", f'mix: "on" is {on!r}, must be "worker" or "device"')
    mix = structs.MixStruct(
        classes=whole("classes", classes, 0, 2**31 - 1),
        on_device=on == "device",
        mixup=mixup,
        cutmix=cutmix,
        cutmix_share=cutmix_share,
        p=p,
    )
    return BatchTransformHandle(new_handle("batch_transform_mix", byref(mix)))

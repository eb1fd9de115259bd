# SPDX-License-Identifier: Apache-2.0
"""Prints the time that Python needs for a batch: to take it, and two tensors or arrays of it.

The batches are made before. Each figure is the median over single batches, since other programs
interrupt some of them. Exits with 1 if it is above 15 µs with PyTorch; NumPy's has no limit.
"""

import statistics
import sys
import time

from support import HAS_TORCH, Images, loader

BATCHES, MOST_MICROSECONDS = 500, 15
KIND = "torch" if HAS_TORCH else "numpy"

if HAS_TORCH:
    import torch  # noqa: F401: its import is not part of the time
else:
    import numpy  # noqa: F401


def taken(train):
    """Times of `next` and both arrays, each measured alone, in microseconds."""
    times, kept = [], []
    for _ in range(BATCHES):
        begin = time.perf_counter()
        batch = next(train)
        image, label = batch["image"], batch["label"]
        arrays = [getattr(image, KIND)(), getattr(label, KIND)()]
        times.append(1e6 * (time.perf_counter() - begin))
        kept.append(arrays)
    return times


train = loader(Images(BATCHES), batch_size=1, prefetch=BATCHES, epochs=None)
for _ in range(2):  # the first time notes the addresses
    time.sleep(2)  # all batches are made meanwhile
    median = statistics.median(taken(train))
print(f"time per batch: {median:.1f} µs with {KIND}")
sys.exit(HAS_TORCH and median > MOST_MICROSECONDS)

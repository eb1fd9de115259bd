# SPDX-License-Identifier: Apache-2.0
"""Settings that all peers share, and fixed crop boxes for comparing pixels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

THREADS, BATCH, SIZE = 2, 64, 224
# Epochs of peers repeat the photographs, so that few epochs end in a window.
REPEATS = 20
SCALE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
WORK = Path(os.environ.get("PEERS_WORK", "build/peers"))


def files(photos: str) -> list[str]:
    """Returns the JPEGs in the class folders of `photos`."""
    endings = {".jpg", ".jpeg"}
    return sorted(str(p) for p in Path(photos).rglob("*") if p.suffix.lower() in endings)


def forever(loader) -> Iterator[int]:
    """Repeats the epochs of a loader of (images, labels) and yields the sizes of its batches."""
    while True:
        for images, _ in loader:
            yield len(images)


def boxes(width: int, height: int) -> list[tuple[int, int, int, int]]:
    """Returns crop boxes (x, y, width, height): the whole image, a large and a small part."""
    part = (width // 7, height // 9, width * 3 // 4, height * 2 // 3)
    return [(0, 0, width, height), part, (width // 3, height // 4, width // 3, height // 4)]

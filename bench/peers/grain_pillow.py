# SPDX-License-Identifier: Apache-2.0
"""Grain with Pillow, in threads."""

import math

import common
import grain
import numpy as np
from PIL import Image


def crop(path, box):
    x, y, width, height = box
    image = Image.open(path).convert("RGB").crop((x, y, x + width, y + height))
    return np.asarray(image.resize((common.SIZE, common.SIZE), Image.Resampling.BILINEAR))


def _sample(path, random):
    columns, rows = Image.open(path).size
    width, height = columns, rows
    for _ in range(10):
        area = columns * rows * random.uniform(*common.SCALE)
        ratio = math.exp(random.uniform(*map(math.log, common.RATIO)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= columns and 0 < h <= rows:
            width, height = w, h
            break
    x, y = random.integers(columns - width + 1), random.integers(rows - height + 1)
    pixels = crop(path, (int(x), int(y), width, height))
    return pixels[:, ::-1] if random.random() < 0.5 else pixels


def batches(photos):
    dataset = grain.MapDataset.source(common.files(photos)).seed(1).shuffle().repeat()
    options = grain.ReadOptions(num_threads=common.THREADS, prefetch_buffer_size=64)
    for images in dataset.random_map(_sample).to_iter_dataset(options).batch(common.BATCH):
        yield len(images)

# SPDX-License-Identifier: Apache-2.0
"""NVIDIA DALI on the CPU: fused decode and crop, resize with antialiasing."""

import common
import numpy as np
from nvidia.dali import fn, pipeline_def, types


def _resize(images):
    size = [common.SIZE] * 2
    return fn.resize(images, size=size, interp_type=types.INTERP_LINEAR, antialias=True)


@pipeline_def
def _train(photos):
    jpegs, _ = fn.readers.file(files=common.files(photos), random_shuffle=True)
    images = fn.decoders.image_random_crop(
        jpegs,
        device="cpu",
        output_type=types.RGB,
        random_area=list(common.SCALE),
        random_aspect_ratio=list(common.RATIO),
    )
    return fn.flip(_resize(images), horizontal=fn.random.coin_flip())


@pipeline_def
def _box(path, box):
    jpegs, _ = fn.readers.file(files=[path])
    images = fn.decoders.image_slice(
        jpegs, device="cpu", output_type=types.RGB, start=list(box[:2]), shape=list(box[2:])
    )
    return _resize(images)


def batches(photos):
    pipeline = _train(
        photos, batch_size=common.BATCH, num_threads=common.THREADS, device_id=None
    )
    pipeline.build()
    while True:
        (images,) = pipeline.run()
        yield len(images)


def crop(path, box):
    pipeline = _box(path, box, batch_size=1, num_threads=1, device_id=None)
    pipeline.build()
    (images,) = pipeline.run()
    return np.array(images.at(0))

# SPDX-License-Identifier: Apache-2.0
"""SPDL: decode, crop and resize by ffmpeg's filters, in threads. Crops keep the image's ratio."""

import random

import common
import spdl.io
from spdl.pipeline import PipelineBuilder


def _decode(path, filters):
    scale = f"scale=width={common.SIZE}:height={common.SIZE}:flags=bilinear"
    packets = spdl.io.demux_image(path)
    filter_desc = f"{filters[0]},{scale}{filters[1]},format=pix_fmts=rgb24"
    return spdl.io.decode_packets(packets, filter_desc=filter_desc)


def _sample(path):
    side = random.uniform(*common.SCALE) ** 0.5
    offsets = f"(iw-ow)*{random.random():.4f}:(ih-oh)*{random.random():.4f}"
    flip = ",hflip" if random.random() < 0.5 else ""
    return _decode(path, (f"crop=iw*{side:.4f}:ih*{side:.4f}:{offsets}", flip))


def _pixels(frames):
    return spdl.io.to_numpy(spdl.io.convert_frames(frames))


def _paths(photos):
    paths = common.files(photos)
    while True:
        random.shuffle(paths)
        yield from paths


def batches(photos):
    builder = PipelineBuilder().add_source(_paths(photos))
    builder = builder.pipe(_sample, concurrency=common.THREADS).aggregate(common.BATCH)
    pipeline = builder.pipe(_pixels).add_sink(4).build(num_threads=common.THREADS)
    with pipeline.auto_stop():
        for images in pipeline.get_iterator():
            yield len(images)


def crop(path, box):
    x, y, width, height = box
    return _pixels(_decode(path, (f"crop={width}:{height}:{x}:{y}:exact=1", "")))

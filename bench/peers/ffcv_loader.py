# SPDX-License-Identifier: Apache-2.0
"""FFCV on a file that it wrote: images as JPEG, or as pixels of at most 512 a side."""

import common
import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.basics import IntDecoder
from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import RandomHorizontalFlip, Squeeze, ToTensor
from ffcv.writer import DatasetWriter
from PIL import Image


class Photos:
    def __init__(self, photos):
        self.files = common.files(photos)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return Image.open(self.files[index]).convert("RGB"), 0


def batches(photos, mode):
    path = common.WORK / f"ffcv_{mode}.beton"
    if not path.exists():
        image = RGBImageField(write_mode=mode, max_resolution=512 if mode == "raw" else None)
        unfinished = path.with_suffix(".part")
        fields = {"image": image, "label": IntField()}
        writer = DatasetWriter(str(unfinished), fields, num_workers=1)
        writer.from_indexed_dataset(Photos(photos))
        unfinished.rename(path)
    size = (common.SIZE, common.SIZE)
    images = [RandomResizedCropRGBImageDecoder(size), RandomHorizontalFlip(), ToTensor()]
    loader = Loader(
        str(path),
        batch_size=common.BATCH,
        num_workers=common.THREADS,
        order=OrderOption.RANDOM,
        indices=np.tile(np.arange(len(common.files(photos))), common.REPEATS),
        os_cache=True,
        drop_last=True,
        pipelines={"image": images, "label": [IntDecoder(), ToTensor(), Squeeze()]},
    )
    return common.forever(loader)

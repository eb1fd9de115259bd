# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader with torchvision's transforms of PIL images, in processes."""

import common
import numpy as np
import torch
from PIL import Image
from torchvision import datasets, transforms
from torchvision.transforms import functional


def repeated(dataset):
    """Yields the sizes of batches of a DataLoader over `dataset`, without an end."""
    loader = torch.utils.data.DataLoader(
        dataset,
        batch_size=common.BATCH,
        shuffle=True,
        num_workers=common.THREADS,
        persistent_workers=True,
        prefetch_factor=4,
        drop_last=True,
    )
    return common.forever(loader)


def batches(photos):
    steps = [transforms.RandomResizedCrop(common.SIZE), transforms.RandomHorizontalFlip()]
    dataset = datasets.ImageFolder(photos, transforms.Compose([*steps, transforms.PILToTensor()]))
    dataset = torch.utils.data.ConcatDataset([dataset] * common.REPEATS)
    return repeated(dataset)


def crop(path, box):
    x, y, width, height = box
    image = Image.open(path).convert("RGB")
    return np.asarray(functional.resized_crop(image, y, x, height, width, [common.SIZE] * 2))

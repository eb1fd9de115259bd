# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader with decode_jpeg and torchvision's transforms of tensors, in processes."""

import common
import torch
from torch_pil import repeated
from torchvision.io import decode_jpeg, read_file
from torchvision.transforms import v2


class Photos(torch.utils.data.Dataset):
    def __init__(self, photos):
        self.files = common.files(photos) * common.REPEATS
        self.transform = v2.Compose([v2.RandomResizedCrop(common.SIZE), v2.RandomHorizontalFlip()])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.transform(decode_jpeg(read_file(self.files[index]), mode="RGB")), 0


def batches(photos):
    return repeated(Photos(photos))


def crop(path, box):
    x, y, width, height = box
    image = decode_jpeg(read_file(path), mode="RGB")
    resized = v2.functional.resized_crop(image, y, x, height, width, [common.SIZE] * 2)
    return resized.permute(1, 2, 0).numpy()

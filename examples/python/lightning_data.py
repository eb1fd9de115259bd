# SPDX-License-Identifier: Apache-2.0
"""A Lightning `DataModule` over a dataset: `trainer.fit(model, Photographs("photos.lmdb"))`.

The model's steps get (images, labels) as tensors on the trainer's device, without a copy. Each rank
gets its own part, and a checkpoint in the middle of an epoch continues with the next batch.
"""

import lightning
import millrace


class Photographs(lightning.LightningDataModule):
    def __init__(self, dataset, recipe="train", **options):
        super().__init__()
        self.arguments = (dataset, recipe)
        self.options = {"dtype": "float32"} | options

    def train_dataloader(self):
        device = self.trainer.strategy.root_device
        device = str(device) if device.type == "cuda" else "host"
        return Epochs(millrace.Loader(*self.arguments, device=device, **self.options))

    def transfer_batch_to_device(self, batch, device, dataloader_idx):
        return batch["image"].torch(), batch["label"].torch()


class Epochs:
    """The loader as Lightning iterates over it, once for each epoch, and keeps its state."""

    def __init__(self, loader):
        self.loader = loader
        self.state_dict = loader.state_dict
        self.load_state_dict = loader.load_state_dict

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        return self.loader.one_epoch()

# SPDX-License-Identifier: Apache-2.0
"""TurboLoader on a tar of the photographs. Its batches are float32. Epochs are short."""

import itertools
import tarfile

import common
import turboloader


def batches(photos):
    path = common.WORK / "turboloader.tar"
    if not path.exists():
        unfinished = path.with_suffix(".part")
        with tarfile.open(unfinished, "w") as tar:
            for number, file in enumerate(common.files(photos)):
                tar.add(file, f"{number:06d}.jpg")
        unfinished.rename(path)
    loader = turboloader.DataLoader(
        str(path),
        batch_size=common.BATCH,
        num_workers=common.THREADS,
        image_size=common.SIZE,
        output_format="numpy",
        shuffle=True,
        train_aug=True,
    )
    for epoch in itertools.count():
        loader.set_epoch(epoch)
        for batch in loader:
            yield len(batch[0] if isinstance(batch, (tuple, list)) else batch)

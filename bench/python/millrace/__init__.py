# SPDX-License-Identifier: Apache-2.0
"""millrace keeps a training GPU supplied with batches.

    import millrace
    train = millrace.Loader("photos.lmdb", recipe="train", size=224, batch_size=256, epochs=90)
    for batch in train:
        step(batch["image"].torch(), batch["label"].torch())
    print(train.report())

Worker threads read, decode and augment records, without the GIL. Fields of batches are arrays over
millrace's memory, without a copy.
"""

from .batch import Batch, Field
from .batch_transform import BatchTransform, MadeBatch, mix_transform
from .dataset import Dataset, Records, concat_datasets
from .library import LIBRARY, BadRecord, Error
from .loader import Loader, Report
from .measure import bench, diagnose, tune
from .options import Conversion, Options, ranks
from .order import Order, Source
from .transform import FieldSpec, ImageTransform, Random, RawTransform, Record, Transform, recipe
from .workload import Runtime, Workload

__version__: str = LIBRARY.millrace_version().decode()

__all__ = [
    "BadRecord",
    "Batch",
    "BatchTransform",
    "Conversion",
    "Dataset",
    "Error",
    "Field",
    "FieldSpec",
    "ImageTransform",
    "Loader",
    "MadeBatch",
    "Options",
    "Order",
    "Random",
    "RawTransform",
    "Record",
    "Records",
    "Report",
    "Runtime",
    "Source",
    "Transform",
    "Workload",
    "bench",
    "concat_datasets",
    "diagnose",
    "mix_transform",
    "ranks",
    "recipe",
    "tune",
]

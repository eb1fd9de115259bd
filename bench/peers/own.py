# SPDX-License-Identifier: Apache-2.0
"""millrace, on datasets that its command packed: without an index, with one, of coefficients."""

import os
import subprocess
import sys
from pathlib import Path

import common
import millrace

PACK = {
    "first": ["--index", "none"],
    "later": ["--index", "none"],
    "index": [],
    "coefficients": ["--store", "coefficients"],
}


def _pack(source, name, options):
    path = common.WORK / f"{name}.lmdb"
    if not path.exists():
        installed = Path(sys.executable).with_name("millrace")
        command = os.environ.get("MILLRACE_COMMAND", str(installed))
        subprocess.run([command, "pack", source, path, *options], check=True, capture_output=True)
    return str(path)


def batches(photos, row):
    path = _pack(photos, "millrace_" + row, PACK[row])
    options = {"index_bytes": 0} if row == "first" else {}
    loader = millrace.Loader(
        path,
        size=common.SIZE,
        batch_size=common.BATCH,
        workers=common.THREADS,
        cache_bytes=0,
        **options,
    )
    for batch in loader:
        yield len(batch["image"].numpy())


def crop(path, box, row):
    folder = common.WORK / f"one_{row}" / Path(path).stem
    (folder / "photo").mkdir(parents=True, exist_ok=True)
    link = folder / "photo" / Path(path).name
    if not link.exists():
        link.write_bytes(Path(path).read_bytes())
    dataset = _pack(folder, f"one_{row}/{Path(path).stem}", PACK[row])
    recipe = {
        "output": [common.SIZE] * 2,
        "ops": [{"op": "resized_crop", "box": list(box)}],
    }
    loader = millrace.Loader(dataset, recipe, batch_size=1, workers=1, epochs=2)
    return [batch["image"].numpy().copy() for batch in loader][-1][0]

# SPDX-License-Identifier: Apache-2.0
"""Measures one peer in a process of its own, and prints the result as a line of JSON.

    window.py rate MODULE ARGUMENTS PHOTOS SECONDS
    window.py pixels MODULE ARGUMENTS PHOTOS

ARGUMENTS is a JSON list for the module's functions `batches` and `crop`.
"""

import importlib
import json
import os
import sys
import time

import common


def processes():
    """Returns the ids of this process and its descendants, with their CPU ticks."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                values = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        found[int(name)] = (int(values[1]), sum(map(int, values[11:15])))
    own, grown = {os.getpid()}, True
    while grown:
        children = {pid for pid, (parent, _) in found.items() if parent in own} - own
        own, grown = own | children, bool(children)
    return {pid: found[pid][1] for pid in own if pid in found}


def cpu_seconds():
    return sum(processes().values()) / os.sysconf("SC_CLK_TCK")


def pss_mb():
    kilobytes = 0
    for pid in processes():
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                kilobytes += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:
            continue
    return kilobytes / 1024


def rate(batches, seconds):
    """Counts images after a warm-up, which lasts as long as the window after the first batch."""
    next(batches)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        next(batches)
    images, cpu, begin = 0, cpu_seconds(), time.perf_counter()
    while time.perf_counter() < begin + seconds:
        images += next(batches)
    elapsed = time.perf_counter() - begin
    cpu = cpu_seconds() - cpu
    return {"rate": images / elapsed, "cpu": cpu / images, "pss": pss_mb()}


def pixels(crop, photos):
    """Compares crops of ten photographs with Pillow's."""
    import numpy as np
    from PIL import Image

    size = (common.SIZE, common.SIZE)
    paths = common.files(photos)
    largest, total, count = 0, 0.0, 0
    for path in paths[:: max(1, len(paths) // 10)][:10]:
        image = Image.open(path).convert("RGB")
        for x, y, width, height in common.boxes(*image.size):
            part = image.crop((x, y, x + width, y + height))
            expected = np.asarray(part.resize(size, Image.Resampling.BILINEAR)).astype(int)
            found = np.asarray(crop(path, (x, y, width, height))).astype(int)
            difference = np.abs(found.reshape(expected.shape) - expected)
            largest = max(largest, int(difference.max()))
            total, count = total + float(difference.mean()), count + 1
    return {"largest": largest, "mean": total / count}


def main(kind, module, arguments, photos, seconds="2"):
    peer, arguments = importlib.import_module(module), json.loads(arguments)
    if kind == "rate":
        result = rate(peer.batches(photos, *arguments), float(seconds))
    elif hasattr(peer, "crop"):
        result = pixels(lambda path, box: peer.crop(path, box, *arguments), photos)
    else:
        result = {}
    print(json.dumps(result), flush=True)
    os._exit(0)  # workers of some peers do not end by themselves


if __name__ == "__main__":
    main(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""Runs windows of each peer between windows of libjpeg-turbo, and prints the table.

    table.py PHOTOS WORK ROUNDS SECONDS
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

import common

HERE = Path(__file__).parent


class Peer(NamedTuple):
    name: str
    venv: str
    module: str
    arguments: tuple = ()
    remark: str = ""


ALIASED = "no antialiasing"
PEERS = [
    Peer("millrace, coefficients", "millrace", "own", ("coefficients",)),
    Peer("millrace, stored index", "millrace", "own", ("index",)),
    Peer("millrace, later epochs", "millrace", "own", ("later",)),
    Peer("millrace, first epoch", "millrace", "own", ("first",)),
    Peer("FFCV, raw", "ffcv", "ffcv_loader", ("raw",), "stored at 512 px at most"),
    Peer("FFCV, JPEG", "ffcv", "ffcv_loader", ("jpg",)),
    Peer("tf.data", "tensorflow", "tf_data", (False,), ALIASED),
    Peer("tf.data, antialias", "tensorflow", "tf_data", (True,)),
    Peer("mlx-data", "mlx-data", "mlx_data"),
    Peer("TurboLoader", "turboloader", "turbo", (), "float32"),
    Peer("DALI CPU", "dali", "dali"),
    Peer("torchvision, tensors", "torch", "torch_tensors"),
    Peer("torchvision, PIL", "torch", "torch_pil"),
    Peer("Grain + Pillow", "grain", "grain_pillow"),
    Peer("SPDL", "spdl", "spdl_ffmpeg"),
]
REFERENCE = Peer("T", "millrace", "libjpeg_turbo")


def run(work, peer, kind, *arguments):
    """Returns the result of window.py, or the last line of its errors as text."""
    python = str(work / peer.venv / "bin" / "python")
    command = [python, "-B", str(HERE / "window.py"), kind, peer.module]
    command += [json.dumps(peer.arguments), *arguments]
    environment = os.environ | {"PEERS_WORK": str(work / "made"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    if peer.module != "own":
        environment.pop("PYTHONPATH", None)
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
    except subprocess.TimeoutExpired:
        return "no result in 300 s"
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines:
        return json.loads(lines[-1])
    return (done.stderr.strip().splitlines() or ["no result"])[-1]


def skipped(work, peer):
    """Returns the reason why the peer is not installed, or None."""
    reason = work / f"{peer.venv}.skipped"
    return reason.read_text().strip() if reason.exists() else None


def difference(result):
    if isinstance(result, str):
        return result
    if not result:
        return "no fixed box"
    if result["largest"] == 0:
        return "equal"
    return f"{result['largest']}, {result['mean']:.2f}"


def row(peer, windows, pixels):
    """Returns the peer's line; `windows` is a list of (T before, window, T after)."""
    rates = [own["rate"] * 2 / (a["rate"] + b["rate"]) for a, own, b in windows]
    cpus = [own["cpu"] * 2 / (a["cpu"] + b["cpu"]) for a, own, b in windows]
    pss = median(own["pss"] for _, own, _ in windows)
    name = f"{peer.name} ({peer.remark})" if peer.remark else peer.name
    beside = f"{median(rates):.2f} ({min(rates):.2f} to {max(rates):.2f})"
    return f"| {name} | {beside} | {median(cpus):.2f} | {pss:.0f} | {difference(pixels)} |"


def main(photos, work, rounds, seconds):
    work = Path(work).resolve()
    if not common.files(photos):
        sys.exit(f"{photos}: found no JPEGs")
    # Files that peers made of other photographs.
    shutil.rmtree(work / "made", ignore_errors=True)
    (work / "made").mkdir()
    reasons = {peer: skipped(work, peer) for peer in PEERS}
    windows, pixels = {}, {}
    for peer in [peer for peer in PEERS if reasons[peer] is None]:
        pixels[peer] = run(work, peer, "pixels", photos)
        windows[peer] = []
        # The first window makes the peer's files, and compiles code.
        first = run(work, peer, "rate", photos, "0.1")
        if isinstance(first, str):
            reasons[peer] = first
    before = run(work, REFERENCE, "rate", photos, seconds)
    if isinstance(before, str):
        sys.exit(f"libjpeg-turbo: {before}")
    for _ in range(int(rounds)):
        for peer in [peer for peer in PEERS if reasons[peer] is None]:
            result = run(work, peer, "rate", photos, seconds)
            after = run(work, REFERENCE, "rate", photos, seconds)
            if isinstance(after, str):
                sys.exit(f"libjpeg-turbo: {after}")
            if isinstance(result, str):
                reasons[peer] = result
            else:
                windows[peer].append((before, result, after))
            before = after
    print("| peer | rate / T, median (range) | CPU / T | MB | pixels |")
    print("|---|---|---|---|---|")
    for peer in PEERS:
        if reasons[peer] is None:
            print(row(peer, windows[peer], pixels[peer]))
        else:
            print(f"| {peer.name} | skipped: {reasons[peer]} | | | |")


if __name__ == "__main__":
    main(*sys.argv[1:])

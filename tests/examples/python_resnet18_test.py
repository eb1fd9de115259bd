#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python_resnet18_test.py SCRIPT LIBRARY PHOTOS DATASET: ResNet-18 fed by millrace and by
torchvision, for a few steps on the CPU. Ends with 77 where PyTorch or torchvision is missing."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

script, library, photos, dataset = sys.argv[1:]
SMALL = "--size 32 --batch-size 8 --seconds 0.1 --warm-up 0 --workers 1".split()


def run(dataset):
    """The exit code, and the line of each feed."""
    with tempfile.TemporaryDirectory() as folder:
        rates = Path(folder) / "rates.json"
        command = ["/usr/bin/python3", script, photos, dataset, "--library", library]
        command += ["--json", rates, *SMALL]
        ended = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        if ended.returncode == 77:
            print(ended.stderr)
            sys.exit(77)
        return ended.returncode, [json.loads(line) for line in rates.read_text().splitlines()]


code, lines = run(dataset)
assert code == 0, lines
assert [line["feed"] for line in lines] == ["synthetic", "millrace", "torchvision"], lines
for line in lines:
    assert line["program"] == "resnet18.py" and line["device"] == "cpu", line
    assert line["images"] >= 8 and line["images_per_second"] > 0, line
    assert line["idle"] is None, line
    assert isinstance(line["verdict"], str) == (line["feed"] == "millrace"), line

# A feed that cannot run says so in its line, and the others are measured.
code, lines = run(dataset + ".nowhere")
assert code == 1, lines
assert all("nowhere" in line["failed"] for line in lines[:2]), lines
assert ["failed" in line for line in lines] == [True, True, False], lines

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image_folder_oracle.py FOLDER OUT: the samples of torchvision's ImageFolder, "path,label" each.

The line "refused" stands for a folder that it refuses. Without torchvision it says so and exits
with 77.
"""

import sys

try:
    from torchvision.datasets import ImageFolder
except ImportError as error:
    print(f"torchvision cannot be imported: {error}")
    sys.exit(77)

folder, out = sys.argv[1:]
with open(out, "w", encoding="utf-8") as lines:
    try:
        dataset = ImageFolder(folder)
        lines.write(",".join(dataset.classes) + "\n")
        for path, label in dataset.samples:
            lines.write(f"{path[len(folder) + 1:]},{label}\n")
    except (FileNotFoundError, RuntimeError):
        lines.write("refused\n")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image_folder_oracle.py FOLDER OUT: the samples of torchvision's ImageFolder, "path,label" each.

The line "refused" stands for a folder that it refuses. Without torchvision it says so and exits
with 77.
"""

import os
import sys

try:
    from torchvision.datasets import ImageFolder
except ImportError as error:
    print(f"torchvision cannot be imported: {error}")
    sys.exit(77)


class VisibleFolder(ImageFolder):
    """millrace's only difference: hidden folders do not count."""

    def find_classes(self, directory):
        classes, _ = super().find_classes(directory)
        classes = [name for name in classes if not name.startswith(".")]
        return classes, {name: label for label, name in enumerate(classes)}


folder, out = sys.argv[1:]
with open(out, "w", encoding="utf-8") as lines:
    try:
        dataset = VisibleFolder(folder)
        lines.write(",".join(dataset.classes) + "\n")
        for path, label in dataset.samples:
            if "/." in os.path.dirname(path[len(folder) :]):
                continue
            lines.write(f"{path[len(folder) + 1:]},{label}\n")
    except (FileNotFoundError, RuntimeError):
        lines.write("refused\n")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""live_exif_transpose.py FILE ...: upright files by this machine's Pillow.

Prints width, height and the SHA-256 of the RGB rows, a line for each file. Exits with 77 without
Pillow.
"""

import hashlib
import sys

try:
    from PIL import Image, ImageOps
except ImportError:
    sys.exit(77)

for path in sys.argv[1:]:
    image = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
    print(image.width, image.height, hashlib.sha256(image.tobytes()).hexdigest())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""live_pillow.py OUTPUT CASES: random pictures resized by this machine's Pillow.

Prints Pillow's version and writes for each case: width, height, new width, new height, number
of the filter (int32), left, top, right, bottom (float32), the picture's RGB rows and the resized
ones. Exits with 77 without Pillow.
"""

import random
import struct
import sys

try:
    import PIL
    from PIL import Image
except ImportError:
    sys.exit(77)

FILTERS = ["BILINEAR", "BICUBIC", "BOX", "HAMMING", "LANCZOS", "NEAREST"]
draw = random.Random(20261122)


def side():
    return draw.choice([1, 2, 3, draw.randint(1, 20), draw.randint(1, 90), draw.randint(60, 260)])


def picture(width, height):
    """Noise, or noise in black and white, which filters with negative weights overshoot."""
    noise = draw.randbytes(3 * width * height)
    if draw.random() < 0.3:
        noise = bytes(255 if value & 1 else 0 for value in noise)
    return Image.frombytes("RGB", (width, height), noise)


def box(width, height):
    """The whole, an integer crop's place, or edges between pixels."""
    kind = draw.randrange(3)
    if kind == 0:
        return (0, 0, width, height)
    edges = []
    for length in (width, height):
        if kind == 1:
            low = draw.randrange(length)
            edges.append((low, draw.randint(low + 1, length)))
        else:
            low = draw.uniform(0, length * 0.6)
            edges.append((low, min(length, low + draw.uniform(0.3, length))))
    return (edges[0][0], edges[1][0], edges[0][1], edges[1][1])


def single(value):
    """Returns the value rounded to float32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


with open(sys.argv[1], "wb") as output:
    for case in range(int(sys.argv[2])):
        number = case % len(FILTERS)
        width, height, new_width, new_height = side(), side(), side(), side()
        image = picture(width, height)
        part = tuple(single(edge) for edge in box(width, height))
        made = image.resize((new_width, new_height),
                            getattr(getattr(Image, "Resampling", Image), FILTERS[number]), box=part)
        output.write(struct.pack("<5i4f", width, height, new_width, new_height, number, *part))
        output.write(image.tobytes())
        output.write(made.tobytes())
print(PIL.__version__)

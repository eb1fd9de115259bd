#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""live_padding.py OUTPUT CASES: images padded, cropped and flipped by this machine's torchvision.

Writes for each case these int32 numbers: the bytes of a recipe and of a JPEG; width and height of
the resized and padded image; whether a random crop of it is flipped left to right, and top to
bottom. Then it writes the recipe as JSON, the JPEG, and the image's RGB rows. If the recipe crops
the centre, the image is the result. If it makes five or ten crops, the image is these crops,
flipped, one below the other. Exits with 77 without torchvision.
"""

import io
import json
import random
import struct
import sys

try:
    import PIL
    from PIL import Image
    from torchvision.transforms import InterpolationMode, functional
except ImportError:
    sys.exit(77)

MODES = ["constant", "edge", "reflect", "symmetric"]
FILTERS = ["bilinear", "bicubic", "box", "hamming", "lanczos", "nearest"]
LIKE = "pillow-13" if int(PIL.__version__.split(".")[0]) >= 13 else "pillow-12"
draw = random.Random(20261124)


def padded(image, operation, padding):
    if operation["padding_mode"] == "constant":
        fill = tuple(operation["fill"])
        return functional.pad(image, padding, fill, "constant")
    return functional.pad(image, padding, 0, operation["padding_mode"])


def border():
    return {"fill": [draw.randrange(256) for _ in range(3)], "padding_mode": draw.choice(MODES)}


def widths(image):
    """Returns widths of a border that all versions of NumPy reflect in the same way."""
    most = [max(1, image.width - 1), max(1, image.height - 1)] * 2
    kind = draw.randrange(4)
    if kind == 0:
        return [draw.randint(0, min(most))] * 4
    if kind == 1:
        return [draw.randint(0, 3 * most[side % 2]) for side in range(2)] * 2
    return [draw.randint(0, side) if draw.random() < 0.8 else 0 for side in most]


with open(sys.argv[1], "wb") as output:
    for case in range(int(sys.argv[2])):
        views = []
        side = lambda: draw.choice([1, 2, draw.randint(3, 20), draw.randint(20, 70)])
        width, height = side(), side()
        file = io.BytesIO()
        Image.frombytes("RGB", (width, height), draw.randbytes(3 * width * height)).save(
            file, "JPEG", quality=95)
        image = Image.open(file).convert("RGB")
        operations = []
        if draw.random() < 0.5:
            size = [side(), side()] if draw.random() < 0.7 else side()
            shape = size[::-1] if isinstance(size, list) else size
            name = draw.choice(FILTERS)
            operations.append({"op": "resize", "size": size, "interpolation": name})
            image = functional.resize(image, shape, InterpolationMode[name.upper()])
            if max(image.size) > 300:
                operations.pop()
                image = Image.open(file).convert("RGB")
        for _ in range(draw.choice([0, 1, 1, 2])):
            padding = widths(image)
            operations.append({"op": "pad", "padding": padding, **border()})
            if padding[:2] == padding[2:] and draw.random() < 0.5:
                operations[-1]["padding"] = padding[:2]
            if len(set(padding)) == 1:
                operations[-1]["padding"] = padding[0]
            image = padded(image, operations[-1], padding)
        if case % 3 == 0:
            size = [draw.randint(1, image.width), draw.randint(1, image.height)]
            if draw.random() < 0.5:
                operations.append({"op": "five_crop"})
                views = functional.five_crop(image, size[::-1])
            else:
                vertical = draw.random() < 0.5
                operations.append({"op": "ten_crop", "vertical_flip": vertical})
                views = functional.ten_crop(image, size[::-1], vertical)
        elif draw.random() < 0.3:
            operations.append({"op": "center_crop"})
            size = [draw.randint(1, 2 * image.width), draw.randint(1, 2 * image.height)]
            image = functional.center_crop(image, size[::-1])
        else:
            crop = {"op": "random_crop", **border()}
            operations.append(crop)
            if draw.random() < 0.6:
                crop["padding"] = widths(image)
                image = padded(image, crop, crop["padding"])
            size = [draw.randint(1, image.width), draw.randint(1, image.height)]
            if draw.random() < 0.4:
                crop["pad_if_needed"] = True
                size = [draw.randint(1, 2 * image.width), draw.randint(1, 2 * image.height)]
                if image.width < size[0]:
                    image = padded(image, crop, [size[0] - image.width, 0])
                if image.height < size[1]:
                    image = padded(image, crop, [0, size[1] - image.height])
        flips = [draw.randrange(2), draw.randrange(2)]
        for flip, name in zip(flips, ("random_horizontal_flip", "random_vertical_flip")):
            if flip or draw.random() < 0.5:
                operations.append({"op": name, "p": flip})
        if views:
            image = Image.new("RGB", (size[0], size[1] * len(views)))
            for number, view in enumerate(views):
                view = functional.hflip(view) if flips[0] else view
                view = functional.vflip(view) if flips[1] else view
                image.paste(view, (0, size[1] * number))
        recipe = json.dumps({"output": size, "like": LIKE, "ops": operations}).encode()
        jpeg = file.getvalue()
        output.write(struct.pack("<6i", len(recipe), len(jpeg), image.width, image.height, *flips))
        output.write(recipe + jpeg + image.tobytes())

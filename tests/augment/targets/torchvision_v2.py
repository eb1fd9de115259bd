#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Masks, boxes and keypoints moved by torchvision's transforms.v2.

Prints a JSON list of COUNT cases, drawn with SEED, one case a line: the image, the steps, and the
result. torchvision_v2.txt is the output for COUNT 120 and SEED 1. Boxes and keypoints use the
kernels for tensors. So do masks, except in a warp: there a mask is warped by Pillow with
`nearest`, as images are. Exits with 77 if torchvision.transforms.v2 is missing or lacks keypoints.

    torchvision_v2.py COUNT SEED
"""

import json
import random
import sys
import zlib

try:
    import numpy
    import torch
    import torchvision
    from PIL import Image
    from torchvision import tv_tensors
    from torchvision.transforms.v2 import functional

    KeyPoints = tv_tensors.KeyPoints
except (ImportError, AttributeError) as error:
    print(f"torchvision.transforms.v2 with keypoints cannot be imported: {error}", file=sys.stderr)
    sys.exit(77)


def made_mask(width, height, seed):
    """Returns the same mask as the function of the C++ test."""
    y, x = numpy.mgrid[0:height, 0:width]
    return ((x * 7 + y * 13 + x * y * 3 + seed * 101) % 251).astype(numpy.uint8)


def draw_steps(draw, width, height):
    """Steps that a recipe can have, and the size that they make."""
    steps = []
    if draw.random() < 0.4:
        left, top = draw.randrange(width), draw.randrange(height)
        box = [left, top, draw.randint(1, width - left), draw.randint(1, height - top)]
        output = [draw.randint(1, 60), draw.randint(1, 60)] if draw.random() < 0.8 else box[2:]
        steps.append(["resized_crop", *box, *output])
    else:
        size = [width, height]
        if draw.random() < 0.7:
            size = [draw.randint(2, 80), draw.randint(2, 80)]
            steps.append(["resize", *size])
        if draw.random() < 0.5:
            padding = [draw.randrange(12) for _ in range(4)]
            steps.append(["pad", *padding])
            size = [size[0] + padding[0] + padding[2], size[1] + padding[1] + padding[3]]
        output = [draw.randint(1, size[0]), draw.randint(1, size[1])]
        steps.append(["center_crop", *output])
    for flip in "horizontal_flip", "vertical_flip":
        if draw.random() < 0.4:
            steps.append([flip])
    if draw.random() < 0.5:
        kind = draw.choice(["affine", "rotate", "perspective"])
        if kind == "affine":
            shear = [draw.uniform(-30, 30), draw.uniform(-30, 30)]
            steps.append([kind, draw.uniform(-180, 180), draw.uniform(0.5, 2), *shear])
        elif kind == "rotate":
            steps.append([kind, draw.choice([90, 180, 270, draw.uniform(-180, 180)])])
        elif min(output) > 8:
            w, h = output[0] - 1, output[1] - 1
            start = [[0, 0], [w, 0], [w, h], [0, h]]
            end = [
                [x + (draw.randint(0, w // 4) if x == 0 else -draw.randint(0, w // 4)),
                 y + (draw.randint(0, h // 4) if y == 0 else -draw.randint(0, h // 4))]
                for x, y in start
            ]
            steps.append([kind, *(number for corner in end for number in corner)])
    return steps, output


def by_pillow(mask, call):
    """Returns the result of `call` on a mask as an image."""
    image = call(Image.fromarray(mask.numpy()))
    return tv_tensors.Mask(torch.from_numpy(numpy.asarray(image).copy()))


def apply(step, mask, boxes, points):
    name, *numbers = step
    if name == "resized_crop":
        left, top, width, height, to_width, to_height = numbers

        def call(what):
            return functional.resized_crop(what, top, left, height, width, [to_height, to_width])

    elif name == "resize":

        def call(what):
            return functional.resize(what, [numbers[1], numbers[0]])

    elif name == "pad":

        def call(what):
            return functional.pad(what, numbers)

    elif name == "center_crop":

        def call(what):
            return functional.center_crop(what, [numbers[1], numbers[0]])

    elif name in ("horizontal_flip", "vertical_flip"):
        call = getattr(functional, name)
    elif name == "affine":
        angle, scale, *shear = numbers

        def call(what):
            return functional.affine(what, angle, [0, 0], scale, shear)

        return by_pillow(mask, call), call(boxes), call(points)
    elif name == "rotate":

        def call(what):
            return functional.rotate(what, numbers[0])

        return by_pillow(mask, call), call(boxes), call(points)
    else:
        height, width = boxes.canvas_size
        w, h = width - 1, height - 1
        start = [[0, 0], [w, 0], [w, h], [0, h]]
        end = [numbers[n : n + 2] for n in range(0, 8, 2)]

        def call(what):
            # Only images have a filter; masks and boxes do not.
            image = isinstance(what, Image.Image)
            options = {"interpolation": functional.InterpolationMode.NEAREST} if image else {}
            return functional.perspective(what, start, end, **options)

        return by_pillow(mask, call), call(boxes), call(points)
    return call(mask), call(boxes), call(points)


def short(numbers):
    """Returns the numbers with the fewest decimals that identify their float32."""
    if isinstance(numbers, list):
        return [short(one) for one in numbers]
    return float(str(numpy.float32(numbers)))


def make_case(draw):
    width, height = draw.randint(1, 70), draw.randint(1, 70)
    seed = draw.randrange(251)
    steps, output = draw_steps(draw, width, height)

    def coordinates(count):
        found = [draw.uniform(0, width) if n % 2 == 0 else draw.uniform(0, height)
                 for n in range(count)]
        return [round(number * 8) / 8 for number in found]

    corners = [coordinates(4) for _ in range(draw.randint(1, 4))]
    boxes_in = [[min(a, c), min(b, d), max(a, c), max(b, d)] for a, b, c, d in corners]
    points_in = [coordinates(2) for _ in range(draw.randint(1, 3))]
    canvas = (height, width)
    mask = tv_tensors.Mask(torch.from_numpy(made_mask(width, height, seed)))
    boxes = tv_tensors.BoundingBoxes(
        torch.tensor(boxes_in, dtype=torch.float32), format="XYXY", canvas_size=canvas
    )
    points = KeyPoints(torch.tensor(points_in, dtype=torch.float32), canvas_size=canvas)
    for step in steps:
        mask, boxes, points = apply(step, mask, boxes, points)
    kept, valid = functional.sanitize_bounding_boxes(boxes)
    return {
        "size": [width, height],
        "seed": seed,
        "steps": steps,
        "output": output,
        "boxes": boxes_in,
        "points": points_in,
        "made_mask": zlib.crc32(mask.numpy().tobytes()),
        "kept": torch.nonzero(valid).flatten().tolist(),
        "made_boxes": short(kept.tolist()),
        "made_points": short(points.tolist()),
    }


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    draw = random.Random(seed)
    print(f"torchvision {torchvision.__version__}", file=sys.stderr)
    lines = [json.dumps(make_case(draw), separators=(",", ":")) for _ in range(count)]
    print("[" + ",\n".join(lines) + "]")


if __name__ == "__main__":
    main()

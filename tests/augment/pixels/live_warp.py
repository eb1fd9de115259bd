#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""live_warp.py OUTPUT CASES PHOTOGRAPHS: pictures warped by this machine's Pillow and torchvision.

Writes for each case: width, height, kind, filter, fill's red, green and blue, 0 (int32), ten
numbers (float64), the picture's RGB rows and the warped ones. The kinds are those of KINDS below.
Pictures are noise and cuts of some photographs of the folder PHOTOGRAPHS, if there is one. Cases of
torchvision are left out without torchvision, and so are those that crash this Pillow. Exits with
77 without Pillow.
"""

import math
import os
import random
import struct
import sys
from pathlib import Path

try:
    from PIL import Image
except ImportError:
    sys.exit(77)
try:
    import torch
    import torchvision.transforms.functional as functional
    from torchvision.transforms import InterpolationMode
except ImportError:
    functional = None

KINDS = ["affine_map", "perspective_map", "rotate", "affine", "perspective"]
FILTERS = ["BILINEAR", "BICUBIC", "NEAREST"]
draw = random.Random(20261123)
photographs = [Image.open(path).convert("RGB")
               for path in sorted(Path(sys.argv[3]).rglob("*.jpg"))[:8]]


def side():
    return draw.choice([1, 2, 3, draw.randint(1, 20), draw.randint(20, 90), draw.randint(60, 130)])


def picture(width, height):
    if photographs and draw.random() < 0.5:
        photograph = draw.choice(photographs)
        left = draw.randrange(max(1, photograph.width - width))
        top = draw.randrange(max(1, photograph.height - height))
        return photograph.crop((left, top, left + width, top + height))
    noise = draw.randbytes(3 * width * height)
    if draw.random() < 0.3:
        noise = bytes(255 if value & 1 else 0 for value in noise)
    return Image.frombytes("RGB", (width, height), noise)


def affine_map(width, height):
    """Returns a random map, a scaling, a move by whole or half pixels, or a degenerate map."""
    way = draw.randrange(7)
    moves = [draw.uniform(-width, width), draw.uniform(-height, height)]
    if way == 0:
        return [1, 0, float(draw.randint(-9, 9)), 0, 1, draw.randint(-9, 9) / 2]
    if way == 1:
        return [draw.uniform(-2, 2), 0, moves[0], 0, draw.choice([0, 0.37, 1, -1]), moves[1]]
    if way == 2:
        huge = 10 ** draw.uniform(2, 12)
        return [draw.uniform(-huge, huge), 0.5, moves[0], draw.uniform(-1, 1), huge, -huge]
    if way == 3:
        return draw.choice([[0, 0, 0, 0, 0, 0], [0, 0, width / 2, 1, 1, 0], [0, 1, 0, 1, 0, 0],
                            [0, 1, 0, 1, 0, -0.5], [math.nan, 1, 0, 0, 1, 0],
                            [math.inf, 1, 0, 1, 1, 0], [1e-9, 1e-7, 0, 1e-8, 1, 0],
                            [1, 0.5, 32767 - width, 1, 1, 0]])
    spread = draw.choice([0.1, 1, 3])
    return [draw.gauss(1, spread), draw.gauss(0, spread), moves[0],
            draw.gauss(0, spread), draw.gauss(1, spread), moves[1]]


def perspective_map(width, height):
    bend = draw.choice([0, 1e-3, 1e-2, 1, math.nan]) if draw.random() < 0.9 else -2
    slopes = [draw.uniform(-1, 1) * bend for _ in range(2)] if bend != -2 else [-2.0, 0.0]
    return affine_map(width, height) + slopes


def lives_through(make):
    """Returns whether `make` does not crash Pillow: 11.1 crashes on some maps to far away."""
    child = os.fork()
    if child == 0:
        make()
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def exact_coefficients(starts, ends):
    """Returns the coefficients as torchvision since 0.18 solves for them."""
    rows = []
    for end, start in zip(ends, starts):
        rows.append([end[0], end[1], 1, 0, 0, 0, -start[0] * end[0], -start[0] * end[1]])
        rows.append([0, 0, 0, end[0], end[1], 1, -start[1] * end[0], -start[1] * end[1]])
    matrix = torch.tensor(rows, dtype=torch.float64)
    wanted = torch.tensor(starts, dtype=torch.float64).view(8)
    return torch.linalg.lstsq(matrix, wanted, driver="gels").solution.to(torch.float32).tolist()


if functional:
    functional._get_perspective_coeffs = exact_coefficients

left_out = 0
with open(sys.argv[1], "wb") as output:
    for case in range(int(sys.argv[2])):
        kind = KINDS[case % len(KINDS)]
        if kind in ("affine", "perspective") and functional is None:
            continue
        number = case // len(KINDS) % len(FILTERS)
        width, height = side(), side()
        if draw.random() < 0.2:
            height = width
        image = picture(width, height)
        fill = tuple(draw.choice([0, 255, draw.randrange(256)]) for _ in range(3))
        name = FILTERS[number]
        sample = getattr(getattr(Image, "Resampling", Image), name)
        if kind in ("affine_map", "perspective_map"):
            affine = kind == "affine_map"
            values = (affine_map if affine else perspective_map)(width, height)

            def warp():
                method = Image.AFFINE if affine else Image.PERSPECTIVE
                return image.transform(image.size, method, values, sample, fillcolor=fill)

            tame = all(abs(value) < 1e6 for value in values)
            if not tame and not lives_through(warp):
                left_out += 1
                continue
            made = warp()
        elif kind == "rotate":
            values = [draw.choice([draw.uniform(-400, 400), 90.0 * draw.randint(-5, 5),
                                   draw.gauss(0, 10), 1e-13, -1e-20])]
            made = image.rotate(values[0], sample, fillcolor=fill)
        elif kind == "affine":
            values = [draw.choice([0, width * 0.5]), draw.choice([0, height * 0.5]),
                      draw.choice([0.0, draw.uniform(-180, 180)]), draw.randint(-width, width),
                      draw.randint(-height, height), draw.choice([1.0, draw.uniform(0.1, 4)]),
                      draw.choice([0.0, draw.uniform(-60, 60)]),
                      draw.choice([0.0, draw.uniform(-60, 60)])]
            made = functional.affine(image, values[2], values[3:5], values[5], values[6:8],
                                     InterpolationMode[name], fill, values[0:2])
        else:
            width, height = max(width, 12), max(height, 12)
            image = picture(width, height)
            right, bottom = width - 1, height - 1
            reach = draw.uniform(0.05, 0.3)
            x, y = int(reach * width), int(reach * height)
            ends = [[draw.randint(0, x), draw.randint(0, y)],
                    [right - draw.randint(0, x), draw.randint(0, y)],
                    [right - draw.randint(0, x), bottom - draw.randint(0, y)],
                    [draw.randint(0, x), bottom - draw.randint(0, y)]]
            starts = [[0, 0], [right, 0], [right, bottom], [0, bottom]]
            made = functional.perspective(image, starts, ends, InterpolationMode[name], fill)
            values = [one for corner in ends for one in corner]
        output.write(struct.pack("<8i10d", width, height, KINDS.index(kind), number, *fill, 0,
                                 *values, *[0.0] * (10 - len(values))))
        output.write(image.tobytes())
        output.write(made.tobytes())
print(f"left out, since Pillow dies of them: {left_out}")

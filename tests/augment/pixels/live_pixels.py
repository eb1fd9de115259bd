#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""live_pixels.py OUTPUT CASES PHOTOGRAPHS: random pictures changed by this machine's torchvision
and Pillow, CASES of each operation. PHOTOGRAPHS is a folder of JPEGs, which may be missing.

Writes for each case: number of the operation in OPERATIONS, width, height (int32), four parameters
(float64), the picture's RGB rows and the changed rows. Exits with 77 without torchvision.
"""

import itertools
import pathlib
import random
import struct
import sys

try:
    import PIL
    from PIL import Image, ImageFilter
    import torchvision
    from torchvision.transforms import functional
except ImportError:
    sys.exit(77)

draw = random.Random(20261123)
photographs = [
    Image.open(path).convert("RGB")
    for path in sorted(pathlib.Path(sys.argv[3]).rglob("*.JPEG"))[:8]
]
ORDERS = list(itertools.permutations(range(4)))


def side():
    return draw.choice([1, 2, 3, draw.randint(1, 20), draw.randint(1, 90), draw.randint(60, 120)])


def picture():
    """Noise of all levels, of few, or of nearly the same grey, or a part of a photograph."""
    width, height = side(), side()
    kind = draw.randrange(5)
    if kind < 2 and photographs:
        photograph = draw.choice(photographs)
        x = draw.randrange(max(1, photograph.width - width))
        y = draw.randrange(max(1, photograph.height - height))
        return photograph.crop((x, y, x + width, y + height))
    noise = draw.randbytes(3 * width * height)
    if kind == 3:
        low, step, levels = draw.randrange(128), draw.randrange(40), draw.randint(1, 4)
        noise = bytes(low + step * (value % levels) for value in noise)
    if kind == 4:
        noise = bytes(b for a in noise[::3] for b in (a, max(0, a - draw.randrange(3)), a))
    return Image.frombytes("RGB", (width, height), noise)


def factor():
    """Returns a factor as of usual jitters, of the steps of policies, or beyond."""
    return draw.choice(
        [draw.uniform(0.6, 1.4), 1 + draw.choice([-1, 1]) * 0.99 * draw.randrange(31) / 30,
         draw.uniform(0, 2), draw.choice([0, 0.5, 0.6, 1, 2]), draw.uniform(0, 300)])


def hue():
    return draw.choice([draw.uniform(-0.5, 0.5), draw.uniform(-0.1, 0.1), 0.5, 0, -0.5])


def jitter(image, brightness, contrast, saturation, order):
    """Brightness, contrast, saturation and a hue of 0.1 in one of the orders."""
    changes = [
        (functional.adjust_brightness, brightness), (functional.adjust_contrast, contrast),
        (functional.adjust_saturation, saturation), (functional.adjust_hue, 0.1)]
    for number in ORDERS[int(order)]:
        change, value = changes[number]
        image = change(image, value)
    return image


def posterize(image, bits):
    return functional.posterize(image, int(bits))


def box_blur(image, radius):
    return image.filter(ImageFilter.GaussianBlur(radius))


def gaussian_blur(image, kernel_width, sigma, kernel_height):
    return functional.gaussian_blur(image, [kernel_width, kernel_height], sigma)


def kernel_size(image):
    """torchvision's borders are reflected, so they must lie in the image."""
    return 1 + 2 * draw.randrange(min(12, min(image.size)))


# In the order of the C++ test: what is made, and its parameters.
OPERATIONS = [
    (functional.adjust_brightness, lambda image: [factor()]),
    (functional.adjust_contrast, lambda image: [factor()]),
    (functional.adjust_saturation, lambda image: [factor()]),
    (functional.adjust_hue, lambda image: [hue()]),
    (functional.adjust_sharpness, lambda image: [factor()]),
    (jitter, lambda image: [factor(), factor(), factor(), draw.randrange(24)]),
    (lambda image: functional.rgb_to_grayscale(image, 3), lambda image: []),
    (functional.invert, lambda image: []),
    (functional.solarize, lambda image: [draw.choice([draw.uniform(0, 256), draw.randint(0, 9)])]),
    (posterize, lambda image: [draw.randint(0, 8)]),
    (functional.autocontrast, lambda image: []),
    (functional.equalize, lambda image: []),
    (box_blur, lambda image: [draw.choice([draw.uniform(0.1, 2), draw.uniform(0.1, 12)])]),
    (gaussian_blur, lambda image: [kernel_size(image), draw.uniform(0.1, 4), kernel_size(image)]),
]

with open(sys.argv[1], "wb") as output:
    for number, (make, parameters) in enumerate(OPERATIONS):
        for _ in range(int(sys.argv[2])):
            image = picture()
            values = parameters(image)
            made = make(image, *values)
            assert made.mode == "RGB" and made.size == image.size
            output.write(struct.pack("<3i4d", number, *image.size, *(values + [0] * 4)[:4]))
            output.write(image.tobytes())
            output.write(made.tobytes())
print(f"torchvision {torchvision.__version__}, Pillow {PIL.__version__}")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""live_policies.py OUTPUT CASES: random pictures changed by this machine's torchvision: by the
operations of its policies, CASES of each of three spaces, and by AugMix's mixture.

Writes for each case these int32 numbers: the space, the operation in it, the magnitude, the number
of magnitudes, minus or not, the filter, the fill's red, green and blue, width, height. Then it
writes the magnitude (float64), the picture's RGB rows and the changed rows. A mixture has the
space 3 and its three weights (float32) instead of the magnitude. It mixes the picture, its negative
and the picture solarized. Exits with 77 without torchvision.
"""

import random
import struct
import sys

try:
    import torch
    from PIL import Image
    from torchvision.transforms import InterpolationMode, autoaugment, functional
except ImportError:
    sys.exit(77)

draw = random.Random(20261124)
FILTERS = [InterpolationMode.NEAREST, InterpolationMode.BILINEAR]


def picture():
    width, height = draw.randint(1, 70), draw.randint(1, 70)
    return Image.frombytes("RGB", (width, height), draw.randbytes(3 * width * height))


def space_of(number, bins, size):
    if number == 0:
        # With all operations of RandAugment, and one more.
        space = {"Identity": (torch.tensor(0.0), False)}
        return {**space, **autoaugment.AutoAugment()._augmentation_space(bins, size)}
    if number == 1:
        return autoaugment.TrivialAugmentWide()._augmentation_space(bins)
    return autoaugment.AugMix()._augmentation_space(bins, size)


def mixture(image, weights):
    """Returns the mixture that AugMix.forward computes."""
    batch = functional.pil_to_tensor(image)
    mix = weights[0] * batch
    mix.add_(weights[1] * functional.pil_to_tensor(functional.invert(image)))
    mix.add_(weights[2] * functional.pil_to_tensor(functional.solarize(image, 128)))
    return functional.to_pil_image(mix.to(dtype=torch.uint8))


with open(sys.argv[1], "wb") as output:
    for number in range(3):
        for _ in range(int(sys.argv[2])):
            image = picture()
            bins = draw.choice([2, 10, 31, draw.randint(2, 60)])
            space = space_of(number, bins, (image.height, image.width))
            place = draw.randrange(len(space))
            name = list(space)[place]
            magnitudes, signed = space[name]
            bin_number = draw.randrange(bins)
            magnitude = float(magnitudes[bin_number].item()) if magnitudes.ndim > 0 else 0.0
            minus = int(signed and draw.random() < 0.5)
            interpolation = draw.randrange(2)
            fill = [draw.randrange(256) for _ in range(3)]
            made = autoaugment._apply_op(image, name, -magnitude if minus else magnitude,
                                         FILTERS[interpolation], fill)
            output.write(struct.pack("<11id", number, place, bin_number, bins, minus, interpolation,
                                     *fill, *image.size, magnitude))
            output.write(image.tobytes())
            output.write(made.tobytes())
    for _ in range(int(sys.argv[2])):
        image = picture()
        m = torch._sample_dirichlet(torch.tensor([1.0, 1.0]))
        shares = torch._sample_dirichlet(torch.tensor([1.0, 1.0])) * m[1]
        weights = torch.stack([m[0], shares[0], shares[1]])
        output.write(struct.pack("<11i3f", 3, *[0] * 8, *image.size, *weights.tolist()))
        output.write(image.tobytes())
        output.write(mixture(image, weights).tobytes())

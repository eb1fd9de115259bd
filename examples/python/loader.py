#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""millrace's Python package beside torchvision's loader.

    python3 loader.py train DATASET              trains a small network on the CPU
    python3 loader.py compare PHOTOS DATASET     with torchvision's ImageFolder + DataLoader

DATASET is what `millrace pack PHOTOS DATASET` made of PHOTOS, a folder of a folder for each class.
The package is installed by `pip install ./bench/python`. Without that, --library and PYTHONPATH
lead to a build of libmillrace.so and to bench/python.
"""

import argparse
import os
import statistics
import sys
import time

try:
    import torch
except ImportError as missing:
    if __name__ != "__main__":
        raise
    print(f"{missing}: it is in Debian's python3-torch", file=sys.stderr)
    sys.exit(77)

PREFETCH = 4  # batches that millrace makes ahead, unless its options set another number


def open_loader(arguments, recipe, **options):
    """Returns a `millrace.Loader` of the dataset."""
    if arguments.library is not None:
        os.environ["MILLRACE_LIBRARY"] = arguments.library
    import millrace

    options |= {"workers": arguments.workers, "batch_size": arguments.batch_size}
    return millrace.Loader(arguments.dataset, recipe, **options)


def network(classes):
    layers, channels = [], 3
    for width in (16, 32, 64):
        layers += [torch.nn.Conv2d(channels, width, 3, stride=2, padding=1)]
        layers += [torch.nn.BatchNorm2d(width), torch.nn.ReLU()]
        channels = width
    layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(channels, classes))


def train(arguments):
    """Prints each epoch's mean loss. millrace converts the images to normalised float32."""
    torch.manual_seed(1)
    recipe = {"output": [arguments.size, arguments.size], "like": like_this_pillow()}
    options = {"seed": 1, "epochs": arguments.epochs, "last_batch": "drop"}
    options |= {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    with open_loader(arguments, recipe, **options) as loader:
        model = network(len(loader.dataset.classes))
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
        losses = []
        for batch in loader:
            optimizer.zero_grad()
            scores = model(batch["image"].torch())
            loss = torch.nn.functional.cross_entropy(scores, batch["label"].torch())
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if batch.last_in_epoch:
                print(f"loss {statistics.mean(losses):.4f}", flush=True)
                losses = []
        print(loader.report())


def like_this_pillow():
    """Version of Pillow to reproduce: 13 changed the order of a resize's two passes."""
    import PIL

    return "pillow-12" if int(PIL.__version__.split(".")[0]) < 13 else "pillow-13"


def image_folder(arguments, transforms, shuffle):
    """Makes a torchvision loader of the photographs, with uint8 images as in millrace's batches."""
    from torchvision import transforms as tv
    from torchvision.datasets import ImageFolder

    photos = ImageFolder(arguments.photos, tv.Compose([*transforms, tv.PILToTensor()]))
    return torch.utils.data.DataLoader(
        photos,
        batch_size=arguments.batch_size,
        shuffle=shuffle,
        num_workers=arguments.workers,
        persistent_workers=True,
    )


def same_pixels(arguments):
    """The evaluation preset of both, in the order of the folder."""
    from torchvision import transforms as tv

    resize, crop = {"op": "resize", "size": 256}, {"op": "center_crop"}
    recipe = {"output": [224, 224], "like": like_this_pillow(), "ops": [resize, crop]}
    theirs = image_folder(arguments, [tv.Resize(256), tv.CenterCrop(224)], shuffle=False)
    with open_loader(arguments, recipe, order="sequential", epochs=1) as ours:
        if len(ours.dataset) != len(theirs.dataset):
            sys.exit(f"{arguments.photos}: {len(theirs.dataset)} images, the dataset has others")
        compared = 0
        for number, (batch, (images, labels)) in enumerate(zip(ours, theirs)):
            if not torch.equal(batch["label"].torch(), labels):
                sys.exit(f"batch {number}: labels differ")
            if not torch.equal(batch["image"].torch().permute(0, 3, 1, 2), images):
                sys.exit(f"batch {number}: pixels differ")
            compared += len(images)
    if compared != len(theirs.dataset):
        sys.exit(f"{compared} images came, not {len(theirs.dataset)}")
    print(f"pixels equal: {compared} images as torchvision's Resize and CenterCrop")


def rate_of(batches):
    """Images per second."""
    begin, images = time.perf_counter(), 0
    for image in batches:
        images += len(image)
    return images / (time.perf_counter() - begin)


def compare(arguments):
    from torchvision import transforms as tv

    same_pixels(arguments)
    crop = [tv.RandomResizedCrop(224), tv.RandomHorizontalFlip()]
    theirs = image_folder(arguments, crop, shuffle=True)
    with open_loader(arguments, "train") as ours:

        def our_epoch():
            for _ in range(len(ours)):
                yield next(ours)["image"].torch()

        def let_go_what_was_made_ahead():
            for _ in range(PREFETCH + 2):
                next(ours)

        def their_epoch():
            return (images for images, _ in theirs)

        # Alternates, because other programs slow both. The first epoch starts workers.
        pairs = []
        for epoch in range(arguments.epochs + 1):
            their_rate = rate_of(their_epoch())
            let_go_what_was_made_ahead()
            our_rate = rate_of(our_epoch())
            if epoch > 0:
                pairs.append((their_rate, our_rate))
                print(f"torchvision {their_rate:.0f}, millrace {our_rate:.0f} images per second")
        ratio = statistics.median(ours / theirs for theirs, ours in pairs)
        print(f"millrace is {ratio:.2f} times as fast with {arguments.workers} workers each")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--library", help="path of libmillrace; by default the package's own")
    parser.add_argument("--workers", type=int, default=2, help="number of threads or processes")
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=5)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("train", help="trains a small network on the CPU")
    one.add_argument("dataset")
    one.add_argument("--size", type=int, default=64, help="width and height of the images")
    one = commands.add_parser("compare", help="compares with ImageFolder + DataLoader")
    one.add_argument("photos")
    one.add_argument("dataset")
    arguments = parser.parse_args()
    try:
        {"train": train, "compare": compare}[arguments.command](arguments)
    except ImportError as missing:
        print(f"{missing}: it is in Debian's python3-torchvision", file=sys.stderr)
        sys.exit(77)
    except (OSError, RuntimeError) as error:
        sys.exit(f"loader.py: {error}")


if __name__ == "__main__":
    main()

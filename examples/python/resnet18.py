#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The rate of ResNet-18's training step, fed by millrace and by torchvision's DataLoader.

    python3 resnet18.py PHOTOS DATASET --device cuda:0 --batch-size 256 --workers 16

DATASET is what `millrace pack PHOTOS DATASET` made of PHOTOS, a folder of a folder for each class.
The feeds, measured in the order of --feeds: `synthetic` repeats 8 batches of DATASET that stay on
the device, which gives the maximal rate for any loader. `millrace` is its Python package.
`torchvision` is ImageFolder and a DataLoader with --workers processes, by default one for each
processor; its 8-bit images are normalised on the device. On a GPU the model computes in bfloat16.
A line of JSON for each feed is printed, or appended to the file --json.
"""

import argparse
import itertools
import json
import os
import sys
import time

try:
    import torch
    import torchvision
except ImportError as missing:
    print(f"{missing}: it is in Debian's python3-torchvision", file=sys.stderr)
    sys.exit(77)

import loader

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
KEPT_BATCHES = 8


class Trainer:
    """ResNet-18, and a step of it on a batch of normalised images and their labels."""

    def __init__(self, device, classes):
        self.device = device
        torch.manual_seed(7)
        torch.backends.cudnn.benchmark = True
        self.model = torchvision.models.resnet18(num_classes=classes)
        self.model.to(device, memory_format=torch.channels_last)
        parameters = self.model.parameters()
        self.optimizer = torch.optim.SGD(parameters, lr=0.001, momentum=0.9, weight_decay=1e-4)

    def step(self, images, labels):
        self.optimizer.zero_grad(set_to_none=True)
        on_gpu = self.device.type == "cuda"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=on_gpu):
            loss = torch.nn.functional.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


class GpuClock:
    """Times steps by events on the current stream, and the share of this time in which the stream
    had no step to run: from a step's end to the next one's begin."""

    def __init__(self):
        self.steps = []

    def begin(self):
        self.steps.append([torch.cuda.Event(enable_timing=True) for _ in range(2)])
        self.steps[-1][0].record()

    def end(self):
        self.steps[-1][1].record()

    def seconds(self):
        torch.cuda.synchronize()
        return self.steps[0][0].elapsed_time(self.steps[-1][1]) / 1000

    def idle(self):
        pairs = zip(self.steps, self.steps[1:])
        gaps = sum(last[1].elapsed_time(step[0]) for last, step in pairs) / 1000
        return gaps / self.seconds()


class HostClock:
    def __init__(self):
        self.first = time.perf_counter()

    def begin(self):
        pass

    def end(self):
        self.last = time.perf_counter()

    def seconds(self):
        return self.last - self.first

    def idle(self):
        return None


def measure(trainer, batches, arguments, after_warm_up=lambda: None):
    """Steps on `batches`, an endless iterator: a warm-up, then `--seconds` that count."""
    end, steps = time.perf_counter() + arguments.warm_up, 0
    while steps < 10 or time.perf_counter() < end:
        trainer.step(*next(batches))
        steps += 1
    after_warm_up()
    clock, images = GpuClock() if trainer.device.type == "cuda" else HostClock(), 0
    end = time.perf_counter() + arguments.seconds
    while images == 0 or time.perf_counter() < end:
        batch = next(batches)
        images += len(batch[0])
        clock.begin()
        loss = trainer.step(*batch)
        clock.end()
        del batch  # meanwhile its slot is filled again
    seconds = clock.seconds()
    rate = {"images": images, "seconds": seconds, "images_per_second": images / seconds}
    return rate | {"idle": clock.idle(), "loss": loss.item()}


def open_loader(trainer, arguments):
    on_gpu = trainer.device.type == "cuda"
    recipe = {"output": [arguments.size] * 2, "like": loader.like_this_pillow()}
    options = {"seed": 1, "last_batch": "pad"}  # every batch is full, even with few records
    options |= {"layout": "nhwc", "mean": MEAN, "std": STD, "device": trainer.device}
    options["dtype"] = "bfloat16" if on_gpu else "float32"
    return loader.open_loader(arguments, recipe, **options)


def images_and_labels(batch):
    return batch["image"].torch().permute(0, 3, 1, 2), batch["label"].torch()


def feed_synthetic(trainer, arguments):
    """Batches of the dataset that stay on the device."""
    with open_loader(trainer, arguments) as ours:
        kept = [[tensor.clone() for tensor in images_and_labels(next(ours))]
                for _ in range(KEPT_BATCHES)]
    return measure(trainer, itertools.cycle(kept), arguments)


def feed_millrace(trainer, arguments):
    with open_loader(trainer, arguments) as ours:

        def batches():
            while True:
                yield images_and_labels(next(ours))

        rate = measure(trainer, batches(), arguments, lambda: ours.report(restart=True))
        report = ours.report()
    rate |= {"workers": report["workers"], "verdict": report["verdict"]["text"]}
    return rate | {"stall_seconds": report["stall"]["total_ms"] / 1000}


def feed_torchvision(trainer, arguments):
    from torchvision import transforms as tv

    transforms = [tv.RandomResizedCrop(arguments.size), tv.RandomHorizontalFlip()]
    transforms = tv.Compose([*transforms, tv.PILToTensor()])
    photos = torchvision.datasets.ImageFolder(arguments.photos, transforms)
    # A DataLoader pauses between epochs, so an epoch has at least 100 batches.
    times = -(-100 * arguments.batch_size // len(photos))
    workers = arguments.workers or len(os.sched_getaffinity(0))
    data = torch.utils.data.DataLoader(
        torch.utils.data.ConcatDataset([photos] * times),
        batch_size=arguments.batch_size,
        shuffle=True,
        num_workers=workers,
        drop_last=True,
        pin_memory=trainer.device.type == "cuda",
        persistent_workers=True,
        prefetch_factor=4,
    )
    dtype = torch.bfloat16 if trainer.device.type == "cuda" else torch.float32
    mean = 255 * torch.tensor(MEAN, device=trainer.device).view(1, 3, 1, 1)
    std = 255 * torch.tensor(STD, device=trainer.device).view(1, 3, 1, 1)

    def batches():
        while True:
            for images, labels in data:
                images = images.to(trainer.device, non_blocking=True)
                images = images.to(memory_format=torch.channels_last).sub(mean).div(std).to(dtype)
                yield images, labels.to(trainer.device, non_blocking=True)

    return measure(trainer, batches(), arguments) | {"workers": workers}


FEEDS = {
    "synthetic": feed_synthetic,
    "millrace": feed_millrace,
    "torchvision": feed_torchvision,
}


def feeds(text):
    names = text.split(",")
    for name in names:
        if name not in FEEDS:
            raise argparse.ArgumentTypeError(f'"{name}" can be {", ".join(FEEDS)}')
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("photos", help="a folder of a folder for each class")
    parser.add_argument("dataset", help="dataset made by millrace pack")
    parser.add_argument("--library", help="path of libmillrace; by default the package's own")
    parser.add_argument("--device", type=torch.device, default="cpu", help="cpu or cuda:N")
    parser.add_argument("--workers", type=int, default=0, help="0 = each loader's default")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=224, help="width and height of the images")
    parser.add_argument("--seconds", type=float, default=8, help="measured seconds per feed")
    parser.add_argument("--warm-up", type=float, default=3, help="warm-up seconds per feed")
    parser.add_argument("--feeds", type=feeds, default=list(FEEDS), help=",".join(FEEDS))
    parser.add_argument("--json", type=argparse.FileType("a"), default=sys.stdout)
    arguments = parser.parse_args()
    device = arguments.device
    name = str(device)
    if device.type == "cuda":
        if not torch.cuda.is_available():
            print(f"resnet18.py: no {device}: PyTorch finds no GPU", file=sys.stderr)
            sys.exit(77)
        device = torch.device("cuda", device.index or 0)
        torch.cuda.set_device(device)
        name = torch.cuda.get_device_name(device)
    facts = {"device": str(device), "device_name": name, "torch": torch.__version__}
    facts |= {"dtype": "bfloat16" if device.type == "cuda" else "float32"}
    facts |= {"batch_size": arguments.batch_size, "pixels": arguments.size, "workers": 0}
    facts |= {"stall_seconds": None, "verdict": None}
    try:
        classes = len([entry for entry in os.scandir(arguments.photos) if entry.is_dir()])
    except OSError as error:
        parser.error(f"{arguments.photos}: {error.strerror}")
    trainer = Trainer(device, classes)
    failed = False
    for feed in arguments.feeds:
        line = {"program": "resnet18.py", "feed": feed} | facts
        try:
            line |= FEEDS[feed](trainer, arguments)
        except Exception as error:  # the other feeds are measured nevertheless
            line |= {"failed": f"{type(error).__name__}: {error}"}
            failed = True
        print(json.dumps(line), file=arguments.json, flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()

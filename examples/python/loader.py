#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""millrace from Python: the C header through ctypes, batches as PyTorch tensors through DLPack.

    python3 loader.py train DATASET              trains a small network on the CPU
    python3 loader.py compare PHOTOS DATASET     with torchvision's ImageFolder + DataLoader

DATASET is what `millrace pack PHOTOS DATASET` made of PHOTOS, a folder of a folder for each class.
Nothing must be built: a program only needs `Loader` below.
"""

import argparse
import ctypes
import json
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

OK, END, TIMEOUT = 0, 1, 12
PREFETCH = 4  # batches that millrace makes ahead, unless its options set another number


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 1020)]


class Setup(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("dataset", ctypes.c_void_p),
        ("transform", ctypes.c_void_p),
        ("runtime", ctypes.c_void_p),
        ("device", ctypes.c_char_p),
        ("options", ctypes.c_char_p),
        ("state", ctypes.c_char_p),
    ]


class ManagedTensor(ctypes.Structure):
    """DLManagedTensor: a DLTensor of 48 bytes, then its owner and the function that frees it."""

    _fields_ = [
        ("tensor", ctypes.c_byte * 48),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


class Millrace:
    """Calls functions of libmillrace.so, and raises an exception for each error status."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.millrace_text_free.argtypes = [ctypes.c_void_p]

    def call(self, name, *arguments):
        error = Error()
        status = getattr(self.library, "millrace_" + name)(*arguments, ctypes.byref(error))
        if status not in (OK, END, TIMEOUT):
            raise RuntimeError(f"{name}: {error.message.decode(errors='replace')}")
        return status

    def handle(self, name, *arguments):
        handle = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(handle))
        return handle

    def json(self, name, *arguments):
        text = self.handle(name, *arguments)
        try:
            return json.loads(ctypes.string_at(text.value))
        finally:
            self.library.millrace_text_free(text)

    def free(self, kind, handle):
        getattr(self.library, f"millrace_{kind}_free")(handle)


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_is = ctypes.pythonapi.PyCapsule_IsValid
capsule_is.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype = ctypes.c_void_p
capsule_pointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def free_unused(capsule):
    """Frees the tensor of a capsule, unless a consumer has taken it and renamed the capsule."""
    if capsule_is(capsule, b"dltensor"):
        tensor = capsule_pointer(capsule, b"dltensor")
        ManagedTensor.from_address(tensor).deleter(tensor)


class Loader:
    """Batches of a dataset: dictionaries of tensors over millrace's own memory, which is reused
    when all of them are freed. With `device` "cuda:N" they are on that GPU, for use on PyTorch's
    current stream."""

    FIELDS = ("image", "label")

    def __init__(
        self, library, dataset, recipe, state=None, workers=0, batch_size=64, device="host", **run
    ):
        self.millrace = Millrace(library)
        self.device = device
        self.dataset = self.millrace.handle("dataset_open", dataset.encode())
        self.facts = self.millrace.json("dataset_describe", self.dataset)
        recipe = recipe if isinstance(recipe, str) else json.dumps(recipe)
        self.transform = self.millrace.handle("transform_images", recipe.encode())
        options = {"workers": workers, "batch_size": batch_size}
        options = {"format": 1, "options": options, "run": run}
        setup = Setup(ctypes.sizeof(Setup), self.dataset, self.transform)
        setup.device = device.encode()
        setup.options = json.dumps(options).encode()
        setup.state = json.dumps(state).encode() if state else None
        self.pipeline = self.millrace.handle("pipeline_create", ctypes.byref(setup))

    def __len__(self):
        batches = ctypes.c_uint64()
        self.millrace.call("pipeline_batches_per_epoch", self.pipeline, ctypes.byref(batches))
        return batches.value

    def __iter__(self):
        """Yields the remaining batches of the run."""
        while (batch := self.next()) is not None:
            yield batch

    def next(self):
        """Returns the next batch; None after the last one."""
        handle, seconds = ctypes.c_void_p(), ctypes.c_double(0.5)
        next_batch = ["pipeline_next", self.pipeline, self.stream(), seconds, ctypes.byref(handle)]
        while (status := self.millrace.call(*next_batch)) == TIMEOUT:
            pass  # the run continues, and Ctrl-C can be handled
        if status == END:
            return None
        try:
            return {name: self.tensor(handle, name) for name in self.FIELDS}
        finally:
            self.millrace.free("batch", handle)  # the tensors keep it alive

    def stream(self):
        """Returns 0 for the host. PyTorch's 0, CUDA's default stream, is 1 here."""
        if self.device == "host":
            return ctypes.c_void_p(0)
        return ctypes.c_void_p(torch.cuda.current_stream(self.device).cuda_stream or 1)

    def tensor(self, batch, name):
        managed = self.millrace.handle("batch_field", batch, name.encode())
        return torch.from_dlpack(new_capsule(managed, b"dltensor", free_unused))

    def state(self):
        return self.millrace.json("pipeline_state", self.pipeline)

    def report(self, restart=False):
        return self.millrace.json("pipeline_report", self.pipeline, ctypes.c_int32(restart))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for kind in ("pipeline", "transform", "dataset"):
            self.millrace.free(kind, getattr(self, kind))


def network(classes):
    layers, channels = [], 3
    for width in (16, 32, 64):
        layers += [torch.nn.Conv2d(channels, width, 3, stride=2, padding=1)]
        layers += [torch.nn.BatchNorm2d(width), torch.nn.ReLU()]
        channels = width
    layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(channels, classes))


def train(arguments):
    """Returns each epoch's mean loss. millrace converts the images to normalised float32."""
    torch.manual_seed(1)
    recipe = {"output": [arguments.size, arguments.size], "like": like_this_pillow()}
    run = {"seed": 1, "epochs": arguments.epochs, "last_batch": "drop"}
    run["conversion"] = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    options = {"workers": arguments.workers, "batch_size": arguments.batch_size}
    with Loader(arguments.library, arguments.dataset, recipe, **options, **run) as loader:
        model = network(len(loader.facts["classes"]))
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
        losses = []
        for batch in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(batch["image"]), batch["label"])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == len(loader):
                print(f"loss {statistics.mean(losses):.4f}", flush=True)
                losses = []
        print(loader.report()["verdict"]["text"])


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
    options = {"workers": arguments.workers, "batch_size": arguments.batch_size}
    options |= {"order": "sequential", "epochs": 1}
    with Loader(arguments.library, arguments.dataset, recipe, **options) as ours:
        if ours.facts["records"] != len(theirs.dataset):
            sys.exit(f"{arguments.photos}: {len(theirs.dataset)} images, the dataset has others")
        compared = 0
        for number, (batch, (images, labels)) in enumerate(zip(ours, theirs)):
            if not torch.equal(batch["label"], labels):
                sys.exit(f"batch {number}: labels differ")
            if not torch.equal(batch["image"].permute(0, 3, 1, 2), images):
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
    options = {"workers": arguments.workers, "batch_size": arguments.batch_size}
    with Loader(arguments.library, arguments.dataset, "train", **options) as ours:

        def our_epoch():
            for _ in range(len(ours)):
                yield ours.next()["image"]

        def let_go_what_was_made_ahead():
            for _ in range(PREFETCH + 2):
                ours.next()

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
    parser.add_argument("--library", default="libmillrace.so.0.1", help="path of libmillrace")
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

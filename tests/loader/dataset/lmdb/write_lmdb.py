#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""write_lmdb.py OUT PHOTOS PART...: writes datasets with python-lmdb into the folder OUT.

PART is one of images, datum, tensors, texts, tuples, databases, refused, small.

Writes NAME.expected beside each dataset NAME, with the records in the order of their keys:
    for each: number of parts (uint32), and for each part its length (uint32) and bytes
The parts are the key as it is shown, then the name and bytes of each field. PHOTOS is a folder of
JPEGs. The 60 smallest are used; an empty folder is replaced by generated images. Exits with 77 if a
module is missing.
"""

import hashlib
import io
import pickle
import random
import struct
import sys
from pathlib import Path

try:
    import lmdb
    import msgpack
    from PIL import Image
except ImportError as missing:
    print(missing)
    sys.exit(77)

COUNT = 60
MAP_BYTES = 1 << 28


def encoded(kind, width, height, seed):
    rng = random.Random(seed)
    picture = Image.frombytes("RGB", (width, height), rng.randbytes(3 * width * height))
    out = io.BytesIO()
    picture.save(out, kind)
    return out.getvalue()


def photographs(folder):
    found = sorted(folder.rglob("*.JPEG"), key=lambda path: path.stat().st_size)[:COUNT]
    images = [path.read_bytes() for path in found]
    return images + [encoded("JPEG", 40 + n, 30, n) for n in range(len(images), COUNT)]


def int64(number):
    return struct.pack("<q", number)


def varint(number):
    number &= (1 << 64) - 1
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    """A field of a protobuf message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def datum(channels, height, width, data, label, is_encoded=False):
    message = field(1, channels) + field(2, height) + field(3, width) + field(4, data)
    return message + field(5, label) + (field(7, 1) if is_encoded else b"")


def pnm(width, height, rgb):
    kind = b"P5" if len(rgb) == width * height else b"P6"
    return kind + b"\n%d %d\n255\n" % (width, height) + rgb


class Writer:
    def __init__(self, out):
        self.out = out

    def environment(self, name, subdir=True):
        return lmdb.open(
            str(self.out / name),
            map_size=MAP_BYTES,
            subdir=subdir,
            max_dbs=8,
            sync=False,
            lock=False,
        )

    def expect(self, name, records):
        """`records`: (raw key, shown key, {field: bytes}), in any order."""
        with open(self.out / (name + ".expected"), "wb") as file:
            for _, shown, fields in sorted(records, key=lambda record: record[0]):
                parts = [shown.encode()]
                for field_name, value in fields.items():
                    parts += [field_name.encode(), value]
                file.write(struct.pack("<I", len(parts)))
                for part in parts:
                    file.write(struct.pack("<I", len(part)) + part)

    def write(self, name, records, more=(), subdir=True, **database):
        """`records`: (key, value, fields), `more`: keys and values other than records."""
        env = self.environment(name, subdir)
        if database:
            # A flag of the main database needs one with a name in python-lmdb.
            handle = env.open_db(b"records", **database)
        else:
            handle = None
        shuffled = list(records)
        random.Random(name).shuffle(shuffled)
        # Several transactions leave free pages behind.
        for begin in range(0, len(shuffled), 16):
            with env.begin(write=True, db=handle) as txn:
                for key, value, _ in shuffled[begin : begin + 16]:
                    txn.put(key, value)
        with env.begin(write=True, db=handle) as txn:
            for key, value in more:
                txn.put(key, value)
        env.close()


def write_images(writer, photos):
    def plain(name, keys, shown=None, order=None, images=photos, labels=None, **options):
        records = []
        for n, image in enumerate(images):
            fields = {"image": image}
            if labels:
                fields["label"] = int64(labels[n])
            records.append((keys[n], image, fields))
        writer.write(name, records, **options)
        shown = shown or [key.decode() for key in keys]
        order = order or keys
        writer.expect(name, [(order[n], shown[n], r[2]) for n, r in enumerate(records)])

    numbers = list(range(COUNT))
    decimal = [str(n) for n in numbers]
    kinds = ["JPEG", "WEBP"]
    mixed = [encoded(kinds[n % 2], 20 + n, 31, n) for n in numbers]
    hashes = [hashlib.sha1(image).hexdigest().encode() for image in mixed]
    plain("lsun", hashes, images=mixed)
    plain("decimal", [n.encode() for n in decimal])
    plain("padded", [b"%08d" % n for n in numbers], subdir=False)
    plain("padded_metadata", [b"%08d" % n for n in numbers],
          more=[(b"__len__", pickle.dumps(COUNT)), (b"__keys__", b"..."), (b"num-samples", b"60"),
                (b"length", b"60"), (b"meta", b"{}"), (b"num_samples", b"60"),
                (b"num-samples\n", b"60")])
    plain("big_endian", [struct.pack(">Q", n) for n in numbers], shown=decimal)
    plain("little_endian", [struct.pack("<I", n * 7) for n in numbers],
          shown=[str(n * 7) for n in numbers])
    plain("integer", [struct.pack("<Q", n * 1000) for n in numbers],
          shown=[str(n * 1000) for n in numbers], order=numbers, integerkey=True)
    # Folders in the order of their names, which is not the order of their keys: "-" is before "/".
    folders = ["n01440764", "n01440764-b", "n02"]
    keys = [f"train/{folders[n % 3]}/x_{n}.JPEG".encode() for n in numbers]
    plain("paths", keys, labels=[n % 3 for n in numbers])
    plain("one_folder", [b"cat/%d.jpg" % n for n in numbers], labels=[0] * COUNT)


def write_datum(writer, photos):
    def write(name, make, fields, count=COUNT):
        keys = [b"%08d_%s" % (n, hashlib.md5(bytes([n])).hexdigest()[:5].encode())
                for n in range(count)]
        records = [(keys[n], make(n), fields(n)) for n in range(count)]
        writer.write(name, records)
        writer.expect(name, [(key, key.decode(), fields) for key, _, fields in records])

    write("datum", lambda n: datum(0, 0, 0, photos[n], n - 3, True),
          lambda n: {"image": photos[n], "label": int64(n - 3)})

    def raw(n):
        channels, height, width = (1, 3)[n % 2], 5 + n % 7, 11
        return channels, height, width, random.Random(n).randbytes(channels * height * width)

    def picture(n):
        channels, height, width, planes = raw(n)
        size = height * width
        # Blue, green, red.
        order = [0] if channels == 1 else [2, 1, 0]
        pixels = bytes(planes[c * size + at] for at in range(size) for c in order)
        return pnm(width, height, pixels)

    write("datum_raw", lambda n: datum(*raw(n), label=n),
          lambda n: {"image": picture(n), "label": int64(n)})

    def floats(n):
        return struct.pack("<12f", *(n + at / 8 for at in range(12)))

    def float_message(n):
        shape = field(1, 2) + field(2, 2) + field(3, 3)
        # Unpacked, as proto2 writes it, or packed.
        if n % 2:
            return shape + field(6, floats(n)) + field(5, n)
        single = b"".join(varint(6 << 3 | 5) + floats(n)[at : at + 4] for at in range(0, 48, 4))
        return shape + single + field(5, n)

    write("datum_float", float_message,
          lambda n: {"data": floats(n), "shape": int64(2) + int64(2) + int64(3), "label": int64(n)})


def write_tensors(writer, photos):
    def tensor(kind, number, value, dims=()):
        return field(1, b"".join(field(1, d) for d in dims) + field(2, kind) + field(number, value))

    def write(name, make, fields):
        records = [(b"%06d" % n, make(n), fields(n)) for n in range(COUNT)]
        writer.write(name, records)
        writer.expect(name, [(key, key.decode(), fields) for key, _, fields in records])

    write("tensors", lambda n: tensor(4, 6, photos[n], [1]) + tensor(2, 4, varint(n)),
          lambda n: {"image": photos[n], "label": int64(n)})

    def pixels(n):
        return random.Random(n).randbytes(3 * 4 * 5)

    def red_first(n):
        values = pixels(n)
        return bytes(values[at + c] for at in range(0, 60, 3) for c in (2, 1, 0))

    write("tensors_bytes",
          lambda n: tensor(3, 5, pixels(n), [4, 5, 3]) + tensor(10, 10, varint(n), [1]),
          lambda n: {"image": pnm(5, 4, red_first(n)), "label": int64(n)})
    write("tensors_float",
          lambda n: tensor(1, 3, struct.pack("<6f", *range(n, n + 6)), [2, 3])
          + tensor(2, 4, varint(n)),
          lambda n: {"data": struct.pack("<6f", *range(n, n + 6)), "shape": int64(2) + int64(3),
                     "label": int64(n)})


def write_texts(writer, photos):
    texts = ["", "wörd", "x" * 3000] + [f"text {n}" * (n % 5) for n in range(3, COUNT)]
    records, more = [], [(b"num-samples", b"%d" % COUNT)]
    for n, image in enumerate(photos):
        key = b"image-%09d" % (n + 1)
        records.append((key, image, {"image": image, "label": texts[n].encode()}))
        more += [(b"label-%09d" % (n + 1), texts[n].encode()), (b"path-%09d" % (n + 1), b"p")]
    writer.write("ocr", records, more)
    writer.expect("ocr", [(key, key.decode(), fields) for key, _, fields in records])
    writer.write("ocr_gap", [r for r in records if r[0] != b"image-000000031"], more)


def write_tuples(writer, photos):
    def write(name, dump, value, fields):
        records = [(b"%08d" % n, dump(value(n)), fields(n)) for n in range(COUNT)]
        more = [(b"__len__", dump(COUNT)), (b"__keys__", dump([r[0] for r in records]))]
        writer.write(name, records, more)
        writer.expect(name, [(key, key.decode(), fields) for key, _, fields in records])

    def with_label(n):
        return {"image": photos[n], "label": int64(n)}

    for protocol in (3, 4, 5):
        write(f"pickle{protocol}", lambda v, p=protocol: pickle.dumps(v, p),
              lambda n: (photos[n], n), with_label)
    write("pickle_text", pickle.dumps, lambda n: (photos[n], f"läbel {n}"),
          lambda n: {"image": photos[n], "label": f"läbel {n}".encode()})
    write("msgpack", msgpack.packb, lambda n: (photos[n], n), with_label)
    write("msgpack_text", msgpack.packb, lambda n: (photos[n], f"l {n}"),
          lambda n: {"image": photos[n], "label": b"l %d" % n})
    write("dictionaries", msgpack.packb,
          lambda n: {"jpeg": photos[n], "target": n, "box": [[1, 2], [3, n]]},
          lambda n: {"image": photos[n], "label": int64(n),
                     "box": int64(1) + int64(2) + int64(3) + int64(n)})


def write_databases(writer, photos):
    def write(name, value, labels, keys):
        env = writer.environment(name, subdir=False)
        images, other = env.open_db(b"images"), env.open_db(b"labels")
        with env.begin(write=True) as txn:
            for n in range(COUNT):
                txn.put(keys[n], photos[n], db=images)
                if labels is None or n not in labels:
                    txn.put(keys[n], value(n), db=other)
        env.close()

    keys = [b"k%d" % n for n in range(COUNT)]
    for name, value in (
        ("databases", lambda n: b"%d" % n),
        ("databases_binary", lambda n: struct.pack("<i", n)),
        ("databases_big", lambda n: struct.pack(">q", n)),
    ):
        write(name, value, None, keys)
        writer.expect(name, [(keys[n], keys[n].decode(), {"image": photos[n], "label": int64(n)})
                             for n in range(COUNT)])
    write("databases_gap", lambda n: b"%d" % n, {17}, keys)


def write_refused(writer, _):
    env = writer.environment("dupsort")
    handle = env.open_db(b"several", dupsort=True)
    with env.begin(write=True, db=handle) as txn:
        for n in range(20):
            txn.put(b"key", b"%d" % n)
    env.close()
    env = writer.environment("words")
    with env.begin(write=True) as txn:
        for n in range(20):
            txn.put(b"key %d" % n, b"value")
    env.close()


def write_small(writer, _):
    """Small values on a few pages each, to be damaged."""
    pictures = [encoded("JPEG", 8, 8, n)[: 120 + n] + b"." for n in range(300)]
    pictures[100] += bytes(9000)
    writer.write("small_images", [(b"c%d/%05d" % (n % 3, n), pictures[n], {}) for n in range(300)])
    writer.write("small_datum",
                 [(b"%05d" % n, datum(0, 0, 0, pictures[n], n, True), {}) for n in range(300)])
    writer.write("small_tuples",
                 [(b"%05d" % n, pickle.dumps((pictures[n], n)), {}) for n in range(300)],
                 [(b"__len__", pickle.dumps(300))])
    env = writer.environment("small_ocr")
    with env.begin(write=True) as txn:
        txn.put(b"num-samples", b"200")
        for n in range(200):
            txn.put(b"image-%09d" % (n + 1), pictures[n])
            txn.put(b"label-%09d" % (n + 1), b"text")
    env.close()


PARTS = {
    "images": write_images,
    "datum": write_datum,
    "tensors": write_tensors,
    "texts": write_texts,
    "tuples": write_tuples,
    "databases": write_databases,
    "refused": write_refused,
    "small": write_small,
}


def main():
    if len(sys.argv) < 4 or not set(sys.argv[3:]) <= PARTS.keys():
        sys.exit("usage: write_lmdb.py OUT PHOTOS PART...")
    writer = Writer(Path(sys.argv[1]))
    photos = photographs(Path(sys.argv[2]))
    for part in sys.argv[3:]:
        PARTS[part](writer, photos)


if __name__ == "__main__":
    main()

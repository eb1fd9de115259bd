#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""write_tars.py FOLDER [PHOTOGRAPHS]: tars in each of tarfile's formats, and what is in them.

ustar.tar, gnu.tar and pax.tar have the same 60 samples by WebDataset's law (of photographs, if
there are some), among folders, links, hidden files and files without an extension. expected.tsv has
a line for each sample, "key<TAB>label", and N.image, N.text and N.seg.png what its files hold.
"""

import io
import json
import random
import sys
import tarfile
from pathlib import Path

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def add(tar, name, contents, kind=tarfile.REGTYPE):
    member = tarfile.TarInfo(name)
    member.type = kind
    if kind == tarfile.REGTYPE:
        member.size = len(contents)
    elif kind == tarfile.SYMTYPE:
        member.linkname = "elsewhere"
    tar.addfile(member, io.BytesIO(contents))


def images(photographs, rng):
    files = sorted(Path(photographs).rglob("*")) if photographs else []
    files = [file for file in files if file.suffix.lower() in (".jpg", ".jpeg")]
    if len(files) >= 60:
        return [file.read_bytes() for file in rng.sample(files, 60)]
    return [rng.randbytes(rng.choice([1, 511, 512, 513, 7000])) for _ in range(60)]


def main():
    folder = Path(sys.argv[1])
    rng = random.Random(5)
    samples = []
    for number, image in enumerate(images(sys.argv[2] if len(sys.argv) > 2 else None, rng)):
        key = f"part{number // 20}/sample{number:04}"
        if number % 10 == 3:
            key = f"part{number // 20}/" + "long" * 20 + f"/of{number}" + "name" * 15
        samples.append((key, number * 7 % 50 - 1, image))
    longer = "deep/" * 60 + "gr\u00fcn"
    for form, number in FORMATS.items():
        with tarfile.open(folder / f"{form}.tar", "w", format=number, encoding="utf-8") as tar:
            add(tar, "part0", b"", tarfile.DIRTYPE)
            add(tar, "README", b"no sample")
            for n, (key, label, image) in enumerate(samples):
                if form != "ustar" and n == 7:
                    key = longer
                name = "./" + key if n % 5 == 0 else key
                text = f"text of {n}".encode()
                files = [(rng.choice([".jpg", ".JPEG", ".png", ".webp"]), image), (".txt", text)]
                if n % 3 == 0:
                    files.append((".json", json.dumps({"label": label, "of": [n]}).encode()))
                elif n % 3 == 1:
                    files.append((".cls", f" {label}\n".encode()))
                else:
                    files.append((".json", json.dumps({"cls": label}).encode()))
                if n % 4 == 0:
                    files.append((".seg.png", text * 3))
                random.Random(n).shuffle(files)
                for extension, contents in files:
                    add(tar, name + extension, contents)
                    if n % 6 == 0:
                        add(tar, "part0/.hidden.jpg", b"hidden")
                        add(tar, key + "-link.jpg", b"", tarfile.SYMTYPE)
    with open(folder / "expected.tsv", "w", encoding="utf-8") as lines:
        for n, (key, label, image) in enumerate(samples):
            lines.write(f"{key}\t{label}\n")
            (folder / f"{n}.image").write_bytes(image)
            text = f"text of {n}".encode()
            (folder / f"{n}.text").write_bytes(text)
            if n % 4 == 0:
                (folder / f"{n}.seg.png").write_bytes(text * 3)


main()

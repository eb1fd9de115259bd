#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""live_pictures.py KIND FOLDER: pictures of a kind, and their pixels by this machine's Pillow.

KIND is png, webp, pnm, exif, stray (bytes in JPEGs) or mask. Writes, for example, NAME.png and
NAME.png.rgb, which has the bytes of Pillow's convert("RGB"). For masks these are the values of
numpy.array, 2 bytes each. Prints "NAME.png WIDTH HEIGHT ORIENTATION" for each picture; the
orientation is 0 if Pillow does not find one. Pillow cannot write most kinds of PNG, so these are
written here. Exits with 77 without Pillow.
"""

import io
import random
import struct
import sys
import warnings
import zlib
from pathlib import Path

try:
    from PIL import Image
except ImportError:
    sys.exit(77)

warnings.simplefilter("ignore")  # of transparency, which is to be left out
SIZES = [(1, 1), (3, 2), (5, 9), (37, 19)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
ALONE = [(0, 0, 1, 1)]
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
         (0, 1, 1, 2)]
ORIENTATION = 0x0112


def samples(draw, width, height, channels, most):
    """Waves with some noise on them: rows of tuples."""
    return [[tuple((most * (x * (3 + c) + y * (5 - c)) // (3 * (width + height)) +
                    draw.randint(0, most // 5 + 1)) % (most + 1) for c in range(channels))
             for x in range(width)] for y in range(height)]


def filtered(draw, row, before, distance):
    """A row by one of the five filters (PNG, third edition, 9.2)."""
    kind = draw.randint(0, 4)
    out = bytearray([kind])
    for n, value in enumerate(row):
        left = row[n - distance] if n >= distance else 0
        corner = before[n - distance] if n >= distance else 0
        up = before[n]
        guess = left + up - corner
        nearest = min((abs(guess - left), 0, left), (abs(guess - up), 1, up),
                      (abs(guess - corner), 2, corner))[2]
        out.append((value - (0, left, up, (left + up) // 2, nearest)[kind]) % 256)
    return bytes(out)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(draw, width, height, colour, bits, interlaced, extra):
    most = (1 << bits) - 1
    palette_size = min(most + 1, draw.choice([2, 200, 256])) if colour == 3 else 0
    rows = samples(draw, width, height, CHANNELS[colour], (palette_size or most + 1) - 1)
    raw = b""
    for x0, y0, dx, dy in ADAM7 if interlaced else ALONE:
        before = bytes(8 * width)
        for y in range(y0, height, dy):
            text = "".join(f"{value:0{bits}b}" for pixel in rows[y][x0::dx] for value in pixel)
            if text:
                text += "0" * (-len(text) % 8)
                row = int(text, 2).to_bytes(len(text) // 8, "big")
                raw += filtered(draw, row, before, max(1, CHANNELS[colour] * bits // 8))
                before = row
    chunks = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced))
    if extra:  # none of these matters to pixels
        chunks += chunk(b"gAMA", struct.pack(">I", 100000)) + chunk(b"tEXt", b"Title\0" + b"x" * 99)
        chunks += chunk(b"iCCP", b"none\0\0" + zlib.compress(bytes(200)))
    if colour == 3:
        chunks += chunk(b"PLTE", draw.randbytes(3 * palette_size))
    if extra and colour == 3:
        chunks += chunk(b"tRNS", draw.randbytes(palette_size // 2))
    if extra and colour in (0, 2):
        chunks += chunk(b"tRNS", struct.pack(">H", rows[0][0][0] if colour == 0 else 0) *
                        CHANNELS[colour])
    pixels = zlib.compress(raw, draw.choice([0, 1, 9]))
    step = draw.choice([1 << 20, 100])
    for at in range(0, len(pixels), step):
        chunks += chunk(b"IDAT", pixels[at:at + step])
    return b"\x89PNG\r\n\x1a\n" + chunks + chunk(b"IEND", b"")


def image(draw, mode, width, height):
    channels = len(Image.new(mode, (1, 1)).getbands())
    values = samples(draw, width, height, channels, 255)
    pixels = bytes(value for row in values for pixel in row for value in pixel)
    return Image.frombytes(mode, (width, height), pixels)


def saved(picture, form, **options):
    out = io.BytesIO()
    picture.save(out, form, **options)
    return out.getvalue()


def pngs(draw):
    for colour, depths in {0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16],
                           6: [8, 16]}.items():
        for bits in depths:
            for n, (width, height) in enumerate(SIZES):
                for interlaced in (0, 1):
                    yield (f"{colour}_{bits}_{width}x{height}_{interlaced}.png",
                           png(draw, width, height, colour, bits, interlaced, n % 2))
    for mode in ("L", "LA", "RGB", "RGBA"):
        yield f"pillow_{mode}.png", saved(image(draw, mode, 61, 43), "PNG", optimize=True)
    yield "pillow_1.png", saved(image(draw, "L", 61, 43).convert("1"), "PNG")
    yield "pillow_P.png", saved(image(draw, "RGB", 61, 43).quantize(30), "PNG", transparency=3)


def masks(draw):
    for colour, depths in {0: [1, 2, 4, 8, 16], 3: [1, 2, 4, 8]}.items():
        for bits in depths:
            for n, (width, height) in enumerate([*SIZES, (13, 7), (40, 30)]):
                for interlaced in (0, 1):
                    yield (f"{colour}_{bits}_{width}x{height}_{interlaced}.png",
                           png(draw, width, height, colour, bits, interlaced, n % 2))
    for colours in (2, 4, 9, 200):  # of 1, 2, 4 and 8 bits
        yield (f"pillow_P_{colours}.png",
               saved(image(draw, "RGB", 39, 23).quantize(colours), "PNG", transparency=1))
    yield "pillow_1.png", saved(image(draw, "L", 39, 23).convert("1"), "PNG")
    wide = Image.frombytes("I;16", (39, 23), draw.randbytes(2 * 39 * 23))
    yield "pillow_I16.png", saved(wide, "PNG")
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    yield "turned.png", saved(image(draw, "L", 39, 23), "PNG", exif=exif)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 1, 8, 3, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes([0, 0, 1, 2, 255])))
    yield ("short_palette.png", b"\x89PNG\r\n\x1a\n" + header + chunk(b"PLTE", bytes(6)) + pixels +
           chunk(b"IEND", b""))


def values(picture):
    """The numbers that numpy.array(picture) has, row after row."""
    pixels = picture.load()
    scale = 255 if picture.mode == "1" else 1
    numbers = [pixels[x, y] // scale for y in range(picture.height) for x in range(picture.width)]
    return struct.pack(f"<{len(numbers)}H", *numbers)


def webp_chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def animated(frame, x, y, canvas, alpha):
    """Makes an animation whose first of two frames is the file `frame`, at (x, y)."""
    chunks = frame[12:] if frame[12:16] != b"VP8X" else frame[30:]
    size = Image.open(io.BytesIO(frame)).size
    header = struct.pack("<IIIII", x // 2, y // 2, size[0] - 1, size[1] - 1, 100)
    header = b"".join(header[n:n + 3] for n in range(0, 20, 4)) + b"\0"
    frames = webp_chunk(b"ANMF", header + chunks) * 2
    sides = struct.pack("<I", canvas[0] - 1)[:3] + struct.pack("<I", canvas[1] - 1)[:3]
    body = (webp_chunk(b"VP8X", struct.pack("<I", 0x02 | (0x10 if alpha else 0)) + sides) +
            webp_chunk(b"ANIM", bytes(6)) + frames)
    return webp_chunk(b"RIFF", b"WEBP" + body)


def webps(draw):
    for width, height in [*SIZES, (2, 2), (16, 16), (97, 61)]:
        for mode in ("RGB", "RGBA"):
            picture = image(draw, mode, width, height)
            for quality in (5, 75, 100):
                yield (f"{mode}_{width}x{height}_{quality}.webp",
                       saved(picture, "WEBP", quality=quality, method=draw.randint(0, 6)))
            yield (f"{mode}_{width}x{height}_lossless.webp",
                   saved(picture, "WEBP", lossless=True, exact=True, quality=draw.randint(0, 100)))
    for mode in ("RGB", "RGBA"):
        frames = [image(draw, mode, 50, 31) for _ in range(3)]
        yield f"animated_{mode}.webp", saved(frames[0], "WEBP", save_all=True,
                                             append_images=frames[1:])
        for lossless in (False, True):
            frame = saved(frames[0], "WEBP", lossless=lossless)
            yield (f"offset_{mode}_{lossless}.webp",
                   animated(frame, 6, 10, (70, 51), mode == "RGBA"))


def pnms(draw):
    for width, height in SIZES:
        for number, channels in ((5, 1), (6, 3)):
            for header in ("P{n}\n{w} {h}\n255\n", "P{n} # a\n#b\n {w}#c\n\t{h}\r\n255\n"):
                data = draw.randbytes(width * height * channels)
                yield (f"{number}_{width}x{height}_{len(header)}.pnm",
                       header.format(n=number, w=width, h=height).encode() + data)


def exifs(draw):
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[ORIENTATION] = orientation
        picture = image(draw, "RGB", 45, 30)
        yield f"{orientation}.png", saved(picture, "PNG", exif=exif)
        yield f"{orientation}.webp", saved(picture, "WEBP", lossless=True, exif=exif.tobytes())
        # Behind the pixels; some writers put it there.
        end = chunk(b"eXIf", exif.tobytes()[6:]) + chunk(b"IEND", b"")
        yield f"{orientation}_end.png", saved(picture, "PNG")[:-12] + end
    yield from texts(draw)
    yield "none.png", saved(image(draw, "L", 9, 8), "PNG")
    yield "none.webp", saved(image(draw, "RGB", 9, 8), "WEBP")


def xmp(value):
    """A packet as Adobe's and others' programs write it; two words are not the orientation."""
    return (b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF><rdf:Description tiff:Orientation = "9" '
            b'tiff:OrientationX="2" ' + value + b"</rdf:Description></rdf:RDF></x:xmpmeta>")


def raw_profile(data):
    """EXIF in a text, as ImageMagick writes it."""
    digits = data.hex()
    lines = [digits[n:n + 72] for n in range(0, len(digits), 72)]
    return "\n".join(["", "exif", f"{len(data):8}", *lines, ""]).encode()


def texts(draw):
    """Makes PNGs whose orientation is in their text."""
    plain = saved(image(draw, "RGB", 23, 14), "PNG")
    key = b"XML:com.adobe.xmp\0"
    profile_key = b"Raw profile type exif\0"
    other = Image.Exif()
    other[0x0131] = "a program"
    for n in range(1, 9):
        exif = Image.Exif()
        exif[ORIENTATION] = n
        packet = xmp(b'tiff:Orientation="%d">' % n)
        element = xmp(b"><tiff:Orientation>%d</tiff:Orientation>" % n)
        profile = raw_profile(exif.tobytes() + bytes(5000))
        second = raw_profile(exif.tobytes())
        wrong = xmp(b'tiff:Orientation="%d">' % (n % 8 + 1))
        kinds = {
            "xmp": [(b"iTXt", key + bytes(4) + packet)],
            "element": [(b"iTXt", key + b"\0\0en\0key\0" + element)],
            "deflated": [(b"iTXt", key + b"\1\0\0\0" + zlib.compress(packet))],
            "text": [(b"tEXt", key + packet)],
            "profile": [(b"tEXt", profile_key + second)],
            "deflated_profile": [(b"zTXt", profile_key + b"\0" + zlib.compress(profile))],
            "truncated": [(b"zTXt", profile_key + b"\0" + zlib.compress(second)[:-6])],
            "profile_first": [(b"iTXt", key + bytes(4) + wrong),
                              (b"tEXt", profile_key + second)],
            "no_tag": [(b"eXIf", other.tobytes()[6:]), (b"tEXt", profile_key + raw_profile(b"")),
                       (b"iTXt", key + bytes(4) + packet)],
            "not_inflated": [(b"iTXt", key + b"\1\0\0\0" + packet)],
            "method": [(b"iTXt", key + b"\1\1\0\0" + zlib.compress(packet))],
            "last": [(b"tEXt", key + wrong), (b"iTXt", key + bytes(4) + packet)],
        }
        for kind, chunks in kinds.items():
            added = b"".join(chunk(name, data) for name, data in chunks)
            behind = len(plain) - 12 if n % 2 else 33  # before IEND, or after IHDR
            yield f"{kind}_{n}.png", plain[:behind] + added + plain[behind:]


def strays(draw):
    """Makes JPEGs with stray bytes before their end."""
    for mode in ("L", "RGB"):
        picture = image(draw, mode, 61, 43)
        for subsampling in (0, 1, 2):
            for progressive in (False, True):
                sound = saved(picture, "JPEG", subsampling=subsampling, progressive=progressive)
                for stray in (bytes(1), b"\x55" * 3, bytes(8), b"\xa7" * 4, bytes(9000)):
                    yield (f"{mode}_{subsampling}_{progressive}_{len(stray)}.jpg",
                           sound[:-2] + stray + sound[-2:])


def main(kind, folder):
    draw = random.Random(7)
    kinds = {"png": pngs, "webp": webps, "pnm": pnms, "exif": exifs, "stray": strays,
             "mask": masks}
    for name, encoded in kinds[kind](draw):
        path = Path(folder, name)
        path.write_bytes(encoded)
        with Image.open(path) as opened:
            made = values(opened) if kind == "mask" else opened.convert("RGB").tobytes()
            path.with_suffix(path.suffix + ".rgb").write_bytes(made)
            print(name, *opened.size, opened.getexif().get(ORIENTATION, 0))


main(*sys.argv[1:])

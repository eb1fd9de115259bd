# SPDX-License-Identifier: Apache-2.0
"""Values as Python's own writers write them, and as text.

    python3 write_values.py pickle|mutated|python2|msgpack FILE COUNT

FILE gets, for each value, two pieces of 4 bytes of length (little-endian) and as many bytes: what
the writer has written, and rendered() of what the reader of the same library makes of it, or "!"
and a part of the message where it is to be refused. "mutated" are damaged pickles, with "!" for
those that Python refuses. Ends with 77 where the writer is not installed.
"""

import io
import pickle
import pickletools
import random
import resource
import struct
import sys

RANDOM = random.Random(7)
INTEGERS = [0, 1, -1, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1,
            2**32, -128, -129, -32769, 2**63 - 1, -(2**63), 2**55, -(2**55)]
REALS = [0.0, -0.0, 1.5, 0.1, 1e308, 5e-324, 2.2250738585072014e-308, float("inf"),
         float("-inf"), float("nan"), 3.0000000000000004]
LETTERS = ["a", "Z", "\n", "\\", "'", '"', "\0", "\x1a", "\r", "é", "ÿ", "Ā", "漢", "🎻", "\\u0041"]


def rendered(value):
    if value is None:
        return "N"
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, int):
        return f"i{value};"
    if isinstance(value, float):
        return f"f{struct.pack('>d', value).hex()};"
    if isinstance(value, (bytes, bytearray)):
        return f"b{value.hex()};"
    if isinstance(value, str):
        return f"s{value.encode().hex()};"
    if isinstance(value, dict):
        return "{" + "".join(rendered(k) + rendered(v) for k, v in value.items()) + "}"
    items = "".join(rendered(item) for item in value)
    return f"({items})" if isinstance(value, tuple) else f"[{items}]"


def size():
    return RANDOM.choice([0, 1, 2, 3, 5, 20, 255, 256, 300])


def some_bytes():
    return RANDOM.randbytes(70000 if RANDOM.random() < 0.05 else size())


def text():
    return "".join(RANDOM.choice(LETTERS) for _ in range(size()))


def integer():
    return RANDOM.choice([RANDOM.choice(INTEGERS), RANDOM.randrange(-(2**63), 2**63)])


def scalar(with_bytes):
    kinds = [lambda: None, lambda: True, lambda: False, integer, text,
             lambda: RANDOM.choice([RANDOM.choice(REALS), RANDOM.gauss(0, 1e9)])]
    return RANDOM.choice(kinds + [some_bytes] * with_bytes)()


def nested(levels, with_bytes):
    """With values that are referred to more than once, and lists that take several batches."""
    kind = RANDOM.randrange(8)
    if levels == 0 or kind < 3:
        return scalar(with_bytes)
    if kind == 3:
        return [RANDOM.randrange(300) for _ in range(RANDOM.choice([999, 1000, 1001, 2500]))]
    few = [nested(levels - 1, with_bytes) for _ in range(RANDOM.randrange(5))]
    items = [RANDOM.choice(few) for _ in range(RANDOM.randrange(7))] if few else []
    if kind == 4:
        return tuple(items)
    if kind == 5:
        keys = [RANDOM.choice([text, integer]) for _ in items]
        return {key(): item for key, item in zip(keys, items)}
    return items


def has_bytes(value):
    if isinstance(value, dict):
        return any(has_bytes(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(has_bytes(item) for item in value)
    return isinstance(value, bytes)


def sample(with_bytes):
    """Often what image sets are made of."""
    image = some_bytes() if with_bytes else text()
    return RANDOM.choice([lambda: (image, integer()), lambda: (image, text()),
                          lambda: [image, integer()], lambda: {"image": image, "label": integer()},
                          lambda: [text().encode() if with_bytes else text() for _ in range(9)],
                          lambda: nested(4, with_bytes)])()


def pickles(count):
    for _ in range(count):
        protocol = RANDOM.randrange(6)
        value = sample(with_bytes=protocol > 2 or RANDOM.random() < 0.1)
        dumps = RANDOM.choice([pickle.dumps, pickle._dumps])
        written = dumps(value, protocol)
        if RANDOM.random() < 0.2:
            written = pickletools.optimize(written)
        # Empty bytes are a call of another function there.
        refused = protocol < 3 and has_bytes(value)
        yield written, "!GLOBAL at byte" if refused else rendered(value)
        if protocol == 5:
            yield pickle.dumps([bytearray(b"ab"), value], 5), rendered([b"ab", value])
    for number in [2**63, -(2**63) - 1, 2**64, 10**40, -(10**700)]:
        for protocol in range(6):
            yield pickle.dumps((b"" if protocol > 2 else "", number), protocol), "!64 bits"


class Careful(pickle._Unpickler):
    """In Python, since the one in C takes memory for any number in the memo."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError("imports")


def mutated(count):
    # Where a bytearray of any length is asked for.
    resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
    for _ in range(count):
        protocol = RANDOM.randrange(6)
        image = b"\xff\xd8" + RANDOM.randbytes(9) if protocol > 2 else "\xff\xd8"
        value = RANDOM.choice([
            (image, RANDOM.choice(INTEGERS)), [image, "cd", [1.5, None]],
            {"image": image, "label": 5}, {"a": (1, 2, 3), "b": [(), [], {}], "c": "\u6f22" * 3}])
        written = bytearray(pickle.dumps(value, protocol))
        for _ in range(RANDOM.randrange(1, 4)):
            at = RANDOM.randrange(len(written))
            kind = RANDOM.randrange(4)
            if kind == 0:
                written[at] ^= 1 << RANDOM.randrange(8)
            elif kind == 1:
                written[at] = RANDOM.randrange(256)
            elif kind == 2:
                del written[at]
            else:
                opcodes = b"(.012KNJ]})q\x86\x85tladuesh\x94\x88jrgp\x8aIFV"
                written.insert(at, RANDOM.choice(opcodes))
            if not written:
                written = bytearray(b".")
        written = bytes(written)
        try:
            text = rendered(Careful(io.BytesIO(written)).load())
        except (Exception, RecursionError):
            text = "!"
        yield written, text


def python2(count):
    """Strings, unicodes and integers as pickle and cPickle of Python 2 write them."""
    for _ in range(count):
        string, unicode = RANDOM.randbytes(size()), text()
        as_repr = repr(string)[1:].encode()
        as_unicode = unicode.replace("\\", "\\u005c").replace("\0", "\\u0000")
        as_unicode = as_unicode.replace("\n", "\\u000a").replace("\r", "\\u000d")
        as_unicode = as_unicode.replace("\x1a", "\\u001a").encode("raw-unicode-escape")
        lines = b"(S" + as_repr + b"\np0\nV" + as_unicode + b"\np1\nI-12\nL7L\nI01\nF1.5\n"
        lines += b"g0\ntp5\n."
        binstring = b"T" + struct.pack("<i", len(string)) + string
        short = b"\x80\x02U\x03a\0bq\x01" + binstring + b"q\x02\x86."
        for written in lines, short:
            yield written, rendered(pickle.loads(written, encoding="bytes"))


def msgpacks(count):
    try:
        import msgpack
    except ImportError as error:
        print(f"skipped: {error} (python3-msgpack)")
        sys.exit(77)
    for _ in range(count):
        options = {"use_bin_type": RANDOM.random() < 0.8, "use_single_float": RANDOM.random() < 0.1}
        written = msgpack.packb(sample(with_bytes=True), **options)
        try:
            value = msgpack.unpackb(written, raw=False, strict_map_key=False)
        except UnicodeDecodeError:
            continue  # below
        yield written, rendered(value)
    # What is no UTF-8 is bytes.
    yield msgpack.packb([b"\xff\xd8\xff", "ab"], use_bin_type=False), "[bffd8ff;s6162;]"
    yield msgpack.packb((b"ab", 2**64 - 1)), "!beyond int64"
    yield msgpack.packb(msgpack.Timestamp(7, 5)), "!ext type -1 (a timestamp)"
    yield msgpack.packb([msgpack.ExtType(5, bytes(300))]), "!ext type 5"


def main():
    kind, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    kinds = {"pickle": pickles, "mutated": mutated, "python2": python2, "msgpack": msgpacks}
    with open(path, "wb") as file:
        for written, expected in kinds[kind](count):
            for piece in written, expected.encode():
                file.write(struct.pack("<I", len(piece)) + piece)


main()

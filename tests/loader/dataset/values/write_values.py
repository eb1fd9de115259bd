# SPDX-License-Identifier: Apache-2.0
"""Values as Python's own writers write them, and as text.

    python3 write_values.py pickle|mutated|python2|msgpack|datum|tensors FILE COUNT

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
    """Values with shared references, and lists that take several batches."""
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
    """Returns a value, often one that is typical of image sets."""
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
        # Protocols 0 to 2 store bytes as a function call, empty bytes as a call of another one.
        refused = protocol < 3 and has_bytes(value)
        yield written, "!GLOBAL at byte" if refused else rendered(value)
        if protocol == 5:
            yield pickle.dumps([bytearray(b"ab"), value], 5), rendered([b"ab", value])
    for number in [2**63, -(2**63) - 1, 2**64, 10**40, -(10**700)]:
        for protocol in range(6):
            yield pickle.dumps((b"" if protocol > 2 else "", number), protocol), "!64 bits"


class Careful(pickle._Unpickler):
    """The unpickler in Python: the one in C allocates memory for any memo number."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError("imports")


def mutated(count):
    # A damaged pickle may ask for a bytearray of any length.
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
    # In older formats, text that is not UTF-8 stands for bytes.
    yield msgpack.packb([b"\xff\xd8\xff", "ab"], use_bin_type=False), "[bffd8ff;s6162;]"
    yield msgpack.packb((b"ab", 2**64 - 1)), "!beyond int64"
    yield msgpack.packb(msgpack.Timestamp(7, 5)), "!ext type -1 (a timestamp)"
    yield msgpack.packb([msgpack.ExtType(5, bytes(300))]), "!ext type 5"


FIELDS = {
    "Datum": [("channels", 1, "INT32", ""), ("height", 2, "INT32", ""), ("width", 3, "INT32", ""),
              ("data", 4, "BYTES", ""), ("label", 5, "INT32", ""), ("float_data", 6, "FLOAT", "*"),
              ("encoded", 7, "BOOL", "")],
    "TensorProto": [("dims", 1, "INT64", "*"), ("data_type", 2, "INT32", ""),
                    ("float_data", 3, "FLOAT", "+"), ("int32_data", 4, "INT32", "+"),
                    ("byte_data", 5, "BYTES", ""), ("string_data", 6, "BYTES", "*"),
                    ("name", 7, "STRING", ""), ("int64_data", 10, "INT64", "+")],
    "TensorProtos": [("protos", 1, ".TensorProto", "*")],
}


def messages():
    """The classes of FIELDS, which are those of Caffe and Caffe2; "*" is repeated, "+" packed."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError as error:
        print(f"skipped: {error} (python3-protobuf)")
        sys.exit(77)
    file = descriptor_pb2.FileDescriptorProto(name="values.proto", syntax="proto2")
    for message, fields in FIELDS.items():
        descriptor = file.message_type.add(name=message)
        for name, number, kind, repeated in fields:
            field = descriptor.field.add(name=name, number=number)
            field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
            if kind.startswith("."):
                field.type, field.type_name = field.TYPE_MESSAGE, kind
            else:
                field.type = field.Type.Value("TYPE_" + kind)
            if repeated == "+":
                field.options.packed = True
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {name: factory.GetPrototype(pool.FindMessageTypeByName(name)) for name in FIELDS}


def some_floats(count):
    return [struct.unpack("<f", struct.pack("<f", RANDOM.gauss(0, 9)))[0] for _ in range(count)]


def datums(count):
    """Rendered as (encoded, channels, height, width, data, [float ...], label)."""
    datum_class = messages()["Datum"]
    for _ in range(count):
        datum = datum_class()
        kind = RANDOM.randrange(3)
        shape = [RANDOM.randrange(1, 9) for _ in range(3)]
        if kind == 0:
            datum.encoded, datum.data = True, b"\xff\xd8" + some_bytes()
        else:
            datum.channels, datum.height, datum.width = shape
            values = shape[0] * shape[1] * shape[2]
            if kind == 1:
                datum.data = RANDOM.randbytes(values)
            else:
                datum.float_data.extend(some_floats(values))
        if RANDOM.random() < 0.9:
            datum.label = RANDOM.choice([0, 1, -1, 7, 999, 2**31 - 1, -(2**31)])
        label = datum.label if datum.HasField("label") else None
        yield datum.SerializeToString(), rendered((
            datum.encoded, datum.channels, datum.height, datum.width, datum.data,
            list(datum.float_data), label))


def tensors(count):
    """Rendered as [(type, [size ...], its values) ...]."""
    record_class = messages()["TensorProtos"]
    for _ in range(count):
        record, expected = record_class(), []
        for _ in range(RANDOM.randrange(4)):
            tensor = record.protos.add(name=RANDOM.choice(["", "image"]))
            tensor.dims.extend(RANDOM.randrange(5) for _ in range(RANDOM.randrange(4)))
            values = 1
            for dim in tensor.dims:
                values *= dim
            kind = RANDOM.choice([1, 2, 3, 4, 6, 9, 10])
            tensor.data_type = kind
            if kind == 1:
                tensor.float_data.extend(some_floats(values))
                held = list(tensor.float_data)
            elif kind == 3:
                held = tensor.byte_data = RANDOM.randbytes(values)
            elif kind == 4:
                tensor.string_data.extend(some_bytes() for _ in range(values))
                held = list(tensor.string_data)
            elif kind == 10:
                tensor.int64_data.extend(integer() for _ in range(values))
                held = list(tensor.int64_data)
            else:
                least, most = {2: (-(2**31), 2**31), 6: (0, 256), 9: (-(2**15), 2**15)}[kind]
                tensor.int32_data.extend(RANDOM.randrange(least, most) for _ in range(values))
                held = list(tensor.int32_data)
            expected.append((kind, list(tensor.dims), held))
        yield record.SerializeToString(), rendered(expected)


def main():
    kind, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    kinds = {"pickle": pickles, "mutated": mutated, "python2": python2, "msgpack": msgpacks,
             "datum": datums, "tensors": tensors}
    with open(path, "wb") as file:
        for written, expected in kinds[kind](count):
            for piece in written, expected.encode():
                file.write(struct.pack("<I", len(piece)) + piece)


main()

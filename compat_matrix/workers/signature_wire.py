"""SignatureDefs out of serialized protos, without protobuf: what a C, Go or Java client has to do.

Python 3.6 syntax, standard library only. Field numbers are those of ``meta_graph.proto`` and
``types.proto``. Every length is checked before it is used; ValueError for bytes that are not a
message.
"""

import collections

# An input or output as it is fed or fetched. `name` follows docs/exporters/artifacts.md, section
# 1: a sparse or composite one is several entries. `shape` is None for an unknown rank, -1 is an
# unknown dimension.
Entry = collections.namedtuple("Entry", ["name", "tensor", "dtype", "shape"])

DTYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string",
    8: "complex64", 9: "int64", 10: "bool", 11: "qint8", 12: "quint8", 13: "qint32", 14: "bfloat16",
    15: "qint16", 16: "quint16", 17: "uint16", 18: "complex128", 19: "float16", 20: "resource",
    21: "variant", 22: "uint32", 23: "uint64", 24: "float8_e5m2", 25: "float8_e4m3fn",
    26: "float8_e4m3fnuz", 27: "float8_e4m3b11fnuz", 28: "float8_e5m2fnuz", 29: "int4", 30: "uint4",
    31: "int2", 32: "uint2",
}  # fmt: skip
REF_OFFSET = 100  # DT_FLOAT_REF = DT_FLOAT + 100

# Keys that hold the initialisation and training op, not something to call.
INTERNAL_KEYS = ("__saved_model_init_op", "__saved_model_train_op")


def fields(data):
    """``[(field number, value)]`` of a message: int for varints, bytes for the others.

    Groups are refused.
    """
    out, position, end = [], 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, position = _varint(data, position)
        else:
            if kind == 2:
                size, position = _varint(data, position)
            elif kind in (1, 5):
                size = 8 if kind == 1 else 4
            else:
                raise ValueError("wire type {} in a message".format(kind))
            if size > end - position:
                raise ValueError(
                    "a field of {} bytes where {} are left".format(size, end - position)
                )
            value, position = data[position : position + size], position + size
        out.append((number, value))
    return out


def _varint(data, position):
    result = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise ValueError("a message ends inside a number")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
    raise ValueError("a number of more than ten bytes")


def _all(data, number):
    return [value for found, value in fields(data) if found == number]


def _last(data, number, default):
    found = _all(data, number)
    return found[-1] if found else default


def _map(data, number):
    """A ``map<string, message>`` field, sorted by key."""
    pairs = {
        _last(entry, 1, b"").decode("utf-8"): _last(entry, 2, b"") for entry in _all(data, number)
    }
    return collections.OrderedDict(sorted(pairs.items()))


def signature_defs(data):
    """``{key: serialized SignatureDef}`` of a serialized MetaGraphDef, with the internal keys."""
    return _map(data, 5)


def described(serialized):
    """``{key: (inputs, outputs)}`` of what :func:`signature_defs` returned, without the internal
    keys.
    """
    return collections.OrderedDict(
        (key, signature(value)) for key, value in serialized.items() if key not in INTERNAL_KEYS
    )


def method_name(data):
    """The method name of a serialized SignatureDef."""
    return _text(data, 3)


def signature(data):
    """``(inputs, outputs)`` of a serialized SignatureDef."""
    return _side(data, 1), _side(data, 2)


def _side(data, number):
    """The entries of the inputs (1) or outputs (2) of a serialized SignatureDef."""
    found = []
    for name, info in _map(data, number).items():
        found += entries(name, info)
    return found


def feed_names(signatures, key, inputs):
    """``(input name -> tensor name, output entries)`` of one signature.

    KeyError, ValueError when it does not take ``inputs``.
    """
    if key not in signatures:
        raise KeyError("no signature {!r}; there are {}".format(key, sorted(signatures)))
    wanted, produced = signatures[key]
    names = {entry.name: entry.tensor for entry in wanted}
    unknown = sorted(set(inputs) - set(names))
    if unknown:
        raise ValueError(
            "the signature {!r} has no input {}; there are {}".format(
                key, unknown[0], sorted(names)
            )
        )
    return names, produced


def describe(signatures):
    """The reply to the operation ``signatures`` from what :func:`described` returned."""
    return {
        key: {"inputs": _described_side(inputs), "outputs": _described_side(outputs)}
        for key, (inputs, outputs) in signatures.items()
    }


def _described_side(entries):
    return {entry.name: {"dtype": entry.dtype, "shape": entry.shape} for entry in entries}


def entries(name, info):
    """The entries of one input or output, a serialized TensorInfo."""
    sparse, composite = _last(info, 4, None), _last(info, 5, None)
    dtype, shape = _dtype(info), _shape(info)
    if sparse is not None:
        rank = -1 if shape is None else len(shape)
        parts = (
            ("values", 1, dtype, [-1]),
            ("indices", 2, "int64", [-1, rank]),
            ("dense_shape", 3, "int64", [rank]),
        )
        return [
            Entry(name + "/" + part, _text(sparse, number), kind, dims)
            for part, number, kind, dims in parts
        ]
    if composite is not None:
        flat = []
        for part in _all(composite, 2):
            flat += entries("", part)
        return [
            entry._replace(name="{}/component_{}".format(name, index))
            for index, entry in enumerate(flat)
        ]
    return [Entry(name, _text(info, 1), dtype, shape)]


def _text(data, number):
    return _last(data, number, b"").decode("utf-8")


def _dtype(info):
    number = _last(info, 2, 0)
    return DTYPES.get(number - REF_OFFSET if number > REF_OFFSET else number, "invalid")


def _shape(info):
    shape = _last(info, 3, None)
    if shape is None:
        return []  # a message that is absent is an empty one: a scalar
    return None if _last(shape, 3, 0) else dims(shape)


def dims(shape):
    """The sizes of a serialized TensorShapeProto."""
    sizes = [_last(dim, 1, 0) for dim in _all(shape, 2)]
    return [size - (1 << 64) if size >> 63 else size for size in sizes]

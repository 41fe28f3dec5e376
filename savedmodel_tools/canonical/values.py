"""Convert attributes and tensors of a graph to byte strings that are equal when they mean the same.

Three things are generated anew by every export and are replaced: names of functions (by the hash of
what they do, see `canonical_functions`), unique ids (``lstm_3f0a…``, ``_temp_3f0a…/part``), and
names under which tables share their contents (counters, the author's directories). An attribute
that holds its op's default counts as absent where the file gives the default, because some exports
leave it out and others do not.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.format.names import CUSTOM_GRADIENT, GRADIENT_NOT_SAVED, is_generated_gradient
from reference_impl.format.values import dtypes, tensor_proto
from reference_impl.format.wire import END_GROUP, GROUP, WireError, fields
from reference_impl.graph.references import FunctionIndex
from reference_impl.graph.variable_defs import VARIABLE_OPS
from savedmodel_tools.canonical.graph import digest

_GENERATED = re.compile(r"^(__(?:inference|forward|backward)_.*)_\d+$", re.DOTALL)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_TEMPORARY = re.compile(rb"^_temp_[0-9a-f]{32}/part$")
_LOADED = re.compile(r"(?:_load(?:_\d+)+|__load\d+)+$")
_DATASET = re.compile(rb"^\n.(\w+):\d+$", re.DOTALL)  # a message with one name, "BatchDataset:12"
# A custom gradient that the model names and does not have. A re-export replaces the number by a
# name that no process registers.
_NO_GRADIENT = b"CustomGradient"
_COUNTER = re.compile(r"(^|_)\d+$")
_DIRECTORIES = re.compile(r"(^|_)(?:[A-Za-z]:)?[/\\](?:[^/\\]*[/\\])*")
_VARIABLES = VARIABLE_OPS | {"AutoReloadVariable"}
_VERBATIM = frozenset({"i", "f", "b", "type", "shape", "placeholder"})

# TensorProto: dtype -> the list that may hold its elements, and the struct format of one. Integers
# up to 32 bits share a list.
_LISTS = {
    "float32": ("float_val", "f"),
    "float64": ("double_val", "d"),
    "complex64": ("scomplex_val", "f"),
    "complex128": ("dcomplex_val", "d"),
    "int64": ("int64_val", "q"),
    "bool": ("bool_val", "?"),
    "uint32": ("uint32_val", "I"),
    "uint64": ("uint64_val", "Q"),
    "float16": ("half_val", "H"),
    "bfloat16": ("half_val", "H"),
}


def shared_name(op: str, name: str) -> str:
    """Return the name under which an op's resource is shared, without generated parts: ``table_36``
    becomes ``table_#``.
    """
    name = _UUID.sub("<uuid>", name)
    if op in _VARIABLES:
        return name
    return _COUNTER.sub(r"\1#", _DIRECTORIES.sub(r"\1", _LOADED.sub("", name)))


# String attributes that are not looked up among the names of functions, or not unchanged.
OWN_TEXT = frozenset({"config_proto", "shared_name", "metadata", CUSTOM_GRADIENT})

# The object graph holds the names that callers may use for an argument; here the tracer notes them
# or counts captures.
_SAID_ELSEWHERE = frozenset({"_user_specified_name"})


class Values:
    """Converts attributes to bytes.

    Args:
      library: the functions that attributes may name.
      reference: returns the bytes that stand for a function of the library.
      op_defs: OpDefs whose defaults count as absent.
    """

    def __init__(
        self, library: FunctionIndex, reference: Callable[[str], bytes], op_defs: Any = ()
    ):
        self.library = library
        self.reference = reference
        self.defaults = {op.name: _defaults(op) for op in op_defs}

    def attributes(
        self, attributes: Any, op: str = "", skip: frozenset[str] = frozenset()
    ) -> bytes:
        """Return the attributes of a node, function or argument, sorted by name, without those that
        hold their default.
        """
        parts: list[bytes] = []
        for key, data in self.counted(attributes, op, skip):
            parts += key.encode(), data
        return digest(*parts)

    def counted(
        self, attributes: Any, op: str = "", skip: frozenset[str] = frozenset()
    ) -> Iterator[tuple[str, bytes]]:
        """Return the attributes that count, sorted by name, each as bytes."""
        defaults = self.defaults.get(op, {})
        for key in sorted(attributes):
            value = attributes[key]
            if (
                key in _SAID_ELSEWHERE
                or key in skip
                or (key in defaults and schema.serialize(value) == defaults[key])
            ):
                continue
            yield key, self.attribute(key, value, op)

    def attribute(self, key: str, value: schema.AttrValue, op: str = "") -> bytes:
        """Return one attribute as bytes."""
        kind = value.WhichOneof("value")
        if kind is None or kind in _VERBATIM:
            data: bytes = value.SerializeToString()  # contains nothing whose order may vary
            return data
        if kind == "s":
            return b"s" + self.text(key, value.s, op)
        if kind == "tensor":
            return b"t" + tensor(value.tensor)
        if kind == "func":
            return b"f" + self.function(value.func)
        items = value.list
        if not (items.s or items.func or items.tensor):
            return schema.serialize(value)
        return b"l" + digest(
            *[b"s" + self.text(key, item, op) for item in items.s],
            *[b"f" + self.function(item) for item in items.func],
            *[b"t" + tensor(item) for item in items.tensor],
        )

    def function(self, value: schema.NameAttrList) -> bytes:
        """Return a function value as bytes.

        Its attributes may hold further functions; the parser limits the depth.
        """
        return digest(self.name(value.name), self.attributes(value.attr))

    def name(self, name: str) -> bytes:
        """Return the bytes that stand for a function name: the function's hash, or the name without
        its counter if it is not in the library.
        """
        if name in self.library.functions:
            return b"function " + self.reference(name)
        match = _GENERATED.match(name)
        return (match.group(1) if match else name).encode()

    def text(self, key: str, value: bytes, op: str) -> bytes:
        """Return a string attribute as bytes."""
        if key == "config_proto":
            return _config_proto(value)
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            return value
        if key == "shared_name":
            return shared_name(op, text).encode()
        if key == CUSTOM_GRADIENT:
            gradient = self.library.gradients.get(text)
            if gradient is not None:
                return b"gradient " + self.name(gradient)
            if text == GRADIENT_NOT_SAVED or is_generated_gradient(text):
                return _NO_GRADIENT
            return re.sub(r"-\d+$", "", text).encode()
        if key == "metadata":
            return _DATASET.sub(rb"\1", value)
        if text in self.library.functions:
            return self.name(text)
        text = _GENERATED.sub(r"\1", text) if text.startswith("__") else text
        return (_UUID.sub("<uuid>", text) if "-" in text else text).encode()


def _config_proto(data: bytes) -> bytes:
    """Return a serialized ConfigProto with the entries of its only map, device_count, sorted;
    return other bytes unchanged.
    """
    records, start = [], 0
    try:
        for number, wire, _, end in fields(data):
            if wire in (GROUP, END_GROUP):
                return data
            records.append((number, data[start:end]))
            start = end
    except WireError:
        return data
    return b"".join(
        record
        for _, record in sorted(
            records, key=lambda item: (item[0], item[1] if item[0] == 1 else b"")
        )
    )


def is_temporary(text: bytes) -> bool:
    """Return whether a text names a temporary file, as generated by an export for each save op."""
    return _TEMPORARY.match(text) is not None


def tensor(proto: schema.TensorProto) -> bytes:
    """Return a literal tensor as bytes: dtype, shape and elements, independent of how the elements
    are written.

    ``tensor_content`` or a list holds the elements; a list may omit repetitions of its last
    element. All forms become the elements without such repetitions, so a tensor that claims a huge
    shape costs no more than its bytes.
    """
    try:
        dtype = dtypes.by_number(proto.dtype).base
        content = _content(proto, dtype)
    except (errors.DtypeError, errors.ShapeError, struct.error, OverflowError):
        return digest(b"odd", schema.serialize(proto))
    if content is None:
        return digest(b"odd", schema.serialize(proto))
    return digest(dtype.name.encode(), schema.serialize(proto.tensor_shape), *content)


def _content(proto: schema.TensorProto, dtype: dtypes.DType) -> list[bytes] | None:
    if dtype.name == "string":
        content = proto.tensor_content
        listed = tensor_proto.strings(proto, len(content)) if content else proto.string_val
        items = [b"_temp/part" if is_temporary(item) else item for item in listed or ()]
        while len(items) > 1 and items[-1] == items[-2]:
            items.pop()
        return [] if items == [b""] else items
    if dtype.itemsize is None:
        return None
    if len(proto.tensor_shape.dim) > limits.RANK:
        return None
    if proto.tensor_content:
        data = proto.tensor_content
        if len(data) != dtype.itemsize * math.prod([dim.size for dim in proto.tensor_shape.dim]):
            return None  # only a list may omit elements
    elif dtype.name.startswith("float8"):
        data = proto.float8_val
    elif dtype.name in _LISTS:
        field, code = _LISTS[dtype.name]
        values = getattr(proto, field)
        data = struct.pack(f"<{len(values)}{code}", *values)
    else:
        size, mask = dtype.itemsize, (1 << 8 * dtype.itemsize) - 1
        data = b"".join([(value & mask).to_bytes(size, "little") for value in proto.int_val])
    if len(data) % dtype.itemsize:
        return None
    return [_without_repetitions(data, dtype.itemsize)]


def _without_repetitions(data: bytes, size: int) -> bytes:
    """Return ``data`` up to the first element after which all are the same; nothing when all are
    zero.

    The start of the repetition is found by bisection: a string that repeats from one place repeats
    from every later place.
    """
    low, high = 0, max(len(data) // size - 1, 0)
    if data[-2 * size : -size] != data[-size:]:
        low = high
    while low < high:
        middle = (low + high) // 2
        if data[middle * size : -size] == data[(middle + 1) * size :]:
            high = middle
        else:
            low = middle + 1
    kept = data[: (low + 1) * size]
    return b"" if low == 0 and not any(kept) else kept


def _defaults(op: schema.OpDef) -> dict[str, bytes]:
    return {
        item.name: schema.serialize(item.default_value)
        for item in op.attr
        if item.HasField("default_value")
    }

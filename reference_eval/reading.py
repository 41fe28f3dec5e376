"""Read a SavedModel for the evaluator. No other module of this package uses `reference_impl`.

A `Source` has the files and the `Program` of a MetaGraph: the functions over state that stand for a
session. `attribute` and `tensor` turn messages into Python values and arrays.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

import numpy as np
from google.protobuf import text_format

from reference_impl.errors import SavedModelError as SavedModelError
from reference_impl.format import read as read_directory
from reference_impl.format import schema as schema
from reference_impl.format import wire
from reference_impl.format.bundle.reader import BundleReader as BundleReader
from reference_impl.format.container.farmhash import fingerprint64 as fingerprint64
from reference_impl.format.container.files import open_regular as open_regular
from reference_impl.format.values.dtypes import by_number
from reference_impl.format.values.shapes import shape_of
from reference_impl.format.values.tensor_proto import decode as tensor
from reference_impl.graph.edges import Edge as Edge
from reference_impl.graph.edges import parse_input as parse_input
from reference_impl.graph.op_table import V1_FLOW as V1_FLOW
from reference_impl.graph.op_table import OpTable as OpTable
from reference_impl.graph.order import sources_first as sources_first
from reference_impl.graph.random_ops import SEEDED_OPS, UNSEEDED_OPS
from reference_impl.graph.signature_tensors import parts_of
from reference_impl.safety import op_effects as op_effects
from reference_impl.v1.reading.extract import Extracted as Extracted
from reference_impl.v1.reading.program import Program
from reference_impl.v1.reading.signatures import Signature as Signature

__all__ = ["Edge", "Extracted", "OpTable", "SavedModelError", "Signature", "tensor"]

DRAWING_OPS = SEEDED_OPS | UNSEEDED_OPS  # that draw from a state which a model does not store
_DEFINITIONS = Path(__file__).with_name("op_definitions.pbtxt")


class FunctionName(NamedTuple):
    """The value of an attribute that names a function."""

    name: str


class Source:
    """The files and the program of one MetaGraph.

    Args:
      directory: the SavedModel.
      tags: the tags of the MetaGraph, or None for the only one.

    Raises the errors of `reference_impl.format.read` and of `Program`.
    """

    def __init__(self, directory: str, tags: Union[str, Iterable[str], None] = None) -> None:
        self.layout = read_directory(directory)
        wanted = tags if tags is None or isinstance(tags, str) else list(tags)
        self.meta_graph = self.layout.meta_graph(wanted)
        self.file = str(self.layout.file)
        self.program = Program(self.meta_graph, self.file, definition_of)
        self.functions: dict[str, schema.FunctionDef] = {
            function.signature.name: function
            for function in self.program.graph.graph_def.library.function
        }

    def add(self, extracted: Extracted) -> schema.FunctionDef:
        """Return a function that was cut out, and register the functions made with it."""
        for function in extracted.functions:
            self.functions[function.signature.name] = function
        made: schema.FunctionDef = extracted.function
        return made

    def input_names(self, key: str) -> dict[str, str]:
        """Return the parts of the inputs of a signature: argument of its function -> name of the
        input, e.g. ``ids_values`` -> ``ids/values`` for a sparse input ``ids``.
        """
        found = {}
        for name, info in self.meta_graph.signature_def[key].inputs.items():
            for part, _, _, _ in parts_of(info)[1]:
                found[f"{name}_{part}" if part else name] = f"{name}/{part}" if part else name
        return found

    def defaults(self, key: str) -> dict[str, np.ndarray[Any, Any]]:
        """Return the values of the inputs of a signature that a call may leave out."""
        defaults = self.meta_graph.signature_def[key].defaults
        return {name: tensor(value) for name, value in sorted(defaults.items())}

    @functools.cached_property
    def asset_paths(self) -> dict[str, str]:
        """The node that holds the path of an asset -> the absolute path."""
        return {
            edge.source: str(self.layout.asset_path(name))
            for edge, name in self.program.assets.items()
        }


@functools.cache
def _definition_texts() -> dict[str, str]:
    """Return the text of each OpDef. Few are asked for, and to parse all takes long."""
    text = _DEFINITIONS.read_text(encoding="utf-8")
    blocks = re.finditer(r'^op \{\n  name: "(\w+)"\n.*?^\}\n', text, re.MULTILINE | re.DOTALL)
    return {block[1]: block[0] for block in blocks}


def definition_of(op: str) -> Optional[schema.OpDef]:
    """Return the OpDef of an op that rewriting adds to a graph, or None for another op."""
    text = _definition_texts().get(op)
    if text is None:
        return None
    definition: schema.OpDef = text_format.Parse(text, schema.OpList()).op[0]
    return definition


def dtype_of(number: int) -> np.dtype[Any]:
    """Return the NumPy type of a DataType; strings, resources and variants are `object`."""
    base = number % 100
    if base in (schema.DT_RESOURCE, schema.DT_VARIANT):
        return np.dtype(object)
    return by_number(base).numpy()


def attribute(value: schema.AttrValue) -> Any:
    """Return the value of an attribute: a Python value, an array, a NumPy dtype, a `FunctionName`,
    or a list of these.
    """
    kind = value.WhichOneof("value")
    if kind == "list":
        return _list(value.list)
    return _CONVERT[kind](getattr(value, kind)) if kind else []


def shape_sizes(shape: Optional[schema.TensorShapeProto]) -> Optional[tuple[int, ...]]:
    """Return the sizes of a shape, -1 for an unknown one; None for an unknown rank."""
    if shape is None:
        return None
    sizes = shape_of(shape)
    return None if sizes is None else tuple([-1 if size is None else size for size in sizes])


def _unchanged(value: Any) -> Any:
    return value


def _list(values: schema.AttrValue.ListValue) -> list[Any]:
    for field, items in values.ListFields():
        return [_CONVERT[field.name](item) for item in items]
    return []


_CONVERT: Mapping[str, Any] = {
    "s": bytes,
    "i": int,
    "f": float,
    "b": bool,
    "type": dtype_of,
    "shape": shape_sizes,
    "tensor": tensor,
    "func": lambda function: FunctionName(function.name),
    "placeholder": _unchanged,
}


def wire_fields(message: bytes) -> Iterator[tuple[int, int, Any, int]]:
    """Yield number, wire type, content and end of each field.

    Raises ValueError: a field is broken.
    """
    try:
        yield from wire.fields(message)
    except wire.WireError as error:
        raise ValueError(f"Could not parse example input: {error}") from error


def wire_varints(data: bytes) -> Iterator[int]:
    """Yield the variable-length integers of a packed field."""
    position = 0
    while position < len(data):
        value, position = wire.read_varint(data, position, len(data))
        yield value

"""The serving contract of a SavedModel as data: tag sets, signatures, arguments with their types,
order and defaults.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Optional

from reference_impl.errors import DuplicateKeyError
from reference_impl.format import schema
from reference_impl.format.container import files, layout
from reference_impl.format.names import SIGNATURES_CHILD
from reference_impl.format.values import dtypes
from reference_impl.format.values.shapes import shape_text
from reference_impl.format.values.tensor_proto import decode
from reference_impl.views.signatures import signatures
from reference_impl.views.types import Shape, SignatureArgument

if TYPE_CHECKING:  # imports NumPy, which only defaults and answers need
    from savedmodel_common.tensors import Tensor

_TENSOR = re.compile(r"([a-z][a-z0-9_]*)\[((?:\?|\d{1,18})(?:,(?:\?|\d{1,18}))*|\.\.\.|)\]")
KINDS = ("dense", "sparse", "composite")


@dataclass(frozen=True)
class Type:
    """The type of an argument."""

    kind: str  # one of KINDS
    tensors: tuple[
        tuple[str, Shape], ...
    ]  # dtype and shape; of a composite argument those of its components in order, else one
    spec: str = ""  # what a composite type calls itself, else empty

    def __str__(self) -> str:
        text = "; ".join(dtype + shape_text(shape) for dtype, shape in self.tensors)
        return (
            text
            if self.kind == "dense"
            else f"{self.kind} {text}" + (f" = {self.spec}" if self.kind == "composite" else "")
        )


def parse_type(text: str) -> Type:
    """The reverse of ``str``. Raises ValueError."""
    kind, _, rest = text.partition(" ")
    if kind not in KINDS[1:]:
        kind, rest = "dense", text
    rest, _, spec = rest.partition(" = ") if kind == "composite" else (rest, "", "")
    parts = rest.split("; ") if kind == "composite" else [rest]
    if not rest and kind == "composite":
        parts = []
    return Type(kind, tuple([_tensor(part) for part in parts]), spec)


def _tensor(text: str) -> tuple[str, Shape]:
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a type such as float32[?,3]")
    if match[2] == "...":
        return match[1], None
    return match[1], tuple(
        [None if size == "?" else int(size) for size in match[2].split(",")] if match[2] else []
    )


@dataclass(frozen=True)
class Signature:
    """The promise of one signature. ``order``: the inputs in the order of the exported function, if
    it is recorded; converters and positional callers use it. ``defaults``: values of inputs that a
    request may leave out."""

    method: str
    inputs: dict[str, Type]
    outputs: dict[str, Type]
    order: tuple[str, ...] = ()
    defaults: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """A golden request of a signature and its answer."""

    tags: tuple[str, ...]
    signature: str
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]


@dataclass(frozen=True)
class Answers:
    """Golden requests, and the tolerance of their answers: ``atol + rtol * |recorded|`` for
    floating types.
    """

    requests: tuple[Request, ...]
    rtol: float
    atol: float
    reason: str


@dataclass(frozen=True)
class Contract:
    """Signatures by key, by sorted tags; and answers, when some are on record."""

    meta_graphs: dict[tuple[str, ...], dict[str, Signature]]
    answers: Optional[Answers] = None


def contract_of(path: files.AnyPath, *, follow_links: bool = False) -> Contract:
    """Return the contract that a SavedModel fulfils; reads no weights. Raises SavedModelError."""
    model = layout.read(path, follow_links=follow_links)
    found: dict[tuple[str, ...], dict[str, Signature]] = {}
    for graph in model.saved_model.meta_graphs:
        tags = layout.tags_of(graph)
        if tags in found:
            raise DuplicateKeyError(
                f"two MetaGraphs have the tags {layout.tags_text(tags)}",
                file=model.file,
                clause="V1-05",
            )
        found[tags] = _signatures(graph)
    return Contract(dict(sorted(found.items())))


def _signatures(graph: schema.MetaGraphDef) -> dict[str, Signature]:
    orders = _orders(graph.object_graph_def)
    found = {}
    for item in signatures(graph):
        inputs = {argument.name: _type(argument) for argument in item.inputs}
        order = orders.get(item.key, ())
        stored = graph.signature_def[item.key].defaults
        defaults = {name: _value(stored[name]) for name in sorted(stored)}
        order = order if len(order) > 1 and sorted(order) == sorted(inputs) else ()
        found[item.key] = Signature(
            item.method_name,
            inputs,
            {argument.name: _type(argument) for argument in item.outputs},
            order,
            defaults,
        )
    return found


def _type(argument: SignatureArgument) -> Type:
    if argument.kind == "composite":
        return Type(
            "composite",
            tuple([(slot.dtype, slot.shape) for slot in argument.tensors]),
            argument.type_spec or "",
        )
    return Type(argument.kind, ((argument.dtype or "invalid", argument.shape),))


def _value(proto: schema.TensorProto) -> Tensor:
    from savedmodel_common.tensors import from_numpy

    return from_numpy(decode(proto), dtypes.by_number(proto.dtype).name)


def _orders(graph: schema.SavedObjectGraph) -> dict[str, tuple[str, ...]]:
    """Signature -> names of its inputs in the order of the exported function (TF 2.x: the object
    `signatures` of the root).
    """
    found: dict[str, tuple[str, ...]] = {}
    for child in graph.nodes[0].children if graph.nodes else ():
        if child.local_name == SIGNATURES_CHILD and 0 <= child.node_id < len(graph.nodes):
            for item in graph.nodes[child.node_id].children:
                if 0 <= item.node_id < len(graph.nodes) and graph.nodes[item.node_id].HasField(
                    "bare_concrete_function"
                ):
                    found[item.local_name] = tuple(
                        graph.nodes[item.node_id].bare_concrete_function.argument_keywords
                    )
    return found

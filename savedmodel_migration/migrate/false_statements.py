"""SignatureDefs whose statements about a tensor the graph contradicts.

A session follows the graph, whatever the SignatureDef states; so does the migrated model, whose
SignatureDef states what the graph gives. Example: a SignatureDef gives the input ``x`` the shape
[None, 7], its placeholder has the shape [None]. Nothing is lost by that difference.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from compat_matrix.checks.kinds.signatures import UNSTATED
from reference_impl.errors import LimitError
from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.format.names import RESERVED_SIGNATURES
from reference_impl.format.values.shapes import Shape, may_be_one, shape_proto, shape_text
from reference_impl.graph.edges import input_source
from reference_impl.graph.node_index import Nodes
from reference_impl.views.signatures import slots_of
from savedmodel_tools.verify.model import Graph, Model
from savedmodel_tools.verify.shapes import Shapes

Spec = dict[str, dict[str, dict[str, dict[str, Any]]]]  # as `signature_spec` returns it
_SIDES = ("inputs", "outputs")


def askable(found: layout.Layout) -> layout.Layout:
    """Return a model whose SignatureDefs give each input a shape that its placeholder takes.

    Requests are made, and held against the SignatureDef, by that shape; a request of a false one
    would be refused by the session, and a true one by us. The same model is returned where
    nothing is false.
    """
    changes = {
        index: false
        for index, graph in enumerate(found.saved_model.meta_graphs)
        if (false := _false_inputs(graph))
    }
    if not changes:
        return found
    model = schema.SavedModel()
    model.CopyFrom(found.saved_model)
    for index, false in changes.items():
        for key, name, shape in false:
            info = model.meta_graphs[index].signature_def[key].inputs[name]
            info.tensor_shape.CopyFrom(shape_proto(shape))
    return layout.Layout(found.root, found.file, model, found.alternatives)


def _false_inputs(graph: schema.MetaGraphDef) -> list[tuple[str, str, Shape]]:
    """Return signature, input and true shape of each dense input that is stated falsely."""
    inputs = []
    for key, signature in sorted(graph.signature_def.items()):
        for name, info in sorted(signature.inputs.items()):
            inputs.append((key, name, info))
    fed = {input_source(info.name) for _, _, info in inputs}
    nodes = [node for node in graph.graph_def.node if node.name in fed]
    shapes = Shapes(Nodes(nodes), graph.graph_def.versions.producer)
    false = []
    for key, name, info in inputs:
        kind, slots = slots_of(info)
        if kind == "dense" and not may_be_one(shapes.of(slots[0].tensor), slots[0].shape):
            false.append((key, name, shapes.of(slots[0].tensor)))
    return false


class Statement(NamedTuple):
    """The place of one statement in the old SignatureDefs, and the tensor that it is about."""

    key: str  # of the signature
    side: str  # inputs or outputs
    name: str  # of the argument, as in a `Spec`
    tensor: str


def corrected(
    found: layout.Layout, tags: Sequence[str], before: Spec, after: Spec
) -> tuple[Spec, list[str]]:
    """Return what the old SignatureDefs state, corrected where the graph contradicts it.

    Args:
      found: the old model.
      tags: of its MetaGraph.
      before: what the SignatureDefs of the old model state.
      after: what those of the new model state. Only a statement that fits the graph of the old
        model takes the place of a false one.

    Returns:
      The corrected statements, and a sentence for each correction.
    """
    model = Model(found)
    try:
        return _corrected(Graph(model, found.meta_graph(tags)), before, after)
    except LimitError:  # the shapes of so large a graph are not inferred: nothing is contradicted
        return before, []
    finally:
        model.close()


def _corrected(graph: Graph, before: Spec, after: Spec) -> tuple[Spec, list[str]]:
    spec, sentences = copy.deepcopy(before), []
    for item in _statements(graph):
        stated = spec.get(item.key, {}).get(item.side, {}).get(item.name)
        now = after.get(item.key, {}).get(item.side, {}).get(item.name)
        if stated is None or now is None:
            continue
        for member, old, new in _contradicted(graph, item.tensor, stated, now):
            stated[member] = now[member]
            sentences.append(
                f"{item.side[:-1]} {item.name!r} of {item.key!r}: the old SignatureDef states the"
                f" {member} {old}, which its graph contradicts; the new one states {new}"
            )
    return spec, sentences


def _statements(graph: Graph) -> Iterator[Statement]:
    for key, signature in sorted(graph.proto.signature_def.items()):
        if key in RESERVED_SIGNATURES:
            continue
        for side in _SIDES:
            for name, info in sorted(getattr(signature, side).items()):
                for slot in slots_of(info)[1]:
                    full = f"{name}/{slot.part}" if slot.part else name
                    yield Statement(key, side, full, slot.tensor)


def _contradicted(
    graph: Graph, tensor: str, stated: dict[str, Any], now: dict[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """Yield member, old and new text where the graph contradicts the old, and not the new."""
    said = stated["dtype"].removesuffix("_ref")
    if said not in (now["dtype"], UNSTATED) and graph.dtype_of(tensor) == now["dtype"]:
        yield "dtype", stated["dtype"], now["dtype"]
    shape = graph.main_shapes.of(tensor)
    old, new = _shape(stated["shape"]), _shape(now["shape"])
    if not may_be_one(shape, old) and may_be_one(shape, new):
        yield "shape", shape_text(old), shape_text(new)


def _shape(sizes: list[int | None] | None) -> Shape:
    return None if sizes is None else tuple(sizes)

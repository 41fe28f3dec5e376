"""The shapes of outputs that depend on the main graph.

A function that was traced over a table does not know the shape of the table's values: the handle
does not have it, and the node that makes the table is in the main graph. TensorFlow's own inference
over the main graph finds the shape.

RFC: ATTR-03
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.functions.names import ExportName
from reference_impl.functions.specs import shape_of, shape_proto
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import input_source
from reference_impl.graph.node_index import Nodes
from reference_impl.graph.references import names_in
from reference_impl.saving.closed_library import ClosedLibrary

_SHAPES = "_output_shapes"
_log = logging.getLogger(__name__)


class InferredSpec(NamedTuple):
    """The shape of an output of a signature.

    Attributes:
      function: the name of the function that the signature calls.
      output: the name of the output.
      call, result: the node that calls the function, and the number of the result.
    """

    function: ExportName
    output: str
    call: str
    result: int
    shape: schema.TensorShapeProto


def infer_output_specs(
    signatures: Mapping[ExportName, schema.SignatureDef],
    graph_def: schema.GraphDef,
    library: ClosedLibrary,
    unchecked: Collection[ExportName] = (),
) -> list[InferredSpec]:
    """Return the shapes of outputs that their SignatureDef does not know, or states falsely.

    Args:
      signatures: name of the function that is called -> SignatureDef.
      graph_def: the main graph.
      unchecked: the functions whose SignatureDef has the shapes that a TF 1.x graph states. Such a
        shape may be false, and TensorFlow refuses to load a false shape.
    """
    asked: list[tuple[ExportName, str, schema.TensorInfo]] = []
    for function, signature in signatures.items():
        asked += [
            (function, name, info)
            for name, info in signature.outputs.items()
            if info.WhichOneof("encoding") == "name"
            and (info.tensor_shape.unknown_rank or function in unchecked)
        ]
    if not asked:
        return []
    shapes = _shapes(graph_def, [info.name for _, _, info in asked], library)
    found = []
    for function, name, info in asked:
        shape = shapes.get(info.name)
        if shape is not None and _adds(shape, shape_of(info.tensor_shape), name):
            call, _, index = info.name.rpartition(":")
            found.append(InferredSpec(function, name, call, int(index), shape_proto(shape)))
    return found


def _adds(shape: tf.TensorShape, stated: tf.TensorShape, name: str) -> bool:
    """Return whether an inferred shape says more than the stated one, or contradicts it."""
    if stated.rank is None:
        return shape.rank is not None
    if shape.is_compatible_with(stated):
        return False
    _log.warning(
        "the shape %s of the result %r of a signature is false, the graph has %s (V1-01)",
        stated,
        name,
        shape,
    )
    return True


def record_output_specs(
    meta_graph: schema.MetaGraphDef,
    signatures: Mapping[ExportName, schema.SignatureDef],
    inferred: Sequence[InferredSpec],
) -> None:
    """Write inferred shapes into a MetaGraph: its SignatureDefs, calls, functions and their
    descriptions.

    `signatures` are SignatureDefs of the MetaGraph, by the function that is called.
    """
    if not inferred:
        return
    nodes = {node.name: node for node in meta_graph.graph_def.node}
    functions = {item.signature.name: item for item in meta_graph.graph_def.library.function}
    described = meta_graph.object_graph_def.concrete_functions
    for spec in inferred:
        signatures[spec.function].outputs[spec.output].tensor_shape.CopyFrom(spec.shape)
        outputs = described[spec.function].output_signature.dict_value.fields
        if spec.output in outputs:
            outputs[spec.output].tensor_spec_value.shape.CopyFrom(spec.shape)
        attributes = nodes[spec.call].attr
        said = attributes[_SHAPES].list.shape if _SHAPES in attributes else ()
        if spec.result < len(said):
            said[spec.result].CopyFrom(spec.shape)
        _annotate(functions[spec.function], spec.result, spec.shape)


def _annotate(definition: schema.FunctionDef, result: int, shape: schema.TensorShapeProto) -> None:
    """Record the shape of a result at its node, where TensorFlow 2.12 to 2.21 look when they load a
    function.
    """
    source = definition.ret[definition.signature.output_arg[result].name].partition(":")[0]
    for node in definition.node_def:
        if node.name == source and node.op == "Identity":
            node.attr[_SHAPES].list.ClearField("shape")
            node.attr[_SHAPES].list.shape.add().CopyFrom(shape)


def _shapes(
    graph_def: schema.GraphDef, tensors: Sequence[str], library: ClosedLibrary
) -> dict[str, tf.TensorShape]:
    """Return the shapes that TensorFlow infers for tensors of the main graph."""
    graph = tf.Graph()
    part = _needed_part(graph_def, tensors, library)
    try:
        with graph.as_default():
            tf.import_graph_def(api.to_tf(part, tf.compat.v1.GraphDef), name="")
    except (ValueError, tf.errors.OpError):  # an unknown op, which may still be saved
        return {}
    return {name: graph.get_tensor_by_name(name).shape for name in tensors}


def _needed_part(
    graph_def: schema.GraphDef, tensors: Sequence[str], library: ClosedLibrary
) -> schema.GraphDef:
    """Return the part of the main graph that some tensors depend on, with its functions."""
    nodes = Nodes(graph_def.node)
    needed = reachable([input_source(name) for name in tensors], nodes.waits)
    part = schema.GraphDef(versions=graph_def.versions)
    part.node.extend(node for name, node in zip(nodes.names, nodes.messages) if name in needed)
    for node in part.node:
        node.attr.pop(_SHAPES, None)  # the import refuses false ones
    names = map(ExportName, names_in(part.node))
    called = [name for name in names if name in library.definitions]
    closure = set(itertools.chain.from_iterable(map(library.closure, called)))
    part.library.function.extend(library.definitions[name] for name in sorted(closure))
    return part

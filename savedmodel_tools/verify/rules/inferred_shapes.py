"""Shapes that contradict each other: TensorFlow infers the shape of every tensor when Python
imports a graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reference_impl.format.values.shapes import shape_text
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import input_source
from reference_impl.graph.node_index import Nodes
from reference_impl.graph.signature_tensors import tensor_names
from reference_impl.views.signatures import slots_of
from savedmodel_tools.verify.consequences import COPY_FAILS, UNSURE_SIGNATURE
from savedmodel_tools.verify.findings import Fault, Severity, graph_rule
from savedmodel_tools.verify.shape_functions import Misfit, merge
from savedmodel_tools.verify.shapes import SCALARS_SINCE, Shapes

if TYPE_CHECKING:
    from reference_impl.format import schema
    from savedmodel_tools.verify.model import Graph, Model


@graph_rule(
    "SMC531",
    "shapes-contradict",
    Severity.WARNING,
    summary=(
        "Shapes in a graph contradict each other: an op cannot take its inputs, or another shape is"
        " said than follows."
    ),
    why=(
        "TensorFlow's Python loaders infer all shapes and refuse the graph ('Shape must be rank',"
        " 'Dimensions must be equal', 'inconsistent with the GraphDef'); older releases were less"
        " strict. Servers infer shapes only when they run."
    ),
    fix=(
        "Export again with shapes that fit; if a tool set the batch size, it must edit the shapes"
        " of all nodes (or drop the attr _output_shapes)."
    ),
)
def shapes_contradict(model: Model, graph: Graph) -> Iterator[Fault]:
    """Importing the main graph matters to tf.saved_model.load only where it cuts it; the v1 loader
    always imports it.
    """
    producer = graph.proto.graph_def.versions.producer
    for body, nodes in zip(graph.bodies, graph.indexes):
        function = None if body.function is None else graph.library.functions[body.function]
        shapes = (
            graph.main_shapes
            if function is None
            else Shapes(nodes, producer, function, forms=graph.form)
        )
        severity = None if function is not None or graph.is_cut else Severity.INFO
        for node, message in shapes.misfits:
            yield Fault(message, node=node, function=body.function, severity=severity)
        if function is None and graph.is_cut:
            yield from _outputs(graph, shapes)
            yield from _copies(graph, shapes, producer)


def _outputs(graph: Graph, shapes: Shapes) -> Iterator[Fault]:
    """The outputs of signatures: the loader gives the tensor the shape that the signature says."""
    for key, signature in sorted(graph.proto.signature_def.items()):
        for name, info in sorted(signature.outputs.items()):
            reason = other_shape(info, shapes)
            if reason:
                message = f"output {name!r} of signature {key!r} {reason}"
                yield Fault(message, parts=graph.parts(key), consequences=UNSURE_SIGNATURE)


def other_shape(info: schema.TensorInfo, shapes: Shapes) -> str | None:
    """Return in what the shape that a signature promises contradicts the inferred one; None where
    it does not.
    """
    kind, slots = slots_of(info)
    if kind != "dense" or ":" not in slots[0].tensor:
        return None
    found = shapes.of(slots[0].tensor)
    try:
        merge(found, slots[0].shape)
    except Misfit:
        return (
            f"has the shape {shape_text(slots[0].shape)}, and TensorFlow infers {shape_text(found)}"
        )
    return None


def _copies(graph: Graph, shapes: Shapes, producer: int) -> Iterator[Fault]:
    """Signatures of graphs of TF 1.0 and before: the loader copies all nodes that an output depends
    on, also behind its inputs, into a graph of today's version, where a Placeholder of shape [] is
    a scalar."""
    if producer >= SCALARS_SINCE:
        return
    told = set(shapes.misfits)
    for key, signature in sorted(graph.proto.signature_def.items()):
        fed = {input_source(tensor) for tensor in tensor_names(signature.inputs)}
        fetched = [input_source(tensor) for tensor in tensor_names(signature.outputs)]
        copied = [
            graph.nodes[name]
            for name in reachable(fetched, graph.main.waits)
            if name in graph.nodes
        ]
        given = {name: shapes.outputs(name) for name in fed}
        again = Shapes(Nodes(copied), SCALARS_SINCE, fed=given, forms=graph.form)
        for node, message in again.misfits:
            if (node, message) not in told:
                told.add((node, message))
                message = f"{message} (in the copy that signature {key!r} becomes)"
                yield Fault(message, node=node, consequences=COPY_FAILS)

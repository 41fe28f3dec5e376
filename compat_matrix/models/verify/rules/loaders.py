"""Defects that break tf.saved_model.load, training after it, or the load of a model server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat_matrix.common.printable import counted
from compat_matrix.models.verify.findings import Fault, Severity, few, graph_rule, model_rule
from reference_impl.format.container import layout
from reference_impl.format.names import CUSTOM_GRADIENT
from reference_impl.graph.references import CALL_OPS

if TYPE_CHECKING:
    from compat_matrix.models.verify.model import Graph, Model


@graph_rule(
    "SMC511",
    "slots-break-loading",
    Severity.WARNING,
    summary="An object of the object graph has optimizer slots.",
    why="tf.saved_model.load fails (no attribute 'add_slot') unless the class of the optimizer is registered: for "
    "Keras 2 optimizers, import tf_keras first. Servers do not notice.",
    fix="Export without the optimizer (model.export, include_optimizer=False), or load with reference_impl.load.",
)
def slots_break_loading(model: Model, graph: Graph) -> Iterator[Fault]:
    for number, item in enumerate(graph.objects.nodes):
        if item.slot_variables:
            kind = item.user_object.identifier or item.WhichOneof("kind") or "object"
            label = graph.paths.label(number)
            yield Fault(
                f"{label} ({kind}) has {counted(len(item.slot_variables), 'slot')}, such as {item.slot_variables[0].slot_name!r}"
            )


@graph_rule(
    "SMC512",
    "gradient-unsaved",
    Severity.WARNING,
    summary="An op has a custom gradient that is not in the model.",
    why="Answers are right, but training or explaining the loaded model fails, or uses another gradient.",
    fix="Export again: TensorFlow since 2.6 stores custom gradients. For inference only: nothing.",
)
def gradient_unsaved(model: Model, graph: Graph) -> Iterator[Fault]:
    """Calls have generated gradients, which loaders make themselves. One finding for a gradient."""
    first: dict[str, tuple[str | None, str, int]] = {}
    for function, node in graph.with_gradient:
        if node.op in CALL_OPS or node.op in graph.library.functions:
            continue
        name = node.attr[CUSTOM_GRADIENT].s.decode("utf-8", "backslashreplace")
        if name not in graph.library.gradients:
            where, inside, count = first.get(name, (function, node.name, 0))
            first[name] = where, inside, count + 1
    # A TF 1.x file cannot hold them, and is not trained through a loader as a rule.
    severity = None if graph.has_objects else Severity.INFO
    if first:
        function, node_name, _ = next(iter(first.values()))
        count = sum(item[2] for item in first.values())
        ops = f"{count} ops" if count > 1 else "an op"
        yield Fault(f"{ops} with the gradients {', '.join(few(first))}", node=node_name, function=function, severity=severity)


@model_rule(
    "SMC541",
    "warmup-refused",
    Severity.ERROR,
    summary="A model server cannot read or answer the warm-up requests in assets.extra.",
    why="TensorFlow Serving answers them before it offers the model, and ends the load with an error at the first that fails.",
    fix="Record the requests again (a TFRecord file of PredictionLogs), or delete the file.",
)
def warmup_refused(model: Model) -> Iterator[Fault]:
    found = model.warmup
    if found is None:
        return
    if found.refused is not None:
        yield Fault(found.refused, file=layout.WARMUP_REQUESTS)
    served = [graph for graph in model.graphs if "serve" in graph.proto.meta_info_def.tags] or model.graphs
    for name in found.signatures:
        if not any(name in graph.proto.signature_def for graph in served):
            yield Fault(f"a request asks the signature {name!r}, which the model does not have", file=layout.WARMUP_REQUESTS)

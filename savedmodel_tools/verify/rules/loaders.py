"""Defects that break tf.saved_model.load, training after it, or the load of a model server; devices
written into the graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Optional

from reference_impl.format.container import layout
from reference_impl.format.names import CUSTOM_GRADIENT, GRADIENT_NOT_SAVED, is_generated_gradient
from reference_impl.graph.references import CALL_OPS
from savedmodel_common.printable import counted
from savedmodel_tools.verify.findings import (
    Fault,
    Severity,
    few,
    graph_rule,
    model_rule,
)

if TYPE_CHECKING:
    from savedmodel_tools.verify.model import Graph, Model

_OLD = re.compile(r"/(cpu|gpu):(\d+|\*)\Z", re.IGNORECASE)
_HERE = ("job:localhost", "replica:0", "task:0", "replica:*", "task:*")
_CPU = ("", "CPU:0", "CPU:*", "CPU")


@graph_rule(
    "SMC511",
    "slots-break-loading",
    Severity.WARNING,
    summary="An object of the object graph has optimizer slots.",
    why=(
        "tf.saved_model.load fails (no attribute 'add_slot') unless the class of the optimizer is"
        " registered: for Keras 2 optimizers, import tf_keras first. Servers do not notice."
    ),
    fix=(
        "Export without the optimizer (model.export, include_optimizer=False), or load with"
        " reference_impl.load."
    ),
)
def slots_break_loading(model: Model, graph: Graph) -> Iterator[Fault]:
    for number, item in enumerate(graph.objects.nodes):
        if item.slot_variables:
            kind = item.user_object.identifier or item.WhichOneof("kind") or "object"
            label = graph.paths.label(number)
            yield Fault(
                f"{label} ({kind}) has {counted(len(item.slot_variables), 'slot')}, such as"
                f" {item.slot_variables[0].slot_name!r}"
            )


@graph_rule(
    "SMC512",
    "gradient-unsaved",
    Severity.WARNING,
    summary="An op has a custom gradient that is not in the model.",
    why=(
        "Answers are right, but training or explaining the loaded model fails, or uses another"
        " gradient."
    ),
    fix="Export again: TensorFlow since 2.6 stores custom gradients. For inference only: nothing.",
)
def gradient_unsaved(model: Model, graph: Graph) -> Iterator[Fault]:
    """One finding for all of them.

    Those of the next rule, and those that our exports refuse by name, are left out.
    """
    found = [place for place in _without_gradient(graph) if not _is_of_second_order(graph, place)]
    # A TF 1.x file cannot hold them, and is not trained through a loader as a rule.
    yield from _one_fault(found, "with the", None if graph.has_objects else Severity.INFO)


@graph_rule(
    "SMC513",
    "gradient-of-gradient-unsaved",
    Severity.WARNING,
    summary=(
        "The gradient of a custom gradient is not in the model; only a number of the process that"
        " wrote it is."
    ),
    why=(
        "tf.saved_model.load gives the gradients of the model numbers from a counter of the"
        " process. A second derivative fails, or, if the counter reaches the number in the file, is"
        " silently that of another gradient."
    ),
    fix=(
        "Export again with reference_impl.save, which keeps gradients up to the third order. If"
        " nobody needs second derivatives: nothing."
    ),
)
def gradient_of_gradient_unsaved(model: Model, graph: Graph) -> Iterator[Fault]:
    """One finding for all of them. tf.saved_model.save keeps the gradients of the first order."""
    found = [place for place in _without_gradient(graph) if _is_of_second_order(graph, place)]
    yield from _one_fault(
        [place for place in found if place.gradient != GRADIENT_NOT_SAVED],
        "in a gradient, with the",
    )


class _Place(NamedTuple):
    """A node whose custom gradient is not in the model."""

    gradient: str
    function: str | None
    node: str


def _without_gradient(graph: Graph) -> Iterator[_Place]:
    """Calls have generated gradients, which loaders make themselves."""
    for function, node in graph.with_gradient:
        if node.op in CALL_OPS or node.op in graph.library.functions:
            continue
        name = node.attr[CUSTOM_GRADIENT].s.decode("utf-8", "backslashreplace")
        if name not in graph.library.gradients:
            yield _Place(name, function, node.name)


def _is_of_second_order(graph: Graph, place: _Place) -> bool:
    generated = is_generated_gradient(place.gradient) or place.gradient == GRADIENT_NOT_SAVED
    return generated and place.function in graph.gradient_functions


def _one_fault(
    places: Sequence[_Place], words: str, severity: Severity | None = None
) -> Iterator[Fault]:
    if places:
        ops = f"{len(places)} ops" if len(places) > 1 else "an op"
        names = few(dict.fromkeys(place.gradient for place in places))
        where = places[0]
        yield Fault(
            f"{ops} {words} gradients {', '.join(names)}",
            node=where.node,
            function=where.function,
            severity=severity,
        )


@model_rule(
    "SMC541",
    "warmup-refused",
    Severity.ERROR,
    summary="A model server cannot read or answer the warm-up requests in assets.extra.",
    why=(
        "TensorFlow Serving answers them before it offers the model, and ends the load with an"
        " error at the first that fails."
    ),
    fix="Record the requests again (a TFRecord file of PredictionLogs), or delete the file.",
)
def warmup_refused(model: Model) -> Iterator[Fault]:
    found = model.warmup
    if found is None:
        return
    if found.refused is not None:
        yield Fault(found.refused, file=layout.WARMUP_REQUESTS)
    served = [
        graph for graph in model.graphs if "serve" in graph.proto.meta_info_def.tags
    ] or model.graphs
    for name in found.signatures:
        if not any(name in graph.proto.signature_def for graph in served):
            yield Fault(
                f"a request asks the signature {name!r}, which the model does not have",
                file=layout.WARMUP_REQUESTS,
            )


@graph_rule(
    "SMC501",
    "device-pinned",
    Severity.WARNING,
    summary="Nodes are pinned to a device that not every machine has.",
    why=(
        "Without soft placement loaders refuse the model where the device is missing; another job"
        " or task exists in no single process."
    ),
    fix=(
        "Export outside of tf.device, or with clear_devices=True in TF 1.x. For an accelerator on"
        " purpose: use a tag (gpu, tpu)."
    ),
)
def device_pinned(model: Model, graph: Graph) -> Iterator[Fault]:
    """One finding for a device: how often, and the first node."""
    first: dict[str, tuple[Optional[str], str]] = {}
    counts: dict[str, int] = {}
    for body in graph.bodies:
        for number, device in enumerate([node.device for node in body.nodes]):
            if device:
                first.setdefault(device, (body.function, body.nodes[number].name))
                counts[device] = counts.get(device, 0) + 1
    tags = {tag.lower() for tag in graph.proto.meta_info_def.tags}
    for device, (function, name) in first.items():
        if everywhere(device):
            continue
        job, kind = parts(device)
        meant = not job and kind.partition(":")[0].lower() in tags
        nodes = f"{counts[device]} nodes are" if counts[device] > 1 else "a node is"
        by_tag = ", as the tags say" if meant else ""
        yield Fault(
            f"{nodes} on {device}{by_tag}",
            node=name,
            function=function,
            severity=Severity.INFO if meant else None,
        )


def everywhere(device: str) -> bool:
    """Return whether every machine has a device."""
    job, kind = parts(device)
    return not job and kind in _CPU


def parts(device: str) -> tuple[str, str]:
    """The job and task, empty for those of every process; the device, as ``GPU:0``, empty for
    any.
    """
    job, kind = [], ""
    for part in device.strip("/").split("/"):
        key, _, value = part.partition(":")
        if key.lower() == "device":
            name, _, number = value.partition(":")
            kind = f"{name.upper()}:{number or '*'}"
        elif _OLD.match(f"/{part}"):
            kind = part.upper()
        elif part.strip(":") and part not in _HERE:
            job.append(part)
    return "/".join(job), kind

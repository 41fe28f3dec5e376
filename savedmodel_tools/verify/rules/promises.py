"""The promises of SignatureDefs, held against what the graph and the object graph give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reference_impl.format.names import RESERVED_SIGNATURES, SIGNATURES
from reference_impl.views.signatures import slots_of
from savedmodel_tools.verify.consequences import NATIVE_CALL_FAILS
from savedmodel_tools.verify.findings import Fault, Severity, graph_rule
from savedmodel_tools.verify.rules.inferred_shapes import other_shape

if TYPE_CHECKING:
    from reference_impl.format import schema
    from savedmodel_tools.verify.model import Graph, Model

_UNSTATED = "invalid"  # no dtype: a TensorInfo need not have one


@graph_rule(
    "SMC532",
    "signature-promise-broken",
    Severity.ERROR,
    summary="A signature promises another dtype or shape of a tensor than the graph gives.",
    why=(
        "Clients are written from the signature. A request with the promised dtype of an input is"
        " refused by servers and the C API; an answer of another dtype or shape than promised"
        " breaks the client that reads it."
    ),
    fix=(
        "Correct the signature (export again; a tool that casts or reshapes an output must edit the"
        " signature too)."
    ),
)
def signature_promise_broken(model: Model, graph: Graph) -> Iterator[Fault]:
    for key, signature in sorted(graph.proto.signature_def.items()):
        if key in RESERVED_SIGNATURES:
            continue
        parts = graph.parts(key)
        for name, info in sorted(signature.inputs.items()):
            for reason in _other_dtypes(graph, info):
                message = f"input {name!r} of signature {key!r} {reason}"
                yield Fault(message, parts=parts, consequences=NATIVE_CALL_FAILS)
        for name, info in sorted(signature.outputs.items()):
            for reason in _other_dtypes(graph, info):
                yield Fault(f"output {name!r} of signature {key!r} {reason}", parts=parts)
            # Where tf.saved_model.load cuts the graph it refuses such a shape: SMC531.
            shape = None if graph.is_cut else other_shape(info, graph.main_shapes)
            if shape:
                yield Fault(f"output {name!r} of signature {key!r} {shape}", parts=parts)


def _other_dtypes(graph: Graph, info: schema.TensorInfo) -> Iterator[str]:
    """Yield for each tensor in what the dtype that a signature promises is not that of the
    graph.
    """
    for slot in slots_of(info)[1]:
        found = graph.dtype_of(slot.tensor)
        promised = (slot.dtype or _UNSTATED).removesuffix("_ref")
        if found is not None and found != promised != _UNSTATED:
            yield f"is promised as {promised}, and {slot.tensor!r} is {found}"


@graph_rule(
    "SMC533",
    "signature-without-object",
    Severity.ERROR,
    summary="A signature of the SignatureDefs is not in the object graph, in a model with objects.",
    why=(
        "tf.saved_model.load shows the signatures of the object graph: the signature is missing"
        " there. Sessions and servers have it."
    ),
    fix=(
        "Add and rename signatures with `savedmodel-compat edit signatures`, which edits both"
        " places, or export again."
    ),
)
def signature_without_object(model: Model, graph: Graph) -> Iterator[Fault]:
    if graph.is_cut:
        return
    named: set[str] = set()
    for item in graph.objects.nodes:
        if item.user_object.identifier == SIGNATURES:
            named.update(child.local_name for child in item.children)
    for key in sorted(set(graph.proto.signature_def) - set(RESERVED_SIGNATURES) - named):
        message = f"signature {key!r} is not among the signatures of the object graph"
        yield Fault(message, parts=graph.parts(key))

"""The requirements of ``tf.saved_model.load`` on signatures that it cuts out of the main graph.

That is how it loads a model without an object graph, and every MetaGraph of a model that has
several: for the initialiser and for each signature it copies the nodes between inputs and outputs
into a function (WrappedFunction.prune). Servers, the C API and ``tf.compat.v1.saved_model.load``
feed and fetch in the main graph, and do not have these limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from reference_impl.format.names import INIT_SIGNATURE, LEGACY_INIT_OP, MAIN_OP, RESERVED_SIGNATURES
from reference_impl.graph.edges import Edge, data_inputs, parse_input
from reference_impl.graph.signature_tensors import init_ops
from reference_impl.views.signatures import slots_of
from savedmodel_tools.skew.arguments import is_reference
from savedmodel_tools.verify.consequences import (
    CUT_FAILS,
    NATIVE_CALL_FAILS,
    SIGNATURE_FAILS,
    UNSURE_LOAD,
    UNSURE_SIGNATURE,
    Consequences,
)
from savedmodel_tools.verify.findings import (
    Fault,
    Severity,
    few,
    graph_rule,
)

if TYPE_CHECKING:
    from reference_impl.format import schema
    from savedmodel_tools.verify.model import Graph, Model

_PLACEHOLDER = "Placeholder"  # PlaceholderWithDefault has a value when nothing is fed
_TABLES = "table_initializer"  # a collection
_ELSEWHERE = "servers and tf.compat.v1.saved_model.load serve the model as it is."


@graph_rule(
    "SMC521",
    "inputs-share-tensor",
    Severity.WARNING,
    summary="Two inputs of a signature are one tensor, in a graph without objects.",
    why=(
        "tf.saved_model.load fails ('appears more than once in the input list'), since a function"
        " cannot take one tensor twice."
    ),
    fix=(
        "Export again with one placeholder for each input, or drop the signature"
        " (`savedmodel-compat edit signatures --drop`); "
    )
    + _ELSEWHERE,
)
def inputs_share_tensor(model: Model, graph: Graph) -> Iterator[Fault]:
    for key, signature in _signatures(graph):
        first: dict[str, str] = {}
        for name, tensor in _tensors(signature.inputs):
            if tensor in first:
                message = (
                    f"inputs {first[tensor]!r} and {name!r} of signature {key!r} are both"
                    f" {tensor!r}"
                )
                yield Fault(message, node=parse_input(tensor).source)
            else:
                first[tensor] = name


@graph_rule(
    "SMC522",
    "placeholder-not-fed",
    Severity.ERROR,
    summary="A signature or the initialiser depends on a placeholder that is not among its inputs.",
    why=(
        "A call of the signature fails in sessions, servers and the C API unless the placeholder is"
        " fed by hand. For a graph without objects tf.saved_model.load refuses the whole model"
        " (UnliftableError: 'depends transitively on placeholder')."
    ),
    fix=(
        "Export again with the placeholder as an input or with a default"
        " (tf.compat.v1.placeholder_with_default), or drop the signature (`savedmodel-compat"
        " edit signatures --drop`)."
    ),
)
def placeholder_not_fed(model: Model, graph: Graph) -> Iterator[Fault]:
    if graph.is_cut:
        assets = [item.tensor_info.name for item in graph.proto.asset_file_def]
        saver = graph.proto.saver_def
        restoring = [saver.restore_op_name] if saver.restore_op_name else []
        for what, fetched, fed, stopped in (
            # Sessions do not run the collection of the initialisers of tables.
            (
                "the initialiser",
                _initialiser(graph),
                assets,
                UNSURE_LOAD if init_ops(graph.proto) else CUT_FAILS,
            ),
            ("restoring", restoring, [saver.filename_tensor_name], UNSURE_LOAD),
        ):
            lost = _unfed(graph, fetched, fed)
            if lost:
                yield Fault(_needs(what, lost), node=min(lost), consequences=stopped)
    for key, signature in _signatures(graph, cut_only=False):
        if not graph.is_cut and key in RESERVED_SIGNATURES:
            continue
        fetched = [tensor for _, tensor in _tensors(signature.outputs)]
        fed = [tensor for _, tensor in _tensors(signature.inputs)]
        lost = _unfed(graph, fetched, fed)
        if lost:
            # One that waits for a branch does not run where the branch is not taken.
            sure = any(not graph.main.waits.get(name) for name in lost)
            stopped = SIGNATURE_FAILS if sure else UNSURE_SIGNATURE
            message = _needs(f"signature {key!r}", lost)
            yield Fault(message, node=min(lost), parts=graph.parts(key), consequences=stopped)


def _unfed(graph: Graph, fetched: Iterable[str], fed: Iterable[str]) -> list[str]:
    """Return the placeholders that computing the ``fetched`` tensors needs when the ``fed`` ones
    are given.
    """
    return [
        name for name in graph.between(fetched, fed) if graph.main.op_of.get(name) == _PLACEHOLDER
    ]


def _needs(what: str, lost: Iterable[str]) -> str:
    return f"{what} needs {', '.join(few(sorted(lost)))}, which nothing feeds"


@graph_rule(
    "SMC523",
    "op-fed-in-part",
    Severity.WARNING,
    summary=(
        "An input of a signature is one output of a node, and its outputs need another output of"
        " the same node, in a graph without objects."
    ),
    why=(
        "tf.saved_model.load puts a placeholder in the place of the whole node, and fails with a"
        " KeyError for its other outputs."
    ),
    fix=f"Export again with an input that is a placeholder of its own; {_ELSEWHERE}",
)
def op_fed_in_part(model: Model, graph: Graph) -> Iterator[Fault]:
    for key, signature in _signatures(graph):
        fed = {parse_input(tensor)[:2] for _, tensor in _tensors(signature.inputs)}
        sources = {source for source, _ in fed}
        if not any(
            graph.main.op_of.get(source, _PLACEHOLDER) != _PLACEHOLDER for source in sources
        ):
            continue
        fetched = [tensor for _, tensor in _tensors(signature.outputs)]
        inside = [name for name in graph.between(fetched, sources) if name in graph.nodes]
        used: list[tuple[Edge, str]] = []
        for name in inside:
            used += [(parse_input(text), name) for text in data_inputs(graph.nodes[name])]
        for edge, name in used:
            if edge.source in sources and edge[:2] not in fed:
                yield Fault(
                    f"signature {key!r} feeds another output of {edge.source!r} than {name!r}"
                    " takes",
                    node=edge.source,
                )
                break


@graph_rule(
    "SMC524",
    "reference-output",
    Severity.WARNING,
    summary=(
        "An output of a signature is a reference to a variable of TF 1.x, in a graph without"
        " objects."
    ),
    why="tf.saved_model.load fails ('has a reference type'), since no function returns references.",
    fix=(
        "Export again with tf.identity of the output, or drop the signature (`savedmodel-compat"
        " edit signatures --drop`); "
    )
    + _ELSEWHERE,
)
def reference_output(model: Model, graph: Graph) -> Iterator[Fault]:
    for key, signature in _signatures(graph):
        fed = {tensor for _, tensor in _tensors(signature.inputs)}
        for name, tensor in _tensors(signature.outputs):
            edge = parse_input(tensor)
            outputs = (
                graph.outputs_of(edge.source)
                if ":" in tensor and edge.source in graph.nodes
                else None
            )
            kind = outputs.kind(edge.number or 0) if outputs else None
            if tensor not in fed and kind is not None and is_reference(kind):
                yield Fault(
                    f"output {name!r} of signature {key!r} is the reference {tensor!r}",
                    node=edge.source,
                )


@graph_rule(
    "SMC525",
    "signature-tensor-number",
    Severity.WARNING,
    summary="A signature names an output that its node does not have, or an operation as an input.",
    why=(
        "tf.saved_model.load fails for graphs without objects ('refers to a Tensor which does not"
        " exist', 'must be tensors'); elsewhere the call fails."
    ),
    fix="Drop the signature (`savedmodel-compat edit signatures --drop`) or export again.",
)
def signature_tensor_number(model: Model, graph: Graph) -> Iterator[Fault]:
    for key, signature in _signatures(graph, cut_only=False):
        for side, infos in (("input", signature.inputs), ("output", signature.outputs)):
            for name, tensor in _tensors(infos):
                node = parse_input(tensor).source
                named = (
                    key in RESERVED_SIGNATURES and ":" not in tensor and side == "output"
                )  # an op that loaders run
                # SMC301 tells of nodes that are not there.
                reason = (
                    _no_tensor(graph, side, tensor) if node in graph.nodes and not named else None
                )
                if reason is not None:
                    said, consequences = reason
                    what = f"{side} {name!r} of signature {key!r} is"
                    yield Fault(
                        f"{what} {said}", node, parts=graph.parts(key), consequences=consequences
                    )


def _no_tensor(graph: Graph, side: str, tensor: str) -> tuple[str, Consequences] | None:
    """Return why a node of the graph does not have the tensor of a signature, and what that
    stops.
    """
    edge = parse_input(tensor)
    outputs = graph.outputs_of(edge.source)
    if ":" in tensor:
        if outputs is None or (edge.number or 0) < outputs.total:
            return None
        return f"{tensor!r}, and {edge.source!r} has {outputs.total} outputs", SIGNATURE_FAILS
    if side == "input":
        return (f"the operation {tensor!r}, not a tensor", CUT_FAILS) if graph.is_cut else None
    if outputs is None or outputs.total:
        return None  # C++ takes it for the first output
    return f"the operation {tensor!r}, which has no outputs", NATIVE_CALL_FAILS


def _initialiser(graph: Graph) -> list[str]:
    """The operations that tf.saved_model.load runs after restoring: one that the model names, else
    those that fill tables.
    """
    named = {item.source: item.op for item in init_ops(graph.proto)}
    for source in (INIT_SIGNATURE, MAIN_OP, LEGACY_INIT_OP):
        if source in named:
            return [named[source]]
    return (
        list(graph.proto.collection_def[_TABLES].node_list.value)
        if _TABLES in graph.proto.collection_def
        else []
    )


def _signatures(graph: Graph, cut_only: bool = True) -> Iterable[tuple[str, schema.SignatureDef]]:
    """Every signature by key, the reserved ones too: all of them are cut.

    None where the loader rebuilds objects instead.
    """
    return sorted(graph.proto.signature_def.items()) if graph.is_cut or not cut_only else []


def _tensors(infos: object) -> Iterator[tuple[str, str]]:
    """(name of the argument, tensor) of every tensor of the inputs or outputs of a signature."""
    for name, info in sorted(infos.items()):  # type: ignore[attr-defined]
        for slot in slots_of(info)[1]:
            yield name, slot.tensor

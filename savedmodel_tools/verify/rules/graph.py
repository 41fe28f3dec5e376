"""The graph and its functions: what is named exists, once, and functions do not call themselves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from reference_impl.format.names import RESERVED_SIGNATURES
from reference_impl.graph.edges import input_source, parse_input
from reference_impl.graph.order import circles, is_in_order
from reference_impl.graph.signature_tensors import init_ops
from reference_impl.graph.unique_names import repeated
from reference_impl.views.signatures import slots_of
from savedmodel_tools.verify.findings import (
    Fault,
    Severity,
    few,
    graph_rule,
)

if TYPE_CHECKING:
    from savedmodel_tools.verify.model import Graph, Model


@graph_rule(
    "SMC301",
    "signature-tensor-missing",
    Severity.ERROR,
    summary="A signature names a tensor whose node is not in the graph.",
    why="A call of the signature fails; some loaders refuse the whole model.",
    fix="Drop the signature (`savedmodel-compat edit signatures --drop`) or export again.",
)
def signature_tensor_missing(model: Model, graph: Graph) -> Iterator[Fault]:
    for key, signature in sorted(graph.proto.signature_def.items()):
        if key in RESERVED_SIGNATURES:
            continue
        for side, infos in (("input", signature.inputs), ("output", signature.outputs)):
            for name, info in sorted(infos.items()):
                for slot in slots_of(info)[1]:
                    node = parse_input(slot.tensor).source
                    if node not in graph.nodes:
                        what = f"{side} {name!r} of signature {key!r}"
                        said = (
                            f"is {slot.tensor!r}, which does not exist"
                            if slot.tensor
                            else "names no tensor"
                        )
                        yield Fault(f"{what} {said}", node=node or None, parts=graph.parts(key))


@graph_rule(
    "SMC302",
    "loader-op-missing",
    Severity.ERROR,
    summary="The op that restores or initialises the model is not in the graph.",
    why="Loaders run it by name: loading fails, or leaves variables and tables without values.",
    fix="Export again.",
)
def loader_op_missing(model: Model, graph: Graph) -> Iterator[Fault]:
    wanted = [(f"{item.source} names", item.op) for item in init_ops(graph.proto)]
    saver = graph.proto.saver_def
    if graph.proto.HasField("saver_def"):
        wanted += [
            ("the saver restores with", saver.restore_op_name),
            ("the saver takes the path at", saver.filename_tensor_name),
        ]
    for what, name in wanted:
        node = parse_input(name).source
        if name and node not in graph.nodes:
            yield Fault(f"{what} {name!r}, which does not exist", node=node)


@graph_rule(
    "SMC303",
    "edge-from-nowhere",
    Severity.ERROR,
    summary=(
        "A node has an input that no node or argument gives; or a function returns what no node"
        " gives."
    ),
    why="Importing the graph or the function fails.",
    fix="Export again; if a tool cut the graph, cut at other nodes.",
)
def edge_from_nowhere(model: Model, graph: Graph) -> Iterator[Fault]:
    returns: list[Fault] = []
    for body, names, sources in zip(graph.bodies, graph.names, graph.sources):
        known = set(names)
        if body.function is not None:
            function = graph.library.functions[body.function]
            known.update([argument.name for argument in function.signature.input_arg])
            returned = [*function.ret.values(), *function.control_ret.values()]
            lost = sorted(text for text in returned if input_source(text, True) not in known)
            if lost:
                returns.append(
                    Fault(
                        f"returns {', '.join(few(lost))}, which no node gives",
                        function=body.function,
                    )
                )
        if known.issuperset(itertools.chain.from_iterable(sources)):
            continue
        for node, wanted in zip(body.nodes, sources):
            if not known.issuperset(wanted):
                lost = [text for text, name in zip(node.input, wanted) if name not in known]
                yield Fault(
                    f"input {', '.join(few(lost))} comes from no node",
                    node=node.name,
                    function=body.function,
                )
    yield from returns


@graph_rule(
    "SMC304",
    "name-twice",
    Severity.ERROR,
    summary="Two nodes of a graph, or two functions of the library, have one name.",
    why="Loaders refuse the graph, or each takes another of the two.",
    fix="Export again.",
)
def name_twice(model: Model, graph: Graph) -> Iterator[Fault]:
    for name in repeated(item.signature.name for item in graph.proto.graph_def.library.function):
        yield Fault(f"several functions are called {name!r}", function=name)
    for body, names in zip(graph.bodies, graph.names):
        for name in repeated(names):
            yield Fault(f"several nodes are called {name!r}", node=name, function=body.function)


@graph_rule(
    "SMC305",
    "function-missing",
    Severity.ERROR,
    summary="A node refers to a function that the library does not have.",
    why="Importing the graph fails, in some releases only when the node runs.",
    fix=(
        "Export again; if a tool removed functions, keep those that branches, loops and gradients"
        " name."
    ),
)
def function_missing(model: Model, graph: Graph) -> Iterator[Fault]:
    library = graph.proto.graph_def.library
    for function, node, names in graph.named:
        for name in sorted(names):
            if (
                name not in graph.library.functions and node.op != "SymbolicGradient"
            ):  # that may name an op
                yield Fault(
                    f"{node.op} refers to the function {name!r}, which is not there",
                    node=node.name,
                    function=function,
                )
    gradients = [
        (item.registered_op_type, item.gradient_func) for item in library.registered_gradients
    ]
    gradients += [(item.function_name, item.gradient_func) for item in library.gradient]
    for what, name in gradients:
        if name not in graph.library.functions:
            yield Fault(f"the gradient of {what!r} is {name!r}, which is not there", function=name)


@graph_rule(
    "SMC306",
    "recursion",
    Severity.ERROR,
    summary="Functions call each other in a circle.",
    why=(
        "TensorFlow does not support it: optimisers follow the calls without end, and releases"
        " before 2.8 crash while loading (CVE-2022-23591)."
    ),
    fix="Write the recursion as a while loop; in a model from somebody else, do not load it.",
)
def recursion(model: Model, graph: Graph) -> Iterator[Fault]:
    """Return the calls only: a gradient function that calls its forward function, which names it,
    is not a recursion.
    """
    called = {name: set(nodes.op_set) for name, nodes in graph.function_nodes.items()}
    for function, _, named in graph.named:
        if function is not None:
            called[function].update(named)
    for circle in circles(called):
        yield Fault(f"in a circle of calls: {', '.join(few(circle))}", function=circle[0])


@graph_rule(
    "SMC308",
    "cycle-of-nodes",
    Severity.ERROR,
    summary="Nodes wait for each other in a circle that is not a loop.",
    why=(
        "The graph cannot run: importing it fails, or the call never ends. Loops of TF 1.x go"
        " through NextIteration."
    ),
    fix="Export again; in a model from somebody else, do not load it.",
)
def cycle_of_nodes(model: Model, graph: Graph) -> Iterator[Fault]:
    for body, nodes in zip(graph.bodies, graph.indexes):
        if is_in_order(nodes.waits):
            continue
        # The edges that close the loops of TF 1.x begin at NextIteration.
        back = {
            name
            for name, op in zip(nodes.names, nodes.ops)
            if op in ("NextIteration", "RefNextIteration")
        }
        waits = {}
        for name, wanted in nodes.waits.items():
            waits[name] = [source for source in wanted if source not in back]
        for circle in circles(waits):
            yield Fault(
                f"in a circle: {', '.join(few(circle))}", node=circle[0], function=body.function
            )


@graph_rule(
    "SMC307",
    "no-signature",
    Severity.INFO,
    summary="The MetaGraph has no signature.",
    why="Servers, converters and every loader but tf.saved_model.load have nothing to call.",
    fix="Export again with signatures=, if others than Python are to use it.",
)
def no_signature(model: Model, graph: Graph) -> Iterator[Fault]:
    if all(key in RESERVED_SIGNATURES for key in graph.proto.signature_def):
        yield Fault("nothing but Python can call this MetaGraph: it has no signature")

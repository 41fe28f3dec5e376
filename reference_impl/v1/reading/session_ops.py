"""Replace ops that a session can run but a function of TF 2 cannot.

RFC: FMT-14, V1-14, V1-16, V1-17
"""

from __future__ import annotations

import functools

from reference_impl.format import schema
from reference_impl.graph.damage import Damage
from reference_impl.graph.function_builder import replace_tensors
from reference_impl.graph.node_index import Graph


def call_gradient_functions(graph_def: schema.GraphDef, damage: Damage) -> None:
    """Replace every SymbolicGradient of a function with a gradient function by a call of the
    latter, in a graph and its library.

    A GraphDef library may say that function ``Power`` has the gradient ``PowerGradient``, and a
    ``SymbolicGradient`` node asks the runtime to differentiate ``Power``. The eager runtime takes
    functions but not that pairing. The gradient function has the same inputs as the node: those of
    the function, then one gradient per result. A function that only *calls* one with a gradient
    function is still differentiated op by op. Damaged parts are left as they are.
    """
    gradients = {item.function_name: item.gradient_func for item in graph_def.library.gradient}
    if not gradients:
        return
    library = {function.signature.name: function for function in graph_def.library.function}
    for node in graph_def.node:
        if node.name not in damage.nodes:
            _replace(node, gradients)
    for name, function in library.items():
        if name in damage.functions:
            continue
        results: dict[str, str] = {}
        for node in function.node_def:
            gradient = _replace(node, gradients)
            if gradient in library:
                for position, argument in enumerate(library[gradient].signature.output_arg):
                    results[f"{node.name}:output:{position}"] = f"{node.name}:{argument.name}:0"
        if results:
            replace_tensors(function, functools.partial(_renamed, results))


def _renamed(names: dict[str, str], text: str) -> str:
    return names.get(text, text)


def _replace(node: schema.NodeDef, gradients: dict[str, str]) -> str | None:
    """Make a SymbolicGradient node call the gradient function; return its name, or None if the node
    is not changed.
    """
    if node.op != "SymbolicGradient" or node.attr["f"].func.name not in gradients:
        return None
    node.op = gradients[node.attr["f"].func.name]
    for key in ("f", "Tin", "Tout"):
        node.attr.pop(key, None)
    return str(node.op)


def rewrite_one_shot_iterators(graph: Graph) -> dict[str, str]:
    """Replace every OneShotIterator in place; return for each the node that fills it, which must
    run once.

    A OneShotIterator makes its dataset with a function in an attribute, on first use, and refuses a
    shared name. Loaders of TF 2 give a shared name to every op that declares the attribute, so a
    function with this op fails. An IteratorV2 that one MakeIterator fills yields the same elements.
    """
    found = {}
    for node in [
        node
        for node in graph
        if node.op == "OneShotIterator" and node.attr["dataset_factory"].func.name
    ]:
        dataset = graph.node(f"{node.name}/dataset", "StatefulPartitionedCall")
        dataset.device = node.device
        dataset.attr["f"].CopyFrom(node.attr["dataset_factory"])
        dataset.attr["Tin"].list.SetInParent()
        dataset.attr["Tout"].list.type.append(schema.DT_VARIANT)
        fill = graph.node(f"{node.name}/fill", "MakeIterator", [dataset.name, node.name])
        fill.device = node.device
        del node.attr["dataset_factory"]
        node.op = "IteratorV2"
        node.attr["shared_name"].s = node.attr["shared_name"].s or node.name.encode()
        node.attr["container"].s = node.attr["container"].s
        found[node.name] = fill.name
    return found

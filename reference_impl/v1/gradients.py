"""Gradient functions of TF 1.x libraries.

A GraphDef library may say that function ``Power`` has the gradient ``PowerGradient``, and a ``SymbolicGradient`` node asks the
runtime to differentiate ``Power``. The eager runtime takes functions but not that pairing. So the node becomes a call of the
gradient function, which takes the same inputs: those of the function, then one gradient per result.

A function that only *calls* one with a gradient function is still differentiated op by op.

RFC: FMT-14, V1-14
"""

from __future__ import annotations

from typing import Any

from reference_impl.graph.function_builder import replace_tensors


def call_gradient_functions(graph_def: Any) -> None:
    """Replace, in the graph and in its library, every SymbolicGradient of a function that names its gradient."""
    gradients = {item.function_name: item.gradient_func for item in graph_def.library.gradient}
    if not gradients:
        return
    library = {function.signature.name: function for function in graph_def.library.function}
    for node in graph_def.node:
        _replace(node, gradients)
    for function in library.values():
        results: dict[str, str] = {}
        for node in function.node_def:
            gradient = _replace(node, gradients)
            if gradient in library:
                for position, argument in enumerate(library[gradient].signature.output_arg):
                    results[f"{node.name}:output:{position}"] = f"{node.name}:{argument.name}:0"
        if results:
            replace_tensors(function, lambda text, results=results: results.get(text, text))  # type: ignore[misc]


def _replace(node: Any, gradients: dict[str, str]) -> str | None:
    """Let a SymbolicGradient node call the gradient function; return its name, None for a node that stays as it is."""
    if node.op != "SymbolicGradient" or node.attr["f"].func.name not in gradients:
        return None
    node.op = gradients[node.attr["f"].func.name]
    for key in ("f", "Tin", "Tout"):
        node.attr.pop(key, None)
    return str(node.op)

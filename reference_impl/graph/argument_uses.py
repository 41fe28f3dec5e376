"""Find the uses of a function's arguments by its nodes and by the functions that it calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reference_impl.graph.edges import data_inputs, input_source


def used_arguments(library: Any, name: str, used: Callable[[Any, int], bool]) -> frozenset[int]:
    """Return the positions of the arguments that a function, or a function that it calls, uses in a certain way.

    Args:
      library: a `reference_impl.kinds.library.FunctionLibrary`.
      used: whether a node, which calls no function, uses its input at a position in this way.

    Raises:
      CycleError: a function calls itself.
    """
    known: dict[str, frozenset[int]] = {}
    for function in reversed(library.closure(name)):  # callees first
        known[function] = _used(library, function, used, known)
    return known[name]


def _used(library: Any, name: str, used: Callable[[Any, int], bool], known: Mapping[str, frozenset[int]]) -> frozenset[int]:
    definition = library.get(name)
    places = {argument.name: index for index, argument in enumerate(definition.signature.input_arg)}
    found: set[int] = set()
    for node in definition.node_def:
        inputs = [places.get(input_source(text, in_function=True)) for text in data_inputs(node)]
        if all(place is None for place in inputs):
            continue
        called = list(library.functions_of(node))
        shift = 1 if "If" in node.op or "Case" in node.op else 0  # the first input chooses the branch
        inner = {position + shift for function in called for position in known[function]}
        for position, place in enumerate(inputs):
            if place is not None and (position in inner if called else used(node, position)):
                found.add(place)
    return frozenset(found)

"""What the nodes of a function, and of the functions that it calls, do with its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from reference_impl.graph.edges import data_inputs, parse_input

_Known = dict[str, frozenset[int]]


def used_arguments(library: Any, name: str, used: Callable[[Any, int], bool]) -> frozenset[int]:
    """Return the positions of the arguments that a function uses in a certain way, itself or in a function that it calls.

    Args:
      library, name: the function.
      used: whether a node, which calls no function, uses its input at a position in this way.

    Raises:
      CycleError: a function calls itself.
    """
    library.check(name)
    return _used(library, name, used, {})


def _used(library: Any, name: str, used: Callable[[Any, int], bool], known: _Known) -> frozenset[int]:
    if name in known:  # many may call one
        return known[name]
    definition = library.get(name)
    places = {argument.name: index for index, argument in enumerate(definition.signature.input_arg)}
    found: set[Optional[int]] = set()
    for node in definition.node_def:
        inputs = [places.get(parse_input(text, in_function=True).source) for text in data_inputs(node)]
        if all(place is None for place in inputs):
            continue
        called = list(library.functions_of(node))
        shift = 1 if "If" in node.op or "Case" in node.op else 0  # the first input chooses the branch
        inner = {position + shift for function in called for position in _used(library, function, used, known)}
        found.update(place for position, place in enumerate(inputs) if (position in inner if called else used(node, position)))
    known[name] = frozenset(place for place in found if place is not None)
    return known[name]

"""Facts about ops that decide what TensorFlow computes while it imports a graph.

``stateless_ops.txt`` and ``output_counts.txt`` follow from the op history, and a test compares
them. ``asked_inputs.txt`` was measured with TensorFlow 2.12, 2.15, 2.18 and 2.21: it lists an input
if the shape function of its op had it computed. `tests/support/asked_inputs.py` measures it again.
"""

from __future__ import annotations

import functools
from pathlib import Path

from reference_impl.format import schema
from reference_impl.graph.edges import data_inputs

OF_SHAPES = frozenset(
    {"Shape", "ShapeN", "Size", "Rank"}
)  # what these ops return often follows from shapes alone
EVERY = "*"  # any input of the op


def _words(name: str) -> list[str]:
    return (Path(__file__).parent / name).read_text(encoding="ascii").split()


@functools.cache
def stateless_ops() -> frozenset[str]:
    """Return the ops that are stateless in at least one release."""
    return frozenset(_words("stateless_ops.txt"))


@functools.cache
def asked_inputs() -> dict[str, list[str]]:
    """Return op -> the inputs whose values its shape function asks for: numbers (negative ones from
    the end), or EVERY.
    """
    found: dict[str, list[str]] = {}
    for word in _words("asked_inputs.txt"):
        op, _, place = word.partition(":")
        found.setdefault(op, []).append(place)
    return found


@functools.cache
def output_counts() -> dict[str, list[str]]:
    """Return op -> the attributes that say how many outputs a node has."""
    found: dict[str, list[str]] = {}
    for word in _words("output_counts.txt"):
        op, _, attribute = word.partition(":")
        found.setdefault(op, []).append(attribute)
    return found


def asked_of(node: schema.NodeDef) -> list[str]:
    """Return those of a node's inputs whose values its shape function asks for."""
    places = asked_inputs().get(node.op)
    if places is None:
        return []
    inputs = data_inputs(node)
    if EVERY in places:
        return inputs
    return [inputs[int(place)] for place in places if -len(inputs) <= int(place) < len(inputs)]

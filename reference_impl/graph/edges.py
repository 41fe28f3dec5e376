"""Inputs of nodes, which name a node and its output, or a control dependency."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Optional

from reference_impl.format import schema

CONTROL = ""  # port of a control edge
# nodes never have that many outputs, and Python refuses to parse numbers of thousands of digits
_DIGITS = 9


class Edge(NamedTuple):
    """An input of a node, which can be compared and written again."""

    source: str  # the node or argument
    port: str = (
        "0"  # "0", "1", … in a GraphDef, "output:0" in a function, CONTROL for a control edge
    )

    @property
    def is_control(self) -> bool:
        return self.port == CONTROL

    @property
    def number(self) -> Optional[int]:
        """The number at the end of the port: of an output or, in a function, of a tensor of one
        output argument.
        """
        return output_number(self.port)

    @property
    def text(self) -> str:
        """The input as written in a node of a GraphDef."""
        if self.is_control:
            return "^" + self.source
        return self.source if self.port == "0" else f"{self.source}:{self.port}"


def output_number(port: str) -> Optional[int]:
    """Return the number at the end of a port, or None.

    A number that is too large for any node remains too large.
    """
    digits = port.rpartition(":")[2]
    return int(digits[:_DIGITS]) if _is_number(digits) else None


def parse_input(text: str, in_function: bool = False) -> Edge:
    """Return the parts of ``"^node"``, ``"node"``, ``"node:1"`` or, in a function,
    ``"node:output:0"`` and ``"argument"``.

    A tensor name of a SignatureDef or SaverDef has the form of an input in a GraphDef. As in
    TensorFlow, only ASCII digits after the colon number an output; other text belongs to the name.
    """
    if text.startswith("^"):
        return Edge(text[1:], CONTROL)
    if ":" not in text:  # most inputs
        return Edge(text)
    if in_function:
        name, _, port = text.partition(":")
        return Edge(name, port)
    name, _, port = text.rpartition(":")
    return Edge(name, port.lstrip("0") or "0") if _is_number(port) else Edge(text)


def input_source(text: str, in_function: bool = False) -> str:
    """Return the source of an input; faster than `parse_input`."""
    if text.startswith("^"):
        return text[1:]
    if ":" not in text:
        return text
    name, _, port = text.partition(":") if in_function else text.rpartition(":")
    return name if in_function or _is_number(port) else text


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii()


def input_sources(nodes: Iterable[schema.NodeDef], in_function: bool = False) -> list[list[str]]:
    """Return for each node the nodes and arguments that it waits for."""
    return [sources_of(list(node.input), in_function) for node in nodes]


def sources_of(inputs: list[str], in_function: bool = False) -> list[str]:
    """Return the nodes and arguments that inputs come from."""
    # Most inputs are the first output of a node, written as the node's name.
    return [
        input_source(text, in_function) if ":" in text or text[:1] == "^" else text
        for text in inputs
    ]


def data_inputs(node: schema.NodeDef) -> list[str]:
    """Return the inputs of a node that carry tensors, in order."""
    return without_controls(node.input)


def without_controls(inputs: Iterable[str]) -> list[str]:
    """Return the inputs that carry tensors, in order."""
    return [text for text in inputs if text[:1] != "^"]

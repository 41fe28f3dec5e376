"""Inputs of nodes: which node and output, or which control dependency, an input names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from reference_impl.format import schema

CONTROL = ""


class Edge(NamedTuple):
    """An input of a node. Port: ``"0"``, ``"1"``, … in a GraphDef, ``"output:0"`` in a function, CONTROL for a control edge."""

    source: str
    port: str


def parse_input(text: str, in_function: bool = False) -> Edge:
    """Take ``"^node"``, ``"node"``, ``"node:1"`` or, in a function, ``"node:output:0"`` and ``"argument"`` apart.

    A tensor name of a SignatureDef or SaverDef has the form of a GraphDef's input.
    """
    if text.startswith("^"):
        return Edge(text[1:], CONTROL)
    name, colon, port = text.partition(":") if in_function else text.rpartition(":")
    if colon and (in_function or port.isdecimal()):
        return Edge(name, port)
    return Edge(text, "0")


def input_source(text: str, in_function: bool = False) -> str:
    """The source of :func:`parse_input`, for those who ask for nothing else of many inputs."""
    if text.startswith("^"):
        return text[1:]
    if ":" not in text:
        return text
    name, _, port = text.partition(":") if in_function else text.rpartition(":")
    return name if in_function or port.isdecimal() else text


def input_sources(nodes: Iterable[schema.NodeDef], in_function: bool = False) -> list[list[str]]:
    """For each node the nodes and arguments that it waits for."""
    # Most inputs are the first output of a node, and written as its name.
    return [
        [input_source(text, in_function) if ":" in text or text[:1] == "^" else text for text in node.input] for node in nodes
    ]


def data_inputs(node: schema.NodeDef) -> list[str]:
    """The inputs of a node that carry tensors, in order."""
    return [text for text in node.input if not text.startswith("^")]

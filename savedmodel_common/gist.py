"""Find the informative line of a TensorFlow error: what went wrong, and at which node."""

from __future__ import annotations

import re

from reference_impl.errors import shortened

_NODE = re.compile(r"\{\{node ([^}]{1,500})\}\}")
_FRAME = (
    "Graph execution error",
    "Detected at node",
    "Node: ",
    "Original stack trace",
    "<stack traces",
)
_SEVERAL = re.compile(r"^\d+ root error\(s\) found")


def gist(message: str, limit: int = 300) -> str:
    """Return the informative line of a message; the first line if it is not a graph error, "" for
    no message.
    """
    lines = _told(message).splitlines()
    return of_graph_error(message, limit) or (shortened(lines[0], limit, "...") if lines else "")


def of_graph_error(message: str, limit: int = 300) -> str:
    """Return the informative line of a graph error; "" for any other message."""
    text = _told(message)
    where, graph, _ = text.partition("Graph execution error")  # `where`: which request, of a check
    lines = text[len(where) :].splitlines()
    if not graph or "\n" in where:
        return ""
    node = _NODE.search(message)
    for line in lines:
        says = line.strip()
        numbered = re.match(r"\(0\) ", says)
        if numbered or (
            says
            and not line[0].isspace()
            and not says.startswith(_FRAME)
            and not _SEVERAL.match(says)
        ):
            says = says[numbered.end() :] if numbered else says
            return (
                where
                + shortened(says, limit, "...")
                + (f" (node {node[1]!r})" if node and repr(node[1]) not in says else "")
            )
    return shortened(where + lines[0], limit, "...")


def _told(message: str) -> str:
    return message.rpartition("Original error:\n")[2].strip()

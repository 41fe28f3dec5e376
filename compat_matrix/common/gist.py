"""Find the informative line of a TensorFlow error: what went wrong, and at which node."""

from __future__ import annotations

import re

_NODE = re.compile(r"\{\{node ([^}]{1,500})\}\}")
_FRAME = ("Graph execution error", "Detected at node", "Node: ", "Original stack trace", "<stack traces")
_SEVERAL = re.compile(r"^\d+ root error\(s\) found")


def gist(message: str, limit: int = 300) -> str:
    """Return the informative line of a message; the first line if it is not a graph error, "" for no message."""
    text = message.rpartition("Original error:\n")[2].strip()
    where, graph, _ = text.partition("Graph execution error")  # `where`: which request, of a check
    lines = text[len(where) :].splitlines()
    if not graph or "\n" in where:
        return _cut(text.splitlines()[0], limit) if text else ""
    node = _NODE.search(message)
    for line in lines:
        says = line.strip()
        numbered = re.match(r"\(0\) ", says)
        if numbered or (says and not line[0].isspace() and not says.startswith(_FRAME) and not _SEVERAL.match(says)):
            says = says[numbered.end() :] if numbered else says
            return where + _cut(says, limit) + (f" (node {node[1]!r})" if node and repr(node[1]) not in says else "")
    return _cut(where + lines[0], limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."

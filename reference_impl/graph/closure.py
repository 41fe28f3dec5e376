"""Everything that can be reached from some starts. Graphs are untrusted: every walk is iterative and linear."""

from __future__ import annotations

from collections.abc import Iterable


def reachable(starts: Iterable[str], edges: dict[str, list[str]]) -> dict[str, None]:
    """Everything that can be reached from ``starts``, these included, in order of discovery."""
    seen = dict.fromkeys(starts)
    stack = list(seen)
    while stack:
        for target in edges.get(stack.pop(), ()):
            if target not in seen:
                seen[target] = None
                stack.append(target)
    return seen

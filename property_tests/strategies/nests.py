"""Nests of Python containers, of anything that has a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

LIST, TUPLE, DICT, PAIR = "list", "tuple", "dict", "pair"


@dataclass(frozen=True)
class Nest:
    """A container; a dict has the keys k0, k1, …, a pair is the namedtuple ``Pair`` of every
    script.
    """

    kind: str
    members: tuple[Any, ...]


def source(nest: Any, leaf: Callable[[Any], str]) -> str:
    """The Python expression of a nest, ``leaf`` giving those of its leaves."""
    if not isinstance(nest, Nest):
        return leaf(nest)
    parts = [source(member, leaf) for member in nest.members]
    if nest.kind == DICT:
        return "{" + ", ".join([f'"k{index}": {part}' for index, part in enumerate(parts)]) + "}"
    if nest.kind == PAIR:
        return f"Pair({', '.join(parts)})"
    if nest.kind == TUPLE:
        return f"({', '.join(parts)},)" if parts else "()"
    return f"[{', '.join(parts)}]"


def leaves(nest: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(expression of the way to it, leaf) for every leaf."""
    if not isinstance(nest, Nest):
        yield path, nest
        return
    for index, member in enumerate(nest.members):
        step = f'["k{index}"]' if nest.kind == DICT else f"[{index}]"
        yield from leaves(member, path + step)


def map_leaves(nest: Any, change: Callable[[Any], Any]) -> Any:
    """The same nest of other leaves."""
    if not isinstance(nest, Nest):
        return change(nest)
    return Nest(nest.kind, tuple([map_leaves(member, change) for member in nest.members]))


def nests(leaf: st.SearchStrategy[Any], max_leaves: int = 4) -> st.SearchStrategy[Any]:
    """A leaf, or containers of nests."""

    def wider(member: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        some = st.builds(
            Nest,
            st.sampled_from([LIST, TUPLE, DICT]),
            st.lists(member, min_size=1, max_size=2).map(tuple),
        )
        return some | st.builds(Nest, st.just(PAIR), st.tuples(member, member))

    return st.recursive(leaf, wider, max_leaves=max_leaves)

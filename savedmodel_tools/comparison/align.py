"""Pair the nodes of two graphs: by their inputs, then from the results down, then by name.

Names alone mislead: an op inserted in front renumbers ``add``, ``add_1``, … behind it. Inputs pair
all nodes below a change, results all nodes above it; names pair only the rest.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from reference_impl.format.names import plain_name
from savedmodel_tools.canonical.body import Body

Pairs = Iterable[tuple[int, int]]


class Alignment:
    """The nodes of two bodies, paired.

    Args:
      one, other: the bodies, arranged.
      results: pairs of vertices that are the same result of either.

    Attributes:
      pairs: vertex of ``one`` -> vertex of ``other``.
      gone, come: the vertices without a counterpart, in canonical order.
    """

    def __init__(self, one: Body, other: Body, results: Pairs) -> None:
        self.one, self.other = one, other
        self.pairs: dict[int, int] = {}
        self._taken: set[int] = set()
        self._users: tuple[dict[int, list[tuple[bytes, int]]], ...] = (_users(one), _users(other))
        for position in range(min(one.arguments, other.arguments)):
            self._pair(position, position)
        needs = [body.graph.needs(body.graph.base) for body in (one, other)]
        self._by_key(lambda vertex: needs[0][vertex], lambda vertex: needs[1][vertex])
        self._follow([pair for pair in results if self._alike(*pair) and self._pair(*pair)])
        self._follow(list(self.pairs.items()))
        for key in (self._name_and_op, self._name):
            self._follow(self._by_key(functools.partial(key, one), functools.partial(key, other)))
        self._follow(
            self._by_key(
                lambda vertex: one.graph.base[vertex], lambda vertex: other.graph.base[vertex]
            )
        )
        self.gone = [vertex for vertex in one.order if vertex not in self.pairs]
        self.come = [vertex for vertex in other.order if vertex not in self._taken]

    def _pair(self, one: int, other: int) -> bool:
        if one in self.pairs or other in self._taken:
            return False
        self.pairs[one] = other
        self._taken.add(other)
        return True

    def _alike(self, one: int, other: int) -> bool:
        return _op(self.one, one) == _op(self.other, other)

    @staticmethod
    def _name_and_op(body: Body, vertex: int) -> object:
        return body.names[vertex], _op(body, vertex)

    @staticmethod
    def _name(body: Body, vertex: int) -> object:
        return body.names[vertex]

    def _by_key(
        self, mine: Callable[[int], object], theirs: Callable[[int], object]
    ) -> list[tuple[int, int]]:
        """Pair nodes with equal keys: first by name, then in canonical order."""
        waiting: dict[object, list[int]] = defaultdict(list)
        named: dict[tuple[object, str], int] = {}
        for vertex in self.other.order:
            if vertex not in self._taken:
                key = theirs(vertex)
                waiting[key].append(vertex)
                named[key, self.other.names[vertex]] = vertex
        left, paired = [], []
        for vertex in self.one.order:
            if vertex in self.pairs:
                continue
            twin = named.get((mine(vertex), self.one.names[vertex]))
            if twin is not None and self._pair(vertex, twin):
                paired.append((vertex, twin))
            else:
                left.append(vertex)
        queues = {key: self._not_taken(members) for key, members in waiting.items()}
        for vertex in left:
            twin = next(queues.get(mine(vertex), iter(())), None)
            if twin is not None and self._pair(vertex, twin):
                paired.append((vertex, twin))
        return paired

    def _follow(self, work: list[tuple[int, int]]) -> None:
        """Follow pairs to their inputs and users, if both sides have the same op at the same
        place.
        """
        while work:
            one, other = work.pop()
            work += [
                pair
                for pair in self._neighbours(one, other)
                if self._alike(*pair) and self._pair(*pair)
            ]

    def _not_taken(self, vertices: list[int]) -> Iterator[int]:
        return iter([vertex for vertex in vertices if vertex not in self._taken])

    def _neighbours(self, one: int, other: int) -> Iterator[tuple[int, int]]:
        for (mine, source), (theirs, twin) in zip(
            self.one.graph.ordered[one], self.other.graph.ordered[other]
        ):
            if mine == theirs and source not in self.pairs and twin not in self._taken:
                yield source, twin
        if one < self.one.arguments:
            return  # users of an argument are found from the results
        users = [item for item in self._users[0][one] if item[1] not in self.pairs]
        twins = [item for item in self._users[1][other] if item[1] not in self._taken]
        if len(users) == len(twins) == 1 and users[0][0] == twins[0][0]:
            yield users[0][1], twins[0][1]


def _users(body: Body) -> dict[int, list[tuple[bytes, int]]]:
    users: dict[int, list[tuple[bytes, int]]] = defaultdict(list)
    for vertex in body.order:
        for position, (label, target) in enumerate(body.graph.ordered[vertex]):
            users[target].append((b"%d %b" % (position, label), vertex))
    return users


def _op(body: Body, vertex: int) -> str:
    node = body.nodes[vertex]
    return "" if node is None else plain_name(node.op)

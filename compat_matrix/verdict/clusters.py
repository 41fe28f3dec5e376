"""Cover the failures of one cause with few entries: rectangles of versions times lists of cases,
consumers, producers, checks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell
from compat_matrix.cells.results import Result
from compat_matrix.verdict.cover import Grid, Marks, Rectangle, cover
from compat_matrix.verdict.entries import SELECTORS, Entry, matches, read_patterns
from compat_matrix.verdict.ledger import Names, names_of
from compat_matrix.verdict.ranges import Axis

Product = tuple[
    tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]
]  # cases, producers, consumers, checks


class Board:
    """The questions of a plan: the pairs of versions for which each is asked, their results, and
    the entries that cover them.
    """

    def __init__(self, cells: Iterable[Cell], results: Mapping[str, Result]) -> None:
        cells = list(cells)
        self.rows = Axis(cell.producer_version for cell in cells)
        self.columns = Axis(cell.consumer_version for cell in cells if not cell.is_production)
        self.grid = Grid(len(self.rows) or 1, len(self.columns) or 1)
        self.asked: dict[Names, int] = {}
        self.closed: dict[Names, int] = {}  # observed, or taken by an entry
        self.checks = list(dict.fromkeys(cell.check for cell in cells))
        for cell in cells:
            names, bit = names_of(cell), self.bit(cell)
            self.asked[names] = self.asked.get(names, 0) | bit
            result = results.get(cell.id)
            if result is not None and result.outcome is not Outcome.NOT_RUN:
                self.closed[names] = self.closed.get(names, 0) | bit

    def bit(self, cell: Cell) -> int:
        row = self.rows.position.get(cell.producer_version, 0)
        return self.grid.bit(row, self.columns.position.get(cell.consumer_version, 0))

    def take(self, cells: Iterable[Cell]) -> None:
        """Mark cells as covered by an entry, so that no other entry may select them."""
        for cell in cells:
            names = names_of(cell)
            self.closed[names] = self.closed.get(names, 0) | self.bit(cell)

    def narrowed(self, failing: Iterable[Cell], selected: Iterable[Cell]) -> Rectangle | None:
        """Return a rectangle that holds all of ``failing`` and nothing else of ``selected``, or
        None.
        """
        marks = Marks()
        for cell in failing:
            marks.must |= self.bit(cell)
        for cell in selected:
            marks.forbidden |= self.bit(cell)
        if marks.must & marks.forbidden:
            return None
        blocks = cover(self.grid, {"": marks})
        return blocks[0].rectangle if len(blocks) == 1 else None

    def entries(self, failing: Iterable[Cell], like: Entry | None = None) -> list[dict[str, Any]]:
        """Return selectors and ranges that select the cells ``failing`` and no other observed or
        covered cell, and mark these as covered.

        Productions and questions about artifacts cannot be in the same entry, nor in the same call.
        The selectors of ``like`` are kept if they select no further cell of this plan, since an
        entry also serves other plans.
        """
        marks: dict[Names, Marks] = {}
        for cell in failing:
            marks.setdefault(names_of(cell), Marks()).must |= self.bit(cell)
        for names, mark in marks.items():
            mark.forbidden = self.closed.get(names, 0) & ~mark.must
        tables: list[dict[str, Any]] = []
        for block in cover(self.grid, marks):
            bits = self.grid.bits(block.rectangle)
            members = set(block.questions)
            # A question that is not asked does no harm in a product, and completes many products.
            found = products(
                members,
                {
                    names
                    for names, asked in self.asked.items()
                    if asked & bits and names not in members
                },
            )
            for product in found:
                table = self._table(product, block.rectangle)
                tables.append(
                    self._kept(table, like, bits, members, len(found) == 1) if like else table
                )
            for names in members:
                self.closed[names] = self.closed.get(names, 0) | bits & self.asked[names]
        return tables

    def _kept(
        self, table: dict[str, Any], like: Entry, bits: int, members: set[Names], alone: bool
    ) -> dict[str, Any]:
        """Return ``table`` with the selectors of an entry where they select the same: that of the
        check and, if ``alone``, all."""
        here = [
            names for names, asked in self.asked.items() if asked & bits and names not in members
        ]
        for name in ("check", "consumer", "producer", "case") if alone else ("check",):
            patterns = {key: read_patterns(key, table[key]) for key in SELECTORS} | {
                name: getattr(like, name)
            }
            if not any(all(map(matches, patterns.values(), names)) for names in here):
                table[name] = _selector(getattr(like, name))
        return table

    def ranges(self, rectangle: Rectangle) -> dict[str, str]:
        """Return the PEP 440 ranges of a rectangle, as far as they leave something out."""
        found = {
            "producer_version": self.rows.range(rectangle.top, rectangle.bottom)
            if len(self.rows)
            else None,
            "consumer_version": self.columns.range(rectangle.left, rectangle.right)
            if len(self.columns)
            else None,
        }
        return {name: text for name, text in found.items() if text}

    def _table(self, product: Product, rectangle: Rectangle) -> dict[str, Any]:
        cases, producers, consumers, checks = product
        here = {names for names in self.asked if names[0] in cases and names[2] in consumers}
        everywhere = [{names[1] for names in here if names[0] == case} for case in cases]
        planned = [
            {names[3] for names in here if names[0] == case and names[1] in producers}
            for case in cases
        ]
        return {
            "case": _selector(cases),
            "producer": _selector(producers, everywhere),
            "consumer": _selector(consumers),
            "check": _selector(tuple(sorted(checks, key=self.checks.index)), planned),
            **self.ranges(rectangle),
        }


def _selector(names: Sequence[str], all_of: Sequence[set[str]] = ()) -> str | list[str]:
    """Return a name, a list of names, or ``*`` for several names that are all names of every
    case.
    """
    if len(names) == 1:
        return names[0]
    return "*" if all_of and all(set(names) == there for there in all_of) else list(names)


def products(questions: Collection[Names], harmful: Collection[Names]) -> list[Product]:
    """Combine ``questions`` into few products of cases, producers, consumers and checks without a
    ``harmful`` question.
    """

    def harmless(parts: tuple[str, ...]) -> bool:
        case, consumer, producer, check = parts
        return (case, producer, consumer, check) not in harmful

    found = _products(
        {(case, consumer, producer, check) for case, producer, consumer, check in questions},
        harmless,
    )
    return sorted(
        (cases, producers, consumers, checks) for cases, consumers, producers, checks in found
    )


def _products(
    items: Collection[tuple[str, ...]], harmless: Callable[[tuple[str, ...]], bool]
) -> list[tuple[Any, ...]]:
    """Join values at each place: first products that agree in all other places, then those that can
    join without harm.
    """
    if not next(iter(items)):
        return [()]
    rests: dict[str, set[tuple[str, ...]]] = {}
    for first, *rest in items:
        rests.setdefault(first, set()).add(tuple(rest))
    equal: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for first in sorted(rests):
        equal.setdefault(tuple(sorted(rests[first])), []).append(first)
    buckets: list[tuple[list[str], set[tuple[str, ...]]]] = []
    for rest_items, firsts in sorted(
        equal.items(), key=lambda pair: (-len(pair[1]) * len(pair[0]), pair)
    ):
        for members, union in buckets:
            if all(
                harmless((first, *rest))
                for first in [*members, *firsts]
                for rest in union | set(rest_items)
            ):
                members += firsts
                union |= set(rest_items)
                break
        else:
            buckets.append((list(firsts), set(rest_items)))
    out: list[tuple[Any, ...]] = []
    for members, union in buckets:
        values = tuple(sorted(members))
        out += [(values, *inner) for inner in _products(union, _for_all(harmless, values))]
    return out


def _for_all(
    harmless: Callable[[tuple[str, ...]], bool], firsts: tuple[str, ...]
) -> Callable[[tuple[str, ...]], bool]:
    return lambda rest: all(harmless((first, *rest)) for first in firsts)

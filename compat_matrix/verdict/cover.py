"""Cover the cells that must be covered with few rectangles of versions, without any forbidden cell.

A question (case, producer, consumer, check) is asked of pairs of versions. A set of pairs is an
integer, a bit for each: bit ``row * columns + column``. Rows are producer versions, columns
consumer versions.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

Question = TypeVar("Question", bound=Hashable)


@dataclass(frozen=True, order=True)
class Rectangle:
    """Rows and columns, both ends included."""

    top: int
    bottom: int
    left: int
    right: int


@dataclass
class Marks:
    """The pairs of one question that ``must`` be covered, and those that are ``forbidden``."""

    must: int = 0
    forbidden: int = 0


@dataclass(frozen=True)
class Grid:
    """A grid with these numbers of producer and consumer versions."""

    rows: int
    columns: int
    _bits: dict[Rectangle, int] = field(default_factory=dict, compare=False, repr=False)

    def bit(self, row: int, column: int) -> int:
        return 1 << (row * self.columns + column)

    def bits(self, rectangle: Rectangle) -> int:
        """Return the pairs of a rectangle."""
        known = self._bits.get(rectangle)
        if known is None:
            line = ((1 << (rectangle.right - rectangle.left + 1)) - 1) << rectangle.left
            rows = range(rectangle.top, rectangle.bottom + 1)
            known = self._bits[rectangle] = functools.reduce(
                lambda bits, row: bits | line << (row * self.columns), rows, 0
            )
        return known

    def bounds(self, bits: int) -> Rectangle:
        """Return the smallest rectangle around ``bits`` (not 0)."""
        pairs = [
            divmod(position, self.columns)
            for position in range(bits.bit_length())
            if bits >> position & 1
        ]
        rows, columns = [row for row, _ in pairs], [column for _, column in pairs]
        return Rectangle(min(rows), max(rows), min(columns), max(columns))

    def maximal(self, marks: Marks) -> set[Rectangle]:
        """Return the rectangles that hold some of ``must``, nothing ``forbidden``, and cannot grow
        sideways.
        """
        found = set()
        line = (1 << self.columns) - 1
        for top in range(self.rows):
            must, forbidden = 0, 0
            for bottom in range(top, self.rows):
                must |= marks.must >> (bottom * self.columns) & line
                forbidden |= marks.forbidden >> (bottom * self.columns) & line
                if not must & ~forbidden:
                    continue
                found |= {
                    Rectangle(top, bottom, left, right)
                    for left, right in _free_runs(forbidden, self.columns)
                    if must >> left & ((1 << (right - left + 1)) - 1)
                }
        return found

    def opened(self, rectangle: Rectangle, forbidden: int) -> Rectangle:
        """Return the rectangle with each side moved to the end of the grid if no forbidden pair is
        in the way.
        """
        grown = rectangle
        for side in (
            {"top": 0},
            {"bottom": self.rows - 1},
            {"left": 0},
            {"right": self.columns - 1},
        ):
            wider = replace(grown, **side)
            if not self.bits(wider) & forbidden:
                grown = wider
        return grown


def _free_runs(forbidden: int, columns: int) -> list[tuple[int, int]]:
    runs, start = [], None
    for column in range(columns + 1):
        free = column < columns and not forbidden >> column & 1
        if free and start is None:
            start = column
        elif not free and start is not None:
            runs.append((start, column - 1))
            start = None
    return runs


@dataclass(frozen=True)
class Block(Generic[Question]):
    """A rectangle, and the questions whose failures in it are covered."""

    rectangle: Rectangle
    questions: tuple[Question, ...]


def cover(grid: Grid, marks: Mapping[Question, Marks]) -> list[Block[Question]]:
    """Return blocks that cover all required pairs, chosen greedily; blocks of one question do not
    overlap. Changes ``marks``.
    """
    order = sorted(marks, key=repr)
    candidates: dict[tuple[int, int], set[Rectangle]] = {}
    blocks = []
    while any(marks[question].must for question in order):
        best: tuple[int, Rectangle] | None = None
        rectangles: set[Rectangle] = set()
        for key in {(marks[q].must, marks[q].forbidden) for q in order if marks[q].must}:
            if key not in candidates:
                candidates[key] = grid.maximal(Marks(*key))
            rectangles |= candidates[key]
        for rectangle in sorted(rectangles):
            bits = grid.bits(rectangle)
            gain = sum(
                bin(marks[q].must & bits).count("1") for q in order if not marks[q].forbidden & bits
            )
            if best is None or gain > best[0]:
                best = (gain, rectangle)
        assert best is not None
        blocks.append(_taken(grid, marks, grid.bits(best[1]), order))
    return blocks


def _taken(
    grid: Grid, marks: Mapping[Question, Marks], bits: int, order: list[Question]
) -> Block[Question]:
    members = [q for q in order if marks[q].must & bits and not marks[q].forbidden & bits]
    forbidden = functools.reduce(lambda all_bits, q: all_bits | marks[q].forbidden, members, 0)
    tight = grid.bounds(
        functools.reduce(lambda all_bits, q: all_bits | marks[q].must & bits, members, 0)
    )
    opened = grid.opened(tight, forbidden)
    covered = grid.bits(opened)
    for question in members:
        marks[question].must &= ~covered
        marks[question].forbidden |= covered
    return Block(opened, tuple(members))

"""The op history: which release knows which op, attr, value and kernel.

The committed table is read one line at a time.

>>> history().op("DisableCopyOnRead").since
'2.12'
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Optional

from savedmodel_tools.skew import spans
from savedmodel_tools.skew.records import (
    Attr,
    Kernel,
    Op,
    Release,
    Snapshot,
)
from savedmodel_tools.skew.table import SCHEMA, VARYING

TABLE = Path(__file__).parent / "op_history.jsonl"
OTHER_TABLE = "SAVEDMODEL_COMPAT_OP_HISTORY"  # a file to use instead
_OP = '{"op":"'
_NUMBER = re.compile(r"(\d+)\.(\d+)")


class TableError(ValueError):
    """A table that cannot be used; the message names the file and the reason."""


class OpHistory:
    """One op through the releases.

    ``members`` are the numbers of the releases that have the op, oldest first.
    """

    def __init__(self, line: dict[str, Any], table: History) -> None:
        self.name: str = line["op"]
        self._line = line
        self._table = table
        self._definitions: dict[int, Optional[Op]] = {}
        self._products: dict[int, list[dict[str, list[str]]]] = {}
        self.members = table.span(line.get("in"))

    @property
    def since(self) -> str:
        """Return the first release of the table that has the op."""
        return self._table.since(self.members)

    @property
    def until(self) -> Optional[str]:
        """Return the last release that has the op; None when that is the newest of the table."""
        return self._table.until(self.members)

    @property
    def span(self) -> str:
        """Return all releases that have the op, as ``1.12-1.15,2.3-``."""
        return self._table.text(self.members)

    @property
    def attr_names(self) -> tuple[str, ...]:
        """Return every attr that some release knows."""
        return tuple(self._line.get("attrs", ()))

    def attr_members(self, name: str) -> tuple[int, ...]:
        """Return the releases in which the op has the attr; empty for an attr that no release
        knows.
        """
        attr = self._line.get("attrs", {}).get(name)
        if attr is None:
            return ()
        return self._table.span(attr["in"]) if "in" in attr else self.members

    def at(self, index: int) -> Optional[Op]:
        """Return the op in the release of this number; None when the release lacks the op."""
        op = self.definition(index)
        tells = op is not None and self._table.releases[index].has_kernels and not op.library
        return (
            op._replace(kernels=frozenset(self.kernels(index))) if op is not None and tells else op
        )

    def definition(self, index: int) -> Optional[Op]:
        """Return the same as ``at`` but without kernels, which take longer: one object for all
        releases that say the same.
        """
        if index not in self._definitions:
            made = self._definition(index) if index in self.members else None
            self._definitions[index] = next(
                (known for known in self._definitions.values() if known == made), made
            )
        return self._definitions[index]

    def attr(self, index: int, name: str) -> Optional[Attr]:
        """Return an attr of the op in a release; None when the release lacks the op or the attr."""
        op = self.definition(index)
        return op.attr(name) if op else None

    def _definition(self, index: int) -> Op:
        line = self._line
        return Op(
            self.name,
            self._value(line.get("sig"), index) or "",
            tuple(
                self._attr(name, index)
                for name in self.attr_names
                if index in self.attr_members(name)
            ),
            bool(self._value(line.get("stateful"), index)),
            self.deprecated(index),
            self.library(index),
            None,
            self.in_python(index),
        )

    def library(self, index: int) -> str:
        """Return the file that must be mapped before this release has the op; "" for a core op."""
        return self._value(self._line.get("lib"), index) or ""

    @property
    def needs_python(self) -> bool:
        """Return whether some release has the kernels only in the library of the Python package,
        where no other program finds them.
        """
        return any(self.in_python(index) for index in self.members)

    def in_python(self, index: int) -> bool:
        """Return whether this release has the kernels only in the library of the Python package."""
        return bool(self._value(self._line.get("python"), index))

    def deprecated(self, index: int) -> Optional[tuple[int, str]]:
        """Return (GraphDef version from which graphs may not use the op, advice), as this release
        says.
        """
        found = self._value(self._line.get("deprecated"), index)
        return (found[0], found[1]) if found else None

    def _attr(self, name: str, index: int) -> Attr:
        attr = {
            key: self._value(value, index)
            for key, value in self._line["attrs"][name].items()
            if key != "in"
        }
        allowed = attr.get("allowed")
        return Attr(
            name,
            attr["type"],
            attr.get("default"),
            None if allowed is None else tuple(allowed),
            attr.get("min"),
        )

    def _value(self, value: Any, index: int) -> Any:
        if isinstance(value, dict) and VARYING in value:
            return next(
                (item for span, item in value[VARYING] if index in self._table.span(span)), None
            )
        return value

    def kernels(self, index: int) -> Iterator[Kernel]:
        """Return every combination of attr values that a CPU kernel of the release takes."""
        for product in self.products(index):
            yield from (
                tuple(sorted(zip(product, values)))
                for values in itertools.product(*product.values())
            )

    def products(self, index: int) -> list[dict[str, list[str]]]:
        """Return the same combinations, not multiplied out: ``[{attr: [value, ...]}, ...]``.

        An absent attr may have any value.
        """
        kernels = self._line.get("cpu", [])
        if isinstance(kernels, list):
            return kernels
        if index not in self._products:
            found: list[dict[str, list[str]]] = []
            for span, group in kernels.items():
                if index in self._table.span(span):
                    found += group
            self._products[index] = found
        return self._products[index]

    @functools.cached_property
    def constrained(self) -> frozenset[str]:
        """Return the attrs that some kernel of some release constrains."""
        groups = itertools.chain.from_iterable(group for _, group in self.kernel_spans())
        return frozenset(itertools.chain.from_iterable(groups))

    def kernel_spans(self) -> list[tuple[tuple[int, ...], list[dict[str, list[str]]]]]:
        """Return (releases, products) of the kernels, grouped by releases."""
        kernels = self._line.get("cpu", [])
        if isinstance(kernels, list):
            told = tuple(
                index
                for index in self.members
                if self._table.releases[index].has_kernels and not self.library(index)
            )
            return [(told, kernels)] if kernels else []
        return [(self._table.span(span), group) for span, group in kernels.items()]


class History:
    """The table of ops. Raises TableError for a text that is not a table.

    Attributes:
      releases: oldest first; other methods name a release by its number here.
      dtypes: data type -> the releases that know it.
    """

    def __init__(self, text: str, source: str = "the table") -> None:
        lines = text.split("\n")
        try:
            header = json.loads(lines[0])
            if header["schema"] != SCHEMA:
                raise ValueError(f"the schema is not {SCHEMA}")
            rows = header["releases"]
            self._names: list[str] = [row["name"] for row in rows]
            self.dtypes = {
                dtype: tuple(sorted(spans.from_text(span, self._names)))
                for dtype, span in header["dtypes"].items()
            }
            self.releases = tuple(
                Release(**row, dtypes=self._dtypes_of(index)) for index, row in enumerate(rows)
            )
        except (KeyError, TypeError, ValueError) as error:
            raise TableError(f"{source} is not an op history: {error}") from error
        # Parsing a line costs more than finding it.
        self._lines = {
            line[len(_OP) : line.index('"', len(_OP))]: line for line in lines[1:] if line
        }
        self._ops: dict[str, OpHistory] = {}
        self.span = functools.cache(self._span)

    def _dtypes_of(self, index: int) -> tuple[str, ...]:
        """Return the data types that a release knows."""
        return tuple(dtype for dtype in self.dtypes if index in self.dtypes[dtype])

    def _span(self, text: Optional[str]) -> tuple[int, ...]:
        """Return the releases of a span, in order; all releases for None."""
        return tuple(
            range(len(self._names)) if text is None else sorted(spans.from_text(text, self._names))
        )

    def text(self, members: Sequence[int]) -> str:
        """Return the span of some releases."""
        return spans.to_text(members, self._names)

    def since(self, members: Sequence[int]) -> str:
        """Return the first of some releases."""
        return self._names[members[0]]

    def until(self, members: Sequence[int]) -> Optional[str]:
        """Return the last of some releases; None when that is the newest of the table."""
        return None if members[-1] == len(self._names) - 1 else self._names[members[-1]]

    def gap(self, members: Sequence[int]) -> Optional[str]:
        """Return the release before the first of some, if releases between the two were not asked
        (1.5 to 1.7, 1.9 to 1.11).
        """
        if not members or members[0] == 0:
            return None
        (major, minor), before = self._parts(members[0]), self._parts(members[0] - 1)
        return self._names[members[0] - 1] if major == before[0] and minor - before[1] > 1 else None

    def _parts(self, index: int) -> tuple[int, int]:
        return _numbers(self._names[index]) or (0, 0)

    @property
    def names(self) -> tuple[str, ...]:
        """Return every op that some release knows, sorted."""
        return tuple(self._lines)

    def op(self, name: str) -> Optional[OpHistory]:
        """Return the history of an op; None when no release of the table knows it."""
        if name not in self._ops:
            line = self._lines.get(name)
            if line is None:
                return None
            self._ops[name] = OpHistory(json.loads(line), self)
        return self._ops[name]

    def line(self, name: str) -> Any:
        """Return the entry of an op as written in the table; None for an op that is not in the
        table.
        """
        line = self._lines.get(name)
        return None if line is None else json.loads(line)

    def index(self, version: str) -> Optional[int]:
        """Return the number of the release of a version, ``2.15`` or ``2.15.1rc0+local``.

        None when the table lacks that minor release.
        """
        found = _numbers(version)
        name = "{}.{}".format(*found) if found else version
        return self._names.index(name) if name in self._names else None

    def nearest(self, version: str) -> Optional[int]:
        """Return the same, or the newest release before it.

        None for a text that is not a version or is older than all releases.
        """
        wanted = _numbers(version) or (-1, -1)
        older = [index for index in range(len(self._names)) if self._parts(index) <= wanted]
        return older[-1] if older else None

    def nearest_after(self, version: str) -> int:
        """Return the number of the release, or of the oldest release after it; the count of
        releases when all are older.
        """
        wanted = _numbers(version) or (-1, -1)
        return sum(self._parts(index) < wanted for index in range(len(self._names)))

    def around(self, version: str) -> tuple[int, ...]:
        """Return the number of the release of a version.

        If the table lacks that release, return the numbers of its neighbours.

        The neighbours are the releases before and after, or the only neighbour of a version older
        or newer than all.
        """
        index = self.index(version)
        if index is not None:
            return (index,)
        if _numbers(version) is None:
            return ()
        after = self.nearest_after(version)
        return tuple(number for number in (after - 1, after) if 0 <= number < len(self._names))

    def snapshot(self, index: int) -> Snapshot:
        """Return everything that a release registers."""
        found = {}
        for name in self.names:
            history = self.op(name)
            op = history.at(index) if history else None
            if op is not None:
                found[name] = op
        return found


def _numbers(version: str) -> Optional[tuple[int, int]]:
    found = _NUMBER.match(version)
    return (int(found[1]), int(found[2])) if found else None


@functools.lru_cache(maxsize=1)
def history() -> History:
    """Return the committed table, or the file that the environment variable names.

    Raises TableError.
    """
    path = Path(os.environ.get(OTHER_TABLE) or TABLE)
    try:
        return History(path.read_text(encoding="utf-8"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(f"{path}: {error}") from error

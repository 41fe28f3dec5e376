"""The report of `compat` about its models: objects of ``--json``, rows of ``--summary``,
lines of text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from savedmodel_common.printable import printable
from savedmodel_tools.compat import Use
from savedmodel_tools.compat_lines import (
    advice,
    cell,
    csv_text,
    model_lines,
    summary_line,
    table_lines,
)
from savedmodel_tools.compat_models import Answer, good, loads, to_json, uses_of, whole
from savedmodel_tools.find import Model
from savedmodel_tools.jobs import Died
from savedmodel_tools.skew.history import History


class Told:
    """What is said about the models: objects for ``--json``, rows for ``--summary``.

    ``all_asked``: a part must load in every release of ``asked``, not in one at least.
    """

    def __init__(
        self, table: History, asked: tuple[int, ...], loaders: tuple[str, ...], all_asked: bool
    ) -> None:
        self.releases = [table.releases[index].name for index in asked]
        self.objects: list[dict[str, Any]] = []
        self.rows: list[list[str]] = [["model", *loaders, "error"]]
        self.well = True
        self._table, self._asked, self._loaders = table, asked, loaders
        self._all_asked = all_asked

    def add(self, model: Model, said: Answer | str | Died, full: bool) -> Iterable[str]:
        """Take the answer about one model; returns the lines about it."""
        if isinstance(said, (Died, str)):
            return self._unreadable(model, said if isinstance(said, str) else said.reason)
        uses = [use for use in uses_of(said.graphs) if use.loader in self._loaders]
        well = all(good(use, self._all_asked) for use in uses)
        graphs = [to_json(graph, self._loaders, self._table) for graph in said.graphs]
        line = {"path": model.name, "ok": well, "meta_graphs": graphs}
        lines = model_lines(model.name, said.graphs, self._loaders, self._table, full)
        if len(self._asked) == 1 and not well:
            line["rewritable"] = said.rewritable
            lines = itertools.chain(lines, self._advice(said, uses))
        self.well = self.well and well
        self.objects.append(line)
        cells = [cell(whole(uses, loader), self._table) for loader in self._loaders]
        self.rows.append([model.name, *cells, ""])
        return lines

    def _unreadable(self, model: Model, reason: str) -> Iterable[str]:
        self.well = False
        self.objects.append({"path": model.name, "error": reason})
        self.rows.append([model.name, *["?"] * len(self._loaders), reason])
        return [printable(f"{model.name}\n  {reason}")]

    def _advice(self, said: Answer, uses: Sequence[Use]) -> Iterator[str]:
        lost = {use.loader for use in uses if not loads(use, True)}
        stopped = [loader for loader in self._loaders if loader in lost]
        if stopped and said.sound:
            index, rewritable = self._asked[0], said.rewritable
            text = advice(rewritable, self._loaders, stopped, index, said.sound, self._table)
            yield f"    {text}"

    def summary(self, form: str | None) -> Iterator[str]:
        """Yield the table of ``--summary`` (``form``), and how many models are well."""
        if form == "csv":
            yield csv_text(self.rows).rstrip("\n")
            return
        if form:
            unreadable = any(row[-1] for row in self.rows[1:])
            yield from table_lines(self.rows if unreadable else [row[:-1] for row in self.rows])
        if len(self.objects) > 1:
            yield summary_line(self.objects, self.releases, self._all_asked)

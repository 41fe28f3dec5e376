"""The function library of an export after all functions were added.

RFC: FN-05, FMT-03
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Optional

from reference_impl.format import schema
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import ExportName
from reference_impl.graph.closure import reachable
from reference_impl.saving.function_sources import (
    FileFunctions,
    FunctionSource,
    Origin,
    RuntimeFunctions,
    SourceName,
)


@dataclass(frozen=True, eq=False, repr=False)
class ClosedLibrary:
    """The functions of an export, to which none can be added.

    Attributes:
      definitions: name -> FunctionDef, in the order in which they were added.
      names: source, name there -> name in the export.
      sources: name -> the source.
      calls: name -> the functions of the export that the function calls, in order of first mention.
      ops: name -> the ops of its nodes.
      mentioned: every name in the functions that may be an op or a function.
      runtime: the source of the functions that this process traced or wrote.
    """

    definitions: Mapping[ExportName, schema.FunctionDef]
    names: Mapping[Origin, ExportName]
    sources: Mapping[ExportName, FunctionSource]
    calls: Mapping[ExportName, list[ExportName]]
    ops: Mapping[ExportName, frozenset[str]]
    mentioned: frozenset[str]
    runtime: RuntimeFunctions

    def sorted(self) -> list[schema.FunctionDef]:
        """Return the FunctionDefs sorted by name."""
        return [self.definitions[name] for name in sorted(self.definitions)]

    def find(self, library: Optional[FunctionLibrary], name: SourceName) -> Optional[ExportName]:
        """Return the name of a function in this export, or None if the export does not have it."""
        source = self.runtime if library is None else FileFunctions(library)
        found = self.names.get((source, name))
        return found if found is not None else self.names.get(source.owner(name))

    def closure(self, name: ExportName) -> list[ExportName]:
        """Return a function and all functions that it calls, in the order of discovery."""
        return list(reachable([name], self.calls))

    def with_op(self, wanted: Callable[[str], bool]) -> list[schema.FunctionDef]:
        """Return the functions that have a node whose op is wanted."""
        known = {op: wanted(op) for op in set(itertools.chain.from_iterable(self.ops.values()))}
        return [
            self.definitions[name] for name, ops in self.ops.items() if any(map(known.get, ops))
        ]

    def made_here(self, name: ExportName) -> bool:
        """Return whether a function comes from this process, not from a loaded model."""
        return self.sources[name] is self.runtime

    def file_aliases(self) -> dict[str, list[ExportName]]:
        """Return the aliases in the files of loaded functions, each with the functions of this
        export that have it.
        """
        found: dict[str, list[ExportName]] = {}
        for source in dict.fromkeys(source for source, _ in self.names):
            if not isinstance(source, FileFunctions):
                continue
            for name, alias in sorted(source.library.aliases.items()):
                exported = self.names.get((source, name))
                found.setdefault(alias, []).extend([] if exported is None else [exported])
        return found

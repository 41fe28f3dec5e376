"""The functions of an export: each with its name, its description and what it captures.

RFC: FN-05, FN-07
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.functions.names import ExportName, LiveName
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.saving.closed_library import ClosedLibrary
from reference_impl.saving.traces import Trace
from reference_impl.saving.tree import Tree

# The number of a node, or of a variable's node and one of its replicas.
Capture = Union[int, tuple[int, int]]


@dataclass(frozen=True)
class ExportedFunction:
    """A concrete function that is an object of the export.

    Attributes:
      name: in the library of the export.
      captures: the numbers of the objects that it captures.
      replicas: index of a capture -> the replica of a distributed variable that the function uses,
        other than the first.
    """

    name: ExportName
    trace: Trace
    captures: Sequence[int]
    replicas: Mapping[int, int] = field(default_factory=dict)

    def bound(self) -> list[Capture]:
        """Return the captures, each with its replica."""
        return [
            (captured, self.replicas[index]) if index in self.replicas else captured
            for index, captured in enumerate(self.captures)
        ]


@dataclass(frozen=True)
class ExportedFunctions:
    """All functions of an export.

    Attributes:
      library: the FunctionDefs.
      by_number: number of a concrete function's node -> the function.
      described: name in the library -> SavedConcreteFunction.
      gradients: op type of a custom gradient -> name of its function.
      traced: the concrete functions that were traced in this process.
    """

    library: ClosedLibrary
    by_number: Mapping[int, ExportedFunction]
    described: Mapping[ExportName, schema.SavedConcreteFunction]
    gradients: Mapping[ExportName, str]
    traced: Sequence[Any]

    @property
    def names(self) -> dict[int, ExportName]:
        """Number of a concrete function's node -> its name in the library."""
        return {number: function.name for number, function in self.by_number.items()}

    def name(self, number: int) -> ExportName:
        """Return the name of the function of a node."""
        return self.by_number[number].name

    def name_of(self, function: object, tree: Tree) -> Optional[ExportName]:
        """Return the name of a concrete function, which need not be in the tree, or None if the
        export does not have it.
        """
        if not isinstance(function, api.ConcreteFunction):
            return None
        number = tree.number_of(function)
        if number is not None and number in self.by_number:
            return self.by_number[number].name
        if isinstance(function, RegisteredFunction):
            return self.library.find(function.library, function.saved_name)
        return self.library.find(None, LiveName(function.function_def.signature.name))

"""Where the functions of an export come from: the eager runtime, or the file of a loaded model.

A name means something only together with its source. `f__load3` in the runtime is the live name of
`f` in the file of the third load, so its source is that file.

RFC: FN-05, FMT-14
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format import schema
from reference_impl.format.names import is_generated_gradient
from reference_impl.functions.library import FunctionLibrary, original_name, registered_name
from reference_impl.functions.names import FileName, LiveName
from reference_impl.saving.gradient_sites import GradientSites
from reference_impl.saving.process_numbers import remove_process_numbers

# The name of a function in its source: a file has file names, the runtime has live names.
SourceName = Union[FileName, LiveName]
Origin = tuple["FunctionSource", SourceName]


class FunctionSource(ABC):
    """A set of functions, by name."""

    @abstractmethod
    def owner(self, name: str) -> Origin:
        """Return the source that a function is read from, and its name there."""

    @abstractmethod
    def owner_of_name(self, name: str) -> Origin:
        """Return the source of another name: of a shared resource, or of a custom gradient."""

    @abstractmethod
    def definition(self, name: SourceName) -> schema.FunctionDef:
        """Return a copy of a FunctionDef. Raises SaveError if there is no such function."""

    @abstractmethod
    def may_have(self, name: str) -> bool:
        """Return whether a function value with this name may be followed."""

    @abstractmethod
    def is_called(self, op: str, known_ops: Container[str]) -> bool:
        """Return whether the type of a node is a function, not one of the ops of the runtime."""

    @abstractmethod
    def means_gradient(self, function: SourceName, op_type: str) -> bool:
        """Return whether the name of a custom gradient in a function can be followed."""

    @abstractmethod
    def implementations(self) -> Mapping[bytes, Sequence[str]]:
        """Return interface -> the functions that implement it for some device."""


class RuntimeFunctions(FunctionSource):
    """The functions of the eager runtime, and the custom gradients in those that were visited."""

    def __init__(self) -> None:
        self.sites = GradientSites()

    def owner(self, name: str) -> Origin:
        return self._origin(registered_name(LiveName(name)), name)

    def owner_of_name(self, name: str) -> Origin:
        return self._origin(original_name(LiveName(name)), name)

    def _origin(self, found: Optional[tuple[FunctionLibrary, FileName]], name: str) -> Origin:
        if found is None:
            return self, LiveName(name)
        return FileFunctions(found[0]), found[1]

    def definition(self, name: SourceName) -> schema.FunctionDef:
        found: Optional[schema.FunctionDef] = api.function_definition(name)
        if found is None:
            raise SaveError("the runtime has no such function", node=name)
        remove_process_numbers(found)
        return found

    def may_have(self, name: str) -> bool:
        return True

    def is_called(self, op: str, known_ops: Container[str]) -> bool:
        return op not in known_ops and api.function_definition(op) is not None

    def means_gradient(self, function: SourceName, op_type: str) -> bool:
        return self.sites.is_meant(LiveName(function), op_type)

    def implementations(self) -> Mapping[bytes, Sequence[str]]:
        return self._implementations

    @functools.cached_property
    def _implementations(self) -> Mapping[bytes, Sequence[str]]:
        return api.implementations()


@dataclass(frozen=True)
class FileFunctions(FunctionSource):
    """The functions in the file of a loaded model."""

    library: FunctionLibrary

    def owner(self, name: str) -> Origin:
        return self, FileName(name)

    def owner_of_name(self, name: str) -> Origin:
        return self, FileName(name)

    def definition(self, name: SourceName) -> schema.FunctionDef:
        return schema.copy_of(self.library.get(FileName(name)))

    def may_have(self, name: str) -> bool:
        return name in self.library

    def is_called(self, op: str, known_ops: Container[str]) -> bool:
        return op in self.library

    def means_gradient(self, function: SourceName, op_type: str) -> bool:
        return op_type in self.library.index.gradients or not is_generated_gradient(op_type)

    def implementations(self) -> Mapping[bytes, Sequence[str]]:
        return self.library.index.implementations

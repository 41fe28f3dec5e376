"""A rule, and the layer that it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Options:
    """The permissions of the user: classes and functions that were named, and whether Python code
    in the file may be run.
    """

    custom_objects: frozenset[str] = frozenset()
    trust_lambda: bool = False


@dataclass(frozen=True)
class Lookup:
    """The vocabulary of a layer, which Keras 2 keeps in a table and not in the configuration."""

    tables: tuple[str, ...]  # paths of the table below the layer, by release
    weights: tuple[str, ...]  # paths of the variable with inverse document frequencies
    dtypes: tuple[str, str]  # pairs of the table's dtypes
    inverted: bool  # whether the table leads from numbers to tokens
    special: tuple[Any, ...]  # tokens that Keras adds itself
    start: int  # the number of the first token of the vocabulary


@dataclass
class Layer:
    """The configuration of one layer, which rules change in place."""

    class_name: str  # of Keras 2, and after translation of Keras 3
    config: dict[str, Any]  # the arguments of the class
    # All that Keras wrote of the saved layer; empty for a layer inside the configuration of another
    # one.
    metadata: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""  # in the object graph
    options: Options = Options()
    notes: list[str] = field(default_factory=list)  # what the user should know of the translation
    # Rewrite the values of the layer: from attribute -> array to another one. None leaves them as
    # they are.
    weights: Callable[[dict[str, npt.NDArray[Any]]], dict[str, npt.NDArray[Any]]] | None = None
    unused: tuple[
        str, ...
    ] = ()  # names of saved values that Keras 3 has no place for and that change no answer
    lookup: Lookup | None = None  # where the vocabulary of the layer is, None if it has none
    # Make arguments of what the layer was adapted to; it is given a reader of the values below the
    # layer, by path, which returns None for one that is not there. None if there is nothing of the
    # kind. Raises Refused.
    adapted: Callable[[Callable[[str], npt.NDArray[Any] | None]], dict[str, Any]] | None = None
    # Rewrite the arguments of a call: the first one and those by name. None leaves them as they
    # are.
    call: Callable[[Any, dict[str, Any]], tuple[Any, dict[str, Any]]] | None = None
    # Class and configuration of a Keras 3 layer that takes what this one returns, None if nothing
    # is to be done with it.
    after: tuple[str, dict[str, Any]] | None = None
    # Return the types of the ops that its saved call runs, for what Keras 2 did not write into the
    # configuration.
    ops: Callable[[], frozenset[str]] = frozenset

    @property
    def label(self) -> str:
        """The class and the name, for messages."""
        return (
            f"{self.class_name}"
            f" {str(self.config.get('name') or self.metadata.get('name') or '?')!r}"
        )


@dataclass(frozen=True)
class Rule:
    """A difference between Keras 2 and Keras 3."""

    summary: str  # what is translated, for the report
    keras: str  # the releases of Keras 2 that wrote the old form
    translate: Callable[[Layer], None]  # changes a `Layer` in place; raises Refused
    classes: tuple[str, ...] = ()  # the classes of layers it is about, none for all
    told: bool = True  # whether a report names it; what changes no meaning is not told

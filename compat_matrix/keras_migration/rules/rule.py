"""A rule, and the layer that it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Options:
    """The permissions of the user.

    Attributes:
      custom_objects: names of classes and functions that the user named, by their own name.
      trust_lambda: whether Python code in the file may be run.
    """

    custom_objects: frozenset[str] = frozenset()
    trust_lambda: bool = False


@dataclass(frozen=True)
class Lookup:
    """The vocabulary of a layer, which Keras 2 keeps in a table and not in the configuration.

    Attributes:
      tables: paths of the table below the layer, by release.
      weights: paths of the variable with inverse document frequencies.
      dtypes: pairs of the table's dtypes.
      inverted: whether the table leads from numbers to tokens.
      special: tokens that Keras adds itself.
      start: the number of the first token of the vocabulary.
    """

    tables: tuple[str, ...]
    weights: tuple[str, ...]
    dtypes: tuple[str, str]
    inverted: bool
    special: tuple[Any, ...]
    start: int


@dataclass
class Layer:
    """The configuration of one layer, which rules change in place.

    Attributes:
      class_name: of Keras 2, and after translation of Keras 3.
      config: the arguments of the class.
      metadata: all that Keras wrote of the saved layer; empty for a layer inside the configuration of another one.
      path: in the object graph.
      notes: what the user should know of the translation.
      weights: rewrite the values of the layer: from attribute -> array to another one. None leaves them as they are.
      unused: names of saved values that Keras 3 has no place for and that change no answer.
      lookup: where the vocabulary of the layer is, None if it has none.
      adapted: make arguments of what the layer was adapted to; it is given a reader of the values below the layer, by path,
        which returns None for one that is not there. None if there is nothing of the kind. Raises Refused.
      call: rewrite the arguments of a call: the first one and those by name. None leaves them as they are.
      ops: return the types of the ops that its saved call runs, for what Keras 2 did not write into the configuration.
      after: class and configuration of a Keras 3 layer that takes what this one returns, None if nothing is to be done with it.
    """

    class_name: str
    config: dict[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""
    options: Options = Options()
    notes: list[str] = field(default_factory=list)
    weights: Callable[[dict[str, npt.NDArray[Any]]], dict[str, npt.NDArray[Any]]] | None = None
    unused: tuple[str, ...] = ()
    lookup: Lookup | None = None
    adapted: Callable[[Callable[[str], npt.NDArray[Any] | None]], dict[str, Any]] | None = None
    call: Callable[[Any, dict[str, Any]], tuple[Any, dict[str, Any]]] | None = None
    after: tuple[str, dict[str, Any]] | None = None
    ops: Callable[[], frozenset[str]] = frozenset

    @property
    def label(self) -> str:
        """The class and the name, for messages."""
        return f"{self.class_name} {str(self.config.get('name') or self.metadata.get('name') or '?')!r}"


@dataclass(frozen=True)
class Rule:
    """A difference between Keras 2 and Keras 3.

    Attributes:
      summary: what is translated, for the report.
      keras: the releases of Keras 2 that wrote the old form.
      translate: changes a `Layer` in place; raises Refused.
      classes: the classes of layers it is about, none for all.
      told: whether a report names it; what changes no meaning is not told.
    """

    summary: str
    keras: str
    translate: Callable[[Layer], None]
    classes: tuple[str, ...] = ()
    told: bool = True

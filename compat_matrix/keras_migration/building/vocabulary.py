"""Vocabularies of lookup layers, read out of the tables of the loaded SavedModel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from compat_matrix.keras_migration.refused import Refused
from compat_matrix.keras_migration.rules.rule import Lookup

# Keys and values of the table at a path, None where there is none with these dtypes.
Tables = Callable[[str, tuple[str, str]], Any]


def vocabulary_of(lookup: Lookup, path: str, tables: Tables) -> list[Any]:
    """Return the tokens of a layer in the order of their numbers, without those that Keras adds itself.

    Args:
      lookup: where its vocabulary is.
      path: of the layer in the object graph.
      tables: reads a table.

    Raises:
      Refused: there is no such table, or its numbers leave gaps.
    """
    for below in lookup.tables:
        rows = tables(f"{path}.{below}" if path else below, lookup.dtypes)
        if rows is not None:
            return _ordered(lookup, *rows)
    raise Refused("its vocabulary is in none of the tables that Keras 2 kept one in")


def _ordered(lookup: Lookup, keys: Any, values: Any) -> list[Any]:
    tokens, numbers = (values, keys) if lookup.inverted else (keys, values)
    found: Mapping[int, Any] = {int(number): _plain(token) for token, number in zip(tokens.tolist(), numbers.tolist())}
    found = {number: token for number, token in found.items() if number >= lookup.start and token not in lookup.special}
    if sorted(found) != list(range(lookup.start, lookup.start + len(found))):
        raise Refused("the numbers of its vocabulary leave gaps")
    if not found:
        raise Refused("its vocabulary is empty: it was never adapted")
    return [found[number] for number in sorted(found)]


def _plain(token: Any) -> Any:
    return token.decode("utf-8", "surrogateescape") if isinstance(token, bytes) else token

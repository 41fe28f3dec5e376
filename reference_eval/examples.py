"""Read tf.Example messages, from the wire format: Example.features.feature[key]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

import numpy as np

from reference_eval.reading import wire_fields, wire_varints

# Feature name -> (kind of list, its values); a feature without a list has the kind 0.
Features = dict[bytes, tuple[int, list[Any]]]

BYTES, FLOATS, INTS = 1, 2, 3  # field numbers of Feature
_KINDS = {"object": BYTES, "float32": FLOATS, "float64": FLOATS, "int64": INTS}


def features_of(serialized: bytes) -> Features:
    """Return the features of a tf.Example, or the context of a tf.SequenceExample.

    Raises ValueError: the message is broken.
    """
    found: Features = {}
    for features in _all(serialized, 1):
        for key, message in _entries(features):
            found[key] = _feature(message)
    return found


def feature_lists_of(serialized: bytes) -> dict[bytes, list[tuple[int, list[Any]]]]:
    """Return the feature lists of a tf.SequenceExample: name -> a feature for each step.

    Raises ValueError: the message is broken.
    """
    found = {}
    for lists in _all(serialized, 2):
        for key, message in _entries(lists):
            found[key] = [_feature(step) for step in _all(message, 1)]
    return found


def _entries(message: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a map."""
    for entry in _all(message, 1):
        yield b"".join(_all(entry, 1)[-1:]), b"".join(_all(entry, 2)[-1:])


def _feature(message: bytes) -> tuple[int, list[Any]]:
    found: tuple[int, list[Any]] = (0, [])
    for number, _, content, _ in wire_fields(message):
        found = (number, _values(number, content))
    return found


def feature(example: Features, key: bytes, dtype: np.dtype[Any]) -> Optional[list[Any]]:
    """Return the values of a feature, or None if the example lacks it.

    Raises TypeError: the feature has values of another kind.
    """
    kind, values = example.get(key, (0, []))
    if not kind:
        return None
    if kind != _KINDS[dtype.name]:
        raise TypeError(f"Key: {key.decode()}.  Data types don't match. Expected type: {dtype}")
    return values


def _all(message: bytes, wanted: int) -> list[bytes]:
    return [bytes(content) for number, _, content, _ in wire_fields(message) if number == wanted]


def _values(kind: int, message: bytes) -> list[Any]:
    if kind == BYTES:
        return _all(message, 1)
    values: list[Any] = []
    for number, _, content, _ in wire_fields(message):
        if number != 1:
            continue
        if kind == FLOATS:
            values += np.frombuffer(content, "<f4").tolist()
        elif isinstance(content, int):
            values.append(_signed(content))
        else:
            values += map(_signed, wire_varints(content))
    return values


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value

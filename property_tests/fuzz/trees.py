"""Changes of JSON that keep it JSON: another value anywhere, members removed, doubled, renamed,
nested without end.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from property_tests.fuzz.mutation import NUMBERS, TEXTS, mutate, mutate_tokens

_TEXTS = tuple(text.decode("utf-8", "surrogatepass") for text in TEXTS)
_LONGEST = 1 << 17
_CONSTANTS = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    1e308,
    float("inf"),
    float("nan"),
    "",
    [],
    {},
    [[]],
    {"$tensor": "t0"},
    {"$tuple": []},
)


def mutate_json(rng: random.Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """One change of a JSON document; of its text now and then."""
    if rng.random() < 0.15:
        return rng.choice((mutate, mutate_tokens))(rng, data, others)
    try:
        tree = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return mutate_tokens(rng, data, others)
    places: list[tuple[Any, Any]] = []
    _collect(tree, places)
    if not places or rng.random() < 0.02:
        tree = _value(rng, tree, places)
    else:
        holder, key = rng.choice(places)
        _change(rng, holder, key, places)
    text = json.dumps(tree)
    if len(text) > _LONGEST:
        return data
    if rng.random() < 0.02:
        depth = rng.choice((200, 5000))
        text = text.replace("null", "[" * depth + "]" * depth, 1)
    return text.encode("utf-8", "surrogatepass")


def mutate_lines(rng: random.Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """One change of a file of JSON lines: of a line, or of which lines there are."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    kind = rng.randrange(8)
    if kind == 0:
        lines.insert(at, rng.choice(lines))
    elif kind == 1:
        del lines[at]
    else:
        lines[at] = mutate_json(rng, lines[at], others)
    return b"\n".join(lines)


def _collect(tree: Any, places: list[tuple[Any, Any]]) -> None:
    pending = [tree]
    while pending:
        node = pending.pop()
        for key in (
            node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        ):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                pending.append(node[key])


def _change(rng: random.Random, holder: Any, key: Any, places: list[tuple[Any, Any]]) -> None:
    kind = rng.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[rng.choice(_TEXTS)] = holder.pop(key)
    elif kind == 1:
        holder.insert(key, holder[key])
    else:
        holder[key] = _value(rng, holder[key], places)


def _value(rng: random.Random, old: Any, places: list[tuple[Any, Any]]) -> Any:
    kind = rng.randrange(6)
    if kind == 0 and places:
        holder, key = rng.choice(places)
        return (
            json.loads(json.dumps(holder[key]))
            if key in holder or isinstance(holder, list)
            else old
        )
    if kind == 1:
        return rng.choice(_TEXTS)
    if kind == 2:
        return rng.choice(NUMBERS) * rng.choice((1, -1))
    if kind == 3 and isinstance(old, str):
        return mutate(rng, old.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
    if kind == 4:
        return rng.choice(([old], {"x": old}, [old] * 50, str(old)))
    return rng.choice(_CONSTANTS)

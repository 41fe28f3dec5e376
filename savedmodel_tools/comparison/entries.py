"""Differences of labelled fields, which is what the canonical form has for most of a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Optional

from reference_impl.errors import shortened
from savedmodel_tools.canonical.objects import Fields
from savedmodel_tools.comparison.model import (
    ADDED,
    CHANGED,
    REMOVED,
    Change,
)

_HASH = re.compile(r"\b[0-9a-f]{64}\b")
_LONG = 100  # characters


def field_changes(
    section: str, where: tuple[str, ...], one: Mapping[str, Fields], other: Mapping[str, Fields]
) -> Iterator[Change]:
    """Yield a change for each label that one side lacks, and for each field that differs under a
    common label.
    """
    for label in sorted(one.keys() | other.keys()):
        place = (*where, label)
        if label not in other:
            yield Change(section, REMOVED, place, "is gone")
        elif label not in one:
            yield Change(section, ADDED, place, "is new")
        else:
            for name in sorted(one[label].keys() | other[label].keys()):
                change = field_change(
                    section, place, name, one[label].get(name), other[label].get(name)
                )
                if change is not None:
                    yield change


def field_change(
    section: str, where: tuple[str, ...], name: str, old: Optional[str], new: Optional[str]
) -> Optional[Change]:
    """Return the change of one field, or None if it is the same."""
    if old == new:
        return None
    if old is None or new is None:
        kind, text = (ADDED, new) if old is None else (REMOVED, old)
        return Change(section, kind, where, f"{name}: {shown(text or '')}", old, new)
    if only_hashes(old, new):
        return Change(section, CHANGED, where, f"{name} differs")
    return Change(
        section, CHANGED, where, f"{name}: {shown(old)} → {shown(new)}", shown(old), shown(new)
    )


def only_hashes(old: str, new: str) -> bool:
    """Return whether two texts differ only in references to other parts of the model."""
    return old != new and _HASH.sub("", old) == _HASH.sub("", new)


def shown(text: str) -> str:
    """Return a field with short hashes, cut when it is long."""
    return shortened(_HASH.sub(lambda match: match.group()[:8], text), _LONG)

"""The result of a comparison of two SavedModels: named tuples, and their JSON form (docs/diff.md)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional

SCHEMA = 1

# Sections of the canonical form, in the order in which a person reads them, and what is derived from them or stands beside them.
CONTENT = ("meta", "signatures", "functions", "graph", "objects", "collections", "variables", "assets")
SECTIONS = ("meta", "signatures", "functions", "graph", "ops", "objects", "collections", "variables", "assets", "metadata")

ADDED, REMOVED, CHANGED, RENAMED = "added", "removed", "changed", "renamed"


class Change(NamedTuple):
    """One difference.

    Attributes:
      section: one of SECTIONS.
      kind: added, removed, changed, renamed; as seen from the first model.
      where: names from the outside in: tags of the MetaGraph (where it matters), signature, argument; function; checkpoint key.
      what: a sentence without the names in ``where``.
      before, after: plain data, where there is any that is short.
      details: what the section has to say beyond that: nodes of a function, numbers of a tensor.
      counts: whether it makes the models different. False for a change that only follows from another one (in a caller of a
      changed function), that lies within the tolerance, or that is not part of the content (``metadata``, unless requested).
    """

    section: str
    kind: str
    where: tuple[str, ...]
    what: str
    before: Any = None
    after: Any = None
    details: dict[str, Any] = {}
    counts: bool = True

    def to_json(self) -> dict[str, Any]:
        return {name: plain(value) for name, value in self._asdict().items()}


class Side(NamedTuple):
    """One of the two models. ``content_hash`` is that of `compat_matrix.canonical.form`, None where not all was
    read, or where a difference was found without it and nobody asked."""

    path: str
    content_hash: Optional[str]
    produced_by: tuple[str, ...]


class Options(NamedTuple):
    """What is compared, and how exactly.

    Attributes:
      sections: those of SECTIONS that are asked for.
      rtol, atol: values of floating variables x and y count as equal when ``|x - y| <= atol + rtol * max(|x|, |y|)``.
      ulps: or when at most so many units in the last place lie between them.
      follow_links: accept symbolic links that lead out of a model's directory.
      hashes: compute the content hashes even of models that are known to differ.
    """

    sections: tuple[str, ...] = SECTIONS
    rtol: Optional[float] = None
    atol: Optional[float] = None
    ulps: Optional[int] = None
    follow_links: bool = False
    hashes: bool = False

    @property
    def exact(self) -> bool:
        return self.rtol is None and self.atol is None and self.ulps is None

    @property
    def whole(self) -> bool:
        """Whether every section of the content is asked for."""
        return set(CONTENT) <= set(self.sections)


class Weights(NamedTuple):
    """What was compared of the checkpoints: tensors on both sides, how many of them equal, and bytes."""

    tensors: int = 0
    equal: int = 0
    size: int = 0


class ModelDiff(NamedTuple):
    """Two SavedModels compared.

    Attributes:
      first, second: the models.
      options: what was asked.
      changes: by section, those of sections that were not asked for left out.
      weights: the parts of the checkpoints that were compared.
    """

    first: Side
    second: Side
    options: Options
    changes: tuple[Change, ...]
    weights: Weights

    @property
    def equal(self) -> bool:
        """Whether the content hashes are equal, as far as they are known."""
        return self.first.content_hash is not None and self.first.content_hash == self.second.content_hash

    @property
    def verdict(self) -> str:
        """``equal``: of one content hash, or nothing differs in what was asked for; ``close``: differences within the tolerance
        only; ``different``."""
        if any(change.counts for change in self.changes):
            return "different"
        return "close" if any(change.section == "variables" for change in self.changes) else "equal"

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "first": plain(self.first._asdict()),
            "second": plain(self.second._asdict()),
            "sections": list(self.options.sections),
            "tolerance": {"rtol": self.options.rtol, "atol": self.options.atol, "ulps": self.options.ulps},
            "weights": plain(self.weights._asdict()),
            "changes": [change.to_json() for change in self.changes],
        }


def plain(value: Any) -> Any:
    """``value`` as JSON can say it: tuples as lists, numbers that are none as text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value

"""The result of a comparison of two SavedModels: named tuples, and their JSON form
(docs/zoo/diff.md).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional

SCHEMA = 1

# Sections of the canonical form, in the order in which a person reads them, and what is derived
# from them or stands beside them.
CONTENT = (
    "meta",
    "signatures",
    "functions",
    "graph",
    "objects",
    "collections",
    "variables",
    "assets",
)
SECTIONS = (
    "meta",
    "signatures",
    "functions",
    "graph",
    "ops",
    "objects",
    "collections",
    "variables",
    "assets",
    "metadata",
)

_NODES = 5  # of a change, in one line
ADDED, REMOVED, CHANGED, RENAMED = "added", "removed", "changed", "renamed"


class Change(NamedTuple):
    """One difference.

    Attributes:
      section: one of SECTIONS.
      kind: added, removed, changed, renamed; as seen from the first model.
      where: names from the outside in: tags of the MetaGraph (where it matters), signature,
        argument; function; checkpoint key.
      what: a sentence without the names in ``where``.
      before, after: plain data, where there is any that is short.
      details: what the section has to say beyond that: nodes of a function, numbers of a tensor.
      counts: whether it makes the models different. False for a change that only follows from
        another one (in a caller of a changed function), that lies within the tolerance, or that is
        not part of the content (``metadata``, unless requested).
    """

    section: str
    kind: str
    where: tuple[str, ...]
    what: str
    before: Any = None
    after: Any = None
    details: dict[str, Any] = {}
    counts: bool = True

    @classmethod
    def between(
        cls,
        section: str,
        where: tuple[str, ...],
        before: str | None,
        after: str | None,
        counts: bool = True,
    ) -> Change:
        """Return the change from one text to another; None on a side that lacks the thing."""
        if before is None:
            kind, what = ADDED, after or ""
        elif after is None:
            kind, what = REMOVED, before
        else:
            kind, what = CHANGED, f"{before} → {after}"
        return cls(section, kind, where, what, before, after, counts=counts)

    def __str__(self) -> str:
        """Return the change in one line, with the first nodes of a graph or function."""
        nodes = self.details.get("nodes", [])
        told = [
            f"{node['node']} ({node['op']}): {'; '.join(node['what']) or node['kind']}"
            for node in nodes[:_NODES]
        ]
        told += [f"and {len(nodes) - _NODES} more nodes"] if len(nodes) > _NODES else []
        return ": ".join([self.section, *self.where, self.what]) + (
            f" ({', '.join(told)})" if told else ""
        )

    def to_json(self) -> dict[str, Any]:
        return {name: plain(value) for name, value in self._asdict().items()}


class Side(NamedTuple):
    """One of the two models. ``content_hash`` is that of `savedmodel_tools.canonical.form`, None
    where not all was read, or where a difference was found without it and nobody asked."""

    path: str
    content_hash: Optional[str]
    produced_by: tuple[str, ...]


class Options(NamedTuple):
    """What is compared, and how exactly.

    Attributes:
      sections: those of SECTIONS that are asked for.
      rtol, atol: values of floating variables x and y count as equal when ``|x - y| <= atol + rtol
        * max(|x|, |y|)``.
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
        """Return whether every section of the content is compared."""
        return set(CONTENT) <= set(self.sections)


class Weights(NamedTuple):
    """What was compared of the checkpoints: tensors on both sides, how many of them equal, and
    bytes.
    """

    tensors: int = 0
    equal: int = 0
    size: int = 0


def plain(value: Any) -> Any:
    """``value`` as JSON can say it: tuples as lists, numbers that are none as text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value

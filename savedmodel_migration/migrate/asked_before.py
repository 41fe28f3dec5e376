"""MetaGraphs of one model that are equal but for their tags, as exports for CPU and GPU often are.

The old model is asked through the first of several equal MetaGraphs, and the gradients of equal new
models are made once. Every reader still loads and asks each new model. SAVEDMODEL_COMPAT_PLAIN=1
turns this off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compat_matrix.requests.given import beside
from savedmodel_migration.migrate.proof import Asker, Old
from savedmodel_migration.migrate.records import Part
from savedmodel_migration.migrate.same_graph import KnownGradients


class AskedBefore:
    """What is known from the MetaGraphs of one model that were asked before: the old model by the
    content of its MetaGraph, and the gradients of the new models.
    """

    def __init__(self) -> None:
        self._old: dict[tuple[bytes, bool], Old] = {}
        self.gradients = KnownGradients()

    def keep(self, content: bytes, old: Old, notes: Sequence[str]) -> None:
        """Keep the old model as it was asked; ``notes``: those that asking it has made.

        Not where requests lie beside the model: they name tags. A model that does not load, or that
        needs another release, is asked again too.
        """
        given = beside(old.model, old.model) is not None
        if content and not (given or old.problem or old.away or old.part.needs):
            part = replace(old.part, notes=list(notes))
            self._old[content, _is_served(old.part)] = old.again(old.asker, part)

    def old(self, content: bytes, asker: Asker, part: Part) -> Old | None:
        """Return the old model as it was asked through an equal MetaGraph, for ``part``; None if
        there is none.
        """
        known = self._old.get((content, _is_served(part)))
        if known is None:
            return None
        part.take_over(known.part)
        return known.again(asker, part)


def _is_served(part: Part) -> bool:
    """Return whether a server would ask the MetaGraph the warm-up requests of the model."""
    return "serve" in part.tags

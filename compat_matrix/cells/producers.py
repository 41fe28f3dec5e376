"""Producers: who turns a case into an artifact.

``fixture`` has no program: its artifacts are committed under ``fixtures_v1``. ``v1_builder`` runs the fixtures' generators in a
worker (capability ``generate``), the others build the cases of ``compat_matrix/cases`` there (capability ``produce``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compat_matrix.runtimes.programs import Program

GENERATE = "generate"


@dataclass(frozen=True)
class Export:
    """A model that an exporter of other people writes: what a case is to our producers. ``file`` is what its hash is taken of."""

    name: str
    file: Path
    title: str = ""
    clauses: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("signature",)  # of its requests
    checks: tuple[str, ...] | None = None
    timeout: float | None = None
    requires: str | None = None


@dataclass(frozen=True)
class Producer:
    """One way to write a SavedModel. ``program`` is a name of ours (``runtimes.programs.of``), a whole Program, or None.

    ``usual``: part of every plan; the others are planned where they are asked for. Of other people's: ``exports``, what the
    program writes in place of our cases; ``artifacts``, the folder of those that exist; ``version``, as a consumer's.
    """

    name: str
    program: str | Program | None
    capabilities: frozenset[str]
    summary: str
    usual: bool = True
    version: str | None = None
    exports: tuple[Export, ...] = ()
    artifacts: Path | None = None


def _table(*producers: Producer) -> dict[str, Producer]:
    return {producer.name: producer for producer in producers}


PRODUCERS = _table(
    Producer("fixture", None, frozenset(), "committed artifacts of genuine TensorFlow 1.x"),
    Producer("tf2", "tf2_worker", frozenset({"produce"}), "tf.saved_model.save"),
    Producer("reference", "reference_worker", frozenset({"produce"}), "reference_impl.save of this project"),
    Producer("v1_builder", "v1_builder_worker", frozenset({GENERATE}), "the fixtures' generators in any TensorFlow", usual=False),
)

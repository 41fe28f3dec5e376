"""Producers: programs that turn a case into an artifact.

``fixture`` has no program: its artifacts are committed under ``fixtures_v1``. ``v1_builder`` runs
the fixtures' generators in a worker (capability ``generate``), the others build the cases of
``compat_matrix/cases`` there (capability ``produce``).
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
    """A model that a third-party exporter writes, as our producers build a case.

    Its hash is that of ``file``.
    """

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
    """One way to write a SavedModel. ``program`` is the name of one of our programs
    (``runtimes.programs.of``), a Program, or None.

    ``usual``: part of every plan; other producers are planned only on request. Third-party
    producers also have ``exports`` (the models that the program writes in place of our cases),
    ``artifacts`` (the folder of existing artifacts) and ``version``, as consumers do.
    ``reproducible``: the bytes of an export do not depend on the process that writes it.
    """

    name: str
    program: str | Program | None
    capabilities: frozenset[str]
    summary: str
    usual: bool = True
    version: str | None = None
    exports: tuple[Export, ...] = ()
    artifacts: Path | None = None
    reproducible: bool = False


_OURS = (
    Producer("fixture", None, frozenset(), "committed artifacts of genuine TensorFlow 1.x"),
    Producer("tf2", "tf2_worker", frozenset({"produce"}), "tf.saved_model.save"),
    Producer(
        "reference",
        "reference_worker",
        frozenset({"produce"}),
        "reference_impl.save of this project",
        reproducible=True,
    ),
    Producer(
        "v1_builder",
        "v1_builder_worker",
        frozenset({GENERATE}),
        "the fixtures' generators in any TensorFlow",
        usual=False,
    ),
)
PRODUCERS = {producer.name: producer for producer in _OURS}

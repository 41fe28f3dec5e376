"""Producers: who turns a case into an artifact.

``fixture`` has no program: its artifacts are committed under ``fixtures_v1``. ``v1_builder`` runs the fixtures' generators in a
worker (capability ``generate``), the others build the cases of ``compat_matrix/cases`` there (capability ``produce``).
"""

from __future__ import annotations

from dataclasses import dataclass

GENERATE = "generate"


@dataclass(frozen=True)
class Producer:
    """One way to write a SavedModel. ``program`` is a file of ``compat_matrix/workers`` without ``.py``, or None.

    ``usual``: part of every plan; the others are planned where they are asked for.
    """

    name: str
    program: str | None
    capabilities: frozenset[str]
    summary: str
    usual: bool = True


def _table(*producers: Producer) -> dict[str, Producer]:
    return {producer.name: producer for producer in producers}


PRODUCERS = _table(
    Producer("fixture", None, frozenset(), "committed artifacts of genuine TensorFlow 1.x"),
    Producer("tf2", "tf2_worker", frozenset({"produce"}), "tf.saved_model.save"),
    Producer("reference", "reference_worker", frozenset({"produce"}), "reference_impl.save of this project"),
    Producer("v1_builder", "v1_builder_worker", frozenset({GENERATE}), "the fixtures' generators in any TensorFlow", usual=False),
)

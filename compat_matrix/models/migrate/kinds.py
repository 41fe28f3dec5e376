"""Which migrator makes what was asked for."""

from __future__ import annotations

from pathlib import Path

from compat_matrix.models.migrate.migrator import TO_KERAS, Migrator, Settings
from compat_matrix.models.migrate.to_keras import KerasMigrator


def migrator_for(work: Path, settings: Settings) -> Migrator:
    """Return a migrator to TF 2 or to Keras 3; ``work`` is its own folder."""
    return (KerasMigrator if settings.to == TO_KERAS else Migrator)(work, settings)

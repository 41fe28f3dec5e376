"""Losses of a save: an error or, without ``strict``, a warning."""

from __future__ import annotations

import warnings

from reference_impl.errors import SaveError


def report_loss(error: SaveError, what: str, strict: bool) -> None:
    """Raise the error of a loss or, without ``strict``, warn of it.

    The warning begins with `what`, if it is not empty: ``state is left out: root.t: ...``.
    """
    if strict:
        raise error
    warnings.warn(f"{what}: {error}" if what else str(error), stacklevel=2)

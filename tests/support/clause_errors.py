"""Errors of `reference_impl` that are about one clause of the RFC."""

from __future__ import annotations

import contextlib

import pytest


@contextlib.contextmanager
def raises(kind, clause, match=None):
    """As `pytest.raises`. The error must also be about the clause, which its text does not name."""
    with pytest.raises(kind, match=match) as caught:
        yield caught
    assert caught.value.clause == clause

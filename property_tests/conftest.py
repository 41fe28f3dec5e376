"""Profiles, and what the properties share. TensorFlow is imported by fixtures only."""

from __future__ import annotations

import gc

import pytest

from compat_matrix.runtimes import forks
from compat_matrix.workers.protocol import COLLECT_AFTER
from property_tests import profiles

profiles.register()
gc.set_threshold(COLLECT_AFTER)  # as in tests/conftest.py


@pytest.fixture(scope="session")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="session", autouse=True)
def one_import():
    """All workers of a process of the tests are forks of one that has imported TensorFlow."""
    with forks.kept():
        yield

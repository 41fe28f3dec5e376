"""Profiles, and what the properties share. TensorFlow is imported by fixtures only."""

from __future__ import annotations

import gc

import pytest

from property_tests import profiles

profiles.register()
gc.set_threshold(10_000)  # as in tests/conftest.py


@pytest.fixture(scope="session")
def tf():
    return pytest.importorskip("tensorflow")

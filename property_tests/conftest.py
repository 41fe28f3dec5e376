"""Profiles, and what the properties share. TensorFlow is imported by fixtures only."""

from __future__ import annotations

import pytest

from property_tests import profiles

profiles.register()


@pytest.fixture(scope="session")
def tf():
    return pytest.importorskip("tensorflow")

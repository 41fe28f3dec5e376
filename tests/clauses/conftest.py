"""What the tests of the clauses share."""

from __future__ import annotations

import pytest

import reference_impl


@pytest.fixture(scope="session")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="session")
def both(tf):
    """directory -> what `reference_impl.load` and what `tf.saved_model.load` make of it."""

    def load(directory):
        return [reference_impl.load(directory), tf.saved_model.load(str(directory))]

    return load

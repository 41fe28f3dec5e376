"""What the tests of the canonical form of references share."""

import itertools

import model_edits as edits
import pytest


@pytest.fixture
def hashes(tmp_path):
    """Hashes of hand-made models, a set: as many as there are different ones."""
    numbers = itertools.count()

    def get(*builds):
        return {edits.built(tmp_path / str(next(numbers)), build).hash for build in builds}

    return get

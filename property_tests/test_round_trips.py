"""What was saved comes back: generated models through either implementation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import implementations, world
from property_tests.implementations import BOTH
from property_tests.profiles import budget
from property_tests.strategies.models import models

pytestmark = pytest.mark.tensorflow


@budget(60)
@given(models(), st.sampled_from(BOTH))
def test_a_loaded_model_answers_as_the_original(tf, model, writer):
    """Whoever wrote it, whoever reads it."""
    with world.folder() as folder:
        built = world.build(model.script(), folder)
        implementations.save(writer, built.root, folder / "model", built.signatures)
        loaded = {reader: implementations.load(reader, folder / "model") for reader in BOTH}
        expected = built.answers(built.root)
        for reader, other in loaded.items():
            assert built.answers(other) == expected, f"{writer} -> {reader}"

"""The state of a model is an ordinary training checkpoint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import implementations, world
from property_tests.implementations import BOTH
from property_tests.profiles import budget
from property_tests.strategies.models import models
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow


@budget(25)
@given(models(), st.sampled_from(BOTH))
def test_values_survive_as_a_training_checkpoint(tf, model, writer):
    """The same program makes the model again, with other values; restoring the SavedModel as a
    checkpoint brings them back.
    """
    with world.folder() as folder:
        check_restored(model.script(), folder, writer)


def check_restored(script, folder, writer):
    import tensorflow as tf

    built, other = world.build(script, folder / "one"), world.build(script, folder / "other")
    path, paths = (
        implementations.save(writer, built.root, folder / "model", built.signatures),
        built.variables,
    )
    for way in paths:
        variable = other.find(other.root, way)
        if not variable.dtype.is_quantized:
            variable.assign(tf.zeros_like(variable))
    prefix = layout.read(path).checkpoint_prefix
    tf.train.Checkpoint(other.root).restore(str(prefix)).expect_partial()
    values = {way: world.plain(built.find(built.root, way)) for way in paths}
    assert {way: world.plain(other.find(other.root, way)) for way in paths} == values
    assert other.answers(other.root) == built.answers(built.root)
    with BundleReader(prefix) as reader:
        stored = {
            world.bits(reader.read(key), entry.dtype.name)
            for key, entry in reader.entries().items()
        }
    assert set(values.values()) <= stored


CHECKS = {"test_values_survive_as_a_training_checkpoint": check_restored}

"""The kind `signature_map`: the immutable map under ``.signatures``."""

from __future__ import annotations

import pytest

from reference_impl import errors
from reference_impl.format import names

pytestmark = pytest.mark.tensorflow


def test_signatures_are_a_map_of_functions(tf, round_trip, by_name):
    model = tf.Module()
    model.f = tf.function(lambda x: x + 1, input_signature=[tf.TensorSpec([], tf.float32, "x")])
    loaded = round_trip(model, signatures={"plus": model.f})
    assert list(loaded.signatures) == ["plus"]
    (result,) = loaded.signatures["plus"](x=tf.constant(1.0)).values()
    assert result.numpy() == 2.0
    assert by_name("signatures").user_object.identifier == names.SIGNATURES
    with pytest.raises(errors.UnknownSignatureError):
        loaded.signatures["minus"]

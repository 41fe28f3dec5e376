"""TypeSpecs and Python values of a signature: written and read, they are the same."""

from __future__ import annotations

import pytest

from reference_impl.errors import LimitError, SavedModelError

pytestmark = pytest.mark.tensorflow


def test_values_come_back(tf):
    from reference_impl.functions import specs

    values = (
        tf.TensorSpec([None, 3], tf.int8, "x"),
        tf.RaggedTensorSpec([2, None], tf.string),
        tf.SparseTensorSpec([None, 4], tf.float64),
        {"key": [1, 2.5, True, "text", None]},
        tf.TensorShape([None, 2]),
        tf.float16,
    )
    assert specs.decode(specs.to_message(values)) == values


def test_a_value_that_no_file_can_hold_is_named(tf):
    from reference_impl.functions import specs

    with pytest.raises(SavedModelError) as raised:
        specs.encode(object(), "root.f", "arguments")
    assert raised.value.node == "root.f"


def test_shapes_have_two_forms(tf):
    from reference_impl.functions import specs

    for sizes in (None, [], [None, 2]):
        shape = tf.TensorShape(sizes)
        again = specs.shape_of(specs.shape_proto(shape))
        assert again.rank == shape.rank
        assert shape.rank is None or again.as_list() == shape.as_list()


def test_tensors_may_not_claim_much_more_memory_than_space_in_the_file(tf):
    from reference_impl.functions import specs

    specs.check_extra_bytes(1)
    with pytest.raises(LimitError):
        specs.check_extra_bytes(1 << 50)

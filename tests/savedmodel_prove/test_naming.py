"""Names of the original in a converted file."""

import pytest

from savedmodel_prove.sides.naming import pair
from savedmodel_prove.sides.side import SideError


@pytest.mark.parametrize(
    ("wanted", "there", "expected"),
    [
        (["x"], ["x"], {"x": "x"}),
        (["x"], ["x:0"], {"x": "x:0"}),
        (
            ["a", "b"],
            ["serving_default_b:0", "serving_default_a:0"],
            {"a": "serving_default_a:0", "b": "serving_default_b:0"},
        ),
        (["x"], ["keras_tensor_7"], {"x": "keras_tensor_7"}),
        (["a", "b"], ["b", "other"], {"b": "b", "a": "other"}),
        (["a", "b"], ["b"], {"b": "b"}),
        (["images/x"], ["images_x"], {"images/x": "images_x"}),
    ],
)
def test_spellings(wanted, there, expected):
    assert pair("input", wanted, there, {}) == expected


def test_the_user_pairs_names():
    assert pair("output", ["a", "b"], ["p", "q"], {"a": "q"}) == {"a": "q", "b": "p"}
    with pytest.raises(SideError, match="no output 'r'"):
        pair("output", ["a"], ["p"], {"a": "r"})


def test_names_that_nobody_can_pair():
    with pytest.raises(SideError, match="--name a=NAME"):
        pair("output", ["a", "b"], ["p", "q"], {})

"""A failure that was printed becomes a regression; needs no TensorFlow."""

from __future__ import annotations

import runpy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests import promote
from property_tests.strategies.graphs import graphs
from property_tests.strategies.models import models

# What pytest, and a group of exceptions in it, write before each line.
MARGINS = st.sampled_from(["", "E   ", "    | ", "  | "])


def shown(script, margin, name="test_a_loaded_model_answers_as_the_original"):
    head = (
        f"Failing test case: {name}(\n    tf=<module>,\n    model=Model(x='a',\n    ),\n   "
        " writer='tf.saved_model',\n)\n"
    )
    return (
        "".join([f"{margin}{line}".rstrip() + "\n" for line in (head + script).splitlines()])
        + "=== slowest ===\n"
    )


@given(models() | graphs(), MARGINS)
def test_the_script_of_a_failure_is_found_again_whatever_stands_before_its_lines(model, margin):
    script = model.script()
    assert promote.find(shown(script, margin)) == (
        script,
        "test_a_loaded_model_answers_as_the_original",
        {"writer": "tf.saved_model"},
    )


def test_a_promoted_failure_is_a_program_with_its_property(tmp_path, capsys):
    script = "import collections\nRAN = collections.Counter('a')\n# The end of the script.\n"
    path = promote.promote("a_name", "What went wrong.", shown(script, "E   "), tmp_path)
    names = runpy.run_path(str(path))
    assert (names["__doc__"], names["RAN"]) == ("What went wrong.", {"a": 1})
    assert names["PROPERTY"] == "test_a_loaded_model_answers_as_the_original"
    assert names["ARGUMENTS"] == {"writer": "tf.saved_model"}


@pytest.mark.parametrize(
    ("name", "text"),
    [("a", "nothing"), ("A-b", ""), ("a", "import collections\n# The end of the script.")],
)
def test_what_shows_no_failure_is_refused(tmp_path, name, text):
    with pytest.raises(promote.NoScriptError):
        promote.promote(name, "", text, tmp_path)
    assert list(tmp_path.iterdir()) == []

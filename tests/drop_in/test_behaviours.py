"""Behaviours of `load` and `save` in the default mode: where ours differs from TensorFlow,
docs/format/drop_in.md says so.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import reference_impl

tf = pytest.importorskip("tensorflow")
from behaviours import BEHAVIOURS, Implementation  # noqa: E402

pytestmark = pytest.mark.tensorflow

PAGE = Path(__file__).parents[2] / "docs/format/drop_in.md"
# Behaviour -> the row that declares the difference. A behaviour that is not here is equal.
DECLARED = {
    "aliases_of_a_list_with_an_unexported_member": "aliases of functions that are not exported",
    "content_of_mutable_tables": "savers of loaded tables",
    "numbers_beside_variables_in_a_dict": "elements of containers",
    "asked_signature_of_a_ragged_tensor": "structures as inputs of signatures",
    "default_that_the_object_offers_and_that_cannot_be_one": (
        "a default signature that cannot be made"
    ),
    "functions_that_a_property_makes": "properties",
    "functions_without_a_trace": "untraced functions",
    "kind_of_a_tuple": "tuples",
    "numbers_beside_variables_in_a_list": "elements of containers",
    "scalars_of_numpy_as_python_arguments": "NumPy scalars as Python arguments",
    "variables_without_a_value": "variables without a value",
}


def _outcome(program, save, load, folder):
    """Return what a behaviour sees, or its error."""
    folder.mkdir()
    try:
        return program(Implementation(save, load, folder))
    except Exception as error:
        return error


def _equal(ours, theirs):
    """Return whether a program that handles TensorFlow's outcome handles ours as well."""
    if isinstance(theirs, Exception):
        return isinstance(ours, type(theirs))
    if isinstance(theirs, list):
        return (
            isinstance(ours, list) and len(ours) == len(theirs) and all(map(_equal, ours, theirs))
        )
    return not isinstance(ours, Exception) and ours == theirs


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_behaviour_is_that_of_tensorflow_or_has_a_row(name, tmp_path):
    theirs = _outcome(
        BEHAVIOURS[name], tf.saved_model.save, tf.saved_model.load, tmp_path / "theirs"
    )
    ours = _outcome(BEHAVIOURS[name], reference_impl.save, reference_impl.load, tmp_path / "ours")
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    if name in DECLARED:
        assert DECLARED[name] in rows, f"docs/format/drop_in.md has no row {DECLARED[name]!r}"
        assert not isinstance(ours, Exception) or isinstance(
            ours, reference_impl.errors.SavedModelError
        ), repr(ours)
        assert not _equal(ours, theirs), (
            f"{name} is equal now: take it off the list, and the row off the page if nothing else"
            " needs it"
        )
    else:
        assert _equal(ours, theirs), (
            "differs from TensorFlow: mend it or declare it by a row\nTensorFlow:"
            f" {theirs!r}\nours: {ours!r}"
        )


def test_only_behaviours_are_declared():
    assert DECLARED.keys() <= BEHAVIOURS.keys()


def test_a_difference_is_noticed():
    assert (
        _equal(1, 1)
        and not _equal(1, 2)
        and not _equal(ValueError(), 1)
        and not _equal(1, ValueError())
    )
    assert (
        _equal([1, KeyError()], [1, KeyError()])
        and not _equal([1], [2])
        and not _equal([1], [1, 2])
    )
    assert _equal(reference_impl.errors.SignatureError("no"), ValueError("no")) and not _equal(
        KeyError(), ValueError()
    )

"""What cannot be saved whole is not saved at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_impl
from property_tests import world
from property_tests.profiles import budget
from property_tests.strategies.refusals import MISTAKES, invalid_models
from reference_impl import errors
from reference_impl import errors as format_errors

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize(
    "mistake", MISTAKES, ids=lambda mistake: f"{mistake.clause}-{MISTAKES.index(mistake)}"
)
@budget(4)
@given(data=st.data())
def test_an_invalid_model_is_refused_by_a_strict_save_with_the_right_error(tf, mistake, data):
    """The class of the error is the one documented, it names the culprit, and an export made before
    stays as it was.
    """
    model, lines = data.draw(invalid_models(mistake))
    with world.folder() as folder:
        refused = f"\nREFUSED = {(mistake.error, mistake.clause, mistake.text)}"
        check_refused(model.script(lines, refused), folder)


def check_refused(script, folder):
    built, path = world.build(script, folder), folder / "model"
    error, clause, text = built.names["REFUSED"]
    path.mkdir()
    (path / "old").write_text("before")
    kind = getattr(errors, error, None) or getattr(format_errors, error)
    with pytest.raises(kind) as caught:
        reference_impl.save(built.root, path, signatures=built.signatures)
    # An error about a file also derives from that of TensorFlow, in a class of the same name.
    assert (type(caught.value).__name__, caught.value.clause) == (kind.__name__, clause)
    assert text in str(caught.value)
    assert [item.name for item in path.iterdir()] == ["old"] and not list(
        path.parent.glob("*.tmp*")
    )


CHECKS = {"test_an_invalid_model_is_refused_by_a_strict_save_with_the_right_error": check_refused}

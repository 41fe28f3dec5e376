"""Every test asserts something, whatever its parameters are."""

from __future__ import annotations

from pathlib import Path

import assertions
import pytest

ROOT = Path(__file__).parents[2]
# Tests that call what they find at run time; what is called is looked at where it stands.
DISPATCH = {
    "test_regressions.py: test_what_was_found_stays_repaired",
    "test_drop_in_page.py: test_what_the_page_says_is_so",
}


def unsure(tmp_path, body):
    file = tmp_path / "test_it.py"
    file.write_text(
        "def helper(x):\n    assert x\n\ndef loose(x):\n    print(x)\n\ndef"
        f" test_it(fixture):\n{body}\n"
    )
    return assertions.Tests([file]).unsure()


def test_each_test_of_the_project_asserts():
    files = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("property_tests/**/*.py")]
    assert set(assertions.Tests(files).unsure()) == DISPATCH


@pytest.mark.parametrize(
    "body",
    [
        "    pass",
        "    loose(1)",
        "    if fixture is None:\n        return\n    assert fixture",
        "    if fixture:\n        assert fixture",
        "    for x in made():\n        assert x",
        "    for x in [y for y in fixture if y]:\n        assert x",
        "    for x in fixture:\n        if not x:\n            continue\n        assert x",
        "    try:\n        assert fixture\n    except AssertionError:\n        pass",
        "    with suppress(AssertionError):\n        assert fixture",
        "    def inner():\n        assert fixture",
    ],
)
def test_what_can_pass_without_an_assertion_is_found(body, tmp_path):
    assert unsure(tmp_path, body) == ["test_it.py: test_it"]


@pytest.mark.parametrize(
    "body",
    [
        "    assert fixture",
        "    helper(fixture)",
        "    with pytest.raises(ValueError):\n        loose(fixture)",
        "    for x in (1, 2):\n        helper(x)",
        "    for x in fixture.items():\n        assert x",
        "    found = made()\n    assert found\n    for x in found:\n        assert x",
        "    if fixture:\n        assert 1\n    else:\n        helper(2)",
        "    run([1], check=True)",
    ],
)
def test_what_asserts_is_not(body, tmp_path):
    assert unsure(tmp_path, body) == []

"""Tests assert outcomes, names and values; the wording of a message may change."""

from __future__ import annotations

from pathlib import Path

import pytest
from pinned_sentences import pinned_in

TESTS = Path(__file__).parents[1]
MOST_PINNED = 131  # may only fall


def test_few_assertions_compare_a_sentence():
    found = [
        f"{path.relative_to(TESTS.parent)}:{line} {text!r}"
        for path in sorted(TESTS.rglob("*.py"))
        for line, text in pinned_in(path)
    ]
    assert len(found) <= MOST_PINNED, "\n".join(
        [
            f"{len(found)} assertions compare a sentence, {MOST_PINNED} may. Compare the outcome,"
            " a field of the error, the JSON output, or one name or value of the message:",
            *found,
        ]
    )


@pytest.mark.parametrize(
    "condition, sentences",
    [
        ("'there is no readable checkpoint' in text", ["there is no readable checkpoint"]),
        ("'variables.index' in text", []),
        ("'the dtype of root.v is float32' in text", []),
        ("'only three words' in text", []),
        ("counts['the key of a table'] == 1", []),
        ("counts, 'told only when it fails'", []),
    ],
)
def test_a_sentence_has_four_words_in_a_row(condition, sentences, tmp_path):
    file = tmp_path / "test_it.py"
    file.write_text(f"assert {condition}\n")
    assert [text for _, text in pinned_in(file)] == sentences


def test_a_pattern_of_an_error_is_compared_too(tmp_path):
    file = tmp_path / "test_it.py"
    file.write_text(
        "with pytest.raises(ValueError, match=r'it is not a (file|folder)'):\n    pass\n"
    )
    assert len(list(pinned_in(file))) == 1

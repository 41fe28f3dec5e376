"""Texts inside error messages: nothing in them controls a terminal, and long lists are cut."""

from __future__ import annotations

import pytest

from reference_impl.format import error_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\u202eb", "a\\u202eb"),
        ("\ud800", "\\ud800"),
    ],
)
def test_control_characters_are_escaped(text, shown):
    assert error_text.printable(text) == shown


def test_characters_may_be_kept():
    assert error_text.printable("a\nb", kept="\n") == "a\nb"


def test_similar_names_are_suggested():
    assert error_text.nearest("Serve", ["serve", "train"]) == ["serve"]
    assert error_text.like("serv", ["serve"]) == " Did you mean serve?"
    assert error_text.like("x", ["serve"]) == ""


def test_long_lists_and_texts_are_cut():
    assert error_text.listed("abc", most=2) == "a, b and 1 more"
    assert error_text.shortened("abcdef", 4) == "abc…"

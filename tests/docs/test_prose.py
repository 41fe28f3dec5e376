"""The check of prose finds what it should, and nothing in code, tables and idiomatic sentences."""

import pytest

from docs import prose, site

LONG = " ".join(["word"] * 41)


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("A list is no dict.", ["is no"]),
        ("There is no index. It is no longer read.", []),
        ("The ops of which it is made.", ["of which"]),
        ("Whoever reads it waits.", ["whoever"]),
        ("What of the graph is used?", ["what of"]),
        ("What a model needs.", ["begins with who"]),
        ("What is asked? What a model needs?", []),
        (f"{LONG}.", ["long sentence"]),
        (f"{LONG[:100]}. {LONG[:100]}.", []),
        (
            f"| {LONG} is no table |\n# It is no title\n```\nit is no code\n```\n`it is no name`\n",
            [],
        ),
    ],
)
def test_a_page(text, patterns):
    assert [item.pattern for item in prose.of_page("page.md", text)] == patterns


def test_a_line_of_a_page_is_short():
    """Generated pages are not excused: their tables are the long ones."""
    text = f"short\n| {'x' * prose.MOST_CHARACTERS} |\n"
    assert [item.text[:12] for item in prose.long_lines("page.md", text)] == ["line 2: | xx"]
    pages = {str(page): (prose.ROOT / page).read_text(encoding="utf-8") for page in site.pages()}
    assert [
        str(item) for page, text in pages.items() for item in prose.long_lines(page, text)
    ] == []


def test_a_program():
    source = (
        '"""Whoever reads it."""\n# It is no code.\nwhoever = {"is-no": 1}\nraise ValueError("a'
        ' list is no dict")\n'
    )
    assert sorted(item.pattern for item in prose.of_program("module.py", source)) == [
        "is no",
        "is no",
        "whoever",
    ]

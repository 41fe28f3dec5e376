"""The check of prose finds what it should, and nothing in code, tables and idiomatic sentences."""

import pytest

from docs import prose, site
from savedmodel_common import toml

LONG = " ".join(["word"] * 41)
RULES = toml.read(prose.STYLE)["rule"]


@pytest.mark.parametrize("rule", RULES, ids=[rule["name"] for rule in RULES])
def test_a_rule_finds_its_example_and_leaves_the_better_sentence_alone(rule):
    assert [item.rule for item in prose.of_page("page.md", rule["found"])] == [rule["name"]]
    assert list(prose.of_page("page.md", rule["fine"])) == []


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (f"{LONG}.", ["long sentence"]),
        (f"{LONG[:100]}. {LONG[:100]}.", []),
        (f"{LONG[:75]}; {LONG[:75]}.", ["two facts"]),
        (f"{LONG[:50]}; {LONG[:50]}.", []),
        (
            f"| {LONG} is no table |\n# It is no title\n```\nit is no code\n```\n`it is no name`\n",
            [],
        ),
        ("<!-- Begin: a command -->\nIt is no prose.\n<!-- End -->\n", []),
    ],
)
def test_a_page(text, rules):
    assert [item.rule for item in prose.of_page("page.md", text)] == rules


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
        '"""Whoever reads it, hence."""\n# It is no code.\nwhoever = {"is-no": 1}\n'
        'raise ValueError("a list is no dict, hence")\n'
    )
    found = sorted(item.rule for item in prose.of_program("module.py", source))
    assert found == ["is no", "is no", "old word", "whoever"]


def test_a_module_that_is_read_as_text():
    """All rules hold in the docstrings and comments of the reference packages."""
    source = '"""Read it, hence."""\n# The keys are those of a map.\n'
    for package in prose.READ_AS_TEXT:
        found = [item.rule for item in prose.of_program(f"{package}/module.py", source)]
        assert found == ["is that of", "old word"]

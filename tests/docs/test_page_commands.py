"""Every command that a page shows is run (test_transcripts.py, test_contributing.py), or the page
says why it is not.
"""

from pathlib import Path

import pytest
import shown_commands

from docs import site, transcripts

ROOT = Path(__file__).parents[2]
# Of commands.md, which is generated from the commands, tests/cli/test_help.py judges the examples.
PAGES = {
    str(page): (ROOT / page).read_text(encoding="utf-8")
    for page in site.pages()
    if page.name != "commands.md"
}
RECIPES = [
    command for _, _, command in shown_commands.recipes()
]  # test_contributing.py makes what they name, and runs them
SHOWN = {page: found for page, text in PAGES.items() if (found := [*shown_commands.of_page(text)])}


def test_most_pages_show_commands():
    assert len(SHOWN) > 15


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_is_run_or_excused(page):
    assert [
        block for block in transcripts.never_run(PAGES[page]) if block.strip() not in RECIPES
    ] == []


@pytest.mark.parametrize("page", SHOWN)
def test_the_programs_take_what_a_page_shows(page):
    shown = set(SHOWN[page]).difference(RECIPES)
    assert {command: why for command in shown if (why := shown_commands.refused(command))} == {}


@pytest.mark.parametrize(
    "page", [page for page, text in PAGES.items() if transcripts.excused(text)]
)
def test_an_excuse_is_for_commands_and_is_itself_checked(page):
    """What stands in for a block is run with the page.

    Without it, each command of the block is at least one that exists.
    """
    blocks = transcripts.excused(PAGES[page])
    assert [
        block.text for block in blocks if not transcripts.never_run(f"```sh\n{block.text}```")
    ] == []
    assert [
        block.text
        for block in blocks
        if not block.instead and not [*shown_commands.of_page(f"```\n{block.text}```")]
    ] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```sh\nany words\n```\n", ["any words\n"]),
        ("```\n$ any words\n```\n", ["$ any words\n"]),
        ("```\nsavedmodel-compat inspect model\n```\n", ["savedmodel-compat inspect model\n"]),
        ("```yaml\n- run: A=b tox -e lint\n```\n", ["- run: A=b tox -e lint\n"]),
        ("```console\n$ savedmodel-compat inspect model\n```\n", []),
        ("<!-- not run: a reason -->\n\n```sh\nany words\n```\n", []),
        (
            (
                "<!-- not run: a reason; instead: true -->\n\n```sh\nany"
                " words\n```\n\n```sh\nmore\n```\n"
            ),
            ["more\n"],
        ),
        ("```\noutput\n```\n", []),
    ],
)
def test_a_block_that_nothing_runs_is_found(text, found):
    assert transcripts.never_run(text) == found


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        ("savedmodel-compat inspect model --jsn", "No such option"),
        ("savedmodel-compat inspekt model", "no command inspekt"),
        ("savedmodel-compat edit slim", "missing"),
        ("savedmodel-compat diff one two three", "too many"),
        ("savedmodel-compat edit signature model a b", "no command signature"),
        (
            "savedmodel-compat gate run --baseline 2.15 --candidate 2.17 --case half_plus_three",
            "no case half_plus_three",
        ),
        (
            "savedmodel-compat serving upgrade --from 2.15 --to 2.17 --case half_plus_two",
            "no case half_plus_two",
        ),
        (
            (
                "savedmodel-compat gate bisect half_plus_three/fixture@1.15.5/tf2@2.17.1/load --from"
                " 2.15 --to 2.17"
            ),
            "no case",
        ),
        ("tox -e compat,lnt", "no environment lnt"),
        ('pip install "savedmodel-compat[tf,kears]"', "no extra kears"),
        ("python -m compat_matrix.nothing", "no module"),
    ],
)
def test_what_programs_do_not_take_is_found(shown, why):
    (found,) = shown_commands.of_page(f"```console\n$ A=b {shown} | head -3\n```\n")
    assert found == shown and why in shown_commands.refused(found)

"""Pages are short, and their names differ by more than a letter."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from docs import evidence_tables, site

ROOT = Path(__file__).parents[2]
MOST_WORDS = 2_500  # of a page
MOST_WORDS_IN_ALL = 60_000  # of the pages of the site, without the evidence
CODE = re.compile(r"```.*?```|<!--.*?-->", re.DOTALL)
PAGES = {str(page): (ROOT / page).read_text(encoding="utf-8") for page in site.pages()}


def words(text):
    """Return the number of words of a page: not of code, nor the lines of tables."""
    return sum(any(map(str.isalnum, word)) for word in CODE.sub("", text).split())


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_page_is_short(page):
    assert words(PAGES[page]) <= MOST_WORDS


def test_all_pages_without_the_evidence_are_short():
    """Those that are built with the site count too: the commands, the rules, what green means."""
    pages = {**PAGES, **evidence_tables.pages()}
    counted = {page: words(text) for page, text in pages.items() if "/evidence/" not in page}
    assert "docs/commands/check.md" in counted and "docs/zoo/rules.md" in counted
    assert sum(counted.values()) < MOST_WORDS_IN_ALL


def differ_by_a_letter(first, second):
    """Return whether one letter more or another one makes a name of the other."""
    short, long = sorted((first, second), key=len)
    if len(long) - len(short) > 1:
        return False
    if len(long) == len(short):
        return sum(one != other for one, other in zip(short, long)) == 1
    return any(long[:place] + long[place + 1 :] == short for place in range(len(long)))


def test_no_two_names_differ_by_a_letter():
    assert differ_by_a_letter("contract", "contracts") and differ_by_a_letter("planted", "planned")
    names = sorted({Path(page).stem for page in PAGES})
    pairs = [pair for pair in combinations(names, 2) if differ_by_a_letter(*pair)]
    assert pairs == []


def test_the_folders_of_the_pages_are_those_of_their_readers():
    found = (Path(page).parts for page in PAGES)
    folders = {parts[1] for parts in found if parts[0] == "docs" and len(parts) > 2}
    readers = {"exporters", "zoo", "releases", "servers", "format", "contribute", "evidence"}
    assert folders == readers

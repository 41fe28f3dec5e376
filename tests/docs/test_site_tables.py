"""Tables of the documentation site in a browser: a filter, the first rows of very many, columns
that can be read.
"""

from __future__ import annotations

import browser
import pytest

from docs import site

pytestmark = pytest.mark.skipif(
    browser.PROGRAM is None, reason=f"needs a browser: {', '.join(browser.NAMES)}"
)
SCRIPT, STYLE = (site.ROOT / path for path in site.ASSETS)
SHOWN = (
    "[...document.querySelectorAll('tbody tr')].filter((row) => row.getClientRects().length).length"
)


@pytest.fixture(scope="module")
def chromium():
    with browser.started() as one:
        yield one


def opened(chromium, tmp_path, rows):
    body = "".join(
        f"<tr><td>{n}</td><td>{'a sentence of many words ' * 3}{n}</td></tr>" for n in range(rows)
    )
    table = (
        f"<table><thead><tr><th>number</th><th>words</th></tr></thead><tbody>{body}</tbody></table>"
    )
    page = tmp_path / "page.html"
    page.write_text(
        f"<!doctype html><style>{STYLE.read_text()}</style><div class=md-typeset>{table}</div>"
        f"<script>{SCRIPT.read_text()}</script>"
    )
    return chromium.open(page)


def test_a_short_table_has_no_filter(chromium, tmp_path):
    page = opened(chromium, tmp_path, 15)
    assert page.evaluate(SHOWN) == 15
    assert page.evaluate("document.querySelector('.table-filter') === null")


def test_a_filter_looks_at_all_rows_of_which_only_the_first_are_shown(chromium, tmp_path):
    page = opened(chromium, tmp_path, 450)
    assert page.evaluate(SHOWN) == 200
    page.evaluate("document.querySelector('.table-filter').focus()")
    page.type("WORDS 44")
    assert page.evaluate(SHOWN) == 14  # 44, 144, 244, 344, and 440 to 449
    page.evaluate(
        "(() => { const f = document.querySelector('.table-filter'); f.value = '';"
        " f.dispatchEvent(new Event('input')); })()"
    )
    assert page.evaluate(SHOWN) == 200
    page.evaluate("document.querySelector('.table-more').click()")
    assert page.evaluate(SHOWN) == 450
    assert page.evaluate("document.querySelector('.table-more').getClientRects().length") == 0
    assert page.errors == []


def test_only_columns_of_sentences_are_kept_wide(chromium, tmp_path):
    page = opened(chromium, tmp_path, 20)
    classes = "[...document.querySelectorAll('th')].map((cell) => cell.className)"
    assert page.evaluate(classes) == ["", "text"]

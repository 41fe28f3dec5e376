"""The evidence: tables that are built from records, and the page that lists them."""

from pathlib import Path

import pytest

from docs import evidence_index, evidence_tables, readme_results, site

ROOT = Path(__file__).parents[2]
MOST_LINES = 40


@pytest.fixture(scope="module")
def built():
    return evidence_tables.pages()


def test_each_table_is_built_and_not_in_the_repository(built):
    assert {path for path in built if (ROOT / path).exists()} == set()
    assert {path for path, text in built.items() if not text.lstrip().startswith("# ")} == set()


def test_each_link_of_a_table_leads_to_a_file(built):
    pages = {Path(path): text for path, text in built.items()}
    links = {page: set(site.linked(page, site.with_tables(page, pages[page]))) for page in pages}
    assert all((ROOT / file).is_file() for files in links.values() for file in files)


def test_each_record_exists_and_the_page_of_the_evidence_links_it():
    page = (ROOT / "docs/evidence/index.md").read_text(encoding="utf-8")
    shown = site.with_tables(Path("docs/evidence/index.md"), page)
    for path, table in evidence_tables.TABLES.items():
        assert (ROOT / table.record).exists()
        if path.startswith(evidence_tables.FOLDER):
            assert f"]({path.removeprefix(evidence_tables.FOLDER + '/')})" in shown


def test_the_page_of_the_evidence_is_one_screen():
    page = (ROOT / "docs/evidence/index.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= MOST_LINES
    assert all(row.measured and row.repeat for row in evidence_index.rows())


def test_a_link_to_a_record_becomes_one_to_its_table():
    page = Path("docs/zoo/verify.md")
    text = "[a](../clauses.toml#fn-07) [b](verify.md) [c](https://x.org/clauses.toml)"
    assert site.with_tables(page, text) == (
        "[a](../evidence/clauses.md#fn-07) [b](verify.md) [c](https://x.org/clauses.toml)"
    )


def test_a_link_to_a_missing_file_is_refused():
    with pytest.raises(FileNotFoundError, match=r"links missing\.md"):
        list(site.linked(Path("docs/index.md"), "[a](missing.md)"))


def test_the_page_of_a_case_shows_its_source_beside_what_it_found(built):
    page = built["docs/evidence/cases/asset_missing.md"]
    source = (ROOT / "compat_matrix/cases/asset_missing.py").read_text(encoding="utf-8")
    assert source.strip() in page
    assert "## Turned red by" in page and "RES-06" in page


def test_the_results_of_the_readme_are_those_of_the_records():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert not readme_results.is_stale()
    assert evidence_index.zoo_sentence() in readme
    assert readme_results.speed_sentence() in readme

"""Pages name files and folders of the project that exist."""

import re
from pathlib import Path

import pytest

from docs import site

ROOT = Path(__file__).parents[2]
# The recipes of CONTRIBUTING.md name files that they make; test_contributing.py follows them.
PAGES = [ROOT / page for page in site.pages() if page.name != "CONTRIBUTING.md"]
FOLDERS = "reference_impl|compat_matrix|fixtures_v1|property_tests|tests|benchmarks|docs"
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./-]*)`")
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
LINKED = re.compile(r"\]\(([^)#:]+?)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    named = [ROOT / name for name in NAMED.findall(text)]
    linked = [page.parent / target for target in LINKED.findall(CODE.sub("", text))]
    missing = sorted({str(path) for path in [*named, *linked] if not path.exists()})
    assert not missing

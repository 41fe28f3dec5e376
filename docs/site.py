"""Builds the documentation site into ``build/site``; any warning, a broken link included, is an
error.

    python -m docs.site [--serve]

The pages link each other, and files of the project, by relative paths, as a reader of the
repository follows them. So the site is built from a copy of the pages, and of the files they link,
in folders as in the repository.

The tables of the evidence are not in the repository: they are built here from their records
(`docs.evidence_tables`). A link to a record leads to its table on the site.
"""

from __future__ import annotations

import argparse
import functools
import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from docs import evidence_tables

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
ASSETS = ("docs/assets/filter.js", "docs/assets/wide.css")
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
_LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)]*)?\))")
_LINKED = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def pages() -> list[Path]:
    """Return the pages of the project, relative to its root."""
    found = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "reference_impl/README.md",
        ROOT / "fixtures_v1/README.md",
        ROOT / "fixtures_v2/README.md",
    ]
    return sorted(page.relative_to(ROOT) for page in found)


def linked(page: Path, text: str) -> Iterator[Path]:
    """Yield the files that the text of a page links, relative to the root.

    Raises FileNotFoundError for one that is missing.
    """
    for target in _LINKED.findall(_CODE.sub("", text)):
        path = (ROOT / page.parent / target).resolve()
        if path.is_file():
            yield path.relative_to(ROOT)
        elif not path.exists() and path.relative_to(ROOT).as_posix() not in _built():
            raise FileNotFoundError(f"{page} links {target}, which does not exist")


def with_tables(page: Path, text: str) -> str:
    """Return the text of a page with each link to a record changed into one to its table.

    `[clauses](../clauses.toml)` becomes `[clauses](clauses.md)` in `docs/evidence/index.md`.
    """

    def one(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(page.parent.as_posix(), match[2]))
        built = evidence_tables.page_of_record(target)
        if built == target or page.as_posix() == built:
            return match[0]
        return f"{match[1]}{posixpath.relpath(built, page.parent.as_posix())}{match[3]}"

    return _LINK.sub(one, text)


@functools.cache
def _built() -> dict[str, str]:
    return evidence_tables.pages()


def lay_out(folder: Path) -> None:
    """Write the pages, those built from records too, and what they link into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in pages()}
    texts |= {Path(page): text for page, text in _built().items()}
    texts = {page: with_tables(page, text) for page, text in texts.items()}
    files: set[Path] = set()
    for page, text in texts.items():
        files.update(linked(page, text))
    for path in {*map(Path, ASSETS), *files} - texts.keys():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)
    for page, text in texts.items():
        target = folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--serve", action="store_true", help="serve the site on this machine instead of writing it"
    )
    serve = parser.parse_args().serve
    lay_out(PAGES)
    command = (
        [sys.executable, "-m", "mkdocs", "serve"]
        if serve
        else [sys.executable, "-m", "mkdocs", "build", "--quiet"]
    )
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    ).returncode


if __name__ == "__main__":
    sys.exit(main())

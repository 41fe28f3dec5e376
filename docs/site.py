"""Builds the documentation site into ``build/site``; any warning, a broken link included, is an
error.

    python -m docs.site [--serve]

The pages link each other, and files of the project, by relative paths, as a reader of the
repository follows them. So the site is built from a copy of the pages, and of the files they link,
in folders as in the repository.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
ASSETS = ("docs/assets/filter.js", "docs/assets/wide.css")
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
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


def linked(page: Path) -> Iterator[Path]:
    """Yield the files that a page links, relative to the root.

    Raises FileNotFoundError for one that is missing.
    """
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in _LINKED.findall(_CODE.sub("", text)):
        path = (ROOT / page.parent / target).resolve(strict=True)
        if path.is_file():
            yield path.relative_to(ROOT)


def lay_out(folder: Path) -> None:
    """Copy the pages and what they link into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in {
        *pages(),
        *map(Path, ASSETS),
        *(file for page in pages() for file in linked(page)),
    }:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)


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

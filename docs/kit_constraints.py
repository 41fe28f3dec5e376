"""Makes ``savedmodel_kit/constraints.json`` from the pages of the specification.

The kit is built and checked where docs/ is not installed.
"""

from __future__ import annotations

import json
import re
from typing import Any, Optional

from docs import spec_pages
from savedmodel_kit.constraints import FILE

# The pages of each level, as docs/format/spec/00_conformance.md lists them. Page 0 is for all
# levels, and page 12 tells of fields that come and go in the messages of level L2.
_LEVEL_OF_PAGE = {
    **dict.fromkeys(("01", "05", "10", "11"), "L0"),
    **dict.fromkeys(("02", "03"), "L1"),
    **dict.fromkeys(("04", "06", "07", "08", "12"), "L2"),
    "09": "L3",
}
_ROLE = re.compile(r"\b[Aa]n? (reader|writer|verifier|evaluator)\b")


def made() -> str:
    """Return the content of the file."""
    texts = {page.name: page.read_text("utf-8") for page in spec_pages.pages()}
    shown = spec_pages.artifacts_of(texts)
    rows: list[dict[str, Any]] = []
    for name, text in texts.items():
        rows += [_row(item, shown) for item in spec_pages.constraints(name, text)]
    return json.dumps(rows, indent=1) + "\n"


def _row(item: spec_pages.Constraint, shown: dict[tuple[str, str], set[str]]) -> dict[str, Any]:
    found = _ROLE.search(item.text)
    role = found[1] if found else ""
    named = [name for (kind, name), ids in shown.items() if kind == "fixture" and item.id in ids]
    return {
        "id": item.id,
        "role": role,
        "level": _level(item.page, role),
        "text": item.text,
        "page": item.page,
        "fixtures": sorted(named),
    }


def _level(page: str, role: str) -> Optional[str]:
    """Return the level that keeps a constraint: an evaluator's is that of the answers."""
    return "L3" if role == "evaluator" else _LEVEL_OF_PAGE.get(page[:2])


def is_stale() -> bool:
    """Return whether the file is not what would be written."""
    return not FILE.exists() or FILE.read_text("utf-8") != made()


def write() -> None:
    FILE.write_text(made(), "utf-8")

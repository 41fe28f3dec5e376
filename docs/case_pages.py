"""The pages of the cases: one table of all, and a page for each with its source beside what it
found. Built with the site.
"""

from __future__ import annotations

import datetime
import fnmatch
from pathlib import Path

from compat_matrix.cases import CaseInfo, Tolerance, all_cases
from docs.markdown import table
from property_tests.faults import record
from property_tests.faults.cases import CASES, what_is_lost
from savedmodel_common import toml

ROOT = Path(__file__).parents[1]
FOLDER = "docs/evidence/cases"
EXPECTATIONS = ROOT / "compat_matrix/verdict/expectations.toml"

Entry = dict[str, "str | list[str] | datetime.date"]


def index() -> str:
    """Return the table of all cases: name, what it is about, clauses, tolerance."""
    cases = all_cases()
    rows = [
        (
            f"[`{case.name}`](cases/{case.name}.md)",
            case.title,
            ", ".join(case.clauses),
            _tolerance(case.tolerance),
        )
        for case in cases
    ]
    return (
        f"# The {len(cases)} cases of TF 2\n\nThe page of a case shows its source, the fault that"
        " turns it red, and its known failures.\n\n"
        + table(("case", "what it is about", "clauses", "answers"), rows)
    )


def pages() -> dict[str, str]:
    """Return the page of each case."""
    entries = toml.read(EXPECTATIONS).get("expect", [])
    seen = record.read()
    return {
        f"{FOLDER}/{case.name}.md": "".join(
            [
                _head(case),
                _source(case),
                _faults(case.name, seen),
                _failures(case.name, entries),
            ]
        )
        for case in all_cases()
    }


def _tolerance(tolerance: Tolerance) -> str:
    rtol, atol, reason = tolerance
    return "bit-exact" if rtol == atol == 0 else f"rtol {rtol:g}, atol {atol:g}: {reason}"


def _head(case: CaseInfo) -> str:
    lines = [f"# {case.name}\n", f"{case.title}\n"]
    if case.description:
        lines.append(f"{case.description}\n")
    lines += [
        f"- Clauses: {', '.join(case.clauses) or 'none'}",
        f"- Answers: {_tolerance(case.tolerance)}",
        f"- Run it: `savedmodel-compat matrix run --case {case.name} --out out`",
    ]
    return "\n".join(lines) + "\n"


def _source(case: CaseInfo) -> str:
    return f"\n## Source\n\n```python\n{case.file.read_text(encoding='utf-8').rstrip()}\n```\n"


def _faults(case: str, seen: dict[str, record.Entry]) -> str:
    """Return what happened when faults were planted for the case (`docs/data/faults.json`)."""
    rows = []
    for name in CASES.get(case, ()):
        found = seen.get(f"{case}/{name}", {})
        what = f"`{name}`: {what_is_lost(name)}"
        rows.append((what, found.get("result", "nothing"), found.get("line", "")))
    if not rows:
        return ""
    return "\n## Turned red by\n\n" + table(("planted fault", "found by", "message"), rows)


def _failures(name: str, entries: list[Entry]) -> str:
    """Return the known failures whose pattern names the case; those of all cases are left out."""
    rows = []
    for entry in entries:
        if _names(entry, name):
            cells = [_words(entry.get(key, "*")) for key in ("producer", "consumer", "check")]
            reason = " ".join(str(entry["reason"]).split())
            rows.append((" / ".join(cells), _words(entry["outcome"]), str(entry["kind"]), reason))
    if not rows:
        return "\n## Known failures\n\nNone: every consumer that is asked answers as recorded.\n"
    return "\n## Known failures\n\n" + table(("cells", "outcome", "kind", "why"), rows)


def _names(entry: Entry, name: str) -> bool:
    patterns = entry.get("case", "*")
    found = patterns if isinstance(patterns, list) else [str(patterns)]
    return any(pattern != "*" and fnmatch.fnmatch(name, pattern) for pattern in found)


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

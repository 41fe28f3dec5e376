"""The page of the planted faults, made of `data/planted.json`, which `python -m
property_tests.planted --write` writes.
"""

from __future__ import annotations

import json
from pathlib import Path

from compat_matrix.cases import all_cases, title_and_rest
from docs.markdown import table
from property_tests.planted.faults import FAULTS
from property_tests.planted.running import claimed

RECORD = Path(__file__).parent / "data" / "planted.json"
WORDS = {
    "accepts": "A loader or a saver accepts what it must refuse.",
    "stale_values": "A saver stores the values of its first save again.",
    "swallowed_errors": "A call that fails answers with nothing instead of the error.",
    "other_threads": "Answers are wrong in threads other than the first.",
    "third_call": "The third call of a signature or function answers wrongly.",
}

HEAD = """# What turns each case red

A case of the matrix claims to test something. For each case this page names a fault that was planted in the reference
implementation, and the check that finds it: a loader or a saver that loses what the case is about.

The faults are edits of the SavedModel. A faulty loader reads the edited model; a faulty saver (`saver:`) has written it. They are
defined in `property_tests/planted/faults/`. `python -m property_tests.planted --write` plants all of them in about five minutes
and writes the record of this page; `--case NAME` does so for one case. `tests/checks/test_planted.py` plants a few of them. It
fails when a case has no fault, and when the docstring of a case has changed since its fault was planted.

"""  # noqa: E501


def told() -> dict[str, str]:
    """Return the sentence about each fault, from the docstrings."""
    return {
        **WORDS,
        **{name: title_and_rest(function.__doc__ or "")[0] for name, function in FAULTS.items()},
    }


def page() -> str:
    """One row for each case and fault."""
    record, words = json.loads(RECORD.read_text(encoding="utf-8")), told()
    rows = []
    for case in all_cases():
        for fault, seen in record.get(case.name, {"none": {}}).items():
            rows.append(
                (
                    f"[`{case.name}`](../../compat_matrix/cases/{case.name}.py)",
                    case.title,
                    f"`{fault}`: {words.get(fault.rpartition(':')[2], '')}",
                    f"{seen.get('check') or 'nothing'}: {seen.get('outcome', '')}",
                )
            )
    return HEAD + table(("case", "what it is about", "what is planted", "found by"), rows)


def faults() -> list[str]:
    """Cases without a fault, with one that nothing finds, or whose claim has changed since it was
    planted.
    """
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    out = [
        f"{name}: there is no such case"
        for name in sorted(set(record) - {case.name for case in all_cases()})
    ]
    for case in all_cases():
        seen = record.get(case.name)
        if not seen:
            out.append(
                f"{case.name}: no fault is planted; add one to property_tests/planted/cases.py"
            )
            continue
        out += [
            f"{case.name}: no check finds the fault {fault}"
            for fault, result in seen.items()
            if not result["check"]
        ]
        if any(result["claim"] != claimed(case.name) for result in seen.values()):
            out.append(
                f"{case.name}: what it claims has changed: python -m property_tests.planted --case"
                f" {case.name} --write"
            )
    return out

"""The record of what found each planted fault, docs/data/faults.json."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from property_tests.faults.catalogue import CATALOGUE
from property_tests.faults.declaring import Fault, Seen

RECORD = Path(__file__).parents[2] / "docs" / "data" / "faults.json"
AGAIN = "python -m property_tests.faults --write --resume"
Entry = dict[str, str]  # declared, result, line


def read() -> dict[str, Entry]:
    """Return name -> entry of the faults on record."""
    return dict(json.loads(RECORD.read_text(encoding="utf-8"))) if RECORD.exists() else {}


def write(record: dict[str, Entry]) -> None:
    """Write the entries of faults that there are."""
    names = {fault.name for fault in CATALOGUE}
    kept = {name: entry for name, entry in record.items() if name in names}
    text = json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    temporary = RECORD.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(RECORD)


def entry(fault: Fault, seen: Seen) -> Entry:
    return {"declared": digest(fault), "result": seen.result, "line": seen.line}


def digest(fault: Fault) -> str:
    """What a declaration says, with the name of what is planted: a record of it depends on that."""
    planted = [
        cell.cell_contents
        for cell in fault.plant.__closure__ or ()
        if isinstance(cell.cell_contents, str)
    ]
    said = (fault.name, *fault.found_by.declaration(), fault.plant.__qualname__, planted)
    return hashlib.sha256(repr(said).encode()).hexdigest()[:12]


def is_current(fault: Fault, record: dict[str, Entry]) -> bool:
    """Whether the record has the fault as it is declared now."""
    return record.get(fault.name, {}).get("declared") == digest(fault)


def gaps() -> list[str]:
    """Return a line for each fault that nothing found, that was not planted, or is declared
    otherwise than it was planted.
    """
    record = read()
    found = [
        f"{fault.name}: not found, or not as it is declared now: {AGAIN}"
        for fault in CATALOGUE
        if not is_current(fault, record)
    ]
    strangers = sorted(set(record) - {fault.name for fault in CATALOGUE})
    return found + [f"{name}: there is no such fault: {AGAIN}" for name in strangers]

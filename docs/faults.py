"""The page of the faults of every kind, made of their declarations and of `data/faults.json`.

`python -m property_tests.planted.kinds --write` runs them and writes the record.
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

from docs.markdown import table
from property_tests.planted.kinds.running import digest
from property_tests.planted.kinds.table import TABLE

RECORD = Path(__file__).parent / "data" / "faults.json"
_WIDE = 160  # characters of what a command says

HEAD = """# Which command finds which fault

Each row is a fault that was planted in a model, an implementation, a consumer, a record, the folder of a run or a server, and the
command that found it: its exit code, and the line of its output that names the fault. Without the fault the same command ends
with 0 (with 1 for a run that failed before) and does not say the line.

`python -m property_tests.planted.kinds --write` plants all {count} and writes the record of this page (twelve minutes on
2026-11-22, on two cores that others used too). With `--resume` it goes on where it was interrupted, and plants only what is new
or declared otherwise. The declarations are in `property_tests/planted/kinds/`. {gate} of them (**bold**) are planted for every
commit, the others every night (`tox -e nightly`, which the workflow `nightly` runs).
[What turns each case red](../data/planted.json) has the faults planted for single cases.
"""  # noqa: E501


def page() -> str:
    """A table for each place where faults are planted."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    out = [HEAD.format(count=len(TABLE), gate=sum(fault.gate for fault in TABLE))]
    for place, rows in groupby(TABLE, lambda fault: fault.place):
        lines = []
        for fault in rows:
            seen = record.get(fault.name, {})
            name = f"**{fault.name}**" if fault.gate else fault.name
            command = fault.command.format(fault.scene.name)
            said = seen.get("line", "not found")
            lines.append(
                (
                    name,
                    fault.what,
                    f"`{command}`",
                    str(seen.get("code", "")),
                    said[:_WIDE] + "…" * (len(said) > _WIDE),
                )
            )
        out.append(
            f"\n## In {place}\n\n"
            + table(("fault", "what is wrong", "command", "exit", "it says"), lines)
        )
    return "".join(out)


def faults() -> list[str]:
    """Faults that no command finds, that were not planted, or are declared otherwise than they were
    planted.
    """
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    again = "python -m property_tests.planted.kinds --write --resume"
    out = [
        f"{fault.name}: not found, or not as it is declared now: {again}"
        for fault in TABLE
        if _declared(record, fault.name) != digest(fault)
    ]
    return out + [
        f"{name}: there is no such fault: {again}"
        for name in sorted(set(record) - {fault.name for fault in TABLE})
    ]


def _declared(record: dict[str, dict[str, str]], name: str) -> str:
    return record.get(name, {}).get("declared", "")

"""What a migration tells: report.json, a CSV with a line for each model, one HTML page. Pure functions of the records."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from compat_matrix.zoo.migrate.records import SCHEMA, Record, Status

COLUMNS = (
    "name", "status", "kind", "tensorflow", "bytes_before", "bytes_after", "seconds", "outputs", "signatures", "asked", "reason",
    "fix",
)  # fmt: skip


def totals(records: Sequence[Record]) -> dict[str, int]:
    """How many of each status, all of them named."""
    found = Counter(record.status for record in records)
    return {status.value: found[status] for status in Status}


def as_json(records: Sequence[Record]) -> str:
    """The whole."""
    whole = {"schema": SCHEMA, "totals": totals(records), "models": [record.to_json() for record in records]}
    return json.dumps(whole, indent=1) + "\n"


def as_csv(records: Sequence[Record]) -> str:
    """A line for each model. A cell that a spreadsheet would compute begins with an apostrophe."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in records:
        row = row_of(record)
        writer.writerow([_plain(row[column]) for column in COLUMNS])
    return stream.getvalue()


def row_of(record: Record) -> dict[str, Any]:
    """The columns of one model."""
    signatures = sum(len(part.signatures) for part in record.parts)
    return {
        "name": record.name, "status": record.status.value, "kind": record.kind, "tensorflow": record.tensorflow,
        "bytes_before": record.bytes_before, "bytes_after": record.bytes_after, "seconds": record.seconds,
        "outputs": " ".join(part.output for part in record.parts if record.status.good), "signatures": signatures,
        "asked": sum(len(part.asked) for part in record.parts), "reason": record.reason, "fix": record.fix,
    }  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in tuple("=+-@\t\r"):
        return f"'{value}"
    return value


def reasons(records: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """The models that are not in the output, grouped by what is said of them, the largest group first."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        if not record.status.good:
            groups.setdefault(record.fix or (record.reason.splitlines() or ["?"])[0][:200], []).append(record)
    return sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))


def as_html(records: Sequence[Record]) -> str:
    """One page that needs no other file."""
    from compat_matrix.report import html

    facts = {"records": records, "totals": totals(records), "reasons": reasons(records)}
    sizes = {"before": sum(record.bytes_before for record in records), "after": sum(record.bytes_after for record in records)}
    return html.environment().get_template("migration.html.j2").render(**facts, sizes=sizes)

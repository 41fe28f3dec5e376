"""The report of a migration: report.json, a CSV with a line for each model, HTML.

Pure functions of the records.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from compat_matrix.cells.results import one_line
from compat_matrix.runtimes.runtime import local_runtime
from savedmodel_common.writing import write_set
from savedmodel_migration.migrate.records import (
    SCHEMA,
    Record,
    Status,
    badness,
)

COLUMNS = (
    "name",
    "status",
    "kind",
    "tensorflow",
    "bytes_before",
    "bytes_after",
    "seconds",
    "outputs",
    "signatures",
    "asked",
    "answered_by",
    "reason",
    "fix",
    "command",
)


REPORTS, PAGES = ("report.json", "report.csv", "report.html"), "pages"
ON_ONE_PAGE = 200  # models; of more each has a page of its own, and the first one a line for it


def totals(records: Sequence[Record]) -> dict[str, int]:
    """How many of each status, all of them named."""
    found = Counter(record.status for record in records)
    return {status.value: found[status] for status in Status}


def as_json(records: Sequence[Record]) -> str:
    """The whole."""
    whole = {
        "schema": SCHEMA,
        "totals": totals(records),
        "models": [record.to_json() for record in records],
    }
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
        "name": record.name,
        "status": record.status.value,
        "kind": record.kind,
        "tensorflow": record.tensorflow,
        "bytes_before": record.bytes_before,
        "bytes_after": record.bytes_after,
        "seconds": record.seconds,
        "outputs": " ".join(part.output for part in record.parts if record.status.good),
        "signatures": signatures,
        "asked": sum(len(part.asked) for part in record.parts),
        "answered_by": " ".join(sorted({part.answered_by for part in record.parts} - {""})),
        "reason": record.reason,
        "fix": record.fix,
        "command": record.command,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in tuple("=+-@\t\r"):
        return f"'{value}"
    return value


def reasons(records: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """The models that are not in the output or only wrapped, grouped by what is said of them, the
    largest group first.
    """
    groups: dict[str, list[Record]] = {}
    for record in records:
        if reason(record):
            groups.setdefault(reason(record), []).append(record)
    return sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))


def reason(record: Record) -> str:
    """Return the fix, or the reason, for a model that is not in the output, or wrapped in part or
    whole; "" for the others.
    """
    good = record.status.good and record.status not in (Status.PARTIAL, Status.WRAPPED)
    return "" if good else record.fix or one_line((record.reason.splitlines() or ["?"])[0], 200)


def told(record: Record) -> str:
    """Return why a model is not in the output, or only in part, and what would help; "" for the
    others.
    """
    fix = reason(record)
    why = one_line((record.reason.splitlines() or [""])[0], 200)
    said = f"{why}; {fix}" if fix and why and not fix.startswith(why) else fix
    return f"{said}; run: {record.command}" if record.command else said


def problem(record: Record) -> str:
    """Why a model is not in the output, "" when it is."""
    return (
        ""
        if record.status.good
        else f"{record.status.value}: {record.name}: {(record.reason.splitlines() or [''])[0]}"
    )


def as_html(
    records: Sequence[Record],
    pages: Mapping[str, str] = MappingProxyType({}),
    tensorflow: str = "",
    made: str = "",
) -> str:
    """One page that needs no other file, or where there are ``pages`` (relative -> file) a line for
    each model.

    The models that need action come first, the worst status first. ``tensorflow``: what ran;
    ``made``: date and time.
    """
    from compat_matrix.report import html

    records = sorted(records, key=lambda record: (record.status.good, -badness(record.status)))
    links = {
        record.relative: pages.get(record.relative, f"#m{number}")
        for number, record in enumerate(records)
    }
    facts = {
        "records": records,
        "totals": totals(records),
        "reasons": reasons(records),
        "links": links,
        "paged": bool(pages),
    }
    sizes = {
        "before": sum(record.bytes_before for record in records),
        "after": sum(record.bytes_after for record in records),
    }
    to_keras = any(record.to_keras for record in records)
    what = f"migration of {len(records)} model{'s' if len(records) != 1 else ''}"
    title = html.title(what, [tensorflow] if tensorflow else [], made)
    return str(
        _template("migration.html.j2").render(**facts, sizes=sizes, to_keras=to_keras, title=title)
    )


def write(records: Sequence[Record], out: Path) -> None:
    """Write the whole report of one run to ``out``. Raises OSError; the old report stays then."""
    whole = as_json(records)
    folder = (
        out / PAGES / hashlib.sha256(whole.encode()).hexdigest()[:12]
    )  # another report leads to other pages
    pages = {}
    if len(records) > ON_ONE_PAGE:
        pages = {
            record.relative: f"{PAGES}/{folder.name}/{page_of(record.relative)}"
            for record in records
        }
        _write_pages(records, folder)
    made = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes")
    texts = (
        whole,
        as_csv(records),
        as_html(records, pages, local_runtime().tensorflow_version or "", made),
    )
    write_set(out, dict(zip(REPORTS, texts)))
    for left in (out / PAGES).glob("*"):
        if left != folder or not pages:
            shutil.rmtree(left, ignore_errors=True)


def remove(out: Path) -> None:
    """Remove the report of an earlier run: it says nothing of what this one has changed."""
    for name in REPORTS:
        (out / name).unlink(missing_ok=True)
    shutil.rmtree(out / PAGES, ignore_errors=True)


def _write_pages(records: Sequence[Record], folder: Path) -> None:
    if folder.exists():
        return
    stage = folder.with_name(f".{folder.name}.{os.getpid()}")
    stage.mkdir(parents=True)
    template = _template("migration_model.html.j2")
    for record in records:
        (stage / page_of(record.relative)).write_text(
            template.render(record=record), encoding="utf-8"
        )
    stage.replace(folder)


def page_of(relative: str) -> str:
    """The file name of a model's page: places of models are paths, and may be long."""
    digest = hashlib.sha256(relative.encode()).hexdigest()[:12]
    return f"{relative.rpartition('/')[2][:60]}-{digest}.html"


def _template(name: str) -> Any:
    from compat_matrix.report import html

    return html.environment().get_template(name)

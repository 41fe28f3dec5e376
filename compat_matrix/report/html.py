"""One self-contained HTML page from the files of a run: a pure function, equal results give equal
bytes.

The first screen shows unexpected and blocking cells; then follow the matrix (cases by consumers)
and every cell with its evidence.
"""

from __future__ import annotations

import functools
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from compat_matrix.cells import tries
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.results import DESELECTED, not_sealed
from compat_matrix.report import written_by
from compat_matrix.report.terminal import EXIT_WORDS, NOT_COMPARED, ledger_lines
from compat_matrix.verdict import named
from reference_impl.errors import listed, printable
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.gist import of_graph_error

if TYPE_CHECKING:
    import jinja2

# Shown per matrix field when its cells disagree: the first of these that occurs.
WORST_FIRST = (
    Outcome.SETUP_ERROR,
    Outcome.ENV_ERROR,
    Outcome.CRASH,
    Outcome.TIMEOUT,
    Outcome.UNSTABLE,
    Outcome.DISAGREE,
    Outcome.LOAD_ERROR,
    Outcome.CALL_ERROR,
    Outcome.FAIL_VALUE,
    Outcome.FAIL_SIGNATURE,
    Outcome.FAIL_STRUCTURE,
    Outcome.REJECTED,
    Outcome.NOT_RUN,
    Outcome.PASS,
    Outcome.NOT_APPLICABLE,
)
NOT_APPLICABLE = Outcome.NOT_APPLICABLE.value
_SHOWN = (*reversed(WORST_FIRST[:-1]), Outcome.NOT_APPLICABLE)  # counts, the best first
_MANY_VERSIONS = 3  # in a title
_LONG_TEXT = 4000  # characters of one evidence text; the full text is in the evidence folder
_GIVEN = "given"  # the producer of a model of the user
_BREAKS = re.compile(r"(?<=[/@])(?=.)|(?<=[_.])(?=[^_./@\d])")  # where a long name may be broken
_MANY_CELLS = 200  # ids under one reason; the others are counted

Record = Mapping[str, Any]


def render(
    plan: Record,
    results: Iterable[Record],
    summary: Record,
    expectations: Mapping[int, Record] | None = None,
    log_tails: Mapping[str, Mapping[str, str]] | None = None,
    about: Record | None = None,
) -> str:
    """Return the page for a run.

    Args:
      plan: content of ``plan.json``.
      results: records of ``results.jsonl``; planned cells without one are shown as NOT_RUN.
      summary: content of ``summary.json``.
      expectations: index of a ledger entry, as results name it -> its ``kind``, ``reason`` and
        ``issue``.
      log_tails: cell -> name of an evidence text -> its last lines.
      about: of a check (`ABOUT_FILE`): ``names``, case -> the user's name for the model, and
        ``causes`` of unexpected cells, each with ``outcome``, ``models``, ``title``, ``lines``,
        ``evidence``, ``replay`` and ``cells``.
    """
    about = about or {"names": {}, "causes": []}
    by_cell = {result["cell"]: result for result in results}
    not_run = {entry["cell"]: entry["reason"] for entry in summary["not_run"]}
    names = about["names"]
    shown = _of_selected_artifacts(plan["cells"], by_cell, summary)
    cells = [_cell(cell, by_cell.get(cell["id"]), not_run, expectations or {}) for cell in shown]
    for cell in cells:
        cell["tails"] = sorted((log_tails or {}).get(cell["id"], {}).items())
    unexpected = [cell for cell in cells if not cell["expected"]]
    disagreements = [_disagreement(item) for item in summary["disagreements"]]
    found = written_by.writers(cells)
    jumps = [
        ("unexpected", "Unexpected"),
        *([("writers", "Written by")] if found else []),
        ("matrix", "By artifact"),
        ("cells", "Cells and evidence"),
        ("versions", "Versions"),
    ]
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            **overview(summary, jumps, names),
            heading=_heading(sorted(set(names.values()))),
            title=title_of_run("check" if names else "matrix", summary),
            names=names,
            causes=[
                {**cause, "cells": _by_model(cause["cells"], names)} for cause in about["causes"]
            ],
            consumers=sorted({cell["consumer_label"] for cell in cells if cell["consumer"] != "-"}),
            rows=_rows(cells),
            unexpected=by_cause(unexpected),
            odd=len(unexpected) + sum(not item["expected"] for item in disagreements),
            known_count=sum(cell["known"] for cell in cells),
            disagreements=disagreements,
            writers=found,
            versions=sorted(
                {(cell["consumer_label"], cell["versions"]) for cell in cells if cell["versions"]}
            ),
        )
    )


def _of_selected_artifacts(
    cells: Sequence[Record], results: Mapping[str, Record], summary: Record
) -> list[Record]:
    """Return the cells of artifacts that the selection did not leave out completely: the others
    would hide these.
    """
    left_out = {entry["cell"] for entry in summary["not_run"] if entry["reason"] == DESELECTED}
    selected = {
        _artifact(cell)
        for cell in cells
        if cell["id"] not in left_out
        and results.get(cell["id"], {}).get("outcome") != NOT_APPLICABLE
    }
    return [cell for cell in cells if _artifact(cell) in selected]


def _artifact(cell: Record) -> tuple[str, str, str]:
    return cell["case"], cell["producer"], cell["producer_version"]


def overview(
    summary: Record,
    jumps: Sequence[tuple[str, str]],
    names: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return what the first screen of a run says, from its ``summary.json``.

    Cells that were not selected are only counted.

    ``jumps``: anchors of the page's sections, with their titles; ``names``: case -> the user's name
    for the model.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    uncompared = {
        entry["reason"] for entry in summary["not_run"] if entry["reason"].startswith(NOT_COMPARED)
    }
    for entry in summary["not_run"]:
        whole = f"{NOT_COMPARED}{entry['reason']}"  # the same reason, told of two checks
        groups[whole if whole in uncompared else entry["reason"]].append(entry["cell"])
    left_out = len(groups.pop(DESELECTED, ()))
    counts = {outcome: summary["by_outcome"].get(outcome.value, 0) for outcome in _SHOWN}
    counts[Outcome.NOT_RUN] = max(0, counts[Outcome.NOT_RUN] - left_out)
    ledger = ledger_lines(summary["ledger"])
    problems = [("blocks", "Expectations to repair")] * bool(ledger) + [
        ("not-run", "Not run")
    ] * bool(groups)
    return {
        "summary": summary,
        "selected": summary["planned"] - left_out,
        "left_out": left_out,
        "skipped": sum(map(len, groups.values())),
        "exit_words": EXIT_WORDS[ExitCode(summary["exit_code"])]
        + ("" if summary["ended"] else f": {not_sealed()}"),
        "counts": [(outcome.value, count) for outcome, count in counts.items()],
        "ledger": ledger,
        "waiting": len(summary["ledger"].get("listed_not_run", ())),
        "not_asked": [named.words([one]) for one in summary.get("not_asked", ())],
        "not_run": [_left(why, ids, names) for why, ids in sorted(groups.items())],
        "jumps": [jumps[0], *problems, *jumps[1:]],
    }


def by_cause(cells: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return cells that fail alike together: with the same outcome, class and normalised message
    (``said``), if there is one.
    """
    grouped: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for cell in cells:
        key = (cell["outcome"], cell["error_class"], cell["said"] or cell["id"])
        grouped.setdefault(key, []).append(cell)
    return list(grouped.values())


def _heading(names: Sequence[str]) -> str:
    """Return the heading of a page: what was checked, or the matrix."""
    if not names:
        return "Compatibility matrix"
    return f"Check of {names[0]}" if len(names) == 1 else f"Check of {len(names)} models"


def _by_model(
    cells: Iterable[str], names: Mapping[str, str]
) -> list[tuple[str, list[tuple[str, list[dict[str, str]]]]]]:
    """Return name of a model -> consumer -> its checks, with their places on the page, for the ids
    of some cells.
    """
    grouped: dict[str, dict[str, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        case, _, consumer, check = cell.split("/")
        grouped[names.get(case, case)][consumer].append(
            {"check": check, "anchor": _anchor("cell", cell)}
        )
    return [(name, list(consumers.items())) for name, consumers in grouped.items()]


@functools.cache
def environment() -> jinja2.Environment:
    """Return the templates of this folder.

    All text is escaped, and an undefined name is an error.
    """
    import jinja2

    out = jinja2.Environment(
        loader=jinja2.PackageLoader("compat_matrix.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    out.filters["plain"] = plain
    out.filters["evidence"] = evidence_text
    out.filters["path"] = _breakable
    return out


def title(what: str, versions: Iterable[str], started: str) -> str:
    """Return the title of a report: what ran, on which TensorFlows, and when (``started``: date and
    time, "" if unknown).
    """
    told = sorted(set(versions), key=written_by.release_order)
    span = ", ".join(told) if len(told) <= _MANY_VERSIONS else f"{told[0]} to {told[-1]}"
    return ", ".join(
        filter(None, [what, f"TensorFlow {span}" if told else "", started[:16].replace("T", " ")])
    )


def title_of_run(what: str, summary: Record) -> str:
    """Return the title of a run from its ``summary.json``."""
    seen: set[str] = set()
    for parts in summary.get("versions", {}).values():
        seen.update(parts.get("tensorflow", ()))
    return title(what, seen, summary.get("run", {}).get("started", ""))


def _disagreement(item: Record) -> dict[str, Any]:
    """Return two cells that must agree and do not, with their places on the page."""
    sides = []
    for name, side in item["sides"].items():
        said = " ".join(filter(None, (side["outcome"], side["error_class"])))
        sides.append({"consumer": name, "anchor": _anchor("cell", side["cell"]), "said": said})
    return {**item, "sides": sides}


def _cell(
    cell: Record,
    result: Record | None,
    not_run: Mapping[str, str],
    expectations: Mapping[int, Record],
) -> dict[str, Any]:
    if result is None:
        result = {
            "outcome": Outcome.NOT_RUN.value,
            "message": not_run.get(cell["id"], "planned, no result"),
        }
    outcome = result["outcome"]
    expected = result.get("expected") is not False  # None: nothing to judge
    return {
        **{
            key: cell[key]
            for key in ("id", "case", "producer", "producer_version", "consumer", "check")
        },
        "anchor": _anchor("cell", cell["id"]),
        "consumer_label": f"{cell['consumer']} {cell['consumer_version']}".strip(),
        "outcome": outcome,
        "expected": expected,
        "known": expected and Outcome(outcome).gate_failure,
        "error_class": result.get("error_class") or "",
        "message": result.get("message") or "",
        "gist": of_graph_error(result.get("message") or "") or result.get("message") or "",
        "said": result.get("message_normalised") or "",
        "skew": ((result.get("details") or {}).get("skew") or {}).get("text", ""),
        "expectation": expectations.get(result.get("expectation", -1), {}),
        **shown_details(result.get("details") or {}),
        "evidence": sorted((result.get("evidence") or {}).items()),
        "seconds": sum((result.get("timings") or {}).values()),
        "replay": result.get("replay") or "",
        "versions": "; ".join(
            f"{name} {version}" for name, version in sorted((result.get("versions") or {}).items())
        ),
    }


def shown_details(details: Record) -> dict[str, Any]:
    """Return what a page shows of the details of a result: ``details`` by name, the ``note`` about
    the second try, and the ``tries`` that are kept, with title, message and details of each."""
    found = tries.facts_of(details)
    titles = {tries.FIRST: "first try", tries.SECOND: "second try, in a fresh process"}
    kept = [_try(title, found[which]) for which, title in titles.items() if which in found]
    return {"details": _listed_details(details), "note": found.get(tries.NOTE, ""), "tries": kept}


def _try(title: str, one: Record) -> tuple[str, str, list[tuple[str, Any]]]:
    """Return the title, the message and the details of one try."""
    said = " ".join(filter(None, (one["outcome"], one["error_class"])))
    return f"{title}: {said}", one["message"], _listed_details(one.get("details", {}))


def _listed_details(details: Record) -> list[tuple[str, Any]]:
    """Return details by name, without empty ones and those about the second try."""
    return [
        (key, value)
        for key, value in sorted(details.items())
        if key != tries.KEY and value not in (None, "", [], {})
    ]


def _left(why: str, cells: Sequence[str], names: Mapping[str, str]) -> dict[str, Any]:
    """Return why some cells were not run, the user's names of their models, their ids, and the
    number of further ids.
    """
    models = dict.fromkeys(names[cell.partition("/")[0]] for cell in cells if names)
    return {
        "why": why,
        "models": listed(models, 3),
        "ids": cells[:_MANY_CELLS],
        "more": max(0, len(cells) - _MANY_CELLS),
    }


def _anchor(kind: str, text: str) -> str:
    return f"{kind}-" + "".join(
        c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in text
    )


def _rows(cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per artifact, in plan order, with one field per consumer and the cells of each
    field.
    """
    grouped: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for cell in cells:
        grouped[_artifact(cell)].append(cell)
    rows = []
    for (case, producer, version), members in grouped.items():
        fields: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for cell in members:
            fields[cell["consumer_label"]].append(cell)
        rows.append(
            {
                "case": case,
                "producer": f"{producer} {version}",
                "made": f"written by TensorFlow {version}"
                if producer == _GIVEN
                else f"by {producer} {version}",
                "anchor": _anchor("row", f"{case}-{producer}-{version}"),
                "fields": {label: _field(group) for label, group in fields.items()},
                "cells": members,
                "passed": _passed(members),
                "told": [
                    cell
                    for cell in members
                    if cell["outcome"] not in (Outcome.PASS.value, NOT_APPLICABLE)
                ],
                "not_applicable": [cell for cell in members if cell["outcome"] == NOT_APPLICABLE],
                "state": _state(members),
            }
        )
    return rows


def _state(cells: Sequence[dict[str, Any]]) -> str:
    if any(not cell["expected"] for cell in cells):
        return "unexpected"
    return "known" if any(cell["known"] for cell in cells) else "ok"


def _passed(cells: Sequence[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return consumer -> its passing cells."""
    grouped: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for cell in cells:
        if cell["outcome"] == Outcome.PASS.value:
            grouped[cell["consumer_label"] if cell["consumer"] != "-" else "written"].append(cell)
    return list(grouped.items())


def _field(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the text and colour of one matrix field: never only a colour, never a mean."""
    worst = min(
        cells, key=lambda cell: (cell["expected"], WORST_FIRST.index(Outcome(cell["outcome"])))
    )
    asked = [cell for cell in cells if cell["outcome"] != Outcome.NOT_APPLICABLE.value]
    passed = sum(cell["outcome"] == Outcome.PASS.value for cell in asked)
    if not worst["expected"]:
        state = "unexpected"
    else:
        state = "known" if worst["known"] else worst["outcome"].lower()
    return {
        "outcome": worst["outcome"],
        "state": state,
        "passed": passed,
        "asked": len(asked),
        "checks": [cell["check"] for cell in asked if cell["outcome"] == worst["outcome"]]
        if passed < len(asked)
        else [],
    }


def plain(text: object) -> str:
    """Return untrusted text with invisible characters (terminal escapes, direction overrides) made
    visible.
    """
    return printable(str(text), "\n\t")


def _breakable(text: object) -> Any:
    """Return a path, a name, or the id of a cell, that a narrow screen breaks behind a slash, an
    underscore, an @ or a dot.
    """
    import markupsafe

    return markupsafe.Markup("<wbr>").join(_BREAKS.split(plain(text)))


def evidence_text(value: object) -> str:
    """Return a detail of a result as text: strings as they are, other values as JSON; long text is
    cut with a note.
    """
    text = (
        value
        if isinstance(value, str)
        else json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    )
    if len(text) > _LONG_TEXT:
        text = text[:_LONG_TEXT] + f"\n… {len(text) - _LONG_TEXT} more characters"
    return plain(text)

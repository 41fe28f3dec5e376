"""Other people's exporters and consumers, for the page `evidence/third_party.md`;
`data/third_party.json` keeps what was seen of them.

    python -m docs.third_party [--anew] OUT...

OUT are output folders of `savedmodel-compat matrix run`; of a cell that several have seen the last
one counts. With ``--anew`` the ledgers of this checkout say what was expected, in place of those
that the run had.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import compat_matrix
from compat_matrix.cells import registry
from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import LEDGER_FILE, PRODUCE, is_complete
from compat_matrix.cells.producers import PRODUCERS
from compat_matrix.cells.results import DESELECTED, Result, one_line
from compat_matrix.cells.run_file import RunFile
from compat_matrix.gate.pairs import Run
from compat_matrix.plugins.ledgers import ledger_text
from compat_matrix.report.html import WORST_FIRST
from compat_matrix.verdict import DEFAULT_PATH, Ledger
from compat_matrix.verdict.tally import release_order
from docs.markdown import table, wrapped

SCHEMA = 1
RECORD = Path(__file__).parent / "data" / "third_party.json"
FOLDER = "docs/evidence/third_party"
KNOWN = Path(compat_matrix.__file__).parent / "third_party" / "known.toml"
PASS, UNEXPLAINED = Outcome.PASS.value, "unexplained"
MAX_NAMES = 8  # of exports, where they are cases of ours
HEAD = """# Other people's exporters and consumers

{exports} exports of {exporters} exporters, asked of {consumers} consumers, in real runs on a machine with two cores:
{cells} cells, {passed} of them passed. Each of other people's programs runs in an environment of its own, made from a lock
([`third_party/plugins.toml`](../../third_party/plugins.toml)). A cell that does not pass is a known failure with a
reason ([`third_party/known.toml`](../../third_party/known.toml)): a run fails when one passes, or fails otherwise.

"""  # noqa: E501
COUNTS = """
## Exporter × consumer

Exports that the consumer reads and answers as asked, in every check, **of those it was asked about**. The others are
explained on the page of each consumer. Empty: it was not asked, or can do nothing that these exports
are for.

"""  # noqa: E501
EXPORTS = """
## Export × consumer

*read*: the consumers that pass every check, of those that were asked. *not read by*: the others, by the worst that happened.
"""  # noqa: E501
Record = Mapping[str, Any]
Seen = tuple[str, list[str]]  # of a cell


# What was seen
# --------------------------------------------------------------------------------------------------


def record(folders: Iterable[Path], ledger: Ledger | None = None) -> dict[str, Any]:
    """The record of some runs, of each export and consumer ``{"PASS": "load values", "CALL_ERROR
    3": "reexport"}``, 3 a reason.

    ``ledger``: what was expected, in place of what the runs say.
    Raises PlanError, ResultsError, LedgerError for folders that cannot be used.
    """
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "runs": [],
        "exporters": {},
        "consumers": {},
        "exports": {},
        "reasons": [],
    }
    for out in folders:
        _add(facts, out, ledger or Ledger.read(out / LEDGER_FILE))
    reasons = facts["reasons"]
    for export in facts["exports"].values():
        export["cells"] = {
            consumer: _by_outcome(checks, reasons) for consumer, checks in export["cells"].items()
        }
    for side in ("exporters", "consumers", "exports"):
        facts[side] = dict(
            sorted(
                facts[side].items(),
                key=lambda item: (item[0].partition("@")[0], release_order(item[0])),
            )
        )
    return facts


def _by_outcome(checks: Mapping[str, Seen], reasons: list[list[str]]) -> dict[str, str]:
    """The checks by what was seen in them; a reason that is new gets the next number."""
    out: dict[str, list[str]] = {}
    for check, (outcome, why) in checks.items():
        if why and why not in reasons:
            reasons.append(why)
        out.setdefault(f"{outcome} {reasons.index(why)}" if why else outcome, []).append(check)
    return {seen: " ".join(names) for seen, names in out.items()}


def _add(facts: dict[str, Any], out: Path, ledger: Ledger) -> None:
    run, known = Run.read(out), registry.read(out)
    entries = {entry.index: (entry.kind, entry.reason) for entry in ledger.entries}
    theirs = {one.name for one in [*known.theirs[0], *known.theirs[1]]}
    made = run.productions()
    seen = 0
    for cell in run.plan:
        result = run.results.get(cell.id)
        if not theirs & {cell.producer, cell.consumer} or result is None or not _was_asked(result):
            continue
        seen += 1
        exporter = (
            f"{cell.producer}@{cell.producer_version}"
            if cell.artifact_id in made
            else cell.producer
        )
        consumer = PRODUCE if cell.is_production else f"{cell.consumer}@{cell.consumer_version}"
        key = f"{exporter}/{cell.case}"
        if key not in facts["exports"]:
            title, versions = _provenance(cell.artifact_dir(out))
            title = "" if cell.producer in PRODUCERS else title  # ours have pages that say more
            facts["exports"][key] = {"title": title, "cells": {}}
            _told(facts["exporters"], exporter, known.producers[cell.producer].summary, versions)
        if not cell.is_production:
            _told(
                facts["consumers"],
                consumer,
                known.consumers[cell.consumer].summary,
                result.versions,
            )
        cells = facts["exports"][key]["cells"]
        cells.setdefault(consumer, {})[cell.check] = _seen(ledger.judged(cell, result), entries)
    told = RunFile.read(out)
    facts["runs"].append(
        {
            "cells": seen,
            **{key: getattr(told, key) for key in ("started", "seconds", "revision", "processes")},
        }
    )


def _was_asked(result: Result) -> bool:
    """Whether a cell says something: what does not apply, or was left out on purpose, does not."""
    left_out = result.outcome is Outcome.NOT_RUN and result.message == DESELECTED
    return result.outcome is not Outcome.NOT_APPLICABLE and not left_out


def _provenance(artifact: Path) -> tuple[str, dict[str, str]]:
    """The title of an export, and the versions it was made with; of one that was not made
    nothing.
    """
    if not is_complete(artifact):
        return "", {}
    facts = json.loads((artifact / "provenance.json").read_text(encoding="utf-8"))
    return facts.get("title", ""), facts["producer"]["versions"]


def _told(side: dict[str, Any], name: str, summary: str, versions: Mapping[str, str]) -> None:
    one = side.setdefault(name, {"summary": summary, "versions": {}})
    one["versions"] |= versions


def _seen(result: Result, entries: Mapping[int, tuple[str, str]]) -> Seen:
    """The outcome and, where it is not just PASS, its kind and reason."""
    if result.outcome is Outcome.PASS and result.expected:
        return PASS, []
    message = one_line(f"{result.error_class or ''} {result.message_normalised}".strip(), 200)
    explained = result.expected and result.expectation is not None
    return str(result.outcome), (
        list(entries[result.expectation])
        if explained
        else [
            UNEXPLAINED,
            message,
        ]
    )


# The page
# --------------------------------------------------------------------------------------------------


def page() -> str:
    """Return the page."""
    facts = json.loads(RECORD.read_text(encoding="utf-8"))
    exporters, consumers = (
        _ordered(facts["exporters"], PRODUCERS),
        _ordered(facts["consumers"], CONSUMERS),
    )
    exports = _exports(facts)
    cells: Counter[str] = Counter()
    for export in facts["exports"].values():
        for asked in export["cells"].values():
            cells.update({seen: len(checks.split()) for seen, checks in asked.items()})
    counts = {
        "exports": len(facts["exports"]),
        "exporters": len(exporters),
        "consumers": len(consumers),
    }
    out = [HEAD.format(**counts, cells=sum(cells.values()), passed=cells[PASS])]
    out.append(
        table(
            ("exporter", "what it is", "made with"),
            [_legend(name, facts["exporters"][name], _written(name)) for name in exporters],
        )
    )
    out.append(
        "\n"
        + table(
            ("consumer", "what it is", "reads with"),
            [_legend(n, facts["consumers"][n]) for n in consumers],
        )
    )
    read = [exports[name] for name in exporters]
    out += [
        COUNTS,
        table(
            ("read by", *map(_words, exporters)),
            [_row(name, read) for name in consumers],
        ),
    ]
    out += [EXPORTS, *(_finer(name, exports[name], consumers) for name in exporters)]
    return "".join(out)


def pages_of_consumers() -> dict[str, str]:
    """Return a page for each consumer that cannot read or change some exports, with the reasons,
    and one for the exports that are not made.
    """
    facts = json.loads(RECORD.read_text(encoding="utf-8"))
    names = dict.fromkeys(map(_name, (PRODUCE, *_ordered(facts["consumers"], CONSUMERS))))
    found = {name: _differences(facts, name) for name in names}
    return {f"{FOLDER}/{name}.md": text for name, text in found.items() if text}


def _ordered(side: Record, ours: Mapping[str, Any]) -> list[str]:
    """Those of other people first."""
    return sorted(side, key=lambda one: _name(one) in ours)


def _name(one: str) -> str:
    return one.partition("@")[0]


def _words(one: str) -> str:
    name, _, version = one.partition("@")
    return f"`{name}` {version}".strip()


def _legend(one: str, facts: Record, section: str = "") -> tuple[str, ...]:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(facts["versions"].items()))
    return (
        f"[{_words(one)}]({_slug(section)})" if section else _words(one),
        facts["summary"],
        versions,
    )


def _slug(title: str) -> str:
    """The anchor of a heading."""
    return "#" + re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _written(exporter: str) -> str:
    return f"Written by {_words(exporter)}"


def _read(name: str) -> str:
    return "Not made" if name == PRODUCE else f"Read by `{name}`"


def _exports(facts: Record) -> dict[str, dict[str, tuple[str, Any]]]:
    """Exporter -> name of an export -> its title, and consumer -> what was seen -> checks."""
    out: dict[str, dict[str, tuple[str, Any]]] = {}
    for key, export in facts["exports"].items():
        exporter, _, name = key.rpartition("/")
        out.setdefault(exporter, {})[name] = (export["title"], export["cells"])
    return out


def _passed(seen: Record) -> bool:
    return set(seen) <= {PASS}


def _row(consumer: str, exports: Iterable[Record]) -> tuple[str, ...]:
    fields = []
    whole = True
    for of_exporter in exports:
        asked = [cells[consumer] for _, cells in of_exporter.values() if consumer in cells]
        passed = sum(map(_passed, asked))
        whole = whole and passed == len(asked)
        fields.append(f"{passed}/{len(asked)}" if asked else "")
    words = _words(consumer)
    return words if whole else f"[{words}](third_party/{_name(consumer)}.md)", *fields


def _finer(exporter: str, exports: Record, consumers: Iterable[str]) -> str:
    right = [name for name, (_, cells) in exports.items() if all(map(_passed, cells.values()))]
    out = f"\n### {_written(exporter)}\n\n"
    if right:
        out += wrapped(f"All consumers that were asked read {_some(right, exporter)}.") + "\n\n"
    rows = []
    for name, (title, cells) in exports.items():
        if name not in right:
            asked = {one: cells[one] for one in (PRODUCE, *consumers) if one in cells}
            passed = sum(_passed(seen) for one, seen in asked.items() if one != PRODUCE)
            readers = len(asked) - (PRODUCE in asked)
            rows.append(
                (f"`{name}`: {title}".removesuffix(": "), f"{passed}/{readers}", _failures(asked))
            )
    return out + (table(("export", "read", "not read by"), rows) if rows else "")


def _failures(asked: Mapping[str, Record]) -> str:
    """Return the consumers that fail, by the worst that happened to each."""
    found: dict[str, list[str]] = {}
    for one, seen in asked.items():
        if not _passed(seen):
            worst = min(
                (key.partition(" ")[0] for key in seen),
                key=lambda outcome: WORST_FIRST.index(Outcome(outcome)),
            )
            found.setdefault(worst, []).append(
                "production" if one == PRODUCE else f"`{_name(one)}`"
            )
    return "; ".join(f"{outcome}: {', '.join(names)}" for outcome, names in found.items())


def _differences(facts: Record, name: str) -> str:
    """Return the failures of one consumer by reason; for ``produce``, the exports that are not
    made.
    """
    found: dict[int, tuple[dict[str, Counter[str]], dict[str, list[str]]]] = {}
    for key, export in facts["exports"].items():
        exporter, _, case = key.rpartition("/")
        for consumer, seen in export["cells"].items():
            for what, checks in seen.items() if _name(consumer) == name else ():
                outcome, _, index = what.partition(" ")
                if index:
                    outcomes, exports = found.setdefault(int(index), ({}, {}))
                    outcomes.setdefault(outcome, Counter()).update(checks.split())
                    names = exports.setdefault(exporter, [])
                    names += [] if case in names else [case]
    if not found:
        return ""
    lines = [f"# {_read(name)}\n"]
    for index, (outcomes, exports) in sorted(
        found.items(), key=lambda item: -sum(map(len, item[1][1].values()))
    ):
        kind, reason = facts["reasons"][index]
        what = "; ".join(
            f"{outcome} of {', '.join(checks)}" for outcome, checks in outcomes.items()
        )
        lines.append(wrapped(f"**{kind}**: {reason} ({what})", "- ", "  "))
        lines += [
            wrapped(f"{_words(by)}: {_some(names, by)}", "    - ", "      ")
            for by, names in exports.items()
        ]
    return "\n".join(lines) + "\n"


def _some(names: list[str], exporter: str) -> str:
    """Names of exports; of ours, which have pages of their own, the first ones and how many there
    are.
    """
    shown = (
        names
        if _name(exporter) not in PRODUCERS or len(names) <= MAX_NAMES
        else names[: MAX_NAMES - 1]
    )
    more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    return ", ".join(f"`{name}`" for name in shown) + more


def main(arguments: list[str]) -> int:
    folders = [Path(argument) for argument in arguments if argument != "--anew"]
    if not folders:
        print(__doc__, file=sys.stderr)
        return 64
    ours = (
        Ledger.parse(ledger_text(DEFAULT_PATH, replace(registry.OURS, ledgers=(KNOWN,))))
        if "--anew" in arguments
        else None
    )
    facts = record(folders, ours)
    lines = [
        f" {json.dumps(key)}: {json.dumps(value)}"
        for key, value in facts.items()
        if key != "exports"
    ]
    exports = ",\n".join(
        f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in facts["exports"].items()
    )
    RECORD.write_text(
        "{\n" + ",\n".join([*lines, ' "exports": {\n' + exports + "\n }"]) + "\n}\n",
        encoding="utf-8",
    )
    wrong = [why for kind, why in facts["reasons"] if kind == UNEXPLAINED]
    for why in wrong:
        print(f"{UNEXPLAINED}: {why}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

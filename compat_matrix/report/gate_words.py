"""Texts that all reports of a gate share.

Pure functions; ``verdict`` is the content of ``gate.json``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from compat_matrix.cells.results import not_sealed
from compat_matrix.verdict import named
from reference_impl.errors import listed
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.gist import gist
from savedmodel_common.printable import printable

Record = Mapping[str, Any]

KIND_WORDS = {
    "regressed": "regressed",
    "vanished": "vanished",
    "drifted": "drifted",
    "changed_error": "fails otherwise",
    "fixed": "fixed",
    "newly_covered": "newly covered",
    "harness_error": "harness error",
    "unfinished": "unfinished",
    "unstable": "unstable",
    "still_failing": "fails as before",
    "same": "same",
}
UNCHANGED = ("still_failing", "same")
WITHOUT_RESULT = ("harness_error", "unfinished")
ROLE_WORDS = {
    "reads": "the same model, read by baseline and by candidate",
    "writes": "written by baseline and by candidate, read by baseline",
    "both": "each writes and reads its own",
}
EXIT_WORDS = {
    ExitCode.AS_EXPECTED: "nothing blocks",
    ExitCode.UNEXPECTED: "blocked",
    ExitCode.INCOMPLETE: "incomplete",
    ExitCode.HARNESS_ERROR: "harness or environment error",
}


_NAMED = 8  # of one axis, in the verdict's line; gate.json has all


def dated(text: str, verdict: Record) -> str:
    """Return ``text`` with the start time of the later of the two runs."""
    started = verdict.get("started", "")
    return (
        f"{text}, {printable(started[:16].replace('T', ' '), newlines=False)}" if started else text
    )


def headline(verdict: Record) -> str:
    """Return the verdict in one line."""
    code = ExitCode(verdict["exit_code"])
    totals = total_counts(verdict)
    if code is ExitCode.UNEXPECTED:
        kinds = [f"{count} {KIND_WORDS[kind]}" for kind, count in blocking_counts(verdict).items()]
        return f"BLOCKED: {', '.join(kinds)}, of {verdict['compared']} pairs"
    if code is ExitCode.HARNESS_ERROR:
        return (
            f"HARNESS ERROR in {totals['harness_error']} of {verdict['compared']} pairs: nothing"
            " else can be trusted"
        )
    if code is ExitCode.INCOMPLETE and verdict.get("named_not_asked"):
        return f"INCOMPLETE: named, and not asked: {named.words(verdict['named_not_asked'])}"
    if code is ExitCode.INCOMPLETE and not verdict["ended"]:
        return f"INCOMPLETE: {not_sealed('a run')}"
    if code is ExitCode.INCOMPLETE and not totals["unfinished"]:
        return (
            f"INCOMPLETE: nothing was compared, {verdict['compared']} pairs were observed on one"
            " side alone"
        )
    if code is ExitCode.INCOMPLETE:
        return f"INCOMPLETE: {totals['unfinished']} of {verdict['compared']} pairs have no result"
    changed = verdict["compared"] - sum(totals[kind] for kind in UNCHANGED)
    if changed:
        return (
            f"OK: nothing blocks, {changed} of {verdict['compared']} pairs"
            f" differ{not_asked(verdict)}"
        )
    return f"OK: all {verdict['compared']} pairs alike{not_asked(verdict)}"


def not_asked(verdict: Record) -> str:
    """Return what a green verdict is not about, to follow it in one line; "" if everything was
    asked.
    """
    parts = [
        f"{axis}s {listed(names, _NAMED)}" for axis, names in verdict.get("not_asked", {}).items()
    ]
    return f"; not asked: {'; '.join(parts)}" if parts else ""


def total_counts(verdict: Record) -> dict[str, int]:
    """Return kind -> number of pairs, over all roles."""
    totals = dict.fromkeys(KIND_WORDS, 0)
    for counts in verdict["counts"].values():
        for kind in totals:
            totals[kind] += counts[kind]
    return totals


def by_kind(verdict: Record) -> dict[str, list[Any]]:
    """Return kind -> its pairs, as far as the verdict keeps them: those that changed or still
    fail.
    """
    found: dict[str, list[Any]] = {kind: [] for kind in KIND_WORDS}
    for fact in verdict["facts"]:
        if fact["kind"] in found:
            found[fact["kind"]].append(fact)
    return found


def blocking_counts(verdict: Record) -> dict[str, int]:
    """Return kind -> number of blocking pairs."""
    out: dict[str, int] = {}
    for cause in verdict["causes"]:
        if cause["blocks"]:
            out[cause["kind"]] = out.get(cause["kind"], 0) + cause["pairs"]
    return out


def label(fact: Record) -> str:
    """Return the class of a pair, or of pairs with one cause.

    A known failure that blocks all the same says so.
    """
    if not fact.get("known"):
        return KIND_WORDS[fact["kind"]]
    return KIND_WORDS[fact["kind"]] + (
        " (known, blocks without --accept-known)" if fact["blocks"] else " (known)"
    )


def tone(fact: Record) -> str:
    """Return how a pair counts in the verdict: ``bad`` if it decides the exit code, ``good`` for an
    improvement, or ``odd``.
    """
    if fact["blocks"] or fact["kind"] == "harness_error":
        return "bad"
    return "good" if fact["kind"] == "fixed" else "odd"


def side_words(side: Record) -> str:
    """Describe one side of a pair: the observation, or the reason why there is none."""
    if side["outcome"] is None:
        return f"not observed: {side['message']}"
    what = " ".join(filter(None, (side["outcome"], side["error_class"])))
    why = side["skew"] or gist(side["message"])
    return f"{why} ({what})" if why else what


def bisect_command(verdict: Record, cause: Record) -> str:
    """Return the command that finds the release with which a regression came.

    "" if no release lies between the two sides, or if a version cannot be read.
    """
    first, last = (_minor(verdict[side]["label"]) for side in ("baseline", "candidate"))
    cells = [
        fact["candidate"]["cell"]
        for fact in verdict["facts"]
        if _has_cause(fact, cause) and fact["role"] == "reads" and fact["consumer"] != "-"
    ]
    if (
        cause["kind"] != "regressed"
        or not cells
        or not first
        or not last
        or first >= last
        or last == (first[0], first[1] + 1)
    ):
        return ""
    ends = [".".join(map(str, end)) for end in (first, last)]
    command = ["savedmodel-compat", "gate", "bisect", cells[0], "--from", ends[0], "--to", ends[1]]
    run = verdict["candidate"].get("run")
    return shlex.join([*command, "--run", run] if run else command)


def _has_cause(fact: Record, cause: Record) -> bool:
    return all(fact[name] == cause[name] for name in ("kind", "cause", "blocks"))


def _minor(version: str) -> tuple[int, ...]:
    found = re.match(r"(\d{1,4})\.(\d{1,4})", version)
    return tuple(map(int, found.groups())) if found else ()


def drift_words(item: Record) -> str:
    """Describe one diverging answer."""
    return f"{item['request']}: {item['message']}" + (
        "" if item["within"] else ", beyond the tolerance of the case"
    )

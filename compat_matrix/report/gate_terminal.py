"""The verdict of a gate on a terminal.

The first screen shows the changes, the blocking ones and their causes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from compat_matrix.cells.results import one_line
from compat_matrix.report import gate_words
from reference_impl.errors import listed
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import printable

MAX_BLOCKING, MAX_OTHERS = 12, 8  # causes shown
REPLAYED = 3  # causes with the command that executes one of their cells again
STYLES = {"bad": "red", "good": "green", "odd": "yellow"}

Record = Mapping[str, Any]


def render(
    verdict: Record, console: Console, files: Iterable[str] = (), full: bool = False
) -> None:
    """Print the verdict (content of ``gate.json``).

    ``files``: paths of the outputs, shown at the end; ``full``: every pair.
    """
    good = verdict["exit_code"] == 0
    sides = " -> ".join(_who(verdict[side]) for side in ("baseline", "candidate"))
    console.print(Text(gate_words.dated(f"gate: {sides}", verdict), style="bold"))
    console.print(
        Text(gate_words.headline(verdict), style="bold green" if good else "bold red"),
        soft_wrap=True,
    )
    console.print(_table(verdict))
    causes = verdict["causes"]
    blocking = [cause for cause in causes if cause["blocks"]]
    undecided = [cause for cause in causes if cause["kind"] in gate_words.WITHOUT_RESULT]
    others = [cause for cause in causes if cause not in blocking and cause not in undecided]
    _list("what blocks", verdict, blocking, MAX_BLOCKING, console)
    _list("what has no result", verdict, undecided, MAX_BLOCKING, console)
    _list("what else changed", verdict, others, MAX_OTHERS, console)
    for line in _pairs(verdict) if full else ():
        console.print(Text(line), soft_wrap=True)
    for path in files:
        console.print(Text(f"  {path}"))
    code = ExitCode(verdict["exit_code"])
    console.print(
        Text(
            f"exit {int(code)}: {gate_words.EXIT_WORDS[code]}",
            style="bold green" if good else "bold red",
        )
    )


def _who(side: Record) -> str:
    return str(side["label"]) + (f" ({side['spec']})" if side["spec"] != side["label"] else "")


def _pairs(verdict: Record) -> Iterator[str]:
    """Print each kind with its count and the pairs that the verdict keeps."""
    for kind, facts in gate_words.by_kind(verdict).items():
        yield (
            f"{gate_words.KIND_WORDS[kind]}:"
            f" {sum(counts[kind] for counts in verdict['counts'].values())}"
        )
        for fact in facts:
            words = " -> ".join(
                gate_words.side_words(fact[side]) for side in ("baseline", "candidate")
            )
            known = f"  {gate_words.label(fact)}" if fact["known"] else ""
            yield (
                f"  {fact['pair']}{known} "
                f" {one_line('; '.join(map(gate_words.drift_words, fact['drift'])) or words, 200)}"
            )


def _table(verdict: Record) -> Table:
    table = Table("pairs", header_style="bold")
    counts = verdict["counts"]
    for role in counts:
        table.add_column(f"{role}\n{gate_words.ROLE_WORDS[role]}", justify="right")
    for kind, word in gate_words.KIND_WORDS.items():
        if any(counts[role][kind] for role in counts):
            table.add_row(word, *(str(counts[role][kind]) for role in counts))
    return table


def _list(title: str, verdict: Record, causes: list[Record], most: int, console: Console) -> None:
    if not causes:
        return
    console.print(Text(f"{title}:", style="bold"))
    for number, cause in enumerate(causes[:most]):
        count = f"{cause['pairs']} pair{'s' if cause['pairs'] != 1 else ''}"
        what = f"  {gate_words.label(cause)}, {count}: {one_line(cause['cause'], 220)}"
        console.print(Text(what, style=STYLES[gate_words.tone(cause)]), soft_wrap=True)
        where = [
            listed(cause["cases"], 4),
            listed(cause["consumers"] or ["the writer"], 6),
            ", ".join(cause["roles"]),
        ]
        console.print(Text(f"      {one_line(' · '.join(where), 200)}"), soft_wrap=True)
        for said in cause["alone"]:
            console.print(Text(f"      {printable(said, newlines=False)}"), soft_wrap=True)
        command = gate_words.bisect_command(verdict, cause)
        if command:
            console.print(
                Text(f"      first release: {printable(command, newlines=False)}"), soft_wrap=True
            )
        if cause["blocks"] and cause["replay"] and number < REPLAYED:
            console.print(
                Text(f"      replay: {printable(cause['replay'], newlines=False)}"), soft_wrap=True
            )
    if len(causes) > most:
        rest = causes[most:]
        console.print(
            f"  ... and {len(rest)} more causes ({sum(cause['pairs'] for cause in rest)} pairs),"
            " see gate.html"
        )

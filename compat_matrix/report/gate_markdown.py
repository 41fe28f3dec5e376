"""``gate.md``: the verdict of a gate as a comment for a CI system.

Pure; text beyond the usual limit is cut, with a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compat_matrix.report import gate_words
from reference_impl.errors import listed, shortened
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import counted

LIMIT = 65_536  # characters of a comment; kept in bytes, which is safe either way
TOLD = 20  # causes shown outside of collapsed parts
REPLAYED = 5  # causes with the command that executes one of their cells again
MAX_CELL = 240  # characters of one field of a table
_RESERVE = 1_000  # bytes for the notes at the end
# Characters with a meaning in Markdown or a CI system: emphasis, links, HTML, tables, mentions,
# references to issues.
_SPECIAL = {ord(char): f"&#{ord(char)};" for char in "\\`*_{}[]<>()#!|~@&$:^"}

Record = Mapping[str, Any]


def render(verdict: Record, limit: int = LIMIT) -> str:
    """Return the comment about the content of ``gate.json``, never longer than ``limit`` bytes."""
    page = _Page(limit - _RESERVE)
    mark = "✅" if verdict["exit_code"] == 0 else "❌"
    sides = " → ".join(text(verdict[side]["label"]) for side in ("baseline", "candidate"))
    page.add(f"### {mark} TensorFlow {sides}{text(gate_words.dated('', verdict))}: ")
    headline = gate_words.headline(verdict)
    page.add(
        f"{gate_words.EXIT_WORDS[ExitCode(verdict['exit_code'])]}\n\n"
        f"{text(headline, len(headline))}\n\n"
    )
    page.add(_counts(verdict))
    blocking = [cause for cause in verdict["causes"] if cause["blocks"]]
    others = [cause for cause in verdict["causes"] if not cause["blocks"]]
    if blocking:
        page.add("\n#### What blocks\n\n")
        page.table(_CAUSE_HEAD, map(_cause_row, blocking[:TOLD]), "causes")
        replays = list(
            dict.fromkeys(cause["replay"] for cause in blocking[:REPLAYED] if cause["replay"])
        )
        if replays:
            page.add(
                "\nTo see them again:\n\n" + "".join(f"- {_command(line)}\n" for line in replays)
            )
        commands = [
            command
            for cause in blocking[:TOLD]
            if (command := gate_words.bisect_command(verdict, cause))
        ]
        if commands:
            page.add(
                "\nThe release each came with:\n\n"
                + "".join(f"* <code>{text(command, len(command))}</code>\n" for command in commands)
            )
    for title, causes in (("More that blocks", blocking[TOLD:]), ("What else changed", others)):
        if causes:
            page.folded(
                f"{title} ({counted(len(causes), 'cause')})",
                _CAUSE_HEAD,
                list(map(_cause_row, causes)),
                "causes",
            )
    facts = [fact for fact in verdict["facts"] if fact["kind"] not in gate_words.UNCHANGED]
    if facts:
        page.folded(
            f"Every pair that changed ({len(facts)})",
            _PAIR_HEAD,
            list(map(_pair_row, facts)),
            "pairs",
        )
    roles = "; ".join(f"*{role}*: {words}" for role, words in gate_words.ROLE_WORDS.items())
    page.end(f"\n<sub>{roles}. All of it is in gate.json and gate.html.</sub>\n")
    return "".join(page.parts)


_CAUSE_HEAD = ("pairs", "class", "why", "cases", "consumers", "roles")
_PAIR_HEAD = ("class", "role", "pair", "baseline", "candidate")


class _Page:
    """A text that grows up to a limit."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.parts: list[str] = []

    def add(self, part: str) -> bool:
        """Append a part if there is room for it; return whether there was."""
        size = len(part.encode())
        if size > self.room:
            return False
        self.room -= size
        self.parts.append(part)
        return True

    def end(self, part: str) -> None:
        """Append the last part, for which room is reserved."""
        self.parts.append(part)

    def table(
        self, head: Sequence[str], rows: Iterable[Sequence[str]], what: str, closing: str = ""
    ) -> None:
        rows = list(rows)
        cut = (
            "\n**Cut here: {} more "
            + what
            + " do not fit a comment; they are in gate.html and gate.json.**\n"
        )
        reserve = len(cut) + 10 + len(closing)
        self.room -= reserve
        fits = self.add(_row(head) + _row(["---"] * len(head)))
        shown = 0
        while fits and shown < len(rows) and self.add(_row(rows[shown])):
            shown += 1
        self.room += reserve
        if shown < len(rows):
            self.add(cut.format(len(rows) - shown))
        if closing:
            self.add(closing)

    def folded(
        self, title: str, head: Sequence[str], rows: Sequence[Sequence[str]], what: str
    ) -> None:
        closing = "\n</details>\n"
        self.room -= len(closing)
        opened = self.add(f"\n<details><summary>{title}</summary>\n\n")
        self.room += len(closing)
        if opened:
            self.table(head, rows, what, closing)


def _counts(verdict: Record) -> str:
    counts = verdict["counts"]
    rows = []
    for kind, words in gate_words.KIND_WORDS.items():
        of_roles = [of_role[kind] for of_role in counts.values()]
        if any(of_roles):
            rows.append([words, *map(str, of_roles)])
    return (
        _row(["pairs", *counts]) + _row(["---", *["---:"] * len(counts)]) + "".join(map(_row, rows))
    )


def _cause_row(cause: Record) -> list[str]:
    return [
        str(cause["pairs"]),
        gate_words.label(cause),
        "<br>".join([_code(cause["cause"]), *map(text, cause["alone"])]),
        text(listed(cause["cases"], 6)),
        text(listed(cause["consumers"], 6)),
        ", ".join(cause["roles"]),
    ]


def _pair_row(fact: Record) -> list[str]:
    after = "; ".join(map(gate_words.drift_words, fact["drift"])) or (
        fact["cause"]
        if fact["kind"] == "changed_error"
        else gate_words.side_words(fact["candidate"])
    )
    after += f" [{fact['alone']}]" if fact["alone"] else ""
    return [
        gate_words.label(fact),
        fact["role"],
        _code(fact["pair"]),
        _code(gate_words.side_words(fact["baseline"])),
        _code(after),
    ]


def _row(fields: Sequence[str]) -> str:
    return f"| {' | '.join(fields)} |\n"


def _code(value: str) -> str:
    return f"<code>{text(value)}</code>" if value else ""


def _command(line: str) -> str:
    """Return a command line in full, so that it can be pasted."""
    return f"<code>{text(line, len(line))}</code>"


def text(value: str, most: int = MAX_CELL) -> str:
    """Return untrusted text as one line for a table field, cut to its limit and without
    Markdown.
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in value).split())
    return shortened(line, most).translate(_SPECIAL)

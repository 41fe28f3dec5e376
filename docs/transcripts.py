"""Runs the ``console`` blocks of a page, top to bottom in one empty folder, and compares or writes
what they print.

    python -m docs.transcripts [--check] [PAGE ...]

A page is a transcript if it has a ``console`` block. In such a block each line that starts with
``$`` is run by bash. Its output follows, standard error included. ``...`` stands for any text
within a line, or alone for any lines. A command that fails is followed by ``[exit code N]``. A
block that starts with a comment naming a file is written to that file. A comment ``<!-- setup:
COMMAND -->`` is run and not shown. ``<!-- needs tensorflow -->`` says that the page does, ``<!--
needs python 3.11 3.12 -->`` that its commands make environments of these Pythons, ``<!-- needs lock
onnx.txt -->`` that they use the environment of a lock of third_party.

A block of commands that no test can run stands under ``<!-- not run: REASON; instead: COMMAND
-->``. COMMAND is run in place of the block and must succeed. tests/docs/test_page_commands.py finds
blocks of commands that are neither run nor excused.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docs import site

ROOT = Path(__file__).parents[1]
_PART = re.compile(
    r"^<!-- setup: (?P<setup>.*?) -->$"
    r"|^<!-- not run: (?P<reason>[^;]*?)(?:; instead: (?P<instead>.*?))?"
    r" -->\n\n```\w*\n(?P<excused>.*?)^```$"
    r"|^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_FILE = re.compile(r"(?:#|//) (\S+\.\w+)\n")
# A line of a block that a reader would run: in a shell, or as a step of a CI system.
_PROGRAMS = "savedmodel-compat|tox|pip|pytest|python3?|docker|uv|git|saved_model_cli|pre-commit"
_COMMAND = re.compile(
    rf"^ *(?:\$ .|(?:- )?(?:run: |entry: )?(?:[A-Z_]+=\S* )*(?:{_PROGRAMS}) )(?!.*\.{{4}})",
    re.MULTILINE,
)
_NEEDS = "<!-- needs tensorflow -->"
_LOCKS = re.compile(r"<!-- needs lock ([\w.]+) -->")
_PYTHONS = re.compile(r"<!-- needs python ([\d. ]+) -->")


@dataclass(frozen=True)
class Step:
    """A command of a page with what the page says it prints."""

    command: str
    shown: str


@dataclass(frozen=True)
class Excused:
    """A block of commands that is not run, with the reason and the command that is run in its
    place.
    """

    text: str
    reason: str
    instead: str


def transcripts() -> list[Path]:
    """Return the pages of the project that have something to run."""

    def runs(page: Path) -> bool:
        parts = _PART.finditer(page.read_text(encoding="utf-8"))
        return any(part["language"] == "console" or part["instead"] for part in parts)

    return [page for page in map(ROOT.joinpath, site.pages()) if runs(page)]


def excused(text: str) -> list[Excused]:
    """Return the blocks of commands of a page that say why they are not run."""
    found = (part for part in _PART.finditer(text) if part["reason"])
    return [Excused(part["excused"], part["reason"], part["instead"] or "") for part in found]


def never_run(text: str) -> list[str]:
    """Return the blocks of commands of a page that are neither run nor excused."""
    blocks = (
        part
        for part in _PART.finditer(text)
        if part["text"] and part["language"] not in ("console", "python", "toml")
    )
    return [
        part["text"] for part in blocks if part["language"] == "sh" or _COMMAND.search(part["text"])
    ]


def needs_tensorflow(page: Path) -> bool:
    """Return whether a page says that it needs TensorFlow."""
    return _NEEDS in page.read_text(encoding="utf-8")


def needed_pythons(page: Path) -> list[str]:
    """Return the versions of Python that a page says its commands make environments of."""
    found = _PYTHONS.search(page.read_text(encoding="utf-8"))
    return found[1].split() if found else []


def needed_lock(page: Path) -> str:
    """Return the lock of third_party whose environment the commands of a page use, or ""."""
    found = _LOCKS.search(page.read_text(encoding="utf-8"))
    return found[1] if found else ""


def files(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of each file that a page shows."""
    for part in _PART.finditer(text):
        if part["text"] and (named := _FILE.match(part["text"])):
            yield named[1], part["text"]


def run(page: Path, folder: Path) -> str:
    """Run a page in an empty folder.

    Returns its text with what the commands printed; equal text where the page was right.

    Raises:
      RuntimeError: a command that is not shown failed.
    """
    given = environment(folder)

    def replaced(part: re.Match[str]) -> str:
        if silent := part["setup"] or part["instead"]:
            code, output = _run(silent, folder, given)
            if code:
                raise RuntimeError(f"{page.name}: exit code {code} of {silent}: {output}")
        elif part["language"] == "console":
            return (
                "```console\n"
                + "".join(_again(step, folder, given) for step in _steps(part["text"]))
                + "```"
            )
        elif part["text"] and (named := _FILE.match(part["text"])):
            path = folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(part["text"], encoding="utf-8")
        return part[0]

    return _PART.sub(replaced, page.read_text(encoding="utf-8"))


def environment(folder: Path) -> dict[str, str]:
    """Programs of this interpreter, a narrow terminal without colours, and this checkout in front
    of what is installed.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COMPAT_", "PYTEST", "FORCE_COLOR"))
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    given = {
        "PATH": path,
        "PYTHONPATH": str(ROOT),
        "PROJECT": str(ROOT),
        "COLUMNS": "110",
        "NO_COLOR": "1",
        "HOME": str(folder),
    }
    return {
        **kept,
        **given,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "XDG_CACHE_HOME": kept.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
    }


def _steps(text: str) -> list[Step]:
    """Cut a block into its commands; the lines of one that goes on end in a backslash."""
    steps: list[Step] = []
    going_on = False
    for line in text.splitlines():
        if going_on:
            steps[-1] = Step(f"{steps[-1].command}\n{line}", "")
        elif line.startswith("$ "):
            steps.append(Step(line[2:], ""))
        else:
            steps[-1] = Step(steps[-1].command, f"{steps[-1].shown}{line}\n")
        going_on = line.endswith("\\") and not steps[-1].shown
    return steps


def _run(command: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = [line.rstrip() for line in done.stdout.replace(f"{folder}/", "").splitlines()]
    return done.returncode, "".join(f"{line}\n" for line in lines)


def _again(step: Step, folder: Path, environment: dict[str, str]) -> str:
    """Run a step. Returns its lines: as they were if they match what was printed."""
    code, output = _run(step.command, folder, environment)
    if code:
        output += f"[exit code {code}]\n"
    return f"$ {step.command}\n" + (step.shown if _matches(step.shown, output) else output)


def _matches(shown: str, output: str) -> bool:
    """Return whether an output is what a page shows, where ``...`` stands for anything."""
    pattern = (
        re.escape(shown).replace(re.escape("...\n"), "(?:.*\n)*?").replace(re.escape("..."), ".*?")
    )
    return re.fullmatch(pattern, output) is not None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing, fail where a page shows something else"
    )
    parser.add_argument("pages", nargs="*", type=Path)
    options = parser.parse_args()
    wrong = []
    for page in options.pages or transcripts():
        with tempfile.TemporaryDirectory() as folder:
            text = run(page, Path(folder))
        if text != page.read_text(encoding="utf-8"):
            wrong.append(str(page))
            if not options.check:
                page.write_text(text, encoding="utf-8")
    print(f"{'stale' if options.check else 'written'}: {', '.join(wrong) or 'none'}")
    return 1 if options.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Readers of SavedModels and the constraints that they keep, for the page `evidence/readers.md`;
``data/readers.json`` has what the kit found.

    python -m docs.readers [NAME...]

asks the readers, or those named, about the kit and writes what it finds. Readers of other people
run in environments of their own, made from the locks of ``examples/kit_readers``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from docs.markdown import table
from savedmodel_kit import artifacts, constraints
from savedmodel_kit.build import write_folder
from savedmodel_kit.consumer import ask_all
from savedmodel_kit.score import Kit, Score, levels_of, open_kit, score

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).parent / "data" / "readers.json"
SHIMS = ROOT / "examples" / "kit_readers"
SECONDS = 120.0  # for one model, on a busy machine
_MOST = 160  # characters of a fault
HEAD = """# Readers of SavedModels, checked

[The kit](../format/kit.md) asked these readers about {artifacts} artifacts that releases of TensorFlow wrote, and about {hostile} hostile files.
A reader is checked at the levels that it gives: L0 container, L1 checkpoint, L2 object graph. Each of other people's readers runs
in an environment of its own, made from a lock in `examples/kit_readers`. `python -m docs.readers` asks them again.

"""  # noqa: E501


@dataclass(frozen=True)
class Reader:
    """A reader that is asked.

    Attributes:
      name, summary: for the page.
      command: makes the command from the folder of its environment.
      python: the version of Python of its environment, or None if it needs none.
      lock: the file of ``examples/kit_readers`` that the environment is made from.
    """

    name: str
    summary: str
    command: Callable[[Path], list[str]]
    python: Optional[str] = None
    lock: str = ""


def _of_netron(environment: Path) -> list[str]:
    (package,) = environment.glob("lib/python*/site-packages/netron")
    return ["node", str(SHIMS / "netron.mjs"), str(package)]


READERS = (
    Reader(
        "reference_impl",
        "this project's reader, in Python",
        lambda _: [sys.executable, "-m", "savedmodel_kit.meaning"],
    ),
    Reader(
        "node_reader",
        "`examples/node_reader`, in JavaScript, written from the specification alone",
        lambda _: ["node", str(ROOT / "examples/node_reader/kit.mjs")],
    ),
    Reader(
        "netron",
        "Netron 9.3.3, in JavaScript: the class `TensorBundle` of its module `tf.js`",
        _of_netron,
        "3.11",
        "netron.txt",
    ),
    Reader(
        "checkpoint_reader",
        "tensorflow-checkpoint-reader 0.2.2, a port of TensorFlow's C++ to Python",
        lambda environment: [
            str(environment / "bin/python"),
            str(SHIMS / "checkpoint_reader.py"),
        ],
        "3.9",
        "checkpoint_reader.txt",
    ),
)


# Asking


def measure(names: list[str]) -> None:
    """Ask readers about the kit, and put their scores into the record."""
    record: dict[str, Any] = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    with tempfile.TemporaryDirectory(prefix="readers-") as temporary:
        folder = Path(temporary)
        write_folder(folder / "kit", artifacts.committed())
        kit = open_kit(folder / "kit")
        for reader in READERS:
            if not names or reader.name in names:
                record[reader.name] = _described(kit, _score(kit, reader, folder / reader.name))
                RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "utf-8")


def _score(kit: Kit, reader: Reader, environment: Path) -> Score:
    if reader.lock:
        _install(reader, environment)
        os.environ.pop("PYTHONPATH", None)  # packages of this checkout are not those of the reader
    answers = ask_all(reader.command(environment), kit.models(), SECONDS)
    return score(kit, answers, constraints.read(), levels_of(answers))


def _install(reader: Reader, environment: Path) -> None:
    subprocess.run(
        ["uv", "venv", "--quiet", "--python", reader.python or "", str(environment)], check=True
    )
    lock = ["--require-hashes", "-r", str(SHIMS / reader.lock)]
    python = ["--python", str(environment / "bin/python")]
    subprocess.run(["uv", "pip", "install", "--quiet", *python, *lock], check=True)


def _described(kit: Kit, made: Score) -> dict[str, Any]:
    return {
        "artifacts": len(kit.content["artifacts"]),
        "hostile": len(kit.content["hostile"]),
        "levels": {level: made.counts(level) for level in made.levels},
        "kept": made.kept,
        "broken": made.broken,
        "faults": [
            {"name": one.name, "level": one.level, "ids": list(one.ids), "fault": one.fault}
            for one in made.faults()
        ],
    }


# The page


def page() -> str:
    """Return the page: a table of all readers, then the broken constraints of each."""
    record: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    known = [(reader, record[reader.name]) for reader in READERS if reader.name in record]
    first = known[0][1]
    rows: list[tuple[str, ...]] = []
    for reader, found in known:
        rows += _rows(reader, found)
    parts = [
        HEAD.format(artifacts=first["artifacts"], hostile=first["hostile"]),
        table(
            ("reader", "level", "artifacts as stated", "hostile files refused", "kept", "broken"),
            rows,
        ),
    ]
    for reader, found in known:
        parts.append(f"\n## {reader.name}\n\n{reader.summary[0].upper()}{reader.summary[1:]}.\n\n")
        parts.append(_faults(found))
    return "".join(parts)


def _rows(reader: Reader, found: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = []
    for level, (sound, hostile) in found["levels"].items():
        is_first = not rows
        rows.append(
            (
                f"[`{reader.name}`](#{reader.name})" if is_first else "",
                level,
                f"{sound[0]} of {sound[1]}",
                f"{hostile[0]} of {hostile[1]}",
                str(len(found["kept"])) if is_first else "",
                str(len(found["broken"])) if is_first else "",
            )
        )
    return rows


def _faults(found: dict[str, Any]) -> str:
    """Return a row for each broken constraint with the first artifact that breaks it."""
    if not found["faults"]:
        return "It keeps every constraint that the kit shows at its levels.\n"
    rows = []
    for broken in found["broken"]:
        faults = [one for one in found["faults"] if broken in one["ids"]]
        first = faults[0]
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        name = first["name"].removeprefix("artifacts/")
        rows.append((broken, f"`{name}`{more}", _short(first["fault"])))
    return table(("constraint", "broken by", "what happened"), rows)


def _short(fault: str) -> str:
    text = " ".join(fault.split()).replace("|", "\\|").replace("<", "&lt;")
    printable = text.encode("ascii", "backslashreplace").decode("ascii")
    return printable if len(printable) <= _MOST else f"{printable[:_MOST]}..."


def main(arguments: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    measure(parser.parse_args(arguments).names)


if __name__ == "__main__":
    main()

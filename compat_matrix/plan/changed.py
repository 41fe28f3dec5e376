"""The cases and runtimes that a grid must run again after a change of the sources."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from compat_matrix.cells.plan import Plan
from compat_matrix.runtimes import registry
from compat_matrix.runtimes.runtime import Runtime
from savedmodel_common.packages import FIXTURES, OURS

_ROOT = Path(__file__).resolve().parents[2]
# Folders whose files are not read when a cell runs.
_IDLE = (
    "docs",
    "tests",
    "benchmarks",
    "property_tests",
    "savedmodel_kit",
    ".ci",
    "compat_matrix/report",
    "compat_matrix/verdict",
)
_PRODUCT = (*OURS, *FIXTURES)


class ChangesUnknown(Exception):
    """git cannot say what changed; the message says why."""


@dataclass(frozen=True)
class Changes:
    """The changes: ``everything`` names a changed source on which all cells depend; else the
    changed cases and locks (stems).
    """

    everything: str | None
    cases: frozenset[str]
    locks: frozenset[str]


def changed_since(revision: str, root: Path = _ROOT) -> Changes:
    """Return the changes between a git revision and the files here, including uncommitted and new
    ones. Raises ChangesUnknown.
    """
    names: list[str] = []
    for command in (
        ["diff", "--name-only", "-z", revision, "--"],
        ["ls-files", "--others", "--exclude-standard", "-z"],
    ):
        try:
            done = subprocess.run(
                ["git", "-C", str(root), *command],
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
        except FileNotFoundError as error:
            raise ChangesUnknown("git is not on PATH") from error
        except subprocess.SubprocessError as error:
            said = (getattr(error, "stderr", "") or str(error)).strip()
            raise ChangesUnknown(f"git {command[0]}: {said}") from error
        names += [name for name in done.stdout.split("\0") if name]
    return effect_of(names)


def effect_of(names: Iterable[str]) -> Changes:
    """Return the changes by these files (paths relative to the project, with ``/``)."""
    everything, cases, locks = None, set(), set()
    for name in sorted(names):
        path = PurePosixPath(name)
        if any(path.is_relative_to(idle) for idle in _IDLE) or path.suffix == ".md":
            continue
        if path.parent == PurePosixPath("compat_matrix/cases") and not path.name.startswith("_"):
            cases.add(path.stem)
        elif path.suffix == ".txt" and path.parent.name == "locks":
            locks.add(path.stem)
        elif path.parts[0] in FIXTURES and len(path.parts) > 2:
            cases.add(path.parts[1])
        elif path.parts[0] in _PRODUCT or name == "pyproject.toml":
            everything = everything or name
    return Changes(everything, frozenset(cases), frozenset(locks))


def affected(plan: Plan, changes: Changes, runtimes: Iterable[Runtime]) -> set[str]:
    """Return the ids of the cells of changed cases, and of cells with a runtime whose lock changed,
    as reader or writer.
    """
    known = registry.read()
    stanzas = {
        runtime.name: known.find(runtime.spec.removeprefix(f"{runtime.name}="))
        for runtime in runtimes
    }
    renewed = {
        name for name, stanza in stanzas.items() if stanza and stanza.lock.stem in changes.locks
    }
    return {
        cell.id
        for cell in plan
        if cell.case in changes.cases or renewed & {cell.runtime, cell.producer_runtime}
    }

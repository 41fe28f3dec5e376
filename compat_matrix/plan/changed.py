"""What a change of the sources can have an effect on: which cases and runtimes a grid has to run again."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from compat_matrix.cells.plan import Plan
from compat_matrix.runtimes import registry
from compat_matrix.runtimes.runtime import Runtime

_ROOT = Path(__file__).resolve().parents[2]
# Nothing below these is read when a cell runs.
_IDLE = ("docs", "tests", "benchmarks", "property_tests", ".ci", "compat_matrix/report", "compat_matrix/verdict")
_PRODUCT = ("compat_matrix", "reference_impl", "fixtures_v1")


class ChangesUnknown(Exception):
    """git cannot say what changed; the message says why."""


@dataclass(frozen=True)
class Changes:
    """``everything``: a source that any cell depends on changed (it is named); else the cases and locks (stems) that changed."""

    everything: str | None
    cases: frozenset[str]
    locks: frozenset[str]


def changed_since(revision: str, root: Path = _ROOT) -> Changes:
    """The changes between a git revision and the files here, uncommitted and new ones included. Raises ChangesUnknown."""
    names: list[str] = []
    for command in (["diff", "--name-only", "-z", revision, "--"], ["ls-files", "--others", "--exclude-standard", "-z"]):
        try:
            done = subprocess.run(["git", "-C", str(root), *command], capture_output=True, text=True, check=True, timeout=60)
        except FileNotFoundError as error:
            raise ChangesUnknown("git is not on PATH") from error
        except subprocess.SubprocessError as error:
            said = (getattr(error, "stderr", "") or str(error)).strip()
            raise ChangesUnknown(f"git {command[0]}: {said}") from error
        names += [name for name in done.stdout.split("\0") if name]
    return effect_of(names)


def effect_of(names: Iterable[str]) -> Changes:
    """What the change of these files (relative to the project, with ``/``) can have an effect on."""
    everything, cases, locks = None, set(), set()
    for name in sorted(names):
        path = PurePosixPath(name)
        if any(path.is_relative_to(idle) for idle in _IDLE) or path.suffix == ".md":
            continue
        if path.parent == PurePosixPath("compat_matrix/cases") and not path.name.startswith("_"):
            cases.add(path.stem)
        elif path.suffix == ".txt" and path.parent.name == "locks":
            locks.add(path.stem)
        elif path.parts[0] == "fixtures_v1" and len(path.parts) > 2:
            cases.add(path.parts[1])
        elif path.parts[0] in _PRODUCT or name == "pyproject.toml":
            everything = everything or name
    return Changes(everything, frozenset(cases), frozenset(locks))


def affected(plan: Plan, changes: Changes, runtimes: Iterable[Runtime]) -> set[str]:
    """Ids of the cells of changed cases, and of those that a runtime with a changed lock answers or wrote the artifact of."""
    known = registry.read()
    stanzas = {runtime.name: known.find(runtime.spec.removeprefix(f"{runtime.name}=")) for runtime in runtimes}
    renewed = {name for name, stanza in stanzas.items() if stanza and stanza.lock.stem in changes.locks}
    return {cell.id for cell in plan if cell.case in changes.cases or renewed & {cell.runtime, cell.producer_runtime}}

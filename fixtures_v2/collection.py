"""The artifacts that there must be: every case by every TensorFlow 2 release of the registry.

No TensorFlow is needed.

    >>> artifact("tf2_tuples", "2.4")
    PosixPath('.../fixtures_v2/tf2_tuples/2.4')
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

import fixtures_v1
from compat_matrix.cells.plan import is_complete
from compat_matrix.runtimes import registry
from compat_matrix.runtimes.registry import Stanza
from savedmodel_common import toml

ROOT = Path(__file__).parent
CASE = "case.py"
ABSENT = ROOT / "absent.toml"
FIRST = Version("2.0")
PROVENANCE = "provenance.json"
MEMBERS = {"case", "releases", "reason", "error"}  # of an entry of absent.toml


class TableError(ValueError):
    """``absent.toml`` cannot be used; the message names the entry and the reason."""


class Wanted(NamedTuple):
    """One artifact that there must be."""

    case: str
    release: str


@dataclass(frozen=True)
class Absence:
    """Releases that cannot write a case.

    ``error`` is a part of the message with which making the artifact fails there.
    """

    case: str
    releases: SpecifierSet
    reason: str
    error: str


def cases() -> list[str]:
    """Return the names of all cases, sorted."""
    return sorted(path.parent.name for path in ROOT.glob(f"*/{CASE}"))


def case_file(case: str) -> Path:
    """Return the file that a case is made from."""
    return ROOT / case / CASE


@functools.cache
def releases() -> dict[str, Stanza]:
    """Return the TensorFlow 2 runtimes of the registry by release (``"2.4"``), oldest first.

    Raises RegistryError.
    """
    stanzas = registry.read().stanzas.values()
    return {
        stanza.name.removeprefix("tf"): stanza
        for stanza in stanzas
        if Version(stanza.tensorflow) >= FIRST
    }


def artifact(case: str, release: str) -> Path:
    """Return the folder of an artifact, which need not exist."""
    return ROOT / case / release


@functools.cache
def absences() -> tuple[Absence, ...]:
    """Return the entries of ``absent.toml``.

    Raises OSError, ValueError for a file that is not TOML, and TableError for another content.
    """
    try:
        entries = toml.read(ABSENT)["absent"]
        return tuple(_absence(number, one) for number, one in enumerate(entries, 1))
    except (KeyError, TypeError) as error:
        raise TableError(f"{ABSENT}: there is no list of tables [[absent]] ({error})") from error


def _absence(number: int, entry: dict[str, str]) -> Absence:
    if set(entry) != MEMBERS:
        raise TableError(
            f"{ABSENT}: entry {number} has {', '.join(sorted(entry)) or 'nothing'}; an entry has"
            f" {', '.join(sorted(MEMBERS))}"
        )
    try:
        releases = SpecifierSet(entry["releases"])
    except InvalidSpecifier as error:
        raise TableError(f"{ABSENT}: entry {number}: {error}") from error
    return Absence(entry["case"], releases, entry["reason"], entry["error"])


def absence(case: str, release: str) -> Absence | None:
    """Return why a release cannot write a case, None if it can."""
    version = Version(releases()[release].tensorflow)
    for one in absences():
        if one.case == case and version in one.releases:
            return one
    return None


def wanted(release: str) -> list[Wanted]:
    """Return the artifacts that there must be of a release."""
    return [Wanted(case, release) for case in cases() if absence(case, release) is None]


def problems() -> list[str]:
    """Return what is wrong with the collection as a whole, one line each; empty when all is well.

    A release of the registry without its set, a missing artifact, a folder that no release or no
    absence explains, and an entry of ``absent.toml`` that names nothing.
    """
    return [*_missing(), *_unexplained(), *_dead_absences()]


def _missing() -> Iterator[str]:
    for release in releases():
        lacking = [one.case for one in wanted(release) if not is_complete(artifact(*one))]
        if lacking:
            yield (
                f"TensorFlow {release} has no artifact of {', '.join(lacking)}. Make them: "
                f"python -m fixtures_v2 add {release}"
            )


def _unexplained() -> Iterator[str]:
    for case in cases():
        for folder in sorted((ROOT / case).iterdir()):
            name = f"{case}/{folder.name}"
            if folder.name in (CASE, "__pycache__"):
                continue
            if folder.name not in releases():
                yield f"{name}: {folder.name} is not a TensorFlow 2 release of runtimes.toml"
            elif absence(case, folder.name) is not None:
                yield f"{name}: absent.toml says that this release cannot write the case"


def _dead_absences() -> Iterator[str]:
    for one in absences():
        known = [stanza for stanza in releases().values() if stanza.tensorflow in one.releases]
        if one.case not in cases() or not known:
            yield f"absent.toml: no release of {one.case} fits {one.releases}"


def verify(folder: Path) -> list[str]:
    """Compare an artifact with its provenance; return the problems, empty when all is well.

    Found are changed, missing and additional files, and a case that was edited after the artifact
    was made. The hash of the lock is a record: a lock that is renewed leaves artifacts as they are.
    """
    try:
        record = fixtures_v1.read_json(str(folder / PROVENANCE))
        files, digest = dict(record["files"]), record["generator"]["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"{PROVENANCE}: {type(error).__name__}: {error}"]
    return [
        *fixtures_v1.differing_files(folder, files),
        *fixtures_v1.edited([(folder.parent / CASE, digest)]),
    ]

"""``runtimes.toml``: the runtimes that this project knows, read with a check of every field.

One stanza is one TensorFlow. Missing programs are listed by ranges of versions, so that the list
also covers runtimes made from a requirement or found on the machine.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from compat_matrix.runtimes.places import RuntimeTrouble, UnknownRuntime
from compat_matrix.runtimes.programs import importing
from savedmodel_common import toml
from savedmodel_common.distributions import DISTRIBUTIONS
from savedmodel_common.printable import unknown

REGISTRY = Path(__file__).with_name("runtimes.toml")
SCHEMA = 1
SPELLINGS = re.compile(r"(?:tf)?(\d+\.\d+)((?:\.\d+)?)")  # tf2.12, 2.12, 2.12.1, tf2.12.1


class RegistryError(RuntimeTrouble):
    """Raised for an invalid registry; the message names the file, the stanza and the field."""


@dataclass(frozen=True)
class Stanza:
    """One runtime.

    ``tensorflow`` is the exact version, ``python`` major.minor, ``lock`` an absolute path.
    """

    name: str
    tensorflow: str
    python: str
    requirements: tuple[str, ...]
    lock: Path

    @property
    def pins(self) -> tuple[str, ...]:
        """Return the requirements beside TensorFlow, which exclude versions that do not work with
        it.
        """
        return tuple(
            text
            for text in self.requirements
            if canonicalize_name(Requirement(text).name) not in DISTRIBUTIONS
        )


@dataclass(frozen=True)
class Lack:
    """Runtimes whose TensorFlow is within ``versions`` have none of ``programs``."""

    programs: tuple[str, ...]
    versions: SpecifierSet
    reason: str


@dataclass(frozen=True)
class Registry:
    """The content of ``runtimes.toml``. ``stanzas`` by name, oldest TensorFlow first.

    ``reference``: reference_impl's requirements.
    """

    path: Path
    platform: str
    reference: tuple[str, ...]
    stanzas: Mapping[str, Stanza]
    lacking: tuple[Lack, ...]

    def lacks(self, tensorflow: str | None) -> dict[str, str]:
        """Map each missing program of a runtime with this TensorFlow to the reason.

        The first entry that names the program counts.
        """
        found: dict[str, str] = {}
        if tensorflow is None:
            return found
        for lack in self.lacking:
            if lack.versions.contains(
                Version(tensorflow).public, prereleases=True
            ):  # a range would not match a local label
                found.update({name: lack.reason for name in lack.programs if name not in found})
        return found

    def locked_requirements(self, stanza: Stanza) -> tuple[str, ...]:
        """Return the requirements from which the lock of a stanza is made."""
        return stanza.requirements + (
            () if "reference" in self.lacks(stanza.tensorflow) else self.reference
        )

    def find(self, spelling: str) -> Stanza | None:
        """Return the stanza called ``tf2.12``, ``2.12`` or ``2.12.1``; None when ``spelling`` has
        another form.

        Raises :class:`UnknownRuntime` when it has one of these forms but no stanza fits.
        """
        match = SPELLINGS.fullmatch(spelling.strip())
        if match is None:
            return None
        minor, micro = match.groups()
        stanza = self.stanzas.get(f"tf{minor}")
        if stanza is None:
            raise UnknownRuntime(
                f"{unknown('runtime', [spelling], self.stanzas)} Any other release:"
                f" tensorflow=={minor}.*"
            )
        if micro and stanza.tensorflow != minor + micro:
            raise UnknownRuntime(
                f"no runtime {spelling}: {stanza.name} is TensorFlow {stanza.tensorflow}; any other"
                f" by tensorflow=={minor}{micro}"
            )
        return stanza

    def nearest(self, tensorflow: str) -> Stanza | None:
        """Return the stanza of the same minor release, else the newest older one."""
        wanted = Version(tensorflow)
        older = [
            one
            for one in self.stanzas.values()
            if Version(one.tensorflow).release[:2] <= wanted.release[:2]
        ]
        return older[-1] if older else None


def read(path: Path | None = None) -> Registry:
    """Read and check a registry, ours when no path is given. Raises :class:`RegistryError`."""
    return _read(path or REGISTRY)


@functools.lru_cache(maxsize=8)
def _read(path: Path) -> Registry:
    try:
        data = toml.read(path)
    except (OSError, ValueError) as error:
        raise RegistryError(f"{path}: {error}") from error
    return _Reader(path).registry(data)


class _Reader:
    """Converts parsed TOML to a :class:`Registry`; every error names the file and the place."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fail(self, place: str, why: str) -> RegistryError:
        return RegistryError(f"{self.path}: {place}: {why}")

    def registry(self, data: Mapping[str, Any]) -> Registry:
        if data.get("schema") != SCHEMA:
            raise self.fail("schema", f"is {data.get('schema')!r}, this program reads {SCHEMA}")
        self.members(
            "the file",
            data,
            {"schema": int, "platform": str, "reference": list, "runtime": dict, "lacks": list},
            {"lacks"},
        )
        stanzas = [self.stanza(name, table) for name, table in data["runtime"].items()]
        stanzas.sort(key=lambda one: Version(one.tensorflow))
        lacking = tuple(
            self.lack(f"lacks {i}", table) for i, table in enumerate(data.get("lacks", ()), start=1)
        )
        for i, lack in enumerate(lacking, start=1):
            if not any(lack.versions.contains(one.tensorflow, prereleases=True) for one in stanzas):
                raise self.fail(f"lacks {i}", f"no runtime is in the range {lack.versions}")
        reference = tuple(
            str(self.requirement("reference", text))
            for text in self.texts("reference", data["reference"])
        )
        return Registry(
            self.path, data["platform"], reference, {one.name: one for one in stanzas}, lacking
        )

    def stanza(self, name: str, table: Any) -> Stanza:
        place = f"runtime {name}"
        self.members(
            place, table, {"tensorflow": str, "python": str, "requirements": list, "lock": str}
        )
        version = self.version(place, table["tensorflow"])
        if name != "tf{}.{}".format(*version.release):
            raise self.fail(
                place, f"the name of TensorFlow {version} is tf{version.major}.{version.minor}"
            )
        if not re.fullmatch(r"3\.\d+", table["python"]):
            raise self.fail(place, f"python is {table['python']!r}, not like 3.11")
        requirements = self.texts(f"{place}: requirements", table["requirements"])
        pinned = []
        for text in requirements:
            requirement = self.requirement(place, text)
            if canonicalize_name(requirement.name) in DISTRIBUTIONS:
                pinned.append(str(requirement.specifier))
        if pinned != [f"=={table['tensorflow']}"]:
            raise self.fail(
                place,
                f"requirements pin TensorFlow {', '.join(pinned) or 'not at all'}, tensorflow is"
                f" {version}",
            )
        lock = (self.path.parent / table["lock"]).resolve()
        if Path(table["lock"]).is_absolute():
            raise self.fail(place, "lock is an absolute path")
        return Stanza(name, table["tensorflow"], table["python"], requirements, lock)

    def lack(self, place: str, table: Any) -> Lack:
        optional = {"programs", "imports"}
        self.members(
            place,
            table,
            {"programs": list, "imports": str, "tensorflow": str, "reason": str},
            optional,
        )
        if len(optional & set(table)) != 1:
            raise self.fail(place, "has either programs or imports")
        try:
            versions = SpecifierSet(table["tensorflow"])
        except InvalidSpecifier as error:
            raise self.fail(place, str(error)) from error
        if not table["reason"].strip():
            raise self.fail(place, "has no reason")
        names = (
            importing(table["imports"])
            if "imports" in table
            else self.texts(f"{place}: programs", table["programs"])
        )
        return Lack(names, versions, table["reason"])

    def members(
        self, place: str, table: Any, wanted: Mapping[str, type], optional: Iterable[str] = ()
    ) -> None:
        if not isinstance(table, dict):
            raise self.fail(place, "is not a table")
        unknown = sorted(set(table) - set(wanted))
        if unknown:
            raise self.fail(place, f"unknown {', '.join(unknown)}")
        for name, kind in wanted.items():
            if name not in table and name not in optional:
                raise self.fail(place, f"has no {name}")
            if name in table and not isinstance(table[name], kind):
                raise self.fail(place, f"{name} is not of type {kind.__name__}")

    def texts(self, place: str, values: list[Any]) -> tuple[str, ...]:
        if not values or not all(isinstance(value, str) and value for value in values):
            raise self.fail(place, "is not a list of strings, or is empty")
        return tuple(values)

    def requirement(self, place: str, text: str) -> Requirement:
        try:
            return Requirement(text)
        except InvalidRequirement as error:
            raise self.fail(place, f"{text!r}: {error}") from error

    def version(self, place: str, text: str) -> Version:
        try:
            version = Version(text)
        except InvalidVersion as error:
            raise self.fail(place, str(error)) from error
        if len(version.release) != 3:
            raise self.fail(place, f"tensorflow is {text!r}, not like 2.12.1")
        return version

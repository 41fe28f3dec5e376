"""Read a plug-in from a table: part of a TOML file, or returned by an entry point.

Every error names the place.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from compat_matrix.cases import CHECKS, CLAUSE
from compat_matrix.cases import NAME as CASE_NAME
from compat_matrix.cells.consumers import CAPABILITY_OF_KIND, Consumer
from compat_matrix.cells.producers import Export, Producer
from compat_matrix.cells.registry import PluginError, usable_name
from compat_matrix.runtimes.locked import Environment
from compat_matrix.runtimes.programs import PYTHON, WORKERS, Program

CAPABILITIES = (
    "functions",
    "resave",
    "variables",
    "describe",
    "fetch",
    "tags",
    "threads",
    "stored",
)
EXPORTER = "exporter_worker"  # puts an exporter's command line behind the protocol
CONSUMER_FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "command": (list, str), "summary": str, "version": str, "capabilities": list, "checks": list,
    "environment": dict, "python": str, "lock": str, "tensorflow": bool, "tolerance": dict,
}  # fmt: skip
PRODUCER_FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "command": (list, str), "summary": str, "version": str, "exports": (list, dict),
    "artifacts": str, "environment": dict, "python": str, "lock": str, "tensorflow": bool,
}  # fmt: skip
EXPORT_FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "title": str, "clauses": list, "features": list, "kinds": list, "checks": list, "timeout": (int,
    float), "requires": str,
}  # fmt: skip


class Table:
    """One table, read field by field.

    ``where`` names it in errors; its paths are relative to ``folder``.
    """

    def __init__(
        self, where: str, data: Any, folder: Path, fields: Mapping[str, type | tuple[type, ...]]
    ) -> None:
        self.where, self.folder = where, folder
        if not isinstance(data, Mapping):
            raise self.error(f"is a {type(data).__name__}, not a table")
        unknown = sorted(set(data) - set(fields))
        if unknown:
            raise self.error(f"unknown field {unknown[0]!r} (known: {', '.join(fields)})")
        for name, value in data.items():
            if not isinstance(value, fields[name]) or (
                isinstance(value, bool) and fields[name] is not bool
            ):
                raise self.error(f"{name} has the wrong type, {type(value).__name__}")
        self.data = dict(data)

    def error(self, why: str) -> PluginError:
        return PluginError(f"{self.where}: {why}")

    def texts(self, name: str, known: Any = None) -> tuple[str, ...] | None:
        """Return a list of strings, restricted to ``known`` if given; None for an absent field."""
        if name not in self.data:
            return None
        values = self.data[name]
        for value in values:
            if (
                not isinstance(value, str)
                or not value
                or (known is not None and value not in known)
            ):
                allowed = f"; known: {', '.join(known)}" if known is not None else ""
                raise self.error(f"{name} holds {value!r}{allowed}")
        return tuple(values)

    def version(self) -> str | None:
        """Return the field ``version``, which must be usable in a cell id."""
        value = self.data.get("version")
        try:
            return None if value is None else str(Version(value)) and value
        except InvalidVersion as error:
            raise self.error(f"version: {error}") from error

    def command(self) -> tuple[str, ...]:
        """Return the words of the command.

        Relative paths of files below the folder become absolute: workers run elsewhere.
        """
        given = self.data.get("command")
        words = shlex.split(given) if isinstance(given, str) else list(self.texts("command") or ())
        if not words:
            raise self.error("has no command")
        return tuple(self.absolute(word) for word in words)

    def absolute(self, word: str) -> str:
        path = self.folder / word
        return (
            str(path.resolve())
            if not Path(word).is_absolute() and "/" in word + "/" and path.is_file()
            else word
        )

    def environment(self) -> tuple[tuple[str, str], ...]:
        pairs = dict(self.data.get("environment", {}))
        if not all(isinstance(value, str) for value in pairs.values()):
            raise self.error("environment: values are strings")
        if (
            not self.in_runtimes
            and not {"python", "lock"} & set(self.data)
            and os.environ.get("PYTHONPATH")
        ):
            pairs.setdefault(
                "PYTHONPATH", os.environ["PYTHONPATH"]
            )  # the plug-in may share the interpreter of the harness
        return tuple(sorted(pairs.items()))

    def interpreter(self) -> str:
        """Return the meaning of ``{python}``: the field ``python``, or "" for the runtime's
        interpreter.

        A plug-in with its own version has its own interpreter: the one that runs the harness,
        unless another is named.
        """
        named = self.data.get("python", "")
        if "lock" in self.data:
            return ""
        if named:
            found = self.folder / named
            if not found.is_file():
                raise self.error(
                    f"python: there is no interpreter {named} (with a lock, python is a version,"
                    " 3.11)"
                )
            return str(found.absolute())
        return "" if self.in_runtimes else sys.executable

    def lock(self) -> tuple[str, str] | tuple[()]:
        """Return the environment of ``{python}`` named by the field ``lock``; it is created on
        first use.
        """
        if "lock" not in self.data:
            return ()
        made = Environment.of(
            self.folder / self.data["lock"], self.data.get("python", ""), self.error
        )
        return str(made.lock), made.version

    @property
    def in_runtimes(self) -> bool:
        """Return whether the plug-in is started in each TensorFlow runtime of a plan and takes the
        runtime's version.
        """
        return bool(self.data.get("tensorflow", False))


def consumer(name: str, data: Any, folder: Path, where: str) -> Consumer:
    """Return the consumer of a table.

    Missing version and capabilities are asked by :func:`.probe.asked` later.

    Raises :class:`PluginError`.
    """
    table = Table(where, data, folder, CONSUMER_FIELDS)
    _named(table, "consumer", name)
    capabilities = table.texts("capabilities", CAPABILITIES)
    checks = table.texts("checks", CHECKS)
    known = None if capabilities is None else frozenset(capabilities)
    program = Program(
        f"plugin-{name}",
        table.command(),
        table.environment(),
        table.interpreter(),
        table.lock(),
        table.version(),
        capabilities=known,
    )
    return Consumer(
        name,
        program,
        known or frozenset(),
        table.data.get("summary", f"`{program}`"),
        None if checks is None else frozenset(checks),
        table.version(),
        _tolerance(table),
    )


def producer(name: str, data: Any, folder: Path, where: str) -> Producer:
    """Return the producer of a table: a folder of existing artifacts, or a command and its exports.

    Raises :class:`PluginError`.
    """
    table = Table(where, data, folder, PRODUCER_FIELDS)
    _named(table, "producer", name)
    summary = table.data.get("summary", "")
    if "artifacts" in table.data:
        given = (folder / table.data["artifacts"]).resolve()
        if not given.is_dir() or set(table.data) - {"artifacts", "summary"}:
            raise table.error(
                f"artifacts: no folder {given}"
                if not given.is_dir()
                else "artifacts need no further fields"
            )
        return Producer(
            name,
            None,
            frozenset(),
            summary or f"artifacts in {given.name}",
            usual=False,
            artifacts=given,
        )
    words, version = table.command(), table.version()
    if version is None and not table.in_runtimes:
        raise table.error(
            'has no version (version = "1.0"; or tensorflow = true, where it is the runtime\'s)'
        )
    exports = _exports(table, words)
    program = Program(
        f"plugin-{name}",
        (sys.executable, WORKERS, EXPORTER, *words),
        table.environment(),
        table.interpreter(),
        table.lock(),
    )
    return Producer(
        name, program, frozenset({"produce"}), summary or f"`{program}`", False, version, exports
    )


def _named(table: Table, kind: str, name: str) -> None:
    why = usable_name(kind, name)
    if why:
        raise table.error(why)
    if table.in_runtimes and {"version", "lock"} & set(table.data):
        raise table.error(
            "tensorflow = true says that the version and the interpreter are the runtime's: no"
            " version, no lock"
        )


def _exports(table: Table, words: tuple[str, ...]) -> tuple[Export, ...]:
    given = table.data.get("exports")
    named = (
        {name: {} for name in table.texts("exports") or ()}
        if isinstance(given, list)
        else dict(given or {})
    )
    if not named:
        raise table.error("has no exports: the names of the models that it writes")
    script = next(
        (Path(word) for word in words if word not in (PYTHON, WORKERS) and Path(word).is_file()),
        None,
    )
    if script is None:
        raise table.error(f"no word of the command is a file: {' '.join(words)}")
    # `{python} export.py`: the script after the interpreter identifies the exporter.
    script = next((Path(word) for word in words[1:] if Path(word).is_file()), script)
    found = []
    for name, data in named.items():
        one = Table(f"{table.where}: export {name}", data, table.folder, EXPORT_FIELDS)
        if not CASE_NAME.match(name):
            raise one.error("the name must be lower case letters, digits and underscores")
        if any(not CLAUSE.match(word) for word in one.texts("clauses") or ()):
            raise one.error("clauses are ids like FN-07")
        found.append(
            Export(
                name,
                script,
                one.data.get("title", f"{name} of {script.name}"),
                one.texts("clauses") or (),
                one.texts("features") or (),
                one.texts("kinds", CAPABILITY_OF_KIND) or ("signature",),
                one.texts("checks", CHECKS),
                one.data.get("timeout"),
                _requirement(one),
            )
        )
    return tuple(found)


def _tolerance(table: Table) -> tuple[float, float, str] | None:
    """Return the consumer's own tolerance, whatever the artifact allows, and the reason: it
    computes differently.
    """
    given = table.data.get("tolerance")
    if given is None:
        return None
    one = Table(
        f"{table.where}: tolerance",
        given,
        table.folder,
        {"rtol": (int, float), "atol": (int, float), "reason": str},
    )
    bounds = [float(one.data.get(name, 0)) for name in ("rtol", "atol")]
    if not all(0 <= bound < math.inf for bound in bounds) or not any(bounds):
        raise one.error(f"rtol and atol are {bounds[0]:g} and {bounds[1]:g}")
    if not str(one.data.get("reason", "")).strip():
        raise one.error("has no reason")
    return bounds[0], bounds[1], one.data["reason"]


def _requirement(table: Table) -> str | None:
    text = table.data.get("requires")
    try:
        return None if text is None else str(Requirement(text))
    except InvalidRequirement as error:
        raise table.error(f"requires: {error}") from error

"""Find plug-ins: entry points of installed distributions, a TOML file, words of a command line."""

from __future__ import annotations

import importlib.metadata
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compat_matrix.cells.consumers import Consumer
from compat_matrix.cells.producers import Producer
from compat_matrix.cells.registry import OURS, UNKNOWN, PluginError, Registry, usable_name
from compat_matrix.plugins import probe, tables
from compat_matrix.runtimes import programs
from compat_matrix.runtimes.programs import PYTHON, Program
from compat_matrix.workers import protocol
from savedmodel_common import toml
from savedmodel_common.printable import unknown

CONSUMERS_GROUP, PRODUCERS_GROUP = "savedmodel_compat.consumers", "savedmodel_compat.producers"
FILE_SCHEMA = 1
TOOL = "savedmodel-compat"  # the table of a pyproject.toml
# kind -> how its table is read, the field that ``NAME=VALUE`` stands for, its entry points, ours
_KINDS: Mapping[str, tuple[Any, str, str, Mapping[str, Any]]] = {
    "consumer": (tables.consumer, "command", CONSUMERS_GROUP, OURS.consumers),
    "producer": (tables.producer, "artifacts", PRODUCERS_GROUP, OURS.producers),
}


@dataclass(frozen=True)
class Asked:
    """Plug-in options of a command line: words of ``--consumer`` and ``--producer``, and the file
    of ``--plugins``.

    ``consumers`` None: no consumers are wanted, not even those of the file.
    """

    consumers: tuple[str, ...] | None = ()
    producers: tuple[str, ...] = ()
    file: Path | None = None


def registry(asked: Asked, folder: Path | None = None) -> Registry:
    """Return our plug-ins, all plug-ins of the file, and those named by the caller, each with its
    version and capabilities.

    A name is looked up in the file (else in the ``pyproject.toml`` of ``folder``, by default the
    current one), then among the entry points. ``NAME=COMMAND`` defines a consumer, ``NAME=FOLDER``
    a producer whose artifacts exist.

    Raises :class:`PluginError`. A plug-in that is found but cannot be imported or started is still
    in the registry: only its own cells fail, with the reason.
    """
    folder = folder or Path.cwd()
    declared = _of_file(asked.file) if asked.file else _of_project(folder)
    consumers = [] if asked.file is None or asked.consumers is None else list(declared.consumers)
    producers = [] if asked.file is None else list(declared.producers)
    for word in asked.consumers or ():
        consumers += _asked("consumer", word, folder, declared, {one.name for one in consumers})
    for word in asked.producers:
        producers += _asked("producer", word, folder, declared, {one.name for one in producers})
    ledgers = declared.ledgers if consumers or producers else ()
    return OURS.having([probe.asked(one) for one in consumers], producers, ledgers)


def names(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a command line without their commands: ``NAME=COMMAND`` becomes
    ``NAME``.
    """
    return tuple(word.partition("=")[0] for word in words)


@dataclass(frozen=True)
class _Declared:
    consumers: tuple[Consumer, ...] = ()
    producers: tuple[Producer, ...] = ()
    ledgers: tuple[Path, ...] = ()


def _of_project(folder: Path) -> _Declared:
    path = folder / "pyproject.toml"
    if not path.is_file():
        return _Declared()
    return _read(path, _toml(path).get("tool", {}).get(TOOL), f"{path}: tool.{TOOL}")


def _of_file(path: Path) -> _Declared:
    data = _toml(path)
    if path.name == "pyproject.toml":
        data = data.get("tool", {}).get(TOOL, {})
    return _read(path, data, str(path))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return toml.read(path)
    except (OSError, ValueError) as error:
        raise PluginError(f"{path}: {error}") from error


def _read(path: Path, data: Any, where: str) -> _Declared:
    if data is None:
        return _Declared()
    known = {"schema": int, "consumer": dict, "producer": dict, "expectations": str}
    table = tables.Table(where, data, path.parent, known)
    if table.data.get("schema", FILE_SCHEMA) != FILE_SCHEMA:
        raise table.error(f"schema is {table.data['schema']}, this program reads {FILE_SCHEMA}")
    plugins: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    for kind, (made, *_) in _KINDS.items():
        for name, content in table.data.get(kind, {}).items():
            plugins[kind].append(made(name, content, path.parent, f"{where}: {kind} {name}"))
    ledger = table.data.get("expectations")
    if ledger and not (path.parent / ledger).is_file():
        raise table.error(f"expectations: there is no file {ledger}")
    return _Declared(
        tuple(plugins["consumer"]),
        tuple(plugins["producer"]),
        (path.parent / ledger,) if ledger else (),
    )


def _asked(kind: str, word: str, folder: Path, declared: _Declared, already: set[str]) -> list[Any]:
    """Return the plug-ins that a word of ``--consumer`` or ``--producer`` (``kind``) adds to ours
    and to ``already``.
    """
    made, fieldname, group, ours = _KINDS[kind]
    name, equals, value = word.partition("=")
    if equals:
        return [made(name, {fieldname: value}, folder, f"--{kind} {word}")]
    if name in already or name in ours:
        return []
    own = [one for one in getattr(declared, f"{kind}s") if one.name == name]
    return own or [_of_entry_point(kind, point) for point in points(group) if point.name == name]


def points(group: str) -> list[importlib.metadata.EntryPoint]:
    """Return the entry points of a group, by name.

    A name used by two distributions keeps both and is an error when requested.
    """
    found: Any = importlib.metadata.entry_points()
    chosen = (
        found.select(group=group) if hasattr(found, "select") else found.get(group, [])
    )  # Python 3.9 has a mapping
    return sorted(set(chosen), key=lambda point: (point.name, point.value))


def _of_entry_point(kind: str, point: importlib.metadata.EntryPoint) -> Any:
    """Return the plug-in of an entry point.

    If it cannot be imported or is not a plug-in, return a plug-in that does not start.
    """
    where = described(point)
    why = usable_name(kind, point.name)
    if why:
        raise PluginError(f"{where}: {why}")
    try:
        return _made(kind, point, where)
    except PluginError as error:
        reason = str(error)
    except Exception as error:  # a third-party module may raise anything on import
        reason = f"{where}: cannot be imported: {type(error).__name__}: {error}"
    program = Program(f"plugin-{point.name}", broken=reason)
    if kind == "consumer":
        return Consumer(point.name, program, frozenset(), reason, version=UNKNOWN)
    return Producer(
        point.name, program, frozenset({"produce"}), reason, usual=False, version=UNKNOWN
    )


def described(point: importlib.metadata.EntryPoint) -> str:
    """Return the name of an entry point in messages."""
    distribution = getattr(point, "dist", None)
    of = (
        f" of {distribution.metadata['Name']} {distribution.version}"
        if distribution is not None
        else ""
    )
    return f"entry point {point.group}: {point.name} = {point.value}{of}"


def _made(kind: str, point: importlib.metadata.EntryPoint, where: str) -> Any:
    value = point.load()
    if isinstance(value, type) and issubclass(value, protocol.Worker):
        if kind != "consumer":
            raise PluginError(
                f"{where}: a Worker is a consumer; a producer is a table with a command and its"
                " exports"
            )
        value = {"command": [PYTHON, "-m", "compat_matrix.plugins.serve", point.value]}
    elif callable(value):
        value = value()
    if not isinstance(value, Mapping):
        raise PluginError(
            f"{where}: is a {type(value).__name__}; it must be a table, a function that returns"
            " one, or a Worker"
        )
    module = sys.modules.get(point.value.partition(":")[0])
    folder = Path(getattr(module, "__file__", None) or ".").parent
    return _KINDS[kind][0](point.name, value, folder, where)


def command_of(word: str, file: Path | None = None) -> Program:
    """Return the program for ``plugin-check``: a consumer of ``file``, of ``pyproject.toml`` or an
    entry point, or a command line.

    Raises :class:`PluginError`.
    """
    folder = Path.cwd()
    if not any(character in word for character in " /.="):
        declared = _of_file(file) if file else _of_project(folder)
        for one in _asked("consumer", word, folder, declared, set()):
            assert isinstance(one.program, Program)
            return one.program
        if word in OURS.consumers:
            return programs.of(OURS.consumers[word].program)
        if word.isidentifier() and shutil.which(word) is None:
            raise PluginError(
                f"{word!r} is not a program, and {unknown('consumer', [word], OURS.consumers)}"
            )
    try:
        shlex.split(word)
    except ValueError as error:
        raise PluginError(f"{word!r} is not a command line: {error}") from error
    one = tables.consumer("checked", {"command": word}, folder, word)
    assert isinstance(one.program, Program)
    return replace(one.program, name="plugin")

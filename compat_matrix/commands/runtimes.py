"""Install, list and check TensorFlow releases on this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from compat_matrix.commands.parts import completion
from compat_matrix.commands.parts.refusing import refusing_trouble
from compat_matrix.runtimes import places, registry
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import json_option
from savedmodel_common.command_line.groups import Group
from savedmodel_common.writing import discard


@click.group(cls=Group)
def runtimes() -> None:
    """Install, list and check TensorFlow runtimes. Each is an environment of its own, made by uv in
    SAVEDMODEL_COMPAT_HOME (default: in the user's cache).

    A RUNTIME is a release of the registry (tf2.12, 2.12, 2.12.1), a requirement
    ("tensorflow==2.21.0rc1", or "tensorflow==2.21.0rc1 @3.12" for one Python), a wheel, or an
    existing interpreter.
    """


@claims(
    green="the runtimes are listed",
    asked="nothing is started",
    not_asked="whether they work (`runtimes doctor`)",
)
@runtimes.command("list")
@json_option()
@refusing_trouble()
def list_runtimes(as_json: bool) -> None:
    """List the runtimes, consumers and producers. Nothing is started.

    \b
    Examples:
      savedmodel-compat runtimes list
    """
    from compat_matrix.cells.consumers import CONSUMERS
    from compat_matrix.cells.producers import PRODUCERS

    rows = _rows(registry.read())
    programs = {"consumers": _described(CONSUMERS), "producers": _described(PRODUCERS)}
    if as_json:
        listed = {"schema": 1, "home": str(places.home()), "runtimes": rows, **programs}
        click.echo(json.dumps(listed, indent=1))
        return
    for row in rows:
        state = row.get("why_not") or (
            f"installed, {_size(row['bytes'])}" if "bytes" in row else row["interpreter"]
        )
        click.echo(
            f"{row['name']:<10} TensorFlow {row['tensorflow'] or 'none':<8} Python"
            f" {row['python']:<8} {state}"
        )
    for reason, names in _reasons(rows).items():
        click.echo(f"{reason}:")
        click.echo(f"  {names}")
    for title, members in programs.items():
        click.echo(f"{title}:")
        for name, member in members.items():
            click.echo(f"  {name:<12} {member['summary']}")
            if member["capabilities"]:
                click.echo(f"  {'':<12} can: {', '.join(member['capabilities'])}")


def _size(found: Mapping[str, int]) -> str:
    own, shared = (round(found.get(part, 0) / 1e6) for part in ("own", "shared"))
    return f"{own} MB, {shared} MB shared with uv's cache"


def _reasons(rows: list[dict[str, Any]]) -> dict[str, str]:
    """``{"without PROGRAMS (REASON)": names of the runtimes}``: many have one reason."""
    by: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        for reason in dict.fromkeys(row["lacks"].values()):
            programs = ", ".join(name for name, why in row["lacks"].items() if why == reason)
            by.setdefault((programs, reason), []).append(row["name"])
    return {
        f"without {programs} ({reason})": " ".join(names)
        for (programs, reason), names in by.items()
    }


def _described(table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what the list says of consumers or producers."""
    return {
        name: {"summary": one.summary, "capabilities": sorted(one.capabilities)}
        for name, one in table.items()
    }


def _rows(known: registry.Registry) -> list[dict[str, Any]]:
    """One row for the local runtime, each of the registry and each ad-hoc one that is installed."""
    import platform

    from compat_matrix.runtimes import provision, records, resolve, wanted

    local = resolve.resolve("local", known)
    out = [
        _row(
            "local",
            "local",
            local.tensorflow_version,
            platform.python_version(),
            local.lacks,
            interpreter=str(local.python),
        )
    ]
    for stanza in known.stanzas.values():
        lacks = known.lacks(stanza.tensorflow)
        try:
            target = wanted.of_stanza(stanza)
            out.append(_installed(target.place, provision.installed(target), lacks))
        except (records.Untrue, registry.RegistryError) as why:
            out.append(
                _row(
                    stanza.name,
                    stanza.name,
                    stanza.tensorflow,
                    stanza.python,
                    lacks,
                    why_not=str(why),
                )
            )
    for place, record in records.ad_hoc(places.environments()).items():
        out.append(_installed(place, record, known.lacks(record.tensorflow)))
    return out


def _installed(place: Path, record: Any, lacks: Mapping[str, str]) -> dict[str, Any]:
    from compat_matrix.runtimes import records

    row = _row(
        record.name,
        record.spec,
        record.tensorflow,
        record.python,
        {**lacks, **record.lacks},
        installed=True,
    )
    details = {
        "interpreter": str(records.interpreter(place)),
        "versions": record.versions,
        "seconds": record.seconds,
    }
    return {**row, **details, "bytes": record.bytes, "locked": record.locked is not None}


def _row(
    name: str, spec: str, tensorflow: str | None, python: str, lacks: Mapping[str, str], **more: Any
) -> dict[str, Any]:
    row = {
        "name": name,
        "spec": spec,
        "tensorflow": tensorflow,
        "python": python,
        "installed": name == "local",
    }
    return {**row, "lacks": dict(lacks), **more}


@claims(
    green="every environment is complete, and its worker started and said its version",
    asked="one worker of each environment",
    not_asked="models; the C++ loader without --native",
)
@runtimes.command()
@click.argument(
    "names",
    metavar="[RUNTIME]...",
    nargs=-1,
    shell_complete=completion.runtimes_to_install,
)
@click.option(
    "--jobs", default=2, show_default=True, type=click.IntRange(1), help="Installations at a time."
)
@click.option("--again", is_flag=True, help="Install again what is installed.")
@click.option(
    "--native",
    "with_native",
    is_flag=True,
    help="Compile the C++ loader for each, where the wheel allows it.",
)
@refusing_trouble()
def install(
    names: tuple[str, ...],
    jobs: int,
    again: bool,
    with_native: bool,
) -> int:
    """Install TensorFlow runtimes, each in an environment of its own.

    `all` stands for every runtime of the registry. "NAME @X.Y" chooses the Python of a requirement,
    by default the newest that fits. A complete environment is kept. An interrupted installation is
    not used.

    \b
    Examples:
      savedmodel-compat runtimes install 2.15
      savedmodel-compat runtimes install tensorflow==2.20.0 2.12
      savedmodel-compat runtimes install 'tensorflow==2.21.0rc1 @3.12'
    """
    from compat_matrix.commands.parts.runtimes_install import install_all
    from compat_matrix.runtimes.native import build as native

    known = registry.read()
    if not names:
        raise click.UsageError("name a runtime; `all` stands for every runtime of the registry")
    specs = list(known.stanzas) if names == ("all",) else list(names)
    return install_all(
        specs, known, jobs=jobs, again=again, steps=[native.provide] if with_native else []
    )


@claims(
    green="the environments are gone", asked="nothing", not_asked="nothing: it compares nothing"
)
@runtimes.command()
@click.argument("names", metavar="[RUNTIME]...", nargs=-1, shell_complete=completion.runtimes)
@click.option(
    "--stale",
    is_flag=True,
    help="Remove environments that an older registry or a killed installation left.",
)
@refusing_trouble()
def remove(names: tuple[str, ...], stale: bool) -> None:
    """Remove runtimes. The packages stay in the cache of uv.

    \b
    Examples:
      savedmodel-compat runtimes remove tf2.15
    """
    from compat_matrix.runtimes import wanted

    known = registry.read()
    if not names and not stale:
        raise click.UsageError("name a runtime, or --stale")
    gone = []
    for name in names:
        target = wanted.parse(name, known)
        if isinstance(target, Path):
            raise places.UnknownRuntime(f"{name} was not installed by this program and stays")
        gone.append((target.name, target.place))
    gone += [(place.name, place) for place in _stale(known)] if stale else []
    for name, place in gone:
        click.echo(f"{name}: {'removed' if place.exists() else 'was not installed'}")
        discard(place)


def _stale(known: registry.Registry) -> list[Path]:
    """Folders among the environments that stand for no runtime of today."""
    from compat_matrix.runtimes import records, wanted

    kept = {
        wanted.of_stanza(stanza).place for stanza in known.stanzas.values() if stanza.lock.exists()
    }
    kept |= set(records.ad_hoc(places.environments()))
    return [
        place for place in map(Path, sorted(places.environments().glob("*/"))) if place not in kept
    ]

"""List, install and remove the TensorFlow runtimes of this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from compat_matrix.commands.parts.refusing import refusing_trouble
from compat_matrix.runtimes import places, registry
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.groups import Group
from savedmodel_common.writing import discard


@click.group(cls=Group)
def runtimes() -> None:
    """The TensorFlow runtimes: environments that uv makes in the folder SAVEDMODEL_COMPAT_HOME
    (else in the user's cache).

    A runtime is named by its entry in the registry (tf2.12, 2.12, 2.12.1), by a requirement
    ("tensorflow==2.21.0rc1", with " @3.12" for a certain Python), by the path of a wheel, or by the
    path of an interpreter that exists.
    """


@claims(
    green="the runtimes are listed",
    asked="nothing is started",
    not_asked="whether they work (`runtimes doctor`)",
)
@runtimes.command("list")
@click.option("--json", "as_json", is_flag=True, help="Everything that is known of them, as JSON.")
@refusing_trouble()
def list_runtimes(as_json: bool) -> None:
    """Show the runtimes, the consumers and the producers, without starting anything.

    \b
    Examples:
      savedmodel-compat runtimes list
    """
    from compat_matrix.cells.consumers import CONSUMERS
    from compat_matrix.cells.producers import PRODUCERS

    rows = _rows(registry.read())
    programs = {
        title: {
            name: {"summary": one.summary, "capabilities": sorted(one.capabilities)}
            for name, one in table.items()
        }
        for title, table in (("consumers", CONSUMERS), ("producers", PRODUCERS))
    }
    if as_json:
        click.echo(
            json.dumps(
                {"schema": 1, "home": str(places.home()), "runtimes": rows, **programs}, indent=1
            )
        )
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
@click.argument("names", metavar="[RUNTIME]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All of the registry.")
@click.option(
    "--jobs", default=2, show_default=True, type=click.IntRange(1), help="Installations at a time."
)
@click.option("--again", is_flag=True, help="Make anew what is installed.")
@click.option(
    "--python",
    "python",
    metavar="X.Y",
    help="The Python of ad-hoc runtimes; the newest that fits without it.",
)
@click.option(
    "--native",
    "with_native",
    is_flag=True,
    help="Compile the C++ loader for each, where the wheel allows it.",
)
@refusing_trouble()
def install(
    names: tuple[str, ...],
    everything: bool,
    jobs: int,
    again: bool,
    python: str | None,
    with_native: bool,
) -> int:
    """Make environments.

    A complete environment is kept; an interrupted installation leaves nothing that counts.

    \b
    Examples:
      savedmodel-compat runtimes install 2.15
      savedmodel-compat runtimes install tensorflow==2.20.0 2.12
    """
    from compat_matrix.commands.parts.runtimes_install import install_all
    from compat_matrix.runtimes.native import build as native

    known = registry.read()
    specs = [name if python is None or known.find(name) else f"{name} @{python}" for name in names]
    specs += list(known.stanzas) if everything else []
    if not specs:
        raise click.UsageError("name a runtime, or --all")
    return install_all(
        specs, known, jobs=jobs, again=again, steps=[native.provide] if with_native else []
    )


@claims(
    green="the environments are gone", asked="nothing", not_asked="nothing: it compares nothing"
)
@runtimes.command()
@click.argument("names", metavar="[RUNTIME]...", nargs=-1)
@click.option(
    "--stale",
    is_flag=True,
    help="Environments that an older registry or a killed installation left.",
)
@refusing_trouble()
def remove(names: tuple[str, ...], stale: bool) -> None:
    """Remove environments; uv's cache keeps its packages.

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

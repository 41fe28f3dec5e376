"""Options about plug-ins, and what follows for the plan, the ledger and the command that repeats a
cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from compat_matrix.cells.plan import SERVING, STANDIN, Plan
from compat_matrix.cells.registry import Registry
from compat_matrix.commands.parts.refusing import Refused
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import unknown

THIRD_PARTY = Path(__file__).resolve().parents[3] / "third_party" / "plugins.toml"


class _PluginsFile(click.Path):
    """A file, or the word for the one that comes along."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value != "third-party":
            return super().convert(value, param, ctx)
        if not THIRD_PARTY.is_file():
            self.fail(
                "third parties are not part of the wheel. Run this from a checkout: tox -e"
                " third-party",
                param,
                ctx,
            )
        return THIRD_PARTY


def plugin_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the option for a file that declares plug-ins."""
    text = (
        "A TOML file with plug-ins (docs/exporters/plugins.md), which are planned too;"
        " pyproject.toml's are asked for by name. `third-party`: those that come along"
        " (third_party/README.md)."
    )
    kind = _PluginsFile(exists=True, dir_okay=False, path_type=Path)
    return click.option("--plugins", type=kind, metavar="FILE", help=text)(function)


def asked_plugins(
    consumers: Sequence[str] | None, producers: Sequence[str], file: Path | None
) -> Registry:
    """Ours and the plug-ins a command line asks for; ``consumers`` None: no consumers.

    Raises Refused.
    """
    from compat_matrix.cells.registry import PluginError
    from compat_matrix.plugins import found
    from compat_matrix.runtimes.places import RuntimeTrouble

    try:
        registry = found.registry(
            found.Asked(None if consumers is None else tuple(consumers), tuple(producers), file)
        )
    except PluginError as error:
        raise Refused(str(error), ExitCode.USAGE) from error
    except RuntimeTrouble as error:
        raise Refused(str(error), ExitCode.HARNESS_ERROR) from error
    known = {*registry.consumers, SERVING, STANDIN}
    for name in found.names(consumers or ()):
        if re.fullmatch(r"\w+", name) and name not in known:
            more = (
                "a plug-in is declared by --plugins FILE, in pyproject.toml or by an entry point"
                " (docs/exporters/plugins.md)"
            )
            raise Refused(f"{unknown('consumer', [name], sorted(known))} ({more})", ExitCode.USAGE)
    return registry


@dataclass(frozen=True)
class Chosen:
    """The producers and consumers of a command line: all there are, the selected ones, and the
    words that select them.

    ``selectors``: axis -> names, of ``NAME=COMMAND`` the name; ``words``: the options that plan the
    same plug-ins again.
    """

    registry: Registry
    selectors: dict[str, tuple[str, ...]]
    words: tuple[str, ...]

    @classmethod
    def of(cls, selectors: Mapping[str, tuple[str, ...]], file: Path | None) -> Chosen:
        """``selectors``: the options as they were given, ``file`` that of ``--plugins``.

        Raises Refused.

        Without ``consumer`` among the selectors no plug-in is one.
        """
        from compat_matrix.plugins.found import names

        registry = asked_plugins(selectors.get("consumer"), selectors["producer"], file)
        named = {
            side: names(selectors[side]) for side in ("consumer", "producer") if side in selectors
        }
        return cls(registry, {**selectors, **named}, tuple(_words(selectors, file, registry)))


def _words(
    selectors: Mapping[str, Sequence[str]], file: Path | None, registry: Registry
) -> list[str]:
    """The options that plan the same plug-ins again, for the command line that repeats a cell
    wherever it is typed.
    """
    out = ["--plugins", str(file.resolve())] if file else []
    for side, known in (("consumer", registry.consumers), ("producer", registry.producers)):
        for word in selectors.get(side, ()):
            name, equals, _ = word.partition("=")
            if equals:
                one: Any = known[name]
                out += [f"--{side}", f"{name}={getattr(one, 'artifacts', None) or one.program}"]
            elif name in _entry_points(side):
                out += [f"--{side}", name]
    return out


def _entry_points(side: str) -> set[str]:
    from compat_matrix.plugins import found

    return {point.name for point in found.points(f"savedmodel_compat.{side}s")}


def about_plugins(made: Plan, out: Path) -> Plan:
    """The cells of plug-ins, in a plan that has any: a ledger of somebody else's speaks of those,
    and ours of the others.

    Whom a run left out is not in it: entries about others wait for another run.
    """
    from compat_matrix.cells import registry
    from compat_matrix.cells.run_file import RunFile
    from compat_matrix.engine import running

    consumers, producers = registry.read(out).theirs
    theirs = {one.name for one in consumers} | {one.name for one in producers}
    if not theirs:
        return made
    chosen = {
        side: names
        for side, names in RunFile.read(out).selection.items()
        if side in ("consumer", "producer")
    }
    wanted = running.select(made, chosen, ())
    cells = [cell for cell in made if {cell.consumer, cell.producer} & theirs]
    return Plan(
        tuple(cell for cell in cells if cell.id in wanted or cell.is_production), made.narrowed
    )

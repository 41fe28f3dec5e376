"""Values of the harness that a shell completes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from savedmodel_common.command_line.completion import Completer, names

ROOT = Path(__file__).parents[3]


def _cases(context: click.Context) -> Iterable[str]:
    """Return the cases of the user's folders, or the project's own."""
    files, artifacts = _folder(context, "cases"), _folder(context, "fixtures")
    if files or artifacts:
        return [*_in_files(files), *_in_artifacts(artifacts)]
    return [*_in_files(ROOT / "compat_matrix" / "cases"), *_in_artifacts(ROOT / "fixtures_v1")]


def _folder(context: click.Context, name: str) -> Path | None:
    """Return the folder that an option earlier in the line names."""
    found = context.params.get(name)
    return found if isinstance(found, Path) else None


def _in_files(folder: Path | None) -> list[str]:
    found = sorted(folder.glob("*.py")) if folder else []
    return [path.stem for path in found if not path.stem.startswith("_")]


def _in_artifacts(folder: Path | None) -> list[str]:
    return [path.parent.name for path in sorted(folder.glob("*/provenance.json"))] if folder else []


def _consumers(_: click.Context) -> Iterable[str]:
    from compat_matrix.cells.consumers import CONSUMERS
    from compat_matrix.plugins import found

    theirs = (point.name for point in found.points("savedmodel_compat.consumers"))
    return [*CONSUMERS, *theirs]


def _producers(_: click.Context) -> Iterable[str]:
    from compat_matrix.cells.producers import PRODUCERS
    from compat_matrix.plugins import found

    theirs = (point.name for point in found.points("savedmodel_compat.producers"))
    return [*PRODUCERS, *theirs]


def _checks(_: click.Context) -> Iterable[str]:
    from compat_matrix.checks import CHECKS, SERVE_CHECKS

    return [*CHECKS, *SERVE_CHECKS]


def _checks_of_exports(context: click.Context) -> Iterable[str]:
    from compat_matrix.exports import options

    return [*options.STILL, *_checks(context), *options.TOGETHER]


def _runtimes(_: click.Context) -> Iterable[str]:
    from compat_matrix.runtimes import registry
    from compat_matrix.runtimes.runtime import LOCAL

    return [LOCAL, *registry.read().stanzas]


def _runtime_names(of: Callable[[click.Context], Iterable[str]]) -> Completer:
    """Return a completer for `tf2.15`, and for `2.15` where the user begins with a digit."""
    whole = names(of)
    short = names(lambda context: (name.removeprefix("tf") for name in of(context)))

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return (short if incomplete[:1].isdigit() else whole)(context, parameter, incomplete)

    return complete


def _servers(context: click.Context) -> Iterable[str]:
    standins = (f"standin@{name}" for name in _runtimes(context))
    return ["standin", *standins, "binary", "remote:"]


def _contract_rules(_: click.Context) -> Iterable[str]:
    from savedmodel_tools.contract.rules import RULES

    return RULES


cases = names(_cases)
consumers = names(_consumers)
producers = names(_producers)
checks = names(_checks)
checks_of_exports = names(_checks_of_exports)
runtimes = _runtime_names(_runtimes)
runtimes_to_check = _runtime_names(lambda context: ["installed", *_runtimes(context)])
runtimes_to_install = _runtime_names(lambda context: ["all", *_runtimes(context)])
servers = names(_servers)
contract_rules = names(_contract_rules)

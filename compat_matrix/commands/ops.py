"""The recorded op registries of TensorFlow releases: ``python -m compat_matrix.commands.ops``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from compat_matrix.commands.parts.refusing import refusing_trouble
from savedmodel_common.command_line import programs
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import json_option
from savedmodel_common.command_line.groups import Group
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import counted, like, printable, told
from savedmodel_tools.commands.parts.models import (
    answers,
    model_arguments,
    one_release,
    tell_skipped,
)

if TYPE_CHECKING:
    from savedmodel_tools.find import Found
    from savedmodel_tools.skew.history import History, OpHistory


@click.group(cls=Group)
def ops() -> None:
    """Show and update the op registries of TensorFlow releases: ops, attrs, allowed values, CPU
    kernels.

    The table holds the registries of the official wheels (CPU, Linux x86_64) since 1.4.
    `savedmodel-compat compat` uses it to say which releases load a model.
    """


@claims(
    green="a release of the table has the op",
    asked="the recorded registries (CPU, Linux x86_64)",
    not_asked="GPU kernels, other platforms, ops of custom libraries",
    codes={ExitCode.UNEXPECTED: "no release has it"},
)
@ops.command()
@click.argument("name")
@json_option()
def show(name: str, as_json: bool) -> int:
    """Show which releases have the op NAME, and how it changed. Exit code 1 if none has it.

    \b
    Examples:
      python -m compat_matrix.commands.ops show StatefulPartitionedCall
    """
    from savedmodel_tools.skew import contrib
    from savedmodel_tools.skew.history import history

    table = history()
    op = table.op(name)
    if op is None:
        near = like(name, table.names)
        click.echo(
            f"no release of the table has an op called {printable(name, newlines=False)}.{near}",
            err=True,
        )
        return ExitCode.UNEXPECTED
    instead = contrib.replacement(name, op.library(op.members[-1])) if op.until else None
    if as_json:
        found = {"schema": 1, "op": name, "releases": op.span, "since": op.since, "until": op.until}
        more = {"replacement": instead._asdict() if instead else None, "history": table.line(name)}
        click.echo(json.dumps({**found, **more}))
        return 0
    click.echo("\n".join(_op_lines(op, table)))
    if instead:
        click.echo(f"  instead: {instead.text}")
    return 0


def _op_lines(op: OpHistory, table: History) -> list[str]:
    from savedmodel_tools.skew.advice import words
    from savedmodel_tools.skew.changes import attr_words, kernel_words

    newest = op.definition(op.members[-1])
    assert newest is not None
    lines = [f"{op.name}  {words(op.span)}", f"  {newest.signature}"]
    if newest.stateful:
        lines.append("  stateful")
    if newest.deprecated:
        lines.append(
            f"  deprecated for graphs of GraphDef version {newest.deprecated[0]} or newer:"
            f" {newest.deprecated[1]}"
        )
    libraries: dict[str, list[int]] = {}
    for index in op.members:
        libraries.setdefault(op.library(index), []).append(index)
    lines += [
        f"  in {words(table.text(found))} only after loading {library}"
        for library, found in libraries.items()
        if library
    ]
    for name in op.attr_names:
        members = op.attr_members(name)
        latest = op.definition(members[-1])
        attr = latest.attr(name) if latest else None
        assert attr is not None
        since = "" if members == op.members else f"   {words(table.text(members))}"
        lines.append(f"  attr {attr_words(attr)}{since}")
        lines += [f"    {text}" for text in _allowed_lines(op, name, table)]
    kernels = op.kernel_spans()
    told = [
        index for index in op.members if table.releases[index].has_kernels and not op.library(index)
    ]
    if told and not kernels:
        lines.append("  no CPU kernel")
    for members, group in kernels:
        lines += [
            f"  CPU kernel {text}   {words(table.text(members))}" for text in kernel_words(group)
        ]
    return lines


def _allowed_lines(op: OpHistory, name: str, table: History) -> list[str]:
    """The values an attr may have, those of the same releases together."""
    from savedmodel_tools.skew.advice import words

    members: dict[str, list[int]] = {}
    for index in op.attr_members(name):
        found = op.definition(index)
        attr = found.attr(name) if found else None
        for value in (attr.allowed or ()) if attr else ():
            members.setdefault(value, []).append(index)
    spans: dict[str, list[str]] = {}
    for value, indexes in members.items():
        spans.setdefault(table.text(indexes), []).append(value)
    return [f"{', '.join(values)}   {words(span)}" for span, values in spans.items()]


@claims(
    green="the changes are listed",
    asked="the recorded registries",
    not_asked="GPU kernels, other platforms",
)
@ops.command()
@click.argument("old")
@click.argument("new")
@json_option()
def diff(old: str, new: str, as_json: bool) -> None:
    """Show the changes of the registry between two releases.

    \b
    Examples:
      python -m compat_matrix.commands.ops diff 2.15 2.21
    """
    from savedmodel_tools.skew.changes import changes
    from savedmodel_tools.skew.history import history

    table = history()
    found = changes(table, one_release(old, table), one_release(new, table))
    if as_json:
        click.echo(
            json.dumps(
                {"schema": 1, "old": old, "new": new, "changes": [vars(change) for change in found]}
            )
        )
        return
    for change in found:
        click.echo(f"{change.op:<40} {change.kind:<13} {change.what}")
    click.echo(
        f"{counted(len(found), 'change')} of {counted(len({change.op for change in found}), 'op')}"
    )


@claims(
    green="each part has all its ops in one release at least",
    asked="the recorded registries: ops, attrs, values, dtypes, CPU kernels",
    not_asked="Python objects, checkpoints, libraries of custom ops (`compat` asks what loads)",
    codes={ExitCode.UNEXPECTED: "a part has its ops in no release, or a model cannot be read"},
)
@ops.command()
@model_arguments
@json_option(page="docs/contribute/internals.md")
@click.option("--full", is_flag=True, help="Show all that a release lacks.")
def needs(found: Found, follow_links: bool, as_json: bool, full: bool) -> int:
    """Show which releases have all ops of each part of the SavedModels MODELS.

    \b
    Examples:
      python -m compat_matrix.commands.ops needs model
    """
    from savedmodel_tools.needs_text import needs_lines
    from savedmodel_tools.skew.history import history
    from savedmodel_tools.skew.needs import needs as needs_of
    from savedmodel_tools.skew.needs import to_json

    table = history()
    code = ExitCode.UNEXPECTED if found.skipped else ExitCode.AS_EXPECTED
    described: list[dict[str, Any]] = []
    alone = len(found.models) == 1 and not found.skipped
    for model, answer in answers(
        found.models, lambda path: needs_of(path, follow_links=follow_links)
    ):
        graphs = [] if isinstance(answer, Exception) else answer
        if isinstance(answer, Exception):
            if alone:
                raise answer
            described.append({"path": model.name, "error": told(answer)})
            code = ExitCode.UNEXPECTED
        else:
            described.append({"path": model.name, **to_json(graphs, table)})
            for graph in graphs:
                if not all(part.members for part in graph.parts):
                    code = ExitCode.UNEXPECTED
        if as_json:
            continue
        if not alone:
            click.echo(
                printable(
                    ": ".join(filter(None, [model.name, described[-1].get("error")])),
                    newlines=False,
                )
            )
        for graph in graphs:
            for line in needs_lines(graph, table, full):
                click.echo(line)
    if as_json:
        one = (
            {key: value for key, value in described[0].items() if key != "path"} if alone else None
        )
        click.echo(
            json.dumps(
                one
                or {
                    "schema": 1,
                    "models": described,
                    "skipped": [item._asdict() for item in found.skipped],
                }
            )
        )
        return code
    tell_skipped(found.skipped)
    if not described:
        return code
    click.echo(
        "Only ops are looked at: not Python objects, checkpoints or libraries of custom ops."
    )
    if not all(release.has_kernels for release in table.releases):
        names = ", ".join(release.name for release in table.releases if not release.has_kernels)
        click.echo(f"The kernels of {names} are not known.")
    return code


@claims(
    green="the table is written",
    asked="the registries of the runtimes named, or of all that are installed",
    not_asked="runtimes that are not installed: each is listed",
)
@ops.command()
@click.argument("runtimes", metavar="[RUNTIME]...", nargs=-1)
@refusing_trouble()
def update(runtimes: tuple[str, ...]) -> None:
    """Write the table with the registry of each RUNTIME (default: all that are installed).

    Entries of other releases stay. For people who work on this project: it writes into the package.

    \b
    Examples:
      python -m compat_matrix.commands.ops update tf2.21
    """
    from compat_matrix.hosts import op_tables
    from compat_matrix.runtimes import registry
    from compat_matrix.runtimes.places import NotInstalled
    from compat_matrix.runtimes.resolve import installed

    found, known = [], registry.read()
    for spec in runtimes or tuple(known.stanzas):
        try:
            found.append(installed(spec, known))
        except NotInstalled as error:
            if runtimes:
                raise
            click.echo(f"kept as it is: {printable(str(error))}", err=True)
    text = op_tables.update(found, lambda line: click.echo(line, err=True))
    click.echo(f"{len(found)} runtimes asked; {len(text.splitlines()) - 1} ops, {len(text)} bytes")


if __name__ == "__main__":
    programs.run(ops)

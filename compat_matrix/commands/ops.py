"""Which TensorFlow knows which op, and how it changed.

Task: Compare TensorFlows
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from compat_matrix.commands.parts.refusing import refusing_trouble
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.groups import Group
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import counted, like, printable
from savedmodel_tools.commands.parts.models import one_release

if TYPE_CHECKING:
    from savedmodel_tools.skew.history import History, OpHistory


@click.group(cls=Group)
def ops() -> None:
    """Which TensorFlow knows which op, attr, value and kernel; `compat --ops` says which have all
    that a model needs.

    From the registries of genuine releases (CPU, Linux x86_64), 1.4 to the newest; what was not
    asked is not guessed.
    """


@claims(
    green="a release of the table has the op",
    asked="the recorded registries (CPU, Linux x86_64)",
    not_asked="GPU kernels, other platforms, ops of custom libraries",
    codes={ExitCode.UNEXPECTED: "no release has it"},
)
@ops.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show(name: str, as_json: bool) -> int:
    """Show an op through the releases. Exit code 1 when none has it.

    \b
    Examples:
      savedmodel-compat ops show StatefulPartitionedCall
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
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def diff(old: str, new: str, as_json: bool) -> None:
    """Show what changed in the registry between two releases (2.15 2.21).

    \b
    Examples:
      savedmodel-compat ops diff 2.15 2.21
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
    green="the table is written",
    asked="the registries of the runtimes named, or of all that are installed",
    not_asked="runtimes that are not installed, which are told one by one",
)
@ops.command()
@click.argument("runtimes", metavar="[RUNTIME]...", nargs=-1)
@refusing_trouble()
def update(runtimes: tuple[str, ...]) -> None:
    """Ask the registries of RUNTIMES (all that are installed when none is named) and write the
    table anew.

    What the table says of other releases stays. For working on this project: it writes into the
    package.

    \b
    Examples:
      savedmodel-compat ops update tf2.21
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
            click.echo(f"left as it is: {printable(str(error))}", err=True)
    text = op_tables.update(found, lambda line: click.echo(line, err=True))
    click.echo(f"{len(found)} runtimes asked; {len(text.splitlines()) - 1} ops, {len(text)} bytes")

"""What is missing on this machine: TensorFlows, consumers, model servers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from compat_matrix.commands.parts import completion
from compat_matrix.commands.parts.refusing import refusing_trouble
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import json_option
from savedmodel_common.command_line.lists import servers_option
from savedmodel_common.exit_codes import ExitCode

if TYPE_CHECKING:
    from savedmodel_common.command_line.examined import Examined


@claims(
    green="everything that was looked for and is needed is there",
    asked="without options: the local runtime with its consumers, and what servers need",
    not_asked="other runtimes, a server (--server); whether models work",
    codes={
        ExitCode.UNEXPECTED: "something that is needed is missing; the first lines say what to do"
    },
)
@click.command()
@click.argument(
    "runtimes",
    metavar="[RUNTIME]...",
    nargs=-1,
    shell_complete=completion.runtimes_to_check,
)
@servers_option(
    "--server",
    "servers",
    shell_complete=completion.servers,
    help="Look for this model server and what it needs; several by commas.",
)
@click.option(
    "--serving",
    is_flag=True,
    help="Look for the needs of model servers too: packages, the engine, images.",
)
@json_option(page="docs/contribute/internals.md")
@refusing_trouble()
def doctor(
    runtimes: tuple[str, ...], servers: tuple[str, ...], serving: bool, as_json: bool
) -> int:
    """Check this machine: programs, packages, runtimes and model servers.

    For each RUNTIME, every consumer is started once; `installed` stands for all installed
    runtimes. Without arguments, the command checks the extras of this package, the local runtime
    and what model servers need.

    A SERVER is an image (tensorflow/serving:2.19.1), standin[@RUNTIME], binary[:PATH] or
    remote:HOST:GRPC[,REST][/MODEL].

    The first lines say what to do. `missing` marks what you named, or what an installed extra
    needs and cannot use: exit code 1. `optional` marks what only other commands need: exit code 0.

    \b
    Examples:
      savedmodel-compat runtimes doctor
      savedmodel-compat runtimes doctor installed
      savedmodel-compat runtimes doctor --server tensorflow/serving:2.19.1
    """
    found = list(_examined(runtimes, servers, serving))
    well = not any(one.is_missing for one in found)
    if as_json:
        click.echo(json.dumps({"schema": 1, "ok": well, "found": [one.to_json() for one in found]}))
    else:
        _tell(found)
    return int(ExitCode.AS_EXPECTED if well else ExitCode.UNEXPECTED)


def _tell(found: Sequence[Examined]) -> None:
    to_do: list[str] = []
    for one in sorted(found, key=lambda one: not one.needed):
        to_do += one.to_do()
    for line in to_do or ["nothing is missing"]:
        click.echo(line)
    click.echo("")
    for one in found:
        click.echo("\n".join(one.lines()))


def _examined(
    runtimes: tuple[str, ...], servers: tuple[str, ...], serving: bool
) -> Iterator[Examined]:
    """What was asked for by name is needed, and so is the extra that looks for it."""
    from savedmodel_common.extras import lacking
    from savedmodel_compat.commands.parts import extras_doctor

    everything = not (runtimes or servers or serving)
    asked_servers = bool(servers or serving)
    needed = [name for name, asked in (("matrix", runtimes), ("serving", asked_servers)) if asked]
    yield from extras_doctor.examine(needed)
    if (runtimes or everything) and not lacking("matrix"):
        from compat_matrix.commands.parts.runtimes_doctor import examine

        yield from examine(runtimes)
    if (asked_servers or everything) and not lacking("matrix"):
        from savedmodel_servers.commands.parts.serving_doctor import examine as examine_servers

        yield from examine_servers(servers, needed=asked_servers)

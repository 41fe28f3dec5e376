"""Plan an upgrade of TensorFlow Serving, or clean up after killed runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

import click

from compat_matrix.commands.parts.refusing import refusing_trouble
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import json_option
from savedmodel_common.command_line.groups import Group
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import printable
from savedmodel_servers.commands.parts.serving_upgrade import upgrade


@click.group(cls=Group)
def serving() -> None:
    """Plan an upgrade of TensorFlow Serving, or clean up after killed runs.

    `matrix run --servers-only` and `check --server` ask servers; `runtimes doctor --serving`
    lists what is missing here.
    """


serving.add_command(upgrade)


@claims(
    green="what was found is removed",
    asked="the engine, and the processes of this machine",
    not_asked="other machines",
)
@serving.command()
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also remove those of other running commands and of other machines.",
)
@click.option("--dry-run", is_flag=True, help="Remove nothing; show what would be removed.")
@json_option(page="docs/contribute/internals.md")
@refusing_trouble()
def cleanup(everything: bool, dry_run: bool, as_json: bool) -> int:
    """Remove the containers and server processes of runs that were killed.

    \b
    Examples:
      savedmodel-compat serving cleanup
    """
    from savedmodel_servers import cleanup as left
    from savedmodel_servers.drivers import NotHere, engine

    seen: list[left.Found] = []
    no_engine = ""

    def say(text: str) -> None:
        if not as_json:
            click.echo(text)

    def tell(found: Iterator[left.Found]) -> None:
        for one in found:
            done = "removed" if one.removed else one.trouble and f"not removed: {one.trouble}"
            done = done or (
                "would be removed"
                if dry_run and (everything or one.state == left.DEAD)
                else "stays"
            )
            say(printable(f"{one.what}: {one.state}: {done}", newlines=False))
            seen.append(one)

    tell(left.processes(everything, dry_run))
    try:
        client = engine.connect()
    except NotHere as missing:
        no_engine = missing.reason
        say(printable(f"containers: not looked for: {no_engine}", newlines=False))
    else:
        try:
            tell(left.containers(client, everything, dry_run))
        finally:
            client.close()
    if as_json:
        found = [asdict(one) for one in seen]
        click.echo(
            json.dumps({"schema": 1, "dry_run": dry_run, "found": found, "no_engine": no_engine})
        )
    elif not dry_run:
        click.echo(f"{sum(one.removed for one in seen)} removed")
    elif not seen:
        click.echo("no process was left behind" if no_engine else "nothing was left behind")
    return int(ExitCode.HARNESS_ERROR if any(one.trouble for one in seen) else ExitCode.AS_EXPECTED)

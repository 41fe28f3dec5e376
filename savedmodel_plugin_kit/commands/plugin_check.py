"""Check that your consumer keeps the worker protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from compat_matrix.commands.parts import completion
from compat_matrix.commands.parts.plugin_options import plugin_option
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import json_option
from savedmodel_common.command_line.completion import names
from savedmodel_common.command_line.lists import list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import printable, unknown

SAMPLES = Path(__file__).parent.parent / "samples"
WIDTH = 16  # of the names


@claims(
    green="the worker broke no rule of the protocol in these checks",
    asked=lambda: f"{len(_checks())} checks, those that its capabilities allow",
    not_asked=(
        "checks of capabilities that it does not declare, and what --check leaves out: each is a"
        " line"
    ),
    codes={
        ExitCode.UNEXPECTED: "a rule is broken",
        ExitCode.INCOMPLETE: "no check that --check names could run",
    },
)
@click.command("plugin-check")
@click.argument("command", metavar="CMD", required=False, shell_complete=completion.consumers)
@plugin_option
@json_option()
@list_option(
    "--check",
    "only",
    metavar="NAME",
    shell_complete=names(lambda _: _checks()),
    help="Make only this check (and hello); several by commas.",
)
@click.option(
    "--limit",
    type=click.FloatRange(0.1),
    default=60.0,
    show_default=True,
    help="Seconds for one step.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0.1),
    default=10.0,
    show_default=True,
    help="Seconds that the consumer has to exit.",
)
@click.option(
    "--large",
    type=click.IntRange(1, 1024),
    default=64,
    show_default=True,
    help="Size of the large tensor in MiB.",
)
@click.option(
    "--list", "listing", is_flag=True, help="List the checks and their rules. Nothing is started."
)
@click.option(
    "--samples",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Write the sample plug-ins to this folder.",
)
def plugin_check(
    command: str | None,
    plugins: Path | None,
    as_json: bool,
    only: tuple[str, ...],
    limit: float,
    grace: float,
    large: int,
    listing: bool,
    samples: Path | None,
) -> int:
    """Check that a consumer keeps the worker protocol: every message, capability and failure.

    CMD is a command line ('./my-consumer --quiet'), or the name of a consumer: an entry point of
    savedmodel_compat.consumers, one in pyproject.toml or in the file of --plugins, or a built-in
    one. docs/exporters/protocol.md has the rules.

    \b
    Exit codes: 0 the rules are kept, 1 a rule is broken, 3 the checks that you named do not apply
    to this consumer, 4 a defect of this program, 64 wrong usage.

    \b
    Examples:
      savedmodel-compat plugin-check './my-consumer --quiet'
      savedmodel-compat plugin-check tf2
    """
    from compat_matrix.cells.registry import PluginError
    from compat_matrix.plugins import found
    from savedmodel_plugin_kit.checks import CHECKS
    from savedmodel_plugin_kit.rules import RULES
    from savedmodel_plugin_kit.run import (
        NOT_ASKED,
        Outcome,
        Settings,
        check,
    )

    if listing:
        for one in CHECKS:
            click.echo(f"{one.name:<{WIDTH}} {one.summary}\n{'':<{WIDTH}} {', '.join(one.rules)}")
        return ExitCode.AS_EXPECTED
    if samples:
        _write_samples(samples)
        return ExitCode.AS_EXPECTED
    if command is None:
        raise click.UsageError("Missing argument 'CMD'.")
    if wrong := unknown("check", only, [one.name for one in CHECKS]):
        raise click.UsageError(wrong)
    try:
        program = found.command_of(command, plugins)
    except PluginError as error:
        raise click.UsageError(str(error)) from error
    if program.broken:
        click.echo(f"Error: {printable(program.broken)}", err=True)
        return ExitCode.UNEXPECTED

    def told(outcome: Outcome) -> None:
        if not as_json:
            _tell(outcome.to_json(), RULES)

    outcomes = check(program, Settings(limit, grace, large, only, told))
    states = [outcome.state for outcome in outcomes]
    tried = [
        outcome.state != NOT_ASKED for outcome in outcomes if not only or outcome.check in only
    ]
    code = _exit_code(states, any(tried))
    if as_json:
        record = {
            "schema": 1,
            "command": list(program.command),
            "checks": [one.to_json() for one in outcomes],
            "exit_code": code,
        }
        click.echo(json.dumps(record, indent=1))
        return code
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(sorted(states)))
    said = {ExitCode.AS_EXPECTED: "the rules are kept", ExitCode.INCOMPLETE: "nothing was tried"}
    click.echo(f"{counts}; {said.get(code, 'the rules are not kept')}")
    return code


def _write_samples(folder: Path) -> None:
    for source in sorted(path for path in SAMPLES.iterdir() if path.is_file()):
        with (folder / source.name).open("xb") as copy:  # never over a file of somebody's
            copy.write(source.read_bytes())
        click.echo(folder / source.name)


def _tell(record: dict[str, Any], rules: dict[str, str]) -> None:
    first = (
        f"{record['check']:<{WIDTH}}"
        f" {record['state'].upper() if record['state'] == 'failed' else record['state']}"
    )
    click.echo(printable(first + (f": {record['message']}" if record["message"] else "")))
    for note in record["notes"]:
        click.echo(f"{'':<{WIDTH}}   {printable(note)}")
    if record["state"] == "failed":
        click.echo(
            f"{'':<{WIDTH}}   asked for: {rules[record['rule']]} ({record['rule']},"
            f" {record['where']})"
        )
        for side, mark in (("sent", ">"), ("came", "<")):
            for message in record[side][-2:]:
                click.echo(f"{'':<{WIDTH}}   {mark} {printable(json.dumps(message)[:600])}")


def _exit_code(states: list[str], tried: bool) -> ExitCode:
    """Return the exit code of a check of a plug-in, whose defects come first."""
    from savedmodel_plugin_kit.run import DEFECT, FAILED

    if DEFECT in states:
        return ExitCode.HARNESS_ERROR
    if FAILED in states:
        return ExitCode.UNEXPECTED
    return ExitCode.AS_EXPECTED if tried else ExitCode.INCOMPLETE


def _checks() -> list[str]:
    from savedmodel_plugin_kit.checks import CHECKS

    return [one.name for one in CHECKS]

"""Find defects in SavedModels, before something loads them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import jobs_option, json_option
from savedmodel_common.command_line.completion import names
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import like, printable
from savedmodel_tools.commands.parts.models import fail_on_option, model_arguments, releases

if TYPE_CHECKING:
    from savedmodel_tools.find import Found
    from savedmodel_tools.verify.findings import Finding, Rule, Severity
    from savedmodel_tools.verify.run import Report

SCHEMA = 1
ALL_RULES = "`savedmodel-compat verify --rule SMC` lists all."
FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


def _explain(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    """Explain a rule, or list several, and exit.

    It needs no model, so it comes before the arguments are judged.
    """
    if value is None or ctx.resilient_parsing:
        return
    from savedmodel_tools.verify.rules import all_rules
    from savedmodel_tools.verify.text import rule_line, rule_text

    rules = all_rules()
    named = [rule for rule in rules if value.lower() in (rule.id.lower(), rule.name)]
    found = named or [rule for rule in rules if rule.id.startswith(value.upper())]
    if not found:
        near = like(value, [rule.name for rule in rules])
        raise click.UsageError(
            f"no rule is called {printable(value, newlines=False)!r}.{near} {ALL_RULES}"
        )
    click.echo(rule_text(found[0]) if len(found) == 1 else "\n".join(map(rule_line, found)))
    ctx.exit()


def _rule_ids(_: click.Context) -> list[str]:
    from savedmodel_tools.verify.rules import all_rules

    return [rule.id for rule in all_rules()]


@claims(
    green="no rule that was applied finds anything of the severity of --fail-on or above",
    asked=lambda: _claimed(),
    not_asked=(
        "rules that --select and --ignore leave out, which the last line names; nothing of a model"
        " is run (`check` does)"
    ),
    codes={
        ExitCode.UNEXPECTED: "a finding of at least the severity of --fail-on",
        ExitCode.INCOMPLETE: "a folder could not be listed",
    },
)
@click.command()
@model_arguments
@click.option(
    "--select",
    multiple=True,
    metavar="PREFIX",
    shell_complete=names(_rule_ids),
    help="Only rules whose id begins with this: SMC2, ALL; several by commas.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="PREFIX",
    shell_complete=names(_rule_ids),
    help="Not the rules whose id begins with this. The longer prefix wins.",
)
@click.option(
    "--target",
    metavar="VERSIONS",
    shell_complete=releases,
    help=(
        'Releases that must load the models: "tensorflow>=2.12,<2.16", 2.15. Default: the newest'
        " known release."
    ),
)
@fail_on_option("Exit with 1 for findings of at least this severity.")
@json_option()
@click.option("--sarif", type=FILE, help="Write SARIF 2.1.0 to this file.")
@click.option("--junit", type=FILE, help="Write JUnit XML to this file.")
@jobs_option
@click.option(
    "--rule",
    is_eager=True,
    expose_value=False,
    callback=_explain,
    metavar="ID",
    shell_complete=names(_rule_ids),
    help="Explain a rule, or list those whose id begins with this, and exit.",
)
def verify(
    found: Found,
    follow_links: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    target: str | None,
    fail_on: str,
    as_json: bool,
    sarif: Path | None,
    junit: Path | None,
    jobs: int,
) -> int:
    """Find defects in MODELS: SavedModels, folders of them, @lists, URLs.

    The rules check the checkpoint, graph, functions, objects, tables, assets, devices, and what ops
    do to the machine. Nothing in a model is run. A finding is an error if a release of --target
    cannot load the model or cannot call a part of it.

    \b
    Exit codes, the first that applies: 64 wrong usage, 4 a model cannot be read (permissions,
    network), 1 a finding with at least the severity of --fail-on, 3 a folder could not be listed, 0
    otherwise.

    \b
    Examples:
      savedmodel-compat verify model
      savedmodel-compat verify models --jobs 4 --sarif verify.sarif
      savedmodel-compat verify model --target 2.15
      savedmodel-compat verify --rule SMC413
    """
    from savedmodel_tools.verify.findings import Severity
    from savedmodel_tools.verify.rules import UnknownRule, all_rules, choose

    try:
        rules = choose(all_rules(), select, ignore)
    except UnknownRule as error:
        raise click.UsageError(printable(str(error), newlines=False)) from error
    if not rules:
        raise click.UsageError("no rule is left to apply")
    level = None if fail_on == "never" else Severity[fail_on.upper()]
    reports = _reports(found, rules, follow_links, jobs, as_json, _releases(target))
    if as_json:
        import json

        click.echo(json.dumps(_json(reports, found, rules), separators=(",", ":")))
    _write(reports, found, rules, level, sarif, junit)
    return _exit_code(reports, found, level)


def _releases(target: str | None) -> tuple[int, ...]:
    """Return the releases of a target, numbers of the op history; none for the default."""
    if target is None:
        return ()
    from savedmodel_tools import targets
    from savedmodel_tools.skew.history import history

    try:
        return targets.releases(target, history())
    except targets.NoTarget as error:
        raise click.UsageError(printable(str(error))) from error


def _reports(
    found: Found,
    rules: list[Rule],
    follow_links: bool,
    jobs: int,
    quiet: bool,
    releases: tuple[int, ...],
) -> list[Report]:
    """Verify every model; unless ``quiet`` each is told as soon as it, and those before it, are
    done.
    """
    from functools import partial

    from savedmodel_tools.find import UNFINISHED
    from savedmodel_tools.jobs import Died, ordered
    from savedmodel_tools.verify.findings import Fault
    from savedmodel_tools.verify.rules import UNFINISHED as RULE
    from savedmodel_tools.verify.rules import all_rules
    from savedmodel_tools.verify.run import Report, verify_found
    from savedmodel_tools.verify.text import report_lines, summary

    reports = []
    seen: set[str] = set()
    applied = {rule.id for rule in rules}
    left_out = [rule.id for rule in all_rules() if rule.id not in applied]

    def add(report: Report) -> None:
        reports.append(report)
        if not quiet and (report.findings or report.error):
            click.echo(
                "\n".join(printable(line, newlines=False) for line in report_lines(report, seen))
            )

    look = partial(
        verify_found,
        rules=tuple(rule.id for rule in rules),
        follow_links=follow_links,
        releases=releases,
    )
    for model, report in zip(found.models, ordered(look, found.models, jobs)):
        add(Report(model.name, error=report.reason) if isinstance(report, Died) else report)
    for item in found.skipped:
        if item.kind == UNFINISHED and RULE in rules:
            add(Report(item.name, (RULE.finding(Fault(item.reason)),)))
    if not quiet:
        click.echo(
            "\n".join(
                printable(line, newlines=False) for line in summary(reports, _left(found), left_out)
            )
        )
    return reports


def _left(found: Found) -> list[Any]:
    """Return what was skipped and is not a finding."""
    from savedmodel_tools.find import UNFINISHED

    return [item for item in found.skipped if item.kind != UNFINISHED]


def _json(reports: list[Report], found: Found, rules: list[Rule]) -> dict[str, Any]:
    from savedmodel_tools.verify.text import by_severity

    return {
        "schema": SCHEMA,
        "rules": [rule.id for rule in rules],
        "counts": by_severity(_findings(reports)),
        "models": [report.to_json() for report in reports],
        "skipped": [{"name": item.name, "reason": item.reason} for item in _left(found)],
    }


def _write(
    reports: list[Report],
    found: Found,
    rules: list[Rule],
    level: Severity | None,
    sarif: Path | None,
    junit: Path | None,
) -> None:
    """The files that were asked for."""
    if sarif is not None:
        import json

        from savedmodel_common.own_version import tool_version
        from savedmodel_tools.verify.sarif import log

        sarif.parent.mkdir(parents=True, exist_ok=True)
        sarif.write_text(
            json.dumps(log(reports, rules, str(tool_version() or 0)), indent=1) + "\n",
            encoding="utf-8",
        )
    if junit is not None:
        from savedmodel_tools.verify.junit import document

        junit.parent.mkdir(parents=True, exist_ok=True)
        junit.write_text(document(reports, _left(found), level), encoding="utf-8")


def _findings(reports: list[Report]) -> Iterator[Finding]:
    return itertools.chain.from_iterable(report.findings for report in reports)


def _exit_code(reports: list[Report], found: Found, level: Severity | None) -> int:
    from savedmodel_tools.find import ODD, UNLISTED

    if any(report.error is not None for report in reports):
        return ExitCode.HARNESS_ERROR
    worst = max((finding.severity for finding in _findings(reports)), default=None)
    if level is not None and worst is not None and worst >= level:
        return ExitCode.UNEXPECTED
    return (
        ExitCode.INCOMPLETE
        if any(item.kind in (UNLISTED, ODD) for item in found.skipped)
        else ExitCode.AS_EXPECTED
    )


def _claimed() -> str:
    from savedmodel_tools.verify.rules import all_rules

    return f"all {len(all_rules())} rules, on the files alone"

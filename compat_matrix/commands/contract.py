"""Record what clients of a model rely on, and check it before a release."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import click

from compat_matrix.commands.parts import completion
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import follow_links_option, jobs_option, json_option
from savedmodel_common.command_line.completion import folders
from savedmodel_common.command_line.groups import Group
from savedmodel_common.command_line.lists import list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import (
    counted,
    printable,
    unknown,
)
from savedmodel_tools.commands.parts.models import (
    model_arguments,
    models_named,
    tell_skipped,
)

if TYPE_CHECKING:
    from savedmodel_tools.find import Found, Model


@click.group(cls=Group)
def contract() -> None:
    """Record what clients of a model rely on in a file, and check new exports against it
    (docs/zoo/client_contract.md).
    """


class _Invalid(click.ClickException):
    """A contract, or requests for one, that cannot be used."""

    exit_code = ExitCode.STALE_EXPECTATION


@contextmanager
def _refusals() -> Iterator[None]:
    """What is wrong with a contract, its requests or the options, as an exit code."""
    from compat_matrix.exports.contracts import WrongUse
    from savedmodel_tools.contract.file import ContractError

    try:
        yield
    except ContractError as error:
        raise _Invalid(str(error)) from error
    except WrongUse as error:
        raise click.UsageError(str(error)) from error


@claims(
    green="the contract is written; with --answers the golden answers too",
    asked="the signatures of each MetaGraph; with --answers one request for each signature",
    not_asked=(
        "the answers without --answers; requests that nobody could answer are listed as not"
        " recorded"
    ),
    codes={
        ExitCode.UNEXPECTED: "a model cannot be read",
        ExitCode.STALE_EXPECTATION: "the requests cannot be used",
        ExitCode.INCOMPLETE: "a folder could not be listed",
    },
)
@contract.command()
@model_arguments
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file. Default: MODEL.contract.json beside the model.",
)
@click.option("--update", is_flag=True, help="Replace an existing contract.")
@click.option(
    "--answers/--no-answers",
    default=None,
    help="Record golden answers (needs TensorFlow), or drop recorded ones.",
)
@click.option(
    "--requests",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with io.json and tensors. Default: generated inputs.",
)
@json_option(page="docs/zoo/client_contract.md")
def write(
    found: Found,
    follow_links: bool,
    out: Optional[Path],
    update: bool,
    answers: Optional[bool],
    requests: Optional[Path],
    as_json: bool,
) -> int:
    """Write a contract for each of MODELS.

    TensorFlow is needed only for --answers and --requests. With --update, the command shows what
    the old contract finds in the model before it replaces the file. Without it, models that have a
    contract keep it. A model that cannot be read does not stop the others; the exit code is 1.

    \b
    Examples:
      savedmodel-compat contract write model
      savedmodel-compat contract write model --answers --update
    """
    from compat_matrix.exports.contracts import target_of, write_one, written_or_refused

    if (out is not None or requests is not None) and len(found.models) != 1:
        raise click.UsageError(
            f"--out and --requests are for one model, and {len(found.models)} were found. Without"
            " them, each contract is written beside its model: MODEL.contract.json"
        )
    targets: list[tuple[Model, Path]] = []
    for model in found.models:
        target = target_of(model, out)
        if target is None:
            raise click.UsageError(
                printable(
                    f"{model.name} is not on this machine: --out says where its contract goes",
                    False,
                )
            )
        targets.append((model, target))
    places = [target for _, target in targets]
    for target in places:
        if places.count(target) > 1:
            raise click.UsageError(
                printable(f"several models share {target}: name one of them", False)
            )
    one = functools.partial(
        write_one, update=update, answers=answers, requests=requests, links=follow_links
    )
    reports = []
    for model, target in targets:
        if len(targets) == 1:
            with _refusals():
                report = one(model, target)
        else:
            with _refusals():
                report = written_or_refused(one, model, target, update)
        reports.append(report)
        if not as_json:
            _tell_written(report)
    if as_json:
        _print_json(reports, found)
    skipped = _skipped(found, quiet=as_json)
    return (
        ExitCode.UNEXPECTED if any(report["status"] == "refused" for report in reports) else skipped
    )


def _tell_written(report: dict[str, Any]) -> None:
    from savedmodel_tools.commands.parts.contract_lines import line as line_of

    if report["status"] != "written":
        refused = (
            f"no contract written: {report['model']}: " if report["status"] == "refused" else ""
        )
        click.echo(printable(f"{refused}{report['reason']}", newlines=False), err=True)
        return
    for line in report["left_out"]:
        click.echo(f"not recorded: {printable(line, newlines=False)}", err=True)
    for finding in report["findings"]:
        click.echo(line_of(finding))
    held = (
        f"{counted(report['meta_graphs'], 'MetaGraph')},"
        f" {counted(report['signatures'], 'signature')}"
    )
    count = "" if report["answers"] is None else f", {report['answers']} golden answers"
    click.echo(printable(f"{report['contract']}: {held}{count}", newlines=False))


def _print_json(reports: list[dict[str, Any]], found: Found) -> None:
    skipped = [{"name": item.name, "reason": item.reason} for item in found.skipped]
    for report in reports:
        if "findings" in report:
            report["findings"] = [finding.to_json() for finding in report["findings"]]
    click.echo(
        json.dumps({"schema": 1, "models": reports, "skipped": skipped}, separators=(",", ":"))
    )


@claims(
    green=(
        "no client of the contract breaks; with --answers the golden requests are answered as"
        " recorded"
    ),
    asked=lambda: _claimed(),
    not_asked=(
        "the golden answers without --answers, which the report says; a model without a contract"
        " (--require)"
    ),
    codes={
        ExitCode.UNEXPECTED: "something would break a client, or a model cannot be read",
        ExitCode.STALE_EXPECTATION: "a contract cannot be read",
        ExitCode.INCOMPLETE: (
            "--answers: no contract has any; --require: a model has no contract; a folder could not"
            " be listed"
        ),
    },
)
@contract.command()
@click.argument("path", metavar="MODEL", required=False, shell_complete=folders)
@click.argument(
    "contracts",
    metavar="[CONTRACT]",
    type=click.Path(exists=True, path_type=Path),
    required=False,
)
@list_option(
    "--allow",
    metavar="RULE",
    shell_complete=completion.contract_rules,
    help="Accept this breaking change; several by commas.",
)
@click.option("--answers", is_flag=True, help="Also compare the golden answers (needs TensorFlow).")
@click.option("--require", is_flag=True, help="Fail with exit code 3 if a model has no contract.")
@click.option(
    "--rule",
    metavar="RULE",
    shell_complete=completion.contract_rules,
    help="Explain a rule, or list those whose name begins with this (ALL: all), and exit.",
)
@json_option(page="docs/zoo/client_contract.md")
@follow_links_option
@jobs_option
def check(
    path: Optional[str],
    contracts: Optional[Path],
    allow: tuple[str, ...],
    answers: bool,
    require: bool,
    rule: Optional[str],
    as_json: bool,
    follow_links: bool,
    jobs: int,
) -> int:
    """Check that MODEL, or every model of a folder, keeps its contract.

    CONTRACT is a file, or a folder in which `contract write` made the contracts of models with the
    same names. Without it the contract is the file beside the model. A change that would break a
    client ends with exit code 1. Additions are shown and pass. With --answers, the exit code is 3
    if no contract has golden answers.

    \b
    Examples:
      savedmodel-compat contract check model
      savedmodel-compat contract check migrated/models zoo
      savedmodel-compat contract check --rule ALL
      savedmodel-compat contract check models --answers --require
    """
    from compat_matrix.exports.contracts import (
        NO_ANSWERS,
        ContractFolder,
        blank,
        checked,
        exit_code,
    )
    from savedmodel_tools.contract.rules import RULES
    from savedmodel_tools.jobs import Died, ordered

    if rule is not None:
        _tell_rules(rule, as_json)
        return ExitCode.AS_EXPECTED
    if path is None:
        raise click.UsageError("Missing argument 'MODEL'.")
    if wrong := unknown("rule", allow, RULES):
        raise click.UsageError(wrong)
    found = models_named([path], follow_links=follow_links)
    is_folder = contracts is not None and contracts.is_dir()
    file = ContractFolder(contracts, Path(path)) if contracts and is_folder else contracts
    one = functools.partial(
        checked, file=file, allowed=frozenset(allow), ask=answers, follow_links=follow_links
    )
    reports = [
        (
            {**blank(model, file), "status": "unread", "reason": item.reason}
            if isinstance(item, Died)
            else item
        )
        for model, item in zip(found.models, ordered(one, found.models, jobs))
    ]
    if all(report["status"] == "no contract" for report in reports):
        target = reports[0]["contract"]
        why = (
            f"{target} does not exist"
            if len(reports) == 1 and target
            else "none of the models has one"
        )
        text = (
            f"no contract: {why}. Write it (savedmodel-compat contract write {shlex.quote(path)}),"
            " or name the file or the folder of contracts"
        )
        raise click.UsageError(printable(text, newlines=False))
    if as_json:
        _print_json(reports, found)
    else:
        for report in reports:
            click.echo("\n".join(_report(report)))
        _skipped(found)
    silent = answers and all(report["answers"] == NO_ANSWERS for report in reports)
    return exit_code(
        [report["status"] for report in reports], require, bool(found.skipped) or silent
    )


def _report(report: dict[str, Any]) -> Iterator[str]:
    from savedmodel_tools.commands.parts.contract_lines import line as line_of

    colour = {"kept": "green", "no contract": "yellow"}.get(report["status"], "red")
    reason = f": {report['reason']}" if "reason" in report else ""
    text = printable(f"{report['model']}{reason}", newlines=False)
    yield f"{click.style(report['status'], fg=colour, bold=True)}  {text}"
    for finding in report["findings"]:
        yield f"  {line_of(finding)}"
    if report["answers"] != "none":
        yield f"  golden answers: {report['answers']}"


def _skipped(found: Found, quiet: bool = False) -> int:
    tell_skipped(() if quiet else found.skipped)
    return ExitCode.INCOMPLETE if found.skipped else ExitCode.AS_EXPECTED


def _tell_rules(prefix: str, as_json: bool) -> None:
    """Print the rules whose name begins with ``prefix``, or all of them for ``ALL``."""
    from savedmodel_tools.contract.rules import RULES

    wanted = "" if prefix.upper() == "ALL" else prefix.upper()
    found = {name: rule for name, rule in RULES.items() if name.startswith(wanted)}
    if not found:
        raise click.UsageError(unknown("rule", [prefix], RULES))
    if as_json:
        listed = [
            {"rule": name, "category": rule.category, "why": rule.why}
            for name, rule in found.items()
        ]
        click.echo(json.dumps({"schema": 1, "rules": listed}))
        return
    for name, rule in found.items():
        click.echo(f"{name:<22} {rule.category:<10} {rule.why}")


def _claimed() -> str:
    from savedmodel_tools.contract.rules import RULES

    breaking = [name for name, rule in RULES.items() if rule.category == "breaking"]
    return (
        f"the {len(RULES)} rules ({len(breaking)} about changes that break clients), on the files"
        " alone"
    )

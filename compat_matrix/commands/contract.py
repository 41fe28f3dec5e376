"""Freeze what clients of a model rely on, and gate on it.

Task: Check models
"""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.groups import Group
from savedmodel_common.command_line.lists import list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import (
    counted,
    printable,
    told,
    unknown,
)
from savedmodel_tools.commands.parts.models import (
    jobs_of_models,
    model_arguments,
    models_named,
    tell_skipped,
)

if TYPE_CHECKING:
    from savedmodel_tools.contract.form import Contract
    from savedmodel_tools.find import Found, Model

SUFFIX = ".contract.json"


NO_ANSWERS = "none on record: `contract write --answers` records some"


@click.group(cls=Group)
def contract() -> None:
    """Freeze the serving contract of a model in a file beside it, and gate on it
    (docs/contract.md).
    """


def beside(model: Model) -> Path:
    """Where the contract of a local model is: MODEL.contract.json; versions (MODEL/1, MODEL/2)
    share that of the folder above.
    """
    from reference_impl.format.container.files import shown

    path = Path(model.name).resolve()
    path = path.parent if path.is_file() else path
    path = path.parent if path.name.isdigit() else path
    return Path(shown(path.with_name(path.name + SUFFIX)))


class _Invalid(click.ClickException):
    """A contract, or requests for one, that cannot be used."""

    exit_code = ExitCode.STALE_EXPECTATION


@contextmanager
def _refusals() -> Iterator[None]:
    """What is wrong with a contract, its requests or the machine, as an exit code."""
    from savedmodel_tools.contract.file import ContractError

    try:
        yield
    except ContractError as error:
        raise _Invalid(str(error)) from error


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
    help="Write here, not to MODEL.contract.json beside it.",
)
@click.option("--update", is_flag=True, help="Replace a contract that is there.")
@click.option(
    "--answers/--no-answers",
    default=None,
    help="Record golden answers (needs TensorFlow), or drop those on record.",
)
@click.option(
    "--requests",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with io.json and tensors, in place of requests made up.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object (docs/contract.md).")
def write(
    found: Found,
    follow_links: bool,
    out: Optional[Path],
    update: bool,
    answers: Optional[bool],
    requests: Optional[Path],
    as_json: bool,
) -> int:
    """Write the contract of each of MODELS.

    Without --answers or --requests no TensorFlow is needed. Replacing a contract shows what the old
    one would have said. Of several models those that have a contract keep it, and one that cannot
    be read does not stop the others (exit code 1).

    \b
    Examples:
      savedmodel-compat contract write model
      savedmodel-compat contract write model --answers --update
    """
    if (out is not None or requests is not None) and len(found.models) != 1:
        raise click.UsageError("--out and --requests are for one model")
    targets: list[tuple[Model, Path]] = []
    for model in found.models:
        target = _target(model, out)
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
        _write_one, update=update, answers=answers, requests=requests, links=follow_links
    )
    reports = []
    for model, target in targets:
        if len(targets) == 1:
            with _refusals():
                report = one(model, target)
        else:
            report = _written_or_refused(one, model, target, update)
        reports.append(report)
        if not as_json:
            _tell_written(report)
    if as_json:
        _print_json(reports, found)
    skipped = _skipped(found, quiet=as_json)
    return (
        ExitCode.UNEXPECTED if any(report["status"] == "refused" for report in reports) else skipped
    )


def _written_or_refused(
    one: Callable[[Model, Path], dict[str, Any]], model: Model, target: Path, update: bool
) -> dict[str, Any]:
    """Write the contract of one of many models. If that cannot be done, the report has the reason;
    the others are written all the same.

    A contract that is there stays: a run that was interrupted goes on with the same command.
    """
    from reference_impl.errors import SavedModelError, about_the_model

    report = {"model": model.name, "contract": str(target)}
    if target.exists() and not update:
        return {
            **report,
            "status": "there",
            "reason": f"{target} is there already: --update replaces it",
        }
    try:
        with _refusals():
            return one(model, target)
    except (SavedModelError, OSError, _Invalid) as error:
        if not isinstance(error, _Invalid) and not about_the_model(error):
            raise
        return {**report, "status": "refused", "reason": told(error)}


def _write_one(
    model: Model,
    target: Path,
    update: bool,
    answers: Optional[bool],
    requests: Optional[Path],
    links: bool,
) -> dict[str, Any]:
    """Write the contract of a model.

    Return a report: what it holds, and what the old one says of the model.
    """
    from dataclasses import replace

    from savedmodel_tools.contract import file, rules
    from savedmodel_tools.contract.form import contract_of

    old = _old(target, update)
    if old is not None and old.answers is not None and answers is None and requests is None:
        raise click.UsageError(
            f"{target} holds answers: --answers records new ones, --no-answers drops them"
        )
    left_out: list[str] = []
    with model.local() as path:
        new = contract_of(path, follow_links=links)
        if answers or requests is not None:
            from compat_matrix.exports.contract_answers import record

            recorded, left_out = record(path.parent if path.is_file() else path, requests)
            new = replace(new, answers=recorded)
    findings = list(rules.compare(old, new)) if old is not None else []
    file.write(target, new)
    return {
        "model": model.name,
        "contract": str(target),
        "status": "written",
        "findings": findings,
        "meta_graphs": len(new.meta_graphs),
        "signatures": sum(map(len, new.meta_graphs.values())),
        "answers": None if new.answers is None else len(new.answers.requests),
        "left_out": left_out,
    }


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


def _old(target: Path, update: bool) -> Optional[Contract]:
    from savedmodel_tools.contract import file

    if not target.exists():
        return None
    if not update:
        raise click.UsageError(f"{target} is there already: --update replaces it")
    return file.read(target)


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
@click.argument("path", metavar="MODEL")
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False
)
@list_option("--allow", metavar="RULE", help="Accept this breaking change; several by commas.")
@click.option("--answers", is_flag=True, help="Ask the golden requests too (needs TensorFlow).")
@click.option("--require", is_flag=True, help="Fail with exit code 3 if a model has no contract.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object (docs/contract.md).")
@click.option(
    "--follow-links", is_flag=True, help="Accept symbolic links that lead out of a directory."
)
@jobs_of_models
def check(
    path: str,
    file: Optional[Path],
    allow: tuple[str, ...],
    answers: bool,
    require: bool,
    as_json: bool,
    follow_links: bool,
    jobs: int,
) -> int:
    """Check that MODEL (or every model of a folder) keeps the contract in FILE, or in the file
    beside it.

    Exits with 1 when something would break a client; what only adds is shown and passes. With
    --answers it exits with 3 when no contract has golden answers. `contract rules` lists the rules.

    \b
    Examples:
      savedmodel-compat contract check model
      savedmodel-compat contract check models --answers --require
    """
    from savedmodel_tools.contract.rules import RULES
    from savedmodel_tools.jobs import Died, ordered

    if wrong := unknown("rule", allow, RULES):
        raise click.UsageError(wrong)
    found = models_named([path], follow_links=follow_links)
    one = functools.partial(
        _checked, file=file, allowed=frozenset(allow), ask=answers, follow_links=follow_links
    )
    reports = [
        (
            {**_blank(model, file), "status": "unread", "reason": item.reason}
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
            " or name a file"
        )
        raise click.UsageError(printable(text, newlines=False))
    if as_json:
        _print_json(reports, found)
    else:
        for report in reports:
            click.echo("\n".join(_report(report)))
        _skipped(found)
    silent = answers and all(report["answers"] == NO_ANSWERS for report in reports)
    return _code([report["status"] for report in reports], require, bool(found.skipped) or silent)


def _code(statuses: list[str], require: bool, incomplete: bool) -> int:
    for status, code in (
        ("unread", ExitCode.HARNESS_ERROR),
        ("broken", ExitCode.UNEXPECTED),
        ("refused", ExitCode.UNEXPECTED),
    ):
        if status in statuses:
            return code
    if "invalid contract" in statuses:
        return ExitCode.STALE_EXPECTATION
    return (
        ExitCode.INCOMPLETE
        if incomplete or (require and "no contract" in statuses)
        else ExitCode.AS_EXPECTED
    )


def _target(model: Model, file: Optional[Path]) -> Optional[Path]:
    return file or (None if model.is_remote else beside(model))


def _blank(model: Model, file: Optional[Path]) -> dict[str, Any]:
    """A report that says nothing yet."""
    contract = str(_target(model, file) or "")
    return {
        "model": model.name,
        "contract": contract,
        "status": "",
        "findings": [],
        "answers": "none",
    }


def _checked(
    model: Model, file: Optional[Path], allowed: frozenset[str], ask: bool, follow_links: bool
) -> dict[str, Any]:
    """Return the status of one model: ``kept``, ``broken``, ``no contract``, ``invalid contract``,
    ``refused`` or ``unread``.
    """
    from reference_impl.errors import SavedModelError, about_the_model
    from savedmodel_tools.contract import file as files
    from savedmodel_tools.contract import rules
    from savedmodel_tools.contract.form import contract_of

    target, report = _target(model, file), _blank(model, file)
    if target is None or (file is None and not target.exists()):
        return {**report, "status": "no contract"}
    try:
        frozen = files.read(target, answers=ask)
        with model.local() as path:
            findings = rules.allow(
                rules.compare(frozen, contract_of(path, follow_links=follow_links)), allowed
            )
            if ask and not (frozen.answers and frozen.answers.requests):
                report["answers"] = NO_ANSWERS
            elif ask and frozen.answers is not None:
                from compat_matrix.exports import contract_answers as answers

                findings += rules.allow(
                    answers.check(path.parent if path.is_file() else path, frozen.answers), allowed
                )
                report["answers"] = f"{len(frozen.answers.requests)} asked"
            elif "answers" in files.read_document(target):
                report["answers"] = "not asked (--answers)"
    except files.ContractError as error:
        return {**report, "status": "invalid contract", "reason": str(error)}
    except (SavedModelError, OSError) as error:
        refused = about_the_model(error)
        return {**report, "status": "refused" if refused else "unread", "reason": told(error)}
    return {
        **report,
        "status": "broken" if any(item.breaks for item in findings) else "kept",
        "findings": findings,
    }


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


@claims(green="the rules are listed", asked="nothing", not_asked="nothing: it compares nothing")
@contract.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object (docs/contract.md).")
def rules(as_json: bool) -> None:
    """List the rules: what breaks clients, and what only adds.

    \b
    Examples:
      savedmodel-compat contract rules
    """
    from savedmodel_tools.contract.rules import RULES

    if as_json:
        listed = [
            {"rule": name, "category": rule.category, "why": rule.why}
            for name, rule in RULES.items()
        ]
        click.echo(json.dumps({"schema": 1, "rules": listed}))
        return
    for name, rule in RULES.items():
        click.echo(f"{name:<22} {rule.category:<10} {rule.why}")


def _claimed() -> str:
    from savedmodel_tools.contract.rules import RULES

    breaking = [name for name, rule in RULES.items() if rule.category == "breaking"]
    return f"the {len(RULES)} rules ({len(breaking)} about what breaks clients), on the files alone"

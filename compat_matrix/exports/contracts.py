"""Contracts of models on this machine: written beside them, and held against them, with the golden
answers where they are asked for.

`savedmodel_tools.contract` defines contracts. Here `contract write` and `contract check` treat one
model; a report is a dict, as ``--json`` prints it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reference_impl.errors import SavedModelError, about_the_model
from reference_impl.format.container.files import shown
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import told
from savedmodel_tools.contract import file as files
from savedmodel_tools.contract import rules
from savedmodel_tools.contract.form import Contract, contract_of
from savedmodel_tools.find import Model

SUFFIX = ".contract.json"
NO_ANSWERS = "none on record: `contract write --answers` records some"


@dataclass(frozen=True)
class ContractFolder:
    """The contracts of a zoo, held against other models of the same names.

    Example: the model `migrated/models/text/bert`, below the root `migrated/models`, has the
    contract `zoo/text/bert.contract.json` in the folder `zoo`.
    """

    path: Path
    root: Path

    def contract_of(self, model: Model) -> Path:
        own = _contract_path(model)
        root = self.root.resolve()
        return self.path / (own.relative_to(root) if own.is_relative_to(root) else own.name)


class WrongUse(Exception):
    """Raised when the options do not fit what is there; the message says what to do."""


def beside(model: Model) -> Path:
    """Where the contract of a local model is: MODEL.contract.json; versions (MODEL/1, MODEL/2)
    share that of the folder above.
    """
    return Path(shown(_contract_path(model)))


def _contract_path(model: Model) -> Path:
    path = Path(model.name).resolve()
    path = path.parent if path.is_file() else path
    path = path.parent if path.name.isdigit() else path
    return path.with_name(path.name + SUFFIX)


def target_of(model: Model, file: Path | ContractFolder | None) -> Path | None:
    """Return the file of a contract; None where a model elsewhere has none that was named."""
    if isinstance(file, ContractFolder):
        return file.contract_of(model)
    return file or (None if model.is_remote else beside(model))


def blank(model: Model, file: Path | ContractFolder | None) -> dict[str, Any]:
    """A report that says nothing yet."""
    contract = str(target_of(model, file) or "")
    return {
        "model": model.name,
        "contract": contract,
        "status": "",
        "findings": [],
        "answers": "none",
    }


def written_or_refused(
    one: Callable[[Model, Path], dict[str, Any]], model: Model, target: Path, update: bool
) -> dict[str, Any]:
    """Write the contract of one of many models. If that cannot be done, the report has the reason;
    the others are written all the same.

    A contract that is there stays: a run that was interrupted goes on with the same command.
    """
    report = {"model": model.name, "contract": str(target)}
    if target.exists() and not update:
        return {
            **report,
            "status": "there",
            "reason": f"{target} is there already: --update replaces it",
        }
    try:
        return one(model, target)
    except (SavedModelError, OSError, files.ContractError) as error:
        if not isinstance(error, files.ContractError) and not about_the_model(error):
            raise
        return {**report, "status": "refused", "reason": told(error)}


def write_one(
    model: Model,
    target: Path,
    update: bool,
    answers: bool | None,
    requests: Path | None,
    links: bool,
) -> dict[str, Any]:
    """Write the contract of a model.

    Return a report: what it holds, and what the old one says of the model. Raises WrongUse,
    ContractError, SavedModelError.
    """
    old = old_contract(target, update)
    if old is not None and old.answers is not None and answers is None and requests is None:
        raise WrongUse(
            f"{target} holds answers: --answers records new ones, --no-answers drops them"
        )
    left_out: list[str] = []
    with model.local() as path:
        new = contract_of(path, follow_links=links)
        if answers or requests is not None:
            # It needs packages of the extra `matrix`.
            from compat_matrix.exports.contract_answers import record

            recorded, left_out = record(path.parent if path.is_file() else path, requests)
            new = replace(new, answers=recorded)
    findings = list(rules.compare(old, new)) if old is not None else []
    files.write(target, new)
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


def old_contract(target: Path, update: bool) -> Contract | None:
    """Return the contract that is there. Raises WrongUse without ``update``."""
    if not target.exists():
        return None
    if not update:
        raise WrongUse(f"{target} is there already: --update replaces it")
    return files.read(target)


def checked(
    model: Model,
    file: Path | ContractFolder | None,
    allowed: frozenset[str],
    ask: bool,
    follow_links: bool,
) -> dict[str, Any]:
    """Return the status of one model: ``kept``, ``broken``, ``no contract``, ``invalid contract``,
    ``refused`` or ``unread``.
    """
    target, report = target_of(model, file), blank(model, file)
    one_for_all = isinstance(file, Path)
    if target is None or (not one_for_all and not target.exists()):
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
                # It needs packages of the extra `matrix`.
                from compat_matrix.exports.contract_answers import check

                directory = path.parent if path.is_file() else path
                findings += rules.allow(check(directory, frozen.answers), allowed)
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


def exit_code(statuses: list[str], require: bool, incomplete: bool) -> int:
    """Return the exit code of `contract check`, the worst of its models."""
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

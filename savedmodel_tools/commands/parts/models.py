"""Common parts of the commands about models at rest: how a command line names models, which
findings fail.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from savedmodel_common.command_line.common import follow_links_option
from savedmodel_common.command_line.completion import folders, names
from savedmodel_common.command_line.lists import Choice
from savedmodel_common.fast.deferred_modules import defer_pure_messages
from savedmodel_common.printable import counted, printable

if TYPE_CHECKING:
    from savedmodel_tools.find import Found, Model, Skipped
    from savedmodel_tools.skew.history import History

R = TypeVar("R")


def model_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``MODELS...`` and ``--follow-links`` to a command, which is given
    ``found`` in their place.

    ``found`` is a `savedmodel_tools.find.Found`, and ``follow_links`` is handed on as well. A
    model that cannot be used is wrong usage (64).
    """

    @functools.wraps(function)
    def wrapped(models: tuple[str, ...], follow_links: bool, **rest: Any) -> Any:
        return function(found=models_named(models, follow_links), follow_links=follow_links, **rest)

    return model_options(wrapped)


def models_named(models: Sequence[str], follow_links: bool = False) -> Found:
    """Return the models that a command line names. Raises UsageError."""
    defer_pure_messages()
    from savedmodel_tools.find import find
    from savedmodel_tools.place import Unusable

    try:
        return find(models, follow_links=follow_links)
    except Unusable as error:
        raise click.UsageError(printable(str(error), newlines=False)) from error


def sources(models: Sequence[Model], out: str | Path, results: str = "") -> list[Model]:
    """Return the models without those that the search of a folder has found in the output, where an
    earlier run has put them.

    ``results``: the folder in ``out`` that gets the new models. Raises UsageError if a new model
    would be written over an old one or into it, since sources are only read, and if no model is
    left.
    """
    target = Path(os.path.realpath(Path(out, results)))
    kept = []
    for model in models:
        folder = target if model.is_remote else _folder(model)
        below = folder.relative_to(target).parts if folder.is_relative_to(target) else ()
        depth = len(model.relative.split("/"))
        if not model.is_remote and (target.is_relative_to(folder) or len(below) == depth):
            reason = f"{Path(out, results)} is the place of {model.name}, which is only read"
            raise click.UsageError(
                printable(f"{reason}: name another directory for the result", newlines=False)
            )
        if not 0 < len(below) < depth:
            kept.append(model)
    if models and not kept:
        raise click.UsageError(
            printable(f"all models are in {target}, where the results go", newlines=False)
        )
    return kept


def _folder(model: Model) -> Path:
    path = Path(os.path.realpath(model.name))
    return path.parent if path.is_file() else path


def one_release(text: str, table: History) -> int:
    """Return the number of the release of the op history that a word names. Raises UsageError."""
    from savedmodel_tools import targets

    try:
        return targets.one_release(text, table)
    except targets.NoTarget as error:
        raise click.UsageError(printable(str(error), newlines=False)) from error


def _releases(_: click.Context) -> list[str]:
    from savedmodel_tools.skew.history import history

    return [release.name for release in history().releases]


releases = names(_releases)  # of the op history, for a shell


def answers(
    models: Iterable[Model], ask: Callable[[Path], R]
) -> Iterator[tuple[Model, R | Exception]]:
    """Each model with what ``ask`` says of its path, or with the error that keeps it from that."""
    from reference_impl.errors import SavedModelError

    for model in models:
        answer: R | Exception
        try:
            with model.local() as path:
                answer = ask(path)
        except (SavedModelError, OSError) as error:
            answer = error
        yield model, answer


def tell_skipped(skipped: Iterable[Skipped]) -> None:
    """Say on stderr what a search did not look into, and why."""
    for item in skipped:
        click.echo(
            printable(f"not looked into: {item.name}: {item.reason}", newlines=False), err=True
        )


GO_ON = "Run the same command again to continue: finished models are not done again."
NAMED = 3  # models, of those with one outcome and one reason


def summary(outcomes: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """The lines that end a run over many models, each given by its outcome, its name and the reason
    ("" for what went well).

    A line for each reason, the one of most models first, and a line that counts the outcomes.
    """
    found = list(outcomes)
    if not found:
        yield "no model"
        return
    groups: dict[tuple[str, str], list[str]] = {}
    for outcome, name, reason in found:
        if reason:
            groups.setdefault((outcome, reason), []).append(name)
    for (outcome, reason), called in sorted(groups.items(), key=lambda item: -len(item[1])):
        listed = ", ".join(called[:NAMED]) + (" ..." if len(called) > NAMED else "")
        yield printable(f"{outcome} {len(called)}: {listed}: {reason}", newlines=False)
    counts = Counter(outcome for outcome, _, _ in found)
    yield f"{counted(len(found), 'model')}: " + ", ".join(
        f"{count} {what}" for what, count in counts.items()
    )


def model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``MODELS...`` and ``--follow-links`` to a command that finds its models
    itself.
    """
    for option in (
        click.argument("models", nargs=-1, metavar="MODELS...", shell_complete=folders),
        follow_links_option,
    ):
        function = option(function)
    return function


def fail_on_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--fail-on`` for findings of `verify`; ``text`` says what follows from them."""
    levels = Choice(["info", "warning", "error", "never"])
    return click.option("--fail-on", type=levels, default="error", show_default=True, help=text)

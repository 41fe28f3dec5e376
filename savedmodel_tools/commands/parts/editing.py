"""Common parts of the commands that write copies of models: where results go, what is said of them,
the walk over a tree.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.groups import goes_on
from savedmodel_common.exit_codes import ExitCode, leading
from savedmodel_common.printable import printable
from savedmodel_tools.commands.parts.models import (
    GO_ON,
    jobs_of_models,
    models_named,
    sources,
    summary,
    tell_skipped,
)

if TYPE_CHECKING:
    from savedmodel_tools.edits.draft import Draft
    from savedmodel_tools.find import Model


edit_claims = claims(
    green=(
        "the copy is written, and each signature that stays is proved to compute the same; with"
        " --dry-run: it would be"
    ),
    asked="the graphs of both, node by node, without running them",
    not_asked="answers (`check` asks the copy)",
    codes={ExitCode.UNEXPECTED: "a model is refused or cannot be read: nothing is written for it"},
)


def edit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``MODEL``, ``--out``, ``--dry-run``, ``--json``, ``--jobs``, ``--follow-links`` to a
    command, which returns the edit.

    The edit is a `functools.partial` of a function of a `Draft`. It is applied to the model, or to
    every model of the tree or list MODEL, in processes. Of a tree what an earlier run has done is
    not done again.
    """

    @goes_on(GO_ON)
    @functools.wraps(function)
    def wrapped(
        model: str,
        out: str | None,
        dry_run: bool,
        as_json: bool,
        follow_links: bool,
        jobs: int,
        **rest: Any,
    ) -> int:
        if out is None and not dry_run:
            raise click.UsageError("say where the result goes (--out DIRECTORY), or --dry-run")
        change = function(**rest)
        return _run(model, None if dry_run else out, change, as_json, follow_links, jobs)

    for option in (
        click.argument("model"),
        click.option(
            "--out",
            metavar="DIRECTORY",
            help="New directory for the result; of a tree, for all of them.",
        ),
        click.option("--dry-run", is_flag=True, help="Write nothing, say what would be done."),
        click.option(
            "--json", "as_json", is_flag=True, help="One JSON object (docs/zoo/editing.md)."
        ),
        jobs_of_models,
        click.option(
            "--follow-links",
            is_flag=True,
            help="Accept symbolic links that lead out of a directory.",
        ),
    ):
        wrapped = option(wrapped)
    # The model comes first on the command line, whatever else the command takes.
    parameters = wrapped.__click_params__  # type: ignore[attr-defined]
    parameters.append(
        parameters.pop(next(n for n, item in enumerate(parameters) if item.name == "model"))
    )
    return wrapped


tags_option = click.option(
    "--tags", help="Tags of the MetaGraph, separated by commas; needed where there are several."
)


def models_of(
    argument: str, follow_links: bool, out: str | Path | None = None
) -> tuple[list[tuple[Model, str]], list[Any]]:
    """Each model with its place below the output ``out`` ("" for the only one), and what was not
    looked into.
    """
    found = models_named([argument], follow_links=follow_links)
    if out is not None:
        found = found._replace(models=sources(found.models, out))
    if (
        len(found.models) == 1
        and not found.skipped
        and found.models[0].name.rstrip("/") == argument.rstrip("/")
    ):
        return [(found.models[0], "")], []
    places = [item.relative for item in found.models]
    twice = sorted({place for place in places if places.count(place) > 1})
    if twice:
        raise click.UsageError(
            printable(
                f"several models would be written to {', '.join(twice[:3])}: name them one by one"
            )
        )
    return list(zip(found.models, places)), found.skipped


def check_place(out: str | Path | None, models: Sequence[tuple[Model, str]]) -> None:
    """Raise UsageError if the place for the copy of a single model is taken.

    An empty directory is not.

    ``out`` is None for a dry run; ``models`` are those of :func:`models_of`.
    """
    if out is None or all(place for _, place in models):
        return
    if os.path.lexists(out) and not (Path(out).is_dir() and not any(Path(out).iterdir())):
        raise click.UsageError(
            printable(f"{out} exists already; a copy is written to a new directory", newlines=False)
        )


def _run(
    argument: str,
    out: str | None,
    change: Callable[[Draft], None],
    as_json: bool,
    follow_links: bool,
    jobs: int,
) -> int:
    from contextlib import ExitStack, closing

    from savedmodel_common.sole_writer import sole_writer
    from savedmodel_tools.edits import run as edits

    models, skipped = models_of(argument, follow_links, out)
    check_place(out, models)
    tell_skipped(skipped)
    codes: list[int] = [ExitCode.UNEXPECTED if skipped else ExitCode.AS_EXPECTED]
    lines = []
    with ExitStack() as stack:
        if out is not None and any(place for _, place in models):
            stack.enter_context(sole_writer(Path(out), beside_others=True))
            stack.callback(edits.clean, out)
        job = edits.Edit(change, out, follow_links)
        for line, status in stack.enter_context(closing(done(job, models, jobs))):
            codes.append(status)
            lines.append(line)
            if "error" in line:
                said = "; ".join(filter(None, [line["error"]["message"], line.get("kept")]))
                click.echo(printable(f"{line['error']['class']}: {said}"), err=True)
            elif not as_json:
                _show(line)
    if as_json:
        gone = [item._asdict() for item in skipped]
        click.echo(
            json.dumps({"schema": 1, "dry_run": out is None, "models": lines, "skipped": gone})
        )
    elif len(lines) > 1:
        for text in summary(
            (_outcome(line), line["source"], line.get("error", {}).get("message", ""))
            for line in lines
        ):
            click.echo(text)
    return leading(*codes)


def done(
    job: Callable[[tuple[Model, str]], tuple[dict[str, Any], int]],
    models: Sequence[tuple[Model, str]],
    jobs: int,
) -> Generator[tuple[dict[str, Any], int], None, None]:
    """Yield the result of ``job`` for each model, in their order: a line of the report, and an exit
    code.

    ``job`` runs in several processes, by `savedmodel_tools.jobs.ordered`. If one of them dies,
    the line of its model has an ``error``.
    """
    from savedmodel_tools.jobs import Died, ordered

    for (model, _), answer in zip(models, ordered(job, models, jobs)):
        if isinstance(answer, Died):
            error = {"class": "Died", "message": answer.reason}
            yield {"source": model.name, "output": None, "error": error}, ExitCode.UNEXPECTED
        else:
            yield answer


def _outcome(line: dict[str, Any]) -> str:
    if "error" in line:
        return "refused" if line["error"]["class"] == "RefusedError" else "failed"
    return (
        "done before"
        if line.get("done_before")
        else "nothing to do"
        if not line["changes"]
        else "edited"
    )


def _show(line: dict[str, Any]) -> None:
    arrow = f" -> {line['output']}" if line["output"] else " (dry run: nothing is written)"
    click.echo(
        printable(
            f"{line['source']}{arrow}{' (done before)' if line.get('done_before') else ''}",
            newlines=False,
        )
    )
    for text in _lines(line):
        click.echo(printable(f"  {text}", newlines=False))


def _lines(line: dict[str, Any]) -> Iterator[str]:
    yield from line["changes"] or ["nothing to do"]
    for text in line["kept"]:
        yield f"kept: {text}"
    before, after = line["before"], line["after"]
    parts = [
        f"{word} {before[key]:,} -> {after[key]:,}"
        for key, word in _WORDS.items()
        if before[key] != after.get(key)
    ]
    if parts:
        yield "; ".join(parts)


_WORDS = {
    "checkpoint_bytes": "checkpoint bytes",
    "graph_bytes": "graph bytes",
    "nodes": "nodes",
    "functions": "functions",
    "function_nodes": "their nodes",
    "objects": "objects",
}

"""Convert models of TF 1.x to TF 2, or of Keras 2 to Keras 3, with proof."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compat_matrix.commands.parts import completion
from compat_matrix.commands.parts.refusing import refusing_trouble
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import jobs_option, json_option, quiet_option
from savedmodel_common.command_line.groups import goes_on
from savedmodel_common.command_line.lists import Choice, list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.extras import need
from savedmodel_common.printable import printable
from savedmodel_tools.commands.parts.models import (
    GO_ON,
    model_arguments,
    sources,
    summary,
    tell_skipped,
)

if TYPE_CHECKING:
    from savedmodel_migration.migrate.migrator import Settings
    from savedmodel_migration.migrate.records import Record
    from savedmodel_migration.migrate.run import Job
    from savedmodel_tools.find import Found

MODULE_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@claims(
    green="every model is written and proved: its answers equal the old model's",
    asked="one request at least for each signature, of the old model and of the new one",
    not_asked=(
        "with --dry-run nothing is run; with --partial the report names what was lost or could not"
        " be asked"
    ),
    codes={ExitCode.UNEXPECTED: "a model is refused, or answers otherwise"},
)
@click.command()
@model_arguments
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for models/, records/ and the reports.",
)
@click.option(
    "--to",
    type=Choice(["tf2", "keras"]),
    default="tf2",
    show_default=True,
    help="Convert to SavedModels of TF 2, or to .keras files.",
)
@jobs_option
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Run on the dask scheduler at this address (tcp://host:8786) in place of --jobs.",
)
@click.option(
    "--dry-run",
    "only_plan",
    is_flag=True,
    help="Write nothing; show what each model is and what would be done.",
)
@click.option(
    "--partial",
    is_flag=True,
    help=(
        "Also write models that lose something, or that nothing could be asked. The report says so."
    ),
)
@list_option(
    "--custom-objects",
    metavar="MODULE:NAME",
    help="--to keras: import your class or function; several by commas.",
)
@click.option(
    "--trust-lambda", is_flag=True, help="--to keras: run the Python code that Lambda layers hold."
)
@click.option(
    "--wrap/--no-wrap",
    default=True,
    show_default=True,
    help="--to keras: wrap models that cannot be rebuilt in a layer.",
)
@click.option(
    "--runtime",
    "release",
    metavar="RUNTIME",
    shell_complete=completion.runtimes,
    default="",
    help=(
        "The TensorFlow that answers for old models which the one here does not run. Without it,"
        " such a model is not migrated, and its record names the releases that run it."
    ),
)
@click.option("--limit", default=300.0, show_default=True, help="Seconds for one step of a model.")
@json_option("the report (with --dry-run, the plan) as JSON")
@quiet_option
@goes_on(GO_ON)
def migrate(
    found: Found,
    follow_links: bool,
    out: Path | None,
    to: str,
    jobs: int,
    cluster: str | None,
    only_plan: bool,
    partial: bool,
    custom_objects: tuple[str, ...],
    trust_lambda: bool,
    wrap: bool,
    release: str,
    limit: float,
    as_json: bool,
    quiet: bool,
) -> int:
    """Convert SavedModels of TF 1.x to TF 2, or of Keras 2 to .keras files, and prove that the new
    models give the same answers.

    MODELS are SavedModels, folders of them, @lists or URLs. They are only read. Models that are
    proved equal are written to OUT/models, under their old relative names. The report lists the
    others, with the reason and what would help. Run the same command again to continue, or to
    convert models that have changed.

    \b
    Examples:
      savedmodel-compat migrate models --dry-run
      savedmodel-compat migrate models --out migrated --jobs 2
      savedmodel-compat migrate models --out migrated --runtime 2.8
      savedmodel-compat migrate --to keras models --out migrated
    """
    from savedmodel_migration.migrate.migrator import Settings
    from savedmodel_migration.migrate.run import MODELS, jobs_of

    tell_skipped(found.skipped)
    models = jobs_of(found.models if out is None else sources(found.models, out, MODELS))
    if to != "keras" and (custom_objects or trust_lambda or not wrap):
        raise click.UsageError(
            "--custom-objects, --trust-lambda and --no-wrap are about --to keras"
        )
    if to == "keras" and partial:
        raise click.UsageError(
            "--partial is about --to tf2: a Keras model that is not proved is never written"
        )
    if bad := next((text for text in custom_objects if not MODULE_NAME.fullmatch(text)), None):
        raise click.UsageError(
            f"--custom-objects {bad}: write MODULE:NAME, as my_package.layers:MyLayer"
        )
    if release:
        _check_release(release, to)
    settings = Settings(partial, limit, to, custom_objects, trust_lambda, wrap, release)
    if only_plan:
        code = _plan(models, settings, as_json)
    elif out is None:
        raise click.UsageError("say where the result goes (--out DIRECTORY), or --dry-run")
    else:
        code = _run(models, out.resolve(), settings, jobs, cluster, as_json, quiet)
    return code or (ExitCode.UNEXPECTED if found.skipped else ExitCode.AS_EXPECTED)


def _check_release(spec: str, to: str) -> None:
    """Refuse a runtime that cannot answer for old models. Raises ClickException."""
    from compat_matrix.runtimes.resolve import resolve
    from savedmodel_migration.migrate.elsewhere import READER

    if to == "keras":
        raise click.UsageError("--runtime is about --to tf2")
    with refusing_trouble():
        runtime = resolve(spec)
    if why := runtime.lacks.get(READER):
        raise click.UsageError(f"--runtime {spec}: {why}")


def _plan(jobs: list[Job], settings: Settings, as_json: bool) -> int:
    """Say what each model is and what would be done with it; the exit code is 1 when one would be
    refused.
    """
    from savedmodel_migration.migrate.keras_plan import keras_plan
    from savedmodel_migration.migrate.plan import plan_of

    code, lines = ExitCode.AS_EXPECTED, []
    for job in jobs:
        with job.model.local() as source:
            folder = source if source.is_dir() else source.parent
            plan = plan_of(folder)
            to_keras = (
                keras_plan(folder, settings)
                if settings.to == "keras" and not plan.problem
                else None
            )
        code = ExitCode.UNEXPECTED if plan.problem else code
        tags = "; ".join(",".join(part.tags) or "no tags" for part in plan.parts)
        says = (
            plan.problem
            or f"{plan.kind} (TensorFlow {plan.tensorflow or '?'}),"
            f" {plan.size:,} bytes, tags {tags}"
        )
        action, says = (to_keras[0], f"{to_keras[1]}; {says}") if to_keras else (plan.action, says)
        code = ExitCode.UNEXPECTED if action == "refuse" else code
        lines.append(
            {
                "name": job.model.name,
                "action": action,
                "says": says,
                "tensorflow": plan.tensorflow,
                "bytes": plan.size,
            }
        )
        if not as_json:
            click.echo(printable(f"{action}: {job.model.name}: {says}", newlines=False))
    if as_json:
        click.echo(json.dumps({"schema": 1, "dry_run": True, "models": lines}))
    return code


def _run(
    jobs: list[Job],
    out: Path,
    settings: Settings,
    workers: int,
    cluster: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    from savedmodel_common.sole_writer import sole_writer
    from savedmodel_migration.migrate import report

    need(*(() if cluster else ("tensorflow",)), "jinja2")  # which makes the report
    with sole_writer(out, beside_others=True):
        made = _made(jobs, out, settings, workers, cluster, quiet)
        if made:
            report.write(made, out)
    if as_json:
        click.echo(report.as_json(made), nl=False)
    else:
        _say(made, out)
    return _exit_code(made)


def _made(
    jobs: list[Job], out: Path, settings: Settings, workers: int, cluster: str | None, quiet: bool
) -> list[Record]:
    """Migrate all models, and return their records in the order of the jobs."""
    from rich.console import Console

    from compat_matrix.report.progress import Progress
    from savedmodel_migration.migrate import cluster as dask
    from savedmodel_migration.migrate import report
    from savedmodel_migration.migrate.run import recorded, run

    order = {job.relative: index for index, job in enumerate(jobs)}
    made: list[Record] = []
    progress = Progress(
        "models", "not migrated", Console(quiet=True) if quiet else None, tells=False
    )
    progress.start(len(jobs), recorded=recorded(jobs, out, settings))
    try:
        running = (
            run(jobs, out, settings, workers)
            if cluster is None
            else dask.run(jobs, out, settings, cluster)
        )
        with closing(running):  # an interruption ends the workers wherever it comes
            for record in running:
                made.append(record)
                progress.advance(report.problem(record), record.done_before)
    except dask.NoCluster as error:
        raise click.UsageError(str(error)) from error
    except BaseException:
        report.remove(out)  # a partial report could be mistaken for a complete one
        raise
    finally:
        progress.stop()
    made.sort(key=lambda record: order[record.relative])
    return made


def _say(made: list[Record], out: Path) -> None:
    from reference_impl.format.container.files import shown
    from savedmodel_migration.migrate import report
    from savedmodel_migration.migrate.records import badness

    ordered = sorted(made, key=lambda record: badness(record.status))
    for line in summary(
        (str(record.status), record.relative, report.told(record)) for record in ordered
    ):
        click.echo(line)
    if made:
        click.echo(f"  {shown(out / 'report.html')}")


def _exit_code(made: list[Record]) -> int:
    from savedmodel_migration.migrate.records import Status

    if any(record.status is Status.FAILED for record in made):
        return ExitCode.HARNESS_ERROR
    return (
        ExitCode.AS_EXPECTED if all(record.status.good for record in made) else ExitCode.UNEXPECTED
    )

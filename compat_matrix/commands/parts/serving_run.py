"""``savedmodel-compat serving run``: the matrix of servers."""

from __future__ import annotations

import os
from pathlib import Path

import click

from compat_matrix.cells.outcomes import ExitCode
from compat_matrix.cells.plan import STANDIN
from compat_matrix.commands.parts.planned import asked_servers, exit_codes, ledger_path, plan_options, require_option
from compat_matrix.commands.parts.plugin_options import Chosen, plugin_option
from compat_matrix.commands.parts.refusing import Refused
from compat_matrix.commands.parts.renamed import renaming
from compat_matrix.plugins.ledgers import ledger_text
from compat_matrix.runtimes.runtime import local_runtime
from compat_matrix.verdict import Ledger

DEFAULT = (STANDIN,)


@click.command("run", cls=renaming(cases="--cases-dir", image="--server"))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="The output folder.")
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="SERVER",
    help="What to ask: an image (tensorflow/serving:2.19.1, a digest), standin, standin@RUNTIME, binary:PATH, "
    "remote:HOST:PORT,PORT; repeatable "
    "(default: COMPAT_SERVERS, by blanks, or standin).",
)
@click.option(
    "-n",
    "--jobs",
    "processes",
    type=click.IntRange(1, 64),
    help="Processes that make the artifacts (default: by CPUs and memory).",
)
@click.option("--case", "case", multiple=True, metavar="NAME", help="Only this case (* is allowed; may be repeated).")
@click.option("--producer", multiple=True, metavar="NAME", help="Only what this producer writes; NAME=FOLDER.")
@click.option("--consumer", multiple=True, hidden=True)
@click.option("--check", multiple=True, metavar="NAME", help="Only this check.")
@click.option("--resume", is_flag=True, help="Keep the results of an interrupted run of the same plan, run what is missing.")
@click.option("--no-build", is_flag=True, help="Do not make the stand-in's image where it is missing.")
@require_option
@plan_options
@plugin_option
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
@exit_codes
def run(
    out: Path,
    servers: tuple[str, ...],
    processes: int | None,
    resume: bool,
    no_build: bool,
    require: bool | str,
    fixtures: Path | None,
    cases: Path | None,
    expectations: Path | None,
    plugins: Path | None,
    consumer: tuple[str, ...],
    pytest_args: tuple[str, ...],
    **selectors: tuple[str, ...],
) -> int:
    """Put every fixture and every case behind model servers and ask them over gRPC and REST.

    Of plug-ins the exports of producers are served; a consumer is none of theirs, the servers are.

    A server that is not here leaves its cells NOT_RUN, with the command that would provide it.
    """
    from compat_matrix.engine import running
    from compat_matrix.plan.planning import Axes, make_plan

    if consumer:
        raise click.UsageError("the consumers are servers here (--server); `matrix run --consumer` asks another program")
    given = Chosen.of(selectors, plugins)
    if plugins and not given.registry.theirs[1]:
        raise click.UsageError(f"{plugins} declares no producer, and a consumer of somebody else's is no server")
    specs = servers or tuple(os.environ.get("COMPAT_SERVERS", "").split()) or DEFAULT
    asked = asked_servers(specs, None if no_build else build_standin)
    text = ledger_text(ledger_path(expectations, fixtures, cases), given.registry)
    axes = Axes((local_runtime(), *asked), served_only=True)
    producers = given.registry.planned(given.selectors["producer"])
    plan = make_plan(Ledger.parse(text), fixtures, cases, axes, producers, registry=given.registry)
    consumers = sorted({runtime.consumer for runtime in asked})
    chosen = running.select(plan, {**given.selectors, "consumer": consumers}, ())
    # What nobody will ask about is made too when nothing is selected: a whole run is what the ledger is judged by.
    artifacts = {cell.artifact_id for cell in plan if cell.id in chosen and not cell.decided}
    whole = artifacts and not any(given.selectors.values())
    chosen |= {cell.id for cell in plan if cell.is_production and (whole or cell.artifact_id in artifacts)}
    order = running.Order(
        plan,
        chosen,
        text,
        (local_runtime(), *asked),
        given.words,
        running.selection_of({**given.selectors, "server": specs}, fixtures, cases),
        processes,
        resume,
        require,
        pytest_args,
        given.registry,
    )
    return int(running.carry_out(out.resolve(), order)["exit_code"])


def build_standin() -> None:
    """Make the stand-in's image where an engine is there and it is not; what is missing is told by the plan."""
    from compat_matrix.runtimes.places import RuntimeTrouble
    from compat_matrix.serving.drivers import NotHere, engine
    from compat_matrix.serving.standin import image

    try:
        client = engine.connect()
    except NotHere:
        return
    try:
        click.echo(f"image of the stand-in: {image.build(client)}", err=True)
    except RuntimeTrouble as error:
        raise Refused(str(error), ExitCode.HARNESS_ERROR) from error
    finally:
        client.close()

"""Ask model servers about one model, over gRPC and REST.

Task: Check models
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from compat_matrix.cells.outcomes import ExitCode
from compat_matrix.cells.sole_writer import sole_writer
from compat_matrix.commands.parts.planned import EXISTING_DIR, asked_servers, exit_codes, require_option
from compat_matrix.commands.parts.refusing import Refused
from compat_matrix.commands.parts.renamed import renaming


@click.command("serve-check", cls=renaming(image="--server"))
@click.argument("path", type=EXISTING_DIR)
@click.option(
    "--server",
    "servers",
    multiple=True,
    required=True,
    metavar="SERVER",
    help="What to ask: an image (tensorflow/serving:2.19.1, a digest), standin, standin@RUNTIME, binary:PATH, "
    "remote:HOST:PORT,PORT (repeatable).",
)
@click.option("--requests", type=EXISTING_DIR, help="A folder with io.json and tensors, in place of requests made up.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Keep report, results and evidence in this folder.")
@require_option
@exit_codes
def serve_check(path: Path, servers: tuple[str, ...], requests: Path | None, out: Path | None, require: bool | str) -> int:
    """Put the model at PATH behind model servers and compare what they answer, over gRPC and REST, with what is recorded.

    PATH is an artifact, with requests and answers, or a SavedModel: then requests are made up from its signatures, and the local
    TensorFlow answers them first. A server that is not here is NOT_RUN, with the command that would provide it. Exit code 3: no
    server answered anything, so nothing was compared.
    """
    kept = out.resolve() if out else Path(tempfile.mkdtemp(prefix="savedmodel-compat-"))
    with sole_writer(kept):
        return _checked(path.resolve(), servers, requests, kept, require)


def _checked(path: Path, servers: tuple[str, ...], requests: Path | None, out: Path, require: bool | str) -> int:
    from compat_matrix.checks.artifact import ArtifactError, read_artifact
    from compat_matrix.commands.parts.serving_run import build_standin
    from compat_matrix.common.printable import printable
    from compat_matrix.engine import running
    from compat_matrix.plan.planning import Axes, plan_of
    from compat_matrix.requests.given import as_artifact
    from compat_matrix.serving.staging import Unstageable
    from compat_matrix.verdict import NO_ENTRIES

    asked = asked_servers(servers, build_standin)
    try:
        given = as_artifact(path, out / running.GIVEN_FOLDER, requests)
    except Unstageable as error:
        raise Refused(str(error), ExitCode.UNEXPECTED) from error
    for line in given.left_out:
        click.echo(f"not asked: {line}", err=True)
    try:
        requested = read_artifact(given.directory).requests
    except ArtifactError as error:
        raise Refused(printable(str(error)), ExitCode.HARNESS_ERROR) from error
    if not requested:
        said = f"no request can be made for {path}, so there is nothing to compare. Give requests (--requests FOLDER)."
        raise Refused(printable(said), ExitCode.INCOMPLETE)
    folder = given.directory.parent
    plan = plan_of(given.directory, Axes(asked, served_only=True))
    chosen = running.select(plan, {}, ())
    text = NO_ENTRIES.read_text(encoding="utf-8")
    order = running.Order(plan, chosen, text, asked, ("--fixtures", str(folder)), {"server": list(servers)}, 1, False, require)
    return int(running.carry_out(out, order)["exit_code"])

"""Check an export: every consumer here, the same answers, nothing lost."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compat_matrix.cells.plan import STANDIN
from compat_matrix.commands.parts.planned import (
    build_standin,
    exit_codes,
    require_option,
    server_option,
    servers_only_option,
)
from compat_matrix.commands.parts.plugin_options import plugin_option
from compat_matrix.commands.parts.refusing import Refused
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.lists import list_option, quiet_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import printable
from savedmodel_common.sole_writer import sole_writer
from savedmodel_tools.commands.parts.models import fail_on_option, model_arguments, tell_skipped

if TYPE_CHECKING:
    from compat_matrix.exports.options import Options
    from compat_matrix.exports.report import Report
    from savedmodel_tools.find import Found

FILE = click.Path(dir_okay=False, path_type=Path)


@claims(
    green="every check that was made passes, or fails as the ledger says; answers were compared",
    asked=lambda: _claimed(asked=True),
    not_asked=lambda: _claimed(asked=False),
    codes={
        ExitCode.UNEXPECTED: (
            "a check failed, also when answers are equal only beyond the limit of a stated"
            " tolerance"
        ),
        ExitCode.STALE_EXPECTATION: "an entry of the ledger is stale",
        ExitCode.INCOMPLETE: (
            "nothing was compared, or something named (--consumer, --check, --runtime, --server)"
            " was not asked"
        ),
    },
)
@click.command()
@model_arguments
@click.option(
    "--requests",
    type=click.Path(exists=True, path_type=Path),
    help="A folder with io.json and tensors (default: io/ in PATH or beside it).",
)
@click.option(
    "--make-up",
    type=click.IntRange(0, 100),
    help=(
        "Requests to make up for each signature without one (default: one if none is given, else"
        " none)."
    ),
)
@list_option(
    "--consumer",
    "consumers",
    metavar="NAME",
    help="Ask only this one, or several by commas; a plug-in too: NAME, NAME=COMMAND.",
)
@plugin_option
@click.option(
    "--runtime",
    "tensorflow",
    multiple=True,
    metavar="RUNTIME",
    help="Ask other installed releases too: 2.15, or several by commas.",
)
@server_option
@servers_only_option
@list_option(
    "--check", "checks", metavar="NAME", help="Make only this check, or several by commas."
)
@click.option(
    "--tolerance", metavar="'RTOL ATOL REASON'", help="How far answers may be apart, and why."
)
@fail_on_option("Findings of `verify` of at least this severity fail.")
@click.option(
    "--limit",
    type=float,
    default=60.0,
    show_default=True,
    help="Seconds for one step of a consumer.",
)
@require_option
@click.option(
    "--expectations",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A ledger of known failures.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep report, results and evidence in this folder.",
)
@click.option("--junit", type=FILE, help="Write JUnit XML to this file.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object on stdout (docs/exporters/check_exports.md).",
)
@quiet_option
@exit_codes
def check(
    found: Found,
    follow_links: bool,
    out: Path | None,
    junit: Path | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Check exports: do all consumers of this machine load MODELS, show their signatures, answer
    the same, and save them again?

    MODELS are SavedModels or artifacts of any exporter, also folders of them, @lists, URLs. Answers
    are compared with those in io/io.json; without any, requests are made up, and consumers are
    compared with each other. Defects that `verify` finds and a fingerprint of other files fail too.
    With --server model servers are asked too, over gRPC and REST; with --servers-only nobody else
    is. What was not asked is NOT_RUN; a check that compared nothing ends with 3.

    \b
    Consumers: tf2, v1_session, c_api, reference (asked by default); cpp; those of plug-ins.
    Exit codes, the first that applies: 64 usage, 4 harness or environment error, 1 unexpected
    failure, 2 stale expectation, 3 incomplete or nothing compared, 0 otherwise.

    \b
    Examples:
      savedmodel-compat check model
      savedmodel-compat check exports --server tensorflow/serving:2.19.1 --junit junit.xml
      savedmodel-compat check model --consumer tf2 --check values --requests requests
    """
    if asked["servers_only"] and not asked["servers"]:
        raise click.UsageError("--servers-only asks model servers: name one (--server)")
    kept = out.resolve() if out else Path(tempfile.mkdtemp(prefix="savedmodel-compat-"))
    quiet = asked.pop("quiet")
    try:
        with sole_writer(kept):
            report = _checked(found, kept, quiet or as_json, clear=out is not None, **asked)
    except BaseException:
        if out is None:
            shutil.rmtree(kept, ignore_errors=True)
        raise
    if as_json:
        import json

        click.echo(json.dumps(report.to_json(), separators=(",", ":")))
    else:
        click.echo(printable(report.text()))
        tell_skipped(found.skipped)
    if junit is not None:
        junit.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(kept / "junit.xml", junit)
    if out is None and report.ok:
        shutil.rmtree(kept, ignore_errors=True)
    return report.exit_code or (int(ExitCode.INCOMPLETE) if found.skipped else 0)


def _checked(
    found: Found, out: Path, quiet: bool, clear: bool, requests: Path | None, **asked: Any
) -> Report:
    from compat_matrix.exports import session
    from compat_matrix.report.progress import Progress, unexpected
    from compat_matrix.requests.artifact import ArtifactError
    from compat_matrix.requests.given import Export
    from compat_matrix.requests.policies import OptionError
    from savedmodel_common.staging import Unstageable

    progress = None if quiet else Progress("cells", "unexpected")
    try:
        options = _options(**asked)
        if STANDIN in options.servers:
            build_standin()
        with contextlib.ExitStack() as stack:
            models = [(model.name, stack.enter_context(model.local())) for model in found.models]
            exports = [
                Export(path.parent if path.is_file() else path, requests, name=name)
                for name, path in models
            ]
            if clear:
                session.clear(out, [export.path for export in exports])
            running = stack.enter_context(session.Session(out))
            watch = (
                (progress.start, lambda result: progress.advance(unexpected(result)))
                if progress
                else ()
            )
            return running.check(exports, options, out, *watch)
    except (OptionError, ArtifactError) as error:
        raise click.UsageError(printable(str(error))) from error
    except Unstageable as error:
        raise Refused(str(error), ExitCode.UNEXPECTED) from error
    finally:
        if progress:
            progress.stop()


def _options(
    consumers: tuple[str, ...],
    checks: tuple[str, ...],
    tolerance: str | None,
    servers_only: bool,
    **asked: Any,
) -> Options:
    from compat_matrix.exports import options

    if servers_only:
        checks = options.of_servers(checks)
    return options.Options(
        consumers=consumers,
        checks=checks or None,
        tolerance=options.tolerance(tolerance) if tolerance else None,
        **asked,
    )


def _claimed(asked: bool) -> str:
    """Return what a check without options asks, or what it does not."""
    from compat_matrix.cells.consumers import CONSUMERS
    from compat_matrix.checks.table import CHECKS, SERVE_CHECKS
    from compat_matrix.exports import options

    if asked:
        makes = ", ".join([*options.STILL, *CHECKS, *options.TOGETHER])
        return f"the checks {makes}, through {', '.join(options.CONSUMERS)} of the TensorFlow here"
    others = ", ".join(name for name in CONSUMERS if name not in options.CONSUMERS)
    return (
        f"the checks {', '.join(SERVE_CHECKS)} (--server); the consumers {others} and plug-ins"
        " (--consumer, --plugins); other releases (--runtime); a signature without a request is"
        " listed as NOT_RUN (--require fails on it)"
    )

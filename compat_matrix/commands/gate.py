"""Compare a baseline TensorFlow with a candidate: what changed, what blocks.

Task: Compare TensorFlows
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from compat_matrix.commands.parts import planned
from compat_matrix.commands.parts.plugin_options import Chosen, plugin_option
from compat_matrix.commands.parts.refusing import Refused
from compat_matrix.plugins.ledgers import ledger_text
from compat_matrix.runtimes.runtime import Runtime
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.lists import list_option, quiet_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import counted, unknown

if TYPE_CHECKING:
    from compat_matrix.gate.pairs import Pair

OUT = click.Path(file_okay=False, path_type=Path)

# Options that have an effect on the comparison of results that exist.
COMPARES = {
    "baseline",
    "candidate",
    "out",
    "dry_run",
    "as_json",
    "full",
    "of",
    "same",
    "fail_on_drift",
    "accept_known",
    "quiet",
}


@claims(
    green="no pair regressed, vanished or drifted beyond the tolerance of its case",
    asked=lambda: _claimed(asked=True),
    not_asked=lambda: _claimed(asked=False),
    codes={
        ExitCode.UNEXPECTED: (
            "something regressed, vanished, is unstable, or drifted beyond the tolerance of its"
            " case"
        ),
        ExitCode.INCOMPLETE: (
            "a pair has no result, nothing was compared, or something named was not asked"
        ),
    },
)
@click.command()
@click.option("--baseline", required=True, metavar="RUNTIME", help="What is in use.")
@click.option("--candidate", required=True, metavar="RUNTIME", help="What is to replace it.")
@click.option(
    "--out", type=OUT, default=Path("gate-out"), show_default=True, help="The output folder."
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Write nothing: compare two runs that exist (two folders, or --run).",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="The pairs that changed on stdout, by kind; gate.json says more of them.",
)
@click.option("--full", is_flag=True, help="List every pair that changed.")
@click.option(
    "--run",
    "of",
    type=planned.RUN_FOLDER,
    help="Run nothing: compare two versions of this run (of `grid`, of a gate).",
)
@planned.case_option
@planned.maker_options
@list_option(
    "--check",
    "checks",
    metavar="NAME",
    help=(
        "These checks, in place of those that write nothing:"
        " load,signatures,values,objects,checkpoint."
    ),
)
@click.option(
    "--all-checks",
    is_flag=True,
    help="Every check: also those that write models, relocate and reexport.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="One model for each feature, read by tf2 and c_api: a first answer in a minute.",
)
@click.option(
    "--same", is_flag=True, help="Accept one TensorFlow, or one folder, as baseline and candidate."
)
@click.option(
    "--fail-on-drift",
    is_flag=True,
    help="Block also on answers that differ within the tolerance of their case.",
)
@click.option(
    "--accept-known", is_flag=True, help="Do not block on regressions that the expectations list."
)
@click.option("--resume", is_flag=True, help="Go on with an interrupted gate in the same folder.")
@click.option("--no-install", is_flag=True, help="Do not install a runtime that is missing.")
@planned.jobs_option
@planned.plan_options
@plugin_option
@quiet_option
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
@planned.exit_codes
def gate(
    baseline: str,
    candidate: str,
    out: Path,
    dry_run: bool,
    as_json: bool,
    full: bool,
    of: Path | None,
    checks: tuple[str, ...],
    all_checks: bool,
    quick: bool,
    same: bool,
    fail_on_drift: bool,
    accept_known: bool,
    quiet: bool,
    resume: bool,
    no_install: bool,
    processes: int | None,
    fixtures: Path | None,
    cases: Path | None,
    expectations: Path | None,
    plugins: Path | None,
    pytest_args: tuple[str, ...],
    **selectors: tuple[str, ...],
) -> int:
    """Compare two TensorFlows: what regressed, vanished, drifted or was fixed, and whether that
    blocks.

    A RUNTIME is a requirement (tensorflow==2.21.0rc1), a name of the registry (2.20), a wheel, an
    interpreter, a venv, or `local`; a missing one is installed. Or both are output folders of
    `matrix run`. Both write every case and read what either wrote, and the committed artifacts; two
    folders are compared as they are. gate.md, gate.html, gate.json, junit.xml are written to the
    output folder. The line with the verdict names the checks and cases that were not asked.

    \b
    Exit codes, the first that applies: 64 usage, also one TensorFlow given twice (--same accepts
    it), 4 harness or environment error, 1 something regressed, vanished, or drifted by more than
    its case tolerates, 3 incomplete, nothing compared, or something named was not asked, 0 nothing
    blocks. 130: interrupted, there is no verdict.

    \b
    Examples:
      savedmodel-compat gate --baseline 2.20 --candidate tensorflow==2.21.0
      savedmodel-compat gate --baseline 2.20 --candidate tensorflow==2.21.0 --quick
      savedmodel-compat gate --baseline 2.20 --candidate dist/tensorflow.whl --case 'keras_*' --fail-on-drift
      savedmodel-compat gate --baseline runs/old --candidate runs/new --dry-run --full
    """  # noqa: E501
    from rich.console import Console

    from compat_matrix.engine import running
    from compat_matrix.engine.sessions import QUIET
    from compat_matrix.gate import run as gating
    from compat_matrix.gate import twice
    from compat_matrix.report.gate_words import by_kind
    from compat_matrix.report.progress import announce
    from savedmodel_common.sole_writer import sole_writer

    out, specs = out.resolve(), (baseline, candidate)

    def told(pairs: list[Pair], sides: list[dict[str, str]]) -> int:
        console = Console(quiet=True) if as_json else running.stdout_console()
        if not quiet:
            announce(f"comparing {counted(len(pairs), 'pair')}")
        drift = {"fail_on_drift": fail_on_drift, "accept_known": accept_known}
        verdict = gating.report(None if dry_run else out, pairs, sides, console, full=full, **drift)
        if as_json:
            click.echo(json.dumps(by_kind(verdict)))
        return int(verdict["exit_code"])

    known = [gating.is_folder(spec) for spec in specs]
    if of is not None or all(known):
        _refuse_what_runs(click.get_current_context())
    if of is not None:
        try:
            pairs, labels = gating.versions_of(of, *specs)
        except gating.UnknownVersion as error:
            raise click.UsageError(str(error)) from error
        if labels[0]["label"] == labels[1]["label"]:
            _refuse_twice(specs, same)
        return told(pairs, labels)
    if all(known):
        folders = [planned.RUN_FOLDER.convert(spec, None, None) for spec in specs]
        if twice.one_run(*folders):
            _refuse_twice(specs, same)
        return told(*gating.folders(*folders))
    if any(known):
        raise click.UsageError("two folders of runs, or two runtimes; not one of each")
    if dry_run:
        raise click.UsageError(
            "--dry-run compares runs that exist: two folders (--baseline, --candidate), or --run"
        )
    given = Chosen.of(selectors, plugins)
    scope = gating.Scope(
        _checks(checks, all_checks, quick),
        given.selectors,
        fixtures,
        cases,
        given.registry,
        given.words,
        named={"check": checks},
        quick=quick,
    )
    ledger = ledger_text(planned.ledger_path(expectations, fixtures, cases), given.registry)
    found = _runtimes(specs, same, not no_install)
    runtimes = gating.told_apart(*found)
    with sole_writer(out / gating.RUN_FOLDER):
        arguments = pytest_args + ((QUIET,) if quiet else ())
        pairs = gating.execute(
            out, runtimes, scope, ledger, resume=resume, processes=processes, pytest_args=arguments
        )
        asked = zip((runtime.tensorflow_version or "" for runtime in runtimes), specs)
        return told(
            pairs, [gating.side(version, spec, out / gating.RUN_FOLDER) for version, spec in asked]
        )


def _refuse_what_runs(ctx: click.Context) -> None:
    """Raise UsageError for an option that has no effect on results that exist."""
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if (
            name not in COMPARES
            and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
            and ctx.params.get(name)
        ):
            raise click.UsageError(
                f"{parameter.opts[-1]} is about a gate that runs cells; here results that exist are"
                " compared"
            )


def _refuse_twice(specs: Sequence[str], same: bool) -> None:
    """Raise UsageError unless one TensorFlow, or one run, may stand on both sides."""
    if not same:
        both = specs[0] if specs[0] == specs[1] else " and ".join(specs)
        raise click.UsageError(
            f"baseline and candidate are the same ({both}): everything would be alike; --same"
            " compares them"
        )


def _checks(names: Sequence[str], everything: bool, few: bool) -> tuple[str, ...]:
    """The checks to ask. Raises UsageError."""
    from compat_matrix.checks import CHECKS
    from compat_matrix.gate.quick import CHECKS as QUICK_CHECKS
    from compat_matrix.gate.run import DEFAULT_CHECKS

    if wrong := unknown("check", names, CHECKS):
        raise click.UsageError(wrong)
    return (
        tuple(CHECKS) if everything else tuple(names) or (QUICK_CHECKS if few else DEFAULT_CHECKS)
    )


def _runtimes(specs: tuple[str, str], same: bool, install: bool) -> tuple[Runtime, Runtime]:
    """The runtimes of both specs, installed if need be once both are known.

    Raises Refused, UsageError.

    One thing twice is refused before anything is installed, and a runtime without TensorFlow before
    that.
    """
    from compat_matrix.gate import twice
    from compat_matrix.runtimes.resolve import named

    for spec in specs:
        if (count := len(named(spec))) != 1:
            raise click.UsageError(f"{spec} names {count} runtimes")
    if specs[0].strip() == specs[1].strip() and not _lacks_tensorflow(specs[0]):
        _refuse_twice(specs, same)
    one, other = planned.asked_runtimes(specs, install)
    for spec, runtime in zip(specs, (one, other)):
        if runtime.tensorflow_version is None:
            raise Refused(f"{spec}: {runtime.no_tensorflow}", ExitCode.HARNESS_ERROR)
    if twice.one_environment(one, other):
        _refuse_twice(specs, same)
    return one, other


def _lacks_tensorflow(spec: str) -> bool:
    """Whether a spec names this interpreter and no TensorFlow is installed in it."""
    from compat_matrix.runtimes.runtime import LOCAL, local_runtime

    return spec.strip() == LOCAL and local_runtime().tensorflow_version is None


def _claimed(asked: bool) -> str:
    """Return what a gate without options asks, or what it does not."""
    from compat_matrix.checks import CHECKS
    from compat_matrix.gate.run import DEFAULT_CHECKS, LEFT_OUT
    from compat_matrix.plan.planning import FROZEN, READS

    if asked:
        return (
            f"the checks {', '.join(DEFAULT_CHECKS)} of every case and fixture (of {FROZEN}:"
            f" {', '.join(READS)}), in both TensorFlows"
        )
    others = ", ".join(name for name in CHECKS if name not in DEFAULT_CHECKS)
    return (
        f"the checks {others} (--all-checks); the cases {LEFT_OUT} (--case); model servers. The"
        " line with the verdict names them"
    )

"""``savedmodel-compat gate run``: ask two TensorFlows the same, and compare the answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from compat_matrix.commands.parts import completion, planned
from compat_matrix.commands.parts.gate_verdict import (
    CODES,
    GREEN,
    Wanted,
    refuse_twice,
    tell,
    verdict_options,
)
from compat_matrix.commands.parts.plugin_options import Chosen, plugin_option
from compat_matrix.commands.parts.refusing import Refused
from compat_matrix.plugins.ledgers import ledger_text
from compat_matrix.runtimes.runtime import Runtime
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import quiet_option
from savedmodel_common.command_line.lists import list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import unknown


@claims(
    green=GREEN,
    asked=lambda: _claimed(asked=True),
    not_asked=lambda: _claimed(asked=False),
    codes=CODES,
)
@click.command()
@click.option(
    "--baseline",
    required=True,
    metavar="RUNTIME",
    shell_complete=completion.runtimes,
    help="The TensorFlow in use.",
)
@click.option(
    "--candidate",
    required=True,
    metavar="RUNTIME",
    shell_complete=completion.runtimes,
    help="The TensorFlow that is to replace it.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("gate-out"),
    show_default=True,
    help="The output folder.",
)
@planned.dry_run_option
@planned.case_option
@planned.maker_options
@list_option(
    "--check",
    "checks",
    metavar="NAME",
    shell_complete=completion.checks,
    help=(
        "Only this check; several by commas. Default: load,signatures,values,objects,checkpoint,"
        " which write nothing."
    ),
)
@click.option(
    "--all-checks",
    is_flag=True,
    help="Make every check, also relocate and reexport, which write models.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Ask one model for each feature, read by tf2 and c_api: an answer in about a minute.",
)
@click.option("--resume", is_flag=True, help="Continue an interrupted gate in the same folder.")
@planned.no_install_option
@planned.jobs_option
@planned.plan_options
@plugin_option
@verdict_options
@quiet_option
@planned.pytest_arguments
@planned.exit_codes
def run(
    baseline: str,
    candidate: str,
    out: Path,
    dry_run: bool,
    checks: tuple[str, ...],
    all_checks: bool,
    quick: bool,
    same: bool,
    fail_on_drift: bool,
    accept_known: bool,
    full: bool,
    as_json: bool,
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
    """Ask two TensorFlows the same questions: what regressed, vanished, drifted or was fixed?

    Each writes every model, and reads the models of both and those that are committed. The command
    then compares the answers pair by pair and writes gate.html, gate.md, gate.json and junit.xml to
    the output folder. The line with the verdict names the checks and cases that were left out.

    A RUNTIME is a requirement (tensorflow==2.21.0rc1), a release (2.20), a wheel, an interpreter, a
    venv, or `local`. A missing one is installed.

    Options after -- are passed to pytest.

    \b
    Exit codes, the first that applies: 64 wrong usage, also the same TensorFlow twice; 4 harness or
    environment error; 1 something regressed, vanished, or drifted by more than its case tolerates;
    3 incomplete, nothing was compared, or something you named was not asked; 0 nothing blocks; 130
    interrupted, there is no verdict.

    \b
    Examples:
      savedmodel-compat gate run --baseline 2.20 --candidate tensorflow==2.21.0
      savedmodel-compat gate run --baseline 2.20 --candidate tensorflow==2.21.0 --quick
      savedmodel-compat gate run --baseline 2.20 --candidate dist/tensorflow.whl --case 'keras_*' --fail-on-drift
    """  # noqa: E501
    from compat_matrix.engine.sessions import QUIET
    from compat_matrix.gate import run as gating
    from compat_matrix.verdict import Ledger
    from savedmodel_common.sole_writer import sole_writer

    out, specs = out.resolve(), (baseline, candidate)
    for spec in specs:
        if gating.is_folder(spec):
            raise click.UsageError(f"{spec} is a folder: `gate compare` compares finished runs")
    wanted = Wanted(fail_on_drift, accept_known, full, as_json, quiet)
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
    found = _runtimes(specs, same, not (no_install or dry_run))
    runtimes = gating.told_apart(*found)
    if dry_run:
        plan = gating.plan_of(runtimes, scope, Ledger.parse(ledger))
        return planned.list_cells(plan, gating.asked(plan, scope), as_json)
    with sole_writer(out / gating.RUN_FOLDER):
        arguments = pytest_args + ((QUIET,) if quiet else ())
        pairs = gating.execute(
            out, runtimes, scope, ledger, resume=resume, processes=processes, pytest_args=arguments
        )
        asked = zip((runtime.tensorflow_version or "" for runtime in runtimes), specs)
        sides = [gating.side(version, spec, out / gating.RUN_FOLDER) for version, spec in asked]
        return tell(out, pairs, sides, wanted)


def _checks(names: Sequence[str], everything: bool, few: bool) -> tuple[str, ...]:
    """The checks to ask. Raises UsageError."""
    from compat_matrix.checks import CHECKS
    from compat_matrix.gate.quick import CHECKS as QUICK_CHECKS
    from compat_matrix.gate.run import DEFAULT_CHECKS

    if wrong := unknown("check", names, CHECKS):
        raise click.UsageError(wrong)
    if everything:
        return tuple(CHECKS)
    if names:
        return tuple(names)
    return QUICK_CHECKS if few else DEFAULT_CHECKS


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
        refuse_twice(specs, same)
    one, other = planned.asked_runtimes(specs, install)
    for spec, runtime in zip(specs, (one, other)):
        if runtime.tensorflow_version is None:
            raise Refused(f"{spec}: {runtime.no_tensorflow}", ExitCode.HARNESS_ERROR)
    if twice.one_environment(one, other):
        refuse_twice(specs, same)
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

"""Write a copy of a model for an older TensorFlow."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import follow_links_option, jobs_option, json_option
from savedmodel_common.command_line.completion import folders
from savedmodel_common.command_line.lists import Choice, list_option
from savedmodel_common.exit_codes import ExitCode, leading
from savedmodel_common.printable import message_of, printable
from savedmodel_tools.commands.compat import LOADER_HELP, LOADERS
from savedmodel_tools.commands.parts.editing import check_place, done, models_of
from savedmodel_tools.commands.parts.models import (
    one_release,
    releases,
    summary,
    tell_skipped,
)

if TYPE_CHECKING:
    from compat_matrix.exports.release_proof import Proof, Prover
    from savedmodel_tools.downgrade.model import Plan
    from savedmodel_tools.find import Model

SHOWN = 10  # refusals


@claims(
    green=(
        "the copy is written, and the TensorFlow of --target answered its requests as the source"
        " does here (PROVED)"
    ),
    asked=lambda: (
        f"the loaders {', '.join(LOADERS)} that the release has, or those of --for: one request for"
        " each signature"
    ),
    not_asked=(
        "anything with --no-proof and --dry-run, which is called UNPROVED; requests that nobody"
        " could make up are listed"
    ),
    codes={
        ExitCode.UNEXPECTED: "refused, or the copy answers otherwise: nothing is written",
        ExitCode.INCOMPLETE: (
            "written, but UNPROVED: the release is missing, or a loader that --for names was not"
            " asked"
        ),
    },
)
@click.command()
@click.argument("model", shell_complete=folders)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="New directory for the copy, or for the copies of a folder.",
)
@click.option("--dry-run", is_flag=True, help="Write nothing; show what would be done.")
@click.option(
    "--target",
    required=True,
    metavar="RELEASE",
    shell_complete=releases,
    help="The TensorFlow that must load the copy: 1.15, tensorflow==2.4.4.",
)
@list_option(
    "--for",
    "loaders",
    type=Choice(LOADERS),
    help=f"Loaders that must load the copy: {LOADER_HELP}. Default: all.",
)
@click.option(
    "--no-proof", is_flag=True, help="Do not compare answers in the TensorFlow of --target."
)
@click.option(
    "--requests",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help=(
        "Folder with io.json and tensors, for one model. Default: io/ beside the model, else"
        " generated inputs."
    ),
)
@json_option(page="docs/zoo/downgrade.md")
@jobs_option
@follow_links_option
def downgrade(
    model: str,
    out: Path | None,
    dry_run: bool,
    target: str,
    loaders: tuple[str, ...],
    no_proof: bool,
    requests: Path | None,
    as_json: bool,
    jobs: int,
    follow_links: bool,
) -> int:
    """Write a copy of MODEL, or of every model in a folder, that the TensorFlow of --target loads.

    The command rewrites parts that do not change any answer. If the release lacks anything else,
    the command names it and writes nothing. The TensorFlow of --target then answers the same
    requests as the source; a copy with other answers is not written.

    Exit code 1: the model was refused, or the copy answers differently. 3: the copy is written but
    UNPROVED, because the release is not installed or a loader of --for could not run; the message
    has the command that installs it.

    \b
    Examples:
      savedmodel-compat downgrade model --target 2.4 --out model_for_2.4
      savedmodel-compat downgrade model --target 1.15 --for session --out model_for_1.15
      savedmodel-compat downgrade models --target 2.4 --dry-run
    """
    from savedmodel_tools.skew.history import history

    out = None if dry_run else out
    if out is None and not dry_run:
        raise click.UsageError("say where the result goes (--out DIRECTORY), or --dry-run")
    table = history()
    index = one_release(target, table)
    found, skipped = models_of(model, follow_links, out)
    if requests is not None and len(found) != 1:
        raise click.UsageError("--requests belong to one model; MODEL names several")
    check_place(out, found)
    codes: list[int] = [ExitCode.UNEXPECTED if skipped else ExitCode.AS_EXPECTED]
    lines: list[dict[str, Any]] = []
    tell_skipped(skipped)
    asked, release = loaders or tuple(LOADERS), table.releases[index].name
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="savedmodel-compat-")))
        job = _Job(
            out,
            release,
            index,
            asked,
            None if no_proof or dry_run else work,
            requests,
            follow_links,
            loaders,
        )
        for line, status in stack.enter_context(closing(done(job, found, jobs))):
            codes.append(status)
            lines.append(line)
            if "error" in line:
                told = f"{line['source']}: {line['error']['class']}: {line['error']['message']}"
                click.echo(printable(told, newlines=False), err=True)
            elif not as_json:
                _show(line)
    if len(lines) > 1 and not as_json:
        click.echo("\n".join(summary((state, "", "") for state in sorted(map(_state, lines)))))
    if as_json:
        gone = [item._asdict() for item in skipped]
        click.echo(json.dumps({"schema": 1, "target": release, "models": lines, "skipped": gone}))
    return leading(*codes)


class _NotProved(Exception):
    """Raised where the directory must not be put in place."""


class _Job:
    """Downgrades models.

    A context manager: the workers that prove the results stay warm from one model to the next.
    """

    def __init__(
        self,
        out: Path | None,
        release: str,
        index: int,
        loaders: tuple[str, ...],
        provers: Path | None,
        requests: Path | None,
        follow_links: bool,
        named: tuple[str, ...] = (),
    ) -> None:
        """``out``: None for a dry run; ``provers``: a folder for the files of the proofs, None
        where nothing is to be proved; ``named``: those of ``loaders`` that the user named."""
        self.out, self.release, self.index, self.loaders = out, release, index, loaders
        self.provers, self.requests, self.follow_links = provers, requests, follow_links
        self.named = named
        self.prover: Prover | None = None  # of this process

    def __enter__(self) -> _Job:
        if self.provers is not None:
            from compat_matrix.exports import release_proof as prove

            readers = [prove.READER_OF[loader] for loader in self.loaders]
            named = [prove.READER_OF[loader] for loader in self.named]
            self.prover = prove.Prover(
                self.release, readers, self.provers / str(os.getpid()), named
            )
        return self

    def __exit__(self, *exc: object) -> None:
        if self.prover is not None:
            self.prover.__exit__(*exc)
            self.prover = None

    def __call__(self, item: tuple[Model, str]) -> tuple[dict[str, Any], int]:
        """Downgrade a model, given with its place below the output.

        Return the words about it, and the exit code.
        """
        from compat_matrix.requests.artifact import ArtifactError
        from reference_impl.errors import SavedModelError, about_the_model

        model, place = item
        line: dict[str, Any] = {"source": model.name, "output": None}
        try:
            with model.local() as path:
                return self._run(Path(path), None if self.out is None else self.out / place, line)
        except (SavedModelError, ArtifactError, OSError) as error:
            line["error"] = {"class": type(error).__name__, "message": message_of(error)}
            return line, ExitCode.UNEXPECTED if about_the_model(error) else ExitCode.HARNESS_ERROR

    def _run(
        self, path: Path, out: Path | None, line: dict[str, Any]
    ) -> tuple[dict[str, Any], int]:
        from compat_matrix.exports.release_proof import FAILED, UNPROVED, Proof
        from reference_impl.format.container import layout
        from savedmodel_tools.downgrade import model as downgrading

        found = layout.read(path, follow_links=self.follow_links)
        plan = downgrading.plan(found, self.index, self.loaders)
        line["changes"] = [{**vars(change), "count": count} for change, count in plan.changes]
        line["refused"] = [
            {"reason": reason, "loaders": list(loaders)} for reason, loaders in plan.refused
        ]
        if plan.refused:
            return line, ExitCode.UNEXPECTED
        if out is None:
            line["proof"] = vars(Proof(UNPROVED, "dry run, nothing is written", (), ()))
            return line, ExitCode.AS_EXPECTED
        proof = self._written(found, plan, out)
        line["proof"] = vars(proof)
        if proof.status == FAILED:
            return line, ExitCode.UNEXPECTED
        line["output"] = str(out)
        return (
            line,
            (
                ExitCode.INCOMPLETE
                if proof.status == UNPROVED and self.prover is not None
                else ExitCode.AS_EXPECTED
            ),
        )

    def _written(self, found: Any, plan: Plan, out: Path) -> Proof:
        from compat_matrix.exports import release_proof as prove
        from savedmodel_tools.downgrade import model as downgrading

        prover = self.prover
        proofs = [prove.Proof(prove.UNPROVED, "--no-proof", (), ())]
        above = found.directory.parent
        is_artifact = found.directory.name == "model" and (above / "io" / "io.json").is_file()
        source = above if is_artifact else found.directory

        def asked(stage: Path) -> None:
            assert prover is not None
            proofs[:] = [prover.prove(source, stage, self.requests)]
            if proofs[0].status == prove.FAILED:
                raise _NotProved

        try:
            downgrading.write(found, plan, out, None if prover is None else asked)
        except _NotProved:
            pass
        return proofs[0]


def _state(line: dict[str, Any]) -> str:
    """Return the outcome of a model in one word."""
    if "error" in line:
        return "cannot be read or written"
    if line["refused"]:
        return "refused"
    return str(line["proof"]["status"])


def _show(line: dict[str, Any]) -> None:
    if "error" in line:
        return
    arrow = f" -> {line['output']}" if line["output"] else ""
    texts = _refusal(line["refused"]) if line["refused"] else _changes_and_proof(line)
    click.echo(printable(f"{line['source']}{arrow}", newlines=False))
    for text in texts:
        click.echo(printable(f"  {text}", newlines=False))


def _refusal(refused: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why a model cannot be written for the release, and the loaders that could have it."""
    texts = ["REFUSED, nothing is written; the release"]
    texts += [f"  {item['reason']}  ({', '.join(item['loaders'])})" for item in refused[:SHOWN]]
    if len(refused) > SHOWN:
        texts.append(f"  and {len(refused) - SHOWN} more: --json")
    stopped = set(itertools.chain.from_iterable(item["loaders"] for item in refused))
    if stopped != set(LOADERS):
        others = " ".join(f"--for {loader}" for loader in LOADERS if loader not in stopped)
        texts.append(f"the other loaders could have it: {others}")
    return texts


def _changes_and_proof(line: Mapping[str, Any]) -> list[str]:
    proof = line["proof"]
    texts = [f"{change['count']:>5} x {change['what']}" for change in line["changes"]]
    texts += [f"not asked: {text}" for text in proof["left_out"]]
    texts += proof["lines"]
    texts.append(f"{proof['status']}: {proof['why']}" if proof["why"] else proof["status"])
    return texts

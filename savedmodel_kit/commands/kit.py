"""Check a program that reads SavedModels, in any language."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import json_option
from savedmodel_common.command_line.groups import Group
from savedmodel_common.command_line.lists import Choice, list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import counted, printable

if TYPE_CHECKING:
    from savedmodel_kit.consumer import Answer
    from savedmodel_kit.score import Kit, Score

_LEVELS = ("L0", "L1", "L2")
_MOST_FAULTS = 20


@click.group(cls=Group)
def kit() -> None:
    """Build the kit for readers (docs/format/kit.md), or check a reader against it."""


@claims(
    green="the archive is written",
    asked="every artifact, by our own reader: what it means is a file of the kit",
    not_asked="the answers of the artifacts; they are those that the writers recorded",
    codes={ExitCode.UNEXPECTED: "an artifact cannot be read"},
)
@kit.command()
@click.argument("out", type=click.Path(path_type=Path))
@list_option(
    "--artifacts",
    "more",
    metavar="FOLDER",
    help="Add the artifacts below FOLDER (model/, io/, provenance.json); several by commas.",
)
@json_option("the index of the kit as JSON")
def build(out: Path, more: tuple[str, ...], as_json: bool) -> int:
    """Write the kit to OUT, a .tar or .tar.gz file.

    The kit has artifacts, the meaning of each, and files that a reader must refuse. Two builds give
    the same bytes. TensorFlow is not needed.

    \b
    Examples:
      savedmodel-compat kit build kit.tar.gz
    """
    from savedmodel_kit import artifacts
    from savedmodel_kit.build import SUFFIXES
    from savedmodel_kit.build import build as build_kit

    if not out.name.endswith(SUFFIXES):
        raise click.BadParameter(f"{out} ends in none of {', '.join(SUFFIXES)}", param_hint="OUT")
    chosen = artifacts.committed()
    for folder in map(Path, more):
        found = artifacts.below(folder)
        if not found:
            reason = f"there is no artifact below {folder}"
            raise click.BadParameter(reason, param_hint="--artifacts")
        chosen += found
    index = build_kit(out, chosen)
    if as_json:
        click.echo(json.dumps(index, indent=1))
        return ExitCode.AS_EXPECTED
    sound, hostile = len(index["artifacts"]), len(index["hostile"])
    size = f"{out.stat().st_size / 1e6:.1f} MB"
    told = f"{counted(sound, 'artifact')}, {counted(hostile, 'hostile file')}, {size} -> {out}"
    click.echo(printable(told))
    return ExitCode.AS_EXPECTED


@claims(
    green="the reader keeps every constraint that the kit shows at the levels that were checked",
    asked=(
        "every artifact: the reader gives the meaning that the kit states; every hostile file: the"
        " reader refuses it"
    ),
    not_asked=(
        "levels that the reader does not give; answers (level L3) without --worker; constraints"
        " that no artifact shows, which are listed"
    ),
    codes={
        ExitCode.UNEXPECTED: "the reader breaks a constraint, or its meaning of a model differs",
        ExitCode.INCOMPLETE: "the reader gave no level that could be checked",
    },
)
@kit.command()
@click.argument("archive", type=click.Path(path_type=Path, exists=True), required=False)
@click.option("--consumer", metavar="CMD", help="The reader: CMD FOLDER prints a meaning as JSON.")
@click.option(
    "--results",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Answers that a reader gave before: a JSON object on each line.",
)
@click.option(
    "--worker",
    metavar="CMD",
    help="A program that speaks the worker protocol (docs/exporters/protocol.md): check its"
    " answers, L3.",
)
@list_option(
    "--level",
    "levels",
    type=Choice(_LEVELS),
    help="Check these levels; several by commas. By default, all that the reader gives.",
)
@click.option(
    "--limit",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds for one model.",
)
@json_option("the score as one JSON object")
def check(
    archive: Path | None,
    consumer: str | None,
    results: Path | None,
    worker: str | None,
    levels: tuple[str, ...],
    limit: float,
    as_json: bool,
) -> int:
    """Check which constraints of the specification a reader keeps, level by level.

    ARCHIVE is a kit or a folder with an unpacked kit. Without it, the kit is built first.
    TensorFlow is not needed.

    \b
    Examples:
      savedmodel-compat kit check --consumer 'python -m savedmodel_kit.meaning'
      savedmodel-compat kit check kit.tar.gz --consumer ./my-reader --level L1
      savedmodel-compat kit check kit.tar.gz --results answers.jsonl
    """
    if (consumer is None) == (results is None) and (consumer is not None or worker is None):
        raise click.UsageError("give either --consumer CMD or --results FILE, or --worker CMD")
    with _opened(archive) as opened:
        answers = _answers(opened, consumer, results, limit)
        made = _scored(opened, answers, worker, levels)
    if as_json:
        click.echo(json.dumps(made.to_json(), indent=1))
    else:
        _show(made)
    if made.faults():
        return ExitCode.UNEXPECTED
    return ExitCode.AS_EXPECTED if made.observations else ExitCode.INCOMPLETE


@contextmanager
def _opened(archive: Path | None) -> Iterator[Kit]:
    """Open a kit: an archive, an unpacked one, or one that is made now and removed afterwards."""
    import tarfile

    from savedmodel_kit import artifacts
    from savedmodel_kit.build import unpack, write_folder
    from savedmodel_kit.score import open_kit

    if archive is not None and archive.is_dir():
        yield open_kit(_with_index(archive))
        return
    with tempfile.TemporaryDirectory(prefix="kit-") as temporary:
        folder = Path(temporary) / "kit"
        if archive is None:
            write_folder(folder, artifacts.committed())
        else:
            try:
                folder = _with_index(unpack(archive, folder))
            except tarfile.TarError as error:
                raise click.BadParameter(f"{archive}: {error}", param_hint="ARCHIVE") from error
        yield open_kit(folder)


def _with_index(folder: Path) -> Path:
    if not (folder / "index.json").is_file():
        reason = f"{folder} has no index.json: `savedmodel-compat kit build` makes a kit"
        raise click.BadParameter(reason, param_hint="ARCHIVE")
    return folder


def _answers(
    opened: Kit, consumer: str | None, results: Path | None, limit: float
) -> dict[str, Answer]:
    from savedmodel_kit.consumer import ResultsError, ask_all, read_results

    if consumer is not None:
        return ask_all(_words_of(consumer), opened.models(), limit)
    if results is None:
        return {}
    try:
        return read_results(results)
    except ResultsError as error:
        raise click.BadParameter(str(error), param_hint="--results") from error


def _words_of(consumer: str) -> list[str]:
    """Return the words of a command line, whose first names a program that exists."""
    try:
        words = shlex.split(consumer)
    except ValueError as error:
        reason = f"{consumer!r} is not a command line: {error}"
        raise click.BadParameter(reason, param_hint="--consumer") from error
    if not words or shutil.which(words[0]) is None:
        reason = f"{words[0] if words else ''!r} is not a program"
        raise click.BadParameter(reason, param_hint="--consumer")
    return words


def _scored(
    opened: Kit, answers: dict[str, Answer], worker: str | None, levels: tuple[str, ...]
) -> Score:
    """Return the score of what a reader gave, and of the answers of a worker."""
    from savedmodel_kit import constraints
    from savedmodel_kit.answers import RunError, ask_worker
    from savedmodel_kit.score import levels_of, score, score_answers

    rules = constraints.read()
    chosen = (levels or levels_of(answers)) if answers else ()
    made = score(opened, answers, rules, chosen)
    if worker is None:
        return made
    with tempfile.TemporaryDirectory(prefix="kit-") as temporary:
        try:
            found = ask_worker(worker, opened.artifacts(), Path(temporary))
        except RunError as error:
            raise click.ClickException(str(error)) from error
    return made.joined(score_answers(opened, found, rules))


def _show(made: Score) -> None:
    from savedmodel_kit.constraints import LEVELS

    if not made.observations:
        click.echo("The reader gave no level that could be checked.")
        return
    for level in made.levels:
        _show_level(made, level, LEVELS[level])
    faults = made.faults()
    for one in faults[:_MOST_FAULTS]:
        shown = f" ({', '.join(one.ids)})" if one.ids else ""
        click.echo(printable(f"{one.level} {one.name}{shown}: {one.fault}", newlines=False))
    if len(faults) > _MOST_FAULTS:
        click.echo(f"and {len(faults) - _MOST_FAULTS} more; --json has all")
    for words, ids in (
        ("kept", made.kept),
        ("broken", made.broken),
        ("not shown by the kit", made.not_shown),
    ):
        click.echo(f"{words}, {counted(len(ids), 'constraint')}: {', '.join(ids) or 'none'}")


def _show_level(made: Score, level: str, member: str) -> None:
    sound, hostile = made.counts(level)
    refused = sum(one.refused is not None for one in made.observations if one.level == level)
    not_read = (
        f"{refused} refused"
        if level == "L3"
        else f"{hostile[0]} of {counted(hostile[1], 'hostile file')} refused"
    )
    stated = f"{sound[0]} of {counted(sound[1], 'artifact')} as stated"
    click.echo(f"{level} {member}: {stated}, {not_read}")

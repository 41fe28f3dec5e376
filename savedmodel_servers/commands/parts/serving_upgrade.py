"""``savedmodel-compat serving upgrade``: in which order servers and exporters can be upgraded."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compat_matrix.commands.parts import completion
from compat_matrix.commands.parts.planned import (
    EXISTING_DIR,
    asked_runtimes,
    asked_servers,
    exit_codes,
)
from compat_matrix.commands.parts.refusing import Refused
from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import json_option
from savedmodel_common.command_line.lists import Choice, list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import printable, unknown
from savedmodel_common.sole_writer import sole_writer
from savedmodel_common.writing import write_text
from savedmodel_servers.upgrade import sides

if TYPE_CHECKING:
    from compat_matrix.runtimes.runtime import Runtime
    from savedmodel_servers.upgrade.asking import Asked
    from savedmodel_servers.upgrade.verdict import Way

SCHEMA = 1
UPGRADE_FILE = "upgrade.json"


@claims(
    green="an order of the upgrade works; with --order that one",
    asked=(
        "each pair of server and export over gRPC and REST, with the clients of the old export, and"
        " both ways without a break"
    ),
    not_asked=(
        "requests that JSON cannot carry, which are listed; answers that depend on earlier requests"
    ),
    codes={
        ExitCode.UNEXPECTED: "no order works, or not that of --order",
        ExitCode.INCOMPLETE: "it is not decided: a pair was not asked",
    },
)
@click.command("upgrade")
@click.argument("exports", type=EXISTING_DIR, nargs=-1, metavar="[OLD NEW]")
@list_option(
    "--case",
    "cases",
    metavar="NAME",
    shell_complete=completion.cases,
    help="A case that both TensorFlows write (* is allowed); several by commas.",
)
@click.option(
    "--from",
    "before",
    metavar="RUNTIME",
    shell_complete=completion.runtimes,
    help="The old TensorFlow: 2.15, tensorflow==2.15.1, an interpreter.",
)
@click.option(
    "--to",
    "after",
    metavar="RUNTIME",
    shell_complete=completion.runtimes,
    help="The new TensorFlow.",
)
@click.option(
    "--old-server",
    metavar="SERVER",
    shell_complete=completion.servers,
    help="The old server (default: the stand-in on the old TensorFlow).",
)
@click.option(
    "--new-server",
    metavar="SERVER",
    shell_complete=completion.servers,
    help="The new server (default: the stand-in on the new TensorFlow).",
)
@click.option(
    "--order", type=Choice(sorted(sides.BY_FIRST)), help="Exit with 1 unless this order works."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep results, logs and upgrade.json in this folder.",
)
@json_option("upgrade.json")
@exit_codes
def upgrade(
    exports: tuple[Path, ...],
    cases: tuple[str, ...],
    before: str | None,
    after: str | None,
    old_server: str | None,
    new_server: str | None,
    order: str | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Find out which to upgrade first: the model servers, or the TensorFlow that exports.

    The models are cases that both TensorFlows export (--case, --from, --to), or the two folders OLD
    and NEW with exports of one model. The old and the new server each serve the old and the new
    export, and answer requests over gRPC and REST. Then the command performs both orders of the
    upgrade, and rolls each back, while clients of the old export send batches of 1, 2 and 3 without
    a break.

    The last line is the verdict: "upgrade servers first", "exporters first", "either", or "neither,
    because ...". Exit code 1: neither. 3: not decided, because something could not be asked.

    A SERVER is an image (tensorflow/serving:2.19.1), standin@RUNTIME, standin, or binary:PATH.

    \b
    Examples:
      savedmodel-compat serving upgrade --from 2.15 --to 2.21 --case rfc_net2
      savedmodel-compat serving upgrade old new --old-server tensorflow/serving:2.15.1 --new-server tensorflow/serving:2.19.1
    """  # noqa: E501
    exporters = {sides.OLD: before, sides.NEW: after}
    asked_of = {sides.OLD: old_server, sides.NEW: new_server}
    _check_usage(exports, cases, exporters, asked_of)
    from savedmodel_servers.upgrade import deciding

    specs = {side: server or f"standin@{exporters[side]}" for side, server in asked_of.items()}
    folder = (out or Path(tempfile.mkdtemp(prefix="savedmodel-compat-"))).resolve()
    with sole_writer(folder):
        servers = {
            side: asked_servers([spec])[0].labelled(f"{side}_server")
            for side, spec in specs.items()
        }
        asked = _asked(folder, exports, cases, exporters, servers)
        ways = deciding.decide(
            folder, asked, {side: server.server for side, server in servers.items()}
        )
        return _told(folder, asked, servers, ways, order, as_json)


def _check_usage(
    exports: tuple[Path, ...],
    cases: tuple[str, ...],
    exporters: Mapping[str, str | None],
    servers: Mapping[str, str | None],
) -> None:
    """Raises UsageError.

    ``exporters``, ``servers``: side -> the runtime, the server that is named for it.
    """
    if len(exports) not in (0, 2) or bool(exports) == bool(cases):
        raise click.UsageError(
            "name the models: either --case NAME, or two folders, the old and the new export"
        )
    if cases and not all(exporters.values()):
        raise click.UsageError("--case needs --from and --to: the TensorFlows that write it")
    if cases:
        from compat_matrix.cases import all_cases

        wrong = unknown("case", cases, [info.name for info in all_cases()])
        if wrong:
            raise click.UsageError(wrong)
    for side, server in servers.items():
        if not server and not exporters[side]:
            raise click.UsageError(
                f"name the {side} server (--{side}-server), or its TensorFlow (--from, --to)"
            )
        if server and server.startswith("remote:"):
            raise click.UsageError(
                f"{server}: a server that runs already is not switched; name an image,"
                " standin@RUNTIME or binary:PATH"
            )


def _asked(
    folder: Path,
    exports: tuple[Path, ...],
    cases: tuple[str, ...],
    exporters: Mapping[str, str | None],
    servers: Mapping[str, Runtime],
) -> Asked:
    from compat_matrix.requests.artifact import ArtifactError
    from savedmodel_common.staging import Unstageable
    from savedmodel_servers.upgrade import asking

    try:
        if exports:
            return asking.of_exports(
                folder,
                dict(zip((sides.OLD, sides.NEW), (path.resolve() for path in exports))),
                servers,
            )
        runtimes = {
            side: asked_runtimes([spec or ""])[0].labelled(f"{side}_export")
            for side, spec in exporters.items()
        }
        return asking.of_cases(folder / "pairs", cases, runtimes, servers)
    except (ArtifactError, Unstageable) as error:
        raise Refused(printable(str(error)), ExitCode.HARNESS_ERROR) from error


def _told(
    folder: Path,
    asked: Asked,
    servers: Mapping[str, Runtime],
    ways: list[Way],
    order: str | None,
    as_json: bool,
) -> int:
    from reference_impl.format.container.files import shown
    from savedmodel_servers.upgrade.verdict import exit_code, line

    verdict, code = line(ways), exit_code(ways, order and sides.BY_FIRST[order])
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "verdict": verdict,
        "exit_code": int(code),
        "servers": {
            side: {"server": one.server, "tensorflow": one.tensorflow_version}
            for side, one in servers.items()
        },
        "pairs": [pair.to_json() for pair in asked.pairs],
        "orders": [way.to_json() for way in ways],
        "left_out": asked.left_out,
    }
    text = json.dumps(record, indent=1) + "\n"
    write_text(folder / UPGRADE_FILE, text)
    if as_json:
        click.echo(text, nl=False)
        return int(code)
    for pair in asked.pairs:
        state = {True: "works", False: "FAILS", None: "NOT ASKED"}[pair.works]
        reason = (
            f": {pair.failed or pair.unknown}"
            if pair.works is not True
            else f" ({', '.join(pair.compared)})"
        )
        click.echo(printable(f"{pair.model}: {pair.place}: {state}{reason}", newlines=False))
    for way in ways:
        for step in way.steps:
            counts = ", ".join(
                f"{count} over {transport}" for transport, count in sorted(step["answers"].items())
            )
            click.echo(printable(f"{way.order}: {step['step']}: answers {counts}"))
        if way.works is False and way.steps:
            click.echo(printable(f"{way.order}: FAILS: {way.reason}", newlines=False))
    for left in asked.left_out:
        click.echo(printable(f"not asked: {left}", newlines=False))
    click.echo(f"results: {shown(folder / UPGRADE_FILE)}")
    click.echo(printable(f"verdict: {verdict}", newlines=False))
    return int(code)

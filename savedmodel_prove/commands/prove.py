"""Show whether a converted model answers as its original."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.common import json_option
from savedmodel_common.command_line.completion import folders
from savedmodel_common.command_line.lists import Choice, list_option
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.extras import need
from savedmodel_common.printable import printable

if TYPE_CHECKING:
    from savedmodel_prove.certificate import Certificate
    from savedmodel_prove.questions import Target

CERTIFICATE = "certificate.json"


@claims(
    green=(
        "each output that was compared has equal bits, or differs within the original's own noise"
    ),
    asked=(
        "one signature, at the inputs that are given and made: both models, and the evaluator as"
        " referee"
    ),
    not_asked="other signatures (--signature), and other inputs than those in the certificate",
    codes={
        ExitCode.UNEXPECTED: "an output differs by more than the original's own noise",
        ExitCode.STALE_EXPECTATION: (
            "with --check: the certificate is damaged or was changed, or a file of a model was"
        ),
        ExitCode.INCOMPLETE: "an output is not comparable, for the reason that is named",
    },
)
@click.command()
@click.argument("original", required=False, type=click.Path(path_type=Path), shell_complete=folders)
@click.argument("converted", required=False, type=click.Path(path_type=Path))
@click.option(
    "--check",
    "checked",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="CERTIFICATE",
    help="Judge a certificate again, and compare the files of both models with it.",
)
@click.option("--signature", help="Of the original. Default: serving_default or the only one.")
@click.option("--tags", help="Tags of the MetaGraph, separated by commas. Default: the only one.")
@click.option(
    "--requests",
    type=click.Path(exists=True, path_type=Path),
    help="Folder with io.json and tensors: its inputs are asked first.",
)
@click.option(
    "--contract",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A contract: the inputs of its answers are asked.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Of the made inputs.",
)
@click.option(
    "--make-up",
    "--random",
    "count",
    type=click.IntRange(0, 100),
    default=3,
    show_default=True,
    help="Random inputs to generate; the edges are asked too.",
)
@click.option(
    "--python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The Python of an environment that has the runtime of the converted file.",
)
@click.option(
    "--with",
    "converter",
    type=Choice(["tf2onnx", "litert", "openvino"]),
    help="Make CONVERTED first, in the environment of this converter.",
)
@list_option(
    "--name",
    "names",
    metavar="OURS=THEIRS",
    help="An input or output of the original, and its name in the converted file.",
)
@click.option(
    "--without-tensorflow", is_flag=True, help="Let the evaluator answer for the original."
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(CERTIFICATE),
    show_default=True,
    help="The certificate to write.",
)
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a report page, also with --check.",
)
@json_option("the verdicts as JSON")
def prove(
    original: Optional[Path],
    converted: Optional[Path],
    checked: Optional[Path],
    signature: Optional[str],
    tags: Optional[str],
    requests: Optional[Path],
    contract: Optional[Path],
    seed: int,
    count: int,
    python: Optional[Path],
    converter: Optional[str],
    names: tuple[str, ...],
    without_tensorflow: bool,
    out: Path,
    page: Optional[Path],
    as_json: bool,
) -> int:
    """Compare CONVERTED (.onnx, .tflite, .keras, .xml, .mlir) with the SavedModel ORIGINAL.

    CONVERTED may also be a SavedModel. Both answer the same inputs: those given, random ones, and
    edges. The noise of the original is measured: how far it moves by itself, between batch sizes,
    threads and inputs one ulp away. Each output gets one of four verdicts. Where one of TensorFlow,
    the converted model and the evaluator is alone, it is named, with the first node at which it
    parts from the others. The certificate can be checked later without TensorFlow.

    \b
    Examples:
      savedmodel-compat prove model model.onnx
      savedmodel-compat prove model new.onnx --with tf2onnx
      savedmodel-compat prove model model.tflite --requests io --out certificate.json
      savedmodel-compat prove --check certificate.json
    """
    if checked is not None:
        if original is not None:
            raise click.UsageError("--check takes no models: the certificate names them")
        return _check(checked, page, as_json)
    if page is not None:
        need("jinja2")
    if original is None or converted is None:
        raise click.UsageError("name ORIGINAL and CONVERTED, or --check CERTIFICATE")
    for path in (original,) if converter else (original, converted):
        if not path.exists():
            raise click.UsageError(f"{path} does not exist")
    target = _target(original, signature, tags, requests, contract)
    if converter and not _converted(converter, target, converted, python):
        return ExitCode.INCOMPLETE
    options = {"python": python, "names": _pairs(names), "use_tensorflow": not without_tensorflow}
    certificate = _proved(target, converted, (seed, count, out.parent), options)
    if isinstance(certificate, int):
        return certificate
    return _finish(certificate, out, page, as_json)


def _pairs(names: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in names:
        ours, equals, theirs = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not OURS=THEIRS", param_hint="--name")
        found[ours] = theirs
    return found


def _target(
    original: Path,
    signature: Optional[str],
    tags: Optional[str],
    requests: Optional[Path],
    contract: Optional[Path],
) -> Target:
    """Return the signature to ask. Raises click.UsageError: there is none such."""
    from compat_matrix.requests.policies import OptionError
    from compat_matrix.requests.questions import chosen_tags
    from reference_impl.errors import SavedModelError
    from reference_impl.format.container import layout
    from savedmodel_prove import questions
    from savedmodel_tools.evaluation.running import ChoiceError, chosen

    try:
        found = layout.read(original)
        wanted = None if tags is None else [part.strip() for part in tags.split(",") if part]
        there = chosen_tags(found, wanted)
        key = chosen(list(found.meta_graph(there).signature_def), signature)
        return questions.target_of(found, there, key, requests, contract)
    except (OptionError, ChoiceError, SavedModelError) as error:
        raise click.UsageError(printable(str(error), newlines=False)) from error


def _converted(converter: str, target: Target, out: Path, python: Optional[Path]) -> bool:
    """Make the converted file; print why where the converter fails."""
    from savedmodel_prove.sides import converters
    from savedmodel_prove.sides.side import SideError

    wanted = converters.CONVERTERS[converter]
    if out.suffix != wanted.suffix:
        raise click.UsageError(
            f"{out} does not end in {wanted.suffix}, as the files of {converter} do"
        )
    for path in wanted.files(out):
        if path.exists():
            raise click.UsageError(f"{path} exists: --with writes a new file")
    model = Path(target.found.directory)
    try:
        converters.convert(converter, model, target.tags, target.key, out, python)
    except SideError as error:
        click.echo(printable(f"not comparable: {error}"), err=True)
        return False
    return True


def _proved(
    target: Target, converted: Path, made: tuple[int, int, Path], options: dict[str, Any]
) -> Certificate | int:
    """Return the certificate, or the exit code of a proof that is not possible."""
    from savedmodel_prove import proof
    from savedmodel_prove.questions import NoQuestion
    from savedmodel_prove.sides.side import SideError

    with tempfile.TemporaryDirectory(prefix="savedmodel-prove-") as scratch:
        try:
            sides = proof.open_sides(target, converted, Path(scratch), **options)
        except SideError as error:
            click.echo(printable(f"not comparable: {error}"), err=True)
            return ExitCode.INCOMPLETE
        try:
            return proof.prove(target, converted, sides, *made)
        except NoQuestion as error:
            click.echo(printable(f"not comparable: {error}"), err=True)
            return ExitCode.INCOMPLETE
        finally:
            sides.close()


def _finish(certificate: Certificate, out: Path, page: Optional[Path], as_json: bool) -> int:
    from savedmodel_prove import certificate as certificates

    try:
        digest = certificates.write(certificate, out)
    except certificates.CertificateError as error:
        raise click.UsageError(str(error)) from error
    _print(certificate, as_json)
    if not as_json:
        click.echo(printable(f"certificate: {out} (digest {digest[:16]})"))
    _write_page(certificate, page)
    return _code(certificate)


def _print(certificate: Certificate, as_json: bool) -> None:
    from savedmodel_prove import told as telling
    from savedmodel_prove.certificate import verdict_json

    if as_json:
        verdicts = [verdict_json(verdict) for verdict in certificate.verdicts]
        click.echo(json.dumps({"verdicts": verdicts, "notes": list(certificate.notes)}, indent=1))
        return
    for line in telling.lines(certificate):
        click.echo(printable(line, newlines=False))


def _code(certificate: Certificate) -> int:
    from savedmodel_prove.verdicts import Kind

    kinds = {verdict.kind for verdict in certificate.verdicts}
    if Kind.DIFFERS in kinds:
        return ExitCode.UNEXPECTED
    if Kind.NOT_COMPARABLE in kinds or not kinds:
        return ExitCode.INCOMPLETE
    return ExitCode.AS_EXPECTED


def _write_page(certificate: Certificate, path: Optional[Path]) -> None:
    if path is None:
        return
    from savedmodel_common.writing import write_text
    from savedmodel_prove.page import render

    write_text(path, render(certificate))


def _check(path: Path, page: Optional[Path], as_json: bool) -> int:
    from savedmodel_prove import certificate as certificates

    try:
        certificate = certificates.read(path)
        reason = certificates.changed(certificate, path.parent)
        if reason is not None:
            raise certificates.CertificateError(reason)
    except certificates.CertificateError as error:
        click.echo(printable(f"the certificate does not hold: {error}"), err=True)
        return ExitCode.STALE_EXPECTATION
    _print(certificate, as_json)
    _write_page(certificate, page)
    return _code(certificate)

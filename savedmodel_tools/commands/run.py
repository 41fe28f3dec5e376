"""Evaluate a signature of a SavedModel with NumPy, without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from savedmodel_common.command_line.claims import claims
from savedmodel_common.command_line.lists import Choice
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import printable, told


@claims(
    green="the signature was evaluated and its outputs were written",
    asked="the nodes that the signature needs, evaluated with NumPy",
    not_asked=(
        "TensorFlow (`check` asks it); how close each op is to TensorFlow's kernel is stated in"
        " docs/format/evaluator.md"
    ),
    codes={
        ExitCode.UNEXPECTED: "the model cannot be read, or a node of it fails",
        ExitCode.INCOMPLETE: (
            "the evaluator cannot run a node: it has no function for the op, the op acts on the"
            " machine or draws random numbers, or a limit is reached"
        ),
    },
)
@click.command()
@click.argument("model", type=click.Path(exists=True))
@click.argument("signature", required=False)
@click.option(
    "--input",
    "given",
    metavar="NAME=VALUE",
    multiple=True,
    help=(
        "An input: JSON (x=[[1,2]]), or a file (x=rows.npy, .npz, .json). A file alone (inputs.npz,"
        " inputs.json) gives all inputs by name. May be repeated."
    ),
)
@click.option("--tags", help="Of the MetaGraph, separated by commas. Default: the only one.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the outputs to FILE.npz or FILE.json.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object: each output with dtype, shape and values in row-major order.",
)
@click.option("--trace", is_flag=True, help="Print each node with its results on stderr.")
@click.option(
    "--until",
    metavar="NODE",
    help=(
        "Stop after this node (NODE or FUNCTION:NODE, as --trace shows) and write its results"
        " instead of the outputs."
    ),
)
@click.option(
    "--precision",
    type=Choice(["float64"]),
    help="Compute float16, bfloat16 and float32 in double precision.",
)
def run(
    model: str,
    signature: str | None,
    given: tuple[str, ...],
    tags: str | None,
    out: Path | None,
    as_json: bool,
    trace: bool,
    until: str | None,
    precision: str | None,
) -> int:
    """Evaluate SIGNATURE of MODEL, by default serving_default or the only one.

    Needs no TensorFlow. Changes of variables and tables are lost when the command ends. No file is
    read but those of the model and the inputs. The output of --json can be an input again.

    \b
    Examples:
      savedmodel-compat run model --input x=[[2.0]]
      savedmodel-compat run model serving_default --input inputs.npz --out outputs.npz
      savedmodel-compat run model --input x=rows.npy --until dense/MatMul
      savedmodel-compat run model --input x=[[2.0]] --precision float64 --json
    """
    from savedmodel_tools.evaluation import inputs, outputs, running

    if out is not None and out.suffix not in outputs.SUFFIXES:
        wanted = ", ".join(outputs.SUFFIXES)
        raise click.BadParameter(f"{out} ends in none of {wanted}", param_hint="--out")
    watcher = running.Watcher(_tell if trace else None, until)
    wanted_tags = None if tags is None else [part.strip() for part in tags.split(",") if part]
    try:
        answer = running.answer(
            model, signature, given, tags=wanted_tags, precision=precision, watcher=watcher
        )
        _write(answer, out, as_json)
    except (running.ChoiceError, inputs.InputError) as error:
        raise click.UsageError(printable(str(error), newlines=False)) from error
    except outputs.OutputError as error:
        click.echo(printable(f"nothing is written: {error}"), err=True)
        return ExitCode.UNEXPECTED
    except Exception as error:
        return _refused(error)
    return ExitCode.AS_EXPECTED


def _tell(line: str) -> None:
    click.echo(printable(line, newlines=False), err=True)


def _write(answer: Mapping[str, Any], out: Path | None, as_json: bool) -> None:
    from savedmodel_tools.evaluation import outputs

    if out is not None:
        outputs.write(answer, out)
    if as_json:
        click.echo(outputs.to_json(answer))
    elif out is None:
        click.echo(printable(outputs.to_text(answer)))


def _refused(error: Exception) -> int:
    """Print why there is no answer; return the exit code.

    Raises the error again if it is not about the model.
    """
    from reference_eval import EvaluationLimitError, NotEvaluatedError
    from reference_impl.errors import NoMetaGraphError, NotASavedModelError, SavedModelError

    if isinstance(error, (NoMetaGraphError, NotASavedModelError)):
        raise click.UsageError(printable(told(error), newlines=False)) from error
    if not isinstance(error, SavedModelError):
        raise error
    click.echo(printable(told(error)), err=True)
    if isinstance(error, (EvaluationLimitError, NotEvaluatedError)):
        return ExitCode.INCOMPLETE
    return ExitCode.UNEXPECTED

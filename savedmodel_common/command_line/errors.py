"""The exit code and the message of an error that ends a command."""

from __future__ import annotations

import click

from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import printable, told


def report_error(error: Exception) -> int:
    """Print an error on stderr and return the exit code for it.

    An error of the format layer is a verdict on the model (1), one of the operating system a
    verdict on the machine (4). Anything else is a defect of ours (4) and is printed with its
    traceback, for a bug report.
    """
    from reference_impl.errors import SavedModelError, about_the_model

    if isinstance(error, (OSError, SavedModelError)):
        click.echo(printable(told(error)), err=True)
        # Some errors of the format layer are OSErrors too, for callers of `tf.saved_model`.
        of_model = about_the_model(error)
        return ExitCode.UNEXPECTED if of_model else ExitCode.HARNESS_ERROR
    if isinstance(error, ModuleNotFoundError):
        from savedmodel_common.extras import missing

        if words := missing((error.name or "").partition(".")[0]):
            click.echo(words, err=True)
            return ExitCode.HARNESS_ERROR
    import traceback

    click.echo(
        printable("".join(traceback.format_exception(type(error), error, error.__traceback__))),
        err=True,
    )
    return ExitCode.HARNESS_ERROR

"""The console script ``savedmodel-compat``: its subcommands are found by their files, and imported
when they are asked for.

A subcommand lives in ``compat_matrix/commands/NAME.py``. It may return an ``ExitCode``; ``None``
means 0.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from compat_matrix.common import interrupts
from compat_matrix.common.exit_codes import ExitCode
from compat_matrix.common.printable import like, printable, told

_F = TypeVar("_F", bound=Callable[..., Any])

_WHOLE = 1000  # characters of a sentence in --help
_FOLDER = Path(__file__).with_name("commands")
# The sections of --help, in this order; the docstring of a command says to which it belongs.
TASKS = ("Look at models", "Change models", "Check models", "Compare TensorFlows", "Set up")


class Group(click.Group):
    """A click group that suggests similar commands for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names.

        Raises UsageError with similar names.
        """
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            near = (
                like(name, self.list_commands(ctx)) or f" `{ctx.command_path} --help` lists them."
            )
            ctx.fail(f"unknown command {printable(name, newlines=False)!r}.{near}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of ``--help``, each with its whole first sentence; click cuts it."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, one.get_short_help_str(_WHOLE))
                    for name, one in found
                    if one and not one.hidden
                ]
            )


class LazyGroup(Group):
    """A click group that imports a subcommand on first use and ends with the exit codes of this
    program.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the subcommands, sorted."""
        return list(_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the subcommand, which is imported now; None for an unknown name."""
        module = cmd_name.replace("-", "_")
        if cmd_name not in self.list_commands(ctx):
            return None
        command = getattr(importlib.import_module(f"compat_matrix.commands.{module}"), module)
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name} is not a click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of ``--help``, a section for each task, from the modules' docstrings
        without importing them.
        """
        found = [(name, *introduction(name)) for name in self.list_commands(ctx)]
        for task in dict.fromkeys([*TASKS, *(task for _, _, task in found)]):
            with formatter.section(task):
                formatter.write_dl(
                    [(name, line) for name, line, belongs in found if belongs == task]
                )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments.

        Without any the help is shown and the status is that of wrong usage, in every release of
        click.
        """
        if not args and not ctx.resilient_parsing:  # a shell that completes a line wants no text
            click.echo(ctx.get_help(), err=True)
            ctx.exit(ExitCode.USAGE)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand.

        If its reader goes away (``... | head``), end like any program that SIGPIPE ends.

        This is handled here because releases of click differ in it.
        """
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Nothing more can be written, not even by the interpreter's last flush.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        return code

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        """Run the program and exit.

        Every way out goes through here, also under ``click.testing.CliRunner``.
        """
        for stream in (
            sys.stdout,
            sys.stderr,
        ):  # names of models must not end a command where an encoding lacks their letters
            if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
                stream.reconfigure(errors="backslashreplace")
        with interrupts.handled():
            code = self._run(args, *rest, **extra)
            if interrupts.received():
                click.echo(
                    f"interrupted: there is no verdict. {self._how_to_go_on(args)}".rstrip(),
                    err=True,
                )
                code = ExitCode.INTERRUPTED
                # Python notes a KeyboardInterrupt that leaves the exec of a text, as in
                # dataclasses, and would end by SIGINT, without our exit code. The next exec makes
                # it forget.
                exec("")
        if (
            args is None
            # as a program: the process ends, and Python need not first look for cycles in all
            # objects
        ):
            gc.freeze()
        sys.exit(code if isinstance(code, int) else ExitCode.AS_EXPECTED)

    def _run(self, args: Sequence[str] | None, *rest: Any, **extra: Any) -> Any:
        """Run the program and return its exit code."""
        extra["standalone_mode"] = False
        if os.environ.get("NO_COLOR"):  # click does not know it
            extra["color"] = False
        # Commands make many small objects and end soon; with Python's threshold of 700 they spend
        # up to a tenth of it on cycles.
        gc.set_threshold(1 << 16)
        try:
            return super().main(args, *rest, **extra)
        except click.UsageError as error:
            error.show()
            return ExitCode.USAGE
        except click.ClickException as error:
            click.echo(f"Error: {printable(error.format_message())}", err=True)
            return error.exit_code
        except (click.Abort, KeyboardInterrupt):
            interrupts.note()
            return ExitCode.INTERRUPTED
        except Exception as error:
            if interrupts.received():  # the signal caused the error
                return ExitCode.INTERRUPTED
            return _report(error)

    def _how_to_go_on(self, args: Sequence[str] | None) -> str:
        """Return the advice after an interruption of the command with these arguments."""
        command: click.Command = self
        with contextlib.suppress(Exception):
            for word in sys.argv[1:] if args is None else args:
                if not isinstance(command, click.Group):
                    break
                command = command.get_command(click.Context(command), word) or command
        if any(parameter.name == "resume" for parameter in command.params):
            return "Run the command again with --resume to go on."
        return str(getattr(command.callback, "goes_on", ""))


@functools.cache
def _commands() -> tuple[str, ...]:
    return tuple(sorted(path.stem.replace("_", "-") for path in _FOLDER.glob("[a-z]*.py")))


def introduction(command: str) -> tuple[str, str]:
    """Return the first paragraph of a command's docstring, and the task that it names."""
    text = (_FOLDER / f"{command.replace('-', '_')}.py").read_text(encoding="utf-8")
    docstring = text.split('"""', 2)[1]
    title = " ".join(docstring.partition("\n\n")[0].split())
    task = docstring.rpartition("Task: ")[2].strip() if "Task: " in docstring else "More"
    return title, task


def goes_on(words: str) -> Callable[[_F], _F]:
    """Set the advice after an interruption of a command, if it is not ``--resume``."""

    def noted(function: _F) -> _F:
        function.goes_on = words  # type: ignore[attr-defined]
        return function

    return noted


def _report(error: Exception) -> int:
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
        from compat_matrix.common.extras import missing

        if words := missing((error.name or "").partition(".")[0]):
            click.echo(words, err=True)
            return ExitCode.HARNESS_ERROR
    import traceback

    click.echo(
        printable("".join(traceback.format_exception(type(error), error, error.__traceback__))),
        err=True,
    )
    return ExitCode.HARNESS_ERROR


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Print the version, as the callback of ``--version``: reading package metadata takes time, so
    it is done only on request.
    """
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("savedmodel-compat")
    except PackageNotFoundError:
        number = "(run from a checkout that is not installed)"
    click.echo(f"savedmodel-compat {number}")
    ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    *("-V", "--version"),
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Does this SavedModel mean the same thing everywhere it will be used?

    Exit codes: 0 as expected, 1 unexpected result, 2 stale or invalid expectation, 3 incomplete
    run, 4 harness or environment error, 64 usage, 130 interrupted.
    """

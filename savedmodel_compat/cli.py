"""The console script ``savedmodel-compat``: its commands are found by entry points, and imported
when they are asked for.

A command lives beside its product, as ``savedmodel_tools/commands/verify.py``. It may return an
``ExitCode``; ``None`` means 0.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import io
import itertools
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
from click.shell_completion import add_completion_class

from savedmodel_common import entry_points, interrupts
from savedmodel_common.command_line.completion import ZshWithCompinit
from savedmodel_common.command_line.errors import report_error
from savedmodel_common.command_line.groups import Group
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import printable

# The sections of --help: who needs which commands. Commands that stand in no section, such as
# those of another package, come last.
SECTIONS = {
    "You export models": ("inspect", "verify", "check", "run", "contract"),
    "You own models": ("diff", "weights", "edit", "migrate", "prove"),
    "You upgrade TensorFlow": ("compat", "downgrade", "gate", "serving"),
    "You run the matrix": ("matrix", "runtimes", "plugin-check", "kit"),
}
OTHERS = "Other commands"

add_completion_class(ZshWithCompinit)  # in place of click's own for zsh


class LazyGroup(Group):
    """A click group that imports a subcommand on first use and ends with the exit codes of this
    program.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the subcommands, in the order of the sections."""
        return list(itertools.chain.from_iterable(sections().values()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the subcommand, which is imported now; None for an unknown name."""
        if cmd_name not in _commands() or "." in cmd_name:
            return None
        command = _commands()[cmd_name].load()
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name} is not a click command")
        if isinstance(command, click.Group):
            _add_members(cmd_name, command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of ``--help``, a section for each kind of user, from the modules'
        docstrings without importing them.
        """
        for title, names in sections().items():
            with formatter.section(title):
                formatter.write_dl([(name, introduction(name)) for name in names])

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
            return report_error(error)

    def _how_to_go_on(self, args: Sequence[str] | None) -> str:
        """Return the advice after an interruption of the command with these arguments."""
        command: click.Command = self
        with contextlib.suppress(Exception):
            for word in sys.argv[1:] if args is None else args:
                if not isinstance(command, click.Group):
                    break
                command = command.get_command(click.Context(command), word) or command
        if any(parameter.name == "resume" for parameter in command.params):
            return "Run the command again with --resume to continue."
        return str(getattr(command.callback, "goes_on", ""))


@functools.cache
def _commands() -> dict[str, entry_points.EntryPoint]:
    return entry_points.own(entry_points.COMMANDS)


def sections() -> dict[str, list[str]]:
    """Return the commands that are installed, by the sections of ``--help``.

    A command of a section that is not installed is left out.
    """
    known = [name for name in _commands() if "." not in name]
    found = {}
    for title, names in SECTIONS.items():
        found[title] = [name for name in names if name in known]
    placed = set(itertools.chain.from_iterable(SECTIONS.values()))
    others = [name for name in known if name not in placed]
    return {**found, OTHERS: others} if others else found


def _add_members(name: str, group: click.Group) -> None:
    """Add the commands that other packages offer to a group: those of the entry points
    ``GROUP.COMMAND``.
    """
    for entry, point in _commands().items():
        holder, _, member = entry.partition(".")
        if holder == name and member and member not in group.commands:
            group.add_command(point.load(), member)


def introduction(command: str) -> str:
    """Return the first paragraph of the docstring of a command's module, which is read and not
    imported.
    """
    found = importlib.util.find_spec(_commands()[command].module)
    assert found and found.origin, command
    docstring = Path(found.origin).read_text(encoding="utf-8").split('"""', 2)[1]
    return " ".join(docstring.partition("\n\n")[0].split())


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

    \b
    To complete commands, options and their values in bash, put this into ~/.bashrc
    (zsh: zsh_source, ~/.zshrc; fish: fish_source, ~/.config/fish/config.fish):
      eval "$(_SAVEDMODEL_COMPAT_COMPLETE=bash_source savedmodel-compat)"
    """

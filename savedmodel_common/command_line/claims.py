"""The claims of the commands: the meaning of exit code 0, what was asked and what was not, and the
other exit codes.

A command without a claim is a defect: a reader of its exit code 0 would have to guess. The page
"What green means" of the site is made of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar, Union

import click

from savedmodel_common.command_line.common import CommonOption
from savedmodel_common.exit_codes import ExitCode

Words = Union[
    str, Callable[[], str]
]  # a function reads the tables of the command, which are heavy to import
C = TypeVar("C", bound=click.Command)
OF_EVERY = (
    ExitCode.USAGE,
    ExitCode.HARNESS_ERROR,
    ExitCode.INTERRUPTED,
)  # exit codes that mean the same in every command
_CLAIMS: dict[click.Command, Claim] = {}


@dataclass(frozen=True)
class Claim:
    """The claim of a command.

    Attributes:
      green: what exit code 0 means.
      asked: what was asked before it is 0.
      not_asked: what was not, and the option that asks it.
      codes: the other exit codes, beside those in ``OF_EVERY``, with what each means here.
    """

    green: str
    asked: Words
    not_asked: Words
    codes: Mapping[ExitCode, str]

    def words(self, what: Words) -> str:
        """Return ``asked`` or ``not_asked`` as text."""
        return what if isinstance(what, str) else what()


def claims(
    green: str, asked: Words, not_asked: Words, codes: Mapping[ExitCode, str] | None = None
) -> Callable[[C], C]:
    """Return a decorator that records the claim of a command. Its help ends with the common options
    and the meaning of exit code 0.
    """

    def record(command: C) -> C:
        command.params.sort(key=lambda one: isinstance(one, CommonOption))
        _CLAIMS[command] = Claim(green, asked, not_asked, codes or {})
        command.epilog = (
            f"Exit code 0 means: {green}. The page 'What green means' lists the checks."
        )
        return command

    return record


def claim_of(command: click.Command) -> Claim | None:
    """Return the claim of a command; None for one that has none."""
    return _CLAIMS.get(command)

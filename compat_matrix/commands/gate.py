"""Compare two TensorFlow releases, and say what blocks the newer one."""

from __future__ import annotations

import click

from compat_matrix.commands.parts.gate_bisect import bisect
from compat_matrix.commands.parts.gate_compare import compare
from compat_matrix.commands.parts.gate_run import run
from savedmodel_common.command_line.groups import Group


@click.group(cls=Group)
def gate() -> None:
    """Compare two TensorFlow releases, and say what blocks the newer one.

    `run` asks both releases the same questions. `compare` compares two runs that are finished.
    `bisect` finds the release in which one answer changed.
    """


gate.add_command(run)
gate.add_command(compare)
gate.add_command(bisect)

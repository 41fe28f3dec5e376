"""Write a changed copy of a model: signatures, tags, only what serving needs."""

from __future__ import annotations

import click

from savedmodel_common.command_line.groups import Group
from savedmodel_tools.commands.parts.edit_signatures import signatures
from savedmodel_tools.commands.parts.edit_slim import slim
from savedmodel_tools.commands.parts.edit_tags import tags


@click.group(cls=Group)
def edit() -> None:
    """Write a changed copy of a SavedModel, without TensorFlow and without tracing it again.

    The model itself is only read. Each signature of the copy is proved to compute the same before
    the copy gets its name.
    """


edit.add_command(signatures)
edit.add_command(slim)
edit.add_command(tags)

"""Print an outline: with colours and wrapped lines on a terminal, as plain text elsewhere.

Rich, which knows terminals, is imported only where it is needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

from savedmodel_tools.fast import plain_outline
from savedmodel_tools.inspect.outline import Branch, Line

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

_WIDTH = 10_000  # what is piped is not wrapped


def write(items: Sequence[Union[Line, Branch]]) -> None:
    """Print lines and trees to stdout, with colours and wrapped lines only on a terminal."""
    text = plain_outline.text(items, sys.stdout)
    if text is None:
        _write_with_rich(items)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()


def _write_with_rich(items: Sequence[Union[Line, Branch]]) -> None:
    from rich.console import Console

    class _Console(Console):
        """A console that leaves it to the program what happens when nobody reads any more."""

        def on_broken_pipe(self) -> None:
            raise

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDTH
    console = _Console(highlight=False, width=width)
    for item in items:
        console.print(_tree(item) if isinstance(item, Branch) else _styled(item))


def _styled(label: Line) -> Text:
    from rich.text import Text

    return Text.assemble(*label)


def _tree(branch: Branch) -> Tree:
    from rich.tree import Tree

    root = Tree(_styled(branch.label), guide_style="dim")
    pending = [(root, branch)]
    while pending:
        tree, source = pending.pop()
        pending += [(tree.add(_styled(child.label)), child) for child in source.children]
    return root

"""An outline as plain text, the same as rich prints into a file or a pipe.

Importing rich takes longer than printing: it defines colours and the behaviour of terminals.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from typing import Optional, TextIO, Union

from savedmodel_common.fast import is_on
from savedmodel_tools.inspect.outline import Branch, Line

# Variables with which rich treats a pipe as a terminal, or chooses another width.
_SETTINGS = ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE")
# No character takes more than two columns, and rich wraps at 10,000 columns.
_LONGEST = 5_000
_FORK, _LAST, _CONTINUED, _EMPTY = "├── ", "└── ", "│   ", "    "  # what stands before a branch


def text(items: Sequence[Union[Line, Branch]], stream: TextIO) -> Optional[str]:
    """Return the text of lines and trees for a stream.

    Return None where rich may print something else: on a terminal, with a setting that asks for
    colours or a width, in an encoding without lines, and for lines that it would wrap.
    """
    if not is_on() or not _is_plain(stream):
        return None
    lines = []
    for item in items:
        if isinstance(item, tuple):
            lines.append(_joined(item))
        else:
            lines += _lines(item)
    if max(map(len, lines), default=0) > _LONGEST:
        return None
    return "".join([f"{line}\n" for line in lines])


def _is_plain(stream: TextIO) -> bool:
    if not isinstance(stream, io.TextIOWrapper):  # in a notebook, for example
        return False
    if stream.isatty() or any(name in os.environ for name in _SETTINGS):
        return False
    return os.name != "nt" and stream.encoding.lower().startswith("utf")


def _joined(label: Line) -> str:
    return "".join([text for text, _ in label])


def _lines(root: Branch) -> Iterator[str]:
    """Yield the lines of a tree, each with its guides: ``│   ├── name``."""
    yield _joined(root.label)
    pending = [iter(_guided(root, ""))]
    while pending:
        found = next(pending[-1], None)
        if found is None:
            pending.pop()
            continue
        branch, guide, below = found
        yield guide + _joined(branch.label)
        if branch.children:
            pending.append(iter(_guided(branch, below)))


def _guided(parent: Branch, before: str) -> Iterator[tuple[Branch, str, str]]:
    """Yield the branches below one, each with the guide of its line and of the lines below it."""
    for child in parent.children:
        if child is parent.children[-1]:
            yield child, before + _LAST, before + _EMPTY
        else:
            yield child, before + _FORK, before + _CONTINUED

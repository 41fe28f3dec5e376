"""An outline: lines of styled text and trees of them, independent of where they are printed."""

from __future__ import annotations

from typing import Union

from savedmodel_common.printable import printable

Part = Union[str, tuple[str, str]]  # text, or text and its style
Line = tuple[tuple[str, str], ...]  # text and style, ready to print


def line(*parts: Part) -> Line:
    """Return a line without characters that steer the terminal."""
    pairs = [(part, "") if isinstance(part, str) else part for part in parts]
    return tuple([(printable(text, newlines=False), style) for text, style in pairs])


class Branch:
    """A line of a tree, with the branches below it."""

    def __init__(self, label: Line):
        self.label = label
        self.children: list[Branch] = []

    def add(self, label: Line) -> Branch:
        """Add and return a branch below this one."""
        added = Branch(label)
        self.children.append(added)
        return added

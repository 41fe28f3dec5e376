"""A comparison as text for people: differences first, section by section, abbreviated unless
``full`` is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from reference_impl.errors import shortened
from reference_impl.format.container.files import shown
from savedmodel_common.printable import printable
from savedmodel_tools.comparison.model import (
    ADDED,
    CHANGED,
    REMOVED,
    RENAMED,
    SECTIONS,
    Change,
)
from savedmodel_tools.comparison.result import ModelDiff

_SHOWN = 10  # changes of a section
_NODES = 5  # of a function
_LINES = 3  # of a node
_WIDTH = 200
_MARKS = {
    ADDED: ("+", "green"),
    REMOVED: ("-", "red"),
    CHANGED: ("~", "yellow"),
    RENAMED: (">", "cyan"),
}
_VERDICTS = {"equal": "green", "close": "green", "different": "yellow"}


def lines(result: ModelDiff, full: bool) -> Iterator[str]:
    """The lines of one comparison."""
    for letter, side in (("A", result.first), ("B", result.second)):
        versions = (
            f"TensorFlow {', '.join(side.produced_by)}" if side.produced_by else "TensorFlow ?"
        )
        content = f"content {side.content_hash[:16]}" if side.content_hash else "content not hashed"
        yield clean(f"{letter}  {shown(side.path)}  {versions}  {content}")
    yield verdict(result)
    following = []
    for section in SECTIONS:
        changes = [change for change in result.changes if change.section == section]
        if changes and not full and not any(map(_is_shown, changes)):
            following.append(section)
        elif changes:
            yield ""
            yield from _section(section, changes, full)
            if section == "variables" and result.weights.tensors:
                yield _dim(
                    f"  {result.weights.equal} of {result.weights.tensors} tensors that both have"
                    " are equal"
                )
    if following:
        yield ""
        yield _dim(
            f"also different, which only follows from the above: {', '.join(following)} (--full)"
        )


def verdict(result: ModelDiff) -> str:
    """Return the verdict in one line, its first word in colour."""
    word = result.verdict
    return click.style(word, fg=_VERDICTS[word], bold=True) + result.sentence.removeprefix(word)


def _section(name: str, changes: Sequence[Change], full: bool) -> Iterator[str]:
    note = {"metadata": "  (not part of the content)", "ops": "  (how often they occur)"}.get(
        name, ""
    )
    yield click.style(name, bold=True) + _dim(note)
    counting = list(filter(_is_shown, changes))
    following = len(changes) - len(counting)
    shown = changes if full else counting[: _SHOWN if len(counting) > _SHOWN + 1 else len(counting)]
    previous: tuple[str, ...] = ()
    for change in shown:
        outer = change.where[:-1]
        if outer and outer != previous:
            yield f"  {clean(': '.join(outer))}"
        previous = outer
        yield from _change(change, "    " if outer else "  ", full)
    rest = len(counting) - len(shown)
    if rest > 0:
        yield _dim(f"  … {rest} more (--full)")
    if following and not full:
        yield _dim(f"  {following} more that only follow from other changes (--full)")


def _is_shown(change: Change) -> bool:
    """Return whether a change is more than a consequence of another one."""
    return change.counts or change.section in ("ops", "metadata", "variables")


def _change(change: Change, indent: str, full: bool) -> Iterator[str]:
    mark, colour = _MARKS[change.kind]
    name = change.where[-1] if change.where else ""
    text = clean(f"{name}: {change.what}" if name else change.what, full)
    yield f"{indent}{click.style(mark, fg=colour)} {text}"
    nodes = change.details.get("nodes", [])
    for node in nodes if full else nodes[:_NODES]:
        mark, colour = _MARKS[node["kind"]]
        what = node["what"] if full else node["what"][:_LINES]
        more = len(node["what"]) - len(what)
        parts = [*what, *([f"… {more} more"] if more else [])]
        title = f"{node['node']} ({node['op']})"
        text = clean(f"{title}: {'; '.join(parts)}" if parts else title, full)
        yield f"{indent}    {click.style(mark, fg=colour)} {text}"
    if not full and len(nodes) > _NODES:
        yield _dim(f"{indent}    … {len(nodes) - _NODES} more nodes (--full)")


def _dim(text: str) -> str:
    return click.style(text, dim=True) if text else ""


def clean(text: str, full: bool = False) -> str:
    """Return untrusted text from a model without control characters for a terminal."""
    return printable(text if full else shortened(text, _WIDTH), newlines=False)

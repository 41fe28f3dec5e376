"""A comparison as text for people: differences first, section by section, abbreviated unless ``full`` is set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from compat_matrix.common.printable import counted, printable
from compat_matrix.models.diff.model import ADDED, CHANGED, CONTENT, REMOVED, RENAMED, SECTIONS, Change, ModelDiff
from compat_matrix.models.diff.trees import CLOSE, DIFFERENT, EQUAL, FIRST, SECOND, STATUSES, Pair

_SHOWN = 10  # changes of a section
_NODES = 5  # of a function
_LINES = 3  # of a node
_WIDTH = 200
_MARKS = {ADDED: ("+", "green"), REMOVED: ("-", "red"), CHANGED: ("~", "yellow"), RENAMED: (">", "cyan")}
_STATUS_MARKS = {
    EQUAL: ("=", "green"),
    CLOSE: ("≈", "green"),
    DIFFERENT: ("≠", "yellow"),
    FIRST: ("-", "red"),
    SECOND: ("+", "green"),
}
_VERDICTS = {"equal": "green", "close": "green", "different": "yellow"}


def lines(result: ModelDiff, full: bool) -> Iterator[str]:
    """The lines of one comparison."""
    for letter, side in (("A", result.first), ("B", result.second)):
        versions = f"TensorFlow {', '.join(side.produced_by)}" if side.produced_by else "TensorFlow ?"
        content = f"content {side.content_hash[:16]}" if side.content_hash else "content not hashed"
        yield _clean(f"{letter}  {side.path}  {versions}  {content}")
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
                yield _dim(f"  {result.weights.equal} of {result.weights.tensors} tensors that both have are equal")
    if following:
        yield ""
        yield _dim(f"also different, which only follows from the above: {', '.join(following)} (--full)")


def verdict(result: ModelDiff) -> str:
    """Return the verdict in one line."""
    word = click.style(result.verdict, fg=_VERDICTS[result.verdict], bold=True)
    numbers = counts(result)
    if numbers:
        return f"{word}: {numbers}"
    if result.equal:
        return f"{word}, one content hash" + (f"; {_beside(result)}" if result.changes else "")
    if result.verdict == "close":
        return f"{word}: {sum(change.section == 'variables' for change in result.changes)} variables differ within the tolerance"
    left_out = [name for name in CONTENT if name not in result.options.sections]
    return f"{word} in what was compared; not compared: {', '.join(left_out)}" if left_out else word


def _beside(result: ModelDiff) -> str:
    return f"{len(result.changes)} differences beside the content"


def counts(result: ModelDiff) -> str:
    """``signatures 1, functions 3``: the changes that count."""
    numbers = {name: sum(change.counts for change in result.changes if change.section == name) for name in SECTIONS}
    return ", ".join(f"{name} {number}" for name, number in numbers.items() if number)


def _section(name: str, changes: Sequence[Change], full: bool) -> Iterator[str]:
    note = {"metadata": "  (not part of the content)", "ops": "  (how often they occur)"}.get(name, "")
    yield click.style(name, bold=True) + _dim(note)
    counting = list(filter(_is_shown, changes))
    following = len(changes) - len(counting)
    shown = changes if full else counting[: _SHOWN if len(counting) > _SHOWN + 1 else len(counting)]
    previous: tuple[str, ...] = ()
    for change in shown:
        outer = change.where[:-1]
        if outer and outer != previous:
            yield f"  {_clean(': '.join(outer))}"
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
    text = _clean(f"{name}: {change.what}" if name else change.what, full)
    yield f"{indent}{click.style(mark, fg=colour)} {text}"
    nodes = change.details.get("nodes", [])
    for node in nodes if full else nodes[:_NODES]:
        mark, colour = _MARKS[node["kind"]]
        what = node["what"] if full else node["what"][:_LINES]
        more = len(node["what"]) - len(what)
        parts = [*what, *([f"… {more} more"] if more else [])]
        title = f"{node['node']} ({node['op']})"
        text = _clean(f"{title}: {'; '.join(parts)}" if parts else title, full)
        yield f"{indent}    {click.style(mark, fg=colour)} {text}"
    if not full and len(nodes) > _NODES:
        yield _dim(f"{indent}    … {len(nodes) - _NODES} more nodes (--full)")


def pair_line(pair: Pair) -> str:
    """A model of a tree in one line."""
    marks = {
        EQUAL: ("=", "green"),
        CLOSE: ("≈", "green"),
        DIFFERENT: ("≠", "yellow"),
        FIRST: ("-", "red"),
        SECOND: ("+", "green"),
    }
    mark, colour = marks.get(pair.status, ("!", "red"))
    said = pair.reason or (counts(pair.result) if pair.result is not None else pair.status)
    return f"{click.style(mark, fg=colour)} {_clean(pair.path)}" + (f"  {_clean(said)}" if said else "")


def summary(found: Sequence[Pair]) -> str:
    """Return the number of models by status."""
    numbers = [(status, sum(pair.status == status for pair in found)) for status in STATUSES]
    return f"{counted(len(found), 'model')}: " + ", ".join(f"{number} {status}" for status, number in numbers if number)


def _dim(text: str) -> str:
    return click.style(text, dim=True) if text else ""


def _clean(text: str, full: bool = False) -> str:
    """Return untrusted text from a model without control characters for a terminal."""
    shown = text if full or len(text) <= _WIDTH else text[:_WIDTH] + "…"
    return printable(shown, newlines=False)

"""Lines of ``savedmodel-compat inspect`` about what acts on the machine, what runs at load first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Union

from reference_impl.inspection.op_effects import UNKNOWN
from reference_impl.inspection.types import Effect

Part = Union[str, tuple[str, str]]  # text, or text and its style

_NAMES = 20  # ops of other libraries in one line
_STARTS = 2  # what gets there, shown by name


def effect_lines(effects: Sequence[Effect], full: bool) -> Iterator[list[Part]]:
    """Return a line for each entry. Unless ``full``, unknown ops are only named: a model may have many of them."""
    ordered = sorted(effects, key=lambda item: not item.at_load)
    yield from (_line(item, full) for item in ordered if full or item.kind != UNKNOWN)
    unknown: dict[str, dict[str, None]] = {}
    for item in ordered:
        if item.kind == UNKNOWN and not full:
            unknown.setdefault(item.when, {})[item.op] = None
    for time, names in unknown.items():
        more = f", … {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        listed = ", ".join(list(names)[:_NAMES]) + more
        yield [(f"{time}  ", "yellow"), (listed, "cyan"), ("  no ops of TensorFlow: what they do is not known", "dim")]


def _line(item: Effect, full: bool) -> list[Part]:
    paths = f" {', '.join(map(repr, item.paths))}" if item.paths else ""
    place = f"{item.function}/{item.node}" if item.function else item.node
    more = f" and {item.count - 1} more" if item.count > 1 else ""
    starts = [*(item.at_load or ()), *(item.at_call or ())]
    shown = starts if full or len(starts) <= _STARTS + 1 else [*starts[:_STARTS], f"… {len(starts) - _STARTS} more"]
    by = f", run by {', '.join(shown)}" if shown else ""
    style = "bold red" if item.at_load else "yellow"
    return [(f"{item.when}  ", style), (item.op, "cyan"), f"  {item.does}{paths}", (f"  {place}{more}{by}", "dim")]

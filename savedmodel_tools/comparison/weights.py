"""Compare the checkpoints of two models, tensor by tensor and piece by piece.

Numbers are hashed until a difference is found.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Optional

from reference_impl.errors import shortened
from reference_impl.format.bundle.entry import Entry
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from savedmodel_tools.canonical.files import (
    is_object_graph,
    is_of_table,
    stored_fields,
    tables_of,
    variable_fields,
)
from savedmodel_tools.canonical.objects import Fields, tracked_objects
from savedmodel_tools.canonical.tensor_pieces import pieces
from savedmodel_tools.comparison.entries import field_changes
from savedmodel_tools.comparison.measures import Few, Measures
from savedmodel_tools.comparison.model import (
    ADDED,
    CHANGED,
    REMOVED,
    RENAMED,
    Change,
    Options,
    Weights,
)

if TYPE_CHECKING:
    from savedmodel_tools.comparison.numbers import Distance

SECTION = "variables"
_LONG = 60  # characters of a value
ELEMENTS = 1 << 18  # compared at once


class Found:
    """The result of `compare`: changes, and `canonical.files.variables_of` of either model if
    `hashed`.
    """

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.first: dict[str, Fields] = {}
        self.second: dict[str, Fields] = {}
        self.weights = Weights()
        self.hashed = True


class _Side:
    def __init__(self, reader: Optional[BundleReader], tables: Mapping[str, str]) -> None:
        self.reader, self.tables = reader, tables

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        return self.reader.entries() if self.reader is not None else {}

    def open(self) -> BundleReader:
        assert self.reader is not None
        return self.reader

    def fields(self, key: str) -> Fields:
        return variable_fields(self.open(), key, self.tables)

    def is_numbers(self, key: str) -> bool:
        """Return whether the tensor holds numbers, which can be compared one by one."""
        return self.entries[key].dtype.itemsize is not None and not is_of_table(
            self.open(), key, self.tables
        )


def compare(
    first: layout.Layout, second: layout.Layout, options: Options, hashed: bool = True
) -> Found:
    """Compare the checkpoints of two models.

    Raises SavedModelError: one of them is damaged.

    The contents of numbers are hashed only if `hashed`, and until a change that counts is found
    unless `options` ask for hashes: hashing takes longer than all the rest. Small tensors come
    first, so that large ones are seldom hashed in vain.
    """
    found, few = Found(), Few(options)
    found.hashed = hashed
    changes: dict[str, list[Change]] = {}
    with contextlib.ExitStack() as stack:
        one, other = _opened(first, stack), _opened(second, stack)
        equal = size = 0
        common = [key for key in one.entries if key in other.entries]
        for key in sorted(common, key=lambda key: one.entries[key].size):
            mine, theirs, changes[key] = _tensor(one, other, key, few, found.hashed)
            found.first[key], found.second[key] = mine, theirs
            found.hashed &= options.hashes or not any(change.counts for change in changes[key])
            equal += not changes[key]
            size += one.entries[key].size
        found.changes += itertools.chain.from_iterable(changes[key] for key in common)
        for side, opposite, fields in ((one, other, found.first), (other, one, found.second)):
            fields.update(
                {key: side.fields(key) for key in side.entries if key not in opposite.entries}
            )
        found.weights = Weights(len(common), equal, size)
    found.changes += _alone(found)
    return found


def _opened(model: layout.Layout, stack: contextlib.ExitStack) -> _Side:
    if not model.has_checkpoint:
        return _Side(None, {})
    return _Side(stack.enter_context(BundleReader(model.checkpoint_prefix)), tables_of(model))


def _alone(found: Found) -> Iterator[Change]:
    """Tensors of one side only.

    Where one went and one of the same content came, it has another name.
    """
    gone = {key: fields for key, fields in found.first.items() if key not in found.second}
    come = {key: fields for key, fields in found.second.items() if key not in found.first}
    by_content: dict[tuple[str, ...], list[str]] = {}
    for key in sorted(come):
        by_content.setdefault(tuple(come[key].values()), []).append(key)
    for key in sorted(gone):
        new = by_content.get(tuple(gone[key].values()))
        if new:
            yield Change(
                SECTION, RENAMED, (key,), f"is now {new[0]}, with the same value", key, new[0]
            )
            del come[new.pop(0)]
        else:
            yield Change.between(SECTION, (key,), _described(gone[key]), None)
    for key in sorted(come):
        yield Change.between(SECTION, (key,), None, _described(come[key]))


def _described(fields: Fields) -> str:
    return f"{fields['dtype']}{fields['shape'].replace(' ', '')}"


def _tensor(
    one: _Side, other: _Side, key: str, few: Few, hashed: bool
) -> tuple[Fields, Fields, list[Change]]:
    """Compare the entries of both models for a tensor."""
    if one.is_numbers(key) and other.is_numbers(key):
        return _numbers(one, other, key, few, hashed)
    entries = one.entries[key], other.entries[key]
    tracked = all(is_object_graph(key, entry) for entry in entries)
    mine = one.fields(key)
    same = tracked and one.open().object_graph() == other.open().object_graph()
    theirs = mine if same else other.fields(key)
    if mine == theirs:
        return mine, theirs, []
    if tracked:
        graphs = [tracked_objects(side.open().object_graph()) for side in (one, other)]
        return mine, theirs, [_tracked(key, graphs[0], graphs[1])]
    before, after = _described(mine), _described(theirs)
    in_table = is_of_table(one.open(), key, one.tables) and is_of_table(
        other.open(), key, other.tables
    )
    if mine["dtype"] != theirs["dtype"] or (before != after and not in_table):
        return mine, theirs, [Change.between(SECTION, (key,), before, after)]
    what, details = _table(one, other, key) if in_table else _elements(one, other, key)
    return mine, theirs, [Change(SECTION, CHANGED, (key,), what, before, after, details)]


def _tracked(key: str, one: Mapping[str, Fields], other: Mapping[str, Fields]) -> Change:
    """Return the object graph of the checkpoint, which maps keys to objects."""
    changes = list(field_changes(SECTION, (), one, other))
    labels: dict[str, set[str]] = {kind: set() for kind in (ADDED, REMOVED, CHANGED)}
    for item in changes:
        if item.kind in labels:
            labels[item.kind].add(item.where[-1])
    words = [
        f"{len(names)} {kind} ({', '.join(sorted(names)[:2])}{', …' if len(names) > 2 else ''})"
        for kind, names in labels.items()
        if names
    ]
    details = {"objects": [f"{item.where[-1]}: {item.what}" for item in changes]}
    return Change(
        SECTION,
        CHANGED,
        (key,),
        f"its objects: {', '.join(words) or 'connected differently'}",
        details=details,
    )


def _numbers(
    one: _Side, other: _Side, key: str, few: Few, hashed: bool
) -> tuple[Fields, Fields, list[Change]]:
    entries = one.entries[key], other.entries[key]
    itemsizes = [entry.dtype.itemsize or 1 for entry in entries]
    complexes = [entry.dtype.name.startswith("complex") for entry in entries]
    typed = entries[0].dtype == entries[1].dtype
    comparable = entries[0].shape == entries[1].shape and (typed or not any(complexes))
    measures: Optional[Measures] = None
    distance: Optional[Distance] = None
    hashes = (
        [hashlib.sha256()] if hashed else []
    )  # until the first difference there is one hash for both
    same = True
    streams = [
        pieces(side.open(), key, ELEMENTS * size) for side, size in zip((one, other), itemsizes)
    ]
    for number, (left, right) in enumerate(zip_longest(*streams, fillvalue=b"")):
        differ = left != right
        if same and differ:
            same, hashes = False, [state.copy() for state in 2 * hashes]
        for state, piece in zip(hashes, (left, right)):
            state.update(piece)
        if comparable and (differ or not typed):
            whole = typed and len(left) == entries[0].size
            measures = few.measures(entries[0].dtype.name, left, right) if whole else None
            if measures is None:
                measures = distance = distance or _distance(entries, few.options)
                distance.add(left, right, number * ELEMENTS)
    contents = [state.hexdigest() for state in hashes] or [""]
    mine, yours = [
        stored_fields(entry, content)
        for entry, content in zip(entries, (contents[0], contents[-1]))
    ]
    if same and mine == yours:
        return mine, yours, []
    before, after = _described(mine), _described(yours)
    if measures is None:  # of different shapes, or empty
        return mine, yours, [Change.between(SECTION, (key,), before, after)]
    what, details = measured(measures, entries[0].shape)
    what = what if before == after else f"{before} → {after}; {what}"
    return (
        mine,
        yours,
        [
            Change(
                SECTION,
                CHANGED,
                (key,),
                what,
                before,
                after,
                details,
                measures.beyond > 0 or not typed,
            )
        ],
    )


def _distance(entries: tuple[Entry, Entry], options: Options) -> Distance:
    from savedmodel_tools.comparison.numbers import (
        Distance,  # imports NumPy, which equal models have no need of
    )

    return Distance(entries[0].dtype, entries[1].dtype, options)


def measured(distance: Measures, shape: tuple[int, ...]) -> tuple[str, dict[str, Any]]:
    """`Measures` in words and as data."""
    elements = math.prod(shape)
    details: dict[str, Any] = {"elements": elements, "differing": distance.differing}
    words = [
        (
            f"{distance.differing} of {elements} values differ"
            if distance.differing
            else "the values are equal"
        )
    ]
    if distance.max_abs is not None:
        at = _place(distance.max_abs_at, shape)
        details |= {"max_abs": distance.max_abs, "max_abs_at": at}
        words.append(f"max abs {distance.max_abs:.3g} at {at}")
    if distance.max_rel is not None:
        details["max_rel"] = distance.max_rel
        words.append(f"max rel {distance.max_rel:.3g}")
    if distance.max_ulp is not None:
        details["max_ulp"] = distance.max_ulp
        words.append(f"max {distance.max_ulp} ulp")
    for name in ("new_nan", "gone_nan", "new_inf", "gone_inf"):
        count = getattr(distance, name)
        if count:
            details[name] = count
            words.append(
                f"{count} {'became' if name.startswith('new') else 'no longer'}"
                f" {'NaN' if 'nan' in name else 'infinite'}"
            )
    if distance.same_value:
        details["same_value"] = distance.same_value
        words.append(f"{distance.same_value} only in the sign of zero or the bits of NaN")
    if distance.first is not None:
        place = _place(distance.first[0], shape)
        details["first"] = {"at": place, "before": distance.first[1], "after": distance.first[2]}
        words.append(f"first at {place}: {distance.first[1]} → {distance.first[2]}")
    if not distance.options.exact:
        details["beyond_tolerance"] = distance.beyond
        words.append(
            f"{distance.beyond} beyond the tolerance"
            if distance.beyond
            else "all within the tolerance"
        )
    return ", ".join(words), details


def _place(flat: Optional[int], shape: tuple[int, ...]) -> list[int]:
    place = []
    rest = flat or 0
    for size in reversed(shape):
        rest, index = divmod(rest, size)
        place.append(index)
    return place[::-1]


def _elements(one: _Side, other: _Side, key: str) -> tuple[str, dict[str, Any]]:
    """Compare strings or variants of the same shape."""
    pair = [side.open().read(key).ravel().tolist() for side in (one, other)]
    differing = [number for number, (left, right) in enumerate(zip(*pair)) if left != right]
    at = differing[0] if differing else 0
    place = _place(at, one.entries[key].shape)
    texts = [_short(items[at]) for items in pair]
    details = {
        "elements": len(pair[0]),
        "differing": len(differing),
        "first": {"at": place, "before": texts[0], "after": texts[1]},
    }
    return (
        (
            f"{len(differing)} of {len(pair[0])} values differ, first at {place}: {texts[0]} →"
            f" {texts[1]}"
        ),
        details,
    )


def _table(one: _Side, other: _Side, key: str) -> tuple[str, dict[str, Any]]:
    """Compare the content of a table key by key: added and removed keys, changed values."""
    tables = [_rows(side, key) for side in (one, other)]
    gone, come = (
        [name for name in tables[0] if name not in tables[1]],
        [name for name in tables[1] if name not in tables[0]],
    )
    changed = [
        name for name in tables[0] if name in tables[1] and tables[0][name] != tables[1][name]
    ]
    details = {
        "entries": [len(table) for table in tables],
        "added": len(come),
        "removed": len(gone),
        "changed": len(changed),
    }
    parts = [
        f"{len(names)} {word}"
        for names, word in ((come, "added"), (gone, "removed"), (changed, "changed"))
        if names
    ]
    others = [*changed, *gone, *come]
    first = f"; first {_short(others[0])}" if others else ""
    return f"entries of the table: {', '.join(parts) or 'another order'}{first}", details


def _rows(side: _Side, key: str) -> dict[Any, Any]:
    keys, values = side.open().read(side.tables[key]), side.open().read(key)
    flat = [array.reshape(len(array), -1) if len(array) else array for array in (keys, values)]
    return {_row(name): _row(value) for name, value in zip(*flat)}


def _row(row: Any) -> Any:
    items = row.tolist()
    return items[0] if len(items) == 1 else tuple(items)


def _short(item: Any) -> str:
    text = repr(item.decode("utf-8", "backslashreplace")) if isinstance(item, bytes) else repr(item)
    return shortened(text, _LONG)

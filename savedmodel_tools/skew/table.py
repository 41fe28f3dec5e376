"""The committed table as text: one header line with the releases, then one line of JSON for each
op, sorted by name.

A line holds what is the same in every release that has the op; where releases differ, ``{"@":
[[span, value], ...]}`` replaces the value. ``in`` is the span of an op, or of an attr that only
some of these releases have.

    {"op": "VarHandleOp", "sig": "-> resource: resource", "attrs": {"debug_name": {"in": "2.15-",
    "type": "string", ...}}}
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from savedmodel_tools.skew import spans
from savedmodel_tools.skew.records import (
    Attr,
    Kernel,
    Op,
    Release,
    Snapshot,
)

SCHEMA = 1
VARYING = "@"


def encode(releases: Sequence[tuple[Release, Snapshot]]) -> str:
    """Return the table of these releases, oldest first. The same registries give the same text."""
    names = [release.name for release, _ in releases]
    rows = [_row(release) for release, _ in releases]
    header = {
        "schema": SCHEMA,
        "releases": rows,
        "dtypes": _dtypes([release for release, _ in releases]),
    }
    lines = [_dump(header)]
    ops = set(itertools.chain.from_iterable(snapshot for _, snapshot in releases))
    for op in sorted(ops):
        known = {
            index: snapshot[op] for index, (_, snapshot) in enumerate(releases) if op in snapshot
        }
        lines.append(_dump(_line(op, known, names)))
    return "\n".join(lines) + "\n"


def _dtypes(releases: Sequence[Release]) -> dict[str, str]:
    """Map each data type to the releases that know it."""
    names = [release.name for release in releases]
    members: dict[str, list[int]] = {}
    for index, release in enumerate(releases):
        for dtype in dict.fromkeys(release.dtypes):
            members.setdefault(dtype, []).append(index)
    return {dtype: spans.to_text(members[dtype], names) for dtype in sorted(members)}


def _row(release: Release) -> dict[str, Any]:
    return {key: value for key, value in release._asdict().items() if key != "dtypes"}


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def _line(name: str, known: Mapping[int, Op], names: Sequence[str]) -> dict[str, Any]:
    everywhere = len(known) == len(names)
    line: dict[str, Any] = (
        {"op": name} if everywhere else {"op": name, "in": spans.to_text(known, names)}
    )
    vary = _Varying(names)
    line["sig"] = vary({index: op.signature for index, op in known.items()})
    line["lib"] = vary({index: op.library for index, op in known.items()})
    line["stateful"] = vary({index: op.stateful for index, op in known.items()})
    line["deprecated"] = vary(
        {index: list(op.deprecated) if op.deprecated else None for index, op in known.items()}
    )
    attrs = {}
    listed = itertools.chain.from_iterable(op.attrs for op in known.values())
    for attr in sorted({attr.name for attr in listed}):
        versions = {index: found for index, op in known.items() if (found := op.attr(attr))}
        attrs[attr] = _attr(versions, known, vary)
    line["attrs"] = attrs
    kernels = {index: op.kernels for index, op in known.items() if op.kernels is not None}
    line["cpu"] = _kernels(kernels, names)
    line["python"] = vary({index: op.python for index, op in known.items()})
    return {
        key: value
        for key, value in line.items()
        if value not in ("", False, None, {}) or key == "op"
    }


class _Varying:
    """A value in each release, written as one value if it never changed."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def __call__(self, values: Mapping[int, Any]) -> Any:
        members: dict[str, list[int]] = {}
        first: dict[str, Any] = {}
        for index, value in values.items():
            key = _dump(value)
            members.setdefault(key, []).append(index)
            first.setdefault(key, value)
        if len(members) < 2:
            return next(iter(first.values()), None)
        return {VARYING: [[spans.to_text(members[key], self.names), first[key]] for key in members]}


def _attr(versions: Mapping[int, Attr], known: Mapping[int, Op], vary: _Varying) -> dict[str, Any]:
    allowed = {
        index: list(attr.allowed) if attr.allowed is not None else None
        for index, attr in versions.items()
    }
    found = {
        "in": None if len(versions) == len(known) else spans.to_text(versions, vary.names),
        "type": vary({index: attr.type for index, attr in versions.items()}),
        "default": vary({index: attr.default for index, attr in versions.items()}),
        "allowed": vary(allowed),
        "min": vary({index: attr.minimum for index, attr in versions.items()}),
    }
    return {key: value for key, value in found.items() if value is not None}


def _kernels(kernels: Mapping[int, frozenset[Kernel]], names: Sequence[str]) -> Any:
    """Return ``[product, ...]`` for kernels that every release that lists kernels has, ``{span:
    [product, ...]}`` otherwise.
    """
    members: dict[Kernel, list[int]] = {}
    for index in kernels:
        for kernel in kernels[index]:
            members.setdefault(kernel, []).append(index)
    by_span: dict[tuple[int, ...], set[Kernel]] = {}
    for kernel, indexes in members.items():
        by_span.setdefault(tuple(indexes), set()).add(kernel)
    everywhere = tuple(kernels)
    if set(by_span) <= {everywhere}:
        return products(by_span.get(everywhere, ())) or None
    return {
        spans.to_text(indexes, names): products(by_span[indexes]) for indexes in sorted(by_span)
    }


def products(kernels: Iterable[Kernel]) -> list[dict[str, list[str]]]:
    """Return ``{attr: [dtype, ...]}`` products whose combinations are these kernels, as few as a
    simple merge finds.
    """
    groups: dict[tuple[str, ...], set[tuple[tuple[str, ...], ...]]] = {}
    for kernel in kernels:
        groups.setdefault(tuple(attr for attr, _ in kernel), set()).add(
            tuple((dtype,) for _, dtype in kernel)
        )
    found = []
    for attrs, rows in sorted(groups.items()):
        for column in range(len(attrs)):
            merged: dict[tuple[tuple[str, ...], ...], set[str]] = {}
            for row in rows:
                merged.setdefault(row[:column] + row[column + 1 :], set()).update(row[column])
            rows = {
                (*rest[:column], tuple(sorted(dtypes)), *rest[column:])
                for rest, dtypes in merged.items()
            }
        found += [dict(zip(attrs, map(list, row))) for row in sorted(rows)]
    return found

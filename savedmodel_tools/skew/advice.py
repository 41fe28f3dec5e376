"""Advice against a version skew, in words; it contains only what the table or a manual check
supports.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from savedmodel_tools.skew import contrib
from savedmodel_tools.skew.history import History, OpHistory
from savedmodel_tools.skew.records import kernel_values

# Attrs whose value does not affect any answer, checked by hand: dropping them is always safe.
IDLE_ATTRS: dict[tuple[str, str], str] = {
    ("VarHandleOp", "debug_name"): "it only names the variable in messages",
    ("PartitionedCall", "config_proto"): "it only tunes the rewriting of the called function",
    (
        "StatefulPartitionedCall",
        "config_proto",
    ): "it only tunes the rewriting of the called function",
}
SHOWN_DTYPES = 12
# Ops with a format of their own: release -> the newest version that it and the ones after it read,
# from what they say when they are given a newer one (tests/data/skew). Releases before the first do
# not say.
OP_VERSIONS: dict[str, dict[str, int]] = {
    "XlaCallModule": {"2.13": 5, "2.14": 8, "2.16": 9, "2.20": 10}
}
# The StableHLO version of each release, as its own module tells it
# (tensorflow.compiler.mlir.stablehlo, get_current_version).
STABLEHLO: dict[str, str] = {
    "2.14": "0.14.8",
    "2.15": "0.14.24",
    "2.16": "0.17.7",
    "2.17": "1.1.1",
    "2.18": "1.7.3",
    "2.19": "1.9.1",
    "2.20": "1.12.1",
    "2.21": "1.13.7",
}
# Releases from this on pass over attrs that they do not know, with an entry in the log; older ones
# refuse the node.
IGNORES_UNKNOWN_ATTRS = "2.5"
# Ops without a result, whose nodes can be removed with the control edges to them.
IDLE_OPS: dict[str, str] = {
    "DisableCopyOnRead": (
        "it has no result and only saves memory: without the node every answer is the same"
    ),
}


def words(span: str) -> str:
    """``2.10 or newer``, ``1.4 to 1.15 or 2.2 or newer`` of a span."""
    parts = []
    for part in span.split(","):
        first, dash, last = part.partition("-")
        parts.append(first if not dash else f"{first} to {last}" if last else f"{first} or newer")
    return ", or ".join(parts)


def existence(table: History, members: Sequence[int], kernels: bool = False) -> str:
    """``since 2.10``, ``only in 1.4 to 1.15``, ``since 1.12 (not in 1.8)``, or "".

    Older releases do not tell their kernels.
    """
    if not members:
        return ""
    last, gap = len(table.releases) - 1, table.gap(members)
    before = f" (not in {gap})" if gap else ""
    if kernels and members[0] and not table.releases[members[0] - 1].has_kernels:
        before = " (older releases do not tell)"
    consecutive = members[-1] - members[0] + 1 == len(members)
    if not consecutive:
        return f"only in {words(table.text(members))}"
    if members[-1] != last:
        return f"only in {words(table.text(members))}{before}"
    return (
        f"since {table.since(members)}{before}" if members[0] else "in every release of the table"
    )


def load_there(table: History, members: Sequence[int]) -> str:
    """Say in which releases the model would work."""
    return (
        f"load it in {words(table.text(members))}, or export it without"
        if members
        else "no release of the table has it"
    )


def custom_op(op: str) -> str:
    """Advise on an op that no release has."""
    package = contrib.package(op)
    if package:
        return f"an op of the package {package}: import it before the model is loaded"
    return (
        "no TensorFlow of the table has it: a custom op, load the library that registers it"
        " (tf.load_op_library) first"
    )


def not_loaded(library: str) -> str:
    """Advise on an op that the release has but has not loaded."""
    if library.startswith("contrib/"):
        module = ".".join(["tensorflow", *library.split("/")[:2]])
        return (
            f"import {module} before the model is loaded; loaders without Python need its library"
            f" {library} (TF_LoadLibrary)"
        )
    if library:
        return (
            f"import tensorflow, or load its library {library} first: the op is not in the core"
            " library"
        )
    return "the release has the op, this build of it does not"


def newer_op(op: str, table: History, members: Sequence[int]) -> str:
    """Advise on an op that only newer releases have."""
    return IDLE_OPS.get(op) or load_there(table, members)


def removed(table: History, members: Sequence[int]) -> str:
    """Advise on an op that only older releases have and for which no replacement is known."""
    return f"load it in {words(table.text(members))}; nothing takes its place"


def attr(
    op: str, name: str, value: Any, default: Any, table: History, members: Sequence[int]
) -> str:
    """Advise on an attr that the release does not know.

    ``value`` and ``default`` are None where they are unknown.
    """
    if not members:
        return (
            "no release of the table has it: the op is a custom one's namesake, or the model is"
            " newer than the table"
        )
    idle = IDLE_ATTRS.get((op, name))
    if idle:
        return f"{idle}: drop it; {IGNORES_UNKNOWN_ATTRS} and newer ignore it"
    if value is not None and value == default:
        return (
            "it has its default: drop it, or export with stripped default attrs"
            " (strip_default_attrs=True)"
        )
    held = f"its value {value!r} is not the default {default!r}: " if value is not None else ""
    return held + load_there(table, members)


def takes(
    products: Sequence[Mapping[str, Sequence[str]]], types: Mapping[str, Sequence[str]]
) -> bool:
    """Return whether a kernel of ``products`` takes these dtypes.

    Attrs without an entry are assumed to fit.
    """
    return any(_product_takes(product, types) for product in products)


def _product_takes(
    product: Mapping[str, Sequence[str]], types: Mapping[str, Sequence[str]]
) -> bool:
    for attr_name, allowed in product.items():
        if any(dtype not in allowed for dtype in types.get(attr_name, ())):
            return False
    return True


def has_kernel(known: OpHistory, index: int, types: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a CPU kernel of this release takes these attr values; an attr that is not
    given has its default.

    Kernels that constrain an attr that neither op nor node has (TopK since 2.13: index_type) are
    never found by TensorFlow.
    """
    products, op = known.products(index), known.definition(index)
    if op is None or all(set(product) <= set(types) for product in products):
        return takes(products, types)
    attrs = {attr.name: attr.default for attr in op.attrs}
    defaults = {
        name: kernel_values(default) for name, default in attrs.items() if default is not None
    }
    found = [product for product in products if set(product) <= {*attrs, *types}]
    return takes(found, {**defaults, **types})


def with_kernel(known: OpHistory, types: Mapping[str, Sequence[str]], table: History) -> list[int]:
    """Return the releases that list a kernel for these attr values and know the dtypes."""
    listed = set(itertools.chain.from_iterable(types.values()))
    dtypes = {dtype for dtype in listed if dtype in table.dtypes or dtype.startswith("number ")}

    def knows_dtypes(index: int) -> bool:
        return all(index in table.dtypes.get(dtype, ()) for dtype in dtypes)

    return [
        index
        for index in known.members
        if table.releases[index].has_kernels
        and knows_dtypes(index)
        and has_kernel(known, index, types)
    ]


def reading_version(op: str, version: int, table: History) -> Optional[list[int]]:
    """Return the releases that read this version of an op's own format; None for an op without such
    a format.
    """
    newest = OP_VERSIONS.get(op)
    if newest is None:
        return None
    limit, found = None, []
    for index, release in enumerate(table.releases):
        limit = newest.get(release.name, limit)
        if limit is not None and version <= limit:
            found.append(index)
    return found


def newer_stablehlo(version: str, index: int, table: History) -> Optional[str]:
    """Return the StableHLO version of the release if it is older than ``version``.

    None if the release reads ``version`` or does not tell.
    """
    own = STABLEHLO.get(table.releases[index].name)
    wanted, known = (tuple(map(int, text.split("."))) for text in (version, own or version))
    return own if wanted > known else None


def kernel(
    op: str,
    known: OpHistory,
    here: Optional[int],
    table: History,
    members: Sequence[int],
    types: Mapping[str, Sequence[str]],
) -> str:
    """Advise on a kernel that the release lacks for these dtypes; ``members`` are the releases that
    have it.
    """
    instead = contrib.replacement(op)
    if known.needs_python:
        return (
            "it calls Python code of the process that made the model: no other process can run it"
        )
    if members:
        later = here is None or members[-1] > here
        return load_there(table, members) if later or instead is None else instead.text
    if not any(known.products(index) for index in known.members):
        return (
            "no release has a CPU kernel of it in the core library: the op is for other devices or"
            " other builds"
        )
    products = known.products(
        here if here is not None and known.products(here) else known.members[-1]
    )
    others: set[str] = set()
    for product in products:
        others.update(*(product.get(attr, ()) for attr in types))
    other = sorted(others)
    cast = f": cast to {' or '.join(other)}" if 0 < len(other) <= SHOWN_DTYPES else ""
    return f"no release of the table has this kernel for the CPU{cast}"

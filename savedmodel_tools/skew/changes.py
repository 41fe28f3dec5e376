"""Changes of the registry from one release to another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from savedmodel_tools.skew.history import History
from savedmodel_tools.skew.records import Attr, Op
from savedmodel_tools.skew.table import products

KINDS = (
    "op added",
    "op removed",
    "signature",
    "deprecated",
    "attr added",
    "attr removed",
    "default",
    "values",
    "kernels",
)


@dataclass(frozen=True)
class Change:
    """One change of one op: ``kind`` of :data:`KINDS`; ``what`` says it in words."""

    op: str
    kind: str
    what: str


def changes(table: History, old: int, new: int) -> list[Change]:
    """Return every change between two releases, by op."""
    before, after = table.snapshot(old), table.snapshot(new)
    found: list[Change] = []
    for name in sorted({*before, *after}):
        was, now = before.get(name), after.get(name)
        if was is None or now is None:
            op = was or now
            assert op is not None
            what = op.signature + (f"  ({op.library})" if op.library else "")
            found.append(Change(name, "op added" if was is None else "op removed", what))
        else:
            found += _of_op(was, now)
    return found


def _of_op(was: Op, now: Op) -> Iterator[Change]:
    if was.signature != now.signature:
        yield Change(now.name, "signature", f"{was.signature}  ->  {now.signature}")
    if now.deprecated and was.deprecated != now.deprecated:
        yield Change(
            now.name,
            "deprecated",
            f"for graphs of GraphDef version {now.deprecated[0]} or newer: {now.deprecated[1]}",
        )
    for name in sorted({attr.name for attr in (*was.attrs, *now.attrs)}):
        yield from _of_attr(now.name, was.attr(name), now.attr(name))
    if was.kernels is not None and now.kernels is not None:
        more, fewer = now.kernels - was.kernels, was.kernels - now.kernels
        words: list[str] = []
        for sign, some in (("+", more), ("-", fewer)):
            if some:
                words += [f"{sign} {text}" for text in kernel_words(products(some))]
        if words:
            yield Change(now.name, "kernels", "; ".join(words))


def _of_attr(op: str, was: Attr | None, now: Attr | None) -> Iterator[Change]:
    if was is None or now is None:
        attr = was or now
        assert attr is not None
        yield Change(op, "attr added" if was is None else "attr removed", attr_words(attr))
        return
    if (was.default, was.type) != (now.default, now.type):
        yield Change(op, "default", f"{attr_words(was)}  ->  {attr_words(now)}")
    if was.allowed != now.allowed:
        more, fewer = (
            sorted(set(a or ()) - set(b or ()))
            for a, b in ((now.allowed, was.allowed), (was.allowed, now.allowed))
        )
        words = [f"+ {', '.join(more)}"] * bool(more) + [f"- {', '.join(fewer)}"] * bool(fewer)
        if now.allowed is None or was.allowed is None:
            words = ["any value" if now.allowed is None else f"only {', '.join(now.allowed)}"]
        yield Change(op, "values", f"{now.name}: {'; '.join(words)}")
    if was.minimum != now.minimum:
        yield Change(op, "values", f"{now.name}: at least {now.minimum}, was {was.minimum}")


def attr_words(attr: Attr) -> str:
    """``name: type = default``."""
    return f"{attr.name}: {attr.type}" + (
        f" = {attr.default!r}" if attr.default is not None else ""
    )


def kernel_words(found: list[dict[str, list[str]]]) -> list[str]:
    """Describe each product as ``T in float32, float64``; a kernel for every dtype as ``any``."""
    return list(map(_product_words, found))


def _product_words(product: dict[str, list[str]]) -> str:
    words = []
    for attr, values in product.items():
        listed = ", ".join(value or repr(value) for value in values)
        words.append(f"{attr} in {listed}")
    return "; ".join(words) or "any"

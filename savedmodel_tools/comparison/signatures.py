"""Signatures of two MetaGraphs: what a caller sees (SIG-01)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Optional

from reference_impl.format import schema
from reference_impl.format.values.shapes import shape_text
from reference_impl.views.signatures import signatures
from reference_impl.views.types import Signature, SignatureArgument
from savedmodel_tools.canonical.objects import Fields
from savedmodel_tools.comparison.entries import field_change
from savedmodel_tools.comparison.model import CHANGED, RENAMED, Change

SECTION = "signatures"


def compare(
    where: tuple[str, ...],
    one: tuple[schema.MetaGraphDef, Mapping[str, Fields]],
    other: tuple[schema.MetaGraphDef, Mapping[str, Fields]],
) -> Iterator[Change]:
    """Yield the changes between the signatures of two MetaGraphs.

    Their canonical entries decide what differs.
    """
    graphs, entries = (one[0], other[0]), (one[1], other[1])
    known = [_by_key(graph) for graph in graphs]
    renamed = renames(entries[0], entries[1])
    called = renames(*map(_tensors_by_key, known))
    others = {
        old: new
        for old, new in called.items()
        if old not in renamed and new not in renamed.values()
    }
    renamed = {**others, **renamed}
    arrived = set(renamed.values())
    for key in sorted(entries[0].keys() | entries[1].keys()):
        place = (*where, key)
        if key in renamed:
            new = renamed[key]
            yield Change(SECTION, RENAMED, place, f"is now {new}", key, new)
            if entries[0][key] != entries[1][new]:
                yield from _signature(
                    place, [known[0].get(key), known[1].get(new)], entries[0][key], entries[1][new]
                )
        elif key in arrived:
            continue
        elif key not in entries[0] or key not in entries[1]:
            sides = [
                _summary(held.get(key)) if key in side else None
                for held, side in zip(known, entries)
            ]
            yield Change.between(SECTION, place, sides[0], sides[1])
        elif entries[0][key] != entries[1][key]:
            yield from _signature(
                place, [known[0].get(key), known[1].get(key)], entries[0][key], entries[1][key]
            )


def renames(one: Mapping[str, object], other: Mapping[str, object]) -> dict[str, str]:
    """Names that went, and the names that came in their places: those of the one thing that is the
    same.
    """
    groups: list[dict[str, list[str]]] = [{}, {}]
    for group, side, opposite in ((groups[0], one, other), (groups[1], other, one)):
        for name in sorted(side.keys() - opposite.keys()):
            item = side[name]
            group.setdefault(
                repr(sorted(item.items()) if isinstance(item, Mapping) else item), []
            ).append(name)
    pairs = [(names, groups[1].get(thing, [])) for thing, names in groups[0].items()]
    return {gone[0]: come[0] for gone, come in pairs if len(gone) == len(come) == 1}


def _summary(signature: Optional[Signature]) -> str:
    if signature is None:
        return "a reserved signature"
    inputs, outputs = _arguments(signature.inputs), _arguments(signature.outputs)
    return f"({inputs}) -> ({outputs})  {signature.method_name}"


def _arguments(side: Iterable[SignatureArgument]) -> str:
    return ", ".join(f"{item.name}: {argument_text(item)}" for item in side)


def argument_text(item: SignatureArgument) -> str:
    """``float32[?,3]``, ``sparse int64[?,4]``, ``composite Ragged(float32[?,?])``."""
    text = item.type_spec or f"{item.dtype}{shape_text(item.shape)}"
    return text if item.kind == "dense" else f"{item.kind} {text}"


def _signature(
    where: tuple[str, ...],
    known: list[Optional[Signature]],
    one: Mapping[str, str],
    other: Mapping[str, str],
) -> Iterator[Change]:
    plain = [_inputs_and_outputs(one), _inputs_and_outputs(other)]
    renamed = renames(plain[0], plain[1])
    # Of several that are declared alike, the one that stands for the same tensors.
    meant = list(map(_with_tensors, plain, known))
    renamed = {**renames(meant[0], meant[1]), **renamed}
    renamed = {old: new for old, new in renamed.items() if old.split(" ")[0] == new.split(" ")[0]}
    arrived, texts = set(renamed.values()), [_texts(item) for item in known]
    for name in sorted(one.keys() | other.keys()):
        kind, _, argument = name.partition(" ")
        if name in renamed:
            new = renamed[name].partition(" ")[2]
            yield Change(SECTION, RENAMED, (*where, name), f"is now {new}", argument, new)
        elif name in arrived or one.get(name) == other.get(name):
            continue
        elif kind in ("input", "output", "default") and argument:
            yield _argument((*where, name), [side.get(name) for side in texts])
        else:
            change = field_change(SECTION, where, name, one.get(name), other.get(name))
            if change is not None:
                yield change


def _meant(signature: Optional[Signature]) -> dict[str, tuple[str, ...]]:
    """``input x``, ``output y`` -> the tensors of the graph that it stands for."""
    sides = (
        () if signature is None else (("input", signature.inputs), ("output", signature.outputs))
    )
    found = {}
    for kind, side in sides:
        for item in side:
            found[f"{kind} {item.name}"] = tuple(slot.tensor for slot in item.tensors)
    return found


def _tensors(signature: Signature) -> tuple[str, ...]:
    """Return all tensors of a signature, without the names of its arguments."""
    found: list[str] = []
    for name, held in _meant(signature).items():
        kind = name.split(" ")[0]
        found += [f"{kind} {tensor}" for tensor in held]
    return tuple(sorted(found))


def _tensors_by_key(known: Mapping[str, Signature]) -> dict[str, tuple[str, ...]]:
    """Return the tensors of each signature that has some."""
    found = {key: _tensors(item) for key, item in known.items()}
    return {key: tensors for key, tensors in found.items() if tensors}


def _by_key(graph: schema.MetaGraphDef) -> dict[str, Signature]:
    return {item.key: item for item in signatures(graph)}


def _inputs_and_outputs(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in fields.items() if name.startswith(("input ", "output "))}


def _with_tensors(
    fields: Mapping[str, str], signature: Optional[Signature]
) -> dict[str, tuple[str, Optional[tuple[str, ...]]]]:
    held = _meant(signature)
    return {name: (text, held.get(name)) for name, text in fields.items()}


def _texts(signature: Optional[Signature]) -> dict[str, Optional[str]]:
    """``input x``, ``output y``, ``default x`` -> what a reader is told of it."""
    if signature is None:
        return {}
    found: dict[str, Optional[str]] = {
        f"default {item.name}": item.default for item in signature.inputs
    }
    for kind, side in (("input", signature.inputs), ("output", signature.outputs)):
        found.update({f"{kind} {item.name}": argument_text(item) for item in side})
    return found


def _argument(where: tuple[str, ...], texts: list[Optional[str]]) -> Change:
    before, after = texts
    if before is None and after is None:
        return Change(SECTION, CHANGED, where, "is declared differently")
    if before == after:
        return Change(SECTION, CHANGED, where, f"{before}, declared differently", before, after)
    return Change.between(SECTION, where, before, after)

"""The rules of contracts: changes that break clients, and changes that only add.

The ids are stable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from reference_impl.format.container.layout import tags_text
from reference_impl.format.values.shapes import covers, shape_text
from reference_impl.views.types import Shape
from savedmodel_tools.contract.form import Contract, Signature, Type

BREAKING, COMPATIBLE = "breaking", "compatible"
_COMPARISONS = 10**6  # made to propose a new name


class Rule(NamedTuple):
    """``category`` is BREAKING or COMPATIBLE; ``why`` says who notices."""

    category: str
    why: str


RULES: dict[str, Rule] = {
    "META_GRAPH_REMOVED": Rule(BREAKING, "loaders ask for a MetaGraph by exactly its tags"),
    "META_GRAPH_NOT_ALONE": Rule(
        BREAKING, "`tf.saved_model.load` without `tags` refuses a model of several MetaGraphs"
    ),
    "SIGNATURE_REMOVED": Rule(BREAKING, "requests name their signature"),
    "METHOD_CHANGED": Rule(
        BREAKING, "servers answer Classify, Regress and Predict by the method name"
    ),
    "INPUT_REMOVED": Rule(
        BREAKING, "a request with an input that the signature has not is refused"
    ),
    "INPUT_REQUIRED": Rule(BREAKING, "a request that lacks a required input is refused"),
    "INPUT_KIND_CHANGED": Rule(
        BREAKING, "dense, sparse and composite arguments are sent differently"
    ),
    "INPUT_DTYPE_CHANGED": Rule(BREAKING, "tensors of another dtype are refused, never converted"),
    "INPUT_SHAPE_NARROWED": Rule(BREAKING, "shapes that were accepted are refused"),
    "INPUT_DEFAULT_REMOVED": Rule(BREAKING, "a request that leaves the input out is refused"),
    "INPUT_DEFAULT_CHANGED": Rule(
        BREAKING, "a request that leaves the input out means something else"
    ),
    "INPUT_ORDER_CHANGED": Rule(
        BREAKING, "converters (TFLite) and positional calls number inputs in this order"
    ),
    "OUTPUT_REMOVED": Rule(BREAKING, "clients read outputs by name"),
    "OUTPUT_KIND_CHANGED": Rule(
        BREAKING, "dense, sparse and composite arguments are read differently"
    ),
    "OUTPUT_DTYPE_CHANGED": Rule(BREAKING, "clients unpack the field of the dtype they know"),
    "OUTPUT_SHAPE_WIDENED": Rule(BREAKING, "answers may have shapes that were excluded"),
    "ANSWER_CHANGED": Rule(BREAKING, "the answer to a golden request is beyond the tolerance"),
    "ANSWER_FAILED": Rule(BREAKING, "a golden request is not answered"),
    "META_GRAPH_ADDED": Rule(
        COMPATIBLE, "there are tags that nobody asks for yet (from two MetaGraphs on)"
    ),
    "SIGNATURE_ADDED": Rule(COMPATIBLE, "nobody names it yet"),
    "INPUT_OPTIONAL_ADDED": Rule(
        COMPATIBLE, "it has a default, so requests may leave it out (in loaders that know defaults)"
    ),
    "INPUT_SHAPE_WIDENED": Rule(COMPATIBLE, "all shapes that were accepted still are"),
    "INPUT_DEFAULT_ADDED": Rule(COMPATIBLE, "the input was required and may now be left out"),
    "OUTPUT_ADDED": Rule(COMPATIBLE, "clients read outputs by name"),
    "OUTPUT_SHAPE_NARROWED": Rule(COMPATIBLE, "answers have shapes that were possible before"),
}


@dataclass(frozen=True)
class Finding:
    """One difference from a contract."""

    rule: str  # one of RULES
    where: tuple[str, ...]  # names from the outside in: tags, signature, argument
    message: str  # a sentence
    allowed: bool = False  # it would break, but is allowed

    @property
    def breaks(self) -> bool:
        return RULES[self.rule].category == BREAKING and not self.allowed

    def to_json(self) -> dict[str, Any]:
        found = {"rule": self.rule, "category": RULES[self.rule].category, "allowed": self.allowed}
        return {**found, "where": list(self.where), "message": self.message}


def compare(contract: Contract, model: Contract) -> Iterator[Finding]:
    """Return the findings where a model's contract breaks or extends ``contract``, without
    answers.
    """
    for tags, signatures in sorted(contract.meta_graphs.items()):
        where = (f"tags {tags_text(tags)}",)
        if tags in model.meta_graphs:
            yield from _signatures(where, signatures, model.meta_graphs[tags])
        else:
            has = "; ".join(map(tags_text, sorted(model.meta_graphs)))
            yield Finding(
                "META_GRAPH_REMOVED", where, f"no MetaGraph has these tags; the model has: {has}"
            )
    added = [tags for tags in sorted(model.meta_graphs) if tags not in contract.meta_graphs]
    alone = len(contract.meta_graphs) == 1 and len(model.meta_graphs) > 1
    for tags in added:
        where = (f"tags {tags_text(tags)}",)
        if alone:
            yield Finding(
                "META_GRAPH_NOT_ALONE", where, "is new beside the MetaGraph that was the only one"
            )
        elif len(contract.meta_graphs) > 1:
            yield Finding("META_GRAPH_ADDED", where, "is new")


def allow(findings: Iterator[Finding], allowed: frozenset[str]) -> list[Finding]:
    """Return the findings, with those of the rules ``allowed`` marked."""
    return [
        replace(item, allowed=True)
        if item.rule in allowed and RULES[item.rule].category == BREAKING
        else item
        for item in findings
    ]


def _signatures(
    where: tuple[str, ...], old: Mapping[str, Signature], new: Mapping[str, Signature]
) -> Iterator[Finding]:
    for key in sorted(old):
        if key in new:
            yield from _signature((*where, f"signature {key}"), old[key], new[key])
        else:
            few = len(old) * len(new) <= _COMPARISONS
            twins = (
                [
                    name
                    for name in sorted(new)
                    if name not in old and _seen(new[name]) == _seen(old[key])
                ]
                if few
                else []
            )
            hint = f"; {twins[0]!r} is just like it" if len(twins) == 1 else ""
            yield Finding("SIGNATURE_REMOVED", (*where, f"signature {key}"), f"is gone{hint}")
    for key in sorted(new):
        if key not in old:
            yield Finding("SIGNATURE_ADDED", (*where, f"signature {key}"), "is new")


def _seen(item: Signature) -> tuple[str, dict[str, Type], dict[str, Type]]:
    return item.method, item.inputs, item.outputs


def _signature(where: tuple[str, ...], old: Signature, new: Signature) -> Iterator[Finding]:
    if old.method != new.method:
        yield Finding(
            "METHOD_CHANGED", where, f"{old.method or '(none)'} → {new.method or '(none)'}"
        )
    yield from _inputs(where, old, new)
    if old.order and new.order and set(old.order) == set(new.order) and old.order != new.order:
        yield Finding(
            "INPUT_ORDER_CHANGED", where, f"{', '.join(old.order)} → {', '.join(new.order)}"
        )
    elif old.order and not new.order and old.inputs.keys() == new.inputs.keys():
        yield Finding("INPUT_ORDER_CHANGED", where, f"{', '.join(old.order)} → none on record")
    for name in sorted(old.outputs.keys() | new.outputs.keys()):
        place = (*where, f"output {name}")
        if name not in new.outputs:
            yield Finding(
                "OUTPUT_REMOVED", place, f"is gone{_renamed(name, old.outputs, new.outputs)}"
            )
        elif name not in old.outputs:
            yield Finding("OUTPUT_ADDED", place, f"{new.outputs[name]} is new")
        else:
            yield from _type("OUTPUT", place, old.outputs[name], new.outputs[name])


def _inputs(where: tuple[str, ...], old: Signature, new: Signature) -> Iterator[Finding]:
    for name in sorted(old.inputs.keys() | new.inputs.keys()):
        place = (*where, f"input {name}")
        if name not in new.inputs:
            yield Finding(
                "INPUT_REMOVED", place, f"is gone{_renamed(name, old.inputs, new.inputs)}"
            )
        elif name not in old.inputs:
            optional = name in new.defaults
            rule, what = (
                ("INPUT_OPTIONAL_ADDED", "with a default")
                if optional
                else ("INPUT_REQUIRED", "without a default")
            )
            yield Finding(rule, place, f"{new.inputs[name]} is new, {what}")
        else:
            yield from _type("INPUT", place, old.inputs[name], new.inputs[name])
            yield from _default(place, name, old, new)


def _default(
    where: tuple[str, ...], name: str, old: Signature, new: Signature
) -> Iterator[Finding]:
    if name in old.defaults and name not in new.defaults:
        yield Finding("INPUT_DEFAULT_REMOVED", where, "its default is gone")
    elif name in new.defaults and name not in old.defaults:
        yield Finding("INPUT_DEFAULT_ADDED", where, "has a default now")
    elif name in old.defaults:
        from savedmodel_common.compare import compare_tensor

        difference = compare_tensor("", old.defaults[name], new.defaults[name])
        if difference is not None:
            yield Finding("INPUT_DEFAULT_CHANGED", where, f"its default {difference}")


def _renamed(name: str, old: Mapping[str, Type], new: Mapping[str, Type]) -> str:
    few = len(old) * len(new) <= _COMPARISONS
    twins = (
        [other for other in sorted(new) if other not in old and new[other] == old[name]]
        if few
        else []
    )
    return f"; is it {twins[0]!r} now?" if len(twins) == 1 else ""


def _type(side: str, where: tuple[str, ...], old: Type, new: Type) -> Iterator[Finding]:
    old_dtypes, new_dtypes = _dtypes(old), _dtypes(new)
    if old.kind != new.kind or len(old_dtypes) != len(new_dtypes):
        yield Finding(f"{side}_KIND_CHANGED", where, f"{old} → {new}")
        return
    if old_dtypes != new_dtypes:
        yield Finding(
            f"{side}_DTYPE_CHANGED", where, f"{', '.join(old_dtypes)} → {', '.join(new_dtypes)}"
        )
    old_shapes, new_shapes = _shapes(old), _shapes(new)
    if old_shapes != new_shapes:
        before, after = map(shape_text, old_shapes), map(shape_text, new_shapes)
        text = f"{', '.join(before)} → {', '.join(after)}"
        wider = all(map(covers, new_shapes, old_shapes))
        narrower = all(map(covers, old_shapes, new_shapes))
        if side == "INPUT":
            yield Finding("INPUT_SHAPE_WIDENED" if wider else "INPUT_SHAPE_NARROWED", where, text)
        else:
            yield Finding(
                "OUTPUT_SHAPE_NARROWED" if narrower else "OUTPUT_SHAPE_WIDENED", where, text
            )
    elif old.spec != new.spec and old_dtypes == new_dtypes:
        yield Finding(f"{side}_KIND_CHANGED", where, f"{old.spec} → {new.spec}")


def _dtypes(item: Type) -> list[str]:
    return [dtype for dtype, _ in item.tensors]


def _shapes(item: Type) -> list[Shape]:
    return [shape for _, shape in item.tensors]

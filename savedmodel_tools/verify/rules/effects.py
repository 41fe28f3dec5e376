"""Ops that act on the machine, and when: the table is `reference_impl.safety.op_effects`, the
search that of `inspect`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reference_impl.safety.effect import Effect
from reference_impl.safety.effects import signature_label
from reference_impl.safety.op_effects import PRINTS, PYTHON_OPS, READS, UNKNOWN, UNMEASURED
from savedmodel_tools.skew import advice, contrib
from savedmodel_tools.verify.consequences import MAY_FAIL
from savedmodel_tools.verify.findings import (
    Fault,
    Severity,
    few,
    graph_rule,
)

if TYPE_CHECKING:
    from savedmodel_tools.verify.model import Graph, Model


@graph_rule(
    "SMC601",
    "acts-at-load",
    Severity.ERROR,
    summary=(
        "Loading the model already does something to the machine: writes or reads files, reaches"
        " the network, runs code, or takes gigabytes of memory."
    ),
    why=(
        "Loading is enough, nobody has to call anything: an initialiser can do whatever an op can."
        " TensorFlow also computes some nodes when it imports a graph, also in functions that"
        " nothing calls. Model servers answer the model's own warm-up requests while they load it."
    ),
    fix=(
        "Load it only if you trust its author, best in a sandbox without network. In a model of"
        " your own: take the op out of the initialiser, or the request out of"
        " assets.extra/tf_serving_warmup_requests."
    ),
)
def acts_at_load(model: Model, graph: Graph) -> Iterator[Fault]:
    known = [
        effect
        for effect in graph.effects
        if effect.kind not in (UNKNOWN, UNMEASURED) and effect.op not in PYTHON_OPS
    ]
    unclear = "perhaps at load (too much to follow)"
    found = [
        (
            effect,
            (
                unclear
                if effect.at_load is None
                else f"at load ({', '.join(_labels(effect.at_load))})"
            ),
        )
        for effect in known
        if effect.at_load or effect.at_load is None
    ]
    warmed = {signature_label(name) for name in model.warmup.signatures} if model.warmup else ()
    for effect in known:
        by = [label for label in effect.at_call or () if label in warmed]
        if by and not effect.at_load:
            found.append(
                (
                    effect,
                    f"at load in a model server, by a warm-up request ({', '.join(_labels(by))})",
                )
            )
    for effect, when in found:
        severity = {PRINTS: Severity.INFO, READS: Severity.WARNING}.get(effect.kind)
        stopped = (
            MAY_FAIL if effect.kind == READS and effect.at_load else None
        )  # where the file is not there
        message = f"{when} {_does(effect)}"
        yield Fault(message, effect.node, effect.function, severity=severity, consequences=stopped)


@graph_rule(
    "SMC602",
    "acts-at-call",
    Severity.WARNING,
    summary=(
        "A call does something to the machine: writes or reads files, reaches the network, runs"
        " code."
    ),
    why=(
        "Every client makes the server do it; where a request names the path, with any file that"
        " the server may touch."
    ),
    fix=(
        "Make sure that this is meant. Signatures that need no such op can be kept and the others"
        " dropped."
    ),
)
def acts_at_call(model: Model, graph: Graph) -> Iterator[Fault]:
    for effect in graph.effects:
        if (
            effect.kind == UNKNOWN
            or effect.op in PYTHON_OPS
            or effect.at_load
            or effect.at_load is None
        ):
            continue
        called = effect.at_call or ()
        harmless = effect.kind == PRINTS or not called
        when = (
            f"at a call of {', '.join(_labels(called))}"
            if called
            else "in a part that nothing names"
        )
        yield Fault(
            f"{when} {_does(effect)}",
            effect.node,
            effect.function,
            severity=Severity.INFO if harmless else None,
        )


@graph_rule(
    "SMC603",
    "op-unknown",
    Severity.WARNING,
    summary="An op that no TensorFlow release has: it comes from a library of somebody else.",
    why="Without the library the graph cannot be imported; with it, the op can do anything.",
    fix=(
        "Say with the model which library it needs, and load that first (tf.load_op_library)."
        " `compat` tells which parts work without it."
    ),
)
def op_unknown(model: Model, graph: Graph) -> Iterator[Fault]:
    """One finding for an op."""
    places: dict[str, list[Effect]] = {}
    for effect in graph.effects:
        if effect.kind == UNKNOWN:
            places.setdefault(effect.op, []).append(effect)
    for op, effects in places.items():
        used: dict[str, None] = {}
        for effect in effects:
            used.update(dict.fromkeys((*(effect.at_load or ()), *(effect.at_call or ()))))
        where = f", used by {', '.join(_labels(list(used)))}" if used else ", which nothing runs"
        count = sum(effect.count for effect in effects)
        times = f" ({count} times)" if count > 1 else ""
        known = advice.custom_op(op) if contrib.package(op) else None
        yield Fault(f"the op {op!r}{times}{where}", effects[0].node, effects[0].function, fix=known)


@graph_rule(
    "SMC604",
    "python-function",
    Severity.ERROR,
    summary="The graph calls a Python function, which is not in the model.",
    why=(
        "Only the process that exported the model has it: elsewhere the call fails, or runs another"
        " function of the same number."
    ),
    fix=(
        "Write the function with TensorFlow ops and export again, or drop the signatures that"
        " call it."
    ),
)
def python_function(model: Model, graph: Graph) -> Iterator[Fault]:
    for effect in graph.effects:
        if effect.op in PYTHON_OPS:
            used = [*(effect.at_load or ()), *(effect.at_call or ())]
            where = f"is run by {', '.join(_labels(used))}" if used else "is run by nothing"
            if effect.at_load is None:
                where = "is run; the ops that run it are too many to follow"
            severity = None if used or effect.at_load is None else Severity.INFO
            stopped = MAY_FAIL if effect.at_load is None or effect.at_load else None
            message, parts = f"{effect.op} {where}", tuple(effect.at_call or ())
            yield Fault(
                message,
                effect.node,
                effect.function,
                severity=severity,
                parts=parts,
                consequences=stopped,
            )


@graph_rule(
    "SMC605",
    "load-not-measured",
    Severity.ERROR,
    summary=(
        "Loading the model makes a tensor whose size `verify` does not follow, so it may take any"
        " amount of memory."
    ),
    why=(
        "The size of a tensor at load is followed where constants decide it. Here an op without a"
        " rule decides it, a number from a file or from the checkpoint, or the content of a"
        " compressed image."
    ),
    fix=(
        "Load it only where memory is limited, or if you trust its author. In a model of your own:"
        " compute the value before the export, and save it as a variable or a constant."
    ),
)
def load_not_measured(model: Model, graph: Graph) -> Iterator[Fault]:
    for effect in graph.effects:
        if effect.kind == UNMEASURED and effect.at_load != ():
            when = f" ({', '.join(_labels(effect.at_load))})" if effect.at_load else ""
            yield Fault(f"at load{when} {_does(effect)}", effect.node, effect.function)


def _does(effect: Effect) -> str:
    times = f" ({effect.count} times)" if effect.count > 1 else ""
    paths = f": {', '.join(few(effect.paths))}" if effect.paths else ""
    return f"{effect.op}{times} {effect.does}{paths}"


def _labels(labels: tuple[str, ...] | list[str]) -> list[str]:
    return [*labels[:3], f"{len(labels) - 3} more"] if len(labels) > 3 else list(labels)

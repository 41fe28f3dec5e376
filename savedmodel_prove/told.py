"""Verdicts as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from savedmodel_common.printable import counted
from savedmodel_prove.certificate import Certificate, Node
from savedmodel_prove.records import CONVERTED, EVALUATOR, EXACT, ORIGINAL
from savedmodel_prove.verdicts import Kind, Verdict

# Side whose node differs -> what differs, and where the other name of the node is.
_WORDS = {
    CONVERTED: ("it differs", "the converted model"),
    ORIGINAL: ("TensorFlow's value differs from the evaluator's", "TensorFlow's graph"),
    EVALUATOR: ("the evaluator's value differs from TensorFlow's", "TensorFlow's graph"),
    EXACT: ("the evaluator's value differs from TensorFlow's", "TensorFlow's graph"),
}


def lines(certificate: Certificate) -> Iterator[str]:
    """Yield the report: a head, each output with its verdict, and the notes."""
    asked = counted(len(certificate.records), "input")
    yield f"signature {certificate.signature!r}: {asked}, seed {certificate.seed}"
    for side, program in certificate.programs.items():
        versions = certificate.versions.get(side, {})
        packages = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
        yield f"  {side}: {program}" + (f" ({packages})" if packages else "")
    for verdict in certificate.verdicts:
        yield from _of_output(verdict, certificate)
    for note in certificate.notes:
        yield f"note: {note}"


def _of_output(verdict: Verdict, certificate: Certificate) -> Iterator[str]:
    yield f"output {verdict.output!r}: {verdict.kind.value}{_numbers(verdict)}"
    if verdict.reason:
        yield f"  {verdict.reason}"
    yield from _first_nodes(certificate.nodes.get(verdict.output, ()))
    if verdict.alone:
        side = "the converted model" if verdict.alone == CONVERTED else verdict.alone
        place = "" if verdict.alone_at == verdict.question else f" at {verdict.alone_at!r}"
        yield f"  alone: {side}{place}; the two others agree"


def _first_nodes(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the first node of each side whose value differs."""
    first: dict[str, Node] = {}
    for node in nodes:
        first.setdefault(node.side, node)
    for side, node in first.items():
        differs, place = _WORDS[side]
        yield (
            f"  first at node {node.node} ({node.op}): {differs} by {node.difference:.3g},"
            f" {node.allowed:.3g} is allowed; in {place} {node.theirs}"
        )


def _numbers(verdict: Verdict) -> str:
    """Return the difference, the noise and where, in brackets; nothing for equal bits."""
    if verdict.kind in (Kind.EQUAL, Kind.NOT_COMPARABLE):
        asked = counted(verdict.compared, "input")
        return f" at {asked}" if verdict.kind is Kind.EQUAL else ""
    measured = verdict.measured
    ulp = "" if measured.ulp is None else f" ({measured.ulp:.0f} ulp)"
    return (
        f": {measured.absolute:.3g}{ulp} at {verdict.question!r}; noise {verdict.noise:.3g},"
        f" allowed {verdict.allowed:.3g}"
    )

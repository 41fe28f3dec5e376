"""Verdicts as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from savedmodel_common.printable import counted
from savedmodel_prove.certificate import Certificate
from savedmodel_prove.records import CONVERTED
from savedmodel_prove.verdicts import Kind, Verdict


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
    for node in certificate.nodes.get(verdict.output, ())[:1]:
        yield (
            f"  first at node {node.node} ({node.op}): it differs by {node.difference:.3g},"
            f" {node.allowed:.3g} is allowed; in the converted model {node.theirs}"
        )
    if verdict.alone:
        side = "the converted model" if verdict.alone == CONVERTED else verdict.alone
        yield f"  alone: {side}; the two others agree"


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

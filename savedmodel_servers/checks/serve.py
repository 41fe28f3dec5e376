"""``serve``, ``serve_grpc``, ``serve_rest``: a model server makes the artifact AVAILABLE and
answers what was recorded.

TF Serving loads a model as the C++ loader does; between it and a client are the signatures, and two
encodings of tensors. A model counts as served when both transports say AVAILABLE and show its
signatures, and each answers every request.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.checks import oracle
from compat_matrix.checks.answers import Answers, judged, raise_first, refused_as_recorded
from compat_matrix.checks.context import Finding
from compat_matrix.checks.kinds.signatures import compare_signatures, signature_finding
from reference_impl.format import schema
from reference_impl.format.container.layout import WARMUP_REQUESTS
from reference_impl.views.signatures import signature_spec
from savedmodel_common import tensors
from savedmodel_common.compare import EXACT, Tolerance, compare_named
from savedmodel_common.printable import first_of
from savedmodel_common.tensors import Tensor
from savedmodel_servers.checks import serve_examples
from savedmodel_servers.checks.wire import Wire, rest_of, trouble
from savedmodel_servers.client import (
    GRPC,
    REST,
    Client,
    NotRepresentable,
)
from savedmodel_servers.fleet import Served
from savedmodel_servers.rest_client import ROWS
from savedmodel_servers.rest_json import subnormal

Ask = Callable[[Served, dict[str, Any], dict[str, Tensor]], dict[str, Tensor]]
ONE_STATUS = frozenset(
    {"INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"}
)  # codes that are 400 over HTTP
# The server's JSON parser reads most doubles with an error of up to 3 units in the last place
# (2.2e-16 each), which a model may multiply. It is exact for integers up to 2^53 times a power of
# ten up to 22.
PARSED = Tolerance(rtol=1e-13)
_EXACT_DIGITS, _EXACT_POWER = 1 << 53, 22


def check_serve(wire: Wire) -> dict[str, Any]:
    """Check over both transports that every MetaGraph becomes AVAILABLE, and that its metadata are
    right.

    Returns details of a pass: tag sets, the number of signatures, and whether the server had
    warm-up requests to answer first.
    """
    findings, seen = [], 0
    tag_sets = oracle.tag_sets(wire.artifact)
    for tags in tag_sets:
        served = wire.served(tags)
        expected = oracle.signatures(wire.artifact.model, tags)
        seen += len(expected)
        for transport in (GRPC, REST):
            try:
                findings += _shown(
                    wire, served, served.grpc if transport == GRPC else rest_of(served), expected
                )
            except Finding as finding:
                findings.append(finding)
    raise_first(findings)
    warmup = {"warmup": True} if (wire.artifact.model / WARMUP_REQUESTS).is_file() else {}
    return {"tags": [list(tags) for tags in tag_sets], "signatures": seen, **warmup}


def _shown(wire: Wire, served: Served, client: Client, expected: dict[str, Any]) -> list[Finding]:
    with trouble("status"), wire.timed(f"status {client.transport}"):
        states = {status.version: status for status in client.status(served.ref, limit=wire.limit)}
    if not any(status.state == "AVAILABLE" for status in states.values()):
        text = (
            "; ".join(
                f"version {s.version} {s.state} {s.error_message}".rstrip() for s in states.values()
            )
            or "no version"
        )
        return [
            Finding(
                Outcome.FAIL_STRUCTURE,
                f"{client.transport} says that the model is not AVAILABLE: {text}",
            )
        ]
    with trouble("metadata"), wire.timed(f"metadata {client.transport}"):
        shown = client.metadata(served.ref, limit=wire.limit)
    meta_graph = schema.MetaGraphDef()
    for key, signature in shown.items():
        meta_graph.signature_def[key].ParseFromString(signature.SerializeToString())
    got = signature_spec(meta_graph)
    differences = compare_signatures(expected, got)
    if not differences:
        return []
    return [
        signature_finding(
            [f"over {client.transport}: {text}" for text in differences], expected, got
        )
    ]


def check_grpc(wire: Wire) -> dict[str, Any]:
    """Send every recorded request of a signature over gRPC; return details of a pass, as the check
    ``values`` does.
    """
    answers = Answers()

    def ask(
        served: Served, request: dict[str, Any], inputs: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        return _predict(wire, served, served.grpc, request, inputs)

    return _answered(wire, GRPC, ask, answers)


def check_rest(wire: Wire) -> dict[str, Any]:
    """The same over REST: in columns, in rows where the request has them, and equal to the answer
    over gRPC.

    Equal means bit for bit, but within `PARSED` where the request holds doubles that the server
    reads inexactly. Where an answer changes the model it is asked once, in columns. Returns details
    of a pass, as above; ``columns_only``: request -> why it cannot be asked in rows.
    """
    answers, columns_only = Answers(), {}

    def ask(
        served: Served, request: dict[str, Any], inputs: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        exact = _carried_exactly(inputs)
        if request["outputs"] is not None:
            _subnormals_are_lost(tensors.load(wire.artifact.io / request["outputs"]))
        try:
            got = _predict(wire, served, rest_of(served), request, inputs)
        except Finding as finding:
            _name_code(wire, served, request, inputs, finding)
            raise
        if wire.artifact.stateful or request["outputs"] is None:
            return got
        try:
            _rows_apply(got)
            rows = _predict(wire, served, rest_of(served), request, inputs, layout=ROWS)
        except _NotCarried as reason:
            columns_only[request["id"]] = str(reason)
        else:
            _same(request, "REST in rows", rows, "in columns", got)
        by_grpc = _predict(wire, served, served.grpc, request, inputs)
        _subnormals_are_lost(by_grpc)
        _same(request, "REST", got, "gRPC", by_grpc, EXACT if exact else PARSED)
        return got

    details = _answered(wire, REST, ask, answers)
    return {**details, **({"columns_only": columns_only} if columns_only else {})}


class _NotCarried(Exception):
    """The transport, or its row format, cannot carry this request or its answer.

    The model is not at fault.
    """


def _name_code(
    wire: Wire, served: Served, request: dict[str, Any], inputs: dict[str, Tensor], finding: Finding
) -> None:
    """HTTP has one status for several codes: give an error over REST the code that gRPC has for the
    same request.
    """
    if finding.error_class not in ONE_STATUS or wire.artifact.stateful:
        return
    try:
        _predict(wire, served, served.grpc, request, inputs)
    except Finding as other:
        if other.error_class in ONE_STATUS:
            finding.outcome, finding.error_class = other.outcome, other.error_class
    except _NotCarried:
        return


def _rows_apply(outputs: dict[str, Tensor]) -> None:
    """Raise _NotCarried for an answer that is not a list of answers, which the server cannot give
    in rows.
    """
    sizes = {tensor.array.shape[:1] for tensor in outputs.values()}
    if len(sizes) != 1 or () in sizes:
        raise _NotCarried(f"the outputs have no common first dimension: {sorted(sizes)}")


def _predict(
    wire: Wire,
    served: Served,
    client: Client,
    request: dict[str, Any],
    inputs: dict[str, Tensor],
    **layout: str,
) -> dict[str, Tensor]:
    what = f"request {request['id']}" + (" in rows" if layout else "")
    with trouble(what), wire.timed(client.transport):
        try:
            return client.predict(
                served.ref, request["signature"], inputs, limit=wire.limit, **layout
            )
        except NotRepresentable as error:
            raise _NotCarried(str(error)) from error


def _carried_exactly(inputs: dict[str, Tensor]) -> bool:
    """Return whether the server reads every number of a request as the double that was sent."""
    doubles = (
        tensor.array.ravel().tolist() for tensor in inputs.values() if tensor.dtype == "float64"
    )
    return all(map(_is_read_exactly, itertools.chain.from_iterable(doubles)))


def _is_read_exactly(value: float) -> bool:
    """Return whether a double is an integer of at most 2^53 times a power of ten up to 22, as it is
    written in a request.
    """
    if not math.isfinite(value):
        return True
    _, digits, power = Decimal(repr(value)).as_tuple()
    return int("".join(map(str, digits))) <= _EXACT_DIGITS and abs(int(power)) <= _EXACT_POWER


def _subnormals_are_lost(outputs: dict[str, Tensor]) -> None:
    """Raise _NotCarried for an answer with subnormal numbers, which the server writes as 0.0 over
    REST.
    """
    for name, tensor in outputs.items():
        if subnormal(tensor):
            raise _NotCarried(
                f"output {name!r} has a subnormal number, which TensorFlow Serving writes as 0.0"
                " over REST"
            )


def _same(
    request: dict[str, Any],
    one: str,
    got: dict[str, Tensor],
    other: str,
    expected: dict[str, Tensor],
    tolerance: Tolerance = EXACT,
) -> None:
    differences = compare_named(expected, got, tolerance)
    if differences:
        text = (
            f"request {request['id']}: {one} and {other} answer differently:"
            f" {first_of(differences, 'differences')}"
        )
        raise Finding(
            Outcome.FAIL_VALUE, text, error_class="transports", details={"request": request["id"]}
        )


def _answered(wire: Wire, transport: str, ask: Ask, answers: Answers) -> dict[str, Any]:
    """Ask every signature request through ``ask``, and requests of examples also by their own
    method; return details of a pass.

    ``not_carried``: request -> why the transport cannot carry it. If there are only such requests,
    the outcome is REJECTED. ``by_method``: how many were asked by Classify, Regress,
    MultiInference. Raises the first finding, the others in its details.
    """
    findings: list[Finding] = []
    by_method: dict[str, int] = {}
    not_carried: dict[str, str] = {}
    for tags in wire.artifact.tag_sets:
        requests = [
            (i, r)
            for i, r in enumerate(wire.artifact.requests)
            if r["kind"] == "signature" and tuple(r["tags"]) == tags
        ]
        if requests:
            findings += _asked(
                wire, transport, wire.served(tags), requests, ask, answers, not_carried
            )
            if not findings and not wire.artifact.stateful:
                served = wire.served(tags)
                client = served.grpc if transport == GRPC else rest_of(served)
                found, counts = serve_examples.ask_all(
                    wire, served, client, tags, [request for _, request in requests]
                )
                findings += found
                by_method |= {
                    method: by_method.get(method, 0) + count for method, count in counts.items()
                }
    if findings:
        findings[0].details["answers"] = answers.digests
    elif not_carried and not answers.digests:
        reason = next(iter(not_carried.values()))
        findings = [
            Finding(
                Outcome.REJECTED,
                reason,
                error_class="NotRepresentable",
                details={"not_carried": not_carried},
            )
        ]
    raise_first(findings)
    details: dict[str, Any] = {"answers": answers.digests}
    details |= {
        name: value
        for name, value in (("not_carried", not_carried), ("by_method", by_method))
        if value
    }
    return details | answers.evidence(wire.kept)


def _asked(
    wire: Wire,
    transport: str,
    served: Served,
    requests: Sequence[tuple[int, dict[str, Any]]],
    ask: Ask,
    answers: Answers,
    not_carried: dict[str, str],
) -> list[Finding]:
    out = []
    for index, request in requests:
        try:
            inputs = tensors.load(wire.artifact.io / request["inputs"])
            tolerance = wire.artifact.tolerance
            if transport == REST and not _carried_exactly(inputs):
                tolerance = tolerance.or_wider(*PARSED)
            got = ask(served, request, inputs)
            answer = wire.scratch / f"answer-{index}.npz"
            tensors.save(answer, got)
            finding = judged(wire.artifact, request, answer, answers=answers, tolerance=tolerance)
        except _NotCarried as reason:
            not_carried[request["id"]] = str(reason)
            if wire.artifact.stateful:  # the answers to the others depend on it
                not_carried |= {
                    later["id"]: f"comes after {request['id']}"
                    for i, later in requests
                    if i > index
                }
                break
            continue
        except Finding as raised:
            is_error = raised.outcome in (Outcome.CALL_ERROR, Outcome.REJECTED)
            finding = None if is_error and refused_as_recorded(request, str(raised)) else raised
        if finding:
            finding.details.setdefault("request", request["id"])
            out.append(finding)
            if finding.outcome is Outcome.CRASH:
                break  # nothing can be asked after that
    return out

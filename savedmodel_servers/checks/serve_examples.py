"""Ask requests of examples by Classify, Regress and MultiInference: the answers must agree with the
recorded ones of Predict.

Each is asked with complete examples and, over gRPC and REST, with the common features sent once as
context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.checks import oracle
from compat_matrix.checks.context import Finding
from savedmodel_common import tensors
from savedmodel_common.printable import first_of
from savedmodel_common.serving import messages
from savedmodel_common.tensors import Tensor
from savedmodel_servers.checks import examples
from savedmodel_servers.checks.wire import Wire, trouble
from savedmodel_servers.client import (
    GRPC,
    Client,
    ModelRef,
    NotRepresentable,
    Task,
)
from savedmodel_servers.fleet import Served


def ask_all(
    wire: Wire,
    served: Served,
    client: Client,
    tags: Sequence[str],
    requests: Sequence[Mapping[str, Any]],
) -> tuple[list[Finding], dict[str, int]]:
    """Ask the requests of one MetaGraph by these methods; return the findings, and the number of
    requests by method.
    """
    methods = oracle.method_names(wire.artifact.model, tags)
    findings: list[Finding] = []
    counts: Counter[str] = Counter()
    answered: dict[str, tuple[Mapping[str, Tensor], Mapping[str, Tensor]]] = {}
    for request in requests:
        if request["outputs"] is None or methods.get(request["signature"]) not in examples.SPOKEN:
            continue
        given, recorded = (
            tensors.load(wire.artifact.io / request[side]) for side in ("inputs", "outputs")
        )
        try:
            if check(wire, served, client, methods, request, given, recorded):
                counts[examples.SPOKEN[methods[request["signature"]]]] += 1
                answered.setdefault(request["signature"], (given, recorded))
        except Finding as finding:
            finding.details.setdefault("request", request["id"])
            findings.append(finding)
    if len(answered) > 1 and not findings:
        with trouble("metadata"):
            shown = client.metadata(served.ref, limit=wire.limit)
        try:
            counts["multi_inference"] += check_together(wire, served, client, shown, answered)
        except Finding as finding:
            findings.append(finding)
    return findings, dict(+counts)


def check(
    wire: Wire,
    served: Served,
    client: Client,
    methods: Mapping[str, str],
    request: Mapping[str, Any],
    inputs: Mapping[str, Tensor],
    recorded: Mapping[str, Tensor],
) -> bool:
    """Ask a request of examples by its own method, and return whether it was one.

    Raises Finding for a wrong answer.

    ``methods``: the method of each signature; ``recorded``: the answer to the request by Predict.
    """
    method = methods.get(request["signature"], "")
    if method not in examples.SPOKEN:
        return False
    try:
        want = examples.expected(method, inputs, recorded)
    except examples.Refused:
        return False  # a signature that says classify, and cannot be asked to: Predict answers it
    spoken = examples.SPOKEN[method]
    whole = examples.serialized(inputs)
    for context, parts in _ways(whole):
        what = f"request {request['id']} by {spoken}" + (
            " with a context" if context is not None else ""
        )
        with trouble(what), wire.timed(f"{spoken} {client.transport}"):
            try:
                ask = client.classify if method == messages.CLASSIFY_METHOD else client.regress
                got = ask(served.ref, request["signature"], parts, context, limit=wire.limit)
            except NotRepresentable:
                continue  # JSON has no place for such a feature
        _compare(wire, what, client, want, got)
    return True


def _ways(whole: list[bytes]) -> Iterator[tuple[bytes | None, list[bytes]]]:
    yield None, whole
    shared = examples.with_context(whole)
    if shared is not None:
        yield shared


def _compare(
    wire: Wire, what: str, client: Client, want: examples.Result, got: examples.Result
) -> None:
    found = examples.differences(want, got, wire.artifact.tolerance)
    if found:
        text = f"{what} over {client.transport}: {first_of(found, 'differences')}"
        raise Finding(
            Outcome.FAIL_VALUE,
            text,
            details={"expected": repr(want)[:2000], "got": repr(got)[:2000]},
        )


def check_together(
    wire: Wire,
    served: Served,
    client: Client,
    signatures: Mapping[str, Any],
    answered: Mapping[str, tuple[Mapping[str, Tensor], Mapping[str, Tensor]]],
) -> int:
    """Ask MultiInference for every set of signatures with a common tensor; return the number.

    REST has no such method.

    ``answered``: signature -> inputs and recorded answer of one of its requests.
    """
    if client.transport != GRPC:
        return 0
    asked = 0
    for keys in examples.together(signatures):
        known = [key for key in keys if key in answered]
        if len(known) < 2:
            continue
        # All tasks get the same examples: those of the first, for the signatures that were recorded
        # on them.
        given = answered[known[0]][0]
        want = {key: _wanted(signatures[key], given, answered[key]) for key in known}
        same = [key for key in known if want[key] is not None]
        if len(same) < 2:
            continue
        tasks = [Task(ModelRef(served.ref.name), key, signatures[key].method_name) for key in same]
        what = f"MultiInference of {', '.join(same)}"
        with trouble(what), wire.timed("multi_inference grpc"):
            got = client.multi_inference(tasks, examples.serialized(given), limit=wire.limit)
        for key, one in zip(same, got):
            expected = want[key]
            assert expected is not None
            _compare(wire, f"{what}: {key}", client, expected, one)
        asked += 1
    return asked


def _wanted(
    signature: Any,
    given: Mapping[str, Tensor],
    known: tuple[Mapping[str, Tensor], Mapping[str, Tensor]],
) -> examples.Result | None:
    """Return the right answer of a signature to the examples ``given``, if its recorded request has
    the same examples.
    """
    try:
        if examples.serialized(given) != examples.serialized(known[0]):
            return None
        return examples.expected(signature.method_name, given, known[1])
    except examples.Refused:
        return None

"""The clients of the old export, learned where an upgrade starts: their requests, ways and
promises.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from compat_matrix.requests.policies import ACROSS_RELEASES
from reference_impl.format.schema import SignatureDef
from reference_impl.format.values.shapes import shape_of
from savedmodel_common.compare import EXACT, compare_named, compare_tensor
from savedmodel_common.serving.messages import DEFAULT_SIGNATURE
from savedmodel_common.tensors import Tensor
from savedmodel_servers.checks.serve import PARSED
from savedmodel_servers.client import (
    GRPC,
    REST,
    Client,
    ModelRef,
    NotRepresentable,
    ServerError,
    ServingError,
    Timeout,
    Unreachable,
)
from savedmodel_servers.drivers import Endpoint
from savedmodel_servers.rest_client import COLUMNS, ROWS
from savedmodel_servers.served import connect
from savedmodel_servers.upgrade.client_requests import ClientRequest
from savedmodel_servers.upgrade.promises import promise_of
from savedmodel_servers.upgrade.sides import NEW, OLD

BATCHES = (1, 2, 3)  # sizes of batches that clients send
WAYS = {GRPC: GRPC, COLUMNS: REST, ROWS: REST}  # how a request is asked -> the transport
IN_WORDS = {GRPC: "over grpc", COLUMNS: "over rest", ROWS: "over rest in rows"}
REQUEST_LIMIT = 60.0  # seconds for one answer

Signatures = Mapping[str, Mapping[str, SignatureDef]]  # of each model, by key
Refused = Counter[tuple[str, str]]  # how many questions, by model and reason
_Member = tuple[ClientRequest, dict[str, Tensor], int]  # a request, its answer, its batch's size


class Lost(Exception):
    """A client did not get the right answer."""


class Question(NamedTuple):
    """A request, and the way in which a client asks it: a key of WAYS."""

    request: ClientRequest
    way: str

    def __str__(self) -> str:
        return f"{self.request.model}: request {self.request.id} {IN_WORDS[self.way]}"


@dataclass(frozen=True)
class Clients:
    """``questions``: what they ask. ``signatures``: the SignatureDefs that they know.

    ``left_out``: lines that name what they do not ask, and why.
    """

    questions: Sequence[Question]
    signatures: Signatures
    left_out: Sequence[str]


def ask(client: Client, question: Question) -> dict[str, Tensor]:
    """Ask one question and return the answer. Raises ServingError."""
    request = question.request
    layout = {} if question.way == GRPC else {"layout": question.way}
    return client.predict(
        ModelRef(request.model), request.signature, request.inputs, limit=REQUEST_LIMIT, **layout
    )


def learn(endpoint: Endpoint, requests: Sequence[ClientRequest]) -> Clients:
    """Ask the old server with the old export, and return the clients that were written for it.

    Each recorded request is asked in batches of several sizes where its signature leaves the size
    open, over gRPC and, in columns and in rows, over REST. A batch, or a way, that this server with
    this export does not answer is nobody's habit.

    Raises Lost: a recorded request is not answered as recorded.
    """
    models = sorted({request.model for request in requests})
    refused: Refused = Counter()
    with opened(endpoint) as (grpc, _):
        try:
            signatures = {
                model: grpc.metadata(ModelRef(model), limit=REQUEST_LIMIT) for model in models
            }
        except ServingError as error:
            raise Lost(str(error)) from error
    with opened(endpoint, signatures) as (grpc, rest):
        families = [
            _family(grpc, request, signatures[request.model], refused) for request in requests
        ]
        learned = list(itertools.chain.from_iterable(families))
        questions = [Question(request, GRPC) for request in learned]
        if rest is not None:
            questions += _over_rest(rest, learned, refused)
    left_out = []
    for (model, why), count in sorted(refused.items()):
        noun = "question" if count == 1 else "questions"
        left_out.append(f"{model}: {count} {noun} of clients: {why}")
    return Clients(questions, signatures, left_out)


@contextmanager
def opened(
    endpoint: Endpoint, known: Signatures | None = None
) -> Iterator[tuple[Client, Client | None]]:
    """Connect for the time of the context; see `connect`."""
    grpc, rest = connect(endpoint, known)
    try:
        yield grpc, rest
    finally:
        grpc.close()
        if rest is not None:
            rest.close()


def _family(
    client: Client, request: ClientRequest, signatures: Mapping[str, SignatureDef], refused: Refused
) -> list[ClientRequest]:
    """Return a recorded request, also in batches of other sizes, with what its answers promise."""
    signature = signatures.get(request.signature or DEFAULT_SIGNATURE, SignatureDef())
    question = Question(request, GRPC)
    try:
        answer = ask(client, question)
    except ServingError as error:
        raise Lost(f"{question}: {error}") from error
    differs = wrong(question, answer, frozenset({OLD}))
    if differs:
        raise Lost(f"{question}: {differs}")
    size = _batch(signature, request.inputs)
    members = [(request, answer, size)]
    for other in BATCHES if size else ():
        if other != size:
            members += _resized(client, request, signature, other, refused)
    follows = [name for name in answer if _follows_the_batch(name, members)]
    family = []
    for member, found, count in members:
        sizes = dict.fromkeys(follows, count) if count else {}
        family.append(replace(member, promise=promise_of(signature, found, sizes)))
    return family


def _follows_the_batch(name: str, members: Sequence[_Member]) -> bool:
    """Return whether an output has a row for each row of the batch, in several sizes of it."""
    return len(members) > 1 and all(
        found[name].array.shape[:1] == (count,) for _, found, count in members
    )


def _batch(signature: SignatureDef, inputs: Mapping[str, Tensor]) -> int:
    """Return the size of the batch of a request; 0 where its signature leaves none open."""
    sizes = {inputs[name].array.shape[0] for name in _batched(signature, inputs)}
    return sizes.pop() if len(sizes) == 1 else 0


def _batched(signature: SignatureDef, inputs: Mapping[str, Tensor]) -> Iterator[str]:
    """Yield the inputs whose first dimension may have any size."""
    for name, tensor in inputs.items():
        if tensor.array.ndim and name in signature.inputs:
            declared = shape_of(signature.inputs[name].tensor_shape)
            if declared is None or (declared and declared[0] is None):
                yield name


def _resized(
    client: Client, request: ClientRequest, signature: SignatureDef, size: int, refused: Refused
) -> list[_Member]:
    """Return a request in a batch of another size, with the answer; nothing where it is refused."""
    inputs = dict(request.inputs)
    for name in list(_batched(signature, request.inputs)):
        rows = inputs[name].array
        inputs[name] = Tensor(inputs[name].dtype, rows[np.arange(size) % len(rows)])
    tolerance = request.tolerance.or_wider(*ACROSS_RELEASES.bounds)
    resized = replace(
        request, id=f"{request.id} in a batch of {size}", inputs=inputs, tolerance=tolerance
    )
    question = Question(resized, GRPC)
    try:
        answer, again = ask(client, question), ask(client, question)
    except (ServerError, Timeout) as error:
        why = error.code if isinstance(error, ServerError) else "no answer in time"
        refused[request.model, f"the old export refuses a batch of {size} ({why})"] += 1
        return []
    except ServingError as error:
        raise Lost(f"{question}: {error}") from error
    recorded = request.expected[OLD] or {}
    steady = [name for name in answer if _is_steady(answer[name], again.get(name))]
    values = {name: answer[name] for name in steady if name in recorded}
    # Where the new export has other values on record, nothing says what is right for this batch.
    expected = {OLD: values, NEW: values if _same_record(request) else None}
    return [(replace(resized, expected=expected), answer, size)]


def _is_steady(tensor: Tensor, again: Tensor | None) -> bool:
    """Return whether a second answer was the same: the model draws nothing for this output."""
    return again is not None and compare_tensor("", tensor, again) is None


def _same_record(request: ClientRequest) -> bool:
    """Return whether both exports have the same values on record."""
    old, new = request.expected[OLD], request.expected[NEW]
    if old is None or new is None:
        return False
    return not compare_named(old, new, request.tolerance)


def _over_rest(rest: Client, requests: Sequence[ClientRequest], refused: Refused) -> list[Question]:
    """Return the questions for REST: those that the old server answers there as it does over
    gRPC.
    """
    found = []
    for request in requests:
        for way in (COLUMNS, ROWS):
            question = Question(request, way)
            why = _unfit(rest, question)
            if why:
                refused[request.model, f"not asked {IN_WORDS[way]} ({why})"] += 1
            else:
                found.append(question)
    return found


def _unfit(rest: Client, question: Question) -> str:
    """Return why no client asks a question over REST, "" if it can.

    Raises Lost: the server is gone.
    """
    try:
        answer = ask(rest, question)
    except NotRepresentable:
        return "JSON cannot carry it"
    except Unreachable as error:
        raise Lost(f"{question}: {error}") from error
    except ServingError as error:
        return f"the old server does not answer it there ({type(error).__name__})"
    differs = wrong(question, answer, frozenset({OLD}))
    return "the old server answers otherwise than over grpc" if differs else ""


def wrong(question: Question, got: Mapping[str, Tensor], sides: frozenset[str]) -> str:
    """Return what is wrong with an answer to a question; see `ClientRequest.wrong`."""
    return question.request.wrong(got, sides, EXACT if question.way == GRPC else PARSED)

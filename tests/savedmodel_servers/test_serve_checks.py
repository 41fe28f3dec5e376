"""The checks of a server on a fleet that is none: what each wrong answer of a server amounts to.

No TensorFlow, no process.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell
from compat_matrix.checks import oracle
from compat_matrix.checks.context import Finding
from compat_matrix.requests.artifact import read_artifact
from reference_impl.format.container import layout
from savedmodel_common import tensors
from savedmodel_common.tensors import Tensor
from savedmodel_servers.checks import examples, serve
from savedmodel_servers.checks.wire import Wire
from savedmodel_servers.client import (
    BadAnswer,
    Class,
    ModelRef,
    NotRepresentable,
    ServerError,
    Timeout,
    Unreachable,
    VersionStatus,
)
from savedmodel_servers.drivers import ExitState
from savedmodel_servers.fleet import NotServed, Served

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
X = Tensor("float32", np.zeros([1], np.float32))
AVAILABLE = [VersionStatus(1, "AVAILABLE", 0, "")]


class Answering:
    """A client that knows the recorded answers of an artifact.

    ``wrong``: what to do instead, by (transport, method).
    """

    def __init__(self, transport, artifact, wrong, log):
        self.transport, self.artifact, self.wrong, self.log = transport, artifact, wrong, log

    def _instead(self, method, *arguments):
        self.log.append((self.transport, method))
        instead = self.wrong.get((self.transport, method))
        if isinstance(instead, Exception):
            raise instead
        return instead(*arguments) if instead else None

    def _recorded(self, signature, inputs):
        for request in self.artifact.requests:
            given = tensors.load(self.artifact.io / request["inputs"])
            if request["signature"] == signature and same(given, inputs):
                return (
                    dict(tensors.load(self.artifact.io / request["outputs"]))
                    if request["outputs"]
                    else {"y": X}
                )
        raise AssertionError("nobody recorded an answer to this")

    def status(self, ref, *, limit):
        return self._instead("status") or AVAILABLE

    def metadata(self, ref, *, limit):
        found = self._instead("metadata")
        return found or dict(layout.read(self.artifact.model).meta_graph("serve").signature_def)

    def predict(self, ref, signature, inputs, outputs=(), *, limit, layout=None):
        got = self._recorded(signature, inputs)
        return self._instead("rows" if layout else "predict", got) or got

    def classify(self, ref, signature, parts, context=None, *, limit):
        return self._examples("classify", signature, parts, context)

    def regress(self, ref, signature, parts, context=None, *, limit):
        return self._examples("regress", signature, parts, context)

    def _examples(self, method, signature, parts, context):
        given = strings([(context or b"") + part for part in parts])
        methods = oracle.method_names(self.artifact.model, ("serve",))
        for request in self.artifact.requests:
            inputs = tensors.load(self.artifact.io / request["inputs"])
            if request["signature"] == signature and len(inputs["inputs"].array) == len(parts):
                recorded = tensors.load(self.artifact.io / request["outputs"])
                want = examples.expected(methods[signature], inputs, recorded)
                return self._instead(method, want) or want
        raise AssertionError(f"nobody recorded an answer to {given}")

    def multi_inference(self, tasks, parts, context=None, *, limit):
        return [self._examples("multi_inference", task.signature, parts, context) for task in tasks]

    def close(self):
        pass


def strings(items):
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return Tensor("string", array)


def same(one, other):
    return set(one) == set(other) and all(
        one[name].array.shape == other[name].array.shape
        and (one[name].array == other[name].array).all()
        for name in one
    )


class Fleet:
    def __init__(self, artifact, wrong):
        self.log, self.asked, self.wrong = [], [], wrong
        clients = [
            Answering(transport, artifact, wrong, self.log) for transport in ("grpc", "rest")
        ]
        self._served = Served(ModelRef("m"), clients[0], clients[1], AVAILABLE)

    def served(self, model, tags, ahead=()):
        self.asked.append((model, tuple(tags)))
        if "served" in self.wrong:
            raise self.wrong["served"]
        return self._served


@pytest.fixture
def wire(tmp_path):
    def make(wrong=None, fixture="half_plus_two", **changes):
        directory = tmp_path / fixture
        if not directory.exists():
            shutil.copytree(FIXTURES / fixture, directory)
        artifact = read_artifact(directory)
        for name, value in changes.items():
            object.__setattr__(artifact, name, value)
        cell = Cell(
            fixture, "fixture", "1.15.5", "standin", "2.21.0", "serve", "standin", str(directory)
        )
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        return Wire(cell, Fleet(artifact, wrong or {}), artifact, scratch)

    return make


def finding(check, wire):
    with pytest.raises(Finding) as caught:
        check(wire)
    return caught.value


def nudged(got):
    return {
        name: Tensor(t.dtype, t.array + 1) if t.dtype == "float32" else t for name, t in got.items()
    }


def test_a_server_that_answers_as_recorded_passes(wire):
    one = wire()
    assert serve.check_serve(one) == {"tags": [["serve"]], "signatures": 3}
    details = serve.check_grpc(one)
    assert set(details["answers"]) == {request["id"] for request in one.artifact.requests}
    assert details["by_method"] == {"classify": 2, "regress": 2, "multi_inference": 1}
    assert serve.check_rest(one)["answers"] == details["answers"]
    assert {
        ("grpc", "predict"),
        ("rest", "predict"),
        ("rest", "rows"),
        ("rest", "classify"),
    } <= set(one.fleet.log)


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_both_transports_must_say_that_the_model_is_available(wire, transport):
    loading = wire({(transport, "status"): lambda: [VersionStatus(1, "LOADING", 0, "")]})
    found = finding(serve.check_serve, loading)
    assert found.outcome is Outcome.FAIL_STRUCTURE
    assert transport in str(found)


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_both_transports_must_show_the_signatures(wire, transport):
    one = wire()
    shown = dict(layout.read(one.artifact.model).meta_graph("serve").signature_def)
    shown["other"] = shown.pop("serving_default")
    found = finding(serve.check_serve, wire({(transport, "metadata"): lambda: shown}))
    assert found.outcome is Outcome.FAIL_SIGNATURE
    assert f"over {transport}: signature 'serving_default' is missing" in str(found)


@pytest.mark.parametrize(
    ("check", "transport"), [(serve.check_grpc, "grpc"), (serve.check_rest, "rest")]
)
def test_another_value_is_a_failure_of_its_transport(wire, check, transport):
    found = finding(check, wire({(transport, "predict"): nudged}))
    assert found.outcome is Outcome.FAIL_VALUE
    assert "files" in vars(found)


def test_a_missing_output_is_a_failure_of_the_signature(wire):
    found = finding(
        serve.check_grpc,
        wire({("grpc", "predict"): lambda got: {"other": next(iter(got.values()))}}),
    )
    assert found.outcome is Outcome.FAIL_SIGNATURE


def test_rows_and_columns_must_agree(wire):
    found = finding(serve.check_rest, wire({("rest", "rows"): nudged}))
    assert (found.outcome, found.error_class) == (Outcome.FAIL_VALUE, "transports")
    assert "REST in rows" in str(found)


def test_the_transports_must_agree_bit_for_bit_whatever_the_tolerance(wire):
    from savedmodel_common.compare import Tolerance

    def next_to(got):
        return {
            name: Tensor(t.dtype, np.nextafter(t.array, np.float32(9e9)))
            if t.dtype == "float32"
            else t
            for name, t in got.items()
        }

    wide = wire({("grpc", "predict"): next_to}, tolerance=Tolerance(0.1, 0.1))
    found = finding(serve.check_rest, wide)
    assert (found.outcome, found.error_class) == (Outcome.FAIL_VALUE, "transports")
    assert serve.check_grpc(wire({("grpc", "predict"): next_to}, tolerance=Tolerance(0.1, 0.1)))[
        "inexact"
    ]


@pytest.mark.parametrize("method", ["classify", "regress"])
@pytest.mark.parametrize(
    ("check", "transport"), [(serve.check_grpc, "grpc"), (serve.check_rest, "rest")]
)
def test_classify_and_regress_must_say_what_predict_says(wire, check, transport, method):
    def other(want):
        return [
            [Class(item.label, item.score + 1) for item in row]
            if isinstance(row, list)
            else row + 1
            for row in want
        ]

    found = finding(check, wire({(transport, method): other}))
    assert found.outcome is Outcome.FAIL_VALUE
    assert f"by {method}" in str(found)


@pytest.mark.parametrize(
    ("error", "outcome", "error_class"),
    [
        (
            ServerError("FAILED_PRECONDITION", "Table not initialized.", "grpc", "Predict"),
            Outcome.REJECTED,
            "FAILED_PRECONDITION",
        ),
        (ServerError("INTERNAL", "no", "grpc", "Predict"), Outcome.CALL_ERROR, "INTERNAL"),
        (Timeout("nothing", "grpc", "Predict"), Outcome.TIMEOUT, "Timeout"),
        (BadAnswer("garbage", "grpc", "Predict"), Outcome.CALL_ERROR, "BadAnswer"),
        (Unreachable("gone", "grpc", "Predict"), Outcome.ENV_ERROR, "Unreachable"),
        (NotServed("crashed", "it died", exit=ExitState.of(-6)), Outcome.CRASH, "SIGABRT"),
        (
            NotServed("crashed", "it died", exit=ExitState(137, oom_killed=True, signal=9)),
            Outcome.CRASH,
            "OOM",
        ),
        (NotServed("hung", "it hangs"), Outcome.TIMEOUT, "HUNG"),
        (NotServed("killed", "by somebody", exit=ExitState.of(-9)), Outcome.ENV_ERROR, "SIGKILL"),
    ],
)
def test_what_an_error_in_place_of_an_answer_amounts_to(wire, error, outcome, error_class):
    found = finding(serve.check_grpc, wire({("grpc", "predict"): error}))
    assert (found.outcome, found.error_class) == (outcome, error_class)


@pytest.mark.parametrize(
    "check, transport", [(serve.check_grpc, "grpc"), (serve.check_rest, "rest")]
)
def test_a_request_that_must_fail_fails_as_recorded(wire, check, transport):
    requests = read_artifact(FIXTURES / "half_plus_two").requests

    def said(error):
        refused = [
            {**request, "outputs": None, "error": "x must be positive"} for request in requests[:1]
        ]
        return wire({(transport, "predict"): error}, requests=tuple(refused))

    right = ServerError(
        "INVALID_ARGUMENT",
        "assertion failed: [x must be positive] [Op:Assert]",
        transport,
        "Predict",
    )
    assert check(said(right))["answers"] == {}
    other = ServerError("INVALID_ARGUMENT", "no such input", transport, "Predict")
    assert finding(check, said(other)).outcome is Outcome.CALL_ERROR
    found = finding(check, said(None))
    assert found.outcome is Outcome.FAIL_VALUE and "x must be positive" in str(found)


def test_a_model_that_is_not_made_available_is_rejected_with_the_server_s_reason_and_log(wire):
    refused = NotServed(
        "refused",
        "Op type not registered 'X'",
        VersionStatus(1, "END", 5, "Op type"),
        log="E loader.cc] ...",
    )
    for check in (serve.check_serve, serve.check_grpc, serve.check_rest):
        found = finding(check, wire({"served": refused}))
        assert (found.outcome, found.error_class, str(found)) == (
            Outcome.REJECTED,
            "END",
            "Op type not registered 'X'",
        )
        assert found.texts == {"server_log": "E loader.cc] ..."}


def test_over_rest_an_error_has_the_code_that_grpc_has_for_it(wire):
    """HTTP 400 stands for INVALID_ARGUMENT and FAILED_PRECONDITION alike."""
    rest = ServerError("INVALID_ARGUMENT", "Table not initialized.", "rest", "Predict", 400)
    grpc = ServerError("FAILED_PRECONDITION", "Table not initialized.", "grpc", "Predict")
    found = finding(serve.check_rest, wire({("rest", "predict"): rest, ("grpc", "predict"): grpc}))
    assert (found.outcome, found.error_class) == (Outcome.REJECTED, "FAILED_PRECONDITION")
    alone = finding(serve.check_rest, wire({("rest", "predict"): rest}))
    assert (alone.outcome, alone.error_class) == (Outcome.CALL_ERROR, "INVALID_ARGUMENT"), (
        "gRPC answers: REST is to blame"
    )


def test_what_json_cannot_carry_is_told_and_is_a_rejection_where_nothing_is_left(wire):
    cannot = NotRepresentable("no complex numbers", "rest", "Predict")
    found = finding(serve.check_rest, wire({("rest", "predict"): cannot}))
    assert (found.outcome, found.error_class) == (Outcome.REJECTED, "NotRepresentable")
    assert len(found.details["not_carried"]) == 7

    def scalars_only(got):
        if any(tensor.array.size > 1 for tensor in got.values()):
            raise cannot

    details = serve.check_rest(wire({("rest", "predict"): scalars_only}))
    assert details["answers"]
    assert set(details["not_carried"]) | set(details["answers"]) == {
        r["id"] for r in wire().artifact.requests
    }


def test_where_answers_change_the_model_each_check_has_its_own_and_asks_once(wire):
    one = wire(stateful=True)
    serve.check_rest(one)
    assert [model for model, _ in one.fleet.asked] == [
        one.scratch / "half_plus_two-fixture-serve"
    ] * len(one.fleet.asked)
    assert set(one.fleet.log) == {("rest", "predict")}


def test_after_a_request_that_cannot_be_carried_the_state_is_another_one(wire):
    calls = []

    def second(got):
        calls.append(1)
        if len(calls) == 2:
            raise NotRepresentable("no", "rest", "Predict")

    details = serve.check_rest(wire({("rest", "predict"): second}, stateful=True))
    assert len(details["answers"]) == 1
    assert len(details["not_carried"]) == 6


def test_nothing_is_asked_after_a_crash(wire):
    one = wire({("grpc", "predict"): NotServed("crashed", "it died", exit=ExitState.of(-6))})
    finding(serve.check_grpc, one)
    assert one.fleet.log == [("grpc", "predict")]

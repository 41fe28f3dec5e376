"""The stand-in server answers as the table of ``standin_pairs.py`` says, through its sockets: with
a parser of each kind.
"""

from __future__ import annotations

import http.client
import json
import socket
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
import standin_pairs
from standin_pairs import BATCHING, BOTH, NEW, OLD, PLAIN, Grpc, Http, Pair, Rest
from standin_server import QUICK, Failed, Server, empty_config, place, serving

from compat_matrix.runtimes import resolve
from compat_matrix.runtimes.places import RuntimeTrouble
from savedmodel_common.serving import messages
from savedmodel_standin import tensor_protos

pytestmark = pytest.mark.tensorflow

PAIRS = standin_pairs.pairs()
MODELS = ("half_plus_two", "ragged_io")
BOOL = 10  # DT_BOOL
RUNTIMES = {OLD: "2.15", NEW: "local"}


def test_the_table_is_large_and_has_every_observation() -> None:
    assert len(PAIRS) >= 500
    assert set(Counter(pair.item for pair in PAIRS)) == {1, 2, 4, 6, 7, 8, 9, 10, 11, 12}
    twice = [
        ask
        for ask, count in Counter(
            (repr(pair.ask), pair.release, pair.server) for pair in PAIRS
        ).items()
        if count > 1
    ]
    assert not twice


@pytest.fixture(scope="module", params=[NEW, OLD])
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, dict[str, Server]]]:
    """The servers by kind, on the TensorFlow of this environment and on one before 2.18."""
    import tensorflow as tf

    try:
        runtime = resolve.resolve(RUNTIMES[request.param])
    except RuntimeTrouble as error:
        pytest.skip(str(error))
    release = NEW if tuple(map(int, runtime.tensorflow_version.split(".")[:2])) >= (2, 18) else OLD
    if release != request.param:
        pytest.skip(f"TensorFlow {runtime.tensorflow_version} is not of those {request.param}")
    folder = tmp_path_factory.mktemp("pairs")
    echo = save_echo(tf, folder)
    parameters = folder / "batching"
    parameters.write_text("max_batch_size { value: 1000 }", "utf-8")
    more = {
        PLAIN: (),
        BATCHING: ("--enable_batching", f"--batching_parameters_file={parameters}"),
    }
    bases = {"echo": echo, **{name: place(folder / name, name) for name in MODELS}}
    with ExitStack() as stack:
        running = {}
        for kind, flags in more.items():
            (folder / f"{kind} server").mkdir()
            server = stack.enter_context(
                serving(
                    folder / f"{kind} server",
                    empty_config(folder),
                    *QUICK,
                    *flags,
                    python=str(runtime.python),
                )
            )
            server.reload(*({"name": name, "base_path": str(base)} for name, base in bases.items()))
            running[kind] = server
        yield release, running


def save_echo(tf: Any, folder: Any) -> Any:
    """Write a model whose signatures give back what they get; returns its base path."""
    import reference_impl

    def signature(dtype: Any, shape: Any, answer: Any = tf.identity) -> Any:
        return tf.function(
            lambda x: {"y": answer(x)}, input_signature=[tf.TensorSpec(shape, dtype, name="x")]
        )

    dtypes = (tf.float32, tf.float64, tf.int64, tf.uint64, tf.string, tf.bool)
    signatures = {dtype.name: signature(dtype, [None]) for dtype in dtypes}
    more = {
        "any": signature(tf.float32, None),
        "any_string": signature(tf.string, None),
        "lengths": signature(tf.string, [None], tf.strings.length),
    }
    reference_impl.save(tf.Module(), folder / "echo" / "1", {**signatures, **more})
    return folder / "echo"


@pytest.mark.parametrize("item", sorted({pair.item for pair in PAIRS}))
def test_requests_and_answers(servers: tuple[str, dict[str, Server]], item: int) -> None:
    release, running = servers
    mine = [pair for pair in PAIRS if pair.item == item and pair.release in (BOTH, release)]
    wrong = [
        (pair.ask, found)
        for pair in mine
        if (found := difference(running[pair.server], pair)) is not None
    ]
    assert not wrong, f"{len(wrong)} of {len(mine)}: {wrong[:5]}"
    assert mine


BASE64_TWICE = '{"b64": "YWI=", "b64": "YQ=="}'


@pytest.mark.parametrize(
    "body",
    [
        '{"signature_name": "lengths", "instances": [%s]}',
        '{"signature_name": "lengths", "instances": [{"x": %s}]}',
        '{"signature_name": "lengths", "inputs": [%s]}',
        '{"signature_name": "lengths", "inputs": {"x": [%s]}}',
    ],
)
def test_base64_twice_is_no_base64(servers: tuple[str, dict[str, Server]], body: str) -> None:
    """A real 2.15.1 refuses it; with which words is not on record."""
    status, _ = servers[1][PLAIN].rest_text(
        "/v1/models/echo:predict", (body % BASE64_TWICE).encode()
    )
    assert status == 400


@pytest.mark.parametrize(
    ("content", "taken"), [(b"\0\1\1", True), (b"\0\1\2", False), (b"\xff\0\1", False)]
)
def test_a_truth_value_is_zero_or_one(
    servers: tuple[str, dict[str, Server]], content: bytes, taken: bool
) -> None:
    """A real 2.15.1 refuses any other byte; with which words is not on record."""
    request: Any = messages.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = "echo", "bool"
    proto = request.inputs["x"]
    proto.dtype, proto.tensor_content = BOOL, content
    proto.tensor_shape.dim.add().size = len(content)
    try:
        answer = servers[1][PLAIN].call("Predict", request)
    except Failed as error:
        assert (taken, error.code) == (False, "INVALID_ARGUMENT")
    else:
        assert (taken, list(answer.outputs["y"].bool_val)) == (True, [False, True, True])


def difference(server: Server, pair: Pair) -> Any:
    """Return what the server answers where that is not the pair's answer, else None."""
    ask = {Rest: rest, Http: plain_http, Grpc: grpc}[type(pair.ask)]
    return ask(server, pair)


def rest(server: Server, pair: Pair) -> Any:
    assert isinstance(pair.ask, Rest)
    status, text = server.rest_text(f"/v1/models/{pair.ask.path}", pair.ask.body)
    if pair.answer is None:
        return None if (status, text) == (pair.status, "") else (status, text)
    document = json.loads(text)
    expected = pair.answer if status == 200 else {"error": pair.answer}
    return (
        None
        if status == pair.status and same(document, expected, "float32" in str(pair.ask.body))
        else (status, document)
    )


def same(one: Any, other: Any, single: bool) -> bool:
    """Whether two documents are equal, floats bit for bit (NaN too)."""
    if isinstance(one, float) and isinstance(other, float):
        form = "<f" if single else "<d"
        return struct.pack(form, one) == struct.pack(form, other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(*two, single) for two in zip(one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key], single) for key in one)
    return type(one) is type(other) and bool(one == other)


def plain_http(server: Server, pair: Pair) -> Any:
    assert isinstance(pair.ask, Http)
    with socket.create_connection(("127.0.0.1", server.rest_port), timeout=60) as connection:
        connection.sendall(
            "\r\n".join([pair.ask.line, "Host: x", *pair.ask.headers, "", ""]).encode()
        )
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        expected: Mapping[str, str | None] = pair.answer
        found = {name: answer.getheader(name) for name in expected}
    return None if (answer.status, found) == (pair.status, expected) else (answer.status, found)


def grpc(server: Server, pair: Pair) -> Any:
    assert isinstance(pair.ask, Grpc)
    request = messages.METHODS[pair.ask.method].request(**pair.ask.message)
    try:
        answer = server.call(pair.ask.method, request)
    except Failed as error:
        return (
            None
            if (error.code, error.text) == (pair.status, pair.answer)
            else (error.code, error.text)
        )
    shapes = {
        name: [dim.size for dim in request.inputs[name].tensor_shape.dim] for name in request.inputs
    }
    outputs = {name: tensor_protos.decode(proto).array for name, proto in answer.outputs.items()}
    found = {name: array.ravel().tolist() for name, array in outputs.items()}
    kept = [list(array.shape) for array in outputs.values()] == list(shapes.values())
    return (
        None if pair.status == "OK" and kept and same(found, pair.answer, False) else ("OK", found)
    )

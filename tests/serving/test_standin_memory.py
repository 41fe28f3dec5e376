"""How much memory the stand-in server takes for hostile requests, answers and warm-up files,
through its sockets.
"""

from __future__ import annotations

import gzip
import os
import re
import resource
import socket
import struct
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from standin_server import QUICK, Failed, Server, empty_config, place, predict, serving

from compat_matrix.workers.c_tensors import Kept
from reference_impl.format.bundle.checksum import masked_crc32c
from savedmodel_common.serving import messages
from savedmodel_standin import memory, metrics
from savedmodel_standin.errors import ServingError

pytestmark = pytest.mark.tensorflow

MIB = 1 << 20
ROOM = (
    6 << 30
    # bytes of address space that the server gets beside what it has: less than what one such
    # request took
)
FLOAT, INT8, STRING, COMPLEX, INT64, BOOL = 1, 6, 7, 8, 9, 10


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    tf = pytest.importorskip("tensorflow")
    folder = tmp_path_factory.mktemp("standin")

    class Growing(tf.Module):  # type: ignore[misc]
        @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
        def total(self, x: Any) -> Any:
            return {"y": tf.reduce_sum(x)}

        @tf.function(
            input_signature=[tf.TensorSpec(None, tf.float32), tf.TensorSpec(None, tf.float32)]
        )
        def both(self, x: Any, z: Any) -> Any:
            return {"y": tf.reduce_sum(x) + tf.reduce_sum(z)}

        @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
        def same(self, x: Any) -> Any:
            return {"y": x + 1.0}

        @tf.function(input_signature=[tf.TensorSpec([1], tf.int64)])
        def grow(self, n: Any) -> Any:
            return {"y": tf.zeros(n)}

        @tf.function(input_signature=[tf.TensorSpec([1], tf.int64)])
        def words(self, n: Any) -> Any:
            return {"y": tf.fill(n, "word")}

        @tf.function(input_signature=[tf.TensorSpec(None, tf.string)])
        def lengths(self, s: Any) -> Any:
            return {"y": tf.strings.length(s)}

    made = Growing()
    names = ("total", "both", "same", "grow", "words", "lengths")
    tf.saved_model.save(
        made,
        str(folder / "growing" / "1"),
        signatures={name: getattr(made, name) for name in names},
    )
    with serving(folder, empty_config(folder), *QUICK) as running:
        models = {
            "growing": folder / "growing",
            "half_plus_two": place(folder / "h", "half_plus_two"),
        }
        running.reload(*({"name": name, "base_path": str(path)} for name, path in models.items()))
        size = status(running, "VmSize")
        resource.prlimit(running.process.pid, resource.RLIMIT_AS, (size + ROOM, size + ROOM))
        yield running


def status(server: Server, field: str) -> int:
    """Bytes, as the kernel counts them for the process."""
    (line,) = [
        line
        for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
        if line.startswith(field)
    ]
    return int(line.split()[1]) << 10


@contextmanager
def growth(server: Server, most: int) -> Iterator[None]:
    """The block lets the server take at most so many bytes more than it has, at any moment."""
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # the peak is measured from here
    before = status(server, "VmRSS")
    yield
    grown = status(server, "VmHWM") - before
    assert grown <= most, f"{grown / MIB:.0f} MiB"


def filled(
    alias: str, dtype: int, sizes: Sequence[int], signature: str = "total", **values: Sequence[Any]
) -> Any:
    """A request that says how large a tensor is, and lists few values."""
    request: Any = messages.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = "growing", signature
    add(request, alias, dtype, sizes, **values)
    return request


def add(
    request: Any, alias: str, dtype: int, sizes: Sequence[int], **values: Sequence[Any]
) -> None:
    proto = request.inputs[alias]
    proto.dtype = dtype
    for size in sizes:
        proto.tensor_shape.dim.add().size = size
    for field, items in values.items():
        getattr(proto, field).extend(items)


def refusal(server: Server, method: str, request: Any) -> tuple[str, str]:
    with pytest.raises(Failed) as caught:
        server.call(method, request)
    return caught.value.code, caught.value.text


@pytest.mark.parametrize(
    ("dtype", "sizes", "values"),
    [
        (FLOAT, [10**9], {"float_val": [1.0]}),
        (FLOAT, [10**9], {}),
        (FLOAT, [memory.FILLED // 4 + 2], {"float_val": [1.0]}),
        (FLOAT, [1 << 62] * 250, {"float_val": [1.0]}),
        (FLOAT, [1] * 1_000_000, {"float_val": [1.0]}),
        (FLOAT, [1] * 255, {"float_val": [1.0]}),
        (INT8, [10**9], {"int_val": [1]}),
        (BOOL, [10**9], {"bool_val": [True]}),
        (COMPLEX, [10**9], {"scomplex_val": [1.0, 2.0, 3.0]}),
        (STRING, [10**8], {"string_val": [b"x" * 1000]}),
        (STRING, [10**8], {}),
    ],
)
def test_a_shape_takes_no_memory_that_its_values_do_not(
    server: Server, dtype: int, sizes: Any, values: Any
) -> None:
    request = filled("x", dtype, sizes, **values)
    with growth(server, 64 * MIB + memory.PARSED * request.ByteSize()):
        assert refusal(server, "Predict", request)[0] == "INVALID_ARGUMENT"


def test_the_lengths_of_strings_are_counted_before_they_are_read(server: Server) -> None:
    request = filled("s", STRING, [10**9], "lengths")
    request.inputs["s"].tensor_content = b"\0" * 1000
    with growth(server, 64 * MIB):
        assert refusal(server, "Predict", request) == (
            "INVALID_ARGUMENT",
            "tensor parsing error: s",
        )


def test_sizes_beside_a_zero_are_no_error_of_the_server(server: Server) -> None:
    request = filled("x", FLOAT, [0, 1 << 62, 1 << 62])
    assert refusal(server, "Predict", request) == ("INVALID_ARGUMENT", "tensor parsing error: x")


def test_all_inputs_of_a_request_share_what_they_may_be_filled_with(server: Server) -> None:
    half = memory.FILLED // 8 + 1000
    request = filled("x", FLOAT, [half], "both", float_val=[1.0])
    add(request, "z", FLOAT, [half], float_val=[1.0])
    with growth(server, 64 * MIB):
        code, text = refusal(server, "Predict", request)
    assert code == "INVALID_ARGUMENT" and "the inputs would take" in text


def test_what_clients_write_short_is_answered(server: Server) -> None:
    count = 4_000_000
    request = filled("x", FLOAT, [count // 1000, 1000], "total", float_val=[1.0])
    assert server.call("Predict", request).outputs["y"].float_val[0] == count
    listed = filled("x", FLOAT, [100_000], "same", float_val=[2.0] * 100_000)
    assert set(server.call("Predict", listed).outputs["y"].float_val) == {3.0}


@pytest.mark.parametrize(("signature", "count"), [("grow", 10**8), ("words", 4_000_000)])
@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_an_answer_that_a_model_makes_large_is_refused_before_it_is_copied(
    server: Server, signature: str, count: int, transport: str
) -> None:
    made = 4 * count if signature == "grow" else 24 * count  # by the model itself, in the session
    with growth(server, made + 128 * MIB):
        if transport == "grpc":
            code, text = refusal(
                server, "Predict", predict("growing", signature, n=(INT64, "int64_val", [count]))
            )
            assert code == "INVALID_ARGUMENT" and "the answer would take" in text
        else:
            body = {"signature_name": signature, "inputs": {"n": [count]}}
            status_code, document = server.rest("/v1/models/growing:predict", body)
            assert status_code == 400 and "the answer would take" in document["error"]


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_an_answer_becomes_text_without_an_object_for_each_element(
    server: Server, transport: str
) -> None:
    grpc = pytest.importorskip("grpc")
    count = 2_000_000
    with growth(server, 96 * MIB):
        if transport == "grpc":
            options = [("grpc.max_receive_message_length", -1)]
            with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}", options) as channel:
                answer = server.call(
                    "Predict",
                    predict("growing", "grow", n=(INT64, "int64_val", [count])),
                    channel=channel,
                )
            assert len(answer.outputs["y"].float_val) == count
        else:
            body = {"signature_name": "grow", "inputs": {"n": [count]}}
            _, document = server.rest("/v1/models/growing:predict", body)
            assert len(document["outputs"]) == count


def example_input(context: int, examples: int) -> Any:
    """Many empty examples with one context."""
    found: Any = messages.RegressionRequest()
    given = found.input.example_list_with_context
    given.context.features.feature["pad"].bytes_list.value.append(b"x" * context)
    for _ in range(examples):
        given.examples.add()
    return found.input


@pytest.mark.parametrize("method", ["Classify", "Regress", "MultiInference"])
def test_a_context_is_not_repeated_without_end(server: Server, method: str) -> None:
    given = example_input(1 << 20, 100_000)
    regress, classify = (
        messages.ModelSpec(name="half_plus_two", signature_name=f"{kind}_x_to_y")
        for kind in ("regress", "classify")
    )
    if method == "MultiInference":
        request: Any = messages.MultiInferenceRequest()
        request.tasks.add(model_spec=regress, method_name=messages.REGRESS_METHOD)
    elif method == "Regress":
        request = messages.RegressionRequest(model_spec=regress)
    else:
        request = messages.ClassificationRequest(model_spec=classify)
    request.input.CopyFrom(given)
    with growth(server, 64 * MIB + memory.PARSED * request.ByteSize()):
        code, text = refusal(server, method, request)
    assert code == "INVALID_ARGUMENT" and "the context in every example" in text


def test_the_same_over_rest(server: Server) -> None:
    body = b'{"signature_name": "regress_x_to_y", "context": {"pad": "%s"}, "examples": [%s{}]}' % (
        b"x" * MIB,
        b"{}," * 100_000,
    )
    with growth(server, 64 * MIB + memory.PARSED * len(body)):
        code, document = server.rest("/v1/models/half_plus_two:regress", body)
    assert code == 400 and "the context in every example" in document["error"]


@pytest.mark.parametrize("kind", ["strings", "examples"])
def test_a_string_of_two_bytes_takes_a_bounded_multiple(server: Server, kind: str) -> None:
    """It took 112 and 117 times as much: a list, an object and a piece of the session's copy for
    each, all at once.
    """
    count = 4_000_000
    if kind == "strings":
        method, request = (
            "Predict",
            predict("growing", "total", x=(STRING, "string_val", [b""] * count)),
        )
    else:
        method, request = "Regress", messages.RegressionRequest()
        request.model_spec.name, request.model_spec.signature_name = (
            "half_plus_two",
            "regress_x_to_y",
        )
        request.input.example_list.MergeFromString(b"\n\0" * count)
    with growth(server, 64 * MIB + 50 * request.ByteSize()):
        assert (
            refusal(server, method, request)[0] == "INVALID_ARGUMENT"
        )  # by the model: it takes numbers, or a feature


def raw(server: Server, body: bytes, *headers: str) -> bytes:
    """The answer to a POST with headers of our own."""
    lines = [
        "POST /v1/models/growing:predict HTTP/1.1",
        "Host: x",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    ]
    with socket.create_connection(("127.0.0.1", server.rest_port), 60) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        stream = connection.makefile("rb")
        head = b"".join(iter(stream.readline, b"\r\n"))
        (length,) = re.findall(rb"Content-Length: (\d+)", head)
        return head + stream.read(int(length))


def test_a_compressed_body_that_becomes_too_large_is_refused(server: Server) -> None:
    packed = gzip.compress(b'{"instances": [' + b" " * (400 * MIB) + b"]}", 9)
    with growth(server, 3 * memory.FILLED):
        answer = raw(server, packed, "Content-Encoding: gzip")
    assert answer.startswith(b"HTTP/1.1 400") and b"becomes more than" in answer
    small = gzip.compress(b'{"signature_name": "total", "inputs": [1.0, 2.0]}')
    assert b"3.0" in raw(server, small, "Content-Encoding: gzip")


@pytest.mark.parametrize("depth", [300, 900])
def test_an_error_shows_the_beginning_of_a_large_value(server: Server, depth: int) -> None:
    body = b"[" * depth + b"0," * 200_000 + b"0" + b"]" * depth
    with growth(server, 64 * MIB + memory.PARSED * len(body)):
        code, document = server.rest("/v1/models/growing:predict", body)
    assert code == 400 and len(document["error"]) < 3 * MIB


def test_a_length_that_is_only_promised_takes_no_memory(server: Server) -> None:
    before = status(server, "VmSize")
    line = (
        b"POST /v1/models/growing:predict HTTP/1.1\r\nHost: x\r\nContent-Length:"
        b" 2147483647\r\n\r\n{"
    )
    connections = [socket.create_connection(("127.0.0.1", server.rest_port), 60) for _ in range(6)]
    for connection in connections:
        connection.sendall(line)
    assert server.rest("/v1/models/growing")[0] == 200
    grown = status(server, "VmSize") - before
    for connection in connections:
        connection.close()
    assert grown < 2 << 30, grown


def test_requests_wait_for_the_memory_of_others(server: Server) -> None:
    count = memory.FILLED // 4 - 1000
    request = filled("x", FLOAT, [count], "total", float_val=[1.0])
    with growth(server, memory.ROOM + 512 * MIB), ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: server.call("Predict", request, limit=300), range(12)))
    assert {answer.outputs["y"].float_val[0] for answer in answers} == {float(count)}


def test_equal_strings_are_kept_once(server: Server) -> None:
    """A table may go on pointing at a string that it was given, so the server keeps those; it had
    kept each request's.
    """
    request = predict("growing", "lengths", s=(STRING, "string_val", [b"x" * (4 * MIB)]))
    server.call("Predict", request)
    with growth(server, 96 * MIB):
        for _ in range(60):
            assert server.call("Predict", request).outputs["y"].int_val[0] == 4 * MIB
    kept = Kept()
    one, other = b"y" * 100, bytes(bytearray(b"y" * 100))
    assert kept.add(one) is one and kept.add(other) is one and 100 < kept.bytes < 300


def test_strings_of_every_length_arrive(server: Server) -> None:
    words = [os.urandom(length) for length in (*range(30), 100, 1000)]
    answer = server.call("Predict", predict("growing", "lengths", s=(STRING, "string_val", words)))
    assert list(answer.outputs["y"].int_val) == [len(word) for word in words]


def warmed(folder: Path) -> Path:
    base = place(folder / "m", "half_plus_two")
    extra = base / "1" / "assets.extra"
    extra.mkdir(exist_ok=True)
    return extra / "tf_serving_warmup_requests"


def load_error(server: Server, base: Path, name: str) -> tuple[int, str]:
    with pytest.raises(Failed):
        server.reload({"name": name, "base_path": str(base)})
    asked = messages.GetModelStatusRequest(model_spec=messages.ModelSpec(name=name))
    (entry,) = server.call("GetModelStatus", asked).model_version_status
    return entry.status.error_code, entry.status.error_message


def record_header(length: int) -> bytes:
    head = struct.pack("<Q", length)
    return head + struct.pack("<I", masked_crc32c(head))


@pytest.fixture(scope="module")
def warming(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("warming")
    with serving(folder, empty_config(folder), *QUICK) as running:
        size = status(running, "VmSize")
        resource.prlimit(running.process.pid, resource.RLIMIT_AS, (size + ROOM, size + ROOM))
        yield running


def test_warm_up_requests_are_held_to_the_same(warming: Server, tmp_path: Path) -> None:
    path = warmed(tmp_path)
    entry: Any = messages.PredictionLog()
    entry.predict_log.request.CopyFrom(filled("x", FLOAT, [10**9], "", float_val=[1.0]))
    data = entry.SerializeToString()
    path.write_bytes(record_header(len(data)) + data + struct.pack("<I", masked_crc32c(data)))
    with growth(warming, 400 * MIB):  # the first model brings TensorFlow's own memory
        code, text = load_error(warming, tmp_path / "m", "filled")
    assert code == 3 and "would take" in text


def test_a_warm_up_file_with_a_record_without_end_is_refused(
    warming: Server, tmp_path: Path
) -> None:
    path = warmed(tmp_path)
    path.write_bytes(record_header(1 << 30))
    os.truncate(path, 1 << 31)  # no block on the disk
    with growth(warming, 400 * MIB):
        code, text = load_error(warming, tmp_path / "m", "sparse")
    assert code == 3 and "a warmup record of 1073741824 bytes" in text


def test_a_pipe_in_place_of_the_warm_up_file_is_not_waited_for(
    warming: Server, tmp_path: Path
) -> None:
    os.mkfifo(warmed(tmp_path))
    assert load_error(warming, tmp_path / "m", "pipe")[0] == 9


def test_a_room_is_entered_in_order_and_in_time() -> None:
    room = memory.Room(100)
    room.enter(1000, 0)  # alone: whatever its size
    with pytest.raises(ServingError, match="held by others"):
        room.enter(1, 0.01)
    room.leave(1000)
    room.enter(60, 0)
    with ThreadPoolExecutor(2) as pool:
        large = pool.submit(room.enter, 90, 60)
        while not room._waiting:
            pass
        small = pool.submit(room.enter, 10, 60)  # would fit, but came later
        while len(room._waiting) < 2:
            pass
        assert not large.done() and not small.done()
        room.leave(60)
        large.result(60), small.result(60)


def test_names_that_clients_make_up_are_not_counted_without_end() -> None:
    for number in range(metrics._MOST + 100):
        metrics.count("test", model_name=f"{number}" + "x" * 10)
    metrics.count("test", model_name="y" * (1 << 20))
    assert len(metrics._counts["test"]) == metrics._MOST
    del metrics._counts["test"]

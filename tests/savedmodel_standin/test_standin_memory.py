"""A request that claims a huge tensor in a few bytes is refused by the stand-in before anything is
made, through its sockets.
"""

from __future__ import annotations

import gzip
import os
import re
import resource
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from standin_server import QUICK, Failed, Server, empty_config, place, predict, serving

from compat_matrix.workers.c_tensors import Kept
from reference_impl.format.bundle.checksum import masked_crc32c
from savedmodel_common.serving import messages
from savedmodel_standin import memory

pytestmark = pytest.mark.tensorflow

MIB = 1 << 20
ROOM = (
    6 << 30
    # bytes of address space that the server gets beside what it has: less than what one such
    # request took
)
PARSED = 32  # a message of two bytes is an object of forty
FLOAT, INT8, STRING, COMPLEX, BOOL = 1, 6, 7, 8, 10


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

        @tf.function(input_signature=[tf.TensorSpec(None, tf.string)])
        def lengths(self, s: Any) -> Any:
            return {"y": tf.strings.length(s)}

    made = Growing()
    names = ("total", "both", "lengths")
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
    with growth(server, 64 * MIB + PARSED * request.ByteSize()):
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
    assert code == "INVALID_ARGUMENT" and "inputs would take" in text


def test_what_clients_write_short_is_answered(server: Server) -> None:
    count = 4_000_000
    request = filled("x", FLOAT, [count // 1000, 1000], "total", float_val=[1.0])
    assert server.call("Predict", request).outputs["y"].float_val[0] == count
    listed = filled("x", FLOAT, [100_000], float_val=[2.0] * 100_000)
    assert server.call("Predict", listed).outputs["y"].float_val[0] == 200_000.0


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
    with growth(server, 64 * MIB + PARSED * request.ByteSize()):
        code, text = refusal(server, method, request)
    assert code == "INVALID_ARGUMENT" and "in every example" in text


def test_the_same_over_rest(server: Server) -> None:
    body = b'{"signature_name": "regress_x_to_y", "context": {"pad": "%s"}, "examples": [%s{}]}' % (
        b"x" * MIB,
        b"{}," * 100_000,
    )
    with growth(server, 64 * MIB + PARSED * len(body)):
        code, document = server.rest("/v1/models/half_plus_two:regress", body)
    assert code == 400 and "in every example" in document["error"]


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


def test_equal_strings_are_kept_once() -> None:
    """A table may go on pointing at a string that it was given, so the server keeps those; it had
    kept each request's.
    """
    kept = Kept()
    one, other = b"y" * 100, bytes(bytearray(b"y" * 100))
    assert kept.add(one) is one and kept.add(other) is one


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
    assert code == 3 and "1073741824 bytes" in text


def test_a_pipe_in_place_of_the_warm_up_file_is_not_waited_for(
    warming: Server, tmp_path: Path
) -> None:
    os.mkfifo(warmed(tmp_path))
    assert load_error(warming, tmp_path / "m", "pipe")[0] == 9

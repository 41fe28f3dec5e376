"""savedmodel_servers.grpc_client, against a server that knows no message: bytes are written out
by hand.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from concurrent import futures

import numpy as np
import pytest

from reference_impl.format.wire import write_varint
from savedmodel_common.serving import messages
from savedmodel_common.tensors import Tensor
from savedmodel_servers import client
from savedmodel_servers.client import (
    Class,
    ModelRef,
    Task,
    VersionStatus,
)
from savedmodel_servers.examples import NotAnExample
from savedmodel_servers.grpc_client import GrpcClient

grpc = pytest.importorskip("grpc", reason="grpcio (extra: serving) carries what is tested here")

LIMIT = 20.0
PREDICTION = "/tensorflow.serving.PredictionService/"
MODEL = "/tensorflow.serving.ModelService/"


def at(number, content):
    """A field: bytes with their length, or an integer."""
    if isinstance(content, int):
        return bytes([number << 3]) + write_varint(content)
    return bytes([number << 3 | 2]) + write_varint(len(content)) + content


def pair(number, key, value):
    """An entry of a map."""
    return at(number, at(1, key) + at(2, value))


class FakeServer:
    """Answers what `answers` has for a method: bytes, an error (code name, text), or a function of
    the request and the call.
    """

    def __init__(self, address="127.0.0.1:0"):
        self.answers, self.asked = {}, []
        outer = self

        class Handler(grpc.GenericRpcHandler):
            def service(self, details):
                if details.method not in outer.answers:
                    return None

                def answer(request, context):
                    outer.asked.append((details.method, request, context.time_remaining()))
                    found = outer.answers[details.method]
                    if callable(found):
                        found = found(request, context)
                    if isinstance(found, tuple):
                        context.abort(grpc.StatusCode[found[0]], found[1])
                    return found

                return grpc.unary_unary_rpc_method_handler(answer)

        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self.server = grpc.server(
            futures.ThreadPoolExecutor(2), handlers=[Handler()], options=options
        )
        self.port = self.server.add_insecure_port(address)
        self.server.start()


@pytest.fixture(scope="module")
def fake():
    server = FakeServer()
    yield server
    server.server.stop(None)


@pytest.fixture
def asking(fake):
    fake.answers.clear()
    fake.asked.clear()
    with GrpcClient("127.0.0.1", fake.port) as found:
        yield found


HALF = ModelRef("half")
SPEC = at(1, b"half")
FLOATS = at(1, 1)  # TensorProto.dtype = DT_FLOAT


def vector(*values):
    """A TensorProto of float32, typed."""
    dims = at(2, at(2, at(1, len(values))))
    return FLOATS + dims + at(5, struct.pack(f"<{len(values)}f", *values))


def test_predict_sends_and_reads_the_documented_messages(fake, asking):
    fake.answers[PREDICTION + "Predict"] = pair(1, b"y", vector(2.5, 3)) + at(2, SPEC)
    found = asking.predict(
        HALF, "serving_default", {"x": Tensor("float32", np.float32([1, 2]))}, limit=LIMIT
    )
    assert found["y"].dtype == "float32"
    assert found["y"].array.tolist() == [2.5, 3]
    ((_, request, left),) = fake.asked
    tensor = FLOATS + at(2, at(2, at(1, 2))) + at(4, struct.pack("<2f", 1, 2))
    assert request == at(1, SPEC + at(3, b"serving_default")) + pair(2, b"x", tensor)
    assert 0 < left <= LIMIT * 1.01  # gRPC rounds up what it sends


def test_a_model_is_named_by_version_or_label(fake, asking):
    fake.answers[PREDICTION + "Predict"] = b""
    for ref in (ModelRef("half", 7), ModelRef("half", label="stable"), ModelRef("half", 0)):
        asking.predict(ref, "", {}, limit=LIMIT)
    assert [request for _, request, _ in fake.asked] == [
        at(1, SPEC + at(2, at(1, 7))),
        at(1, SPEC + at(4, b"stable")),
        at(1, SPEC + at(2, b"")),
    ]
    with pytest.raises(ValueError, match="both"):
        ModelRef("half", 7, "stable")


def test_an_output_filter_is_sent_and_held_against_the_answer(fake, asking):
    fake.answers[PREDICTION + "Predict"] = pair(1, b"y", vector(1))
    assert list(asking.predict(HALF, "", {}, ["y"], limit=LIMIT)) == ["y"]
    assert fake.asked[0][1] == at(1, SPEC) + at(3, b"y")
    with pytest.raises(client.BadAnswer, match="output 'z' "):
        asking.predict(HALF, "", {}, ["y", "z"], limit=LIMIT)


def test_classify_and_regress(fake, asking):
    classes = at(1, at(1, b"cat") + bytes([0x15]) + struct.pack("<f", 0.75)) + at(1, b"")
    fake.answers[PREDICTION + "Classify"] = at(1, at(1, classes) + at(1, b""))
    example = at(1, pair(1, b"x", at(2, at(1, struct.pack("<f", 1)))))
    context = at(1, pair(1, b"c", at(3, at(1, b"\x05"))))
    assert asking.classify(HALF, "c", [example], limit=LIMIT) == [
        [Class("cat", 0.75), Class("", 0.0)],
        [],
    ]
    assert asking.classify(HALF, "c", [example, b""], context, limit=LIMIT)
    spec = at(1, SPEC + at(3, b"c"))
    assert fake.asked[0][1] == spec + at(2, at(1, at(1, example)))
    assert fake.asked[1][1] == spec + at(2, at(2, at(1, example) + at(1, b"") + at(2, context)))

    fake.answers[PREDICTION + "Regress"] = at(
        1, at(1, bytes([0x0D]) + struct.pack("<f", 2.5)) + at(1, b"")
    )
    assert asking.regress(HALF, "", [example], limit=LIMIT) == [2.5, 0.0]
    with pytest.raises(NotAnExample, match="example 1"):
        asking.regress(HALF, "", [example, b"\x0a\x05"], limit=LIMIT)


def test_multi_inference(fake, asking):
    regression = at(1, bytes([0x0D]) + struct.pack("<f", 1.5))
    classification = at(1, at(1, at(1, b"a")))
    fake.answers[PREDICTION + "MultiInference"] = at(1, at(3, regression)) + at(
        1, at(2, classification)
    )
    tasks = [Task(HALF, "r", messages.REGRESS_METHOD), Task(HALF, "c", messages.CLASSIFY_METHOD)]
    assert asking.multi_inference(tasks, [b""], limit=LIMIT) == [[1.5], [[Class("a", 0.0)]]]
    sent = at(1, at(1, SPEC + at(3, b"r")) + at(2, b"tensorflow/serving/regress"))
    sent += at(1, at(1, SPEC + at(3, b"c")) + at(2, b"tensorflow/serving/classify"))
    assert fake.asked[0][1] == sent + at(2, at(1, at(1, b"")))
    with pytest.raises(client.BadAnswer, match="2 results for 1 tasks"):
        asking.multi_inference(tasks[:1], [b""], limit=LIMIT)


def test_status(fake, asking):
    failed = at(1, 5) + at(2, b"no such file")
    fake.answers[MODEL + "GetModelStatus"] = (
        at(1, at(1, 123) + at(2, 30) + at(3, b""))
        + at(1, at(1, 4) + at(2, 50) + at(3, failed))
        + at(1, at(2, 77))
    )
    assert asking.status(HALF, limit=LIMIT) == [
        VersionStatus(123, "AVAILABLE", 0, ""),
        VersionStatus(4, "END", 5, "no such file"),
        VersionStatus(0, "UNKNOWN", 0, ""),
    ]
    assert fake.asked[0][1] == at(1, SPEC)


def test_an_error_message_that_is_not_utf_8(fake, asking):
    """C++ servers do not check what they send: the message of a broken warm-up file holds its
    bytes.
    """
    failed = at(1, 3) + at(2, b"corrupted record: \xff\xfe")
    fake.answers[MODEL + "GetModelStatus"] = at(1, at(1, 1) + at(2, 50) + at(3, failed))
    assert asking.status(HALF, limit=LIMIT) == [
        VersionStatus(1, "END", 3, "corrupted record: \ufffd\ufffd")
    ]
    fake.answers[MODEL + "HandleReloadConfigRequest"] = at(1, failed)
    with pytest.raises(client.ServerError, match="corrupted record: \ufffd\ufffd"):
        asking.reload([], limit=LIMIT)


def test_metadata(fake, asking):
    signature = pair(1, b"x", at(1, b"x:0") + at(2, 1)) + at(3, b"tensorflow/serving/predict")
    signatures = pair(1, b"serving_default", signature)
    packed = at(1, b"type.googleapis.com/tensorflow.serving.SignatureDefMap") + at(2, signatures)
    fake.answers[PREDICTION + "GetModelMetadata"] = at(1, SPEC) + pair(2, b"signature_def", packed)
    found = asking.metadata(HALF, limit=LIMIT)
    assert fake.asked[0][1] == at(1, SPEC) + at(2, b"signature_def")
    assert list(found) == ["serving_default"]
    assert isinstance(found["serving_default"], messages.SignatureDef)
    assert found["serving_default"].inputs["x"].name == "x:0"
    for broken in (b"", pair(2, b"signature_def", at(1, b"type.googleapis.com/tensorflow.Other"))):
        fake.answers[PREDICTION + "GetModelMetadata"] = broken
        with pytest.raises(client.BadAnswer, match="SignatureDefMap"):
            asking.metadata(HALF, limit=LIMIT)
    truncated = at(1, b"type.googleapis.com/tensorflow.serving.SignatureDefMap") + at(
        2, signatures[:-1]
    )
    fake.answers[PREDICTION + "GetModelMetadata"] = pair(2, b"signature_def", truncated)
    with pytest.raises(client.BadAnswer, match="no SignatureDefMap"):
        asking.metadata(HALF, limit=LIMIT)


def test_reload(fake, asking):
    fake.answers[MODEL + "HandleReloadConfigRequest"] = at(1, b"")
    asking.reload(
        [messages.ModelConfig(name="a", base_path="/m/a", model_platform="tensorflow")], limit=LIMIT
    )
    asking.reload([], limit=LIMIT)
    config = at(1, b"a") + at(2, b"/m/a") + at(4, b"tensorflow")
    assert [request for _, request, _ in fake.asked] == [
        at(1, at(1, at(1, config))),
        at(1, at(1, b"")),
    ]
    fake.answers[MODEL + "HandleReloadConfigRequest"] = at(
        1, at(1, 9) + at(2, b"twice the same name")
    )
    with pytest.raises(client.ServerError, match="same name") as caught:
        asking.reload([], limit=LIMIT)
    assert caught.value.code == "FAILED_PRECONDITION"


@pytest.mark.parametrize(
    "code",
    [
        "NOT_FOUND",
        "INVALID_ARGUMENT",
        "FAILED_PRECONDITION",
        "UNAVAILABLE",
        "INTERNAL",
        "CANCELLED",
        "UNKNOWN",
    ],
)
def test_an_error_of_the_server_keeps_its_code_and_text(fake, asking, code):
    """UNAVAILABLE is also what gRPC itself says of a lost connection; this one comes from a server
    that is there.
    """
    fake.answers[PREDICTION + "Predict"] = (code, "Servable not found for request: Latest(half)")
    with pytest.raises(client.ServerError) as caught:
        asking.predict(HALF, "", {}, limit=LIMIT)
    error = caught.value
    assert (error.code, error.message) == (code, "Servable not found for request: Latest(half)")
    assert (error.transport, error.method, error.http_status) == ("grpc", "Predict", 0)


@pytest.mark.parametrize(
    "text",
    ["Socket closed", "recvmsg:Connection reset by peer", "failed to connect to all addresses"],
)
def test_grpcs_own_texts_of_a_lost_connection(fake, asking, text):
    """Also where something still listens, as the forwarder of a container's port does.

    No server has been seen to send one.
    """
    fake.answers[PREDICTION + "Predict"] = ("UNAVAILABLE", text)
    with pytest.raises(client.Unreachable):
        asking.predict(HALF, "", {}, limit=LIMIT)


def test_a_method_that_the_server_lacks(asking):
    with pytest.raises(client.ServerError) as caught:
        asking.status(HALF, limit=LIMIT)
    assert caught.value.code == "UNIMPLEMENTED"


BROKEN = {
    "bytes that are no message": (b"\xff\xff\xff", "no PredictResponse"),
    "a length beyond the end": (b"\x0a\x7f", "no PredictResponse"),
    "a tensor of no dtype": (pair(1, b"y", b""), "output y: the dtype is invalid"),
    "more values than its shape": (
        pair(1, b"y", FLOATS + at(2, b"") + at(5, bytes(8))),
        "output y: 2 values for 1",
    ),
    "fewer bytes than its shape": (
        pair(1, b"y", FLOATS + at(2, at(2, at(1, 3))) + at(4, bytes(8))),
        "8 bytes for 3",
    ),
    "a negative dimension": (
        pair(1, b"y", FLOATS + at(2, at(2, b"\x08" + b"\xff" * 9 + b"\x01"))),
        "negative dimension",
    ),
    "a small message of a large tensor": (
        pair(1, b"y", FLOATS + at(2, at(2, at(1, 2**40)))),
        "output y: a float32 tensor",
    ),
    "large tensors together": (
        b"".join(pair(1, b"y%d" % i, at(1, 4) + at(2, at(2, at(1, 600 << 20)))) for i in range(2)),
        "tensors of one answer",
    ),
    "a resource": (pair(1, b"y", at(1, 20) + at(2, b"")), "output y"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_an_answer_that_is_none(fake, asking, case):
    fake.answers[PREDICTION + "Predict"], reason = BROKEN[case]
    with pytest.raises(client.BadAnswer, match=reason):
        asking.predict(HALF, "", {}, limit=LIMIT)


def test_sizes_are_bounded_in_both_directions(fake):
    fake.answers[PREDICTION + "Predict"] = pair(1, b"y", vector(*range(1000)))
    with GrpcClient("127.0.0.1", fake.port, max_bytes=1000) as small:
        with pytest.raises(client.BadAnswer, match="more than 1000 bytes"):
            small.predict(HALF, "", {}, limit=LIMIT)
        with pytest.raises(client.NotRepresentable, match="1000 may be sent"):
            small.predict(
                HALF, "", {"x": Tensor("float32", np.zeros(1000, np.float32))}, limit=LIMIT
            )


def test_larger_messages_than_grpc_allows_by_itself_pass(fake, asking):
    fake.answers[PREDICTION + "Predict"] = lambda request, _: pair(
        1, b"y", FLOATS + at(2, at(2, at(1, 2**21))) + at(4, bytes(2**23))
    )
    found = asking.predict(
        HALF, "", {"x": Tensor("float32", np.zeros(2**21, np.float32))}, limit=LIMIT
    )
    assert found["y"].array.shape == (2**21,)


def test_the_limit_ends_a_call(fake, asking):
    going = threading.Event()
    fake.answers[PREDICTION + "Predict"] = lambda *_: going.wait(LIMIT) and b""
    try:
        with pytest.raises(client.Timeout, match=r"within 0\.2 s"):
            asking.predict(HALF, "", {}, limit=0.2)
    finally:
        going.set()


def test_a_deadline_of_the_server_is_its_error(fake, asking):
    fake.answers[PREDICTION + "Predict"] = ("DEADLINE_EXCEEDED", "the batch waited too long")
    with pytest.raises(client.ServerError, match="batch waited"):
        asking.predict(HALF, "", {}, limit=LIMIT)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test_nobody_listens():
    with (
        GrpcClient("127.0.0.1", free_port()) as asking,
        pytest.raises(client.Unreachable, match="refused"),
    ):
        asking.status(HALF, limit=LIMIT)


@pytest.mark.parametrize("hello", [None, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"])
def test_somebody_else_listens(hello):
    """Nobody behind a forwarded port, and the REST port taken for the other one."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                if hello:
                    peer.sendall(hello)

    threading.Thread(target=serve, daemon=True).start()
    with (
        listener,
        GrpcClient("127.0.0.1", listener.getsockname()[1]) as asking,
        pytest.raises(client.Unreachable),
    ):
        asking.status(HALF, limit=LIMIT)


def test_a_closed_client(fake):
    asking = GrpcClient("127.0.0.1", fake.port)
    asking.close()
    asking.close()
    with pytest.raises(client.Unreachable, match="closed"):
        asking.status(HALF, limit=LIMIT)


DYING = """
import sys, time, grpc
from concurrent import futures
class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        def answer(request, context):
            print("asked", flush=True)
            time.sleep(60)
        return grpc.unary_unary_rpc_method_handler(answer)
server = grpc.server(futures.ThreadPoolExecutor(1), handlers=[Handler()])
print(server.add_insecure_port(sys.argv[1]), flush=True)
server.start()
time.sleep(60)
"""


def test_a_server_killed_by_a_request_is_unreachable_and_found_again():
    def start(address):
        process = subprocess.Popen(
            [sys.executable, "-c", DYING, address], stdout=subprocess.PIPE, text=True
        )
        return process, int(process.stdout.readline())

    process, port = start("127.0.0.1:0")
    with process, GrpcClient("127.0.0.1", port) as asking:
        killer = threading.Thread(
            target=lambda: process.stdout.readline() and os.kill(process.pid, signal.SIGKILL)
        )
        killer.start()
        with pytest.raises(client.Unreachable):
            asking.predict(HALF, "", {}, limit=LIMIT)
        killer.join()
        process.wait()
        with pytest.raises(client.Unreachable):
            asking.status(HALF, limit=LIMIT)

        again = FakeServer(f"127.0.0.1:{port}")
        again.answers[MODEL + "GetModelStatus"] = b""
        for _ in range(100):  # gRPC waits a little before it tries an address again
            try:
                assert asking.status(HALF, limit=LIMIT) == []
                break
            except client.Unreachable:
                threading.Event().wait(0.05)
        else:
            pytest.fail("the server that came back was not found")
        again.server.stop(None)


def test_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 on this machine")
    server = FakeServer("[::1]:0")
    server.answers[MODEL + "GetModelStatus"] = b""
    with GrpcClient("::1", server.port) as asking:
        assert asking.status(HALF, limit=LIMIT) == []
    server.server.stop(None)


def test_without_grpc_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(client.NotInstalled, match=r'pip install "savedmodel-compat\[serving\]"'):
        GrpcClient("127.0.0.1", 1)

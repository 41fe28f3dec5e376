"""compat_matrix.consumers.serving.rest_client, against servers whose answers are written out by hand."""

import http.server
import json
import socket
import socketserver
import struct
import threading
import time

import numpy as np
import pytest

from compat_matrix.consumers.serving import client, messages
from compat_matrix.consumers.serving.client import Class, ModelRef, VersionStatus
from compat_matrix.consumers.serving.examples import NotAnExample
from compat_matrix.consumers.serving.rest_client import COLUMNS, ROWS, RestClient
from compat_matrix.consumers.serving.servable import unaskable
from compat_matrix.workers.tensors import Tensor
from reference_impl.format import schema

LIMIT = 20.0
HALF = ModelRef("half")

METADATA = """{
"model_spec":{
 "name": "half", "signature_name": "", "version": "123"
},
"metadata": {"signature_def": {
 "signature_def": {
  "serving_default": {
   "inputs": {
    "x": {"dtype": "DT_FLOAT", "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": false}, "name": "x:0"}
   },
   "outputs": {
    "y": {"dtype": "DT_FLOAT", "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": false}, "name": "y:0"}
   },
   "method_name": "tensorflow/serving/predict",
   "defaults": {}
  },
  "two": {
   "inputs": {
    "k": {"dtype": "DT_INT64", "tensor_shape": {"dim": [], "unknown_rank": false}, "name": "k:0"},
    "x": {"dtype": "DT_FLOAT", "tensor_shape": {"dim": [], "unknown_rank": true}, "name": "x:0"}
   },
   "outputs": {
    "text": {"dtype": "DT_STRING", "tensor_shape": {"dim": [], "unknown_rank": true}, "name": "t:0"},
    "y": {"dtype": "DT_INT64", "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": false}, "name": "y:0"}
   },
   "method_name": "tensorflow/serving/predict",
   "defaults": {"k": {"dtype": "DT_INT64", "tensor_shape": {"dim": []}, "int64_val": ["9007199254740993"]}}
  },
  "half": {
   "inputs": {"x": {"dtype": "DT_FLOAT", "tensor_shape": {"unknown_rank": true}, "name": "x:0"}},
   "outputs": {"y": {"dtype": "DT_HALF", "tensor_shape": {"unknown_rank": true}, "name": "y:0"}},
   "method_name": "tensorflow/serving/predict",
   "a_field_of_a_later_release": {"x": 1}
  }
 }
}
}
}
"""
STATUS = """{
 "model_version_status": [
  {
   "version": "123",
   "state": "AVAILABLE",
   "status": {"error_code": "OK", "error_message": ""}
  },
  {"version": "4", "state": "END", "status": {"error_code": "NOT_FOUND", "error_message": "no such file"}}
 ]
}
"""


class Fake(http.server.BaseHTTPRequestHandler):
    """Answers what the server's `answers` have for a path: text with status 200, or (status, text)."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.command, self.path, json.loads(body) if body else None, self.client_address[1]))
        found = self.server.answers.get(self.path, (404, '{ "error": "Servable not found for request: Latest(half)" }'))
        status, text = found if isinstance(found, tuple) else (200, found)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        data = text.encode() if isinstance(text, str) else text
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


@pytest.fixture
def fake():
    with Server(("127.0.0.1", 0), Fake) as server:
        server.answers = {"/v1/models/half/metadata": METADATA, "/v1/models/half": STATUS}
        server.asked = []
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def asking(fake):
    with RestClient("127.0.0.1", fake.server_port) as found:
        yield found


PREDICT = "/v1/models/half:predict"


def floats(*values):
    return Tensor("float32", np.float32(values))


def test_predict_in_columns_then_in_rows(fake, asking):
    fake.answers[PREDICT] = '{\n    "outputs": [\n        2.5,\n        3.0\n    ]\n}'
    found = asking.predict(HALF, "serving_default", {"x": floats(1, 2)}, limit=LIMIT)
    assert (found["y"].dtype, found["y"].array.dtype, found["y"].array.tolist()) == ("float32", np.float32, [2.5, 3])
    fake.answers[PREDICT] = '{\n    "predictions": [2.5, 3.0\n    ]\n}'
    assert asking.predict(HALF, "", {"x": floats(1, 2)}, limit=LIMIT, layout=ROWS)["y"].array.tolist() == [2.5, 3]
    assert [(verb, path, body) for verb, path, body, _ in fake.asked] == [
        ("GET", "/v1/models/half/metadata", None),
        ("POST", PREDICT, {"signature_name": "serving_default", "inputs": {"x": [1.0, 2.0]}}),
        ("POST", PREDICT, {"instances": [1.0, 2.0]}),
    ]
    assert len({port for *_, port in fake.asked}) == 1  # one connection for all of them


def test_predict_of_several_inputs_and_outputs(fake, asking):
    inputs = {"x": floats(1, 2), "k": Tensor("int64", np.int64([2**53 + 1, -1]))}
    fake.answers[PREDICT] = '{"outputs": {"y": [9007199254740993, 0], "text": "a"}}'
    found = asking.predict(HALF, "two", inputs, limit=LIMIT, layout=COLUMNS)
    assert found["y"].array.tolist() == [2**53 + 1, 0]
    assert (found["text"].dtype, found["text"].array.shape, found["text"].array.tolist()) == ("string", (), b"a")
    assert list(asking.predict(HALF, "two", inputs, ["y"], limit=LIMIT)) == ["y"]
    fake.answers[PREDICT] = '{"predictions": [{"text": "a", "y": 3}, {"text": "b", "y": 4}]}'
    found = asking.predict(HALF, "two", inputs, limit=LIMIT, layout=ROWS)
    assert (found["y"].array.tolist(), found["text"].array.tolist()) == ([3, 4], [b"a", b"b"])
    assert fake.asked[-1][2]["instances"] == [{"k": 2**53 + 1, "x": 1.0}, {"k": -1, "x": 2.0}]


def test_what_rest_cannot_ask_is_said_before_it_is_asked(fake, asking):
    def refused(signature, inputs, outputs=(), **options):
        asked = len(fake.asked)
        with pytest.raises(client.NotRepresentable) as caught:
            asking.predict(HALF, signature, inputs, outputs, limit=LIMIT, **options)
        assert len(fake.asked) <= asked + (asked == 0)
        assert (caught.value.transport, caught.value.method) == ("rest", "Predict")
        return str(caught.value)

    assert "float16" in refused("half", {"x": floats(1)})
    assert "complex64" in refused("", {"x": Tensor("complex64", np.complex64([1]))})
    assert "default" in refused("two", {"x": floats(1)})
    assert "filter" in refused("", {"x": floats(1)}, ["z"])
    assert "'z' is not in the signature" in refused("", {"x": floats(1), "z": floats(1)})
    assert "scalar" in refused("", {"x": Tensor("float32", np.float32(1))}, layout=ROWS)
    for unknown in (asking.multi_inference, asking.reload):
        with pytest.raises(client.NotRepresentable, match="no such method"):
            unknown([], *([[]] if unknown == asking.multi_inference else []), limit=LIMIT)


def test_an_input_of_another_name_is_sent_with_that_name(fake, asking):
    fake.answers[PREDICT] = (400, '{ "error": "Missing named input: x in \'inputs\' object." }')
    for layout in (ROWS, COLUMNS):
        with pytest.raises(client.ServerError, match="Missing named input"):
            asking.predict(HALF, "", {"z": floats(1)}, limit=LIMIT, layout=layout)
    assert [body for *_, body, _ in fake.asked[1:]] == [{"instances": [{"z": 1.0}]}, {"inputs": {"z": [1.0]}}]


def test_an_unknown_signature_is_the_servers_to_refuse(fake, asking):
    fake.answers[PREDICT] = (400, '{ "error": "Serving signature name: \\"nope\\" not found in signature def" }')
    with pytest.raises(client.ServerError, match='"nope" not found') as caught:
        asking.predict(HALF, "nope", {"x": floats(1)}, limit=LIMIT)
    assert (caught.value.code, caught.value.http_status) == ("INVALID_ARGUMENT", 400)


def test_status(fake, asking):
    assert asking.status(HALF, limit=LIMIT) == [
        VersionStatus(123, "AVAILABLE", 0, ""),
        VersionStatus(4, "END", 5, "no such file"),
    ]
    fake.answers["/v1/models/half"] = '{"model_version_status": [{"version": "1", "state": 77}]}'
    assert asking.status(HALF, limit=LIMIT) == [VersionStatus(1, "UNKNOWN", 0, "")]


def test_a_model_is_named_by_version_or_label(fake, asking):
    fake.answers.update(dict.fromkeys(["/v1/models/half/versions/7", "/v1/models/a%20b%2Fc%3Ad/labels/l%2F1"], STATUS))
    assert asking.status(ModelRef("half", 7), limit=LIMIT)
    assert asking.status(ModelRef("a b/c:d", label="l/1"), limit=LIMIT)
    fake.answers["/v1/models/half/versions/7/metadata"] = METADATA
    fake.answers["/v1/models/half/versions/7:predict"] = '{"outputs": [1.0]}'
    assert asking.predict(ModelRef("half", 7), "", {"x": floats(1)}, limit=LIMIT)


def test_metadata_are_the_same_messages_as_over_grpc(asking):
    found = asking.metadata(HALF, limit=LIMIT)
    assert sorted(found) == ["half", "serving_default", "two"]
    two = found["two"]
    assert isinstance(two, messages.SignatureDef)
    assert two.inputs["x"].tensor_shape.unknown_rank
    assert (two.outputs["y"].dtype, two.outputs["y"].tensor_shape.dim[0].size) == (schema.DT_INT64, -1)
    assert list(two.defaults["k"].int64_val) == [2**53 + 1]
    assert two.method_name == "tensorflow/serving/predict"


def example(**features):
    found = messages.Example()
    for name, value in features.items():
        kind = {bytes: "bytes_list", float: "float_list", int: "int64_list"}[type(value[0])]
        getattr(found.features.feature[name], kind).value.extend(value)
    return schema.serialize(found)


def test_signatures_that_no_server_answers():
    signature = messages.SignatureDef()
    signature.inputs["x"].name = "x:0"
    assert unaskable(signature) is None
    signature.outputs["r"].composite_tensor.SetInParent()
    assert "output 'r' is composite" in unaskable(signature)
    signature.inputs["k"].coo_sparse.values_tensor_name = "v:0"
    assert "input 'k' is sparse" in unaskable(signature)


def test_classify_and_regress(fake, asking):
    examples = [example(x=[1.0, float("inf")], n=[3]), example(s=[b"sea", b"\xff"], n=[2**60])]
    fake.answers["/v1/models/half:classify"] = '{"results": [[["cat", 0.75], ["", 1e-05]], []]}'
    found = asking.classify(HALF, "c", examples, example(c=[b"k"]), limit=LIMIT)
    assert found == [[Class("cat", 0.75), Class("", float(np.float32(1e-05)))], []]
    fake.answers["/v1/models/half:regress"] = '{"results": [3.5, NaN, -Infinity]}'
    regressed = asking.regress(HALF, "", examples, limit=LIMIT)
    assert (regressed[0], np.isnan(regressed[1]), regressed[2]) == (3.5, True, -np.inf)
    as_json = [{"n": [3], "x": [1.0, np.inf]}, {"n": [2**60], "s": ["sea", {"b64": "/w=="}]}]
    assert [body for *_, body, _ in fake.asked] == [
        {"signature_name": "c", "context": {"c": ["k"]}, "examples": as_json},
        {"examples": as_json},
    ]
    empty = b"\x0a\x07\x0a\x05\x0a\x01x\x12\x00"  # a feature of no kind
    asking.regress(HALF, "", [empty], limit=LIMIT)
    assert fake.asked[-1][2] == {"examples": [{"x": []}]}
    with pytest.raises(client.NotRepresentable, match="'x' is an empty float_list"):
        asking.regress(HALF, "", [b"\x0a\x09\x0a\x07\x0a\x01x\x12\x02\x12\x00"], limit=LIMIT)
    with pytest.raises(NotAnExample, match="context"):
        asking.regress(HALF, "", [], b"\x0a\x05", limit=LIMIT)


@pytest.mark.parametrize(
    "body", ["{}", '{"results": {}}', '{"results": [1.0]}', '{"results": [["a"]]}', '{"results": [[["a"]]]}',
             '{"results": [[[1, 2.0]]]}', '{"results": [[["a", "b"]]]}', '{"results": [[["a", 1.0, 2.0]]]}']
)  # fmt: skip
def test_classes_that_are_none(fake, asking, body):
    fake.answers["/v1/models/half:classify"] = body
    with pytest.raises(client.BadAnswer):
        asking.classify(HALF, "", [b""], limit=LIMIT)


@pytest.mark.parametrize("body", ["{}", '{"results": 1.0}', '{"results": ["a"]}', '{"results": [[1.0]]}', '{"results": [1e99]}'])
def test_regressions_that_are_none(fake, asking, body):
    fake.answers["/v1/models/half:regress"] = body
    with pytest.raises(client.BadAnswer):
        asking.regress(HALF, "", [b""], limit=LIMIT)


ERRORS = {
    404: ("NOT_FOUND", '{ "error": "Could not find any versions of model half" }', "Could not find any versions of model half"),
    400: ("INVALID_ARGUMENT", '{"error": "input \\"x\\" is missing"}', 'input "x" is missing'),
    500: ("INTERNAL", "it broke", "it broke"),
    503: ("UNAVAILABLE", '{"error": 5}', '{"error": 5}'),
    501: ("UNIMPLEMENTED", "", ""),
    429: ("RESOURCE_EXHAUSTED", '{"error": "full"}', "full"),
    504: ("DEADLINE_EXCEEDED", '["error"]', '["error"]'),
    502: ("INTERNAL", b"\xff", "�"),
    302: ("UNKNOWN", "elsewhere", "elsewhere"),
}


@pytest.mark.parametrize("status", ERRORS)
def test_an_error_has_a_code_and_the_servers_text(fake, asking, status):
    code, body, message = ERRORS[status]
    fake.answers["/v1/models/half"] = (status, body)
    with pytest.raises(client.ServerError) as caught:
        asking.status(HALF, limit=LIMIT)
    assert (caught.value.code, caught.value.message, caught.value.http_status) == (code, message, status)
    assert (caught.value.transport, caught.value.method) == ("rest", "GetModelStatus")


def test_an_error_has_all_codes_that_its_status_may_mean(fake, asking):
    for status, codes in (
        (400, ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE")),
        (500, ("INTERNAL", "UNKNOWN", "DATA_LOSS")),
        (404, ("NOT_FOUND",)),
        (418, ("UNKNOWN",)),
    ):
        fake.answers["/v1/models/half"] = (status, "{}")
        with pytest.raises(client.ServerError) as caught:
            asking.status(HALF, limit=LIMIT)
        assert caught.value.codes == codes
    assert client.ServerError("ABORTED", "", "grpc", "Predict").codes == ("ABORTED",)


def test_a_ragged_output_is_left_to_the_server(fake, asking):
    half = '"dtype": "DT_HALF", "tensor_shape": {"unknown_rank": true}, "name": "y:0"'
    fake.answers["/v1/models/half/metadata"] = METADATA.replace(half, '"dtype": "DT_INVALID", "composite_tensor": {}')
    fake.answers[PREDICT] = (400, '{"error": "no tensor \'\'"}')
    with pytest.raises(client.ServerError, match="no tensor"):
        asking.predict(HALF, "half", {"x": floats(1)}, limit=LIMIT)


def test_endless_texts_of_a_server_are_cut(fake, asking):
    fake.answers["/v1/models/half"] = (500, json.dumps({"error": "a" * 10**6}))
    with pytest.raises(client.ServerError) as caught:
        asking.status(HALF, limit=LIMIT)
    assert len(str(caught.value)) < 70_000
    fake.answers["/v1/models/half"] = json.dumps({"model_version_status": [{"version": "a" * 10**6}]})
    with pytest.raises(client.BadAnswer) as caught:
        asking.status(HALF, limit=LIMIT)
    assert len(str(caught.value)) < 70_000


BAD_MESSAGES = ["[]", "{", '{"model_version_status": 5}', '{"model_version_status": [{"version": "x"}]}', "[" * 10**6,
                '{"model_version_status": [{"status": {"error_message": 5}}]}']  # fmt: skip


@pytest.mark.parametrize("body", BAD_MESSAGES, ids=range(len(BAD_MESSAGES)))
def test_a_status_that_is_none(fake, asking, body):
    fake.answers["/v1/models/half"] = body
    with pytest.raises(client.BadAnswer):
        asking.status(HALF, limit=LIMIT)


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        '{"metadata": []}',
        '{"metadata": {"signature_def": []}}',
        '{"metadata": {"signature_def": {"signature_def": {"s": {"inputs": {"x": {"dtype": []}}}}}}}',
        '{"metadata": {"signature_def": {"signature_def": {"s": {"method_name": "\\ud800"}}}}}',
    ],
)
def test_metadata_that_are_none(fake, asking, body):
    fake.answers["/v1/models/half/metadata"] = body
    with pytest.raises(client.BadAnswer):
        asking.metadata(HALF, limit=LIMIT)


def test_an_output_of_no_dtype(fake, asking):
    fake.answers["/v1/models/half/metadata"] = METADATA.replace("DT_HALF", "DT_INVALID")
    with pytest.raises(client.BadAnswer, match="dtype is invalid"):
        asking.predict(HALF, "half", {"x": floats(1)}, limit=LIMIT)


# Servers that are none


class Raw(socketserver.ThreadingTCPServer):
    """Does one thing with each connection."""

    daemon_threads, allow_reuse_address = True, True


@pytest.fixture
def raw():
    started = []

    def start(do):
        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                try:
                    do(self.request)
                except OSError:
                    pass  # the client has gone

        server = Raw(("127.0.0.1", 0), Handler)
        started.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return RestClient("127.0.0.1", server.server_address[1], max_bytes=10**6)

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def after_request(data):
    def do(peer):
        peer.recv(10**5)
        peer.sendall(data)

    return do


HEAD = b"HTTP/1.1 200 OK\r\n"
NOT_HTTP = {
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n", client.BadAnswer, "not HTTP"),
    "an endless line": (b"H" * 10**5 + b"\r\n", client.BadAnswer, "not HTTP"),
    "endless headers": (HEAD + b"a: b\r\n" * 1000, client.BadAnswer, "not HTTP"),
    "a promise of 10 GB": (HEAD + b"Content-Length: 10000000000\r\n\r\n", client.BadAnswer, "promises 10000000000 bytes"),
    "a promise not kept": (HEAD + b"Content-Length: 10\r\n\r\n{}", client.Unreachable, "broke after 2 of 10 bytes"),
    "no promise, and no end": (HEAD + b"\r\n" + b" " * (2 * 10**6), client.BadAnswer, "more than 1000000 bytes"),
    "chunks without end": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 20,
        client.BadAnswer,
        "more than 1000000 bytes",
    ),
    "broken chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", client.Unreachable, "IncompleteRead"),
    "nothing": (b"", client.Unreachable, "closed connection"),
    "a status too large": (b"HTTP/1.1 99999 OK\r\n\r\n", client.BadAnswer, "not HTTP"),
}


@pytest.mark.parametrize("case", NOT_HTTP)
def test_garbage_is_a_named_error(raw, case):
    data, kind, reason = NOT_HTTP[case]
    with raw(after_request(data)) as asking, pytest.raises(kind, match=reason):
        asking.status(HALF, limit=LIMIT)


def forever(data):
    def do(peer):
        peer.recv(10**5)
        while True:
            peer.sendall(data)
            time.sleep(0.01)

    return do


ENDLESS = {
    "silence": lambda peer: peer.recv(10**5) and time.sleep(LIMIT),
    "a status line, byte by byte": forever(b"H"),
    "headers, line by line": forever(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a request that is not read": lambda peer: time.sleep(LIMIT),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_the_limit_is_one_for_the_whole_call(raw, case):
    """A byte now and then would keep a limit for each read from ever being over."""
    with raw(ENDLESS[case]) as asking, pytest.raises(client.Timeout, match=r"within 0\.3 s"):
        body = [example(x=[b"a" * (50 << 20)])] if "not read" in case else []
        asking.regress(HALF, "", body, limit=0.3)


def test_the_limit_is_one_for_both_requests_of_a_predict(fake, asking, monkeypatch):
    """The first asks for the metadata."""
    limits, exchange = [], asking._connection.exchange

    def observed(verb, path, body, limit):
        limits.append(limit)
        return exchange(verb, path, body, limit)

    monkeypatch.setattr(asking._connection, "exchange", observed)
    fake.answers[PREDICT] = '{"outputs": [1.0]}'
    asking.predict(HALF, "", {"x": floats(1)}, limit=LIMIT)
    assert LIMIT == limits[0] > limits[1]


def test_a_request_that_is_not_read_on_a_connection_that_was_kept(raw):
    def do(peer):
        peer.recv(10**5)
        peer.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")
        time.sleep(LIMIT)

    with raw(do) as asking:
        asking.status(HALF, limit=LIMIT)
        with pytest.raises(client.Timeout):
            asking.regress(HALF, "", [example(x=[b"a" * (50 << 20)])], limit=0.3)


def test_an_answer_that_is_late_is_not_taken_for_the_next_one(raw):
    late = threading.Event()

    def do(peer):
        peer.recv(10**5)
        if not late.is_set():
            late.wait(LIMIT)
            peer.sendall(HEAD + b"Content-Length: 3\r\n\r\n[1]")
        else:
            peer.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")
        peer.recv(1)

    with raw(do) as asking:
        with pytest.raises(client.Timeout):
            asking.status(HALF, limit=0.2)
        late.set()
        assert asking.status(HALF, limit=LIMIT) == []


def test_a_body_byte_by_byte(raw):
    def do(peer):
        peer.recv(10**5)
        peer.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
        while True:
            peer.sendall(b" ")
            time.sleep(0.01)

    with raw(do) as asking, pytest.raises(client.Timeout):
        asking.status(HALF, limit=0.3)


def test_a_reset_connection(raw):
    def do(peer):
        peer.recv(1)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()

    with raw(do) as asking, pytest.raises(client.Unreachable):
        asking.regress(HALF, "", [example(x=[b"a" * 10**6])], limit=LIMIT)


def test_a_connection_closed_between_two_requests_is_opened_again(raw):
    count = []

    def do(peer):
        count.append(peer.recv(10**5))
        peer.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")

    with raw(do) as asking:
        assert asking.status(HALF, limit=LIMIT) == []
        while not asking._connection._http.is_stale():
            time.sleep(0.01)
        assert asking.status(HALF, limit=LIMIT) == []
    assert len(count) == 2


def test_a_request_is_sent_once(raw):
    """A server that dies of a request is not asked again as soon as it is back."""
    count = []

    def do(peer):
        for _ in range(2):
            count.append(peer.recv(10**5))
            if len(count) == 1:
                peer.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")

    with raw(do) as asking:
        assert asking.status(HALF, limit=LIMIT) == []
        with pytest.raises(client.Unreachable):
            asking.status(HALF, limit=LIMIT)
        assert len(count) == 2


def test_an_answer_that_ends_the_connection(raw):
    with raw(after_request(HEAD + b"Connection: close\r\n\r\n{}")) as asking:
        assert asking.status(HALF, limit=LIMIT) == []
        assert asking.status(HALF, limit=LIMIT) == []


def test_nobody_listens():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with RestClient("127.0.0.1", port) as asking, pytest.raises(client.Unreachable, match="refused"):
        asking.status(HALF, limit=LIMIT)


def test_a_name_that_has_no_address():
    with RestClient("no-such-host.invalid", 1) as asking, pytest.raises(client.Unreachable):
        asking.status(HALF, limit=LIMIT)


def test_a_limit_that_is_over_already(asking):
    with pytest.raises(client.Timeout):
        asking.status(HALF, limit=0)


def test_a_client_may_be_used_after_an_error_and_after_close(fake, asking):
    fake.answers["/v1/models/half"] = "{"
    with pytest.raises(client.BadAnswer):
        asking.status(HALF, limit=LIMIT)
    fake.answers["/v1/models/half"] = STATUS
    assert asking.status(HALF, limit=LIMIT)
    asking.close()
    asking.close()


def test_ipv6():
    class Server6(Server):
        address_family = socket.AF_INET6

    try:
        server = Server6(("::1", 0), Fake)
    except OSError:
        pytest.skip("no IPv6 on this machine")
    server.answers, server.asked = {"/v1/models/half": STATUS}, []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    with server, RestClient("::1", server.server_port) as asking:
        assert asking.status(HALF, limit=LIMIT)
        server.shutdown()

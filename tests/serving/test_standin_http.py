"""Requests over HTTP and gRPC that are written in an unusual way, and what the stand-in server makes of them."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from standin_server import QUICK, Failed, Server, empty_config, place, predict, serving

pytestmark = pytest.mark.tensorflow

FLOAT = 1


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("http")
    with serving(folder, empty_config(folder), *QUICK) as running:
        models = ("half_plus_two", "string_ops")
        running.reload(*({"name": name, "base_path": str(place(folder / name, name))} for name in models))
        yield running


def status_of(server: Server, request_line: str, *headers: str) -> int:
    """The status of a request that is written as it stands."""
    with socket.create_connection(("127.0.0.1", server.rest_port), timeout=60) as connection:
        connection.sendall("\r\n".join([request_line, "Host: x", *headers, "", ""]).encode())
        return int(connection.recv(4096).split()[1])


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/v1/models/half_plus_two", 200),
        ("//v1/models/half_plus_two", 404),
        ("/v1/models/half%zz", 400),
        ("/v1/models/half%5Fplus%5Ftwo", 200),
        ("http://anything/v1/models/half_plus_two", 200),
    ],
)
def test_paths(server: Server, target: str, status: int) -> None:
    assert status_of(server, f"GET {target} HTTP/1.1") == status


def test_large_headers(server: Server) -> None:
    headers = [f"X-{index}: {'x' * 1000}" for index in range(200)]
    assert status_of(server, "GET /v1/models/half_plus_two HTTP/1.1", *headers) == 200
    assert status_of(server, "GET /v1/models/half_plus_two HTTP/1.1", "X: " + "x" * 200_000) == 200


def test_a_connection_that_is_to_be_closed(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=60)
    for header, told in ((None, None), ("close", "close")):
        connection.request("GET", "/v1/models/half_plus_two", headers={"Connection": header} if header else {})
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read()
        assert answer.headers["Connection"] == told


RIGHT = ("YWI=", "YWI", "YWI.", "Y W\\tI =", "YQ==")
WRONG = ("YQ=", "YWI==", "YWJj=", "Y*I=")


@pytest.mark.parametrize(("text", "status"), [*((text, 200) for text in RIGHT), *((text, 400) for text in WRONG)])
def test_base64(server: Server, text: str, status: int) -> None:
    body = f'{{"instances": [[{{"b64": "{text}"}}]]}}'.encode()
    found, answer = server.rest_text("/v1/models/string_ops:predict", body)
    assert (found, "Unable to base64 decode" in answer) == (status, status == 400)


def test_a_method_that_is_not_there(server: Server) -> None:
    import grpc

    for path in ("/tensorflow.serving.PredictionService/Nothing", "/other.Service/Predict"):
        with pytest.raises(grpc.RpcError) as caught:
            server.channel.unary_unary(path)(b"", timeout=60)
        assert (caught.value.code().name, caught.value.details()) == ("UNIMPLEMENTED", "")


def test_folders_that_hold_no_saved_model(server: Server, tmp_path: Path) -> None:
    for name, file in (("empty", None), ("session_bundle", "export.meta")):
        (tmp_path / name / "1").mkdir(parents=True)
        if file:
            (tmp_path / name / "1" / file).touch()
    from compat_matrix.serving import messages

    held = [{"name": name, "base_path": str(tmp_path / name)} for name in ("empty", "session_bundle")]
    with pytest.raises(Failed):
        server.reload(*held)
    for name, code, text in (("empty", 5, "does not appear to contain a SavedModel bundle"), ("session_bundle", 12, "")):
        request = messages.GetModelStatusRequest(model_spec=messages.ModelSpec(name=name))
        (entry,) = server.call("GetModelStatus", request).model_version_status
        assert entry.status.error_code == code and text in entry.status.error_message
    with pytest.raises(Failed) as caught:
        server.call("Predict", predict("empty", x=(FLOAT, "float_val", [1.0])))
    assert caught.value.code == "NOT_FOUND"


def test_a_socket_alone_and_the_health_service(tmp_path: Path) -> None:
    import grpc

    path = tmp_path / "s"
    base = place(tmp_path / "m", "half_plus_two")
    flags = (f"--grpc_socket_path={path}", "--model_name=m", f"--model_base_path={base}", "--enable_grpc_healthcheck_service")
    with serving(tmp_path, *flags, "--port=0") as server, grpc.insecure_channel(f"unix:{path}") as channel:
        answer = server.call("Predict", predict("m", x=(FLOAT, "float_val", [2.0])), channel=channel)
        assert list(answer.outputs["y"].float_val) == [3.0]
        assert "ModelServer at 0.0.0.0" not in server.log()
        assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=60) == b"\x08\x01"
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/grpc.health.v1.Health/Check")(b"\x0a\x01x", timeout=60)
        assert caught.value.code().name == "NOT_FOUND"

"""Requests over HTTP and gRPC that are written in an unusual way, and what the stand-in server
makes of them.
"""

from __future__ import annotations

import http.client
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
        running.reload(
            *({"name": name, "base_path": str(place(folder / name, name))} for name in models)
        )
        yield running


def test_a_connection_that_is_to_be_closed(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=60)
    for header, told in ((None, None), ("close", "close")):
        connection.request(
            "GET", "/v1/models/half_plus_two", headers={"Connection": header} if header else {}
        )
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read()
        assert answer.headers["Connection"] == told


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
    both = place(tmp_path / "both", "half_plus_two")
    (both / "1" / "export.meta").touch()  # a real 2.15.1 refuses it, whatever lies beside it
    from savedmodel_common.serving import messages

    names = ("empty", "session_bundle", "both")
    held = [{"name": name, "base_path": str(tmp_path / name)} for name in names]
    with pytest.raises(Failed):
        server.reload(*held)
    for name, code, text in (
        ("empty", 5, "does not appear to contain a SavedModel bundle"),
        ("session_bundle", 12, ""),
        ("both", 12, ""),
    ):
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
    flags = (
        f"--grpc_socket_path={path}",
        "--model_name=m",
        f"--model_base_path={base}",
        "--enable_grpc_healthcheck_service",
    )
    with (
        serving(tmp_path, *flags, "--port=0") as server,
        grpc.insecure_channel(f"unix:{path}") as channel,
    ):
        answer = server.call(
            "Predict", predict("m", x=(FLOAT, "float_val", [2.0])), channel=channel
        )
        assert list(answer.outputs["y"].float_val) == [3.0]
        assert "ModelServer at 0.0.0.0" not in server.log()
        assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=60) == b"\x08\x01"
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/grpc.health.v1.Health/Check")(b"\x0a\x01x", timeout=60)
        assert caught.value.code().name == "NOT_FOUND"

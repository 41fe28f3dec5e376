"""The stand-in server's answers and errors, over both transports, from one process with the models
of several fixtures.
"""

from __future__ import annotations

import base64
import http.client
import json
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from standin_server import FIXTURES, QUICK, Failed, Server, empty_config, place, predict, serving

from savedmodel_common import tensors
from savedmodel_common.serving import messages
from savedmodel_standin import tensor_protos

pytestmark = pytest.mark.tensorflow

MODELS = (
    "half_plus_two",
    "dtypes_io",
    "estimator_dnn_classifier",
    "string_ops",
    "shapes",
    "stateful_counter",
    "ragged_io",
)
FLOAT, STRING, INT64 = 1, 7, 9
X = (FLOAT, "float_val", [1.0, 2.0, 5.0])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("standin")
    socket = f"--grpc_socket_path={folder}/s"
    monitoring = folder / "monitoring"
    monitoring.write_text(
        'prometheus_config { enable: true path: "/monitoring/prometheus/metrics" }', "utf-8"
    )
    flags = (empty_config(folder), socket, f"--monitoring_config_file={monitoring}", *QUICK)
    with serving(folder, *flags) as running:
        running.reload(
            *({"name": name, "base_path": str(place(folder / name, name))} for name in MODELS)
        )
        yield running


def refused(server: Server, method: str, request: Any) -> tuple[str, str]:
    with pytest.raises(Failed) as caught:
        server.call(method, request)
    return caught.value.code, caught.value.text


def test_predict_answers_in_typed_fields_and_echoes_the_model(server: Server) -> None:
    answer = server.call("Predict", predict("half_plus_two", x=X))
    assert answer.model_spec.version.value == 1
    assert answer.model_spec.signature_name == "serving_default"
    assert list(answer.outputs["y"].float_val) == [2.5, 3.0, 4.5]
    assert not answer.outputs["y"].tensor_content


def test_the_unix_socket_answers_too(server: Server) -> None:
    import grpc

    path = (
        next(line for line in server.log().splitlines() if "UNIX socket" in line)
        .split("socket ")[1]
        .split(" ")[0]
    )
    with grpc.insecure_channel(f"unix:{path}") as channel:
        answer = server.call("Predict", predict("half_plus_two", x=X), channel=channel)
    assert list(answer.outputs["y"].float_val) == [2.5, 3.0, 4.5]


def test_content_and_short_lists_are_read_as_tensorflow_reads_them(server: Server) -> None:
    request = predict("half_plus_two", x=(FLOAT, "float_val", []))
    request.inputs["x"].tensor_shape.dim[0].size = 2
    assert list(server.call("Predict", request).outputs["y"].float_val) == [2.0, 2.0]
    request.inputs["x"].float_val.append(6.0)
    assert list(server.call("Predict", request).outputs["y"].float_val) == [5.0, 5.0]
    request.inputs["x"].tensor_content = struct.pack("<2f", 2, 4)
    assert list(server.call("Predict", request).outputs["y"].float_val) == [3.0, 4.0]


def test_every_dtype_comes_back_as_it_went(server: Server) -> None:
    recorded = FIXTURES / "dtypes_io" / "io"
    inputs, outputs = (
        tensors.load(recorded / f"serving_default-0.{side}.npz") for side in ("in", "out")
    )
    request: Any = messages.PredictRequest()
    request.model_spec.name = "dtypes_io"
    for name, tensor in inputs.items():
        tensor_protos.encode(tensor, request.inputs[name])
    answer = server.call("Predict", request)
    for name, tensor in outputs.items():
        found = tensor_protos.decode(answer.outputs[name])
        assert found.dtype == tensor.dtype
        np.testing.assert_array_equal(found.array, tensor.array)


@pytest.mark.parametrize(
    ("request_", "code", "text"),
    [
        (predict("", x=X), "INVALID_ARGUMENT", "ModelSpec has no name specified."),
        (predict("nope", x=X), "NOT_FOUND", "Servable not found for request: Latest(nope)"),
        (
            predict("half_plus_two", "nope", x=X),
            "FAILED_PRECONDITION",
            'Serving signature key "nope" not found.',
        ),
        (
            predict("half_plus_two"),
            "INVALID_ARGUMENT",
            (
                "input size does not match signature: 0!=1 len({}) != len({x}). Sent extra: {}."
                " Missing but required: {x}."
            ),
        ),
        (
            predict("half_plus_two", z=X),
            "INVALID_ARGUMENT",
            (
                "Signature input alias: x(feed name: x:0) not found in request and no default value"
                " provided. Inputs expected to be in the request {z}, or default input alias set: "
            ),
        ),
        (
            predict("half_plus_two", x=(0, "int64_val", [1])),
            "INVALID_ARGUMENT",
            "tensor parsing error: x",
        ),
    ],
)
def test_predict_refuses_by_the_real_servers_words(
    server: Server, request_: Any, code: str, text: str
) -> None:
    assert refused(server, "Predict", request_) == (code, text)


def test_a_wrong_dtype_is_the_runtimes_error(server: Server) -> None:
    code, text = refused(server, "Predict", predict("half_plus_two", x=(INT64, "int64_val", [1])))
    assert code == "INVALID_ARGUMENT"
    assert "float" in text


def test_an_output_that_is_not_there_or_twice(server: Server) -> None:
    request = predict("half_plus_two", x=X)
    request.output_filter[:] = ["q"]
    expected = (
        "output tensor alias not found in signature: q Outputs expected to be in the set {y}."
    )
    assert refused(server, "Predict", request) == ("INVALID_ARGUMENT", expected)
    request.output_filter[:] = ["y", "y"]
    assert refused(server, "Predict", request) == (
        "INVALID_ARGUMENT",
        "duplicate output tensor alias: y",
    )


def test_a_version_that_is_not_loaded(server: Server) -> None:
    request = predict("half_plus_two", x=X)
    request.model_spec.version.value = 7
    assert refused(server, "Predict", request) == (
        "NOT_FOUND",
        "Servable not found for request: Specific(half_plus_two, 7)",
    )
    status = messages.GetModelStatusRequest(model_spec=request.model_spec)
    assert refused(server, "GetModelStatus", status) == (
        "NOT_FOUND",
        "Could not find version 7 of model half_plus_two",
    )


def test_a_composite_output_has_no_tensor_that_could_be_fetched(server: Server) -> None:
    request: Any = messages.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = "ragged_io", "ranges"
    for name, tensor in tensors.load(FIXTURES / "ragged_io" / "io" / "ranges-0.in.npz").items():
        tensor_protos.encode(tensor, request.inputs[name])
    assert refused(server, "Predict", request) == (
        "INVALID_ARGUMENT",
        "Tensor :0, specified in either feed_devices or fetch_devices was not found in the Graph",
    )


def example(value: float) -> Any:
    made: Any = messages.Example()
    made.features.feature["x"].float_list.value.append(value)
    return made


def test_classify_regress_and_both_at_once(server: Server) -> None:
    classify: Any = messages.ClassificationRequest()
    classify.model_spec.name, classify.model_spec.signature_name = (
        "half_plus_two",
        "classify_x_to_y",
    )
    classify.input.example_list.examples.extend([example(2.0), example(4.0)])
    regress: Any = messages.RegressionRequest(model_spec=classify.model_spec, input=classify.input)
    regress.model_spec.signature_name = "regress_x_to_y"
    rows = server.call("Classify", classify).result.classifications
    scores = [row.classes[0].score for row in rows]
    values = [entry.value for entry in server.call("Regress", regress).result.regressions]
    assert scores == values == [3.0, 4.0]
    both: Any = messages.MultiInferenceRequest(input=classify.input)
    both.tasks.add(model_spec=regress.model_spec, method_name=messages.REGRESS_METHOD)
    both.tasks.add(model_spec=classify.model_spec, method_name=messages.CLASSIFY_METHOD)
    first, second = server.call("MultiInference", both).results
    assert [entry.value for entry in first.regression_result.regressions] == values
    assert second.classification_result.classifications == rows
    assert second.model_spec.signature_name == "classify_x_to_y"
    both.tasks[1].CopyFrom(both.tasks[0])
    expected = "Duplicate evaluation of signature: regress_x_to_y"
    assert refused(server, "MultiInference", both) == ("INVALID_ARGUMENT", expected)


def test_a_context_is_merged_into_every_example(server: Server) -> None:
    request: Any = messages.RegressionRequest()
    request.model_spec.name, request.model_spec.signature_name = "half_plus_two", "regress_x_to_y"
    given = request.input.example_list_with_context
    given.context.CopyFrom(example(8.0))
    given.examples.add()
    assert [entry.value for entry in server.call("Regress", request).result.regressions] == [6.0]
    request.ClearField("input")
    assert refused(server, "Regress", request) == ("INVALID_ARGUMENT", "Input is empty.")


def test_metadata_over_both_transports(server: Server) -> None:
    request: Any = messages.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "half_plus_two"
    answer = server.call("GetModelMetadata", request)
    known = messages.SignatureDefMap.FromString(
        answer.metadata["signature_def"].value
    ).signature_def
    assert known["serving_default"].inputs["x"].dtype == FLOAT
    status, document = server.rest("/v1/models/half_plus_two/metadata")
    assert (status, document["model_spec"]) == (
        200,
        {"name": "half_plus_two", "signature_name": "", "version": "1"},
    )
    shown = document["metadata"]["signature_def"]["signature_def"]
    assert sorted(shown) == sorted(known)
    assert shown["serving_default"]["inputs"]["x"]["dtype"] == "DT_FLOAT"
    request.metadata_field[:] = ["other"]
    assert refused(server, "GetModelMetadata", request) == (
        "INVALID_ARGUMENT",
        "Metadata field other is not supported",
    )


def test_rows_are_laid_out_as_the_real_server_does_it(server: Server) -> None:
    path = "/v1/models/half_plus_two:predict"
    assert server.rest_text(path, {"instances": [1.0, 2.0, 5]}) == (
        200,
        '{\n    "predictions": [2.5, 3.0, 4.5\n    ]\n}',
    )
    columns = '{\n    "outputs": [\n        2.5,\n        3.0\n    ]\n}'
    assert server.rest_text(
        "/v1/models/half_plus_two/versions/1:predict", {"inputs": {"x": [1, 2.0]}}
    ) == (200, columns)


def test_named_rows_strings_and_bytes(server: Server) -> None:
    rows = [{"words": ["ab", "c"]}, {"words": ["", "\u00e9"]}]
    status, document = server.rest("/v1/models/string_ops:predict", {"instances": rows})
    assert status == 200
    assert [row["echo"] for row in document["predictions"]] == [["ab", "c"], ["", "\u00e9"]]
    assert [row["lengths"] for row in document["predictions"]] == [[2, 1], [0, 2]]
    word = base64.b64encode(b"\xff\x00a").decode()
    status, text = server.rest_text("/v1/models/string_ops:predict", {"inputs": [[{"b64": word}]]})
    assert (
        status,
        '"lengths": [\n            [\n                3\n            ]\n        ]' in text,
    ) == (200, True)


def test_numbers_that_are_none(server: Server) -> None:
    body = b'{"instances": [NaN, Infinity, -Inf, 1e-3]}'
    status, text = server.rest_text("/v1/models/half_plus_two:predict", body)
    nan, above, below, small = json.loads(text)["predictions"]
    assert status == 200
    assert math.isnan(nan) and (above, below, small) == (math.inf, -math.inf, 2.0005)


def test_classify_and_regress_over_rest(server: Server) -> None:
    body = {"signature_name": "classify_x_to_y", "examples": [{"x": 2.0}]}
    status, document = server.rest("/v1/models/half_plus_two:classify", body)
    assert status == 200
    assert [entry[1] for entry in document["results"][0]] == [3.0, 4.0]
    body = {
        "signature_name": "regress_x_to_y",
        "examples": [{"x": [2.0]}, {}],
        "context": {"x": 8.0},
    }
    assert server.rest("/v1/models/half_plus_two:regress", body) == (200, {"results": [3.0, 6.0]})


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        (":predict", b"", 400, "JSON Parse error: The document is empty"),
        (":predict", b'{"instances": [1,}', 400, "JSON Parse error: Invalid value. at offset: 17"),
        (
            ":predict",
            b'{"instances": [1 2]}',
            400,
            "JSON Parse error: Missing a comma or ']' after an array element. at offset: 17",
        ),
        (":predict", b"{}", 400, "Missing 'inputs' or 'instances' key"),
        (":predict", b"[1]", 400, "JSON Value: [1] Is not object"),
        (
            ":predict",
            b'{"signature_name": "nope", "instances": [1]}',
            400,
            'Serving signature name: "nope" not found in signature def',
        ),
        (
            ":predict",
            b'{"instances": ["x"]}',
            400,
            (
                "Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: "
                'JSON Value: "x" Type: String is not of expected type: float'
            ),
        ),
        (
            ":predict",
            b'{"instances": [[1.0, 2.0], [3.0]]}',
            400,
            (
                "Failed to process element: 1 of 'instances' list. Error: INVALID_ARGUMENT:"
                " Expecting tensor size: 2 but got: 1"
            ),
        ),
        (":predict", b'{"inputs": {"y": [1]}}', 400, "Missing named input: x in 'inputs' object."),
        (
            "/labels/nope:predict",
            b'{"inputs": [1]}',
            400,
            "Unrecognized servable version label: nope",
        ),
        (
            "/versions/9:predict",
            b'{"inputs": [1]}',
            404,
            "Servable not found for request: Specific(half_plus_two, 9)",
        ),
        (":explain", b"{}", 400, "Malformed request: POST /v1/models/half_plus_two:explain"),
        (
            ":classify",
            b'{"examples": []}',
            400,
            "JSON Value: {\n    \"examples\": []\n} 'examples' value is an empty array",
        ),
        (
            ":regress",
            b'{"examples": [{"x": 1.0}]}',
            400,
            "No regression inputs found in SignatureDef",
        ),
    ],
)
def test_rest_refuses_by_the_real_servers_words(
    server: Server, path: str, body: bytes, status: int, error: str
) -> None:
    found, document = server.rest(f"/v1/models/half_plus_two{path}", body)
    assert found == status
    assert document["error"] == error or (
        path == ":regress" and document["error"].startswith(error)
    )


def test_status_over_rest(server: Server) -> None:
    entry = {
        "version": "1",
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    assert server.rest("/v1/models/shapes") == (200, {"model_version_status": [entry]})
    assert server.rest("/v1/models/nope") == (
        404,
        {"error": "Could not find any versions of model nope"},
    )
    assert server.rest("/v1/models") == (400, {"error": "Missing model name in request."})
    assert server.rest_text("/v2/models")[0] == 404


def test_what_json_has_no_form_for(server: Server) -> None:
    status, document = server.rest(
        "/v1/models/shapes:predict", {"instances": [1.0], "signature_name": "variables"}
    )
    assert (status, document) == (
        400,
        {"error": "Failed to get input map for signature: variables"},
    )
    request = {"signature_name": "incr_counter_by", "instances": [1.0]}
    status, document = server.rest("/v1/models/stateful_counter:predict", request)
    assert status == 400


def test_connections_are_kept_and_chunks_are_read(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=30)
    for chunked in (False, True):
        body = iter([b'{"inst', b'ances": [2.0]}']) if chunked else b'{"instances": [2.0]}'
        connection.request("POST", "/v1/models/half_plus_two:predict", body, encode_chunked=chunked)
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())) == (200, {"predictions": [3.0]})
        assert response.getheader("Content-Type") == "application/json"
        assert not response.will_close
    connection.close()


def test_metrics_for_prometheus(server: Server) -> None:
    server.call("Predict", predict("half_plus_two", x=X))
    status, text = server.rest_text("/monitoring/prometheus/metrics")
    assert status == 200
    assert "# TYPE :tensorflow:serving:request_count counter" in text
    assert ':tensorflow:serving:request_count{model_name="half_plus_two",status="OK"}' in text


def test_it_never_imports_tensorflow(server: Server) -> None:
    maps = Path(f"/proc/{server.process.pid}/maps").read_text("utf-8")
    assert "libtensorflow_cc" in maps
    assert "_pywrap_tensorflow" not in maps


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        (
            "half_plus_two:predict",
            b'{"instances": ["\\ud800"]}',
            "The surrogate pair in string is invalid.",
        ),
        (
            "half_plus_two:predict",
            b'{"instances": [1.0], "signature_name": "\xab"}',
            "not found in signature def",
        ),
        ("half_plus_two:predict", b'{"instances": [{"\xab": 1.0}]}', "does not have named input"),
        ("half_plus_two:predict", b'["\\udcab"]', "Is not object"),
        (
            "half_plus_two:regress",
            b'{"signature_name": "\xab", "examples": [{"\xab": 1.0}]}',
            "No signature was found",
        ),
        (
            "half_plus_two:regress",
            b'{"examples": [{"x": "\\ud800"}]}',
            "The surrogate pair in string is invalid.",
        ),
        (
            "half_plus_two:regress",
            b'{"examples": [{"x": -9223372036854775809, "y": "\xab"}]}',
            None,
        ),
    ],
)
def test_text_that_is_none_and_numbers_below_64_bits_are_the_requests_fault(
    server: Server, path: str, body: bytes, error: str | None
) -> None:
    status, document = server.rest(f"/v1/models/{path}", body)
    assert (
        status == 400
        and (error or "") in document["error"]
        and "stand-in: " not in document["error"]
    )

"""The requests to warm up with that fixtures hold and the encoder writes, read with the messages of
TensorFlow Serving.
"""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

import fixtures_v1
from compat_matrix.workers import warmup
from reference_impl.format.schema import TensorProto
from savedmodel_common import tensors
from savedmodel_common.serving.messages import Example, PredictionLog

ROOT = Path(fixtures_v1.ROOT)
TF = SimpleNamespace(make_tensor_proto=lambda value: TensorProto(float_val=value))


def logs(model: Path) -> list[PredictionLog]:
    """The records of a file in TFRecord's frames: length, checksum, data, checksum."""
    data, out = (model / warmup.FOLDER / warmup.FILE).read_bytes(), []
    while data:
        (size,) = struct.unpack_from("<Q", data)
        assert len(data) >= 16 + size
        out.append(PredictionLog.FromString(data[12 : 12 + size]))
        data = data[16 + size :]
    return out


def test_an_estimator_came_with_requests_of_every_kind():
    case = ROOT / "warmup_estimator"
    rows = list(tensors.load(str(case / "io" / "first-1.in.npz"))["inputs"].array)
    found = logs(case / "model")
    assert [log.WhichOneof("log_type") for log in found] == [
        "predict_log",
        "classify_log",
        "regress_log",
        "multi_inference_log",
    ]
    predict, classify, regress, multi = (
        getattr(log, log.WhichOneof("log_type")).request for log in found
    )
    assert {name: list(tensor.string_val) for name, tensor in predict.inputs.items()} == {
        "examples": rows
    }
    for request, signature in (
        (predict, "serving_default"),
        (classify, "scores"),
        (regress, "first"),
    ):
        assert (request.model_spec.name, request.model_spec.signature_name) == ("model", signature)
    for request, asked in ((classify, rows), (regress, rows[:1]), (multi, rows)):
        assert list(request.input.example_list.examples) == [
            Example.FromString(row) for row in asked
        ]
    assert [
        (task.model_spec.name, task.model_spec.signature_name, task.method_name)
        for task in multi.tasks
    ] == [
        ("model", "scores", "tensorflow/serving/classify"),
        ("model", "first", "tensorflow/serving/regress"),
    ]


def test_a_file_that_is_no_file_of_records_is_among_the_fixtures():
    """A server must refuse this model: Estimators copy whatever they are given."""
    with pytest.raises(AssertionError):
        logs(ROOT / "estimator_custom" / "model")


def test_a_long_request_is_written_whole():
    values = [float(value) for value in range(5000)]
    log = PredictionLog.FromString(
        warmup.prediction_log(TF, ("predict", "größe", {"x": values}), "m")
    )
    assert log.predict_log.request.model_spec.signature_name == "größe"
    assert list(log.predict_log.request.inputs["x"].float_val) == values


def test_a_kind_of_request_that_there_is_none_of():
    with pytest.raises(KeyError, match="session_run"):
        warmup.prediction_log(TF, ("session_run", "", {}), "m")

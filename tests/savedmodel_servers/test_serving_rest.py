"""What is asked over REST, and what is read from the answers: savedmodel_servers.rest_client."""

import numpy as np
import pytest
from serving_rest_fake import HALF, LIMIT, METADATA, PREDICT, STATUS, asking, example, fake, floats

from reference_impl.format import schema
from savedmodel_common.serving import messages
from savedmodel_common.tensors import Tensor
from savedmodel_servers import client
from savedmodel_servers.client import Class, ModelRef, VersionStatus
from savedmodel_servers.examples import NotAnExample
from savedmodel_servers.rest_client import COLUMNS, ROWS

__all__ = ["asking", "fake"]  # fixtures, imported by name


def test_predict_in_columns_then_in_rows(fake, asking):
    fake.answers[PREDICT] = '{\n    "outputs": [\n        2.5,\n        3.0\n    ]\n}'
    found = asking.predict(HALF, "serving_default", {"x": floats(1, 2)}, limit=LIMIT)
    assert (found["y"].dtype, found["y"].array.dtype, found["y"].array.tolist()) == (
        "float32",
        np.float32,
        [2.5, 3],
    )
    fake.answers[PREDICT] = '{\n    "predictions": [2.5, 3.0\n    ]\n}'
    assert asking.predict(HALF, "", {"x": floats(1, 2)}, limit=LIMIT, layout=ROWS)[
        "y"
    ].array.tolist() == [2.5, 3]
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
    assert (found["text"].dtype, found["text"].array.shape, found["text"].array.tolist()) == (
        "string",
        (),
        b"a",
    )
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
    assert "'z' " in refused("", {"x": floats(1), "z": floats(1)})
    assert "scalar" in refused("", {"x": Tensor("float32", np.float32(1))}, layout=ROWS)
    for unknown in (asking.multi_inference, asking.reload):
        with pytest.raises(client.NotRepresentable, match="no such method"):
            unknown([], *([[]] if unknown == asking.multi_inference else []), limit=LIMIT)


def test_an_input_of_another_name_is_sent_with_that_name(fake, asking):
    fake.answers[PREDICT] = (400, '{ "error": "Missing named input: x in \'inputs\' object." }')
    for layout in (ROWS, COLUMNS):
        with pytest.raises(client.ServerError, match="Missing named input"):
            asking.predict(HALF, "", {"z": floats(1)}, limit=LIMIT, layout=layout)
    assert [body for *_, body, _ in fake.asked[1:]] == [
        {"instances": [{"z": 1.0}]},
        {"inputs": {"z": [1.0]}},
    ]


def test_an_unknown_signature_is_the_servers_to_refuse(fake, asking):
    fake.answers[PREDICT] = (
        400,
        '{ "error": "Serving signature name: \\"nope\\" not found in signature def" }',
    )
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
    fake.answers.update(
        dict.fromkeys(
            ["/v1/models/half/versions/7", "/v1/models/a%20b%2Fc%3Ad/labels/l%2F1"], STATUS
        )
    )
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
    assert (two.outputs["y"].dtype, two.outputs["y"].tensor_shape.dim[0].size) == (
        schema.DT_INT64,
        -1,
    )
    assert list(two.defaults["k"].int64_val) == [2**53 + 1]
    assert two.method_name == "tensorflow/serving/predict"


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
    with pytest.raises(client.NotRepresentable, match=r"'x' .*float_list"):
        asking.regress(HALF, "", [b"\x0a\x09\x0a\x07\x0a\x01x\x12\x02\x12\x00"], limit=LIMIT)
    with pytest.raises(NotAnExample, match="context"):
        asking.regress(HALF, "", [], b"\x0a\x05", limit=LIMIT)

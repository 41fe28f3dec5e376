"""Errors that a REST server tells of, and answers that are none."""

import json

import pytest
from serving_rest_fake import HALF, LIMIT, METADATA, PREDICT, asking, fake, floats

from savedmodel_servers import client

__all__ = ["asking", "fake"]  # fixtures, imported by name


@pytest.mark.parametrize(
    "body", ["{}", '{"results": {}}', '{"results": [1.0]}', '{"results": [["a"]]}', '{"results": [[["a"]]]}',
             '{"results": [[[1, 2.0]]]}', '{"results": [[["a", "b"]]]}', '{"results": [[["a", 1.0, 2.0]]]}']
)  # fmt: skip
def test_classes_that_are_none(fake, asking, body):
    fake.answers["/v1/models/half:classify"] = body
    with pytest.raises(client.BadAnswer):
        asking.classify(HALF, "", [b""], limit=LIMIT)


@pytest.mark.parametrize(
    "body",
    ["{}", '{"results": 1.0}', '{"results": ["a"]}', '{"results": [[1.0]]}', '{"results": [1e99]}'],
)
def test_regressions_that_are_none(fake, asking, body):
    fake.answers["/v1/models/half:regress"] = body
    with pytest.raises(client.BadAnswer):
        asking.regress(HALF, "", [b""], limit=LIMIT)


ERRORS = {
    404: (
        "NOT_FOUND",
        '{ "error": "Could not find any versions of model half" }',
        "Could not find any versions of model half",
    ),
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
    assert (caught.value.code, caught.value.message, caught.value.http_status) == (
        code,
        message,
        status,
    )
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
    fake.answers["/v1/models/half/metadata"] = METADATA.replace(
        half, '"dtype": "DT_INVALID", "composite_tensor": {}'
    )
    fake.answers[PREDICT] = (400, '{"error": "no tensor \'\'"}')
    with pytest.raises(client.ServerError, match="no tensor"):
        asking.predict(HALF, "half", {"x": floats(1)}, limit=LIMIT)


def test_endless_texts_of_a_server_are_cut(fake, asking):
    fake.answers["/v1/models/half"] = (500, json.dumps({"error": "a" * 10**6}))
    with pytest.raises(client.ServerError) as caught:
        asking.status(HALF, limit=LIMIT)
    assert len(str(caught.value)) < 70_000
    fake.answers["/v1/models/half"] = json.dumps(
        {"model_version_status": [{"version": "a" * 10**6}]}
    )
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
        (
            '{"metadata": {"signature_def": {"signature_def": {"s": {"inputs": {"x": {"dtype":'
            " []}}}}}}}"
        ),
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

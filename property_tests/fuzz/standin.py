"""Requests to the stand-in server: seeds, and what it makes of them around a model that answers
what it was asked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SIGNATURE = """
inputs { key: "x" value { name: "x:0" dtype: DT_FLOAT tensor_shape { unknown_rank: true } } }
inputs { key: "s" value { name: "s:0" dtype: DT_STRING tensor_shape { unknown_rank: true } } }
outputs { key: "x" value { name: "x:0" dtype: DT_FLOAT } }
outputs { key: "s_bytes" value { name: "s:0" dtype: DT_STRING } }
"""
_FILLED = 2**22  # what is asked here is whether it holds, not whether it is small


class _Echo:
    """Answers each output with the input of its tensor."""

    def __init__(self) -> None:
        from reference_impl.format import schema
        from savedmodel_common.serving import messages
        from savedmodel_standin import memory

        memory.FILLED = _FILLED
        self.signatures = {"serving_default": schema.parse_text(messages.SignatureDef, _SIGNATURE)}

    def run(
        self, feed: Sequence[tuple[str, Any]], fetch: Sequence[str], timeout_ms: int = 0
    ) -> list[Any]:
        given = dict(feed)
        return [given[name] for name in fetch]


def requests() -> list[bytes]:
    """Of Predict over gRPC."""
    from reference_impl.format import schema
    from savedmodel_common.serving import messages

    values = [
        "dtype: DT_FLOAT tensor_shape { dim { size: 3 } dim { size: 2 } } float_val: [1, 2]",
        r'dtype: DT_FLOAT tensor_shape { dim { size: 1 } } tensor_content: "\000\000\200\077"',
        "dtype: DT_INT64 tensor_shape { dim { size: 1000 } } int64_val: [7]",
        "dtype: DT_COMPLEX64 tensor_shape { dim { size: 2 } } scomplex_val: [1, 2, 3, 4]",
        "dtype: DT_HALF tensor_shape {} half_val: 15360",
    ]
    words = [
        'dtype: DT_STRING tensor_shape { dim { size: 2 } } string_val: ["a", "bc"]',
        r'dtype: DT_STRING tensor_shape { dim { size: 2 } } tensor_content: "\001\002abc"',
    ]
    head = 'model_spec { name: "m" signature_name: "serving_default" }'
    return [
        schema.serialize(
            schema.parse_text(
                messages.PredictRequest,
                f'{head} inputs {{ key: "x" value {{ {value} }} }} inputs {{ key: "s" value {{'
                f" {word} }} }}",
            )
        )
        for value in values
        for word in words
    ]


def bodies() -> list[bytes]:
    """Of Predict over REST."""
    columns = {"x": [[1.5, -2], [3, 4e2]], "s": ["a", {"b64": "AAE="}]}
    rows = [{"x": value, "s": word} for value, word in zip(columns["x"], columns["s"])]
    documents = [
        {"inputs": columns},
        {"instances": rows},
        {"inputs": columns, "signature_name": "serving_default"},
    ]
    return [json.dumps(document).encode() for document in documents]


def example_bodies() -> list[bytes]:
    """Of Classify and Regress over REST."""
    example = {"a": 1.5, "b": [1, 2, 3], "c": ["x", {"b64": "AAE="}], "d": []}
    documents = [
        {"examples": [example, {}]},
        {"context": {"k": 1}, "examples": [{}, example], "signature_name": "s"},
    ]
    return [json.dumps(document).encode() for document in documents]


def refusals() -> tuple[type[BaseException], ...]:
    from google.protobuf.message import DecodeError

    from savedmodel_standin.errors import ServingError

    return (ServingError, DecodeError)  # the transport answers for the second


def grpc_predict(folder: Path) -> None:
    from savedmodel_common.serving import messages
    from savedmodel_standin import predict, tensor_protos

    servable: Any = _Echo()
    data = (folder / "request.pb").read_bytes()
    outputs = predict.run(servable, messages.PredictRequest.FromString(data))
    response = messages.PredictResponse()
    for alias, tensor in outputs.items():
        tensor_protos.encode(tensor, response.outputs[alias])


def rest_predict(folder: Path) -> None:
    from savedmodel_common.serving import messages
    from savedmodel_standin import json_predict, predict

    servable: Any = _Echo()
    data = (folder / "request.json").read_bytes()
    request: Any = messages.PredictRequest()
    rows = json_predict.fill_request(
        data, request, lambda name: servable.signatures["serving_default"].inputs
    )
    json.loads(
        json_predict.response(predict.run(servable, request), rows).decode("utf-8", "replace")
    )


def rest_examples(folder: Path) -> None:
    from savedmodel_common.serving import messages
    from savedmodel_standin import inference, json_examples

    data = (folder / "request.json").read_bytes()
    request: Any = messages.ClassificationRequest()
    json_examples.fill_request(data, request)
    inference._examples(request.input)

"""Answers of a server: seeds, and what a client makes of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIGNATURES: dict[str, Any] = {
    "one": {
        "inputs": {
            "x": {
                "dtype": "DT_FLOAT",
                "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False},
            }
        },
        "outputs": {
            "y": {
                "dtype": "DT_FLOAT",
                "tensor_shape": {"dim": [{"size": "-1"}, {"size": "2"}]},
                "name": "y:0",
            }
        },
        "method_name": "tensorflow/serving/predict",
    },
    "more": {
        "inputs": {
            "x": {"dtype": "DT_FLOAT", "tensor_shape": {"unknown_rank": True}, "name": "x:0"}
        },
        "outputs": {
            "k": {"dtype": "DT_INT64", "tensor_shape": {"dim": [{"size": "-1"}]}, "name": "k:0"},
            "image_bytes": {
                "dtype": "DT_STRING",
                "tensor_shape": {"unknown_rank": True},
                "name": "i:0",
            },
            "text": {
                "dtype": "DT_STRING",
                "tensor_shape": {"dim": [{"size": "-1"}]},
                "name": "t:0",
            },
            "on": {"dtype": "DT_BOOL", "tensor_shape": {"dim": [{"size": "-1"}]}, "name": "b:0"},
        },
        "method_name": "tensorflow/serving/predict",
        "defaults": {
            "x": {
                "dtype": "DT_FLOAT",
                "tensor_shape": {},
                "float_val": [1.5, "NaN"],
                "tensor_content": "AAA=",
            }
        },
    },
}
METADATA = {
    "model_spec": {"name": "m", "version": "1"},
    "metadata": {"signature_def": {"signature_def": SIGNATURES}},
}

_COLUMNS = {
    "k": [1, 2],
    "image_bytes": [{"b64": "AAE="}, {"b64": ""}],
    "text": ["a", "é"],
    "on": [True, False],
}
_ROWS = [{name: values[index] for name, values in _COLUMNS.items()} for index in range(2)]


def predict_answers() -> list[bytes]:
    values = [[1.0, -0.0], [float("nan"), 1e-7]]
    answers = [
        {"outputs": values},
        {"predictions": values},
        {"outputs": _COLUMNS},
        {"predictions": _ROWS},
        {"outputs": []},
    ]
    return [json.dumps(answer).encode() for answer in answers]


def other_answers() -> list[bytes]:
    status = {
        "version": "123",
        "state": "END",
        "status": {"error_code": "NOT_FOUND", "error_message": "gone"},
    }
    answers = [
        METADATA,
        {"model_version_status": [status]},
        {"results": [[["a", 0.5]], []]},
        {"results": [1.5, float("inf")]},
    ]
    return [json.dumps(answer).encode() for answer in answers]


def responses() -> list[bytes]:
    """Of Predict over gRPC."""
    from reference_impl.format import schema
    from savedmodel_common.serving import messages

    texts = [
        (
            'outputs { key: "y" value { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val:'
            " [1, 2] } }"
        ),
        (
            'outputs { key: "s" value { dtype: DT_STRING tensor_shape { dim { size: 2 } }'
            ' string_val: ["a", "bc"] } }'
        ),
        (
            'outputs { key: "h" value { dtype: DT_HALF tensor_shape { dim { size: 1 } } half_val:'
            ' 15360 } } model_spec { name: "m" }'
        ),
        (
            r'outputs { key: "i" value { dtype: DT_INT16 tensor_shape { dim { size: 2 } }'
            r' tensor_content: "\001\000\002\000" } }'
        ),
        'outputs { key: "c" value { dtype: DT_COMPLEX64 tensor_shape {} scomplex_val: [1, 2] } }',
    ]
    return [schema.serialize(schema.parse_text(messages.PredictResponse, text)) for text in texts]


class _Said:
    """A connection whose server has said it all."""

    def __init__(self, *bodies: bytes) -> None:
        self.bodies = list(bodies)

    def exchange(self, *_: object) -> Any:
        from savedmodel_servers.connection import Response

        return Response(200, self.bodies.pop(0))


def _each(questions: list[Callable[[], object]]) -> None:
    """Ask all of them.

    Raises what the last one refused that was refused, where no answer was taken.
    """
    from savedmodel_servers.client import ServingError

    refused: list[ServingError] = []
    for ask in questions:
        try:
            ask()
        except ServingError as error:
            refused.append(error)
    if len(refused) == len(questions):
        raise refused[-1]


def _client(*bodies: bytes) -> Any:
    from savedmodel_servers.rest_client import RestClient

    client = RestClient("127.0.0.1", 1)
    client._connection = _Said(*bodies)  # type: ignore[assignment]
    return client


def rest_predict(folder: Path) -> None:
    import numpy as np

    from property_tests.fuzz.parsers import Wrong
    from savedmodel_common.tensors import CARRIERS, Tensor
    from savedmodel_servers.client import ModelRef
    from savedmodel_servers.rest_client import COLUMNS, ROWS

    data, metadata = (folder / "answer.json").read_bytes(), json.dumps(METADATA).encode()
    x = {"x": Tensor("float32", np.float32([1]))}

    def ask(signature: str, layout: str) -> None:
        found = _client(metadata, data).predict(ModelRef("m"), signature, x, limit=1, layout=layout)
        if set(found) != set(SIGNATURES[signature]["outputs"]):
            raise Wrong("other outputs")
        if any(
            str(tensor.array.dtype) != CARRIERS.get(tensor.dtype, "object")
            for tensor in found.values()
        ):
            raise Wrong("an array of another type")

    _each([lambda s=s, l=l: ask(s, l) for s in SIGNATURES for l in (COLUMNS, ROWS)])  # type: ignore[misc]  # noqa: E741


def rest_other(folder: Path) -> None:
    from savedmodel_servers.client import ModelRef

    data, ref = (folder / "answer.json").read_bytes(), ModelRef("m")
    _each(
        [
            lambda: _client(data).status(ref, limit=1),
            lambda: _client(data).metadata(ref, limit=1),
            lambda: _client(data).classify(ref, "", [b""], limit=1),
            lambda: _client(data).regress(ref, "", [b""], limit=1),
        ]
    )


def grpc_predict(folder: Path) -> None:
    from property_tests.fuzz.parsers import Wrong
    from reference_impl.format import limits, schema
    from savedmodel_common.serving import messages, tensors
    from savedmodel_common.tensors import CARRIERS

    limits.TENSOR_BYTES = 2**24  # what is asked here is whether it holds, not whether it is small
    answer = schema.parse(messages.PredictResponse, (folder / "answer.pb").read_bytes())
    for tensor in tensors.from_protos(answer.outputs).values():
        if str(tensor.array.dtype) != CARRIERS.get(tensor.dtype, "object"):
            raise Wrong("an array of another type")


_QUESTIONS = ("GetModelStatus", "GetModelMetadata", "Classify", "Regress", "MultiInference")


def other_responses() -> list[bytes]:
    """Of the other methods over gRPC, each behind the number of its method."""
    from reference_impl.format import schema
    from savedmodel_common.serving import messages

    packed = schema.parse_text(
        messages.SignatureDefMap,
        'signature_def { key: "s" value { method_name: "p" inputs { key: "x" value { name: "x:0"'
        " dtype: DT_FLOAT } } } }",
    )
    classes = 'classifications { classes { label: "a" score: 0.5 } }'
    texts = (
        (
            "model_version_status { version: 3 state: AVAILABLE status { error_code: NOT_FOUND"
            ' error_message: "gone" } }'
        ),
        'model_spec { name: "m" }',
        f"result {{ {classes} }}",
        "result { regressions { value: 1.5 } }",
        f"results {{ classification_result {{ {classes} }} }}",
    )
    found = []
    for number, (name, text) in enumerate(zip(_QUESTIONS, texts)):
        answer = schema.parse_text(messages.METHODS[name].response, text)
        if name == "GetModelMetadata":
            answer.metadata["signature_def"].Pack(packed)
        found.append(bytes([number]) + schema.serialize(answer))
    return found


def mutate_other(seeds: list[bytes]) -> Callable[[random.Random, bytes], bytes]:
    """Changes an answer as a message of its method."""
    from property_tests.fuzz import mutation
    from property_tests.fuzz.wire import Mutator
    from savedmodel_common.serving import messages

    bodies = [
        [data[1:] for data in seeds if data[0] == number] for number in range(len(_QUESTIONS))
    ]
    mutators = [
        Mutator(messages.METHODS[name].response, found) for name, found in zip(_QUESTIONS, bodies)
    ]

    def mutate(rng: random.Random, data: bytes) -> bytes:
        number = data[0] % len(_QUESTIONS) if data else 0
        if rng.random() < 0.85:
            return bytes([number]) + mutators[number].mutate(rng, data[1:])
        return bytes([number]) + mutation.mutate(rng, data[1:], bodies[number])

    return mutate


class _Channel:
    """A gRPC channel whose server has said it all."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    def unary_unary(self, _: str) -> Callable[..., bytes]:
        return lambda data, timeout: self.answer


def grpc_other(folder: Path) -> None:
    from types import SimpleNamespace

    from savedmodel_servers.client import ModelRef, Task
    from savedmodel_servers.grpc_client import GrpcClient

    data, ref = (folder / "answer.pb").read_bytes(), ModelRef("m")
    client = GrpcClient.__new__(GrpcClient)  # there need be no gRPC to read its messages
    vars(client).update(
        _grpc=SimpleNamespace(RpcError=OSError),
        _closed=False,
        _max_bytes=1 << 20,
        _channel=_Channel(data[1:]),
    )
    name = _QUESTIONS[(data[0] if data else 0) % len(_QUESTIONS)]
    if name == "GetModelStatus":
        client.status(ref, limit=1)
    elif name == "GetModelMetadata":
        client.metadata(ref, limit=1)
    elif name == "Classify":
        client.classify(ref, "", [b""], limit=1)
    elif name == "Regress":
        client.regress(ref, "", [b""], limit=1)
    else:
        client.multi_inference([Task(ref, "", "m")], [b""], limit=1)


def serving_errors() -> tuple[type[Exception], ...]:
    from reference_impl.errors import SavedModelError
    from savedmodel_servers.client import ServingError

    return ServingError, SavedModelError

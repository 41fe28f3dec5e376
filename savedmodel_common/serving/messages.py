"""TensorFlow Serving's messages and methods, by the names of its API.

`METHODS["Predict"].path` is the gRPC method `/tensorflow.serving.PredictionService/Predict`; a
method of a generated stub is its path, a class to serialise and a class to parse, so that a client
and a server need no more than this.
"""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import Message

from reference_impl.format.names import DEFAULT_SIGNATURE as DEFAULT_SIGNATURE
from reference_impl.format.schema import SignatureDef as SignatureDef
from reference_impl.format.schema import TensorProto as TensorProto
from reference_impl.format.schema import _pool

from .schema import *  # noqa: F403  (all messages, by name)
from .schema import ModelVersionStatus

SERVICES = ("tensorflow.serving.PredictionService", "tensorflow.serving.ModelService")

# SignatureDef.method_name
CLASSIFY_METHOD = "tensorflow/serving/classify"
REGRESS_METHOD = "tensorflow/serving/regress"
PREDICT_METHOD = "tensorflow/serving/predict"


class Method(NamedTuple):
    """One unary method of a gRPC service."""

    path: str
    request: type[Message]
    response: type[Message]


def _methods() -> dict[str, Method]:
    schema = _pool.schema()
    found = {}
    for name in SERVICES:
        for method in schema.pool.FindServiceByName(name).methods:
            classes = (
                schema.message_class(kind) for kind in (method.input_type, method.output_type)
            )
            found[method.name] = Method(f"/{name}/{method.name}", *classes)
    return found


METHODS = _methods()


def state_name(state: int) -> str:
    """ "AVAILABLE" of a ModelVersionStatus.State; "UNKNOWN" of a number that has no name."""
    states = ModelVersionStatus.State
    return states.Name(state) if state in states.values() else "UNKNOWN"

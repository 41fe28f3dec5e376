"""TensorFlow Serving's messages and methods, by the names of its API.

`METHODS["Predict"].path` is the gRPC method `/tensorflow.serving.PredictionService/Predict`; a method of a generated stub is its
path, a class to serialise and a class to parse, so that a client and a server need no more than this.
"""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import Message

from reference_impl.format.names import DEFAULT_SIGNATURE as DEFAULT_SIGNATURE
from reference_impl.format.schema import SignatureDef as SignatureDef
from reference_impl.format.schema import TensorProto as TensorProto
from reference_impl.format.schema import _pool

from .schema import BatchingParameters as BatchingParameters
from .schema import ClassificationRequest as ClassificationRequest
from .schema import ClassificationResponse as ClassificationResponse
from .schema import ClassificationResult as ClassificationResult
from .schema import Classifications as Classifications
from .schema import Example as Example
from .schema import Feature as Feature
from .schema import FileSystemStoragePathSourceConfig as FileSystemStoragePathSourceConfig
from .schema import GetModelMetadataRequest as GetModelMetadataRequest
from .schema import GetModelMetadataResponse as GetModelMetadataResponse
from .schema import GetModelStatusRequest as GetModelStatusRequest
from .schema import GetModelStatusResponse as GetModelStatusResponse
from .schema import InferenceResult as InferenceResult
from .schema import InferenceTask as InferenceTask
from .schema import Input as Input
from .schema import ModelConfig as ModelConfig
from .schema import ModelServerConfig as ModelServerConfig
from .schema import ModelSpec as ModelSpec
from .schema import ModelVersionStatus as ModelVersionStatus
from .schema import MonitoringConfig as MonitoringConfig
from .schema import MultiInferenceRequest as MultiInferenceRequest
from .schema import MultiInferenceResponse as MultiInferenceResponse
from .schema import PredictionLog as PredictionLog
from .schema import PredictRequest as PredictRequest
from .schema import PredictResponse as PredictResponse
from .schema import RawModelStatusResponse as RawModelStatusResponse
from .schema import RawReloadConfigResponse as RawReloadConfigResponse
from .schema import RegressionRequest as RegressionRequest
from .schema import RegressionResponse as RegressionResponse
from .schema import RegressionResult as RegressionResult
from .schema import ReloadConfigRequest as ReloadConfigRequest
from .schema import ReloadConfigResponse as ReloadConfigResponse
from .schema import SignatureDefMap as SignatureDefMap
from .schema import StatusProto as StatusProto

SERVICES = ("tensorflow.serving.PredictionService", "tensorflow.serving.ModelService")

# What a ModelSpec without a signature name means.

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
            classes = (schema.message_class(kind) for kind in (method.input_type, method.output_type))
            found[method.name] = Method(f"/{name}/{method.name}", *classes)
    return found


METHODS = _methods()


def state_name(state: int) -> str:
    """ "AVAILABLE" of a ModelVersionStatus.State; "UNKNOWN" of a number that has no name."""
    states = ModelVersionStatus.State
    return states.Name(state) if state in states.values() else "UNKNOWN"

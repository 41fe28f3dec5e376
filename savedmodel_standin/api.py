"""The methods of PredictionService and ModelService, message in and message out, independent of the
transport.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from savedmodel_common.serving import messages
from savedmodel_common.tensors import Tensor
from savedmodel_standin import (
    inference,
    log,
    metrics,
    predict,
    states,
    tensor_protos,
)
from savedmodel_standin.core import Core
from savedmodel_standin.errors import NUMBERS, ServingError, invalid
from savedmodel_standin.servable import Servable

SIGNATURE_DEF = "signature_def"


class Api:
    """Every method raises :class:`ServingError`; ``timeout_ms`` 0 means no limit."""

    def __init__(self, core: Core, flags: dict[str, Any]) -> None:
        self._core = core
        self._check = bool(flags["enable_signature_method_name_check"])
        self._as_content = bool(flags["enable_serialization_as_tensor_content"])

    def servable(self, spec: Any) -> contextlib.AbstractContextManager[tuple[Servable, int]]:
        """Return the servable that a ModelSpec means, and its version; it is not unloaded
        meanwhile.
        """
        return self._core.held(spec)

    def predict_tensors(self, request: Any, timeout_ms: int = 0) -> tuple[dict[str, Tensor], int]:
        """Return the outputs by alias, and the version that answered."""
        _need_spec(request)
        with _counted(request.model_spec), self.servable(request.model_spec) as (servable, version):
            return predict.run(servable, request, timeout_ms, self._check), version

    def Predict(self, request: Any, timeout_ms: int = 0) -> Any:
        outputs, version = self.predict_tensors(request, timeout_ms)
        response = messages.PredictResponse()
        for alias, tensor in outputs.items():
            tensor_protos.encode(tensor, response.outputs[alias], self._as_content)
        _echo(response.model_spec, request.model_spec, version)
        return response

    def Classify(self, request: Any, timeout_ms: int = 0) -> Any:
        return self._by_examples(
            request, messages.CLASSIFY_METHOD, messages.ClassificationResponse(), timeout_ms
        )

    def Regress(self, request: Any, timeout_ms: int = 0) -> Any:
        return self._by_examples(
            request, messages.REGRESS_METHOD, messages.RegressionResponse(), timeout_ms
        )

    def _by_examples(self, request: Any, method: str, response: Any, timeout_ms: int) -> Any:
        _need_spec(request)
        with _counted(request.model_spec), self.servable(request.model_spec) as (servable, version):
            inference.answer(servable, request, method, response.result, timeout_ms, self._check)
        _echo(response.model_spec, request.model_spec, version)
        return response

    def MultiInference(self, request: Any, timeout_ms: int = 0) -> Any:
        response = messages.MultiInferenceResponse()
        spec = request.tasks[0].model_spec if request.tasks else messages.ModelSpec()
        with _counted(spec), self.servable(spec) as (servable, version):
            inference.multi_inference(servable, request, response, timeout_ms, self._check)
        for task, result in zip(request.tasks, response.results):
            _echo(result.model_spec, task.model_spec, version)
        return response

    def GetModelMetadata(self, request: Any, timeout_ms: int = 0) -> Any:
        _need_spec(request)
        if not request.metadata_field:
            raise invalid("GetModelMetadataRequest must specify at least one metadata_field")
        for field in request.metadata_field:
            if field != SIGNATURE_DEF:
                raise invalid(f"Metadata field {field} is not supported")
        response = messages.GetModelMetadataResponse()
        with self.servable(request.model_spec) as (servable, version):
            signatures = messages.SignatureDefMap()
            for name, signature in servable.signatures.items():
                signatures.signature_def[name].CopyFrom(signature)
        response.model_spec.name = request.model_spec.name
        response.model_spec.version.value = version
        packed = response.metadata[SIGNATURE_DEF]
        packed.type_url = "type.googleapis.com/tensorflow.serving.SignatureDefMap"
        packed.value = signatures.SerializeToString()
        return response

    def GetModelStatus(self, request: Any, timeout_ms: int = 0) -> Any:
        _need_spec(request)
        spec = request.model_spec
        known = self._core.monitor.versions(spec.name)
        if spec.WhichOneof("version_choice") == "version":
            if spec.version.value not in known:
                raise ServingError(
                    "NOT_FOUND", f"Could not find version {spec.version.value} of model {spec.name}"
                )
            known = {spec.version.value: known[spec.version.value]}
        if not known:
            raise ServingError("NOT_FOUND", f"Could not find any versions of model {spec.name}")
        response = messages.GetModelStatusResponse()
        for version, entry in known.items():
            _fill_status(response.model_version_status.add(), version, entry)
        return response

    def HandleReloadConfigRequest(self, request: Any, timeout_ms: int = 0) -> Any:
        if request.config.WhichOneof("config") != "model_config_list":
            raise invalid(
                "ServerModelConfig type not supported by HandleReloadConfigRequest. Only"
                " ModelConfigList is currently supported"
            )
        for index, model in enumerate(request.config.model_config_list.config):
            place = (
                f"index : {index}\n\tpath : {model.base_path}\n\tname : {model.name}\n\tplatform :"
                f" {model.model_platform}"
            )
            log.info("api", f"\nConfig entry\n\t{place}")
        try:
            self._core.reload(request.config)
        except ServingError as error:
            log.error("api", f"ReloadConfig failed: {error.message}")
            raise
        response = messages.ReloadConfigResponse()
        response.status.error_code = NUMBERS["OK"]
        return response


def _need_spec(request: Any) -> None:
    if not request.HasField("model_spec"):
        raise invalid("Missing ModelSpec")


@contextlib.contextmanager
def _counted(spec: Any) -> Iterator[None]:
    code = "OK"
    try:
        yield
    except ServingError as error:
        code = error.code
        raise
    finally:
        metrics.count(metrics.REQUESTS, model_name=spec.name, status=code)


def _echo(answered: Any, asked: Any, version: int) -> None:
    answered.name = asked.name
    answered.signature_name = predict.signature_name(asked)
    answered.version.value = version


def _fill_status(status: Any, version: int, entry: states.Entry) -> None:
    status.version = version
    status.state = messages.ModelVersionStatus.State.Value(entry.state)
    status.status.SetInParent()
    if entry.error is not None:
        status.status.error_code = entry.error.number
        status.status.error_message = entry.error.message

"""The client over gRPC: PredictionService and ModelService.

The only module that imports grpc, and only when a client is made.
"""

from __future__ import annotations

import importlib
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any, Union

from google.protobuf.message import Message

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.schema import SignatureDef
from savedmodel_common.extras import install
from savedmodel_common.serving import messages, tensors
from savedmodel_common.tensors import Tensor

from . import examples as example_lists
from .client import (
    GRPC,
    MAX_MESSAGE_BYTES,
    BadAnswer,
    Class,
    Classified,
    Client,
    ModelRef,
    NotInstalled,
    NotRepresentable,
    Regressed,
    ServerError,
    Task,
    Timeout,
    Unreachable,
    VersionStatus,
    as_text,
    statuses,
)

INSTALL = install("serving")

_SIGNATURES = "signature_def"  # the one metadata field there is

# gRPC itself reports a lost connection under the same codes as a server may send. Only its texts
# tell them apart (1.60 to 1.85).
_TRANSPORT_TEXTS = (
    "failed to connect to all addresses",
    "empty address list",
    "dns resolution failed",
    "domain name not found",
    "socket closed",
    "connection reset",
    "connection refused",
    "broken pipe",
    "stream removed",
    "transport closed",
    "too_many_pings",
    "goaway",
    "recvmsg:",
    "sendmsg:",
    "channel closed",
    "failed parsing http/2",
)
_TRANSPORT_CODES = ("UNAVAILABLE", "UNKNOWN", "INTERNAL", "CANCELLED")


class GrpcClient(Client):
    """Asks a server over gRPC. Raises NotInstalled.

    ``host``: an IPv6 address without brackets; ``max_bytes``: of one message in either direction.
    """

    transport = GRPC

    def __init__(self, host: str, port: int, *, max_bytes: int = MAX_MESSAGE_BYTES) -> None:
        try:
            self._grpc: Any = importlib.import_module("grpc")
        except ImportError as error:
            raise NotInstalled(f"there is no grpc; {INSTALL}", GRPC, "connect") from error
        self._address, self._max_bytes, self._closed = (host, port), max_bytes, False
        self._channel = self._grpc.insecure_channel(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
            options=[
                ("grpc.max_receive_message_length", max_bytes),
                # A request is sent once and only to the intended server: no proxy, no retries, no
                # connection shared with a client of an earlier server on this port.
                ("grpc.enable_http_proxy", 0),
                ("grpc.enable_retries", 0),
                ("grpc.use_local_subchannel_pool", 1),
                # A starting server is queried repeatedly; gRPC would soon wait two minutes between
                # its attempts.
                ("grpc.initial_reconnect_backoff_ms", 100),
                (
                    "grpc.min_reconnect_backoff_ms",
                    5000,
                ),  # despite its name, the time for one attempt
                ("grpc.max_reconnect_backoff_ms", 500),
            ],
        )

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._channel.close()

    def status(self, ref: ModelRef, *, limit: float) -> list[VersionStatus]:
        request = messages.GetModelStatusRequest(model_spec=_spec(ref))
        return statuses(
            self._call("GetModelStatus", request, limit, messages.RawModelStatusResponse)
        )

    def metadata(self, ref: ModelRef, *, limit: float) -> dict[str, SignatureDef]:
        request = messages.GetModelMetadataRequest(
            model_spec=_spec(ref), metadata_field=[_SIGNATURES]
        )
        answer = self._call("GetModelMetadata", request, limit)
        packed, found = answer.metadata[_SIGNATURES], messages.SignatureDefMap()
        if not packed.Is(found.DESCRIPTOR):
            raise BadAnswer(
                f"no SignatureDefMap but {packed.type_url or 'nothing'}", GRPC, "GetModelMetadata"
            )
        found = self._parse("GetModelMetadata", messages.SignatureDefMap, packed.value)
        return {key: found.signature_def[key] for key in sorted(found.signature_def)}

    def predict(
        self,
        ref: ModelRef,
        signature: str,
        inputs: Mapping[str, Tensor],
        outputs: Sequence[str] = (),
        *,
        limit: float,
    ) -> dict[str, Tensor]:
        request = messages.PredictRequest(model_spec=_spec(ref, signature), output_filter=outputs)
        for name, tensor in inputs.items():
            request.inputs[name].CopyFrom(tensors.to_proto(tensor))
        answer = self._call("Predict", request, limit)
        missing = sorted(set(outputs) - set(answer.outputs))
        if missing:
            raise BadAnswer(
                f"the output {missing[0]!r} is missing; there are {sorted(answer.outputs)}",
                GRPC,
                "Predict",
            )
        try:
            return tensors.from_protos(answer.outputs)
        except errors.SavedModelError as error:
            raise BadAnswer(f"output {error}", GRPC, "Predict") from error

    def classify(
        self,
        ref: ModelRef,
        signature: str,
        examples: Sequence[bytes],
        context: bytes | None = None,
        *,
        limit: float,
    ) -> Classified:
        request = messages.ClassificationRequest(
            model_spec=_spec(ref, signature), input=example_lists.pack(examples, context)
        )
        return _classified(self._call("Classify", request, limit).result)

    def regress(
        self,
        ref: ModelRef,
        signature: str,
        examples: Sequence[bytes],
        context: bytes | None = None,
        *,
        limit: float,
    ) -> Regressed:
        request = messages.RegressionRequest(
            model_spec=_spec(ref, signature), input=example_lists.pack(examples, context)
        )
        return _regressed(self._call("Regress", request, limit).result)

    def multi_inference(
        self,
        tasks: Sequence[Task],
        examples: Sequence[bytes],
        context: bytes | None = None,
        *,
        limit: float,
    ) -> list[Union[Classified, Regressed]]:
        request = messages.MultiInferenceRequest(input=example_lists.pack(examples, context))
        for task in tasks:
            request.tasks.add(model_spec=_spec(task.ref, task.signature), method_name=task.method)
        results = self._call("MultiInference", request, limit).results
        if len(results) != len(tasks):
            raise BadAnswer(
                f"{len(results)} results for {len(tasks)} tasks", GRPC, "MultiInference"
            )
        return [
            _classified(item.classification_result)
            if item.WhichOneof("result") == "classification_result"
            else _regressed(item.regression_result)
            for item in results
        ]

    def reload(self, configs: Sequence[messages.ModelConfig], *, limit: float) -> None:
        request = messages.ReloadConfigRequest()
        request.config.model_config_list.SetInParent()  # an empty list removes every model
        request.config.model_config_list.config.extend(configs)
        status = self._call(
            "HandleReloadConfigRequest", request, limit, messages.RawReloadConfigResponse
        ).status
        if status.error_code:
            raise ServerError(
                _code_name(status.error_code),
                as_text(status.error_message),
                GRPC,
                "HandleReloadConfigRequest",
            )

    def _call(
        self, name: str, request: Message, limit: float, response: type[Any] | None = None
    ) -> Any:
        method = messages.METHODS[name]
        if self._closed:
            raise Unreachable("this client is closed", GRPC, name)
        try:
            data = schema.serialize(request)
        except errors.LimitError as error:
            raise NotRepresentable(str(error), GRPC, name) from error
        if len(data) > self._max_bytes:
            raise NotRepresentable(
                f"the request has {len(data)} bytes; {self._max_bytes} may be sent", GRPC, name
            )
        started = time.monotonic()
        try:
            # No functions that pack and unpack: gRPC would report their errors as its own.
            answer = self._channel.unary_unary(method.path)(data, timeout=limit)
        except self._grpc.RpcError as error:
            raise self._explained(error, name, limit, time.monotonic() - started) from error
        return self._parse(name, response or method.response, answer)

    def _parse(self, name: str, cls: type[Any], data: bytes) -> Any:
        try:
            return schema.parse(cls, data)
        except errors.SavedModelError as error:
            raise BadAnswer(f"no {cls.DESCRIPTOR.name}: {error}", GRPC, name) from error

    def _explained(self, error: Any, name: str, limit: float, elapsed: float) -> Exception:
        """Return our own error for an error of gRPC, nearly all of whose codes a server may also
        send.
        """
        code, text = error.code().name, error.details() or ""
        if code == "DEADLINE_EXCEEDED" and (
            elapsed >= limit or text.startswith("Deadline Exceeded")
        ):
            return Timeout(f"no answer within {limit:g} s", GRPC, name)
        if code == "RESOURCE_EXHAUSTED" and f"vs. {self._max_bytes})" in text:
            return BadAnswer(f"an answer of more than {self._max_bytes} bytes: {text}", GRPC, name)
        if code in _TRANSPORT_CODES and any(part in text.lower() for part in _TRANSPORT_TEXTS):
            return Unreachable(text, GRPC, name)
        if code == "UNAVAILABLE" and not self._listens(limit - elapsed):
            return Unreachable(text or "the connection was lost", GRPC, name)
        return ServerError(code, text, GRPC, name)

    def _listens(self, limit: float) -> bool:
        try:
            socket.create_connection(self._address, timeout=min(max(limit, 0.01), 1)).close()
        except OSError:
            return False
        return True


def _spec(ref: ModelRef, signature: str = "") -> messages.ModelSpec:
    spec = messages.ModelSpec(name=ref.name, signature_name=signature)
    if ref.version is not None:
        spec.version.value = ref.version
    elif ref.label is not None:
        spec.version_label = ref.label
    return spec


def _classified(result: messages.ClassificationResult) -> Classified:
    return [_classes(row) for row in result.classifications]


def _classes(row: messages.Classifications) -> list[Class]:
    return [Class(item.label, item.score) for item in row.classes]


def _regressed(result: messages.RegressionResult) -> Regressed:
    return [item.value for item in result.regressions]


def _code_name(code: int) -> str:
    known: Any = schema.Code
    return str(known.Name(code)) if code in known.values() else "UNKNOWN"

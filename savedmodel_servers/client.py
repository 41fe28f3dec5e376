"""The interface of a serving client, over either transport, and its errors.

No transport is imported here.

    with GrpcClient("127.0.0.1", 8500) as client:
        client.predict(ModelRef("half_plus_two"), "serving_default", {"x": Tensor("float32", x)},
        limit=30)

Every call takes `limit`, the seconds after which it ends with `Timeout` whatever the server does.
The server is not trusted: an invalid or too large answer is a `BadAnswer`.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar, Union

from savedmodel_common.tensors import Tensor

if TYPE_CHECKING:
    from reference_impl.format.schema import SignatureDef
    from savedmodel_common.serving.schema import (
        GetModelStatusResponse,
        ModelConfig,
        RawModelStatusResponse,
    )

GRPC, REST = "grpc", "rest"

# The most bytes of one message. The same limit holds for a tensor of the format layer
# (`reference_impl.format.limits.TENSOR_BYTES`).
MAX_MESSAGE_BYTES = 2**30

# The most characters of a server's error text, which may quote a whole tensor.
MAX_ERROR_TEXT = 2**16


class ServingError(Exception):
    """A request to a server that did not end in an answer.

    Attributes:
      transport: "grpc" or "rest".
      method: the method called, e.g. "Predict".
    """

    def __init__(self, message: str, transport: str, method: str) -> None:
        super().__init__(f"{method} over {transport}: {message[:MAX_ERROR_TEXT]}")
        self.transport, self.method = transport, method


class ServerError(ServingError):
    """The server answered with an error.

    Attributes:
      code: a canonical code by its name, "NOT_FOUND"; over REST the likeliest one of `codes`.
      codes: all possible codes. HTTP has fewer: status 400 is INVALID_ARGUMENT, FAILED_PRECONDITION
        or OUT_OF_RANGE.
      message: the server's text, without additions of ours.
      http_status: the HTTP status over REST, else 0.
    """

    def __init__(
        self,
        code: str,
        message: str,
        transport: str,
        method: str,
        http_status: int = 0,
        codes: Sequence[str] = (),
    ) -> None:
        self.code, self.codes, self.http_status = code, tuple(codes) or (code,), http_status
        self.message = message[:MAX_ERROR_TEXT]
        super().__init__(f"{code}: {self.message}", transport, method)


class Unreachable(ServingError):
    """Raised when there is no connection or it broke before an answer: the server is not up yet, or
    gone.
    """


class Timeout(ServingError):
    """Raised when no answer came within the limit.

    The server may still be working on the request.
    """


class BadAnswer(ServingError):
    """Raised for an invalid answer: broken JSON or bytes, a missing output, a tensor that
    contradicts its own shape.
    """


class NotRepresentable(ServingError):
    """Raised when the transport cannot carry the request or the answer (a complex number in JSON).

    The model is not at fault.
    """


class NotInstalled(ServingError):
    """Raised when the package for this transport is missing; the text has the command that installs
    it.
    """


@dataclass(frozen=True)
class ModelRef:
    """A model of a server: its latest version, one version, or the version under a label.

    Raises ValueError for both.
    """

    name: str
    version: int | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        if self.version is not None and self.label is not None:
            raise ValueError("a model is asked by its version or by a label, not by both")


class VersionStatus(NamedTuple):
    """One version of a model, as the server sees it."""

    version: int
    state: str  # "START", "LOADING", "AVAILABLE", "UNLOADING", "END" or "UNKNOWN"
    error_code: int  # canonical; 0 is OK
    error_message: str


def as_text(message: str | bytes) -> str:
    """Return the text of an error message.

    Where bytes are not UTF-8 there is a replacement character.
    """
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else message


def statuses(answer: Union[GetModelStatusResponse, RawModelStatusResponse]) -> list[VersionStatus]:
    """Return the statuses in the message of either transport."""
    from savedmodel_common.serving.messages import state_name

    return [
        VersionStatus(
            item.version,
            state_name(item.state),
            item.status.error_code,
            as_text(item.status.error_message),
        )
        for item in answer.model_version_status
    ]


class Class(NamedTuple):
    """One class of a classification. The score is a float32."""

    label: str
    score: float


class Task(NamedTuple):
    """One part of a MultiInference: a signature and its method ("tensorflow/serving/classify" or
    ".../regress").
    """

    ref: ModelRef
    signature: str
    method: str


Classified = list[list[Class]]  # of each example
Regressed = list[float]  # of each example; float32 values

C = TypeVar("C", bound="Client")


class Client(abc.ABC):
    """A client of one server over one transport.

    It must not be used by several threads at once. Close it, or use it in a `with`.

    Every method raises ServerError, Unreachable, Timeout, BadAnswer, NotRepresentable.

    Args of the methods:
      ref: the model.
      signature: key of the signature; "" means "serving_default".
      limit: seconds for the whole call.
    """

    transport: ClassVar[str]

    @abc.abstractmethod
    def status(self, ref: ModelRef, *, limit: float) -> list[VersionStatus]:
        """Return the versions that the server has or had of a model.

        NOT_FOUND for a model it never had.
        """

    @abc.abstractmethod
    def metadata(self, ref: ModelRef, *, limit: float) -> dict[str, SignatureDef]:
        """Return the signatures of the model, by key."""

    @abc.abstractmethod
    def predict(
        self,
        ref: ModelRef,
        signature: str,
        inputs: Mapping[str, Tensor],
        outputs: Sequence[str] = (),
        *,
        limit: float,
    ) -> dict[str, Tensor]:
        """Call a signature.

        Args:
          inputs: the tensors by the names of the signature.
          outputs: the wanted names; empty for all. REST has no such filter: all are computed, only
            the wanted ones are returned.
        """

    @abc.abstractmethod
    def classify(
        self,
        ref: ModelRef,
        signature: str,
        examples: Sequence[bytes],
        context: bytes | None = None,
        *,
        limit: float,
    ) -> Classified:
        """Call a signature of the method classify.

        Args:
          examples: serialised `tf.Example`s.
          context: an example whose features are added to all of them.
        """

    @abc.abstractmethod
    def regress(
        self,
        ref: ModelRef,
        signature: str,
        examples: Sequence[bytes],
        context: bytes | None = None,
        *,
        limit: float,
    ) -> Regressed:
        """Call a signature of the method regress; see `classify`."""

    def multi_inference(
        self,
        tasks: Sequence[Task],
        examples: Sequence[bytes],
        context: bytes | None = None,
        *,
        limit: float,
    ) -> list[Union[Classified, Regressed]]:
        """Call several signatures of one model with the same examples; return an answer for each
        task.
        """
        raise NotRepresentable("there is no such method", self.transport, "MultiInference")

    def reload(self, configs: Sequence[ModelConfig], *, limit: float) -> None:
        """Replace the models that the server holds.

        Returns when they are loaded or have failed to load.
        """
        raise NotRepresentable(
            "there is no such method", self.transport, "HandleReloadConfigRequest"
        )

    @abc.abstractmethod
    def close(self) -> None:
        """Close the connection. May be called twice."""

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

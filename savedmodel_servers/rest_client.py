"""The client over REST.

Facts missing in JSON (dtypes, the name of a single output) come from the model's metadata.
"""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message

from reference_impl import errors
from reference_impl.format.schema import SignatureDef, _pool
from savedmodel_common.serving import messages
from savedmodel_common.tensors import Tensor
from savedmodel_servers import connection, rest_json

from . import examples as example_lists
from .client import (
    REST,
    BadAnswer,
    Class,
    Classified,
    Client,
    ModelRef,
    NotRepresentable,
    Regressed,
    ServerError,
    Timeout,
    Unreachable,
    VersionStatus,
    statuses,
)
from .rest_json import CannotSay, Unreadable

ROWS, COLUMNS = "rows", "columns"

# The canonical codes that the server turns into a status, the likeliest first.
_CODES = {
    400: ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"),
    401: ("UNAUTHENTICATED",),
    403: ("PERMISSION_DENIED",),
    404: ("NOT_FOUND",),
    409: ("ABORTED", "ALREADY_EXISTS"),
    429: ("RESOURCE_EXHAUSTED",),
    499: ("CANCELLED",),
    500: ("INTERNAL", "UNKNOWN", "DATA_LOSS"),
    501: ("UNIMPLEMENTED",),
    503: ("UNAVAILABLE",),
    504: ("DEADLINE_EXCEEDED",),
}

T = TypeVar("T")


class RestClient(Client):
    """Asks a server over REST.

    ``host``: an IPv6 address without brackets; ``max_bytes``: of an answer.

    The metadata of a model is asked once: make another client when another model may have come
    under an old name. ``known``: SignatureDefs of models, by name and key. A client that was
    written for them goes by them, whatever model answers, and passes over outputs that they do not
    name.
    """

    transport = REST

    def __init__(
        self,
        host: str,
        port: int,
        *,
        max_bytes: int = connection.MAX_BODY_BYTES,
        known: Mapping[str, Mapping[str, SignatureDef]] | None = None,
    ) -> None:
        self._connection = connection.Connection(host, port, max_bytes)
        self._known = known or {}
        self._signatures: dict[ModelRef, dict[str, SignatureDef]] = {}

    def close(self) -> None:
        self._connection.close()

    def status(self, ref: ModelRef, *, limit: float) -> list[VersionStatus]:
        answer = self._ask("GetModelStatus", "GET", _path(ref), None, limit)
        return statuses(_message("GetModelStatus", messages.GetModelStatusResponse, answer))

    def metadata(self, ref: ModelRef, *, limit: float) -> dict[str, SignatureDef]:
        answer = self._ask("GetModelMetadata", "GET", _path(ref) + "/metadata", None, limit)
        try:
            packed = answer["metadata"]["signature_def"]
        except (KeyError, TypeError) as error:
            raise BadAnswer("no signature_def in the metadata", REST, "GetModelMetadata") from error
        found = _message("GetModelMetadata", messages.SignatureDefMap, packed)
        self._signatures[ref] = {
            key: found.signature_def[key] for key in sorted(found.signature_def)
        }
        return dict(self._signatures[ref])

    def predict(
        self,
        ref: ModelRef,
        signature: str,
        inputs: Mapping[str, Tensor],
        outputs: Sequence[str] = (),
        *,
        limit: float,
        layout: Optional[str] = None,
    ) -> dict[str, Tensor]:
        """Call a signature; see `Client.predict`.

        Args:
          layout: ROWS or COLUMNS; by default columns, which carry every shape that rows carry and
            more. In rows, the server also wants all outputs to have one first dimension.
        """
        started = time.monotonic()
        fixed = self._known.get(ref.name)
        signatures = fixed or self._signatures.get(ref) or self.metadata(ref, limit=limit)
        limit -= time.monotonic() - started
        known = signatures.get(signature or messages.DEFAULT_SIGNATURE)
        if known is None:  # the server has an error for it, to whatever is asked
            known = SignatureDef()
            request = _said("Predict", lambda: rest_json.columns(inputs))
            layout = COLUMNS
        else:
            request = _said("Predict", lambda: _request(known, inputs, outputs, layout))
        answer = self._post("Predict", ref, "predict", signature, request, limit)
        read = rest_json.read_rows if layout == ROWS else rest_json.read_columns
        tensors = _said("Predict", lambda: read(answer, known.outputs, more=fixed is not None))
        return {name: tensor for name, tensor in tensors.items() if not outputs or name in outputs}

    def classify(
        self,
        ref: ModelRef,
        signature: str,
        examples: Sequence[bytes],
        context: bytes | None = None,
        *,
        limit: float,
    ) -> Classified:
        request = _said("Classify", lambda: _examples(examples, context))
        answer = self._post("Classify", ref, "classify", signature, request, limit)
        rows = _list("Classify", answer.get("results"))
        return [list(map(_class, _list("Classify", row))) for row in rows]

    def regress(
        self,
        ref: ModelRef,
        signature: str,
        examples: Sequence[bytes],
        context: bytes | None = None,
        *,
        limit: float,
    ) -> Regressed:
        request = _said("Regress", lambda: _examples(examples, context))
        answer = self._post("Regress", ref, "regress", signature, request, limit)
        return _float32("Regress", _list("Regress", answer.get("results")))

    def _post(
        self,
        name: str,
        ref: ModelRef,
        verb: str,
        signature: str,
        request: dict[str, Any],
        limit: float,
    ) -> dict[str, Any]:
        if signature:
            request = {"signature_name": signature, **request}
        return self._ask(name, "POST", f"{_path(ref)}:{verb}", rest_json.dumps(request), limit)

    def _ask(
        self, name: str, verb: str, path: str, body: bytes | None, limit: float
    ) -> dict[str, Any]:
        try:
            response = self._connection.exchange(verb, path, body, limit)
        except connection.TooLate as error:
            raise Timeout(f"no answer within {limit:g} s", REST, name) from error
        except connection.Refused as error:
            raise Unreachable(str(error), REST, name) from error
        except connection.NotHttp as error:
            raise BadAnswer(str(error), REST, name) from error
        if response.status != 200:
            codes = _CODES.get(
                response.status, ("INTERNAL" if response.status >= 500 else "UNKNOWN",)
            )
            raise ServerError(
                codes[0], _error_text(response.body), REST, name, response.status, codes
            )
        return _said(name, lambda: rest_json.loads(response.body))


def _path(ref: ModelRef) -> str:
    path = "/v1/models/" + urllib.parse.quote(ref.name, safe="")
    if ref.version is not None:
        return f"{path}/versions/{ref.version}"
    return path if ref.label is None else f"{path}/labels/{urllib.parse.quote(ref.label, safe='')}"


def _request(
    signature: SignatureDef,
    inputs: Mapping[str, Tensor],
    outputs: Sequence[str],
    layout: Optional[str],
) -> dict[str, Any]:
    rest_json.check_signature(signature, inputs)
    unknown = sorted(set(outputs) - set(signature.outputs))
    if unknown:
        raise CannotSay(
            f"REST has no filter of outputs to send {unknown[0]!r} in; the signature has no such"
            " output"
        )
    if layout == ROWS:
        return rest_json.rows(
            inputs, bare=len(inputs) == 1 and set(inputs) == set(signature.inputs)
        )
    surplus = sorted(set(inputs) - set(signature.inputs))
    if surplus and set(signature.inputs) <= set(inputs):
        raise CannotSay(
            f"the input {surplus[0]!r} is not in the signature, and the server would pass over it"
            " in columns"
        )
    return rest_json.columns(inputs)


def _examples(examples: Sequence[bytes], context: bytes | None) -> dict[str, Any]:
    try:
        return example_lists.to_json(examples, context)
    except example_lists.NotAnExample:
        raise
    except ValueError as error:
        raise CannotSay(str(error)) from error


def _said(name: str, do: Callable[[], T]) -> T:
    """Do it, with the errors of the JSON side as those of a client."""
    try:
        return do()
    except CannotSay as error:
        raise NotRepresentable(str(error), REST, name) from error
    except (Unreadable, errors.SavedModelError) as error:
        raise BadAnswer(str(error), REST, name) from error


def _error_text(body: bytes) -> str:
    """Return the "error" of an answer, or the whole answer if it is not such JSON."""
    try:
        text = rest_json.loads(body).get("error")
    except Unreadable:
        text = None
    return (
        text.encode("utf-8", "replace").decode()
        if isinstance(text, str)
        else body.decode("utf-8", "replace")
    )


def _message(name: str, cls: type[Any], value: Any) -> Any:
    """A message of its JSON form.

    Fields that the schema does not know are passed over: a newer server has more of them.
    """
    found: Message = cls()
    try:
        if not isinstance(value, dict):
            raise TypeError(f"a {type(value).__name__}")
        return json_format.ParseDict(
            value, found, ignore_unknown_fields=True, descriptor_pool=_pool.schema().pool
        )
    # the parser lets through whatever its parts raise: OverflowError, with protobuf 7 a SystemError
    except Exception as error:
        raise BadAnswer(f"no {cls.DESCRIPTOR.name}: {error}", REST, name) from error


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise BadAnswer(f"a {type(value).__name__} where a list of results is due", REST, name)
    return value


def _class(item: Any) -> Class:
    if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
        raise BadAnswer("a class that is not [label, score]", REST, "Classify")
    return Class(item[0], *_float32("Classify", item[1:]))


def _float32(name: str, values: list[Any]) -> list[float]:
    found: list[float] = _said(name, lambda: rest_json.numbers(values, "float32")).tolist()
    return found

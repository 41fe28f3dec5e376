"""Predict: the tensors of a signature to feed and fetch, and all checks of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from savedmodel_common.serving import messages
from savedmodel_common.tensors import Tensor
from savedmodel_standin import memory, tensor_protos
from savedmodel_standin.errors import ServingError, invalid
from savedmodel_standin.servable import Servable

Read = TypeVar("Read")
METHOD_NAMES = (messages.PREDICT_METHOD, messages.CLASSIFY_METHOD, messages.REGRESS_METHOD)


def run(
    servable: Servable, request: Any, timeout_ms: int = 0, check_method: bool = False
) -> dict[str, Tensor]:
    """Return the outputs by their aliases, in the requested order. Raises :class:`ServingError`."""
    name = signature_name(request.model_spec)
    signature = servable.signatures.get(name)
    if signature is None:
        raise ServingError("FAILED_PRECONDITION", f'Serving signature key "{name}" not found.')
    if check_method and signature.method_name not in METHOD_NAMES:
        expected = ", ".join(METHOD_NAMES)
        raise ServingError(
            "INTERNAL",
            f"Expected prediction signature method_name to be one of {{{expected}}}. Was:"
            f" {signature.method_name}",
        )
    _check_count(signature, request)
    feed = _feed(signature, request.inputs)
    aliases = _wanted(signature, request.output_filter)
    values = servable.run(feed, [signature.outputs[alias].name for alias in aliases], timeout_ms)
    return dict(zip(aliases, values))


def signature_name(model_spec: Any) -> str:
    return str(model_spec.signature_name) or messages.DEFAULT_SIGNATURE


def _check_count(signature: Any, request: Any) -> None:
    sent, known = set(request.inputs), set(signature.inputs)
    if len(sent) > len(known) or (len(sent) < len(known) and not signature.defaults):
        raise invalid(
            f"input size does not match signature: {len(sent)}!={len(known)}"
            f" len({{{_joined(sent)}}}) != len({{{_joined(known)}}}). Sent extra:"
            f" {{{_joined(sent - known)}}}. Missing but required: {{{_joined(known - sent)}}}."
        )


def _feed(signature: Any, inputs: Any) -> list[tuple[str, Tensor]]:
    protos, used = [], set()
    for alias, info in sorted(signature.inputs.items()):
        if alias in inputs:
            proto = inputs[alias]
            used.add(alias)
        elif alias in signature.defaults:
            proto = signature.defaults[alias]
        else:
            raise invalid(
                f"Signature input alias: {alias}(feed name: {info.name}) not found in request and"
                " no default value provided. Inputs expected to be in the request"
                f" {{{_joined(inputs)}}}, or default input alias set: {_joined(signature.defaults)}"
            )
        protos.append((alias, info.name, proto))
    feed = _decoded(protos)
    if len(used) != len(inputs):
        raise invalid(
            f"Inputs contains invalid name. Used request inputs: {_joined(used)}, request input:"
            f" {_joined(inputs)}"
        )
    return feed


def _decoded(protos: list[tuple[str, str, Any]]) -> list[tuple[str, Tensor]]:
    """Return the tensors by the names to feed.

    What they take is checked before the first tensor is made.
    """
    filled = sum(_parsed(alias, tensor_protos.filled, proto) for alias, _, proto in protos)
    memory.check_filled(filled, "the inputs")
    return [(name, _parsed(alias, tensor_protos.decode, proto)) for alias, name, proto in protos]


def _parsed(alias: str, read: Callable[[Any], Read], proto: Any) -> Read:
    try:
        return read(proto)
    except tensor_protos.NotATensor:
        raise invalid(f"tensor parsing error: {alias}") from None


def _wanted(signature: Any, output_filter: Iterable[str]) -> list[str]:
    wanted: list[str] = []
    for alias in output_filter:
        if alias not in signature.outputs:
            raise invalid(
                f"output tensor alias not found in signature: {alias} "
                f"Outputs expected to be in the set {{{_joined(signature.outputs)}}}."
            )
        if alias in wanted:
            raise invalid(f"duplicate output tensor alias: {alias}")
        wanted.append(alias)
    return wanted or sorted(signature.outputs)


def _joined(names: Iterable[str]) -> str:
    return ",".join(sorted(names))

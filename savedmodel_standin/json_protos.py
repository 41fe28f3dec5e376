"""Status and metadata as JSON: messages with every field, by its own name, as protobuf prints them
(one space an indent).
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from reference_impl.format.schema import is_repeated
from savedmodel_common.serving import messages


def status(response: Any) -> bytes:
    return (json.dumps(_message(response), indent=1, ensure_ascii=False) + "\n").encode("utf-8")


def metadata(response: Any) -> bytes:
    """``{"model_spec": ..., "metadata": {"signature_def": <SignatureDefMap>}}``, put together from
    two texts.
    """
    spec = json.dumps(_message(response.model_spec), indent=1, ensure_ascii=False) + "\n"
    signatures = messages.SignatureDefMap.FromString(response.metadata["signature_def"].value)
    printed = json.dumps(_message(signatures), indent=1, ensure_ascii=False) + "\n"
    return f'{{\n"model_spec":{spec},\n"metadata": {{"signature_def": {printed}}}\n}}\n'.encode()


def _message(message: Any) -> Any:
    if message.DESCRIPTOR.full_name.startswith(
        "google.protobuf."
    ) and message.DESCRIPTOR.full_name.endswith("Value"):
        return _scalar(message.DESCRIPTOR.fields_by_name["value"], message.value)
    out: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            of = field.message_type.fields_by_name["value"]
            out[field.name] = {str(key): _one(of, value[key]) for key in sorted(value)}
        elif is_repeated(field):
            out[field.name] = [_one(field, item) for item in value]
        elif field.message_type is None and field.containing_oneof is None:
            out[field.name] = _scalar(field, value)
        elif message.HasField(field.name):
            out[field.name] = _one(field, value)
    return out


def _one(field: Any, value: Any) -> Any:
    return _message(value) if field.message_type is not None else _scalar(field, value)


def _scalar(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if (
        isinstance(value, int)
        and not isinstance(value, bool)
        and field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64)
    ):
        return str(value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value

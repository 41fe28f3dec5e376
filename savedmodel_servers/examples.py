"""Lists of tf.Example, which Classify, Regress and MultiInference take: as messages, and as the
JSON that REST wants.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from reference_impl import errors
from reference_impl.format import schema
from savedmodel_common.serving import messages


class NotAnExample(ValueError):
    """Raised for an input that is not a serialised tf.Example."""


def pack(examples: Sequence[bytes], context: bytes | None = None) -> messages.Input:
    """The `input` of a request. Raises NotAnExample."""
    out = messages.Input()
    if context is None:
        out.example_list.SetInParent()
        into = out.example_list.examples
    else:
        out.example_list_with_context.context.CopyFrom(_parse(context, "context"))
        into = out.example_list_with_context.examples
    into.extend(_parse(data, f"example {index}") for index, data in enumerate(examples))
    return out


def _parse(data: bytes, what: str) -> messages.Example:
    try:
        return schema.parse(messages.Example, data)
    except errors.SavedModelError as error:
        raise NotAnExample(f"{what}: {error}") from error


def to_json(examples: Sequence[bytes], context: bytes | None = None) -> dict[str, Any]:
    """The keys "examples" and "context" of a request.

    Raises NotAnExample, and ValueError for an empty list that has a kind.

    A server takes a feature's kind from its values: a decimal point makes a float, a whole number
    or a truth value an int64.
    """
    out: dict[str, Any] = {}
    if context is not None:
        out["context"] = _features(_parse(context, "context"), "context")
    out["examples"] = [
        _features(_parse(data, f"example {index}"), f"example {index}")
        for index, data in enumerate(examples)
    ]
    return out


def _features(example: messages.Example, what: str) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    for name in sorted(example.features.feature):
        feature = example.features.feature[name]
        kind = feature.WhichOneof("kind")
        values = list(getattr(feature, kind).value) if kind else []
        if kind and not values:
            raise ValueError(
                f"{what}: the feature {name!r} is an empty {kind}; JSON has only a list without a"
                " kind"
            )
        out[name] = [text(value) for value in values] if kind == "bytes_list" else values
    return out


def text(value: bytes) -> Any:
    """A string as JSON: text where it is UTF-8, else base64."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode("ascii")}

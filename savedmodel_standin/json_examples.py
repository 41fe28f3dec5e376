"""Classify and Regress over JSON: objects of features in, ``results`` out."""

from __future__ import annotations

from typing import Any

from savedmodel_standin import (
    json_numbers,
    json_predict,
    json_reader,
    json_writer,
)
from savedmodel_standin.errors import ServingError, invalid

EXAMPLES, CONTEXT, RESULTS = "examples", "context", "results"
_KINDS = {"bytes_list": "bytes", "float_list": "float", "int64_list": "int64"}


def fill_request(body: bytes, request: Any) -> None:
    """Fill the input of a ClassificationRequest or RegressionRequest.

    Raises :class:`ServingError`.
    """
    document = json_reader.parse(body)
    json_predict.fill_signature(document, request)
    given = request.input.example_list
    if CONTEXT in document:
        given = request.input.example_list_with_context
        _fill_example(document[CONTEXT], given.context)
    if EXAMPLES not in document:
        raise json_reader.format_error(
            document, f"When method is classify, key '{EXAMPLES}' is expected and was not found"
        )
    examples = document[EXAMPLES]
    if not isinstance(examples, list):
        raise json_reader.format_error(
            document, f"Expecting '{EXAMPLES}' value to be an list/array"
        )
    if not examples:
        raise json_reader.format_error(document, f"'{EXAMPLES}' value is an empty array")
    for example in examples:
        _fill_example(example, given.examples.add())


def _fill_example(value: Any, example: Any) -> None:
    if not isinstance(value, dict):
        raise invalid(f"Example must be JSON object but got JSON {json_reader.kind(value)}")
    example.SetInParent()
    for name, content in json_reader.members(value):
        feature = example.features.feature[json_reader.as_name(name)]
        feature.Clear()  # of a feature that is there twice, the last one counts
        for item in content if isinstance(content, list) else [content]:
            _append(item, name, feature)


def _append(value: Any, name: str, feature: Any) -> None:
    if isinstance(value, str):
        _list(feature, "bytes_list", name).append(value.encode("utf-8", "surrogateescape"))
    elif json_predict.is_base64(value):
        _list(feature, "bytes_list", name).append(json_predict.from_base64(value))
    elif isinstance(value, (bool, int)):
        values = _list(feature, "int64_list", name)
        if value >= 1 << 63:
            raise invalid(f"Feature: {name} has uint64_t element. Only int64_t is supported.")
        values.append(int(value))
    elif isinstance(value, float):
        _list(feature, "float_list", name).append(json_numbers.single(value))
    else:
        raise invalid(
            f"Feature: {name} has element with unexpected JSON type: {json_reader.kind(value)}"
        )


def _list(feature: Any, kind: str, name: str) -> Any:
    """Return the feature's list of this kind; a feature has only one kind."""
    found = feature.WhichOneof("kind")
    if found not in (None, kind):
        raise invalid(f"Unexpected element type in feature: {name} expecting type: {_KINDS[found]}")
    return getattr(feature, kind).value


def classification(result: Any) -> bytes:
    if not result.classifications:
        raise invalid("Cannot convert empty ClassificationResults to JSON")
    rows = []
    for row in result.classifications:
        classes = [[entry.label, _decimal(entry.score)] for entry in row.classes]
        rows.append(json_writer.Line(classes))
    return json_writer.dumps({RESULTS: rows})


def regression(result: Any) -> bytes:
    if not result.regressions:
        raise invalid("Cannot convert empty RegressionResults to JSON")
    return json_writer.dumps(
        {RESULTS: json_writer.Line([_decimal(entry.value) for entry in result.regressions])}
    )


def _decimal(value: float) -> json_writer.Raw:
    return json_writer.Raw(json_writer.decimal(json_numbers.single(value), single=True))


def error(caught: ServingError) -> bytes:
    """Return the body of every error answer."""
    return json_writer.dumps({"error": caught.message})

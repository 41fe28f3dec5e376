"""Classify, Regress and MultiInference: one string tensor of serialized Examples in, labels, scores
and values out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from savedmodel_common.serving import messages
from savedmodel_common.tensors import Tensor
from savedmodel_standin import memory, tensor_protos
from savedmodel_standin.errors import ServingError, invalid
from savedmodel_standin.predict import signature_name
from savedmodel_standin.servable import Servable

INPUTS, OUTPUTS, CLASSES, SCORES = "inputs", "outputs", "classes", "scores"


def answer(
    servable: Servable, request: Any, method: str, result: Any, timeout_ms: int, check: bool
) -> None:
    """Fill a ClassificationResult or RegressionResult, as the name of the method says.

    Raises :class:`ServingError`.
    """
    name = signature_name(request.model_spec)
    if name not in servable.signatures:
        raise invalid(f"No signature was found with the name: {name}")
    signature = servable.signatures[name]
    feed, fetch = _prepare(signature, method, check)
    examples = _examples(request.input)
    values = servable.run([(feed, examples)], fetch, timeout_ms)
    _finish(signature, method, examples.array.size, dict(zip(fetch, values)), result)


def multi_inference(
    servable: Servable, request: Any, response: Any, timeout_ms: int = 0, check_method: bool = False
) -> None:
    """Run all tasks together with the same inputs and fill a MultiInferenceResponse.

    Raises :class:`ServingError`.
    """
    feeds, fetch, seen = set(), set(), set()
    for task in request.tasks:
        if not task.model_spec.name:
            raise invalid("Found ModelSpec with an empty model name.")
        if task.model_spec.name != request.tasks[0].model_spec.name:
            raise invalid(
                "All ModelSpecs in a MultiInferenceRequest must access the same model name."
            )
        name = signature_name(task.model_spec)
        if name in seen:
            raise invalid(f"Duplicate evaluation of signature: {name}")
        seen.add(name)
        if name not in servable.signatures:
            raise invalid(f"Requested signature not found in model graph: {name}")
        if task.method_name not in (messages.CLASSIFY_METHOD, messages.REGRESS_METHOD):
            raise ServingError(
                "UNIMPLEMENTED", f"Unsupported signature method_name: {task.method_name}"
            )
        feed, names = _prepare(servable.signatures[name], task.method_name, check_method)
        feeds.add(feed)
        fetch.update(names)
    examples = _examples(request.input)
    targets = sorted(fetch)
    values = dict(
        zip(
            targets, servable.run([(feed, examples) for feed in sorted(feeds)], targets, timeout_ms)
        )
    )
    for task in request.tasks:
        result = response.results.add()
        field = (
            result.classification_result
            if task.method_name == messages.CLASSIFY_METHOD
            else result.regression_result
        )
        field.SetInParent()
        _finish(
            servable.signatures[signature_name(task.model_spec)],
            task.method_name,
            examples.array.size,
            values,
            field,
        )


def _prepare(signature: Any, method: str, check: bool) -> tuple[str, list[str]]:
    """Return the tensor to feed and the tensors to fetch."""
    kind = "classification" if method == messages.CLASSIFY_METHOD else "regression"
    if check and signature.method_name != method:
        raise invalid(
            f"Expected {kind} signature method_name to be {method}. Was: {signature.method_name}"
        )
    if len(signature.inputs) != 1:
        raise invalid("Expected one input Tensor.")
    if kind == "classification" and len(signature.outputs) not in (1, 2):
        raise invalid(f"Expected one or two output Tensors, found {len(signature.outputs)}")
    if kind == "regression" and len(signature.outputs) != 1:
        raise invalid("Expected one output Tensor.")
    if INPUTS not in signature.inputs:
        raise invalid(f"No {kind} inputs found in SignatureDef: {signature}")
    if kind == "regression" and OUTPUTS not in signature.outputs:
        raise invalid(f"No regression outputs found in SignatureDef: {signature}")
    wanted = (CLASSES, SCORES) if kind == "classification" else (OUTPUTS,)
    fetch = [signature.outputs[alias].name for alias in wanted if alias in signature.outputs]
    if not fetch:
        raise invalid(
            f'Expected classification signature outputs to contain at least one of "{CLASSES}" or'
            f' "{SCORES}". Signature was: {signature}'
        )
    return signature.inputs[INPUTS].name, fetch


def _examples(given: Any) -> Tensor:
    """Return a vector of serialized Examples.

    The context is prepended to each: the parser merges repeated fields.
    """
    context, examples = b"", given.example_list.examples
    if given.WhichOneof("kind") == "example_list_with_context":
        context = given.example_list_with_context.context.SerializeToString()
        examples = given.example_list_with_context.examples
    if not examples:
        raise invalid("Input is empty.")
    memory.check_filled(len(context) * len(examples), "the context in every example")
    out = np.empty(len(examples), dtype=object)
    for index, example in enumerate(examples):
        out[index] = context + example.SerializeToString()
    return Tensor("string", out)


def _finish(
    signature: Any, method: str, count: int, values: Mapping[str, Tensor], result: Any
) -> None:
    if method == messages.REGRESS_METHOD:
        return _fill_regressions(values[signature.outputs[OUTPUTS].name], count, result)
    found = {
        alias: values[signature.outputs[alias].name]
        for alias in (CLASSES, SCORES)
        if alias in signature.outputs
    }
    for alias, wanted, spoken in (
        (CLASSES, "string", "DT_STRING"),
        (SCORES, "float32", "DT_FLOAT"),
    ):
        if alias in found:
            _check_matrix(alias, found[alias], count, wanted, spoken)
    widths = [tensor.array.shape[1] for tensor in found.values()]
    if len(set(widths)) > 1:
        raise invalid(
            f"Tensors class and score should match in dim_size(1). Got {widths[0]} vs. {widths[1]}"
        )
    for row in range(count):
        classifications = result.classifications.add()
        for column in range(widths[0]):
            entry = classifications.classes.add()
            if CLASSES in found:
                entry.label = found[CLASSES].array[row, column].decode("utf-8", "replace")
            if SCORES in found:
                entry.score = float(found[SCORES].array[row, column])
    return None


def _check_matrix(alias: str, tensor: Tensor, count: int, dtype: str, spoken: str) -> None:
    shape = _shape(tensor)
    if tensor.array.ndim != 2:
        raise invalid(f"Expected Tensor shape: [batch_size num_classes] but got {shape}")
    if tensor.dtype != dtype:
        raise invalid(f"Expected {alias} Tensor of {spoken}. Got: {_proto_name(tensor)}")
    if tensor.array.shape[0] != count:
        raise invalid(
            f"Expected {alias} output batch size of {count}. Got: {tensor.array.shape[0]}"
        )


def _fill_regressions(tensor: Tensor, count: int, result: Any) -> None:
    array = tensor.array
    if not (array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1)):
        raise invalid(
            "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got"
            f" {_shape(tensor)}"
        )
    if array.shape[0] != count:
        raise invalid(
            f"Input batch size did not match output batch size: {count} vs. {array.shape[0]}"
        )
    if tensor.dtype != "float32":
        raise invalid(f"Expected output Tensor of DT_FLOAT.  Got: {_proto_name(tensor)}")
    for value in array.ravel().tolist():
        result.regressions.add().value = value


def _shape(tensor: Tensor) -> str:
    return "[" + ",".join(map(str, tensor.array.shape)) + "]"


def _proto_name(tensor: Tensor) -> str:
    return f"DT_{tensor_protos.spoken(tensor.dtype)}".upper()

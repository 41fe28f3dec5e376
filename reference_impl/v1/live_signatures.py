"""Functions that callers of a TF 1.x model get: its signatures, and what `prune` cuts out.

A signature that cannot be called is there too. A call raises the reason.

RFC: V1-01, V1-02
"""

from __future__ import annotations

import contextlib
from typing import Any, Optional, Union

import tensorflow as tf

from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.functions import specs
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.kinds.signature_map import SignatureMap
from reference_impl.v1.live_program import LiveProgram
from reference_impl.v1.pruning import Feeds, Fetches, composite_spec
from reference_impl.v1.reading.extract import Extracted, static_shape
from reference_impl.v1.reading.named_tensors import check_operations, feeds_of, tensor_of
from reference_impl.v1.reading.signatures import Output, Signature


class UnusableSignature:
    """A signature that cannot be called. A call raises an error with the reason."""

    def __init__(self, reason: SavedModelError):
        self.reason = reason
        self.structured_input_signature: tuple[tuple[()], dict[str, Any]] = ((), {})
        self.structured_outputs: dict[str, Any] = {}

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise self.reason

    def __repr__(self) -> str:
        return f"<UnusableSignature: {self.reason}>"


class UnfedSignature(RegisteredFunction):
    """A signature that needs a placeholder that its inputs do not feed.

    It can be saved; a call raises the reason.
    """

    reason: SavedModelError

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise self.reason


def make_signatures(live: LiveProgram) -> SignatureMap:
    """Return the signatures of the loaded part by key."""
    keys = live.program.signatures if live.part is None else live.part.keys
    return SignatureMap({key: _signature(live, live.program.signatures[key]) for key in keys})


def _signature(
    live: LiveProgram, signature: Signature
) -> Union[RegisteredFunction, UnusableSignature]:
    try:
        extracted, unfed = live.program.saved_signature(signature.key)
        if unfed is None:
            return _callable(live, signature, extracted, RegisteredFunction)
        made = _callable(live, signature, extracted, UnfedSignature)
        made.__dict__["reason"] = unfed
        return made
    except SavedModelError as error:
        return _unusable(live, signature, error)


def _callable(
    live: LiveProgram, signature: Signature, extracted: Extracted, cls: type[RegisteredFunction]
) -> RegisteredFunction:
    inputs = {item.name: _spec(item.dtype, item.shape, item.name) for item in signature.inputs}
    # The graph knows the dtypes. The SignatureDef has a copy, which may be missing.
    arguments = extracted.function.signature.output_arg
    dtypes_of = {result: argument.type for result, argument in zip(extracted.results, arguments)}
    outputs = {
        output.key: _output_spec(live, output, dtypes_of[f"{output.key}/0"])
        for output in signature.outputs
    }
    made = live.function(extracted, inputs, outputs, cls)
    made.set_flat_arguments(list(inputs), len(inputs), signature.positional)
    made.signature_def = live.meta_graph.signature_def[signature.key]
    return made


def _unusable(live: LiveProgram, signature: Signature, error: SavedModelError) -> UnusableSignature:
    """Return the substitute for a signature, with the specs that the SignatureDef states."""
    unusable = UnusableSignature(error)
    for item in signature.inputs:
        with contextlib.suppress(SavedModelError):  # it has no dtype
            spec = _spec(item.dtype, item.shape, item.name)
            unusable.structured_input_signature[1][item.name] = spec
    for output in signature.outputs:
        with contextlib.suppress(SavedModelError):
            spec = _output_spec(live, output, output.info.dtype)
            unusable.structured_outputs[output.key] = spec
    return unusable


def _output_spec(live: LiveProgram, output: Output, dtype: int) -> Any:
    if output.kind == "dense":
        return _spec(dtype, output.info.tensor_shape, output.key)
    return composite_spec(output, live.file)


def prune(live: LiveProgram, feeds: Feeds, fetches: object, name: str) -> RegisteredFunction:
    """Return a function from some tensors of the graph to others; see `V1Root.prune`."""
    cut = feeds_of(live.program, feeds.named)
    wanted = Fetches(fetches)
    check_operations(live.program, wanted.targets)
    tensors = {
        str(index): tensor_of(live.program, name)[0] for index, name in enumerate(wanted.tensors)
    }
    extracted = live.program.function(name, cut, tensors, wanted.targets)
    arguments = extracted.function.signature.output_arg
    results = [
        tf.TensorSpec(
            _shape(static_shape(live.program.graph, ref)), tf.dtypes.as_dtype(argument.type)
        )
        for ref, argument in zip(tensors.values(), arguments)
    ]
    inputs = {feed.name: _spec(feed.dtype, feed.shape, feed.name) for feed in cut}
    made = live.function(extracted, inputs, wanted.outputs(results), structured=feeds.structure)
    made.set_flat_arguments(feeds.keywords, feeds.positional)
    return made


def _spec(dtype: int, shape: Optional[schema.TensorShapeProto], name: str) -> tf.TensorSpec:
    return tf.TensorSpec(_shape(shape), specs.tf_dtype(dtype % 100, node=name), name)


def _shape(shape: Optional[schema.TensorShapeProto]) -> tf.TensorShape:
    return tf.TensorShape(None) if shape is None else specs.shape_of(shape)

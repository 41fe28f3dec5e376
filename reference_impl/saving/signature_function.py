"""A function as a signature: it takes flat tensors by name and returns a dict of tensors.

Functions that a loader made for signatures already have this calling convention. Every other
function gets a wrapper (`reference_impl.saving.signature_wrapper`).

RFC: SIG-04, SIG-05, SIG-07, SIG-10, SIG-12, ATTR-04, ATTR-05, IMP-02, IMP-03, IMP-04, IMP-05, V1-16
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SavedModelError, SignatureError
from reference_impl.format import schema
from reference_impl.format.names import plain_name
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.graph.argument_names import python_name, python_names
from reference_impl.kinds.bare_concrete_function import FunctionOfExport
from reference_impl.saving import signature_inputs, traces
from reference_impl.saving.signature_outputs import outputs_of
from reference_impl.saving.traces import Trace

PREDICT = "tensorflow/serving/predict"
WRAPPER = "signature_wrapper_"  # TensorFlow's name for the functions of signatures, too


@dataclass(frozen=True, eq=False)
class SignatureFunction(FunctionOfExport):
    """A signature, which takes flat tensors by name and returns a dict of tensors.

    Attributes:
      target, trace: the concrete function behind it, and its description.
      names: the names of the inputs, in the order of the target's arguments.
      inputs: the inputs by name.
      outputs: the outputs by name: TensorSpecs or composite specs.
      order: for each flat result, its position among the results of the target.
      defaults: the default values of optional inputs.
      definition: the SignatureDef that it was read from.
      direct: whether the target has this calling convention and needs no wrapper.
    """

    target: Any
    trace: Trace
    names: Sequence[str]
    inputs: Mapping[str, tf.TensorSpec]
    outputs: Mapping[str, Any]
    order: Sequence[int]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    definition: Optional[schema.SignatureDef] = None
    direct: bool = False

    @property
    def method_name(self) -> str:
        return self.definition.method_name if self.definition is not None else PREDICT


def signature_function(key: str, function: object, strict: bool) -> SignatureFunction:
    """Return a function as a signature.

    Raises:
      SignatureError: it cannot be a signature: SIG-04 (no concrete arguments), SIG-12 (results),
        SIG-13 (nested arguments).
    """
    concrete, signature = _concrete(key, function)
    trace = traces.trace_of(concrete)
    definition = getattr(concrete, "signature_def", None)
    defaults = dict(getattr(concrete, "defaults", None) or {})
    if (isinstance(concrete, RegisteredFunction) or _is_wrapper(concrete)) and traces.is_flat(
        trace
    ):
        given = [trace.inputs[1][name] for name in sorted(trace.inputs[1])]
        # Clients use the names of the flat arguments; names in the Python signature may have been
        # adapted to Python's rules.
        names = trace.keywords if len(trace.keywords) == len(given) else sorted(trace.inputs[1])
        if names == list(python_names(names)):
            inputs, outputs = dict(zip(names, given)), dict(sorted(trace.outputs.items()))
            order = list(range(len(traces.flat_outputs(outputs))))
            return SignatureFunction(
                concrete, trace, names, inputs, outputs, order, defaults, definition, direct=True
            )
    inputs = signature_inputs.inputs_of(key, trace, strict)
    if not isinstance(concrete, RegisteredFunction):  # their names are kept
        signature_inputs.check_names(key, inputs)
    if signature is not None:
        defaults.update(signature_inputs.defaults_of(key, trace, signature, list(inputs), strict))
    outputs, order = outputs_of(key, trace.outputs)
    names = list(inputs)
    return SignatureFunction(concrete, trace, names, inputs, outputs, order, defaults, definition)


def _is_wrapper(concrete: tf.types.experimental.ConcreteFunction) -> bool:
    """Return whether `tf.saved_model.load` made a function of a signature.

    Wrapping it again would add a wrapper at each save.
    """
    return plain_name(tf.compat.as_str(concrete.name)).startswith(WRAPPER)


def with_renamed_inputs(function: object) -> Optional[SignatureFunction]:
    """Return a function of the object tree as a signature if its argument names are invalid in
    Python; otherwise return None.

    Signatures of TF 1.x, and of writers before TensorFlow adapted the names, can be anywhere in the
    tree.
    """
    if all(python_name(name) == name for name in api.flat_arguments(function)[0]):
        return None
    try:
        is_flat = traces.is_flat(traces.trace_of(function))
        return signature_function("", function, strict=False) if is_flat else None
    except SavedModelError:
        # A type in its signature is not known here, so it is written as it was read.
        return None


def _concrete(key: str, function: object) -> tuple[Any, Optional[inspect.Signature]]:
    """Return the concrete function of a signature, and the Python signature with the defaults."""
    if isinstance(function, api.ConcreteFunction):
        return function, None
    reason = getattr(function, "reason", None)
    if isinstance(reason, SavedModelError):
        # a signature of a TF 1.x model that could not be loaded
        raise SignatureError(
            f"the signature could not be loaded, so it cannot be saved: {reason}",
            node=key,
            clause="V1-16",
        )
    if not isinstance(function, api.Function):
        raise SignatureError(
            f"Expected a TensorFlow function, got {type(function).__name__}",
            node=key,
            clause="API-03",
        )
    found = api.traces(function)
    if function.input_signature is None:
        reason = (
            "Expected a TensorFlow function: Only tf.functions with an input signature or concrete"
            " functions can be signatures. Give the function an `input_signature`, or take"
            " `f.get_concrete_function(tf.TensorSpec(...))`."
        )
        raise SignatureError(reason, node=key, clause="SIG-04")
    concrete = traces.distinct_traces(found)[0] if found else function.get_concrete_function()
    return concrete, api.python_signature(function)

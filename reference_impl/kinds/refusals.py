"""Gradients that do not exist, with an error that says why (V1-11, V1-14).

A tape makes the backward function of all that it watches, wanted or not. So the error is an op of that function: a call under a
tape works, and whoever asks for the gradient gets the reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format.names import CUSTOM_GRADIENT

REFUSED = "ReferenceImplNoGradient"  # op type of the gradient; an export leaves it out
# The same for an operation whose custom gradient an export could not bring. It is in the file: without it the operation would be
# differentiated as any of its kind is, wrongly.
NOT_SAVED = "ReferenceImplGradientNotSaved"
REASON = "_no_gradient_because"


def refuse(reason: str) -> dict[str, Any]:
    """Attributes that keep an operation from being differentiated."""
    values = {CUSTOM_GRADIENT: REFUSED, REASON: reason}
    return {key: tf.compat.v1.AttrValue(s=value.encode()) for key, value in values.items()}


@api.without_autograph
def _refused(operation: Optional[tf.Operation], *given: Any) -> Sequence[Optional[tf.Tensor]]:
    """The gradient. tf.saved_model.save traces one for all operations of this type, with their inputs and without any of them."""
    reason, inputs = "the model does not say why", given
    if operation is not None:
        inputs = operation.inputs
        with contextlib.suppress(ValueError):  # a file may lack the reason
            reason = operation.get_attr(REASON).decode("utf-8", "replace")
    assertion = tf.raw_ops.Assert(condition=tf.constant(False), data=[tf.constant(f"There is no gradient here: {reason}")])
    with tf.control_dependencies([assertion]):
        return [_nothing(tensor) for tensor in inputs]


for _kind in (REFUSED, NOT_SAVED):
    tf.RegisterGradient(_kind)(_refused)


def _nothing(tensor: tf.Tensor) -> Optional[tf.Tensor]:
    """Zeros like the tensor or the variable behind it."""
    dtype = api.dtype_behind(tensor) if tensor.dtype == tf.resource else tensor.dtype
    if dtype is None or not (dtype.is_floating or dtype.is_complex):
        return None
    shape = tf.raw_ops.VariableShape(input=tensor) if tensor.dtype == tf.resource else tf.shape(tensor)
    return tf.zeros(shape, dtype)

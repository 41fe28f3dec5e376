"""Evaluate a SavedModel with NumPy, without TensorFlow.

    >>> import numpy as np, reference_eval
    >>> model = reference_eval.load("fixtures_v1/dynamic_rnn/model")
    >>> call = model.signatures["serving_default"]
    >>> call(x=np.ones([2, 5, 3], np.float32), length=np.int64([5, 2]))["h"].shape
    (2, 4)

The evaluator is a referee: slow, small, and independent of TensorFlow's kernels. It follows what a
session does: restore the variables, run the init op, then run the nodes that a signature needs.

load            opens a model: variables, tables and signatures
reading         the only module that uses `reference_impl`: files and messages to plain values
plan            a FunctionDef as steps in the order of its data and control dependencies
executor        runs a plan; checks the dtype and size of each result
frames          runs a plan with control flow of TF 1.x that is not rewritten to functions
signature       one signature: checks the inputs, runs its function, names the outputs
state           values that are not arrays: variables, tables, tensor lists, optional values
registry        op name to function; `ops/` has one file for each op
sizes           the limits of an evaluation
errors          the error classes
arrays, lists   tools on arrays and on tensor lists that several ops share
tensor_arrays   reads and writes elements of the arrays of TF 1.x
windows         the windows of convolutions and pools
patterns        patterns of RE2 in Python's re
examples        reads tf.Example messages
datasets        a dataset of tf.data gives its elements again for each iteration
philox          the generator of stateless random ops
op_definitions.pbtxt   the OpDefs of our ops and of those that rewriting adds
"""

from __future__ import annotations

from reference_eval.errors import (
    EvaluationError,
    EvaluationLimitError,
    NotEvaluatedError,
    RefusedOpError,
    UnknownOpError,
)
from reference_eval.load import Model, load
from reference_eval.registry import op

__all__ = [
    "EvaluationError",
    "EvaluationLimitError",
    "Model",
    "NotEvaluatedError",
    "RefusedOpError",
    "UnknownOpError",
    "load",
    "op",
]

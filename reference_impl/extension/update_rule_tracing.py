"""Export the update rule of an optimizer as a function of gradient, variable, slots and the
optimizer's own variables.

A copy of the optimizer, with variables of its own, is traced while it applies one gradient to one
variable. All state enters the trace as handles, so the FunctionDef works for any variable once the
recorded shapes are removed. Before the file is written, the function is tried on a variable of
another shape.

RFC: OPT-04, OPT-05, OPT-06, OPT-07
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.extension.save_context import SaveContext
from reference_impl.format import schema
from reference_impl.format.names import CUSTOM_GRADIENT
from reference_impl.functions.names import ExportName
from reference_impl.functions.registration import register

# Settings that make a step more than a sum of updates of single variables, or that treat some
# variables differently.
_UNSUPPORTED = (
    "global_clipnorm", "gradient_accumulation_steps", "use_ema", "inner_optimizer",
    "_exclude_from_weight_decay", "_exclude_from_weight_decay_pattern",
)  # fmt: skip
_HINT = "update"  # part of the name of the function in the export
_SHAPE_HINTS = ("_output_shapes", "_input_shapes", "_class")
# Kernels that run one by one round differently from fused kernels.
_TOLERANCE = {tf.float64: 1e-10, tf.float32: 1e-5, tf.float16: 1e-2, tf.bfloat16: 5e-2}


@dataclass
class Rule:
    """One traced update of variables of a dtype.

    The inputs are (kind, value) for each argument: gradient and variable (True), slot (its name),
    state (key of `api.optimizer_variables`), or constant (the tensor).
    """

    definition: Any  # FunctionDef of the eager runtime
    inputs: list[tuple[str, Any]]
    slots: dict[str, tf.Tensor]  # name -> the scalar that a new slot holds
    dtype: tf.DType


def check_settings(optimizer: tf.keras.optimizers.Optimizer, path: str) -> None:
    """Raise SaveError for settings under which a step does not consist of updates of single
    variables.
    """
    found = [name.strip("_") for name in _UNSUPPORTED if getattr(optimizer, name, None)]
    if found:
        reason = (
            f"the update rule of {type(optimizer).__name__} with {', '.join(found)} cannot be"
            " exported variable by variable"
        )
        raise SaveError(f"{reason}; save without functional_optimizers", node=path, clause="OPT-07")


def rule_of(
    save: SaveContext, optimizer: tf.keras.optimizers.Optimizer, dtype: tf.DType, path: str
) -> Rule:
    """Return the update rule for variables of a dtype, after a trial run.

    Raises SaveError if it depends on their shape.
    """
    failure: Optional[SaveError] = None
    for shape in (None, [None]):  # code that asks for the rank cannot be traced without one
        try:
            rule = _trace(optimizer, dtype, path, shape)
            _check(save, optimizer, rule, path)
            return rule
        except SaveError as error:
            failure = error
    assert failure is not None
    raise failure


def _trace(
    optimizer: tf.keras.optimizers.Optimizer, dtype: tf.DType, path: str, shape: object
) -> Rule:
    variable = tf.Variable(tf.fill([1], tf.cast(0.5, dtype)), name="variable")
    try:
        twin = _twin(optimizer, variable)
        update = tf.function(lambda gradient: _apply(twin, gradient, variable), autograph=False)
        traced = update.get_concrete_function(tf.TensorSpec(shape, dtype, "gradient"))
        slots = {name: slot for _, name, slot in api.optimizer_slots(twin, [variable])}
    except Exception as error:  # code of users
        raise SaveError(
            f"the update of {type(optimizer).__name__} cannot be traced: {error}",
            node=path,
            clause="OPT-07",
        ) from error
    roles: dict[int, tuple[str, Any]] = {id(variable.handle): ("variable", True)}
    roles.update({id(_plain(slot).handle): ("slot", name) for name, slot in slots.items()})
    for name, owner in api.optimizer_variables(twin).items():
        roles.setdefault(id(_plain(owner).handle), ("state", name))
    inputs: list[tuple[str, Any]] = [("gradient", True)]
    for capture in traced.captured_inputs:
        role = roles.get(id(capture), ("constant", capture))
        if role[0] == "constant" and capture.dtype in (tf.resource, tf.variant):
            reason = (
                f"the update of {type(optimizer).__name__} uses a variable that is neither a slot"
                " nor an attribute of it"
            )
            raise SaveError(reason, node=path, clause="OPT-07")
        inputs.append(role)
    if any(_plain(slot).shape != variable.shape for slot in slots.values()):
        reason = f"{type(optimizer).__name__} has slots of another shape than their variables"
        raise SaveError(reason, node=path, clause="OPT-06")
    starts = {name: _plain(slot)[0] for name, slot in slots.items()}
    return Rule(api.from_tf(traced.function_def, schema.FunctionDef), inputs, starts, dtype)


def add(save: SaveContext, rule: Rule) -> ExportName:
    """Add the function of a rule to an export and return its name there."""
    return save.add_derived(_without_gradients(rule), _HINT, _forget_shapes)


def _without_gradients(rule: Rule) -> schema.FunctionDef:
    """Return the FunctionDef of a rule without custom gradients: updates are not differentiated."""
    definition = schema.copy_of(rule.definition)
    for node in definition.node_def:
        node.attr.pop(CUSTOM_GRADIENT, None)
    return definition


def _forget_shapes(definition: schema.FunctionDef) -> None:
    """Remove the shapes that a function recorded when it was traced."""
    for argument in (*definition.signature.input_arg, *definition.signature.output_arg):
        argument.ClearField("handle_data")
    for attributes in [definition.attr, *(item.attr for item in definition.arg_attr.values())]:
        for key in list(attributes):
            if key in _SHAPE_HINTS or key.startswith("_handle_"):
                del attributes[key]
    for node in definition.node_def:
        for key in _SHAPE_HINTS:
            node.attr.pop(key, None)


def _check(
    save: SaveContext, optimizer: tf.keras.optimizers.Optimizer, rule: Rule, path: str
) -> None:
    """Compare two steps on a matrix with the optimizer's own. Raises SaveError if they differ."""
    start = tf.cast(tf.reshape(tf.linspace(-1.0, 2.0, 6), [2, 3]), rule.dtype)
    expected, actual = tf.Variable(start), tf.Variable(start)
    twin = _twin(optimizer, expected)
    used = _twin(optimizer, other := tf.Variable(start))
    _apply(used, tf.zeros_like(other), other)  # Keras 2 makes some of its variables only now
    owners = {**api.optimizer_variables(used), **api.optimizer_variables(twin)}
    state = {key: tf.Variable(_plain(value)) for key, value in owners.items()}
    slots = {key: tf.Variable(tf.fill([2, 3], value)) for key, value in rule.slots.items()}
    reason = (
        f"the update rule of {type(optimizer).__name__} depends on the shape of the variable, so it"
        " cannot be exported"
    )
    failure = SaveError(f"{reason}; save without functional_optimizers", node=path, clause="OPT-06")
    functions, name = save.library_of(_without_gradients(rule), _HINT, _forget_shapes)
    flat: dict[Any, Any] = {
        "variable": actual.handle,
        **{("slot", key): slot.handle for key, slot in slots.items()},
    }
    flat.update({("state", key): value.handle for key, value in state.items()})
    for factor in (1.0, -0.25):
        gradient = tf.cast(tf.reshape(tf.linspace(0.5, 3.0, 6), [2, 3]) * factor, rule.dtype)
        _apply(twin, gradient, expected)
        inputs = [
            {"gradient": gradient, "constant": value}.get(
                kind, flat.get(kind, flat.get((kind, value)))
            )
            for kind, value in rule.inputs
        ]
        try:
            api.call_registered(
                register(functions, name),
                inputs,
                len(rule.definition.signature.output_arg),
            )
        except tf.errors.InvalidArgumentError as error:
            raise failure from error
    pairs = [(expected, actual)]
    pairs += [(slot, slots[key]) for _, key, slot in api.optimizer_slots(twin, [expected])]
    pairs += [
        (value, state[key]) for key, value in api.optimizer_variables(twin).items() if key in state
    ]
    for one, other in pairs:
        tolerance = _TOLERANCE.get(rule.dtype, 1e-5)
        left, right = (np.asarray(_plain(item).numpy(), np.float64) for item in (one, other))
        if not np.allclose(left, right, rtol=tolerance, atol=tolerance):
            raise failure


def _twin(optimizer: tf.keras.optimizers.Optimizer, variable: tf.Variable) -> Any:
    twin = api.optimizer_twin(optimizer)
    build = getattr(twin, "build", None)
    if build is not None:
        build([variable])
    getattr(twin, "iterations", None)  # older Keras makes it when first asked
    return twin


def _apply(
    optimizer: tf.keras.optimizers.Optimizer, gradient: tf.Tensor, variable: tf.Variable
) -> None:
    optimizer.apply_gradients([(gradient, variable)])


def _plain(variable: tf.Variable) -> tf.Variable:
    return api.variable_components(variable)[0]

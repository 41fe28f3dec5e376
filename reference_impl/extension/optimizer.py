"""Optimizers as they come back: slots by variable and name, and update rules where the file has them (OPT-01..OPT-07).

Whatever optimizer was saved, the object is a generic one. Its variables (learning rate, iterations) are attributes as of any
object. Files of other writers hold no update rule; then it says what it knows, and refuses to apply gradients.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import UnsupportedModelError
from reference_impl.kinds import rebuild, specs, user_object
from reference_impl.kinds.library import FunctionLibrary


@dataclass(frozen=True)
class Rule:
    """The update of a variable of one dtype.

    Attributes:
      function: its name. It takes the gradient and handles, and gives nothing.
      inputs: FunctionInput messages.
      slots: slot name -> the scalar that a new slot is filled with.
    """

    function: str
    inputs: Sequence[Any]
    slots: dict[str, tf.Tensor]


class UpdateRules:
    """The update rules of an optimizer.

    Args:
      library: has the functions.
      state: an OptimizerState.
      loaded: the objects of the load by number.
    """

    def __init__(self, library: FunctionLibrary, state: Any, loaded: Sequence[Any]):
        self.library = library
        self.shared = {number: loaded[number] for number in state.shared}
        self.others = {given.node_id: loaded[given.node_id] for update in state.updates for given in update.inputs
                       if given.WhichOneof("kind") == "node_id"}  # fmt: skip
        self.rules: dict[int, Rule] = {}
        for update in state.updates:
            slots = {slot.name: specs.tensor_to_tf(slot.value) for slot in update.slots}
            self.rules[update.dtype] = Rule(update.function, list(update.inputs), slots)


class LoadedOptimizer(user_object.LoadedObject):
    """What was an optimizer.

    `get_slot`, `get_slot_names` and `slot_variables` (``{(variable.ref(), slot name): slot}``) give what the file says of slots.
    `apply` and `apply_gradients` work for
    models that were saved with ``SaveOptions(functional_optimizers=True)``, on any variable of a dtype that the optimizer knew.
    """

    def __dir__(self) -> list[str]:
        """Without `get_slot_names` where slots are children as well: tf.saved_model.save and tf.train.Checkpoint look here
        whether to ask for slots, and refuse one that they know as a child already (V1-18).
        """
        hidden = {"get_slot_names"} if any(slot.listed for slot in self._slot_list()) else set()
        return [name for name in super().__dir__() if name not in hidden]

    slot_variables = user_object.Computed(
        lambda self: {(slot.variable.ref(), slot.name): slot.value for slot in self._slot_list()}
    )

    def get_slot_names(self) -> list[str]:
        """The names of its slots (OPT-02)."""
        rules: Optional[UpdateRules] = vars(self).get("_optimizer")
        names = {slot.name for slot in self._slot_list()}
        return sorted(names.union(*(rule.slots for rule in rules.rules.values())) if rules is not None else names)

    def get_slot(self, variable: Any, name: str) -> Optional[tf.Variable]:
        """The slot of a variable, None when it has none (OPT-02)."""
        handle = _handle(variable)
        return next((slot.value for slot in self._slot_list() if slot.name == name and _handle(slot.variable) is handle), None)

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]]) -> None:
        """One step: `apply` for pairs of gradient and variable, as `zip` gives them."""
        pairs = list(grads_and_vars)
        self.apply([gradient for gradient, _ in pairs], [variable for _, variable in pairs])

    @tf.autograph.experimental.do_not_convert
    def apply(self, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        """One step with the update rule of the optimizer that was saved (OPT-04, OPT-05).

        Args:
          gradients: one per variable, of its shape; None leaves the variable as it is.
          variables: those of the model, whose slots are known, or any others, which get new slots.

        Raises:
          UnsupportedModelError: the file has no rule, or none for a variable's dtype; or a gradient is sparse.
          ValueError: lengths or shapes differ.
        """
        rules: Optional[UpdateRules] = vars(self).get("_optimizer")
        if rules is None:
            reason = "the model was saved without the update rule of its optimizer; save it with functional_optimizers=True"
            raise UnsupportedModelError(reason, node="apply", clause="OPT-04")
        if len(gradients) != len(variables):
            raise ValueError(f"{len(gradients)} gradients for {len(variables)} variables")
        calls = [_call(self, rules, g, v) for g, v in zip(gradients, variables) if g is not None]
        shared = list(rules.shared.values())
        before = [variable.read_value() for variable in shared] if len(calls) > 1 else []
        for index, (name, inputs) in enumerate(calls):
            if index:  # a step counts once, however many variables it changes
                for variable, value in zip(shared, before):
                    variable.assign(value)
            _run(rules.library, name, inputs)

    def _slot_list(self) -> list[user_object.Slot]:
        return vars(self).setdefault("_slots", [])  # type: ignore[no-any-return]

    def _slot(self, variable: Any, name: str, rule: Rule) -> tf.Variable:
        """The slot of a variable; a new one for a variable that the optimizer has not met (OPT-05)."""
        found = self.get_slot(variable, name)
        if found is None:
            inner = api.variable_components(variable)[0]
            with tf.init_scope():
                value = tf.fill(tf.shape(inner), rule.slots[name])
                found = tf.Variable(value, trainable=False, name=f"{inner.name.split(':')[0]}/{name}", shape=inner.shape)
            self._slot_list().append(user_object.Slot(variable, name, found))
        return found


def _call(optimizer: LoadedOptimizer, rules: UpdateRules, gradient: Any, variable: Any) -> tuple[str, list[tf.Tensor]]:
    """Name and inputs of the function that updates a variable."""
    inner = api.variable_components(variable)[0]
    rule = rules.rules.get(inner.dtype.as_datatype_enum)
    if rule is None:
        known = ", ".join(tf.dtypes.as_dtype(number).name for number in sorted(rules.rules))
        reason = f"no update rule for {inner.dtype.name}, the optimizer that was saved had variables of {known}"
        raise UnsupportedModelError(reason, node=inner.name, clause="OPT-06")
    if isinstance(gradient, tf.IndexedSlices):
        reason = (
            "the gradient is sparse (IndexedSlices), and the update rule takes dense ones; tf.convert_to_tensor(gradient) makes"
        )
        raise UnsupportedModelError(f"{reason} it dense, with which all rows are updated", node=inner.name, clause="OPT-06")
    gradient = tf.convert_to_tensor(gradient, inner.dtype)
    if not inner.shape.is_compatible_with(gradient.shape):
        raise ValueError(f"the gradient of {inner.name} has shape {gradient.shape}, the variable {inner.shape}")
    inputs = []
    for given in rule.inputs:
        kind = given.WhichOneof("kind")
        if kind == "gradient":
            inputs.append(gradient)
        elif kind == "variable":
            inputs.append(inner.handle)
        elif kind == "slot":
            inputs.append(optimizer._slot(variable, given.slot, rule).handle)
        else:
            owner = rules.others[given.node_id]
            inputs.append(owner.handle if isinstance(owner, tf.Variable) else owner)
    return rule.function, inputs


def _run(library: FunctionLibrary, name: str, inputs: list[tf.Tensor]) -> None:
    if tf.executing_eagerly():
        api.call_registered(library.register(name), inputs, len(library.get(name).signature.output_arg))
    else:
        rebuild.specialised(library, name, inputs)(*inputs)


def _handle(variable: Any) -> tf.Tensor:
    return api.variable_components(variable)[0].handle

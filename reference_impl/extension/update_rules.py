"""Update rules: how a loaded optimizer changes variables, for files that were saved with functional
optimizers.

RFC: OPT-03, OPT-04, OPT-05, OPT-06
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import UnsupportedModelError
from reference_impl.format import schema
from reference_impl.functions import rebuild, specs
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import FileName
from reference_impl.functions.registration import register
from reference_impl.kinds.optimizer import LoadedOptimizer, Slot, slots_of


@dataclass(frozen=True)
class Rule:
    """The update of a variable of one dtype, by a function that takes the gradient and handles and
    returns nothing.
    """

    function: FileName
    inputs: Sequence[Any]  # FunctionInput messages
    slots: dict[str, tf.Tensor]  # slot name -> the scalar that a new slot is filled with


class UpdateRules:
    """The update rules of an optimizer among the loaded objects."""

    def __init__(
        self, library: FunctionLibrary, state: schema.OptimizerState, loaded: Sequence[Any]
    ):
        self.library = library
        self.shared = {number: loaded[number] for number in state.shared}
        self.others: dict[int, Any] = {}
        for update in state.updates:
            for given in update.inputs:
                if given.WhichOneof("kind") == "node_id":
                    self.others[given.node_id] = loaded[given.node_id]
        self.rules: dict[int, Rule] = {}
        for update in state.updates:
            slots = {slot.name: specs.tensor_to_tf(slot.value) for slot in update.slots}
            self.rules[update.dtype] = Rule(FileName(update.function), list(update.inputs), slots)

    def slot_names(self) -> set[str]:
        """Return the names of the slots that the rules use."""
        return set().union(*(rule.slots for rule in self.rules.values()))

    def apply(
        self, optimizer: LoadedOptimizer, gradients: Sequence[Any], variables: Sequence[Any]
    ) -> None:
        """Apply one step; see `LoadedOptimizer.apply`."""
        if len(gradients) != len(variables):
            raise ValueError(f"{len(gradients)} gradients for {len(variables)} variables")
        calls = [self._call(optimizer, g, v) for g, v in zip(gradients, variables) if g is not None]
        shared = list(self.shared.values())
        before = [variable.read_value() for variable in shared] if len(calls) > 1 else []
        for index, (name, inputs) in enumerate(calls):
            if index:  # a step counts once, however many variables it changes
                for variable, value in zip(shared, before):
                    variable.assign(value)
            _run(self.library, name, inputs)

    def _call(
        self,
        optimizer: LoadedOptimizer,
        gradient: Union[tf.Tensor, tf.IndexedSlices],
        variable: tf.Variable,
    ) -> tuple[FileName, list[tf.Tensor]]:
        """Return the name and inputs of the function that updates a variable."""
        inner = api.variable_components(variable)[0]
        rule = self.rules.get(inner.dtype.as_datatype_enum)
        if rule is None:
            known = ", ".join(tf.dtypes.as_dtype(number).name for number in sorted(self.rules))
            reason = (
                f"no update rule for {inner.dtype.name}, the optimizer that was saved had variables"
                f" of {known}"
            )
            raise UnsupportedModelError(reason, node=inner.name, clause="OPT-06")
        if isinstance(gradient, tf.IndexedSlices):
            reason = (
                "the gradient is sparse (IndexedSlices), and the update rule takes dense ones; "
            )
            reason += (
                "tf.convert_to_tensor(gradient) makes it dense, with which all rows are updated"
            )
            raise UnsupportedModelError(reason, node=inner.name, clause="OPT-06")
        gradient = tf.convert_to_tensor(gradient, inner.dtype)
        if not inner.shape.is_compatible_with(gradient.shape):
            raise ValueError(
                f"the gradient of {inner.name} has shape {gradient.shape}, the variable"
                f" {inner.shape}"
            )
        inputs = []
        for given in rule.inputs:
            kind = given.WhichOneof("kind")
            if kind == "gradient":
                inputs.append(gradient)
            elif kind == "variable":
                inputs.append(inner.handle)
            elif kind == "slot":
                inputs.append(_slot(optimizer, variable, given.slot, rule).handle)
            else:
                owner = self.others[given.node_id]
                inputs.append(owner.handle if isinstance(owner, tf.Variable) else owner)
        return rule.function, inputs


def _slot(optimizer: LoadedOptimizer, variable: tf.Variable, name: str, rule: Rule) -> tf.Variable:
    """Return the slot of a variable; make one for a variable that the optimizer has not updated
    before.

    RFC: OPT-05
    """
    found = optimizer.get_slot(variable, name)
    if found is None:
        inner = api.variable_components(variable)[0]
        with tf.init_scope():
            value = tf.fill(tf.shape(inner), rule.slots[name])
            found = tf.Variable(
                value, trainable=False, name=f"{inner.name.split(':')[0]}/{name}", shape=inner.shape
            )
        slots_of(optimizer).append(Slot(variable, name, found))
    return found


def _run(library: FunctionLibrary, name: FileName, inputs: list[tf.Tensor]) -> None:
    if tf.executing_eagerly():
        api.call_registered(
            register(library, name), inputs, len(library.get(name).signature.output_arg)
        )
    else:
        rebuild.specialised(library, name, inputs)(*inputs)

"""Optimizers: generic objects with slots, which are variables that an optimizer keeps for each
trained variable.

A saved optimizer of any class is loaded as a generic object. Its variables (learning rate,
iterations) are attributes, as for any object. Shipped files do not hold update rules, so a loaded
optimizer returns its slots but refuses to apply gradients; see
`reference_impl.extension.update_rules` for files with update rules.

RFC: OPT-01, OPT-02, OPT-07
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import UnsupportedModelError
from reference_impl.format import schema
from reference_impl.format.names import PRIVATE
from reference_impl.functions.load_context import LoadContext
from reference_impl.graph import node_kinds
from reference_impl.kinds import user_object

_SLOTS, _RULES = f"{PRIVATE}slots", f"{PRIVATE}rules"  # attributes of a loaded optimizer


class Slot(NamedTuple):
    """The slot of a variable. ``listed``: the slot is also a child of some object (Keras 3)."""

    variable: tf.Variable
    name: str
    value: tf.Variable
    listed: bool = False


class SavedSlot(NamedTuple):
    """A slot of an export, by node numbers.

    A ``listed`` slot is also a child of some object: checkpoints store it under the path of that
    object (Keras 3), and the extension records that it is a slot.
    """

    optimizer: int
    variable: int
    name: str
    value: int
    listed: bool


def write_slot(nodes: Any, slot: SavedSlot) -> None:
    """Write a slot into the nodes of the object graph of a SavedModel or a checkpoint."""
    out = nodes[slot.optimizer].slot_variables.add(slot_name=slot.name)
    out.original_variable_node_id, out.slot_variable_node_id = slot.variable, slot.value


def slots_of(optimizer: LoadedOptimizer) -> list[Slot]:
    """Return the list of an optimizer's slots, to which slots may be added."""
    return optimizer.__dict__.setdefault(_SLOTS, [])


def rules_of(optimizer: LoadedOptimizer) -> Optional[Any]:
    """Return the update rules of an optimizer, or None."""
    return vars(optimizer).get(_RULES)


def set_rules(optimizer: LoadedOptimizer, rules: object) -> None:
    """Give an optimizer its update rules (`reference_impl.extension.update_rules.UpdateRules`)."""
    optimizer.__dict__[_RULES] = rules


class LoadedOptimizer(user_object.LoadedObject):
    """A loaded optimizer.

    `get_slot`, `get_slot_names` and `slot_variables` (``{(variable.ref(), slot name): slot}``)
    return the slots of the file. `apply` and `apply_gradients` work for models that were saved with
    ``SaveOptions(functional_optimizers=True)``, on any variable whose dtype the saved optimizer
    had.
    """

    _unsearched = user_object.LoadedObject._unsearched | {_SLOTS, _RULES}

    def __dir__(self) -> list[str]:
        """Leave out `get_slot_names` if slots are children as well, because writers that see it
        refuse such children.

        RFC: V1-18
        """
        hidden = {"get_slot_names"} if any(slot.listed for slot in slots_of(self)) else set()
        return [name for name in super().__dir__() if name not in hidden]

    slot_variables = user_object.Computed(
        lambda self: {(slot.variable.ref(), slot.name): slot.value for slot in slots_of(self)}
    )

    def get_slot_names(self) -> list[str]:
        """Return the names of the slots.

        RFC: OPT-02
        """
        rules = rules_of(self)
        return sorted(
            {slot.name for slot in slots_of(self)}
            | (rules.slot_names() if rules is not None else set())
        )

    def get_slot(self, variable: tf.Variable, name: str) -> Optional[tf.Variable]:
        """Return the slot of a variable, or None.

        RFC: OPT-02
        """
        handle = _handle(variable)
        return next(
            (
                slot.value
                for slot in slots_of(self)
                if slot.name == name and _handle(slot.variable) is handle
            ),
            None,
        )

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]]) -> None:
        """Apply one step to pairs of gradient and variable, as `zip` returns them; see `apply`."""
        pairs = list(grads_and_vars)
        self.apply([gradient for gradient, _ in pairs], [variable for _, variable in pairs])

    @api.without_autograph
    def apply(self, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        """Apply one step with the update rule of the saved optimizer.

        Args:
          gradients: one per variable, of its shape; None leaves the variable as it is.
          variables: variables of the model, whose slots are loaded, or other variables, which get
            new slots.

        Raises:
          UnsupportedModelError: the file has no rule, or none for a variable's dtype; or a gradient
            is sparse.
          ValueError: lengths or shapes differ.

        RFC: OPT-04, OPT-05, OPT-06
        """
        rules = rules_of(self)
        if rules is None:
            reason = (
                "the model was saved without the update rule of its optimizer; save it with"
                " functional_optimizers=True"
            )
            raise UnsupportedModelError(reason, node="apply", clause="OPT-04")
        rules.apply(self, gradients, variables)


class OptimizerKind(user_object.UserObjectKind):
    """Optimizers. A user object whose node has slots: a variable for each trained variable."""

    message = node_kinds.OPTIMIZER

    def attach(self, load: LoadContext, number: int, node: schema.SavedObject) -> None:
        """Give an optimizer its attributes and its slots."""
        super().attach(load, number, node)
        made = load.objects[number]
        if not isinstance(made, LoadedOptimizer):
            return  # of a registered class
        for slot in node.slot_variables:
            variable = load.objects[slot.original_variable_node_id]
            value = load.objects[slot.slot_variable_node_id]
            slots_of(made).append(Slot(variable, slot.slot_name, value))

    def matches(self, obj: object) -> bool:
        return isinstance(obj, LoadedOptimizer) or api.is_optimizer(obj)


def _handle(variable: tf.Variable) -> tf.Tensor:
    return api.variable_components(variable)[0].handle


KIND = OptimizerKind(LoadedOptimizer)

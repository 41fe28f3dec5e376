"""Find attributes of exported objects that hold numbers and would not be saved.

A SavedModel has places for variables, tables, functions, modules, and for lists, tuples and dicts
of these. All other attributes are lost. For plain Python values this is intended (FN-14). Arrays,
tensors, and variables in containers that TensorFlow does not search are state, and their loss must
be reported (PRIM-06).

An array is not lost if an exported function has its numbers (`exported_code`). A tensor that a
function captures is in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError, listed
from reference_impl.saving.checks.authorship import FRAMEWORKS, package
from reference_impl.saving.checks.exported_code import exported_code
from reference_impl.saving.checks.own_attributes import own_attributes
from reference_impl.saving.checks.unsaved_values import Unsaved, unsaved_values
from reference_impl.saving.children import holds_python_values, is_mapping
from reference_impl.saving.exported_functions import ExportedFunctions
from reference_impl.saving.node import Node
from reference_impl.saving.traces import is_function
from reference_impl.saving.tree import Tree

# Objects whose attributes are not their state: these say themselves what is to be saved of them.
_STATED = (
    api.Function,
    api.ConcreteFunction,
    api.CapturableResource,
    tf.train.experimental.PythonState,
)


def check(tree: Tree, functions: ExportedFunctions) -> None:
    """Report all values with numbers that an export leaves out.

    Raises:
      SaveError: there are such values (with ``strict``; otherwise a warning). The error names all
        attributes and elements.

    RFC: PRIM-06, FN-14
    """
    unsaved: list[Unsaved] = []
    for node in tree.nodes:
        unsaved += _of_node(tree, node)
    exported = exported_code(tree, functions) if unsaved else []

    def is_exported(item: Unsaved) -> bool:
        if _is_captured(tree, item):
            return True
        return any(code.has(item.value, item.arrays) for code in exported)

    found = [item for item in unsaved if not is_exported(item)]
    if not found:
        return
    named = listed(f"{item.place} ({item.what})" if item.what else item.place for item in found)
    reason = (
        f"not trackable, so they would be missing after loading: {named}. Make variables of"
        " numbers "
    )
    reason += (
        "(trainable=False for constants), and keep variables in attributes, lists, tuples and"
        " dicts. "
    )
    reason += "Save with strict=False to leave them out."
    tree.report_loss(SaveError(reason, node=found[0].place, clause="PRIM-06"))


def _is_captured(tree: Tree, item: Unsaved) -> bool:
    """Return whether all parts of a tensor are captured by functions."""
    parts = (
        tf.nest.flatten(item.value, expand_composites=True)
        if item.arrays and not isinstance(item.value, np.ndarray)
        else []
    )
    return bool(parts) and all(tree.number_of(part) is not None for part in parts)


def _of_node(tree: Tree, node: Node) -> Iterator[Unsaved]:
    obj = node.object
    if node.is_variable:
        if _constraint(obj) is not None:
            yield Unsaved(f"{node.path}.constraint", "the constraint of a variable")
    elif isinstance(obj, (list, tuple)) or is_mapping(obj):
        yield from _leaves(tree, node)
    elif isinstance(obj, api.Trackable) and not isinstance(obj, _STATED):
        found = [
            (f"{node.path}.{name}", value)
            for name, value in own_attributes(obj)
            if name not in node.children
        ]
        yield from unsaved_values(tree, found)


def _constraint(variable: object) -> Any:
    """Return the constraint that a user gave to a variable.

    Keras constraints are in Keras' own description of the layer.
    """
    holder = variable if isinstance(variable, tf.Variable) else api.variable_components(variable)[0]
    constraint = getattr(holder, "constraint", None)
    return None if package(constraint) in FRAMEWORKS else constraint


def _leaves(tree: Tree, node: Node) -> Iterator[Unsaved]:
    """Yield the Python values beside tracked objects in a container.

    Dropping them would also change the order of a list.
    """
    container = node.object
    children = [tree.nodes[number].object for name, number in node.children.items()]
    if not children:
        return
    kept = {id(child) for child in children}
    for key, item in container.items() if isinstance(container, Mapping) else enumerate(container):
        if item is None or id(item) in kept or _is_kept(item):
            continue
        private = node.of_library or node.path.rpartition(".")[2].startswith("_")
        if private and package(type(item)) in FRAMEWORKS:
            # internal data of a library: the operations of a Keras 3 model, the tables of a Keras 2
            # layer
            continue
        yield Unsaved(f"{node.path}[{key!r}]", "")


def _is_kept(item: object) -> bool:
    """Return whether an element is saved.

    Wrappers list nested containers under another identity.
    """
    if isinstance(item, (list, dict, tuple)):
        return not holds_python_values(item)
    return isinstance(item, api.Trackable) or is_function(item)

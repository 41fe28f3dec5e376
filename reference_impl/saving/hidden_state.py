"""State that functions keep inside of themselves, where no save finds it (V1-17).

A TF 1.x MetaGraph that tf.saved_model.load imports keeps its reference variables and its tables as nodes of the functions. Their
values live in the runtime, belong to no object, and would be gone from the export without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from reference_impl.errors import SaveError
from reference_impl.format.graphs import data_inputs, parse_input

_VARIABLES = frozenset({"Variable", "VariableV2", "AutoReloadVariable"})
_SHOWN = 8


def check(functions: Iterable[Any]) -> None:
    """Refuse functions with state in them.

    Args:
      functions: FunctionDefs of the export.

    Raises:
      SaveError: naming the nodes, all at once.
    """
    found = sorted({text for function in functions for text in _nodes(function)})
    if not found:
        return
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise SaveError(
        f"the functions keep {len(found)} variables or tables of TF 1.x inside, whose values no object holds: "
        f"{', '.join(found[:_SHOWN])}{more}. Load the model with reference_impl.load, which makes objects of them",
        node=found[0],
        clause="V1-17",
    )


def _nodes(function: Any) -> Iterator[str]:
    tables = set()
    for node in function.node_def:
        if node.op in _VARIABLES:
            yield node.name
        elif node.op.startswith("Mutable") and "HashTable" in node.op and _is_shared(node):
            tables.add(node.name)
    if tables:  # what only creates a table hands it on; whose table that is, the object graph says
        users = [node for node in function.node_def if node.op != "Identity"]
        used = {parse_input(text, in_function=True).source for node in users for text in data_inputs(node)}
        yield from tables & used


_SHARING = (("shared_name", "s"), ("use_node_name_sharing", "b"))


def _is_shared(node: Any) -> bool:
    attributes = dict(node.attr)  # asking the message for an attribute that it lacks would put an empty one there
    return any(bool(getattr(attributes[key], kind)) for key, kind in _SHARING if key in attributes)

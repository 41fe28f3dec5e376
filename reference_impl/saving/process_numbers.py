"""Numbers of the process in the names inside a traced function.

TensorFlow writes its counter of unique numbers into names of arguments and nodes. An export would
then depend on earlier work of the process, and two exports of one object would differ.

RFC: FN-17
"""

from __future__ import annotations

import re

from reference_impl.format import schema
from reference_impl.graph.function_builder import USER_NAME
from reference_impl.graph.node_attributes import text_of

# The name scope of a table's initialiser, and arguments that the condition of a loop does not use.
_NUMBERED = re.compile(r"(key_value_init)\d+|(\w+?_)\d+(?=___redundant_placeholder)")
# One of these is in every name that has such a number.
_MARKS = b"key_value_init", b"___redundant_placeholder"
_LOADED = re.compile(r"(?:_load_\d+(?:_\d+)?)+$")


def without_load(shared_name: str) -> str:
    """Return the shared name of a resource without the numbers that `tf.saved_model.load` adds."""
    return _LOADED.sub("", shared_name)


def remove_process_numbers(definition: schema.FunctionDef) -> None:
    """Number the names inside a FunctionDef of the eager runtime from 0; captured tensors lose the
    number that is their name.
    """
    for attributes in definition.arg_attr.values():
        if text_of(attributes.attr, USER_NAME).isdigit():
            del attributes.attr[USER_NAME]
    data = definition.SerializeToString()
    if any(mark in data for mark in _MARKS):  # in hardly any function
        _renumber(definition)


def _renumber(definition: schema.FunctionDef) -> None:
    """Number the names inside a FunctionDef from 0."""
    known: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return known.setdefault(match[0], f"{match[1] or match[2]}{len(known)}")

    def renamed(text: str) -> str:
        return _NUMBERED.sub(number, text)

    signature = definition.signature
    for argument in signature.input_arg:
        argument.name = renamed(argument.name)
    for node in definition.node_def:
        node.name = renamed(node.name)
        node.input[:] = [renamed(name) for name in node.input]
    for results in (definition.ret, definition.control_ret):
        for key, value in list(results.items()):
            del results[key]
            results[renamed(key)] = renamed(value)
    for result in signature.output_arg:
        result.name = renamed(result.name)
    signature.control_output[:] = [renamed(name) for name in signature.control_output]

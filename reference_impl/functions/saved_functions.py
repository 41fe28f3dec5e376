"""The functions of a load, from the messages that describe them: a FunctionDef of the library, and
its SavedConcreteFunction in the object graph.

RFC: FN-05, FMT-03
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

import tensorflow as tf

from reference_impl.errors import MalformedError, MissingKeyError, under_rule
from reference_impl.format import schema
from reference_impl.functions import binding, specs
from reference_impl.functions.argument_specs import input_specs
from reference_impl.functions.binding import Binder
from reference_impl.functions.bound_function import Structure
from reference_impl.functions.load_context import LoadContext
from reference_impl.functions.names import FileName
from reference_impl.functions.registered_function import RegisteredFunction


def read(load: LoadContext, number: int, node: schema.SavedObject) -> RegisteredFunction:
    """Make the function of a `bare_concrete_function` node."""
    bare = node.bare_concrete_function
    name = FileName(bare.concrete_function_name)
    known = load.functions.get(name)
    # A trace of a known function has that function's signature.
    binder = known.binder if known is not None else None
    if binder is None and bare.HasField("function_spec"):
        binder = binding.read(load, bare.function_spec, name)
    function = trace(load, name, binder)
    function.set_flat_arguments(list(bare.argument_keywords), bare.allowed_positional_arguments)
    return function


def trace(load: LoadContext, name: FileName, binder: Optional[Binder]) -> RegisteredFunction:
    """Return the function of a name, the same object for all nodes that refer to it.

    Raises MissingKeyError: the library or the object graph has no such function.
    """
    if name not in load.functions:
        with under_rule("SM-FN-1"):
            function_def = load.library.get(name)
        if name not in load.graph.concrete_functions:  # the property would create it
            raise MissingKeyError(
                "the object graph does not describe the function",
                file=load.file,
                node=name,
                rule="SM-FN-1",
            )
        saved = load.graph.concrete_functions[name]
        signature = signature_of(saved, function_def, load.file)
        load.functions[name] = RegisteredFunction(load.library, name, signature, binder)
        load.functions[name].saved = saved
    function: RegisteredFunction = load.functions[name]
    if function.binder is None:
        function.binder = binder
    return function


def find(load: LoadContext, name: FileName) -> Optional[RegisteredFunction]:
    """Return a function of the library, or None.

    A function that the object graph does not describe takes the flat arguments of its FunctionDef.
    """
    if name in load.functions or name not in load.library:
        return load.functions.get(name)
    function_def = load.library.get(name)
    function = RegisteredFunction(load.library, name, lambda: _flat_signature(function_def))
    arguments = [argument.name for argument in function_def.signature.input_arg]
    function.set_flat_arguments(arguments, len(arguments))
    return function


def signature_of(
    saved: schema.SavedConcreteFunction, function: schema.FunctionDef, file: str
) -> Callable[[], Structure]:
    """Return a function that returns ``((args, kwargs), results)`` of a SavedConcreteFunction:
    nests of TypeSpecs and literals.

    If the function has no structured arguments, its flat arguments are returned as positional
    arguments.
    """
    name = function.signature.name

    def decode() -> Structure:
        inputs = specs.decode(saved.canonicalized_input_signature, file, name)
        if inputs is None:
            given = max(0, len(function.signature.input_arg) - len(saved.bound_inputs))
            inputs = tuple(input_specs(function)[:given]), {}
        if not _is_call(inputs):
            raise MalformedError(
                "the input signature is not a pair of tuple and dict", file=file, node=name
            )
        return inputs, specs.decode(saved.output_signature, file, name)

    return decode


def _is_call(inputs: object) -> bool:
    """Return whether a value is ``(args, kwargs)``."""
    if not isinstance(inputs, tuple) or len(inputs) != 2:
        return False
    return isinstance(inputs[0], tuple) and isinstance(inputs[1], dict)


def _flat_signature(function: schema.FunctionDef) -> Structure:
    """Return ``((args, kwargs), results)`` of a FunctionDef without another description: all its
    tensors in order.
    """
    results = [
        tf.TensorSpec(None, specs.tf_dtype(result.type)) for result in function.signature.output_arg
    ]
    return (tuple(input_specs(function)), {}), results

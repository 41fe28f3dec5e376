"""Loaded functions as concrete functions of TensorFlow, with a graph.

Needed when a tape or an accumulator is active, when an outer function is being traced, or when a
caller asks for the graph. Gradients, nesting and re-export are then TensorFlow's own.

RFC: FN-05, GOAL-02
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format.names import plain_name
from reference_impl.functions import function_settings, patterns, rebuild
from reference_impl.functions.bound_function import BoundFunction
from reference_impl.functions.captures import placeholder_name
from reference_impl.graph.argument_names import python_name, python_names


class RebuiltFunction:
    """A loaded function that TensorFlow has traced.

    Attributes:
      concrete: TensorFlow's concrete function.
    """

    def __init__(self, function: BoundFunction):
        library = function.library
        eager = api.eager_mode() if library.eager else contextlib.nullcontext()
        with library.lock, tf.init_scope(), eager:
            self.concrete = _traced(function)
        self.concrete.graph.variables = function.variables
        if not function.of_graph:
            api.name_results(self.concrete, function.structured[1])
        elif function.placeholders:
            api.name_arguments(self.concrete)

    def captured_inputs(self, function: BoundFunction) -> list[tf.Tensor]:
        """Return the captures of the graph, each handle once; a distributed variable has one handle
        in each replica.

        RFC: DIST-01
        """
        if not function.is_distributed:
            return list(self.concrete.captured_inputs)
        return list({id(handle): handle for handle in function.captured()}.values())

    def run(self, function: BoundFunction, tensors: Sequence[tf.Tensor]) -> Any:
        """Call the concrete function with flat tensors; return the structured result."""
        return api.call_flat(self.concrete, tensors, self.captured_inputs(function))


def _traced(function: BoundFunction) -> tf.types.experimental.ConcreteFunction:
    args, kwargs = function.structured[0]
    body = _body(function)
    # TensorFlow would sort renamed arguments by its own names for them.
    renamed = any(python_name(name) != name for name in kwargs)
    if renamed or (function.of_graph and not args):
        names, keywords = sorted(kwargs), python_names(kwargs)
        _set_signature(body, function_settings.signature_with(keywords[name] for name in names))
        args, kwargs = tuple(kwargs[name] for name in names), {}
    elif function.binder is not None:
        _set_signature(body, function.binder.signature)
    args, kwargs = _named_as_saved(function, (args, kwargs))
    traced = function_settings.as_tf_function(function.definition, body)
    return traced.get_concrete_function(*args, **kwargs)


def _set_signature(body: Callable[..., Any], signature: Any) -> None:
    body.__signature__ = signature  # type: ignore[attr-defined]  # which `inspect` reads


def _named_as_saved(function: BoundFunction, structure: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the specs of the arguments with the names of the placeholders: of the TF 1.x graph,
    else of the FunctionDef.
    """
    arguments = function.definition.signature.input_arg
    names = iter(function.placeholders or [item.name for item in arguments])

    def named(spec: object) -> object:
        if not isinstance(spec, tf.TypeSpec):  # a Python value
            return spec
        own = [next(names, "") for _ in tf.nest.flatten(spec, expand_composites=True)]
        if type(spec) is not tf.TensorSpec:
            return spec
        return tf.TensorSpec(spec.shape, spec.dtype, placeholder_name(own[0]) or spec.name)

    found: tuple[Any, Any] = tf.nest.map_structure(named, structure)
    return found


def _body(function: BoundFunction) -> Callable[..., Any]:
    """Return the Python function that TensorFlow traces."""

    def body(*args: object, **kwargs: object) -> Any:
        leaves = tf.nest.flatten((args, kwargs), expand_composites=True)
        inputs = [
            leaf.handle if isinstance(leaf, tf.Variable) else leaf
            for leaf in leaves
            if isinstance(leaf, (tf.Tensor, tf.Variable))
        ]
        inputs += _placeholders(function, len(inputs))
        results = rebuild.interpret(function.library, function.saved_name, inputs)
        _set_shapes(function, results)
        return patterns.packer(function.structured[1])[1](iter(results))

    body.__name__ = plain_name(function.saved_name)
    return body


def _placeholders(function: BoundFunction, first: int) -> list[tf.Tensor]:
    """Capture the tensors of the captured objects in the graph that is being traced; `first` is the
    position of their first argument.
    """
    graph = tf.compat.v1.get_default_graph()
    arguments = function.definition.signature.input_arg[first:]
    return [
        graph.capture(handle, name=placeholder_name(argument.name))
        for handle, argument in zip(function.captured(building=True), arguments)
    ]


def _set_shapes(function: BoundFunction, results: Sequence[tf.Tensor]) -> None:
    """Give the results the shapes of the specs.

    What a SignatureDef says of a tensor of a TF 1.x graph may be wrong; the graph is followed.
    """
    leaves = tf.nest.flatten(function.structured[1], expand_composites=True)
    specs = [leaf for leaf in leaves if isinstance(leaf, tf.TypeSpec)]
    for result, spec in zip(results, specs):
        trusted = isinstance(spec, tf.TensorSpec) and (
            not function.of_graph or result.shape.is_compatible_with(spec.shape)
        )
        if trusted:
            result.set_shape(spec.shape)

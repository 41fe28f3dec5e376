"""tf.function objects, concrete functions and their graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional, TypeVar, Union, cast

import tensorflow as tf

from reference_impl.format.names import CUSTOM_GRADIENT
from reference_impl.tensorflow_api.lookup import private, text

# The class of tf.function objects: Keras and TensorFlow's own writer recognise functions by it.
# `tf.types.experimental` has only abstract bases. Same module in 2.12-2.21.
Function = private("tensorflow.python.eager.polymorphic_function.polymorphic_function:Function")
# concrete_function since 2.14 or 2.15; monomorphic_function in 2.12.
ConcreteFunction = private(
    "tensorflow.python.eager.polymorphic_function.concrete_function:ConcreteFunction",
    "tensorflow.python.eager.polymorphic_function.monomorphic_function:ConcreteFunction",
)

_autograph_artifact = private("tensorflow.python.autograph.impl.api:autograph_artifact")

_F = TypeVar("_F", bound=Callable[..., Any])
_E = TypeVar("_E", bound=Union[type, Callable[..., Any]])


def without_autograph(function: _F) -> _F:
    """Decorate a function whose Python code AutoGraph must not convert.

    Public API; TensorFlow's own name for it has no type.
    """
    return tf.autograph.experimental.do_not_convert(function)


def unconverted(entity: _E) -> _E:
    """Decorate a function, or a class with a `__call__`, whose own code AutoGraph must not convert.

    The public `do_not_convert` also turns AutoGraph off for everything that the function calls,
    which takes longer than to match the arguments of a call. In 2.4-2.21.
    """
    return cast(_E, _autograph_artifact(entity))


def call_flat(
    function: tf.types.experimental.ConcreteFunction,
    tensors: Sequence[tf.Tensor],
    captures: Sequence[tf.Tensor],
) -> Any:
    """Call a concrete function with its inputs in order.

    The public call would bind and check arguments a second time.

    `ConcreteFunction._call_flat` is in 2.12-2.21.
    """
    return ConcreteFunction._call_flat(function, list(tensors), list(captures))


def traces(function: tf.types.experimental.GenericFunction) -> list[Any]:
    """Return the concrete functions of a tf.function in the order in which they were traced,
    without tracing. In 2.12-2.21.
    """
    listed = getattr(
        function, "concrete_functions", None
    )  # of loaded functions, TensorFlow's and ours
    if listed is not None:
        return list(listed)
    cache = getattr(function, "_function_cache", None)  # since 2.13 or so
    if cache is not None:
        return list(cache.values())
    found: list[Any] = []
    for name in ("_variable_creation_fn", "_no_variable_creation_fn"):
        inner = getattr(function, name, None)
        if inner is not None:
            found += inner._list_all_concrete_functions()
    return found


def untraced_copy(function: tf.types.experimental.GenericFunction) -> Any:
    """Return a tf.function with the Python code and the settings of another one, without its
    traces.

    No public API gives the settings. `Function._clone` is in 2.4-2.21.
    """
    return function._clone(None)


def creation_trace(function: tf.types.experimental.GenericFunction) -> Optional[Any]:
    """Return the trace in which a tf.function made its variables, or None.

    `_created_variables` and `_concrete_variable_creation_fn` are in 2.11-2.21; nothing else
    distinguishes this trace from the others. They are attributes of the instance; a loaded function
    without them would make a tf.function to look for them.

    RFC: INIT-08
    """
    return (
        getattr(function, "_concrete_variable_creation_fn", None)
        if vars(function).get("_created_variables")
        else None
    )


def jit_compile(function: tf.types.experimental.GenericFunction) -> Optional[bool]:
    """Return the argument ``jit_compile`` of a tf.function. In 2.12-2.21."""
    return getattr(function, "_jit_compile", None)


_trace_type = private("tensorflow.core.function.trace_type:from_value")


def name_results(function: tf.types.experimental.ConcreteFunction, outputs: object) -> None:
    """Rename the results in the function type of a concrete function after the names of specs.

    `tf.types.experimental` has the classes of the type, but cannot derive another type.
    `_function_type` is in 2.13-2.21, `from_value` in 2.9-2.21.
    """
    kind = getattr(function, "_function_type", None)
    if kind is not None:
        result = _trace_type(outputs) if outputs is not None else kind.output
        function._function_type = type(kind)(
            list(kind.parameters.values()), kind.captures, return_annotation=result
        )


def name_arguments(function: tf.types.experimental.ConcreteFunction) -> None:
    """Rename the arguments in the function type of a concrete function after its keywords, not
    after its placeholders.

    TensorFlow describes the signatures of TF 1.x models so. `_function_type` is in 2.13-2.21.
    """
    kind = getattr(function, "_function_type", None)
    if kind is None:
        return
    named = []
    for parameter in kind.parameters.values():
        spec = parameter.type_constraint
        if type(spec) is tf.TensorSpec:
            spec = tf.TensorSpec(spec.shape, spec.dtype, parameter.name)
        named.append(type(parameter)(parameter.name, parameter.kind, parameter.optional, spec))
    function._function_type = type(kind)(named, kind.captures, return_annotation=kind.output)


def flat_arguments(concrete: tf.types.experimental.ConcreteFunction) -> tuple[list[str], int]:
    """Return the names of the flat inputs of a concrete function, and how many may be positional.

    In 2.4-2.21.
    """
    return list(getattr(concrete, "_arg_keywords", None) or ()), getattr(
        concrete, "_num_positional_args", None
    ) or 0


def saving_errors(concrete: tf.types.experimental.ConcreteFunction) -> list[str]:
    """Return the reasons, recorded by TensorFlow in its graph, why a traced function cannot be
    saved.

    `FuncGraph.saving_errors` is in 2.4-2.21. The error of a strategy (values_util) is left out: it
    concerns replicas of variables, which `reference_impl.saving.replicas` merges or refuses.
    """
    found = getattr(concrete.graph, "saving_errors", ())
    return sorted(error.strip() for error in found if "f_with_input_signature" not in error)


def nested_graphs(graph: tf.Graph) -> list[tuple[str, Any]]:
    """Return name and graph of the functions that a graph knows.

    `Graph._functions` is in 2.4-2.21.
    """
    functions = [
        (name, getattr(function, "graph", None)) for name, function in graph._functions.items()
    ]
    return [(text(name), inner) for name, inner in functions if inner is not None]


def undecorated(function: Callable[..., Any]) -> Any:
    """Return the function inside the wrappers of TensorFlow's decorators.

    The mark of such a wrapper is in 2.4-2.21.
    """
    while hasattr(function, "_tf_decorator") and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def was_imported(operation: tf.Operation) -> bool:
    """Return whether TensorFlow copied an operation from a FunctionDef or GraphDef, instead of
    tracing Python code.

    Only an operation that Python code made has a stack trace. In 2.12-2.21.
    """
    return operation.traceback is None


def copied_from(graph: tf.Graph) -> Optional[Any]:
    """Return the graph that TensorFlow copied to differentiate an If or While, or None.

    The copy is named after the function of the original, and the graph with the If knows that
    function. In 2.12-2.21.
    """
    outer = getattr(graph, "outer_graph", None)
    if not hasattr(
        outer, "outer_graph"
    ):  # a plain graph, in which tf.saved_model.load builds functions
        return None
    original = dict(nested_graphs(outer)).get(graph.name.removesuffix("_rewritten"))
    return None if original is graph else original


def own_functions(graph: tf.Graph) -> set[str]:
    """Return the names of the functions that a graph itself refers to, not only through another
    function.
    """
    known = dict(nested_graphs(graph))
    brought: set[str] = set()
    for name, inner in known.items():
        brought.update(other for other, _ in nested_graphs(inner) if other != name)
    return known.keys() - brought


def captured_as(graph: tf.Graph, tensor: tf.Tensor) -> tf.Tensor:
    """Return the placeholder for a captured tensor in the graph of a function, or the tensor itself
    if it is not captured.

    The public `captured_inputs` belongs to concrete functions, not to graphs. `external_captures`
    and `internal_captures` of a FuncGraph are in 2.4-2.21.
    """
    pairs = zip(getattr(graph, "external_captures", ()), getattr(graph, "internal_captures", ()))
    return next((inner for outer, inner in pairs if outer is tensor), tensor)


def set_loop_graphs(
    operation: tf.Operation,
    cond: tf.types.experimental.ConcreteFunction,
    body: tf.types.experimental.ConcreteFunction,
) -> None:
    """Give a While operation the graphs of concrete functions, as `tf.while_loop` does for its
    gradient. In 2.4-2.21.
    """
    for function in (cond, body):
        function.graph.outer_graph = operation.graph
        function.graph.name = text(function.name)  # without the number that makes the name unique
    operation._cond_graph, operation._body_graph = cond.graph, body.graph


def operations_with_gradients(graph: tf.Graph) -> dict[str, list[tf.Operation]]:
    """Return op type of a custom gradient -> the operations of a graph that have it."""
    found: dict[str, list[tf.Operation]] = {}
    for operation in graph.get_operations():
        op_type = gradient_op_type(operation)
        if op_type:
            found.setdefault(op_type, []).append(operation)
    return found


def gradient_op_type(operation: tf.Operation) -> str:
    """Return the op type under which the custom gradient of an operation is registered, or "".

    The public `get_attr` raises an error for every operation without the attribute, which takes
    time.
    """
    return (
        operation.node_def.attr[CUSTOM_GRADIENT].s.decode("utf-8", "replace")
        if operation.type.startswith("Identity")
        else ""
    )

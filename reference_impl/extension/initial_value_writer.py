"""Find the functions that give variables their first values, for the extension of a file.

There are three sources, in this order:

1. a function given to `reference_impl.initializer`, which is traced during the save;
2. the initial value that was loaded with a variable;
3. for a variable that was made inside a `tf.function`, the trace that made it. In that trace
   TensorFlow puts ``if not initialized: assign(handle, value)``. The nodes that compute `value` are
   cut out and become a function. Side effects that came before them are left out.

RFC: INIT-08
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.extension import initial_values
from reference_impl.extension.save_context import SaveContext
from reference_impl.format import schema
from reference_impl.format.names import CUSTOM_GRADIENT
from reference_impl.functions.argument_keys import same_arguments
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import data_inputs, input_source
from reference_impl.graph.function_builder import FunctionBuilder
from reference_impl.kinds import variable


class InitialValues:
    """Finds the initial values of the variables of an export.

    Functions, and the constants they capture, are added to the export.
    """

    def __init__(self, save: SaveContext):
        self._save = save
        # Traces made here: the runtime drops a function when its object is deleted.
        self._kept: list[tf.types.experimental.ConcreteFunction] = []

    def messages(self) -> list[Any]:
        """Return the InitialValue messages, sorted by node number.

        Raises SaveError if a function does not fit its variable.
        """
        found: dict[int, Any] = {}
        for node in list(self._save.nodes):
            if isinstance(node.object, api.Function):
                for number, item in self._cut(node.object):
                    found.setdefault(number, item)
        for node in list(self._save.nodes):
            if node.kind is not variable.KIND:
                continue
            known = initial_values.of(node.object)
            if isinstance(known, initial_values.InitialValue):
                item = self._loaded(known)
            else:
                item = None if known is None else self._given(node.object, known, node.path)
            if item is not None:
                found[node.number] = item
        for number, item in found.items():
            item.node_id = number
        return [found[number] for number in sorted(found)]

    def _given(self, variable: tf.Variable, function: Callable[[], Any], path: str) -> Any:
        """Return the message of a function given to `reference_impl.initializer`."""
        inner = api.variable_components(variable)[0]
        made = tf.function(
            lambda: tf.convert_to_tensor(function(), inner.dtype), autograph=False
        ).get_concrete_function()
        self._kept.append(made)
        if not inner.shape.is_compatible_with(made.structured_outputs.shape):
            reason = (
                f"its initializer gives the shape {made.structured_outputs.shape}, the variable has"
                f" {inner.shape}"
            )
            raise SaveError(reason, node=path, clause="INIT-07")
        name, captured = self._save.add_traced(made, f"the initializer of {path}")
        out = schema.InitialValue(function=name)
        for number in captured:
            out.inputs.add(node_id=number)
        return out

    def _loaded(self, known: initial_values.InitialValue) -> Optional[Any]:
        """Return the message of the initial value that was loaded with a variable; see
        `_message`.
        """
        trace = known.trace() if known.trace is not None else None
        name = None if trace is None else self._save.exported_name(trace)
        return self._message(
            known.given(), name, lambda: self._save.add_loaded(known.library, known.name)
        )

    def _cut(self, function: schema.FunctionDef) -> Iterator[tuple[int, Any]]:
        """Yield (number of the variable, message) for the variables that a tf.function made."""
        creation = api.creation_trace(function)
        if creation is None:
            return
        definition = api.from_tf(creation.function_def, schema.FunctionDef)
        arguments = [argument.name for argument in definition.signature.input_arg]
        captured = list(creation.captured_inputs)
        first = len(arguments) - len(captured)
        same = next(
            (t for t in api.traces(function) if t is not creation and same_arguments(t, creation)),
            None,
        )
        for argument, value, dtype in _assigned(definition):
            index = arguments.index(argument) if argument in arguments else -1
            number = self._save.owner(captured[index - first]) if index >= first else None
            if number is not None:
                cut, used = _cut_out(definition, value, dtype)
                places = [arguments.index(one) for one in used]
                inputs = [
                    initial_values.Argument(n) if n < first else captured[n - first] for n in places
                ]
                trace = None if same is None else self._save.exported_name(same)
                item = self._message(
                    inputs, trace, functools.partial(self._save.add_derived, cut, "initial_value")
                )
                if item is not None:
                    yield number, item

    def _message(
        self, inputs: list[Any], trace: Optional[str], add: Callable[[], str]
    ) -> Optional[Any]:
        """Return the message of a function, or None (the value is not saved) if the export lacks
        one of the function's inputs.

        Args:
          inputs: for each argument of the function, an `initial_values.Argument` or the captured
            object.
          trace: the function whose call has the arguments, or None if that function is not
            exported.
          add: puts the function into the library and returns its name.
        """
        out = schema.InitialValue(trace=trace or "")
        for given in inputs:
            if isinstance(given, initial_values.Argument):
                if trace is None:
                    return None
                out.inputs.add(argument=given)
            else:
                number = None if given is None else self._save.owner(given)
                if number is None:
                    return None
                out.inputs.add(node_id=number)
        out.function = add()
        return out


def _assigned(definition: schema.FunctionDef) -> Iterator[tuple[str, str, int]]:
    """Yield (argument that is the handle, tensor that is the value, its dtype) of each ``if not
    initialized: assign``.
    """
    nodes = {node.name: node for node in definition.node_def}
    for node in definition.node_def:
        if node.op not in ("If", "StatelessIf"):
            continue
        tested = nodes.get(input_source(node.input[0], in_function=True))
        branch = api.function_definition(node.attr["else_branch"].func.name)
        if tested is None or tested.op != "VarIsInitializedOp" or branch is None:
            continue
        places = {argument.name: index for index, argument in enumerate(branch.signature.input_arg)}
        for inner in branch.node_def:
            if (
                inner.op == "AssignVariableOp"
                and inner.input[1] in places
                and inner.input[0] in places
            ):
                yield (
                    tested.input[0],
                    node.input[1 + places[inner.input[1]]],
                    inner.attr["dtype"].type,
                )


def _cut_out(definition: schema.FunctionDef, value: str, dtype: int) -> tuple[Any, list[str]]:
    """Return a FunctionDef that computes one tensor of another FunctionDef, and the names of the
    arguments that it needs.

    Control edges are left out, so earlier side effects are lost.
    """
    sources = {}
    for node in definition.node_def:
        inputs = [input_source(text, in_function=True) for text in data_inputs(node)]
        sources[node.name] = inputs
    needed = reachable([input_source(value, in_function=True)], sources)
    builder = FunctionBuilder(is_stateful=True)
    used = []
    for index, argument in enumerate(definition.signature.input_arg):
        if argument.name in needed:
            attributes = definition.arg_attr.get(index)
            used.append(builder.argument(argument.name, argument, attributes=attributes))
    for node in definition.node_def:
        if node.name in needed:
            builder.copy_node(node, data_inputs(node), without=("_class", CUSTOM_GRADIENT))
    builder.result("value", value, dtype)
    return builder.function, used

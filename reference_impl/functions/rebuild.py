"""Rebuild a FunctionDef as a Python graph, when a gradient, an outer trace or another writer needs
one.

A function is rebuilt by tracing: a `tf.function` runs :func:`interpret`, which creates the nodes
one by one in the graph being traced. Functions that nodes call are rebuilt the same way, called as
functions, and specialised for the tensors of the call (:func:`specialised`). So TensorFlow makes
the gradient of a nested call as it does for its own functions. The shape and dtype of a variable
are passed inwards with its handle, as gradients of If and While require.

A function that cannot be traced node by node becomes one `opaque_call`.

RFC: GOAL-02, NG-03
"""

from __future__ import annotations

import contextlib
import itertools
import keyword
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import MalformedError, SavedModelError
from reference_impl.format import schema
from reference_impl.format.names import CALLS, CUSTOM_GRADIENT, V1_TENSOR_ARRAY, plain_name
from reference_impl.format.values.shapes import Shape, shape_of
from reference_impl.functions import function_settings, gradients, unknown_ops
from reference_impl.functions.argument_specs import input_specs
from reference_impl.functions.control_flow import describe_handles
from reference_impl.functions.devices import checked_device
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import FileName, LiveName
from reference_impl.functions.opaque_call import opaque_call
from reference_impl.functions.runtime_copy import rename_for_process
from reference_impl.graph.edges import data_inputs, input_sources, parse_input
from reference_impl.graph.functional_ops import LOOPS, first_argument
from reference_impl.graph.node_attributes import text_of
from reference_impl.graph.op_table import has_v1_flow
from reference_impl.graph.order import sources_first
from reference_impl.graph.return_nodes import return_nodes

_DROPPED = {CUSTOM_GRADIENT, "_class", "_output_shapes"}


def interpret(
    library: FunctionLibrary, name: FileName, inputs: Sequence[tf.Tensor]
) -> list[tf.Tensor]:
    """Create the nodes of a function in the graph that `tf.function` is tracing; return one tensor
    per result.

    `inputs` has one tensor per argument of the FunctionDef, captures included.

    Raises:
      UnknownOpError, UnsupportedModelError: this TensorFlow lacks an op, or refuses its attributes
        or shapes.
      MalformedError, CycleError: an input names a node that does not exist; the function calls
        itself.
    """
    library.check(name)
    order = _in_order(library.get(name))
    if library.watch is not None:
        how = "as one call" if order is None else f"node by node, nodes: {len(order)}"
        library.watch.tell("rebuilt", library.file, name, how, "GOAL-02")
    if order is None:
        return list(opaque_call(library, name, inputs).outputs)
    return _Interpreter(library, name, inputs).run(order)


def specialised(library: FunctionLibrary, name: FileName, inputs: Sequence[tf.Tensor]) -> Any:
    """Return a function of the library as a concrete function.

    A handle in `inputs` provides the shape of its variable.
    """
    if name not in library.rebuilt:
        library.rebuilt[name] = _tf_function(library, name)
    return library.rebuilt[name].get_concrete_function(*_specs_for(library, name, inputs))


def _specs_for(
    library: FunctionLibrary, name: FileName, inputs: Sequence[tf.Tensor]
) -> list[tf.types.experimental.TraceType]:
    """Return the specs of a function's arguments; for a handle, the handle itself."""
    specs: list[Any] = input_specs(library.get(name))
    if len(specs) != len(inputs):
        return specs
    return [
        tensor if tensor.dtype in (tf.resource, tf.variant) else spec
        for spec, tensor in zip(specs, inputs)
    ]


def _tf_function(library: FunctionLibrary, name: FileName) -> Any:
    """Return a tf.function that makes the nodes of a function of the library."""
    of = weakref.ref(library)

    def body(*tensors: tf.Tensor) -> list[tf.Tensor]:
        # The library is alive while one of its functions is traced.
        return interpret(of(), name, tensors)  # type: ignore[arg-type]

    body.__name__ = plain_name(name)
    function_def = library.get(name)
    names = [argument.name for argument in function_def.signature.input_arg]
    valid = all(name.isidentifier() and not keyword.iskeyword(name) for name in names)
    if valid and len(set(names)) == len(names):
        # This gives the arguments of the new function their names.
        body.__signature__ = function_settings.signature_with(names)  # type: ignore[attr-defined]
    return function_settings.as_tf_function(function_def, body)


def _in_order(function_def: schema.FunctionDef) -> Optional[list[schema.NodeDef]]:
    """Return the nodes, each after its inputs, or None if some share a name, form a cycle or are
    control flow of TF 1.x.
    """
    nodes = {node.name: node for node in function_def.node_def}
    if has_v1_flow(function_def) or len(nodes) < len(function_def.node_def):
        return None
    order = sources_first(dict(zip(nodes, input_sources(function_def.node_def, in_function=True))))
    return None if order is None else [nodes[name] for name in order]


class _Interpreter:
    """Creates the operations of one FunctionDef in the current graph.

    `operations` has the operation of each node, `values` its tensors by output argument.
    """

    def __init__(self, library: FunctionLibrary, name: FileName, inputs: Sequence[tf.Tensor]):
        function_def = library.get(name)
        arguments = [argument.name for argument in function_def.signature.input_arg]
        if len(arguments) != len(inputs):
            reason = f"{len(arguments)} arguments, {len(inputs)} tensors given"
            raise MalformedError(reason, file=library.file, node=name)
        self.library, self.name, self.function_def = library, name, function_def
        self.graph = tf.compat.v1.get_default_graph()
        self.operations: dict[str, tf.Operation] = {}
        self.values: dict[str, dict[str, list[tf.Tensor]]] = {
            argument: {"0": [tensor]} for argument, tensor in zip(arguments, inputs)
        }
        gradients.note_arguments(self.graph, dict(zip(arguments, inputs)))

    def run(self, order: Sequence[schema.NodeDef]) -> list[tf.Tensor]:
        """Create the operations in this order; return the results of the function."""
        returns = return_nodes(self.function_def, _is_stateful)
        for node in order:
            if node.name not in returns:
                self.operations[node.name] = self.place(node)
                self.values[node.name] = self.outputs(node, self.operations[node.name])
        results = [
            self.function_def.ret[argument.name]
            for argument in self.function_def.signature.output_arg
        ]
        return [
            self.value(returns.get(parse_input(name, in_function=True).source, name))
            for name in results
        ]

    def place(self, node: schema.NodeDef) -> tf.Operation:
        """Create the operation of a node on its device, after its control inputs."""
        inputs = [self.value(name) for name in data_inputs(node)]
        after = [
            self.operations[name[1:]]
            for name in node.input
            if name[:1] == "^" and name[1:] in self.operations
        ]
        checked_device(node.device, self.library.file, f"{node.name} of function {self.name}")
        with tf.control_dependencies(after), tf.device(node.device or None):
            return self.create(node, inputs)

    def value(self, name: str) -> tf.Tensor:
        """Return the tensor of an input such as ``x:y:0``. Raises MalformedError."""
        edge = parse_input(name, in_function=True)
        output = edge.port.rpartition(":")[0]
        try:
            # A None is reported below.
            return self.values[edge.source][output or "0"][edge.number]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            raise MalformedError(
                f"there is no tensor {name!r}", file=self.library.file, node=self.name
            ) from None

    def create(self, node: schema.NodeDef, inputs: list[tf.Tensor]) -> tf.Operation:
        """Create the operation of a node."""
        called = self.called(node)
        if called is not None:
            with self.named_errors(node):
                operation = self.call(called, inputs)
            # The caller may know a more precise shape.
            for output, shape in zip(operation.outputs, _output_shapes(node)):
                if output.shape.is_compatible_with(shape):
                    output.set_shape(shape)
            return operation
        attrs = self.attributes(node)
        functions = dict(self.functions(node, inputs))
        for key, built in functions.items():
            self.name_functions(attrs[key], built)
        attrs.update(self.gradient_attributes(node))
        with self.named_errors(node):
            operation = self.graph.create_op(
                node.op, inputs, dtypes=[], name=node.name, attrs=attrs
            )
        for output, shape in zip(operation.outputs, _output_shapes(node)):
            output.set_shape(shape)
        if CUSTOM_GRADIENT in node.attr:
            live = LiveName(attrs[CUSTOM_GRADIENT].s.decode())
            self.library.sites[live] = (weakref.ref(self.graph), operation.name)
        if functions:
            describe_handles(operation, functions)
            if node.op in LOOPS and any(tensor.dtype == tf.resource for tensor in inputs):
                self.keep_graphs(operation, node, inputs)
        return operation

    def called(self, node: schema.NodeDef) -> Optional[FileName]:
        """Return the function of the library that a node calls with its inputs, or None."""
        name = node.op
        if name not in self.library and name in CALLS:
            name = node.attr["f"].func.name
        return FileName(name) if name in self.library else None

    def call(self, name: FileName, inputs: list[tf.Tensor]) -> tf.Operation:
        """Call a function, specialised for the tensors."""
        if has_v1_flow(self.library.get(name)):
            # Otherwise every generation would put a function around it (GOAL-13).
            self.library.check(name)
            return opaque_call(self.library, name, inputs)
        before = len(self.graph.get_operations())
        specialised(self.library, name, inputs)(*inputs)
        calls = [op for op in self.graph.get_operations()[before:] if op.type in CALLS]
        return calls[-1]

    @contextlib.contextmanager
    def named_errors(self, node: schema.NodeDef) -> Iterator[None]:
        """Raise UnsupportedModelError, which names the node, if TensorFlow refuses a node."""
        try:
            yield
        except SavedModelError:
            raise
        # TensorFlow refuses nodes with many kinds of errors, such as AssertionError.
        except Exception as error:
            raise unknown_ops.cannot_be_rebuilt(self.library, node, self.name, error) from error

    def attributes(self, node: schema.NodeDef) -> dict[str, tf.compat.v1.AttrValue]:
        """Return the attributes of an operation with default values, in which create_op looks up
        lengths of lists.
        """
        op_def = api.op_def(node.op)
        if op_def is None:
            raise unknown_ops.unknown_op(self.library, node, self.name)
        copy = schema.copy_of(node)
        for attr in op_def.attr:
            if attr.name not in copy.attr and attr.HasField("default_value"):
                copy.attr[attr.name].CopyFrom(attr.default_value)
        rename_for_process(self.library, copy, self.name)
        return {
            key: api.to_tf(value, tf.compat.v1.AttrValue)
            for key, value in copy.attr.items()
            if key not in _DROPPED
        }

    def gradient_attributes(self, node: schema.NodeDef) -> dict[str, tf.compat.v1.AttrValue]:
        """Return the attributes that choose or refuse the custom gradient of a node."""
        if CUSTOM_GRADIENT in node.attr:
            op_type = FileName(text_of(node.attr, CUSTOM_GRADIENT))
            live = gradients.register(self.library, op_type)
            return {CUSTOM_GRADIENT: tf.compat.v1.AttrValue(s=live.encode())}
        if V1_TENSOR_ARRAY in node.attr:
            return gradients.refusal(text_of(node.attr, V1_TENSOR_ARRAY))
        return {}

    def functions(
        self, node: schema.NodeDef, inputs: list[tf.Tensor]
    ) -> Iterator[tuple[str, list[Any]]]:
        """Yield the rebuilt functions in a node's attributes; those of branches and loops are
        specialised for their tensors.
        """
        first = first_argument(node.op)
        arguments = [] if first is None else inputs[first:]
        # protobuf's order of a map differs between processes
        for key, value in sorted(node.attr.items()):
            named = list(value.list.func) if value.HasField("list") else []
            if value.HasField("func"):
                named = [value.func]
            known = [FileName(each.name) for each in named if each.name in self.library]
            if known and len(known) == len(named):
                yield key, [specialised(self.library, name, arguments) for name in known]

    def name_functions(self, value: tf.compat.v1.AttrValue, functions: Sequence[Any]) -> None:
        """Add rebuilt functions to the graph, and name them in an attribute."""
        named = [value.func] if value.HasField("func") else value.list.func
        for item, function in zip(named, functions):
            function.add_to_graph(self.graph)
            item.name = function.function_def.signature.name

    def keep_graphs(
        self, operation: tf.Operation, node: schema.NodeDef, inputs: list[tf.Tensor]
    ) -> None:
        """Give a While operation graphs of its functions, for its gradient.

        Otherwise the gradient makes graphs that lack the handle data inside nested functions. The
        gradient changes the graphs, so nothing else may use them.
        """
        names = [FileName(node.attr[key].func.name) for key in ("cond", "body")]
        if any(len(self.library.closure(name)) > 1 for name in names):
            traced = [
                _tf_function(self.library, name).get_concrete_function(
                    *_specs_for(self.library, name, inputs)
                )
                for name in names
            ]
            api.set_loop_graphs(operation, *traced)

    def outputs(self, node: schema.NodeDef, operation: tf.Operation) -> dict[str, list[tf.Tensor]]:
        """Return the outputs of an operation by output argument."""
        tensors = iter(operation.outputs)
        definition: Any = (
            self.library.get(FileName(node.op)).signature
            if node.op in self.library
            else api.op_def(node.op)
        )
        found = {}
        for argument in definition.output_arg:
            count = 1
            if argument.number_attr:
                count = node.attr[argument.number_attr].i
            elif argument.type_list_attr:
                count = len(node.attr[argument.type_list_attr].list.type)
            found[argument.name] = list(itertools.islice(tensors, max(count, 0)))
        return found


def _is_stateful(op: str) -> bool:
    op_def = api.op_def(op)
    return op_def is not None and op_def.is_stateful


def _output_shapes(node: schema.NodeDef) -> list[Shape]:
    """Return the shapes of a node's outputs that the file records."""
    return (
        [shape_of(shape) for shape in node.attr["_output_shapes"].list.shape]
        if "_output_shapes" in node.attr
        else []
    )

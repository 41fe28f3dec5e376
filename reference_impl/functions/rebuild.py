"""Rebuild a FunctionDef as a Python graph, when a gradient, an outer trace or another writer needs
one.

A function is rebuilt by tracing: a `tf.function` runs :func:`interpret`, which creates the nodes
one by one in the graph being traced. Functions that nodes call are rebuilt the same way, called as
functions, and specialised for the tensors of the call. So TensorFlow makes the gradient of a nested
call as it does for its own functions. The shape and dtype of a variable are passed inwards with its
handle, as gradients of If and While require.

A function that cannot be traced node by node (control flow of TF 1.x) becomes one opaque call,
which has values but no gradients.

RFC: GOAL-02, NG-03
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import keyword
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import MalformedError, SavedModelError
from reference_impl.format import schema
from reference_impl.format.names import (
    CALLS,
    CUSTOM_GRADIENT,
    V1_CONTROL_FLOW,
    V1_TENSOR_ARRAY,
    plain_name,
)
from reference_impl.format.values.shapes import Shape, shape_of
from reference_impl.functions import gradients, unknown_ops
from reference_impl.functions.devices import checked_device
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.specs import tf_dtype
from reference_impl.graph.edges import data_inputs, input_sources, parse_input
from reference_impl.graph.node_attributes import argument_shape, text_of
from reference_impl.graph.node_defs import set_call
from reference_impl.graph.op_table import has_v1_flow
from reference_impl.graph.order import sources_first
from reference_impl.graph.return_nodes import return_nodes

HANDLES = (schema.DT_RESOURCE, schema.DT_VARIANT)
_DROPPED = {CUSTOM_GRADIENT, "_class", "_output_shapes"}
# Attributes of a FunctionDef that callers of tf.function can set and the runtime reads.
SETTABLE_ATTRIBUTES = (
    "_implements", "_noinline", "_tf_data_function", "api_implements", "api_preferred_device",
    "disable_summaries_at_runtime", "experimental_ints_on_device", "function_runs_at_most_once",
    "go_backwards", "runtime_constant_optimization", "time_major",
)  # fmt: skip


def as_tf_function(library: FunctionLibrary, name: str, body: Callable[..., Any]) -> Any:
    """Return a tf.function that runs `body` and has the attributes of the FunctionDef `name`."""
    attrs = library.get(name).attr
    jit_compile = attrs["_XlaMustCompile"].b if "_XlaMustCompile" in attrs else None
    kept = {
        key: api.to_tf(attrs[key], tf.compat.v1.AttrValue)
        for key in SETTABLE_ATTRIBUTES
        if key in attrs and _settable(key)
    }
    settings = {"experimental_attributes": kept} if kept else {}
    return tf.function(body, autograph=False, jit_compile=jit_compile, **settings)


@functools.cache
def _settable(attribute: str) -> bool:
    """Return whether tf.function of this TensorFlow takes an attribute."""
    try:
        tf.function(lambda: None, experimental_attributes={attribute: True})
    except ValueError:
        return False
    return True


def interpret(library: FunctionLibrary, name: str, inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
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
    function_def = library.get(name)
    order = _in_order(function_def)
    if library.watch is not None:
        how = "as one call" if order is None else f"node by node, nodes: {len(order)}"
        library.watch.tell("rebuilt", library.file, name, how, "GOAL-02")
    if order is None:
        return list(_opaque_call(library, name, inputs).outputs)
    return _Interpreter(library, function_def, inputs).run(order)


class _Interpreter:
    def __init__(
        self,
        library: FunctionLibrary,
        function_def: schema.FunctionDef,
        inputs: Sequence[tf.Tensor],
    ):
        arguments = [argument.name for argument in function_def.signature.input_arg]
        if len(arguments) != len(inputs):
            reason = f"{len(arguments)} arguments, {len(inputs)} tensors given"
            raise MalformedError(reason, file=library.file, node=function_def.signature.name)
        self.library = library
        self.function_def = function_def
        self.name = function_def.signature.name
        self.graph = tf.compat.v1.get_default_graph()
        self.operations: dict[str, tf.Operation] = {}
        self.values: dict[str, dict[str, list[tf.Tensor]]] = {
            name: {"0": [t]} for name, t in zip(arguments, inputs)
        }
        gradients.note_arguments(self.graph, dict(zip(arguments, inputs)))

    def run(self, order: Sequence[Any]) -> list[tf.Tensor]:
        returns = return_nodes(self.function_def, _is_stateful)
        for node in order:
            if node.name in returns:
                continue
            inputs = [self.value(name) for name in data_inputs(node)]
            after = [
                self.operations[name[1:]]
                for name in node.input
                if name[:1] == "^" and name[1:] in self.operations
            ]
            checked_device(node.device, self.library.file, f"{node.name} of function {self.name}")
            with tf.control_dependencies(after), tf.device(node.device or None):
                operation = self.create(node, inputs)
            self.operations[node.name] = operation
            self.values[node.name] = self.outputs(node, operation)
        results = [
            self.function_def.ret[argument.name]
            for argument in self.function_def.signature.output_arg
        ]
        return [
            self.value(returns.get(parse_input(name, in_function=True).source, name))
            for name in results
        ]

    def value(self, name: str) -> tf.Tensor:
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
        called = (
            node.op
            if node.op in self.library
            else node.attr["f"].func.name
            if node.op in CALLS
            else ""
        )
        if called in self.library:
            with self.named_errors(node):
                operation = self.call(called, inputs)
            for output, shape in zip(
                operation.outputs, _output_shapes(node)
            ):  # the caller may know a more precise shape
                if output.shape.is_compatible_with(shape):
                    output.set_shape(shape)
            return operation
        attrs = self.attributes(node)
        built = dict(self.function_attributes(node, inputs))
        for key, functions in built.items():
            values = [attrs[key].func] if attrs[key].HasField("func") else attrs[key].list.func
            for value, function in zip(values, functions):
                function.add_to_graph(self.graph)
                value.name = function.function_def.signature.name
        if CUSTOM_GRADIENT in node.attr:
            op_type = gradients.register(self.library, text_of(node.attr, CUSTOM_GRADIENT))
            attrs[CUSTOM_GRADIENT] = tf.compat.v1.AttrValue(s=op_type.encode())
        elif V1_TENSOR_ARRAY in node.attr:
            attrs.update(gradients.refuse(text_of(node.attr, V1_TENSOR_ARRAY)))
        with self.named_errors(node):
            operation = self.graph.create_op(
                node.op, inputs, dtypes=[], name=node.name, attrs=attrs
            )
        for output, shape in zip(operation.outputs, _output_shapes(node)):
            output.set_shape(shape)
        if CUSTOM_GRADIENT in node.attr:
            self.library.sites[attrs[CUSTOM_GRADIENT].s.decode()] = (
                weakref.ref(self.graph),
                operation.name,
            )
        self.describe_handles(node.op, operation, built)
        if built and "While" in node.op and any(tensor.dtype == tf.resource for tensor in inputs):
            self.keep_graphs(operation, node, inputs)
        return operation

    @contextlib.contextmanager
    def named_errors(self, node: schema.NodeDef) -> Iterator[None]:
        """Raise UnsupportedModelError, which names the node, if TensorFlow refuses a node."""
        try:
            yield
        except SavedModelError:
            raise
        except (
            Exception
        ) as error:  # TensorFlow refuses nodes with many kinds of errors, such as AssertionError
            raise unknown_ops.cannot_be_rebuilt(self.library, node, self.name, error) from error

    def attributes(self, node: schema.NodeDef) -> dict[str, Any]:
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
        self.library.localise(copy, self.name)
        return {
            key: api.to_tf(value, tf.compat.v1.AttrValue)
            for key, value in copy.attr.items()
            if key not in _DROPPED
        }

    def keep_graphs(
        self, operation: tf.Operation, node: schema.NodeDef, inputs: list[tf.Tensor]
    ) -> None:
        """Give a While operation graphs of its functions, for its gradient.

        Otherwise the gradient makes graphs that lack the handle data inside nested functions. The
        gradient changes the graphs, so nothing else may use them.
        """
        names = [node.attr[key].func.name for key in ("cond", "body")]
        if any(len(self.library.closure(name)) > 1 for name in names):
            made = [_python_function(self.library, name) for name in names]
            specs = [_specialised_specs(self.library, name, inputs) for name in names]
            api.set_loop_graphs(
                operation,
                *(function.get_concrete_function(*each) for function, each in zip(made, specs)),
            )

    def call(self, name: str, inputs: list[tf.Tensor]) -> tf.Operation:
        if has_v1_flow(
            self.library.get(name)
        ):  # called as it is, or every generation would put a function around it (GOAL-13)
            self.library.check(name)
            return _opaque_call(self.library, name, inputs)
        before = len(self.graph.get_operations())
        specialised(self.library, name, inputs)(*inputs)
        calls = [op for op in self.graph.get_operations()[before:] if op.type in CALLS]
        return calls[-1]

    def function_attributes(
        self, node: schema.NodeDef, inputs: list[tf.Tensor]
    ) -> Iterator[tuple[str, list[Any]]]:
        """Yield the rebuilt functions in a node's attributes, for If, Case and While specialised
        for their tensors.
        """
        if "If" in node.op or "Case" in node.op:
            inputs = inputs[1:]
        elif "While" not in node.op:
            inputs = []
        for key, value in sorted(
            node.attr.items()
        ):  # protobuf's order of a map differs between processes
            functions = (
                [value.func]
                if value.HasField("func")
                else list(value.list.func)
                if value.HasField("list")
                else []
            )
            known = [function.name for function in functions if function.name in self.library]
            if known and len(known) == len(functions):
                yield key, [specialised(self.library, name, inputs) for name in known]

    def describe_handles(
        self, op: str, operation: tf.Operation, built: dict[str, list[Any]]
    ) -> None:
        """Copy handle data from the inputs of control flow to its outputs, for gradient code; shape
        inference does not.
        """
        if "While" in op and built:
            ways = [list(operation.inputs)]
        elif ("If" in op or "Case" in op) and built:
            functions = itertools.chain.from_iterable(built[key] for key in sorted(built))
            ways = [function.outputs for function in functions]
        else:
            return
        for target, *sources in zip(operation.outputs, *ways):
            if target.dtype in (tf.resource, tf.variant) and all(
                source.dtype == target.dtype for source in sources
            ):
                known = [api.behind_handle(source) for source in sources]
                # If a branch returns an optional without a value, its handle data is empty. The
                # output's must then be empty too, or the gradient would leave out values that the
                # branch needs.
                if target.dtype == tf.resource or all(data == known[0] for data in known):
                    api.copy_handle_data(
                        sources[next((i for i, data in enumerate(known) if data), 0)], target
                    )

    def outputs(self, node: schema.NodeDef, operation: tf.Operation) -> dict[str, list[tf.Tensor]]:
        """Return the outputs of an operation by output argument."""
        tensors = iter(operation.outputs)
        definition: Any = (
            self.library.get(node.op).signature if node.op in self.library else api.op_def(node.op)
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


def input_specs(function_def: schema.FunctionDef) -> list[tf.TensorSpec]:
    """Return the specs of a function's arguments, with the shapes of the trace if the file has
    them.
    """
    specs = []
    shapes = (
        function_def.attr["_input_shapes"].list.shape
        if "_input_shapes" in function_def.attr
        else ()
    )
    for index, argument in enumerate(function_def.signature.input_arg):
        shape: Shape = None
        noted = argument_shape(function_def, index)
        if noted is not None:
            shape = shape_of(noted)
        elif index < len(shapes):
            shape = shape_of(shapes[index])
        elif argument.type in HANDLES:
            shape = ()
        specs.append(
            tf.TensorSpec(shape, tf_dtype(argument.type, node=argument.name), argument.name)
        )
    return specs


def specialised(library: FunctionLibrary, name: str, inputs: Sequence[tf.Tensor]) -> Any:
    """Return a function of the library as a concrete function.

    A handle in `inputs` provides the shape of its variable.
    """
    if name not in library.rebuilt:
        library.rebuilt[name] = _python_function(library, name)
    return library.rebuilt[name].get_concrete_function(*_specialised_specs(library, name, inputs))


def _specialised_specs(
    library: FunctionLibrary, name: str, inputs: Sequence[tf.Tensor]
) -> list[Any]:
    specs: list[Any] = input_specs(library.get(name))
    if len(specs) == len(inputs):
        specs = [
            tensor if tensor.dtype in (tf.resource, tf.variant) else spec
            for spec, tensor in zip(specs, inputs)
        ]
    return specs


def _python_function(library: FunctionLibrary, name: str) -> Any:
    """Return a tf.function that makes the nodes of a function of the library."""
    of = weakref.ref(library)

    def body(*tensors: tf.Tensor) -> list[tf.Tensor]:
        # The library is alive while one of its functions is traced.
        return interpret(of(), name, tensors)  # type: ignore[arg-type]

    body.__name__ = plain_name(name)
    names = [argument.name for argument in library.get(name).signature.input_arg]
    if all(name.isidentifier() and not keyword.iskeyword(name) for name in names) and len(
        set(names)
    ) == len(names):
        # This gives the arguments of the new function their names.
        body.__signature__ = signature_with(names)  # type: ignore[attr-defined]
    return as_tf_function(library, name, body)


def signature_with(names: Iterable[str]) -> inspect.Signature:
    """Return the Python signature with arguments of these names."""
    return inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )


def _opaque_call(library: FunctionLibrary, name: str, inputs: Sequence[tf.Tensor]) -> tf.Operation:
    """Call a function with one node, without rebuilding it; add the function and its references to
    the graph's library.
    """
    library.register(name)
    graph_def = schema.GraphDef()
    graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION
    for other in library.closure(name):
        graph_def.library.function.append(library.renamed(other))
    try:
        tf.graph_util.import_graph_def(
            api.to_tf(graph_def, tf.compat.v1.GraphDef), name=""
        )  # functions, and no node
    except ValueError as error:
        raise MalformedError(
            f"TensorFlow does not take the function: {error}", file=library.file, node=name
        ) from error
    function_def = library.get(name)
    reasons = [
        text_of(node.attr, V1_CONTROL_FLOW)
        for node in function_def.node_def
        if V1_CONTROL_FLOW in node.attr
    ]
    call = schema.NodeDef()
    set_call(call, library.live_name(name), function_def.signature)
    attrs = {key: api.to_tf(value, tf.compat.v1.AttrValue) for key, value in call.attr.items()}
    attrs.update(
        gradients.refuse(
            reasons[0] if reasons else f"{plain_name(name)} has control flow of TF 1.x"
        )
    )
    graph = tf.compat.v1.get_default_graph()
    return graph.create_op(
        "StatefulPartitionedCall", list(inputs), dtypes=[], name="opaque", attrs=attrs
    )


def _in_order(function_def: schema.FunctionDef) -> Optional[list[Any]]:
    """Return the nodes, each after its inputs, or None if some share a name, form a cycle or are
    control flow of TF 1.x.
    """
    nodes = {node.name: node for node in function_def.node_def}
    if has_v1_flow(function_def) or len(nodes) < len(function_def.node_def):
        return None
    order = sources_first(dict(zip(nodes, input_sources(function_def.node_def, in_function=True))))
    return None if order is None else [nodes[name] for name in order]

"""The computation of a layer, read from its functions in the SavedModel: ops on its inputs and on
constants.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format

from reference_impl.graph.edges import Edge, data_inputs, parse_input
from reference_impl.graph.order import targets_first
from savedmodel_migration.keras_2_to_3.reading.graph_calls import (
    Spec,
    all_specs,
    argument_names,
    tensor_specs,
)
from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.operations import OUTPUTS, graph_ops

if TYPE_CHECKING:
    from savedmodel_migration.keras_2_to_3.reading.saved import SavedKeras

INPUT, CONSTANT, VARIABLE = "an input", "a constant", "a variable"  # in place of the type of an op
_MOST = 10_000  # steps and calls, functions called twice counted twice
_DAMAGED = "its function is damaged"
_SAME = ("Identity", "IdentityN")  # an output is the input of that number
_CALLS = ("PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf")
_UNNEEDED = (*_SAME, "NoOp", "Assert", "ReadVariableOp")

Value = tuple[int, int]  # number of a step, number of its output


@dataclass(frozen=True)
class Step:
    """One op."""

    op: str  # its type, INPUT, CONSTANT or VARIABLE
    # Its attributes as JSON; number, shape and dtype of an input; the bytes of a constant's
    # TensorProto; the node of a variable.
    detail: Any
    inputs: tuple[Value, ...] = ()  # the values that it takes


@dataclass(frozen=True)
class LayerGraph:
    """The computation of a layer, the same for each trace of it."""

    steps: tuple[Step, ...]  # the ops, each after those whose values it takes
    outputs: tuple[Value, ...]  # the values that it returns
    specs: tuple[Spec, ...]  # their shapes and dtypes
    notes: tuple[str, ...] = ()  # what the graph does besides
    arguments: tuple[
        str, ...
    ] = ()  # names of the arguments of a call, in the order in which its tensors are the inputs

    def ops(self) -> set[str]:
        """Return the types of the ops that an output is computed of, and VARIABLE if one is."""
        return {self.steps[number].op for number in self.needed()} - {INPUT, CONSTANT}

    def _is_tensor(self, place: int) -> bool:
        """Return whether only the first value of a step is taken, and the layer returns one
        tensor.
        """
        taken = itertools.chain.from_iterable(step.inputs for step in self.steps)
        return len(self.outputs) == 1 and all(
            index == 0 for number, index in [*taken, *self.outputs] if number == place
        )

    def needed(self) -> set[int]:
        """Return the numbers of the inputs, and of the steps that an output is computed of."""
        found = {number for number, _ in self.outputs}
        for number in range(len(self.steps) - 1, -1, -1):
            if number in found:
                found.update(source for source, _ in self.steps[number].inputs)
        return found | {number for number, step in enumerate(self.steps) if step.op == INPUT}

    def after_weights(self) -> LayerGraph:
        """Return what is computed of the last value that all variables go into, which is one
        tensor: an activation.

        Raises Refused if there is no such value, or the layer returns several tensors.
        """
        last: dict[int, int] = {}  # step -> the last step that takes it
        for place, step in enumerate(self.steps):
            last.update((number, place) for number, _ in step.inputs)
        last.update((number, len(self.steps)) for number, _ in self.outputs)
        start = max(
            (place for place, step in enumerate(self.steps) if step.op in (INPUT, VARIABLE)),
            default=-1,
        )
        open_ends: set[int] = (
            set()
        )  # steps that an input or variable goes into, and that another step takes
        for place, step in enumerate(self.steps):
            sources = {number for number, _ in step.inputs}
            varies = step.op in (INPUT, VARIABLE) or not open_ends.isdisjoint(sources)
            open_ends -= {number for number in sources if last[number] <= place}
            if varies and place in last:
                open_ends.add(place)
            if place > start and open_ends == {place} and self._is_tensor(place):
                before = [
                    Step(VARIABLE, number) if step.op == INPUT else step
                    for number, step in enumerate(self.steps[:place])
                ]
                steps = (*before, Step(INPUT, (0, *self.specs[0])), *self.steps[place + 1 :])
                return LayerGraph(steps, self.outputs, self.specs, self.notes)
        raise Refused("the tensor that its activation takes is not known")


def layer_graph(saved: SavedKeras, node: int) -> LayerGraph:
    """Return the computation of a layer.

    Raises SavedModelError: a constant is damaged.

    Raises Refused: the file has no function of it, it uses tables, or it computes something else in
    training.
    """
    number = saved.children(node).get(
        "call_and_return_all_conditional_losses", saved.children(node).get("__call__")
    )
    function = saved.nodes[number].function if number is not None else None
    names = function.concrete_functions if function is not None else ()
    notes = _side_effects(saved.call_bodies(node))
    arguments = argument_names(function.function_spec) if function is not None else ()
    found = {_Reader(saved).read(name, notes, arguments) for name in names}
    if not found:
        raise Refused("the file holds no function of it")
    if len(found) > 1:
        ops = set(itertools.chain.from_iterable(graph.ops() for graph in found))
        check_ops(ops - {VARIABLE, *_UNNEEDED})
        raise Refused("it computes something else in training, or for inputs of another shape")
    return found.pop()


def check_ops(ops: Iterable[str]) -> None:
    """Raise Refused unless rules translate some ops."""
    unknown = sorted({*ops} - graph_ops().keys())
    if unknown:
        raise Refused(
            f"the op {unknown[0]} of its graph has no counterpart in keras.ops that is known"
        )


class _Reader:
    """Reads one trace. Equal steps are one step, so that equal computations give equal steps."""

    def __init__(self, saved: SavedKeras) -> None:
        self.saved, self.library = saved, saved.library
        self.steps: dict[Step, int] = {}
        self.left = _MOST

    def read(self, name: str, notes: tuple[str, ...], arguments: tuple[str, ...]) -> LayerGraph:
        """Return the computation of a trace. Raises Refused."""
        trace = self.saved.traces.get(name)
        body = self.library.functions.get(name)
        if trace is None or body is None:
            raise Refused("the file holds no function of it")
        specs, results = (
            all_specs(trace.canonicalized_input_signature),
            _results(trace.output_signature),
        )
        if not specs or not all(shape for shape, _ in specs):
            raise Refused("it takes something other than tensors whose ranks are known and not 0")
        inputs = [self._step(Step(INPUT, (number, *spec))) for number, spec in enumerate(specs)]
        captured = [self._captured(number) for number in trace.bound_inputs]
        if len(inputs) + len(captured) != len(body.signature.input_arg):
            raise Refused("its function takes other tensors than the file says")
        outputs = self._body(body, [*inputs, *captured])[: len(results)]
        return LayerGraph(tuple(self.steps), tuple(outputs), tuple(results), notes, arguments)

    def _step(self, step: Step) -> Value:
        return self.steps.setdefault(step, len(self.steps)), 0

    def _captured(self, number: int) -> Value:
        if not 0 <= number < len(self.saved.nodes):
            raise Refused(_DAMAGED)
        node = self.saved.nodes[number]
        if node.WhichOneof("kind") == "variable":
            return self._step(Step(VARIABLE, number))
        found = (
            self.saved.graph_nodes.get(node.constant.operation)
            if node.WhichOneof("kind") == "constant"
            else None
        )
        if found is None or found.op != "Const":
            raise Refused("its function uses tables")
        return self._constant(found)

    def _constant(self, node: Any) -> Value:
        return self._step(
            Step(CONSTANT, node.attr["value"].tensor.SerializeToString(deterministic=True))
        )

    def _body(self, body: Any, given: Sequence[Value], depth: int = 0) -> list[Value]:
        """Return the results of a function that is called with some values."""
        arguments = dict(zip([item.name for item in body.signature.input_arg], given))
        nodes = {node.name: node for node in body.node_def}
        ends = [
            parse_input(body.ret[item.name], in_function=True) for item in body.signature.output_arg
        ]
        values: dict[str, Sequence[Value]] = {name: [value] for name, value in arguments.items()}

        def sources(name: str) -> Iterable[str]:
            if name in arguments:
                return []
            if name not in nodes:
                raise Refused(_DAMAGED)
            return [edge.source for edge in _edges(nodes[name])]

        for name in targets_first(
            [end.source for end in ends], sources, lambda name: Refused(_DAMAGED)
        ):
            if name not in arguments:
                taken = [_at(values[edge.source], edge) for edge in _edges(nodes[name])]
                values[name] = self._node(nodes[name], taken, depth)
        return [_at(values[end.source], end) for end in ends]

    def _node(self, node: Any, given: list[Value], depth: int) -> Sequence[Value]:
        self.left -= 1
        if self.left < 0 or depth > 50:
            raise Refused(f"its graph has more than {_MOST} ops")
        called = self.library.called(node)
        if called is not None:
            return self._body(self.library.functions[called], given, depth + 1)
        if node.op == "Const":
            return [self._constant(node)]
        if node.op in _SAME:
            return given
        attributes = {
            key: json_format.MessageToJson(value, indent=None)
            for key, value in node.attr.items()
            if key[:1] != "_"
        }
        number, _ = self._step(Step(node.op, tuple(sorted(attributes.items())), tuple(given)))
        return _Outputs(number, OUTPUTS.get(node.op, ()))


def _side_effects(bodies: Iterable[Any]) -> tuple[str, ...]:
    """Return notes on what functions do besides computing tensors.

    Raises Refused for more than a check of inputs.
    """
    found = set()
    for body in bodies:
        nodes = {node.name: node.op for node in body.node_def}
        found |= {nodes.get(name, "NoOp") for name in body.control_ret.values()}
    others = sorted(found - {*_UNNEEDED, *_CALLS})
    if others:
        raise Refused(f"its graph does more than compute a tensor: {', '.join(others)}")
    return ("it checks its inputs (Assert), the new layer does not",) if "Assert" in found else ()


class _Outputs(Sequence[Value]):
    """The outputs of a step; their number is not known here.

    ``names``: of its output arguments, if it has several.
    """

    def __init__(self, number: int, names: Sequence[str] = ()) -> None:
        self.number, self.names = number, names

    def __getitem__(self, index: Any) -> Any:
        return self.number, index

    def __len__(self) -> int:
        return 1 << 30


def _edges(node: Any) -> list[Edge]:
    return [parse_input(text, in_function=True) for text in data_inputs(node)]


def _at(values: Sequence[Value], edge: Edge) -> Value:
    number = 0 if edge.port == "0" else edge.number
    argument = edge.port.partition(":")[0]
    if isinstance(values, _Outputs) and argument in values.names:  # each of them is one tensor
        number = values.names.index(argument)
    if number is None or number >= len(values):
        raise Refused(_DAMAGED)
    return values[number]


def _results(results: Any) -> list[Spec]:
    """Return what a layer returns. Raises Refused for anything but tensors, and for losses."""
    values = results.tuple_value.values
    if len(values) == 2 and values[1].WhichOneof("kind") == "list_value":
        if values[1].list_value.values:
            raise Refused("it adds a loss")
        results = values[0]
    specs = tensor_specs(results)
    if not specs:
        raise Refused("it returns something other than a tensor or a list of tensors")
    return specs

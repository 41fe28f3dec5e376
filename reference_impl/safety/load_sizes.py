"""Find tensors that a load makes and that are larger than memory should be: their size follows from
constants.

Functions are followed with the known parts of their arguments, through calls, branches and loops,
as a load runs them: a loop whose condition is known is followed round by round. An unknown size
counts as nothing, so that a sound model is never refused; where that hides the size of a tensor,
the node is among the results all the same, as unmeasured.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Optional

from reference_impl.format import limits, schema
from reference_impl.graph.edges import input_source, parse_input
from reference_impl.graph.functional_ops import CASE_OPS, IF_OPS, WHILE_OPS
from reference_impl.graph.graph_view import GraphView
from reference_impl.graph.node_index import Nodes
from reference_impl.graph.order import sources_first
from reference_impl.safety.known_tensors import (
    OPS,
    PARTS,
    SHARING,
    UNKNOWN,
    Known,
    constant,
    parts,
    shape_of,
)
from reference_impl.safety.path_origins import first_argument
from reference_impl.safety.size_operands import UNMEASURED, size_operands

_BACK = ("NextIteration", "RefNextIteration")  # their input comes from the round before
_MERGES = ("Merge", "RefMerge")  # they run when one of their inputs is there
_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
_BRANCHES = ("else_branch", "then_branch")  # of an If


class Large(NamedTuple):
    """A node that a load runs: the tensor that it makes is too large, or fills the measure together
    with those before it.
    """

    function: Optional[str]  # None: the main graph
    node: schema.NodeDef
    bytes: int  # 0: not known
    together: bool
    unmeasured: str = ""  # what decides the size, where nothing here follows it

    @property
    def reason(self) -> str:
        """The effect of the node, as a verb with its object."""
        if self.unmeasured:
            return f"makes a tensor of unknown size, which depends on {self.unmeasured}"
        if self.bytes == 0:
            return "is where what a load makes becomes too much to follow"
        if self.together:
            return f"makes a tensor that, with those before it, takes {self.bytes} bytes"
        return (
            f"makes a tensor of {self.bytes} bytes"
            if self.bytes < 1 << 64
            else "makes a tensor of more than 2^64 bytes"
        )


class LoadSizes:
    """What is known of the tensors that the starts of a load make.

    The starts share a limit of steps.
    """

    def __init__(self, view: GraphView, objects: schema.SavedObjectGraph):
        self._view, self._library, self._objects = view, view.library, objects
        fed = (
            view.proto.saver_def.filename_tensor_name,
            *(item.tensor_info.name for item in view.proto.asset_file_def),
        )
        self._fed = frozenset(parse_input(text).source for text in fed if text)
        self._steps = 0
        self._depth = 0
        self._begin()

    def _begin(self) -> None:
        self._total = 0
        self._results: dict[tuple[str, tuple[Known, ...]], list[Known]] = {}
        self._found: dict[tuple[Optional[str], str], Large] = {}

    def known(self, names: Iterable[str]) -> dict[str, list[Known]]:
        """Return what is known of the outputs of these nodes of the main graph."""
        self._begin()
        return self._run(None, self._view.main, list(names), {})

    def of_nodes(self, names: Iterable[str]) -> list[Large]:
        """Return what is too large if these nodes of the main graph run."""
        self.known(names)
        return list(self._found.values())

    def of_function(self, name: str, bound: Sequence[int]) -> list[Large]:
        """Return what is too large if a function runs that captures these objects."""
        self._begin()
        count = len(self._library.functions[name].signature.input_arg)
        captured = [self._object(number) for number in bound[:count]]
        self._call(name, [UNKNOWN] * (count - len(captured)) + captured)
        return list(self._found.values())

    def _object(self, number: int) -> Known:
        item = (
            self._objects.nodes[number]
            if 0 <= number < len(self._objects.nodes)
            else schema.SavedObject()
        )
        if item.HasField("variable"):
            held = Known(item.variable.dtype, shape_of(item.variable.shape))
            return Known(schema.DT_RESOURCE, (), held=held)
        if item.HasField("constant"):
            node = self._view.main.by_name.get(item.constant.operation)
            return constant(node) if node is not None and node.op == "Const" else UNKNOWN
        return Known(schema.DT_STRING, ()) if item.HasField("asset") else UNKNOWN

    def _call(self, name: str, arguments: Sequence[Known]) -> list[Known]:
        """Return what is known of the results of a function."""
        function = self._library.functions[name]
        names = [item.name for item in function.signature.input_arg]
        given = tuple(arguments[: len(names)]) + (UNKNOWN,) * (len(names) - len(arguments))
        if (name, given) in self._results:
            return self._results[name, given]
        if self._depth >= limits.LOAD_SIZE_CALL_DEPTH or self._steps > limits.LOAD_SIZE_STEPS:
            self._give_up(name, function.node_def[:1])
            return [UNKNOWN] * len(function.signature.output_arg)
        self._results[name, given] = [UNKNOWN] * len(
            function.signature.output_arg
        )  # for a function that calls itself
        self._depth += 1
        nodes = self._view.function_nodes[name]
        made = self._run(name, nodes, list(nodes.by_name), dict(zip(names, given)))
        self._depth -= 1
        texts = [function.ret.get(item.name, "") for item in function.signature.output_arg]
        self._results[name, given] = [_output(text, made, True) for text in texts]
        return self._results[name, given]

    def _give_up(self, name: Optional[str], nodes: Iterable[schema.NodeDef]) -> None:
        for node in nodes:
            self._found.setdefault((name, node.name), Large(name, node, 0, False))

    def _run(
        self,
        name: Optional[str],
        nodes: Nodes,
        names: Sequence[str],
        arguments: Mapping[str, Known],
    ) -> dict[str, list[Known]]:
        """Follow some nodes of a body and return what is known of their outputs and of the
        arguments.
        """
        in_function = name is not None
        made = {argument: [known] for argument, known in arguments.items()}
        by_name = nodes.by_name
        unfed: set[str] = (
            set()
        )  # nodes that wait for a tensor that a load does not give, so they never run
        sources = {
            each: _sources(nodes.op_of[each], nodes.data_inputs(each), in_function)
            for each in names
        }
        for each in sources_first(sources) or ():  # a circle is refused by TensorFlow
            self._steps += 1
            if self._steps > limits.LOAD_SIZE_STEPS:
                first = nodes.messages[0] if in_function else by_name[names[0]]
                self._give_up(name, [first])
                break
            node = by_name[each]
            inputs = [_output(text, made, in_function) for text in nodes.data_inputs(each)]
            made[each] = self._outputs(node, inputs)
            self._measure(name, node, made[each])
            if self._is_unfed(node, sources[each], unfed):
                unfed.add(each)
            elif by := _unmeasured(node, inputs, made[each]):
                self._found.setdefault((name, each), Large(name, node, 0, False, by))
        return made

    def _is_unfed(
        self, node: schema.NodeDef, sources: Sequence[str], unfed: Collection[str]
    ) -> bool:
        if node.op in _PLACEHOLDERS:
            return node.name not in self._fed
        waits = [source in unfed for source in sources]
        return bool(waits) and (all(waits) if node.op in _MERGES else any(waits))

    def _measure(self, name: Optional[str], node: schema.NodeDef, outputs: Sequence[Known]) -> None:
        if node.op in SHARING or node.op not in OPS:
            return
        size, before = outputs[0].bytes, self._total
        self._total += size
        if size > limits.LOAD_TENSOR_BYTES:
            self._found.setdefault((name, node.name), Large(name, node, size, False))
            self._total = before
        elif before <= limits.LOAD_TENSOR_BYTES < self._total:
            self._found.setdefault((name, node.name), Large(name, node, self._total, True))

    def _outputs(self, node: schema.NodeDef, inputs: Sequence[Known]) -> list[Known]:
        """Return what is known of the outputs of a node, and follow the functions that it runs."""
        rule = OPS.get(node.op)
        if rule is not None or node.op in PARTS:
            try:
                return parts(node, inputs) if rule is None else [rule(node, inputs)]
            except (
                IndexError,
                ValueError,
                OverflowError,
                ZeroDivisionError,
            ):  # not what the op takes: TensorFlow refuses it
                return [UNKNOWN]
        if not self._library.functions:
            return [UNKNOWN]
        if node.op in WHILE_OPS:
            return self._loop(node, inputs)
        if node.op in IF_OPS | CASE_OPS:
            return self._branches(node, inputs)
        called = self._library.called(node)
        first = first_argument(node.op) or 0
        for name in self._library.may_run(self._view.references(node)):
            if name != called:
                self._call(name, inputs[first:] if called else ())
        return self._call(called, inputs[first:]) if called is not None else [UNKNOWN]

    def _branches(self, node: schema.NodeDef, inputs: Sequence[Known]) -> list[Known]:
        values = inputs[0].values if inputs else None
        if node.op in CASE_OPS:
            listed = (
                [item.name for item in node.attr["branches"].list.func]
                if "branches" in node.attr
                else []
            )
        else:
            listed = [node.attr[key].func.name for key in _BRANCHES if key in node.attr]
        if values is not None and len(values) == 1 and listed:
            chosen = int(values[0]) if node.op in CASE_OPS else int(bool(values[0]))
            listed = [listed[chosen if 0 <= chosen < len(listed) else -1]]
        results = [
            self._call(name, inputs[1:]) for name in listed if name in self._library.functions
        ]
        if not results:
            return [UNKNOWN]
        return [_either(known) for known in zip(*results)]

    def _loop(self, node: schema.NodeDef, inputs: Sequence[Known]) -> list[Known]:
        """Return the state after a loop.

        It is followed round by round while its condition is known.
        """
        condition, body = [
            node.attr[key].func.name if key in node.attr else "" for key in ("cond", "body")
        ]
        if condition not in self._library.functions or body not in self._library.functions:
            return [UNKNOWN]
        state, before = list(inputs), self._total
        for _ in range(limits.LOAD_SIZE_ROUNDS):
            goes_on = self._call(condition, state)
            if goes_on and goes_on[0].values is not None and not any(goes_on[0].values):
                return state
            if not goes_on or goes_on[0].values is None or self._steps > limits.LOAD_SIZE_STEPS:
                break
            self._total = before  # what a round makes is freed after it
            state = self._call(body, state)
        # The number of further rounds is not known: only values that no round changes stay known.
        while True:
            after = self._call(body, state)
            kept = [_either(known) for known in zip(state, after)]
            if kept == state or self._steps > limits.LOAD_SIZE_STEPS:
                return kept
            state = kept


def _unmeasured(node: schema.NodeDef, inputs: Sequence[Known], outputs: Sequence[Known]) -> str:
    """Return what decides the size of the output of a node, if nothing here follows it, else ""."""
    if node.op in UNMEASURED:
        return UNMEASURED[node.op]
    if not outputs or outputs[0].shape is not None:
        return ""
    unknown = [
        at
        for at in size_operands(node.op, len(inputs))
        if at < len(inputs) and inputs[at].values is None
    ]
    return f"input {unknown[0]}, whose value is not known before the load" if unknown else ""


def _either(known: Sequence[Known]) -> Known:
    """Return what is known of a tensor that is one of several."""
    first = known[0]
    if all(each == first for each in known):
        return first
    same = first.shape is not None and all(each.shape == first.shape for each in known)
    return Known(first.dtype, first.shape) if same else UNKNOWN


def _sources(op: str, inputs: Iterable[str], in_function: bool) -> list[str]:
    return [] if op in _BACK else [input_source(text, in_function) for text in inputs]


def _output(text: str, made: Mapping[str, Sequence[Known]], in_function: bool) -> Known:
    """Return what is known of the tensor that an input names."""
    edge = parse_input(text, in_function)
    outputs, number = made.get(edge.source, ()), edge.number or 0
    return outputs[number] if number < len(outputs) else UNKNOWN

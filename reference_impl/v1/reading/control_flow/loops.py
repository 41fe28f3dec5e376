"""Convert one loop of TF 1.x to a While.

tf.while_loop writes, for each loop variable::

    Enter -> Merge -> Switch -(true)-> body -> NextIteration -> Merge
               |        `-(false)-> Exit
               `-> predicate -> LoopCond -> Switch

and an ``Enter`` with ``is_constant`` for each tensor that the loop only uses. The nodes of the
predicate become the cond function, the nodes after the true outputs become the body function. Both
take a counter and a limit first (-1: no limit), as TensorFlow's gradient of While expects, then the
loop variables, then the constants.

Stateful nodes keep their number of runs: nodes of the predicate run once more than nodes of the
body. If a stateful node belongs to both or to neither, the graph is not changed.

RFC: V1-11
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from reference_impl.format import schema
from reference_impl.graph.closure import Edges, reachable, reversed_edges
from reference_impl.graph.node_defs import int_tensor
from reference_impl.graph.op_table import VARIABLE_READS
from reference_impl.graph.unique_names import unique_name
from reference_impl.v1.reading.control_flow.editable_function import (
    EditableFunction,
    NotConvertible,
    Tensor,
    source,
    static_shapes,
)
from reference_impl.v1.reading.control_flow.frames import Frame

INT32, BOOL = schema.DT_INT32, schema.DT_BOOL


class Loop:
    """A frame without inner frames, its nodes sorted by role.

    Raises NotConvertible: tf.while_loop does not make such a loop.
    """

    def __init__(self, function: EditableFunction, frame: Frame):
        self.function = function
        self.frame = frame
        self.members = [
            name for name in frame.members if name in function.nodes
        ]  # Enter nodes of inner loops are gone
        self.initial: dict[str, str] = {}  # Enter -> tensor that enters
        self.constants: dict[str, str] = {}
        self.variables: dict[str, str] = {}  # Merge -> its Enter
        self.next: dict[str, str] = {}  # Merge -> its NextIteration
        self.switches: dict[str, str] = {}  # Switch -> its Merge
        self.exits: dict[str, str] = {}  # Exit -> its Merge
        self.loop_cond = ""
        self._sort()
        self.structure = {
            *frame.enters,
            *self.variables,
            *self.next.values(),
            *self.switches,
            *self.exits,
            self.loop_cond,
        }
        self._check()

    def op(self, name: str) -> str:
        return str(self.function.nodes[name].op) if name in self.function.nodes else ""

    def _sort(self) -> None:
        nodes = self.function.nodes
        for name in self.frame.enters:
            (entering,) = self.function.data(nodes[name], 1)
            (self.constants if nodes[name].attr["is_constant"].b else self.initial)[name] = entering
        conds = [name for name in self.members if nodes[name].op == "LoopCond"]
        if len(conds) != 1:
            raise NotConvertible(
                (conds or self.frame.enters)[0], f"is in a loop with {len(conds)} LoopCond nodes"
            )
        self.loop_cond = conds[0]
        for name in self.members:
            if nodes[name].op == "Merge":
                self._sort_merge(name, [source(text) for text in self.function.data(nodes[name])])
        for name in self.members:
            if nodes[name].op == "Switch":
                value, predicate = self.function.data(nodes[name], 2)
                if source(predicate) == self.loop_cond:
                    if source(value) not in self.variables:
                        raise NotConvertible(
                            name, "leaves the loop with a value that is none of its variables"
                        )
                    self.switches[name] = source(value)
        for name in self.members:
            if nodes[name].op == "Exit":
                (value,) = self.function.data(nodes[name], 1)
                if source(value) not in self.switches or not value.endswith(":output_false:0"):
                    raise NotConvertible(
                        name, "does not leave through the Switch of a loop variable"
                    )
                self.exits[name] = self.switches[source(value)]

    def _sort_merge(self, name: str, sources: list[str]) -> None:
        enters = [other for other in sources if other in self.initial]
        nexts = [other for other in sources if self.op(other) == "NextIteration"]
        if len(sources) == 2 and len(enters) == len(nexts) == 1:
            self.variables[name], self.next[name] = enters[0], nexts[0]
        elif enters or nexts:
            raise NotConvertible(name, "joins neither a loop variable nor two branches")

    def _check(self) -> None:
        nodes = self.function.nodes
        used = set(self.next.values())
        if len(used) != len(self.next) or len(set(self.variables.values())) != len(self.variables):
            raise NotConvertible(
                self.loop_cond,
                "belongs to a loop in which two variables share an Enter or a NextIteration",
            )
        for name in self.members:
            node = nodes[name]
            for text in self.function.data(node):
                origin = source(text)
                if origin in self.initial and name not in self.variables:
                    raise NotConvertible(
                        name, f"uses {origin!r}, which has a value in the first iteration only"
                    )
                if (
                    origin in self.switches
                    and text.endswith(":output_false:0")
                    and name not in self.exits
                ):
                    raise NotConvertible(
                        name, f"uses {text!r}, which has a value after the last iteration only"
                    )
                if origin in self.variables and not text.endswith(":output:0"):
                    raise NotConvertible(name, f"asks which input of {origin!r} came in")
                if origin == self.loop_cond and name not in self.switches:
                    raise NotConvertible(name, f"uses the outcome of {origin!r}")
            if self.op(name) == "NextIteration" and name not in used:
                raise NotConvertible(name, "does not belong to a loop variable")
            if name in used or name == self.loop_cond:
                self.function.data(node, 1)
            waits = self.function.controls(node)
            fixed = name in self.switches or name in self.variables or name in self.exits
            if any(
                (fixed and other not in self.structure) or other in used or other in self.exits
                for other in waits
            ):
                raise NotConvertible(name, "has control inputs that tf.while_loop does not make")

    # What runs where

    def ancestors(self, roots: Iterable[str]) -> set[str]:
        """Return the nodes needed for some nodes, back to the Enter, Merge and Switch nodes."""
        nodes = self.function.nodes
        return self._inside(
            [name for name in roots if name in nodes],
            lambda name: self.function.sources(nodes[name]),
        )

    def _inside(self, starts: Iterable[str], edges: Edges[str]) -> set[str]:
        return set(reachable(starts, edges, dict.fromkeys(self.structure))) - self.structure

    def parts(self) -> tuple[list[str], list[str]]:
        """Return the nodes of the predicate and those of the body, in graph order."""
        nodes = self.function.nodes
        predicate = self.ancestors(self.function.sources(nodes[self.loop_cond]))
        gated = self._gated()
        ends = (self.function.sources(nodes[name]) for name in self.next.values())
        body = self.ancestors(itertools.chain.from_iterable(ends))
        for name in predicate & gated:
            raise NotConvertible(name, "decides about the iteration that it runs in")
        for name in self.members:
            inside = name in body or name in predicate or name in self.structure
            if self._counts(nodes[name]) and (not inside or (name in body and name not in gated)):
                raise NotConvertible(
                    name, "is stateful, and neither the predicate's nor the body's alone"
                )
        return [name for name in self.members if name in predicate], [
            name for name in self.members if name in body
        ]

    def _counts(self, node: schema.NodeDef) -> bool:
        """Return whether the number of runs of a node matters."""
        return node.op not in VARIABLE_READS and self.function.ops.is_stateful(node)

    def _gated(self) -> set[str]:
        """Return the nodes that run only when the predicate holds."""
        nodes = self.function.nodes
        users = reversed_edges((name, self.function.sources(nodes[name])) for name in self.members)

        # A control edge from a Switch does not tell: the Switch itself runs in the last iteration
        # too.
        def behind_a_switch(name: str) -> bool:
            return any(source(text) in self.switches for text in self.function.data(nodes[name]))

        others = [name for name in self.members if name not in self.structure]
        return self._inside(filter(behind_a_switch, others), users)


def convert_loop(
    function: EditableFunction, frame: Frame, name_function: Callable[[str], str]
) -> list[Any]:
    """Replace the nodes of ``frame``, which has no inner frames, by a While; return its cond and
    body functions.

    Raises NotConvertible: tf.while_loop did not make this loop. Nothing was changed.
    """
    loop = Loop(function, frame)
    predicate, inside = loop.parts()
    scope = loop.loop_cond.rpartition("/")[0] or "loop"
    arguments, moved = _arguments(loop)
    counter, following, results = _new_values(loop, scope, arguments)
    ready = {
        part: _wait_for_variables(loop, names, scope)
        for part, names in (("cond", predicate), ("body", inside))
    }
    wanted = f"{function.definition.signature.name}_{scope}"
    (condition,) = function.data(function.nodes[loop.loop_cond], 1)
    waits = function.controls(function.nodes[loop.loop_cond])
    extra = []
    if any(name not in loop.structure for name in waits):
        condition = function.identity_text(f"{scope}/Condition", condition, BOOL, waits)
        extra.append(source(condition))
    condition_nodes = [*predicate, *ready["cond"], *extra]
    body_nodes = [*inside, *ready["body"], *counter, *following]
    functions = [
        function.extract(
            name_function(wanted + "_cond"),
            condition_nodes,
            arguments,
            [Tensor(condition, BOOL)],
            moved,
        ),
        function.extract(name_function(wanted + "_body"), body_nodes, arguments, results, moved),
    ]
    function.remove([*counter, *following, *extra, *ready["cond"], *ready["body"]])
    _replace(loop, scope, arguments, functions)
    return functions


def _wait_for_variables(loop: Loop, names: list[str], scope: str) -> list[str]:
    """Add a node for each loop variable that a stateful part waits for, and return their names.

    Control edges cannot name arguments. An iteration may begin while the previous one still
    computes, so the effect must wait.
    """
    function = loop.function
    made: dict[str, str] = {}
    if not function.is_stateful(names):
        return []
    for name in names:
        node = function.nodes[name]
        for position, text in enumerate(node.input):
            waited = function.resolve(text)[1:] if text[:1] == "^" else ""
            merge = loop.switches.get(waited, waited)
            if merge in loop.variables:
                if merge not in made:
                    dtype = function.dtype(f"{merge}:output:0")
                    made[merge] = source(
                        function.identity_text(f"{scope}/Ready", f"{merge}:output:0", dtype)
                    )
                node.input[position] = "^" + made[merge]
    return list(made.values())


def _arguments(loop: Loop) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the arguments of both functions, and a map from tensors of the frame to arguments."""
    function = loop.function
    taken = set(loop.members)
    arguments: dict[str, Tensor] = {}

    def add(name: str, tensor: Tensor) -> str:
        name = unique_name(name, taken, numbered=False)
        arguments[name] = tensor
        return name

    scalar = schema.TensorShapeProto()
    add("loop_counter", Tensor("", INT32, scalar))
    add("maximum_iterations", Tensor("", INT32, scalar))
    moved: dict[str, str] = {}
    switch_of: dict[str, list[str]] = {}
    for switch, merge in loop.switches.items():
        switch_of.setdefault(merge, []).append(switch)
    for index, (merge, enter) in enumerate(loop.variables.items()):
        text = loop.initial[enter]
        # The shape that holds in every iteration (the invariant) is recorded at the Merge, not at
        # the value that enters.
        name = add(
            f"loop_var_{index}",
            Tensor(text, function.dtype(text), function.shape(f"{merge}:output:0")),
        )
        moved[f"{merge}:output:0"] = name
        moved.update((f"{switch}:output_true:0", name) for switch in switch_of.get(merge, ()))
    captured: dict[str, str] = {}
    entering = [(f"{enter}:output:0", text) for enter, text in loop.constants.items()]
    for name in loop.members:  # a function's own argument needs no Enter
        entering += [
            (text, text)
            for text in function.data(function.nodes[name])
            if text in function.arguments
        ]
    for inside, text in entering:
        if text not in captured:
            captured[text] = add(f"captured_{len(captured)}", function.tensor(text))
        moved[inside] = captured[text]
    return arguments, moved


def _new_values(
    loop: Loop, scope: str, arguments: dict[str, Tensor]
) -> tuple[list[str], list[str], list[Tensor]]:
    """Return the nodes that count, the nodes that hold a value back for control edges, and the
    results of the body function.
    """
    function = loop.function
    one = function.constant(f"{scope}/One", int_tensor(1))
    names = list(arguments)
    count = function.node(f"{scope}/Count", "AddV2", [names[0], one])
    count.attr["T"].type = INT32
    results = [Tensor(f"{count.name}:z:0", INT32), Tensor(names[1], INT32)]
    following = []
    for name, merge in zip(names[2:], loop.next):
        node = function.nodes[loop.next[merge]]
        (text,) = function.data(node, 1)
        waits = [other for other in function.controls(node) if other not in loop.structure]
        if waits:
            text = function.identity_text(f"{scope}/Next", text, arguments[name].dtype, waits)
            following.append(source(text))
        results.append(Tensor(text, arguments[name].dtype))
    results += [Tensor(name, arguments[name].dtype) for name in names[len(results) :]]
    return [source(one), count.name], following, results


def _replace(loop: Loop, scope: str, arguments: dict[str, Tensor], functions: list[Any]) -> None:
    """Replace the nodes of a loop by a While."""
    function, frame = loop.function, loop.frame
    enters = [function.nodes[name] for name in frame.enters]
    controls = list(itertools.chain.from_iterable(map(function.controls, enters)))
    entering = [tensor.text for tensor in arguments.values()][2:]
    counts = [
        function.constant(f"{scope}/{name}", int_tensor(value))
        for name, value in (("Start", 0), ("Limit", -1))
    ]
    stateful = any(made.signature.is_stateful for made in functions)
    node = function.node(
        f"{scope}/While", "While" if stateful else "StatelessWhile", [*counts, *entering], controls
    )
    node.attr["T"].list.type.extend(tensor.dtype for tensor in arguments.values())
    node.attr["cond"].func.name, node.attr["body"].func.name = (
        made.signature.name for made in functions
    )
    static_shapes(node.attr["output_shapes"], arguments.values())
    node.attr["parallel_iterations"].i = enters[0].attr["parallel_iterations"].i or 10
    node.attr["_lower_using_switch_merge"].b = True
    place = {merge: index for index, merge in enumerate(loop.variables, 2)}
    for name, merge in loop.exits.items():
        function.replace(f"{name}:output:0", f"{node.name}:output:{place[merge]}")
        function.replace(f"^{name}", f"^{node.name}")
    function.remove([*frame.enters, *loop.members])
    if frame.parent is not None:
        frame.parent.members += [source(text) for text in counts] + [node.name]

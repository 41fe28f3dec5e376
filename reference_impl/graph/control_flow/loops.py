"""One loop of v1 control flow as a While (V1-11).

tf.while_loop writes, for each loop variable::

    Enter -> Merge -> Switch -(true)-> body -> NextIteration -> Merge
               |        `-(false)-> Exit
               `-> predicate -> LoopCond -> Switch

and an ``Enter`` with ``is_constant`` for each tensor that the loop only uses. The predicate's part becomes the cond function,
what runs behind the true outputs the body function. Both get a counter and a limit first (the limit is -1, none), as the
gradient of While in TensorFlow expects, then the loop variables, then the constants.

Stateful nodes keep their number of runs: those of the predicate's part run once more than those of the body, and a graph in which
such a node belongs to both, or to neither, stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reference_impl.format import schema
from reference_impl.graph.control_flow.flow import READS, Body, Tensor, Unprovable, source, static_shapes
from reference_impl.graph.control_flow.frames import Frame

INT32, BOOL = schema.DT_INT32, schema.DT_BOOL


class Loop:
    """A frame without frames inside of it; what is wrong with it raises Unprovable."""

    def __init__(self, body: Body, frame: Frame):
        self.body = body
        self.frame = frame
        self.members = [name for name in frame.members if name in body.nodes]  # Enter nodes of inner loops are gone
        self.initial: dict[str, str] = {}  # Enter -> tensor that enters
        self.constants: dict[str, str] = {}
        self.variables: dict[str, str] = {}  # Merge -> its Enter
        self.next: dict[str, str] = {}  # Merge -> its NextIteration
        self.switches: dict[str, str] = {}  # Switch -> its Merge
        self.exits: dict[str, str] = {}  # Exit -> its Merge
        self.loop_cond = ""
        self._sort()
        self.structure = {*frame.enters, *self.variables, *self.next.values(), *self.switches, *self.exits, self.loop_cond}
        self._check()

    def op(self, name: str) -> str:
        return str(self.body.nodes[name].op) if name in self.body.nodes else ""

    def _sort(self) -> None:
        nodes = self.body.nodes
        for name in self.frame.enters:
            (entering,) = self.body.data(nodes[name], 1)
            (self.constants if nodes[name].attr["is_constant"].b else self.initial)[name] = entering
        conds = [name for name in self.members if nodes[name].op == "LoopCond"]
        if len(conds) != 1:
            raise Unprovable((conds or self.frame.enters)[0], f"is in a loop with {len(conds)} LoopCond nodes")
        self.loop_cond = conds[0]
        for name in self.members:
            if nodes[name].op == "Merge":
                self._sort_merge(name, [source(text) for text in self.body.data(nodes[name])])
        for name in self.members:
            if nodes[name].op == "Switch":
                value, predicate = self.body.data(nodes[name], 2)
                if source(predicate) == self.loop_cond:
                    if source(value) not in self.variables:
                        raise Unprovable(name, "leaves the loop with a value that is none of its variables")
                    self.switches[name] = source(value)
        for name in self.members:
            if nodes[name].op == "Exit":
                (value,) = self.body.data(nodes[name], 1)
                if source(value) not in self.switches or not value.endswith(":output_false:0"):
                    raise Unprovable(name, "does not leave through the Switch of a loop variable")
                self.exits[name] = self.switches[source(value)]

    def _sort_merge(self, name: str, sources: list[str]) -> None:
        enters = [other for other in sources if other in self.initial]
        nexts = [other for other in sources if self.op(other) == "NextIteration"]
        if len(sources) == 2 and len(enters) == len(nexts) == 1:
            self.variables[name], self.next[name] = enters[0], nexts[0]
        elif enters or nexts:
            raise Unprovable(name, "joins neither a loop variable nor two branches")

    def _check(self) -> None:
        nodes = self.body.nodes
        used = set(self.next.values())
        if len(used) != len(self.next) or len(set(self.variables.values())) != len(self.variables):
            raise Unprovable(self.loop_cond, "belongs to a loop in which two variables share an Enter or a NextIteration")
        for name in self.members:
            node = nodes[name]
            for text in self.body.data(node):
                origin = source(text)
                if origin in self.initial and name not in self.variables:
                    raise Unprovable(name, f"uses {origin!r}, which has a value in the first iteration only")
                if origin in self.switches and text.endswith(":output_false:0") and name not in self.exits:
                    raise Unprovable(name, f"uses {text!r}, which has a value after the last iteration only")
                if origin in self.variables and not text.endswith(":output:0"):
                    raise Unprovable(name, f"asks which input of {origin!r} came in")
                if origin == self.loop_cond and name not in self.switches:
                    raise Unprovable(name, f"uses the outcome of {origin!r}")
            if self.op(name) == "NextIteration" and name not in used:
                raise Unprovable(name, "is no loop variable's")
            if name in used or name == self.loop_cond:
                self.body.data(node, 1)
            waits = self.body.controls(node)
            fixed = name in self.switches or name in self.variables or name in self.exits
            if any((fixed and other not in self.structure) or other in used or other in self.exits for other in waits):
                raise Unprovable(name, "has control inputs that tf.while_loop does not make")

    # What runs where

    def ancestors(self, roots: Iterable[str]) -> set[str]:
        """Nodes needed for ``roots``, back to where values enter, loop variables begin and iterations branch off."""
        found: set[str] = set()
        stack = [name for name in roots if name in self.body.nodes]
        while stack:
            name = stack.pop()
            if name not in found and name not in self.structure:
                found.add(name)
                stack.extend(self.body.sources(self.body.nodes[name]))
        return found

    def parts(self) -> tuple[list[str], list[str]]:
        """The nodes of the predicate and those of the body, in graph order."""
        nodes = self.body.nodes
        predicate = self.ancestors(self.body.sources(nodes[self.loop_cond]))
        gated = self._gated()
        body = self.ancestors(other for name in self.next.values() for other in self.body.sources(nodes[name]))
        for name in predicate & gated:
            raise Unprovable(name, "decides about the iteration that it runs in")
        for name in self.members:
            inside = name in body or name in predicate or name in self.structure
            if self._counts(nodes[name]) and (not inside or (name in body and name not in gated)):
                raise Unprovable(name, "is stateful, and neither the predicate's nor the body's alone")
        return [name for name in self.members if name in predicate], [name for name in self.members if name in body]

    def _counts(self, node: Any) -> bool:
        """Whether it matters how often a node runs."""
        return node.op not in READS and self.body.ops.is_stateful(node)

    def _gated(self) -> set[str]:
        """Nodes that run only when the predicate holds."""
        users: dict[str, list[str]] = {}
        found: set[str] = set()
        stack = []
        for name in self.members:
            node = self.body.nodes[name]
            for other in self.body.sources(node):
                users.setdefault(other, []).append(name)
            # A control edge from a Switch says nothing: the Switch itself runs in the last iteration too.
            if name not in self.structure and any(source(text) in self.switches for text in self.body.data(node)):
                stack.append(name)
        while stack:
            name = stack.pop()
            if name not in found and name not in self.structure:
                found.add(name)
                stack.extend(users.get(name, ()))
        return found


def convert_loop(body: Body, frame: Frame, name_function: Callable[[str], str]) -> list[Any]:
    """Replace the nodes of ``frame`` by a While; returns its cond and body functions.

    Args:
      frame: has no frames left inside of it.
      name_function: makes a wanted function name a free one.

    Raises:
      Unprovable: it is no loop as tf.while_loop writes it. Nothing was changed.
    """
    loop = Loop(body, frame)
    predicate, inside = loop.parts()
    scope = loop.loop_cond.rpartition("/")[0] or "loop"
    arguments, moved = _arguments(loop)
    counter, following, results = _new_values(loop, scope, arguments)
    ready = {part: _wait_for_variables(loop, names, scope) for part, names in (("cond", predicate), ("body", inside))}
    wanted = f"{body.function.signature.name}_{scope}"
    (condition,) = body.data(body.nodes[loop.loop_cond], 1)
    waits = body.controls(body.nodes[loop.loop_cond])
    extra = [_after(body, f"{scope}/Condition", condition, BOOL, waits)] if any(w not in loop.structure for w in waits) else []
    holds = Tensor(f"{extra[0]}:output:0" if extra else condition, BOOL)
    functions = [
        body.extract(name_function(wanted + "_cond"), predicate + ready["cond"] + extra, arguments, [holds], moved),
        body.extract(name_function(wanted + "_body"), [*inside, *ready["body"], *counter, *following], arguments, results, moved),
    ]
    body.remove([*counter, *following, *extra, *ready["cond"], *ready["body"]])
    _replace(loop, scope, arguments, functions)
    return functions


def _wait_for_variables(loop: Loop, names: list[str], scope: str) -> list[str]:
    """Nodes that stand for "this loop variable is there" in control edges, which no argument can.

    An iteration may begin while the one before still computes, so an effect that waited for a variable goes on waiting.
    """
    body = loop.body
    made: dict[str, str] = {}
    if not body.is_stateful(names):
        return []
    for name in names:
        node = body.nodes[name]
        for position, text in enumerate(node.input):
            waited = body.resolve(text)[1:] if text[:1] == "^" else ""
            merge = loop.switches.get(waited, waited)
            if merge in loop.variables:
                if merge not in made:
                    dtype = body.dtype(f"{merge}:output:0")
                    made[merge] = _after(body, f"{scope}/Ready", f"{merge}:output:0", dtype, [])
                node.input[position] = "^" + made[merge]
    return list(made.values())


def _arguments(loop: Loop) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Arguments of both functions, and which tensors of the frame they are inside."""
    body = loop.body
    taken = set(loop.members)
    arguments: dict[str, Tensor] = {}

    def add(name: str, tensor: Tensor) -> str:
        while name in taken:
            name += "_"
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
        # What holds in every iteration (the shape invariant) is said of the Merge, not of what enters.
        name = add(f"loop_var_{index}", Tensor(text, body.dtype(text), body.shape(f"{merge}:output:0")))
        moved[f"{merge}:output:0"] = name
        moved.update((f"{switch}:output_true:0", name) for switch in switch_of.get(merge, ()))
    captured: dict[str, str] = {}
    for enter, text in loop.constants.items():
        if text not in captured:
            captured[text] = add(f"captured_{len(captured)}", body.tensor(text))
        moved[f"{enter}:output:0"] = captured[text]
    direct = [text for name in loop.members for text in body.data(body.nodes[name]) if text in body.arguments]
    for text in direct:  # a function's own argument needs no Enter
        if text not in captured:
            captured[text] = add(f"captured_{len(captured)}", body.tensor(text))
        moved[text] = captured[text]
    return arguments, moved


def _new_values(loop: Loop, scope: str, arguments: dict[str, Tensor]) -> tuple[list[str], list[str], list[Tensor]]:
    """Nodes that count, nodes that hold a value back for control edges, and the results of the body function."""
    body = loop.body
    one = body.add(f"{scope}/One", "Const")
    one.attr["dtype"].type = INT32
    one.attr["value"].tensor.dtype = INT32
    one.attr["value"].tensor.int_val.append(1)
    one.attr["value"].tensor.tensor_shape.SetInParent()
    names = list(arguments)
    count = body.add(f"{scope}/Count", "AddV2", [names[0], f"{one.name}:output:0"])
    count.attr["T"].type = INT32
    results = [Tensor(f"{count.name}:z:0", INT32), Tensor(names[1], INT32)]
    following = []
    for name, merge in zip(names[2:], loop.next):
        node = body.nodes[loop.next[merge]]
        (text,) = body.data(node, 1)
        waits = [other for other in body.controls(node) if other not in loop.structure]
        if waits:
            following.append(_after(body, f"{scope}/Next", text, arguments[name].dtype, waits))
            text = f"{following[-1]}:output:0"
        results.append(Tensor(text, arguments[name].dtype))
    results += [Tensor(name, arguments[name].dtype) for name in names[len(results) :]]
    return [one.name, count.name], following, results


def _after(body: Body, name: str, text: str, dtype: int, controls: Iterable[str]) -> str:
    node = body.add(name, "Identity", [text], controls)
    node.attr["T"].type = dtype
    return str(node.name)


def _replace(loop: Loop, scope: str, arguments: dict[str, Tensor], functions: list[Any]) -> None:
    body, frame = loop.body, loop.frame
    enters = [body.nodes[name] for name in frame.enters]
    controls = [control for enter in enters for control in body.controls(enter)]
    entering = [tensor.text for tensor in arguments.values()][2:]
    counts = [body.add_constant(f"{scope}/{name}", value) for name, value in (("Start", 0), ("Limit", -1))]
    stateful = any(function.signature.is_stateful for function in functions)
    node = body.add(f"{scope}/While", "While" if stateful else "StatelessWhile", [*counts, *entering], controls)
    node.attr["T"].list.type.extend(tensor.dtype for tensor in arguments.values())
    node.attr["cond"].func.name, node.attr["body"].func.name = (function.signature.name for function in functions)
    static_shapes(node.attr["output_shapes"], arguments.values())
    node.attr["parallel_iterations"].i = enters[0].attr["parallel_iterations"].i or 10
    node.attr["_lower_using_switch_merge"].b = True
    place = {merge: index for index, merge in enumerate(loop.variables, 2)}
    for name, merge in loop.exits.items():
        body.replace(f"{name}:output:0", f"{node.name}:output:{place[merge]}")
        body.replace_control(name, node.name)
    body.remove([*frame.enters, *loop.members])
    if frame.parent is not None:
        frame.parent.members += [source(text) for text in counts] + [node.name]

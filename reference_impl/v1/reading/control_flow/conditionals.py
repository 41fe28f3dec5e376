"""Convert the branches of TF 1.x control flow to If nodes.

A ``Switch`` makes one of its outputs dead. Everything behind a dead output is dead too, and a
``Merge`` takes the live input. So every node is alive under a stack of conditions: the conditions
of its inputs, plus one after a Switch, minus one after a Merge. Connected nodes with the same
innermost condition are the branches of one If, whose results are the Merges:

* tensors that the branches take from outside, through a Switch or directly, are inputs of the If;
* two conditions are equal if their tensors are equal (``Identity`` is ignored), or if both read a
  variable that no node updates.

Each call of tf.cond has its own predicate tensor (``pred_id``), so nodes are also grouped by that
tensor: one If for each tf.cond. If one If would wait for itself, several are made
(:mod:`reference_impl.v1.reading.control_flow.stages`).

RFC: V1-11
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Optional

from reference_impl.format import limits, schema
from reference_impl.graph.closure import reachable
from reference_impl.graph.node_defs import int_tensor
from reference_impl.graph.op_table import VARIABLE_READS
from reference_impl.graph.unique_names import unique_name
from reference_impl.v1.reading.control_flow.editable_function import (
    EditableFunction,
    NotConvertible,
    Tensor,
    order,
    source,
    static_shapes,
)

BOOL, INT32 = schema.DT_BOOL, schema.DT_INT32


@dataclass(frozen=True, eq=False)
class Condition:
    """A stack of conditions, which holds if ``outer`` holds and the predicate is ``branch``.

    Equal stacks are the same object.
    """

    outer: Optional[Condition]
    key: str
    branch: int
    depth: int


@dataclass(eq=False)
class Group:
    """The nodes of an If: the nodes of the branches False and True, and the Merges of its
    results.
    """

    outer: Optional[Condition]
    key: str
    predicate: str = ""
    branches: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))
    merges: list[str] = field(default_factory=list)
    handed: dict[str, int] = field(
        default_factory=dict
    )  # tensors that a later If needs -> their branch
    kept: set[str] = field(default_factory=set)  # constants that a later If needs too


def convert_conditionals(
    function: EditableFunction,
    name_function: Callable[[str], str],
    split: Callable[[Conditions, Group], list[Group]],
) -> list[Any]:
    """Replace every Switch and Merge of a function without loops by If nodes, and return the
    FunctionDefs of their branches.

    `split` divides the nodes of one tf.cond into ordered parts, one for each If. With one part the
    result may have a cycle. Raises NotConvertible: tf.cond does not make such a graph.
    """
    if not any(node.op in ("Switch", "Merge") for node in function.nodes.values()):
        return []
    conditions = Conditions(function)
    levels: dict[int, list[str]] = {}
    merges: dict[int, list[str]] = {}
    for name, node in function.nodes.items():
        condition = conditions.of[name]
        depth = condition.depth if condition is not None else 0
        if node.op == "Merge":
            merges.setdefault(depth + 1, []).append(name)
        elif node.op != "Switch":
            levels.setdefault(depth, []).append(name)
    indices = _asked_indices(function)
    functions: list[Any] = []
    for depth in range(max([0, *levels, *merges]), 0, -1):
        for group in _groups(conditions, levels.get(depth, []), merges.get(depth, [])):
            for part in split(conditions, group):
                made = _Conversion(conditions, part, indices)
                functions += made.run(name_function)
                conditions.of[made.node.name] = group.outer
                levels.setdefault(depth - 1, []).append(made.node.name)
    function.remove([name for name, node in function.nodes.items() if node.op == "Switch"])
    return functions


class Conditions:
    """The condition under which each node of a function is alive. None means always."""

    def __init__(self, function: EditableFunction):
        self.function = function
        self.of: dict[str, Optional[Condition]] = {}
        self.predicates: dict[str, str] = {}  # Switch -> its predicate as written
        self.keys: dict[str, str] = {}  # Switch -> the key of its predicate
        self._keys: dict[
            str, str
        ] = {}  # node -> the key of its output, if it differs from the output's text
        self.merges: dict[
            str, tuple[str, str]
        ] = {}  # Merge -> its tensors of the branches False and True
        self._known: dict[tuple[int, str, int], Condition] = {}
        self._updated = self._find_updated()
        names = order(function)
        if names is None:
            raise NotConvertible(next(iter(function.nodes)), "is in a graph with a cycle")
        for name in names:
            self.of[name] = self._condition(name, function.nodes[name])
            self._note_key(name, function.nodes[name])

    def _find_updated(self) -> set[str]:
        """Return the resource arguments that a node other than a read uses."""
        used: set[str] = set()
        for node in self.function.nodes.values():
            if node.op not in VARIABLE_READS:
                used.update(self.function.data(node))
        return used & self.function.arguments.keys()

    def behind(self, text: str) -> Optional[Condition]:
        """Return the condition under which a tensor is alive."""
        name = source(text)
        if name not in self.function.nodes:
            return None
        condition = self.of[name]
        if self.function.nodes[name].op == "Switch":
            return self._push(condition, self.keys[name], int(text.endswith(":output_true:0")))
        return condition

    def _push(self, outer: Optional[Condition], key: str, branch: int) -> Condition:
        depth = 1 if outer is None else outer.depth + 1
        known = (id(outer), key, branch)
        if known not in self._known:
            self._known[known] = Condition(outer, key, branch, depth)
        return self._known[known]

    def _condition(self, name: str, node: schema.NodeDef) -> Optional[Condition]:
        found: Optional[Condition] = None
        for control in self.function.controls(node):
            found = _deeper(found, self.of.get(control), name)
        if node.op == "ControlTrigger" and found is not None:
            raise NotConvertible(name, "runs whichever branch is taken")
        if node.op == "Merge":
            return self._merge(name, node, found)
        for text in self.function.data(node):
            found = _deeper(found, self.behind(text), name)
        if found is not None and found.depth > limits.CONTROL_FLOW_DEPTH:
            raise NotConvertible(
                name, f"is nested in more than {limits.CONTROL_FLOW_DEPTH} branches"
            )
        if node.op == "Switch":
            _, predicate = self.function.data(node, 2)
            self.predicates[name], self.keys[name] = predicate, self._key(predicate)
        return found

    def _merge(
        self, name: str, node: schema.NodeDef, waits: Optional[Condition]
    ) -> Optional[Condition]:
        first, second = self.function.data(node, 2)
        one, other = self.behind(first), self.behind(second)
        if (
            one is None
            or other is None
            or one.outer is not other.outer
            or one.key != other.key
            or one.branch == other.branch
        ):
            raise NotConvertible(
                name, "joins tensors that are not those of the two branches of one condition"
            )
        if _deeper(one.outer, waits, name) is not one.outer:
            raise NotConvertible(name, "waits for a node in a branch")
        self.merges[name] = (second, first) if one.branch else (first, second)
        return one.outer

    def _note_key(self, name: str, node: schema.NodeDef) -> None:
        """Record the key of a node that passes on a tensor, or reads a variable that no node
        updates.
        """
        data = self.function.data(node)
        if node.op == "Identity" and data:
            self._keys[name] = self._key(data[0])
        elif (
            node.op == "ReadVariableOp"
            and data
            and data[0] in self.function.arguments
            and data[0] not in self._updated
        ):
            self._keys[name] = "read " + data[0]

    def _key(self, predicate: str) -> str:
        """Return a key that predicates of the same value share."""
        return self._keys.get(source(predicate), predicate)


def _deeper(one: Optional[Condition], other: Optional[Condition], name: str) -> Optional[Condition]:
    """Return the stronger of two conditions.

    Raises NotConvertible if neither includes the other.
    """
    low, high = (
        (one, other) if (one.depth if one else 0) <= (other.depth if other else 0) else (other, one)
    )
    walk = high
    while walk is not None and (low is None or walk.depth > low.depth):
        walk = walk.outer
    if walk is not low:
        raise NotConvertible(
            name,
            "uses tensors of branches that exclude each other or have nothing to do with each"
            " other",
        )
    return high


def _asked_indices(function: EditableFunction) -> set[str]:
    """Return the Merges whose output ``value_index`` is used."""
    texts = list(function.definition.ret.values())
    for node in function.nodes.values():
        texts += function.data(node)
    return {source(text) for text in texts if text.endswith(":value_index:0")}


def _groups(conditions: Conditions, names: list[str], merges: list[str]) -> list[Group]:
    """Return the groups among nodes of one depth and the Merges that end their branches."""
    function = conditions.function
    together: dict[Any, list[Any]] = defaultdict(
        list
    )  # nodes, and predicates by the condition that they are asked under
    predicates: dict[str, str] = {}

    def join(name: str, text: str, condition: Condition) -> None:
        origin = source(text)
        other: Any = None
        if origin in function.nodes and function.nodes[origin].op == "Switch":
            if conditions.behind(text) is condition:
                predicates.setdefault(name, conditions.predicates[origin])
                other = id(condition.outer), conditions.predicates[origin]
        elif origin in function.nodes and same_if(conditions.of[origin], condition):
            other = origin
        if other is not None:
            together[name].append(other)
            together[other].append(name)

    for name in names:
        condition = conditions.of[name]
        assert condition is not None  # its depth is not 0
        node = function.nodes[name]
        for text in [*function.data(node), *function.controls(node)]:
            join(name, text, condition)
    for name in merges:
        for text in conditions.merges[name]:
            condition = conditions.behind(function.resolve(text))
            assert condition is not None
            join(name, function.resolve(text), condition)
    group_of: dict[Any, Group] = {}
    for name in [*names, *merges]:
        is_merge = function.nodes[name].op == "Merge"
        condition = (
            conditions.behind(function.resolve(conditions.merges[name][0]))
            if is_merge
            else conditions.of[name]
        )
        assert condition is not None
        if name not in group_of:
            group_of.update(
                dict.fromkeys(reachable([name], together), Group(condition.outer, condition.key))
            )
        group = group_of[name]
        group.predicate = group.predicate or predicates.get(name, "")
        (group.merges if is_merge else group.branches[condition.branch]).append(name)
    return list(dict.fromkeys(group_of.values()))


def same_if(one: Optional[Condition], other: Condition) -> bool:
    """Return whether nodes with these conditions can be in branches of one If."""
    return one is not None and one.outer is other.outer and one.key == other.key


class _Conversion:
    """Replaces one group by an If."""

    def __init__(self, conditions: Conditions, group: Group, indices: set[str]):
        self.function = conditions.function
        self.conditions = conditions
        self.group = group
        self.indices = indices
        self.inside = {*group.branches[0], *group.branches[1]}
        self.arguments: dict[str, Tensor] = {}
        self.moved: dict[str, str] = {}
        self.controls: dict[str, None] = {}
        self._names: dict[str, str] = {}  # tensor outside -> argument
        self.node: Any = None

    def run(self, name_function: Callable[[str], str]) -> list[Any]:
        function, group = self.function, self.group
        first = (group.merges or group.branches[1] or group.branches[0])[0]
        scope = first.rpartition("/")[0] or "cond"
        for name in [*group.branches[0], *group.branches[1]]:
            node = function.nodes[name]
            for text in function.data(node):
                self._enter(text)
            self._wait(function.controls(node))
        for name in group.merges:
            for text in self.conditions.merges[name]:
                self._enter(function.resolve(text))
            self._wait(function.controls(function.nodes[name]))
        wanted = f"{function.definition.signature.name}_{scope}"
        functions = []
        for branch, suffix in enumerate(("_false", "_true")):
            results, helpers = self._results(branch, scope)
            nodes = [*group.branches[branch], *helpers]
            functions.append(
                function.extract(
                    name_function(wanted + suffix), nodes, self.arguments, results, self.moved
                )
            )
            function.remove(helpers)
        self._replace(scope, functions, results)
        return functions

    def _enter(self, text: str) -> None:
        """Add an argument for a tensor that a branch takes from outside."""
        function = self.function
        if text in self.moved or source(text) in self.inside:
            return
        outside = text
        origin = source(text)
        if origin in function.nodes and function.nodes[origin].op == "Switch":
            condition = self.conditions.behind(text)
            assert condition is not None
            if condition.outer is self.group.outer and condition.key == self.group.key:
                outside = function.data(function.nodes[origin], 2)[0]
                self._wait(function.controls(function.nodes[origin]))
        if outside not in self._names:
            name = unique_name(f"input_{len(self._names)}", self.inside, numbered=False)
            self._names[outside] = name
            self.arguments[name] = function.tensor(outside)
        self.moved[text] = self._names[outside]

    def _wait(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self.function.nodes and self.function.nodes[name].op == "Switch":
                raise NotConvertible(name, "has control edges, which a Switch of tf.cond has not")
            if name not in self.inside:
                self.controls[name] = None

    def _results(self, branch: int, scope: str) -> tuple[list[Tensor], list[str]]:
        """Return the results of a branch, and the names of the nodes made for them.

        A constant tells which input a Merge would have taken. Zeros replace the tensors that the
        other branch passes on.
        """
        function = self.function
        results, helpers = [], []
        for name in self.group.merges:
            text = self.conditions.merges[name][branch]
            results.append(
                Tensor(
                    text, function.dtype(function.resolve(text)), function.shape(f"{name}:output:0")
                )
            )
            if name in self.indices:
                index = function.data(function.nodes[name]).index(function.resolve(text))
                made = function.constant(f"{scope}/Index", int_tensor(index))
                helpers.append(source(made))
                results.append(Tensor(made, INT32, schema.TensorShapeProto()))
        for text, owner in self.group.handed.items():
            tensor = function.tensor(text)
            if branch != owner:
                made, nodes = function.add_zeros(f"{scope}/NotTaken", tensor)
                tensor = tensor._replace(text=made)
                helpers += nodes
            results.append(tensor)
        return results, helpers

    def _replace(self, scope: str, functions: list[Any], results: list[Tensor]) -> None:
        function, group = self.function, self.group
        stateful = any(made.signature.is_stateful for made in functions)
        entering = [tensor.text for tensor in self.arguments.values()]
        node = function.node(
            f"{scope}/If",
            "If" if stateful else "StatelessIf",
            [group.predicate, *entering],
            self.controls,
        )
        node.attr["Tcond"].type = BOOL
        node.attr["Tin"].list.SetInParent()
        node.attr["Tin"].list.type.extend(tensor.dtype for tensor in self.arguments.values())
        node.attr["Tout"].list.SetInParent()
        node.attr["Tout"].list.type.extend(tensor.dtype for tensor in results)
        static_shapes(node.attr["output_shapes"], results)
        node.attr["else_branch"].func.name, node.attr["then_branch"].func.name = (
            f.signature.name for f in functions
        )
        node.attr["_lower_using_switch_merge"].b = True
        place = 0
        for name in group.merges:
            function.replace(f"{name}:output:0", f"{node.name}:output:{place}")
            place += 1
            if name in self.indices:
                function.replace(f"{name}:value_index:0", f"{node.name}:output:{place}")
                place += 1
            function.replace(f"^{name}", f"^{node.name}")
        for position, text in enumerate(group.handed, place):
            function.replace(text, f"{node.name}:output:{position}")
        for name in (
            self.inside - group.kept
        ):  # the If waits for the nodes that the function must wait for
            function.replace(f"^{name}", f"^{node.name}")
        function.remove([*(self.inside - group.kept), *group.merges])
        self.node = node

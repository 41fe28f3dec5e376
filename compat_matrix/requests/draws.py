"""Outputs of a signature that depend on numbers which each call draws anew: the graph says which
they may be.

A node that draws is followed forwards, through calls, loops, conditions and variables that are
written in the same call, to the outputs. Branches that a constant condition closes are left out:
exporters of TF 1.x leave a dropout behind a ``keras_learning_phase`` that nobody feeds. What is
found may still be idle, as a dropout that keeps everything is. So the caller asks the model
repeatedly, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Optional

from compat_matrix.requests.chance import PASSING, UPDATES, refs_of, tensors_of
from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import Edge, parse_input
from reference_impl.graph.functional_ops import CASE_OPS, IF_OPS, WHILE_OPS
from reference_impl.graph.node_index import Graph
from reference_impl.graph.random_ops import GENERATOR_OPS, SEEDED_OPS, UNSEEDED_OPS
from reference_impl.graph.references import FunctionIndex, function_attributes, function_values
from reference_impl.graph.variable_defs import VARIABLE_OPS

TOO_LARGE = "a graph that is too large to be followed"
# Ops that tell of their input only what is the same whatever was drawn.
_SHAPES = frozenset({"Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike"})
_SAME = frozenset({"Identity", "StopGradient", "PlaceholderWithDefault"})
_BODIES = 2_000  # visited; beyond it everything counts as drawn
_DEPTH = 40  # of calls, likewise

Sources = Mapping[int, str]  # number of an output or an argument -> the node that draws


class _Call(NamedTuple):
    """The effect of a call: outputs that depend on drawn numbers, and arguments that hold such
    numbers afterwards.
    """

    outputs: Sources
    written: Sources


def drawn(meta_graph: schema.MetaGraphDef, key: str, seeded: bool = False) -> dict[str, str]:
    """Return output -> node that draws, for the outputs of the signature ``key`` that may depend on
    drawn numbers.

    Nothing is found in a graph that contradicts itself. ``seeded``: nodes with a seed count, too.
    With a seed each process draws the same, but each call otherwise.
    """
    search = _Search(meta_graph.graph_def, seeded)
    if not search.draws:
        return {}
    signature = meta_graph.signature_def[key]
    fed = set(refs_of(signature.inputs))
    outputs = tensors_of(signature.outputs)
    wanted = list(itertools.chain.from_iterable(outputs.values()))
    try:
        graph = Graph(meta_graph.graph_def, "")
        needed = graph.ancestors(wanted, stop=fed)
    except SavedModelError:
        return {}
    body = _Body([graph.nodes[name] for name in needed], fed, {})
    sources = _Sources(search, body, {}, 0)
    found = {}
    for name, refs in outputs.items():
        source = next(filter(None, map(sources.of, refs)), None)
        if source is not None:
            found[name] = source
    return found


def draws(meta_graph: schema.MetaGraphDef) -> bool:
    """Return whether a node of a MetaGraph or of a function of it draws without a seed."""
    return _Search(meta_graph.graph_def, seeded=False).draws


class _Search:
    """The functions of a MetaGraph, and what their calls do."""

    def __init__(self, graph: schema.GraphDef, seeded: bool) -> None:
        self.library, self.seeded, self.visits = FunctionIndex(graph.library), seeded, 0
        names = [
            name
            for name, function in self.library.functions.items()
            if any(map(self.is_drawing, function.node_def))
        ]
        callers: dict[str, list[str]] = {}
        for name, called in self.library.calls().items() if names else ():
            for other in called:
                callers.setdefault(other, []).append(name)
        self.drawing = reachable(names, callers)  # functions that draw, or call one that does
        self.draws = bool(names) or any(map(self.is_drawing, graph.node))
        self._known: dict[object, Optional[_Call]] = {}

    def is_drawing(self, node: schema.NodeDef) -> bool:
        """Return whether a node itself draws numbers that count."""
        if node.op in SEEDED_OPS:
            return self.seeded or not any(
                name in node.attr and node.attr[name].i for name in ("seed", "seed2")
            )
        return node.op in UNSEEDED_OPS or (self.seeded and node.op in GENERATOR_OPS)

    def call(self, name: str, given: Sources, known: Mapping[int, bool], depth: int) -> _Call:
        """Return what the call of a function does whose arguments are drawn (``given``) or known to
        be true or false.
        """
        function = self.library.functions.get(name)
        if function is None or not (given or name in self.drawing):
            return _Call({}, {})
        key = name, frozenset(given), frozenset(known.items())
        if key in self._known:
            # None: the function calls itself.
            return self._known[key] or _everything(function)
        self.visits += 1
        if self.visits > _BODIES or depth > _DEPTH:
            return _everything(function)
        self._known[key] = None
        arguments = [item.name for item in function.signature.input_arg]
        body = _Body(
            function.node_def,
            (),
            {arguments[at]: value for at, value in known.items() if at < len(arguments)},
            True,
        )
        start = {arguments[at]: source for at, source in given.items() if at < len(arguments)}
        sources = _Sources(self, body, start, depth + 1)
        outputs, written = {}, {}
        for number, item in enumerate(function.signature.output_arg):
            source = sources.of(parse_input(function.ret.get(item.name, ""), True))
            outputs.update({number: source} if source else {})
        for number, argument in enumerate(arguments):
            if argument not in start and argument in sources.whole:
                written[number] = sources.whole[argument]
        self._known[key] = found = _Call(outputs, written)
        return found


def _everything(function: schema.FunctionDef) -> _Call:
    signature = function.signature
    return _Call(
        *(
            dict.fromkeys(range(len(items)), TOO_LARGE)
            for items in (signature.output_arg, signature.input_arg)
        )
    )


class _Body:
    """The nodes of a graph or a function, those that run, and what uses them."""

    def __init__(
        self,
        nodes: Iterable[schema.NodeDef],
        fed: Collection[Edge],
        known: Mapping[str, bool],
        in_function: bool = False,
    ) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.fed, self.known = fed, known
        self.inputs: dict[str, list[Edge]] = {}
        for name, node in self.nodes.items():
            self.inputs[name] = [parse_input(text, in_function) for text in node.input]
        self.users: dict[str, list[str]] = {}
        for name, refs in self.inputs.items():
            for source in dict.fromkeys(ref.source for ref in refs):
                self.users.setdefault(source, []).append(name)
        self.dead = self._dead()

    def value(self, ref: Edge) -> Optional[bool]:
        """Return the truth value of a tensor that follows from constants alone."""
        negated = False
        for _ in range(_DEPTH):
            node = self.nodes.get(ref.source)
            if ref in self.fed:
                return None
            if node is None:
                value = self.known.get(ref.source)
                return None if value is None else value is not negated
            if node.op == "Const":
                constant = _constant(node)
                return None if constant is None else constant is not negated
            if node.op not in (*_SAME, "LogicalNot") or not self.inputs[node.name]:
                return None
            negated = negated is not (node.op == "LogicalNot")
            ref = self.inputs[node.name][0]
        return None

    def _dead(self) -> set[str]:
        """Return the nodes that never run, since a constant condition closes the branch that they
        are in.
        """
        closed = set()
        for name, node in self.nodes.items():
            if node.op in ("Switch", "RefSwitch") and len(self.inputs[name]) > 1:
                value = self.value(self.inputs[name][1])
                if value is not None:
                    closed.add((name, "0" if value else "1"))
        dead: set[str] = set()
        stack = [name for name, _ in closed]
        while stack:
            for user in self.users.get(stack.pop(), ()):
                if user in dead:
                    continue
                missing = [
                    ref.source in dead or (ref.source, ref.port) in closed
                    for ref in self.inputs[user]
                ]
                if all(missing) if "Merge" in self.nodes[user].op else any(missing):
                    dead.add(user)
                    stack.append(user)
        return dead


def _constant(node: schema.NodeDef) -> Optional[bool]:
    tensor = node.attr["value"].tensor if "value" in node.attr else None
    if tensor is None or tensor.dtype != schema.DT_BOOL or tensor.tensor_shape.dim:
        return None
    return (
        bool(tensor.bool_val[0])
        if tensor.bool_val
        else bool(tensor.tensor_content[:1].strip(b"\0"))
    )


class _Sources:
    """The tensors of a body that depend on what was drawn, each with the node that draws."""

    def __init__(
        self, search: _Search, body: _Body, arguments: Mapping[str, str], depth: int
    ) -> None:
        self.search, self.body, self.depth = search, body, depth
        self.whole: dict[str, str] = dict(
            arguments
        )  # node or argument -> the node that draws, for all of its outputs
        self.parts: dict[str, dict[int, str]] = {}  # likewise for some of its outputs
        self._changed = list(self.whole)
        for name, node in body.nodes.items():
            if name not in body.dead:
                if search.is_drawing(node):
                    self._mark(name, name)
                elif any(
                    called in search.drawing
                    for called in search.library.references(node, gradients=False)
                ):
                    self._called(node)
        while self._changed:
            for user in body.users.get(self._changed.pop(), ()):
                if user not in body.dead and user not in self.whole:
                    self._used(body.nodes[user])

    def of(self, ref: Edge) -> Optional[str]:
        """Return the node that draws what a tensor depends on."""
        if ref.is_control or ref in self.body.fed:
            return None
        found = self.whole.get(ref.source)
        if found is None and ref.source in self.parts:
            found = self.parts[ref.source].get(self._number(ref))
        return found

    def _number(self, ref: Edge) -> int:
        node = self.body.nodes[ref.source]
        name, colon, _ = ref.port.partition(":")
        if colon and node.op in self.search.library.functions:
            return self.search.library.output_number(node.op, name) or 0
        return ref.number or 0

    def _mark(self, name: str, source: str, number: Optional[int] = None) -> None:
        if number is None:
            if name in self.whole:
                return
            self.whole[name] = source
        else:
            known = self.parts.setdefault(name, {})
            if number in known:
                return
            known[number] = source
        self._changed.append(name)

    def _used(self, node: schema.NodeDef) -> None:
        """Mark the outputs of a node if an input depends on drawn numbers."""
        source = next(filter(None, map(self.of, self.body.inputs[node.name])), None)
        if source is None or node.op in _SHAPES:
            return
        if any(True for _ in self.search.library.references(node, gradients=False)):
            self._called(node)
            return
        if node.op.removeprefix("Resource").startswith(UPDATES):
            self._written(node, 0, source)
        self._mark(node.name, source)

    def _written(self, node: schema.NodeDef, number: int, source: str) -> None:
        """Mark the variable that an input of a node refers to."""
        name = node.name
        for _ in range(_DEPTH):
            refs = self.body.inputs[name]
            if number >= len(refs):
                return
            name, number = refs[number].source, 0
            inner = self.body.nodes.get(name)
            if inner is None or inner.op in VARIABLE_OPS or inner.op not in PASSING:
                self._mark(name, source)
                return

    def _called(self, node: schema.NodeDef) -> None:
        """Mark the outputs of a node that calls functions."""
        refs = [ref for ref in self.body.inputs[node.name] if not ref.is_control]
        given = {number: source for number, source in enumerate(map(self.of, refs)) if source}
        library, op = self.search.library, node.op
        called = library.called(node)
        if called is not None:
            values = {
                number: value
                for number, value in enumerate(map(self.body.value, refs))
                if value is not None
            }
            self._returned(node, self.search.call(called, given, values, self.depth), 0)
        elif op in WHILE_OPS:
            self._loop(node, given)
        elif op in IF_OPS | CASE_OPS and 0 not in given:
            moved = {number - 1: source for number, source in given.items()}
            for name in self._chosen(node, refs):
                self._returned(node, self.search.call(name, moved, {}, self.depth), 1)
        else:
            drawing = (
                name
                for name in library.references(node, gradients=False)
                if name in self.search.drawing
            )
            source = next(iter(given.values()), None) or next(drawing, None)
            if source is not None:
                self._mark(node.name, source)

    def _chosen(self, node: schema.NodeDef, refs: Sequence[Edge]) -> Iterator[str]:
        """Yield the branches of a node that may run."""
        value = self.body.value(refs[0]) if refs else None
        keys: tuple[str, ...] = ("then_branch", "else_branch")
        if node.op.endswith("If") and value is not None:
            keys = ("then_branch",) if value else ("else_branch",)
        for attribute in function_attributes(node.attr, None if node.op.endswith("Case") else keys):
            yield from (function.name for function in function_values(attribute))

    def _loop(self, node: schema.NodeDef, given: Mapping[int, str]) -> None:
        found = dict(given)
        while True:
            body = self.search.call(node.attr["body"].func.name, found, {}, self.depth)
            more = {**body.written, **body.outputs, **found}
            if len(more) == len(found):
                break
            found = more
        decided = self.search.call(node.attr["cond"].func.name, found, {}, self.depth).outputs
        if decided:
            self._mark(node.name, next(iter(decided.values())))
        self._returned(node, _Call(found, body.written), 0)

    def _returned(self, node: schema.NodeDef, call: _Call, first: int) -> None:
        for number, source in call.outputs.items():
            self._mark(node.name, source, number)
        for number, source in call.written.items():
            self._written(node, number + first, source)

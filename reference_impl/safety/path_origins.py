"""Find the origin of the path that an op uses, by following the edges of a body backwards without
running it.

A path is only as trustworthy as everything that it is computed from. An origin is known where the
ops on the way are on the lists below, with attributes that cannot change the path; any other path
is COMPUTED. Where there is more than is looked at, the rest is UNSEEN: it may be any path, also a
literal that leads to the model itself.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Optional

from reference_impl.format import limits, schema
from reference_impl.graph.edges import Edge, data_inputs, parse_input
from reference_impl.graph.functional_ops import CASE_OPS, IF_OPS, WHILE_OPS
from reference_impl.graph.node_defs import strings_of_constant
from reference_impl.graph.references import CALL_OPS

# Kinds of an origin: an argument of the caller, a file of assets/, a literal in the model, joined
# parts, made at run time, and what was not looked at.
GIVEN, ASSET, LITERAL, PART, COMPUTED, UNSEEN = (
    "given",
    "asset",
    "literal",
    "part",
    "computed",
    "unseen",
)
# Ops that return their first input.
_SAME = frozenset(
    {
        "Identity",
        "Reshape",
        "ExpandDims",
        "Squeeze",
        "Snapshot",
        "StopGradient",
        "EnsureShape",
        "ShardedFilename",
    }
)
# Ops that return one of their inputs, or all of them together -> the number of the first one.
_ONE_OF = {
    "Pack": 0,
    "Concat": 1,
    "ConcatV2": 0,
    "Select": 1,
    "SelectV2": 1,
    "Merge": 0,
    "PlaceholderWithDefault": 0,
}
PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})
_JOINS = frozenset({"StringJoin", "Add", "AddV2"})
# Ops that call functions with inputs of their own -> the number of the first one.
_NESTED = {
    **dict.fromkeys(CALL_OPS | WHILE_OPS, 0),
    **dict.fromkeys({"RemoteCall"} | IF_OPS | CASE_OPS, 1),
}
# Ops that neither change the value of a variable nor pass its handle on.
_READERS = frozenset({"ReadVariableOp", "VarIsInitializedOp", "VariableShape", "DisableCopyOnRead"})


class Origin(NamedTuple):
    """A possible path or beginning of a path: its kind, and the text of a literal or the name of an
    asset.
    """

    kind: str
    text: str = ""


Arguments = tuple[frozenset[Origin], ...]
GIVEN_PATH = frozenset({Origin(GIVEN)})
COMPUTED_PATH = frozenset({Origin(COMPUTED)})
UNSEEN_PATH = frozenset({Origin(UNSEEN)})


class Body:
    """The main graph (`name` is None) or a function, with the known origins of its arguments.

    The arguments of the main graph are the tensors that a loader feeds. `believed` are tensors that
    only some loaders feed: the others compute them. `shared` are the names of variables that other
    bodies or nodes may assign too.
    """

    def __init__(
        self,
        name: Optional[str],
        nodes: Mapping[str, schema.NodeDef],
        arguments: Mapping[Edge, frozenset[Origin]],
        believed: Mapping[Edge, frozenset[Origin]] = {},
        shared: Collection[str] = (),
    ):
        self.name, self.nodes, self.arguments = name, nodes, arguments
        self.believed, self.shared = believed, shared

    def origins(self, text: str) -> frozenset[Origin]:
        """Return the possible origins of a tensor. ``text`` names it as an input of a node."""
        found: set[Origin] = set()
        pending = [(text, False)]
        seen = set()
        while pending:
            entry = pending.pop()
            if entry in seen:
                continue
            seen.add(entry)
            if len(seen) > limits.PATH_STEPS:
                return UNSEEN_PATH
            text, behind = entry
            edge = parse_input(text, self.name is not None)
            if edge in self.arguments:
                found.update(_behind(self.arguments[edge], behind))
                continue
            if edge.source not in self.nodes:
                return COMPUTED_PATH
            node = self.nodes[edge.source]
            if edge in self.believed:
                found.update(_behind(self.believed[edge], behind))
                if node.op in PLACEHOLDERS:
                    continue  # there is nothing to compute where it is not fed
            further = list(self._further(node, edge))
            pending.extend((inner, behind or later) for inner, later in further)
            found.update(_behind(_made(node, bool(further)), behind))
        return frozenset(found)

    def _further(self, node: schema.NodeDef, edge: Edge) -> Iterator[tuple[str, bool]]:
        """Yield the inputs that a node passes on in one output, each with whether it follows
        another component.
        """
        inputs = data_inputs(node)
        if node.op in _SAME:
            yield from ((text, False) for text in inputs[:1])
        elif node.op == "IdentityN":
            number = edge.number or 0
            yield from ((text, False) for text in inputs[number : number + 1])
        elif node.op in _ONE_OF:
            last = -1 if node.op == "ConcatV2" else None  # the axis
            yield from ((text, False) for text in inputs[_ONE_OF[node.op] : last])
        elif node.op in _JOINS:
            yield from ((text, number > 0) for number, text in enumerate(inputs))
        elif node.op == "ReadVariableOp" and self.name is None and inputs:
            # An asset of a TF 2.x model is fed into a variable that the initialisers read.
            yield from (
                (text, False) for text in self._assigned.get(parse_input(inputs[0]).source, ())
            )

    @functools.cached_property
    def _assigned(self) -> dict[str, list[str]]:
        """Handle -> the tensors that are assigned to its variable, for variables that nothing else
        can assign.
        """
        assigned: dict[str, list[str]] = {}
        passed_on: set[str] = set()
        for node in self.nodes.values():
            inputs = data_inputs(node)
            if node.op == "AssignVariableOp" and len(inputs) > 1:
                assigned.setdefault(parse_input(inputs[0]).source, []).append(inputs[1])
                inputs = inputs[1:]
            if node.op not in _READERS:
                passed_on.update(parse_input(text).source for text in inputs)
        return {
            name: texts
            for name, texts in assigned.items()
            if name not in passed_on and self._is_own(name)
        }

    def _is_own(self, handle: str) -> bool:
        """Return whether a handle is the only one of its variable."""
        node = self.nodes.get(handle)
        return (
            node is not None and node.op == "VarHandleOp" and variable_name(node) not in self.shared
        )

    def forwarded_inputs(
        self, node: schema.NodeDef, function: schema.FunctionDef, body: Optional[schema.FunctionDef]
    ) -> Arguments:
        """Return the origins of the inputs that a node forwards to a function that it calls.

        Args:
          node: a node of this body.
          function: the function.
          body: the loop body if the node is a loop. Its results are the arguments of the next
            round.
        """
        count = len(function.signature.input_arg)
        first = _NESTED.get(node.op)
        inputs = [] if first is None else data_inputs(node)[first : first + count]
        known = [self.origins(text) for text in inputs]
        if node.op in WHILE_OPS:
            known = [
                origins if _is_kept(body, number) else COMPUTED_PATH
                for number, origins in enumerate(known)
            ]
        return tuple(known + [COMPUTED_PATH] * (count - len(known)))


def first_argument(op: str) -> Optional[int]:
    """Return the number of the first input that an op passes to its functions; None if it passes
    others.
    """
    return _NESTED.get(op)


def loop_body(node: schema.NodeDef) -> str:
    """Return the name of a loop's body; "" for another node."""
    return node.attr["body"].func.name if node.op in WHILE_OPS and "body" in node.attr else ""


def variable_name(node: schema.NodeDef) -> str:
    """Return the name under which the runtime keeps the variable of a VarHandleOp."""
    shared = (
        node.attr["shared_name"].s.decode("utf-8", "replace") if "shared_name" in node.attr else ""
    )
    return shared or node.name


def function_arguments(
    function: schema.FunctionDef, origins: Iterable[frozenset[Origin]]
) -> dict[Edge, frozenset[Origin]]:
    """Return the origins of a function's arguments by the tensors that its nodes use."""
    names = [item.name for item in function.signature.input_arg]
    return {Edge(name): known for name, known in zip(names, origins)}


def _is_kept(body: Optional[schema.FunctionDef], number: int) -> bool:
    """Return whether a loop body returns its argument of this number unchanged, so that it is the
    same in each round.
    """
    if (
        body is None
        or number >= len(body.signature.input_arg)
        or number >= len(body.signature.output_arg)
    ):
        return False
    nodes = {node.name: node for node in body.node_def}
    text = body.ret.get(body.signature.output_arg[number].name, "")
    for _ in range(limits.PATH_STEPS):
        edge = parse_input(text, True)
        if edge == Edge(body.signature.input_arg[number].name):
            return True
        node = nodes.get(edge.source)
        inputs = data_inputs(node) if node is not None and node.op == "Identity" else []
        if not inputs:
            return False
        text = inputs[0]
    return False


def _behind(origins: Iterable[Origin], behind: bool) -> set[Origin]:
    """Return the origins of a component of a path.

    After another component only literals, the PARTs of a path, are known.
    """
    if not behind:
        return set(origins)
    return {_component(item) for item in origins}


def _component(item: Origin) -> Origin:
    if item.kind == UNSEEN:
        return item
    return Origin(PART, item.text) if item.kind in (LITERAL, PART) else Origin(COMPUTED)


def _made(node: schema.NodeDef, hands_on: bool) -> frozenset[Origin]:
    if node.op == "Const":
        return _literals(strings_of_constant(node, limits.PATH_TEXTS + 1)) or COMPUTED_PATH
    if node.op in PLACEHOLDERS or node.op == "PlaceholderWithDefault":
        return GIVEN_PATH
    if node.op == "StringJoin" and "separator" in node.attr and node.attr["separator"].s:
        return frozenset({Origin(PART, _text(node.attr["separator"].s))})
    return frozenset() if hands_on else COMPUTED_PATH


def _literals(texts: Sequence[bytes]) -> frozenset[Origin]:
    """Return the origins of texts in the model.

    Beyond the first `limits.PATH_TEXTS`, they are not looked at.
    """
    found = frozenset(Origin(LITERAL, _text(text)) for text in texts[: limits.PATH_TEXTS])
    return found | UNSEEN_PATH if len(texts) > limits.PATH_TEXTS else found


def _text(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def of_attribute(node: schema.NodeDef, name: str) -> frozenset[Origin]:
    """Return the paths in an attribute, which is a string or a list of strings."""
    value = node.attr[name] if name in node.attr else schema.AttrValue()
    texts: Sequence[bytes] = (
        value.list.s[: limits.PATH_TEXTS + 1] if value.HasField("list") else [value.s]
    )
    return _literals(texts) or frozenset({Origin(LITERAL)})


def is_model_file(origins: frozenset[Origin]) -> bool:
    """Return whether a path is surely a file of assets/, which is part of the model."""
    return bool(origins) and all(item.kind == ASSET for item in origins)


def is_given(origins: frozenset[Origin]) -> bool:
    """Return whether a path surely begins with a path of the caller and does not lead up again.

    No part may end in a dot: the next one may begin with one.
    """
    return Origin(GIVEN) in origins and all(
        item.kind == GIVEN
        or (item.kind == PART and ".." not in item.text and not item.text.endswith("."))
        for item in origins
    )


def may_lead_below(origins: frozenset[Origin], directory: str, handed: bool) -> bool:
    """Return whether a path may lead to a directory or below it.

    Args:
      origins: of the path.
      directory: its real path.
      handed: whether the caller gives a path in it to the function that uses the path.
    """
    kinds = {item.kind for item in origins}
    if not kinds.isdisjoint((GIVEN, ASSET, UNSEEN)) or (COMPUTED in kinds and handed):
        return True
    joined = not kinds.isdisjoint((PART, COMPUTED))
    if any(item.kind == PART and ".." in item.text for item in origins):
        return True
    return any(
        item.kind == LITERAL and _leads_below(item.text, directory, joined) for item in origins
    )


def _leads_below(text: str, directory: str, joined: bool) -> bool:
    """Return whether a text is a path to a directory or below it, or may become one when something
    is `joined` to it.
    """
    if "\0" in text:
        return False
    path = text.removeprefix("file://")
    if joined and directory.startswith(os.path.realpath(path)):
        return True
    return bool(path) and (os.path.realpath(path) + os.sep).startswith(directory + os.sep)


def is_one_of(
    origins: frozenset[Origin], texts: Sequence[str], beginnings: Sequence[str] = ()
) -> bool:
    """Return whether a path is surely one of some texts or begins with one of some others."""
    return bool(origins) and all(
        item.kind == LITERAL and (item.text in texts or item.text.startswith(tuple(beginnings)))
        for item in origins
    )

"""Find the origin of the path that an op uses, by following the edges of a body backwards without running it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Optional

from reference_impl.format import schema
from reference_impl.graph.edges import data_inputs, parse_input
from reference_impl.graph.node_defs import strings_of_constant
from reference_impl.graph.references import CALL_OPS

# Kinds of an origin: an argument of the caller, a file of assets/, a literal in the model, joined parts, made at run time.
GIVEN, ASSET, LITERAL, PART, COMPUTED = "given", "asset", "literal", "part", "computed"
_SAME = frozenset({"Identity", "IdentityN", "Reshape", "ExpandDims", "Squeeze", "Snapshot", "StopGradient", "EnsureShape"})
_ONE_OF = frozenset({"Pack", "Concat", "ConcatV2", "Select", "SelectV2", "Merge", "PlaceholderWithDefault"})
# Inputs before the arguments
_NESTED = {"If": 1, "StatelessIf": 1, "Case": 1, "StatelessCase": 1, "While": 0, "StatelessWhile": 0}
_NO_FILES = ("local://", "bytes://")  # DecodeProtoV2
_STEPS = 64  # nodes visited for one path
_TEXTS = 8  # strings of one constant


class Origin(NamedTuple):
    """A possible path or beginning of a path: its kind, and the text of a literal or the name of an asset."""

    kind: str
    text: str = ""


Arguments = tuple[frozenset[Origin], ...]
GIVEN_PATH = frozenset({Origin(GIVEN)})
COMPUTED_PATH = frozenset({Origin(COMPUTED)})


class Body:
    """The main graph (`name` is None) or a function, with the known origins of its arguments.

    The arguments of the main graph are the nodes of the tensors that are assets.
    """

    def __init__(self, name: Optional[str], nodes: Mapping[str, schema.NodeDef], arguments: Mapping[str, frozenset[Origin]]):
        self.name, self.nodes, self.arguments = name, nodes, arguments

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
            if len(seen) > _STEPS:
                return COMPUTED_PATH
            text, behind = entry
            source = parse_input(text, self.name is not None).source
            if source in self.arguments:
                found.update(_behind(self.arguments[source], behind))
            elif source in self.nodes:
                node = self.nodes[source]
                further = list(self._further(node))
                if further:
                    pending.extend((inner, behind or later) for inner, later in further)
                found.update(_behind(_made(node, bool(further)), behind))
            else:
                return COMPUTED_PATH
        return frozenset(found)

    def _further(self, node: schema.NodeDef) -> Iterator[tuple[str, bool]]:
        """Yield the inputs that a node passes on, each with whether it follows another component."""
        inputs = data_inputs(node)
        if node.op in _SAME or node.op == "ShardedFilename":
            yield from ((text, False) for text in inputs[: None if node.op == "IdentityN" else 1])
        elif node.op in _ONE_OF:
            yield from ((text, False) for text in inputs[node.op.startswith("Select") :])
        elif node.op in ("StringJoin", "Add", "AddV2"):
            yield from ((text, number > 0) for number, text in enumerate(inputs))
        elif node.op == "ReadVariableOp" and self.name is None and inputs:
            # An asset of a TF 2.x model is fed into a variable that the initialisers read.
            yield from ((text, False) for text in self._assigned.get(parse_input(inputs[0]).source, ()))

    @functools.cached_property
    def _assigned(self) -> dict[str, list[str]]:
        """Handle -> the tensors that are assigned to its variable."""
        assigned: dict[str, list[str]] = {}
        for node in self.nodes.values():
            inputs = data_inputs(node)
            if node.op == "AssignVariableOp" and len(inputs) > 1:
                assigned.setdefault(parse_input(inputs[0]).source, []).append(inputs[1])
        return assigned

    def handed_on(self, node: schema.NodeDef, arguments: int) -> Arguments:
        """Return the origins of the first ``arguments`` arguments that a node passes to the functions that it refers to."""
        first = 0 if node.op in CALL_OPS else _NESTED.get(node.op)
        inputs = [] if first is None else data_inputs(node)[first : first + arguments]
        known = [self.origins(text) for text in inputs]
        return tuple(known + [COMPUTED_PATH] * (arguments - len(known)))


def _behind(origins: Iterable[Origin], behind: bool) -> set[Origin]:
    """Return the origins of a component of a path. A literal after another component is a PART of the path."""
    if not behind:
        return set(origins)
    return {Origin(PART, item.text) if item.kind in (LITERAL, PART) else item for item in origins if item.kind != GIVEN}


def _made(node: schema.NodeDef, hands_on: bool) -> frozenset[Origin]:
    if node.op == "Const":
        texts = strings_of_constant(node, _TEXTS)
        return frozenset(Origin(LITERAL, text.decode("utf-8", "backslashreplace")) for text in texts) or COMPUTED_PATH
    if node.op in ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault"):
        return GIVEN_PATH
    return frozenset() if hands_on else COMPUTED_PATH


def of_attribute(node: schema.NodeDef, name: str) -> frozenset[Origin]:
    """Return the paths in an attribute, which is a string or a list of strings."""
    value = node.attr[name] if name in node.attr else schema.AttrValue()
    texts: Sequence[bytes] = value.list.s[:_TEXTS] if value.HasField("list") else [value.s]
    return frozenset(Origin(LITERAL, text.decode("utf-8", "backslashreplace")) for text in texts) or frozenset({Origin(LITERAL)})


def is_model_file(origins: frozenset[Origin]) -> bool:
    """Return whether a path is surely a file of assets/, which is part of the model."""
    return bool(origins) and all(item.kind == ASSET for item in origins)


def is_given(origins: frozenset[Origin]) -> bool:
    """Return whether a path surely begins with a path of the caller and does not lead up again."""
    return Origin(GIVEN) in origins and all(
        item.kind == GIVEN or (item.kind == PART and ".." not in item.text) for item in origins
    )


def is_no_file(origins: frozenset[Origin]) -> bool:
    """Return whether an op gets an empty path, or the content itself, instead of a file."""
    return bool(origins) and all(item.kind == LITERAL and (not item.text or item.text.startswith(_NO_FILES)) for item in origins)

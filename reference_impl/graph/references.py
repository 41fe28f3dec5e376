"""References between the functions of a MetaGraph: the one walk over everything that names a
function.

A node refers to functions in four ways: it calls one by its op type (TF 1.x Defun), its attributes
hold function values (calls, branches, loop bodies; function values have attributes of their own),
and the attribute of a custom gradient names an op type whose gradient the library registers.
Besides the references of nodes, a library lists gradients of functions (TF 1.x GradientDef), the
runtime replaces a function by another implementation of its interface, and some string attributes
hold names of functions.

Which of these count depends on the question, so each has a method or a parameter of its own.
Functions may call themselves, and there may be a million of them: all walks are iterative and
linear.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Optional, TypeVar

from reference_impl.errors import DuplicateKeyError
from reference_impl.format import schema
from reference_impl.format.names import CUSTOM_GRADIENT, IMPLEMENTS

# Ops that pass their own inputs to the function in an attribute and return its results as their own
# outputs.
CALL_OPS = frozenset(
    {"PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "TPUPartitionedCall"}
)

Name = TypeVar("Name", bound=str)
_Attributes = Mapping[str, schema.AttrValue]


def function_attributes(
    attributes: _Attributes, keys: Optional[Iterable[str]] = None
) -> list[schema.AttrValue]:
    """Return the attributes of a node, a function or a function value that hold functions.

    `keys` are the attributes that count, in this order; None for all, sorted (the order of a map
    differs from process to process).
    """
    found = {}
    for key in (
        attributes if keys is None else [key for key in keys if key in attributes]
    ):  # items() of a map is slow
        value = attributes[key]
        kind = value.WhichOneof("value")
        if kind == "func" or (kind == "list" and value.list.func):
            found[key] = value
    return [found[key] for key in (sorted(found) if keys is None else found)]


def _function_list(value: schema.AttrValue) -> Iterable[schema.NameAttrList]:
    kind = value.WhichOneof("value")
    if kind == "func":
        return (value.func,)
    return value.list.func if kind == "list" else ()


def function_values(value: schema.AttrValue) -> Iterator[schema.NameAttrList]:
    """Yield the function values of one attribute, including those nested in attributes of function
    values.

    The messages of the file themselves are yielded; a caller may rename them.
    """
    stack = [value]
    while stack:
        for function in _function_list(stack.pop()):
            yield function
            stack.extend(function_attributes(function.attr))


def bodies(
    graph: schema.GraphDef,
) -> Iterator[tuple[Optional[schema.FunctionDef], Sequence[schema.NodeDef]]]:
    """Yield the nodes of the main graph (with None), then each function of the file with its
    nodes.
    """
    yield None, graph.node
    for function in graph.library.function:
        yield function, function.node_def


def all_nodes(graph: schema.GraphDef) -> Iterator[schema.NodeDef]:
    """Yield the nodes of the main graph and of all functions."""
    for _, nodes in bodies(graph):
        yield from nodes


def nodes_of(functions: Iterable[schema.FunctionDef]) -> Iterator[schema.NodeDef]:
    """Yield the nodes of functions, one function after the other."""
    for function in functions:
        yield from function.node_def


def named_by(node: schema.NodeDef) -> Iterator[str]:
    """Yield every name that may be a function that a node calls: its op, and the function values of
    its attributes.
    """
    yield node.op
    for value in reversed(function_attributes(node.attr)):
        for function in function_values(value):
            yield function.name


def names_in(nodes: Iterable[schema.NodeDef]) -> dict[str, None]:
    """Return what `named_by` yields for nodes: each name once, in the order of first mention."""
    found: dict[str, None] = {}
    for node in nodes:
        found.update(dict.fromkeys(named_by(node)))
    return found


def names_in_graph(graph: schema.GraphDef) -> set[str]:
    """Return what `names_in` gives for the main graph and all functions."""
    names = set(names_in(graph.node))
    for function in graph.library.function:
        names.update(names_in(function.node_def))
    return names


@dataclass(frozen=True)
class Mentions(Generic[Name]):
    """The ops of the nodes of a function, the functions that they call, in order of first mention,
    and every name that may be a function's (see `named_by`).
    """

    ops: frozenset[str]
    calls: list[Name]
    names: Collection[str]


def mentions(functions: Mapping[Name, schema.FunctionDef]) -> dict[Name, Mentions[Name]]:
    """Return name of a function -> what its nodes name. Only calls of these functions count."""
    known = {str(name): name for name in functions}
    found = {}
    for name, function in functions.items():
        ops = frozenset(node.op for node in function.node_def)
        names = names_in(function.node_def)
        calls = [known[other] for other in names if other in known]
        found[name] = Mentions(ops, calls, names.keys())
    return found


def function_values_of(nodes: Iterable[schema.NodeDef]) -> list[list[schema.NameAttrList]]:
    """Return for each node the function values of its attributes, as `function_values` yields
    them.
    """
    found = []
    for node in nodes:
        values: list[schema.NameAttrList] = []
        for attribute in function_attributes(node.attr):
            values += function_values(attribute)
        found.append(values)
    return found


class FunctionIndex:
    """The functions of a MetaGraph by name, and the references between them.

    Of two functions of one name the last counts, as in the runtime's registry. `gradients` maps
    registered op types to gradient functions, `gradient_of` functions to their gradient functions
    (TF 1.x GradientDef).

    RFC: FMT-14
    """

    def __init__(self, library: schema.FunctionDefLibrary):
        self.functions = {function.signature.name: function for function in library.function}
        self.gradients = {
            item.registered_op_type: item.gradient_func for item in library.registered_gradients
        }
        self.gradient_of = {item.function_name: item.gradient_func for item in library.gradient}
        self._outputs: dict[str, dict[str, int]] = {}

    def output_number(self, function: str, name: str) -> int | None:
        """Return the position of a result of a function of this library, or None if it has no
        result of this name.
        """
        if function not in self._outputs:
            results = self.functions[function].signature.output_arg
            self._outputs[function] = {
                item.name: len(results) - 1 - number
                for number, item in enumerate(reversed(results))
            }
        return self._outputs[function].get(name)

    def called(self, node: schema.NodeDef) -> str | None:
        """Return the function that a node calls with its own inputs (by op type or as a call op),
        or None.
        """
        if node.op in self.functions:
            return node.op
        if node.op in CALL_OPS and "f" in node.attr:
            name = node.attr["f"].func.name
            return name if name in self.functions else None
        return None

    def references(
        self, node: schema.NodeDef, *, gradients: bool = True, keys: Optional[Iterable[str]] = None
    ) -> Iterator[str]:
        """Yield the functions of this library that a node refers to; a function may come more than
        once.

        `gradients` tells whether its custom gradient counts, which running a node never runs. For
        `keys` see `function_attributes`.
        """
        if not self.functions:
            return
        if node.op in self.functions:
            yield node.op
        yield from self.attribute_references(node.attr, gradients=gradients, keys=keys)

    def attribute_references(
        self,
        attributes: _Attributes,
        *,
        gradients: bool = True,
        keys: Optional[Iterable[str]] = None,
    ) -> Iterator[str]:
        """Yield the functions of this library that attributes of a node or a function refer to, as
        `references` does.
        """
        if gradients and CUSTOM_GRADIENT in attributes:
            yield from self._gradient(attributes)
        for value in function_attributes(attributes, keys):
            for function in function_values(value):
                if function.name in self.functions:
                    yield function.name
                if gradients and function.attr and CUSTOM_GRADIENT in function.attr:
                    yield from self._gradient(function.attr)

    def _gradient(self, attributes: _Attributes) -> Iterator[str]:
        gradient = self.gradients.get(attributes[CUSTOM_GRADIENT].s.decode("utf-8", "replace"))
        if gradient in self.functions:
            yield gradient

    def in_strings(self, attributes: _Attributes) -> set[str]:
        """Return the functions whose names are in string attributes (``forward_function_name`` and
        the like).
        """
        found = set()
        for key in attributes:
            value = attributes[key]
            kind = value.WhichOneof("value")
            for item in (value.s,) if kind == "s" else value.list.s if kind == "list" else ():
                name = item.decode("utf-8", "replace")
                if name in self.functions:
                    found.add(name)
        return found

    @functools.cached_property
    def implementations(self) -> dict[bytes, list[str]]:
        """Interface -> the functions that implement it for some device, according to their
        attribute ``api_implements``.
        """
        found: dict[bytes, list[str]] = {}
        for name, function in self.functions.items():
            if IMPLEMENTS in function.attr:
                found.setdefault(function.attr[IMPLEMENTS].s, []).append(name)
        return found

    def may_run(self, names: Iterable[str]) -> dict[str, None]:
        """Return these functions and the functions that TensorFlow may run instead of them.

        The graph optimizer replaces a function by another implementation of its interface;
        SymbolicGradient runs the gradient that the library lists for its function.
        """
        found: dict[str, None] = {}
        for name in names:
            found[name] = None
            if self.gradient_of.get(name) in self.functions:
                found[self.gradient_of[name]] = None
            if self.implementations and IMPLEMENTS in self.functions[name].attr:
                found.update(
                    dict.fromkeys(self.implementations[self.functions[name].attr[IMPLEMENTS].s])
                )
        return found

    def calls(
        self, referred: Optional[Callable[[str], Iterable[Iterable[str]]]] = None
    ) -> dict[str, list[str]]:
        """Return for every function the functions that it refers to, each once, in order of first
        mention.

        `referred` returns what the nodes of a function refer to, in order, if that is known. Nodes
        that refer to the same functions may come once.
        """
        result: dict[str, list[str]] = {}
        none: list[str] = []  # one for all, there may be a million of them
        for name, function in self.functions.items():
            found: dict[str, None] = {}
            for names in (
                map(self.references, function.node_def) if referred is None else referred(name)
            ):
                found.update(dict.fromkeys(sorted(names)))
            if self.gradient_of.get(name) in self.functions:
                found[self.gradient_of[name]] = None
            result[name] = list(found) if found else none
        return result


def check_functions(library: schema.FunctionDefLibrary, file: str) -> None:
    """Raise DuplicateKeyError if two functions of one name differ, because readers disagree about
    which one counts.
    """
    first: dict[str, schema.FunctionDef] = {}
    differ = [
        one.signature.name
        for one in library.function
        if first.setdefault(one.signature.name, one) != one
    ]
    if differ:
        raise DuplicateKeyError(
            "two functions of this name, which differ",
            file=file,
            node=min(differ),
            rule="SM-META-6",
        )

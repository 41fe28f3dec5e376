"""Graphs and function libraries as directed graphs: edges, calls, strongly connected components.

Everything here works on untrusted protos: a node may name inputs that do not exist, functions may call themselves, and
there may be a million of either, so all walks are iterative and linear.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from reference_impl.errors import DuplicateKeyError
from reference_impl.format import schema
from reference_impl.format.names import CUSTOM_GRADIENT, IMPLEMENTS

CONTROL = ""

# Ops that hand the function in an attribute their own inputs and give its results as their own outputs.
CALL_OPS = frozenset({"PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "TPUPartitionedCall"})


class Edge(NamedTuple):
    """An input of a node. Port: ``"0"``, ``"1"``, … in a GraphDef, ``"output:0"`` in a function, CONTROL for a control edge."""

    source: str
    port: str


def parse_input(text: str, in_function: bool = False) -> Edge:
    """Take ``"^node"``, ``"node"``, ``"node:1"`` or, in a function, ``"node:output:0"`` and ``"argument"`` apart.

    A tensor name of a SignatureDef or SaverDef has the form of a GraphDef's input.
    """
    if text.startswith("^"):
        return Edge(text[1:], CONTROL)
    name, colon, port = text.partition(":") if in_function else text.rpartition(":")
    if colon and (in_function or port.isdecimal()):
        return Edge(name, port)
    return Edge(text, "0")


def input_source(text: str, in_function: bool = False) -> str:
    """The source of :func:`parse_input`, for those who ask for nothing else of many inputs."""
    if text.startswith("^"):
        return text[1:]
    if ":" not in text:
        return text
    name, _, port = text.partition(":") if in_function else text.rpartition(":")
    return name if in_function or port.isdecimal() else text


def input_sources(nodes: Iterable[schema.NodeDef], in_function: bool = False) -> list[list[str]]:
    """For each node the nodes and arguments that it waits for."""
    # Most inputs are the first output of a node, and written as its name.
    return [
        [input_source(text, in_function) if ":" in text or text[:1] == "^" else text for text in node.input] for node in nodes
    ]


class Nodes:
    """The nodes of a main graph, with what most walks ask of every one of them, read once: a message makes a new string for
    every question.

    Args:
      graph: a GraphDef.

    Attributes:
      messages, names, ops: the nodes in the order of the file, their names, their ops.
    """

    def __init__(self, graph: schema.GraphDef):
        self.messages: list[schema.NodeDef] = list(graph.node)
        self.names: list[str] = [node.name for node in self.messages]
        self.ops: list[str] = [node.op for node in self.messages]

    @functools.cached_property
    def by_name(self) -> dict[str, schema.NodeDef]:
        """Of two nodes of one name the last, as everywhere here."""
        return dict(zip(self.names, self.messages))

    @functools.cached_property
    def op_of(self) -> dict[str, str]:
        """Name -> op."""
        return dict(zip(self.names, self.ops))

    @functools.cached_property
    def sources(self) -> list[list[str]]:
        """For each node those that it waits for."""
        return input_sources(self.messages)

    @functools.cached_property
    def waits(self) -> dict[str, list[str]]:
        """The same by name."""
        return dict(zip(self.names, self.sources))


def data_inputs(node: schema.NodeDef) -> list[str]:
    """The inputs of a node that carry tensors, in order."""
    return [text for text in node.input if not text.startswith("^")]


class Library:
    """The functions of a MetaGraph by name, and who refers to whom.

    Args:
      library: a FunctionDefLibrary. Of two functions of one name the last counts, as in the runtime's registry.

    Attributes:
      functions: name -> FunctionDef.
      gradients: registered op type -> gradient function (FMT-14).
      gradient_of: function -> its gradient function (TF 1.x GradientDef).
    """

    def __init__(self, library: schema.FunctionDefLibrary):
        self.functions = {function.signature.name: function for function in library.function}
        self.gradients = {item.registered_op_type: item.gradient_func for item in library.registered_gradients}
        self.gradient_of = {item.function_name: item.gradient_func for item in library.gradient}
        self._outputs: dict[str, dict[str, int]] = {}

    def output_number(self, function: str, name: str) -> int | None:
        """The position of a result of a function of this library; None when it has none of this name."""
        if function not in self._outputs:
            results = self.functions[function].signature.output_arg
            self._outputs[function] = {item.name: len(results) - 1 - number for number, item in enumerate(reversed(results))}
        return self._outputs[function].get(name)

    def called(self, node: schema.NodeDef) -> str | None:
        """The function a node calls with its own inputs: by op type (TF 1.x Defun) or as a call op; None for other nodes."""
        if node.op in self.functions:
            return node.op
        if node.op in CALL_OPS and "f" in node.attr:
            name = node.attr["f"].func.name
            return name if name in self.functions else None
        return None

    def references(self, node: schema.NodeDef) -> Iterator[str]:
        """Functions of this library that a node refers to: calls, branches and bodies in attributes, its custom gradient."""
        if not self.functions:
            return
        if node.op in self.functions:
            yield node.op
        for key in node.attr:
            value = node.attr[key]
            # Most attributes are plain; asking them twice is cheaper than a generator for each.
            if value.HasField("func") or key == CUSTOM_GRADIENT or (value.HasField("list") and value.list.func):
                yield from self.attribute_references(key, value)

    def attribute_references(self, key: str, value: schema.AttrValue) -> Iterator[str]:
        """Functions of this library that one attribute refers to, attributes of function values included."""
        stack = [(key, value)]
        while stack:
            key, value = stack.pop()
            if value.HasField("func"):
                functions = [value.func]
            elif value.HasField("list"):
                functions = list(value.list.func)
            else:
                if key == CUSTOM_GRADIENT and value.HasField("s"):
                    gradient = self.gradients.get(value.s.decode("utf-8", "replace"))
                    if gradient in self.functions:
                        yield gradient
                continue
            for function in functions:
                if function.name in self.functions:
                    yield function.name
                stack.extend(function.attr.items())

    @functools.cached_property
    def implementations(self) -> dict[bytes, list[str]]:
        """Interface -> the functions that implement it for one device or another, as their attribute ``api_implements`` says."""
        found: dict[bytes, list[str]] = {}
        for name, function in self.functions.items():
            if IMPLEMENTS in function.attr:
                found.setdefault(function.attr[IMPLEMENTS].s, []).append(name)
        return found

    def may_run(self, names: Iterable[str]) -> dict[str, None]:
        """Return everything that TensorFlow may run where a node refers to functions: these, and what it chooses in their place.

        The graph optimizer replaces a function by another implementation of its interface; SymbolicGradient runs the gradient
        that the library lists for its function.
        """
        found: dict[str, None] = {}
        for name in names:
            found[name] = None
            if self.gradient_of.get(name) in self.functions:
                found[self.gradient_of[name]] = None
            if self.implementations and IMPLEMENTS in self.functions[name].attr:
                found.update(dict.fromkeys(self.implementations[self.functions[name].attr[IMPLEMENTS].s]))
        return found

    def calls(self) -> dict[str, list[str]]:
        """For every function the functions it refers to, each once, in order of first mention."""
        result: dict[str, list[str]] = {}
        none: list[str] = []  # one for all, there may be a million of them
        for name, function in self.functions.items():
            found: dict[str, None] = {}
            for node in function.node_def:
                found.update(dict.fromkeys(sorted(self.references(node))))  # attributes come in any order
            if self.gradient_of.get(name) in self.functions:
                found[self.gradient_of[name]] = None
            result[name] = list(found) if found else none
        return result


def repeated(names: Iterable[str]) -> list[str]:
    """The names that are there more than once, sorted."""
    listed = list(names)
    if len(set(listed)) == len(listed):
        return []
    return sorted(name for name, count in Counter(listed).items() if count > 1)


def check_functions(library: schema.FunctionDefLibrary, file: str) -> None:
    """Two functions of one name must be one function. Raises DuplicateKeyError: which one a reader takes is its own affair."""
    first: dict[str, schema.FunctionDef] = {}
    differ = [one.signature.name for one in library.function if first.setdefault(one.signature.name, one) != one]
    if differ:
        raise DuplicateKeyError("two functions of this name, which differ", file=file, node=min(differ))


def reachable(starts: Iterable[str], edges: dict[str, list[str]]) -> dict[str, None]:
    """Everything that can be reached from ``starts``, these included, in order of discovery."""
    seen = dict.fromkeys(starts)
    stack = list(seen)
    while stack:
        for target in edges.get(stack.pop(), ()):
            if target not in seen:
                seen[target] = None
                stack.append(target)
    return seen


def components(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Strongly connected components of a graph over 0 … n-1 (Tarjan's algorithm without recursion).

    Args:
      successors: for every vertex the vertices that its edges lead to.

    Returns:
      The components, each after all components that can be reached from it.
    """
    count = len(successors)
    index, low, on_path = [-1] * count, [0] * count, bytearray(count)
    path: list[int] = []
    found: list[list[int]] = []
    counter = 0
    for start in range(count):
        if index[start] != -1:
            continue
        work = [(start, 0)]
        while work:
            vertex, edge = work.pop()
            if edge == 0:
                index[vertex] = low[vertex] = counter
                counter += 1
                path.append(vertex)
                on_path[vertex] = 1
            elif low[successors[vertex][edge - 1]] < low[vertex] and on_path[successors[vertex][edge - 1]]:
                low[vertex] = low[successors[vertex][edge - 1]]
            following = successors[vertex]
            while edge < len(following):
                target = following[edge]
                edge += 1
                if index[target] == -1:
                    work.append((vertex, edge))
                    work.append((target, 0))
                    break
                if on_path[target] and index[target] < low[vertex]:
                    low[vertex] = index[target]
            else:
                if low[vertex] == index[vertex]:
                    component: list[int] = []
                    while not component or component[-1] != vertex:
                        component.append(path.pop())
                        on_path[component[-1]] = 0
                    found.append(component)
    return found

"""References between the functions of a MetaGraph: calls, functions in attributes, gradients, choices of an implementation.

Functions may call themselves, and there may be a million of them: all walks are iterative and linear.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from reference_impl.errors import DuplicateKeyError
from reference_impl.format import schema
from reference_impl.format.names import CUSTOM_GRADIENT, IMPLEMENTS

# Ops that hand the function in an attribute their own inputs and give its results as their own outputs.
CALL_OPS = frozenset({"PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "TPUPartitionedCall"})


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


def check_functions(library: schema.FunctionDefLibrary, file: str) -> None:
    """Two functions of one name must be one function. Raises DuplicateKeyError: which one a reader takes is its own affair."""
    first: dict[str, schema.FunctionDef] = {}
    differ = [one.signature.name for one in library.function if first.setdefault(one.signature.name, one) != one]
    if differ:
        raise DuplicateKeyError("two functions of this name, which differ", file=file, node=min(differ))

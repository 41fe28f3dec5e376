"""Functions that capture one variable several times, made to take it once (A11).

The replicas of a distributed variable are one variable in the file. XLA refuses a function that gets it as two arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reference_impl.format import schema
from reference_impl.format.names import stem
from reference_impl.saving.functions import Library, references

CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_INPUT_SHAPES = "_input_shapes"


class SharedCaptures:
    """Replaces functions of a library by functions with fewer arguments."""

    def __init__(self, library: Library):
        self._library = library
        self._made: dict[tuple[str, tuple[tuple[int, int], ...]], str] = {}

    def take_once(self, names: dict[int, str], bound: dict[int, list[int]], numbers: Sequence[int]) -> None:
        """Change the functions of some nodes.

        Args:
          names, bound: number of a function's node -> its name; the nodes that its last arguments capture. Both are changed.
          numbers: of the nodes.
        """
        before = {}
        for number in numbers:
            first = len(self._library.definitions[names[number]].signature.input_arg) - len(bound[number])
            known: dict[int, int] = {}
            same = {}
            for index, owner in enumerate(bound[number]):
                if known.setdefault(owner, index) != index:
                    same[first + index] = first + known[owner]
            if same:
                before[names[number]] = None
                names[number] = self._with_fewer(names[number], same)
                bound[number] = list(known)
        self._remove_unused(before, names.values())

    def _with_fewer(self, name: str, same: Mapping[int, int]) -> str:
        """The name of a function without some arguments; `same` says which other argument has the value of each."""
        key = name, tuple(sorted(same.items()))
        if key not in self._made:
            out = schema.FunctionDef()
            out.CopyFrom(self._library.definitions[name])
            arguments = [argument.name for argument in out.signature.input_arg]
            renamed = {arguments[index]: arguments[other] for index, other in same.items()}
            for node in out.node_def:
                node.input[:] = [renamed.get(source, source) for source in node.input]
                if node.op in CALLS:
                    self._shorten_call(node, set(renamed.values()))
            for result, source in list(out.ret.items()):
                out.ret[result] = renamed.get(source, source)
            _remove_arguments(out, set(same))
            self._made[key] = self._library.write(out, stem(name))
        return self._made[key]

    def _shorten_call(self, node: Any, shared: set[str]) -> None:
        places: dict[str, int] = {}
        same = {}
        for index, source in enumerate(node.input):
            if source in shared and places.setdefault(source, index) != index:
                same[index] = places[source]
        if same:
            node.attr["f"].func.name = self._with_fewer(node.attr["f"].func.name, same)
            for index in sorted(same, reverse=True):
                del node.input[index]
                del node.attr["Tin"].list.type[index]

    def _remove_unused(self, names: Mapping[str, None], kept: Any) -> None:
        used = set(kept)
        for definition in self._library.definitions.values():
            used.update(reference for node in definition.node_def for reference in references(node))
        for name in names:
            if name not in used:
                del self._library.definitions[name]


def _remove_arguments(definition: Any, gone: set[int]) -> None:
    """Remove arguments and what is said of arguments by their index."""
    left = [index for index in range(len(definition.signature.input_arg)) if index not in gone]
    shapes = definition.attr[_INPUT_SHAPES].list.shape if _INPUT_SHAPES in definition.attr else ()
    for index in sorted(gone, reverse=True):
        del definition.signature.input_arg[index]
        if index < len(shapes):
            del shapes[index]
    described = {index: schema.FunctionDef.ArgAttrs() for index in left if index in definition.arg_attr}
    for index, copy in described.items():
        copy.CopyFrom(definition.arg_attr[index])
    unique = {index: definition.resource_arg_unique_id[index] for index in left if index in definition.resource_arg_unique_id}
    definition.ClearField("arg_attr")
    definition.ClearField("resource_arg_unique_id")
    for position, index in enumerate(left):
        if index in described:
            definition.arg_attr[position].CopyFrom(described[index])
        if index in unique:
            definition.resource_arg_unique_id[position] = unique[index]

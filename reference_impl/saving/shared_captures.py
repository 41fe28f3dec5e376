"""Let functions that capture one variable several times take it once.

The replicas of a distributed variable are one variable in the file. XLA refuses a function that gets it as two arguments.

RFC: A11
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reference_impl.format import schema
from reference_impl.format.names import CALLS, stem
from reference_impl.graph.function_builder import replace_tensors, select_arguments
from reference_impl.graph.references import named_by
from reference_impl.kinds.export_library import Library


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
        before: dict[Any, Any] = {}
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
        """Return the name of a function without some arguments. `same`: position of an argument -> the one that replaces it."""
        key = name, tuple(sorted(same.items()))
        if key not in self._made:
            out = schema.copy_of(self._library.definitions[name])
            arguments = [argument.name for argument in out.signature.input_arg]
            renamed = {arguments[index]: arguments[other] for index, other in same.items()}
            replace_tensors(out, lambda text: renamed.get(text, text))
            for node in out.node_def:
                if node.op in CALLS:
                    self._shorten_call(node, set(renamed.values()))
            select_arguments(out, [index for index in range(len(arguments)) if index not in same])
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
            used.update(name for node in definition.node_def for name in named_by(node))
        for name in names:
            if name not in used:
                del self._library.definitions[name]

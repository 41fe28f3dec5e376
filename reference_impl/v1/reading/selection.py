"""Load some signatures of a TF 1.x model and the state they need: ``only="signatures"`` or
``"signatures.predict"``.

A session restores everything with one op and initialises everything with another. For a part of the
model, only the nodes of these two ops that act on its variables and tables run, and no other
tensors are read.

RFC: DR-03
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Optional, Union

from reference_impl.errors import SavedModelError, UnknownPathError, nearest
from reference_impl.format import schema
from reference_impl.format.names import SIGNATURES_CHILD
from reference_impl.graph.closure import reachable, reversed_edges
from reference_impl.graph.edges import data_inputs, input_source, parse_input
from reference_impl.graph.function_builder import replace_tensors
from reference_impl.graph.node_defs import constant_strings, set_constant, string_tensor
from reference_impl.v1.reading.extract import Extracted
from reference_impl.v1.reading.program import Program


class Part:
    """The part of a program to load: the keys of signatures, and the names of their variables,
    resources and assets.

    Raises UnknownPathError for a path that does not name a signature; a TF 1.x model has no other
    objects.
    """

    def __init__(self, program: Program, only: Union[str, Collection[str]]):
        self._program = program
        self.keys = _keys(program, [only] if isinstance(only, str) else only)
        captured: dict[str, None] = {}
        for key in self.keys:
            with contextlib.suppress(
                SavedModelError
            ):  # it cannot be called; a call raises the reason
                captured.update(dict.fromkeys(program.saved_signature(key)[0].captures))
        self.state = frozenset(reachable(captured, Needs(program))) & program.hoisted

    @property
    def restore_function(self) -> Optional[Extracted]:
        """The nodes of the SaverDef's restore op that restore the state."""
        return part_of_restore(self._program, self.state)

    @property
    def init_function(self) -> Optional[Extracted]:
        """The nodes of the init op that act on the state."""
        return part_of_init(self._program, self.state)


class Needs:
    """The needs of the nodes of a program: the state that a node reads; for state, the nodes that
    make it and give it a value.
    """

    def __init__(self, program: Program):
        self._program = program
        self._acting_on = reversed_edges(
            [*program.acting(program.restore_function), *program.acting(program.init_function)]
        )

    def __call__(self, name: str) -> Iterator[str]:
        program = self._program
        if name in program.hoisted:
            yield from program.create_function(name).captures if name in program.resources else ()
            yield from self._acting_on.get(name, ())
            return
        node = program.graph.nodes.get(name)
        for tensor in map(parse_input, node.input) if node is not None else ():
            if not tensor.is_control or tensor.source not in program.hoisted:
                yield tensor.source


def fillers(program: Program) -> frozenset[str]:
    """Return the nodes of the init op, and the resources, that serve to make and fill resources and
    nothing else.
    """
    init, needs = program.init_function, Needs(program)
    names = [node.name for node in init.function.node_def] if init is not None else []
    for_resources = reachable(program.resources, needs)
    acting = [name for name, used in program.acting(init) if not used <= set(program.resources)]
    for_others = reachable([*acting, *(variable.name for variable in program.variables)], needs)
    return frozenset(
        name
        for name in (*names, *program.resources)
        if name in for_resources and name not in for_others
    )


def resources_needing(program: Program, bad: Collection[str]) -> dict[str, str]:
    """Return the resources that need a bad node to be made or filled, each with one such node."""
    needs = Needs(program)
    users = reversed_edges(
        (name, list(needs(name))) for name in reachable(program.resources, needs)
    )
    seen: dict[str, None] = {}
    found: dict[str, str] = {}
    for node in bad:
        before = len(seen)
        reachable([node], users, seen)
        found.update(
            (name, node)
            for name in itertools.islice(seen, before, None)
            if name in program.resources
        )
    return found


def needed_by(program: Program, key: str) -> frozenset[str]:
    """Return the nodes that make the state of a signature and give it its value.

    Raises SavedModelError.
    """
    return frozenset(reachable(program.saved_signature(key)[0].captures, Needs(program)))


def part_of_init(program: Program, state: Collection[str]) -> Optional[Extracted]:
    """Return the part of the init op that acts on some of the state, or None if nothing does."""
    targets = _users(program, program.init_function, state)
    return program.function("init", [], {}, targets) if targets else None


def part_of_restore(program: Program, state: Collection[str]) -> Optional[Extracted]:
    """Return the part of the SaverDef's restore op that restores some of the state, or None if none
    of it is restored.
    """
    targets = _users(program, program.restore_function, state)
    if not targets:
        return None
    extracted = program.restoring(targets)
    read_only_what_is_used(extracted.function)
    return extracted


def _users(program: Program, extracted: Optional[Extracted], state: Collection[str]) -> list[str]:
    """Return the nodes of a function that act on the state."""
    return [name for name, used in program.acting(extracted) if not used.isdisjoint(state)]


def _keys(program: Program, only: Collection[str]) -> list[str]:
    known = {f"{SIGNATURES_CHILD}.{key}": key for key in program.signatures}
    keys: dict[str, None] = {}
    for path in only:
        if path == SIGNATURES_CHILD:
            keys.update(dict.fromkeys(program.signatures))
        elif path in known:
            keys[known[path]] = None
        else:
            near = nearest(path, known, cutoff=0.3) or sorted(known)
            reason = (
                f"only={path!r}: a TF 1.x model has nothing but signatures; the nearest are"
                f" {', '.join(near) or '(none)'}"
            )
            raise UnknownPathError(reason, file=program.file, node=path)
    return sorted(keys)


def read_only_what_is_used(function: schema.FunctionDef) -> None:
    """Change the RestoreV2 nodes of a FunctionDef to read only tensors that the function uses."""
    used: dict[str, set[int]] = {}
    texts = itertools.chain.from_iterable(map(data_inputs, function.node_def))
    for text in [*texts, *function.ret.values()]:
        tensor = parse_input(text, in_function=True)
        used.setdefault(tensor.source, set()).add(int(tensor.port.rpartition(":")[2]))
    nodes = {node.name: node for node in function.node_def}
    renumbered: dict[str, str] = {}
    for node in [node for node in nodes.values() if node.op == "RestoreV2"]:
        kept = sorted(used.get(node.name, ()))
        lists = [
            constant_strings(nodes.get(input_source(text, in_function=True)))
            for text in node.input[1:3]
        ]
        number = len(node.attr["dtypes"].list.type)
        if len(kept) == number or any(
            strings is None or len(strings) != number for strings in lists
        ):
            continue
        _read_only(function, node, lists, kept)
        renumbered.update(
            (f"{node.name}:tensors:{old}", f"{node.name}:tensors:{new}")
            for new, old in enumerate(kept)
        )
    replace_tensors(function, lambda text: renumbered.get(text, text))


def _read_only(
    function: schema.FunctionDef, node: schema.NodeDef, lists: Sequence[Any], kept: Sequence[int]
) -> None:
    """Let a RestoreV2 read some of its tensors.

    `lists` are the keys and the slices of all of them.
    """
    for position, strings in enumerate(lists, 1):
        copy = function.node_def.add(name=f"{node.name}_only_{position}", op="Const")
        set_constant(copy, string_tensor([strings[index] for index in kept]))
        node.input[position] = f"{copy.name}:output:0"
    types = list(node.attr["dtypes"].list.type)
    node.attr["dtypes"].list.type[:] = [types[index] for index in kept]
    node.attr.pop("_output_shapes", None)

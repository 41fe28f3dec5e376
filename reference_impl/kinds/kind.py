"""The interface of a kind of SavedObject: the steps of a load and of a save that depend on it.

A load calls, for each node of the kind:

    made_of       which nodes must be made first
    read          make the object, without its children
    attach        give it its children
    restore       give it its state, once every function has its captures
    initialize    run its initialiser

A save calls, for each object of the kind:

    matches       is this object of the kind?
    state         the state that only the checkpoint holds
    write         write its SavedObject

The file of a kind is the whole answer to "how is a table saved?". To add a kind, write its file and
add one line to `reference_impl.kinds.registry`. A program adds kinds of its own with
`reference_impl.ObjectKind`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import tensorflow as tf

from reference_impl.format import schema
from reference_impl.functions.load_context import LoadContext
from reference_impl.graph.node_kinds import NodeKind


class SavedNode(Protocol):
    """An object of an export: its number, the object, its Python path, its kind, children by name.

    The parts of a variable are the plain variables behind it, one for each replica.
    """

    @property
    def number(self) -> int: ...

    @property
    def object(self) -> Any: ...

    @property
    def path(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def parts(self) -> Sequence[Any]: ...

    @property
    def children(self) -> Mapping[str, int]: ...

    @property
    def dependencies(self) -> Mapping[str, int]: ...


class Export(Protocol):
    """The names of an export, for the writers of kinds."""

    @property
    def devices(self) -> bool:
        """Whether the devices of variables are saved."""

    @property
    def expand(self) -> bool:
        """Whether every replica of a distributed variable is saved."""

    def function_name(self, number: int) -> str:
        """Return the name of the FunctionDef of a concrete function's node."""

    def write_trace(self, number: int, out: schema.SavedBareConcreteFunction) -> None:
        """Write the calling convention of a concrete function's node."""

    def asset_index(self, number: int) -> int:
        """Return the position of an asset in the asset_file_def of the MetaGraph."""

    def constant_operation(self, number: int) -> str:
        """Return the name of a constant's Const node in the main graph."""


class Kind:
    """One kind of SavedObject. The methods that a kind does not need do nothing."""

    message: NodeKind

    # Load

    def made_of(self, node: schema.SavedObject) -> Iterable[int]:
        """Return the numbers of the nodes that must be made before a node."""
        return ()

    def read(self, load: LoadContext, number: int, node: schema.SavedObject) -> Any:
        """Make the object of a node, without its children."""
        raise NotImplementedError

    def attach(self, load: LoadContext, number: int, node: schema.SavedObject) -> None:
        """Give an object its children, after all objects are made."""

    def restore(self, load: LoadContext, number: int, node: schema.SavedObject) -> None:
        """Give an object its state from the checkpoint. Its functions can be called."""

    def initialize(self, load: LoadContext, number: int, node: schema.SavedObject) -> None:
        """Run the initialiser of an object, after every object has its state."""

    # Save

    def matches(self, obj: object) -> bool:
        """Return whether a live object is of this kind."""
        raise NotImplementedError

    def state(self, obj: Any) -> Mapping[str, tf.Tensor]:
        """Return the state that only the checkpoint holds: attribute -> value."""
        return {}

    def write(self, export: Export, node: SavedNode, out: schema.SavedObject) -> None:
        """Write an object into its SavedObject, without its children."""
        raise NotImplementedError


def write_dependencies(out: schema.SavedObject, needed: Mapping[str, int]) -> None:
    """Write the nodes that a loader must make before this one."""
    for name, number in needed.items():
        out.dependencies.add(node_id=number, local_name=name)

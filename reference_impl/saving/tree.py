"""The tree of an export: its objects, each with a number and its Python path.

Objects are numbered breadth first. The tree grows until it is frozen; after that no object can
join.

RFC: RP-01, RP-02
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.drop_in import hidden_children
from reference_impl.errors import SaveError
from reference_impl.extension import registered_objects
from reference_impl.format.names import SIGNATURES_CHILD
from reference_impl.functions.names import ExportName
from reference_impl.graph.order import circles
from reference_impl.kinds.function import LoadedFunction
from reference_impl.kinds.kind import Kind
from reference_impl.kinds.registry import Registry
from reference_impl.kinds.signature_map import SignatureMap
from reference_impl.saving.checks import authorship
from reference_impl.saving.reach import Reached, step


@dataclass(frozen=True)
class Node:
    """An object of the export: its number in the SavedObjectGraph, and its Python path for
    messages.
    """

    number: int
    object: Any  # a trackable, a concrete function, or a captured tensor
    path: str
    kind: Kind
    children: dict[str, int] = field(default_factory=dict)
    dependencies: dict[str, int] = field(
        default_factory=dict
    )  # objects that a loader needs to make this one
    # whether a library, not the user, made it while the children of its parent were listed
    of_library: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """The objects of an export: its nodes by number, and the numbers by the identity of objects."""

    reached: Reached
    nodes: Sequence[Node]
    numbers: Mapping[int, int]

    @property
    def root(self) -> Any:
        return self.reached.root

    def lose(self, error: SaveError, what: str = "") -> None:
        """Report a loss; see `Reached.lose`."""
        self.reached.lose(error, what)

    def number_of(self, obj: object) -> Optional[int]:
        """Return the number of an object, or None if it is not in the tree."""
        return self.numbers.get(_identity(obj))

    def number(self, obj: object) -> int:
        """Return the number of an object of the tree."""
        return self.numbers[_identity(obj)]

    def concrete(self, number: int) -> int:
        """Return the number of the only concrete function of a function's node."""
        node = self.nodes[number]
        return node.children["trace_0"] if isinstance(node.object, api.Function) else number

    def of_resources(self, child: str) -> list[tuple[Node, int]]:
        """Return the resources that have a function under the name `child`, and the number of the
        concrete function.
        """
        resources = [
            node
            for node in self.nodes
            if isinstance(node.object, api.CapturableResource) and child in node.children
        ]
        return [(node, self.concrete(node.children[child])) for node in resources]

    def paths(self, names: Mapping[int, ExportName]) -> dict[ExportName, str]:
        """Return name of a function -> path of its first node.

        `names` has the names by the number of the node.
        """
        return {name: self.nodes[number].path for number, name in reversed(list(names.items()))}


class GrowingTree(Tree):
    """The tree of an export while objects are added.

    The signatures become the root's child of that name.
    """

    nodes: list[Node]
    numbers: dict[int, int]

    def __init__(
        self, reached: Reached, signatures: Mapping[str, Any], kinds: Optional[Registry] = None
    ):
        super().__init__(reached, [], {})
        self._kinds = Registry() if kinds is None else kinds
        self._is_frozen = False
        signature_map = SignatureMap(signatures)
        self.add(self.root, "root")
        for node in self.nodes:  # grows
            for name, child in self.reached.children(node.object, node.path).items():
                of_library = authorship.is_of_library(node.object, name, node.of_library)
                node.children[name] = self.add(
                    child, step(node.path, node.object, name), of_library
                )
            # A list or dict can only have its elements as children: TensorFlow reads any other
            # child as an element and fails (FMT-11).
            if node.number == 0 and (
                signature_map or not isinstance(node.object, (list, tuple, dict))
            ):
                node.children[SIGNATURES_CHILD] = self.add(signature_map, "root.signatures")
        for node in self.nodes:
            node.dependencies.update(self._dependencies(node))
        self._check_order()

    def _check_order(self) -> None:
        """Raise SaveError if objects depend on each other in a cycle, so that a loader could not
        make any of them (RP-02).
        """
        for numbers in circles(
            {node.number: node.dependencies.values() for node in self.nodes if node.dependencies}
        ):
            paths = [self.nodes[number].path for number in numbers]
            reason = (
                "there is a dependency cycle in the saved Trackable objects, which are made of each"
                " other"
            )
            raise SaveError(f"{reason}: {', '.join(paths)}", node=paths[0], clause="RP-02")

    def _dependencies(self, node: Node) -> dict[str, int]:
        """Return the declared dependencies of an object (RP-02).

        Raises SaveError if one is not part of the export.
        """
        obj = node.object
        functions = (api.Function, api.ConcreteFunction, LoadedFunction)
        if not isinstance(obj, api.Trackable) or isinstance(obj, functions) or api.is_variable(obj):
            return {}
        kept = registered_objects.kept(obj)
        if kept is not None:  # its class, which has the hook, is unknown here
            held = {**vars(obj), **hidden_children.of(obj)}
            named = {
                item.local_name: self.number_of(held.get(item.local_name))
                for item in kept[0].dependencies
            }
            return {name: number for name, number in named.items() if number is not None}
        found = {}
        for name, needed in api.needed_before(
            obj, dict(self.reached.children(obj, node.path))
        ).items():
            number = self.number_of(needed)
            if number is None:
                reason = (
                    "Found an untracked dependency: its _deserialization_dependencies names"
                    f" {name!r}, a "
                )
                reason += (
                    f"{type(needed).__name__} that is not reachable from root; return objects that"
                    " are attributes of it"
                )
                raise SaveError(reason, node=node.path, clause="RP-02")
            found[name] = number
        return found

    def add(self, obj: object, path: str, of_library: bool = False) -> int:
        """Return the number of an object. An object without a number joins the tree.

        Raises:
          SaveError: the object is a reference variable of TF 1.x, or a variable made of shards.
          RuntimeError: the tree is frozen, and the object is not in it.
        """
        _check_variable(obj, path)
        found = self.number_of(obj)
        if found is None:
            if self._is_frozen:
                raise RuntimeError(f"{path}: no object can join an export after it was frozen")
            found = self.numbers[_identity(obj)] = len(self.nodes)
            self.nodes.append(
                Node(found, obj, path, self._kinds.of_object(obj), of_library=of_library)
            )
        return found

    def freeze(self) -> Tree:
        """Return the tree in its current state. Afterwards `add` raises an error."""
        self._is_frozen = True
        proxy = MappingProxyType
        nodes = [
            replace(
                node,
                children=proxy(node.children),  # type: ignore[arg-type]
                dependencies=proxy(node.dependencies),  # type: ignore[arg-type]
            )
            for node in self.nodes
        ]
        return Tree(self.reached, tuple(nodes), proxy(self.numbers))


def _identity(obj: object) -> int:
    """Return the identity of an object: the handle of a variable (GOAL-09) under any wrappers,
    otherwise the object itself.

    Reference variables, which `_check_variable` refuses, have no handle.
    """
    if not api.is_variable(obj):
        return id(obj)
    component = api.variable_components(obj)[0]
    return id(getattr(component, "handle", component))


def _check_variable(obj: object, path: str) -> None:
    if isinstance(obj, tf.Variable) and not hasattr(api.variable_components(obj)[0], "handle"):
        reason = (
            f"{obj.name!r} is a reference variable, which functions cannot use and TF 2 does not"
            " load. Make it a resource "
        )
        reason += (
            "variable: tf.compat.v1.enable_resource_variables() before it is made, or"
            " use_resource=True"
        )
        raise SaveError(reason, node=path, clause="COMPAT-01")
    if isinstance(obj, api.ShardedVariable):
        # Functions were traced over the shards; only running their code again would make them use
        # one variable (FN-10).
        reason = (
            f"a variable of {len(obj.variables)} shards: save a copy of the model whose variables"
            " are whole, "
        )
        reason += (
            "`root.name = tf.Variable(tf.convert_to_tensor(sharded))`, and whose functions are"
            " traced over these"
        )
        raise SaveError(reason, node=path, clause="DIST-02")

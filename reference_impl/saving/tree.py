"""The tree of an export: its objects, each with a number and its Python path.

Objects are numbered breadth first. A `Tree` does not change. A `TreeBuilder` takes the objects of a
tree and more objects, and returns another tree.

RFC: RP-01, RP-02
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format.names import SIGNATURES_CHILD
from reference_impl.functions.names import ExportName
from reference_impl.graph.order import circles
from reference_impl.kinds.function import LoadedFunction
from reference_impl.kinds.registry import LiveObject, Registry
from reference_impl.kinds.signature_map import SignatureMap
from reference_impl.saving.children import step
from reference_impl.saving.hooks import SaveHook, hooks_of
from reference_impl.saving.losses import report_loss
from reference_impl.saving.node import Node
from reference_impl.saving.walk import ObjectGraphWalk


class FoundObject(NamedTuple):
    """An object on its way into a tree, with the fields of its `Node`."""

    object: Any
    path: str
    of_library: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """The objects of an export: its nodes by number, and the numbers by the identity of objects.

    A variable is also known by the identity of its handle (GOAL-09), since it may have several
    wrappers.

    Attributes:
      hooks: the participants of the save beside the kinds.
    """

    walk: ObjectGraphWalk
    kinds: Registry
    nodes: Sequence[Node]
    numbers: Mapping[int, int]
    hooks: Sequence[SaveHook] = ()

    @property
    def root(self) -> Any:
        return self.walk.root

    def report_loss(self, error: SaveError, what: str = "") -> None:
        """Report a loss; see `reference_impl.saving.losses`."""
        report_loss(error, what, self.walk.strict)

    def number_of(self, obj: object) -> Optional[int]:
        """Return the number of an object, or None if it is not in the tree."""
        found = self.numbers.get(id(obj))
        return found if found is not None else self._number_of_handle(api.variable_parts(obj))

    def _number_of_handle(self, parts: Sequence[Any]) -> Optional[int]:
        return self.numbers.get(id(getattr(parts[0], "handle", parts[0]))) if parts else None

    def number(self, obj: object) -> int:
        """Return the number of an object of the tree."""
        found = self.number_of(obj)
        if found is None:
            raise KeyError(f"not in the tree: {obj!r}")
        return found

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


def number_objects(walk: ObjectGraphWalk, signatures: Mapping[str, Any], kinds: Registry) -> Tree:
    """Return the tree of a walk. The signatures become the root's child of that name.

    Raises:
      SaveError: an object is a reference variable of TF 1.x, or a variable made of shards; or
        objects depend on an object that is not in the export, or on each other in a cycle.
    """
    builder = TreeBuilder(Tree(walk, kinds, (), {}))
    signature_map = SignatureMap(signatures)
    builder.add(walk.root, "root", walk.of_library(walk.root))
    for node in builder.nodes:  # grows
        children = signatures if node.object is signature_map else walk.children(node.object)
        found = [
            FoundObject(child, step(node.path, node.object, name), walk.of_library(child))
            for name, child in children.items()
        ]
        node.children.update(zip(children, builder.add_all(found)))
        # A list or dict can only have its elements as children: TensorFlow reads any other
        # child as an element and fails (FMT-11).
        if node.number == 0 and (signatures or not isinstance(node.object, (list, tuple, dict))):
            node.children[SIGNATURES_CHILD] = builder.add(signature_map, "root.signatures")
    hooks = hooks_of(builder.nodes)
    builder.add_dependencies(hooks)
    return replace(builder.close(), hooks=hooks)


class TreeBuilder(Tree):
    """The objects of another tree, to which objects can be added."""

    nodes: list[Node]
    numbers: dict[int, int]

    def __init__(self, tree: Tree):
        nodes = [
            replace(node, children=dict(node.children), dependencies=dict(node.dependencies))
            for node in tree.nodes
        ]
        super().__init__(tree.walk, tree.kinds, nodes, dict(tree.numbers), tree.hooks)
        self._is_closed = False

    def add_dependencies(self, hooks: Sequence[SaveHook]) -> None:
        """Record the declared dependencies of all objects (RP-02).

        Raises SaveError if one is not part of the export, or objects depend on each other in a
        cycle.
        """
        for node in self.nodes:
            node.dependencies.update(self._dependencies(node, hooks))
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

    def _dependencies(self, node: Node, hooks: Sequence[SaveHook]) -> dict[str, int]:
        """Return the declared dependencies of an object (RP-02).

        Raises SaveError if one is not part of the export.
        """
        obj = node.object
        functions = (api.Function, api.ConcreteFunction, LoadedFunction, SignatureMap)
        if not isinstance(obj, api.Trackable) or isinstance(obj, functions) or node.is_variable:
            return {}
        for hook in hooks:
            needed = hook.dependencies(obj)
            if needed is not None:
                numbers = {name: self.number_of(other) for name, other in needed.items()}
                return {name: number for name, number in numbers.items() if number is not None}
        found = {}
        for name, needed in api.needed_before(obj, dict(self.walk.children(obj))).items():
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

        Raises the errors of `add_all`.
        """
        return self.add_all([FoundObject(obj, path, of_library)])[0]

    def add_all(self, objects: Sequence[FoundObject]) -> list[int]:
        """Return the numbers of objects. Objects without a number join the tree in this order.

        Raises:
          SaveError: an object is a reference variable of TF 1.x, or a variable made of shards.
          RuntimeError: the tree is closed, and an object is not in it.
        """
        new = [found.object for found in objects if id(found.object) not in self.numbers]
        live = dict(zip(map(id, new), self.kinds.of_objects(new))) if new else {}
        return [self._add(found, live) for found in objects]

    def _add(self, found: FoundObject, live: Mapping[int, LiveObject]) -> int:
        """Return the number of an object. `live` has the new objects by identity."""
        obj, path, of_library = found
        number = self.numbers.get(id(obj))
        if number is not None:
            return number
        kind, parts = live[id(obj)]
        _check_variable(obj, parts, path)
        number = self._number_of_handle(parts)
        if number is not None:
            return number
        if self._is_closed:
            raise RuntimeError(f"{path}: no object can join a tree after it was closed")
        number = len(self.nodes)
        self.nodes.append(Node(number, obj, path, kind, of_library=of_library, parts=parts))
        self.numbers[id(obj)] = number
        if parts:
            self.numbers[id(getattr(parts[0], "handle", parts[0]))] = number
        return number

    def close(self) -> Tree:
        """Return the tree of all objects. Afterwards `add` raises an error."""
        self._is_closed = True
        proxy = MappingProxyType
        nodes = [
            replace(
                node,
                children=proxy(node.children),  # type: ignore[arg-type]
                dependencies=proxy(node.dependencies),  # type: ignore[arg-type]
            )
            for node in self.nodes
        ]
        return Tree(self.walk, self.kinds, tuple(nodes), proxy(self.numbers), self.hooks)


def _check_variable(obj: object, parts: Sequence[Any], path: str) -> None:
    if isinstance(obj, tf.Variable) and not hasattr(parts[0], "handle"):
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

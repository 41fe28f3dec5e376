"""Object graphs: edges renamed and cut, nodes dropped, the others renumbered.

A model has its objects twice, for `tf.saved_model.load` in the MetaGraph and for
`tf.train.Checkpoint` in the checkpoint (there under other numbers), and speaks of the first ones'
numbers in Keras' metadata and in this project's extension.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional

from reference_impl.errors import MalformedError
from reference_impl.format import schema
from reference_impl.format.names import SIGNATURES, SIGNATURES_CHILD
from reference_impl.graph.closure import reachable
from reference_impl.graph.object_graph import Paths, paired_nodes
from reference_impl.graph.object_references import references, traces


class Objects:
    """The object graph of one MetaGraph, which the methods change, that of the checkpoint if there
    is one, and our extension.
    """

    def __init__(
        self,
        saved: schema.SavedObjectGraph,
        tracked: Optional[schema.TrackableObjectGraph],
        extension: Optional[schema.Extension] = None,
    ) -> None:
        self.saved, self.tracked, self.extension = saved, tracked, extension
        self.paths = Paths(saved.nodes)
        self.counterpart = paired_nodes(saved, tracked) if tracked is not None else {}
        self.parents: dict[int, set[tuple[int, str]]] = {}
        self.dependants: dict[int, set[int]] = {}
        for number, node in enumerate(saved.nodes):
            for child in node.children:
                self.parents.setdefault(child.node_id, set()).add((number, child.local_name))
            for child in node.dependencies:
                self.dependants.setdefault(child.node_id, set()).add(number)
        self._unreachable = set(range(len(saved.nodes))) - self.reachable()
        self._untracked = (
            set()
            if tracked is None
            else set(range(len(tracked.nodes))) - _tracked_reach(tracked, set())
        )

    def signature_map(self) -> Optional[int]:
        """The node that holds the signatures; None where there is none."""
        for child in self.saved.nodes[0].children if self.saved.nodes else ():
            node = (
                self.saved.nodes[child.node_id]
                if 0 <= child.node_id < len(self.saved.nodes)
                else None
            )
            if (
                child.local_name == SIGNATURES_CHILD
                and node is not None
                and node.user_object.identifier == SIGNATURES
            ):
                return int(child.node_id)
        return None

    def child(self, parent: int, name: str) -> Optional[int]:
        """The node at the end of an edge."""
        found = [
            child.node_id for child in self.saved.nodes[parent].children if child.local_name == name
        ]
        return found[0] if found else None

    def _both(self, parent: int) -> Iterator[Any]:
        """The lists of children of a node, in either graph."""
        yield self.saved.nodes[parent].children
        if self.tracked is not None and parent in self.counterpart:
            yield self.tracked.nodes[self.counterpart[parent]].children

    def rename(self, parent: int, old: str, new: str) -> None:
        """Give an edge another name."""
        for children in self._both(parent):
            for child in children:
                if child.local_name == old:
                    child.local_name = new

    def add(self, parent: int, name: str, like: str) -> None:
        """Another edge to the node that the edge `like` leads to."""
        for children in self._both(parent):
            for child in [child for child in children if child.local_name == like]:
                children.add(node_id=child.node_id, local_name=name)

    def shared(self, parent: int, name: str) -> bool:
        """Whether anything but one edge leads to the node at its end."""
        target = self.child(parent, name)
        links = 0
        for node in self.saved.nodes:
            links += sum(child.node_id == target for child in node.children)
            links += sum(dependency.node_id == target for dependency in node.dependencies)
        return links > 1

    def copy(self, parent: int, name: str) -> int:
        """Make the end of an edge a node of its own, like the one that was there; its number."""
        graphs: list[Any] = [
            self.saved.nodes,
            *([] if self.tracked is None else [self.tracked.nodes]),
        ]
        for nodes, children in zip(graphs, self._both(parent)):
            for child in [child for child in children if child.local_name == name]:
                twin = nodes.add()
                twin.CopyFrom(nodes[child.node_id])
                child.node_id = len(nodes) - 1
        number = self.child(parent, name)
        assert number is not None
        return number

    def cut(self, parent: int, name: str) -> None:
        """Remove an edge, and the part of the checkpoint's graph that belongs to it."""
        for children in self._both(parent):
            keep_only(children, lambda child: child.local_name != name)
        keep_only(self.saved.nodes[parent].dependencies, lambda child: child.local_name != name)

    def cut_node(self, number: int) -> None:
        """Remove all edges to a node."""
        for parent, name in self.parents.get(number, ()):
            self.cut(parent, name)
        for other in self.dependants.get(number, ()):
            keep_only(self.saved.nodes[other].dependencies, lambda item: item.node_id != number)

    def resource_functions(self) -> set[int]:
        """Nodes of the functions that make, fill, save or restore resources: these are needed
        wherever the resource is.
        """
        found: set[int] = set()
        for node in self.saved.nodes:
            for pair in node.saveable_objects.values():
                found.update((pair.save_function, pair.restore_function))
            if node.HasField("resource"):
                found.update(child.node_id for child in node.children)
        below = itertools.chain.from_iterable(self.saved.nodes[number].children for number in found)
        return found | {child.node_id for child in below}

    def cut_slots(self, owner: int) -> None:
        """Take the slot variables of an optimizer away."""
        self.saved.nodes[owner].ClearField("slot_variables")
        if self.tracked is not None and owner in self.counterpart:
            self.tracked.nodes[self.counterpart[owner]].ClearField("slot_variables")

    def functions_of(self, number: int) -> list[str]:
        """The concrete functions that a node is."""
        return functions_in(self.saved.nodes[number])

    def reachable(self) -> set[int]:
        """All nodes that the root needs: children, what must be made before, functions' captures,
        slots.
        """
        return self._from({0} if self.saved.nodes else set())

    def _from(self, starts: set[int]) -> set[int]:
        live = reach(self.saved, self.functions_of, starts)
        while more := set(extension_numbers(self.extension, live)) - live:
            live = reach(self.saved, self.functions_of, live | more)
        return live

    def collect(self, everything: bool = False) -> tuple[dict[int, int], set[str]]:
        """Drop unreachable nodes in both graphs, and renumber the others.

        With ``everything`` also what nothing led to before.

        Return old number -> new one, and the checkpoint keys that no object has any more.
        """
        keep = sorted(
            self._from({0} | (set() if everything else self._unreachable))
            if self.saved.nodes
            else ()
        )
        new = {old: position for position, old in enumerate(keep)}
        keys = self._collect_tracked(everything)
        if len(keep) < len(self.saved.nodes):
            _renumber_saved(self.saved, keep, new)
            if self.extension is not None:
                _renumber_extension(self.extension, new)
        return new, keys

    def _collect_tracked(self, everything: bool) -> set[str]:
        graph = self.tracked
        if graph is None:
            return set()
        live = _tracked_reach(graph, set() if everything else self._untracked)
        if len(live) == len(graph.nodes):
            return set()
        dropped = [node for number, node in enumerate(graph.nodes) if number not in live]
        keep = sorted(live)
        new = {old: position for position, old in enumerate(keep)}
        nodes = [graph.nodes[number] for number in keep]
        keys = _checkpoint_keys(dropped) - _checkpoint_keys(nodes)
        copy = type(graph)()
        for node in nodes:
            kept = copy.nodes.add()
            kept.CopyFrom(node)
            for child in kept.children:
                child.node_id = new[child.node_id]
            _renumber_slots(kept, new)
        graph.CopyFrom(copy)
        return keys


def keep_only(repeated: Any, wanted: Callable[[Any], bool]) -> None:
    """Keep some of a list of messages."""
    for position in reversed(range(len(repeated))):
        if not wanted(repeated[position]):
            del repeated[position]


def functions_in(node: schema.SavedObject) -> list[str]:
    """Return the names of the functions that an object is, or whose tensor it is."""
    return [name for name in (*traces(node), node.captured_tensor.concrete_function) if name]


def reach(
    graph: schema.SavedObjectGraph, functions_of: Callable[[int], list[str]], starts: set[int]
) -> set[int]:
    """All nodes that some nodes need, these included."""

    def needs(number: int) -> list[int]:
        found = [*references(graph.nodes[number]), *_captures(graph, functions_of(number))]
        return [other for other in found if 0 <= other < len(graph.nodes)]

    return set(reachable(starts, needs))


def _captures(graph: schema.SavedObjectGraph, names: list[str]) -> list[int]:
    found: list[int] = []
    for name in names:
        if name in graph.concrete_functions:
            found += graph.concrete_functions[name].bound_inputs
    return found


def _tracked_reach(graph: schema.TrackableObjectGraph, more: set[int]) -> set[int]:
    def following(number: int) -> list[int]:
        return [
            other
            for other in children_and_slots(graph.nodes[number])
            if 0 <= other < len(graph.nodes)
        ]

    return set(reachable({0, *more}, following)) if graph.nodes else set()


def children_and_slots(node: Any) -> list[int]:
    """Return the numbers of the children and slot variables of a SavedObject or TrackableObject."""
    return [
        *(child.node_id for child in node.children),
        *(slot.slot_variable_node_id for slot in node.slot_variables),
    ]


def _renumber_saved(graph: schema.SavedObjectGraph, keep: list[int], new: dict[int, int]) -> None:
    copy = type(graph)()
    named, unnamed = set[str](), set[str]()
    for number, item in enumerate(graph.nodes):
        (named if number in new else unnamed).update(functions_in(item))
    for old in keep:
        node = copy.nodes.add()
        node.CopyFrom(graph.nodes[old])
        for child in (*node.children, *node.dependencies):
            child.node_id = new[child.node_id]
        _renumber_slots(node, new)
        for pair in node.saveable_objects.values():
            pair.save_function, pair.restore_function = (
                new[pair.save_function],
                new[pair.restore_function],
            )
    for name, function in graph.concrete_functions.items():
        # One that no object is any more, but others call, needs no captures of its own: its callers
        # hand them over.
        if (name in named or name not in unnamed) and all(
            number in new for number in function.bound_inputs
        ):
            entry = copy.concrete_functions[name]
            entry.CopyFrom(function)
            entry.bound_inputs[:] = [new[number] for number in function.bound_inputs]
    graph.CopyFrom(copy)


def _renumber_slots(node: Any, new: dict[int, int]) -> None:
    """Renumber the slot variables of a SavedObject or TrackableObject; those of nodes that are gone
    go too.
    """
    keep_only(
        node.slot_variables,
        lambda slot: slot.original_variable_node_id in new and slot.slot_variable_node_id in new,
    )
    for slot in node.slot_variables:
        slot.original_variable_node_id = new[slot.original_variable_node_id]
        slot.slot_variable_node_id = new[slot.slot_variable_node_id]


def _renumber_extension(extension: schema.Extension, new: dict[int, int]) -> None:
    for items in (extension.registered, extension.initial_values, extension.optimizers):
        keep_only(items, lambda item: item.node_id in new)
        for item in items:
            item.node_id = new[item.node_id]
    given = list(itertools.chain.from_iterable(item.inputs for item in extension.initial_values))
    for optimizer in extension.optimizers:
        given += itertools.chain.from_iterable(update.inputs for update in optimizer.updates)
        optimizer.shared[:] = [new[number] for number in optimizer.shared]
        for slot in optimizer.slots:
            slot.variable, slot.value = new[slot.variable], new[slot.value]
    for one in given:
        if one.WhichOneof("kind") == "node_id":
            one.node_id = new[one.node_id]


def check(
    saved: schema.SavedObjectGraph, tracked: Optional[schema.TrackableObjectGraph], file: str
) -> None:
    """Every number must be that of a node.

    Raises MalformedError: such a graph cannot be renumbered.
    """
    count = len(saved.nodes)
    for number, node in enumerate(saved.nodes):
        _in_range(references(node), count, file, f"object_graph_def.nodes[{number}]")
    for name, function in saved.concrete_functions.items():
        _in_range(function.bound_inputs, count, file, name)
    for number, found in enumerate(tracked.nodes if tracked is not None else ()):
        numbers = [child.node_id for child in found.children]
        for slot in found.slot_variables:
            numbers += [slot.original_variable_node_id, slot.slot_variable_node_id]
        where = f"the checkpoint's object graph, node {number}"
        _in_range(numbers, len(tracked.nodes) if tracked else 0, file, where)


def _in_range(numbers: Iterable[int], count: int, file: str, node: str) -> None:
    for number in numbers:
        if not 0 <= number < count:
            raise MalformedError(f"refers to object {number} of {count}", file=file, node=node)


def extension_numbers(extension: Optional[schema.Extension], live: set[int]) -> Iterator[int]:
    """Nodes that the extension needs for the sake of live ones."""
    if extension is None:
        return
    for item in extension.initial_values:
        if item.node_id in live:
            yield from (one.node_id for one in item.inputs if one.WhichOneof("kind") == "node_id")
    for optimizer in extension.optimizers:
        if optimizer.node_id in live:
            yield from optimizer.shared
            for slot in optimizer.slots:
                yield slot.variable
                yield slot.value
            for update in optimizer.updates:
                yield from (
                    one.node_id for one in update.inputs if one.WhichOneof("kind") == "node_id"
                )


def _checkpoint_keys(nodes: Iterable[schema.TrackableObjectGraph.TrackableObject]) -> set[str]:
    attributes = itertools.chain.from_iterable(node.attributes for node in nodes)
    return {item.checkpoint_key for item in attributes}

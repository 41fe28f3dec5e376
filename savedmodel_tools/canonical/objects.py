"""The object graph without node numbers: every object is identified by its path (RP-01).

A path is the shortest from the root; of several equally short paths, the first in the order of
names. Objects without a path (slot variables, captured constants of older files, functions that
save and restore tables) get a label from the first reference to them. Names of functions are
replaced by hashes of what the functions do.
"""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.graph.object_references import traces
from savedmodel_tools.canonical.functions import Functions
from savedmodel_tools.canonical.graph import digest

Fields = dict[str, str]

_SHOWN_DEPTH = 32
_SHOWN_LABEL = 1000  # characters


class Labels:
    """A label for every node of an object graph that does not depend on how the nodes are numbered.

    ``nodes`` have ``children``. ``references`` gives further links from a node, as (label, node
    id), in an order that does not depend on numbers. They are followed after all children.
    """

    def __init__(self, nodes: Sequence[Any], references: Any):
        self._nodes = nodes
        self._labels: list[Optional[str]] = [None] * len(nodes)
        self._parents: list[tuple[int, str]] = [(-1, "")] * len(nodes)
        self.order: list[int] = []
        if nodes:
            self._walk(0, "(root)")
        position = 0
        while position < len(self.order):  # grows during the walk
            number = self.order[position]
            position += 1
            for name, target in references(number):
                if 0 <= target < len(nodes) and self._labels[target] is None:
                    owner = self._labels[number] or ""
                    self._walk(
                        target, f"{owner if len(owner) < _SHOWN_LABEL else f'…#{position}'}<{name}>"
                    )

    def _walk(self, start: int, label: str) -> None:
        self._labels[start] = label
        queue = deque([start])
        while queue:
            number = queue.popleft()
            self.order.append(number)
            children = [(child.local_name, child.node_id) for child in self._nodes[number].children]
            for name, target in sorted(children, key=itemgetter(0)):
                if 0 <= target < len(self._nodes) and self._labels[target] is None:
                    self._parents[target] = number, name
                    self._labels[target] = self._path(target, start, label)
                    queue.append(target)

    def _path(self, number: int, start: int, label: str) -> str:
        """Return the names from ``start`` on; for a deep path only the last names, made unique by
        the place in the order.
        """
        names: list[str] = []
        current = number
        while current != start:
            if len(names) == _SHOWN_DEPTH:
                return f"…#{len(self.order)}." + ".".join(reversed(names))
            current, name = self._parents[current][0], self._parents[current][1]
            names.append(name)
        path = ".".join(reversed(names))
        return path if start == 0 else f"{label}.{path}"

    def __getitem__(self, number: int) -> str:
        """Return the label of a node; a fixed label for a node that does not exist or that nothing
        refers to.
        """
        label = self._labels[number] if 0 <= number < len(self._labels) else "(dangling)"
        return "(unreferenced)" if label is None else label

    def entries(self, fields: Callable[[Any], Fields]) -> dict[str, Fields]:
        """Return the ``fields`` of each node by label; nodes that nothing refers to come last,
        sorted by their fields.
        """
        found = {self[number]: fields(self._nodes[number]) for number in self.order}
        rest = [
            sorted(fields(self._nodes[number]).items())
            for number, label in enumerate(self._labels)
            if label is None
        ]
        found.update(
            {
                f"(unreferenced {position})": dict(items)
                for position, items in enumerate(sorted(rest))
            }
        )
        return found


class Objects:
    """The canonical form of a SavedObjectGraph. ``assets``: the file name of each AssetFileDef."""

    def __init__(self, graph: schema.SavedObjectGraph, functions: Functions, assets: Sequence[str]):
        self.graph = graph
        self.functions = functions
        self.assets = assets
        self.labels = Labels(graph.nodes, self._references)

    def _references(self, number: int) -> Iterator[tuple[str, int]]:
        node = self.graph.nodes[number]
        for dependency in sorted(node.dependencies, key=lambda item: item.local_name):
            yield f"needs {dependency.local_name}", dependency.node_id
        for name in sorted(node.saveable_objects):
            yield f"saves {name}", node.saveable_objects[name].save_function
            yield f"restores {name}", node.saveable_objects[name].restore_function
        yield from _slot_references(node)
        for position, name in enumerate(traces(node)):
            if name in self.graph.concrete_functions:
                for bound, target in enumerate(self.graph.concrete_functions[name].bound_inputs):
                    yield f"captures {position}.{bound}", target

    def entries(self) -> dict[str, Fields]:
        """Map each label to the entry of its object; objects that nothing refers to come last, by
        content.
        """
        found = self.labels.entries(self._fields)
        named = set(itertools.chain.from_iterable(map(traces, self.graph.nodes)))
        unnamed = sorted(
            [self.concrete(name) for name in self.graph.concrete_functions if name not in named]
        )
        found.update(
            {
                f"(concrete function {position})": {"function": item}
                for position, item in enumerate(unnamed)
            }
        )
        return found

    def _fields(self, node: schema.SavedObject) -> Fields:
        kind = node.WhichOneof("kind") or "none"
        fields: Fields = {"kind": kind, "children": _children(node.children, self.labels)}
        if node.dependencies:
            fields["dependencies"] = _children(node.dependencies, self.labels)
        if node.slot_variables:
            fields["slots"] = _slots(node, self.labels)
        for name in sorted(node.saveable_objects):
            item = node.saveable_objects[name]
            fields[f"saveable {name}"] = (
                f"{self.labels[item.save_function]}, {self.labels[item.restore_function]}"
            )
        for name, value in (
            ("registered_name", node.registered_name),
            ("registered_saver", node.registered_saver),
        ):
            if value:
                fields[name] = value
        if node.HasField("serialized_user_proto"):
            any_proto = node.serialized_user_proto
            fields["user proto"] = f"{any_proto.type_url} {hashed(any_proto.value)}"
        if kind in _KINDS:
            fields.update(_KINDS[kind](self, getattr(node, kind)))
        return fields

    def concrete(self, name: str) -> str:
        """Describe a concrete function: its hash, its captures and its calling convention."""
        body = self.functions.hashes.get(name, b"missing")
        if name not in self.graph.concrete_functions:
            return digest(body).hex()
        trace = self.graph.concrete_functions[name]
        bound = [self.labels[number].encode() for number in trace.bound_inputs]
        specs = [
            schema.serialize(trace.canonicalized_input_signature),
            schema.serialize(trace.output_signature),
        ]
        return digest(body, digest(*bound), *specs).hex()

    def _user_object(self, item: schema.SavedUserObject) -> Fields:
        fields = {"identifier": item.identifier, "version": hashed(schema.serialize(item.version))}
        return {**fields, "metadata": hashed(item.metadata.encode())} if item.metadata else fields

    def _asset(self, item: schema.SavedAsset) -> Fields:
        index = item.asset_file_def_index
        return {"file": self.assets[index] if 0 <= index < len(self.assets) else "(dangling)"}

    def _function(self, item: schema.SavedFunction) -> Fields:
        traces = ", ".join([self.concrete(name) for name in item.concrete_functions])
        return {"traces": traces, "spec": hashed(schema.serialize(item.function_spec))}

    def _bare(self, item: schema.SavedBareConcreteFunction) -> Fields:
        return {
            "function": self.concrete(item.concrete_function_name),
            "arguments": (
                f"{list(item.argument_keywords)}, {item.allowed_positional_arguments} positional"
            ),
            "spec": (
                hashed(schema.serialize(item.function_spec))
                if item.HasField("function_spec")
                else ""
            ),
        }

    def _variable(self, item: schema.SavedVariable) -> Fields:
        components = item.experimental_distributed_variable_components
        return {
            "dtype": str(item.dtype),
            "shape": hashed(schema.serialize(item.shape)),
            "trainable": str(item.trainable),
            "synchronization": str(item.synchronization),
            "aggregation": str(item.aggregation),
            "name": item.name,
            "device": item.device,
            "components": str([sorted(self._variable(part).items()) for part in components]),
        }

    def _captured(self, item: schema.CapturedTensor) -> Fields:
        if item.concrete_function not in self.functions.hashes:
            return {"tensor": item.name, "function": item.concrete_function}
        text = self._captured_places[item.concrete_function][item.name]
        return {"tensor": text, "function": self.functions.hashes[item.concrete_function].hex()}

    @functools.cached_property
    def _captured_places(self) -> dict[str, dict[str, str]]:
        """Map each function and captured tensor to the tensor's place in the canonical order.

        Each body is built once and not kept.
        """
        found: dict[str, dict[str, str]] = {}
        for node in self.graph.nodes:
            if (
                node.HasField("captured_tensor")
                and node.captured_tensor.concrete_function in self.functions.hashes
            ):
                found.setdefault(node.captured_tensor.concrete_function, {})[
                    node.captured_tensor.name
                ] = ""
        for function, places in found.items():
            body = self.functions.body(function)
            for name in places:
                place = body.resolve(name)
                places[name] = (
                    name if place is None else f"{body.position[place[0]]}:{place[1].decode()}"
                )
        return found


_KINDS: Mapping[str, Any] = {
    "user_object": Objects._user_object,
    "asset": Objects._asset,
    "function": Objects._function,
    "bare_concrete_function": Objects._bare,
    "variable": Objects._variable,
    # its value is a node of the graph, held there under this object's label
    "constant": lambda _objects, _item: {},
    "resource": lambda _objects, item: {"device": item.device},
    "captured_tensor": Objects._captured,
}


def hashed(data: bytes) -> str:
    """Return a hash in place of a long value."""
    return digest(data).hex()


def tracked_objects(graph: schema.TrackableObjectGraph) -> dict[str, Fields]:
    """Return the canonical form of the object graph inside a checkpoint."""

    def fields(node: Any) -> Fields:
        return {
            "children": _children(node.children, labels),
            "slots": _slots(node, labels),
            "saver": f"{node.registered_saver.name} {node.registered_saver.object_name}",
            **{
                f"attribute {item.name}": f"{item.checkpoint_key} ({item.full_name})"
                for item in node.attributes
            },
        }

    labels = Labels(graph.nodes, lambda number: _slot_references(graph.nodes[number]))
    return labels.entries(fields)


def _children(children: Any, labels: Labels) -> str:
    return ", ".join(
        sorted([f"{child.local_name} = {labels[child.node_id]}" for child in children])
    )


def _slots(node: Any, labels: Labels) -> str:
    slots = [
        (slot.slot_name, labels[slot.original_variable_node_id], labels[slot.slot_variable_node_id])
        for slot in node.slot_variables
    ]
    return ", ".join(f"{name} of {variable}: {slot}" for name, variable, slot in sorted(slots))


def _slot_references(node: Any) -> Iterator[tuple[str, int]]:
    slots: dict[str, int] = {}
    for slot in node.slot_variables:
        slots[slot.slot_name] = slots.get(slot.slot_name, -1) + 1
        yield f"slot {slot.slot_name} {slots[slot.slot_name]}", slot.slot_variable_node_id


def entries_hash(entries: Mapping[str, Fields]) -> str:
    """Hash labelled fields, independent of their order."""
    hashes = []
    for label in sorted(entries):
        names_and_texts = itertools.chain.from_iterable(sorted(entries[label].items()))
        hashes.append(digest(label.encode(), *map(str.encode, names_and_texts)))
    return digest(*hashes).hex()

"""Level L2: the object graph of a MetaGraph, checked by the constraints of the specification and
described as plain data.

A node is described at its number in the file. For example, a variable::

    {"kind": "variable", "path": ["layer", "kernel"], "children": {}, "dtype": "float32",
     "shape": [2, 3], "trainable": true, "keys": {"VARIABLE_VALUE": "layer/kernel/.ATTRIBUTES/..."}}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Optional

from reference_impl.errors import (
    LimitError,
    MalformedError,
    MissingKeyError,
    SavedModelError,
    under_rule,
)
from reference_impl.format import limits, schema
from reference_impl.format.bundle.entry import Entry
from reference_impl.format.names import LIST, TUPLE, VALUE
from reference_impl.format.values import dtypes, structure, tensor_proto
from reference_impl.format.values.shapes import shape_of
from reference_impl.graph import object_references
from reference_impl.graph.object_graph import Paths, checkpoint_keys
from reference_impl.graph.saved_variables import check_value

Json = dict[str, Any]


class Part(NamedTuple):
    """One MetaGraph with what its object graph refers to.

    Attributes:
      file: the file of the message, for errors.
      graph: the MetaGraph.
      assets: the names of its assets, in the order of their numbers.
      entries: the tensors of the checkpoint by key.
      tracked: the object graph of the checkpoint, or None.
    """

    file: str
    graph: schema.MetaGraphDef
    assets: list[str]
    entries: Mapping[str, Entry]
    tracked: Optional[schema.TrackableObjectGraph]


def objects_of(part: Part) -> Optional[Json]:
    """Return the object graph of a MetaGraph, or None if it has none.

    Raises:
      SavedModelError: the object graph breaks a constraint; `rule` of the error is its id.
    """
    if not part.graph.HasField("object_graph_def"):
        return None
    saved = part.graph.object_graph_def
    object_references.check(saved, part.file)
    paths = Paths(saved.nodes)
    keys = {} if part.tracked is None else checkpoint_keys(saved, part.tracked)
    described = _Graph(part)
    nodes = []
    for number, node in enumerate(saved.nodes):
        try:
            details = described.node(node, keys.get(number, {}))
        except SavedModelError as error:
            error.file, error.node = error.file or part.file, error.node or paths.label(number)
            raise
        nodes.append({"path": _path(paths, number), **details})
    return {"nodes": nodes, "functions": described.functions()}


def _path(paths: Paths, number: int) -> Optional[list[str]]:
    """Return the names on the shortest path to a node, or None for a node without a path."""
    if paths.names(number) is None:
        return None
    return [name for _, name, _ in reversed(paths.steps(number))]


class _Graph:
    """Describes the nodes and functions of one object graph."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.saved = part.graph.object_graph_def
        self.library = {one.signature.name: one for one in part.graph.graph_def.library.function}
        self.graph_nodes = {node.name: node for node in part.graph.graph_def.node}
        self.kinds: dict[str, Callable[[schema.SavedObject, Mapping[str, str]], Json]] = {
            "variable": self._variable,
            "function": self._function_node,
            "bare_concrete_function": self._function_node,
            "constant": self._constant,
            "asset": self._asset,
            "user_object": self._user_object,
        }

    def node(self, node: schema.SavedObject, keys: Mapping[str, str]) -> Json:
        """Return a node as plain data. `keys` are the checkpoint keys of its values by name."""
        kind = node.WhichOneof("kind")
        if kind is None:
            raise MalformedError("an object of no kind", rule="SM-CONF-1")
        out: Json = {
            "kind": kind,
            "children": {child.local_name: child.node_id for child in node.children},
            "keys": dict(sorted(keys.items())),
        }
        if node.slot_variables:
            out["slots"] = sorted(
                [slot.original_variable_node_id, slot.slot_name, slot.slot_variable_node_id]
                for slot in node.slot_variables
            )
        if kind in self.kinds:
            out.update(self.kinds[kind](node, keys))
        return out

    def functions(self) -> Json:
        """Return the traces of the object graph by name."""
        return {name: self._trace(name) for name in sorted(self.saved.concrete_functions)}

    def _variable(self, node: schema.SavedObject, keys: Mapping[str, str]) -> Json:
        variable = node.variable
        entry = self.part.entries.get(keys.get(VALUE, ""))
        if entry is not None:
            check_value(variable, entry, self.part.file)
        shape = shape_of(variable.shape)
        return {
            "dtype": dtypes.by_number(variable.dtype).name,
            "shape": None if shape is None else list(shape),
            "trainable": variable.trainable,
        }

    def _function_node(self, node: schema.SavedObject, _: Mapping[str, str]) -> Json:
        traces = object_references.traces(node)
        for name in traces:
            if name not in self.library:
                reason = f"the library has no function {name!r}"
                raise MissingKeyError(reason, rule="SM-FN-1")
            if name not in self.saved.concrete_functions:
                reason = f"the object graph does not describe the function {name!r}"
                raise MissingKeyError(reason, rule="SM-FN-1")
        return {"traces": traces}

    def _constant(self, node: schema.SavedObject, _: Mapping[str, str]) -> Json:
        operation = node.constant.operation
        found = self.graph_nodes.get(operation)
        if found is None or found.op != "Const":
            reason = f"the graph has no Const node {operation!r}"
            raise MissingKeyError(reason, rule="SM-KIND-5")
        proto = found.attr["value"].tensor
        with under_rule("SM-KIND-5"):
            tensor_proto.check(proto)
        shape = [dim.size for dim in proto.tensor_shape.dim]
        return {"operation": operation, "dtype": dtypes.by_number(proto.dtype).name, "shape": shape}

    def _asset(self, node: schema.SavedObject, _: Mapping[str, str]) -> Json:
        assets, number = self.part.assets, node.asset.asset_file_def_index
        if not 0 <= number < len(assets):
            raise MalformedError(f"asset {number} of {len(assets)}", rule="SM-OBJ-2")
        return {"filename": assets[number]}

    def _user_object(self, node: schema.SavedObject, _: Mapping[str, str]) -> Json:
        identifier = node.user_object.identifier
        if identifier in (LIST, TUPLE):
            indices = map(object_references.index_of, (one.local_name for one in node.children))
            length = max((index + 1 for index in indices if index is not None), default=0)
            if length > limits.LIST_ELEMENTS:
                reason = f"a list or tuple of {length} elements"
                raise LimitError(reason, limit="LIST_ELEMENTS", rule="SM-KIND-7")
        return {"identifier": identifier}

    def _trace(self, name: str) -> Json:
        saved = self.saved.concrete_functions[name]
        for value in (saved.canonicalized_input_signature, saved.output_signature):
            if value.WhichOneof("kind") is not None:
                structure.decode(value, self.part.file, name)
        return {"captures": list(saved.bound_inputs), "in_library": name in self.library}

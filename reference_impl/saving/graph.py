"""Build the main graph of a MetaGraph, for session readers (FMT-06, FMT-08, SIG-15, RES-08, RES-11,
GOAL-09, COMPAT-04).

Every variable is one VarHandleOp, every table one call of its creating function, every constant one
Const; signatures, initialisers and the saver call functions with these same tensors. So a signature
reads the variables that the saver restores.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format import schema
from reference_impl.format.names import CALLS, CREATE, INITIALIZE
from reference_impl.functions import specs
from reference_impl.functions.names import ExportName
from reference_impl.functions.specs import shape_proto
from reference_impl.graph.argument_names import python_names
from reference_impl.graph.graph_builder import GraphBuilder
from reference_impl.graph.signature_tensors import parts_of
from reference_impl.kinds import variable
from reference_impl.saving import traces
from reference_impl.saving.exported_functions import Capture, ExportedFunctions
from reference_impl.saving.node_defaults import strip_defaults
from reference_impl.saving.saver_functions import SaverFunction, SaverFunctions
from reference_impl.saving.signature_function import SignatureFunction
from reference_impl.saving.signature_wrapper import set_output_shapes
from reference_impl.saving.tree import Tree


class MainGraph(GraphBuilder):
    """Builds the GraphDef."""

    def __init__(self, tree: Tree, functions: ExportedFunctions):
        super().__init__()
        self.graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION
        self.graph_def.versions.min_consumer = 12
        self._tree, self._functions, self._library = tree, functions, functions.library
        # Number of a variable's node -> its handle, and those of the other saved replicas.
        self.handles: dict[int, list[str]] = {}
        self._tensors: dict[Capture, str] = {}
        # Assets that are read after they are assigned, for initialisers.
        self._fresh: dict[Capture, str] = {}
        self._assigns: list[str] = []

    # Nodes

    def call_function(
        self, function: ExportName, inputs: Sequence[str], name: Optional[str] = None
    ) -> schema.NodeDef:
        """Add a call of a function of the library with tensors of this graph."""
        signature = self._library.definitions[function].signature
        return self.call(name or None, function, signature, inputs)

    def call_bound(
        self,
        number: int,
        inputs: Sequence[str] = (),
        name: Optional[str] = None,
        fresh: bool = False,
    ) -> Any:
        """Add a call of the function of a node, with its captures."""
        function = self._functions.by_number[number]
        captured = [self.tensor(capture, fresh) for capture in function.bound()]
        return self.call_function(function.name, [*inputs, *captured], name)

    # State

    def tensor(self, number: Capture, fresh: bool = False) -> str:
        """Return the tensor of a node of the object graph.

        With `fresh`, assets are read after their assignment.
        """
        if fresh and number in self._fresh:
            return self._fresh[number]
        if not isinstance(number, int):
            return self.handles[number[0]][number[1]]
        if number not in self._tensors:
            node = self._tree.nodes[number]
            if not isinstance(node.object, api.CapturableResource):
                raise SaveError(
                    "only exists inside of another function, so it cannot be captured here",
                    node=node.path,
                )
            creator = node.children.get(CREATE)
            if creator is None:
                raise SaveError(
                    "the resource has no function that creates it", node=node.path, clause="RES-03"
                )
            trace, name = self._tree.concrete(creator), _node_name(node.path)
            function = self._functions.by_number[trace]
            captured = [self.tensor(capture) for capture in function.bound()]
            table = self._table(function.name, captured, name)
            self._tensors[number] = (
                self.call_bound(trace, (), name).name if table is None else table
            )
        return self._tensors[number]

    def _table(self, function: ExportName, arguments: Sequence[str], name: str) -> Optional[str]:
        """Add the node for a table that a function makes from constants only; return None for other
        functions.

        TensorFlow writes tables as nodes. TF 1.15 crashes in shape inference if a call returns a
        mutable table (COMPAT-04).
        """
        definition = self._library.definitions[function]
        nodes = {node.name: node for node in definition.node_def}
        known = dict(zip((argument.name for argument in definition.signature.input_arg), arguments))
        reference = next(iter(definition.ret.values()), "") if len(definition.ret) == 1 else ""
        node = nodes.get(reference.partition(":")[0])
        while node is not None and node.op == "Identity":
            node = nodes.get(node.input[0].partition(":")[0])
        inner = node is not None and node.op in CALLS  # of a model TensorFlow loaded
        if node is None or not (inner or "HashTable" in node.op):
            return None
        sources: list[tuple[str, Any]] = [
            (text, nodes.get(text.partition(":")[0])) for text in node.input
        ]
        if not all(
            text in known or (source is not None and source.op == "Const")
            for text, source in sources
        ):
            return None
        inputs = [
            known[text] if text in known else self._copy(source, f"{name}/{source.name}", ())
            for text, source in sources
        ]
        return (
            self._table(ExportName(node.attr["f"].func.name), inputs, name)
            if inner
            else self._copy(node, name, inputs)
        )

    def _copy(self, node: schema.NodeDef, name: str, inputs: Sequence[str]) -> str:
        copy = self.add(name, node.op, inputs)
        for key in node.attr:
            copy.attr[key].CopyFrom(node.attr[key])
        return str(copy.name)

    def add_variable(self, number: int, parts: Sequence[Any], name: str, devices: bool) -> None:
        """Add a handle and a read for each part of a variable.

        The first is called `name`; replicas have their own names.
        """
        for part in parts:
            wanted, dtype = (
                variable.name_of(part) if number in self.handles else name,
                part.dtype.as_datatype_enum,
            )
            node = self.add(wanted, "VarHandleOp", dtype=dtype, shape=shape_proto(part.shape))
            node.device = part.device if devices else ""
            node.attr["shared_name"].s = node.name.encode()
            self._add_read(f"{node.name}/Read/ReadVariableOp", node)
            self.handles.setdefault(number, []).append(node.name)
        self._tensors[number] = self.handles[number][0]

    def _add_read(self, name: str, handle: schema.NodeDef, *controls: str) -> Any:
        read = self.add(name, "ReadVariableOp", [handle.name, *controls], handle.attr["dtype"].type)
        read.device = handle.device
        return read

    def add_constant(self, number: int, value: tf.Tensor) -> str:
        node = self.add("Const", "Const", dtype=value.dtype.as_datatype_enum)
        node.attr["value"].tensor.MergeFromString(specs.tensor_bytes(value))
        self._tensors[number] = node.name
        return str(node.name)

    def add_asset(self, number: int) -> str:
        """Add a string variable that is assigned the value that the loader feeds; return the name
        of the tensor to feed.
        """
        feed = self.add_string("asset_path_initializer", "Placeholder")
        handle = self.add_string("asset_path", "VarHandleOp")
        handle.attr["shared_name"].s = handle.name.encode()
        assign = self.add(
            f"{handle.name}/Assign", "AssignVariableOp", [handle.name, feed.name], schema.DT_STRING
        )
        self._assigns.append(assign.name)
        read = self._add_read(f"{handle.name}/Read/ReadVariableOp", handle)
        fresh = self._add_read(f"{handle.name}/Read/after_assign", handle, f"^{assign.name}")
        self._tensors[number], self._fresh[number] = read.name, fresh.name
        return f"{feed.name}:0"

    def add_init(self) -> str:
        """Add the op that assigns asset paths and makes and initialises all resources; return its
        name.
        """
        for node, _ in self._tree.of_resources(CREATE):
            self.tensor(node.number)
        initialized = [
            self.call_bound(number, fresh=True).name
            for _, number in self._tree.of_resources(INITIALIZE)
        ]
        return str(
            self.add("NoOp", "NoOp", [f"^{name}" for name in [*self._assigns, *initialized]]).name
        )

    def add_saver(self, functions: SaverFunctions) -> schema.SaverDef:
        """Add the calls of the functions that save and restore; return the SaverDef."""
        prefix = self.add_string("saver_filename", "Placeholder")
        saved = self._call_saver(functions.save, prefix.name)
        restored = self._call_saver(functions.restore, prefix.name)
        out = schema.SaverDef(version=schema.SaverDef.V2)
        out.filename_tensor_name = f"{prefix.name}:0"
        out.save_tensor_name = f"{saved.name}:0"
        out.restore_op_name = restored.name
        return out

    def _call_saver(self, function: SaverFunction, prefix: str) -> schema.NodeDef:
        captured = [self.tensor(capture) for capture in function.captures]
        return self.call_function(function.name, [prefix, *captured])

    # Signatures

    def add_signature(self, key: str, signature: SignatureFunction, number: int) -> Any:
        """Add placeholders and the call of a signature; return its SignatureDef."""
        out = schema.SignatureDef(method_name=signature.method_name)
        feeds: dict[str, Any] = {}
        for name in python_names(signature.inputs):  # the order of the function's arguments
            spec = signature.inputs[name]
            feed = self._feed(
                f"{key}_{name}".replace("/", "_"), spec, signature.defaults.get(name), out, name
            )
            feeds[name] = _tensor_info(f"{feed}:0", spec)
        call = self.call_bound(number, [feed.name.rpartition(":")[0] for feed in feeds.values()])
        set_output_shapes(
            call, traces.flat_outputs(signature.outputs), len(call.attr["Tout"].list.type)
        )
        for name, info in _encoded_inputs(feeds, signature.definition).items():
            out.inputs[name].CopyFrom(info)
        position = 0
        for name, spec in signature.outputs.items():
            parts = enumerate(traces.flat_outputs(spec), position)
            infos = [_tensor_info(f"{call.name}:{index}", part) for index, part in parts]
            position += len(infos)
            out.outputs[name].CopyFrom(_output_info(spec, infos, name))
        return out

    def _feed(
        self,
        name: str,
        spec: tf.TensorSpec,
        default: Optional[tf.Tensor],
        out: schema.SignatureDef,
        key: str,
    ) -> str:
        op, inputs, dtype = "Placeholder", [], spec.dtype.as_datatype_enum
        if default is not None:
            value = self.add(f"{name}/default", "Const", dtype=dtype)
            value.attr["value"].tensor.MergeFromString(specs.tensor_bytes(default))
            out.defaults[key].CopyFrom(value.attr["value"].tensor)
            op, inputs = "PlaceholderWithDefault", [value.name]
        return str(self.add(name, op, inputs, dtype, shape_proto(spec.shape)).name)

    def finish(self) -> Any:
        op_defs = api.op_defs({node.op for node in self.graph_def.node})
        strip_defaults(self.graph_def.node, op_defs)
        return self.graph_def


def _tensor_info(name: str, spec: tf.TensorSpec) -> Any:
    return schema.TensorInfo(
        name=name, dtype=spec.dtype.as_datatype_enum, tensor_shape=shape_proto(spec.shape)
    )


def _encoded_inputs(
    feeds: dict[str, Any], definition: Optional[schema.SignatureDef]
) -> dict[str, Any]:
    """Return the inputs in the form of the SignatureDef that was read, with sparse and composite
    tensors reassembled (V1-16).
    """
    if definition is None:
        return feeds
    out: dict[str, Any] = {}
    left = dict(feeds)
    for key, info in definition.inputs.items():
        kind, parts = parts_of(info)
        names = [f"{key}_{part}" if part else key for part, *_ in parts]
        if any(name not in left for name in names):
            return feeds
        fed = [left.pop(name) for name in names]
        out[key] = fed[0] if kind == "dense" else schema.copy_of(info)
        _set_tensors(out[key], iter([item.name for item in fed]))
    return feeds if left else out


def _set_tensors(info: schema.TensorInfo, names: Iterator[str]) -> None:
    """Set the names of the tensors of a TensorInfo, in the order of `parts_of`."""
    if info.WhichOneof("encoding") == "coo_sparse":
        coo = info.coo_sparse
        coo.values_tensor_name, coo.indices_tensor_name, coo.dense_shape_tensor_name = (
            itertools.islice(names, 3)
        )
    elif info.WhichOneof("encoding") == "composite_tensor":
        for component in info.composite_tensor.components:
            _set_tensors(component, names)
    else:
        info.name = next(names)


def _output_info(spec: tf.TypeSpec, parts: Sequence[Any], name: str) -> Any:
    if isinstance(spec, tf.TensorSpec):
        return parts[0]
    out = schema.TensorInfo()
    if getattr(spec, "dtype", None) is not None:
        out.dtype = spec.dtype.as_datatype_enum
    if getattr(spec, "shape", None) is not None:
        out.tensor_shape.CopyFrom(shape_proto(spec.shape))
    if isinstance(spec, tf.SparseTensorSpec):
        indices, values, dense_shape = (part.name for part in parts)
        out.coo_sparse.SetInParent()
        _set_tensors(out, iter([values, indices, dense_shape]))
    else:
        out.composite_tensor.type_spec.CopyFrom(specs.to_message(spec, name).type_spec_value)
        out.composite_tensor.components.extend(parts)
    return out


def _node_name(path: str) -> str:
    """Return the last attribute of a path, as a name for a node."""
    return re.sub(r"[^A-Za-z0-9_]", "", path.rpartition(".")[2]) or "resource"

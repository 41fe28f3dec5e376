"""A TF 1.x MetaGraph as a program of functions over state, worked out on the protos alone (V1-01..V1-12).

The session world has one graph, feeds, fetches and ops that are run once. The function world has variables, resources
and functions that capture them. :func:`compile_program` says for a MetaGraph which is which:

* variables: every ``VarHandleOp``, those made from reference variables included (V1-10);
* resources: other stateful nodes that make a shared handle (tables, iterators, queues), each with a function that creates it;
* assets: tensors that stand for a file of the model (V1-12);
* signatures: one function per SignatureDef (V1-01);
* restore, init: what loading runs, in this order (V1-08).

Functions are cut out when asked for: a broken or unknown part costs only the function that needs it.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.container.layout import asset_definitions
from reference_impl.format.names import INIT_SIGNATURE, LEGACY_INIT_OP, MAIN_OP, RESERVED_SIGNATURES
from reference_impl.format.values.shapes import Shape, shape_of
from reference_impl.graph.control_flow.editable_function import EditableFunction
from reference_impl.graph.control_flow.frames import inside_of_loops
from reference_impl.graph.control_flow.functionalise import (
    functionalise,
    functionalise_library,
    has_v1_flow,
    is_functional,
    results_in_branches,
)
from reference_impl.graph.edges import CONTROL_INDEX, Ref, parse_ref
from reference_impl.graph.node_index import Graph
from reference_impl.graph.op_table import INT64, RESOURCE, STRING, OpTable
from reference_impl.graph.references import Library
from reference_impl.graph.unique_names import UniqueNames
from reference_impl.graph.variable_defs import TRAINABLE, variable_defs
from reference_impl.inspection.text import spec_text
from reference_impl.v1.extract import Extracted, Feed, UnfedPlaceholderError, extract, placeholder_shape
from reference_impl.v1.gradients import call_gradient_functions
from reference_impl.v1.inlining import inline_makers
from reference_impl.v1.iterators import rewrite_one_shot_iterators
from reference_impl.v1.references import rewrite_references

SPARSE_PARTS = ("indices", "values", "dense_shape")

__all__ = ["Input", "Output", "Program", "Signature", "UnfedPlaceholderError", "Variable", "compile_program"]


@dataclass(frozen=True)
class Variable:
    """A variable node. ``shape`` is a TensorShapeProto; ``reference`` says that TF 1 knew it as a reference variable."""

    name: str
    dtype: int
    shape: Any
    trainable: bool
    reference: bool


@dataclass(frozen=True)
class Input:
    """An argument of a signature: ``name`` as callers write it, the SignatureDef key and which of its tensors it is."""

    name: str
    key: str
    part: str
    tensor: Ref
    dtype: int
    shape: Any


@dataclass(frozen=True)
class Output:
    """A result: its tensors in order; ``kind`` is dense, sparse (indices, values, dense_shape) or composite."""

    key: str
    kind: str
    tensors: tuple[Ref, ...]
    info: Any


@dataclass(frozen=True)
class Signature:
    key: str
    method_name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]


class Program:
    """See the module's docstring. All members are computed without running anything."""

    def __init__(self, meta_graph: Any, file: str, op_def: Optional[Callable[[str], Any]] = None):
        self.file = file
        self.meta_graph = meta_graph
        self.ops = OpTable(meta_graph, file, op_def)
        self._function_names = UniqueNames(self.ops.library)
        graph_def = schema.GraphDef()
        graph_def.CopyFrom(meta_graph.graph_def)
        call_gradient_functions(graph_def)
        functionalise_library(graph_def.library, self.ops, self._free_name)
        self.graph = Graph(graph_def, file)
        inlined = inline_makers(self.graph, self.ops, self._makes_shared_handle)
        self.fillers = rewrite_one_shot_iterators(self.graph)
        self.false_statements: list[str] = []  # what SignatureDefs say of tensors and the graph contradicts
        self.signatures = {
            key: self._as_in_graph(_signature(key, definition))
            for key, definition in sorted(meta_graph.signature_def.items())
            if key not in RESERVED_SIGNATURES
        }
        fetched = [ref for signature in self.signatures.values() for output in signature.outputs for ref in output.tensors]
        self.rewrite = rewrite_references(self.graph, fetched)
        self._merge_by_shared_name(inlined)
        self.variables = self._variables()
        # Tensor -> AssetFileDef filename, for every tensor that loading feeds with the path of a file of the model.
        self.assets = {parse_ref(asset.tensor_info.name): asset.filename for asset in asset_definitions(meta_graph, file)}
        self.resources = tuple(node.name for node in self.graph if self._makes_shared_handle(node))
        self._library = Library(graph_def.library)
        self._hoisted = frozenset(
            [*(variable.name for variable in self.variables), *self.resources, *(ref.node for ref in self.assets)]
        )

    # -- signatures ----------------------------------------------------------------------------------------------------

    def _as_in_graph(self, signature: Signature) -> Signature:
        """The signature with the dtypes and shapes of its tensors in the graph, which decides; sessions ask nothing else."""
        inputs = []
        for item in signature.inputs:
            kind, shape = self._in_graph(item.tensor, item.dtype % 100)
            if shape is None or _may_be_one(shape_of(shape), shape_of(item.shape)):
                shape = item.shape
            self._hold_against(signature.key, f"input {item.name!r}", item.tensor, (item.dtype % 100, item.shape), (kind, shape))
            inputs.append(dataclasses.replace(item, dtype=kind, shape=shape))
        for output in signature.outputs:
            for part, ref, said, shape in _tensors(output.info):
                said %= 100  # a reference leaves a function as its value
                name = f"output {output.key!r}" + (f" ({part})" if part else "")
                kind, _ = self._in_graph(ref, said)
                if said:  # TF 1.x needs none
                    self._hold_against(signature.key, name, ref, (said, shape), (kind, shape))
        return dataclasses.replace(signature, inputs=tuple(inputs))

    def _in_graph(self, ref: Ref, said: int) -> tuple[int, Any]:
        """DataType of a tensor of the graph, ``said`` where nothing tells; its shape, None where no placeholder tells."""
        try:
            outputs = self.ops.outputs(self.graph.nodes[ref.node])
        except (KeyError, errors.SavedModelError):
            return said, None
        return (outputs[ref.index][2] % 100 if ref.index < len(outputs) else said), placeholder_shape(self.graph, ref)

    def _hold_against(self, key: str, what: str, ref: Ref, said: tuple[int, Any], found: tuple[int, Any]) -> None:
        one, other = spec_text(*said), spec_text(*found)
        if one != other:
            self.false_statements.append(
                f"signature {key!r}, {what}: the SignatureDef says {one}, the tensor {ref.text!r} of the graph is {other}. "
                "The SignatureDef is wrong, the graph is followed"
            )

    def _check_inputs(self, signature: Signature) -> None:
        """Raises MalformedError: an input names a tensor that does not exist."""
        for item in signature.inputs:
            node = self.graph.nodes.get(item.tensor.node)
            if node is None or item.tensor.index >= len(self.ops.outputs(node)):
                reason = f"input {item.name!r} is the tensor {item.tensor.text!r}, which is not in the graph; correct it"
                raise errors.MalformedError(reason, file=self.file, node=signature.key, clause="V1-01")

    # -- state ---------------------------------------------------------------------------------------------------------

    def _variables(self) -> tuple[Variable, ...]:
        listed: set[str] = set()
        said: set[str] = set()
        for collection, node, definition in variable_defs(self.meta_graph, file=self.file):
            if collection == TRAINABLE:
                listed.add(node)
            if definition.trainable:
                said.add(node)
        trainable = said or listed  # TF 1.8 and older only list them
        out = []
        for node in self.graph:
            if node.op != "VarHandleOp":
                continue
            out.append(
                Variable(
                    node.name,
                    node.attr["dtype"].type,
                    node.attr["shape"].shape,
                    node.name in trainable,
                    node.name in self.rewrite.variables,
                )
            )
        return tuple(out)

    def _merge_by_shared_name(self, inlined: frozenset[str]) -> None:
        """Let nodes that name one variable, or one resource of functions, be one: the first makes the handle, others hand it on.

        A session finds what has a shared name by this name alone. So does a load that makes a table for each of several nodes.

        Args:
          inlined: names of the nodes that came out of functions.
        """
        found: dict[tuple[Any, ...], list[Any]] = {}
        for node in self.graph:
            shared = node.attr["shared_name"].s if "shared_name" in node.attr else b""
            if not shared or not (node.op == "VarHandleOp" or self._makes_shared_handle(node)):
                continue
            kinds = [node.attr[key].type for key in ("dtype", "key_dtype", "value_dtype") if key in node.attr]
            container = node.attr["container"].s if "container" in node.attr else b""
            found.setdefault((node.op, container, shared, *kinds), []).append(node)
        for first, *others in found.values():
            if first.op != "VarHandleOp" and not any(node.name in inlined for node in (first, *others)):
                continue
            for node in others:
                handed = schema.NodeDef(name=node.name, op="Identity", input=[first.name], device=node.device)
                handed.attr["T"].type = RESOURCE
                node.CopyFrom(handed)

    def _makes_shared_handle(self, node: Any) -> bool:
        """A node whose one result is a handle that outlives a call, variables excluded.

        Resources of one call (TensorArrays, stacks) have no shared name.
        """
        if node.op == "VarHandleOp":
            return False
        definition = self.ops.get(node.op)
        if (
            definition is None
            or not definition.is_stateful
            or len(definition.output_arg) != 1
            or definition.output_arg[0].type != RESOURCE
        ):
            return False
        return "shared_name" in node.attr or any(attr.name == "shared_name" for attr in definition.attr)

    # -- functions -----------------------------------------------------------------------------------------------------

    def function(
        self, name: str, feeds: Sequence[Feed], fetches: Mapping[str, Ref], targets: Sequence[str] = (), *, unfed: bool = False
    ) -> Extracted:
        """Cut a function out of the graph; see :func:`reference_impl.v1.extract.extract`."""
        fed = {feed.tensor for feed in feeds}
        for ref in fed:
            self._check_feed(ref)
        hoisted = self._hoisted - {ref.node for ref in fed}
        values = {result: ref if ref in fed else self.rewrite.value(ref) for result, ref in fetches.items()}
        cut = extract(self.graph, self.ops, name, feeds, values, targets=targets, hoisted=hoisted, unfed=unfed)
        return self._functional(cut)

    def _check_feed(self, ref: Ref) -> None:
        """Raises MalformedError: a tensor of a loop or a branch is fed, which a session refuses as well."""
        if ref.node not in self.graph or self.graph.nodes[ref.node].op.startswith("Placeholder") or ref.node in self._hoisted:
            return
        try:
            cut = extract(self.graph, self.ops, "fed", [], {"fed": ref}, hoisted=self._hoisted, unfed=True).function
            reason = ""
            if has_v1_flow(cut) and inside_of_loops(EditableFunction(cut, self.ops)):
                reason = (
                    "cannot be fed, since it is inside of a while loop; feed what enters the loop or leaves it through an Exit"
                )
            elif has_v1_flow(cut) and results_in_branches(cut, self.ops):
                reason = "cannot be fed, since it is in one branch of a condition; feed what enters it or the Merge that ends it"
        except errors.SavedModelError:  # what is behind the feed is not needed
            return
        if reason:
            raise errors.MalformedError(reason, file=self.file, node=ref.node, clause="V1-11")

    def _functional(self, extracted: Extracted) -> Extracted:
        """Control flow of TF 1.x as While and If (V1-11). Raises MalformedError: a result is inside of a loop."""
        if is_functional(extracted.function):
            return extracted
        for node in inside_of_loops(EditableFunction(extracted.function, self.ops)):
            reason = (
                "is inside of a while loop, where it has a value for each iteration; fetch what leaves the loop through an Exit"
            )
            raise errors.MalformedError(reason, file=self.file, node=node, clause="V1-11")
        functions = functionalise(extracted.function, self.ops, self._free_name)
        return dataclasses.replace(extracted, functions=tuple(functions))

    def _free_name(self, wanted: str) -> str:
        """Return a name for a function that is made here."""
        return self._function_names.take(re.sub(r"[^A-Za-z0-9_]", "_", wanted))

    def signature_function(self, key: str, *, unfed: bool = False) -> Extracted:
        """The function of SignatureDef ``key``: arguments sorted by name, results in order of the outputs' tensors."""
        signature = self.signatures[key]
        feeds = [Feed(item.name, item.tensor, item.dtype, item.shape) for item in signature.inputs]
        fetches = {f"{output.key}/{position}": ref for output in signature.outputs for position, ref in enumerate(output.tensors)}
        extracted = self.function(f"signature_{key}", feeds, fetches, unfed=unfed)
        self._check_inputs(signature)
        return extracted

    def create_function(self, resource: str) -> Extracted:
        """The function that makes the handle of ``resource`` (RES-03)."""
        hoisted = self._hoisted - {resource}
        cut = extract(self.graph, self.ops, f"create_{resource}", [], {"resource": Ref(resource, 0)}, hoisted=hoisted)
        return self._functional(cut)

    @functools.cached_property
    def restore_function(self) -> Optional[Extracted]:
        """The SaverDef's restore op as a function of the checkpoint prefix (V1-08), or None when there is no saver."""
        saver = self.meta_graph.saver_def
        if not saver.restore_op_name:
            return None
        filename = parse_ref(saver.filename_tensor_name)
        return self.function(
            "restore", [Feed("prefix", filename, STRING, schema.TensorShapeProto())], {}, [saver.restore_op_name.split(":")[0]]
        )

    @functools.cached_property
    def init_function(self) -> Optional[Extracted]:
        """What runs after the restore: main op, legacy init op, or (when the exporter named none) the collected initialisers.

        A collected initialiser that wants a placeholder was meant for training only and is left out; a named init op that
        does is an error.
        """
        targets = self._named_init()
        if targets is None:
            targets = [target for target in self._collected_initializers() if self._runs_unfed(target)]
        return self.function("init", [], {}, targets) if targets else None

    def _runs_unfed(self, target: str) -> bool:
        try:
            self.function(f"init_{target}", [], {}, [target])
        except UnfedPlaceholderError:
            return False
        return True

    def initializers_of(self, resource: str) -> list[str]:
        """Nodes that fill a resource: of the init function, or what the iterator was rewritten to."""
        if resource in self.fillers:
            return [self.fillers[resource]]
        return [name for name, used in self.acting(self.init_function) if resource in used]

    def acting(self, extracted: Optional[Extracted]) -> list[tuple[str, frozenset[str]]]:
        """Nodes of a function that may change something of the state: name, and the state they are handed.

        They put nothing out, as what fills a table or assigns a variable, or call a function, as initialisers of TF 2.
        """
        found = []
        for name in [node.name for node in extracted.function.node_def] if extracted is not None else ():
            node = self.graph.nodes[name]
            if not self.ops.outputs(node) or self._library.called(node) is not None:
                used = frozenset(ref.node for ref in map(self.handle, map(parse_ref, node.input)) if ref.index != CONTROL_INDEX)
                found.append((name, used & self._hoisted))
        return [(name, used) for name, used in found if used]

    def handle(self, ref: Ref) -> Ref:
        """The tensor that ``ref`` hands on unchanged."""
        seen = set()
        while ref.index != CONTROL_INDEX and ref.node in self.graph and ref not in seen:
            seen.add(ref)
            node = self.graph.nodes[ref.node]
            if node.op not in ("Identity", "IdentityN") or ref.index >= len(node.input):
                break
            ref = parse_ref(node.input[ref.index])
        return ref

    @functools.cached_property
    def tables(self) -> frozenset[str]:
        """Resources that are lookup tables."""
        return frozenset(name for name in self.resources if "HashTable" in self.graph.nodes[name].op)

    def _named_init(self) -> Optional[list[str]]:
        collections = self.meta_graph.collection_def
        named = self.meta_graph.signature_def
        if INIT_SIGNATURE in named:
            return [parse_ref(info.name).node for info in named[INIT_SIGNATURE].outputs.values()]
        for name in (MAIN_OP, LEGACY_INIT_OP):
            if name in collections and collections[name].node_list.value:
                return [parse_ref(text).node for text in collections[name].node_list.value]
        return None

    def _collected_initializers(self) -> list[str]:
        collections = self.meta_graph.collection_def
        tables = (
            [parse_ref(text).node for text in collections["table_initializer"].node_list.value]
            if "table_initializer" in collections
            else []
        )
        local = [
            parse_ref(definition.initializer_name).node
            for _, _, definition in variable_defs(self.meta_graph, ["local_variables"], self.file)
        ]
        return [name for name in dict.fromkeys(tables + local) if name in self.graph]

    def has_init_op(self) -> bool:
        """Whether the exporter named an init op; a table without one is not initialised in a Session (V1-08)."""
        return self._named_init() is not None


def compile_program(meta_graph: Any, file: str, op_def: Optional[Callable[[str], Any]] = None) -> Program:
    """The :class:`Program` of a MetaGraphDef message without an object graph.

    Args:
      meta_graph: the message; it is not modified.
      file: named in errors.
      op_def: op name -> OpDef message or None, for ops the MetaGraph does not describe.

    Raises:
      SavedModelError: the graph contradicts itself.
    """
    return Program(meta_graph, file, op_def)


def feeds_of(program: Program, feeds: Sequence[tuple[str, str]]) -> list[Feed]:
    """Feeds for :meth:`Program.function` from (argument name, tensor name) pairs."""
    out = []
    for name, tensor in feeds:
        ref = parse_ref(tensor)
        outputs = program.ops.outputs(program.graph.node(ref.node, name))
        if not 0 <= ref.index < len(outputs):
            raise errors.MalformedError(f"no tensor {tensor!r}", file=program.file, node=ref.node)
        out.append(Feed(name, ref, outputs[ref.index][2], placeholder_shape(program.graph, ref)))
    return out


def _signature(key: str, definition: Any) -> Signature:
    inputs = []
    for name, info in sorted(definition.inputs.items()):
        for part, ref, dtype, shape in _tensors(info):
            inputs.append(Input(f"{name}_{part}" if part else name, name, part, ref, dtype, shape))
    outputs = []
    for name, info in sorted(definition.outputs.items()):
        kind = {"coo_sparse": "sparse", "composite_tensor": "composite"}.get(info.WhichOneof("encoding"), "dense")
        outputs.append(Output(name, kind, tuple(ref for _, ref, _, _ in _tensors(info)), info))
    return Signature(key, definition.method_name, tuple(sorted(inputs, key=lambda item: item.name)), tuple(outputs))


def _tensors(info: Any) -> list[tuple[str, Ref, int, Any]]:
    """(part, tensor, DataType, shape) of a TensorInfo; the part is empty for a dense tensor."""
    encoding = info.WhichOneof("encoding")
    if encoding == "coo_sparse":
        sparse = info.coo_sparse
        names = (sparse.indices_tensor_name, sparse.values_tensor_name, sparse.dense_shape_tensor_name)
        rank = -1 if info.tensor_shape.unknown_rank else len(info.tensor_shape.dim)
        shapes = (_shape_proto(-1, rank), _shape_proto(-1), _shape_proto(rank))
        kinds = (INT64, info.dtype, INT64)
        return [(part, parse_ref(name), kind, shape) for part, name, kind, shape in zip(SPARSE_PARTS, names, kinds, shapes)]
    if encoding == "composite_tensor":
        components = info.composite_tensor.components
        return [(f"component_{i}", parse_ref(item.name), item.dtype, item.tensor_shape) for i, item in enumerate(components)]
    return [("", parse_ref(info.name), info.dtype, info.tensor_shape)]


def _may_be_one(one: Shape, other: Shape) -> bool:
    """Whether two shapes, partly unknown, may be those of one tensor."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(a == b or a is None or b is None for a, b in zip(one, other))


def _shape_proto(*sizes: int) -> Any:
    shape = schema.TensorShapeProto()
    for size in sizes:
        shape.dim.add(size=size)
    return shape

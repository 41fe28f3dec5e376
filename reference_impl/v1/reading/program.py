"""Represent a TF 1.x MetaGraph as functions over state.

Needs only the protos.

A session has one graph, feeds, fetches and ops that are run once. TF 2 has variables, resources and
functions that capture them. A :class:`Program` finds in a MetaGraph:

* variables: every ``VarHandleOp``, including those made from reference variables;
* resources: other stateful nodes that make a shared handle (tables, iterators, queues), each with a
  function that creates it;
* assets: tensors that represent a file of the model;
* signatures: one function per SignatureDef;
* restore and init: the functions that loading runs, in this order.

Functions are cut out on demand: a broken or unknown part affects only the functions that need it.

RFC: V1-01, V1-08, V1-10, V1-12
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
from reference_impl.format.names import RESERVED_SIGNATURES
from reference_impl.graph.closure import reversed_edges
from reference_impl.graph.damage import NONE as NO_DAMAGE
from reference_impl.graph.damage import Damage
from reference_impl.graph.edges import Edge, input_source, parse_input
from reference_impl.graph.node_index import Graph
from reference_impl.graph.op_table import OpTable
from reference_impl.graph.references import FunctionIndex
from reference_impl.graph.unique_names import UniqueNames
from reference_impl.graph.variable_defs import trainable_nodes
from reference_impl.v1.reading.control_flow.editable_function import EditableFunction
from reference_impl.v1.reading.control_flow.frames import inside_of_loops
from reference_impl.v1.reading.control_flow.functionalise import (
    functionalise,
    functionalise_library,
    is_functional,
)
from reference_impl.v1.reading.extract import (
    Extracted,
    Feed,
    UnfedPlaceholderError,
    extract,
)
from reference_impl.v1.reading.feed_check import check_feed
from reference_impl.v1.reading.init_nodes import init_nodes
from reference_impl.v1.reading.inlining import inline_makers
from reference_impl.v1.reading.references import rewrite_references
from reference_impl.v1.reading.session_ops import (
    call_gradient_functions,
    rewrite_one_shot_iterators,
)
from reference_impl.v1.reading.shared_handles import makes_shared_handle, merge_by_shared_name
from reference_impl.v1.reading.signatures import GraphCheck, read_signature


@dataclass(frozen=True)
class Variable:
    """A variable node; ``shape`` is a TensorShapeProto."""

    name: str
    dtype: int
    shape: Any
    trainable: bool


class Program:
    """The variables, resources, assets, signatures and functions of a MetaGraph without objects,
    found without running anything.

    `op_def` returns the OpDef of an op that the MetaGraph does not describe, or None. The parts in
    `damage` are not rewritten; a function that needs a damaged node cannot be cut out.

    Attributes:
      graph: the main graph, after reference variables and one-shot iterators were replaced.
      fillers: iterator -> the node that fills it.
      signatures: key -> Signature, without reserved ones.
      false_statements: statements of SignatureDefs about tensors that the graph contradicts.
      variables, resources: those of the graph, in its order.
      assets: tensor that loading feeds with the path of a file -> file name of the AssetFileDef.
      hoisted: the nodes of all state, including assets: functions capture their handles.
    """

    def __init__(
        self,
        meta_graph: schema.MetaGraphDef,
        file: str,
        op_def: Callable[[str], Optional[Any]],
        damage: Damage = NO_DAMAGE,
    ):
        self.file = file
        self.meta_graph = meta_graph
        self.ops = OpTable(meta_graph, file, op_def)
        self._function_names = UniqueNames(self.ops.library)
        graph_def = schema.copy_of(meta_graph.graph_def)
        call_gradient_functions(graph_def, damage)
        functionalise_library(graph_def.library, self.ops, self._free_name, damage.functions)
        self.graph = Graph(graph_def, file, damage.nodes)
        inlined = inline_makers(self.graph, self.ops, self._makes_shared_handle, damage.functions)
        self.fillers = rewrite_one_shot_iterators(self.graph)
        check = GraphCheck(self.graph, self.ops)
        self.signatures = {
            key: check.as_in_graph(read_signature(key, definition))
            for key, definition in sorted(meta_graph.signature_def.items())
            if key not in RESERVED_SIGNATURES
        }
        self.false_statements = check.false_statements
        fetched: list[Edge] = []
        for signature in self.signatures.values():
            for output in signature.outputs:
                fetched += output.tensors
        self.rewrite = rewrite_references(self.graph, self.ops, fetched)
        merge_by_shared_name(self.graph, self.ops, inlined)
        self.variables = self._variables()
        self.assets = {
            parse_input(asset.tensor_info.name): asset.filename
            for asset in asset_definitions(meta_graph, file)
        }
        self.resources = tuple(node.name for node in self.graph if self._makes_shared_handle(node))
        self._library = FunctionIndex(graph_def.library)
        self.hoisted = frozenset(
            [
                *(variable.name for variable in self.variables),
                *self.resources,
                *(ref.source for ref in self.assets),
            ]
        )

    # -- state
    # ----------------------------------------------------------------------------------------------

    def _variables(self) -> tuple[Variable, ...]:
        trainable = trainable_nodes(self.meta_graph, self.file)
        handles = [node for node in self.graph if node.op == "VarHandleOp"]
        return tuple(
            [
                Variable(
                    node.name,
                    node.attr["dtype"].type,
                    node.attr["shape"].shape,
                    node.name in trainable,
                )
                for node in handles
            ]
        )

    def _makes_shared_handle(self, node: schema.NodeDef) -> bool:
        return makes_shared_handle(self.ops, node)

    # -- functions
    # ----------------------------------------------------------------------------------------------

    def function(
        self,
        name: str,
        feeds: Sequence[Feed],
        fetches: Mapping[str, Edge],
        targets: Sequence[str] = (),
        *,
        unfed: bool = False,
    ) -> Extracted:
        """Cut a function out of the graph, as `extract` does."""
        fed = {feed.tensor for feed in feeds}
        for ref in fed:
            check_feed(self.graph, self.ops, self.hoisted, ref)
        hoisted = self.hoisted - {ref.source for ref in fed}
        values = {
            result: ref if ref in fed else self.rewrite.value(ref)
            for result, ref in fetches.items()
        }
        cut = extract(
            self.graph, self.ops, name, feeds, values, targets=targets, hoisted=hoisted, unfed=unfed
        )
        return self._functional(cut)

    def _functional(self, extracted: Extracted) -> Extracted:
        """Convert the TF 1.x control flow of a function to While and If.

        Raises MalformedError if a result is inside a loop.
        """
        if is_functional(extracted.function):
            return extracted
        for node in inside_of_loops(EditableFunction(extracted.function, self.ops)):
            reason = (
                "is inside of a while loop, where it has a value for each iteration; fetch what"
                " leaves the loop through an Exit"
            )
            raise errors.MalformedError(reason, file=self.file, node=node, clause="V1-11")
        functions = functionalise(extracted.function, self.ops, self._free_name)
        return dataclasses.replace(extracted, functions=tuple(functions))

    def _free_name(self, wanted: str) -> str:
        """Return a name for a function that is made here."""
        return self._function_names.take(re.sub(r"[^A-Za-z0-9_]", "_", wanted))

    def signature_function(self, key: str, *, unfed: bool = False) -> Extracted:
        """Return the function of a SignatureDef: arguments sorted by name, results in the order of
        the outputs' tensors.
        """
        signature = self.signatures[key]
        fetches: dict[str, Edge] = {}
        for output in signature.outputs:
            for position, ref in enumerate(output.tensors):
                fetches[f"{output.key}/{position}"] = ref
        extracted = self.function(f"signature_{key}", signature.inputs, fetches, unfed=unfed)
        for item in signature.inputs:
            node = self.graph.nodes.get(item.tensor.source)
            if node is None or self.ops.output(node, item.tensor) is None:
                reason = (
                    f"input {item.name!r} is the tensor {item.tensor.text!r}, which is not in the"
                    " graph; correct it"
                )
                raise errors.MalformedError(
                    reason, file=self.file, node=signature.key, clause="V1-01"
                )
        return extracted

    def saved_signature(self, key: str) -> tuple[Extracted, Optional[UnfedPlaceholderError]]:
        """Return the function of a SignatureDef, and the reason why its calls fail although it can
        be saved.
        """
        try:
            return self.signature_function(key), None
        except UnfedPlaceholderError as error:
            return self.signature_function(key, unfed=True), error

    def create_function(self, resource: str) -> Extracted:
        """Return the function that makes the handle of a resource."""
        hoisted = self.hoisted - {resource}
        cut = extract(
            self.graph,
            self.ops,
            f"create_{resource}",
            [],
            {"resource": Edge(resource)},
            hoisted=hoisted,
        )
        return self._functional(cut)

    @functools.cached_property
    def restore_function(self) -> Optional[Extracted]:
        """The SaverDef's restore op as a function of the checkpoint prefix, or None without a
        SaverDef.
        """
        name = self.meta_graph.saver_def.restore_op_name
        return self.restoring([input_source(name)]) if name else None

    def restoring(self, targets: Sequence[str]) -> Extracted:
        """Return a function of the checkpoint prefix that runs nodes of the restore op."""
        prefix = parse_input(self.meta_graph.saver_def.filename_tensor_name)
        return self.function(
            "restore",
            [Feed("prefix", prefix, schema.DT_STRING, schema.TensorShapeProto())],
            {},
            targets,
        )

    @functools.cached_property
    def init_function(self) -> Optional[Extracted]:
        """The function that runs after the restore: main op, legacy init op, or else the collected
        initialisers.

        A collected initialiser that needs a placeholder was meant for training only and is left
        out. A named init op that needs one is an error.
        """
        targets = init_nodes(self.meta_graph, self.graph, self.hoisted, self.file)
        return self.function("init", [], {}, targets) if targets else None

    def initializers_of(self, resource: str) -> list[str]:
        """Return the nodes that fill a resource: those of the init function, or the one that fills
        a former one-shot iterator.
        """
        if resource in self.fillers:
            return [self.fillers[resource]]
        return self._initializers.get(resource, [])

    @functools.cached_property
    def _initializers(self) -> dict[str, list[str]]:
        """Variable or resource -> the nodes of the init function that act on it."""
        return reversed_edges(self.acting(self.init_function))

    def acting(self, extracted: Optional[Extracted]) -> list[tuple[str, frozenset[str]]]:
        """Return the nodes of a function that may change state: name, and the variables and
        resources that they take.

        Such nodes have no outputs, like assignments, call a function, like initialisers of TF 2, or
        have an op that nothing describes.
        """
        found = []
        for name in (
            [node.name for node in extracted.function.node_def] if extracted is not None else ()
        ):
            node = self.graph.nodes[name]
            if (
                self.ops.get(node.op) is None
                or not self.ops.outputs(node)
                or self._library.called(node) is not None
            ):
                used = frozenset(
                    ref.source
                    for ref in map(self.handle, map(parse_input, node.input))
                    if not ref.is_control
                )
                found.append((name, used & self.hoisted))
        return [(name, used) for name, used in found if used]

    def handle(self, ref: Edge) -> Edge:
        """Return the tensor that ``ref`` passes on unchanged."""
        seen = set()
        while not ref.is_control and ref.source in self.graph and ref not in seen:
            seen.add(ref)
            node = self.graph.nodes[ref.source]
            if (
                node.op not in ("Identity", "IdentityN")
                or ref.number is None
                or ref.number >= len(node.input)
            ):
                break
            ref = parse_input(node.input[ref.number])
        return ref

"""Newer ops replaced by older ones, each with the reason why the answer is the same; a node that
does not fit stays as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.values.tensor_proto import decode
from reference_impl.graph.edges import parse_input
from reference_impl.graph.node_attributes import argument_shape
from reference_impl.graph.unique_names import unique_name
from savedmodel_tools.downgrade.attrs import Change
from savedmodel_tools.skew.history import History

MAX_KEYS = 10_000  # of a parsed example: each becomes a node


@dataclass
class Scope:
    """A main graph (``function`` None), or the body of a function: its nodes, and what is known of
    the shapes in it.
    """

    nodes: Any
    function: Optional[schema.FunctionDef]

    def __post_init__(self) -> None:
        self.by_name: dict[str, schema.NodeDef] = {node.name: node for node in self.nodes}
        self.used: set[tuple[str, str]] = set()
        texts = list(itertools.chain.from_iterable(node.input for node in self.nodes))
        texts += list(self.function.ret.values()) if self.function is not None else []
        for text in texts:
            edge = parse_input(text, self.function is not None)
            self.used.add((edge.source, edge.port))

    def constant(self, text: str) -> Optional[Any]:
        """The value of the constant that an input names; None for anything else."""
        node = self.by_name.get(parse_input(text, self.function is not None).source)
        if node is None or node.op != "Const" or "value" not in node.attr:
            return None
        try:
            return np.asarray(decode(node.attr["value"].tensor))
        except SavedModelError:
            return None

    def rank(self, text: str) -> Optional[int]:
        """The rank of an input, where the model says it."""
        edge = parse_input(text, self.function is not None)
        node = self.by_name.get(edge.source)
        if node is not None:
            if (
                node.op in ("Placeholder", "PlaceholderWithDefault")
                and "shape" in node.attr
                and node.attr["shape"].HasField("shape")
            ):
                return _rank(node.attr["shape"].shape)
            said = (
                list(node.attr["_output_shapes"].list.shape)
                if "_output_shapes" in node.attr
                else []
            )
            return _rank(said[0]) if len(said) == 1 else None
        if self.function is None:
            return None
        for index, argument in enumerate(self.function.signature.input_arg):
            noted = argument_shape(self.function, index) if argument.name == edge.source else None
            if noted is not None:
                return _rank(noted)
        return None

    def free(self, name: str) -> str:
        """Return a name like ``name`` that no node has yet."""
        return unique_name(name, self.by_name)


def _rank(shape: Any) -> Optional[int]:
    return None if shape.unknown_rank else len(shape.dim)


Rewrite = Callable[[schema.NodeDef, Scope], str]


@dataclass(frozen=True)
class Replacement:
    """``rewrite`` changes attrs and inputs of a node, not its op, and returns ""; else it returns
    what is needed.
    """

    op: str
    why: str
    rewrite: Rewrite


def _as_it_is(node: schema.NodeDef, scope: Scope) -> str:
    return ""


def _batch_mat_mul(node: schema.NodeDef, scope: Scope) -> str:
    types = {node.attr[name].type for name in ("Ta", "Tb", "Tout")}
    if len(types) != 1:
        return "its inputs and output are of one dtype"
    for name in ("Ta", "Tb", "Tout"):
        del node.attr[name]
    node.attr["T"].type = types.pop()
    return ""


def _batch_norm(node: schema.NodeDef, scope: Scope) -> str:
    output = "reserve_space_3" if scope.function is not None else "5"
    used = {(node.name, output), (node.name, f"{output}:0")} & scope.used
    return "nobody uses its output reserve_space_3 (it is for gradients)" if used else ""


def _parse_example(node: schema.NodeDef, scope: Scope) -> str:
    """ParseExampleV2 takes the keys as vectors, also scalars for examples, and gives ragged
    features besides.
    """
    data = [text for text in node.input if not text.startswith("^")]
    if len(data) < 5:
        return "it has its inputs"
    serialized, names, sparse_keys, dense_keys, _, *defaults = data
    if node.attr["ragged_value_types"].list.type or node.attr["ragged_split_types"].list.type:
        return "it gives no ragged features"
    if scope.rank(serialized) != 1:
        return "its examples are a vector, and the model says so"
    keys = [scope.constant(sparse_keys), scope.constant(dense_keys)]
    found = [None if value is None else value.ravel().tolist() for value in keys]
    sparse, dense = found
    if sparse is None or dense is None or len(sparse) + len(dense) > MAX_KEYS:
        return f"its keys are constants, at most {MAX_KEYS}"
    if len(sparse) != node.attr["num_sparse"].i or len(dense) != len(node.attr["Tdense"].list.type):
        return "it has a key for each feature"
    new = [_key(scope, node, f"sparse_key_{index}", value) for index, value in enumerate(sparse)]
    new += [_key(scope, node, f"dense_key_{index}", value) for index, value in enumerate(dense)]
    controls = [text for text in node.input if text.startswith("^")]
    del node.input[:]
    node.input.extend([serialized, names, *new, *defaults, *controls])
    for name in ("num_sparse", "ragged_value_types", "ragged_split_types"):
        node.attr.pop(name, None)
    node.attr["Nsparse"].i, node.attr["Ndense"].i = len(sparse), len(dense)
    return ""


def _key(scope: Scope, user: schema.NodeDef, name: str, value: bytes) -> str:
    """A scalar constant; how the user names its output."""
    node = scope.nodes.add()
    node.name, node.op, node.device = scope.free(f"{user.name}/{name}"), "Const", user.device
    node.attr["dtype"].type = schema.DT_STRING
    tensor = node.attr["value"].tensor
    tensor.dtype = schema.DT_STRING
    tensor.tensor_shape.SetInParent()
    tensor.string_val.append(value)
    node.attr["_output_shapes"].list.shape.add()
    scope.by_name[node.name] = node
    return f"{node.name}:output:0" if scope.function is not None else node.name


REPLACEMENTS: Mapping[str, Replacement] = {
    "AddV2": Replacement("Add", "AddV2 is Add without strings", _as_it_is),
    "BatchMatMulV3": Replacement(
        "BatchMatMulV2", "with one dtype for all they are one op", _batch_mat_mul
    ),
    "FusedBatchNormV3": Replacement(
        "FusedBatchNormV2", "V3 only gives one output more", _batch_norm
    ),
    "ParseExampleV2": Replacement(
        "ParseExample",
        "without ragged features and for a vector of examples they are one op",
        _parse_example,
    ),
    "StatelessCase": Replacement("Case", "a stateful op runs the same branches", _as_it_is),
    "StatelessIf": Replacement("If", "a stateful op runs the same branches", _as_it_is),
    "StatelessWhile": Replacement("While", "a stateful op runs the same body", _as_it_is),
}


def replace(
    node: schema.NodeDef, scope: Scope, index: int, table: History
) -> tuple[Optional[Change], str]:
    """Make the node one of an older op if the release lacks its own; what was done, or what would
    have been needed.
    """
    known, instead = table.op(node.op), REPLACEMENTS.get(node.op)
    if known is None or instead is None or known.definition(index) is not None:
        return None, ""
    older = table.op(instead.op)
    if older is None or older.definition(index) is None:
        return None, ""
    needed = instead.rewrite(node, scope)
    if needed:
        return None, f"it becomes {instead.op} where {needed}"
    change = Change("replace_op", node.op, f"'{node.op}' replaced by '{instead.op}': {instead.why}")
    node.op = instead.op
    return change, ""

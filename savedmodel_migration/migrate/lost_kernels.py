"""Ops that TensorFlow has dropped, or whose kernels it has, replaced by core ops that compute the
same.

A replacement is made only where it is exact for every value, NaN and infinities among them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Optional

import numpy as np

from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.format.values.tensor_proto import encode
from reference_impl.graph.edges import data_inputs
from reference_impl.graph.function_builder import replace_tensors
from reference_impl.graph.node_defs import set_constant
from reference_impl.graph.references import all_nodes, bodies
from savedmodel_tools.changed_copy import write_copy
from savedmodel_tools.downgrade.replace import Scope


class _Writer:
    """Adds nodes beside a node: on its device, and after the nodes that it waits for."""

    def __init__(self, node: schema.NodeDef, scope: Scope) -> None:
        self._prefix, self._device, self._scope = node.name, node.device, scope
        self._controls = [text for text in node.input if text.startswith("^")]

    def constant(self, name: str, value: int | list[int]) -> str:
        """Add an int32 constant. Return the text of its tensor."""
        node = self._node(name, "Const")
        set_constant(node, encode(np.array(value, np.int32)))
        return self._text(node, "output")

    def add(self, op: str, output: str, inputs: Sequence[str], **types: int) -> str:
        """Add a node whose only output argument is ``output``, with attrs that are dtypes.

        Return the text of its tensor.
        """
        node = self._node(op, op)
        node.input.extend([*inputs, *self._controls])
        for name, dtype in types.items():
            node.attr[name].type = dtype
        return self._text(node, output)

    def squeeze(self, text: str) -> str:
        """Add a Squeeze of the first axis of an int32 tensor. Return the text of its tensor."""
        squeezed = self.add("Squeeze", "output", [text], T=schema.DT_INT32)
        self._scope.by_name[squeezed.partition(":")[0]].attr["squeeze_dims"].list.i.append(0)
        return squeezed

    def _node(self, name: str, op: str) -> schema.NodeDef:
        node: schema.NodeDef = self._scope.nodes.add()
        node.name, node.op, node.device = (
            self._scope.free(f"{self._prefix}/{name}"),
            op,
            self._device,
        )
        self._scope.by_name[node.name] = node
        return node

    def _text(self, node: schema.NodeDef, output: str) -> str:
        return f"{node.name}:{output}:0" if self._scope.function is not None else node.name


def _bucketize(node: schema.NodeDef, scope: Scope) -> bool:
    """Count the boundaries below each value with LowerBound.

    The last bucket has no upper end.

    The kernel was std::lower_bound, and so is that of LowerBound: NaN is in bucket 0, and a value
    that equals a boundary is in the bucket below. Bucketize puts both into other buckets. Moving
    its boundaries to the next number would not be exact: TensorFlow computes with the number after
    0 as 0.
    """
    count, texts = node.attr["num_features"].i, data_inputs(node)
    if len(texts) != 2 * count:
        return False
    out = _Writer(node, scope)
    first, one = out.constant("axis", 0), out.constant("one", 1)
    single = {"T": schema.DT_FLOAT, "Tdim": schema.DT_INT32}
    found = []
    for values, boundaries in zip(texts[:count], texts[count:]):
        rows = [
            out.add("ExpandDims", "output", [text, first], **single)
            for text in (boundaries, values)
        ]
        below = out.add("LowerBound", "output", rows, T=schema.DT_FLOAT, out_type=schema.DT_INT32)
        size = out.add("Size", "output", [boundaries], T=schema.DT_FLOAT, out_type=schema.DT_INT32)
        last = out.add("Sub", "z", [size, one], T=schema.DT_INT32)
        bucket = out.add("Minimum", "z", [out.squeeze(below), last], T=schema.DT_INT32)
        found.append(out.add("Maximum", "z", [bucket, first], T=schema.DT_INT32))
    _become_identities(node, scope, found, "buckets")
    return True


def _bucketize_by_input(node: schema.NodeDef, scope: Scope) -> bool:
    """Count the boundaries that a value has reached with UpperBound: both kernels are
    std::upper_bound.

    The op took the boundaries as numbers of the dtype of its values, and failed if they were not
    sorted.
    """
    texts, dtype = data_inputs(node), node.attr["T"].type
    if len(texts) != 2 or dtype not in (
        schema.DT_FLOAT,
        schema.DT_DOUBLE,
        schema.DT_INT32,
        schema.DT_INT64,
    ):
        return False
    values, boundaries = texts
    out, shaped = _Writer(node, scope), {"T": dtype, "Tshape": schema.DT_INT32}
    if dtype != schema.DT_FLOAT:
        boundaries = out.add("Cast", "y", [boundaries], SrcT=schema.DT_FLOAT, DstT=dtype)
    row = out.constant("row", [1, -1])
    rows = [out.add("Reshape", "output", [text, row], **shaped) for text in (boundaries, values)]
    reached = out.add("UpperBound", "output", rows, T=dtype, out_type=schema.DT_INT32)
    shape = out.add("Shape", "output", [values], T=dtype, out_type=schema.DT_INT32)
    node.op = "Reshape"
    node.input[:] = [reached, shape, *(text for text in node.input if text.startswith("^"))]
    node.attr["T"].type = node.attr["Tshape"].type = schema.DT_INT32
    return True


def _become_identities(
    node: schema.NodeDef, scope: Scope, tensors: Sequence[str], output: str
) -> None:
    """Make a node an IdentityN of int32 tensors, so that the users of its outputs need not
    change.
    """
    controls = [text for text in node.input if text.startswith("^")]
    node.op = "IdentityN"
    node.input[:] = [*tensors, *controls]
    del node.attr["num_features"]
    node.attr["T"].list.type.extend([schema.DT_INT32] * len(tensors))
    before, after = f"{node.name}:{output}:", f"{node.name}:output:"
    if scope.function is not None:
        replace_tensors(
            scope.function,
            lambda text: text.replace(before, after, 1) if text.startswith(before) else text,
        )


# Every release that reference_impl runs in lacks the kernels of these ops. A rewrite returns False
# for a node that it cannot read.
REWRITES: Mapping[str, Callable[[schema.NodeDef, Scope], bool]] = {
    "BoostedTreesBucketize": _bucketize,
    "BucketizeWithInputBoundaries": _bucketize_by_input,
}


def rewritten(message: schema.SavedModel) -> tuple[Optional[schema.SavedModel], list[str]]:
    """Return a copy of a model with core ops in place of those without a kernel, and what was
    replaced; None if nothing was.
    """
    nodes_of_graphs = (all_nodes(graph.graph_def) for graph in message.meta_graphs)
    every_node = itertools.chain.from_iterable(nodes_of_graphs)
    if not any(node.op in REWRITES for node in every_node):
        return None, []
    copy = schema.copy_of(message)
    counted: Counter[str] = Counter()
    for graph in copy.meta_graphs:
        for scope in [Scope(nodes, function) for function, nodes in bodies(graph.graph_def)]:
            for node in [node for node in scope.nodes if node.op in REWRITES]:
                op = node.op
                counted[op] += REWRITES[op](node, scope)
    told = [
        f"{count} x {op} replaced by core ops that compute the same"
        for op, count in counted.items()
        if count
    ]
    return (copy, told) if told else (None, [])


def convertible(source: Path, place: Path) -> tuple[Path, list[str]]:
    """Return the directory of a model, or of its copy in ``place`` without ops that lost their
    kernels; and what was replaced.

    Raises SavedModelError.
    """
    found = layout.read(source)
    message, told = rewritten(found.saved_model)
    if message is None:
        return source, []
    write_copy(found, message, place)
    return place, told

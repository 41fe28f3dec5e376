"""Guard the inputs whose value a kernel trusts: a length that it allocates, a tensor of one
element, a number of dimensions.

Such a value may be a constant, a captured tensor, an argument or be computed. So a guard is
computed too: where the value is sound, it hands it on, and otherwise the kernel or the guard fails
with an error.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.graph.edges import data_inputs, input_source
from reference_impl.graph.node_attributes import LENGTHS
from reference_impl.graph.node_defs import int_tensor, integers_of_constant, set_constant
from reference_impl.graph.unique_names import UniqueNames

# Op -> the attributes that say how many inputs, from the third on, the kernel takes for one element
# each: another size ends the process.
_ONE_ELEMENT = {
    "ParseExample": ("Nsparse", "Ndense"),
    "ParseSingleSequenceExample": (
        "Ncontext_sparse",
        "Ncontext_dense",
        "Nfeature_list_sparse",
        "Nfeature_list_dense",
    ),
}
# Op -> the position of its axis (-1: the last), which the graph optimizer takes for one number.
_AXIS = {"Concat": 0, "ConcatV2": -1}
OF_ONE_ELEMENT = frozenset({*_ONE_ELEMENT, *_AXIS})  # ops that `faults` looks at
# Op -> the dimensions of its first input that the kernel of oneDNN takes for granted.
_DIMENSIONS = {"Conv2D": 4, "DepthwiseConv2dNative": 4, "Conv3D": 5}


def _ops(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Ops whose output has as many dimensions as their first input, where they accept that.
_LIKE_FIRST = _ops("""
    Abs Add AddV2 BiasAdd Cast Div Elu Identity LeakyRelu Maximum Minimum MirrorPad Mul Neg Pad
    PadV2 RealDiv Relu Relu6 Rsqrt Selu Sigmoid Softplus Sqrt Square StopGradient Sub Tanh
    """)
# Ops that refuse a first input of other dimensions, and return as many.
_OF_DIMENSIONS = {
    4: _ops("""
        AvgPool Conv2D DepthwiseConv2dNative FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 LRN
        MaxPool MaxPoolV2 ResizeBilinear ResizeNearestNeighbor
        """),
    5: _ops("AvgPool3D Conv3D MaxPool3D"),
}
GUARDED = frozenset({*LENGTHS, *_ONE_ELEMENT, *_AXIS, *_DIMENSIONS})


def guard(function: schema.FunctionDef) -> None:
    """Put guards before the trusted inputs of a function, in place.

    Its nodes keep their names.

    Raises MalformedError, without the file: such a node takes a whole list as one input, so its
    inputs cannot be told apart.
    """
    guarded = [node for node in function.node_def if node.op in GUARDED]
    if not guarded:
        return
    body = _Body(function)
    for node in guarded:
        # An axis is the first or the last input, whatever the lists between hold.
        if node.op not in _AXIS and any(map(body.is_list, data_inputs(node))):
            raise errors.MalformedError("an input is a whole list", node=node.name)
        if node.op in LENGTHS:
            body.guard_length(node, LENGTHS[node.op])
        elif node.op in _DIMENSIONS:
            body.guard_dimensions(node, _DIMENSIONS[node.op])
        else:
            for position in _elements(node):
                body.guard_element(node, position, *_element_type(node))


def faults(nodes: Sequence[schema.NodeDef]) -> Iterator[tuple[schema.NodeDef, str]]:
    """Yield the nodes of a body that take a constant for one element which is none, with the
    fault.
    """
    takers = [node for node in nodes if node.op in OF_ONE_ELEMENT]
    constants = (
        {node.name: node for node in nodes if node.op == "Const" and "value" in node.attr}
        if takers
        else {}
    )
    for node in takers:
        inputs = data_inputs(node)
        for position in _elements(node):
            constant = constants.get(input_source(inputs[position], True))
            sizes = (
                [dim.size for dim in constant.attr["value"].tensor.tensor_shape.dim]
                if constant is not None
                else []
            )
            if any(size != 1 for size in sizes):
                what = "number" if node.op in _AXIS else "text"
                yield node, f"takes a constant of shape {sizes[:8]} for one {what}"


def _element_type(node: schema.NodeDef) -> tuple[int, bool]:
    """Return the dtype of such an input, and whether a constant of one element is left as it is."""
    if node.op not in _AXIS:
        return schema.DT_STRING, False
    # The graph optimizer looks at constants alone, and reads those of shape [1], too.
    kind = node.attr["Tidx"].type if "Tidx" in node.attr else 0
    return kind or schema.DT_INT32, True


def _elements(node: schema.NodeDef) -> range:
    """Return the positions of the inputs that a kernel takes for one element each."""
    if node.op in _AXIS:
        count = len(data_inputs(node))
        return range(_AXIS[node.op] % count, _AXIS[node.op] % count + 1) if count else range(0)
    count = sum(max(node.attr[name].i, 0) for name in _ONE_ELEMENT[node.op] if name in node.attr)
    return range(2, min(2 + count, len(data_inputs(node))))


class _Body:
    """The nodes of a function, to which guards are added."""

    def __init__(self, function: schema.FunctionDef):
        self._function = function
        self._nodes = {node.name: node for node in function.node_def}
        self.arguments = frozenset(argument.name for argument in function.signature.input_arg)

    @functools.cached_property
    def _names(self) -> UniqueNames:
        return UniqueNames([*self.arguments, *self._nodes])

    def is_list(self, text: str) -> bool:
        """Return whether an input may be all tensors of an output, as ``split:output``."""
        return not text.rpartition(":")[2].isdecimal() and text not in self.arguments

    def guard_length(self, node: schema.NodeDef, position: int) -> None:
        """Make a length that is too large -1, which the kernel refuses.

        Constant lengths are checked when a function is read.
        """
        if position >= len(data_inputs(node)):
            return
        text = node.input[position]
        if integers_of_constant(self._constant(text), 1) is not None or self._is_guarded_length(
            text
        ):
            return
        limit = self._number(node, text, "limit", limits.TENSOR_LIST_ELEMENTS_AT_RUN_TIME)
        nothing = self._number(node, text, "refused", -1)
        fits = self._add(node, "fits", "LessEqual", text, limit)
        fits.attr["T"].type = schema.DT_INT32
        length = self._add(node, "length", "SelectV2", f"{fits.name}:z:0", text, nothing)
        length.attr["T"].type = schema.DT_INT32
        node.input[position] = f"{length.name}:output:0"

    def _is_guarded_length(self, text: str) -> bool:
        """Return whether a length is what `guard_length` makes, as in a model that was loaded by us
        and saved by TensorFlow.
        """
        select = self._made_by(text, "SelectV2")
        inputs = data_inputs(select) if select is not None else []
        fits = self._made_by(inputs[0], "LessEqual") if len(inputs) == 3 else None
        compared = data_inputs(fits) if fits is not None else []
        if len(compared) != 2 or compared[0] != inputs[1]:
            return False
        limit = integers_of_constant(self._constant(compared[1]), 1)
        refused = integers_of_constant(self._constant(inputs[2]), 1)
        if not limit or refused != [-1]:
            return False
        return limit[0] <= limits.TENSOR_LIST_ELEMENTS_AT_RUN_TIME

    def _made_by(self, text: str, op: str) -> schema.NodeDef | None:
        """Return the node of a tensor if it is of this op."""
        node = self._nodes.get(input_source(text, True))
        return node if node is not None and node.op == op else None

    def guard_element(
        self, node: schema.NodeDef, position: int, dtype: int, accepts_vector: bool
    ) -> None:
        """Make a tensor a scalar, which fails if it has not one element.

        Args:
          node: the node that takes it.
          position: of the input.
          dtype: of the tensor.
          accepts_vector: whether a constant with one element may have dimensions.
        """
        text = node.input[position]
        constant = self._constant(text)
        if constant is not None:
            sizes = [dim.size for dim in constant.attr["value"].tensor.tensor_shape.dim]
            if not sizes or (accepts_vector and all(size == 1 for size in sizes)):
                return
        reshape = self._made_by(text, "Reshape")
        shape = (
            self._constant(data_inputs(reshape)[1])
            if reshape is not None and len(data_inputs(reshape)) == 2
            else None
        )
        if shape is not None and [
            dim.size for dim in shape.attr["value"].tensor.tensor_shape.dim
        ] == [0]:
            return  # it makes a scalar
        scalar = self._number(node, text, "scalar", [])
        element = self._add(node, "element", "Reshape", text, scalar)
        element.attr["T"].type, element.attr["Tshape"].type = dtype, schema.DT_INT32
        node.input[position] = f"{element.name}:output:0"

    def guard_dimensions(self, node: schema.NodeDef, count: int) -> None:
        """Let the first input of a node fail if it has other dimensions.

        The guard is put where the tensor comes from, so that the graph optimizer still fuses what
        lies between.
        """
        last, seen = node, {node.name}
        while True:
            inputs = data_inputs(last)
            maker = self._nodes.get(input_source(inputs[0], True)) if inputs else None
            if not inputs or (maker is not None and maker.op in _OF_DIMENSIONS[count]):
                return
            if maker is None or maker.op not in _LIKE_FIRST or maker.name in seen:
                break
            last = maker
            seen.add(maker.name)
        kind = next((last.attr[key].type for key in ("T", "SrcT") if key in last.attr), None)
        if kind is None or self._has_dimensions(inputs[0], count):
            return
        ensured = self._add(last, "ensured", "EnsureShape", inputs[0])
        ensured.attr["T"].type = kind
        for _ in range(count):
            ensured.attr["shape"].shape.dim.add(size=-1)
        last.input[0] = f"{ensured.name}:output:0"

    def _has_dimensions(self, text: str, count: int) -> bool:
        """Return whether a node ensures that a tensor has this number of dimensions."""
        ensured = self._made_by(text, "EnsureShape")
        shape = (
            ensured.attr["shape"].shape if ensured is not None and "shape" in ensured.attr else None
        )
        return shape is not None and not shape.unknown_rank and len(shape.dim) == count

    def _constant(self, text: str) -> schema.NodeDef | None:
        node = self._nodes.get(input_source(text, True))
        return node if node is not None and node.op == "Const" and "value" in node.attr else None

    def _number(self, node: schema.NodeDef, beside: str, name: str, value: int | list[int]) -> str:
        """Add a constant in the frame of a loop in which the tensor `beside` is; return the text of
        its tensor.
        """
        made = self._add(node, name, "Const")
        set_constant(made, int_tensor(value))
        source = input_source(beside, True)
        if source in self._nodes:
            made.input.append(f"^{source}")
        return f"{made.name}:output:0"

    def _add(self, node: schema.NodeDef, name: str, op: str, *inputs: str) -> schema.NodeDef:
        made = self._function.node_def.add(
            name=self._names.take(f"{node.name}/{name}"), op=op, input=inputs
        )
        made.device = node.device
        return made

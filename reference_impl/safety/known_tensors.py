"""What is known of a tensor before anything runs: its dtype, its shape and, if it is small, its
numbers.

`OPS` computes that for the output of a node from the known parts of its inputs. The bounds of
`folded_sizes` may be too high; here a shape is the one that the tensor will have, and anything else
is unknown.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Optional

from reference_impl.errors import SavedModelError
from reference_impl.format import limits, schema
from reference_impl.format.values import dtypes
from reference_impl.format.values.shapes import has_valid_rank
from reference_impl.graph.node_defs import integers_of_constant, strings_of_constant
from reference_impl.safety.folded_sizes import floats_of_constant

_TEXT = 24  # bytes of an empty text in a tensor
_ARRAY_ENTRY = 64  # bytes of an entry of a tensor array, at least
_LIST_ENTRY = 32  # bytes of an entry of a list of tensors
_BUCKETS = 1 << 17  # of a dense table whose node does not say how many
_HUGE = 1 << 200
_INTEGERS = (schema.DT_INT8, schema.DT_INT16, schema.DT_INT32, schema.DT_INT64)
Number = float  # or int


class Known(NamedTuple):
    """What is known of a tensor; by default nothing."""

    dtype: int = 0
    shape: Optional[tuple[int, ...]] = None
    values: Optional[tuple[Number, ...]] = None  # in row-major order
    text: int = 0  # bytes of all its texts together
    held: Optional[Known] = (
        None  # the content of the variable whose handle it is; an element if it is a list
    )

    @property
    def size(self) -> int:
        """The number of elements; 0 if it is not known."""
        return 0 if self.shape is None else min(math.prod(self.shape), _HUGE)

    @property
    def bytes(self) -> int:
        """The memory that it takes, as far as that is known."""
        return self.size * _item_bytes(self.dtype) + self.text


UNKNOWN = Known()
Rule = Callable[[schema.NodeDef, Sequence[Known]], Known]


def _item_bytes(dtype: int) -> int:
    try:
        return dtypes.by_number(dtype % 100).itemsize or _TEXT
    except SavedModelError:
        return 1


def _number_of(node: schema.NodeDef, name: str, default: int = 0) -> int:
    return node.attr[name].i if name in node.attr else default


def _dtype(node: schema.NodeDef, *names: str) -> int:
    return next((node.attr[name].type for name in names if name in node.attr), 0)


def shape_of(proto: schema.TensorShapeProto) -> Optional[tuple[int, ...]]:
    """Return the sizes of a shape, or None if one is unknown."""
    sizes = tuple([dim.size for dim in proto.dim[: limits.RANK + 1]])
    return (
        None
        if proto.unknown_rank or min(sizes, default=0) < 0 or not has_valid_rank(len(sizes))
        else sizes
    )


def _shape_attribute(node: schema.NodeDef, name: str = "shape") -> Optional[tuple[int, ...]]:
    return shape_of(node.attr[name].shape) if name in node.attr else None


def _sizes(known: Known) -> Optional[tuple[int, ...]]:
    """Return the numbers of a tensor that is a shape; None if they are unknown or not a shape."""
    if known.values is None or not has_valid_rank(len(known.values)):
        return None
    sizes = tuple(map(int, known.values))
    return sizes if min(sizes, default=0) >= 0 else None


def _single(known: Known) -> Optional[Number]:
    return known.values[0] if known.values is not None and len(known.values) == 1 else None


def _made(
    dtype: int, shape: Optional[tuple[int, ...]], values: Optional[Iterable[Number]] = None
) -> Known:
    """Return a tensor whose numbers, if they are known, are what its dtype makes of them."""
    listed = None if values is None else tuple(itertools.islice(values, limits.KNOWN_NUMBERS + 1))
    if listed is None or shape is None or len(listed) != math.prod(shape):
        return Known(dtype, shape)
    if dtype in _INTEGERS:
        bits = 8 * _item_bytes(dtype)
        listed = tuple(
            [(int(value) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1) for value in listed]
        )
    return Known(dtype, shape, listed)


def constant(node: schema.NodeDef, inputs: Sequence[Known] = ()) -> Known:
    """Return what is known of a Const node."""
    tensor = node.attr["value"].tensor if "value" in node.attr else schema.TensorProto()
    shape = shape_of(tensor.tensor_shape)
    if tensor.dtype == schema.DT_STRING:
        texts = strings_of_constant(node, limits.KNOWN_NUMBERS)
        return Known(tensor.dtype, shape, text=sum(map(len, texts)))
    if shape is None or math.prod(shape) > limits.KNOWN_NUMBERS:
        return Known(tensor.dtype, shape)
    values: Optional[Sequence[Number]] = integers_of_constant(node, limits.KNOWN_NUMBERS)
    if values is None and tensor.dtype == schema.DT_BOOL:
        listed = [*tensor.tensor_content] or [int(value) for value in tensor.bool_val] or [0]
        values = listed + listed[-1:] * (math.prod(shape) - len(listed))
    return _made(tensor.dtype, shape, floats_of_constant(node) if values is None else values)


def _shaped_by(position: int, *types: str) -> Rule:
    """Return the rule of an op whose output has the shape that one input holds."""

    def rule(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
        return Known(_dtype(node, *types), _sizes(inputs[position]))

    return rule


def _fill(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    shape, value = _sizes(inputs[0]), _single(inputs[1])
    small = value is not None and shape is not None and math.prod(shape) <= limits.KNOWN_NUMBERS
    text = inputs[1].text * (0 if shape is None else math.prod(shape))
    return _made(
        _dtype(node, "T"), shape, [value or 0] * math.prod(shape or ()) if small else None
    )._replace(text=text)


def _reshape(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    asked = inputs[1].values
    if asked is None or inputs[0].shape is None:
        return Known(inputs[0].dtype, _sizes(inputs[1]))
    sizes = list(map(int, asked))
    if sizes.count(-1) == 1:
        rest = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = inputs[0].size // rest if rest else 0
    shape = tuple(sizes)
    fits = min(shape, default=0) >= 0 and math.prod(shape) == inputs[0].size
    return inputs[0]._replace(shape=shape) if fits else UNKNOWN


def _range(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    start, limit, delta = map(_single, inputs[:3])
    if start is None or limit is None or not delta:
        return UNKNOWN
    count = max(0, math.ceil((limit - start) / delta))
    values = (
        [start + number * delta for number in range(count)]
        if count <= limits.KNOWN_NUMBERS
        else None
    )
    return _made(_dtype(node, "Tidx"), (count,), values)


def _line(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    count = _single(inputs[2])
    return UNKNOWN if count is None else Known(_dtype(node, "T"), (max(0, int(count)),))


def _tile(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    times, shape = _sizes(inputs[1]), inputs[0].shape
    if times is None or shape is None or len(times) != len(shape):
        return UNKNOWN
    return Known(
        inputs[0].dtype,
        tuple(map(operator.mul, shape, times)),
        text=inputs[0].text * math.prod(times),
    )


def _pad(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    shape, sizes = inputs[0].shape, _sizes(inputs[1])
    if shape is None or sizes is None or len(sizes) != 2 * len(shape):
        return UNKNOWN
    return Known(
        inputs[0].dtype,
        tuple(size + sizes[2 * at] + sizes[2 * at + 1] for at, size in enumerate(shape)),
    )


def _one_hot(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    depth = _single(inputs[1])
    if depth is None or inputs[0].shape is None:
        return UNKNOWN
    return Known(_dtype(node, "T"), (*inputs[0].shape, max(0, int(depth))))


def _pack(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    shape = inputs[0].shape
    if shape is None or any(known.shape != shape for known in inputs):
        return UNKNOWN
    at = _number_of(node, "axis") % (len(shape) + 1)
    scalars = [_single(known) for known in inputs]
    values = [value for value in scalars if value is not None] if shape == () else None
    text = sum(known.text for known in inputs)
    return _made(inputs[0].dtype, (*shape[:at], len(inputs), *shape[at:]), values)._replace(
        text=text
    )


def _concat(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    axis, parts = (inputs[-1], inputs[:-1]) if node.op == "ConcatV2" else (inputs[0], inputs[1:])
    at, shapes = _single(axis), [known.shape for known in parts if known.shape is not None]
    if (
        at is None
        or len(shapes) != len(parts)
        or not shapes
        or not -len(shapes[0]) <= at < len(shapes[0])
    ):
        return UNKNOWN
    if any(len(shape) != len(shapes[0]) for shape in shapes):
        return UNKNOWN
    shape, place = list(shapes[0]), int(at)
    shape[place] = sum(each[place] for each in shapes)
    listed = [known.values for known in parts if known.values is not None]
    values = (
        itertools.chain.from_iterable(listed)
        if len(listed) == len(parts) and len(shape) == 1
        else None
    )
    return _made(parts[0].dtype, tuple(shape), values)._replace(
        text=sum(known.text for known in parts)
    )


def _broadcast(shapes: Sequence[Optional[tuple[int, ...]]]) -> Optional[tuple[int, ...]]:
    known = [shape for shape in shapes if shape is not None]
    if len(known) != len(shapes):
        return None
    rank = max(map(len, known), default=0)
    columns = zip(*[(1,) * (rank - len(shape)) + shape for shape in known])
    return tuple([0 if 0 in sizes else max(sizes) for sizes in columns])


def _elementwise(compute: Optional[Callable[..., Number]], result: int = 0) -> Rule:
    """Return the rule of an op that combines elements one by one, after broadcasting.

    `result` is the dtype of its output.
    """

    def rule(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
        shape = _broadcast([known.shape for known in inputs])
        dtype = result or _dtype(node, "DstT", "T") or inputs[0].dtype
        listed = [known.values for known in inputs if known.values is not None]
        count = max([len(values) for values in listed], default=0)
        if (
            compute is None
            or len(listed) != len(inputs)
            or any(len(values) not in (1, count) for values in listed)
        ):
            return Known(dtype, shape)
        columns = [values if len(values) == count else values * count for values in listed]
        try:
            return _made(dtype, shape, [compute(*numbers) for numbers in zip(*columns)])
        except (
            ArithmeticError,
            ValueError,
            TypeError,
        ):  # division by zero, an overflow, a root of a negative number
            return Known(dtype, shape)

    return rule


def _power(base: Number, exponent: Number) -> Number:
    if abs(base) > 1 << 64 or abs(exponent) > 64:
        raise ValueError("not followed")
    power: Number = base**exponent
    return power


def _shift(value: Number, by: Number) -> Number:
    if not 0 <= by < 64:
        raise ValueError("not followed")
    return int(value) << int(by)


def _divide(value: Number, by: Number) -> Number:
    return value // by if isinstance(value, int) and isinstance(by, int) else value / by


def _reduction(compute: Callable[[Sequence[Number]], Number]) -> Rule:
    """Return the rule of an op that reduces dimensions; numbers are followed where all are reduced
    to one.
    """

    def rule(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
        shape, axes = inputs[0].shape, inputs[1].values
        if shape is None or axes is None:
            return Known(inputs[0].dtype)
        reduced = {int(axis) % len(shape) for axis in axes} if shape else set()
        keeps = "keep_dims" in node.attr and node.attr["keep_dims"].b
        sizes = [
            1 if at in reduced else size
            for at, size in enumerate(shape)
            if keeps or at not in reduced
        ]
        whole = inputs[0].values and math.prod(sizes) == 1
        return _made(
            inputs[0].dtype, tuple(sizes), [compute(inputs[0].values or ())] if whole else None
        )

    return rule


def _expand(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    axis, shape = _single(inputs[1]), inputs[0].shape
    if axis is None or shape is None:
        return UNKNOWN
    at = int(axis) + (len(shape) + 1 if axis < 0 else 0)
    return inputs[0]._replace(shape=(*shape[:at], 1, *shape[at:]))


def _squeeze(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    shape = inputs[0].shape
    if shape is None:
        return UNKNOWN
    axes = node.attr["squeeze_dims"].list.i if "squeeze_dims" in node.attr else ()
    chosen = (
        {axis % len(shape) for axis in axes}
        if shape and axes
        else {at for at, size in enumerate(shape) if size == 1}
    )
    return inputs[0]._replace(
        shape=tuple([size for at, size in enumerate(shape) if at not in chosen])
    )


def _transposed(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    shape, order = inputs[0].shape, _sizes(inputs[1])
    if shape is None or order is None or sorted(order) != list(range(len(shape))):
        return UNKNOWN
    return Known(inputs[0].dtype, tuple([shape[at] for at in order]), text=inputs[0].text)


def _shape(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    shape = inputs[0].shape
    dtype = _dtype(node, "out_type") or schema.DT_INT32
    if shape is None:
        return Known(dtype)
    if node.op == "Shape":
        return _made(dtype, (len(shape),), shape)
    return _made(dtype, (), [inputs[0].size if node.op == "Size" else len(shape)])


def _slice(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    """Return a part of a vector.

    Of other tensors nothing is known, but the part is never larger.
    """
    begin, end, step = map(_single, inputs[1:4])
    values = inputs[0].values
    if (
        values is None
        or len(inputs[0].shape or ()) != 1
        or begin is None
        or end is None
        or not step
    ):
        return UNKNOWN
    if any(_number_of(node, name) for name in ("ellipsis_mask", "new_axis_mask")):
        return UNKNOWN
    if _number_of(node, "shrink_axis_mask"):
        return _made(inputs[0].dtype, (), values[int(begin) :][:1] if begin != -1 else values[-1:])
    first = None if _number_of(node, "begin_mask") else int(begin)
    last = None if _number_of(node, "end_mask") else int(end)
    part = values[first : last : int(step)]
    return _made(inputs[0].dtype, (len(part),), part)


def _product(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    left, right = inputs[0].shape, inputs[1].shape
    if left is None or right is None or len(left) < 2 or len(right) < 2:
        return UNKNOWN
    turned = [
        name in node.attr and node.attr[name].b
        for name in ("transpose_a", "adj_x", "transpose_b", "adj_y")
    ]
    rows = left[-1] if any(turned[:2]) else left[-2]
    columns = right[-2] if any(turned[2:]) else right[-1]
    return Known(
        _dtype(node, "Tout", "T"), (*(_broadcast([left[:-2], right[:-2]]) or ()), rows, columns)
    )


def _gather(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    params, indices = inputs[0].shape, inputs[1].shape
    axis = _single(inputs[2]) if len(inputs) > 2 else 0
    if not params or indices is None or axis is None or _number_of(node, "batch_dims"):
        return UNKNOWN
    at = int(axis) % len(params)
    return Known(inputs[0].dtype, (*params[:at], *indices, *params[at + 1 :]))


def _diagonal(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    """Return a matrix with a diagonal, at least as large as its diagonal asks."""
    shape = inputs[0].shape
    if not shape:
        return UNKNOWN
    if node.op == "Diag":
        return Known(inputs[0].dtype, (*shape, *shape))
    if len(inputs) > 1 and _single(inputs[1]) != 0:  # another diagonal, or several
        return UNKNOWN
    asked = [int(_single(known) or -1) for known in inputs[2:4]]
    rows, columns = [size if size > 0 else shape[-1] for size in asked or [-1, -1]]
    return Known(inputs[0].dtype, (*shape[:-1], rows, columns))


def _segments(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    count, data, ids = _single(inputs[2]), inputs[0].shape, inputs[1].shape
    if count is None or data is None or ids is None:
        return UNKNOWN
    return Known(inputs[0].dtype, (max(0, int(count)), *data[len(ids) :]))


def _resized(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    shape, size = inputs[0].shape, _sizes(inputs[1])
    if shape is None or size is None or len(shape) != 4 or len(size) != 2:
        return UNKNOWN
    dtype = inputs[0].dtype if node.op == "ResizeNearestNeighbor" else schema.DT_FLOAT
    return Known(dtype, (shape[0], *size, shape[3]))


def _drawn(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    """Return samples for each element of a tensor."""
    shape, each = _sizes(inputs[0]), inputs[1].shape
    return Known(
        _dtype(node, "dtype", "T"), None if shape is None or each is None else (*shape, *each)
    )


def _joined(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    shape = _broadcast([known.shape for known in inputs])
    if shape is None:
        return UNKNOWN
    # A scalar is joined to each element of the other inputs.
    text = sum(known.text * (math.prod(shape) // max(known.size, 1)) for known in inputs)
    return Known(schema.DT_STRING, shape, text=min(text, _HUGE))


def _printed(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    return Known(
        schema.DT_STRING,
        inputs[0].shape,
        text=inputs[0].size * max(_number_of(node, "width", -1), 0),
    )


def _handle(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    return Known(schema.DT_RESOURCE, (), held=Known(_dtype(node, "dtype"), _shape_attribute(node)))


def _stated(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    return Known(_dtype(node, "dtype", "T"), _shape_attribute(node))


def _list(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    """Return a new list of tensors, as a tensor of as many elements as it has."""
    length = _single(inputs[1])
    element = Known(_dtype(node, "element_dtype"), _sizes(inputs[0]))
    shape = None if length is None else (max(0, int(length)),)
    return Known(schema.DT_VARIANT, shape, text=_LIST_ENTRY * (shape or (0,))[0], held=element)


def _dense_table(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    """Return the handle of a table that reserves its buckets when it is made."""
    key, value = (
        inputs[0],
        Known(_dtype(node, "value_dtype"), _shape_attribute(node, "value_shape") or ()),
    )
    bucket = key.size * _item_bytes(key.dtype) + value.bytes
    return Known(
        schema.DT_RESOURCE,
        (),
        text=min(max(_number_of(node, "initial_num_buckets", _BUCKETS), 0) * bucket, _HUGE),
    )


def _array(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    """Return the handle of a tensor array, which reserves an entry for each element."""
    length = _single(inputs[0])
    return Known(
        schema.DT_RESOURCE,
        None if length is None else (),
        text=_ARRAY_ENTRY * max(0, int(length or 0)),
    )


def _entry(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    """Return an element of a list, which is made of zeros if nobody has set it."""
    asked = _sizes(inputs[2]) if len(inputs) > 2 else None
    return inputs[0].held or Known(_dtype(node, "element_dtype"), asked)


def _stacked(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    held = inputs[0].held
    shape = (held.shape if held is not None else None) or _sizes(inputs[1])
    if shape is None or inputs[0].shape is None:
        return UNKNOWN
    return Known(_dtype(node, "element_dtype"), (*inputs[0].shape, *shape))


def _resized_list(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    length = _single(inputs[1])
    if length is None:
        return UNKNOWN
    count = max(0, int(length))
    return Known(schema.DT_VARIANT, (count,), text=_LIST_ENTRY * count, held=inputs[0].held)


def _unstacked_list(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    """Return a list of the parts of a tensor."""
    shape = inputs[0].shape
    if not shape:
        return UNKNOWN
    return Known(
        schema.DT_VARIANT,
        shape[:1],
        text=_LIST_ENTRY * shape[0],
        held=Known(inputs[0].dtype, shape[1:]),
    )


def _counted(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    """Return how often each number occurs, in a vector of a given length, or in one for each
    row.
    """
    size, shape = _single(inputs[1]), inputs[0].shape
    if size is None or shape is None:
        return UNKNOWN
    rows = shape[:1] if node.op == "DenseBincount" and len(shape) == 2 else ()
    return Known(_dtype(node, "T"), (*rows, max(0, int(size))))


def _rows(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    """Return as many rows as the last input says, each like one of the first input."""
    count, shape = _single(inputs[3]), inputs[0].shape
    return (
        UNKNOWN
        if count is None or not shape
        else Known(inputs[0].dtype, (max(0, int(count)), *shape[1:]))
    )


def _samples(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    count, shape = _single(inputs[1]), inputs[0].shape
    return (
        UNKNOWN
        if count is None or not shape
        else Known(_dtype(node, "output_dtype"), (shape[0], max(0, int(count))))
    )


def _sobol(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    dimensions, count = _single(inputs[0]), _single(inputs[1])
    return (
        UNKNOWN
        if dimensions is None or count is None
        else Known(_dtype(node, "dtype"), (int(count), int(dimensions)))
    )


def _cropped(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    image, boxes, size = inputs[0].shape, inputs[1].shape, _sizes(inputs[3])
    if image is None or len(image) != 4 or not boxes or size is None or len(size) != 2:
        return UNKNOWN
    return Known(schema.DT_FLOAT, (boxes[0], *size, image[3]))


def _image_of(position: int) -> Rule:
    """Return the rule of an op that makes images of the size that an input holds."""

    def rule(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
        image, size = inputs[0].shape, _sizes(inputs[position])
        if image is None or len(image) != 4 or size is None or len(size) != 2:
            return UNKNOWN
        return Known(_dtype(node, "dtype") or schema.DT_FLOAT, (image[0], *size, image[3]))

    return rule


def _stitched(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    half = len(inputs) // 2
    listed = [known.values for known in inputs[:half] if known.values is not None]
    data, indices = inputs[half].shape, inputs[0].shape
    if len(listed) != half or data is None or indices is None:
        return UNKNOWN
    length = int(max(itertools.chain.from_iterable(listed), default=-1)) + 1
    return Known(inputs[half].dtype, (length, *data[len(indices) :]))


def _transformed(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    """Return the Fourier transform of real numbers, or back, of a given length."""
    shape, lengths = inputs[0].shape, _sizes(inputs[1])
    if shape is None or lengths is None or len(lengths) > len(shape):
        return UNKNOWN
    forth = node.op.startswith("RFFT")
    last = lengths[-1] // 2 + 1 if forth else lengths[-1]
    dtype = _dtype(node, "Tcomplex" if forth else "Treal") or (
        schema.DT_COMPLEX64 if forth else schema.DT_FLOAT
    )
    return Known(dtype, (*shape[: len(shape) - len(lengths)], *lengths[:-1], last))


def _space_to_batch(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    shape, blocks, padding = inputs[0].shape, _sizes(inputs[1]), _sizes(inputs[2])
    if (
        not shape
        or blocks is None
        or padding is None
        or len(padding) != 2 * len(blocks)
        or len(blocks) >= len(shape)
    ):
        return UNKNOWN
    padded = [
        size + padding[2 * at] + padding[2 * at + 1]
        for at, size in enumerate(shape[1 : len(blocks) + 1])
    ]
    inner = map(operator.floordiv, padded, blocks)
    return Known(inputs[0].dtype, (shape[0] * math.prod(blocks), *inner, *shape[len(blocks) + 1 :]))


def _cut(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    shape, begin, asked = inputs[0].shape, _sizes(inputs[1]), inputs[2].values
    if (
        shape is None
        or begin is None
        or asked is None
        or not len(shape) == len(begin) == len(asked)
    ):
        return UNKNOWN
    sizes = [
        int(size) if size >= 0 else whole - first for size, whole, first in zip(asked, shape, begin)
    ]
    values = inputs[0].values
    if values is None or len(shape) != 1:
        return Known(inputs[0].dtype, tuple(sizes))
    return _made(inputs[0].dtype, tuple(sizes), values[begin[0] : begin[0] + sizes[0]])


def parts(node: schema.NodeDef, inputs: Sequence[Known]) -> list[Known]:
    """Return what is known of the outputs of an op that cuts a tensor into parts along one
    dimension, or of others.
    """
    if node.op == "IdentityN":
        return list(inputs)
    if node.op == "ShapeN":
        return [_shape(schema.NodeDef(op="Shape", attr=node.attr), [known]) for known in inputs]
    data = inputs[1] if node.op == "Split" else inputs[0]
    axis = {"Split": _single(inputs[0]), "SplitV": _single(inputs[-1])}.get(
        node.op, _number_of(node, "axis")
    )
    count = _number_of(node, "num" if node.op == "Unpack" else "num_split")
    if not data.shape or axis is None or not 0 < count <= limits.KNOWN_NUMBERS:
        return [UNKNOWN]
    at = int(axis) % len(data.shape)
    before, after = data.shape[:at], data.shape[at + 1 :]
    if node.op == "Unpack":
        values = data.values if len(data.shape) == 1 else None
        return [
            _made(data.dtype, before + after, None if values is None else values[one : one + 1])
            for one in range(count)
        ]
    if node.op == "Split":
        return [Known(data.dtype, (*before, data.shape[at] // count, *after))] * count
    sizes = inputs[1].values or ()
    rest = data.shape[at] - int(sum(size for size in sizes if size > 0))
    return [
        Known(data.dtype, (*before, int(size) if size >= 0 else rest, *after)) for size in sizes
    ] or [UNKNOWN]


PARTS = frozenset({"IdentityN", "ShapeN", "Split", "SplitV", "Unpack"})


def _first(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    return inputs[0]


def _like_first(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    return inputs[0]._replace(values=None)


def _read(node: schema.NodeDef, inputs: Sequence[Known]) -> Known:
    return inputs[0].held or UNKNOWN


_BOOLEAN = schema.DT_BOOL
# Ops that return a tensor that exists: nothing is allocated.
_SHARING_ROWS: tuple[tuple[Rule, str], ...] = (
    (
        _first,
        (
            "Identity Snapshot StopGradient PreventGradient EnsureShape CheckNumerics"
            " TensorListSetItem"
        ),
    ),
    (_first, "PlaceholderWithDefault Enter RefEnter RefIdentity Exit"),
    (_reshape, "Reshape"),
    (_expand, "ExpandDims"),
    (_squeeze, "Squeeze"),
    (_read, "ReadVariableOp"),
    (_handle, "VarHandleOp"),
    (constant, "Const"),
)
_ROWS: tuple[tuple[Rule, str], ...] = (
    # The shape is the value of an input.
    (
        _shaped_by(0, "dtype"),
        "Empty RandomUniform RandomStandardNormal TruncatedNormal NonDeterministicInts",
    ),
    (_shaped_by(0, "dtype"), "ParameterizedTruncatedNormal RiscRandomUniform"),
    (_shaped_by(0, "dtype"), "StatelessRandomUniform StatelessRandomUniformV2"),
    (_shaped_by(0, "dtype"), "StatelessRandomUniformInt StatelessRandomUniformIntV2"),
    (_shaped_by(0, "dtype"), "StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2"),
    (_shaped_by(0, "dtype"), "StatelessRandomNormal StatelessRandomNormalV2"),
    (
        _shaped_by(0, "dtype"),
        "StatelessTruncatedNormal StatelessTruncatedNormalV2 StatelessParameterizedTruncatedNormal",
    ),
    (
        _shaped_by(0, "dtype"),
        (
            "StatelessRandomBinomial StatelessRandomPoisson StatelessRandomGammaV2"
            " StatelessRandomGammaV3"
        ),
    ),
    (_shaped_by(0, "Tout"), "RandomUniformInt"),
    (
        _shaped_by(0, "T"),
        (
            "Conv2DBackpropInput Conv3DBackpropInputV2 DepthwiseConv2dNativeBackpropInput"
            " StridedSliceGrad"
        ),
    ),
    (
        _shaped_by(1, "T"),
        (
            "Conv2DBackpropFilter Conv3DBackpropFilterV2 DepthwiseConv2dNativeBackpropFilter"
            " SparseToDense"
        ),
    ),
    (_shaped_by(1, "dtype", "T"), "StatefulStandardNormal BroadcastTo"),
    (
        _shaped_by(2, "dtype"),
        "StatefulUniform StatefulUniformInt StatefulUniformFullInt StatefulRandomBinomial",
    ),
    (_shaped_by(2, "dtype"), "StatefulStandardNormalV2 StatefulTruncatedNormal"),
    (_shaped_by(2, "T"), "ScatterNd"),
    (_fill, "Fill"),
    (_drawn, "RandomGamma RandomPoisson RandomPoissonV2"),
    # A number of the shape is the value of an input.
    (_range, "Range"),
    (_line, "LinSpace"),
    (_one_hot, "OneHot"),
    (_segments, "UnsortedSegmentSum UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd"),
    (_segments, "SegmentSumV2 SegmentMaxV2 SegmentMinV2 SegmentProdV2"),
    (_rows, "SparseSegmentSumGrad SparseSegmentMeanGrad SparseSegmentSqrtNGrad"),
    (
        _rows,
        (
            "SparseSegmentSumWithNumSegments SparseSegmentMeanWithNumSegments"
            " SparseSegmentSqrtNWithNumSegments"
        ),
    ),
    (_samples, "Multinomial StatelessMultinomial"),
    (_counted, "Bincount DenseBincount"),
    (_sobol, "SobolSample"),
    (_cropped, "CropAndResize"),
    (_image_of(1), "ScaleAndTranslate"),
    (_image_of(2), "ImageProjectiveTransformV2 ImageProjectiveTransformV3"),
    (_resized, "ResizeNearestNeighbor ResizeBilinear ResizeBicubic ResizeArea"),
    (_transformed, "RFFT RFFT2D RFFT3D IRFFT IRFFT2D IRFFT3D"),
    (_stitched, "DynamicStitch ParallelDynamicStitch"),
    # The shape follows from those of inputs.
    (_tile, "Tile"),
    (_pad, "Pad PadV2 MirrorPad"),
    (_space_to_batch, "SpaceToBatchND"),
    (_pack, "Pack"),
    (_concat, "Concat ConcatV2"),
    (_diagonal, "Diag MatrixDiag MatrixDiagV2 MatrixDiagV3"),
    (_product, "MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3"),
    (_gather, "Gather GatherV2"),
    (_transposed, "Transpose"),
    (_slice, "StridedSlice"),
    (_cut, "Slice"),
    (_like_first, "ReverseV2 Cumsum Cumprod RandomShuffle BiasAdd Softmax LogSoftmax"),
    (_stated, "VariableV2 Variable TemporaryVariable ParallelConcat FakeParam"),
    (_shape, "Shape Size Rank"),
    (_joined, "StringJoin"),
    (_printed, "AsString"),
    (_dense_table, "MutableDenseHashTable MutableDenseHashTableV2 AnonymousMutableDenseHashTable"),
    (_array, "TensorArray TensorArrayV2 TensorArrayV3"),
    (_list, "TensorListReserve"),
    (_resized_list, "TensorListResize"),
    (_unstacked_list, "TensorListFromTensor"),
    (_entry, "TensorListGetItem"),
    (_stacked, "TensorListStack"),
    (_reduction(max), "Max"),
    (_reduction(min), "Min"),
    (_reduction(sum), "Sum"),
    (_reduction(math.prod), "Prod"),
    (_reduction(lambda values: sum(values) / len(values)), "Mean"),
    (_reduction(all), "All"),
    (_reduction(any), "Any"),
    # Elements one by one.
    (_elementwise(operator.add), "Add AddV2"),
    (_elementwise(lambda *numbers: sum(numbers)), "AddN"),
    (_elementwise(operator.sub), "Sub"),
    (_elementwise(operator.mul), "Mul"),
    (_elementwise(_power), "Pow"),
    (_elementwise(operator.floordiv), "FloorDiv"),
    (_elementwise(operator.mod), "FloorMod"),
    (_elementwise(_divide), "Div RealDiv"),
    (_elementwise(_shift), "LeftShift"),
    (_elementwise(operator.or_), "BitwiseOr"),
    (_elementwise(operator.and_), "BitwiseAnd"),
    (_elementwise(operator.xor), "BitwiseXor"),
    (_elementwise(max), "Maximum"),
    (_elementwise(min), "Minimum"),
    (_elementwise(operator.neg), "Neg"),
    (_elementwise(abs), "Abs"),
    (_elementwise(lambda number: number), "Cast"),
    (_elementwise(lambda number: number * number), "Square"),
    (_elementwise(math.exp), "Exp"),
    (_elementwise(math.log), "Log"),
    (_elementwise(math.sqrt), "Sqrt"),
    (_elementwise(math.floor), "Floor"),
    (_elementwise(math.ceil), "Ceil"),
    (_elementwise(round), "Round"),
    (_elementwise(lambda number: 0), "ZerosLike"),
    (_elementwise(lambda number: 1), "OnesLike"),
    (_elementwise(operator.lt, _BOOLEAN), "Less"),
    (_elementwise(operator.le, _BOOLEAN), "LessEqual"),
    (_elementwise(operator.gt, _BOOLEAN), "Greater"),
    (_elementwise(operator.ge, _BOOLEAN), "GreaterEqual"),
    (_elementwise(operator.eq, _BOOLEAN), "Equal"),
    (_elementwise(operator.ne, _BOOLEAN), "NotEqual"),
    (_elementwise(operator.not_, _BOOLEAN), "LogicalNot"),
    (_elementwise(lambda one, two: bool(one) and bool(two), _BOOLEAN), "LogicalAnd"),
    (_elementwise(lambda one, two: bool(one) or bool(two), _BOOLEAN), "LogicalOr"),
    (_elementwise(lambda one, two, three: two if one else three), "Select SelectV2"),
    (
        _elementwise(None),
        "Tanh Sigmoid Sin Cos Relu Rsqrt Reciprocal Sign SquaredDifference TruncateDiv",
    ),
)


def _by_op(rows: Iterable[tuple[Rule, str]]) -> dict[str, Rule]:
    found: dict[str, Rule] = {}
    for rule, ops in rows:
        found.update(dict.fromkeys(ops.split(), rule))
    return found


SHARING = _by_op(_SHARING_ROWS)
OPS = {**SHARING, **_by_op(_ROWS)}

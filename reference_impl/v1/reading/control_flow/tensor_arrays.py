"""Convert TensorArrays of TF 1.x to lists.

The gradient of a list works inside While.

A ``TensorArrayV3`` is a resource. Its *flow*, a float, only orders the operations on it. A
TensorList, in contrast, is itself passed from operation to operation. A list can replace an array
if

* each flow tensor has at most one user that changes the array (branches that exclude each other
  count as one);
* reads come before that change;
* handle and flow are used by operations on the array and by control flow only.

All other arrays are kept.

RFC: V1-11, V1-14
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Optional

from reference_impl.format import schema
from reference_impl.graph.closure import reachable
from reference_impl.graph.node_defs import clear_op_attributes, int_tensor
from reference_impl.v1.reading.control_flow.editable_function import (
    EditableFunction,
    NotConvertible,
    source,
)

_PASSING = frozenset({"Identity", "Enter", "Exit", "NextIteration", "Merge", "Switch"})
# op -> (position of the flow, output argument that is the flow afterwards or "")
_USES = {
    "TensorArrayReadV3": (2, ""),
    "TensorArrayGatherV3": (2, ""),
    "TensorArrayConcatV3": (1, ""),
    "TensorArraySizeV3": (1, ""),
    "TensorArrayWriteV3": (3, "flow_out"),
    "TensorArrayScatterV3": (3, "flow_out"),
    "TensorArraySplitV3": (3, "flow_out"),
}
HANDLE, FLOW = "handle", "flow"
RESIZE = "resize_if_index_out_of_bounds"
INT32 = schema.DT_INT32


def convert_tensor_arrays(function: EditableFunction) -> Optional[NotConvertible]:
    """Replace every array that a list can replace; return the reason why the first other array is
    kept, or None.
    """
    arrays = [name for name, node in function.nodes.items() if node.op == "TensorArrayV3"]
    if not arrays:
        return None
    uses = _Uses(function, arrays)
    if not _lists_grow(function):
        for name in arrays:
            if function.nodes[name].attr["dynamic_size"].b:
                uses.refuse(
                    name, name, "needs a list that grows, which TensorFlow has since 2.13, for"
                )
    good = [name for name in arrays if name not in uses.reasons]
    for name in good:
        _Conversion(function, name, uses.handles[name]).run(uses.users[name])
    return next((uses.reasons[name] for name in arrays if name in uses.reasons), None)


def _lists_grow(function: EditableFunction) -> bool:
    """Return whether this TensorFlow knows the attribute that makes a list grow.

    Older releases silently drop it.
    """
    definition = function.ops.registered("TensorListSetItem")
    return definition is None or any(attr.name == RESIZE for attr in definition.attr)


class _Uses:
    """The uses of the handle and the flow of each array.

    ``reasons`` has the reason why an array cannot become a list.
    """

    def __init__(self, function: EditableFunction, arrays: list[str]):
        self.function = function
        self.reasons: dict[str, NotConvertible] = {}
        self.of: dict[str, tuple[str, str]] = {}  # tensor -> (array, handle or flow)
        self.flows: dict[str, list[str]] = {name: [] for name in arrays}
        self.handles: dict[str, set[str]] = {
            name: set() for name in arrays
        }  # nodes that pass the handle on
        self.users: dict[str, dict[str, None]] = {name: {} for name in arrays}
        self._consumers = self._index()
        for name in arrays:
            if len(function.data(function.nodes[name])) != 1:
                self.refuse(name, name, "does not have one size, as every TensorArray has:")
            self._follow(name)
        for name in arrays:
            if name not in self.reasons:
                self._check(name)

    def _index(self) -> dict[str, list[tuple[str, int]]]:
        consumers: dict[str, list[tuple[str, int]]] = {}
        for name, node in self.function.nodes.items():
            for position, text in enumerate(self.function.data(node)):
                consumers.setdefault(text, []).append((name, position))
            for control in self.function.controls(node):
                consumers.setdefault("^" + control, []).append((name, -1))
        for text in self.function.definition.ret.values():
            consumers.setdefault(self.function.resolve(text), []).append(("", 0))
        return consumers

    def refuse(self, array: str, node: str, reason: str) -> None:
        self.reasons.setdefault(array, NotConvertible(node, f"{reason} the TensorArray {array!r}"))

    def _follow(self, array: str) -> None:
        """Find all tensors that are the handle or the flow of an array."""
        work = [(f"{array}:handle:0", HANDLE), (f"{array}:flow:0", FLOW)]
        while work:
            text, kind = work.pop()
            if text in self.of:
                if self.of[text] != (array, kind):
                    for one in (array, self.of[text][0]):
                        self.refuse(one, source(text), "mixes another one with")
                continue
            self.of[text] = (array, kind)
            if kind == FLOW:
                self.flows[array].append(text)
            else:
                self.handles[array].add(source(text))
            for name, position in self._consumers.get(text, ()):
                work.extend((after, kind) for after in self._after(array, name, position, kind))

    def _after(self, array: str, name: str, position: int, kind: str) -> Iterable[str]:
        """Return the outputs of a user that are still the handle or flow of the same array."""
        if not name:
            self.refuse(array, array, "returns a part of")
            return ()
        node = self.function.nodes[name]
        if node.op in _PASSING and (node.op == "Merge" or position == 0):
            if kind == HANDLE and self._consumers.get("^" + name):
                self.refuse(array, name, "is waited for and passes on")
            self.users[array][name] = None
            return _passed(node)
        if node.op == "TensorArrayCloseV3" and kind == HANDLE:
            self.users[array][name] = None
            return ()
        flow_position, out = _USES.get(node.op, (-1, ""))
        if flow_position < 0 or position != (0 if kind == HANDLE else flow_position):
            self.refuse(array, name, "is none of the operations of tf.TensorArray and uses")
            return ()
        self.users[array][name] = None
        return (f"{name}:{out}:0",) if out and kind == FLOW else ()

    def _check(self, array: str) -> None:
        function = self.function
        for name in self.users[array]:
            node = function.nodes[name]
            data = function.data(node)
            if node.op in _USES:
                flow, out = _USES[node.op]
                if (
                    len(data) != flow + 1
                    or self.of.get(data[0]) != (array, HANDLE)
                    or self.of.get(data[flow]) != (array, FLOW)
                ):
                    return self.refuse(array, name, "uses a flow or a handle that is not of")
                if out and not self._consumers.get(f"{name}:{out}:0"):
                    return self.refuse(array, name, "changes unseen")
            elif node.op == "Merge" and any(
                self.of.get(text) != self.of.get(f"{name}:output:0") for text in data
            ):
                return self.refuse(array, name, "joins something with")
        if not self._is_thread(array):
            return self.refuse(array, array, "has a flow that forks:")
        return None

    def _is_thread(self, array: str) -> bool:
        """Return whether each flow tensor has at most one user that changes the array."""
        back: dict[str, list[str]] = {}
        changed: list[str] = []
        for text in self.flows[array]:
            for name, _ in self._consumers.get(text, ()):
                node = self.function.nodes[name]
                if node.op in _PASSING:
                    for output in _passed(node):
                        back.setdefault(output, []).append(text)
                elif _USES[node.op][1]:
                    changed.append(text)
        changing = reachable(changed, back)
        return all(self._one_changes(text, changing) for text in self.flows[array])

    def _one_changes(self, text: str, changing: Collection[str]) -> bool:
        changers, switches, readers = [], [], []
        for name, _ in self._consumers.get(text, ()):
            node = self.function.nodes[name]
            sides = (
                [side for side, output in enumerate(_passed(node)) if output in changing]
                if node.op in _PASSING
                else []
            )
            if node.op == "Switch" and sides:
                switches += [(name, side) for side in sides]
            elif sides or _USES.get(node.op, (0, ""))[1]:
                changers.append(name)
            else:
                readers.append(name)
        writers = {*changers, *(name for name, _ in switches)}
        for name in readers:  # a read that waits for a change of the array must see the change
            if writers & set(self.function.controls(self.function.nodes[name])):
                return False
        if changers:
            return len(changers) == 1 and not switches
        taken = [side for _, side in switches]
        return (
            len(taken) == len(set(taken))
            and len({_predicate(self.function, name) for name, _ in switches}) <= 1
        )


def _passed(node: schema.NodeDef) -> tuple[str, ...]:
    """Return the tensors of a node that passes on its inputs."""
    if node.op == "Switch":
        return (f"{node.name}:output_false:0", f"{node.name}:output_true:0")
    return (f"{node.name}:output:0",)


def _predicate(function: EditableFunction, switch: str) -> str:
    data = function.data(function.nodes[switch])
    return data[1] if len(data) == 2 else switch


def _sizes(node: schema.NodeDef) -> Optional[list[int]]:
    """Return the attribute ``element_shape``, None for an unknown rank, or for sizes that a list
    cannot state in 32 bits.
    """
    attr = node.attr.get("element_shape")
    sizes = (
        None if attr is None or attr.shape.unknown_rank else [dim.size for dim in attr.shape.dim]
    )
    return None if sizes is None or any(not -1 <= size < 2**31 for size in sizes) else sizes


class _Conversion:
    """Replaces one array by a list. Nodes keep their names, so control edges keep their meaning."""

    def __init__(self, function: EditableFunction, array: str, handles: set[str]):
        self.function = function
        self.array = function.nodes[array]
        self.handles = handles
        self.dtype = self.array.attr["dtype"].type
        self.grows = self.array.attr["dynamic_size"].b

    def run(self, users: Iterable[str]) -> None:
        for name in users:
            node = self.function.nodes[name]
            if node.op in _PASSING and name in self.handles:
                self.function.remove([name])
            elif node.op in _PASSING:
                node.attr["T"].type = schema.DT_VARIANT
                node.attr.pop("_output_shapes", None)
                self.function.changed(name)
            elif node.op == "TensorArrayCloseV3":
                self._become(node, "NoOp", [])
            else:
                self._use(node)
        (size,) = self.function.data(self.array)
        sizes = _sizes(self.array)
        shape = self._shape_constant(self.array.name, size, sizes)
        self._become(self.array, "TensorListReserve", [shape, size])
        self.array.attr["shape_type"].type = INT32
        self.function.replace(f"{self.array.name}:flow:0", f"{self.array.name}:handle:0")

    def _shape_constant(self, name: str, beside: str, sizes: Optional[list[int]]) -> str:
        """Add the shape of an element (-1 for an unknown rank) in the frame and branch that the
        tensor ``beside`` is in.
        """
        function = self.function
        after = source(beside)
        if (
            after in function.nodes and function.nodes[after].op == "Switch"
        ):  # a control edge does not tell its branch
            after = source(function.identity_text(f"{name}/size", beside, INT32))
        shape = int_tensor(-1 if sizes is None else sizes)
        return function.constant(
            f"{name}/element_shape", shape, [after] if after in function.nodes else []
        )

    def _use(self, node: schema.NodeDef) -> None:
        data = self.function.data(node)
        flow = data[_USES[node.op][0]]
        if node.op == "TensorArrayReadV3":
            self._become(
                node, "TensorListGetItem", [flow, data[1], self._shape(node, flow)], value="item"
            )
        elif node.op == "TensorArrayGatherV3":
            shape = self._gathered_shape(node, data[1]) or self._shape(node, flow)
            self._become(node, "TensorListGather", [flow, data[1], shape], value="values")
        elif node.op == "TensorArrayConcatV3":
            element_shape = schema.TensorShapeProto(unknown_rank=True)
            if (
                "element_shape_except0" in node.attr
                and not node.attr["element_shape_except0"].shape.unknown_rank
            ):
                element_shape = schema.TensorShapeProto()
                element_shape.dim.add(size=-1)
                element_shape.dim.extend(node.attr["element_shape_except0"].shape.dim)
            self._become(node, "TensorListConcat", [flow], value="tensor", lengths="lengths")
            node.attr["element_shape"].shape.CopyFrom(element_shape)
        elif node.op == "TensorArraySizeV3":
            self._become(node, "TensorListLength", [flow], size="length")
            del node.attr["element_dtype"]
        elif node.op == "TensorArrayWriteV3":
            self._become(
                node, "TensorListSetItem", [flow, data[1], data[2]], flow_out="output_handle"
            )
            if self.grows:
                node.attr[RESIZE].b = True
        elif node.op == "TensorArrayScatterV3":
            self._become(
                node,
                "TensorListScatterIntoExistingList",
                [flow, data[2], data[1]],
                flow_out="output_handle",
            )
        else:
            self._become(
                node,
                "TensorListSplit",
                [data[1], self._shape(node, flow), data[2]],
                flow_out="output_handle",
            )
            node.attr["shape_type"].type = INT32

    def _gathered_shape(self, node: schema.NodeDef, indices: str) -> Optional[str]:
        """Return the shape of an element that a TensorArrayGatherV3 states; it decides the result
        if nothing is gathered.

        Return None for a known number of indices: the result would have a narrower shape than the
        signature promises.
        """
        sizes, maker = _sizes(node), self.function.nodes.get(source(indices))
        if sizes is None or (maker is not None and maker.op in ("Const", "Pack")):
            return None
        return self._shape_constant(node.name, indices, sizes)

    def _shape(self, node: schema.NodeDef, flow: str) -> str:
        """Return the known part of the shape of a list's elements."""
        made = self.function.node(f"{node.name}/element_shape", "TensorListElementShape", [flow])
        made.attr["shape_type"].type = INT32
        made.device = node.device
        return f"{made.name}:element_shape:0"

    def _become(self, node: schema.NodeDef, op: str, inputs: list[str], **outputs: str) -> None:
        """Change the op of a node.

        ``outputs``: output argument of the old op -> that of the new one.
        """
        controls = [text for text in node.input if text[:1] == "^"]
        node.input[:] = inputs + controls
        node.op = op
        clear_op_attributes(node)
        node.attr.pop("_output_shapes", None)
        if op != "NoOp":
            node.attr["element_dtype"].type = self.dtype
        for old, new in outputs.items():
            if old != new:
                self.function.replace(f"{node.name}:{old}:0", f"{node.name}:{new}:0")
        self.function.changed(node.name)

"""Promises of the op history: every change of the registry since a release, each with a model that
shows it.

    op        an op comes or goes
    attr      an attr of an op comes or goes
    value     a value that an attr may have comes or goes
    kernel    a CPU kernel of an op comes or goes; one combination of types stands for all that
              change in a release
    dtype     a data type comes

A model that shows a change (:func:`specimen`) holds one node, which has what came or went. If a
kernel changed, the model runs the node when it is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.format.values.dtypes import by_name
from savedmodel_tools.skew import arguments
from savedmodel_tools.skew.history import History, OpHistory
from savedmodel_tools.skew.records import Attr, Kernel, Op

OP, ATTR, VALUE, KERNEL, DTYPE = "op", "attr", "value", "kernel", "dtype"
NODE = "specimen"
INIT = "__saved_model_init_op"
_FUNCTION = "specimen_function"


class NoSpecimen(ValueError):
    """Raised when no model can show the change by a node alone; the message says why."""


@dataclass(frozen=True)
class Promise:
    """One change from a release to the next.

    Attributes:
      release: the name of the first release that has it, or that no longer has it.
      kind: OP, ATTR, VALUE, KERNEL or DTYPE.
      op, attr, value: what changed, as in :class:`savedmodel_tools.skew.lacks.Lack`; for a kernel,
        ``value`` has its types.
      came: whether the release added it; else the release removed it.
    """

    release: str
    kind: str
    op: str
    attr: str = ""
    value: str = ""
    came: bool = True

    def __str__(self) -> str:
        what = {
            OP: f"op {self.op}",
            ATTR: f"attr {self.attr} of {self.op}",
            VALUE: f"{self.attr}={self.value} of {self.op}",
        }
        other = {
            KERNEL: f"kernel of {self.op} ({self.value or 'any types'})",
            DTYPE: f"dtype {self.value}",
        }
        return f"{'+' if self.came else '-'} {(what | other)[self.kind]}"


def promises(table: History, first: str) -> Iterator[Promise]:
    """Return every change from the release ``first`` to the one after it, and so on to the
    newest.
    """
    start = table.nearest_after(first)
    for dtype, members in table.dtypes.items():
        if members and members[0] > start:
            yield Promise(table.releases[members[0]].name, DTYPE, "Const", "dtype", dtype)
    for name in table.names:
        known = table.op(name)
        assert known is not None
        for index in range(start + 1, len(table.releases)):
            yield from _of_op(known, index, table)


def _of_op(known: OpHistory, index: int, table: History) -> Iterator[Promise]:
    release, (was, now) = (
        table.releases[index].name,
        (known.definition(number) for number in (index - 1, index)),
    )
    if was is None or now is None:
        if was is not now:
            yield Promise(release, OP, known.name, came=was is None)
        return
    for attr in known.attr_names:
        before, after = was.attr(attr), now.attr(attr)
        if before is None or after is None:
            if before is not after:
                yield Promise(release, ATTR, known.name, attr, came=before is None)
        elif before.allowed is not None and after.allowed is not None:
            for value in sorted({*before.allowed} ^ {*after.allowed}):
                yield Promise(release, VALUE, known.name, attr, value, came=value in after.allowed)
    if known.products(index - 1) == known.products(index):
        return
    kernels = [frozenset(known.kernels(number)) for number in (index - 1, index)]
    for came, (mine, others), op in ((True, kernels[::-1], now), (False, kernels, was)):
        changed = [
            kernel
            for kernel in mine - others
            if _possible(kernel, op) and not _covered(kernel, others)
        ]
        if changed:
            yield Promise(release, KERNEL, known.name, "", _kernel_text(min(changed)), came)


def _possible(kernel: Kernel, op: Op) -> bool:
    """Return whether the op may have these values: some kernels are registered for values that the
    op does not allow.
    """
    attrs = ((op.attr(name), value) for name, value in kernel)
    return all(
        attr is not None and (attr.allowed is None or value in attr.allowed)
        for attr, value in attrs
    )


def _covered(kernel: Kernel, others: frozenset[Kernel]) -> bool:
    """Return whether another kernel takes everything this one takes, and more."""
    return any(set(other) <= set(kernel) for other in others)


def _kernel_text(kernel: Kernel) -> str:
    return ", ".join(f"{attr}={value}" for attr, value in kernel)


def specimen(promise: Promise, table: History) -> schema.SavedModel:
    """Return a SavedModel with one node that has what came or went.

    Raises:
      NoSpecimen: the node needs an input that no other node of a graph can provide.
    """
    known = table.op(promise.op)
    index = table.index(promise.release)
    assert known is not None and index is not None
    op = known.definition(index if promise.came else index - 1)
    assert op is not None
    message = schema.SavedModel(saved_model_schema_version=1)
    graph = message.meta_graphs.add()
    graph.meta_info_def.tags.append("serve")
    graph.graph_def.versions.producer = table.releases[0].producer
    wanted = (
        dict(item.split("=", 1) for item in promise.value.split(", ") if "=" in item)
        if promise.kind == KERNEL
        else {}
    )
    if promise.kind in (VALUE, DTYPE):
        wanted[promise.attr] = promise.value
    node = schema.NodeDef(name=NODE, op=op.name)
    plain = {
        attr.name: _set(node, attr, wanted.get(attr.name))
        for attr in op.attrs
        if _needed(attr, promise, wanted)
    }
    _inputs(graph.graph_def, node, op, plain)
    graph.graph_def.node.add().CopyFrom(node)
    if any(attr.type in ("func", "list(func)") for attr in op.attrs):
        graph.graph_def.library.function.add().signature.name = _FUNCTION
    if promise.kind == KERNEL:
        graph.signature_def[INIT].outputs[INIT].name = NODE
    return message


def _needed(attr: Attr, promise: Promise, wanted: dict[str, str]) -> bool:
    return attr.default is None or attr.name in wanted or attr.name == promise.attr


def _inputs(graph: schema.GraphDef, node: schema.NodeDef, op: Op, plain: dict[str, Any]) -> None:
    tensors = arguments.inputs(op, plain)
    if tensors is None:
        raise NoSpecimen("the attrs do not say how many inputs the op takes")
    kinds = list(tensors.kinds())
    for number, (kind, dtype) in enumerate(zip(kinds, _typed(op, kinds, plain))):
        source = graph.node.add(
            name=f"input_{number}",
            op="VariableV2" if arguments.is_reference(kind) else "Placeholder",
        )
        source.attr["dtype"].type = by_name(dtype).number
        source.attr["shape"].shape.unknown_rank = True
        node.input.append(source.name)


def _typed(op: Op, kinds: list[str], plain: dict[str, Any]) -> Iterator[str]:
    """Return the dtype of each input; where the type is an attr, the value of that attr."""
    taken: dict[str, int] = {}
    for text in kinds:
        kind = text[len("Ref(") : -1] if arguments.is_reference(text) else text
        attr = op.attr(kind)
        value = plain.get(kind, attr.default) if attr else kind
        if isinstance(value, list):
            taken[kind] = taken.get(kind, -1) + 1
            value = value[taken[kind] % len(value)]
        yield str(value)


def _set(node: schema.NodeDef, attr: Attr, wanted: Optional[str]) -> Any:
    """Set an attr to the wanted value, or to the smallest value it may have; return the value as
    written in the history.
    """
    slot = node.attr[attr.name]
    inner = attr.type[5:-1] if attr.type.startswith("list(") else attr.type
    single = _value(attr, inner, wanted)
    if inner == attr.type:
        _assign(slot, inner, single)
        return single
    slot.list.SetInParent()
    count = max(attr.minimum or 0, 1 if wanted is not None else 0)
    for _ in range(count):
        _append(slot.list, inner, single)
    return [single] * count


def _value(attr: Attr, kind: str, wanted: Optional[str]) -> Any:
    if kind == "type":
        return wanted or (
            "float32" if attr.allowed is None or "float32" in attr.allowed else attr.allowed[0]
        )
    if kind == "string":
        default = attr.allowed[0] if attr.allowed else ""
        return wanted if wanted is not None else default
    if kind == "int":
        return int(wanted) if wanted is not None else max(attr.minimum or 0, 1)
    if kind == "bool":
        return wanted == "true"
    if kind == "float":
        return float(wanted or 1.0)
    if kind in ("shape", "func", "tensor"):
        return kind
    raise NoSpecimen(f"an attr of type {attr.type}")


def _assign(slot: schema.AttrValue, kind: str, value: Any) -> None:
    if kind == "type":
        slot.type = by_name(value).number
    elif kind == "string":
        slot.s = value.encode()
    elif kind == "int":
        slot.i = value
    elif kind == "bool":
        slot.b = value
    elif kind == "float":
        slot.f = value
    elif kind == "shape":
        slot.shape.unknown_rank = True
    elif kind == "func":
        slot.func.name = _FUNCTION
    else:
        slot.tensor.dtype = by_name("float32").number
        slot.tensor.tensor_shape.SetInParent()
        slot.tensor.float_val.append(0.0)


def _append(items: Any, kind: str, value: Any) -> None:
    if kind == "type":
        items.type.append(by_name(value).number)
    elif kind == "string":
        items.s.append(value.encode())
    elif kind in ("int", "bool", "float"):
        getattr(items, kind[0]).append(value)
    elif kind == "shape":
        items.shape.add().unknown_rank = True
    elif kind == "func":
        items.func.add().name = _FUNCTION
    else:
        raise NoSpecimen("an attr that is a list of tensors")

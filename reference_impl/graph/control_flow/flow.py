"""A FunctionDef in parts, for passes that replace control flow of TF 1.x by functions (V1-11).

``Body`` holds nodes by name. A pass that replaces a node says what stands for its tensors from now on; inputs are read through
:meth:`Body.resolve`, so nothing is searched and every pass stays linear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.graph.op_table import RESOURCE, VARIANT, OpTable

V1_FLOW = frozenset(
    prefix + op for prefix in ("", "Ref") for op in ("Switch", "Merge", "Enter", "Exit", "NextIteration")
) | {"LoopCond"}  # fmt: skip
READS = ("ReadVariableOp", "VarIsInitializedOp", "ResourceGather")  # stateful, and they change nothing
MAX_NESTING = 100


class Unprovable(Exception):
    """The graph is not what tf.while_loop, tf.cond and TensorArray make, so it stays as it is."""

    def __init__(self, node: str, reason: str):
        super().__init__(f"node {node!r} {reason}")
        self.node = node


class Tensor(NamedTuple):
    """A value that crosses the border of a function: its text inside, its DataType, and a TensorShapeProto where it is known."""

    text: str
    dtype: int
    shape: Any = None


class Body:
    """The nodes of a FunctionDef.

    Args:
      function: a FunctionDef message; :meth:`store` writes the outcome back into it.
      ops: describes outputs of nodes.
      file: named in errors.
    """

    def __init__(self, function: Any, ops: OpTable):
        self.function = function
        self.ops = ops
        self.arguments = {argument.name: argument.type for argument in function.signature.input_arg}
        self.nodes: dict[str, Any] = {}
        for node in function.node_def:
            copy = schema.NodeDef()
            copy.CopyFrom(node)
            self.nodes[node.name] = copy
        self._tensors: dict[str, str] = {}  # text of a tensor -> text of the one that replaces it
        self._controls: dict[str, str] = {}  # node -> node that stands for it in control edges
        self._outputs: dict[str, dict[str, tuple[int, int]]] = {}  # node -> {port: (position, DataType)}
        self._positions = {name: index for index, name in enumerate(self.arguments)}
        self._numbers: dict[str, int] = {}
        self._taken = {*self.arguments, *self.nodes}

    def replace(self, text: str, by: str) -> None:
        self._tensors[text] = by

    def replace_control(self, node: str, by: str) -> None:
        self._controls[node] = by

    def changed(self, node: str) -> None:
        """Forget what the outputs of ``node`` were."""
        self._outputs.pop(node, None)

    def resolve(self, text: str) -> str:
        """The text of a tensor, or of a control edge, after all replacements."""
        if text[:1] == "^":
            return "^" + _follow(self._controls, text[1:])
        return _follow(self._tensors, text)

    def data(self, node: Any, count: int = -1) -> list[str]:
        """The tensors that go into ``node``. Raises Unprovable: there are not ``count`` of them."""
        found = [self.resolve(text) for text in node.input if text[:1] != "^"]
        if count not in (-1, len(found)):
            raise Unprovable(node.name, f"has {len(found)} data inputs, not {count}")
        return found

    def controls(self, node: Any) -> list[str]:
        """Names of the nodes after which ``node`` runs, each once."""
        return list(dict.fromkeys(self.resolve(text)[1:] for text in node.input if text[:1] == "^"))

    def sources(self, node: Any) -> list[str]:
        """Names of all nodes that ``node`` needs; arguments are left out."""
        found = [*(source(text) for text in self.data(node)), *self.controls(node)]
        return [name for name in found if name in self.nodes]

    def dtype(self, text: str) -> int:
        """DataType of a tensor. Raises MalformedError: there is no such tensor."""
        name = source(text)
        return self.arguments[name] if name in self.arguments and text == name else self._output(text)[1]

    def _output(self, text: str) -> tuple[int, int]:
        name = source(text)
        if name in self.nodes:
            if name not in self._outputs:
                outputs = enumerate(self.ops.outputs(self.nodes[name]))
                self._outputs[name] = {f"{port}:{index}": (place, kind % 100) for place, (port, index, kind) in outputs}
            outputs_of = self._outputs[name]
            if text[len(name) + 1 :] in outputs_of:
                return outputs_of[text[len(name) + 1 :]]
        raise errors.MalformedError(f"there is no tensor {text!r}", file=self.ops.file, node=self.function.signature.name)

    def shape(self, text: str) -> Optional[Any]:
        """The static shape of a tensor as the exporter noted it, a TensorShapeProto; None when it did not."""
        place, attrs = 0, {}
        if text in self.arguments:
            if self._positions[text] in self.function.arg_attr:
                attrs = self.function.arg_attr[self._positions[text]].attr
        else:
            place, attrs = self._output(text)[0], self.nodes[source(text)].attr
        for key in ("_output_shapes", "output_shapes"):
            if key in attrs and place < len(attrs[key].list.shape):
                return attrs[key].list.shape[place]
        return None

    def tensor(self, text: str) -> Tensor:
        """What crosses a border when the tensor ``text`` does."""
        return Tensor(text, self.dtype(text), self.shape(text))

    def is_stateful(self, names: Iterable[str]) -> bool:
        return any(self.ops.is_stateful(self.nodes[name]) for name in names)

    def add(self, name: str, op: str, inputs: Sequence[str] = (), controls: Iterable[str] = ()) -> Any:
        """A new node with a free name like ``name``."""
        unique = name
        while unique in self._taken:
            self._numbers[name] = self._numbers.get(name, 0) + 1
            unique = f"{name}_{self._numbers[name]}"
        self._taken.add(unique)  # a name stays taken when its node goes: edges may still refer to the old one
        node = schema.NodeDef(name=unique, op=op)
        node.input.extend(inputs)
        node.input.extend("^" + control for control in dict.fromkeys(controls) if control not in self.arguments)
        self.nodes[unique] = node
        return node

    def add_constant(self, name: str, value: int, controls: Iterable[str] = ()) -> str:
        """A scalar int32; the text of its tensor."""
        node = self.add(name, "Const", (), controls)
        constant(node, [value], scalar=True)
        return f"{node.name}:output:0"

    def results(self, controls: bool = True) -> list[str]:
        """Nodes whose tensors, or (``controls``) completion, the function gives to its callers."""
        function = self.function
        found = [source(self.resolve(text)) for text in function.ret.values()]
        if controls:
            found += [self.resolve("^" + name)[1:] for name in function.control_ret.values()]
        return [name for name in found if name in self.nodes]

    def extract(
        self,
        name: str,
        nodes: Sequence[str],
        arguments: Mapping[str, Tensor],
        results: Sequence[Tensor],
        moved: Mapping[str, str],
    ) -> Any:
        """A new FunctionDef.

        Args:
          nodes: names of the nodes in it, which are copied.
          arguments: name -> tensor it stands for; only dtype and shape count.
          results: tensors of this body.
          moved: tensors of this body -> what they are inside.
        """
        function = schema.FunctionDef()
        function.signature.name = name
        for index, (argument, tensor) in enumerate(arguments.items()):
            function.signature.input_arg.add(name=argument, type=tensor.dtype)
            if tensor.shape is not None:
                function.arg_attr[index].attr["_output_shapes"].list.shape.add().CopyFrom(tensor.shape)
        inside = set(nodes)
        for node_name in nodes:
            copy = function.node_def.add()
            copy.CopyFrom(self.nodes[node_name])
            controls = ["^" + control for control in self.controls(copy) if control in inside]
            copy.input[:] = [moved.get(text, text) for text in self.data(copy)] + controls
        for index, tensor in enumerate(results):
            function.signature.output_arg.add(name=f"result_{index}", type=tensor.dtype)
            text = self.resolve(tensor.text)
            function.ret[f"result_{index}"] = moved.get(text, text)
        # TensorFlow leaves out results that nobody uses, and with them what they waited for; a call is over when its effects are.
        effects = [name for name in nodes if self.nodes[name].op not in READS and self.is_stateful([name])]
        for index, effect in enumerate(effects):
            function.control_ret[f"effect_{index}"] = effect
            function.signature.control_output.append(f"effect_{index}")
        function.signature.is_stateful = self.is_stateful(nodes)
        return function

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            del self.nodes[name]

    def store(self) -> None:
        """Write everything back into the FunctionDef."""
        function = self.function
        for node in self.nodes.values():
            node.input[:] = self.data(node) + ["^" + name for name in self.controls(node) if name in self.nodes]
        for key, text in list(function.ret.items()):
            function.ret[key] = self.resolve(text)
        for key, name in list(function.control_ret.items()):
            function.control_ret[key] = self.resolve("^" + name)[1:]
        del function.node_def[:]
        function.node_def.extend(self.nodes.values())


def source(text: str) -> str:
    """The node or argument that a tensor of a function comes from."""
    return text.partition(":")[0]


def constant(node: Any, values: Sequence[int], scalar: bool = False) -> None:
    """Make ``node`` an int32 Const."""
    node.op = "Const"
    node.attr["dtype"].type = schema.DT_INT32
    tensor = node.attr["value"].tensor
    tensor.dtype = schema.DT_INT32
    tensor.int_val.extend(values)
    tensor.tensor_shape.SetInParent()
    if not scalar:
        tensor.tensor_shape.dim.add(size=len(values))


def zeros(body: Body, name: str, tensor: Tensor) -> tuple[str, list[str]]:
    """Zeros of the dtype and as far as it is known the shape of a tensor: the text, and the nodes made for it."""
    known = tensor.shape is not None and not tensor.shape.unknown_rank
    sizes, value, filled = (body.add(f"{name}/{part}", "Const") for part in ("Sizes", "Zero", "Nothing"))
    constant(sizes, [max(dim.size, 0) for dim in tensor.shape.dim] if known else [])
    value.attr["dtype"].type = value.attr["value"].tensor.dtype = filled.attr["T"].type = tensor.dtype
    value.attr["value"].tensor.tensor_shape.SetInParent()
    filled.op, filled.attr["index_type"].type = "Fill", schema.DT_INT32
    filled.input.extend(f"{node.name}:output:0" for node in (sizes, value))
    return f"{filled.name}:output:0", [sizes.name, value.name, filled.name]


def static_shapes(attr: Any, tensors: Iterable[Tensor]) -> None:
    """Fill a list(shape) attribute with what is known; handles are scalars."""
    attr.list.SetInParent()
    for tensor in tensors:
        shape = attr.list.shape.add()
        if tensor.shape is not None:
            shape.CopyFrom(tensor.shape)
        elif tensor.dtype not in (RESOURCE, VARIANT):
            shape.unknown_rank = True


def order(body: Body) -> Optional[list[str]]:
    """Names of the nodes, each after those it needs; None when there is a cycle."""
    waiting: dict[str, int] = {}
    users: dict[str, list[str]] = {name: [] for name in body.nodes}
    for name, node in body.nodes.items():
        needs = body.sources(node)
        waiting[name] = len(needs)
        for other in needs:
            users[other].append(name)
    found = [name for name, count in waiting.items() if count == 0]
    for name in found:  # grows meanwhile
        for user in users[name]:
            waiting[user] -= 1
            if waiting[user] == 0:
                found.append(user)
    return found if len(found) == len(body.nodes) else None


def _follow(table: dict[str, str], key: str) -> str:
    first = key
    while key in table:
        key = table[key]
    if first != key:
        table[first] = key  # the next one gets there at once
    return key

"""Real models with hostile numbers, loaded for real: no input may end the process.

An input is the name of a fixture, a zero byte, and its saved_model.pb, changed. Everything else of
the fixture lies beside it. Changes aim at what TensorFlow's C++ trusts: shapes, dtypes, tensors,
counts. Nothing that acts on the machine is run.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
_LARGEST = 40_000  # bytes of a seed
_SIZES = (-1, -2, -(2**63), 2**62, 2**31, 2**40, 0, 3)
_DTYPES = (0, 99, 101, 120, 20, 21, 7, 1, 3, 9, 10, 14, 23, 29, 31, -1, 2**31 - 1)
_INTEGERS = (-1, -5, 0, 1, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 7, 100_000)
_VARIANTS = (
    *(
        "tensorflow::TensorList",
        "tensorflow::TensorMap",
        "tensorflow::data::WrappedDatasetVariant",
        "RaggedTensorVariant",
    ),
    *(
        "tensorflow::data::Optional",
        "tensorflow::data::CompressedElement",
        "int",
        "bool",
        "",
        "nobody",
    ),
)


def seeds() -> list[bytes]:
    """The small fixtures, those with an object graph among them."""
    found = sorted(FIXTURES.glob("*/model/saved_model.pb"))
    return [
        path.parts[-3].encode() + b"\0" + path.read_bytes()
        for path in found
        if path.stat().st_size <= _LARGEST
    ]


def place(folder: Path, data: bytes) -> None:
    """Copy the fixture of an input, and put its changed saved_model.pb in."""
    name, _, content = data.partition(b"\0")
    shutil.rmtree(folder / "model", ignore_errors=True)
    shutil.copytree(FIXTURES / name.decode() / "model", folder / "model")
    (folder / "model" / "saved_model.pb").write_bytes(content)


def load(folder: Path) -> None:
    """Load the first MetaGraph, describe its signatures and call them: a function reaches C++ when
    it is called.
    """
    import gc

    import reference_impl
    from reference_impl.format.container import layout

    tags = layout.read(folder / "model").tag_sets[0]
    root = reference_impl.load(
        folder / "model", tags, reference_impl.LoadOptions(machine_ops="refuse")
    )
    for function in root.signatures.values():
        str(function.structured_input_signature)
        _call(function)
    del root
    gc.collect()  # what objects run when they are collected is a part of it


def _call(function: Any) -> None:
    """Call a signature with zeros. Whatever acts on the machine when it is called is left out."""
    import tensorflow as tf

    from reference_impl.safety.op_effects import op_effect

    if not hasattr(function, "saved_name"):
        return  # a signature that cannot be used, and says why
    library = function.library
    ops = {
        node.op
        for name in library.closure(function.saved_name)
        for node in library.get(name).node_def
    }
    if any(op_effect(op, library.index.functions) for op in ops if op not in library):
        return
    given = {}
    for name, spec in function.structured_input_signature[1].items():
        sizes = (
            [1]
            if spec.shape.rank is None
            else [1 if size is None else min(size, 64) for size in spec.shape.as_list()]
        )
        if len(sizes) > 8 or spec.dtype in (tf.resource, tf.variant):
            return
        try:
            given[name] = tf.zeros(sizes, spec.dtype)
        except (TypeError, ValueError):
            return  # a dtype of which TensorFlow makes no zeros
    function(**given)


def named() -> tuple[type[Exception], ...]:
    """Errors that are an answer: ours, and those of TensorFlow's runtime."""
    import tensorflow as tf

    from reference_impl.errors import SavedModelError

    return (SavedModelError, tf.errors.OpError)


def mutator(_: list[bytes]) -> Any:
    """Return the function that changes an input once or twice."""
    return mutate


def mutate(rng: Random, data: bytes) -> bytes:
    """Change one or two nodes, functions, variables or signatures: their numbers, and attributes by
    their kind.
    """
    from reference_impl.format import schema

    name, _, content = data.partition(b"\0")
    message = schema.parse(schema.SavedModel, content)
    graph = rng.choice(list(message.meta_graphs))
    for _ in range(rng.choice((1, 1, 2))):
        rng.choice((_node, _node, _kind, _kind, _edge, _function, _interface))(rng, graph)
    return name + b"\0" + message.SerializeToString(deterministic=True)


def _bodies(graph: Any) -> list[Any]:
    bodies = [
        graph.graph_def.node,
        *[function.node_def for function in graph.graph_def.library.function],
    ]
    return [body for body in bodies if len(body)]


def _kind(rng: Random, graph: Any) -> None:
    """Change an attribute of some kind: another value of the kind, a value of another kind, none, a
    placeholder.

    The kind is drawn first, so that the rare ones (functions, lists of them, tensors) are changed
    as often as dtypes.
    """
    found: dict[str, list[tuple[Any, str]]] = {}
    for body in _bodies(graph):
        for node in body:
            for key in sorted(node.attr):
                found.setdefault(_kind_of(node.attr[key]), []).append((node.attr, key))
    if not found:
        return
    attributes, key = rng.choice(found[rng.choice(sorted(found))])
    value, change = attributes[key], rng.randrange(8)
    if change == 0:
        del attributes[key]
    elif change == 1:
        value.placeholder = rng.choice(("", "T", "N", key))
    elif change <= 3:
        _other_kind(rng, value)
    elif value.HasField("list") and change == 4:
        value.list.Clear()
    elif value.HasField("func"):
        value.func.name = rng.choice(("", "nobody", "Identity"))
    elif value.HasField("list") and value.list.func:
        del value.list.func[rng.randrange(len(value.list.func)) :]
    else:
        _value(rng, value)


def _kind_of(value: Any) -> str:
    """The kind of an attribute, as an op names it: ``type``, ``list(shape)``."""
    kind = value.WhichOneof("value") or "nothing"
    if kind != "list":
        return kind
    return f"list({', '.join(field.name for field, _ in value.list.ListFields())})"


def _other_kind(rng: Random, value: Any) -> None:
    """Give an attribute a value of a kind drawn from all there are."""
    kind = rng.choice(("s", "i", "f", "b", "type", "shape", "tensor", "func", "list", "variant"))
    if kind == "func":
        value.func.name = "nobody"
    elif kind == "list":
        value.list.Clear()
        value.list.SetInParent()
        getattr(value.list, rng.choice(("i", "type"))).extend(
            [rng.choice(_DTYPES)] * rng.choice((0, 1, 3, 1000))
        )
    elif kind == "variant":
        _variant(rng, value.tensor)
    elif kind in ("shape", "tensor"):
        getattr(value, kind).SetInParent()
        _value(rng, value)
    else:
        setattr(
            value,
            kind,
            {
                "s": b"x",
                "i": rng.choice(_INTEGERS),
                "f": 1.0,
                "b": True,
                "type": rng.choice(_DTYPES),
            }[kind],
        )


def _variant(rng: Random, tensor: Any) -> None:
    """Make a tensor one of C++ types, which their decoders read."""
    tensor.Clear()
    tensor.dtype = 21
    held = tensor.variant_val.add(type_name=rng.choice(_VARIANTS))
    held.metadata = bytes(
        rng.choice((0, 1, 2, 3, 0x18, 0x7F, 0x80, 0xFF)) for _ in range(rng.randrange(12))
    )
    if rng.random() < 0.3:
        held.tensors.add(dtype=rng.choice(_DTYPES)).tensor_shape.dim.add(size=rng.choice(_SIZES))


def _edge(rng: Random, graph: Any) -> None:
    """Change an input of a node, or how many it has."""
    nodes = [node for node in rng.choice(_bodies(graph) or [[]]) if node.input]
    if not nodes:
        return
    node = rng.choice(nodes)
    at = rng.randrange(len(node.input))
    source = node.input[at].partition(":")[0]
    change = rng.randrange(7)
    if change == 0:
        del node.input[at]
    elif change == 1:
        node.input.append(node.input[at])
    else:
        node.input[at] = rng.choice(
            ("", "^", f"^{source}", f"{source}:none:0", f"{source}:999999999", source, "nobody:0")
        )


def _node(rng: Random, graph: Any) -> None:
    bodies = _bodies(graph)
    if bodies:
        attributes = rng.choice(rng.choice(bodies)).attr
        if attributes:
            telling = [
                key
                for key in sorted(attributes)
                if attributes[key].WhichOneof("value") in ("tensor", "shape", "list")
            ]
            _value(
                rng,
                attributes[
                    rng.choice(telling if telling and rng.random() < 0.6 else sorted(attributes))
                ],
            )


def _function(rng: Random, graph: Any) -> None:
    if not graph.graph_def.library.function:
        return
    function = rng.choice(list(graph.graph_def.library.function))
    arguments = [*function.signature.input_arg, *function.signature.output_arg]
    attributes = [function.attr, *[item.attr for _, item in sorted(function.arg_attr.items())]]
    attributes = [item for item in attributes if item]
    if arguments and rng.random() < 0.5:
        rng.choice(arguments).type = rng.choice(_DTYPES)
    elif attributes:
        chosen = rng.choice(attributes)
        _value(rng, chosen[rng.choice(sorted(chosen))])


def _interface(rng: Random, graph: Any) -> None:
    variables = [
        node.variable for node in graph.object_graph_def.nodes if node.HasField("variable")
    ]
    if variables and rng.random() < 0.7:
        variable = rng.choice(variables)
        if rng.random() < 0.5:
            _shape(rng, variable.shape)
        else:
            variable.dtype = rng.choice(_DTYPES)
    elif graph.signature_def:
        signature = graph.signature_def[rng.choice(sorted(graph.signature_def))]
        sides = [
            side[key] for side in (signature.inputs, signature.outputs) for key in sorted(side)
        ]
        if sides:
            info = rng.choice(sides)
            if rng.random() < 0.5:
                _shape(rng, info.tensor_shape)
            else:
                info.dtype = rng.choice(_DTYPES)


def _value(rng: Random, value: Any) -> None:
    kind = value.WhichOneof("value")
    if kind == "tensor":
        _tensor(rng, value.tensor)
    elif kind == "shape":
        _shape(rng, value.shape)
    elif kind == "type":
        value.type = rng.choice(_DTYPES)
    elif kind == "i":
        value.i = rng.choice(_INTEGERS)
    elif kind == "s":
        value.s = rng.choice((b"", b"\xff\xfe", b"x" * 100_000, value.s + b"\0"))
    elif kind == "f":
        value.f = rng.choice((float("nan"), float("inf"), -1.0))
    elif kind == "b":
        value.b = not value.b
    elif kind == "list":
        _list(rng, value.list)
    else:
        value.i = 3


def _list(rng: Random, values: Any) -> None:
    if values.shape:
        _shape(rng, rng.choice(list(values.shape)))
    elif values.type:
        values.type[rng.randrange(len(values.type))] = rng.choice(_DTYPES)
    elif values.i:
        values.i[rng.randrange(len(values.i))] = rng.choice(_INTEGERS)
    else:
        values.i.append(-1)


def _tensor(rng: Random, tensor: Any) -> None:
    change = rng.randrange(6)
    if change <= 1:
        _shape(rng, tensor.tensor_shape)
    elif change == 2:
        tensor.dtype = rng.choice(_DTYPES)
    elif change == 3:
        tensor.tensor_content = bytes(rng.randrange(40))
    elif change == 4:
        tensor.ClearField("tensor_content")
        tensor.ClearField("string_val")
    else:
        getattr(tensor, rng.choice(("float_val", "int_val", "int64_val", "bool_val"))).extend(
            [1] * rng.choice((1, 1000))
        )


def _shape(rng: Random, shape: Any) -> None:
    change = rng.randrange(5)
    if change == 0:
        shape.unknown_rank = not shape.unknown_rank
    elif change == 1:
        shape.ClearField("dim")
        for _ in range(rng.choice((1, 2, 3))):
            shape.dim.add(size=rng.choice(_SIZES))
    elif change == 2:
        shape.ClearField("dim")
        for _ in range(rng.choice((9, 254, 255, 300))):
            shape.dim.add(size=1)
    elif shape.dim:
        rng.choice(list(shape.dim)).size = rng.choice(_SIZES)
    else:
        shape.dim.add(size=rng.choice(_SIZES))

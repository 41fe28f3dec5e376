"""Real models with hostile numbers, loaded for real: no input may end the process.

An input is the name of a fixture, a zero byte, and its saved_model.pb, changed. Everything else of the fixture lies beside it.
Changes aim at what TensorFlow's C++ trusts: shapes, dtypes, tensors, counts. Nothing that acts on the machine is run.
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
_INTEGERS = (-1, 0, 2**31, 2**63 - 1, -(2**63), 7, 100_000)


def seeds() -> list[bytes]:
    """The small fixtures, those with an object graph among them."""
    found = sorted(FIXTURES.glob("*/model/saved_model.pb"))
    return [path.parts[-3].encode() + b"\0" + path.read_bytes() for path in found if path.stat().st_size <= _LARGEST]


def place(folder: Path, data: bytes) -> None:
    """Copy the fixture of an input, and put its changed saved_model.pb in."""
    name, _, content = data.partition(b"\0")
    shutil.rmtree(folder / "model", ignore_errors=True)
    shutil.copytree(FIXTURES / name.decode() / "model", folder / "model")
    (folder / "model" / "saved_model.pb").write_bytes(content)


def load(folder: Path) -> None:
    """Load the first MetaGraph and describe its signatures."""
    import gc

    import reference_impl
    from reference_impl.format.container import layout

    tags = layout.read(folder / "model").tag_sets[0]
    root = reference_impl.load(folder / "model", tags, reference_impl.LoadOptions(machine_ops="refuse"))
    for function in root.signatures.values():
        str(function.structured_input_signature)
    del root
    gc.collect()  # what objects run when they are collected is a part of it


def named() -> tuple[type[Exception], ...]:
    """Errors that are an answer: ours, and those of TensorFlow's runtime."""
    import tensorflow as tf

    from reference_impl.errors import SavedModelError

    return (SavedModelError, tf.errors.OpError)


def mutator(_: list[bytes]) -> Any:
    """Return the function that changes an input once or twice."""
    return mutate


def mutate(rng: Random, data: bytes) -> bytes:
    """Change numbers of one or two nodes, functions, variables or signatures."""
    from reference_impl.format import schema

    name, _, content = data.partition(b"\0")
    message = schema.parse(schema.SavedModel, content)
    graph = rng.choice(list(message.meta_graphs))
    for _ in range(rng.choice((1, 1, 2))):
        rng.choice((_node, _node, _node, _function, _interface))(rng, graph)
    return name + b"\0" + message.SerializeToString(deterministic=True)


def _node(rng: Random, graph: Any) -> None:
    bodies = [graph.graph_def.node, *[function.node_def for function in graph.graph_def.library.function]]
    bodies = [body for body in bodies if len(body)]
    if bodies:
        attributes = rng.choice(rng.choice(bodies)).attr
        if attributes:
            telling = [key for key in sorted(attributes) if attributes[key].WhichOneof("value") in ("tensor", "shape", "list")]
            _value(rng, attributes[rng.choice(telling if telling and rng.random() < 0.6 else sorted(attributes))])


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
    variables = [node.variable for node in graph.object_graph_def.nodes if node.HasField("variable")]
    if variables and rng.random() < 0.7:
        variable = rng.choice(variables)
        if rng.random() < 0.5:
            _shape(rng, variable.shape)
        else:
            variable.dtype = rng.choice(_DTYPES)
    elif graph.signature_def:
        signature = graph.signature_def[rng.choice(sorted(graph.signature_def))]
        sides = [side[key] for side in (signature.inputs, signature.outputs) for key in sorted(side)]
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
        getattr(tensor, rng.choice(("float_val", "int_val", "int64_val", "bool_val"))).extend([1] * rng.choice((1, 1000)))


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

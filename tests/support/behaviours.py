"""What programs see of `load` and `save`: each behaviour is a small program that runs with either
implementation.

A behaviour takes an Implementation and returns what it saw, in plain Python values, or raises.
`tests/drop_in/test_behaviours.py` compares the two and asks for a row in docs/format/drop_in.md wherever
they differ. They are what TensorFlow's own tests of SavedModels look at, and what its users have
reported.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow as tf

BEHAVIOURS: dict[str, Callable[[Implementation], Any]] = {}


@dataclass
class Implementation:
    """One implementation, and a folder for the files of one behaviour."""

    save: Callable[..., None]
    load: Callable[..., Any]
    folder: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def path(self) -> str:
        return str(self.folder / str(next(self._numbers)))

    def saved(self, root: Any, *arguments: Any, **keywords: Any) -> str:
        path = self.path()
        self.save(root, path, *arguments, **keywords)
        return path

    def cycle(self, root: Any, *arguments: Any, times: int = 1, **keywords: Any) -> Any:
        """Return the root after saving and loading it some times."""
        for _ in range(times):
            root = self.load(self.saved(root, *arguments, **keywords))
        return root


def behaviour(program: Callable[[Implementation], Any]) -> Callable[[Implementation], Any]:
    BEHAVIOURS[program.__name__] = program
    return program


def _module(**children: Any) -> Any:
    root = tf.Module()
    for name, child in children.items():
        setattr(root, name, child)
    return root


def _function(body: Callable[..., Any], *specs: Any) -> Any:
    return tf.function(body, input_signature=list(specs))


def _scalar(name: str | None = None) -> tf.TensorSpec:
    return tf.TensorSpec([], tf.float32, name)


def _inputs(root: Any) -> dict[str, Any]:
    """Return key -> name -> (dtype, shape) of the signatures of a loaded model."""
    return {
        key: {
            name: (spec.dtype.name, str(spec.shape))
            for name, spec in signature.structured_input_signature[1].items()
        }
        for key, signature in root.signatures.items()
    }


def _outcomes(calls: Any) -> list[Any]:
    """Return what each call gives, or its error."""
    seen = []
    for call in calls:
        try:
            seen.append(call())
        except Exception as error:
            seen.append(error)
    return seen


# Default signatures


@behaviour
def default_of_linear_operators(api):
    operator = tf.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]])
    block = tf.linalg.LinearOperatorBlockDiag([operator, tf.linalg.LinearOperatorIdentity(2)])
    seen = []
    for each in (operator, block):
        loaded = api.cycle(
            _module(f=_function(lambda op: op.to_dense(), tf.type_spec_from_value(each))), times=2
        )
        seen.append((_inputs(loaded), loaded.f(each).numpy().tolist()))
    return seen


@behaviour
def default_of_composite_tensors(api):
    ragged = _function(lambda x: x + 1, tf.RaggedTensorSpec([None, None], tf.int32))
    sparse = _function(tf.sparse.to_dense, tf.SparseTensorSpec([None, None], tf.int32))
    return [_inputs(api.cycle(_module(f=f), times=2)) for f in (ragged, sparse)]


@behaviour
def default_of_nests(api):
    Pair = collections.namedtuple("Pair", "a b")
    takes_dict = _function(
        lambda x: x["b"] - x["a"][0], {"b": _scalar(), "a": [_scalar(), _scalar("named")]}
    )
    takes_pair = _function(lambda x: x.a - x.b, Pair(_scalar(), _scalar()))
    return [_inputs(api.cycle(_module(f=f), times=2)) for f in (takes_dict, takes_pair)]


@behaviour
def default_of_nested_results(api):
    return _inputs(api.cycle(_module(f=_function(lambda x: {"a": [x]}, _scalar())), times=2))


@behaviour
def default_beside_a_function_that_cannot_be_one(api):
    pair, nested = (
        _function(lambda x: x[0], [_scalar(), _scalar()]),
        _function(lambda x: {"a": [x]}, _scalar()),
    )
    return _inputs(api.cycle(_module(f=pair, g=nested)))


@behaviour
def default_of_a_function_of_variables(api):
    return _inputs(
        api.cycle(
            _module(f=tf.function(lambda v: v.assign_add(1)).get_concrete_function(tf.Variable(1)))
        )
    )


@behaviour
def default_that_the_object_offers_and_that_cannot_be_one(api):
    class Model(tf.Module):
        @tf.function(input_signature=[_scalar()])
        def _default_save_signature(self, x):
            return {"a": [x]}

    return _inputs(api.cycle(Model()))


# Signatures that are asked for


@behaviour
def asked_signature_of_a_ragged_tensor(api):
    f = _function(lambda x: {"y": x}, tf.RaggedTensorSpec(ragged_rank=2))
    return _inputs(api.cycle(tf.Module(), {"key": f.get_concrete_function()}))


@behaviour
def asked_signature_with_nested_results(api):
    return _inputs(api.cycle(tf.Module(), _function(lambda x: (x, (x, x)), _scalar())))


@behaviour
def asked_signature_of_a_function_without_input_signature(api):
    return _inputs(api.cycle(tf.Module(), tf.function(lambda x: x)))


@behaviour
def asked_signature_of_a_concrete_function_with_a_named_spec(api):
    @tf.function
    def f(x):
        x.set_shape((5, 1))
        return x

    return _inputs(
        api.cycle(
            tf.Module(), {"key": f.get_concrete_function(tf.TensorSpec((None, 1), name="name"))}
        )
    )


@behaviour
def calls_of_a_signature(api):
    root = _module(f=_function(lambda x: x, tf.TensorSpec([None], tf.float32)))
    signature = api.cycle(root).signatures["serving_default"]
    given = [
        5.0,
        [5.0],
        [[5.0]],
        "text",
        None,
        tf.constant(5.0),
        tf.constant([5.0]),
        tf.constant([[5.0]]),
        tf.constant([5]),
    ]

    def answer(*args, **kwargs):
        return signature(*args, **kwargs)["output_0"].numpy().tolist()

    by_name = [lambda value=value: answer(x=value) for value in given]
    others = [
        lambda: answer(5.0),
        lambda: answer(y=tf.constant([5.0])),
        answer,
        lambda: answer([1.0], [2.0]),
    ]
    return _outcomes([*by_name, *others])


@behaviour
def names_of_placeholders(api):
    specs = [
        tf.TensorSpec([None], tf.float32, "A-b"),
        tf.TensorSpec([2], tf.float32, "A/D"),
        tf.TensorSpec([], tf.float32, "bar"),
    ]
    loaded = api.cycle(_module(f=_function(lambda a, b, c: {"p": a, "q": b}, *specs)), times=2)
    signature = loaded.signatures["serving_default"]
    return [
        [(tensor.name, str(tensor.shape)) for tensor in tensors]
        for tensors in (signature.inputs, signature.outputs)
    ]


@behaviour
def names_of_placeholders_of_tf1(api):
    v1, path = tf.compat.v1, api.path()
    with tf.Graph().as_default(), v1.Session() as session:
        first, second = (
            v1.placeholder(tf.float32, [None], "input./-"),
            v1.placeholder(tf.float32, [2], "scope/B_in"),
        )
        v1.saved_model.simple_save(
            session, path, {"x": first, "y": second}, {"z": tf.add(first, second, "out/put")}
        )
    signature = api.load(path).signatures["serving_default"]
    return [tensor.name for tensor in signature.inputs], _inputs(api.load(path))


@behaviour
def declared_names_in_get_concrete_function(api):
    loaded = api.cycle(_module(f=_function(lambda x: x, tf.TensorSpec([None], tf.float32, "x"))))
    given = [tf.TensorSpec([None], name=name) for name in ("other", None, "x")] + [
        tf.TensorSpec([3]),
        tf.TensorSpec([3], name="other"),
    ]
    return _outcomes(
        [lambda spec=spec: bool(loaded.f.get_concrete_function(spec)) for spec in given]
    )


# Files


@behaviour
def shapes_of_calls_after_a_gradient(api):
    from reference_impl.format.container import layout

    root = _module(v=tf.Variable(2.0))
    root.f = _function(lambda x: (root.v * x, root.v * (x + 1.0), None), tf.TensorSpec(None))
    root.g = _function(lambda x: root.f(x)[1], tf.TensorSpec(None))
    with tf.GradientTape():
        root.g(tf.constant(3.0))
    (meta_graph,) = layout.read(api.saved(root, {"g": root.g})).saved_model.meta_graphs
    nodes = [
        node for function in meta_graph.graph_def.library.function for node in function.node_def
    ]
    return sorted(
        len(node.attr["_output_shapes"].list.shape)
        for node in nodes
        if node.op == "StatefulPartitionedCall"
    )


@behaviour
def aliases_of_a_list_with_an_unexported_member(api):
    from reference_impl.format.container import layout

    root, other = (
        _module(f=_function(lambda x: x, _scalar())),
        _function(lambda x: x + 1.0, _scalar()),
    )
    given = [function.get_concrete_function() for function in (root.f, other)]
    options = tf.saved_model.SaveOptions(function_aliases={"alias": given})
    (meta_graph,) = layout.read(api.saved(root, options=options)).saved_model.meta_graphs
    return list(meta_graph.meta_info_def.function_aliases.values())


@behaviour
def a_save_in_the_place_of_another(api):
    path = api.path()
    for value in (1.0, 2.0):
        api.save(_module(v=tf.Variable(value)), path)
    return float(api.load(path).v)


# Objects


@behaviour
def numbers_beside_variables_in_a_list(api):
    loaded = api.cycle(_module(held=[tf.Variable(1.0), 1, tf.Variable(3.0)]))
    return [None if item is None else float(item) for item in loaded.held]


@behaviour
def numbers_beside_variables_in_a_dict(api):
    loaded = api.cycle(_module(held={"a": tf.Variable(1.0), "b": 1}))
    return {key: float(value) for key, value in loaded.held.items()}


@behaviour
def kind_of_a_tuple(api):
    return isinstance(api.cycle(_module(held=(tf.Variable(1.0),))).held, tuple)


@behaviour
def functions_without_a_trace(api):
    return api.cycle(_module(f=tf.function(lambda x: x, jit_compile=True))).f._jit_compile


@behaviour
def functions_that_a_property_makes(api):
    class Model(tf.Module):
        @property
        def made(self):
            return _function(lambda: tf.constant(1.0))

    return hasattr(api.cycle(Model()), "made")


@behaviour
def variables_without_a_value(api):
    from tensorflow.python.ops.resource_variable_ops import UninitializedVariable

    path = api.saved(_module(v=UninitializedVariable(shape=[], dtype=tf.float32, name="v")))
    return _outcomes([lambda: api.load(path)])


@behaviour
def variables_that_no_attribute_reaches(api):
    hidden = tf.Variable(1.0)
    return _outcomes([lambda: api.saved(_module(f=_function(lambda x: x * hidden, _scalar())))])


@behaviour
def tables_that_no_attribute_reaches(api):
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1)
    return _outcomes(
        [lambda: api.saved(_module(f=_function(table.lookup, tf.TensorSpec(None, tf.string))))]
    )


@behaviour
def functions_that_are_marked_as_unsaveable(api):
    @tf.function(input_signature=[])
    def f():
        tf.compat.v1.get_default_graph().mark_as_unsaveable("not this one")
        return 1

    return _outcomes([lambda: api.saved(_module(f=f))])


@behaviour
def arguments_of_a_declared_function(api):
    loaded = api.cycle(
        _module(f=_function(lambda x: 2 * x, tf.TensorSpec([None], tf.int32))), times=2
    )
    given = [tf.constant(2), [1, 2], tf.constant([[1]]), tf.constant([1.0]), "a", [1.5]]
    return _outcomes([lambda value=value: loaded.f(value).numpy().tolist() for value in given])


@behaviour
def description_of_a_concrete_function(api):
    Pair = collections.namedtuple("Pair", "b a")
    f = tf.function(
        lambda first, second: [Pair(a=first + second, b=first * second), second, {"x": 0.5}]
    )
    loaded = api.cycle(_module(f=f.get_concrete_function(tf.constant(2), tf.constant(3))), times=3)
    return loaded.f.pretty_printed_signature()


@behaviour
def content_of_mutable_tables(api):
    root = _module(table=tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, -1))
    root.table.insert("a", 15.0)
    root.f = _function(lambda key: root.table.lookup(key), tf.TensorSpec(None, tf.string))
    loaded = api.cycle(root, times=2)
    return [float(loaded.f("a")), list(loaded.table._self_saveable_object_factories)]


@behaviour
def objects_that_need_what_is_not_tracked(api):
    class Model(tf.Module):
        def _deserialization_dependencies(self, _children):
            return {"other": tf.Module()}

    return _outcomes([lambda: api.saved(Model())])


@behaviour
def scalars_of_numpy_as_python_arguments(api):
    import numpy as np

    root = _module(f=tf.function(lambda x, training: x * 2.0 if training else x))
    root.f(tf.constant(1.0), True)
    loaded = api.cycle(root)
    return _outcomes([lambda: loaded.f(tf.constant(1.0), np.bool_(True)).numpy().tolist()])

"""Readers of other kinds see what Python sees: sessions, the C API, and `inspect`, which runs
nothing.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import reference_impl
from property_tests import implementations, world
from property_tests.implementations import BOTH, REFERENCE
from property_tests.profiles import budget
from property_tests.strategies.models import models

pytestmark = pytest.mark.tensorflow


@functools.cache
def c_api():
    from compat_matrix.workers.c_api_worker import CApiWorker

    return CApiWorker()


@budget(30)
@given(models(signatures=True), st.sampled_from(BOTH))
def test_sessions_the_c_api_and_python_agree(tf, model, writer):
    """Every request of a function that is a signature, asked by name; each reader begins with the
    saved state.
    """
    with world.folder() as folder:
        check_sessions(model.script(), folder, writer)


def questions(built):
    """(key, names -> tensors) for every signature."""
    import tensorflow as tf

    paths = {function._python_function.__name__: key for key, function in built.signatures.items()}
    for path, arguments in built.requests:
        key = paths.get(path.rpartition(".")[2])
        if key is not None:
            names = list(
                built.signatures[key].get_concrete_function().structured_input_signature[0]
            )
            given = eval(f"list([{arguments}])", dict(built.names))
            yield key, {spec.name: tf.convert_to_tensor(value) for spec, value in zip(names, given)}


def check_sessions(script, folder, writer):
    import tensorflow as tf

    built = world.build(script, folder)
    path = implementations.save(writer, built.root, folder / "model", built.signatures)
    asked = list(questions(built))
    assume(asked)
    expected = []
    for reader in BOTH:
        model = implementations.load(reader, path)
        answers = [
            {name: world.plain(item) for name, item in model.signatures[key](**given).items()}
            for key, given in asked
        ]
        expected = expected or answers
        assert answers == expected, reader
    assert by_session(path, asked, tf) == expected, "session"
    assert by_c_api(c_api(), path, asked) == expected, "C API"


def by_session(path, asked, tf):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signatures = tf.compat.v1.saved_model.load(session, ["serve"], str(path)).signature_def
        found = []
        for key, given in asked:
            feed = {
                signatures[key].inputs[name].name: value.numpy() for name, value in given.items()
            }
            outputs = signatures[key].outputs
            values = session.run({name: info.name for name, info in outputs.items()}, feed)
            types = {name: tf.as_dtype(info.dtype).name for name, info in outputs.items()}
            found.append({name: world.bits(value, types[name]) for name, value in values.items()})
        return found


def by_c_api(c_api, path, asked):
    from savedmodel_common import tensors

    model = c_api.load(str(path), ["serve"])
    try:
        found = []
        for key, given in asked:
            sent = {
                name: tensors.from_numpy(value.numpy(), value.dtype.name)
                for name, value in given.items()
            }
            answer = c_api.call_signature(model, key, sent)
            found.append(
                {name: world.bits(item.array, item.dtype) for name, item in answer.items()}
            )
        return found
    finally:
        c_api.release(model)


@budget(30)
@given(models(), st.sampled_from(BOTH))
def test_inspect_agrees_with_what_load_finds(tf, model, writer):
    """The same objects under the same names, one where load finds one, with the same types, traces
    and signatures.
    """
    with world.folder() as folder:
        check_inspect(model.script(), folder, writer)


def check_inspect(script, folder, writer):
    built = world.build(script, folder)
    path = implementations.save(writer, built.root, folder / "model", built.signatures)
    loaded = implementations.load(REFERENCE, path)
    (graph,) = reference_impl.inspect(path).meta_graphs
    queue, seen = [(0, loaded)], {}
    while queue:
        number, item = queue.pop()
        if number in seen:
            assert seen[number] is item
            continue
        seen[number] = item
        node = graph.objects[number]
        _check_node(node, item)
        if node.kind == "user_object":
            queue += [
                (child.id, _child(item, child.name))
                for child in node.children
                if child.name != "signatures"
            ]
    assert {signature.key for signature in graph.signatures} == set(loaded.signatures)
    for signature in graph.signatures:
        function = loaded.signatures[signature.key]
        inputs = {
            name: (spec.dtype.name, _shape(spec.shape))
            for name, spec in function.structured_input_signature[1].items()
        }
        assert {item.name: (item.dtype, item.shape) for item in signature.inputs} == inputs
        assert {item.name: item.dtype for item in signature.outputs} == {
            name: spec.dtype.name for name, spec in function.structured_outputs.items()
        }


def _child(item, name):
    if isinstance(item, dict):
        return item[name]
    if isinstance(item, (list, tuple)):
        return item[int(name)] if name.isdecimal() else getattr(item, name)
    return getattr(item, name)


def _shape(shape):
    return None if shape.rank is None else tuple(shape.as_list())


def _check_node(node, item):
    details = node.details
    if node.kind == "variable":
        stored = (
            details["dtype"],
            tuple([None if size == -1 else size for size in details["shape"]]),
            details["trainable"],
            details["name"],
        )
        assert stored == (
            item.dtype.name,
            _shape(item.shape),
            item.trainable,
            item.name.rpartition(":")[0],
        )
    elif node.kind == "function":
        assert len(details["traces"]) == len(item.concrete_functions)
    elif node.kind == "constant":
        assert hasattr(item, "numpy")
    elif node.kind == "asset":
        assert Path(item.asset_path.numpy().decode()).is_file()


CHECKS = {
    "test_sessions_the_c_api_and_python_agree": check_sessions,
    "test_inspect_agrees_with_what_load_finds": check_inspect,
}

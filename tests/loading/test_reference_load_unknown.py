"""RP-07, DR-05: what this TensorFlow cannot do costs only those who call it, and they are told
what, where and why.
"""

from __future__ import annotations

import inspect

import fresh_tensorflow
import numpy as np
import pytest

import reference_impl
from reference_impl.format import schema

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def save(tf, tmp_path, root, **keywords):
    tf.saved_model.save(root, str(tmp_path / "model"), **keywords)
    return tmp_path / "model"


def edit_nodes(directory, op, change):
    """Change all nodes of an op in the function library."""
    file = directory / "saved_model.pb"
    message = schema.parse(schema.SavedModel, file.read_bytes())
    for function in message.meta_graphs[0].graph_def.library.function:
        for node in function.node_def:
            if node.op == op:
                change(node)
    file.write_bytes(message.SerializeToString())


def _traced(tf, function):
    tf.function(lambda x: function(x), autograph=False)(tf.constant(1.0))


def _taped(tf, function):
    with tf.GradientTape():
        function(tf.constant(1.0))


WAYS = {
    "eager": lambda tf, f: f(1.0),
    "traced": _traced,
    "taped": _taped,
    "graph": lambda tf, f: f.concrete_functions[0].graph,
}


@pytest.fixture(scope="module")
def lacking(tf, tmp_path_factory):
    """Functions that use an unknown op themselves, in a function they call, and in a branch; and
    one that does not.
    """
    root = tf.Module()
    root.v = tf.Variable(2.0)
    scalar = [tf.TensorSpec([])]
    root.good = tf.function(lambda x: x * root.v, input_signature=scalar)
    root.own = tf.function(lambda x: tf.exp(x), input_signature=scalar)
    root.calls = tf.function(lambda x: root.own(x) + 1.0, input_signature=scalar)
    root.branch = tf.function(
        lambda x: tf.cond(x > 0.0, lambda: tf.exp(x), lambda: x), input_signature=scalar
    )
    root.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1)
    root.look = tf.function(
        lambda k: root.table.lookup(k), input_signature=[tf.TensorSpec([], tf.string)]
    )
    directory = save(
        tf,
        tmp_path_factory.mktemp("lacking"),
        root,
        signatures={"calls": root.calls, "good": root.good},
    )
    edit_nodes(directory, "Exp", lambda node: setattr(node, "op", "NobodyKnowsThisOp"))
    return directory


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["own", "calls", "branch"])
def test_DR_05_calling_an_unknown_op_names_op_node_and_function(tf, lacking, name, way):
    loaded = reference_impl.load(lacking)
    with pytest.raises(tf.errors.NotFoundError, match="NobodyKnowsThisOp") as caught:
        WAYS[way](tf, getattr(loaded, name))
    error = caught.value
    assert error.clause == "DR-05" and error.file.endswith("saved_model.pb")
    assert ("'cond/Exp'" if name == "branch" else "node 'Exp'") in str(error)


def test_DR_05_the_rest_works(tf, lacking):
    loaded = reference_impl.load(lacking)
    assert loaded.good(3.0).numpy() == 6.0 and loaded.look("a").numpy() == 1
    with tf.GradientTape() as tape:
        y = loaded.signatures["good"](x=tf.constant(3.0))["output_0"]
    assert tape.gradient(y, loaded.v).numpy() == 3.0
    with pytest.raises(tf.errors.NotFoundError, match="NobodyKnowsThisOp"):
        loaded.signatures["calls"](x=tf.constant(3.0))


FILLING = {"_create_resource": ("static", "HashTableV2"), "_initialize": ("static", "LookupTableImportV2"),
           "restore": ("mutable", "LookupTableImportV2")}  # fmt: skip


@pytest.mark.parametrize("step", FILLING)
def test_DR_05_a_table_that_cannot_be_filled_is_never_asked(tf, tmp_path, step):
    """Neither an empty table nor TensorFlow's "Table not initialized": its users are told the op,
    and a save does not lose it.
    """
    root = tf.Module()
    root.static = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1)
    root.mutable = tf.lookup.experimental.MutableHashTable(tf.string, tf.int32, -1)
    root.mutable.insert(["a"], [1])
    for name in ("static", "mutable"):
        table = getattr(root, name)
        setattr(
            root,
            f"look_{name}",
            tf.function(table.lookup, input_signature=[tf.TensorSpec([1], tf.string)]),
        )
    directory = save(tf, tmp_path, root, signatures={})
    table, op = FILLING[step]
    file = directory / "saved_model.pb"
    message = schema.parse(schema.SavedModel, file.read_bytes())
    functions = message.meta_graphs[0].graph_def.library.function
    word = {"_create_resource": "creator", "_initialize": "initializer", "restore": "restore_fn"}[
        step
    ]
    victims = [
        node
        for item in functions
        if word in item.signature.name
        for node in item.node_def
        if node.op == op
    ]
    assert victims
    for node in victims:
        node.op = "NobodyKnowsThisOp"
    file.write_bytes(message.SerializeToString())

    loaded = reference_impl.load(directory)
    (other,) = {"static", "mutable"} - {table}
    assert getattr(loaded, f"look_{other}")(["a"]).numpy().tolist() == [1]
    for ask in (
        getattr(loaded, f"look_{table}"),
        tf.function(lambda keys: getattr(loaded, f"look_{table}")(keys)),
    ):
        with pytest.raises(tf.errors.NotFoundError, match="NobodyKnowsThisOp") as caught:
            ask(tf.constant(["a"]))
        assert caught.value.node == f"root.{table}" and caught.value.file == str(file)
    if step == "restore":
        with pytest.raises(tf.errors.NotFoundError, match="NobodyKnowsThisOp"):
            reference_impl.save(loaded, tmp_path / "again")
        assert not (tmp_path / "again").exists()
    else:  # the new model has the same functions, and has not lost anything
        reference_impl.save(loaded, tmp_path / "again")


def test_DR_05_a_stricter_shape_inference_troubles_who_traces_the_function(tf, tmp_path):
    root = tf.Module()
    matrix = [tf.TensorSpec([None, 2])]
    root.good = tf.function(lambda x: x * 2.0, input_signature=matrix)
    root.squeezed = tf.function(lambda x: tf.squeeze(x, [0]), input_signature=matrix)
    directory = save(tf, tmp_path, root, signatures={})

    def second(node):
        node.attr["squeeze_dims"].list.i[:] = [1]

    edit_nodes(directory, "Squeeze", second)
    loaded = reference_impl.load(directory)
    np.testing.assert_array_equal(loaded.good([[1.0, 2.0]]).numpy(), [[2.0, 4.0]])
    with pytest.raises(
        ValueError,
        match=r"Squeeze node 'Squeeze' .*Can not squeeze dim\[1\]",
    ):
        loaded.squeezed.concrete_functions[0].graph  # noqa: B018
    with pytest.raises(tf.errors.InvalidArgumentError, match="Can not squeeze"):
        loaded.squeezed([[1.0, 2.0]])


def test_RP_07_a_gradient_that_was_not_saved_is_missed_only_by_who_needs_it(tf, tmp_path):
    @tf.custom_gradient
    def steep(x):
        return x + 0.0, lambda dy: dy * 7.0

    root = tf.Module()
    root.f = tf.function(lambda x: steep(x) * 2.0, input_signature=[tf.TensorSpec([])])
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    directory = save(tf, tmp_path, root, signatures={}, options=options)
    name = b"NobodysGradient"

    def rename(node):
        if "_gradient_op_type" in node.attr:
            node.attr["_gradient_op_type"].s = name

    edit_nodes(directory, "IdentityN", rename)
    loaded = reference_impl.load(directory)
    assert (
        loaded.f(1.0).numpy() == 2.0
        and tf.function(lambda x: loaded.f(x))(tf.constant(1.0)).numpy() == 2.0
    )
    x = tf.constant(1.0)

    def gradient(model):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model.f(x)
        return tape.gradient(y, x)

    with pytest.raises(LookupError, match=r"NobodysGradient.*IdentityN node 'IdentityN'"):
        gradient(loaded)
    tf.RegisterGradient(name.decode())(
        lambda op, *dy: [10.0 * d for d in dy]
    )  # a program may bring it
    assert gradient(loaded).numpy() == 20.0


@pytest.mark.parametrize("version", ["", "2.x-nightly!", "9" * 50, "1.2.3-rc1+foo bar", "v\u2713"])
def test_RP_07_any_version_string_loads(tf, lacking, tmp_path, version):
    message = schema.parse(schema.SavedModel, (lacking / "saved_model.pb").read_bytes())
    info = message.meta_graphs[0].meta_info_def
    info.tensorflow_version, info.tensorflow_git_version = version, version
    (lacking / "saved_model.pb").write_bytes(message.SerializeToString())
    loaded = reference_impl.load(lacking)
    assert (
        loaded.tensorflow_version == loaded.tensorflow_git_version == version
        and loaded.good(1.0).numpy() == 2.0
    )


_ELSEWHERE = """
import sys
import tensorflow as tf
import reference_impl

loaded = reference_impl.load(sys.argv[1])
point = loaded.make(tf.constant(1.0))
print(float(point.x), point.label, loaded.plain(tf.constant(1.0)).numpy())
for call in (lambda: loaded.use(5), lambda: loaded.matvec(tf.linalg.LinearOperatorDiag([1.0]), tf.ones([1]))):
    try:
        call()
    except ValueError as error:
        print([line.split(": ")[-1] for line in str(error).splitlines() if "does not match" in line])
reference_impl.save(loaded, sys.argv[2])
print(reference_impl.load(sys.argv[2]).make(tf.constant(1.0)).label)
"""


def test_RP_07_types_of_packages_that_are_absent(tf, tmp_path):
    """An extension type comes back as its fields; a TypeSpec nobody registered costs only the
    function that takes it.
    """

    annotations = {"x": tf.Tensor, "label": str}
    members = {
        "__name__": "test.Point",
        "__annotations__": annotations,
        "__module__": __name__,
        "label": "here",
    }
    Point = type("Point", (tf.experimental.ExtensionType,), members)

    root = tf.Module()
    root.use = tf.function(lambda p: p.x * 2.0)
    root.use(Point(tf.constant(1.0)))
    root.make = tf.function(lambda x: Point(x, "there"), input_signature=[tf.TensorSpec([])])
    root.plain = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([])])
    root.matvec = tf.function(lambda op, x: op.matvec(x))
    with pytest.warns(UserWarning, match="LinearOperatorDiagSpec"):
        root.matvec(tf.linalg.LinearOperatorDiag([1.0]), tf.ones([1]))
        directory = save(tf, tmp_path, root, signatures={})
    loaded = reference_impl.load(directory)
    assert loaded.use(Point(tf.constant(3.0))).numpy() == 6.0 and isinstance(
        loaded.make(1.0), Point
    )
    file = directory / "saved_model.pb"
    file.write_bytes(
        file.read_bytes().replace(b"LinearOperatorDiagSpec", b"LinearOperatorGoneSpec")
    )
    done = fresh_tensorflow.run(_ELSEWHERE, directory, tmp_path / "again")
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert lines[0] == "1.0 there 2.0" and lines[3] == "there"
    assert "not compatible with" in lines[1] and "no TypeSpec" in lines[2]


def test_PY_09_a_declared_signature_is_bound_as_by_TensorFlow(tf, tmp_path):
    root = tf.Module()
    vector = tf.TensorSpec([None], tf.float32)
    root.f = tf.function(lambda x, k=2.0: x * k, input_signature=[vector])
    loaded = reference_impl.load(save(tf, tmp_path, root))
    np.testing.assert_array_equal(loaded.f([1, 2]).numpy(), [2.0, 4.0])
    for bad, reason in ((["a"], "dtype string"), ([[1.0]], r"shape \(1, 1\)")):
        with pytest.raises(
            TypeError, match=f"Binding inputs to tf.function failed due to.*{reason}"
        ):
            loaded.f(bad)
    assert str(inspect.signature(loaded.f)) == "(x, k=2.0)"
    assert inspect.getfullargspec(loaded.f).args == ["x", "k"]

"""Clauses about signatures: how they are specified (SIG), inferred (IMP), and what an imported
object offers (ATTR).

`reference_impl.save` writes; ourselves, `tf.saved_model.load`, the v1 loader in a Session and the C
API read.
"""

from __future__ import annotations

import collections

import clause_errors
import model_edits
import numpy as np
import pytest
import recorded
from made_modules import module

import reference_impl
from reference_impl import errors
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow

Pair = collections.namedtuple("Pair", ["left", "right"])
READERS = ("reference", "tensorflow")


def load(tf, directory, reader="reference"):
    return (
        reference_impl.load(directory)
        if reader == "reference"
        else tf.saved_model.load(str(directory))
    )


def meta_graph(directory):
    return layout.read(directory).meta_graph(None)


def inputs(directory, key):
    return sorted(meta_graph(directory).signature_def[key].inputs)


class Session:
    """A model behind the v1 loader; ``run(key, inputs)`` feeds and fetches by the names in the
    SignatureDef.
    """

    def __init__(self, tf, directory):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.session = tf.compat.v1.Session()
            self.meta_graph = tf.compat.v1.saved_model.loader.load(
                self.session, ["serve"], str(directory)
            )

    def run(self, key, feeds):
        signature = self.meta_graph.signature_def[key]
        fetches = {name: info.name for name, info in signature.outputs.items()}
        return self.session.run(
            fetches, {signature.inputs[name].name: value for name, value in feeds.items()}
        )


@pytest.fixture(scope="module")
def net(tf):
    """Net2 of the RFC, with a trace per value of `training`, and functions with every kind of
    result.
    """

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.bias = tf.Variable([1.0, 2.0], name="bias")

        @tf.function
        def infer(self, labels, training, x1, x2):
            if training:
                return labels, x1, x2
            return labels, x1 + 1.0, x2 + 1.0

    net = Net()
    vector = [tf.TensorSpec([2], tf.float32)]
    results = {
        "single": lambda x: x * net.bias,
        "sequence": lambda x: [x, x + net.bias],
        "mapping": lambda x: {"z": x + 1.0, "a": x * net.bias, "m": x},
        "pair": lambda x: Pair(left=x, right=x * net.bias),
        "constants": lambda x: {"three": tf.constant(3), "x": x},
        "nothing": lambda x: {},
    }
    net.functions = {
        name: tf.function(f, input_signature=vector, autograph=False) for name, f in results.items()
    }
    net.named = tf.function(
        lambda z, a, _b: z - 2.0 * a + _b,
        input_signature=[tf.TensorSpec([]), tf.TensorSpec([]), tf.TensorSpec([], name="my/in put")],
        autograph=False,
    )
    net.infer(tf.constant(1, tf.int64), True, tf.zeros([1]), tf.zeros([1]))
    net.structured = tf.function(
        lambda x: {"list": [x, (x + 1.0, {"deep": x + net.bias})]}, input_signature=vector
    )
    return net


@pytest.fixture(scope="module")
def export(tf, net, tmp_path_factory):
    directory = tmp_path_factory.mktemp("export") / "net"
    specs = {
        "x1": tf.TensorSpec([None, None, 3], tf.float32),
        "x2": tf.TensorSpec(None, tf.float64),
    }
    infer = net.infer.get_concrete_function(tf.TensorSpec(None, tf.int64), training=False, **specs)
    reference_impl.save(
        net, directory, {"serving_default": infer, "named": net.named, **net.functions}
    )
    return directory


@pytest.fixture(scope="module")
def session(tf, export):
    session = Session(tf, export)
    yield session
    session.session.close()


# Specifying signatures


def test_SIG_01_one_function_is_the_default_signature(tf, net, tmp_path):
    reference_impl.save(net, tmp_path / "m", net.functions["single"])
    signatures = {
        k: v for k, v in meta_graph(tmp_path / "m").signature_def.items() if not k.startswith("__")
    }
    assert list(signatures) == ["serving_default"]
    assert signatures["serving_default"].method_name == "tensorflow/serving/predict"


@pytest.mark.parametrize("reader", READERS)
def test_SIG_02_a_map_exports_each_of_its_functions(tf, net, export, reader):
    wanted = {"serving_default", "named", *net.functions}
    assert set(load(tf, export, reader).signatures) == wanted


def test_SIG_03_a_bare_spec_is_refused_when_the_function_is_made(tf):
    with pytest.raises(TypeError, match="input_signature"):
        tf.function(lambda x: x, input_signature=tf.TensorSpec([], tf.float32))


def test_SIG_04_a_function_without_a_signature_is_none_even_when_traced(tf, tmp_path):
    root = tf.Module()
    root.f = tf.function(lambda x: x)
    root.f(tf.constant(1.0))
    for given in (root.f, {"key": root.f}):
        with clause_errors.raises(errors.SignatureError, "SIG-04"):
            reference_impl.save(root, tmp_path / "m", given)
    assert list(tmp_path.iterdir()) == []


def test_SIG_05_a_signature_may_be_fixed_at_export(tf, net, tmp_path):
    specs = [tf.TensorSpec([], tf.int64), True, tf.TensorSpec([5]), tf.TensorSpec([5])]
    before = len(net.infer._list_all_concrete_functions())
    concrete = net.infer.get_concrete_function(*specs)  # no trace yet: one is made
    assert net.infer.get_concrete_function(*specs) is concrete
    reference_impl.save(net, tmp_path / "m", concrete)
    assert len(net.infer._list_all_concrete_functions()) == before + 1
    answer = reference_impl.load(tmp_path / "m").signatures["serving_default"]
    given = {"labels": tf.constant(1, tf.int64), "x1": tf.zeros([5]), "x2": tf.ones([5])}
    assert answer(**given)["output_1"].numpy().tolist() == [0.0] * 5


@pytest.mark.clause("SIG-08")
def test_SIG_06_and_09_python_arguments_pick_the_trace_and_leave_none(tf, export, session):
    """Net2: three results with the values of the trace for training=False; numbered from zero, as
    shipped (SIG-08).
    """
    assert inputs(export, "serving_default") == ["labels", "x1", "x2"]
    given = {"labels": np.int64([7, 8]), "x1": np.float32([[[1, 2, 3]]]), "x2": np.float64(0)}
    wanted = {"output_0": [7, 8], "output_1": [[[2, 3, 4]]], "output_2": 1}
    for reader in READERS:
        answer = load(tf, export, reader).signatures["serving_default"](
            **{k: tf.constant(v) for k, v in given.items()}
        )
        assert {name: value.numpy().tolist() for name, value in answer.items()} == wanted
    assert {
        name: value.tolist() for name, value in session.run("serving_default", given).items()
    } == wanted


def test_SIG_07_inputs_are_named_by_argument_or_spec(tf, export, session, tmp_path):
    assert inputs(export, "named") == ["a", "my/in put", "z"]
    given = {"z": 10.0, "a": 3.0, "my/in put": 0.5}
    assert session.run("named", given) == {"output_0": 4.5}
    for reader in READERS:
        answer = load(tf, export, reader).signatures["named"](
            **{name: tf.constant(value) for name, value in given.items()}
        )
        assert float(answer["output_0"]) == 4.5
    root = tf.Module()
    root.f = tf.function(
        lambda x, y: x + y,
        input_signature=[tf.TensorSpec([], name="a/b"), tf.TensorSpec([], name="a b")],
    )
    with clause_errors.raises(
        errors.SignatureError, "SIG-07", match=r"'a/b'.*'a b'"
    ):  # TensorFlow could not load that
        reference_impl.save(root, tmp_path / "m", root.f)


def test_SIG_07_an_input_may_have_the_name_of_a_node_of_the_function_that_is_written(tf, tmp_path):
    root = tf.Module()
    signature = [tf.TensorSpec([], name=name) for name in ("call", "identity_0")]
    root.f = tf.function(
        lambda call, identity_0: {"identity_0": call + 1.0, "call": identity_0},
        input_signature=signature,
    )
    reference_impl.save(root, tmp_path / "m", root.f)
    for reader in READERS:
        answer = load(tf, tmp_path / "m", reader).signatures["serving_default"](
            call=tf.constant(1.0), identity_0=tf.constant(5.0)
        )
        assert {name: float(value) for name, value in answer.items()} == {
            "identity_0": 2.0,
            "call": 5.0,
        }


NAMES = {
    "a slash sorts before an underscore": ("user/id", "user_age"),
    "a slash sorts before a digit": ("b/1", "b1"),
    "a hyphen sorts before a digit": ("in-x", "in1"),
    "each has the name of the other parameter": ("b", "a"),
    "keywords of Python": ("in", "from"),
    "not the first character of a parameter": ("_x", "x"),
}


@pytest.fixture(params=NAMES.values(), ids=NAMES)
def names(request):
    return request.param


def check_inputs(tf, directory, names, expected):
    """Every reader gives a - 10 * b, whose inputs have these names, for a = 2 and b = 3."""
    given = dict(zip(names, (2.0, 3.0)))
    assert Session(tf, directory).run("serving_default", given) == {"y": expected}
    for reader in READERS:
        signature = load(tf, directory, reader).signatures["serving_default"]
        assert (
            float(signature(**{name: tf.constant(value) for name, value in given.items()})["y"])
            == expected
        ), reader
        keywords = list(signature.structured_input_signature[1])
        assert all(name.isidentifier() for name in keywords)
        named = {
            name: given[
                next(raw for raw in names if name.endswith(raw.replace("/", "_").replace("-", "_")))
            ]
            for name in keywords
        }
        assert (
            float(signature(**{name: tf.constant(value) for name, value in named.items()})["y"])
            == expected
        ), reader


def test_SIG_07_readers_bind_inputs_as_the_function_did_whatever_their_names(tf, tmp_path, names):
    root = tf.Module()
    specs = [tf.TensorSpec([], tf.float32, name=name) for name in names]
    root.f = tf.function(lambda a, b: {"y": a - 10.0 * b}, input_signature=specs)
    given = {name: tf.constant(value) for name, value in zip(names, (2.0, 3.0))}
    expected = float(root.f.get_concrete_function()(**given)["y"])
    assert expected == (
        -17.0 if names == ("b", "a") else -28.0
    )  # keywords are those of Python, if all are
    reference_impl.save(root, tmp_path / "one", root.f)
    check_inputs(tf, tmp_path / "one", names, expected)
    reference_impl.save(reference_impl.load(tmp_path / "one"), tmp_path / "two")
    check_inputs(tf, tmp_path / "two", names, expected)
    if names not in (("in", "from"), ("_x", "x")):  # TensorFlow refuses to save these
        theirs = tf.saved_model.load(str(tmp_path / "one"))
        tf.saved_model.save(theirs, str(tmp_path / "three"), signatures=theirs.signatures)
        check_inputs(tf, tmp_path / "three", names, expected)


def test_SIG_07_readers_bind_inputs_of_a_tf_1_signature_as_its_session_did(tf, tmp_path, names):
    """Loaded and saved again; as signature, and as an attribute of another object."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        a, b = (tf.compat.v1.placeholder(tf.float32, []) for _ in range(2))
        tf.compat.v1.saved_model.simple_save(
            session, str(tmp_path / "one"), dict(zip(names, (a, b))), {"y": a - 10.0 * b}
        )
    loaded = reference_impl.load(tmp_path / "one")
    reference_impl.save(loaded, tmp_path / "two")
    check_inputs(tf, tmp_path / "two", names, -28.0)
    root = tf.Module()
    root.model, root.f = loaded, loaded.signatures["serving_default"]
    reference_impl.save(root, tmp_path / "three", {})
    given = {name: tf.constant(value) for name, value in zip(names, (2.0, 3.0))}
    for reader in READERS:
        assert float(load(tf, tmp_path / "three", reader).f(**given)["y"]) == -28.0, reader


def test_SIG_07_inputs_of_old_releases_are_bound_as_their_writer_did(tf, tmp_path):
    """TensorFlow before 2.12 sorted ``user/id`` before ``user_age``; what is saved of such a model,
    every reader binds right.
    """
    root = tf.Module()
    specs = [tf.TensorSpec([], tf.float32, name=name) for name in ("user/id", "user_age")]
    root.f = tf.function(lambda a, b: {"y": a - 10.0 * b}, input_signature=specs)
    tf.saved_model.save(root, str(tmp_path / "new"), signatures=root.f)
    old = model_edits.names_of_old_releases(tmp_path / "new", tmp_path / "old")
    given = {"user/id": tf.constant(2.0), "user_age": tf.constant(3.0)}
    loaded = reference_impl.load(old)
    assert float(loaded.signatures["serving_default"](**given)["y"]) == -28.0
    assert Session(tf, old).run("serving_default", given_numbers(given)) == {"y": -28.0}
    reference_impl.save(loaded, tmp_path / "again")
    check_inputs(tf, tmp_path / "again", ("user/id", "user_age"), -28.0)
    tf.saved_model.save(loaded, str(tmp_path / "theirs"), signatures=loaded.signatures)
    check_inputs(tf, tmp_path / "theirs", ("user/id", "user_age"), -28.0)


@pytest.mark.parametrize("reader", READERS)
def test_SIG_07_functions_with_any_keywords_take_them_by_either_name(tf, tmp_path, reader):
    """TensorFlow keeps ``user/id`` as ``user_id``, and takes both."""
    root = tf.Module()
    root.f = tf.function(lambda **given: given["user_id"] - 10.0 * given["user_age"])
    root.f(**{"user/id": tf.constant(2.0), "user_age": tf.constant(3.0)})
    reference_impl.save(root, tmp_path / "m", {})
    f = load(tf, tmp_path / "m", reader).f
    for name in ("user/id", "user_id"):
        assert float(f(**{name: tf.constant(2.0), "user_age": tf.constant(3.0)})) == -28.0
    with pytest.raises((TypeError, ValueError)):
        f(**{"user/id": tf.constant(2.0), "user id": tf.constant(2.0)})


def test_SIG_10_a_dict_names_the_outputs_in_sorted_order(tf, export, session):
    answer = reference_impl.load(export).signatures["mapping"](x=tf.constant([1.0, 2.0]))
    assert [(name, value.numpy().tolist()) for name, value in answer.items()] == [
        ("a", [1.0, 4.0]),
        ("m", [1.0, 2.0]),
        ("z", [2.0, 3.0]),
    ]
    assert {
        name: value.tolist() for name, value in session.run("mapping", {"x": [1.0, 2.0]}).items()
    } == {name: value.numpy().tolist() for name, value in answer.items()}


@pytest.mark.parametrize("reader", READERS)
def test_SIG_11_flat_results(tf, export, reader):
    x = tf.constant([1.0, 2.0])
    signatures = load(tf, export, reader).signatures
    got = {key: {name: value.numpy().tolist() for name, value in signatures[key](x=x).items()} for key in signatures if
           key not in ("serving_default", "named", "mapping")}  # fmt: skip
    assert got == {
        "single": {"output_0": [1.0, 4.0]},
        "sequence": {"output_0": [1.0, 2.0], "output_1": [2.0, 4.0]},
        "pair": {"left": [1.0, 2.0], "right": [1.0, 4.0]},
        "constants": {"three": 3, "x": [1.0, 2.0]},
        "nothing": {},
    }


@pytest.mark.parametrize(
    "result", [{"a": ["x"]}, [["x"]], {1: "x"}, None, {"a": {"b": "x"}}], ids=str
)
def test_SIG_12_other_results_are_refused_by_name(tf, tmp_path, result):
    root = tf.Module()
    root.f = tf.function(
        lambda x: tf.nest.map_structure(lambda leaf: None if leaf is None else x, result),
        input_signature=[tf.TensorSpec([])],
        autograph=False,
    )
    with clause_errors.raises(errors.SignatureError, "SIG-12", match=r"my_key.*non-Tensor value"):
        reference_impl.save(root, tmp_path / "m", {"my_key": root.f})
    assert list(tmp_path.iterdir()) == []


def test_SIG_13_nested_inputs_are_refused_unless_asked_for(tf, tmp_path):
    root = tf.Module()
    spec = tf.TensorSpec([], tf.float32)
    root.nested = tf.function(lambda x: x["b"] - x["a"], input_signature=[{"a": spec, "b": spec}])
    root.ragged = tf.function(
        lambda x: x.flat_values, input_signature=[tf.RaggedTensorSpec([None, None])]
    )
    for function in (root.nested, root.ragged):
        with clause_errors.raises(
            errors.SignatureError, "SIG-13", match=r"plain tensors.*strict=False"
        ):
            reference_impl.save(root, tmp_path / "m", function)
    reference_impl.save(
        root, tmp_path / "m", root.nested, options=reference_impl.SaveOptions(strict=False)
    )
    names = inputs(tmp_path / "m", "serving_default")
    assert len(names) == 2
    for reader in READERS:  # what shipped TensorFlow writes without a word can be read
        serve = load(tf, tmp_path / "m", reader).signatures["serving_default"]
        assert (
            float(serve(**dict(zip(names, (tf.constant(1.0), tf.constant(5.0)))))["output_0"])
            == 4.0
        )


NAMED = {
    "a dict": lambda spec: {"a": spec("first"), "b": spec("second")},
    "a list": lambda spec: [spec("z"), spec("y")],
    "a tuple in a dict": lambda spec: {"b": (spec("p"),), "a": spec("q")},
    "one of one": lambda spec: [spec(None)],
}


@pytest.mark.parametrize("structure", NAMED.values(), ids=NAMED)
def test_SIG_13_nested_inputs_with_names_of_their_own_are_inputs(tf, tmp_path, structure):
    """A client knows such names; both writers give the same signature, without being asked and as
    an argument.
    """
    specs = structure(lambda name: tf.TensorSpec([], tf.float32, name=name))
    root = tf.Module()

    @tf.function(input_signature=[specs, tf.TensorSpec([], tf.float32)])
    def f(x, y):
        return {
            "out": tf.add_n([10.0**i * part for i, part in enumerate([y, *tf.nest.flatten(x)])])
        }

    root.f = f
    tf.saved_model.save(root, str(tmp_path / "theirs"), signatures=f)
    reference_impl.save(root, tmp_path / "given", f)
    reference_impl.save(root, tmp_path / "inferred")
    reference_impl.save(reference_impl.load(tmp_path / "given"), tmp_path / "again")
    names = inputs(tmp_path / "theirs", "serving_default")
    given = {name: tf.constant(float(number)) for number, name in enumerate(names, 2)}
    expected = float(
        tf.saved_model.load(str(tmp_path / "theirs")).signatures["serving_default"](**given)["out"]
    )
    for export in ("given", "inferred", "again"):
        assert inputs(tmp_path / export, "serving_default") == names
        assert Session(tf, tmp_path / export).run("serving_default", given_numbers(given)) == {
            "out": expected
        }
        for reader in READERS:
            assert (
                float(
                    load(tf, tmp_path / export, reader).signatures["serving_default"](**given)[
                        "out"
                    ]
                )
                == expected
            )


def given_numbers(given):
    return {name: value.numpy() for name, value in given.items()}


@pytest.mark.parametrize("names", [("a", "b"), (None, None)], ids=["named", "numbered"])
def test_PY_09_defaults_of_tensors_in_a_structure_are_defaults_of_inputs(tf, tmp_path, names):
    """TensorFlow keeps them since 2.14; before, a tensor cannot be a default value."""
    specs = [tf.TensorSpec([], tf.float32, name=name) for name in names]
    defaults = {"k": tf.constant(3.0), "j": tf.constant(2.0)}
    root = tf.Module()
    signature = [tf.TensorSpec([], tf.float32), dict(zip("jk", specs))]
    try:
        root.f = tf.function(
            lambda x, d=defaults: x + 10.0 * d["j"] + 100.0 * d["k"], input_signature=signature
        )
        root.f.get_concrete_function()
    except ValueError:
        assert tf.version.VERSION < "2.14"
        return
    reference_impl.save(
        root,
        tmp_path / "m",
        root.f,
        options=reference_impl.SaveOptions(strict=names[0] is not None),
    )
    given = {"x": np.float32(1.0)}
    second, third = [name for name in inputs(tmp_path / "m", "serving_default") if name != "x"]
    assert Session(tf, tmp_path / "m").run("serving_default", given) == {"output_0": 321.0}
    assert Session(tf, tmp_path / "m").run("serving_default", {**given, third: 0.0}) == {
        "output_0": 21.0
    }
    assert Session(tf, tmp_path / "m").run("serving_default", {**given, second: 0.0}) == {
        "output_0": 301.0
    }
    assert (
        float(
            reference_impl.load(tmp_path / "m").signatures["serving_default"](x=tf.constant(1.0))[
                "output_0"
            ]
        )
        == 321.0
    )


@pytest.mark.clause("PY-10")
@pytest.mark.parametrize("reader", READERS)
def test_SIG_14_functions_that_are_no_signatures_return_what_they_like(tf, net, export, reader):
    x = tf.constant([1.0, 2.0])
    loaded = load(tf, export, reader)
    got, wanted = loaded.structured(x), net.structured(x)
    tf.nest.assert_same_structure(got, wanted)
    assert [t.numpy().tolist() for t in tf.nest.flatten(got)] == [
        t.numpy().tolist() for t in tf.nest.flatten(wanted)
    ]


def test_SIG_15_the_graph_has_a_call_per_signature(net, export):
    graph = meta_graph(export)
    nodes = {node.name: node for node in graph.graph_def.node}
    for key in ("serving_default", "named", *(name for name in net.functions if name != "nothing")):
        signature = graph.signature_def[key]
        (call,) = {nodes[info.name.partition(":")[0]].name for info in signature.outputs.values()}
        assert nodes[call].op in ("PartitionedCall", "StatefulPartitionedCall")
        assert {nodes[info.name.partition(":")[0]].op for info in signature.inputs.values()} == {
            "Placeholder"
        }
        feeds = {info.name.partition(":")[0] for info in signature.inputs.values()}
        assert feeds <= set(nodes[call].input)


@pytest.mark.parametrize("reader", READERS)
def test_SIG_02_signatures_are_in_the_order_in_which_they_are_given(tf, tmp_path, reader):
    root = tf.Module()
    root.f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([])])
    root.g = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([])])
    reference_impl.save(root, tmp_path / "m", {"z": root.f, "a": root.g, "k": root.f})
    assert list(load(tf, tmp_path / "m", reader).signatures) == ["z", "a", "k"]
    reference_impl.save(load(tf, tmp_path / "m", reader), tmp_path / "again")
    assert list(load(tf, tmp_path / "again", reader).signatures) == ["z", "a", "k"]


def test_ATTR_03_results_have_the_names_that_tensorflow_gives_them(tf, tmp_path):
    """Of signatures and of other functions, in any structure; TensorFlow's copy of the same model
    is asked in the same way.
    """
    root = tf.Module()
    spec = [tf.TensorSpec([], tf.float32, name="x")]
    bodies = {
        "single": lambda x: x + 1.0,
        "mapping": lambda x: {"B": x, "a": [x, {"k": x + 1.0}]},
        "pair": lambda x: Pair(x, (x + 1.0, 3, None)),
        "ragged": lambda x: [tf.RaggedTensor.from_row_lengths([x], [1]), x],
    }
    for name, body in bodies.items():
        setattr(root, name, tf.function(body, input_signature=spec, autograph=False))
    signatures = {
        "one": root.single,
        "many": tf.function(lambda x: {"Sum-1": x, "b": x + 1.0}, input_signature=spec),
    }
    tf.saved_model.save(root, str(tmp_path / "theirs"), signatures=signatures)
    reference_impl.save(root, tmp_path / "ours", signatures)
    theirs, ours = reference_impl.load(tmp_path / "theirs"), reference_impl.load(tmp_path / "ours")
    for name in bodies:
        found = [
            getattr(model, name).concrete_functions[0].structured_outputs
            for model in (ours, theirs)
        ]
        assert repr(found[0]) == repr(found[1])
    for key in signatures:
        found = [
            tf.saved_model.load(str(tmp_path / path)).signatures[key].structured_outputs
            for path in ("ours", "theirs")
        ]
        assert found[0] == found[1] and all(spec.name for spec in found[0].values())


def test_SIG_15_the_wrapper_of_a_signature_says_to_runtimes_what_the_function_says(tf, tmp_path):
    """Attributes that a runtime looks for, and the shapes of results, which inference does not find
    behind a call.
    """
    root = tf.Module()
    attributes = {"disable_summaries_at_runtime": True, "_noinline": True}
    spec = [tf.TensorSpec([None, 2], tf.float32)]
    root.f = tf.function(
        lambda x: {"y": x + 1.0}, input_signature=spec, experimental_attributes=attributes
    )
    reference_impl.save(root, tmp_path / "ours", root.f)
    tf.saved_model.save(root, str(tmp_path / "theirs"), signatures=root.f)
    for export in ("ours", "theirs"):
        graph = meta_graph(tmp_path / export)
        call = graph.signature_def["serving_default"].outputs["y"].name.partition(":")[0]
        (node,) = [node for node in graph.graph_def.node if node.name == call]
        (wrapper,) = [
            item
            for item in graph.graph_def.library.function
            if item.signature.name == node.attr["f"].func.name
        ]
        assert wrapper.attr["disable_summaries_at_runtime"].b and "_noinline" not in wrapper.attr
        result = Session(tf, tmp_path / export).graph.get_tensor_by_name(f"{call}:0")
        assert result.shape.as_list() == [None, 2]


@pytest.fixture(params=["object graph", "tf 1"])
def asked(request, tf, tmp_path):
    """A loaded signature called ``pair`` that takes ``user/id`` (float32[?, 4]) and ``name``
    (string[]).
    """
    if request.param == "object graph":
        root = tf.Module()
        specs = [
            tf.TensorSpec([None, 4], tf.float32, name="user/id"),
            tf.TensorSpec([], tf.string, name="name"),
        ]
        tf.saved_model.save(
            root, str(tmp_path / "m"), {"pair": tf.function(lambda x, y: x, input_signature=specs)}
        )
        return reference_impl.load(tmp_path / "m").signatures
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x, y = (
            tf.compat.v1.placeholder(tf.float32, [None, 4]),
            tf.compat.v1.placeholder(tf.string, []),
        )
        build = tf.compat.v1.saved_model.build_tensor_info
        inputs_, outputs = (
            {"user/id": build(x), "name": build(y)},
            {"x": build(x + 1.0), "y": build(tf.identity(y))},
        )
        builder = tf.compat.v1.saved_model.Builder(str(tmp_path / "m"))
        definition = tf.compat.v1.saved_model.build_signature_def(
            inputs_, outputs, "tensorflow/serving/predict"
        )
        builder.add_meta_graph_and_variables(session, ["serve"], {"pair": definition})
        builder.save()
    return reference_impl.load(tmp_path / "m").signatures


TAKES = r"\(it takes name: string\[\], user/id: float32\[\?, 4\]\)"


@pytest.mark.clause("ATTR-02")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["name"], rf"argument user/id is missing {TAKES}"),
        ([], rf"arguments name, user/id are missing {TAKES}"),
        (["name", "user_id", "z"], rf"there is no argument z {TAKES}"),
        (["name", "x"], rf"argument user/id is missing and there is no argument x {TAKES}"),
    ],
)
def test_PY_09_a_call_of_a_signature_that_does_not_fit_says_what_it_takes(tf, asked, given, said):
    """By the name of the signature; nobody has ever heard of its function."""
    values = {"name": tf.constant("n")}
    with pytest.raises(TypeError, match=rf"^signature pair: {said}") as caught:
        asked["pair"](**{name: values.get(name, tf.zeros([1, 4])) for name in given})
    assert "__inference" not in str(caught.value)
    with pytest.raises(
        TypeError, match=rf"^signature pair: .*{TAKES}"
    ):  # TensorFlow takes inputs of TF 1.x by position
        asked["pair"](tf.zeros([1, 4]))
    with pytest.raises(
        (TypeError, tf.errors.InvalidArgumentError),
        match=r"^signature pair: argument 'name' .*float32",
    ):
        asked["pair"](**{"name": tf.constant(1.0), "user/id": tf.zeros([1, 4])})


def test_ATTR_01_an_unknown_signature_names_those_that_exist(tf, net, export, tmp_path):
    signatures = reference_impl.load(export).signatures
    with pytest.raises(KeyError, match=r"'predict'; .*serving_default") as caught:
        signatures["predict"]
    assert isinstance(caught.value, errors.UnknownSignatureError) and all(
        key in str(caught.value) for key in signatures
    )
    assert signatures.get("predict") is None and "predict" not in signatures
    reference_impl.save(tf.Module(), tmp_path / "none")
    with pytest.raises(KeyError, match=r"no signature 'predict'; .*none"):
        reference_impl.load(tmp_path / "none").signatures["predict"]


def test_SIG_16_the_default_key_is_the_public_one(tf, net, tmp_path):
    reference_impl.save(net, tmp_path / "m", net.functions["single"])
    assert list(reference_impl.load(tmp_path / "m").signatures) == [
        tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    ]


@pytest.mark.clause("COMPAT-05")
def test_SIG_17_the_c_api_runs_the_signatures(export, tmp_path, warm_host):
    worker = warm_host.worker("local", "c_api_worker")
    with warm_host.model(worker, export, ["serve"], 300.0, shared=False) as model:
        answer = recorded.worker(model, tmp_path)("mapping", {"x": np.float32([1, 2])})
    assert (
        worker.request("hello", 300.0, protocol=1)["imported"] == []
    )  # no Python of TensorFlow had a part in it
    assert {name: value.tolist() for name, value in answer.items()} == {
        "a": [1.0, 4.0],
        "m": [1.0, 2.0],
        "z": [2.0, 3.0],
    }


# Imported signatures


@pytest.mark.parametrize("reader", READERS)
def test_ATTR_01_and_02_signatures_are_an_immutable_map_of_functions(tf, export, reader):
    signatures = load(tf, export, reader).signatures
    assert isinstance(signatures, collections.abc.Mapping)
    for change in (
        lambda: signatures.__setitem__("x", None),
        lambda: signatures.__delitem__("single"),
        lambda: signatures.clear(),
    ):
        with pytest.raises((TypeError, AttributeError)):
            change()
    x = tf.constant([1.0, 2.0])
    assert (
        signatures["single"](x)["output_0"].numpy().tolist()
        == signatures["single"](x=x)["output_0"].numpy().tolist()
    )
    with pytest.raises(TypeError):
        signatures["named"](tf.constant(1.0), tf.constant(1.0), tf.constant(1.0))
    with pytest.raises(TypeError, match="wrong"):
        signatures["single"](wrong=x)


def test_ATTR_03_a_loaded_signature_is_the_function_that_serving_runs(tf, export, session):
    """The call op of the SignatureDef and the loaded function name one FunctionDef, over the same
    state.
    """
    graph = meta_graph(export)
    nodes = {node.name: node for node in graph.graph_def.node}
    signatures = reference_impl.load(export).signatures
    for key, signature in signatures.items():
        for info in graph.signature_def[key].outputs.values():
            assert nodes[info.name.partition(":")[0]].attr["f"].func.name == signature.saved_name
    given = np.float32([0.3, 0.7])
    for key in ("single", "sequence", "mapping", "pair"):
        answer = signatures[key](x=tf.constant(given))
        served = session.run(key, {"x": given})
        assert {name: value.numpy().tolist() for name, value in answer.items()} == {
            n: v.tolist() for n, v in served.items()
        }


@pytest.mark.clause("IMP-01")
def test_ATTR_04_the_argument_wins(tf, tmp_path):
    f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([])])
    root = module(tf, f=f)
    reference_impl.save(root, tmp_path / "named", {"other": f})
    loaded = reference_impl.load(tmp_path / "named")
    assert list(loaded.signatures) == ["other"]
    reference_impl.save(
        loaded, tmp_path / "again", {"third": loaded.f}
    )  # over the map it was loaded with too
    assert list(reference_impl.load(tmp_path / "again").signatures) == ["third"]
    reference_impl.save(loaded, tmp_path / "none", {})
    suppressed = reference_impl.load(tmp_path / "none")
    assert list(suppressed.signatures) == []
    reference_impl.save(suppressed, tmp_path / "still")
    assert list(reference_impl.load(tmp_path / "still").signatures) == []


@pytest.mark.clause("V1-16", "GOAL-13")
@pytest.mark.parametrize("reader", READERS)
def test_ATTR_06_the_map_of_a_loaded_object_is_exported_again(
    tf, export, session, tmp_path, reader
):
    reference_impl.save(load(tf, export, reader), tmp_path / "m")
    before, after = meta_graph(export), meta_graph(tmp_path / "m")
    assert set(after.signature_def) == set(before.signature_def)
    for key, wanted in before.signature_def.items():
        for side in ("inputs", "outputs"):
            described = [
                {
                    name: (info.dtype, info.tensor_shape.SerializeToString())
                    for name, info in getattr(d, side).items()
                }
                for d in (wanted, after.signature_def[key])
            ]
            assert described[0] == described[1] or key.startswith("__")
    given = {"z": 10.0, "a": 3.0, "my/in put": 0.5}
    assert Session(tf, tmp_path / "m").run("named", given) == session.run("named", given)
    again = tf.saved_model.load(str(tmp_path / "m"))
    assert (
        float(
            again.signatures["named"](
                **{name: tf.constant(value) for name, value in given.items()}
            )["output_0"]
        )
        == 4.5
    )


WRONG = {
    "an empty dict": lambda tf: {},
    "a list": lambda tf: [],
    "a module": lambda tf: tf.Module(),
    "a variable": lambda tf: tf.Variable(1.0),
    "a function": lambda tf: tf.function(lambda: 1),
    "a number": lambda tf: 3,
    "a text": lambda tf: "serving_default",
    "None": lambda tf: None,
}


@pytest.mark.parametrize("given", [None, {}], ids=["inferred", "given"])
@pytest.mark.parametrize("kind", WRONG)
def test_ATTR_07_any_other_value_of_the_attribute_is_refused(tf, tmp_path, kind, given):
    """Whether or not signatures are given: they would hide the attribute from every reader."""
    with clause_errors.raises(errors.SignatureError, "ATTR-07", match=r"del obj\.signatures"):
        reference_impl.save(
            module(tf, signatures=WRONG[kind](tf)), tmp_path / "m", signatures=given
        )
    assert list(tmp_path.iterdir()) == []


def test_ATTR_08_elsewhere_the_name_has_no_meaning(tf, export, tmp_path):
    outer = module(
        tf, part=reference_impl.load(export), plain=module(tf, signatures=tf.Variable(4.0))
    )
    reference_impl.save(outer, tmp_path / "m")
    for reader in READERS:
        loaded = load(tf, tmp_path / "m", reader)
        assert list(loaded.signatures) == []
        assert float(loaded.plain.signatures) == 4.0
        assert loaded.part.signatures["single"](x=tf.constant([1.0, 2.0]))[
            "output_0"
        ].numpy().tolist() == [1.0, 4.0]


def test_ATTR_09_a_changed_map_is_caught(tf, export, tmp_path):
    loaded = reference_impl.load(export)
    loaded.signatures = {"mine": loaded.named}
    with clause_errors.raises(errors.SignatureError, "ATTR-07", match=r"del obj\.signatures"):
        reference_impl.save(loaded, tmp_path / "m")
    del loaded.signatures
    reference_impl.save(loaded, tmp_path / "m", {"mine": loaded.named})
    assert list(reference_impl.load(tmp_path / "m").signatures) == ["mine"]


@pytest.mark.clause("GOAL-13")
def test_GOAL_13_saving_what_tensorflow_loaded_adds_no_wrapper_to_signatures(tf, tmp_path):
    model = tf.Module()
    model.v = tf.Variable(2.0)
    model.f = tf.function(
        lambda x: {"y": x * model.v}, input_signature=[tf.TensorSpec([None], name="x")]
    )
    tf.saved_model.save(model, str(tmp_path / "0"), signatures=model.f)
    counts = []
    for number in range(3):
        loaded = tf.saved_model.load(str(tmp_path / str(number)))
        assert loaded.signatures["serving_default"](x=tf.constant([3.0]))["y"].numpy().tolist() == [
            6.0
        ]
        reference_impl.save(loaded, tmp_path / str(number + 1))
        (graph,) = reference_impl.inspect(tmp_path / str(number + 1)).meta_graphs
        counts.append(sum("signature_wrapper" in function.name for function in graph.library))
    assert counts == [1, 1, 1]


def test_nodes_of_signatures_have_the_names_of_tensorflow(tf, tmp_path):
    """Programs that freeze a signature look for its results under these names."""
    root = tf.Module()
    root.v = tf.Variable(2.0)
    root.f = tf.function(
        lambda x: {"b": x * root.v, "a": x + root.v}, input_signature=[tf.TensorSpec([])]
    )
    reference_impl.save(root, tmp_path / "ours", root.f)
    tf.saved_model.save(root, str(tmp_path / "theirs"), root.f)
    names = []
    for name in ("ours", "theirs"):
        signature = tf.saved_model.load(str(tmp_path / name)).signatures["serving_default"]
        nodes = {
            node.name
            for node in signature.graph.as_graph_def().node
            if node.op not in ("Placeholder", "NoOp")
        }
        names.append(([tensor.name for tensor in signature.outputs], nodes))
    assert (
        names[0]
        == names[1]
        == (["Identity:0", "Identity_1:0"], {"StatefulPartitionedCall", "Identity", "Identity_1"})
    )

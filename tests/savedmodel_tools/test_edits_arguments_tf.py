"""Renamed inputs and outputs in every loader: each answer stays with the inputs it was computed
from (SIG-07).
"""

import numpy as np
import pytest
from model_edits import FIXTURES
from renamed_arguments import observed, rename_all, renamed_artifact

import reference_impl
from compat_matrix.cells.outcomes import Outcome
from savedmodel_tools.canonical.form import canonical
from savedmodel_tools.edits import signatures
from savedmodel_tools.edits.arguments import rename_arguments
from savedmodel_tools.edits.run import edit
from savedmodel_tools.edits.slim import slim

pytestmark = pytest.mark.tensorflow

A, B = np.float32([1, 2]), np.float32([10, 30])
P, Q = A - 2 * B, A + 2 * B  # of the model below; every mistake in order changes both


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def made(tf, save, path, first="a", second="b", results=("p", "q")):
    """A model of two inputs and two outputs of one dtype, and a variable that the signature
    captures.
    """
    root = tf.Module()
    root.v = tf.Variable(2.0)

    def body(one, other):
        return dict(zip(results, (one - root.v * other, one + root.v * other)))

    specs = [tf.TensorSpec([None], tf.float32, name=name) for name in (first, second)]
    save(root, str(path), signatures={"serving_default": tf.function(body, input_signature=specs)})
    return path


@pytest.fixture(scope="module", params=["shipped", "reference"])
def model(tf, request, tmp_path_factory):
    save = tf.saved_model.save if request.param == "shipped" else reference_impl.save
    return made(tf, save, tmp_path_factory.mktemp("models") / "model")


def answers(tf, path, key, given):
    """What shipped load, a session and the reference answer, by name."""
    for load in (tf.saved_model.load, reference_impl.load):
        function = load(str(path)).signatures[key]
        assert sorted(function.structured_input_signature[1]) == sorted(given)
        yield {
            name: value.numpy().tolist()
            for name, value in function(**{n: tf.constant(v) for n, v in given.items()}).items()
        }
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], str(path)).signature_def[key]
        fed = {signature.inputs[name].name: value for name, value in given.items()}
        found = session.run({name: info.name for name, info in signature.outputs.items()}, fed)
        yield {name: value.tolist() for name, value in found.items()}


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ({"a": "first"}, {"q": "r"}),  # a before b as before: names alone
        ({"a": "z"}, {}),  # the order of inputs turns round
        ({}, {"p": "z"}),  # that of outputs
        ({"a": "z"}, {"p": "z"}),
        ({"a": "b", "b": "a"}, {"p": "q", "q": "p"}),  # all names are there before and after
        (
            {"a": "Zoë", "b": "Ab"},
            {"p": "a b/c", "q": "class"},
        ),  # what Python, and a dict, can have
    ],
)
def test_two_inputs_of_one_dtype_are_not_taken_for_each_other(tf, model, tmp_path, inputs, outputs):
    edit(
        model,
        tmp_path / "out",
        lambda draft: rename_arguments(draft, "serving_default", inputs, outputs),
    )
    given = {inputs.get("a", "a"): A, inputs.get("b", "b"): B}
    wanted = {outputs.get("p", "p"): P.tolist(), outputs.get("q", "q"): Q.tolist()}
    for found in answers(tf, tmp_path / "out", "serving_default", given):
        assert found == wanted
    root = tf.saved_model.load(str(tmp_path / "out"))  # variables live as long as it does
    loaded = root.signatures["serving_default"]
    with pytest.raises(TypeError):
        loaded(a=tf.constant(A), nope=tf.constant(B))
    with tf.GradientTape() as tape:
        (variable,) = loaded.variables
        result = tf.reduce_sum(
            loaded(**{name: tf.constant(value) for name, value in given.items()})[
                outputs.get("p", "p")
            ]
        )
    assert tape.gradient(result, variable).numpy() == -B.sum()


@pytest.mark.parametrize("save", ["shipped", "reference"])
@pytest.mark.parametrize("new", ["user_z", "user_a"])  # before and behind user_id
def test_an_input_beside_one_with_a_slash_is_renamed(tf, tmp_path, save, new):
    """TensorFlow sorts ``user/id`` as ``user_id``."""
    save = tf.saved_model.save if save == "shipped" else reference_impl.save
    model = made(tf, save, tmp_path / "model", "user/id", "user_age")
    edit(
        model,
        tmp_path / "out",
        lambda draft: rename_arguments(draft, "serving_default", {"user_age": new}, {}),
    )
    for load in (tf.saved_model.load, reference_impl.load):
        function = load(str(tmp_path / "out")).signatures["serving_default"]
        for name in ("user/id", "user_id"):
            found = function(**{name: tf.constant(A), new: tf.constant(B)})
            assert found["p"].numpy().tolist() == P.tolist()


def test_the_other_signature_of_a_shared_function_keeps_its_names(tf, model, tmp_path):
    def change(draft):
        signatures.copy(draft, "serving_default", "old")
        rename_arguments(draft, "serving_default", {"a": "z"}, {"p": "zz"})

    edit(model, tmp_path / "out", change)
    assert all(
        found == {"p": P.tolist(), "q": Q.tolist()}
        for found in answers(tf, tmp_path / "out", "old", {"a": A, "b": B})
    )
    wanted = {"zz": P.tolist(), "q": Q.tolist()}
    assert all(
        found == wanted
        for found in answers(tf, tmp_path / "out", "serving_default", {"z": A, "b": B})
    )
    edit(tmp_path / "out", tmp_path / "slim", slim)
    assert all(
        found == wanted
        for found in answers(tf, tmp_path / "slim", "serving_default", {"z": A, "b": B})
    )


@pytest.mark.parametrize("order", ["same", "other"])
def test_the_result_is_what_an_export_of_these_names_would_have_been(tf, tmp_path, order):
    new = "aa" if order == "same" else "z"
    source = made(tf, tf.saved_model.save, tmp_path / "model")
    other = made(tf, tf.saved_model.save, tmp_path / "other", first=new)
    edit(
        source,
        tmp_path / "out",
        lambda draft: rename_arguments(draft, "serving_default", {"a": new}, {}),
    )
    found = [canonical(path).meta_graphs[0] for path in (tmp_path / "out", other)]
    parts = [graph.entries["objects"]["signatures.serving_default"] for graph in found]
    assert parts[0] == parts[1]


def test_it_is_saved_again_under_the_new_names(tf, model, tmp_path):
    edit(
        model,
        tmp_path / "out",
        lambda draft: rename_arguments(draft, "serving_default", {"a": "z"}, {"p": "zz"}),
    )
    for name, load, save in (
        ("shipped", tf.saved_model.load, tf.saved_model.save),
        ("reference", reference_impl.load, reference_impl.save),
    ):
        root = load(str(tmp_path / "out"))
        save(root, str(tmp_path / name), signatures=dict(root.signatures))
        for found in answers(tf, tmp_path / name, "serving_default", {"z": A, "b": B}):
            assert found == {"zz": P.tolist(), "q": Q.tolist()}


def test_a_frozen_graph_has_the_new_names(tf, model, tmp_path):
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    edit(
        model,
        tmp_path / "out",
        lambda draft: rename_arguments(draft, "serving_default", {"a": "z"}, {}),
    )
    root = tf.saved_model.load(str(tmp_path / "out"))
    frozen = convert_variables_to_constants_v2(root.signatures["serving_default"])
    assert [tensor.op.name for tensor in frozen.inputs] == ["b", "z"]


def test_an_export_of_keras_3(tf, tmp_path):
    keras = pytest.importorskip("keras", minversion="3")
    inputs = [keras.Input((2,), name=name) for name in ("price", "size")]
    network = keras.Model(
        inputs, {"y": keras.layers.Dense(1)(inputs[0] - 2.0 * inputs[1]), "x": inputs[0] * 3.0}
    )
    network.export(str(tmp_path / "model"), verbose=False)
    given = {"price": A.reshape(1, 2), "size": B.reshape(1, 2)}
    (before, *_) = answers(tf, tmp_path / "model", "serving_default", given)
    rename_all(tmp_path / "model", tmp_path / "out")
    wanted = {"found_002": before["x"], "found_001": before["y"]}
    for found in answers(
        tf,
        tmp_path / "out",
        "serving_default",
        {"given_002": given["price"], "given_001": given["size"]},
    ):
        assert sorted(found) == sorted(wanted) and all(
            np.allclose(found[name], wanted[name], rtol=1e-6) for name in wanted
        )


@pytest.mark.parametrize("case", ["keras_functional_save", "module_functions", "serve_and_train"])
def test_genuine_artifacts_answer_their_requests_under_the_new_names(tf, tmp_path, case, warm_host):
    artifact = renamed_artifact(FIXTURES / case, tmp_path)
    for consumer in ("v1_session", "c_api", "tf2", "reference"):
        for check in ("values", "signatures"):
            seen = observed(artifact, warm_host, consumer, check)
            assert seen.outcome in (Outcome.PASS, Outcome.NOT_APPLICABLE), (
                consumer,
                check,
                seen.message,
            )

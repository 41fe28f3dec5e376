"""Clauses about SavedModels of TF 1.x (V1), on fixtures that genuine TF 1.4 to 1.15 wrote, with the
answers they recorded.
"""

from __future__ import annotations

import shutil

import fresh_tensorflow
import numpy as np
import pytest
import recorded

import reference_impl
from reference_impl import errors
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow


def load(fixture, tags=None):
    return reference_impl.load(recorded.model(fixture), tags)


def definitions(directory, tags=("serve",)):
    """The SignatureDefs a client may call."""
    found = layout.read(directory).meta_graph(list(tags)).signature_def
    return {key: found[key] for key in found if not key.startswith("__saved_model_")}


@pytest.mark.parametrize(
    "fixture",
    ["legacy_names", "half_plus_two", "estimator_export_outputs", "odd_names", "ragged_io"],
)
def test_V1_01_every_signature_becomes_a_function(tf, fixture):
    signatures = load(fixture).signatures
    known = definitions(recorded.model(fixture))
    assert set(signatures) == set(known)
    for key, signature in signatures.items():
        assert isinstance(signature, tf.types.experimental.ConcreteFunction)
        assert set(signature.structured_outputs) == set(known[key].outputs)


def test_V1_02_signatures_are_called_as_those_of_new_models(tf):
    """By keyword, a single input also by position; a sparse input is three dense ones."""
    signatures = load("legacy_names").signatures
    assert isinstance(signatures, type(load("module_functions").signatures))
    (name,) = signatures["serving_default"].structured_input_signature[1]
    x = tf.ones([1, 4])
    by_keyword, by_position = (
        signatures["serving_default"](**{name: x}),
        signatures["serving_default"](x),
    )
    assert {key: value.numpy().tolist() for key, value in by_keyword.items()} == {
        key: value.numpy().tolist() for key, value in by_position.items()
    }
    with pytest.raises(TypeError):
        signatures["new"] = None
    sparse = load("sparse_io").signatures["serving_default"].structured_input_signature[1]
    assert {name.rpartition("_")[2] for name in sparse} >= {"indices", "values", "shape"}
    recorded.check("half_plus_two", recorded.asks(tf, load("half_plus_two")))


def test_V1_02_the_parts_of_an_input_stay_together_in_a_call_by_position(tf):
    """The parts of a SparseTensor in TensorFlow's order, not in that of their names."""
    value = tf.sparse.from_dense(np.arange(6.0, dtype=np.float32).reshape(2, 3))
    parts = [value.indices, value.values, value.dense_shape]
    for loaded in (load("sparse_io"), tf.saved_model.load(str(recorded.model("sparse_io")))):
        signature = loaded.signatures["serving_default"]
        names = [f"{name}_{part}" for name in "ab" for part in ("indices", "values", "dense_shape")]
        by_name = signature(**dict(zip(names, [*parts, *parts])))
        by_position = signature(*parts, *parts)
        assert by_position["dense"].numpy().tolist() == by_name["dense"].numpy().tolist()


@pytest.mark.parametrize(
    "fixture", ["half_plus_two", "dtypes_resource", "partitioned_variables", "colliding_names"]
)
def test_V1_03_an_attribute_holds_the_variables_with_their_values(tf, fixture):
    """Reference variables too: they are read from the checkpoint under their own names."""
    stored = tf.train.load_checkpoint(str(recorded.model(fixture) / "variables" / "variables"))
    variables = load(fixture).variables
    assert variables and all(isinstance(variable, tf.Variable) for variable in variables)
    compared = 0
    for variable in variables:
        name = variable.name.partition(":")[0]
        if stored.has_tensor(name):
            got, wanted = (
                np.asarray(value).tolist() for value in (variable.numpy(), stored.get_tensor(name))
            )
            assert repr(got) == repr(wanted)  # NaN is NaN
            compared += 1
    assert (
        compared == len(variables) or fixture == "partitioned_variables"
    )  # whose parts are slices of one tensor


def test_V1_04_and_05_and_06_and_07_tags_choose_one_meta_graph(tf):
    for tags in ("serve", ["serve"], {"serve"}, ("serve", "serve")):
        assert "serving_default" in load("serve_and_train", tags).signatures
    train = load("serve_and_train", "train")
    assert sorted(train.signatures) == [
        "train",
        "weights",
    ]  # one MetaGraph per call, and nothing of the other
    recorded.check("serve_and_train", recorded.asks(tf, train), ("train",))
    for tags in (None, [], ["serve", "train"], "gpu"):
        with pytest.raises(errors.MetaGraphChoiceError, match=r"serve.*train|train.*serve"):
            load("serve_and_train", tags)
    only = load("train_tag_only")  # V1-07: one MetaGraph needs no tags, whatever its own are
    recorded.check("train_tag_only", recorded.asks(tf, only), ("train", "eval"))
    recorded.check(
        "train_tag_only",
        recorded.asks(tf, load("train_tag_only", ["eval", "train"])),
        ("train", "eval"),
    )
    for tags in ("train", "serve"):
        with pytest.raises(
            RuntimeError
        ) as caught:  # as TensorFlow raises for tags that no TF 1.x MetaGraph has
            load("train_tag_only", tags)
        assert isinstance(caught.value, errors.MetaGraphChoiceError)


@pytest.mark.clause("V1-09")
@pytest.mark.parametrize(
    "fixture",
    ["main_op", "legacy_init_op", "index_table_oov", "hash_table_v1_op", "local_variables"],
)
def test_V1_08_the_checkpoint_is_restored_then_the_init_op_runs(tf, fixture):
    """`main_op` computes from restored values; nothing of it is left in the default graph, where a
    session would have it.
    """
    before = len(tf.compat.v1.get_default_graph().get_operations())
    recorded.check(fixture, recorded.asks(tf, load(fixture)), only="serving_default")
    assert len(tf.compat.v1.get_default_graph().get_operations()) == before


def test_V1_08_a_table_that_no_init_op_fills_is_filled_here_and_in_every_re_export(tf, tmp_path):
    """Exported without an init op it works in Python and fails in a session: a classic.

    A re-export has one.
    """
    loaded = load("table_no_init")
    words = np.array(["y", "z"], object)
    assert recorded.asks(tf, loaded)("serving_default", {"words": words})["ids"].tolist() == [1, -1]
    with (
        recorded.session(tf, recorded.model("table_no_init")) as ask,
        pytest.raises(tf.errors.FailedPreconditionError, match="not initialized"),
    ):
        ask("serving_default", {"words": words})
    reference_impl.save(loaded, tmp_path / "m")
    with recorded.session(tf, tmp_path / "m") as ask:
        assert ask("serving_default", {"words": words})["ids"].tolist() == [1, -1]


def test_V1_10_reference_variables_are_assigned_by_their_own_signatures(tf):
    """The counter of TF 1.8: its reference variable is one tf.Variable for all signatures, and each
    load has its own.
    """
    loaded, other = load("stateful_counter"), load("stateful_counter")
    (counter,) = [variable for variable in loaded.variables if variable.name == "counter:0"]
    loaded.signatures["incr_counter"]()
    assert float(counter) == 6.0
    counter.assign(40.0)
    assert float(loaded.signatures["incr_counter_by"](delta=tf.constant(2.0))["output"]) == 42.0
    recorded.check("stateful_counter", recorded.asks(tf, other))


@pytest.mark.parametrize("fixture", ["index_table_oov", "same_basename_assets", "hash_table_v1_op"])
def test_V1_12_assets_follow_the_directory(tf, tmp_path, fixture):
    moved = shutil.copytree(recorded.model(fixture), tmp_path / "elsewhere")
    loaded = reference_impl.load(moved)
    assert loaded.asset_paths
    assert all(
        asset.asset_path.numpy().decode().startswith(str(moved)) for asset in loaded.asset_paths
    )
    recorded.check(fixture, recorded.asks(tf, loaded))


@pytest.mark.clause("GOAL-14")
def test_V1_13_there_is_no_object_structure_but_a_graph_to_prune(tf):
    loaded = load("simple_save")
    for name in ("dense", "out", "__call__"):
        assert not hasattr(loaded, name)
    weights = next(op.inputs[1] for op in loaded.graph.get_operations() if op.type == "MatMul")
    (kernel,) = [variable for variable in loaded.variables if variable.name == "dense/kernel:0"]
    np.testing.assert_array_equal(loaded.prune([], weights)().numpy(), kernel.numpy())


@pytest.mark.parametrize("fixture", ["simple_save", "half_plus_two"])
def test_V1_14_signatures_are_differentiated_by_variables(tf, fixture):
    """Against the difference quotient; resource variables, and reference variables."""
    loaded = load(fixture)
    signature = loaded.signatures["serving_default"]
    specs = signature.structured_input_signature[1]
    given = {
        name: tf.ones([2 if size is None else size for size in spec.shape], spec.dtype)
        for name, spec in specs.items()
    }

    def loss():
        return tf.add_n(
            [
                tf.reduce_sum(value)
                for value in signature(**given).values()
                if value.dtype.is_floating
            ]
        )

    (variable, *_) = [v for v in loaded.trainable_variables if v.dtype == tf.float32]
    with tf.GradientTape() as tape:
        value = loss()
    gradient = tf.reduce_sum(tape.gradient(value, variable))
    step = 1 / 64
    variable.assign_add(tf.fill(tf.shape(variable), step))
    up = loss()
    variable.assign_sub(tf.fill(tf.shape(variable), 2 * step))
    quotient = (up - loss()) / (2 * step)
    np.testing.assert_allclose(
        float(gradient), float(quotient), rtol=2e-2
    )  # central difference in float32


def test_V1_15_variables_keep_their_names_under_keys_of_objects(tf, tmp_path):
    loaded = load("simple_save")
    names = [variable.name for variable in loaded.variables]
    reference_impl.save(loaded, tmp_path / "m")
    keys = sorted(
        name
        for name, _ in tf.train.list_variables(str(tmp_path / "m" / "variables" / "variables"))
        if "/." in name
    )
    assert keys == [f"variables/{index}/.ATTRIBUTES/VARIABLE_VALUE" for index in range(len(names))]
    for again in (reference_impl.load(tmp_path / "m"), tf.saved_model.load(str(tmp_path / "m"))):
        assert [variable.name for variable in again.variables] == names


REEXPORTED = [
    "estimator_custom",
    "half_plus_two",
    "mutable_hash_table",
    "same_basename_assets",
    "stateful_counter",
    "main_op",
]


@pytest.mark.parametrize("fixture", REEXPORTED)
def test_V1_16_and_17_a_plain_re_export_loses_nothing_for_any_reader(tf, tmp_path, fixture):
    """Signatures, reference variables, mutable tables, assets: the recorded answers, from three
    readers, source deleted.
    """
    source = shutil.copytree(recorded.model(fixture), tmp_path / "source")
    reference_impl.save(reference_impl.load(source), tmp_path / "m")
    shutil.rmtree(source)
    before, after = definitions(recorded.model(fixture)), definitions(tmp_path / "m")
    assert set(before) == set(after)
    assert {key: signature.method_name for key, signature in before.items()} == {
        key: signature.method_name for key, signature in after.items()
    }
    recorded.check(fixture, recorded.asks(tf, reference_impl.load(tmp_path / "m")))
    recorded.check(fixture, recorded.asks(tf, tf.saved_model.load(str(tmp_path / "m"))))
    with recorded.session(tf, tmp_path / "m") as ask:
        recorded.check(fixture, ask)


_KERAS = """
import sys
sys.modules["keras"] = sys.modules["tf_keras"] = None  # importing them fails
import reference_impl
loaded = reference_impl.load(sys.argv[1])
slots = {(variable.deref().name, name) for variable, name in loaded.optimizer.slot_variables}
print(sorted({name for _, name in slots}), len(slots) == 2 * len(loaded.trainable_variables))
"""


def test_V1_18_a_compiled_keras_model_of_1_15_loads_without_keras(tf, tmp_path):
    """With the slots of its optimizer, in a process that cannot import Keras."""
    model = recorded.model("keras_compiled_save")
    done = fresh_tensorflow.run(_KERAS, model)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == ["['m', 'v'] True"]
    for fixture in ("keras_compiled_save", "keras_functional_save"):
        recorded.check(fixture, recorded.asks(tf, load(fixture)))
    reference_impl.save(load("keras_compiled_save"), tmp_path / "m")
    recorded.check("keras_compiled_save", recorded.asks(tf, reference_impl.load(tmp_path / "m")))
    with recorded.session(tf, tmp_path / "m") as ask:
        recorded.check("keras_compiled_save", ask)

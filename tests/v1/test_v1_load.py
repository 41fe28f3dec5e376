"""TF 1.x SavedModels through `reference_impl.load`: state, gradients, tags, prune.

The matrix compares the answers.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import model_edits
import numpy as np
import pytest

import reference_impl
from reference_impl.errors import MissingFileError, SavedModelError
from reference_impl.format import schema

pytestmark = pytest.mark.tensorflow

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


def model(case):
    return str(FIXTURES / case / "model")


@pytest.mark.clause("V1-03", "V1-10", "V1-14")
def test_reference_variables_become_variables_with_values_and_gradients(tf):
    root = reference_impl.load(model("half_plus_two"))
    assert {variable.name: float(variable.numpy()) for variable in root.variables} == {
        "a:0": 0.5,
        "b:0": 2.0,
    }
    assert all(
        isinstance(variable, tf.Variable) and variable.trainable for variable in root.variables
    )
    a, b = root.variables
    with tf.GradientTape() as tape:
        y = root.signatures["serving_default"](x=tf.constant([[3.0]]))["y"]
    assert [float(gradient) for gradient in tape.gradient(y, [a, b])] == [3.0, 1.0]
    a.assign(2.0)
    assert root.signatures["serving_default"](x=tf.constant([[3.0]]))["y"].numpy() == 8.0


@pytest.mark.clause("RP-06")
def test_two_loads_share_nothing(tf):
    one, two = (
        reference_impl.load(model("stateful_counter")),
        reference_impl.load(model("stateful_counter")),
    )
    key = next(
        key for key in one.signatures if "incr" in key or "add" in key or key == "serving_default"
    )
    arguments = {
        name: tf.ones(spec.shape, spec.dtype)
        for name, spec in one.signatures[key].structured_input_signature[1].items()
    }
    first = [value.numpy() for value in one.signatures[key](**arguments).values()]
    second = [value.numpy() for value in one.signatures[key](**arguments).values()]
    assert first != second
    assert [value.numpy() for value in two.signatures[key](**arguments).values()] == first


def test_signatures_take_positions_and_refuse_what_they_do_not_know(tf):
    signature = reference_impl.load(model("simple_save")).signatures["serving_default"]
    spec = signature.structured_input_signature[1]
    assert list(spec) == sorted(spec)
    with pytest.raises(TypeError, match="nonsense"):
        signature(nonsense=tf.constant(1.0))


@pytest.mark.clause("V1-12")
def test_assets_follow_a_moved_directory(tmp_path, tf):
    moved = tmp_path / "elsewhere"
    shutil.copytree(model("index_table_oov"), moved)
    root = reference_impl.load(moved)
    assert [Path(asset.asset_path.numpy().decode()).parent for asset in root.asset_paths] == [
        moved / "assets"
    ]
    next(path for path in (moved / "assets").iterdir()).unlink()
    with pytest.raises(MissingFileError, match="asset"):
        reference_impl.load(moved)


@pytest.mark.clause("V1-08")
def test_without_its_checkpoint_a_model_with_variables_does_not_load(tmp_path):
    """The shipped session loader takes such a model and fails at the first request"""
    copy = tmp_path / "model"
    shutil.copytree(model("half_plus_two"), copy)
    shutil.rmtree(copy / "variables")
    with pytest.raises(MissingFileError, match="variables"):
        reference_impl.load(copy)


def test_prune_cuts_a_function_between_any_tensors(tf):
    root = reference_impl.load(model("half_plus_two"))
    function = root.prune("x:0", {"y": "y:0", "pair": ["a:0", "b/read:0"]})
    result = function(tf.constant([[4.0]]))
    assert result["y"].numpy() == 4.0
    assert [value.numpy() for value in result["pair"]] == [0.5, 2.0]
    named = root.prune({"middle": "x:0"}, "y:0")
    assert named(middle=tf.constant([[0.0]])).numpy() == 2.0
    with pytest.raises(SavedModelError, match="nowhere"):
        root.prune("x:0", "nowhere:0")


@pytest.mark.clause("V1-11")
def test_a_loop_of_tf1_runs_and_can_be_traced(tf):
    """The frames of v1 control flow execute inside the function"""
    signature = reference_impl.load(model("while_loop")).signatures["serving_default"]
    arguments = {name: tf.ones([1 if d is None else d for d in spec.shape], spec.dtype)
                 for name, spec in signature.structured_input_signature[1].items()}  # fmt: skip
    eager = {key: value.numpy() for key, value in signature(**arguments).items()}
    assert eager
    traced = tf.function(lambda kwargs: signature(**kwargs))(arguments)
    for key, value in eager.items():
        np.testing.assert_array_equal(traced[key].numpy(), value)


def test_partitioned_variables_keep_their_parts(tf):
    root = reference_impl.load(model("partitioned_variables"))
    assert any("part_1" in variable.name for variable in root.variables)


@pytest.mark.clause("DR-05", "RP-07")
def test_only_the_signature_with_an_unknown_op_fails(tf):
    root = reference_impl.load(model("contrib_op"))
    signature = root.signatures["serving_default"]
    arguments = {name: tf.ones([1 if d is None else d for d in spec.shape], spec.dtype)
                 for name, spec in signature.structured_input_signature[1].items()}  # fmt: skip
    with pytest.raises(tf.errors.NotFoundError, match="Resampler"):
        signature(**arguments)


@pytest.mark.clause("V1-08")
@pytest.mark.parametrize(
    "case", ["simple_save", "partitioned_variables", "local_variables", "dtypes_resource"]
)
def test_V1_08_without_a_saver_def_the_variables_are_restored_by_their_names(tf, tmp_path, case):
    """As hub.Module of the first format writes its models; a session does the same."""
    export = shutil.copytree(model(case), tmp_path / "export")
    file = export / "saved_model.pb"
    message = schema.SavedModel.FromString(file.read_bytes())
    message.meta_graphs[0].ClearField("saver_def")
    file.write_bytes(schema.serialize(message))
    before, after = reference_impl.load(model(case)), reference_impl.load(export)
    assert after.uninitialized_variables == before.uninitialized_variables
    values = {v.name: np.array(v.numpy()).tolist() for v in after.variables}
    np.testing.assert_equal(
        values, {v.name: np.array(v.numpy()).tolist() for v in before.variables}
    )  # NaN is NaN
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.saved_model.loader.load(
            session, list(message.meta_graphs[0].meta_info_def.tags), str(export)
        )
        for variable in tf.compat.v1.global_variables():
            np.testing.assert_equal(values[variable.name], np.array(session.run(variable)).tolist())


def test_a_signature_describes_itself_as_that_of_tensorflow():
    tf = pytest.importorskip("tensorflow")
    path = str(model_edits.fixture("half_plus_two"))
    ours, theirs = [load(path).signatures for load in (reference_impl.load, tf.saved_model.load)]
    assert list(theirs)
    for key in theirs:
        types = [
            getattr(root[key], "function_type", None) for root in (ours, theirs)
        ]  # from TensorFlow 2.14 on
        described = [kind and (kind.parameters, kind.output) for kind in types]
        assert described[0] == described[1]

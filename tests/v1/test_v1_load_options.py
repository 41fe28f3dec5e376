"""What a caller of `load` may choose for a TF 1.x model: every option has an effect or is
refused.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import fresh_tensorflow
import pytest
from model_edits import edited

import reference_impl
from reference_impl import errors
from reference_impl.errors import MissingFileError
from reference_impl.format import schema

pytestmark = pytest.mark.tensorflow

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
MODEL = FIXTURES / "half_plus_two" / "model"


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


@pytest.mark.parametrize("whose", ["ours", "tensorflow"])
def test_without_the_checkpoint_variables_have_no_value(tf, tmp_path, whose):
    copy = tmp_path / "model"
    shutil.copytree(MODEL, copy)
    shutil.rmtree(copy / "variables")
    with pytest.raises(MissingFileError):
        reference_impl.load(copy)
    ours, theirs = (
        reference_impl.LoadOptions(skip_checkpoint=True),
        tf.saved_model.LoadOptions(experimental_skip_checkpoint=True),
    )
    root = reference_impl.load(copy, options=ours if whose == "ours" else theirs)
    assert root.uninitialized_variables == ("a:0", "b:0")
    root.restore(MODEL / "variables" / "variables")
    assert root.signatures["serving_default"](tf.constant([[2.0]]))["y"].numpy() == 3.0


def test_with_a_partial_checkpoint_the_other_variables_are_restored(tf, tmp_path):
    reader = tf.train.load_checkpoint(str(MODEL / "variables" / "variables"))
    copy = tmp_path / "model"
    shutil.copytree(MODEL, copy)
    shutil.rmtree(copy / "variables")
    tf.raw_ops.SaveV2(
        prefix=str(copy / "variables" / "variables"),
        tensor_names=["a"],
        shape_and_slices=[""],
        tensors=[reader.get_tensor("a")],
    )
    with pytest.raises(tf.errors.NotFoundError, match="b"):
        reference_impl.load(copy)
    root = reference_impl.load(
        copy, options=reference_impl.LoadOptions(allow_partial_checkpoint=True)
    )
    assert [(variable.name, float(variable.numpy())) for variable in root.variables] == [
        ("a:0", 0.5)
    ]
    assert root.uninitialized_variables == ("b:0",)


ON_TWO_DEVICES = """
import sys
import tensorflow as tf
import reference_impl
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
for keep in (False, True):
    root = reference_impl.load(sys.argv[1], options=reference_impl.LoadOptions(keep_variable_devices=keep))
    print(*sorted(variable.device[-5:] for variable in root.variables))
"""


def test_variables_are_made_where_the_file_says(tmp_path):
    def place(saved_model):
        for node in saved_model.meta_graphs[0].graph_def.node:
            if node.op == "VariableV2":
                node.device = "/device:CPU:1"

    path = edited(MODEL, tmp_path / "model", place)
    done = fresh_tensorflow.run(ON_TWO_DEVICES, path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["CPU:0 CPU:0", "CPU:1 CPU:1"]


def test_function_aliases_are_refused_where_there_are_some(tmp_path):
    def give_alias(saved_model):
        saved_model.meta_graphs[0].meta_info_def.function_aliases["f"] = "alias"

    asked = reference_impl.LoadOptions(load_function_aliases=True)
    assert reference_impl.load(MODEL, options=asked).function_aliases == {}
    path = edited(MODEL, tmp_path / "model", give_alias)
    with pytest.raises(errors.UnsupportedModelError, match="alias"):
        reference_impl.load(path, options=asked)


def test_the_init_op_can_be_run_again():
    root = reference_impl.load(FIXTURES / "local_variables" / "model")
    local = next(variable for variable in root.variables if variable.name == "local:0")
    local.assign(9.0)
    root.initializer._initialize()
    assert local.numpy() == 4.0


def trainable(root):
    return sorted(variable.name for variable in root.variables if variable.trainable)


@pytest.mark.parametrize(("frozen", "left"), [(["a:0"], ["b:0"]), (["a:0", "b:0"], [])])
def test_variables_are_trainable_as_their_definitions_say(tmp_path, frozen, left):
    def freeze(saved_model):
        """The variables are still listed as trainable, their definitions say that they are not."""
        (meta_graph,) = saved_model.meta_graphs
        for collection in ("variables", "trainable_variables"):
            values = meta_graph.collection_def[collection].bytes_list.value
            for index, data in enumerate(values):
                definition = schema.VariableDef.FromString(data)
                if definition.variable_name in frozen:
                    definition.trainable = False
                    values[index] = definition.SerializeToString()

    assert trainable(reference_impl.load(MODEL)) == ["a:0", "b:0"]
    assert trainable(reference_impl.load(edited(MODEL, tmp_path / "model", freeze))) == left


def test_variables_of_tf_1_4_are_trainable_as_their_collection_says():
    assert trainable(reference_impl.load(FIXTURES / "legacy_names" / "model")) == [
        "Variable:0",
        "Variable_1:0",
    ]

"""LoadOptions of TensorFlow and ours, and what a root says about its origin (A1, A9)."""

from __future__ import annotations

import pytest

import reference_impl
from reference_impl.format import schema
from reference_impl.load_options import LoadOptions

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def directory(tf, tmp_path):
    root = tf.Module()
    with tf.device("CPU:0"):
        root.v = tf.Variable(2.0)
    root.f = tf.function(lambda x: x * root.v, input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(
        root, str(tmp_path / "model"), options=tf.saved_model.SaveOptions(save_debug_info=True)
    )
    return tmp_path / "model"


def test_the_origin_of_a_model(tf, directory):
    loaded = reference_impl.load(directory)
    assert (
        loaded.tensorflow_version == tf.__version__
        and loaded.tensorflow_git_version == tf.version.GIT_VERSION
    )
    assert any(
        file.endswith("test_reference_load_options.py") for file in loaded.graph_debug_info.files
    )
    (directory / "debug" / "saved_model_debug_info.pb").write_bytes(b"\xff\xff")
    assert not reference_impl.load(directory).graph_debug_info.files
    (directory / "debug" / "saved_model_debug_info.pb").unlink()
    assert not reference_impl.load(directory).graph_debug_info.files


def _place(directory, device):
    file = directory / "saved_model.pb"
    message = schema.parse(schema.SavedModel, file.read_bytes())
    for node in message.meta_graphs[0].object_graph_def.nodes:
        if node.HasField("variable"):
            node.variable.device = device
    file.write_bytes(message.SerializeToString())


def test_options_of_TensorFlow(tf, directory):
    options = tf.saved_model.LoadOptions
    local = [
        options(experimental_io_device=device)
        for device in ("/job:localhost", "/device:GPU:0", "cpu:0")
    ]
    for given in (options(), *local, options(allow_partial_checkpoint=True)):
        assert reference_impl.load(directory, options=given).f(1.0).numpy() == 2.0
    skipped = reference_impl.load(directory, options=options(experimental_skip_checkpoint=True))
    assert not skipped.v.is_initialized()
    assert skipped.v.assign(5.0) is not None and skipped.f(1.0).numpy() == 5.0
    for wrong in ({"only": "f"}, "signatures", tf.saved_model.SaveOptions()):
        with pytest.raises(TypeError, match="LoadOptions"):
            reference_impl.load(directory, options=wrong)


def test_options_that_would_have_no_effect_are_refused(tf, directory):
    for device in ("/job:worker/task:1", "/job:worker", "not a device"):
        with pytest.raises(ValueError, match="io_device"):
            reference_impl.load(
                directory, options=tf.saved_model.LoadOptions(experimental_io_device=device)
            )
        with pytest.raises(ValueError, match="io_device"):
            LoadOptions(io_device=device)

    class Later(tf.saved_model.LoadOptions):
        __slots__ = (*tf.saved_model.LoadOptions.__slots__, "experimental_more")

    later = Later()
    for value in (None, False):
        later.experimental_more = value
        assert reference_impl.load(directory, options=later).f(1.0).numpy() == 2.0
    later.experimental_more = True
    with pytest.raises(ValueError, match="experimental_more=True"):
        reference_impl.load(directory, options=later)


@pytest.mark.parametrize(
    "device", ["/job:localhost/replica:0/task:0/device:CPU:0", "/device:GPU:7", ""]
)
def test_variables_are_placed_where_the_file_says_if_asked_to(tf, directory, device):
    """A device that is not there does not stop a load: placement is soft."""
    _place(directory, device)
    policy = tf.saved_model.LoadOptions(
        experimental_variable_policy=tf.saved_model.experimental.VariablePolicy.SAVE_VARIABLE_DEVICES
    )
    for options in (policy, LoadOptions(keep_variable_devices=True), None):
        loaded = reference_impl.load(directory, options=options)
        assert loaded.v.device.endswith("CPU:0") and loaded.f(3.0).numpy() == 6.0

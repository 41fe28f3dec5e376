"""Models of which a part cannot be known here: the rest loads, and the part is named when it is
asked for (DR-05, V1-18).
"""

from __future__ import annotations

import collections

import model_edits
import numpy as np
import pytest

import reference_impl
from reference_impl import errors
from reference_impl.format.container import layout
from reference_impl.v1.reading.extract import UnfedPlaceholderError

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


def two_functions(tf):
    root = tf.Module()
    root.v = tf.Variable(2.0, name="v")
    spec = tf.TensorSpec([None], tf.float32)
    root.known = tf.function(lambda x: x * root.v, input_signature=[spec])
    root.strange = tf.function(lambda x: tf.sinh(x) + root.v, input_signature=[spec])
    return root


def saved(tf, folder, edit):
    """A model of two functions, saved by TensorFlow, after an edit of its MetaGraph."""
    root = two_functions(tf)
    tf.saved_model.save(root, str(folder / "whole"), {"known": root.known, "strange": root.strange})
    return model_edits.edited(
        folder / "whole", folder / "edited", lambda message: edit(message.meta_graphs[0])
    )


def rename_op(meta_graph):
    for function in meta_graph.graph_def.library.function:
        for node in function.node_def:
            if node.op == "Sinh":
                node.op = "OpOfAnotherDay"


def rename_type(meta_graph):
    """The type of the argument of the second function; its signature has tensors."""
    graph = meta_graph.object_graph_def
    node = next(child.node_id for child in graph.nodes[0].children if child.local_name == "strange")
    (name,) = graph.nodes[node].function.concrete_functions
    argument = (
        graph.concrete_functions[name]
        .canonicalized_input_signature.tuple_value.values[0]
        .tuple_value.values[0]
    )
    spec = argument.type_spec_value
    spec.type_spec_class, spec.type_spec_class_name = spec.REGISTERED_TYPE_SPEC, "far.away.Spec"
    spec.type_state.tuple_value.SetInParent()
    spec.num_flat_components = 1


def again(root, folder):
    reference_impl.save(root, folder)
    return reference_impl.load(folder)


def test_DR_05_an_unknown_op_is_named_by_the_call_that_needs_it(tf, tmp_path):
    path = saved(tf, tmp_path, rename_op)
    for root in (reference_impl.load(path), again(reference_impl.load(path), tmp_path / "again")):
        assert root.known(tf.constant([3.0])).numpy() == [6.0]
        assert root.signatures["known"](tf.constant([3.0]))["output_0"].numpy() == [6.0]
        with pytest.raises(
            (errors.SavedModelError, tf.errors.NotFoundError), match="OpOfAnotherDay"
        ):
            root.strange(tf.constant([3.0]))
        with (
            tf.GradientTape(),
            pytest.raises(
                (errors.SavedModelError, tf.errors.NotFoundError), match="OpOfAnotherDay"
            ),
        ):
            root.strange(root.v[None])
    library = layout.read(tmp_path / "again").saved_model.meta_graphs[0].graph_def.library
    assert "OpOfAnotherDay" in {
        node.op for function in library.function for node in function.node_def
    }


def test_DR_05_an_absent_type_is_named_by_the_call_that_needs_it(tf, tmp_path):
    path = saved(tf, tmp_path, rename_type)
    for root in (reference_impl.load(path), again(reference_impl.load(path), tmp_path / "again")):
        assert root.known(tf.constant([3.0])).numpy() == [6.0]
        assert root.signatures["strange"](tf.constant([0.0]))["output_0"].numpy() == [2.0]
        with pytest.raises(errors.SavedModelError, match=r"far\.away\.Spec"):
            root.strange(tf.constant([3.0]))
    kept = layout.read(tmp_path / "again").saved_model.meta_graphs[0].object_graph_def
    assert any(
        b"far.away.Spec" in f.canonicalized_input_signature.SerializeToString()
        for f in kept.concrete_functions.values()
    )


@pytest.mark.parametrize("version", ["", "2.x-vendor+7", "tf\n9", "1.15.0-rc99.post1+cuda"])
def test_any_version_string_loads(tf, tmp_path, version):
    def edit(meta_graph):
        meta_graph.meta_info_def.tensorflow_version = version

    root = reference_impl.load(saved(tf, tmp_path, edit))
    assert root.tensorflow_version == version
    assert root.strange(tf.constant([0.0])).numpy() == [2.0]


def v1_model(tf, folder, build):
    """A TF 1.x SavedModel: `build` makes the graph and gives {key: (inputs, outputs)}."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        described = build(v1)
        signatures = {
            key: v1.saved_model.predict_signature_def(*both) for key, both in described.items()
        }
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, ["serve"], signatures, saver=None)
        builder.save()
    return folder


@pytest.mark.parametrize("only", [None, "signatures"])
def test_V1_01_a_placeholder_that_nothing_feeds_is_named_and_kept(tf, only, tmp_path):
    def build(v1):
        x, forgotten = (
            v1.placeholder(tf.float32, [None], name="x"),
            v1.placeholder(tf.float32, [], name="forgotten"),
        )
        table = tf.raw_ops.MutableHashTableV2(
            key_dtype=tf.int32, value_dtype=tf.float32, shared_name="used_by_bad"
        )
        found = tf.raw_ops.LookupTableFindV2(
            table_handle=table, keys=tf.cast(x * forgotten, tf.int32), default_value=0.0
        )
        return {"good": ({"x": x}, {"y": x + 1.0}), "bad": ({"x": x}, {"y": found})}

    root = reference_impl.load(
        v1_model(tf, tmp_path / "v1", build), options=reference_impl.LoadOptions(only=only)
    )
    assert root.signatures["good"](x=tf.constant([1.0]))["y"].numpy() == [2.0]
    with pytest.raises(UnfedPlaceholderError, match="forgotten"):
        root.signatures["bad"](x=tf.constant([1.0]))
    reference_impl.save(root, tmp_path / "again")
    for load in (reference_impl.load, tf.saved_model.load):
        root = load(str(tmp_path / "again"))
        assert root.signatures["good"](x=tf.constant([1.0]))["y"].numpy() == [2.0]
        with pytest.raises(
            (errors.SavedModelError, tf.errors.InvalidArgumentError), match="forgotten"
        ):
            root.signatures["bad"](x=tf.constant([1.0]))


def test_V1_18_what_has_slots_is_loaded_by_every_reader(tf, tmp_path):
    """Saved by TensorFlow itself, without tf_keras nobody but we can load it; saved by us everybody
    can.
    """
    root = tf.Module()
    root.w = tf.Variable([1.0, 2.0], name="w")
    root.optimizer = tf.compat.v1.train.AdamOptimizer(0.5)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(root.w**2)
    root.optimizer.apply_gradients([(tape.gradient(loss, root.w), root.w)])
    moments = {name: root.optimizer.get_slot(root.w, name).numpy() for name in ("m", "v")}
    tf.saved_model.save(root, str(tmp_path / "shipped"))
    with pytest.raises(AttributeError, match="add_slot"):
        tf.saved_model.load(str(tmp_path / "shipped"))
    reference_impl.save(root, tmp_path / "first")
    reference_impl.save(reference_impl.load(tmp_path / "shipped"), tmp_path / "second")
    for name in ("first", "second"):
        ours = reference_impl.load(tmp_path / name)
        slots = {slot: value.numpy() for (_, slot), value in ours.optimizer.slot_variables.items()}
        theirs = tf.saved_model.load(str(tmp_path / name))
        for slot, value in moments.items():
            np.testing.assert_array_equal(slots[slot], value)
            np.testing.assert_array_equal(theirs.optimizer.get_slot(theirs.w, slot).numpy(), value)


def test_PRIM_06_a_namedtuple_keeps_its_fields_where_some_hold_nothing_trackable(tf, tmp_path):
    Reference = collections.namedtuple("Reference", "name ref")
    root = tf.Module()
    root.v = tf.Variable(1.0)
    root.pair = Reference("v", tf.Module())
    root.pair.ref.v = root.v
    tf.saved_model.save(root, str(tmp_path / "shipped"))
    for source in ("shipped", "again"):
        root = reference_impl.load(tmp_path / source)
        assert root.pair.ref.v is root.v and root.pair[1] is root.pair.ref and root.pair[0] is None
        reference_impl.save(root, tmp_path / "again")


@pytest.mark.clause("RES-06")
def test_a_file_that_is_missing_already_can_be_left_out(tf, tmp_path):
    """Nothing reads it while the model is loaded; such models are in use."""
    file = tmp_path / "words.txt"
    file.write_text("ant")
    root = two_functions(tf)
    root.words = tf.saved_model.Asset(str(file))
    tf.saved_model.save(root, str(tmp_path / "m"))
    (tmp_path / "m" / "assets" / "words.txt").unlink()
    root = reference_impl.load(tmp_path / "m")
    with pytest.raises(errors.MissingFileError, match=r"words\.txt.*strict=False"):
        reference_impl.save(root, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    with pytest.warns(UserWarning, match=r"words\.txt"):
        reference_impl.save(
            root, tmp_path / "again", options=reference_impl.SaveOptions(strict=False)
        )
    assert (
        tf.saved_model.load(str(tmp_path / "again"))
        .words.asset_path.numpy()
        .endswith(b"assets/words.txt")
    )
    assert reference_impl.load(tmp_path / "again").known(tf.constant([1.0])).numpy() == [2.0]

"""DR-03: `LoadOptions(only=...)` loads a part of a model."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import reference_impl
from reference_impl.errors import UnknownPathError
from reference_impl.format import schema
from reference_impl.format.bundle.reader import BundleReader

pytestmark = pytest.mark.tensorflow

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def directory(tf, tmp_path_factory):
    """An encoder and a decoder, each with what the other does not need: variables, a table, a
    custom gradient, an unknown op.
    """
    model = tf.Module()
    model.encoder, model.decoder = tf.Module(), tf.Module()
    model.encoder.kernel = tf.Variable([2.0, 3.0], name="kernel")
    model.encoder.parent = model
    model.decoder.kernel = tf.Variable(tf.range(4096, dtype=tf.float32), name="large")
    model.decoder.table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1
    )
    model.layers = [tf.Module(), tf.Module()]
    model.layers[1].scale = tf.Variable(5.0, name="scale")
    factor = model.factor = tf.Variable(7.0, name="factor")

    @tf.custom_gradient
    def steep(x):
        return x + 0.0, lambda dy: dy * factor

    vector, words = (
        [tf.TensorSpec([2], tf.float32, "x")],
        [tf.TensorSpec([None], tf.string, "words")],
    )
    model.encoder.call = tf.function(
        lambda x: x * model.encoder.kernel * model.layers[1].scale, input_signature=vector
    )
    model.encoder.steep = tf.function(
        lambda x: steep(x) * model.encoder.kernel, input_signature=vector
    )
    model.decoder.call = tf.function(
        lambda x: tf.exp(x) + model.decoder.kernel[:2], input_signature=vector
    )
    model.decoder.look = tf.function(
        lambda words: model.decoder.table.lookup(words), input_signature=words
    )
    place = tmp_path_factory.mktemp("only") / "model"
    tf.saved_model.save(
        model, str(place), signatures={"encode": model.encoder.call, "look": model.decoder.look}
    )
    _damage(place)
    return place


def _damage(place):
    """The decoder: an op nobody knows, and bytes of its kernel that are not what their checksum
    says.
    """
    file = place / "saved_model.pb"
    message = schema.parse(schema.SavedModel, file.read_bytes())
    for function in message.meta_graphs[0].graph_def.library.function:
        for node in function.node_def:
            node.op = "NobodyKnowsThisOp" if node.op in ("Exp", "LookupTableImportV2") else node.op
    file.write_bytes(message.SerializeToString())
    reader = BundleReader(str(place / "variables" / "variables"))
    entry = reader.entry("decoder/kernel/.ATTRIBUTES/VARIABLE_VALUE")
    reader.close()
    shard = place / "variables" / "variables.data-00000-of-00001"
    data = bytearray(shard.read_bytes())
    data[entry.offset + 100] ^= 255
    shard.write_bytes(data)


def load(directory, only):
    from reference_impl.load_options import LoadOptions

    return reference_impl.load(directory, options=LoadOptions(only=only))


def test_DR_03_a_path_loads_an_object_and_what_it_needs(tf, directory):
    with pytest.raises(reference_impl.errors.ChecksumError):
        reference_impl.load(directory)
    loaded = load(directory, ["encoder.call"])
    np.testing.assert_array_equal(loaded.encoder.call([1.0, 2.0]).numpy(), [10.0, 30.0])
    assert sorted(v.name for v in loaded.variables) == ["kernel:0", "scale:0"]
    assert loaded.layers[0] is None and loaded.layers[1].scale.numpy() == 5.0
    assert loaded.encoder.parent is loaded and not hasattr(loaded.encoder, "steep")
    for name, reason in (("decoder", "only="), ("nonsense", "no such attribute")):
        with pytest.raises(AttributeError, match=reason):
            getattr(loaded, name)


def test_DR_03_signatures_alone(tf, directory):
    loaded = load(directory, "signatures.encode")
    assert list(loaded.signatures) == ["encode"]
    np.testing.assert_array_equal(
        loaded.signatures["encode"](x=[1.0, 2.0])["output_0"].numpy(), [10.0, 30.0]
    )
    assert not hasattr(loaded.encoder, "call") and not hasattr(loaded, "decoder")
    both = load(directory, "signatures")
    assert sorted(both.signatures) == ["encode", "look"]
    assert both.decoder.table is not None and not hasattr(both.decoder, "kernel")


def test_DR_03_an_element_of_a_list_and_a_whole_subtree(tf, directory):
    assert [v.name for v in load(directory, "layers.1").variables] == ["scale:0"]
    loaded = load(directory, {"encoder"})
    assert sorted(v.name for v in loaded.variables) == ["factor:0", "kernel:0", "scale:0"]
    with tf.GradientTape() as tape:
        tape.watch(x := tf.constant([1.0, 1.0]))
        y = loaded.encoder.steep(x)
    # What only the gradient captures has come along.
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [14.0, 21.0])


def test_DR_03_an_unknown_path_names_the_nearest(directory):
    with pytest.raises(UnknownPathError, match=r"encoder\.call") as caught:
        load(directory, ["encoder.cal"])
    assert caught.value.clause == "DR-03"


def test_DR_03_a_part_can_be_saved_again(tf, directory, tmp_path):
    reference_impl.save(load(directory, ["encoder.call", "signatures.encode"]), tmp_path / "part")
    for again in (
        reference_impl.load(tmp_path / "part"),
        tf.saved_model.load(str(tmp_path / "part")),
    ):
        np.testing.assert_array_equal(
            again.encoder.call(tf.constant([1.0, 2.0])).numpy(), [10.0, 30.0]
        )
        np.testing.assert_array_equal(
            again.signatures["encode"](x=tf.constant([1.0, 2.0]))["output_0"].numpy(), [10.0, 30.0]
        )


def test_DR_03_signatures_of_a_TF1_model(tf, tmp_path):
    """Of four variables the signature needs one, and only that is read: the bytes of the others are
    damaged.
    """
    model = tmp_path / "model"
    shutil.copytree(FIXTURES / "shapes" / "model", model)
    full = reference_impl.load(model)
    loaded = load(model, "signatures.serving_default")
    assert list(loaded.signatures) == ["serving_default"] and len(loaded.variables) == 1 < len(
        full.variables
    )
    x = {name: tf.ones([2 if n is None else n for n in spec.shape], spec.dtype)
         for name, spec in full.signatures["serving_default"].structured_input_signature[1].items()}  # fmt: skip
    for name, value in full.signatures["serving_default"](**x).items():
        np.testing.assert_array_equal(
            loaded.signatures["serving_default"](**x)[name].numpy(), value.numpy()
        )
    assert sorted(load(model, "signatures").signatures) == sorted(full.signatures)

    kept = loaded.variables[0].name.partition(":")[0]
    reader = BundleReader(str(model / "variables" / "variables"))
    spans = [(entry.offset, entry.size) for key, entry in reader.entries().items() if key != kept]
    reader.close()
    shard = next((model / "variables").glob("variables.data-*"))
    data = bytearray(shard.read_bytes())
    for offset, size in spans:
        data[offset : offset + size] = bytes(255 - byte for byte in data[offset : offset + size])
    shard.write_bytes(data)
    with pytest.raises(tf.errors.DataLossError):
        reference_impl.load(model)
    again = load(model, "signatures.serving_default")
    np.testing.assert_array_equal(again.variables[0].numpy(), loaded.variables[0].numpy())
    with pytest.raises(UnknownPathError, match=r"signatures\.serving_default"):
        load(model, "signatures.serving_defaul")

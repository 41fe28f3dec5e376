"""Operations of TensorFlow between layers become calls of `keras.ops`."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from click.testing import CliRunner

from savedmodel_compat import cli

pytestmark = pytest.mark.tensorflow
keras = pytest.importorskip("keras", minversion="3")

import tensorflow as tf  # noqa: E402

from savedmodel_migration.keras_2_to_3.building.layer_model import layer_model  # noqa: E402
from savedmodel_migration.keras_2_to_3.building.operations import Operation  # noqa: E402
from savedmodel_migration.keras_2_to_3.reading.layer_graph import layer_graph  # noqa: E402
from savedmodel_migration.keras_2_to_3.reading.saved import SavedKeras  # noqa: E402
from savedmodel_migration.keras_2_to_3.rebuild import rebuild  # noqa: E402
from savedmodel_migration.keras_2_to_3.refused import Refused  # noqa: E402


@pytest.fixture(scope="module")
def keras2():
    return pytest.importorskip(
        "tf_keras", reason="tf_keras writes the models: pip install tf_keras"
    )


BY_SHAPE = {
    "batch and the rest": lambda x: tf.reshape(x, [tf.shape(x)[0], -1]),
    "batch first": lambda x: tf.reshape(x, [tf.shape(x)[0], 12]),
    "packed": lambda x: tf.reshape(x, tf.stack([tf.shape(x)[0], tf.shape(x)[1] * tf.shape(x)[2]])),
    "joined": lambda x: tf.reshape(x, tf.concat([tf.shape(x)[:1], [2, 6]], axis=0)),
    "batch last": lambda x: tf.transpose(
        tf.reshape(tf.transpose(x, [1, 2, 0]), [12, tf.shape(x)[0]])
    ),
    "scaled": lambda x: x / tf.sqrt(tf.cast(tf.shape(x)[-1], tf.float32)),
    "larger batch": lambda x: tf.reshape(x, [tf.shape(x)[0] * 3, 4]),
}


@pytest.mark.parametrize("name", BY_SHAPE)
def test_shapes_that_are_computed(keras2, tmp_path, name):
    entry = keras2.Input((3, 4))
    old = keras2.Model(entry, BY_SHAPE[name](keras2.layers.Dense(4)(entry)))
    old.save(tmp_path / "model", save_format="tf")
    new = rebuild(tmp_path / "model").model
    for batch in (1, 2, 5):
        x = np.random.default_rng(batch).standard_normal((batch, 3, 4)).astype("float32")
        np.testing.assert_allclose(np.asarray(new(x)), old(x).numpy(), rtol=1e-6, atol=1e-6)


def test_a_tensor_of_a_batch_of_computed_size_is_refused(keras2, tmp_path):
    entry = keras2.Input((4,))
    old = keras2.Model(
        entry, tf.broadcast_to(keras2.layers.Dense(4)(entry)[:1], [tf.shape(entry)[0], 4])
    )
    old.save(tmp_path / "model", save_format="tf")
    with pytest.raises(Refused, match="computed"):
        rebuild(tmp_path / "model")


TABLE = np.arange(20, dtype="float32").reshape(10, 2)
KERNEL = np.random.default_rng(0).standard_normal((3, 3, 4, 2)).astype("float32")
ROW = np.arange(6, dtype="float32")
# Shape of the input -> operations of it, with the constants of the model among their operands.
OPERATIONS = {
    (4, 6): lambda x: [
        x + tf.constant(ROW), tf.constant(ROW) * x, x - tf.ones([4, 6]), tf.where(x > ROW - 3, x, tf.zeros([4, 6])),
        tf.where([True, False] * 3, x, ROW), tf.math.top_k(x, 2).values, tf.math.top_k(x, 2).indices, x // 2.0,
        tf.math.cumsum(x, axis=1, reverse=True), tf.math.cumprod(x, axis=-1), tf.sort(x, direction="DESCENDING"), tf.argsort(x),
        tf.norm(x, ord=1, axis=1), tf.linalg.norm(x, axis=-1), tf.math.count_nonzero(x > 0, axis=1),
        tf.math.reduce_euclidean_norm(x, axis=-1), tf.nn.crelu(x), tf.math.asinh(x), tf.math.log_sigmoid(x),
        tf.math.erfc(x), tf.slice(x, [0, 1, 2], [-1, 2, 3]),
        tf.matmul(x, tf.constant(TABLE[:6])), tf.nn.bias_add(x, tf.constant(ROW)), tf.add([[*ROW.tolist()]], x),
    ],
    (5, 5): lambda x: [
        tf.linalg.matvec(x, x[:, 0]), tf.tensordot(x, tf.constant(TABLE[:5]), axes=1), tf.linalg.band_part(x, 0, -1),
        tf.linalg.band_part(x, -1, 0), tf.linalg.trace(x), tf.linalg.diag_part(x), *tf.nn.moments(x, axes=[1]),
        tf.nn.batch_normalization(x, tf.constant([1.0] * 5), tf.constant([2.0] * 5), tf.constant([0.5] * 5), None, 1e-3),
        tf.ensure_shape(x, [None, 5, 5]), tf.math.scalar_mul(2.0, x),
        tf.linalg.diag(x[:, 0] / 0.0), tf.linalg.set_diag(x, x[:, 1]),
    ],
    (8, 8, 4): lambda x: [
        tf.nn.avg_pool2d(x, 2, 2, "VALID"), tf.nn.max_pool2d(x, (3, 2), 1, "SAME"),
        tf.nn.avg_pool(x, [1, 2, 2, 1], 2, "SAME"), tf.nn.conv2d(x, KERNEL, 2, "SAME"),
        tf.nn.depth_to_space(x, 2), tf.nn.space_to_depth(x, 2), tf.image.flip_left_right(x),
        tf.space_to_batch(x, [2, 4], [[1, 1], [2, 2]]), tf.batch_to_space(tf.space_to_batch(x, [3,
        2], [[0, 1], [1, 1]]) * 2.0, [3, 2], [[0, 1], [1, 1]]), tf.image.extract_patches(x, [1, 3,
        2, 1], [1, 2, 3, 1], [1, 2, 1, 1], "SAME"), tf.image.flip_up_down(x),
        tf.image.rgb_to_grayscale(x[..., :3]), tf.nn.max_pool1d(x[:, 0], 2, 2, "VALID"), ],
}  # fmt: skip


@pytest.mark.parametrize("shape", OPERATIONS, ids=str)
def test_each_operation_gives_what_it_gave(keras2, tmp_path, shape):
    entry = keras2.Input(shape)
    old = keras2.Model(entry, OPERATIONS[shape](entry))
    old.save(tmp_path / "model", save_format="tf")
    new = rebuild(tmp_path / "model").model
    new.save(tmp_path / "new.keras")
    x = np.random.default_rng(1).standard_normal((3, *shape)).astype("float32")
    expected = old(x)
    for model in (new, keras.saving.load_model(tmp_path / "new.keras")):
        found = model(x)
        assert len(found) == len(expected) > 0
        for number, (got, wanted) in enumerate(zip(found, expected)):
            np.testing.assert_allclose(
                np.asarray(got), wanted.numpy(), rtol=1e-5, atol=1e-5, err_msg=str(number)
            )


def check_lambda_layers(keras2, folder, shape, operations):
    """Each operation is a Lambda layer of a model, which is rebuilt of the ops of its graph, with
    its values.
    """
    entry = keras2.Input(shape)
    layers = [
        keras2.layers.Lambda(operation, name=f"layer_{at}")
        for at, operation in enumerate(operations)
    ]
    keras2.Model(entry, [layer(entry) for layer in layers]).save(folder / "model", save_format="tf")
    x = np.random.default_rng(1).standard_normal((3, *shape)).astype("float32")
    assert layers
    with SavedKeras(folder / "model") as saved:
        found = saved.layers_of(saved.root)
        for layer in layers:
            new = layer_model(layer_graph(saved, found[layer.name].node), layer.name)
            got, wanted = np.asarray(new(x)), layer(x).numpy()
            assert got.dtype == wanted.dtype, layer.name
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5, err_msg=layer.name)


@pytest.mark.parametrize("shape", OPERATIONS, ids=str)
def test_each_operation_between_layers_is_known_in_a_lambda_layer_too(keras2, tmp_path, shape):
    count = len(OPERATIONS[shape](keras2.Input(shape)))
    operations = [lambda x, at=at: OPERATIONS[shape](x)[at] for at in range(count)]
    check_lambda_layers(keras2, tmp_path, shape, operations)


def dilated(x, kernel, rate):
    """Return a convolution as exports of TF 1.x and of early TF 2 hold it: of blocks that are
    examples.
    """
    size = kernel.shape[0] * rate - rate
    pads = [[size // 2, size - size // 2 + -(x.shape[axis] + size) % rate] for axis in (1, 2)]
    crops = [[0, -(x.shape[axis] + size) % rate] for axis in (1, 2)]
    blocks = tf.space_to_batch(x, [rate, rate], pads)
    return tf.batch_to_space(tf.nn.conv2d(blocks, kernel, 1, "VALID"), [rate, rate], crops)


KERNEL_3D = np.random.default_rng(0).standard_normal((2, 2, 2, 4, 2)).astype("float32")
POSITIVE = np.array([[2.0, 0.5, 0.25], [0.5, 3.0, 0.125], [0.25, 0.125, 1.0]], "float32")
ONLY_IN_GRAPHS = {
    (4, 4, 8): [
        lambda x: tf.nn.depth_to_space(x, 2, name="shuffled") * 2.0,
        lambda x: tf.nn.depthwise_conv2d(x, KERNEL[:, :, :1].repeat(8, 2), [1, 1, 1, 1], "SAME"),
        lambda x: tf.image.resize(x, [7, 5], "bicubic"),
        lambda x: tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(tf.sigmoid(x[..., :3]))),
        lambda x: tf.roll(x, [1, -2], [1, 2]),
        lambda x: x * (tf.constant(ROW)[:, None] * tf.constant(ROW)[None, :])[:4, :1],
        lambda x: tf.tensordot(x, tf.constant(TABLE[:8]), axes=[[3], [0]]),
        lambda x: tf.nn.depthwise_conv2d(
            x, KERNEL[:, :, :1].repeat(8, 2), [1, 1, 1, 1], "SAME", dilations=[2, 2]
        ),
        lambda x: dilated(x, KERNEL.repeat(2, 2), 2),
        lambda x: tf.image.extract_patches(x, [1, 2, 2, 1], [1, 1, 2, 1], [1, 1, 1, 1], "VALID"),
        lambda x: tf.raw_ops.BatchToSpace(
            input=tf.raw_ops.SpaceToBatch(input=x, paddings=[[1, 1], [0, 0]], block_size=2),
            crops=[[1, 1], [0, 0]],
            block_size=2,
        ),
        lambda x: (
            tf.raw_ops.ConjugateTranspose(x=x, perm=[0, 3, 1, 2])
            + tf.raw_ops.Concat(concat_dim=1, values=[x[:, :3], x])[:, :4, :, :4][:, :1]
        ),
        lambda x: tf.math.acosh(1.0 + tf.abs(x)) + tf.math.atanh(tf.tanh(x) / 2.0),
    ],
    (4, 4, 4, 4): [
        lambda x: tf.nn.conv3d(x, KERNEL_3D, [1, 2, 2, 2, 1], "SAME"),
        lambda x: tf.nn.max_pool3d(x, 2, 2, "VALID") + tf.nn.avg_pool3d(x, 2, 2, "VALID"),
    ],
    (3, 3): [
        lambda x: tf.linalg.inv(x * 1e-2 + POSITIVE),
        lambda x: tf.linalg.det(x * 1e-2 + POSITIVE),
        lambda x: tf.linalg.cholesky(x * 0.0 + POSITIVE),
        lambda x: tf.raw_ops.Select(condition=x > 0, x=x, y=-x),
    ],
}


@pytest.mark.parametrize("shape", ONLY_IN_GRAPHS, ids=str)
def test_ops_of_lambda_layers_that_are_no_function_between_layers(keras2, tmp_path, shape):
    check_lambda_layers(keras2, tmp_path, shape, ONLY_IN_GRAPHS[shape])


def test_a_constant_that_grows_without_end_is_refused(keras2, tmp_path):
    """A row and a column give a table of 2^26 numbers."""
    entry = keras2.Input((3,))

    def call(x):
        row = tf.constant(np.arange(1 << 13, dtype="float32")[None])
        return x * tf.reduce_sum(row + tf.transpose(row))

    layer = keras2.layers.Lambda(call, name="layer_0")
    keras2.Model(entry, layer(entry)).save(tmp_path / "model", save_format="tf")
    with SavedKeras(tmp_path / "model") as saved:
        graph = layer_graph(saved, saved.layers_of(saved.root)["layer_0"].node)
        with pytest.raises(Refused, match="a constant of 67108864 numbers"):
            layer_model(graph, "layer_0")


def test_operations_on_whole_numbers_keep_their_dtypes(keras2, tmp_path):
    ids = keras2.Input((3,), dtype="int32")
    table = tf.constant(TABLE)
    outputs = [
        tf.gather(table, ids), tf.nn.embedding_lookup(table, ids), ids + tf.constant([1, 2, 3]), tf.equal(ids, [1, 2, 3]),
        tf.sequence_mask(ids[:, 0], 5), tf.sequence_mask(ids[:, 0], 5, dtype=tf.float32), ids % 2,
    ]  # fmt: skip
    old = keras2.Model(ids, outputs)
    old.save(tmp_path / "model", save_format="tf")
    x = np.array([[1, 2, 3], [0, 9, 4]], "int32")
    found = rebuild(tmp_path / "model").model(x)
    assert len(found) == len(outputs)
    for got, wanted in zip(found, old(x)):
        assert np.asarray(got).dtype == wanted.numpy().dtype
        np.testing.assert_array_equal(np.asarray(got), wanted.numpy())


def test_an_operation_that_computes_a_mask_gets_no_name_of_a_layer(keras2, tmp_path):
    layers = keras2.layers
    tokens = keras2.Input((6,), dtype="int32")
    steps = layers.LSTM(4, return_sequences=True)(layers.Embedding(9, 4, mask_zero=True)(tokens))
    both = layers.Concatenate(name="concatenate")([steps, layers.Dense(4)(steps)])
    old = keras2.Model(tokens, layers.GlobalAveragePooling1D()(both))
    old.save(tmp_path / "model", save_format="tf")
    x = np.array([[1, 2, 3, 0, 0, 0], [4, 5, 0, 0, 0, 0]], "int32")
    np.testing.assert_allclose(
        np.asarray(rebuild(tmp_path / "model").model(x)), old(x).numpy(), rtol=1e-5, atol=1e-6
    )


def node(op, **attrs):
    """An operation as TF 2.0 to 2.3 write it, with the constants among its inputs."""
    constants = attrs.pop("constants", {})
    given = {"op": op, "name": op, "attr": attrs}
    return Operation("TensorFlowOpLayer", {"node_def": json.dumps(given), "constants": constants})


def test_nodes_that_compute_shapes():
    x = keras.Input((3, 4))
    shape = node("Shape")(x)
    batch = node(
        "StridedSlice", constants={"1": [0], "2": [1], "3": [1]}, shrink_axis_mask={"i": "1"}
    )(shape)
    packed = node("Pack", axis={"i": "0"}, constants={"1": 12})(batch)
    model = keras.Model(x, node("Reshape")([x, packed]))
    assert model(np.ones((5, 3, 4), "float32")).shape == (5, 12)


def test_nodes_of_einsum_and_of_resized_images():
    equation = {"s": base64.b64encode(b"bij,bjk->bik").decode()}
    one, other = keras.Input((2, 3)), keras.Input((3, 4))
    model = keras.Model([one, other], node("Einsum", equation=equation)([one, other]))
    a, b = (
        np.random.default_rng(0).standard_normal(shape).astype("float32")
        for shape in ((5, 2, 3), (5, 3, 4))
    )
    np.testing.assert_allclose(np.asarray(model([a, b])), a @ b, rtol=1e-5, atol=1e-6)
    image = keras.Input((4, 4, 1))
    x = np.random.default_rng(1).standard_normal((2, 4, 4, 1)).astype("float32")
    for op, method in (("ResizeBilinear", "bilinear"), ("ResizeNearestNeighbor", "nearest")):
        resized = node(op, constants={"1": [7, 5]}, half_pixel_centers={"b": True})(image)
        np.testing.assert_allclose(
            keras.Model(image, resized)(x), tf.image.resize(x, [7, 5], method), rtol=1e-5, atol=1e-6
        )
        with pytest.raises(Refused, match="half_pixel_centers"):
            node(op, constants={"1": [7, 5]})(image)


@pytest.mark.parametrize(
    "op, constants, reason",
    [
        ("SpaceToBatchND", {"1": [1000, 1000], "2": [[0, 0], [0, 0]]}, "more than 1024 places"),
        ("SpaceToBatchND", {"1": [2, 0], "2": [[0, 0], [0, 0]]}, "blocks of"),
        ("SpaceToBatchND", {"1": [2], "2": [[0, -1]]}, "blocks of"),
        ("SpaceToBatchND", {"1": [2, 2], "2": [[0, 0]]}, "blocks of"),
        ("BatchToSpaceND", {"1": [2, 2], "2": [[5, 5], [0, 0]]}, "crops of"),
    ],
)
def test_blocks_that_no_graph_of_keras_should_have_are_refused(op, constants, reason):
    with pytest.raises(Refused, match=reason):
        node(op, constants=constants)(keras.Input((4, 4, 1)))


def test_blocks_of_a_computed_size_are_refused():
    with pytest.raises(Refused, match="computed"):
        node("BatchToSpaceND", constants={"1": [2, 2], "2": [[0, 0], [0, 0]]})(
            keras.Input((None, None, 1))
        )


def test_a_metric_of_a_tensor_is_left_out_and_said(keras2, tmp_path):
    entry = keras2.Input((4,))
    hidden = keras2.layers.Dense(3)(entry)
    old = keras2.Model(entry, keras2.layers.Dense(2)(hidden))
    old.add_metric(tf.reduce_sum(hidden), name="activity", aggregation="mean")
    old.save(tmp_path / "model", save_format="tf")
    result = CliRunner().invoke(
        cli.main,
        ["migrate", "--to", "keras", str(tmp_path / "model"), "--out", str(tmp_path / "out")],
    )
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "out/records/model.json").read_text())
    assert record["status"] == "rebuilt"
    assert any("'activity'" in note for note in record["parts"][0]["notes"])


def test_an_operation_gets_another_name_than_a_layer_of_its_model(keras2, tmp_path):
    """MobileNetV3Small has a layer called `multiply`, which is how Keras 3 calls the product of two
    tensors, too.
    """
    entry = keras2.Input((4,))
    product = keras2.layers.Multiply(name="multiply")([entry, entry])
    again = keras2.layers.Dense(4, name="multiply_1")(tf.multiply(product, entry) * 2.0)
    keras2.Model(entry, tf.add(again, entry)).save(tmp_path / "model", save_format="tf")
    keras.utils.clear_session()
    made = rebuild(tmp_path / "model").model
    names = [operation.name for operation in made.operations]
    assert len(names) == len(set(names)) and {"multiply", "multiply_1"} <= set(names)
    result = CliRunner().invoke(
        cli.main,
        ["migrate", "--to", "keras", str(tmp_path / "model"), "--out", str(tmp_path / "out")],
    )
    assert "1 rebuilt" in result.output, result.output

"""Make `model/`, `model.onnx`, `swapped.onnx` and `model.tflite`, which the tests of `savedmodel-compat prove` spoil.

Run with the Python of `third_party/locks/onnx.txt` (TensorFlow 2.15, tf2onnx 1.17): ``python make.py``.
"""

import pathlib
import shutil
import sys
from unittest import mock

import numpy as np
import tensorflow as tf
import tf2onnx.convert

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "savedmodel_prove"))
import onnx_faults  # noqa: E402

RANDOM = np.random.default_rng(0)


def weight(*shape):
    """Return a variable with random numbers, which the model saves."""
    return tf.Variable(RANDOM.normal(scale=0.5, size=shape).astype(np.float32))


class Classifier(tf.Module):
    """A small network with an op for each fault that the tests plant."""

    def __init__(self):
        super().__init__()
        self.stem, self.stem_bias = weight(3, 3, 3, 4), weight(4)
        self.left, self.right = weight(1, 1, 4, 4), weight(1, 1, 4, 4)
        self.scale, self.offset, self.mean = weight(4), weight(4), weight(4)
        self.variance = tf.Variable(np.abs(RANDOM.normal(size=4)).astype(np.float32))
        self.hidden, self.hidden_bias = weight(16, 6), weight(6)
        self.square = weight(6, 6)
        self.out = weight(6, 3)
        self.table = weight(5, 6)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 8, 8, 3], tf.float32, "image"),
            tf.TensorSpec([None], tf.int32, "kind"),
        ]
    )
    def serve(self, image, kind):
        """Return probabilities, logits, the class and two features."""
        x = tf.nn.conv2d(image, self.stem, 2, "SAME", name="stem")
        x = tf.nn.relu(tf.nn.bias_add(x, self.stem_bias, name="stem_bias"), name="stem_relu")
        left = tf.nn.conv2d(x, self.left, 1, "VALID", name="left")
        right = tf.nn.conv2d(x, self.right, 1, "VALID", name="right")
        x = tf.subtract(tf.nn.elu(left, name="left_elu"), right, name="join")
        x, _, _ = tf.compat.v1.nn.fused_batch_norm(
            tf.nn.leaky_relu(x, 0.2, name="leaky"),
            self.scale,
            self.offset,
            self.mean,
            self.variance,
            epsilon=1e-3,
            is_training=False,
            name="norm",
        )
        x = tf.nn.max_pool2d(x, 2, 2, "VALID", name="pool")
        pooled = tf.reduce_mean(x, [1, 2], name="average")
        x = tf.reshape(x, [-1, 16], name="flat")
        x = tf.tanh(
            tf.add(tf.matmul(x, self.hidden, name="hidden"), self.hidden_bias, name="bias"),
            name="tanh",
        )
        x = tf.add(x, tf.gather(self.table, kind, name="embed"), name="embedded")
        x = tf.matmul(x, self.square, name="square")
        middle = tf.reduce_mean(x, -1, keepdims=True, name="middle")
        x = tf.divide(
            x - middle,
            tf.sqrt(tf.reduce_mean(tf.square(x - middle), -1, keepdims=True) + 1e-2, name="spread"),
            name="layer_norm",
        )
        x = tf.clip_by_value(x, -1.5, 1.5, name="clip")
        logits = tf.matmul(x, self.out, name="logits")
        return {
            "probabilities": tf.nn.softmax(logits, name="softmax"),
            "logits": tf.identity(logits),
            "class": tf.argmax(logits, -1, name="best"),
            "features": tf.concat([pooled, x], -1, name="features"),
            "total": tf.reduce_sum(tf.sigmoid(x, name="gate") * 2.0, 1, name="total"),
        }


def main():
    model = HERE / "model"
    shutil.rmtree(model, ignore_errors=True)
    module = Classifier()
    tf.saved_model.save(module, str(model), signatures=module.serve)
    arguments = ["--saved-model", str(model), "--opset", "18", "--output", str(HERE / "model.onnx")]
    with mock.patch("sys.argv", ["tf2onnx", *arguments]):
        tf2onnx.convert.main()
    swapped = onnx_faults.Model(str(HERE / "model.onnx"))
    onnx_faults.kernels_of_equal_shape_swapped(swapped)
    (HERE / "swapped.onnx").write_bytes(swapped.proto.SerializeToString())
    converter = tf.lite.TFLiteConverter.from_saved_model(str(model))
    (HERE / "model.tflite").write_bytes(converter.convert())


if __name__ == "__main__":
    main()

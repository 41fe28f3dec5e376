"""Convert signatures: ``python convert_fixtures.py JOBS.json``.

A program for the Python of a converter. A job is a list of the model, the signature and the file to
write, whose suffix names the converter: tf2onnx or TensorFlow Lite's. A signature that cannot be
converted leaves no file.
"""

import contextlib
import json
import pathlib
import sys
from unittest import mock


def to_onnx(model, key, out):
    """Convert with tf2onnx."""
    import tf2onnx.convert

    asked = ["--saved-model", model, "--tag", "serve", "--signature_def", key]
    with mock.patch("sys.argv", ["tf2onnx", *asked, "--opset", "18", "--output", out]):
        tf2onnx.convert.main()


def to_tflite(model, key, out):
    """Convert with TensorFlow Lite's converter."""
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_saved_model(
        model, signature_keys=[key], tags={"serve"}
    )
    pathlib.Path(out).write_bytes(converter.convert())


def main():
    for model, key, out in json.loads(pathlib.Path(sys.argv[1]).read_text()):
        convert = to_onnx if out.endswith(".onnx") else to_tflite
        with contextlib.suppress(Exception, SystemExit):
            convert(model, key, out)


if __name__ == "__main__":
    main()

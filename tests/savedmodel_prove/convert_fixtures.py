"""Convert signatures with tf2onnx: ``python convert_fixtures.py JOBS.json``.

A program for the Python of `third_party/locks/onnx.txt`. A job is a list of the model, the signature
and the file to write. A signature that tf2onnx cannot convert leaves no file.
"""

import contextlib
import json
import pathlib
import sys
from unittest import mock

import tf2onnx.convert


def main():
    for model, key, out in json.loads(pathlib.Path(sys.argv[1]).read_text()):
        asked = ["--saved-model", model, "--tag", "serve", "--signature_def", key]
        arguments = ["tf2onnx", *asked, "--opset", "18", "--output", out]
        with mock.patch("sys.argv", arguments), contextlib.suppress(Exception, SystemExit):
            tf2onnx.convert.main()


if __name__ == "__main__":
    main()

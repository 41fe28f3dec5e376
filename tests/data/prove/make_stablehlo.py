"""Make `model.mlir` from `model/`: a StableHLO module for batches of two, as TensorFlow lowers it.

Run with TensorFlow 2.21: ``python make_stablehlo.py``.
"""

import pathlib
import re

import tensorflow as tf
from tensorflow.python.framework import convert_to_constants

HERE = pathlib.Path(__file__).parent
SOURCE_LINE = re.compile(r'loc\("[^"]*":\d+:\d+\)')  # names files of this machine


def main():
    model = tf.saved_model.load(str(HERE / "model"))  # it keeps the variables
    signature = model.signatures["serving_default"]
    specs = [tf.TensorSpec([2, 8, 8, 3], tf.float32), tf.TensorSpec([2], tf.int32)]
    called = tf.function(lambda image, kind: signature(image=image, kind=kind))
    frozen = convert_to_constants.convert_variables_to_constants_v2(
        called.get_concrete_function(*specs)
    )
    compiled = tf.function(lambda image, kind: frozen(image, kind), jit_compile=True)
    lowered = compiled.experimental_get_compiler_ir(
        *[tf.zeros(one.shape, one.dtype) for one in specs]
    )
    text = SOURCE_LINE.sub("loc(unknown)", lowered(stage="stablehlo"))
    (HERE / "model.mlir").write_text(text)


if __name__ == "__main__":
    main()

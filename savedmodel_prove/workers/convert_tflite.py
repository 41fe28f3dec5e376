"""Write a signature of a SavedModel as a .tflite file: MODEL TAGS SIGNATURE FILE."""

import pathlib
import sys

import tensorflow as tf


def main():
    model, tags, key, out = sys.argv[1:]
    converter = tf.lite.TFLiteConverter.from_saved_model(
        model, signature_keys=[key], tags=set(tags.split(","))
    )
    pathlib.Path(out).write_bytes(converter.convert())


if __name__ == "__main__":
    main()

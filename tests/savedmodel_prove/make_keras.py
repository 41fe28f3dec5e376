"""Write a Keras model as a SavedModel and as a .keras file: ``python make_keras.py FOLDER``."""

import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras


def main():
    folder = pathlib.Path(sys.argv[1])
    keras.utils.set_random_seed(0)
    inputs = keras.Input([8, 8, 3], name="image")
    x = keras.layers.Conv2D(4, 3, activation="relu", name="stem")(inputs)
    x = keras.layers.BatchNormalization(name="norm")(x)
    x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
    outputs = keras.layers.Dense(3, activation="softmax", name="kind")(x)
    model = keras.Model(inputs, outputs)
    model.export(str(folder / "model"), verbose=False)
    model.save(folder / "model.keras")
    kernel, bias = model.get_layer("kind").get_weights()
    model.get_layer("kind").set_weights([kernel[::-1], bias])
    model.save(folder / "wrong.keras")


if __name__ == "__main__":
    main()

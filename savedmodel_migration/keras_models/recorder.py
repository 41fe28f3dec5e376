"""Make models inside a release of TensorFlow, with what they answer.

Python 3.6 syntax.

    python -m savedmodel_migration.keras_models.recorder OUT PACKAGE NAME KEY [NAME KEY]...

PACKAGE is ``tensorflow.keras`` or ``tf_keras``. KEY goes into the facts. For each NAME its folder
in OUT holds:

- ``model``: the SavedModel;
- ``facts.json``;
- ``io.npz``: inputs ``x0...``, answers ``y0...``;
- ``weights.npz``: ``w0...``, whose names are in the facts;
- ``step.npz``, where the model is compiled and its step can be repeated: targets ``t0...``, weights
  after it ``w0...``.

A model that this release cannot make has facts with ``absent`` (it lacks the layer or the argument)
or ``failed``, and nothing else. A line "NAME STATE" is printed for each.
"""

import importlib
import json
import os
import re
import shutil
import sys
import zlib

import numpy as np

from . import layers, whole

BATCH = 3


class Absent(Exception):
    """This release does not have it."""


class Layers(object):
    """The layers of a release, wherever it keeps them."""

    def __init__(self, keras):
        found = keras.layers
        places = [
            found,
            getattr(found, "experimental", None),
            getattr(getattr(found, "experimental", None), "preprocessing", None),
        ]
        self._places = [place for place in places if place is not None]

    def __getattr__(self, name):
        for place in self._places:
            if hasattr(place, name):
                return getattr(place, name)
        raise Absent("no keras.layers.{}".format(name))


class Makers(object):
    """The names that the code of a model may use."""

    def __init__(self, tf, keras):
        self.tf, self.keras, self.np, self.L = tf, keras, np, Layers(keras)

    @staticmethod
    def adapted(layer, data):
        layer.adapt(
            data
            if data.dtype.kind in "USO"
            else data.astype("float32" if data.dtype.kind == "f" else "int64")
        )
        return layer


def folder(name):
    """The name of a model's folder."""
    return name.replace("/", ".").replace(" ", "_")


def names():
    """Every model, ``layer/variant`` or the name of a whole one."""
    found = []
    for layer in sorted(layers.LAYERS):
        found += ["{}/{}".format(layer, row[0]) for row in layers.LAYERS[layer]]
    return found + list(whole.WHOLE)


def _dtype(kind, name):
    return {
        "float": "float64" if name == "double_precision" else "float32",
        "int": "int32",
        "string": "string",
    }[kind.split()[0]]


def row_of(name):
    """``(inputs, code)`` of a layer's model, ``None`` of a whole one."""
    layer, _, variant = name.partition("/")
    for row in layers.LAYERS.get(layer, ()) if variant else ():
        if row[0] == variant:
            return row[1], row[2]
    return None


def _is_slow(name):
    """Whether a step takes seconds to trace and shows nothing that the plain layer does not."""
    layer, _, variant = name.partition("/")
    recurrent = re.search("RNN|LSTM|GRU|Bidirectional|TimeDistributed", layer)
    return (
        bool(recurrent)
        and layer != "Masking"
        and variant not in ("plain", "LSTM", "Dense", "regularized", "state")
    )


def make(name, made):
    """``(model, kinds of inputs, whether a training step is drawn at random)``."""
    row = row_of(name)
    if row is None:
        inputs, function = whole.WHOLE[name]
        return (
            function(made),
            inputs,
            name
            in (
                "subclassed",
                "augmented",
                "EfficientNetB0",
                "EfficientNetV2B0",
                "ConvNeXtTiny",
                "MobileNet",
                "MobileNetV3Small",
                "NASNetMobile",
            ),
        )
    inputs, code = row
    tensors = [made.keras.Input(shape, dtype=_dtype(kind, name)) for kind, shape in inputs]
    scope = {
        "x": tensors[0] if len(tensors) == 1 else tensors,
        "L": made.L,
        "keras": made.keras,
        "tf": made.tf,
        "np": np,
    }
    scope["adapted"] = made.adapted
    outputs = eval(code, scope)  # noqa: S307 (our own table)
    net = made.keras.Model(tensors if len(tensors) > 1 else tensors[0], outputs)
    if not _is_slow(name) and all(
        tensor.dtype in (made.tf.float32, made.tf.float16) for tensor in net.outputs
    ):
        net.compile("sgd", "mse")
    return net, inputs, layers.is_random(code)


def data(name, inputs):
    """Arrays for the inputs, the same in every release."""
    random = np.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF)
    found = []
    for kind, shape in inputs:
        kind, _, rest = kind.partition(" ")
        if kind == "float":
            array = random.normal(size=(BATCH,) + shape).astype(
                "float64" if name == "double_precision" else "float32"
            )
            if len(shape) == 2:
                array[0, -2:] = 0.0  # steps that a mask leaves out
            if name == "Embedding/float":
                array = np.floor(np.abs(array))
        elif kind == "int":
            array = random.randint(0, int(rest), size=(BATCH,) + shape).astype("int32")
        else:
            array = np.array(rest.split("|"), dtype=object)[
                random.randint(0, 4, size=(BATCH,) + shape)
            ]
        found.append(array)
    return found


def disturb(name, net):
    """Give every weight a value of its own, as training would: biases are not 0, variances not
    1.
    """
    row = row_of(name)
    if row is not None and ("adapted" in row[1] or "idf" in row[1] or "mean=" in row[1]):
        return
    random = np.random.RandomState(5)
    values = []
    for variable, value in zip(net.weights, net.get_weights()):
        if getattr(value, "dtype", None) in (np.float32, np.float64):
            if re.search("variance", variable.name):
                value = random.uniform(0.5, 1.5, value.shape).astype(value.dtype)
            elif name in whole.APPLICATIONS and value.ndim > 1:
                pass  # a hundred layers of noise would answer 0 and 1 whatever the input is
            elif not re.search("mean:|count", variable.name) or "moving" in variable.name:
                value = value + random.normal(0, 0.1, value.shape).astype(value.dtype)
        values.append(value)
    if name not in ("tabular", "text_classifier"):
        net.set_weights(values)


def _call(tf, net, arrays):
    tensors = [tf.constant(array.tolist() if array.dtype == object else array) for array in arrays]
    if isinstance(getattr(net, "_nested_inputs", None), dict):
        tensors = dict(zip(("b", "a"), tensors))
    elif len(tensors) == 1:
        tensors = tensors[0]
    return tensors, net(tensors, training=False)


def _numbered(letter, arrays):
    return {"{}{}".format(letter, number): array for number, array in enumerate(arrays)}


def _weights(net):
    """Of the weights that are variables: a lookup table is none."""
    return [np.asarray(item.numpy()) for item in net.weights if hasattr(item, "numpy")]


def _classes(layer):
    """The class names of a layer and of those in it."""
    yield type(layer).__name__
    inner = list(getattr(layer, "layers", None) or getattr(layer, "cells", None) or ())
    inner += [
        getattr(layer, name)
        for name in ("layer", "cell", "forward_layer", "backward_layer")
        if hasattr(layer, name)
    ]
    for item in inner:
        for name in _classes(item):
            yield name


def _targets(net, answers):
    random = np.random.RandomState(11)
    loss = net.loss if isinstance(net.loss, str) else getattr(net.loss, "name", "")
    found = []
    for answer in answers:
        if str(loss).startswith("sparse"):
            found.append(
                random.randint(0, answer.shape[-1], size=answer.shape[:-1]).astype("int32")
            )
        elif "categorical" in str(loss):
            found.append(
                np.eye(answer.shape[-1], dtype="float32")[
                    random.randint(0, answer.shape[-1], size=answer.shape[:-1])
                ]
            )
        else:
            found.append(random.uniform(0, 1, size=answer.shape).astype("float32"))
    return found


def record(name, made, out):
    """Make one model in the new folder ``out``."""
    tf, keras = made.tf, made.keras
    keras.backend.clear_session()
    np.random.seed(3)
    tf.random.set_seed(3)
    net, inputs, drawn = make(name, made)
    disturb(name, net)
    arrays = data(name, inputs)
    tensors, answer = _call(tf, net, arrays)
    flat = [np.asarray(tensor.numpy()) for tensor in tf.nest.flatten(answer)]
    os.makedirs(out)
    keras.models.save_model(net, os.path.join(out, "model"), save_format="tf")
    np.savez(os.path.join(out, "io.npz"), **dict(_numbered("x", arrays), **_numbered("y", flat)))
    weights = _weights(net)
    np.savez(os.path.join(out, "weights.npz"), **_numbered("w", weights))
    facts = {
        "name": name, "tensorflow": tf.__version__, "keras": getattr(keras, "__version__", ""), "class": type(net).__name__,
        "compiled": bool(getattr(net, "optimizer", None)), "random": drawn,
        "weights": [getattr(item, "name", "") for item in net.weights],
        "trainable": [item.name for item in net.trainable_weights], "losses": len(net.losses),
        "inputs": [item.name.split(":")[0] for item in net.inputs] if name != "dict_inputs" else ["b", "a"],
        "layers": sorted(set(_classes(net))),
    }  # fmt: skip
    if facts["compiled"] and not drawn:
        targets = _targets(net, flat)
        given = (
            {"left": targets[0], "right": targets[1]}
            if name == "dict_outputs"
            else targets
            if len(targets) > 1
            else targets[0]
        )
        if hasattr(net, "reset_metrics"):
            net.reset_metrics()  # TF 2.3 to 2.6 return the mean of this loss and those of fit
        try:
            loss = net.train_on_batch(tensors, given)
        except Exception as error:  # the model is of use without a step
            facts["no step"] = "{}: {}".format(type(error).__name__, str(error)[:300])
        else:
            facts["loss"] = float(np.ravel(loss)[0])
            np.savez(
                os.path.join(out, "step.npz"),
                **dict(_numbered("t", targets), **_numbered("w", _weights(net))),
            )
    return facts


def record_safely(name, key, made, out):
    """``record``; what fails is said in the facts. Returns the state."""
    scratch = out + ".part"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        facts = record(name, made, scratch)
        state = "made"
    except Exception as error:
        text = "{}: {}".format(type(error).__name__, str(error)[:500])
        lacks = isinstance(error, (Absent, AttributeError)) or re.search(
            "unexpected keyword|not understood|Unknown (activation|regularizer)|got multiple"
            " values",
            str(error),
        )
        state = "absent" if lacks else "failed"
        facts = {"name": name, "tensorflow": made.tf.__version__, state: text}
        shutil.rmtree(scratch, ignore_errors=True)
        os.makedirs(scratch)
    with open(os.path.join(scratch, "facts.json"), "w") as stream:
        json.dump(dict(facts, key=key), stream, indent=1, sort_keys=True)
    shutil.rmtree(out, ignore_errors=True)
    os.rename(scratch, out)
    return state


def main(out, package, *wanted):
    if package == "tf_keras":
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU") if hasattr(tf.config, "set_visible_devices") else None
    keras = importlib.import_module("tf_keras") if package == "tf_keras" else tf.keras
    made = Makers(tf, keras)
    for name, key in zip(wanted[::2], wanted[1::2]):
        print(name, record_safely(name, key, made, os.path.join(out, folder(name))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
